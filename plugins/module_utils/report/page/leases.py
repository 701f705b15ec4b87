"""What the machines got from the lab's DHCP, from the log of libvirt's dnsmasq: a row with a mark for each lease.

A line is `Mon day time program[pid]: event(bridge) address client [name]`, in local time and without a year (dnsmasq(8)).
"""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...plan.machines import interfaces
from ...plan.model import Plan
from ...redact import redact
from ...state.events import Level, printable
from ..hypervisor_logs import service_log
from .model import Lane, Mark

NAME = "dhcp"
"""The log's directory below the services' one."""
LOG = service_log(NAME)
MAX_READ = 4 << 20
_LINE = re.compile(r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) (dnsmasq(?:-[a-z]{1,16})?)\[\d{1,9}\]: (.*)")
_LEASE = re.compile(
    r"DHCP(?P<kind>ACK|REPLY)\((?P<bridge>[^)]{1,15})\) (?P<address>[0-9a-fA-F.:]{2,45}) (?P<client>[0-9a-fA-F:]{2,200})"
)
_REFUSED = re.compile(r"DHCPNAK\(|no address (?:range )?available|not using configured address")
_DAY = datetime.timedelta(days=1)


class Line(NamedTuple):
    """A line of dnsmasq's log. at: milliseconds since the epoch; program: `dnsmasq-dhcp` for DHCP."""

    at: int
    program: str
    text: str


def parse(text: str, now: datetime.datetime | None = None) -> Line | None:
    """Return a line of dnsmasq's log; None for another line.

    now: in local time, not before the line was written: the year follows from it. Default: the time of the call.
    """
    found = _LINE.match(text)
    if not found:
        return None
    now = now or datetime.datetime.now()
    for year in (now.year, now.year - 1):
        try:
            when = datetime.datetime.strptime(f"{year} {found[1]}", "%Y %b %d %H:%M:%S")
        except ValueError:  # 29 February
            continue
        if when < now + _DAY:
            return Line(int(when.timestamp() * 1000), found[2], found[3])
    return None


def lanes(report: Path, plan: Plan | None) -> Iterator[Lane]:
    """Yield a row with the leases of the machines, and with what DHCP refused; none without the log.

    report: the directory with the collected logs. Raises `OSError`.
    """
    path = report / LOG
    if not path.is_file():
        return
    names = (
        {at["ip"]: node["name"] for node in plan["nodes"] for nic in interfaces(node) for at in nic["addresses"]}
        if plan
        else {}
    )
    marks: list[Mark] = []
    with path.open("rb") as stream:
        status = os.fstat(stream.fileno())
        now = datetime.datetime.fromtimestamp(status.st_mtime)
        stream.seek(max(0, status.st_size - MAX_READ))
        for raw in stream:
            line = parse(raw.decode(errors="replace").rstrip("\n"), now)
            if line is None or line.program != "dnsmasq-dhcp":
                continue
            if lease := _LEASE.match(line.text):
                who = names.get(lease["address"], lease["client"])
                marks.append(_mark(line, "info", f"{who}: {lease['address']} ({lease['bridge']})"))
            elif _REFUSED.search(line.text):
                marks.append(_mark(line, "warning", line.text))
    if marks:
        yield {"name": "DHCP leases", "group": "services", "states": [], "stages": [], "failing": [], "marks": marks}


def _mark(line: Line, level: Level, text: str) -> Mark:
    return {"at": line.at, "level": level, "text": printable(redact(text))[:300]}
