"""`create cluster` of a lab with `flow: ipi`: what openshift-install is given of the plan, and what it leaves in the run directory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from . import signals
from .documents import decode_text, read_file
from .installer import cluster, cluster_record, ipi
from .installer.binary import InstallerBuild
from .log import Log
from .plan.ipi import bootstrap
from .plan.machines import address_of
from .plan.model import Plan
from .releases import RELEASES
from .report.changes import WaitEvents
from .report.secrets import of_run
from .state.events import FILE, EventLog
from .vocabulary import RunFile


def missing(plan: Plan, directory: Path) -> bool:
    """Return whether `create` would create the cluster in a directory. Writes nothing; raises `ValueError` and `InstallerError` as it does."""
    _hosts(plan, directory)
    _check(plan, directory, Log(None, emit=lambda __: None))
    return not cluster_record.complete(directory)


def create(plan: Plan, given: InstallerBuild, *, copy: Path, folder: Path, seconds: float) -> cluster.Result:
    """Check install-config.yaml of `given.directory`, create the cluster of a plan there, and wait until it is complete.

    copy: file that gets the messages, with time stamps; folder: gets the events of the run; seconds: the longest time. The error names
    the logs of a bootstrap that failed, too. Raises `ValueError` for a plan without a bootstrap machine, and `InstallerError` with all
    that openshift-install would refuse, or for a program that cannot be run. A signal that ends this process ends the program first.
    """
    directory, hosts = given.directory, _hosts(plan, given.directory)
    copy.parent.mkdir(parents=True, exist_ok=True)
    log = Log(None, emit=lambda __: None, copy=copy)
    _check(plan, directory, log)
    events = WaitEvents(EventLog(folder / Path(FILE).name, of_run(directory)))

    def report(level: str, text: str) -> None:
        log(level, text)
        events.report(level, text)
        events.provisioning(text, [node["name"] for node in plan["nodes"]])

    with signals.raise_terminated():
        made = cluster.create(given, hosts, report, seconds=seconds)
    logs = f"; the logs of the bootstrap are in {made.bundle}" if made.error and made.bundle else ""
    return replace(made, error=f"{made.error}{logs}")


def _hosts(plan: Plan, directory: Path) -> cluster.Hosts:
    """Return the machines of the bootstrap."""
    machine = bootstrap(plan)
    if not machine:
        raise ValueError("agentlab_plan.installer.bootstrap is missing: this plan is not one of `flow: ipi`")
    masters = tuple(address_of(node, plan["networks"]) for node in plan["nodes"] if node["role"] == "master")
    return cluster.Hosts(machine["addresses"][0], masters, directory / RunFile.SSH_KEY)


def _check(plan: Plan, directory: Path, log: Log) -> None:
    """Check install-config.yaml, if it is there: the program consumes it. log: gets warnings."""
    path = directory / RunFile.INSTALL_CONFIG
    if path.exists():
        profile = RELEASES[plan["release"]["profile"]]
        ipi.validate(decode_text(read_file(path), name=str(path)), profile, plan["release"]["version"] or "", log)
