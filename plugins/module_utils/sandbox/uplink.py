"""A sandbox's uplink, out (`egress`) and in from the host (`route`): a veth pair, and an nftables table of ours on each side.

Only this host can use it to get in (`guard`): packets that neighbours route through the host are dropped on both sides. Both are off
by default. IPv4 only: forwarding IPv6 would stop the host's own router discovery. Rules outside of our tables
are not changed: the host's firewall may still drop forwarded packets.
"""

from __future__ import annotations

import ipaddress
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from ..documents import load_json, read_file
from ..errors import LabError
from ..plan import names
from ..plan.hypervisor_model import Uplink
from ..plan.model import Plan
from ..state import owner, write_atomic
from . import guard, namespaces
from .host import update_shared

FILE = "uplink.json"


class _UplinkConfig(TypedDict):
    """Content of `uplink.json`. resolvers: addresses; nat, routes: IPv4 networks of the lab; closed: as of `guard`."""

    link: str
    guarded: bool
    egress: bool
    closed: bool
    resolvers: list[str]
    nat: list[str]
    routes: list[str]


def resolvers(
    files: Sequence[Path] = (Path("/run/systemd/resolve/resolv.conf"), Path("/etc/resolv.conf")),
) -> list[str]:
    """Return the host's name servers that are reachable from other namespaces.

    files: in the order of preference; the first with any usable address counts. Loopback addresses work on the host
    only.
    """
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


def ensure(running: namespaces.RunningSandbox, plan: Plan, *, check: bool = False) -> list[dict[str, str]]:
    """Create the uplink for the plan's `hypervisor.egress` and `.route`; return the changes (`name`, `before`, `after`).

    running: of the sandbox. A change replaces the veth pair. Raises `LabError` for a missing program, for networks that
    overlap with a route of this host, and for a link or a table of that name without the cluster's mark.
    """
    hypervisor, pair = plan["hypervisor"], plan["hypervisor"]["uplink"]
    if not (hypervisor["egress"] or hypervisor["route"]):
        return []
    for program, package in (("ip", "iproute2"), ("nft", "nftables")):
        if not shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
            raise LabError(f"hypervisor.egress and hypervisor.route need {program} on this host: install {package}")
    four = [
        (network, subnet["cidr"])
        for network in plan["networks"]
        for subnet in network["subnets"]
        if subnet["family"] == "ipv4"
    ]
    wanted: _UplinkConfig = {
        "link": pair["link"],
        "guarded": True,
        "egress": hypervisor["egress"],
        "closed": bool(plan["services"].get("proxy")),
        "resolvers": resolvers() if hypervisor["egress"] else [],
        "nat": [cidr for network, cidr in four if network["nat"]] if hypervisor["egress"] else [],
        "routes": [cidr for __, cidr in four] if hypervisor["route"] else [],
    }
    path = Path(hypervisor["state_dir"]) / FILE
    before = load_json(read_file(path), name=str(path)) if path.exists() else None
    mark = _mark(plan)
    _refuse_foreign(pair, mark)
    complete = _exists(wanted["link"]) and _has_table(pair["table"])
    if before == wanted and complete:
        return []
    changes = [{"name": wanted["link"], "before": _shown(before if complete else None), "after": _shown(wanted)}]
    if check:
        return changes
    if _exists(wanted["link"]):
        _run("ip", "link", "delete", wanted["link"])
    _refuse_overlap([pair["network"], *wanted["routes"]])
    path.unlink(missing_ok=True)
    _connect(running, plan, wanted, mark)
    write_atomic(path, json.dumps(wanted, indent=1) + "\n")
    return changes


def forwarders(state_dir: Path) -> list[str]:
    """Return the upstream name servers of the lab's dnsmasq: the host's with `egress`, else none.

    They are those that `ensure` recorded in `uplink.json` of the state directory.
    """
    path = state_dir / FILE
    return list(load_json(read_file(path), name=str(path))["resolvers"]) if path.exists() else []


def exists(cluster: str, mark: str) -> bool:
    """Return whether any part of the host's side exists, with the mark of the cluster's owner."""
    pair = names.uplink(cluster)
    return _is_link(pair["link"], mark) or _is_table(pair["table"], mark)


