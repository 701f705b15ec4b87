"""Tables of a plan, for the terminal."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._deps import optional
from . import hypervisors
from .machines import Link, Nic, Node, interfaces, virtual
from .model import Plan
from .outside import Machine, machines

if TYPE_CHECKING:
    from rich import box
    from rich import console as rich_console
    from rich import table as rich_table
else:
    box = optional("rich.box", "rich")
    rich_console = optional("rich.console", "rich")
    rich_table = optional("rich.table", "rich")

WIDE = 1000
"""Columns of output that is not a terminal: nothing is wrapped."""
Row = Sequence[str]


def table(plan: Plan, width: int = WIDE, colour: bool = False) -> str:
    """Return the plan as tables: the cluster, its networks, its nodes. `width` in columns.

    Addresses, MACs and names are never folded. What does not fit side by side is stacked; what does not fit
    even so makes the line longer.
    """
    out = io.StringIO()
    # What is wider than the terminal must stay so: rich would cut it.
    # Texts are data: `:ab:` of a MAC address would be an emoji, `[/]` a mark.
    console = rich_console.Console(
        file=out, width=WIDE, force_terminal=colour, highlight=False, no_color=not colour, markup=False, emoji=False
    )
    console.print(_facts_of(plan, width))
    for choices in (_networks(plan), _nodes(plan)):
        fitting = (tables for tables in choices if all(console.measure(made).maximum <= width for made in tables))
        console.print(*next(fitting, choices[-1]))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _facts_of(plan: Plan, width: int) -> Any:
    cluster, hypervisor, services = plan["cluster"], plan["hypervisor"], plan["services"]
    settings = " ".join(f"{key}={value}" for key, value in plan["settings"].items()) or "upstream's"
    rows = (
        ("cluster", cluster["domain"]),
        ("", f"{cluster['topology']}, {cluster['stack']}, {cluster['addressing']}"),
        ("platform", cluster["platform"]),
        ("payload", f"{plan['release']['payload']} {plan['release']['version'] or plan['release']['image']}"),
        ("hypervisor", f"{hypervisor['kind']} {hypervisor['host'] or hypervisor['netns']}"),
        *(
            ("", line)
            for one in plan.get("hypervisors") or []
            for line in textwrap.wrap(
                hypervisors.hypervisor_line(plan, one), max(width - 16, 20), break_long_words=False
            )
        ),
        ("boot", plan["boot"]["mode"]),
        ("rendezvous", f"{plan['rendezvous']['node']} {plan['rendezvous']['ip']}"),
        *_labelled("API", plan["vips"]["api"]),
        *_labelled("ingress", plan["vips"]["ingress"]),
        *_labelled("machines", [_machine(plan, one) for one in machines(plan)]),
        ("services", services["host"]),
        (
            "",
            f"registry {services['registry']['port']}, BMC {services['bmc']['port']}, HTTP {services['http']['port']}, DNS 53, NTP {services['ntp']['port']}",
        ),
        *_labelled("settings", textwrap.wrap(settings, max(width - 16, 20), break_long_words=False)),
        *_labelled(
            "faults",
            [
                ", ".join(f"{key}: {value}" for key, value in fault.items() if value is not None)
                for fault in plan["faults"]
            ],
        ),
    )
    made = _table(("", ""), rows)
    made.show_header = False
    return made


def _machine(plan: Plan, one: Machine) -> str:
    """Return a machine outside of the cluster in a line."""
    balancer = plan["services"].get("balancer")
    role = "load balancer, " if balancer and balancer.get("machine") == one["name"] else ""
    addresses = ", ".join(address["ip"] for nic in one["nics"] for address in nic["addresses"])
    return f"{one['name']} {addresses} ({role}{one['vcpus']} vCPU, {one['memory_mib']} MiB, image {one['image'] or 'none'})"


def _labelled(label: str, values: Iterable[str]) -> list[Row]:
    return [(label if index == 0 else "", value) for index, value in enumerate(values)]


def _networks(plan: Plan) -> list[list[Any]]:
    """The networks, the most readable form first."""
    wide: list[Row] = []
    tall: list[Row] = []
    for network in plan["networks"]:
        for index, subnet in enumerate(network["subnets"]):
            dhcp, name = subnet["dhcp"], network["name"] if index == 0 else ""
            leases = f"{dhcp['start']} - {dhcp['end']}" if dhcp else "-"
            wide.append((network["name"], subnet["cidr"], subnet["gateway"], leases, network["purpose"]))
            tall += [(name, "subnet", subnet["cidr"]), ("", "gateway", subnet["gateway"])]
            tall += [("", "DHCP from", dhcp["start"]), ("", "DHCP to", dhcp["end"])] if dhcp else []
    return [[_table(("network", "subnet", "gateway", "DHCP", "purpose"), wide)], [_table(("network", "", ""), tall)]]


def _nodes(plan: Plan) -> list[list[Any]]:
    """The nodes, the most readable form first."""
    nodes, vms = plan["nodes"], virtual(plan["nodes"])
    sizes: list[Row] = []
    cards: list[Row] = []
    wide: list[Row] = []
    for node in nodes:
        sizes_of_vm = (
            str(node["vcpus"]),
            str(node["memory_mib"]),
            "+".join(str(disk["size_gib"]) for disk in node["disks"]),
        )
        size = (
            node["name"],
            f"{node['role']} (day 2)" if node.get("day2") else node["role"],
            *(("existing", "", "") if node.get("bare_metal") else sizes_of_vm),
        )
        own = [
            (
                nic["name"] if index == 0 else "",
                nic["network"] or "" if index == 0 else "",
                nic["mac"] if index == 0 else "",
                address,
            )
            for nic in interfaces(node)
            for index, address in enumerate(
                [f"{a['ip']}/{a['prefix']}" for a in nic["addresses"]] or _bonded(node, nic)
            )
        ]
        sizes.append(size)
        cards += [(node["name"] if index == 0 else "", *card) for index, card in enumerate(own)]
        wide += [((*size, *card) if index == 0 else ("",) * len(size) + card) for index, card in enumerate(own)]
    about, on = ("node", "role", "vCPUs", "MiB", "GiB"), ("interface", "network", "MAC", "address")
    caption = f"{len(nodes)} node{'s' * (len(nodes) > 1)}, {sum(n['vcpus'] for n in vms)} vCPUs, {sum(n['memory_mib'] for n in vms)} MiB"
    # The network is left out where there is only one.
    several = len(plan["networks"]) > 1
    narrow = (*on[: 1 + several], *on[2:])
    short = [(*card[: 2 + several], *card[3:]) for card in cards]
    choices = [
        [_table((*about, *on), wide)],
        [_table(about, sizes), _table(("node", *on), cards)],
        [_table(about, sizes), _table(("node", *narrow), short)],
        [
            _table(about, sizes),
            _table(("node", *(name for name in narrow if name != "MAC")), [(*card[:-2], card[-1]) for card in short]),
        ],
    ]
    for tables in choices:
        tables[-1].caption = caption
    return choices


def _bonded(node: Node, nic: Nic | Link) -> list[str]:
    """Return what is shown instead of addresses: the bond that a NIC is in."""
    bonds = ((link["name"], link["bond"]) for link in node.get("links") or [])
    return [f"in {name} ({bond['mode']})" for name, bond in bonds if bond and nic["name"] in bond["nics"]]


def _table(columns: Row, rows: Iterable[Row]) -> Any:
    made = rich_table.Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", caption_justify="left")
    for index, name in enumerate(columns):
        made.add_column(name, no_wrap=True, overflow="ignore", style="bold" if index == 0 else None)
    for row in rows:
        made.add_row(*row)
    return made
