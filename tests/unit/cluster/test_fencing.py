"""What two nodes that fence each other are given, and what a node concludes from Pacemaker's report."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster import fencing
from ansible_collections.agentlab.ocp.payload.cluster.ignition import render
from ansible_collections.agentlab.ocp.payload.cluster.machine_config_daemon import decode

from .test_render import VIPS, cluster, host

IMAGES = {"hyperkube": "lab/hk@sha256:1", "cluster-etcd-operator": "lab/ceo@sha256:2"}


def fenced(name: str, index: int, **fields: Any) -> dict[str, Any]:
    credentials = {
        "address": f"redfish+https://192.168.111.1:8000/redfish/v1/Systems/{name}",
        "username": "admin",
        "password": "pass<word>",
        "certificate_verification": "Disabled",
    }
    return {**host(name, index), "fencing_credentials": json.dumps(credentials), **fields}


TWO = [fenced("m0", 20, bootstrap=True), fenced("m1", 21)]


def files(config: dict[str, Any]) -> dict[str, str]:
    return {entry["path"]: decode(entry["contents"]).decode() for entry in config["storage"]["files"]}


def machine_config(tls_dir: Path, hosts: list[dict[str, Any]], images: dict[str, str] | None = None) -> dict[str, Any]:
    configs = render(cluster(**VIPS), hosts, tls_dir, images or IMAGES, {}, {}, node_files={})
    first = json.loads(files(configs["bootstrap.ign"])["/opt/openshift/manifests.json"])
    return {
        "objects": first,
        "config": next(
            o["spec"]["config"] for o in first if o["kind"] == "MachineConfig" and "rendered-master" in o["metadata"]["name"]
        ),
    }  # fmt: skip


def test_masters_get_corosync_and_pacemaker(tls_dir: Path) -> None:
    made = machine_config(tls_dir, TWO)
    given = files(made["config"])
    assert "ring0_addr: 192.168.111.20\n        name: m0\n        nodeid: 1" in given["/etc/corosync/corosync.conf"]
    assert "two_node: 1" in given["/etc/corosync/corosync.conf"]
    assert len(given["/etc/corosync/authkey"]) >= 128
    cib = ET.fromstring(given[fencing.CIB])
    devices = {
        primitive.get("id"): {pair.get("name"): pair.get("value") for pair in primitive.iterfind("instance_attributes/nvpair")}
        for primitive in cib.iterfind("configuration/resources/primitive")
    }  # fmt: skip
    assert devices["m1_redfish"] | {"pcmk_delay_base": ""} == {
        "ip": "192.168.111.1",
        "ipport": "8000",
        "systems_uri": "/redfish/v1/Systems/m1",
        "username": "admin",
        "password": "pass<word>",
        "ssl_insecure": "true",
        "pcmk_host_list": "m1",
        "pcmk_monitor_timeout": "120s",
        "pcmk_delay_base": "",
    }
    assert devices["m0_redfish"]["pcmk_delay_base"] != devices["m1_redfish"]["pcmk_delay_base"]
    banned = {(c.get("rsc"), c.get("node")) for c in cib.iterfind("configuration/constraints/rsc_location")}
    assert banned == {("m0_redfish", "m0"), ("m1_redfish", "m1")}
    assert "pacemaker.service" in {unit["name"] for unit in made["config"]["systemd"]["units"]}
    names = {o["metadata"]["name"] for o in made["objects"] if o["kind"] == "Secret"}
    assert {"fencing-credentials-m0", "fencing-credentials-m1"} <= names


@pytest.mark.parametrize(
    "hosts",
    [
        [fenced("m0", 20, bootstrap=True), host("m1", 21)],
        [fenced("m0", 20, bootstrap=True), fenced("m1", 21), fenced("m2", 22)],
        [fenced("m0", 20, bootstrap=True), fenced("m1", 21), host("a0", 22, "arbiter")],
    ],
)
def test_others_get_neither(tls_dir: Path, hosts: list[dict[str, Any]]) -> None:
    made = machine_config(tls_dir, hosts, {"hyperkube": "lab/hk@sha256:1"})
    assert not [path for path in files(made["config"]) if "corosync" in path or "cib" in path]
    assert "pacemaker.service" not in {unit["name"] for unit in made["config"]["systemd"]["units"]}


def test_a_release_without_the_image_is_refused(tls_dir: Path) -> None:
    with pytest.raises(ValueError, match="cluster-etcd-operator"):
        machine_config(tls_dir, TWO, {"hyperkube": "lab/hk@sha256:1"})


def report(quorum: str = "true", **peer: str) -> str:
    node = {"name": "m1", "online": "true", "unclean": "false", "pending": "false", **peer}
    attributes = " ".join(f'{key}="{value}"' for key, value in node.items())
    return (
        f'<pacemaker-result><summary><current_dc present="true" with_quorum="{quorum}"/></summary>'
        f'<nodes><node name="m0" online="true" unclean="false"/><node {attributes}/></nodes></pacemaker-result>'
    )


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (report(), "online"),
        (report(online="false"), "offline"),
        (report(online="false", unclean="true"), "unknown"),
        (report(online="true", unclean="true"), "unknown"),
        (report(online="false", pending="true"), "unknown"),
        (report(quorum="false", online="false"), "unknown"),
        ('<pacemaker-result><nodes><node name="m0" online="true"/></nodes></pacemaker-result>', "unknown"),
        ("crm_mon: Error: cluster is not available on this node", "unknown"),
        ("", "unknown"),
    ],
)
def test_state_of_the_other_node(text: str, state: str) -> None:
    assert fencing.peer_state(text, "m0") == state


def test_who_may_be_alone(tmp_path: Path) -> None:
    assert fencing.may_be_alone(tmp_path, tmp_path), "before both nodes were there"
    (tmp_path / fencing.FORMED).touch()
    assert not fencing.may_be_alone(tmp_path, tmp_path), "nothing is known of the other node"
    for state in (fencing.ONLINE, fencing.OFFLINE, fencing.UNKNOWN):
        fencing.write_state(tmp_path, state)
        assert fencing.may_be_alone(tmp_path, tmp_path) == (state == fencing.OFFLINE)
    fencing.write_state(tmp_path, fencing.OFFLINE)
    old = (tmp_path / fencing.PEER).stat().st_mtime - 2 * fencing.FRESH_SECONDS
    os.utime(tmp_path / fencing.PEER, (old, old))
    assert not fencing.may_be_alone(tmp_path, tmp_path), "Pacemaker has ended"
