"""What the machines pulled from the lab's registry, from its log and that of the lab's proxy: a row for each machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...cluster.pulled import CONNECT, CONTENT, Response, responses
from ...files import size_text
from ...plan.machines import interfaces
from ...plan.model import Plan
from ...redact import redact
from ...state.events import printable
from ..hypervisor_logs import service_log
from .model import Interval, Lane, Mark

LOGS = (service_log("registry"), service_log("proxy"))
MAX_READ = 32 << 20
"""What is read of the end of the log: the pulls of dozens of hosts."""
GAP = 2_000
"""Milliseconds between two responses of one pull, at most."""
_UNAUTHORIZED = 401


def lanes(report: Path, plan: Plan | None) -> Iterator[Lane]:
    """Yield a row for each machine that pulled: when, how much and how fast; what the registry refused is marked.

    report: the directory with the collected logs. Without those of registry and proxy there are no rows. Raises `OSError`.
    """
    paths = [path for name in LOGS if (path := report / name).is_file()]
    names = (
        {at["ip"]: node["name"] for node in plan["nodes"] for nic in interfaces(node) for at in nic["addresses"]}
        if plan
        else {}
    )
    hosts: dict[str, list[Response]] = {name: [] for name in names.values()}
    for one in (response for path in paths for response in responses(path, MAX_READ)):
        if one.address in names:
            hosts[names[one.address]].append(one)
    yield from (_lane(name, found) for name, found in hosts.items() if found)


def _lane(name: str, found: list[Response]) -> Lane:
    pulls: list[Interval] = []
    group: list[Response] = []
    for one in sorted(
        (
            one
            for one in found
            if one.status < 300 and (one.method == CONNECT or (one.method == "GET" and CONTENT.match(one.uri)))
        ),
        key=lambda one: one.start,
    ):
        if group and one.start > max(other.end for other in group) + GAP:
            pulls.append(_pull(group))
            group = []
        group.append(one)
    if group:
        pulls.append(_pull(group))
    marks: list[Mark] = [
        {"at": one.end, "level": "error" if one.status >= 500 else "warning", "text": printable(redact(str(one)))[:300]}
        for one in found
        if one.status >= 400 and one.status != _UNAUTHORIZED  # the challenge before each login
    ]
    return {
        "name": f"pulls of {name}",
        "group": "services",
        "states": pulls,
        "stages": [],
        "failing": [],
        "marks": marks,
    }


def _pull(group: list[Response]) -> Interval:
    start, end = group[0].start, max(one.end for one in group)
    size = sum(one.size for one in group)
    blobs = sum("/blobs/" in one.uri for one in group)
    connections = sum(one.method == CONNECT for one in group)
    counted = f"{connections} connections" if connections else f"{blobs} blobs, {len(group) - blobs} manifests"
    rate = f", {size_text(round(size * 1000 / (end - start)))}/s" if end > start else ""
    return {
        "start": start,
        "end": end,
        "state": size_text(size),
        "text": f"{counted}{rate}",
    }
