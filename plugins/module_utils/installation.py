"""The wait for an installation of the lab: what it is given of the plan, what it leaves in the run directory, and the snapshots meanwhile."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from .assisted.client import AssistedClient
from .cluster.watcher import SIMULATED_FOR
from .installer.state import load_wait_for
from .log import Log
from .plan.access import Access
from .plan.model import Plan
from .report.changes import WaitEvents
from .report.probe import Probe
from .report.secrets import of_run
from .sandbox import faults
from .snapshot.lab import Lab
from .snapshot.save_points import SavePoints
from .state import owner, recording
from .state.events import FILE, EventLog
from .version import VERSION
from .waitfor import Outcome, Recorder, Watch, wait_for_by


def wait(
    event: str,
    directory: Path,
    plan: Plan | None = None,
    who: owner.Caller | None = None,
    *,
    copy: Path,
    folder: Path,
    build: Path | None = None,
    collection: Path = Path(),
    stall: float = 0,
) -> Outcome:
    """Wait for one of `waitfor.EVENTS` of the installation in `directory`, as `waitfor.wait_for`.

    plan: with it machines, services and faults of the lab are checked; who: with it the snapshots of the plan are saved. copy: file
    that gets the messages, with time stamps; folder: gets the last state, the events of the run, and the recording. build: of
    openshift-install, which waits, too; collection: as of `wait_for_by`; stall: in seconds. An error with exit code 0 is about
    snapshots that could not be saved.
    """
    copy.parent.mkdir(parents=True, exist_ok=True)
    log = Log(directory if directory.is_dir() else None, emit=lambda __: None, copy=copy)
    record, secrets = Recorder(folder), of_run(directory)
    tape = recording.Recorder(folder / Path(recording.FILE).name, secrets)
    events = WaitEvents(EventLog(folder / Path(FILE).name, secrets), faults=faults.log(plan) if plan else None)

    def report(level: str, text: str) -> None:
        log(level, text)
        if level != "debug":  # a build of openshift-install writes each poll to its log
            events.report(level, text)

    def show(cluster: dict[str, Any], new: list[dict[str, Any]]) -> None:
        record(cluster, new)
        events.show(cluster, new)

    watch: Watch = {"stall": stall, "controller": plan is not None, "show_operators": events.show_operators}
    if plan:
        watch["diagnose"] = Probe(plan, directory, tape, log.info)
    if plan and plan["release"]["payload"] == "lab":
        watch["stable_for"] = SIMULATED_FOR
    saver = _snapshots(plan, directory, who, log) if plan and who else None
    with saver or contextlib.nullcontext():
        if saver and not build:  # a build of openshift-install has its own clock
            watch["clock"] = saver.clock
        waiting = wait_for_by(build, collection)
        outcome = waiting(event, directory, report, show, skip_password=True, tape=tape, **watch)
    if outcome.exit_code:
        return outcome
    if saver and event == "install-complete":
        saver.installed()
    if plan and plan["hypervisor"]["kind"] == "sandbox":
        # Upstream's last lines are for a cluster that the reader's host can reach.
        command = Access(plan, directory).kubectl("get", "nodes")
        log.info(f"Names and addresses of the cluster exist in the lab's network only; this enters it:\n    {command}")
    return outcome._replace(error="; ".join(saver.failures)) if saver else outcome


def _snapshots(plan: Plan, directory: Path, who: owner.Caller, log: Log) -> SavePoints | None:
    if not plan["snapshots"]:
        return None
    known = load_wait_for(directory)
    service = AssistedClient(known.rendezvous_ip, known.token, known.scheme)
    return SavePoints(Lab(plan, directory, who, VERSION), service, log)
