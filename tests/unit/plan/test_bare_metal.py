"""Existing machines: what a profile gives of them, what follows from it, and what is refused before anything is created."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.quirks import QUIRKS
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import farm
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    capacity,
    configs,
    created,
    inventory,
    profile,
    secrets,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.build import build
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.checks import check
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import check_plan

from tests.unit.plan.refused import problem

ADDRESS = "redfish-virtualmedia+https://192.0.2.7/redfish/v1/Systems/1"
BMC = f"bmc: {{address: '{ADDRESS}', username: root, password: calvin}}"
NIC = "nics: {eth0: {mac: '00:1a:2b:3c:4d:5e'}}"
ONE = f"nodes: {{master-0: {{bare_metal: true, {NIC}, {BMC}}}}}\n"


def bmc(more: str) -> str:
    return ONE.replace("password: calvin", f"password: calvin, {more}")


def node(more: str) -> str:
    return ONE.replace("bare_metal: true", f"bare_metal: true, {more}")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"nodes: {{master-0: {{bare_metal: true, {BMC}}}}}\n", "nodes.master-0.nics.eth0.mac: is missing: an existing machine has a MAC of its own"),
        (ONE + "extra_networks: [{name: a, ipv4: 10.9.0.0/24}]\n", "nodes.master-0.nics.eth1.mac: is missing: an existing machine"),
        (ONE.replace("username: root, ", ""), "nodes.master-0.bmc.username: is missing: an existing machine is booted by its BMC"),
        (ONE.replace(", password: calvin", ""), "nodes.master-0.bmc.password: is missing: an existing machine is booted by its BMC"),
        (ONE.replace(f"address: '{ADDRESS}', ", ""), "nodes.master-0.bmc.address: is missing: an existing machine is booted by its BMC, unless"),
        (ONE.replace("redfish-virtualmedia+https", "ipmi"),
         "bmc.address is 'ipmi://192.0.2.7/redfish/v1/Systems/1': must be Redfish: one of redfish, redfish-virtualmedia, idrac-virtualmedia"),
        (bmc("quirks: [slow_pots]"), "nodes.master-0.bmc.quirks.0 is 'slow_pots': did you mean slow_post? must be one of eject_refused_while_on"),
        (bmc("verify_ca: false, ca_file: /etc/bmc.pem"), "nodes.master-0.bmc.ca_file is '/etc/bmc.pem': contradicts `verify_ca: false`"),
        (bmc("verify_ca: /etc/bmc.pem"), "nodes.master-0.bmc.verify_ca is '/etc/bmc.pem': must be true or false"),
        (bmc("quirks: [eject_refused_while_on]") + "boot: {eject: after}\n",
         "boot.eject is 'after': contradicts the quirk eject_refused_while_on of master-0: must be never"),
        (ONE + "boot: {eject: on_rebooting}\n", "boot.eject is 'on_rebooting': must be never or after with existing machines (master-0)"),
        (ONE + "boot: {mode: cdrom}\n", "boot.mode is 'cdrom': must be one of redfish, minimal, manual with existing machines (master-0)"),
        (ONE + "boot: {mode: pxe}\n", "boot.mode is 'pxe': must be one of redfish, minimal, manual"),
        (ONE + "snapshots: [ready]\n", "snapshots is ['ready']: requires nodes that are VMs, not existing machines (master-0)"),
        (ONE + "network: {interface: eth0, vlan: 100}\n", "nodes.master-0.bare_metal is True: requires a profile without bonds and VLANs"),
        (ONE + "faults: [{kind: power_off, node: master-0, when: boot}]\n",
         "faults.0.node is 'master-0': is an existing machine, to which the lab cannot do power_off"),
        (ONE + "faults: [{kind: clock, node: master-0, offset: 60}]\n", "to which the lab cannot do clock"),
        (node("memory_mib: 8192"), "nodes.master-0.memory_mib: is a value of a VM, which an existing machine has already; remove it"),
        (node("screen: true"), "nodes.master-0.screen: is a value of a VM"),
        ("nodes: {master-0: {bmc: {verify_ca: false}}}\n", "nodes.master-0.bmc.verify_ca is False: requires `bare_metal: true`: BMCs of VMs are the lab's"),
        ("nodes: {master-0: {bmc: {quirks: [slow_post]}}}\n", "requires `bare_metal: true`"),
        (ONE.replace("00:1a:2b:3c:4d:5e", "01:00:5e:00:00:01"), "must be a unicast MAC"),
        ("topology: compact\n" + ONE.rstrip("}\n") + "}}, master-1: " + ONE.split("master-0: ")[1].replace(":5e", ":5f"),
         "bmc.address is 'redfish-virtualmedia+https://192.0.2.7/redfish/v1/Systems/1': is already used by nodes.master-0.bmc.address; each must be unique"),
        ("machines_from: ''\n", "machines_from is '': must be a path from the root, from home or from the folder of the profile"),
        ("machines_from: ironic_nodes.json\n", "/ironic_nodes.json': cannot be read: No such file or directory"),
        ("machines_from: /nowhere/ironic_nodes.json\n",
         "machines_from is '/nowhere/ironic_nodes.json': cannot be read: No such file or directory"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, wanted: str, tmp_path: Path) -> None:
    assert wanted in problem(text, tmp_path)


def machine(**changes: Any) -> dict[str, Any]:
    info = {"address": ADDRESS, "username": "root", "password": "calvin", "redfish_verify_ca": "False"}
    return {
        "name": "openshift-master-0", "driver": "redfish", "resource_class": "baremetal", "driver_info": info,
        "ports": [{"address": "00:1a:2b:3c:4d:5e", "pxe_enabled": True}],
        "properties": {"local_gb": "50", "cpu_arch": "x86_64", "boot_mode": "uefi"}, **changes,
    }  # fmt: skip


def given(tmp_path: Path, *machines: Any, **more: Any) -> dict[str, Any]:
    path = tmp_path / "ironic_nodes.json"
    path.write_text(json.dumps({"nodes": machines}))
    return {"machines_from": str(path), **more}


def made(raw: dict[str, Any]) -> Any:
    complete = profile.complete(raw)
    assert not check(complete, "ostest")
    return check_plan(build(complete, "ostest"))


def test_an_inventory_is_the_machines_in_their_order(tmp_path: Path) -> None:
    hints = {"serial": "S-1", "name": "/dev/sdb"}
    other = machine(ports=[{"address": "00:1A:2B:3C:4D:60"}], driver_info={**machine()["driver_info"], "address": f"{ADDRESS}2",
                    "redfish_verify_ca": "/etc/bmc.pem"}, properties={"root_device": hints}, agentlab_quirks=["slow_post"])  # fmt: skip
    third = machine(
        ports=[{"address": "00:1a:2b:3c:4d:61"}], driver_info={**machine()["driver_info"], "address": f"{ADDRESS}3"}
    )
    plan = made(given(tmp_path, machine(), other, third, topology="compact"))
    first, second, __ = plan["nodes"]
    assert first["bare_metal"] and first["nics"][0]["mac"] == "00:1a:2b:3c:4d:5e"
    assert first["bmc"] == {"address": ADDRESS, "username": "root", "password": "calvin", "verify_ca": False}
    assert second["bmc"]["ca_file"] == "/etc/bmc.pem" and second["bmc"]["quirks"] == ["slow_post"]
    [__, host, __] = configs.agent_config(plan)["hosts"]
    assert host["hostname"] == "master-1" and host["interfaces"] == [
        {"name": "eth0", "macAddress": "00:1a:2b:3c:4d:60"}
    ]
    assert host["rootDeviceHints"] == {"deviceName": "/dev/sdb", "serialNumber": "S-1"}


def test_the_profile_is_laid_over_the_inventory(tmp_path: Path) -> None:
    raw = given(
        tmp_path, machine(), nodes={"master-0": {"root_device": "/dev/nvme0n1", "bmc": {"quirks": ["http_only"]}}}
    )
    [node] = made(raw)["nodes"]
    assert (
        node["root_device"] == "/dev/nvme0n1"
        and node["bmc"]["quirks"] == ["http_only"]
        and node["bmc"]["address"] == ADDRESS
    )


def test_yaml_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "machines.yml"
    path.write_text(
        f"nodes:\n- driver_info: {{address: '{ADDRESS}', username: root, password: calvin}}\n  ports: ['00:1a:2b:3c:4d:5e']\n"
    )
    [node] = made({"machines_from": str(path)})["nodes"]
    assert node["bmc"]["verify_ca"] is True and node["nics"][0]["mac"] == "00:1a:2b:3c:4d:5e"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[", "is neither JSON nor YAML: line 2, column 1"),
        ("{}", 'has no machines, which are {"nodes": [...]}'),
        ('{"nodes": [5]}', "nodes[0]: must be a mapping"),
        (json.dumps({"nodes": [machine(driver="ipmi")]}), "nodes[0].driver is 'ipmi': BMCs are reached by Redfish: must be one of redfish, idrac"),
        (json.dumps({"nodes": [machine(ports=[{"address": "nonsense"}])]}), "nodes[0].ports.eth0.mac is 'nonsense': must be a unicast MAC"),
        (json.dumps({"nodes": [machine(ports={})]}), "nodes[0].ports: must be a list"),
        (json.dumps({"nodes": [machine(properties={"root_device": {"path": "x"}})]}),
         "nodes[0].properties.root_device.path: unknown hint; there are name, hctl"),
        (json.dumps({"nodes": [machine(driver_info={**machine()["driver_info"], "address": 5})]}),
         "nodes[0].driver_info.address is 5: must be the URL of a BMC"),
    ],
)  # fmt: skip
def test_a_wrong_inventory_is_refused(text: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "ironic_nodes.json").write_text(text)
    (tmp_path / "p.yml").write_text(f"machines_from: {tmp_path}/ironic_nodes.json\n")
    with pytest.raises(ProfileError) as caught:
        profile.load(tmp_path / "p.yml", None, "ostest")
    assert any(wanted in str(problem) for problem in caught.value.problems), caught.value.problems


def test_too_few_machines(tmp_path: Path) -> None:
    [finding, *__] = check(profile.complete(given(tmp_path, machine(), topology="compact")), "ostest")
    assert finding[2] == "has 1 machines, and 3 nodes are planned: add machines, or use fewer nodes"


def test_an_export_is_read_back(tmp_path: Path) -> None:
    """`agentlab export devscripts --files` writes what `machines_from` reads."""
    hinted = machine(
        properties={"root_device": {"wwn": "0x5000c50015ea71ac", "name": "/dev/sda"}},
        agentlab_quirks=["boot_override_lost"],
    )
    plan = made(given(tmp_path, hinted))
    farm.write(plan, tmp_path / "run", tmp_path / "ds")
    again = made({"machines_from": str(tmp_path / "ds/ostest/ironic_nodes.json")})
    assert again["nodes"] == plan["nodes"]


def test_vms_of_an_export_become_existing_machines(tmp_path: Path) -> None:
    plan = made({"topology": "compact", "extra_networks": [{"name": "storage0", "ipv4": "192.168.221.0/24"}]})
    farm.write(secrets.with_passwords(plan, secrets.passwords_of(plan, tmp_path)), tmp_path / "run", tmp_path / "ds")
    path = tmp_path / "ds/ostest/ironic_nodes.json"
    again = made(
        {
            "topology": "compact",
            "extra_networks": [{"name": "storage0", "ipv4": "192.168.221.0/24"}],
            "machines_from": str(path),
        }
    )
    for one, other in zip(plan["nodes"], again["nodes"], strict=True):
        assert other["bare_metal"] and other["nics"] == one["nics"] and other["bmc"]["address"] == one["bmc"]["address"]
        assert other["bmc"]["verify_ca"] is False, "their authority is the lab's"


def test_nothing_is_created_for_them(tmp_path: Path) -> None:
    plan = made(given(tmp_path, machine()))
    assert not [item for item in created.items(plan, "localhost") if item["kind"] == "domain"]
    complete = profile.complete(given(tmp_path, machine()))
    assert capacity.needs_of(complete).memory_mib == 0
    assert capacity.needs_of(complete, existing=True) == capacity.needs_of(profile.complete({}))
    assert "password: calvin" not in json.dumps(secrets.without_passwords(plan))


def test_hosts_in_install_config_have_the_fields_of_the_installer(tmp_path: Path) -> None:
    machines = [machine(ports=[{"address": f"00:1a:2b:3c:4d:6{n}"}], driver_info={**machine()["driver_info"], "address": f"{ADDRESS}{n}"},
                        agentlab_quirks=["slow_post"]) for n in range(3)]  # fmt: skip
    plan = made(given(tmp_path, *machines, topology="compact", installer={"hosts_in": "install-config"}))
    install = configs.install_config(plan, pull_secret={}, ssh_key="", trust_bundle="")
    assert install["platform"]["baremetal"]["hosts"][0]["bmc"] == {
        "address": f"{ADDRESS}0", "username": "root", "password": "calvin", "disableCertificateVerification": True,
    }  # fmt: skip


def test_the_table_of_quirks_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs/bare-metal.md").read_text()
    for name, quirk in QUIRKS.items():
        assert f"| `{name}` | {quirk.meaning} | {quirk.remedy} |" in text


def test_an_unreadable_inventory_adds_nothing() -> None:
    assert inventory.nodes({"machines_from": "/nowhere"}) == {}
