"""A sandbox's way out (`egress`) and the host's way in (`route`): a veth pair, and one nftables table of our own on each side.

Nobody but this host gets in by it (`guard`): what neighbours route through the host is dropped on both sides. Both are off
unless the plan asks. IPv4 only: forwarding IPv6 would end the host's own router discovery. What cannot be had in a table
of our own stays the host's decision: if its firewall drops forwarded packets, it says so itself.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..documents import load_json, read_file
from ..errors import LabError
from ..state import write_atomic
from . import guard, namespaces
from .host import shared

FILE = "uplink.json"
INSIDE = "uplink"
# RFC 2544's block for laboratories: nobody routes it.
LINKS = ipaddress.IPv4Network("198.18.0.0/15")
MAX_LINK = 15


def table(cluster: str) -> str:
    """Return the name of the host's nftables table for a cluster."""
    return f"agentlab-{cluster}"


def link(cluster: str) -> str:
    """Return the name of the host's end of the pair."""
    name = f"al-{cluster}"
    return name if len(name) <= MAX_LINK else f"al-{hashlib.sha256(cluster.encode()).hexdigest()[:12]}"


def addresses(cluster: str) -> tuple[ipaddress.IPv4Interface, ipaddress.IPv4Interface]:
    """Return the addresses of the pair: the host's, the sandbox's."""
    number = int.from_bytes(hashlib.sha256(cluster.encode()).digest()[:4], "big") % (LINKS.num_addresses // 4)
    net = ipaddress.IPv4Network((int(LINKS.network_address) + 4 * number, 30))
    return tuple(ipaddress.IPv4Interface((host, 30)) for host in net.hosts())  # type: ignore[return-value]


def resolvers(files: Sequence[Path] = (Path("/run/systemd/resolve/resolv.conf"), Path("/etc/resolv.conf"))) -> list[str]:
    """Return the host's name servers that can be reached from elsewhere."""
    for path in files:
        try:
            words = [line.split() for line in path.read_text().splitlines()]
        except FileNotFoundError:
            continue
        found = [word[1] for word in words if len(word) > 1 and word[0] == "nameserver"]
        usable = [address for address in found if not ipaddress.ip_address(address.partition("%")[0]).is_loopback]
        if usable:
            return usable
    return []


def ensure(running: namespaces.Running, plan: Mapping[str, Any], *, check: bool = False) -> list[dict[str, str]]:
    """Make the way that the plan's `hypervisor.egress` and `.route` ask for; return what was done (`name`, `before`, `after`)."""
    hypervisor, cluster = plan["hypervisor"], plan["cluster"]["name"]
    if not (hypervisor["egress"] or hypervisor["route"]):
        return []
    for program, package in (("ip", "iproute2"), ("nft", "nftables")):
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            raise LabError(f"hypervisor.egress and hypervisor.route need {program} on this host: install {package}")
    four = [
        (network, subnet["cidr"]) for network in plan["networks"] for subnet in network["subnets"] if subnet["family"] == "ipv4"
    ]
    wanted = {
        "link": link(cluster),
        "guarded": True,
        "egress": hypervisor["egress"],
        "resolvers": resolvers() if hypervisor["egress"] else [],
        "nat": [cidr for network, cidr in four if network["nat"]] if hypervisor["egress"] else [],
        "routes": [cidr for __, cidr in four] if hypervisor["route"] else [],
    }
    path = Path(hypervisor["state_dir"]) / FILE
    before = load_json(read_file(path), name=str(path)) if path.exists() else None
    complete = _exists(wanted["link"]) and _quiet("nft", "list", "table", "inet", table(cluster))
    if before == wanted and complete:
        return []
    changes = [{"name": wanted["link"], "before": _shown(before if complete else None), "after": _shown(wanted)}]
    if check:
        return changes
    if _exists(wanted["link"]):
        _run("ip", "link", "delete", wanted["link"])
    _refuse_overlap([str(addresses(cluster)[0].network), *wanted["routes"]])
    path.unlink(missing_ok=True)
    _connect(running, cluster, wanted)
    write_atomic(path, json.dumps(wanted, indent=1) + "\n")
    return changes


def forwarders(state_dir: Path) -> list[str]:
    """Return the name servers that the lab's dnsmasq asks for the world: the host's with `egress`, else none."""
    path = state_dir / FILE
    return list(load_json(read_file(path), name=str(path))["resolvers"]) if path.exists() else []


def exists(cluster: str) -> bool:
    """Return whether there is anything of the host's side."""
    return _exists(link(cluster)) or bool(shutil.which("nft") and _quiet("nft", "list", "table", "inet", table(cluster)))


def guard_services(plan: Mapping[str, Any], *, check: bool = False) -> list[dict[str, str]]:
    """Close the services of a hypervisor without a sandbox to neighbours; return what was done, as `ensure`."""
    name = table(plan["cluster"]["name"])
    if not shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        raise LabError("BMCs, registry and files of the lab are closed to neighbours by nft, which this hypervisor lacks: install nftables")
    if _quiet("nft", "list", "table", "inet", name):
        return []
    text = guard.table(name, guard.services_on_host(plan))
    if not check:
        _run("nft", "-f", "-", data=text)
    return [{"name": name, "before": "", "after": text}]


def remove(cluster: str) -> bool:
    """Remove the host's side; return whether there was one. A link of that name without the cluster's alias is another's."""
    alias = Path(f"/sys/class/net/{link(cluster)}/ifalias")
    # Killed before it had its alias, ours ends with the sandbox that has its peer.
    there = alias.exists() and alias.read_text().strip() == f"agentlab {cluster}"
    if there:
        _run("ip", "link", "delete", link(cluster))
    if shutil.which("nft") and _quiet("nft", "list", "table", "inet", table(cluster)):
        _run("nft", "delete", "table", "inet", table(cluster))
        there = True
    return there


def _connect(running: namespaces.Running, cluster: str, wanted: Mapping[str, Any]) -> None:
    host, inside = addresses(cluster)
    name, enter = wanted["link"], namespaces.enter(running)
    # The rules come first: there is no moment at which the pair is open.
    own = [guard.host_side(name)]
    if wanted["egress"]:
        own.append(guard.masquerade(f'ip saddr {host.network} oifname != "{name}"'))
    inner = [guard.inner_side(INSIDE, host.ip)]
    if wanted["nat"]:
        inner.append(guard.masquerade(f'ip saddr {{ {", ".join(wanted["nat"])} }} oifname "{INSIDE}"'))
    _run("nft", "-f", "-", data=guard.table(table(cluster), *own))
    _run(*enter, "nft", "-f", "-", data=guard.table("agentlab", *inner))
    _run("ip", "link", "add", name, "type", "veth", "peer", "name", INSIDE, "netns", str(running.pid))
    _run("ip", "link", "set", name, "alias", f"agentlab {cluster}", "up")
    _run("ip", "address", "add", str(host), "dev", name)
    _run(*enter, "ip", "address", "add", str(inside), "dev", INSIDE)
    _run(*enter, "ip", "link", "set", INSIDE, "up")
    for cidr in wanted["routes"]:
        _run("ip", "route", "add", cidr, "via", str(inside.ip), "dev", name)
    if wanted["egress"]:
        _run(*enter, "ip", "route", "add", "default", "via", str(host.ip))
        _forward(name, Path(running.work).parents[1])


def _forward(name: str, parent: Path) -> None:
    """Let the kernel forward between the pair and the way to the world; `leave_host` sets back what was changed."""
    route = load_json(_run("ip", "-json", "-4", "route", "show", "default") or "[]", name="ip route")
    for device in {name, *(entry["dev"] for entry in route if "dev" in entry)}:
        setting = Path(f"/proc/sys/net/ipv4/conf/{device}/forwarding")
        if setting.read_text().strip() == "1":
            continue
        if device != name:
            with shared(parent) as made:
                made.add(f"sysctl:{setting}=0")
        setting.write_text("1")


def _refuse_overlap(cidrs: Sequence[str]) -> None:
    routes = load_json(_run("ip", "-json", "-4", "route") or "[]", name="ip route")
    for entry in routes:
        if entry["dst"] == "default":
            continue
        existing = ipaddress.IPv4Network(entry["dst"])
        for cidr in cidrs:
            if existing.overlaps(ipaddress.IPv4Network(cidr)):
                raise LabError(
                    f"{cidr} overlaps with this host's route to {entry['dst']} by {entry.get('dev')}: "
                    "choose other networks, or hypervisor.route: false"
                )


def _shown(state: Mapping[str, Any] | None) -> str:
    return json.dumps(state, indent=1) + "\n" if state else ""


def _exists(name: str) -> bool:
    return Path(f"/sys/class/net/{name}").exists()


def _quiet(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _run(*command: str, data: str | None = None) -> str:
    result = subprocess.run(command, input=data, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LabError(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout
