"""Two masters that fence each other: without the other one, a member answers only once Pacemaker knows that it is off.

Pacemaker's part, a word in a file, is written by the test; the job `e2e-agent-tnf-ipv4` runs the real one.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.cluster import fencing
from ansible_collections.agentlab.ocp.payload.cluster.ignition import render

from .lab import Host, Lab, cluster_model, host_model, signers, until
from .test_ha import INGRESS, SETTINGS, VIP, leader, ready

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "keepalived", "kubectl", "openssl"))),
    reason="needs root, iproute2, keepalived, kubectl and openssl",
)
NAMES = {"master-0": "192.168.111.20", "master-1": "192.168.111.21"}
IMAGES = {"hyperkube": "lab/hyperkube", "cluster-etcd-operator": "lab/fencing"}
CREDENTIALS = {"address": "redfish+https://192.168.111.1/redfish/v1/Systems/1", "username": "a", "password": "b"}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, VIP, SETTINGS)
    try:
        yield made
    finally:
        made.close()


def set_state(host: Host, state: str) -> None:
    """Write what Pacemaker knows, as its program does every second."""
    fencing.write_state(host.root / "disk/run/agentlab", state)


@pytest.mark.slow
def test_no_answer_until_the_other_node_is_fenced(lab: Lab, tmp_path: Path) -> None:
    tls = signers(tmp_path / "tls")
    models = [host_model(name, address, "master", name == "master-0") for name, address in NAMES.items()]
    configs = render(
        cluster_model(control_plane_count=2, api_vips=[{"ip": VIP}], ingress_vips=[{"ip": INGRESS}]),
        [{**model, "fencing_credentials": json.dumps(CREDENTIALS)} for model in models],
        tls,
        IMAGES,
        SETTINGS,
        {},
        node_files={},
    )
    hosts = {name: lab.add(name, address) for name, address in NAMES.items()}
    bootkube = hosts["master-0"].boot_live(configs["bootstrap.ign"])
    lab.admin(tls, hosts["master-0"].root / "live/etc/kubernetes/ca.crt")
    hosts["master-1"].boot_disk(configs["master.ign"])
    until("bootkube ends", lambda: bootkube.poll() is not None)
    hosts["master-0"].shut_down()
    hosts["master-0"].boot_disk(configs["master.ign"])

    def all_ready() -> bool:
        lab.approve()
        return ready(lab) == set(NAMES)

    until("both nodes are ready", all_ready)
    for host in hosts.values():
        (host.root / "disk/etc/kubernetes" / fencing.FORMED).touch()
        set_state(host, fencing.ONLINE)
    lab.kubectl("create", "configmap", "before")

    first = leader(hosts)
    (second,) = set(hosts) - {first}
    hosts[first].power_off()
    until("the API's address moves", lambda: leader(hosts) == second, 20)
    end = time.monotonic() + 12
    while time.monotonic() < end:
        set_state(hosts[second], fencing.UNKNOWN)
        assert "before" not in lab.kubectl("get", "configmaps", check=False), "answered without the other node"
        time.sleep(1)

    def answers() -> bool:
        set_state(hosts[second], fencing.OFFLINE)
        return "before" in lab.kubectl("get", "configmaps", check=False)

    until("the API answers once the other node is fenced", answers, 30)
    set_state(hosts[second], fencing.OFFLINE)
    lab.kubectl("create", "configmap", "after")

    # A follower that is lost: the leader stays, and waits, too.
    hosts[first].boot_disk(None)
    (hosts[first].root / "disk/run/agentlab").mkdir(parents=True, exist_ok=True)

    def follows() -> bool:
        for host in hosts.values():
            set_state(host, fencing.ONLINE)
        return bool(lab.kubectl("create", "configmap", f"again-{time.monotonic_ns()}", check=False))

    until("two members answer again", follows, 60)
    hosts[first].power_off()
    set_state(hosts[second], fencing.UNKNOWN)
    until("the leader notices", lambda: not lab.kubectl("get", "configmaps", check=False), 30)
    assert not lab.kubectl("create", "configmap", "alone", check=False), "written without the other node"
    until("the API answers again", answers, 30)
