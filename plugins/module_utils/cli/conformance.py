"""`agentlab conformance`: run the conformance suite against a cluster, or against the API of a kubeconfig."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from ..conformance import suite
from ..conformance.model import Case, Lab
from ..documents import read_file
from ..errors import AgentlabError
from ..redact import redact
from ..report.page import junit
from ..state import write_atomic
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import add_cluster, again_inside, find
from .output import add_output, print_failure, print_output

JUNIT = "junit_conformance.xml"


def main(argv: list[str]) -> int:
    """Run the cases; the exit status is FAILED if one failed or the API cannot be reached.

    argv: after `conformance`. For a cluster of the lab the verb runs again in its network. Each case is a line of output,
    and a test case of the JUnit.
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if args.output and not args.list:
        parser.error("--output needs --list")
    try:
        cases = suite.selected_cases(args.only)
        if args.list:
            _list(cases, args.output)
            return Exit.OK
        kubeconfig = args.kubeconfig
        if kubeconfig is not None:
            read_file(kubeconfig)  # the client's message for a file that cannot be read is Python's
        else:
            cluster = find(args.cluster)
            cluster.check_remote_owner()
            again_inside(cluster, ["conformance", *argv])
            kubeconfig = cluster.kubeconfig
        return _run(kubeconfig, cases, args.junit)
    except (AgentlabError, ValueError, OSError) as error:
        return print_failure(error)


def _list(cases: Sequence[Case], form: str | None) -> None:
    if form:
        print_output([{"id": case.id, "sentence": case.sentence} for case in cases], form)
        return
    for case in cases:
        write_line(f"{case.id:<52} {case.sentence}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentlab conformance",
        description="Check what clients of an installation rely on, against an installed cluster. The cases create objects in a "
        "namespace of their own and remove them. Exit status: 0 if all passed, 1 if one failed.",
    )
    add_cluster(parser)
    add_output(parser)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="an administrator's kubeconfig, of any cluster, instead of --cluster",
    )
    parser.add_argument("--junit", type=Path, metavar="DIR", help=f"write {JUNIT} into this directory")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="PATTERN",
        help="run the cases that match, as in watches, 'lists/token-*' (repeatable)",
    )
    parser.add_argument("--list", action="store_true", help="print the cases instead of running them")
    return parser


def _run(kubeconfig: Path, cases: Sequence[Case], folder: Path | None) -> int:
    start, begin, results = time.time(), time.monotonic(), list[suite.Result]()
    try:
        with Lab(kubeconfig) as lab:
            for result in suite.run(lab, cases):
                results.append(result)
                _show(result, len(results), len(cases))
    finally:
        # Also of a suite that was interrupted: what it has found is kept.
        if folder is not None:
            write_atomic(folder / JUNIT, _junit(results, start, kubeconfig))
    failed = sum(bool(result.failure) for result in results)
    skipped = sum(bool(result.skipped) for result in results)
    passed = len(results) - failed - skipped
    write_line(f"{passed} passed, {failed} failed, {skipped} skipped in {time.monotonic() - begin:.0f} s")
    return Exit.FAILED if failed else Exit.OK


def _show(result: suite.Result, number: int, total: int) -> None:
    word = "FAIL" if result.failure else "skip" if result.skipped else "ok  "
    reason = redact(result.failure or result.skipped)
    write_line(
        f"{word}  {number:>3}/{total}  {result.case.id:<52} {result.seconds:5.1f} s{f'  {reason}' if reason else ''}"
    )


def _junit(results: Sequence[suite.Result], start: float, kubeconfig: Path) -> str:
    made = [
        junit.Case(
            name=f"{result.case.id}: {result.case.sentence}",
            seconds=result.seconds,
            failure=redact(result.failure),
            skipped=redact(result.skipped),
        )
        for result in results
    ]
    properties = {"kubeconfig": str(kubeconfig)}
    return junit.text(
        [junit.Suite(name="agentlab conformance", cases=made, properties=properties, start=int(start * 1000))]
    )
