"""Runs the stages of one job through ansible-runner; all output goes to the job's artifacts."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._deps import optional
from ...ci import jobs, outcome, shared
from ...ci.jobs import Job
from ...plan import profile, rundir
from ...redact import Redactor, redact
from ...release import mirror_set
from ...report import page
from ...report.page import junit
from ...report.page.model import Run
from ...report.secrets import of_run
from ...state import write_atomic
from ...state.owner import OwnerError
from ...terminal import write_or_drop
from ...vocabulary import RunFile
from .. import lab, mirror, orphans
from ..places import PLAYBOOKS, PROFILES, ROOT, run_dir

if TYPE_CHECKING:
    import ansible_runner
    import junitparser
else:
    ansible_runner = optional("ansible_runner", "ansible-runner")
    junitparser = optional("junitparser")

CLI = __package__.rpartition(".")[0]
GATHER_AFTER = {"boot", "wait", "validate", "add_nodes", "validate-day2"}
LARGE = 64 * 2**20
#: Seconds that all verbs together may take.
VERBS_LIMIT = 1800
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What is base64 or JSON may not be changed, and has been redacted when it was made.
_WITHOUT_SECRETS = {Path(page.REPORT, name) for name in (page.PAGE, page.DOCUMENT)}
_BOOTSTRAPPED = "cluster bootstrap is complete"


class Stage(NamedTuple):
    """Result of one stage; error is the message of the failed task, or empty; exit_code its reported exit code.

    changed: the tasks that changed something; checks: those of the stage validate, `{"name", "ok", "found"}`; shown: the
    results that a program printed.
    """

    name: str
    seconds: float
    error: str
    exit_code: int | None = None
    changed: tuple[str, ...] = ()
    checks: tuple[dict[str, Any], ...] = ()
    shown: tuple[str, ...] = ()


class RefusedJob(ValueError):
    """A job that cannot start: its text, and the class of the failure.

    `ended` is CONFIGURATION for an invalid profile or plan, and INFRASTRUCTURE for a file that cannot be read or a
    cluster of another owner.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        configured = isinstance(error, ValueError) and not isinstance(error, OwnerError)
        self.ended = outcome.Class.CONFIGURATION if configured else outcome.Class.INFRASTRUCTURE


