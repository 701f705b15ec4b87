"""Addresses of the way out, the KVM trial's disk, and the list of what was made."""

from __future__ import annotations

import ipaddress
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import names
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import host, kvm, namespaces, uplink
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox.remove import remove
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

CALLER = owner.Caller(owner.Owner("ostest", "/runs/ostest", 0, "root", "lab", ""))


def leave(directory: Path) -> None:
    found = owner.read(directory)
    assert found
    owner.remove(directory, found)
    host.leave_host(directory.parent)


def test_link_addresses_are_a_pair() -> None:
    pair = names.uplink("ostest")
    network, host, inside = (
        ipaddress.ip_network(pair["network"]),
        *map(ipaddress.ip_address, (pair["host_address"], pair["address"])),
    )
    assert [*network.hosts()] == [host, inside] and host + 1 == inside
    assert isinstance(network, ipaddress.IPv4Network) and network.subnet_of(ipaddress.IPv4Network("198.18.0.0/15"))


def test_link_names_fit() -> None:
    assert names.uplink("ostest")["link"] == "al-ostest"
    long = [names.uplink(f"a-very-long-cluster-name{end}")["link"] for end in ("", "-2")]
    assert max(map(len, long)) <= 15 and len(set(long)) == 2


def test_a_stub_resolver_is_not_a_resolver(tmp_path: Path) -> None:
    stub, real = tmp_path / "stub", tmp_path / "real"
    stub.write_text("nameserver 127.0.0.53\n")
    assert uplink.resolvers([real, stub]) == []
    real.write_text("search x\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\n")
    assert uplink.resolvers([real, stub]) == ["192.0.2.1", "fe80::1%eth0"]


@pytest.mark.skipif(not shutil.which("mcopy"), reason="needs mtools")
def test_trial_disk_is_a_file_system(tmp_path: Path) -> None:
    program = kvm.efi_program()
    (tmp_path / "disk").write_bytes(kvm.fat_disk(program))
    copied = subprocess.run(
        ["mcopy", "-i", str(tmp_path / "disk"), "::EFI/BOOT/BOOTX64.EFI", "-"], capture_output=True, check=True
    )
    assert copied.stdout == program


def test_answer_is_kept_for_this_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["no", None])
    monkeypatch.setattr(kvm, "attempt", lambda accelerator: next(answers))
    assert not kvm.usable(tmp_path)["usable"]
    assert kvm.domain_type("auto", tmp_path) == "qemu"
    known = json.loads((tmp_path / "kvm.json").read_text())
    (tmp_path / "kvm.json").write_text(json.dumps({**known, "boot_id": "an earlier one"}))
    assert kvm.domain_type("auto", tmp_path) == "kvm"
    assert kvm.domain_type("qemu", tmp_path) == "qemu"


def test_state_is_a_list_without_repetitions(tmp_path: Path) -> None:
    items = [{"kind": "network", "name": name, "host": "h"} for name in ("a", "b")]
    assert state.record(tmp_path, items) == items
    assert state.record(tmp_path, items) == []
    assert state.load(tmp_path) == {"owner": None, "created": items, "stages": {}}


def test_state_records_how_stages_ended(tmp_path: Path) -> None:
    state.begin(tmp_path, "prepare")
    begun = state.load(tmp_path)["stages"]["prepare"]
    assert begun["start"] and (begun["end"], begun["result"]) == (None, None)
    state.finish(tmp_path, "prepare", failed=False)
    state.begin(tmp_path, "image")
    state.finish(tmp_path, "image", failed=True)
    stages = state.load(tmp_path)["stages"]
    assert [stage["result"] for stage in stages.values()] == ["ok", "failed"]
    assert stages["prepare"]["start"] == begun["start"] <= str(stages["prepare"]["end"])


def test_state_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(state.StateError, match=r"state.json: not a state file"):
        state.load(tmp_path)


def test_unknown_kind_is_not_guessed() -> None:
    with pytest.raises(LabError, match="lists comet, which this version cannot remove"):
        remove([{"kind": "comet", "name": "x", "host": "h"}], CALLER)


def test_no_sandbox_reports_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"cluster ostest has no running sandbox .*: agentlab prepare --cluster ostest"):
        namespaces.require("ostest", tmp_path)


def test_shared_things_go_with_the_last(tmp_path: Path) -> None:
    parent = tmp_path / "agentlab"
    setting = tmp_path / "forwarding"
    setting.write_text("1")
    for name in ("a", "b"):
        host.claim(parent / name, CALLER)
    with host.update_shared(parent) as made:
        made.add(f"sysctl:{setting}=0")
    leave(parent / "a")
    assert parent.is_dir() and setting.read_text() == "1"
    leave(parent / "b")
    assert not parent.exists() and setting.read_text() == "0"
