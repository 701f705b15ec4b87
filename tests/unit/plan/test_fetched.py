"""Boot modes in which machines fetch their root file system: where they get an address for that."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan

OCP = "release: {payload: ocp, version: 4.20.1}\ninstaller: {pull_secret_file: @/pull}\n"


@pytest.mark.parametrize("mode", ["pxe", "minimal"])
@pytest.mark.parametrize("firmware", ["uefi", "bios"])
def test_script_is_at_the_first_family(mode: str, firmware: str, tmp_path: Path) -> None:
    text = f"stack: ipv6\nboot: {{mode: {mode}}}\nmaster: {{firmware: {firmware}}}\n"
    made = load(text, tmp_path)
    assert made["boot"]["script_url"] == "http://[fd2e:6f44:5dd8:c956::1]:8089/agent.x86_64.ipxe"
    assert made["networks"][0]["subnets"][0]["dhcp"]


@pytest.mark.parametrize(
    "text",
    [
        "stack: v6v4\nboot: {mode: pxe}\n",
        "stack: ipv6\nplatform: external\n",
        # One node is enough for a DHCP server.
        "topology: compact\naddressing: static\nnodes: {master-2: {addressing: dhcp}}\nboot: {mode: pxe}\n",
        # The router advertises a prefix from which machines make addresses.
        "stack: ipv6\naddressing: static\nnetwork: {ipv6: 'fd00::/64'}\nboot: {mode: minimal}\n",
        # RHCOS has static addresses in its initramfs.
        OCP + "addressing: static\nboot: {mode: minimal}\n",
    ],
)
def test_accepted(text: str, tmp_path: Path) -> None:
    (tmp_path / "pull").write_text('{"auths": {}}')
    load(text.replace("@", str(tmp_path)), tmp_path)


def load(text: str, folder: Path) -> Plan:
    (folder / "p.yml").write_text(text)
    return build.build(profile.load(folder / "p.yml", None, "ostest"), "ostest")
