from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, drawing, profile, render, webpage
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
NAMES = sorted(path.stem for path in PROFILES.glob("*.yml"))
SVG = "{http://www.w3.org/2000/svg}"
BIG = """
topology: ha
stack: dualstack
network: {bridge: bm, ipv6: "fd2e:6f44:5dd8:c956:1111:2222:3333:0/112"}
worker: {count: 9, extra_disks: [{size_gib: 10}, {size_gib: 20}]}
extra_networks:
  - {name: storage0, ipv4: 192.168.221.0/24, ipv6: "fd00:221::/64"}
faults:
  - {kind: power_off, node: worker-2}
  - {kind: service_down, service: registry}
"""


def plan_of(name: str, tmp_path: Path) -> Plan:
    cluster = "ostest"
    if name == "big":
        cluster, name = "a-cluster-with-quite-a-long-name-of-its-own", str(tmp_path / "big.yml")
        Path(name).write_text(BIG)
    return build.build(profile.load(name, PROFILES, cluster), cluster)


def box_of(element: Any) -> tuple[float, float, float, float]:
    x, y, width, height = (float(element.get(key, 0)) for key in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


@pytest.mark.parametrize("name", [*NAMES, "5CONTROL_IPV6", "big"])
def test_the_drawing_has_everything_inside_its_boxes(name: str, tmp_path: Path) -> None:
    """Addresses of IPv6 plans left the card "Cluster" by 18 pixels, and touched the borders of the nodes' cards."""
    plan = plan_of(name, tmp_path)
    root = ElementTree.fromstring(drawing.svg(plan))
    page, *boxes = [box_of(box) for box in root.iter(f"{SVG}rect")]
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    for node in plan["nodes"]:
        for wanted in (node["name"], node["bmc"]["address"].rpartition("/")[2], f"eth0  {node['nics'][0]['mac']}"):
            assert wanted in texts
        for address in node["nics"][0]["addresses"]:
            assert any(f"{address['ip']}/" in text for text in texts)
    for left, top, right, bottom in boxes:
        assert 0 <= left < right <= page[2]
        assert 0 <= top < bottom <= page[3]
    for element in root.iter(f"{SVG}text"):
        x, y = float(element.get("x", 0)), float(element.get("y", 0))
        width = drawing.Line(element.text or "", element.get("class", "")).width
        begin = x - width if element.get("text-anchor") == "end" else x
        around = [box for box in boxes if box[0] <= begin < box[2] and box[1] < y < box[3]] or [page]
        assert begin + width <= around[0][2] - 8, element.text


def test_the_drawing_has_a_title_and_repeats_the_networks(tmp_path: Path) -> None:
    """With more than one row the lines of the lower one looked like links from node to node."""
    plan = plan_of("big", tmp_path)
    root = ElementTree.fromstring(drawing.svg(plan))
    title = root.find(f"{SVG}title")
    assert title is not None and (title.text or "").startswith(plan["cluster"]["domain"])
    assert root.get("aria-labelledby") == "title description"
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert "Cluster network" in texts
    assert "pods      10.128.0.0/14, /23 per node" in texts
    for network in plan["networks"]:
        assert sum(text.startswith(f"{network['name']}   ") for text in texts) == 3
    cards = [box_of(box) for box in root.iter(f"{SVG}rect") if box.get("class") == "card"][3:]
    assert len(cards) == 12
    for line in root.iter(f"{SVG}line"):
        x, top, bottom = float(line.get("x1", 0)), *sorted(float(line.get(key, 0)) for key in ("y1", "y2"))
        assert not any(left < x < right and top < low and bottom > high for left, high, right, low in cards)
    assert any(text.startswith("fault: power_off") for text in texts)
    assert any(text.startswith("fault: service_down") for text in texts)


def test_widths_are_those_of_the_fonts() -> None:
    assert drawing.Line("fd2e::14/120", "mono").width == pytest.approx(12 * 11 * 0.61)
    assert drawing.Line("WWWW").width > 2 * drawing.Line("iiii").width
    assert drawing.Line("master-0", "head").width > drawing.Line("master-0", "role").width
    assert drawing.Line("\N{CJK UNIFIED IDEOGRAPH-4E2D}").width == 12


@pytest.mark.parametrize("name", [*NAMES, "big"])
@pytest.mark.parametrize("width", [render.WIDE, 120, 80, 40])
def test_no_address_is_ever_folded(name: str, width: int, tmp_path: Path) -> None:
    """At 80 columns, and in every pipe, an IPv6 address was cut into pieces of 7 characters."""
    plan = plan_of(name, tmp_path)
    lines = [line.split() for line in render.table(plan, width).splitlines()]
    words = {word.rstrip(",") for line in lines for word in line}
    for node in plan["nodes"]:
        assert node["name"] in words
        for nic in node["nics"]:
            assert {f"{address['ip']}/{address['prefix']}" for address in nic["addresses"]} <= words
            assert width < 120 or nic["mac"] in words
    for network in plan["networks"]:
        for subnet in network["subnets"]:
            dhcp = subnet["dhcp"]
            assert {subnet["cidr"], subnet["gateway"], *((dhcp["start"], dhcp["end"]) if dhcp else ())} <= words
    assert {*plan["vips"]["api"], *plan["vips"]["ingress"], plan["rendezvous"]["ip"], plan["services"]["host"]} <= words
    if name != "big" and width >= 80:
        assert max(len(line) for line in render.table(plan, width).splitlines()) <= max(width, 80)


@pytest.mark.parametrize("colour", [False, True])
def test_what_looks_like_an_emoji_or_markup_is_text(tmp_path: Path, colour: bool) -> None:
    """`:ab:` and `:bee:` are names of emoji, and parts of addresses."""
    path = tmp_path / "p.yml"
    path.write_text(
        "{topology: sno, stack: ipv6, network: {ipv6: 'fd00:bee:a:ab::/64'}, "
        "nodes: {master-0: {nics: {eth0: {mac: '52:54:00:ab:cd:01'}}}}}"
    )
    plan = build.build(profile.load(path), "ostest")
    plan["release"]["version"] = "4.22[/x]"
    table = render.table(plan, colour=colour)
    for wanted in ("fd00:bee:a:ab::/64", "fd00:bee:a:ab::14/64", "52:54:00:ab:cd:01", "lab 4.22[/x]"):
        assert wanted in table


def test_the_table_names_what_matters() -> None:
    plan = build.build(profile.load("ha_dualstack", PROFILES), "ostest")
    table = render.table(plan, 120)
    for wanted in (
        "ha, dualstack, dhcp",
        "192.168.111.5",
        "fd2e:6f44:5dd8:c956::18/120",
        "5 nodes, 8 vCPUs, 13312 MiB",
    ):
        assert wanted in table
    assert max(len(line) for line in table.splitlines()) <= 120


def _plan(raw: dict[str, Any]) -> Any:
    return build.build(profile.complete(raw), "ostest")


BONDED: dict[str, Any] = {
    "topology": "sno",
    "addressing": "static",
    "bonds": {"bond0": {"mode": "802.3ad", "nics": ["eth0", "eth1"]}},
    "network": {"interface": "bond0", "vlan": 100},
    "extra_networks": [{"name": "backup0", "ipv4": "192.168.222.0/24"}],
}


def test_the_drawing_shows_bonds_vlans_and_segments() -> None:
    root = ElementTree.fromstring(drawing.svg(_plan(BONDED)))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert {"VLAN 100", "      802.3ad: eth0, eth1", "      VLAN 100 on bond0", "      in bond0"} <= set(texts)
    assert len(list(root.iter(f"{SVG}ellipse"))) == 1  # the ring around the two cables of the bond
    assert [text.split(" ")[0] for text in texts if "MTU" in text] == ["ostestbm", "backup0"]


@pytest.mark.parametrize(
    ("faults", "titles"),
    [
        ([], []),
        ([{"kind": "link_down", "node": "master-0", "nic": "eth1"}], ["fault: link_down (when boot, nic eth1)"]),
        ([{"kind": "power_off", "node": "master-0"}, {"kind": "service_down", "service": "ntp"}], []),
        ([{"kind": "link_down", "node": "master-0", "nic": "eth2"}, {"kind": "link_down", "node": "master-0"}],
         ["fault: link_down (when boot, nic eth0)", "fault: link_down (when boot, nic eth2)"]),
    ],
)  # fmt: skip
def test_faults_of_cables_are_on_the_cables(faults: list[dict[str, Any]], titles: list[str]) -> None:
    root = ElementTree.fromstring(drawing.svg(_plan({**BONDED, "faults": faults})))
    marks = [group for group in root.iter(f"{SVG}g") if len(group.findall(f"{SVG}line[@class='cut']")) == 2]
    assert sorted(mark.findtext(f"{SVG}title") or "" for mark in marks) == titles


def test_fencing_is_drawn_at_the_bmcs() -> None:
    texts = [text for text in drawing.svg(_plan({"topology": "tnf"})).split("\n") if " · fencing<" in text]
    assert len(texts) == 2
    assert " · fencing<" not in drawing.svg(_plan({"topology": "compact"}))


def test_the_page_of_a_plan() -> None:
    plan = _plan({**BONDED, "faults": [{"kind": "link_down", "node": "master-0", "nic": "eth1"}]})
    text = webpage.page(plan)
    tree = ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])
    assert tree.tag == f"{SVG}svg"
    for wanted in ("Networks", "Machines", "Interfaces", "Faults", "bond 802.3ad of eth0, eth1", "VLAN 100 on bond0",
                   plan["nodes"][0]["bmc"]["address"], "192.168.222.0/24"):  # fmt: skip
        assert f">{wanted}</" in text, wanted
    assert "<script" not in text and "http://www.w3.org" in text
    plan["cluster"]["domain"] = "<b>x</b>"
    assert "<b>x" not in webpage.page(plan)
