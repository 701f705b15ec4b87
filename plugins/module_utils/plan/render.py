"""Pictures of a plan for people: a table for the terminal, and an SVG drawing of the machine room."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from .._deps import optional
from .model import Network, Node, Plan

if TYPE_CHECKING:
    from rich import box
    from rich import console as rich_console
    from rich import table as rich_table
else:
    box = optional("rich.box", "rich")
    rich_console = optional("rich.console", "rich")
    rich_table = optional("rich.table", "rich")


def table(plan: Plan, width: int | None = None, colour: bool = False) -> str:
    """Return the plan as tables: the cluster, its networks, its nodes. `width` in columns, None for the terminal's."""
    out = io.StringIO()
    console = rich_console.Console(file=out, width=width, force_terminal=colour, highlight=False)
    cluster, hypervisor = plan["cluster"], plan["hypervisor"]
    about = _table("", "")
    about.show_header = False
    services = plan["services"]
    for name, value in (
        ("cluster", f"{cluster['domain']}  ({cluster['topology']}, {cluster['stack']}, {cluster['addressing']})"),
        ("platform", cluster["platform"]),
        ("payload", f"{plan['release']['payload']} {plan['release']['version'] or plan['release']['image']}"),
        ("hypervisor", f"{hypervisor['kind']} {hypervisor['host'] or hypervisor['netns']}"),
        ("boot", plan["boot"]["mode"]),
        ("rendezvous", plan["rendezvous_ip"]),
        ("API", ", ".join(plan["vips"]["api"])),
        ("ingress", ", ".join(plan["vips"]["ingress"])),
        (
            services["host"],
            f"registry {services['registry']['port']}, BMC {services['bmc']['port']}, "
            f"HTTP {services['http']['port']}, DNS 53, NTP {services['ntp']['port']}",
        ),
        ("settings", " ".join(f"{key}={value}" for key, value in plan["settings"].items()) or "upstream's"),
        ("faults", ", ".join(str(fault) for fault in plan["faults"])),
    ):
        if value:
            about.add_row(name, value)
    console.print(about)
    networks = _table("network", "subnet", "gateway", "DHCP", "purpose")
    for network in plan["networks"]:
        for subnet in network["subnets"]:
            dhcp = subnet["dhcp"]
            networks.add_row(
                network["name"],
                subnet["cidr"],
                subnet["gateway"],
                f"{dhcp['start']} - {dhcp['end']}" if dhcp else "-",
                network["purpose"],
            )
    console.print(networks)
    nodes = _table("node", "role", "vCPUs", "MiB", "GiB", "interface", "MAC", "address")
    for node in plan["nodes"]:
        for position, nic in enumerate(node["nics"]):
            own = (
                node["name"],
                node["role"],
                str(node["vcpus"]),
                str(node["memory_mib"]),
                "+".join(str(disk["size_gib"]) for disk in node["disks"]),
            )
            nodes.add_row(
                *(own if position == 0 else ("",) * len(own)),
                f"{nic['name']} {nic['network']}",
                nic["mac"],
                "\n".join(f"{address['ip']}/{address['prefix']}" for address in nic["addresses"]),
            )
    total = plan["nodes"]
    nodes.caption = (
        f"{len(total)} node{'s' * (len(total) > 1)}, {sum(n['vcpus'] for n in total)} vCPUs, "
        f"{sum(n['memory_mib'] for n in total)} MiB"
    )
    console.print(nodes)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(*columns: str) -> Any:
    made = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", caption_justify="left")
    for index, name in enumerate(columns):
        made.add_column(name, overflow="fold", no_wrap=name == "MAC", style="bold" if index == 0 else None)
    return made


# ------------------------------------------------------------------------------------------------------ SVG

_CARD = 232
_GAP = 24
_MARGIN = 32
_LINE = 17
_COLOURS = {"master": "#1d4e89", "arbiter": "#7b4b94", "worker": "#2e7d5b", "extra": "#9b2226"}
_STYLE = """
text { font: 12px "Red Hat Text", "DejaVu Sans", "Helvetica Neue", Arial, sans-serif; fill: #1f2933; white-space: pre; }
.title { font-size: 20px; font-weight: bold; }
.sub, .dim { fill: #616e7c; }
.head { font-size: 14px; font-weight: bold; fill: #ffffff; }
.role { font-size: 11px; fill: #ffffff; }
.mono { font-family: "Red Hat Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: 11px; }
.tiny { font-size: 9px; }
.label { font-weight: bold; }
.card { fill: #ffffff; stroke: #cbd2d9; }
"""


