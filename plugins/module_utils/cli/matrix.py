"""`agentlab matrix run [JOB ...]` and `agentlab matrix history FILE ...`: many jobs on one machine, and what became of them.

Each job is `agentlab ci run` in a process and a cluster of its own. The directory of a matrix in the artifacts has
`index.html`, `junit.xml`, and a directory for each job as `ci run` leaves it, with the output next to it; runs after the
first are in `turn-2` and so on. The history has a record of each run, as `ci/results.jsonl`; files of several machines can
be merged.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

from .. import signals
from ..ci import history, jobs, matrix_report, outcome, records
from ..ci.matrix import NOTHING, Budget, Task, next_task, tasks
from ..errors import LabError
from ..plan import capacity, names, profile
from ..state import write_atomic
from ..terminal import write_line
from ..vocabulary import Exit
from .ci import TABLE, profile_of
from .output import add_output, message, print_failure, print_output
from .places import ROOT, cluster_name, program, run_dir

#: Seconds between two lines that say what runs, and after an interruption until a job is killed.
PROGRESS, END = 60.0, 120.0
_POLL = 0.5
#: What a cluster's name may be longer than its prefix: `-` and a number.
_PREFIX_LENGTH = 48
_SHARED = "SHARED_DIR"


def main(argv: list[str]) -> int:
    """Run `agentlab matrix`; returns the exit status. argv: after `matrix`.

    `run` ends with `Exit.FAILED` when a job failed, and with `Exit.USAGE` for jobs that cannot run, before any begins.
    """
    args = _parser().parse_args(argv)
    try:
        return int(_run(args) if args.command == "run" else _history(args))
    except OSError as error:
        return print_failure(error)
    except (LabError, ValueError) as error:
        print_failure(error)
        return Exit.USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentlab matrix", description="Run many jobs, as many at once as fit on this host."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="run|history")
    run = commands.add_parser(
        "run",
        help="run jobs, and write one page, one JUnit and the history",
        description="Jobs run at the same time as long as the machines of all fit into memory, processors and disk. "
        "Exit status: 0 if all passed, 1 if one failed, 2 for jobs that cannot run.",
    )
    run.add_argument("job", nargs="*", metavar="JOB", help="the jobs to run (default: all of the table)")
    run.add_argument(
        "--jobs", type=Path, default=TABLE, metavar="FILE", help="table of the jobs (default: ci/jobs.yml)"
    )
    run.add_argument(
        "--memory", type=_positive, metavar="GIB", help="memory that all labs together may take (default: what is free)"
    )
    run.add_argument(
        "--most", type=_count, default=64, metavar="N", help="labs at the same time, at most (default: what fits)"
    )
    run.add_argument("--repeat", type=_count, default=1, metavar="N", help="runs of each job (default: %(default)s)")
    run.add_argument(
        "--cluster",
        type=cluster_name,
        default="matrix",
        metavar="PREFIX",
        help="the clusters are PREFIX-1, PREFIX-2 and so on (default: %(default)s)",
    )
    run.add_argument(
        "--artifacts",
        type=Path,
        default=Path(os.environ.get("ARTIFACT_DIR") or ROOT / "artifacts"),
        help="a directory of this run is made in it (default: ARTIFACT_DIR)",
    )
    run.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="history to read and to add to (default: history.jsonl in the artifacts)",
    )
    merge = commands.add_parser("history", help="print durations and flakes of one or several histories, or merge them")
    merge.add_argument("file", nargs="+", type=Path, metavar="FILE", help="a history, or ci/results.jsonl")
    merge.add_argument("--into", type=Path, metavar="FILE", help="write the merged history")
    add_output(merge)
    return parser


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def _history(args: argparse.Namespace) -> int:
    for path in args.file:
        if not path.exists():
            raise ValueError(f"{path}: there is no such file")
    merged = records.merge_records(map(records.load, args.file))
    found = list(history.summaries(merged).values())
    if args.output:
        print_output([asdict(one) | {"flaky": list(one.flaky)} for one in found], args.output)
    for one in [] if args.output else found:
        usual = records.duration(one.usual) if one.usual else "-"
        flaky = f"  passed and failed at {', '.join(one.flaky)}" if one.flaky else ""
        write_line(f"{one.job:<36} {one.passed:>4} of {one.runs:<4} passed  usually {usual:>8}  last {one.last}{flaky}")
    if args.into:
        records.write(merged, args.into)
    return Exit.OK


def _run(args: argparse.Namespace) -> int:
    start = datetime.datetime.now(datetime.UTC)
    if len(args.cluster) > _PREFIX_LENGTH:
        raise ValueError(f"--cluster {args.cluster}: must have at most {_PREFIX_LENGTH} characters")
    path: Path = (args.history or args.artifacts / "history.jsonl").absolute()
    known = history.summaries(records.load(path))
    table = _chosen(args)
    left_out = {name: jobs.unset(job, os.environ) for name, job in table.items()}
    needs = {name: _needs(name, job) for name, job in table.items() if not left_out[name]}
    budget = Budget.of(capacity.measure(Path(names.STATE_DIR)), memory_gib=args.memory, most=args.most)
    if wrong := [f"{name}: {text}" for name, need in needs.items() if (text := budget.lacking(need))]:
        raise ValueError(f"not enough memory, CPUs or disk on this host (or --memory is too low): {'; '.join(wrong)}")
    usual = {name: one.usual for name, one in known.items() if one.usual is not None}
    planned = tasks(needs, usual, repeat=args.repeat, prefix=args.cluster)
    with _exclusive(args.cluster):
        folder = args.artifacts.absolute() / f"matrix-{start:%Y%m%dT%H%M%SZ}"
        folder.mkdir(parents=True)
        return _Matrix(args.jobs, folder, path, budget, planned, left_out).run()


@contextlib.contextmanager
def _exclusive(prefix: str) -> Iterator[None]:
    """Keep another matrix from the same clusters while the block runs. ValueError if one runs."""
    path = run_dir(f".matrix-{prefix}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"a matrix runs in the clusters {prefix}-1 and so on; choose other names by --cluster"
            ) from None
        yield


def _chosen(args: argparse.Namespace) -> dict[str, jobs.Job]:
    if not args.jobs.exists():
        raise ValueError(f"--jobs {args.jobs}: there is no such file")
    chosen = args.job or jobs.names(args.jobs)
    for name in chosen:
        if "/" in name or Path(name).stem != name:
            raise ValueError(f"{args.jobs.name}: jobs.{name}: must be a valid directory name without a suffix")
    return {name: jobs.load(name, args.jobs) for name in chosen}


def _needs(name: str, job: jobs.Job) -> capacity.Needs:
    """Return what a job's machines take; nothing for one that makes none."""
    if "prepare" not in job["stages"]:
        return NOTHING
    return capacity.needs_of(profile.validated_profile(profile_of(name, job), "matrix"), existing=job["foreign"])


