"""Runs one job of jobs.yml through ansible-runner, and writes the artifacts for a CI system into one directory.

The folder has `junit.xml` (a test case per stage), `events.jsonl` (Ansible's events), `<stage>.log` (its output), `run/` (the
plan, the inputs, the manifests and the logs of the run directory) and, after a failure, `report/` with the first cause in
`summary.txt`. All of it is redacted. ARTIFACT_DIR and SHARED_DIR of OpenShift CI are taken when they are set; the latter gets
`auth/` of a cluster that is kept. The cluster is destroyed at the end unless --keep is given, and that is a stage too.
The outcome is appended to `results.jsonl`, from which CI chooses what to run next.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import ansible_runner
import yaml
from ansible_collections.agentlab.ocp.ci import results
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import lab
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import PLAYBOOKS, ROOT, run_dir
from ansible_collections.agentlab.ocp.plugins.module_utils.redact import Redactor, redact
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import CONTROLS
from ansible_collections.agentlab.ocp.plugins.module_utils.report.secrets import of_run
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import kvm
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RUN_STAGES
from junitparser import Failure, JUnitXml, TestCase, TestSuite

JOBS = Path(__file__).with_name("jobs.yml")
GATHER_AFTER = {"boot", "wait", "validate"}
BINARIES = Path(sys.executable).parent
LARGE = 64 * 2**20


class Stage(NamedTuple):
    """Result of one stage; error is the message of the failed task, or empty; exit_code its reported exit code.

    changed: the tasks that changed something.
    """

    name: str
    seconds: float
    error: str
    exit_code: int | None = None
    changed: tuple[str, ...] = ()


def load_job(name: str, path: Path = JOBS) -> dict[str, Any]:
    """Return a job with defaults. ValueError lists the existing jobs, or the stages."""
    table = yaml.safe_load(path.read_text())
    if name not in table["jobs"]:
        raise ValueError(f"{path.name}: no job {name!r}; there are: {', '.join(sorted(table['jobs']))}")
    job = {**table["defaults"], **table["jobs"][name]}
    unknown = [stage for stage in job["stages"] if stage not in RUN_STAGES]
    if unknown:
        raise ValueError(
            f"{path.name}: jobs.{name}.stages has {', '.join(unknown)}; stages are {', '.join(RUN_STAGES)}"
        )
    return job


class Runner:
    """Runs playbooks of one job; all output goes to the artifacts."""

    def __init__(self, job: dict[str, Any], cluster: str, artifacts: Path) -> None:
        self.job, self.cluster, self.artifacts = job, cluster, artifacts
        self.run_dir = run_dir(cluster)
        self.profile = job["profile"]
        if isinstance(self.profile, dict):
            artifacts.mkdir(parents=True)
            self.profile = str(artifacts / "profile.yml")
            Path(self.profile).write_text(yaml.safe_dump(job["profile"], sort_keys=False))
        self.end = time.monotonic() + job["timeout_minutes"] * 60
        # The profile is validated before anything runs.
        lab.inputs("deploy", cluster, self.profile)

    def stage(self, name: str, events: TextIO, *, last: bool = False) -> Stage:
        """Run one playbook. It is stopped after `idle_minutes` without output, or after the job's `timeout_minutes` (`last`: not then)."""
        start, failed, exit_code = time.monotonic(), "", None
        changed: list[str] = []
        inventory, variables = lab.inputs(name, self.cluster, self.profile)

        known = Redactor(of_run(self.run_dir))

        def keep(event: dict[str, Any]) -> bool:
            nonlocal failed, exit_code
            events.write(known.feed(json.dumps(event, default=str)) + "\n")
            data = event.get("event_data") or {}
            if event["event"] == "runner_on_ok" and (data.get("res") or {}).get("changed"):
                changed.append(str(data.get("task")))
            if (
                not failed
                and event["event"] in ("runner_on_failed", "runner_on_unreachable")
                and not data.get("ignore_errors")
            ):
                result = data.get("res") or {}
                failed, exit_code = f"{data.get('task')}: {result.get('msg', '')}", result.get("exit_code")
            return False

        with tempfile.TemporaryDirectory(prefix="agentlab-runner-") as private:
            hosts = Path(private) / "hosts.yml"
            hosts.write_text(inventory)
            path = f"{BINARIES}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
            limits = {"idle_timeout": int(self.job["idle_minutes"] * 60)}
            if not last:
                limits["job_timeout"] = max(int(self.end - start), 1)
            done = ansible_runner.run(
                private_data_dir=private,
                ident=name,
                event_handler=keep,
                project_dir=str(ROOT),
                playbook=str(PLAYBOOKS / f"{name}.yml"),
                inventory=str(hosts),
                extravars={**variables, **self.job["variables"]},
                settings=limits,
                envvars={"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1", "PATH": path},
            )
            text = Path(done.stdout.name).read_text(errors="replace")
        secrets = of_run(self.run_dir)
        (self.artifacts / f"{name}.log").write_text(redact(text, secrets))
        error = "" if done.rc == 0 else failed or f"{name}: {done.status}, exit code {done.rc}"
        return Stage(name, time.monotonic() - start, redact(error, secrets), exit_code, tuple(changed))

    def again(self, events: TextIO) -> Stage:
        """Run the finished deploy again, which must change nothing."""
        done = self.stage("deploy", events)
        error = done.error or (f"changed by a finished deploy: {', '.join(done.changed)}" if done.changed else "")
        return done._replace(name="again", error=error)

    def check_result(self, done: Stage) -> Stage:
        """Return the last stage of a job that expects a failure: its error lists unexpected results."""
        expect = self.job["expect"]
        log, summary = self.run_dir / "logs/wait-for.log", self.run_dir / "report/summary.txt"
        said = log.read_text() if log.exists() else ""
        first = summary.read_text().partition("\n")[0] if summary.exists() else "no report"
        wrong = [f"{text!r} is not in {log.name}" for text in expect["log"] if text not in said]
        if not done.error:
            wrong.append("nothing failed")
        if done.exit_code != expect["exit_code"]:
            wrong.append(f"exit code {done.exit_code}, expected {expect['exit_code']}")
        if not re.match(f"First cause: {expect['cause']}", first):
            wrong.append(f"{first!r}, expected {expect['cause']!r}")
        return done._replace(error="; ".join([*wrong, *([done.error] if wrong and done.error else [])]))

    def collect(self) -> None:
        """Copy the run directory without secrets."""
        secrets = of_run(self.run_dir)
        for source, target in self._worth_keeping():
            target.parent.mkdir(parents=True, exist_ok=True)
            data = source.read_bytes()
            try:
                target.write_text(redact(data.decode(), secrets))
            except UnicodeDecodeError:  # an archive, redacted when it was gathered
                target.write_bytes(data)

    def _worth_keeping(self) -> Iterator[tuple[Path, Path]]:
        for path in sorted(self.run_dir.rglob("*")):
            inside = path.relative_to(self.run_dir)
            if (
                path.is_file()
                and inside.parts[0] not in ("auth", "tls", "ssh")
                and path.suffix != ".iso"
                and path.stat().st_size < LARGE
            ):
                folder = "" if inside.parts[0] == "report" else "run"
                yield path, self.artifacts / folder / inside


