"""A plan as one HTML page: its drawing and its tables, without scripts and without other files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..webpage import document, table, wide
from .drawing import svg
from .machines import bond_of, interfaces, vlan_of
from .model import Plan

Row = Sequence[str]


def page(plan: Plan) -> str:
    """Return an HTML document of a plan: the drawing, then cluster, networks, machines, interfaces and faults as tables.

    All texts of the plan are escaped; the page has no passwords, which a plan does not have either.
    """
    cluster = plan["cluster"]
    about = (
        ("Topology", f"{cluster['topology']}, {cluster['stack']}, {cluster['addressing']}"),
        ("Platform", cluster["platform"]),
        ("Payload", f"{plan['release']['payload']} {plan['release']['version'] or plan['release']['image']}"),
        ("Boot", plan["boot"]["mode"]),
        ("Rendezvous host", f"{plan['rendezvous']['node']}, {plan['rendezvous']['ip']}"),
        ("API", ", ".join(plan["vips"]["api"])),
        ("Ingress", ", ".join(plan["vips"]["ingress"])),
        ("Settings", ", ".join(f"{key}={value}" for key, value in plan["settings"].items()) or "defaults"),
    )
    parts = [
        table("Networks", ("Network", "Purpose", "Subnet", "Gateway", "DHCP", "MTU"), _networks(plan)),
        table("Machines", ("Machine", "Role", "vCPUs", "Memory, MiB", "Disks, GiB", "Domain", "BMC"), _machines(plan)),
        table("Interfaces", ("Machine", "Interface", "Kind", "Network", "MAC", "Addresses"), _interfaces(plan)),
        table("Faults", ("Fault", "Fields"), _faults(plan)),
    ]
    body = wide("Drawing", svg(plan)) + "".join(parts)
    return document(f"{cluster['domain']}: plan", cluster["domain"], about, body)


def _networks(plan: Plan) -> Iterable[Row]:
    for network in plan["networks"]:
        for subnet in network["subnets"]:
            leases = f"{subnet['dhcp']['start']} - {subnet['dhcp']['end']}" if subnet["dhcp"] else "none"
            yield network["name"], network["purpose"], subnet["cidr"], subnet["gateway"], leases, str(network["mtu"])


def _machines(plan: Plan) -> Iterable[Row]:
    for node in plan["nodes"]:
        disks = " + ".join(str(disk["size_gib"]) for disk in node["disks"])
        vm = (str(node["vcpus"]), str(node["memory_mib"]), disks, node["domain"])
        size = ("", "", "", "existing machine") if node.get("bare_metal") else vm
        yield (node["name"], node["role"], *size, node["bmc"]["address"])


def _interfaces(plan: Plan) -> Iterable[Row]:
    for node in plan["nodes"]:
        for nic in interfaces(node):
            bond, vlan = bond_of(nic), vlan_of(nic)
            kind = f"bond {bond['mode']} of {', '.join(bond['nics'])}" if bond else "NIC"
            kind = f"VLAN {vlan['id']} on {vlan['parent']}" if vlan else kind
            addresses = ", ".join(f"{address['ip']}/{address['prefix']}" for address in nic["addresses"])
            yield node["name"], nic["name"], kind, str(nic["network"] or ""), nic["mac"], addresses


def _faults(plan: Plan) -> Iterable[Row]:
    for fault in plan["faults"]:
        yield (
            fault["kind"],
            ", ".join(f"{key}: {value}" for key, value in fault.items() if key != "kind" and value is not None),
        )
