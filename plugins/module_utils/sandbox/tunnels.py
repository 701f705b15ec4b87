"""The VXLANs by which the networks of further hypervisors are joined to those of the first one, with the kernel's own devices.

Two sandboxes of one host are joined by a pair of links, whose MTU is larger by the 50 bytes that a VXLAN adds. Between hosts the VXLAN is
theirs, also where its end is at a bridge of a sandbox: a device that was moved keeps its socket in the namespace where it was made.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from ..documents import load_json
from ..errors import LabError
from ..plan import names
from ..plan.hypervisors import End, ends, is_paired
from ..plan.model import Plan
from ..state import owner
from . import host

PORT = 4789
"""UDP port of VXLAN (RFC 7348, 5)."""
HEADERS = 50
"""Bytes that a VXLAN over IPv4 adds to a frame's payload: Ethernet 14, IP 20, UDP 8, VXLAN 8."""
_LIMIT = 30


def ensure(plan: Plan, mark: str, *, check: bool = False) -> list[dict[str, str]]:
    """Make the ends of VXLANs on the hypervisor of `plan`, a plan or a view; return the changes (`name`, `before`, `after`).

    Runs on its host, outside of a sandbox, as root. mark: of the cluster, which devices of the host get. Raises `LabError` with what
    `ip` reports, and for a device of that name without the mark.
    """
    netns = plan["hypervisor"]["netns"] if plan["hypervisor"]["kind"] == "sandbox" else None
    changes = [*_pair(plan, check=check), *_leases(plan, check=check)]
    for end in ends(plan):
        before = _shown(netns, end.link)
        if before == _wanted(end):
            continue
        changes.append({"name": end.link, "before": _text(before), "after": _text(_wanted(end))})
        if check:
            continue
        if before:
            if netns is None and not exists(end.link, mark):
                raise LabError(
                    f"the link {end.link} of this host does not have the cluster's mark: choose another cluster name"
                )
            _ip(netns, "link", "delete", end.link)
        _make(netns, end, mark, moved=not is_paired(plan, end))
    return changes


def exists(link: str, mark: str) -> bool:
    """Return whether this host has a device of that name with the mark."""
    alias = Path(f"/sys/class/net/{link}/ifalias")
    return bool(mark) and alias.exists() and alias.read_text().strip() == owner.label(mark)


def remove(link: str, mark: str) -> bool:
    """Remove a device of this host with the mark; return whether it was there."""
    found = exists(link, mark)
    if found:
        _ip(None, "link", "delete", link)
    return found


def _make(netns: str | None, end: End, mark: str, *, moved: bool) -> None:
    made_in = None if moved else netns
    _ip(
        made_in, "link", "add", end.link, "mtu", str(end.mtu), "type", "vxlan", "id", str(end.number), "local", end.local,
        "remote", end.remote, "dstport", str(PORT),
    )  # fmt: skip
    _ip(made_in, "link", "set", "dev", end.link, "alias", owner.label(mark))
    if made_in != netns:
        _ip(made_in, "link", "set", "dev", end.link, "netns", str(netns))
    # The kernel must not answer on it: its frames are those of the bridge.
    _ip(netns, "link", "set", "dev", end.link, "addrgenmode", "none")
    _ip(netns, "link", "set", "dev", end.link, "master", end.bridge, "up")


def _wanted(end: End) -> dict[str, Any]:
    return {"bridge": end.bridge, "mtu": end.mtu, "id": end.number, "local": end.local, "remote": end.remote}


def _shown(netns: str | None, link: str) -> dict[str, Any]:
    """Return of a VXLAN device what `_wanted` has; empty if there is none."""
    try:
        [found] = load_json(_ip(netns, "-details", "-json", "link", "show", "dev", link), name="ip link")
    except (LabError, ValueError):
        return {}
    data = found.get("linkinfo", {}).get("info_data", {})
    return {
        "bridge": found.get("master"),
        "mtu": found.get("mtu"),
        "id": data.get("id"),
        "local": data.get("local") or data.get("local6"),
        "remote": data.get("remote") or data.get("remote6"),
    }


def _text(state: dict[str, Any]) -> str:
    return json.dumps(state) + "\n" if state else ""


def _pair(plan: Plan, *, check: bool) -> list[dict[str, str]]:
    """Join a further sandbox to the first one by a pair of links, from this host."""
    own = plan["hypervisor"].get("further")
    if own is None or not own["tunnel"]["paired"]:
        return []
    here, first = plan["hypervisor"]["netns"], names.netns(plan["cluster"]["name"])
    number = own["tunnel"]["address"].split(".")[2]
    inner, outer = "tunnel", f"tunnel{number}"
    mtu = max(network["mtu"] for network in plan["networks"]) + HEADERS
    if f"mtu {mtu} " in _quiet(here, "-oneline", "link", "show", "dev", inner):
        return []
    change = {"name": inner, "before": "", "after": f"{own['tunnel']['address']} - {own['tunnel']['peer']}\n"}
    if check:
        return [change]
    _quiet(here, "link", "delete", inner)
    _ip(
        here,
        "link",
        "add",
        inner,
        "mtu",
        str(mtu),
        "type",
        "veth",
        "peer",
        "name",
        outer,
        "mtu",
        str(mtu),
        "netns",
        first,
    )
    for netns, link, address in ((here, inner, own["tunnel"]["address"]), (first, outer, own["tunnel"]["peer"])):
        _ip(netns, "address", "add", f"{address}/24", "dev", link)
        _ip(netns, "link", "set", "dev", link, "up")
    return [change]


def _leases(plan: Plan, *, check: bool) -> list[dict[str, str]]:
    """Make the directory that libvirt needs to start a machine in a network without DHCP, on another host."""
    hypervisor = plan["hypervisor"]
    if hypervisor["kind"] == "sandbox" or not hypervisor.get("further"):
        return []
    made = host.make_leases(Path(hypervisor["state_dir"]).parent, check=check)
    return [{"name": str(host.LEASES), "before": "", "after": "directory\n"}] if made else []


def _quiet(netns: str | None, *arguments: str) -> str:
    try:
        return _ip(netns, *arguments)
    except LabError:
        return ""


def _ip(netns: str | None, *arguments: str) -> str:
    command = ["ip", *(["-netns", netns] if netns else []), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    except (FileNotFoundError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{' '.join(command)}: {error}") from None
    if done.returncode:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
