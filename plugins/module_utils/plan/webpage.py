"""A plan as one HTML page: its drawing and its tables, without scripts and without other files."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from .drawing import svg
from .machines import bond_of, interfaces, vlan_of
from .model import Plan

_STYLE = """:root{color-scheme:light dark;--back:#fff;--text:#151515;--dim:#4d4d4d;--line:#c7c7c7;--wash:#f2f2f2}
@media(prefers-color-scheme:dark){:root{--back:#151515;--text:#e0e0e0;--dim:#a3a3a3;--line:#4d4d4d;--wash:#292929}}
body{background:var(--back);color:var(--text);font:14px/1.5 "Red Hat Text",system-ui,sans-serif;margin:0 auto;max-width:90rem;padding:1rem}
h1{font-size:1.5rem;margin:.5rem 0}h2{font-size:1.15rem;margin:1.5rem 0 .5rem}.wide{overflow-x:auto}
.wide svg{max-width:100%;height:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{text-align:left;padding:.3rem 1rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}
th{color:var(--dim)}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1.5rem}dt{color:var(--dim)}dd{margin:0;overflow-wrap:anywhere}"""

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
    facts = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(str(value))}</dd>" for name, value in about)
    parts = [
        _table("Networks", ("Network", "Purpose", "Subnet", "Gateway", "DHCP", "MTU"), _networks(plan)),
        _table("Machines", ("Machine", "Role", "vCPUs", "Memory, MiB", "Disks, GiB", "Domain", "BMC"), _machines(plan)),
        _table("Interfaces", ("Machine", "Interface", "Kind", "Network", "MAC", "Addresses"), _interfaces(plan)),
        _table("Faults", ("Fault", "Fields"), _faults(plan)),
    ]
    title = html.escape(f"{cluster['domain']}: plan")
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{title}</title>\n<style>{_STYLE}</style>\n'
        f'<main>\n<h1>{html.escape(cluster["domain"])}</h1>\n<dl>{facts}</dl>\n<div class="wide" tabindex="0" role="region" '
        f'aria-label="Drawing">{svg(plan)}</div>\n{"".join(parts)}</main>\n</html>\n'
    )


def _table(title: str, columns: Row, rows: Iterable[Row]) -> str:
    """Return a table with its title; nothing without rows."""
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(value)}</td>' for value in row)}</tr>" for row in rows)
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in columns)
    if not body:
        return ""
    return (
        f'<h2>{html.escape(title)}</h2>\n<div class="wide" tabindex="0" role="region" aria-label="{html.escape(title)}"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n"
    )


def _networks(plan: Plan) -> Iterable[Row]:
    for network in plan["networks"]:
        for subnet in network["subnets"]:
            leases = f"{subnet['dhcp']['start']} - {subnet['dhcp']['end']}" if subnet["dhcp"] else "none"
            yield network["name"], network["purpose"], subnet["cidr"], subnet["gateway"], leases, str(network["mtu"])


def _machines(plan: Plan) -> Iterable[Row]:
    for node in plan["nodes"]:
        disks = " + ".join(str(disk["size_gib"]) for disk in node["disks"])
        yield (node["name"], node["role"], str(node["vcpus"]), str(node["memory_mib"]), disks, node["domain"],
               node["bmc"]["address"])  # fmt: skip


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
