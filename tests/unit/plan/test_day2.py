"""Day-2 nodes: planned with the others, and left out of the installation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import configs, phases, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.access import Access, closing_lines
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.build import build
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.checks import check
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.render import table
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan

SNO = {"worker": {"count": 1}, "nodes": {"worker-0": {"day2": True}}}
HA = {"topology": "ha", "worker": {"count": 3}, "nodes": {"worker-1": {"day2": True}}}


def made(raw: dict[str, Any]) -> Any:
    complete = profile.complete(raw)
    assert not check(complete, "ostest")
    return check_plan(build(complete, "ostest"))


def inputs(plan: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle=""), configs.agent_config(plan)


def names(nodes: Any) -> list[str]:
    return [node["name"] for node in nodes]


def test_is_planned_as_others_are() -> None:
    """Machine, BMC, names and leases are there from the start, at the addresses that the node has without day2."""
    later, at_once = made(HA), made({**HA, "nodes": {}})
    for one, other in zip(later["nodes"], at_once["nodes"], strict=True):
        assert {key: one[key] for key in ("name", "uuid", "nics", "bmc", "disks")} == {
            key: other[key] for key in ("name", "uuid", "nics", "bmc", "disks")
        }
    assert later["networks"] == at_once["networks"]


def test_is_left_out_of_the_installation() -> None:
    install, agent = inputs(made(HA))
    assert install["compute"][0]["replicas"] == 2
    assert [host["hostname"] for host in agent["hosts"]] == ["master-0", "master-1", "master-2", "worker-0", "worker-2"]
    plan = made(SNO)
    install, agent = inputs(plan)
    assert install["compute"][0]["replicas"] == 0
    assert [host["hostname"] for host in agent["hosts"]] == ["master-0"]
    assert plan["vips"] == made({})["vips"], "the ingress is on the node of the installation"


def test_hosts_in_install_config() -> None:
    install, __ = inputs(made({"topology": "compact", **SNO, "installer": {"hosts_in": "install-config"}}))
    assert [host["name"] for host in install["platform"]["baremetal"]["hosts"]] == ["master-0", "master-1", "master-2"]


def test_nodes_config() -> None:
    plan = made({**SNO, "addressing": "static", "worker": {"count": 1, "root_device": "/dev/sda"}})
    [host] = configs.nodes_config(plan)["hosts"]
    [node] = phases.joining_nodes(plan)
    assert host == {
        "hostname": "worker-0",
        "role": "worker",
        "interfaces": [{"name": "eth0", "macAddress": node["nics"][0]["mac"]}],
        "rootDeviceHints": {"deviceName": "/dev/sda"},
        "networkConfig": node["network_config"],
    }


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        (SNO, (2, 3072)),
        ({**SNO, "worker": {"count": 1, "memory_mib": 5000, "vcpus": 3}}, (3, 5000)),
        ({"worker": {"count": 1}, "nodes": {"worker-0": {"day2": True, "memory_mib": 2000, "vcpus": 1}}}, (1, 2000)),
        ({**SNO, "nodes": {"worker-0": {"day2": False}}, "topology": "compact"}, (1, 2048)),
    ],
)
def test_has_memory_for_a_service_of_its_own(raw: dict[str, Any], size: tuple[int, int]) -> None:
    node = next(node for node in made(raw)["nodes"] if node["name"] == "worker-0")
    assert (node["vcpus"], node["memory_mib"]) == size


def test_is_expected_only_after_it_was_added(tmp_path: Path) -> None:
    plan = made(SNO)
    assert names(phases.present(plan, None)["nodes"]) == ["master-0"]
    assert names(phases.present(plan, tmp_path)["nodes"]) == ["master-0"]
    state.begin(tmp_path, phases.ADD_NODES)
    assert names(phases.present(plan, tmp_path)["nodes"]) == ["master-0"]
    before = "\n".join(closing_lines(Access(plan, tmp_path)))
    assert "agentlab add-nodes --cluster ostest" in before
    assert "worker-0" not in before
    state.finish(tmp_path, phases.ADD_NODES, failed=False)
    assert phases.present(plan, tmp_path) is plan
    after = "\n".join(closing_lines(Access(plan, tmp_path)))
    assert "worker-0 192.168.111.21" in after
    assert "add-nodes" not in after


def test_boots_from_a_full_iso() -> None:
    assert phases.boot_mode(made({**SNO, "boot": {"mode": "minimal"}})) == "redfish"
    assert phases.boot_mode(made({**SNO, "boot": {"mode": "cdrom"}})) == "cdrom"


def test_is_shown() -> None:
    assert "worker (day 2)" in table(made(SNO), 200)


WRONG: dict[str, tuple[dict[str, Any], tuple[tuple[str | int, ...], str]]] = {
    "a master": (
        {"nodes": {"master-0": {"day2": True}}},
        (("nodes", "master-0", "day2"), "must be false: only workers join an installed cluster, not role master"),
    ),
    "no such node": ({"nodes": {"worker-0": {"day2": True}}}, (("nodes", "worker-0"), "no node has this name")),
    "a second worker of a single node": (
        {"worker": {"count": 2}, "nodes": {"worker-0": {"day2": True}}},
        (("worker", "count"), "a single node has no workers"),
    ),
    "an old release": (
        {**SNO, "release": {"profile": "4.16"}},
        (("nodes", "worker-0", "day2"), "requires a release from 4.18 on, not 4.16"),
    ),
    "from the network": ({**SNO, "boot": {"mode": "pxe"}}, (("boot", "mode"), "must be one of redfish, minimal, cdrom")),
    "a fault": (
        {**SNO, "faults": [{"kind": "power_off", "node": "worker-0", "when": "Installing"}]},
        (("faults", 0, "node"), "is not part of the installation"),
    ),
    "a peer of a fault": (
        {**SNO, "faults": [{"kind": "arp_one_way", "node": "master-0", "peer": "worker-0"}]},
        (("faults", 0, "peer"), "is not part of the installation"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    raw, (path, text) = WRONG[name]
    found = check(profile.complete(raw), "ostest")
    assert any(at == path and text in remedy for at, __, remedy in found), found
