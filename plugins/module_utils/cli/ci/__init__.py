"""`agentlab ci run JOB|PROFILE`, and `gather`, `validate`, `exec`: an installation as a step of OpenShift CI calls it.

The job's directory in the artifacts has `junit.xml` (a test case per stage), `events.jsonl` (Ansible's events), `<stage>.log` (its
output), `run/` (the plan, the inputs, the manifests and the logs of the run directory), after a failure `report/` with the first
cause in `summary.txt`, and what OpenShift CI's tools look for: docs/ci.md lists it. All of it is redacted.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ...addresses import in_url
from ...ci import jobs, outcome, records, shared
from ...errors import LabError
from ...plan import profile, rundir
from ...plan.model import Plan
from ...report.page import junit
from ...sandbox import faults, kvm, namespaces
from ...terminal import write_line, write_or_drop
from ...vocabulary import Exit, RunFile
from .. import forward
from ..cluster import add_cluster, become, find
from ..places import PROFILES, ROOT, program
from .runner import GATHER_AFTER, Interrupt, RefusedJob, Runner, Stage, cases, checks_junit, fresh

TABLE = ROOT / "ci/jobs.yml"
PROXY_SECONDS = 20.0


def main(argv: list[str]) -> int:
    """Run a job, or gather; the exit status of `run` is the class of the installation.

    argv: after `ci`. `run` ends with 0 or an `outcome.Class`; `gather` with 1 if a stage failed; `validate` with a
    class; `exec` with the status of the command. Options
    default to SHARED_DIR and ARTIFACT_DIR.
    """
    args = _parser().parse_args(argv)
    places = shared.Place("SHARED_DIR", args.shared), args.artifacts.absolute()
    return int(_COMMANDS[args.command](args, *places))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentlab ci", description="Run an installation as a step of OpenShift CI.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="run|gather|validate|exec")
    run = commands.add_parser(
        "run",
        help="run a job or install a profile, and leave what later steps read",
        description="Exit status: 0, or the class of the failure: 3 configuration, 4 infrastructure, 5 bootstrap, 6 creation, "
        "7 operators, 1 anything else; 2 for invalid options.",
    )
    run.add_argument("target", metavar="JOB|PROFILE", help="a job of the table; otherwise a profile, as for deploy")
    run.add_argument("--jobs", type=Path, metavar="FILE", help="table of the jobs (default: ci/jobs.yml)")
    run.add_argument("--keep", action="store_true", help="do not destroy the cluster, and leave how to reach it")
    run.add_argument("--stages", metavar="A,B", help="run these stages only")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="a field of the profile, as in release.payload=ocp (repeatable)",
    )
    run.add_argument("--timeout-minutes", type=float, help="limit of the whole job")
    run.add_argument("--results", type=Path, metavar="FILE", help="append a record of the job, as in ci/results.jsonl")
    run.add_argument(
        "--proxy-url",
        default="",
        metavar="URL",
        help="proxy-url of the kubeconfig (default: the one of --proxy-listen)",
    )
    run.add_argument(
        "--proxy-listen",
        metavar="ADDRESS:PORT",
        help="with --keep, where this host offers an HTTP proxy into the sandbox (default: 127.0.0.1 and a free port)",
    )
    gather = commands.add_parser(
        "gather", help="collect logs of a cluster into the artifacts, also of one that was interrupted"
    )
    gather.add_argument("--destroy", action="store_true", help="destroy the cluster afterwards")
    validate = commands.add_parser("validate", help="check an installed cluster, with a test case for each check")
    execute = commands.add_parser(
        "exec",
        help="run a command in the cluster's network, with KUBECONFIG, and a directory for its JUnit",
        description="The command gets KUBECONFIG, ARTIFACT_DIR and JUNIT_DIR (junit/ in the artifacts). Exit status: the command's.",
    )
    execute.add_argument(
        "program",
        nargs="+",
        metavar="COMMAND",
        help="after --, as in: agentlab ci exec -- sh -c 'tests --junit-dir $JUNIT_DIR'",
    )
    for one in (run, gather, validate, execute):
        add_cluster(one)
        one.add_argument(
            "--artifacts",
            type=Path,
            default=Path(os.environ.get("ARTIFACT_DIR") or ROOT / "artifacts"),
            help="directory of the artifacts (default: ARTIFACT_DIR)",
        )
        one.add_argument(
            "--shared",
            type=Path,
            default=Path(os.environ["SHARED_DIR"]) if os.environ.get("SHARED_DIR") else None,
            help="directory that later steps read (default: SHARED_DIR)",
        )
        one.add_argument(
            "--artifacts-url", default="", metavar="URL", help="where the artifacts will be read, for the job's page"
        )
    return parser


def _job(args: argparse.Namespace) -> tuple[str, jobs.Job]:
    """The job that the arguments mean, and its name. ValueError for one that is neither a job nor a profile."""
    table = args.jobs or TABLE
    if args.target in jobs.names(table):
        name, job = args.target, jobs.load(args.target, table)
    else:
        name, job = Path(args.target).stem, jobs.DEFAULTS | {"profile": args.target}
    if args.stages:
        job = job | {"stages": args.stages.split(",")}
        jobs.check_stages(job["stages"], "--stages")
    if args.timeout_minutes:
        job = job | {"timeout_minutes": args.timeout_minutes}
    if args.set or job["programs"]:
        source = profile_of(name, job)
        job["profile"] = jobs.settle(jobs.with_programs(source.raw, job, os.environ), args.set)
        if source.folder:
            job = job | {"folder": str(source.folder)}
    return name, job


def profile_of(name: str, job: jobs.Job) -> profile.Source:
    """Return the profile of a job as it is written; name: of the job, for messages. Raises `ProfileError`."""
    given = job["profile"]
    if isinstance(given, dict):
        return profile.inline(given, name, job.get("folder"))
    return profile.read(given, PROFILES)


def _run(args: argparse.Namespace, later: shared.Place, parent: Path) -> int:
    start, begin = datetime.datetime.now(datetime.UTC), time.monotonic()
    artifacts = parent / Path(args.target).stem
    here = shared.Place("artifacts", artifacts)
    interrupt, done = Interrupt(), list[Stage]()
    try:
        fresh(artifacts)
        name, job = _job(args)
        runner = Runner(job, args.cluster, here, interrupt)
    except (ValueError, OSError) as error:
        refused = error if isinstance(error, RefusedJob) else RefusedJob(error)
        write_or_drop(refused, sys.stderr)
        shared.leave(
            shared.Result(refused.ended, str(refused), False), later, here, None, Path(), link=args.artifacts_url
        )
        _complain(refused.ended, later, here)
        return refused.ended
    with interrupt.noticed():
        installation = _installation(runner, done)
        _finish_job(runner, done, installation)
        result = shared.Result(
            runner.ended(installation), runner.cause(installation), args.keep, "wait" not in job["stages"]
        )
        runner.collect()
        plan = rundir.load_plan(runner.run_dir) if (runner.run_dir / rundir.PLAN).exists() else None
        if plan is not None and args.keep:
            shared.write_pull_secret(runner.run_dir)
        proxy = _proxy(args, plan, runner.run_dir / RunFile.FORWARD_LOG) if args.keep and not interrupt() else ""
        shared.leave(result, later, here, plan, runner.run_dir, proxy=proxy, link=args.artifacts_url)
        if not args.keep and not interrupt():
            _report(done, runner.stage("destroy", last=True))
            if runner.job["foreign"]:
                _report(done, runner.program("foreign", "end"))
    if interrupt():
        write_or_drop(f"interrupted; to remove it: {program()} destroy --cluster {args.cluster}", sys.stderr)
    found = None if job["expect"] else runner.found
    here.make("junit.xml", lambda: junit.text(cases(name, done, artifacts, found)))
    if args.results:
        try:
            records.append(_record(name, job, done, start, time.monotonic() - begin, plan), args.results)
        except OSError as error:
            here.lose(str(args.results), error)
    _complain(result.ended, later, here)
    if not any(stage.error for stage in done):
        return 0
    return int(result.ended or outcome.Class.OTHER)


def _complain(ended: outcome.Class, *places: shared.Place) -> None:
    for place in places:
        if place.problem:
            write_or_drop(f"agentlab: {place.problem}; the result of the installation is {int(ended)}", sys.stderr)


def _installation(runner: Runner, done: list[Stage]) -> Stage:
    """Run the job's stages until one fails, and gather after a failure; report all but the last one, and return that."""
    *before, last = runner.job["stages"]
    for name in (*before, last):
        program = jobs.MEANWHILE.get(name)
        if program and runner.job[program]:
            stage, other = _run_concurrently(runner, name, program)
            _report(done, other)
        else:
            stage = runner.stage(name)
        if stage.error:
            if name in GATHER_AFTER and not runner.interrupt():
                runner.stage("gather", last=True)
            break
        if name != last:
            _report(done, stage)
        for words in jobs.preparation_programs(runner.job) if name == "prepare" != last else ():
            stage = runner.program(*words)
            if stage.error:
                return stage
            _report(done, stage)
    return stage


