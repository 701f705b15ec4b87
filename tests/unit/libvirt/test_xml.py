"""XML for libvirt, and when it counts as changed."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt import domain, network
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.xmldiff import difference, element, text
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.state.owner import Owner, identity

GOLDEN = Path(__file__).parent / "golden"
PROFILES = Path(__file__).parents[3] / "config_examples"
OWNER = Owner("ostest", "/runs/ostest", 0, "root", "lab", "", "6f0c2f5e-7d0e-4c77-9a51-0f9a3b1f0c11")


def plan(name: str, **changes: object) -> dict:
    made = build.build(profile.load(name, PROFILES), "ostest")
    made["networks"][0].update(changes)
    return made


def golden(name: str, found: str) -> None:
    path = GOLDEN / name
    if os.environ.get("AGENTLAB_UPDATE_GOLDEN"):
        path.write_text(found)
    assert found == path.read_text()


@pytest.mark.parametrize("stack", ["ipv4", "ipv6", "dualstack", "ipv4_static", "ipv6_static"])
@pytest.mark.parametrize("private", [True, False], ids=["sandbox", "host"])
def test_network(stack: str, private: bool) -> None:
    made = plan(f"compact_{stack}")
    tree = network.render(made["networks"][0], OWNER, private=private)
    golden(f"network_{stack}_{'sandbox' if private else 'host'}.xml", text(tree))


def test_nat_of_a_host_is_libvirts() -> None:
    tree = network.render(plan("compact_dualstack", nat=True)["networks"][0], OWNER, private=False)
    assert tree.find("forward").attrib == {"mode": "nat"}
    assert tree.find("forward/nat").attrib == {"ipv6": "yes"}


def test_nat_of_a_sandbox_asks_the_hosts_name_servers() -> None:
    tree = network.render(plan("compact_ipv4", nat=True)["networks"][0], OWNER, private=True, forwarders=["192.0.2.53"])
    assert tree.find("forward").attrib == {"mode": "open"}
    assert tree.find("dns/forwarder").attrib == {"addr": "192.0.2.53"}
    assert "no-resolv" not in text(tree)


@pytest.mark.parametrize(
    ("stack", "option"),
    [
        ("ipv4", "dhcp-boot=http://192.168.111.1:8089/agent.x86_64.ipxe"),
        ("ipv6", "dhcp-option=option6:bootfile-url,http://[fd2e:6f44:5dd8:c956::1]:8089/agent.x86_64.ipxe"),
        ("dualstack", "dhcp-boot=http://192.168.111.1:8089/agent.x86_64.ipxe"),
    ],
)
def test_url_of_the_script_is_an_option_of_dhcp(stack: str, option: str) -> None:
    made = plan(f"compact_{stack}")
    tree = network.render(made["networks"][0], OWNER, private=True, boot_file=made["boot"]["script_url"])
    found = [entry.get("value") for entry in tree.iter(f"{network.DNSMASQ}option")]
    assert [value for value in found if "boot" in value] == [option]


def test_extra_network_offers_neither_names_nor_a_way_out() -> None:
    entry = plan("compact_ipv4", domain=None)["networks"][0]
    entry["dns"] = {"hosts": [], "wildcards": []}
    found = text(network.render(entry, OWNER, private=True))
    for option in ("dhcp-option=3", "dhcp-option=6", "ra-param=ostestbm,0,0"):
        assert f"value='{option}'" in found
    assert "<dns>" not in found


@pytest.mark.parametrize("domain_type", ["qemu", "kvm"])
def test_domain(domain_type: str) -> None:
    node = plan("compact_ipv4")["nodes"][0]
    tree = domain.render(node, OWNER, pool="agentlab-ostest", domain_type=domain_type, console=Path("/console/log"))
    golden(f"domain_{domain_type}.xml", text(tree))


def test_domain_with_bios_and_tpm() -> None:
    node = {**plan("compact_ipv4")["nodes"][0], "firmware": "bios", "tpm": True}
    tree = domain.render(node, OWNER, pool="p", domain_type="kvm", console=Path("/console/log"))
    assert "firmware" not in tree.find("os").attrib
    assert tree.find("devices/tpm/backend").get("version") == "2.0"


def test_domain_with_another_emulator() -> None:
    node, place = plan("compact_ipv4")["nodes"][0], Path("/console/log")
    tree = domain.render(node, OWNER, pool="p", domain_type="qemu", console=place, emulator=Path("/lab/qemu"))
    assert tree.findtext("devices/emulator") == "/lab/qemu"


def test_domain_with_a_screen() -> None:
    node = plan("compact_ipv4")["nodes"][0]
    blind, seen = (
        domain.render({**node, **screen}, OWNER, pool="p", domain_type="kvm", console=Path("/console/log"))
        for screen in ({}, {"screen": True})
    )
    assert blind.find("devices/video") is None
    assert seen.find("devices/video/model").get("type") == "vga"


def orders(tree: ET.Element) -> dict[str, str]:
    """Device -> its place in the boot order."""
    return {
        (
            target.get("dev") if (target := device.find("target")) is not None else device.find("mac").get("address")
        ): order.get("order")
        for device in tree.findall("devices/*")
        if (order := device.find("boot")) is not None
    }


@pytest.mark.parametrize(
    ("medium", "first", "disks", "expected"),
    [
        ("cdrom", False, 1, {}),
        ("network", False, 1, {}),
        ("usb", False, 1, {"sda": "1"}),
        ("cdrom", False, 2, {"sda": "1", "sdb": "2"}),
        ("cdrom", True, 2, {"sda": "2", "sdb": "3"}),
        ("network", False, 2, {"sda": "1", "sdb": "2", "eth0": "3"}),
        ("network", True, 2, {"sda": "2", "sdb": "3", "eth0": "1"}),
    ],
)
def test_boot_order(medium: str, first: bool, disks: int, expected: dict[str, str]) -> None:
    """Each disk is in it: with the order in `<os>`, libvirt boots the first disk only."""
    node = plan("compact_ipv4")["nodes"][0]
    node["disks"] += [{**node["disks"][0], "name": f"d{n}", "target": f"sd{chr(97 + n)}"} for n in range(1, disks)]
    tree = domain.render(
        node, OWNER, pool="p", domain_type="kvm", console=Path("/c"), medium=medium, medium_first=first
    )
    names = {node["nics"][0]["mac"]: "eth0"}
    assert {names.get(name, name): order for name, order in orders(tree).items()} == expected
    assert bool(tree.findall("os/boot")) == (not expected)
    assert tree.find("devices/controller[@type='usb']").get("model") == ("qemu-xhci" if medium == "usb" else "none")


class Connection:
    """A libvirt with one domain."""

    def __init__(self, tree: ET.Element) -> None:
        self.xml = text(tree)

    def lookupByName(self, name: str) -> Connection:  # noqa: N802 (libvirt's names)
        return self

    def XMLDesc(self, flags: int = 0) -> str:  # noqa: N802
        return self.xml

    def defineXML(self, xml: str) -> None:  # noqa: N802
        self.xml = xml


@pytest.mark.parametrize(("medium", "bus"), [("cdrom", "scsi"), ("usb", "usb")])
@pytest.mark.parametrize(("first", "order"), [(False, "3"), (True, "1")])
def test_a_medium_gets_the_place_that_the_disks_leave(medium: str, bus: str, first: bool, order: str) -> None:
    node = plan("compact_ipv4")["nodes"][0]
    node["disks"].append({**node["disks"][0], "name": "d1", "target": "sdb"})
    wanted = domain.render(
        node, OWNER, pool="p", domain_type="kvm", console=Path("/c"), medium=medium, medium_first=first
    )
    machine = Connection(wanted)
    assert domain.set_media(machine, "m", ["/agent.iso"], medium)
    assert not domain.set_media(machine, "m", ["/agent.iso"], medium)
    tree = ET.fromstring(machine.xml)
    assert orders(tree)["sdx"] == order and tree.findall("devices/disk")[-1].find("target").get("bus") == bus
    assert difference(domain.definition_of(machine), wanted) is None
    assert domain.set_media(machine, "m", [], medium)
    assert difference(ET.fromstring(machine.xml), wanted) is None


def test_a_second_medium_is_not_booted() -> None:
    """The config image is next to the ISO that boots, in a drive and a place on the bus of its own."""
    node = plan("compact_ipv4")["nodes"][0]
    machine = Connection(domain.render(node, OWNER, pool="p", domain_type="kvm", console=Path("/c")))
    before = machine.xml
    assert domain.set_media(machine, "m", ["/agent.iso", "/config.iso"])
    assert not domain.set_media(machine, "m", ["/agent.iso", "/config.iso"])
    drives = ET.fromstring(machine.xml).findall("devices/disk[@device='cdrom']")
    assert [drive.find("source").get("file") for drive in drives] == ["/agent.iso", "/config.iso"]
    for values in (
        [drive.find("target").get("dev") for drive in drives],
        [drive.find("address").get("unit") for drive in drives],
    ):
        assert len({*values}) == 2
    assert domain.set_media(machine, "m", ["/agent.iso"]) and domain.set_media(machine, "m", [])
    assert difference(ET.fromstring(machine.xml), ET.fromstring(before)) is None


def test_what_libvirt_adds_is_not_a_difference() -> None:
    wanted = element("a", {"x": "1"}, element("b", text="t"), element("c"))
    found = ET.fromstring("<a x='1' y='2'><z/><b>t</b><c><d/></c></a>")
    assert difference(found, wanted) is None


@pytest.mark.parametrize(
    "found",
    [
        "<a x='2'><b>t</b></a>",
        "<a><b>t</b></a>",
        "<a x='1'><b>u</b></a>",
        "<a x='1'/>",
        "<a x='1'><b>t</b><b>another</b></a>",
    ],
    ids=["attribute", "no attribute", "text", "no child", "one child more"],
)
def test_what_is_otherwise_is_a_difference(found: str) -> None:
    wanted = element("a", {"x": "1"}, element("b", text="t"))
    assert difference(ET.fromstring(found), wanted)


def test_text_is_xml() -> None:
    tree = element("a", {"x": "<'&\">"}, element("b", text="<&>"))
    read = ET.fromstring(text(tree))
    assert (read.get("x"), read.findtext("b")) == ("<'&\">", "<&>")


def test_identity_is_of_mark_kind_and_name() -> None:
    assert (
        len({identity(mark, kind, name) for mark in ("a", "b") for kind in ("network", "pool") for name in ("x", "y")})
        == 8
    )
