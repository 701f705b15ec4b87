"""What machines pulled, from the logs of the lab's registry and of its proxy.

The registry (the distribution's docker-registry) writes a line in logfmt when a response is complete, the proxy (squid) one when a
connection ends; their times are those of the end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..files import size_text
from ..state.events import moment

CONNECT = "CONNECT"
"""The method of a connection through the proxy; its `uri` is host and port."""
CONTENT = re.compile(r"/v2/(?P<name>[^?]{1,255})/(?P<kind>blobs|manifests)/(?P<reference>[^/?]{1,160})\Z")
"""The path of a blob or a manifest."""
OK = 200
_MAX_LINE = 8192
_FIELD = re.compile(r'(?:^| )(time|msg|err\.message|http\.[a-z.]{1,40})=(?:"((?:[^"\\]|\\.)*)"|(\S*))')
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|µs|ns)")
_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "µs": 1e-3, "ns": 1e-6}
_CONNECTION = re.compile(
    r'time="(?P<time>[^"]{1,40})" client=(?P<client>\S{1,60}) method=CONNECT url=(?P<url>\S{1,300}) '
    r"status=(?P<status>\d{1,3}) bytes=(?P<size>\d{1,18}) ms=(?P<lasted>\d{1,12})$"
)


@dataclass(frozen=True)
class Response:
    """A response of the registry, or a connection through the proxy. start and end: milliseconds since the epoch; size: bytes.

    address: the client's; method, uri and status (0 if it is missing) are of the HTTP request; error: the registry's message, empty
    for a success.
    """

    start: int
    end: int
    address: str
    method: str
    uri: str
    status: int
    size: int
    error: str = ""

    def __str__(self) -> str:
        end = self.error or f"{size_text(self.size)} in {(self.end - self.start) / 1000:.1f} s"
        return f"{self.method} {self.uri}: {self.status}, {end}"


def parse(line: str) -> Response | None:
    """Return what a line of the registry's or of the proxy's log is about; None for another line.

    The duration of a response is the sum of Go's units in `http.response.duration`; a field that is missing is empty or 0.
    """
    if connection := _CONNECTION.match(line.rstrip("\n")):
        return _connection(connection)
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


def _connection(found: re.Match[str]) -> Response | None:
    end = moment(found["time"])
    if end is None:
        return None
    start = end - int(found["lasted"])
    return Response(start, end, found["client"], CONNECT, found["url"], int(found["status"]), int(found["size"]))


class Contents:
    """The blobs and manifests that a registry's log has, each once for a client; `read` adds what is new in `log`."""

    def __init__(self, log: Path) -> None:
        self.log, self.position = log, 0
        self.found: set[tuple[str, str]] = set()

    def read(self) -> frozenset[tuple[str, str]]:
        """Return address and URI of all that was served until now; where there is no log, what was found before."""
        try:
            with self.log.open("rb") as stream:
                stream.seek(self.position)
                # A line that is being written is read the next time.
                text = stream.read().rpartition(b"\n")[0]
        except OSError:
            return frozenset(self.found)
        self.position += len(text)
        served = (parse(line) for line in text.decode(errors="replace").splitlines())
        self.found |= {(one.address, one.uri) for one in served if one and one.status == OK and CONTENT.match(one.uri)}
        return frozenset(self.found)


def responses(log: Path, last: int | None = None) -> Iterator[Response]:
    """Yield what the lines of a log are about. last: bytes of its end that are read; None: all. Raises `OSError`."""
    with log.open("rb") as stream:
        if last is not None:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - last))
        while line := stream.readline(_MAX_LINE):
            if found := parse(line.decode(errors="replace")):
                yield found
