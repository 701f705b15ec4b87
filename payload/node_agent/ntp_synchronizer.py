"""`ntp_synchronizer`: add the cluster's time sources to the host's chronyd and report the state of all sources."""

from __future__ import annotations

import ipaddress
import re
import socket

from . import fields, host
from .journal import log
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context, argument

SECONDS = 30
MOST_SOURCES = 64
# A host name or an address, never an option of chronyc.
SOURCE = re.compile(r"[0-9A-Za-z:]([-.:%\w]*\w)?\.?|::", re.ASCII)
STATES = {"*": "synced", "+": "combined", "-": "not_combined", "?": "unreachable", "x": "error", "~": "variable"}


def parse(output: str) -> list[dict[str, str]]:
    """`chronyc sources`: lines of servers begin with ^ and the state's sign; peers and local clocks are left out."""
    rows = [line.split() for line in output.splitlines() if line.startswith("^")]
    return [{"source_name": row[1], "source_state": STATES.get(row[0][1:2], "error")} for row in rows if len(row) > 1]


def sources() -> list[dict[str, str]]:
    """ValueError: chronyc failed."""
    result = host.run(["chronyc", "-n", "sources"], SECONDS, host=True)
    if result.exit_code:
        raise ValueError(f"chronyc exited with non-zero exit code {result.exit_code}: {result.output}\n{result.error}")
    return parse(result.output)


def resolve(server: str) -> set[str]:
    try:
        return {str(entry[4][0]) for entry in socket.getaddrinfo(server, None)} | {server}
    except OSError:
        return {server}


def name_of(source: str) -> str:
    """Return the host name of an address, by reverse lookup; the address if there is none."""
    try:
        ipaddress.ip_address(source)
        return socket.gethostbyaddr(source)[0].strip(".")
    except (OSError, ValueError):
        return source


def step(args: list[str], context: Context) -> Result:
    wanted = argument("ntp-synchronizer", args[0]).get("ntp_source") or ""
    if not isinstance(wanted, str):
        raise ValueError(f"Invalid NTP source: {fields.shown_value(wanted)}")
    servers = [part.strip() for part in wanted.split(",")]
    if wrong := [server for server in servers if server and not (len(server) <= 255 and SOURCE.fullmatch(server))]:
        raise ValueError(f"Invalid NTP source: {fields.shown_value(', '.join(wrong))}")
    if len(servers) > MOST_SOURCES:
        raise ValueError(f"ntp-synchronizer: ntp_source has {len(servers)} sources, the limit is {MOST_SOURCES}")
    if context.dry.enabled:
        return Result(marshal({"ntp_sources": []}))
    for server in filter(None, servers):
        if not resolve(server) & {entry["source_name"] for entry in sources()}:
            added = host.run(["chronyc", "add", "server", server, "iburst"], SECONDS, host=True)
            if added.exit_code:
                log.error("Failed to add NTP server %s: %s%s", server, added.output, added.error)
    return Result(
        marshal({"ntp_sources": [{**entry, "source_name": name_of(entry["source_name"])} for entry in sources()]})
    )


def main(argv: list[str] | None = None) -> int:
    return program("ntp_synchronizer", step, argv, misused=1)


if __name__ == "__main__":
    raise SystemExit(main())
