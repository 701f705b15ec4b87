"""`agentlab status [--watch] [-o json|yaml]`: stages, machines, hosts, failing validations and the first cause of a cluster."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from ..errors import LabError
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import Cluster, add_cluster, again_inside, find
from .output import add_output, print_failure, print_output

if TYPE_CHECKING:
    from ..report.status import HostStatus, Status

_COLUMNS = ("HOST", "ROLE", "POWER", "MEDIUM", "STATUS", "STAGE", "INFO")
_WIDTH = 60
SECONDS = 5.0
"""Between two looks of --watch."""


def main(argv: list[str]) -> int:
    """Print the state of a cluster once, or at every change until Ctrl-C."""
    parser = argparse.ArgumentParser(
        prog="agentlab status",
        description="Print stages, machines, hosts, failing validations and the first cause of a cluster.",
    )
    add_cluster(parser)
    parser.add_argument("-w", "--watch", action="store_true", help="print it again when it changes, until Ctrl-C")
    add_output(parser, "print all fields as JSON or YAML instead of a table, as in docs/status.schema.json")
    args = parser.parse_args(argv)
    try:
        cluster = find(args.cluster)
        cluster.check_remote_owner()
        return _print(cluster, argv, args.output, watch=args.watch)
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def _print(cluster: Cluster, argv: list[str], form: str | None, *, watch: bool) -> int:
    inside = True
    try:
        again_inside(cluster, ["status", *argv])
    except LabError:  # a plan without a running sandbox has a state, too
        inside = False
    # Only here: the process that enters the sandbox makes no use of it.
    from ..report.status import collect

    shown: Status | None = None
    while True:
        found = collect(cluster.plan, cluster.directory, inside=inside)
        if found != shown:
            if form:
                if shown and form == "yaml":
                    write_line("---")
                print_output(found, form)
            else:
                write_line(("\n" if shown else "") + table(found))
            shown = found
        if not watch:
            return Exit.OK
        time.sleep(SECONDS)


def table(found: Status) -> str:
    """Return the state as a table."""
    stages = [f"{stage['name']} {stage['result'] or 'running'}" for stage in found["stages"]]
    lines = [
        f"cluster {found['cluster']}: {found['topology']} {found['stack']}, {', '.join(stages) or 'planned'}",
    ]
    if installation := found["installation"]:
        since = "" if installation["source"] == "service" else " (last answer; the service does not answer now)"
        lines.append(f"{installation['status']}, {installation['percentage']}%: {installation['info']}{since}")
        lines += [f"  cluster: {check['id']}: {check['message']}" for check in installation["failing"]]
    rows = [_COLUMNS, *map(_row, found["hosts"])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines += ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    for host in found["hosts"]:
        lines += [f"  {host['name']}: {check['id']}: {check['message']}" for check in host["failing"]]
        lines += [f"  {host['name']}: {host['problem']}"] if host["problem"] else []
    if cause := found["first_cause"]:
        lines += [f"First cause: {cause['text']}", f"     Next: {cause['next']}"]
    return "\n".join(lines)


def _row(host: HostStatus) -> tuple[str, ...]:
    stage = f"{host['stage']} {host['percentage']}%" if host["percentage"] else host["stage"]
    medium = (host["medium"] or "").rpartition("/")[2]
    return (
        host["name"],
        host["role"],
        host["power"] or "-",
        medium or "-",
        host["status"] or "-",
        stage or "-",
        host["info"][:_WIDTH],
    )
