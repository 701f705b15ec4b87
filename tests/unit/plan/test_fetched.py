"""Boot modes in which machines fetch their root file system: they get an address for that."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan


@pytest.mark.parametrize("mode", ["pxe", "minimal"])
@pytest.mark.parametrize("firmware", ["uefi", "bios"])
def test_script_is_at_the_first_family(mode: str, firmware: str, tmp_path: Path) -> None:
    text = f"stack: ipv6\nboot: {{mode: {mode}}}\nmaster: {{firmware: {firmware}}}\n"
    made = load(text, tmp_path)
    assert made["boot"]["script_url"] == "http://[fd2e:6f44:5dd8:c956::1]:8089/agent.x86_64.ipxe"
    assert made["networks"][0]["subnets"][0]["dhcp"]


@pytest.mark.parametrize("stack", ["ipv4", "ipv6", "dualstack", "v6v4"])
@pytest.mark.parametrize("fetched", ["boot: {mode: pxe}", "boot: {mode: minimal}", "platform: external"])
def test_static_nodes_get_an_address_until_they_have_their_own(fetched: str, stack: str, tmp_path: Path) -> None:
    made = load(f"topology: compact\naddressing: static\nstack: {stack}\n{fetched}\n", tmp_path)
    [machine] = [network for network in made["networks"] if network["purpose"] == "machine"]
    assert all(subnet["dhcp"] for subnet in machine["subnets"]) and not machine["reservations"]
    fixed = {address["ip"] for node in made["nodes"] for nic in node["nics"] for address in nic["addresses"]}
    for subnet in machine["subnets"]:
        first, last = (ip_address(subnet["dhcp"][end]) for end in ("start", "end"))
        assert not [one for one in map(ip_address, fixed) if one.version == first.version and first <= one <= last]


def test_other_static_labs_have_no_dhcp(tmp_path: Path) -> None:
    assert not load("addressing: static\n", tmp_path)["networks"][0]["subnets"][0]["dhcp"]


def load(text: str, folder: Path) -> Plan:
    (folder / "p.yml").write_text(text)
    return build.build(profile.load(folder / "p.yml", None, "ostest"), "ostest")
