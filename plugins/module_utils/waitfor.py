"""`wait-for`, whole: what the command line and the Ansible module share."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

from .assisted.client import AssistedClient
from .assisted.watcher import BootstrapFailed, BootstrapWatcher
from .cluster.client import ClusterClient
from .cluster.watcher import STABLE_FOR, TROUBLESHOOTING, InstallFailed, InstallWatcher, operator_report
from .errors import ClusterError
from .files import explain
from .installer.binary import InstallerBuild, RunningProgram, copy_left, prepare, release_of, without_password
from .installer.state import StateError, WaitFor, load_wait_for
from .state import write_atomic
from .state.recording import Tape, no_tape
from .vocabulary import Exit, RunFile
from .watch import Clock, Diagnose, Message, no_diagnosis

LAG_SECONDS = 600
"""How much longer than the built-in watchers a build of openshift-install may wait: it polls and settles by itself."""
EVENTS = ("bootstrap-complete", "install-complete")

Report = Callable[[str, str], None]
Show = Callable[[dict[str, Any], list[dict[str, Any]]], None]
ShowOperators = Callable[[list[dict[str, Any]]], None]


class Outcome(NamedTuple):
    """exit_code as openshift-install's; error: why not 0; console: URL of the web console, if there is one.

    The codes are those of `Exit`: OK, FAILED, BOOTSTRAP, INSTALL or OPERATORS; with a build of openshift-install, any
    that it ends with.
    """

    exit_code: int
    error: str = ""
    console: str | None = None


class Watch(TypedDict, total=False):
    """What is watched, and for how long.

    stall: seconds without any change after which to give up (0: only upstream's limits); diagnose: sees causes for which that is
    sooner; controller: whether the assisted-installer-controller must have completed; show_operators: gets each list of
    ClusterOperators; stable_for: seconds for which no operator may have progressed.
    """

    stall: float
    diagnose: Diagnose
    controller: bool
    clock: Clock
    show_operators: ShowOperators
    stable_for: float


def wait_for(
    event: str,
    directory: Path,
    report: Report,
    show: Show = lambda cluster, events: None,
    *,
    skip_password: bool = False,
    tape: Tape = no_tape,
    **watch: Unpack[Watch],
) -> Outcome:
    """Wait for one of EVENTS of the installation with assets in `directory`.

    report(level, text) gets each message; show(cluster, events) each state of the service; skip_password: do not report the password of
    kubeadmin; tape: gets each answer of both APIs.
    """
    try:
        known = load_wait_for(directory)
        kube = ClusterClient(directory / RunFile.KUBECONFIG, tape=tape)
    except (StateError, ClusterError) as error:
        report("fatal", str(error))
        return Outcome(Exit.FAILED, str(error))
    rest = AssistedClient(known.rendezvous_ip, known.token, known.scheme, tape=tape)
    outcome = follow(event, known, rest, kube, report, show, **watch)
    if not outcome.exit_code and event != "bootstrap-complete":
        report_complete(directory, outcome.console, report, skip_password=skip_password)
    return outcome


def follow(
    event: str,
    known: WaitFor,
    rest: AssistedClient,
    kube: ClusterClient,
    report: Report,
    show: Show = lambda cluster, events: None,
    *,
    stall: float = 0,
    diagnose: Diagnose = no_diagnosis,
    controller: bool = False,
    clock: Clock = time,
    show_operators: ShowOperators = lambda operators: None,
    stable_for: float = STABLE_FOR,
) -> Outcome:
    """Follow an installation by its two APIs, as `wait_for`, without a directory of assets.

    known: what is known of the installation; rest, kube: clients of the service and of the cluster.
    """

    def report_message(message: Message) -> None:
        report(message.level, message.text)

    try:
        BootstrapWatcher(rest, kube, known.rendezvous_ip, report_message, show, clock, stall, diagnose).run()
    except BootstrapFailed as error:
        _operators(kube, report)
        report("info", "Use the following commands to gather logs from the cluster")
        report("info", "agentlab gather --help")
        report("error", f"Bootstrap failed to complete: : {error}")
        return Outcome(Exit.BOOTSTRAP, str(error))
    if event == "bootstrap-complete":
        return Outcome(Exit.OK)
    try:
        console = InstallWatcher(
            kube,
            report,
            initialize_limit=known.initialize_limit,
            fips=known.fips,
            clock=clock,
            stall=stall,
            diagnose=diagnose,
            controller=controller,
            show=show_operators,
            stable_for=stable_for,
        ).run()
    except InstallFailed as error:
        _explain(error, kube, report)
        return Outcome(error.exit_code, str(error))
    return Outcome(Exit.OK, console=console)


class _ProgramError(Exception):
    """The program that waits has ended with an error."""


class _ProgramClock:
    """The time of a wait in addition to a program; sleeping raises `_ProgramError` once the program has failed."""

    def __init__(self, program: RunningProgram) -> None:
        self.program = program

    def time(self) -> float:
        return time.time()

    def sleep(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if self.program.failed:
                raise _ProgramError
            time.sleep(min(left, 1))


def wait_for_by(binary: Path | None, collection: Path) -> Callable[..., Outcome]:
    """Return `wait_for`, or one that lets a build of openshift-install wait, with its messages and exit code.

    collection: root of this collection, for the programs that it starts. The built-in watchers run in addition: they keep the
    record, and end the wait for known causes and stalls.
    """
    return functools.partial(_wait_with_program, binary, collection) if binary else wait_for


def _wait_with_program(
    binary: Path, collection: Path, event: str, directory: Path, report: Report, show: Show, **more: Any
) -> Outcome:
    try:
        with contextlib.ExitStack() as stack:
            work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="openshift-install-")))
            left = work / "left"
            copy_left(directory, left)
            # It may read manifests again, and check them with other programs.
            given = InstallerBuild(binary, directory, collection, work / "cache", release_of(directory))

            def show_line(level: str, text: str) -> None:
                # The wait's log is kept with the logs of the run.
                text = text.replace(str(left), str(directory))
                report(level, without_password(text) if more.get("skip_password") else text)

            command = [str(binary), "agent", "wait-for", event, "--dir", str(left), "--log-level", "debug"]
            program = stack.enter_context(RunningProgram(command, prepare(given, work), show_line))
            try:
                outcome = wait_for(
                    event, directory, lambda level, text: None, show, clock=_ProgramClock(program), **more
                )
            except _ProgramError:
                outcome = Outcome(Exit.OK)
            if outcome.exit_code:
                report("error", outcome.error)
                return outcome
            code = program.wait(LAG_SECONDS)
    except OSError as error:
        return Outcome(Exit.FAILED, f"{binary} cannot be started: {error.strerror}")
    if code is None:
        return Outcome(Exit.FAILED, f"{binary} still waits {LAG_SECONDS // 60} minutes after the cluster was complete")
    reason = program.failure or "it gave no reason"
    return (
        Outcome(code, f"{binary} agent wait-for ended with exit code {code}: {reason}", outcome.console)
        if code
        else outcome
    )


def _explain(error: InstallFailed, kube: ClusterClient, report: Report) -> None:
    report("error", str(error))
    if error.exit_code != InstallFailed.exit_code:  # of operators that do not settle upstream prints nothing more
        return
    _operators(kube, report)
    report("error", TROUBLESHOOTING)
    report("error", str(error))


def report_complete(directory: Path, console: str | None, report: Report, *, skip_password: bool) -> None:
    """Report the end of an installation, in upstream's words: where credentials are, and the URL of the console, if there is one."""
    kubeconfig, secret = (directory.resolve() / name for name in (RunFile.KUBECONFIG, RunFile.PASSWORD))
    report("info", "Install complete!")
    report(
        "info",
        f"To access the cluster as the system:admin user when using 'oc', run\n    export KUBECONFIG={kubeconfig}",
    )
    if not console:
        return
    report("info", f"Access the OpenShift web-console here: {console}")
    if skip_password:
        report("info", f"Credentials omitted, if necessary verify the {secret} file")
    else:
        try:
            password = secret.read_text().strip()
        except OSError as error:
            report("warning", f"the password of the console's user kubeadmin cannot be read: {explain(error)}")
            return
        report("info", f'Login to the console with user: "kubeadmin", and password: "{password}"')


def _operators(kube: ClusterClient, report: Report) -> None:
    try:
        found = kube.cluster_operators()
    except ClusterError as error:
        report(
            "error",
            f"Attempted to gather ClusterOperator status after wait failure: listing ClusterOperator objects: {error}",
        )
        return
    for message in operator_report(found):
        report(message.level, message.text)


class Recorder:
    """A `show` that keeps what was seen last, as `cluster.json` and `events.json`.

    The service is gone when the rendezvous host reboots, and with it what explains a failure. A record that cannot be written
    does not end the wait.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def __call__(self, cluster: Mapping[str, object], events: Sequence[Mapping[str, object]]) -> None:
        for name, what in ((RunFile.LAST_CLUSTER, cluster), (RunFile.LAST_EVENTS, events)):
            with contextlib.suppress(OSError):
                write_atomic(self.directory / Path(name).name, json.dumps(what, indent=1), 0o600)