def _run_concurrently(runner: Runner, name: str, program: str) -> tuple[Stage, Stage]:
    """Run a stage and a program of `ci` at the same time; return both."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(runner.program, program)
        return runner.stage(name), other.result()


def _finish_job(runner: Runner, done: list[Stage], last: Stage) -> None:
    """Report the last stage of the installation as the job expects it to end; then what else the job has.

    The order is that of `jobs.later_steps`.
    """
    _report(done, _struck(runner, runner.check_result(last)))
    if last.error or runner.interrupt():
        return
    run: dict[str, Callable[[], Stage]] = {
        "add_nodes": lambda: runner.stage("add_nodes"),
        "validate-day2": lambda: runner.stage("validate")._replace(name="validate-day2"),
        "again-add_nodes": lambda: runner.run_again("add_nodes"),
        "again": runner.run_again,
        "command": runner.command,
        "gather": lambda: runner.stage("gather"),
    }
    for name in jobs.later_steps(runner.job):
        _report(done, run[name]() if name in run else runner.program(name))
        if done[-1].error:
            if name in GATHER_AFTER:
                runner.stage("gather", last=True)
            return


def _struck(runner: Runner, last: Stage) -> Stage:
    """Return the last stage with an error if a fault of the profile was never injected: the job would prove nothing about it."""
    if last.error or last.name not in ("wait", "validate") or not (runner.run_dir / rundir.PLAN).exists():
        return last
    plan = rundir.load_plan(runner.run_dir)
    lacking = faults.outstanding(plan) if plan["hypervisor"]["kind"] != "ssh" else []  # its state is on another host
    return last._replace(error=f"never injected: {', '.join(lacking)}") if lacking else last


def _report(done: list[Stage], stage: Stage) -> None:
    done.append(stage)
    write_or_drop(f"{'FAIL' if stage.error else 'ok  '}  {stage.name:<10} {stage.seconds:7.1f} s  {stage.error}")


def _proxy(args: argparse.Namespace, plan: Plan | None, log: Path) -> str:
    """Return the URL of a proxy into the cluster's network, and start ours if the cluster is in a sandbox that runs.

    Ours ends with the sandbox; log: its output. A proxy that does not start is a message, not a failure of the job.
    """
    if plan is None or plan["hypervisor"]["kind"] != "sandbox" or (args.proxy_url and not args.proxy_listen):
        return str(args.proxy_url)
    if not namespaces.find(Path(plan["hypervisor"]["state_dir"])):
        return ""
    running = _running_proxy(args.cluster)
    if running and not args.proxy_listen:
        return f"http://{forward.LOOPBACK}:{running}/"
    address, __, port = (args.proxy_listen or f"{forward.LOOPBACK}:0").rpartition(":")
    address = address.strip("[]")
    verb = ["forward", f"{forward.PROXY}={port}", "--address", address, "--cluster", args.cluster]
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", __package__.rpartition(".")[0], *verb],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + PROXY_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if (found := _running_proxy(args.cluster)) and found != running:
                return str(args.proxy_url) or f"http://{in_url(address)}:{found}/"
            time.sleep(0.1)
        problem = log.read_text().strip()
    except OSError as error:
        problem = str(error)
    write_or_drop(
        f"agentlab: the proxy into the sandbox did not start; the kubeconfig has no proxy-url: {problem}", sys.stderr
    )
    return ""


def _running_proxy(name: str) -> int | None:
    try:
        return forward.ports(find(name)).get(forward.PROXY)
    except (LabError, ValueError, OSError):
        return None


def _gather(args: argparse.Namespace, later: shared.Place, artifacts: Path) -> int:
    """Gather into the artifacts, with the names of OpenShift CI; destroy also what could not be gathered."""
    interrupt, done = Interrupt(), list[Stage]()
    try:
        artifacts.mkdir(parents=True, exist_ok=True)
        here = shared.Place("artifacts", artifacts)
        runner = Runner(jobs.DEFAULTS, args.cluster, here, interrupt)
    except (RefusedJob, OSError) as error:
        write_or_drop(error, sys.stderr)
        return int(outcome.Class.OTHER)
    with interrupt.noticed():
        _report(done, runner.stage("gather"))
        runner.collect()
        shared.explain(runner.cause(Stage("wait", 0, "no first cause was found")), later, link=args.artifacts_url)
        if args.destroy and not interrupt():
            _report(done, runner.stage("destroy", last=True))
    for place in (later, here):
        if place.problem:
            write_or_drop(f"agentlab: {place.problem}", sys.stderr)
    return int(any(stage.error for stage in done))


def _validate(args: argparse.Namespace, __: shared.Place, artifacts: Path) -> int:
    """Run the stage validate; `junit_agentlab.xml` has a case for each check."""
    try:
        artifacts.mkdir(parents=True, exist_ok=True)
        runner = Runner(jobs.DEFAULTS, args.cluster, shared.Place("artifacts", artifacts))
        done = runner.stage("validate")
        checks_junit(args.cluster, done).write(str(artifacts / "junit_agentlab.xml"), pretty=True)
    except (RefusedJob, OSError) as error:
        write_line(error, sys.stderr)
        return int(outcome.Class.OTHER)
    _report([], done)
    return int(runner.ended(done))


def _execute(args: argparse.Namespace, __: shared.Place, artifacts: Path) -> int:
    """Run a command of the caller's in the cluster's network; what it writes to the artifacts is not redacted."""
    try:
        cluster = find(args.cluster)
        cluster.check_remote_owner()
        junits = artifacts / "junit"
        junits.mkdir(parents=True, exist_ok=True)
        places = {"KUBECONFIG": cluster.kubeconfig, "ARTIFACT_DIR": artifacts, "JUNIT_DIR": junits}
        settings = [f"{name}={path}" for name, path in places.items()]
        return become([*cluster.enter(os.getcwd()), "env", *settings, *args.program])
    except (LabError, ValueError, OSError) as error:
        write_line(f"agentlab: {error}", sys.stderr)
        return Exit.FAILED


def _record(
    name: str, job: jobs.Job, done: list[Stage], start: datetime.datetime, seconds: float, plan: Plan | None
) -> records.Record:
    host = platform.freedesktop_os_release()["PRETTY_NAME"]
    if "boot" in job["stages"]:  # other jobs need no accelerator, and detection takes a while
        host += ", KVM" if kvm.usable()["usable"] else ", TCG"
    record: records.Record = {
        "job": name,
        # Paths of real programs are part of a profile's contents, and differ from one machine to the next.
        "profile": records.profile_id(profile_of(name, job)) if job["profile"] and not job["programs"] else None,
        "commit": records.commit(ROOT),
        "date": start.isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "result": records.FAILED if any(stage.error for stage in done) else records.PASSED,
        "stages": {stage.name: round(stage.seconds, 1) for stage in done},
        "host": host,
    }
    if plan:
        record["nodes"] = len(plan["nodes"])
    if checked := [stage.checks for stage in done if stage.checks]:
        record["checks"] = sum(bool(check["ok"]) for check in checked[-1])
    if shown := [line for stage in done if stage.name == "fencing" for line in stage.shown]:
        record["shown"] = shown
    return record


_COMMANDS = {"run": _run, "gather": _gather, "validate": _validate, "exec": _execute}
