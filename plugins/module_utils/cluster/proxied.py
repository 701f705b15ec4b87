"""Whether the nodes of a lab pulled every image through its proxy: from the logs of the proxy and of the registry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..plan import faults, proxied
from ..plan.machines import interfaces
from ..plan.model import Plan
from ..vocabulary import Port
from .links import Finding

_MAX_LINE = 8192
_TUNNEL = re.compile(
    r'time="(?P<time>[^"]{1,40})" client=(?P<client>\S{1,60}) method=CONNECT url=(?P<url>\S{1,300}) '
    r"status=(?P<status>\d{1,3}) bytes=(?P<size>\d{1,18}) ms=(?P<lasted>\d{1,12})$"
)
_FIELD = re.compile(r'(?:^| )http\.request\.(method|remoteaddr|uri)=(?:"((?:[^"\\]|\\.)*)"|(\S*))')
_CONTENT = re.compile(r"/v2/[^?]{1,255}/(blobs|manifests)/")


class Tunnel(NamedTuple):
    """A line of the proxy's log about a connection. time: of its end, in RFC 3339; size: bytes to the client; lasted: milliseconds."""

    time: str
    client: str
    url: str
    status: int
    size: int
    lasted: int


def tunnel(line: str) -> Tunnel | None:
    """Return the connection that a line of the proxy's log is about; None for another line."""
    found = _TUNNEL.match(line.rstrip("\n"))
    if not found:
        return None
    status, size, lasted = (int(found[name]) for name in ("status", "size", "lasted"))
    return Tunnel(found["time"], found["client"], found["url"], status, size, lasted)


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield which nodes connected to the lab's registry through the proxy, and which ones pulled past it.

    Nothing where the registry is not behind the proxy. A node has its addresses in the live system and after the installation.
    """
    registry = proxied.registry(plan)
    if not registry:
        return
    nodes = {
        node["name"]: {address["ip"] for nic in interfaces(node) for address in nic["addresses"]}
        for node in plan["nodes"]
        if node["role"] != faults.EXTRA
    }
    directory, expected = Path(plan["services"]["directory"]), ", ".join(nodes)
    try:
        through = set(_through(directory / "proxy/log", f"{registry}:{Port.HTTPS}"))
        past = set(_past(directory / "registry/log"))
    except OSError as error:
        yield Finding("pulls through the proxy", expected, f"{error.filename}: {error.strerror}")
        return
    said = {name: name if addresses & through else f"{name} had no connection" for name, addresses in nodes.items()}
    said |= {name: f"{name} pulled past the proxy" for name, addresses in nodes.items() if addresses & past}
    yield Finding("pulls through the proxy", expected, ", ".join(said.values()))


def _through(log: Path, url: str) -> Iterator[str]:
    """The clients of successful connections to `url`."""
    for line in _lines(log):
        one = tunnel(line)
        if one and one.url == url and one.status == 200:
            yield one.client


def _past(log: Path) -> Iterator[str]:
    """The clients that asked the registry for content; those of the proxy are of the sandbox itself."""
    for line in _lines(log):
        asked = {name: quoted or bare for name, quoted, bare in _FIELD.findall(line)}
        if asked.get("method") in ("GET", "HEAD") and _CONTENT.match(asked.get("uri", "")):
            yield asked.get("remoteaddr", "").rpartition(":")[0].strip("[]")


def _lines(log: Path) -> Iterator[str]:
    with log.open(errors="replace") as stream:
        while line := stream.readline(_MAX_LINE):
            yield line
