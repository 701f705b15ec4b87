"""The switch of a lab with bonds and VLANs, without machines: a partner opens the taps and plays two of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PARTNER = Path(__file__).with_name("switch_partner.py")
PROFILE = {
    "topology": "compact",
    "master": {"memory_mib": 1024},
    "bonds": {
        "bond0": {"mode": "802.3ad", "nics": ["eth0", "eth1"]},
        "bond1": {"mode": "balance-xor", "nics": ["eth2", "eth3"]},
        "bond2": {"mode": "active-backup", "nics": ["eth5", "eth6"]},
    },
    "network": {"interface": "bond0", "vlan": 100, "mtu": 9000},
    "extra_networks": [
        {"name": "agtest1", "ipv4": "192.168.221.0/24", "interface": "bond1"},
        {"name": "agtest2", "ipv4": "192.168.222.0/24", "vlan": 300},
        {"name": "agtest3", "ipv4": "192.168.223.0/24", "interface": "bond2"},
    ],
}


@pytest.mark.slow
def test_tcp_passes_bonds_and_vlans_and_nothing_is_left(lab: Any, traces: Any) -> None:
    before = traces()
    one = lab("agtest", PROFILE)
    changed, __ = one.play("prepare")
    assert changed
    assert one.play("prepare")[0] == 0
    done = subprocess.run(
        [*one.inside(), sys.executable, "-I", str(PARTNER)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found.values()) == {"ok"}, found
    assert len(found) == 16
    # QEMU opens the taps; the machine is not run.
    one.enter("virsh", "-c", "qemu:///system", "start", "--paused", "agtest_master_0")
    assert "e1000" in one.enter("virsh", "-c", "qemu:///system", "domiflist", "agtest_master_0")
    one.enter("virsh", "-c", "qemu:///system", "destroy", "agtest_master_0")
    # A tap that was lost comes back, and an uplink returns to its bridge.
    one.enter("ip", "link", "set", "dev", "sw-bond0.100", "nomaster")
    one.enter("ip", "link", "delete", "n0-eth1")
    assert one.play("prepare", "--check")[0] == 1
    assert one.play("prepare")[0] == 1
    assert one.play("prepare")[0] == 0
    assert "master agtestbm" in one.enter("ip", "link", "show", "sw-bond0.100")
    one.play("destroy")
    assert traces() == before