class _Drawing:
    """SVG elements, and how far down they reach."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def add(self, name: str, content: str = "", **attributes: Any) -> None:
        given = "".join(
            f' {key.replace("__", ":").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
        )
        self.parts.append(f"<{name}{given}>{content}</{name}>" if content else f"<{name}{given}/>")

    def text(self, x: float, y: float, content: str, kind: str = "", **attributes: Any) -> None:
        self.add(
            "text", escape(content), x=x, y=y, xml__space="preserve", **({"class": kind} if kind else {}), **attributes
        )

    def box(self, x: float, y: float, width: float, height: float, **attributes: Any) -> None:
        self.add("rect", x=x, y=y, width=width, height=height, **{"rx": 6, **attributes})

    def lines(self, x: float, y: float, lines: Sequence[tuple[str, str]]) -> None:
        for row, (content, kind) in enumerate(lines):
            self.text(x, y + row * _LINE, content, kind)


def svg(plan: Plan) -> str:
    """Return an SVG document: the gateway with its services, each network, and each node with what it is reached by."""
    nodes, networks = plan["nodes"], plan["networks"]
    columns = min(len(nodes), 5)
    width = max(2 * _MARGIN + columns * _CARD + (columns - 1) * _GAP, 2 * _MARGIN + 3 * _CARD + 2 * _GAP)
    drawing = _Drawing()
    cluster = plan["cluster"]
    drawing.text(_MARGIN, 44, cluster["domain"], "title")
    drawing.text(
        _MARGIN,
        64,
        f"{cluster['topology']} · {cluster['stack']} · {cluster['addressing']} · platform {cluster['platform']} · "
        f"payload {plan['release']['payload']} {plan['release']['version'] or ''} · boot {plan['boot']['mode']}",
        "sub",
    )
    top = 84
    boxes = (_lab_lines(plan), _cluster_lines(plan), _dns_lines(plan))
    height = max(len(lines) for lines in boxes) * _LINE + 20
    wide = (width - 2 * _MARGIN - 2 * _GAP) / 3
    for index, lines in enumerate(boxes):
        x = _MARGIN + index * (wide + _GAP)
        drawing.box(x, top, wide, height, **{"class": "card"})
        drawing.lines(x + 12, top + 22, lines)
    middle = _MARGIN + wide / 2
    bars = _bars(drawing, networks, top + height + 28, width)
    drawing.parts.insert(0, _line(middle, top + height, middle, bars[networks[0]["name"]][0], "#1d4e89"))
    bottom = max(low for _top, low in bars.values())
    y = bottom + 34
    for start in range(0, len(nodes), columns):
        y = _row(drawing, nodes[start : start + columns], plan, bars, y, width)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y}" viewBox="0 0 {width} {y}" '
        f'role="img" aria-label="{escape(cluster["domain"])}">\n<style>{_STYLE}</style>\n'
        f'<rect width="{width}" height="{y}" fill="#f5f7fa"/>\n' + "\n".join(drawing.parts) + "\n</svg>\n"
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="2"/>'


def _lab_lines(plan: Plan) -> list[tuple[str, str]]:
    services, hypervisor = plan["services"], plan["hypervisor"]
    gateways = [subnet["gateway"] for subnet in plan["networks"][0]["subnets"]]
    reach = f"{hypervisor['kind']} {hypervisor['host'] or hypervisor['netns']}"
    return [
        ("Lab gateway", "label"),
        *((gateway, "mono") for gateway in gateways),
        (reach, "dim"),
        (f"registry :{services['registry']['port']}   BMCs :{services['bmc']['port']}", "dim"),
        (f"HTTP :{services['http']['port']}   DNS :53   NTP :{services['ntp']['port']}", "dim"),
    ]


def _cluster_lines(plan: Plan) -> list[tuple[str, str]]:
    virtual = plan["cluster"]["platform"] == "baremetal"
    kind = "VIP" if virtual else "address"
    return [
        ("Cluster", "label"),
        *((f"API {kind}      {ip}", "mono") for ip in plan["vips"]["api"]),
        *((f"ingress {kind}  {ip}", "mono") for ip in plan["vips"]["ingress"]),
        (f"rendezvous   {plan['rendezvous_ip']}", "mono"),
    ]


def _dns_lines(plan: Plan) -> list[tuple[str, str]]:
    installer = plan["installer"]
    return [
        ("Inside", "label"),
        (installer["network_type"], "dim"),
        *(
            (f"pods      {network['cidr']} /{network['host_prefix']}", "mono")
            for network in installer["cluster_network"]
        ),
        *((f"services  {cidr}", "mono") for cidr in installer["service_network"]),
    ]


def _bars(drawing: _Drawing, networks: list[Network], y: float, width: float) -> dict[str, tuple[float, float]]:
    """Draw a bar for each network; return its top and bottom."""
    bars = {}
    for index, network in enumerate(networks):
        colour = "#1d4e89" if index == 0 else "#8a6d1d"
        drawing.box(_MARGIN, y, width - 2 * _MARGIN, 26, rx=13, fill=colour)
        ranges = "   ".join(
            subnet["cidr"] + (f"  DHCP {subnet['dhcp']['start']} - {subnet['dhcp']['end']}" if subnet["dhcp"] else "")
            for subnet in network["subnets"]
        )
        label = f"{network['name']}   {ranges}   MTU {network['mtu']}{'   NAT' if network['nat'] else ''}"
        drawing.text(_MARGIN + 16, y + 17, label, "role")
        bars[network["name"]] = (y, y + 26)
        y += 38
    return bars


def _row(
    drawing: _Drawing, nodes: list[Node], plan: Plan, bars: dict[str, tuple[float, float]], y: float, width: float
) -> float:
    """Draw one row of nodes; return where the next one starts."""
    cards = [_node_lines(node) for node in nodes]
    height = 48 + max(len(lines) for lines in cards) * _LINE
    left = (width - len(nodes) * _CARD - (len(nodes) - 1) * _GAP) / 2
    for index, (node, lines) in enumerate(zip(nodes, cards, strict=True)):
        x = left + index * (_CARD + _GAP)
        for position, nic in enumerate(node["nics"]):
            at = x + 24 + position * 18
            colour = "#1d4e89" if position == 0 else "#8a6d1d"
            drawing.parts.insert(0, _line(at, bars[nic["network"]][1], at, y, colour))
        drawing.box(x, y, _CARD, height, **{"class": "card"})
        drawing.add(
            "path", d=f"M{x:g} {y + 30:g} v-24 q0 -6 6 -6 h{_CARD - 12} q6 0 6 6 v24 z", fill=_COLOURS[node["role"]]
        )
        drawing.text(x + 12, y + 20, node["name"], "head")
        first = any(a["ip"] == plan["rendezvous_ip"] for nic in node["nics"] for a in nic["addresses"])
        role = f"{node['role']} · rendezvous" if first else node["role"]
        drawing.text(x + _CARD - 12, y + 20, role, "role", text_anchor="end")
        drawing.lines(x + 12, y + 50, lines)
    return y + height + _GAP + 8


def _node_lines(node: Node) -> list[tuple[str, str]]:
    disks = " + ".join(f"{disk['size_gib']}" for disk in node["disks"])
    lines = [
        (f"{node['vcpus']} vCPU{'s' * (node['vcpus'] > 1)} · {node['memory_mib'] / 1024:g} GiB · {disks} GiB disk", ""),
        (f"{node['domain']} · {node['firmware']}{' · TPM' if node['tpm'] else ''}", "dim"),
    ]
    for nic in node["nics"]:
        lines.append((f"{nic['name']}  {nic['mac']}", "mono"))
        lines += [(f"      {address['ip']}/{address['prefix']}", "mono") for address in nic["addresses"]]
    bmc = node["bmc"]["address"]
    lines.append((f"BMC {bmc.split('://', 1)[-1].split('/', 1)[0]}", "dim"))
    lines.append((bmc.rsplit("/", 1)[-1], "mono tiny"))
    return lines