def guard_services(plan: Plan, *, check: bool = False) -> list[dict[str, str]]:
    """Close the services of a hypervisor without a sandbox to neighbours; return what was done, as `ensure`.

    An existing table is left as it is. Raises `LabError` without nft, and for a table of that name without the
    cluster's mark.
    """
    pair, mark = plan["hypervisor"]["uplink"], _mark(plan)
    if not shutil.which("nft", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"):
        raise LabError(
            "nft, which protects BMCs, registry and files of the lab from neighbours, is not installed on this hypervisor: install nftables"
        )
    _refuse_foreign(pair, mark)
    if _has_table(pair["table"]):
        return []
    text = guard.table(pair["table"], guard.marker(mark), guard.services_on_host(plan))
    if not check:
        _run("nft", "-f", "-", data=text)
    return [{"name": pair["table"], "before": "", "after": text}]


def remove(cluster: str, mark: str) -> bool:
    """Remove the host's side; return whether there was one. A link or a table without the owner's mark is not removed."""
    pair = names.uplink(cluster)
    # If killed before it had its alias, ours is removed with the sandbox that has its peer.
    link, table = _is_link(pair["link"], mark), _is_table(pair["table"], mark)
    if link:
        _run("ip", "link", "delete", pair["link"])
    if table:
        _run("nft", "delete", "table", "inet", pair["table"])
    return link or table


def _mark(plan: Plan) -> str:
    """Return the mark of the cluster's state directory; empty before it exists."""
    found = owner.read(Path(plan["hypervisor"]["state_dir"]))
    return found.mark if found else ""


def _refuse_foreign(pair: Uplink, mark: str) -> None:
    """Raise `LabError` for a link or a table of the cluster's name that another owner has made, or another program."""
    # A pair that was killed before it had its alias has no address either; its table came first.
    if _exists(pair["link"]) and not _is_link(pair["link"], mark) and not _is_table(pair["table"], mark):
        raise LabError(
            f"the link {pair['link']} of this host does not have the cluster's mark: choose another cluster name; or, if "
            f"it is unused, remove it (ip link delete {pair['link']})"
        )
    if _has_table(pair["table"]) and not _is_table(pair["table"], mark):
        raise LabError(
            f"the nftables table inet {pair['table']} of this host does not have the cluster's mark: choose another cluster "
            f"name; or, if it is unused, remove it (nft delete table inet {pair['table']})"
        )


def _is_link(name: str, mark: str) -> bool:
    alias = Path(f"/sys/class/net/{name}/ifalias")
    return bool(mark) and alias.exists() and alias.read_text().strip() == owner.label(mark)


def _has_table(name: str) -> bool:
    return bool(shutil.which("nft")) and _quiet("nft", "list", "table", "inet", name)


def _is_table(name: str, mark: str) -> bool:
    return bool(mark) and _has_table(name) and guard.has_mark(_run("nft", "list", "table", "inet", name), mark)


def _connect(running: namespaces.RunningSandbox, plan: Plan, wanted: _UplinkConfig, mark: str) -> None:
    pair, name, enter = plan["hypervisor"]["uplink"], wanted["link"], namespaces.enter(running)
    network, end = ipaddress.IPv4Network(pair["network"]), pair["inside"]
    # The rules come first, so that the pair is never open.
    own = [guard.marker(mark), guard.host_side(name)]
    if wanted["egress"]:
        own.append(guard.masquerade(f'ip saddr {network} oifname != "{name}"'))
    inner = [guard.inner_side(end, ipaddress.IPv4Address(pair["host_address"]), closed=wanted["closed"])]
    if wanted["nat"]:
        inner.append(guard.masquerade(f'ip saddr {{ {", ".join(wanted["nat"])} }} oifname "{end}"'))
    _run("nft", "-f", "-", data=guard.table(pair["table"], *own))
    _run(*enter, "nft", "-f", "-", data=guard.table("agentlab", *inner))
    _run("ip", "link", "add", name, "type", "veth", "peer", "name", end, "netns", str(running.pid))
    _run("ip", "link", "set", name, "alias", owner.label(mark), "up")
    _run("ip", "address", "add", f"{pair['host_address']}/{network.prefixlen}", "dev", name)
    _run(*enter, "ip", "address", "add", f"{pair['address']}/{network.prefixlen}", "dev", end)
    _run(*enter, "ip", "link", "set", end, "up")
    for cidr in wanted["routes"]:
        _run("ip", "route", "add", cidr, "via", pair["address"], "dev", name)
    if wanted["egress"]:
        _run(*enter, "ip", "route", "add", "default", "via", pair["host_address"])
        _forward(name, Path(running.work).parents[1])


def _forward(name: str, parent: Path) -> None:
    """Enable forwarding between the pair and the default route; `leave_host` reverts it."""
    route = load_json(_run("ip", "-json", "-4", "route", "show", "default") or "[]", name="ip route")
    for device in {name, *(entry["dev"] for entry in route if "dev" in entry)}:
        setting = Path(f"/proc/sys/net/ipv4/conf/{device}/forwarding")
        if setting.read_text().strip() == "1":
            continue
        if device != name:
            with update_shared(parent) as made:
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


def _shown(state: Mapping[str, object] | None) -> str:
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