class _RunningTask(NamedTuple):
    process: subprocess.Popen[bytes]
    start: float
    log: Path


class _Matrix:
    """The jobs of one run.

    table: of the jobs; folder: new, of the artifacts; path: of the history; left_out: variables that a job needs, by job.
    """

    def __init__(
        self,
        table: Path,
        folder: Path,
        path: Path,
        budget: Budget,
        planned: Sequence[Task],
        left_out: Mapping[str, list[str]],
    ) -> None:
        self.table, self.folder, self.path, self.budget = table.absolute(), folder, path, budget
        self.waiting, self.left_out = list(planned), left_out
        self.running: dict[Task, _RunningTask] = {}
        self.outcomes = {task.name: matrix_report.waiting_outcome(task) for task in planned}
        self.begin, self.commit = time.monotonic(), records.commit(ROOT)

    def _skip(self, name: str, why: str) -> None:
        self.outcomes[name] = matrix_report.Outcome(name=name, result=matrix_report.SKIPPED, why=why)
        write_line(f"skip  {name}: {why}")

    def run(self) -> int:
        """Run all jobs. After an interruption the running ones end, and the commands that remove their clusters are printed."""
        write_line(f"{len(self.waiting)} jobs; all labs together: {_budget(self.budget)}; artifacts: {self.folder}")
        for name, variables in self.left_out.items():
            if variables:
                self._skip(name, f"{', '.join(variables)} not set: the real programs of this job")
        reported = time.monotonic()
        self._write()
        try:
            with signals.raise_terminated():
                while self.waiting or self.running:
                    self._start_what_fits()
                    time.sleep(_POLL)
                    self._collect()
                    if time.monotonic() - reported > PROGRESS:
                        reported = time.monotonic()
                        self._progress()
        except KeyboardInterrupt as error:
            self._interrupted()
            return error.exit_code if isinstance(error, signals.Termination) else Exit.INTERRUPTED
        results = [one.result for one in self.outcomes.values()]
        bad = len(results) - results.count(records.PASSED) - results.count(matrix_report.SKIPPED)
        write_line(
            f"{results.count(records.PASSED)} passed, {bad} failed, {results.count(matrix_report.SKIPPED)} skipped"
        )
        write_line(f"page: {self.folder / matrix_report.PAGE}")
        return Exit.FAILED if bad else Exit.OK

    def _place(self, task: Task) -> Path:
        return self.folder if task.turn == 1 else self.folder / f"turn-{task.turn}"

    def _start_what_fits(self) -> None:
        while task := next_task(self.waiting, list(self.running), self.budget):
            place = self._place(task)
            place.mkdir(exist_ok=True)
            log = place / f"{task.job}.log"
            command = [
                sys.executable, "-m", __package__, "ci", "run", task.job, "--jobs", str(self.table), "--cluster", task.cluster,
                "--artifacts", str(place), "--results", str(place / "results.jsonl"),
            ]  # fmt: skip
            # What later steps read is that of one installation.
            environment = {name: value for name, value in os.environ.items() if name != _SHARED}
            with log.open("wb") as output:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    start_new_session=True,
                )
            self.waiting.remove(task)
            now = time.monotonic() - self.begin
            self.running[task] = _RunningTask(process, now, log)
            begun = self.outcomes[task.name]
            folder = str((place / task.job).relative_to(self.folder))
            self._note(replace(begun, result=matrix_report.RUNNING, start=now, end=now, folder=folder))
            usually = f", usually {records.duration(task.usual)}" if task.usual else ""
            write_line(f"start {task.name}: cluster {task.cluster}, {task.needs.memory_mib} MiB{usually}")

    def _note(self, changed: matrix_report.Outcome) -> None:
        self.outcomes[changed.name] = changed
        self._write()

    def _collect(self) -> None:
        for task, running in list(self.running.items()):
            if running.process.poll() is not None:
                self._end(task, running)

    def _end(self, task: Task, running: _RunningTask) -> None:
        del self.running[task]
        code, end = running.process.returncode, time.monotonic() - self.begin
        result = records.PASSED if code == 0 else records.FAILED
        why = "" if code == 0 else self._reason_of(task, running.log, code)
        try:
            found = [one for one in records.load(self._place(task) / "results.jsonl") if one["job"] == task.job]
            for record in found:
                records.append(record, self.path)
        except (OSError, ValueError) as error:
            write_line(f"agentlab: {task.name} has no record in the history: {message(error)}", sys.stderr)
        self._note(replace(self.outcomes[task.name], result=result, end=end, why=why))
        mark = "ok  " if code == 0 else "FAIL"
        write_line(f"{mark}  {task.name} {records.duration(end - running.start)}{f': {why}' if why else ''}")

    def _reason_of(self, task: Task, log: Path, code: int) -> str:
        """Return the first cause of a failed job; without one the last line of its output, or the signal that ended it."""
        with contextlib.suppress(OSError):
            cause = (self._place(task) / task.job / outcome.INFRASTRUCTURE_LOG).read_text(errors="replace").strip()
            if cause:
                return outcome.printable(cause.splitlines()[0])
        if code < 0:
            return f"ended by {signal.Signals(-code).name}; to remove it: {program()} destroy --cluster {task.cluster}"
        lines = _lines(log)
        return next(
            (line for line in lines if line.startswith("FAIL  ")), lines[-1] if lines else f"exit status {code}"
        )

    def _progress(self) -> None:
        now = time.monotonic() - self.begin
        for task, running in self.running.items():
            usual = f" of usually {records.duration(task.usual)}" if task.usual else ""
            done = [line.split()[1] for line in _lines(running.log) if line.startswith("ok  ")]
            stage = f", after {done[-1]}" if done else ""
            write_line(f"      {task.name} runs for {records.duration(now - running.start)}{usual}{stage}")
        if self.waiting:
            write_line(f"      {len(self.waiting)} jobs wait for room")

    def _interrupted(self) -> None:
        """End the running jobs, which leave their results and their clusters; note what did not run."""
        for running in self.running.values():
            running.process.terminate()
        deadline = time.monotonic() + END
        write_line(f"interrupted: {len(self.running)} jobs end")
        for task, running in list(self.running.items()):
            try:
                running.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                running.process.kill()
                running.process.wait()
            self._end(task, running)
            write_line(f"to remove it: {program()} destroy --cluster {task.cluster}", sys.stderr)
        for task in self.waiting:
            left = self.outcomes[task.name]
            self._note(replace(left, result=matrix_report.SKIPPED, why="the matrix was interrupted"))

    def _write(self) -> None:
        """Write page and JUnit as they are now; what cannot be written is a message at the end of the job."""
        outcomes = list(self.outcomes.values())
        facts = [("Table", str(self.table)), ("Commit", self.commit), ("Labs together", _budget(self.budget))]
        try:
            summaries: Mapping[str, history.Summary] = history.summaries(records.load(self.path))
            write_atomic(self.folder / matrix_report.PAGE, matrix_report.page(outcomes, summaries, facts))
            matrix_report.write_junit(outcomes, self.folder)
        except (OSError, ValueError) as error:
            write_line(f"agentlab: the page of the matrix cannot be written: {message(error)}", sys.stderr)


def _budget(budget: Budget) -> str:
    has = budget.resources
    return f"{has.memory_mib} MiB of memory, {has.vcpus} virtual CPUs, {has.disk_gib} GiB of disk"


def _lines(path: Path) -> list[str]:
    try:
        return [outcome.printable(line) for line in path.read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return []
