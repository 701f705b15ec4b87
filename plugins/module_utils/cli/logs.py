"""`agentlab logs [-f] [--node NODE] [--unit UNIT]`: journals, consoles and logs of the lab's services, merged by time."""

from __future__ import annotations

import argparse
import datetime
import json
import queue
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from .. import signals
from ..errors import LabError
from ..plan.names import service_log
from ..plan.outside import machines
from ..redact import Redactor
from ..report.causes import CONTROLS
from ..report.page import leases
from ..report.secrets import of_run
from ..report.ssh import ssh as ssh_to
from ..sandbox import faults, services
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import Cluster, add_cluster, again_inside, attempt

LIMIT = 60.0
AGAIN = 5.0
"""Seconds after which a followed source that has ended, such as a node that reboots, is tried again."""
MAX_LINE = 64 * 1024
# journalctl -o short-unix: seconds since 1970, the host, the program and its message.
_JOURNAL = re.compile(r"(\d{9,11}\.\d+) \S+ (.*)", re.DOTALL)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?")
# The format of web servers' access logs, in local time.
_ACCESS = re.compile(r"\[(\d\d/[A-Z][a-z]{2}/\d{4} \d\d:\d\d:\d\d)")


class Source(NamedTuple):
    """Something that has a log: the name that is printed, and the command that prints its last lines, or follows it.

    name: a node, `NODE/console` or a service of the lab. The command is complete: run it without a shell. unit: the only one
    that is printed.
    """

    name: str
    command: list[str]
    unit: str = ""


class Line(NamedTuple):
    """A line of a log: seconds since 1970, its source, and its text without control characters and secrets."""

    time: float
    source: str
    text: str


def main(argv: list[str]) -> int:
    """Print the last lines of every log in the order of their times, or follow them all.

    argv: after `logs`. `Exit.FAILED` if no source could be read, or no unit has entries; others that fail, and units
    without entries, are messages on stderr.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab logs",
        description="Print journals and consoles of the nodes and logs of the lab's services, merged by time. A console's lines "
        "have no time of their own: they get the time of its last line.",
    )
    parser.add_argument("-f", "--follow", action="store_true", help="follow them until Ctrl-C, also across reboots")
    parser.add_argument("--node", action="append", default=[], metavar="NODE", help="only this node (repeatable)")
    parser.add_argument(
        "--unit",
        action="append",
        default=[],
        metavar="UNIT",
        help="only this systemd unit of the nodes (repeatable); without entries on any of them it is a failure, except with -f",
    )
    parser.add_argument(
        "-n",
        "--lines",
        type=int,
        metavar="N",
        help="lines of each log (default: 200; with -f: 10)",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("json", "yaml"),
        help="print a JSON object per line, or an element of a YAML list: time, source, text",
    )
    add_cluster(parser)
    args = parser.parse_args(argv)

    def show(cluster: Cluster) -> int:
        nodes = [cluster.machine(name) for name in args.node] or [*cluster.plan["nodes"], *machines(cluster.plan)]
        count: int = (10 if args.follow else 200) if args.lines is None else args.lines
        if count < 1:
            raise LabError(f"--lines {count}: must be 1 or more")
        cluster.check_remote_owner()
        again_inside(cluster, ["logs", *argv], root=True)
        found: list[Source] = []
        for node in nodes:
            found += _of_node(cluster, node["name"], args.unit, count, follow=args.follow)
        if not (args.node or args.unit):
            base = cluster.plan["services"]["directory"]
            found += [
                Source(name, _tail(cluster, service_log(base, name), count, follow=args.follow))
                for name in (*services.names_of(cluster.plan), faults.NAME, leases.NAME)
            ]
        secrets = of_run(cluster.directory)
        if args.follow:
            return _follow(found, secrets, args.output)
        return _print(found, secrets, args.output)

    return attempt(args.cluster, show)


def _of_node(cluster: Cluster, name: str, units: Sequence[str], count: int, *, follow: bool) -> Iterator[Source]:
    node = cluster.machine(name)
    address = next((address["ip"] for nic in node["nics"] for address in nic["addresses"]), None)
    # One command for each unit shows which has no entries; one that is followed may get some.
    groups = [units] if follow or not units else [[unit] for unit in units]
    for group in groups if address else ():
        words = [
            "sudo",
            "journalctl",
            "-o",
            "short-unix",
            "--no-pager",
            "-q",
            "-n",
            str(count),
            *(["-f"] if follow else []),
        ]
        words += [word for unit in group for word in ("-u", shlex.quote(unit))]
        command = [*ssh_to(cluster.directory, str(address)), " ".join(words)]
        yield Source(name, command, group[0] if group and not follow else "")
    if not units and not ("bmc" in node and node.get("bare_metal")):
        yield Source(f"{name}/console", _tail(cluster.seen_from(node), node["console"], count, follow=follow))


def _tail(cluster: Cluster, path: str, count: int, *, follow: bool) -> list[str]:
    """Return the command that prints when a file on the hypervisor last changed, then its last lines."""
    script = f'test -e "$0" || exit 0; stat -c %Y "$0"; exec tail -n {count} {"-F" if follow else ""} "$0"'
    if follow:
        script = f'echo 0; exec tail -n {count} -F "$0" 2>/dev/null'
    words = ["sh", "-c", script, path]
    remote = cluster.plan["hypervisor"]["kind"] == "ssh"
    return [*cluster.on_hypervisor(), *(map(shlex.quote, words) if remote else words)]


def _time(text: str) -> float | None:
    """Return the time that a line starts with, or has in its first words."""
    start = text[:80]
    try:
        if found := _ISO.search(start):
            return datetime.datetime.fromisoformat(found[0].replace(" ", "T")).timestamp()
        if found := _ACCESS.search(start + text[80:160]):
            return datetime.datetime.strptime(found[1], "%d/%b/%Y %H:%M:%S").timestamp()
        if line := leases.parse(text):
            return line.at / 1000
    except (ValueError, OverflowError, OSError):
        pass
    return None


class _Reader:
    """Makes lines of what a source prints. A line without a time has that of the line before it."""

    def __init__(self, source: Source, secrets: list[str]) -> None:
        self.name, self.redactor = source.name, Redactor(secrets)
        self.journal = source.command[0] == "ssh" and "journalctl" in source.command[-1]
        self.last: float | None = None
        self.changed: float | None = None

    def line(self, raw: str) -> tuple[float | None, str] | None:
        """Return the time of a line, or None, and its text; nothing for a file's first line, when it was changed."""
        raw = raw.rstrip("\r\n")
        if not self.journal and self.changed is None:
            self.changed = float(raw) if raw.isdecimal() and len(raw) < 12 else 0.0
            return None
        text = CONTROLS.sub("", self.redactor.feed(raw))
        if self.journal and (found := _JOURNAL.match(text)):
            self.last, text = float(found[1]), found[2]
        elif not self.journal:
            self.last = _time(text) or self.last
        return self.last, "".join(letter if letter.isprintable() else " " for letter in text).rstrip()

    def all(self, text: str) -> list[Line]:
        """Return the lines of a whole text."""
        found = [line for raw in text.splitlines() if (line := self.line(raw[:MAX_LINE])) and line[1]]
        first = next((at for at, __ in found if at is not None), self.changed or 0.0)
        return [Line(first if at is None else at, self.name, text) for at, text in found]


