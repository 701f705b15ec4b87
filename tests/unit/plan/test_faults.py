"""The table of faults: fields in a profile, error messages, and effects on a plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import state, tables
from ansible_collections.agentlab.ocp.payload.images.components import COMPONENTS
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import (
    build,
    configs,
    created,
    faults,
    injected,
    profile,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faultd
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import STAGES, Component


def load(tmp_path: Path, text: str, topology: str = "compact") -> dict[str, Any]:
    path = tmp_path / "p.yml"
    path.write_text(f"topology: {topology}\n{text}\n")
    return profile.load(path)


def plan(tmp_path: Path, text: str) -> Any:
    return build.build(load(tmp_path, text), "ostest")


def test_defaults_are_filled_in(tmp_path: Path) -> None:
    made = plan(
        tmp_path,
        "faults: [{kind: power_off, node: master-1, when: Writing image to disk}, {kind: link_down, node: master-2}, {kind: extra_host}]",
    )
    assert made["faults"] == [
        {"when": "Writing image to disk", "seconds": None, "kind": "power_off", "node": "master-1"},
        {"when": "boot", "seconds": None, "nic": "eth0", "kind": "link_down", "node": "master-2"},
        {"kind": "extra_host"},
    ]
    assert [fault["kind"] for fault in injected.of_lab(made)] == ["power_off", "link_down"]
    assert created.items(made, "h")[-1] == {"kind": "service", "name": "faults", "host": "h"}
    assert "faults" not in configs.settings_manifest(made)["data"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{kind: power_of, node: master-1}", "faults.0.kind is 'power_of': did you mean power_off?"),
        ("{node: master-1}", "faults.0.kind: is missing: must be one of power_off"),
        ("{kind: power_off}", "faults.0.node: is missing: must be a name"),
        ("{kind: power_off, node: master-7}", "faults.0.node is 'master-7': did you mean master-"),
        ("{kind: power_off, node: master-1, wen: boot}", "faults.0.wen: unknown field; did you mean `when`?"),
        (
            "{kind: power_off, node: master-1, when: Writing image}",
            "faults.0.when is 'Writing image': did you mean Writing image to disk?",
        ),
        ("{kind: disk_lost, node: master-1, seconds: 3}", "faults.0.seconds: unknown field"),
        ("{kind: boot_order, node: master-1, when: boot}", "faults.0.when: unknown field"),
        ("{kind: service_down, service: registri}", "faults.0.service is 'registri': did you mean registry?"),
        ("{kind: mtu, node: master-1, nic: eth3, mtu: 1400}", "faults.0.nic is 'eth3': did you mean eth0?"),
        ("{kind: delay, node: master-1}", "faults.0.milliseconds: is missing: must be an integer from 1 to 60000"),
        ("{kind: loss, node: master-1, percent: 0}", "faults.0.percent is 0: must be from 1 to 100"),
        ("{kind: rate, node: master-1, kbits: 1, nic: eth0}", "faults.0.kbits is 1: must be from 8 to 10000000"),
        ("{kind: rate, node: master-1, kbits: 100, peer: master-0}", "faults.0.peer: unknown field"),
        ("{kind: arp_one_way, node: master-1, peer: master-1}", "faults.0.node is 'master-1': must differ"),
        ("{kind: wrong_token, node: master-0}", "faults.0.node is 'master-0': is the rendezvous host"),
        (
            "{kind: image_missing, component: nothing}",
            "faults.0.component is 'nothing': must be one of agent-installer-api-server, ",
        ),
        (
            "{kind: image_missing, component: agent-installer-utile}",
            "faults.0.component is 'agent-installer-utile': did you mean agent-installer-utils?",
        ),
        (
            "{kind: clock, node: master-0, offset: 10}, {kind: clock, node: master-0, offset: -10}",
            "faults.1.kind is 'clock': is a duplicate; remove one",
        ),
        ("{kind: extra_host}, {kind: extra_host}", "faults.1.kind is 'extra_host': is a duplicate"),
    ],
)
def test_what_is_wrong_is_reported(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ProfileError) as report:
        load(tmp_path, f"faults: [{text}]")
    assert told in str(report.value)
    assert len(report.value.problems) == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("addressing: static\nfaults: [{kind: extra_host}]", "requires `addressing: dhcp`"),
        ("boot: {mode: pxe}\nfaults: [{kind: wrong_token, node: master-1}]", "redfish, minimal, cdrom"),
        (
            "hypervisor: {kind: local}\nfaults: [{kind: arp_one_way, node: master-0, peer: master-1}]",
            "requires `hypervisor: {kind: sandbox}`",
        ),
        (
            "hypervisor: {kind: local}\nfaults: [{kind: loss, node: master-0, percent: 10}]",
            "requires `hypervisor: {kind: sandbox}`",
        ),
        (
            "network: {vlan: 7}\nfaults: [{kind: delay, node: master-0, milliseconds: 10}]",
            "requires NICs without VLANs",
        ),
    ],
)
def test_faults_that_the_rest_of_a_profile_forbids(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ProfileError, match=r"faults\.0\.kind") as report:
        load(tmp_path, text)
    assert told in str(report.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("snapshots: [ready, ready]", "snapshots.1 is 'ready': is a duplicate"),
        ("snapshots: [boot]", "snapshots.0 is 'boot': must be"),
        ("snapshots: [ready]\nhypervisor: {kind: local}", "requires `hypervisor: {kind: sandbox}`"),
        ("snapshots: [ready]\nfaults: [{kind: pause, node: master-0}]", "requires a profile without faults"),
    ],
)
def test_snapshots_that_the_rest_of_a_profile_forbids(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ProfileError) as report:
        load(tmp_path, text)
    assert told in str(report.value)


def test_snapshots_of_a_plan(tmp_path: Path) -> None:
    assert plan(tmp_path, "snapshots: [installed, ready]\nfaults: [{kind: dns_wildcard}]")["snapshots"] == [
        "installed",
        "ready",
    ]
    assert plan(tmp_path, "")["snapshots"] == []


def test_plan_faults(tmp_path: Path) -> None:
    made = plan(
        tmp_path,
        "faults: [{kind: dns_wildcard}, {kind: component_fails, component: agent-installer-api-server}, {kind: extra_host}]",
    )
    assert made["networks"][0]["dns"]["wildcards"][-1] == {"domain": "ostest.test.metalkube.org", "ip": "192.168.111.1"}
    assert made["release"]["payload_overrides"] == {"agent-installer-api-server": "fails"}
    extra = made["nodes"][-1]
    assert (extra["name"], extra["role"], extra["nics"][0]["addresses"][0]["ip"]) == (
        "extra-0",
        "extra",
        "192.168.111.23",
    )
    hosts = configs.agent_config(made)["hosts"]
    assert [host["hostname"] for host in hosts] == ["master-0", "master-1", "master-2"]


def test_duplicate_hostname(tmp_path: Path) -> None:
    made = plan(tmp_path, "faults: [{kind: duplicate_hostname, node: master-2, of: master-1}]")
    assert [host["hostname"] for host in configs.agent_config(made)["hosts"]] == ["master-0", "master-1", "master-1"]


def test_the_table_matches_what_others_do() -> None:
    """Stages, statuses and components are those of the service and of the release; the lab's process knows its kinds."""
    assert set(STAGES) >= {stage for of_role in tables.STAGES.values() for stage in of_role}
    known = {status for rule in state.HOST_RULES for status in (rule.dest, *rule.sources)}
    known |= {status for rule in state.CLUSTER_RULES for status in (rule.dest, *rule.sources)}
    assert set(faults.STATUSES) <= known
    # Those of a replaced service, and of hosts without a cluster, never run otherwise.
    unused = {Component.CLI, Component.INSTALLER, Component.UI}
    assert set(faults._COMPONENTS) == {name for name, component in COMPONENTS.items() if component.programs} - unused
    assert set(faultd.kinds(faultd.Lab({}))) == {kind for kind, fault in faults.KINDS.items() if not fault.in_plan}
    assert {kind for kind, what in faultd.kinds(faultd.Lab({})).items() if what.end is None} == {
        k for k, f in faults.KINDS.items() if f.lasting
    }


def test_every_kind_is_documented_with_its_fields() -> None:
    text = (Path(__file__).parents[3] / "docs/faults.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\w, ]*) ?\|", text, re.MULTILINE))
    shown = {kind: {field.strip() for field in fields.split(",") if field.strip()} for kind, fields in rows.items()}
    assert shown == {kind: set(fault.names()) for kind, fault in faults.KINDS.items()}
