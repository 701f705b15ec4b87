"""`openshift-install create cluster`, run to its end: messages, exit codes, what an interrupted run continues with, logs of a failed bootstrap."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..files import staging_directory
from ..log import Log
from ..vocabulary import Exit
from . import cluster_record, install_config
from .assets import ASSETS
from .binary import InstallerBuild, Report, RunningProgram, prepare, without_password
from .errors import InstallerError
from .state import FILENAME as STATE
from .store import Store

METADATA = "metadata.json"
"""What the installer writes before it creates the first machine, and needs to remove them."""
MEANINGS: dict[int, str] = {
    Exit.INSTALL_CONFIG: "the install-config was refused",
    Exit.UNREACHABLE: "the infrastructure failed",
    Exit.BOOTSTRAP: "the bootstrap did not complete",
    Exit.INSTALL: "the cluster did not initialize",
    Exit.OPERATORS: "cluster operators did not settle",
    Exit.CREATE_INTERRUPTED: "it was interrupted",
}
"""Exit codes of `openshift-install create cluster` (cmd/openshift-install/command/waitfor.go)."""
GATHER_SECONDS = 1200
"""Longest time that `gather bootstrap` may take."""
SIMULATOR = "openshift-install"
"""The program, without a directory, that is the lab payload's simulator."""
_SIMULATORS = {SIMULATOR: "payload.ipi"}
_EXTRA, _BUNDLES = "openshift", "log-bundle-*.tar.gz"
_RESUME = (("wait-for", "bootstrap-complete"), ("destroy", "bootstrap"), ("wait-for", "install-complete"))
_WITH_LOGS = (Exit.UNREACHABLE, Exit.BOOTSTRAP)


@dataclass(frozen=True)
class Hosts:
    """The machines whose logs have the reason of a failed bootstrap: addresses of the bootstrap machine and of the masters, and the key for both."""

    bootstrap: str
    masters: tuple[str, ...]
    key: Path


@dataclass(frozen=True)
class Result:
    """changed: whether anything was run; exit_code, error: of the program, 0 and ""; bundle: the logs of a bootstrap that failed."""

    changed: bool
    exit_code: int = Exit.OK
    error: str = ""
    bundle: str = ""


def create(given: InstallerBuild, hosts: Hosts, report: Report, *, seconds: float) -> Result:
    """Create the cluster of `given.directory`, and wait until it is complete. Raises `InstallerError` for a program that cannot be run.

    report: gets the messages of the program, and of `gather bootstrap` after a bootstrap that failed; seconds: the longest
    time. Where a run was interrupted after it had begun to create machines, the same program waits for the rest. Leaving
    by an exception ends the program with all that it started.
    """
    directory = given.directory
    if cluster_record.complete(directory):
        return Result(changed=False)
    (directory / cluster_record.FILENAME).unlink(missing_ok=True)
    if not (directory / METADATA).exists():
        # Of an agent-based installation that had this directory before.
        Store(ASSETS, directory, Log(None)).withdraw()
    before = {*directory.glob(_BUNDLES)}
    end = time.monotonic() + seconds

    def keep(level: str, text: str) -> None:
        report(level, without_password(text))

    with staging_directory(directory) as work:
        environment = prepare(given, work, _SIMULATORS)
        for words in _steps(directory):
            with _extra_manifests(directory, work, words):
                code, output = _run(given, words, (), environment, keep, end - time.monotonic())
            if code and words == _RESUME[1]:
                keep("warning", f"the bootstrap machine was not removed, or is gone already: {output}")
            elif code != Exit.OK:
                bundle = ""
                if code is None or code in _WITH_LOGS:
                    bundle = _gathered(given, hosts, environment, keep, before)
                error = _error(given, words, code, output, seconds)
                cluster_record.write(directory, error)
                return Result(True, Exit.FAILED if code is None else code, error, bundle)
    cluster_record.write(directory)
    return Result(changed=True)


def _steps(directory: Path) -> tuple[tuple[str, ...], ...]:
    """What is to be run: each as words of the program's command line."""
    if (directory / METADATA).exists():
        return _RESUME
    # Files in openshift/ would replace the program's own, unless these exist already.
    extra = (directory / install_config.FILENAME).exists() and any((directory / _EXTRA).glob("*.y*ml"))
    return (*(("create", "manifests") for __ in range(extra)), ("create", "cluster"))


@contextmanager
def _extra_manifests(directory: Path, work: Path, words: tuple[str, ...]) -> Iterator[None]:
    """Keep the user's manifests from `create manifests`, and add them to what it has made."""
    if words != ("create", "manifests"):
        yield
        return
    own, aside = directory / _EXTRA, work / _EXTRA
    shutil.copytree(own, aside)
    shutil.rmtree(own)
    try:
        yield
    finally:
        shutil.copytree(aside, own, dirs_exist_ok=True)


def _run(
    given: InstallerBuild,
    words: tuple[str, ...],
    more: tuple[str, ...],
    environment: Mapping[str, str],
    report: Report,
    seconds: float,
) -> tuple[int | None, str]:
    """Return exit code, None after `seconds`, and the last error of the program."""
    command = [str(given.program), *words, "--dir", str(given.directory), "--log-level", "debug", *more]
    try:
        with RunningProgram(command, environment, report) as program:
            code = program.wait(max(seconds, 0))
    except OSError as error:
        raise InstallerError(f"{given.program} cannot be started: {error.strerror}") from error
    return code, program.failure


def _error(given: InstallerBuild, words: tuple[str, ...], code: int | None, failure: str, seconds: float) -> str:
    what = shlex.join([str(given.program), *words])
    if code is None:
        return f"{what} timed out after {seconds / 60:.0f} minutes"
    meaning = f" ({MEANINGS[code]})" if code in MEANINGS else ""
    return f"{what} ended with exit code {code}{meaning}: {failure or 'it gave no reason'}"


def _gathered(
    given: InstallerBuild, hosts: Hosts, environment: Mapping[str, str], report: Report, before: set[Path]
) -> str:
    """Return the path of the bootstrap's logs, "" without: the program's own bundle, or else what `gather bootstrap` fetches."""
    directory = given.directory

    def newest() -> str:
        return max((str(path) for path in directory.glob(_BUNDLES) if path not in before), default="")

    if found := newest():
        return found
    if not (directory / STATE).exists():
        return ""
    more = (
        "--bootstrap",
        hosts.bootstrap,
        *(word for ip in hosts.masters for word in ("--master", ip)),
        "--key",
        str(hosts.key),
    )
    code, failure = _run(given, ("gather", "bootstrap"), more, environment, report, GATHER_SECONDS)
    if code != Exit.OK:
        report("warning", f"the logs of the bootstrap could not be gathered: {failure or 'no reason was given'}")
    return newest()
