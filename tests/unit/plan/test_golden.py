"""Every profile has golden files: the plan and the installer's input that results from it.

`AGENTLAB_UPDATE_GOLDEN=1 pytest tests/unit/plan` writes them again; read the diff before you commit it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import domain, network
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, phases, profile, rundir, secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES
from ansible_collections.agentlab.ocp.plugins.module_utils.state.owner import Owner

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
GOLDEN = Path(__file__).parent / "golden"
ElementTree.register_namespace("dnsmasq", "http://libvirt.org/schemas/network/dnsmasq/1.0")
NAMES = sorted(path.stem for path in PROFILES.glob("*.yml"))

OWNER = Owner("ostest", "/runs/ostest", 0, "root", "lab", "", "6f0c2f5e-7d0e-4c77-9a51-0f9a3b1f0c11")


def check(name: str, file: str, data: Any) -> None:
    check_text(GOLDEN / name / f"{file}.yaml", rundir.dump(data))


def check_xml(name: str, file: str, elements: list[ElementTree.Element]) -> None:
    root = ElementTree.Element(file)
    root.extend(elements)
    ElementTree.indent(root)
    check_text(GOLDEN / name / f"{file}.xml", ElementTree.tostring(root, encoding="unicode") + "\n")


def check_text(path: Path, text: str) -> None:
    if os.environ.get("AGENTLAB_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path} differs; AGENTLAB_UPDATE_GOLDEN=1 writes it again"


@pytest.mark.parametrize("name", NAMES)
def test_profile(name: str) -> None:
    plan = build.build(profile.load(name, PROFILES), "ostest")
    check(name, "plan", plan)
    plan = secrets.with_passwords(plan, {"bmc": "password", "registry": "ocp-pass", "registry_http": "x", "nodes": {}})
    install_config = configs.install_config(plan, pull_secret={"auths": {}}, ssh_key="KEY", trust_bundle="CA\n")
    check(name, "install-config", install_config)
    if not plan["installer"].get("bootstrap"):
        check(name, "agent-config", configs.agent_config(plan))
    if phases.joining_nodes(plan):
        check(name, "nodes-config", configs.nodes_config(plan))
    check_xml(name, "networks", [network.render(entry, OWNER, private=True) for entry in plan["networks"]])
    first_of_each_role = {node["role"]: node for node in reversed(plan["nodes"])}.values()
    check_xml(name, "domains", [_domain(plan, node) for node in reversed(first_of_each_role)])


def _domain(plan: Any, node: Any) -> ElementTree.Element:
    console = Path("/var/lib/agentlab/ostest/console", f"{node['domain']}.log")
    return domain.render(node, OWNER, pool=plan["hypervisor"]["pool"], domain_type="qemu", console=console)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_sizes_of_dev_scripts(topology: str) -> None:
    raw = {
        "topology": topology,
        "release": {"payload": "ocp", "image": "quay.io/release:4"},
        "installer": {"pull_secret_file": "/secret"},
    }
    check(f"ocp_{topology}", "plan", build.build(profile.complete(raw), "ostest"))


def test_no_golden_file_is_left_over() -> None:
    wanted = {*NAMES, *(f"ocp_{topology}" for topology in TOPOLOGIES)}
    assert {path.name for path in GOLDEN.iterdir()} == wanted