def junit(job: str, stages: list[Stage]) -> JUnitXml:
    """Return the stages as test cases of one suite."""
    suite = TestSuite(job)
    for stage in stages:
        case = TestCase(stage.name, classname=job, time=round(stage.seconds, 1))
        if stage.error:
            case.result = [Failure(CONTROLS.sub("", stage.error))]
        suite.add_testcase(case)
    xml = JUnitXml()
    xml.add_testsuite(suite)
    return xml


def run(runner: Runner, events: TextIO, keep: bool) -> Iterator[Stage]:
    """Yield the job's stages until one fails, then gather, and destroy."""
    done = Stage("", 0, "")
    for name in runner.job["stages"]:
        if done.name:
            yield done
        done = runner.stage(name, events)
        if done.error:
            break
    if runner.job["again"] and not done.error:
        yield done
        done = runner.again(events)
    if runner.job["gather"] and not done.error:
        yield done
        done = runner.stage("gather", events)
    elif done.error and done.name in GATHER_AFTER:
        runner.stage("gather", events, last=True)
    yield runner.check_result(done) if runner.job["expect"] else done
    runner.collect()
    shared = os.environ.get("SHARED_DIR")
    if keep and shared and (runner.run_dir / "auth").is_dir():
        shutil.copytree(runner.run_dir / "auth", shared, dirs_exist_ok=True)
    if not keep:
        yield runner.stage("destroy", events, last=True)


def record(
    name: str, job: dict[str, Any], done: list[Stage], *, commit: str, start: datetime.datetime
) -> results.Record:
    """The line of results.jsonl for a job that started at `start` on `commit`."""
    profile = job["profile"]
    host = platform.freedesktop_os_release()["PRETTY_NAME"]
    if "boot" in job["stages"]:  # other jobs need no accelerator, and detection takes a while
        host += ", KVM" if kvm.usable()["usable"] else ", TCG"
    return {
        "job": name,
        "profile": profile if isinstance(profile, str) else None,
        "commit": commit,
        "date": start.isoformat(timespec="seconds"),
        "seconds": round(sum(stage.seconds for stage in done), 1),
        "result": "failed" if any(stage.error for stage in done) else "passed",
        "stages": {stage.name: round(stage.seconds, 1) for stage in done},
        "host": host,
    }


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/run-job", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("job")
    parser.add_argument("--artifacts", type=Path, default=Path(os.environ.get("ARTIFACT_DIR") or ROOT / "artifacts"))
    parser.add_argument("--cluster", default="ci", help="name of the cluster (default: %(default)s)")
    parser.add_argument("--keep", action="store_true", help="do not destroy the cluster")
    parser.add_argument(
        "--results",
        type=Path,
        default=results.RESULTS,
        help="append the outcome to this file (default: ci/results.jsonl)",
    )
    args = parser.parse_args(argv)
    artifacts = args.artifacts.absolute() / args.job
    try:
        job = load_job(args.job)
        shutil.rmtree(artifacts, ignore_errors=True)
        runner = Runner(job, args.cluster, artifacts)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    artifacts.mkdir(parents=True, exist_ok=True)
    done: list[Stage] = []
    commit, begin = results.commit(), datetime.datetime.now(datetime.UTC)
    with (artifacts / "events.jsonl").open("w", encoding="utf-8") as events:
        for stage in run(runner, events, args.keep):
            done.append(stage)
            print(
                f"{'FAIL' if stage.error else 'ok  '}  {stage.name:<10} {stage.seconds:7.1f} s  {stage.error}",
                flush=True,
            )
    results.append(record(args.job, job, done, commit=commit, start=begin), args.results)
    junit(args.job, done).write(str(artifacts / "junit.xml"), pretty=True)
    return int(any(stage.error for stage in done))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
