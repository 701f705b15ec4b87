"""Hosts that boot without a cluster: what is planned, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, dialog, profile, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import steps


def planned(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "p.yml"
    path.write_text(text)
    return build.build(profile.load(path, None, "ostest"), "ostest")


def waits(node: dict[str, Any]) -> list[str]:
    return [step["wait"] for step in node["screen_steps"] if "wait" in step]


def typed(node: dict[str, Any]) -> str:
    return "".join(step.get("type", "") for step in node["screen_steps"])


def test_each_host_has_a_screen_and_its_steps(tmp_path: Path) -> None:
    plan = planned(tmp_path, "topology: compact\nboot: {mode: interactive}\n")
    first, *others = plan["nodes"]
    address = plan["rendezvous"]["ip"]
    assert all(node["screen"] for node in plan["nodes"])
    assert address in waits(first) and address not in typed(first)  # chosen from its list
    assert [typed(node) for node in others] == [f"{address}\t"] * 2
    assert first["screen_steps"][0]["timeout"] == dialog.DIALOG_SECONDS <= steps.LONGEST
    for node in plan["nodes"]:
        steps.parse(node["screen_steps"])
    assert stored.findings(plan) == []


@pytest.mark.parametrize("stack", ["ipv6", "v6v4"])
def test_an_ipv6_address_is_typed_on_every_host(tmp_path: Path, stack: str) -> None:
    plan = planned(tmp_path, f"topology: compact\nstack: {stack}\nboot: {{mode: interactive}}\n")
    assert {typed(node) for node in plan["nodes"]} == {f"{plan['rendezvous']['ip']}\t"}


def test_steps_of_the_profile_stay(tmp_path: Path) -> None:
    own = "nodes: {master-0: {screen_steps: [{press: f2}]}}"
    plan = planned(tmp_path, f"topology: sno\nboot: {{mode: interactive}}\n{own}\n")
    assert plan["nodes"][0]["screen_steps"] == [{"press": "f2"}]


def test_no_screen_in_other_modes(tmp_path: Path) -> None:
    plan = planned(tmp_path, "topology: sno\naddressing: static\nboot: {mode: config-image}\n")
    assert "screen" not in plan["nodes"][0] and "screen_steps" not in plan["nodes"][0]


@pytest.mark.parametrize("mode", ["config-image", "interactive"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topology: sno\nplatform: external", "boot.mode is '{mode}': requires another platform than external"),
        ("topology: sno\ninstaller: {{fips: true}}", "installer.fips is True: is a kernel argument"),
        ("topology: sno\nrelease: {{installer: {{git: https://x.test/i.git}}}}", "release.installer.git is 'https://x.test/i.git': makes no"),
        ("topology: compact\nworker: {{count: 1}}\nnodes: {{worker-0: {{day2: true}}}}", "boot.mode is '{mode}': must be one of redfish"),
        ("topology: compact\nfaults: [{{kind: wrong_token, node: master-1}}]", "faults.0.kind is 'wrong_token': requires"),
    ],
)  # fmt: skip
def test_refused_in_both_modes(tmp_path: Path, mode: str, text: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        planned(tmp_path, f"{text.format()}\nboot: {{mode: {mode}}}\n")
    assert message.format(mode=mode) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topology: sno\naddressing: static", "master.addressing is 'static': must be dhcp"),
        ("topology: compact\nnodes: {master-1: {addressing: static}}", "nodes.master-1.addressing is 'static': must be dhcp"),
        ("topology: compact\nnetwork: {vlan: 5}",
         "network.vlan is 5: requires an image with the cluster: without it hosts have DHCP on each NIC, and no nmstate"),
        ("topology: compact\nbonds: {bond0: {mode: 802.3ad, nics: [eth0, eth1]}}\nnetwork: {interface: bond0}", "bonds is ['bond0']: requires an image"),
        ("topology: compact\nextra_networks: [{name: a, ipv4: 10.9.0.0/24, vlan: 7}]", "extra_networks.0.vlan is 7: requires an image"),
        ("topology: compact\nnetwork: {routes: [{destination: 10.99.0.0/16}]}", "network.routes is [{'destination': '10.99.0.0/16'}]: requires an"),
        ("topology: compact\nstack: ipv6\nnetwork: {mtu: 9000}", "network.mtu is 9000: requires an image with the cluster"),
        ("topology: compact\nextra_networks: [{name: a, ipv6: 'fd09::/64', mtu: 1400}]", "extra_networks.0.mtu is 1400: requires an image"),
        ("nodes: {master-0: {network_config: {interfaces: [{name: eth0, type: ethernet, state: up, ipv4: {enabled: true, dhcp: true}}]}}}",
         "nodes.master-0.network_config: requires an image with the cluster"),
        ("topology: sno\nmaster: {firmware: bios}", "master.firmware is 'bios': must be uefi"),
        ("topology: sno\nmaster: {root_device: /dev/sda}", "master.root_device is '/dev/sda': requires an image with the"),
        ("topology: tnf", "boot.mode is 'interactive': requires a topology without fencing, not tnf"),
        ("topology: sno\nrelease: {profile: '4.20'}", "boot.mode is 'interactive': requires a release from 4.21 on, not 4.20"),
        ("topology: compact\nplatform: baremetal\ninstaller: {hosts_in: install-config}", "installer.hosts_in is 'install-config': requires"),
        ("topology: compact\nfaults: [{kind: duplicate_hostname, node: master-1, of: master-0}]", "requires an image with the cluster, not the"),
    ],
)  # fmt: skip
def test_refused_of_interactive(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ProfileError) as caught:
        planned(tmp_path, f"{text}\nboot: {{mode: interactive}}\n")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "boot: {mode: interactive}\nstack: dualstack\nnetwork: {mtu: 9000}\nextra_networks: [{name: a, ipv4: 10.9.0.0/24, mtu: 1400}]\n",
        # The config image has networks.
        "boot: {mode: config-image}\nnetwork: {vlan: 5, mtu: 9000, routes: [{destination: 10.99.0.0/16}]}\nstack: v6v4\n",
    ],
)
def test_what_a_lease_or_the_config_image_has_is_accepted(text: str, tmp_path: Path) -> None:
    assert planned(tmp_path, f"topology: compact\n{text}")["nodes"]
