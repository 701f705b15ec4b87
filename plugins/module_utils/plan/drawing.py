"""An SVG drawing of a plan: the gateway with its services, each network, and each node with its addresses and BMC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

from ..vocabulary import WITH_VIPS
from .faults import KINDS, Fault
from .machines import Link, Network, Nic, Node, bond_of, interfaces, vlan_of
from .model import Plan
from .topologies import TOPOLOGIES

_CARD = 232.0
_GAP = 24.0
_MARGIN = 40.0
_PAD = 12.0
_LINE = 17
_BAR, _BAR_STEP = 26, 38
_PER_ROW = 5
_COLOURS = {"master": "#1d4e89", "arbiter": "#7b4b94", "worker": "#2e7d5b", "extra": "#9b2226"}
_NETWORKS = ("#1d4e89", "#8a6d1d", "#7b4b94", "#2e7d5b", "#9b2226")
_STYLE = """
text { font: 12px "Red Hat Text", "DejaVu Sans", "Helvetica Neue", Arial, sans-serif; fill: #1f2933; white-space: pre; }
.title { font-size: 20px; font-weight: bold; }
.sub, .dim { fill: #52606d; }
.head { font-size: 14px; font-weight: bold; fill: #ffffff; }
.role { font-size: 11px; fill: #ffffff; }
.mono { font-family: "Red Hat Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 11px; }
.tiny { font-size: 9px; }
.label { font-weight: bold; }
.fault { fill: #9b2226; font-weight: bold; }
.page { fill: #f5f7fa; }
.card { fill: #ffffff; stroke: #cbd2d9; }
.tag { font-size: 10px; font-weight: bold; } .cut { stroke: #9b2226; stroke-width: 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7eb; } .sub, .dim { fill: #9aa5b1; } .head, .role { fill: #ffffff; } .fault { fill: #ff9b9b; } .cut { stroke: #ff9b9b; }
  .page { fill: #12181f; } .card { fill: #1f2933; stroke: #52606d; }
}
"""
# Advance widths of DejaVu Sans from the space to the tilde, in hundredths of the font size; it is the widest of the fonts above.
_REGULAR = (
    "32 41 46 84 64 96 78 28 40 40 50 84 32 37 32 34 64 64 64 64 64 64 64 64 64 64 34 34 84 84 84 54 100 69 69 70 78 64 58 78 76 30 30 66 56 "
    "87 75 79 61 79 70 64 62 74 69 99 69 62 69 40 34 40 84 50 50 62 64 55 64 62 36 64 64 28 28 58 28 98 64 62 64 64 42 53 40 64 60 82 60 60 "
    "53 64 34 64 84"
)
_BOLD = (
    "35 46 53 84 70 101 88 31 46 46 53 84 38 42 38 37 70 70 70 70 70 70 70 70 70 70 40 40 84 84 84 59 100 78 77 74 84 69 69 83 84 38 38 78 64 "
    "100 84 86 74 86 78 73 69 82 78 111 78 73 73 46 37 46 84 50 50 68 72 60 72 68 44 72 72 35 35 67 35 105 72 69 72 72 50 60 48 72 66 93 65 66 "
    "59 72 37 72 84"
)
_MONO = 0.61
_WIDTHS = {
    name: [int(value) / 100 for value in text.split()] for name, text in (("regular", _REGULAR), ("bold", _BOLD))
}
_SIZES = {"title": 20.0, "head": 14.0, "role": 11.0, "mono": 11.0, "tag": 10.0, "tiny": 9.0}
_HEAVY = {"title", "head", "label", "fault", "tag"}


class Line(NamedTuple):
    """A line of text and its CSS classes.

    Classes are those of `_STYLE`, separated by blanks; without one the text is 12 px high.
    """

    text: str
    kind: str = ""

    @property
    def width(self) -> float:
        """Return its width in pixels in the widest of its fonts.

        An estimate from a table of advance widths, because there is no font where a plan is drawn. Characters outside
        of ASCII count as one em.
        """
        kinds = self.kind.split()
        size = min((_SIZES[kind] for kind in kinds if kind in _SIZES), default=12.0)
        if "mono" in kinds:
            return len(self.text) * _MONO * size
        table = _WIDTHS["bold" if _HEAVY & {*kinds} else "regular"]
        return size * sum(table[ord(char) - 32] if " " <= char <= "~" else 1.0 for char in self.text)


class End(NamedTuple):
    """The state in which a run has left a node, and its colour.

    `state` is the text that is shown; `colour` is any colour of SVG.
    """

    state: str
    colour: str


class _Drawing:
    """SVG elements, from back to front."""

    def __init__(self) -> None:
        self.behind: list[str] = []
        self.parts: list[str] = []

    def add(self, name: str, content: str = "", **attributes: Any) -> None:
        given = "".join(
            f' {key.replace("__", ":").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
        )
        self.parts.append(f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>")

    def text(self, x: float, y: float, line: Line, **attributes: Any) -> None:
        kind = {"class": line.kind} if line.kind else {}
        self.add("text", escape(line.text), x=f"{x:g}", y=f"{y:g}", xml__space="preserve", **kind, **attributes)

    def box(self, x: float, y: float, width: float, height: float, **attributes: Any) -> None:
        self.add("rect", x=f"{x:g}", y=f"{y:g}", width=f"{width:g}", height=f"{height:g}", **{"rx": 6, **attributes})

    def lines(self, x: float, y: float, lines: Sequence[Line]) -> None:
        for row, line in enumerate(lines):
            self.text(x, y + row * _LINE, line)

    def link(self, x1: float, y1: float, x2: float, y2: float, colour: str) -> None:
        self.behind.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="2"/>'
        )


def svg(plan: Plan, ends: Mapping[str, End] = MappingProxyType({})) -> str:
    """Return an SVG document. Every box is as wide as the text in it needs; each row of nodes has the networks above it.

    ends: shown on the nodes that they name.
    """
    nodes, networks, cluster = plan["nodes"], plan["networks"], plan["cluster"]
    title = Line(cluster["domain"], "title")
    about = Line(
        f"{cluster['topology']} · {cluster['stack']} · {cluster['addressing']} · platform {cluster['platform']} · "
        f"payload {plan['release']['payload']} {plan['release']['version'] or ''} · boot {plan['boot']['mode']}",
        "sub",
    )
    boxes = (_lab_lines(plan), _cluster_lines(plan), _network_lines(plan))
    bars = [_bar_line(network) for network in networks]
    cards = [(_node_head(node, plan), [*_end_line(ends, node), *_node_lines(node, plan)]) for node in nodes]
    card = max(
        _CARD,
        *(max(head[0].width + 24 + head[1].width, *(line.width for line in lines)) + 2 * _PAD for head, lines in cards),
    )
    columns = min(len(nodes), _PER_ROW)
    wants = [max(_CARD, max(line.width for line in lines) + 2 * _PAD) for lines in boxes]
    inner = max(
        columns * card + (columns - 1) * _GAP,
        sum(wants) + 2 * _GAP,
        max(line.width for line in bars) + 32,
        title.width,
        about.width,
    )
    width = round(inner + 2 * _MARGIN)
    drawing = _Drawing()
    drawing.text(_MARGIN, 44, title)
    drawing.text(_MARGIN, 64, about)
    top, x = 84.0, _MARGIN
    height = max(len(lines) for lines in boxes) * _LINE + 20
    spare = (inner - 2 * _GAP - sum(wants)) / len(wants)
    middle = _MARGIN + (wants[0] + spare) / 2
    for wide, lines in zip(wants, boxes, strict=True):
        drawing.box(x, top, wide + spare, height, **{"class": "card"})
        drawing.lines(x + _PAD, top + 22, lines)
        x += wide + spare + _GAP
    y = top + height + 28
    drawing.link(middle, top + height, middle, y, _NETWORKS[0])
    below = 0.0
    for start in range(0, len(nodes), columns):
        if start:
            # The same networks again: each bar is attached to the one above it, next to the cards.
            for index in range(len(networks)):
                side = _MARGIN - 8 - 6 * (index % 4)
                at = y + index * _BAR_STEP + _BAR / 2
                for height_of in (at - below, at):
                    drawing.link(side, height_of, _MARGIN + 13, height_of, _colour(index))
                drawing.link(side, at - below, side, at, _colour(index))
        row_top = y
        y = _bars(drawing, bars, y, inner)
        y = _row(
            drawing, plan, range(start, min(start + columns, len(nodes))), cards, card, row_top, y + 34, width, ends
        )
        below = y - row_top
    total = sum(node["memory_mib"] for node in nodes) / 1024
    summary = f"{len(nodes)} nodes, {sum(node['vcpus'] for node in nodes)} vCPUs, {total:g} GiB of memory, {len(networks)} networks"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y:g}" viewBox="0 0 {width} {y:g}" role="img" '
        f'aria-labelledby="title description">\n<title id="title">{escape(cluster["domain"])}: {escape(about.text)}</title>\n'
        f'<desc id="description">{escape(summary)}</desc>\n<style>{_STYLE}</style>\n'
        f'<rect class="page" width="{width}" height="{y:g}"/>\n'
        + "\n".join([*drawing.behind, *drawing.parts])
        + "\n</svg>\n"
    )


def _colour(network: int) -> str:
    return _NETWORKS[network % len(_NETWORKS)]


def _lab_lines(plan: Plan) -> list[Line]:
    services, hypervisor = plan["services"], plan["hypervisor"]
    gateways = [subnet["gateway"] for subnet in plan["networks"][0]["subnets"]]
    return [
        Line("Lab gateway", "label"),
        *(Line(gateway, "mono") for gateway in gateways),
        Line(f"{hypervisor['kind']} {hypervisor['host'] or hypervisor['netns']}", "dim"),
        Line(f"registry :{services['registry']['port']}   BMCs :{services['bmc']['port']}", "dim"),
        Line(f"HTTP :{services['http']['port']}   DNS :53   NTP :{services['ntp']['port']}", "dim"),
        *(Line(_fault(fault), "fault") for fault in plan["faults"] if not fault.get("node")),
    ]


def _cluster_lines(plan: Plan) -> list[Line]:
    kind = "VIP" if plan["cluster"]["platform"] in WITH_VIPS else "address"
    fencing = [Line("fencing through the BMCs", "dim")] if TOPOLOGIES[plan["cluster"]["topology"]].fencing else []
    return [
        Line("Cluster", "label"),
        *(Line(f"API {kind}      {ip}", "mono") for ip in plan["vips"]["api"]),
        *(Line(f"ingress {kind}  {ip}", "mono") for ip in plan["vips"]["ingress"]),
        Line(f"rendezvous   {plan['rendezvous']['ip']}", "mono"),
        *fencing,
    ]


def _network_lines(plan: Plan) -> list[Line]:
    installer = plan["installer"]
    return [
        Line("Cluster network", "label"),
        Line(installer["network_type"], "dim"),
        *(
            Line(f"pods      {network['cidr']}, /{network['host_prefix']} per node", "mono")
            for network in installer["cluster_network"]
        ),
        *(Line(f"services  {cidr}", "mono") for cidr in installer["service_network"]),
    ]


def _bar_line(network: Network) -> Line:
    ranges = "   ".join(
        subnet["cidr"] + (f"  DHCP {subnet['dhcp']['start']} - {subnet['dhcp']['end']}" if subnet["dhcp"] else "")
        for subnet in network["subnets"]
    )
    return Line(f"{network['name']}   {ranges}   MTU {network['mtu']}{'   NAT' if network['nat'] else ''}", "role")


def _bars(drawing: _Drawing, bars: Sequence[Line], y: float, inner: float) -> float:
    """Draw a bar for each network; return the bottom of the last."""
    for index, line in enumerate(bars):
        drawing.box(_MARGIN, y + index * _BAR_STEP, inner, _BAR, rx=_BAR / 2, fill=_colour(index))
        drawing.text(_MARGIN + 16, y + index * _BAR_STEP + 17, line)
    return y + (len(bars) - 1) * _BAR_STEP + _BAR


def _row(
    drawing: _Drawing,
    plan: Plan,
    which: range,
    cards: Sequence[tuple[tuple[Line, Line], list[Line]]],
    card: float,
    bars: float,
    y: float,
    width: float,
    ends: Mapping[str, End],
) -> float:
    """Draw the cards of some nodes, each hanging on the bars that begin at `bars`; return where the next row starts."""
    names = [network["name"] for network in plan["networks"]]
    height = 48 + max(len(cards[number][1]) for number in which) * _LINE
    left = (width - len(which) * card - (len(which) - 1) * _GAP) / 2
    for column, number in enumerate(which):
        node, ((name, role), lines) = plan["nodes"][number], cards[number]
        x = left + column * (card + _GAP)
        at = x + 24
        for nic in (one for one in interfaces(node) if one["addresses"]):
            network = names.index(str(nic["network"]))
            at = _cable(drawing, plan, node, nic, at, bars + network * _BAR_STEP + _BAR, y, _colour(network))
        end = ends.get(node["name"])
        drawing.box(x, y, card, height, **{"class": "card"})
        if end:
            drawing.box(x, y, card, height, fill="none", stroke=end.colour, stroke_width=3)
        drawing.add(
            "path",
            d=f"M{x:g} {y + 30:g} v-24 q0 -6 6 -6 h{card - 12:g} q6 0 6 6 v24 z",
            fill=end.colour if end else _COLOURS[node["role"]],
        )
        drawing.text(x + _PAD, y + 20, name)
        drawing.text(x + card - _PAD, y + 20, role, text_anchor="end")
        drawing.lines(x + _PAD, y + 50, lines)
    return y + height + _GAP + 8


def _cable(
    drawing: _Drawing, plan: Plan, node: Node, nic: Nic | Link, x: float, top: float, bottom: float, colour: str
) -> float:
    """Draw how an interface is attached to its network, and what is wrong with its cables; return where the next one begins.

    A bond has two lines with a ring around them, a VLAN has its id next to the line. A cross is a cable with a fault.
    """
    bond, vlan = _bond(node, nic), vlan_of(nic)
    for side in (-3, 3) if bond else (0,):
        drawing.link(x + side, top, x + side, bottom, colour)
    if bond:
        drawing.add(
            "ellipse", cx=f"{x:g}", cy=f"{bottom - 7:g}", rx="8", ry="3", fill="none", stroke=colour, stroke_width=2
        )
    label = Line(f"VLAN {vlan['id']}" if vlan else "", "tag")
    if vlan:
        drawing.text(x + 10, bottom - 16, label)
    found = [
        _fault(fault) for fault in plan["faults"] if fault.get("node") == node["name"] and _on_cable(fault, node, nic)
    ]
    if found:
        arms = "".join(
            f'<line class="cut" x1="{x - 5:g}" y1="{bottom - 20 + 5 * sign:g}" x2="{x + 5:g}" y2="{bottom - 20 - 5 * sign:g}"/>'
            for sign in (-1, 1)
        )
        drawing.add("g", f"<title>{escape('; '.join(found))}</title>{arms}")
    return x + 26 + (label.width if vlan else 0)


def _bond(node: Node, nic: Nic | Link) -> Link | None:
    """Return the bond that an interface is, or that its VLAN is on."""
    vlan = vlan_of(nic)
    name = vlan["parent"] if vlan else nic["name"]
    return next((link for link in node.get("links") or [] if link["name"] == name and link["bond"]), None)


def _on_cable(fault: Fault, node: Node, nic: Nic | Link) -> bool:
    """Return whether a fault of the node is one of the cables of an interface: of its NIC, or of one in its bond."""
    if "nic" not in KINDS[fault["kind"]].fields and "peer" not in KINDS[fault["kind"]].fields:
        return False
    bond, vlan = _bond(node, nic), vlan_of(nic)
    cables = bond["bond"]["nics"] if bond and bond["bond"] else [vlan["parent"] if vlan else nic["name"]]
    return (fault.get("nic") or node["nics"][0]["name"]) in cables


def _kind(node: Node, nic: Nic | Link) -> str:
    """Return what an interface is besides a NIC by itself: a bond with its mode, a VLAN, or a NIC in a bond."""
    bond, vlan = bond_of(nic), vlan_of(nic)
    if bond:
        return f"  {bond['mode']}: {', '.join(bond['nics'])}"
    if vlan:
        return f"  VLAN {vlan['id']} on {vlan['parent']}"
    inside = (link["name"] for link in node.get("links") or [] if link["bond"] and nic["name"] in link["bond"]["nics"])
    return "".join(f"  in {name}" for name in inside)


def _end_line(ends: Mapping[str, End], node: Node) -> list[Line]:
    return [Line(ends[node["name"]].state, "label")] if node["name"] in ends else []


def _node_head(node: Node, plan: Plan) -> tuple[Line, Line]:
    first = node["name"] == plan["rendezvous"]["node"]
    return Line(node["name"], "head"), Line(f"{node['role']} · rendezvous" if first else node["role"], "role")


def _node_lines(node: Node, plan: Plan) -> list[Line]:
    disks = " + ".join(f"{disk['size_gib']}" for disk in node["disks"])
    many = len(node["disks"]) > 1
    lines = (
        [Line("existing machine")]
        if node.get("bare_metal")
        else [
            Line(
                f"{node['vcpus']} vCPU{'s' * (node['vcpus'] > 1)} · {node['memory_mib'] / 1024:g} GiB · {disks} GiB disk{'s' * many}"
            ),
            Line(f"{node['domain']} · {node['firmware']}{' · TPM' if node['tpm'] else ''}", "dim"),
        ]
    )
    for nic in interfaces(node):
        lines.append(Line(f"{nic['name']}  {nic['mac']}", "mono"))
        lines += [Line(f"    {kind}", "mono") for kind in [_kind(node, nic)] if kind]
        lines += [Line(f"      {address['ip']}/{address['prefix']}", "mono") for address in nic["addresses"]]
    bmc = node["bmc"]["address"]
    fences = node["role"] == "master" and TOPOLOGIES[plan["cluster"]["topology"]].fencing
    lines.append(Line(f"BMC {bmc.split('://', 1)[-1].split('/', 1)[0]}{' · fencing' * fences}", "dim"))
    lines.append(Line(bmc.rsplit("/", 1)[-1], "mono tiny"))
    return [*lines, *(Line(_fault(fault), "fault") for fault in plan["faults"] if fault.get("node") == node["name"])]


def _fault(fault: Fault) -> str:
    more = ", ".join(
        f"{key} {value}" for key, value in fault.items() if key not in ("kind", "node") and value is not None
    )
    return f"fault: {fault['kind']}{f' ({more})' if more else ''}"