class Interrupt:
    """Whether a signal has asked the job to end; the number of the signal.

    Call it: True from the first signal on. It is passed to Ansible as the callback that cancels it.
    """

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> bool:
        return self.number != 0

    @contextmanager
    def noticed(self) -> Iterator[None]:
        """Note SIGINT, SIGTERM and SIGHUP instead of ending with them, while the block runs; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._note) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        self.number = number


class Runner:
    """Runs playbooks of one job on `cluster`; artifacts: the job's directory, which exists, and may be full.

    Raises `RefusedJob` for a profile, plan or owner that is not right, before anything runs.
    """

    def __init__(self, job: Job, cluster: str, artifacts: shared.Place, interrupt: Interrupt | None = None) -> None:
        self.job, self.cluster, self.artifacts = job, cluster, artifacts
        self.interrupt = interrupt or Interrupt()
        self.run_dir = run_dir(cluster)
        given, fields = job["profile"], dict[str, object]()
        if job["mirrored"]:
            # The profile is checked before there is a registry, into which `ci/mirrored.py` copies; that replaces the file.
            artifacts.write(
                mirror.OUTPUT,
                rundir.dump(mirror_set.resource([{"source": "none.invalid", "mirrors": ["none.invalid"]}])),
            )
            fields["installer.mirrors_file"] = str(artifacts.folder / mirror.OUTPUT)
        if isinstance(given, dict) or fields:
            # Named as the job: former runs of a profile are known by its name.
            name = f"{artifacts.folder.name}.yml"
            source = (
                profile.inline(given, name, job.get("folder"))
                if isinstance(given, dict)
                else profile.read(given, PROFILES)
            )
            artifacts.write(name, rundir.dump(jobs.place_fields(profile.rooted_source(source).raw, fields)))
            given = str(artifacts.folder / name)
        self.profile = given or None
        self.found: Run | None = None
        self.end = time.monotonic() + job["timeout_minutes"] * 60
        try:
            lab.inputs("deploy" if self.profile else "validate", cluster, self.profile)
        except (ValueError, OSError) as error:
            raise RefusedJob(error) from error

    def stage(self, name: str, *, last: bool = False) -> Stage:
        """Run one playbook. It is stopped after `idle_minutes` without output, or after the job's `timeout_minutes` (`last`: not then).

        name: of a playbook, without `.yml`; last: gather and destroy get their time also when the job's is over. Output
        and events are in the artifacts, redacted. Errors are in the result; none are raised for a refused profile or
        plan.
        """
        start, failed, exit_code = time.monotonic(), "", None
        changed: list[str] = []
        checks: list[dict[str, Any]] = []
        try:
            inventory, variables = lab.inputs(name, self.cluster, self.profile)
        except (ValueError, OSError) as refusal:
            return Stage(name, 0, str(refusal), int(RefusedJob(refusal).ended))
        known = of_run(self.run_dir)
        redactor = Redactor(known)

        def keep(event: dict[str, Any]) -> bool:
            nonlocal failed, exit_code, known, redactor
            if event["event"] == "playbook_on_task_start" and not known:
                # The first stage makes the passwords of a run.
                known = of_run(self.run_dir)
                redactor = Redactor(known)
            if event["stdout"]:
                write_or_drop(redact(event["stdout"], known))
            self.artifacts.add("events.jsonl", redactor.feed(json.dumps(event, default=str)) + "\n")
            data = event.get("event_data") or {}
            result = data.get("res") or {}
            if event["event"] == "runner_on_ok" and data.get("resolved_action") == "agentlab.ocp.cluster_info":
                checks.extend(result.get("checks") or ())
            if event["event"] == "runner_on_ok" and result.get("changed"):
                changed.append(str(data.get("task")))
            if (
                not failed
                and event["event"] in ("runner_on_failed", "runner_on_unreachable")
                and not data.get("ignore_errors")
            ):
                failed, exit_code = f"{data.get('task')}: {result.get('msg', '')}", result.get("exit_code")
            return False

        with tempfile.TemporaryDirectory(prefix="agentlab-runner-") as private:
            hosts = Path(private) / "hosts.yml"
            hosts.write_text(inventory)
            limits = {"idle_timeout": int(self.job["idle_minutes"] * 60)}
            if not last:
                limits["job_timeout"] = max(int(self.end - start), 1)
            done = ansible_runner.run(
                private_data_dir=private,
                ident=name,
                event_handler=keep,
                cancel_callback=self.interrupt,
                project_dir=str(ROOT),
                playbook=str(PLAYBOOKS / f"{name}.yml"),
                inventory=str(hosts),
                extravars={**variables, **self.job["variables"]},
                settings=limits,
                envvars={
                    **lab.environment(self.run_dir),
                    "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                    "ANSIBLE_NOCOLOR": "1",
                },
                quiet=True,
            )
            text = Path(done.stdout.name).read_text(errors="replace")
        if self.interrupt():
            orphans.end(self.run_dir, own=True)
        secrets = of_run(self.run_dir)
        self.artifacts.write(f"{name}.log", redact(text, secrets))
        error = "" if done.rc == 0 else failed or f"{name}: {done.status}, exit code {done.rc}"
        if self.interrupt():
            error = f"{name}: interrupted by {signal.Signals(self.interrupt.number).name}"
        return Stage(name, time.monotonic() - start, redact(error, secrets), exit_code, tuple(changed), tuple(checks))

    def run_again(self, name: str = "deploy") -> Stage:
        """Run a finished playbook again, which must change nothing.

        The result is named `again`, or `again-NAME` for another than `deploy`; its error lists the tasks that changed
        something.
        """
        done = self.stage(name)
        error = done.error or (f"changed by a finished {name}: {', '.join(done.changed)}" if done.changed else "")
        return done._replace(name="again" if name == "deploy" else f"again-{name}", error=error)

    def program(self, name: str, *arguments: str) -> Stage:
        """Run `ci/<name>.py` with the cluster and `arguments`: `verbs` or `fencing` on an installed one, or those during stages.

        It has `VERBS_LIMIT` seconds; its output is `<name>.log` in the artifacts. The error has the lines that are not
        `ok`.
        """
        script = str(ROOT / f"ci/{name}.py")
        return self._process("-".join([name, *arguments]), [sys.executable, script, self.cluster, *arguments])

    def command(self) -> Stage:
        """Run the job's command as `agentlab ci exec` does: in the cluster's network, by a shell; its JUnit stays in the artifacts."""
        verb = ["ci", "exec", "--cluster", self.cluster, "--artifacts", str(self.artifacts.folder)]
        return self._process("command", [sys.executable, "-m", CLI, *verb, "--", "sh", "-c", self.job["command"]])

    def _process(self, name: str, command: list[str]) -> Stage:
        start, status = time.monotonic(), 1
        # A file without a name: whatever ends this job, the artifacts never have the secrets.
        with tempfile.TemporaryFile() as log:
            with contextlib.suppress(subprocess.TimeoutExpired):
                # Its status decides: what a library prints besides is not a failure.
                status = subprocess.run(
                    command,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    check=False,
                    timeout=VERBS_LIMIT,
                ).returncode
            log.seek(0)
            text = redact(log.read().decode(errors="replace"), of_run(self.run_dir))
        self.artifacts.write(f"{name}.log", text)
        shown = tuple(line[4:].strip() for line in text.splitlines() if line.startswith("ok  "))
        failed = [line for line in text.splitlines() if not line.startswith("ok  ")] if status else []
        error = "; ".join(failed) or ("not finished" if status else "")
        return Stage(name, time.monotonic() - start, error, shown=shown)

    def ended(self, done: Stage) -> outcome.Class:
        """The class of the installation after its last stage.

        done: the last stage that ran. Whether the bootstrap was complete is read from the log of the wait.
        """
        if not done.error:
            return outcome.Class.INSTALLED
        log = self.run_dir / RunFile.WAIT_LOG
        bootstrapped = log.exists() and _BOOTSTRAPPED in log.read_text(errors="replace")
        found = outcome.classify(done.name, done.error, done.exit_code, bootstrapped=bootstrapped)
        # An interruption is never the fault of the profile.
        return outcome.Class.INFRASTRUCTURE if self.interrupt() and found == outcome.Class.CONFIGURATION else found

    def cause(self, done: Stage) -> str:
        """The report's first cause with its next step if there is a report, otherwise the error of the failed stage.

        done: as for `ended`. Without an error the text is empty; with a report it has three parts: cause, next step,
        error.
        """
        summary = self.run_dir / "report/summary.txt"
        if done.error and done.name in GATHER_AFTER and summary.exists():
            first = summary.read_text(errors="replace").splitlines()[:2]
            if first and first[0].startswith("First cause: "):
                return "\n".join([*first, done.error])
        return done.error

    def check_result(self, done: Stage) -> Stage:
        """Return the last stage of a job that expects a failure: its error lists unexpected results.

        done: returned as it is unless the job has `expect`: then an empty error means that stage, log, class and first
        cause are as expected. Before the wait there is no report; the error is the cause.
        """
        expect = self.job["expect"]
        if expect is None:
            return done
        stage, log = jobs.failing_stage(expect), self.run_dir / RunFile.WAIT_LOG
        output = log.read_text() if log.exists() else ""
        wrong = [f"{text!r} is not in {log.name}" for text in expect["log"] if text not in output]
        if not done.error:
            wrong.append("nothing failed")
        if done.name != stage:
            wrong.append(f"ended with {done.name}, expected {stage}")
        # Only the wait has a program whose exit code must be right by itself.
        code = done.exit_code if stage == "wait" else int(self.ended(done))
        if code != expect["exit_code"]:
            wrong.append(f"exit code {code}, expected {expect['exit_code']}")
        first = self._reported() if stage == "wait" else done.error.partition("\n")[0]
        if not re.match(("First cause: " if stage == "wait" else "") + expect["cause"], first):
            wrong.append(f"{first!r}, expected {expect['cause']!r}")
        return done._replace(error="; ".join([*wrong, *([done.error] if wrong and done.error else [])]))

    def _reported(self) -> str:
        summary = self.run_dir / "report/summary.txt"
        return summary.read_text().partition("\n")[0] if summary.exists() else "no report"

    def collect(self) -> None:
        """Copy the run directory without secrets, with the page of the run, and pack the report under the names of OpenShift CI.

        Private folders (auth, tls, ssh), ISOs, files from `LARGE` bytes on, and binary files outside of the report, such as
        captured packets, are left out. All files are 0600. A failure to write is noted in the artifacts' place.
        """
        secrets = of_run(self.run_dir)
        try:
            self.found = page.write(self.run_dir)
            for source, target in self._worth_keeping():
                data, inside = source.read_bytes(), source.relative_to(self.run_dir)
                if inside not in _WITHOUT_SECRETS:
                    try:
                        data = redact(data.decode(), secrets).encode()
                    except UnicodeDecodeError:
                        if inside.parts[0] != page.REPORT:
                            continue  # in the report it is an archive, redacted when it was gathered
                write_atomic(target, data, 0o600)
            shared.archives(self.run_dir / "report", self.artifacts.folder)
        except OSError as error:
            self.artifacts.lose("all of the run directory", error)

    def _worth_keeping(self) -> Iterator[tuple[Path, Path]]:
        for path in sorted(self.run_dir.rglob("*")):
            inside = path.relative_to(self.run_dir)
            if (
                path.is_file()
                and inside.parts[0] not in ("auth", "tls", "ssh")
                and path.suffix != ".iso"
                and inside != Path(page.REPORT, page.JUNIT)  # is a part of the job's own
                and path.stat().st_size < LARGE
            ):
                folder = "" if inside.parts[0] == "report" else "run"
                yield path, self.artifacts.folder / folder / inside


def cases(job: str, stages: list[Stage], artifacts: Path, run: Run | None) -> list[junit.Suite]:
    """Return the stages of a job as a suite, then what its run reports about hosts, checks and operators (None: a failure was expected).

    job: its name; artifacts: directory with `STAGE.log`, whose last `junit.TAIL` lines are the output of a case.
    """
    made = []
    for stage in stages:
        log = artifacts / f"{stage.name}.log"
        output = "\n".join(log.read_text(errors="replace").splitlines()[-junit.TAIL :]) if log.exists() else ""
        failure = outcome.printable(junit.body(run, stage.error) if run and stage.error else stage.error)
        made.append(
            junit.Case(name=stage.name, seconds=stage.seconds, failure=failure, output=outcome.printable(output))
        )
    suite = junit.Suite(name=job, cases=made)
    return [suite, *(one for one in junit.suites(run) if not one.name.endswith("stages"))] if run else [suite]


def checks_junit(cluster: str, stage: Stage) -> junitparser.JUnitXml:
    """Return the checks of a cluster as test cases; a stage without any is a case of its own."""
    suite = junitparser.TestSuite("agentlab validate")
    for check in stage.checks or ({"name": "validate", "ok": not stage.error, "found": stage.error},):
        case = junitparser.TestCase(str(check["name"]), classname=cluster)
        if not check["ok"]:
            case.result = [junitparser.Failure(outcome.printable(str(check["found"])))]
        suite.add_testcase(case)
    xml = junitparser.JUnitXml()
    xml.add_testsuite(suite)
    return xml


def fresh(path: Path) -> Path:
    """An empty directory at `path`."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