def _print(found: Sequence[Source], secrets: list[str], form: str | None) -> int:
    lines: list[Line] = []
    problems: list[str] = []
    empty: dict[str, list[str]] = {}
    with ThreadPoolExecutor(max_workers=len(found)) as pool:
        for source, (text, problem) in zip(found, pool.map(_read, found), strict=True):
            lines += (made := _Reader(source, secrets).all(text))
            if problem:
                problems.append(f"{source.name}: {problem}")
            elif source.unit and not made:
                empty.setdefault(source.unit, []).append(source.name)
    without = [f"unit {unit} has no entries on {', '.join(names)}" for unit, names in empty.items()]
    # A node that does not answer is one message, not one for each unit.
    for text in dict.fromkeys([*problems, *without]):
        write_line(f"agentlab: {text}", sys.stderr)
    for line in sorted(lines, key=lambda line: line.time):
        _show(line, form)
    return Exit.FAILED if len(problems) + sum(map(len, empty.values())) == len(found) else Exit.OK


def _read(source: Source) -> tuple[str, str]:
    """Return the output of a source's command, and why it has none."""
    try:
        done = subprocess.run(source.command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return "", f"no answer within {LIMIT:.0f} s"
    except OSError as error:
        return "", f"{source.command[0]}: {error.strerror}"
    output = done.stderr.decode(errors="replace").strip().splitlines()
    problem = (output or [f"{source.command[0]} ended with {done.returncode}"])[-1] if done.returncode else ""
    return done.stdout.decode(errors="replace"), problem


def _follow(found: Sequence[Source], secrets: list[str], form: str | None) -> int:
    """Print lines as they come, until Ctrl-C."""
    lines: queue.SimpleQueue[Line] = queue.SimpleQueue()
    running: dict[str, subprocess.Popen[bytes]] = {}
    over = threading.Event()

    def follow(source: Source) -> None:
        while not over.is_set():
            reader = _Reader(source, secrets)
            with subprocess.Popen(
                source.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            ) as process:
                running[source.name] = process
                if over.is_set():
                    process.terminate()
                while process.stdout and (raw := process.stdout.readline(MAX_LINE)):
                    made = reader.line(raw.decode(errors="replace"))
                    if made and made[1]:
                        now = datetime.datetime.now(datetime.UTC).timestamp()
                        lines.put(Line(now if made[0] is None else made[0], source.name, made[1]))
            over.wait(AGAIN)

    threads = [threading.Thread(target=follow, args=(source,), daemon=True) for source in found]
    try:
        with signals.raise_terminated():
            for thread in threads:
                thread.start()
            while True:
                _show(lines.get(), form)
    except signals.Termination:
        raise
    except KeyboardInterrupt:
        return Exit.OK
    finally:
        over.set()
        for process in list(running.values()):
            process.terminate()


def _show(line: Line, form: str | None) -> None:
    at = datetime.datetime.fromtimestamp(line.time, datetime.UTC)
    if form:
        fields = {"time": at.isoformat(timespec="milliseconds"), "source": line.source, "text": line.text}
        write_line(("- " if form == "yaml" else "") + json.dumps(fields))
    else:
        write_line(f"{at:%H:%M:%S}.{at.microsecond // 1000:03} {line.source:<18} {line.text}")
