"""What the machines pulled from the lab's registry, from its log and that of the lab's proxy: a row for each machine.

The registry (the distribution's docker-registry) writes a line in logfmt when a response is complete; its time is that of the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...cluster import proxied
from ...files import size_text
from ...plan.machines import interfaces
from ...plan.model import Plan
from ...redact import redact
from ...state.events import moment, printable
from .model import Interval, Lane, Mark

LOGS = ("services/registry.log", "services/proxy.log")
MAX_READ = 32 << 20
"""What is read of the end of the log: the pulls of dozens of hosts."""
GAP = 2_000
"""Milliseconds between two responses of one pull, at most."""
_FIELD = re.compile(r'(?:^| )(time|msg|err\.message|http\.[a-z.]{1,40})=(?:"((?:[^"\\]|\\.)*)"|(\S*))')
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|µs|ns)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "µs": 1e-3, "ns": 1e-6}
_CONTENT = re.compile(r"/v2/(?P<name>[^?]{1,255})/(?P<kind>blobs|manifests)/(?P<reference>[^/?]{1,160})\Z")
_UNAUTHORIZED = 401


@dataclass(frozen=True)
class Response:
    """A response of the registry. start and end: milliseconds since the epoch; address: the client's; size: bytes.

    method, uri and status (0 if it is missing) are of the HTTP request; error: the registry's message, empty for a
    success.
    """

    start: int
    end: int
    address: str
    method: str
    uri: str
    status: int
    size: int
    error: str

    def __str__(self) -> str:
        end = self.error or f"{size_text(self.size)} in {(self.end - self.start) / 1000:.1f} s"
        return f"{self.method} {self.uri}: {self.status}, {end}"


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
    for one in (response for path in paths for response in _responses(path)):
        if one.address in names:
            hosts[names[one.address]].append(one)
    yield from (_lane(name, found) for name, found in hosts.items() if found)


def parse(line: str) -> Response | None:
    """Return the response that a line of the registry's log is about, or the connection of one of the proxy's; None for another line.

    The duration is the sum of Go's units in `http.response.duration`; a field that is missing is empty or 0.
    """
    if through := proxied.tunnel(line):
        done = moment(through.time) or 0
        return Response(
            done - through.lasted, done, through.client, "CONNECT", through.url, through.status, through.size, ""
        )
    fields: Mapping[str, str] = {key: quoted or bare for key, quoted, bare in _FIELD.findall(line)}
    end = moment(fields.get("time", ""))
    if end is None or not fields.get("msg", "").startswith("response completed"):
        return None
    lasted = sum(
        float(number) * _MILLISECONDS[unit]
        for number, unit in _DURATION.findall(fields.get("http.response.duration", ""))
    )
    status, size = fields.get("http.response.status", ""), fields.get("http.response.written", "")
    return Response(
        start=end - round(lasted),
        end=end,
        address=fields.get("http.request.remoteaddr", "").rpartition(":")[0].strip("[]"),
        method=fields.get("http.request.method", ""),
        uri=fields.get("http.request.uri", ""),
        status=int(status) if status.isdecimal() else 0,
        size=int(size) if size.isdecimal() else 0,
        error=fields.get("err.message", ""),
    )


def _responses(path: Path) -> Iterator[Response]:
    with path.open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - MAX_READ))
        for line in stream:
            if found := parse(line.decode(errors="replace")):
                yield found


def _lane(name: str, responses: list[Response]) -> Lane:
    pulls: list[Interval] = []
    together: list[Response] = []
    for one in sorted(
        (
            one
            for one in responses
            if one.status < 300 and (one.method == "CONNECT" or (one.method == "GET" and _CONTENT.match(one.uri)))
        ),
        key=lambda one: one.start,
    ):
        if together and one.start > max(other.end for other in together) + GAP:
            pulls.append(_pull(together))
            together = []
        together.append(one)
    if together:
        pulls.append(_pull(together))
    marks: list[Mark] = [
        {"at": one.end, "level": "error" if one.status >= 500 else "warning", "text": printable(redact(str(one)))[:300]}
        for one in responses
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


def _pull(responses: list[Response]) -> Interval:
    start, end = responses[0].start, max(one.end for one in responses)
    size = sum(one.size for one in responses)
    blobs = sum("/blobs/" in one.uri for one in responses)
    tunnels = sum(one.method == "CONNECT" for one in responses)
    counted = f"{tunnels} connections" if tunnels else f"{blobs} blobs, {len(responses) - blobs} manifests"
    rate = f", {size_text(round(size * 1000 / (end - start)))}/s" if end > start else ""
    return {
        "start": start,
        "end": end,
        "state": size_text(size),
        "text": f"{counted}{rate}",
    }
