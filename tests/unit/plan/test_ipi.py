"""Profiles with `flow: ipi`: what is planned, what goes into install-config.yaml, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, inputs, profile, stored

from .refused import problem

LAB = "topology: compact\nflow: ipi\n"
REAL = (
    LAB + "release: {payload: ocp, version: 4.21.3, installer: {binary: /opt/openshift-install}}\n"
    "installer: {pull_secret_file: /etc/pull-secret.json}\n"
)


def planned(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path, None, "ostest"), "ostest")


def section(plan: Any) -> dict[str, Any]:
    made = configs.install_config(plan, pull_secret={"auths": {}}, ssh_key="KEY", trust_bundle="")
    found: dict[str, Any] = made["platform"]["baremetal"]
    return found


def test_the_bootstrap_machine_has_a_name_and_a_lease(tmp_path: Path) -> None:
    plan = planned(tmp_path, LAB)
    bootstrap, machine = plan["installer"]["bootstrap"], plan["networks"][0]
    assert bootstrap["addresses"] == ["192.168.111.9"]
    lease = {"mac": bootstrap["mac"], "duid": None, "ip": "192.168.111.9", "name": "bootstrap"}
    assert machine["reservations"][-1] == lease
    assert {"ip": "192.168.111.9", "names": ["bootstrap"]} in machine["dns"]["hosts"]
    assert bootstrap["mac"] not in [nic["mac"] for node in plan["nodes"] for nic in node["nics"]]
    assert stored.findings(plan) == []


def test_the_files_of_the_bootstrap_machine_are_removed_with_the_cluster(tmp_path: Path) -> None:
    """The installer's simulator takes them from the plan, which users may change."""
    plan = planned(tmp_path, LAB)
    bootstrap = plan["installer"]["bootstrap"]
    assert (bootstrap["domain"], bootstrap["console"]) == (
        "ostest-bootstrap",
        f"{plan['hypervisor']['console_dir']}/ostest-bootstrap.log",
    )
    bootstrap |= {"console": "/etc/passwd", "image": "/srv/bootstrap.iso"}
    remedy = "must be in hypervisor.state_dir, which is removed with the cluster"
    assert stored.findings(plan) == [
        (("installer", "bootstrap", "console"), "/etc/passwd", remedy),
        (("installer", "bootstrap", "image"), "/srv/bootstrap.iso", remedy),
    ]


def test_install_config_has_hosts_and_no_agent_config_is_written(tmp_path: Path) -> None:
    plan = planned(tmp_path, LAB)
    found = section(plan)
    assert [host["name"] for host in found["hosts"]] == ["master-0", "master-1", "master-2"]
    assert found["externalMACAddress"] == plan["installer"]["bootstrap"]["mac"]
    assert "bootstrapExternalStaticIP" not in found
    names = {change.path.name for change in inputs.prepare(plan, tmp_path / "run")}
    assert "install-config.yaml" in names and "agent-config.yaml" not in names


def test_without_dhcp_the_bootstrap_machine_has_a_static_address(tmp_path: Path) -> None:
    found = section(planned(tmp_path, REAL + "addressing: static\n"))
    assert found["bootstrapExternalStaticIP"] == "192.168.111.9"
    assert found["bootstrapExternalStaticGateway"] == found["bootstrapExternalStaticDNS"] == "192.168.111.1"
    assert found["hosts"][0]["networkConfig"]


@pytest.mark.parametrize("stack", ["ipv6", "dualstack"])
def test_ipv6_reserves_by_duid(tmp_path: Path, stack: str) -> None:
    plan = planned(tmp_path, REAL + f"stack: {stack}\n")
    mac = plan["installer"]["bootstrap"]["mac"]
    lease = plan["networks"][0]["reservations"][-1]
    assert lease["mac"] is None and lease["duid"] == f"00:03:00:01:{mac}" and lease["ip"].endswith("::9")


def test_the_agent_based_flow_plans_no_bootstrap_machine(tmp_path: Path) -> None:
    assert "bootstrap" not in planned(tmp_path, "topology: compact\n")["installer"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flow: ipi\n", "topology is 'sno': has one master: `flow: ipi` requires at least two"),
        (LAB + "platform: none\n", "platform is 'none': must be baremetal: `flow: ipi` provisions machines by their BMCs"),
        (LAB + "hypervisor: {kind: local}\n", "hypervisor.kind is 'local': must be sandbox: `flow: ipi` lets the installer create"),
        (LAB + "boot: {mode: pxe}\n", "boot.mode is 'pxe': must be redfish: with `flow: ipi` Ironic boots machines"),
        (LAB + "boot: {eject: after}\n", "boot.eject is 'after': must be never: with `flow: ipi` Ironic ejects its media"),
        (LAB + "installer: {agent_config: {a: b}}\n", "installer.agent_config: requires `flow: agent`: `flow: ipi` has no agent-config.yaml"),
        (LAB + "snapshots: [installed]\n", "snapshots is ['installed']: requires `flow: agent`"),
        (LAB + "faults: [{kind: duplicate_hostname, node: master-1, of: master-0}]\n", "faults.0.kind is 'duplicate_hostname': requires `flow: agent`"),
        (LAB + "stack: ipv6\n", "stack is 'ipv6': requires a real payload with `flow: ipi`"),
        (LAB + "addressing: static\n", "addressing is 'static': requires a real payload with `flow: ipi`"),
        (LAB + "worker: {count: 2}\n", "worker.count is 2: requires a real payload with `flow: ipi`: the lab payload has no baremetal-operator"),
        (LAB + "release: {installer: {binary: /x}}\n", "release.installer.binary is '/x': must be null: with `flow: ipi` the lab payload"),
        (LAB + "release: {installer: {git: /x}}\n", "release.installer.git is '/x': must be null with `flow: ipi`"),
        (REAL.replace(", installer: {binary: /opt/openshift-install}", ""), "release.installer.binary: is missing: with `flow: ipi` and a real"),
        (LAB + "network: {offsets: {gateway: 9}}\n", "network.offsets.gateway is 9: is one of 7, 8, 9, which `flow: ipi` needs"),
        (LAB + "network: {offsets: {static_nodes: 8}}\n", "network.offsets.static_nodes is 8: gives nodes some of the offsets 7, 8, 9"),
        (LAB + "vips: {api: [192.168.111.7], ingress: [192.168.111.6]}\n", "vips.api.0 is '192.168.111.7': is an address that `flow: ipi` needs"),
        ("topology: compact\nflow: upi\n", "flow is 'upi': did you mean ipi? must be one of agent, ipi"),
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in problem(text, tmp_path)
