"""`agentlab compare --dir D`: what another build of openshift-install makes of the same inputs."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from .. import signals
from ..installer import binary, compare, run
from ..installer.build import lab_payload
from ..installer.errors import InstallerError
from ..log import Log
from ..plan import rundir
from ..plan.openshift_install import InstallerBuildError, check, program
from ..redact import redact
from ..terminal import write_line
from ..vocabulary import Exit
from .create import ASSETS, TARGETS, attempt
from .output import message

_CALLED = "agentlab compare"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_CALLED,
        description="Run agentlab's own installer and another build of openshift-install on copies of the same inputs, and "
        "print every difference of exit code, messages and files. What is random in each run is compared by its shape.",
        epilog="The exit code is 0 without a difference, 1 with differences, 2 when they cannot be compared.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--dir", type=Path, default=Path(), help="directory with the inputs (default .); it is not changed"
    )
    parser.add_argument(
        "--binary",
        metavar="PROGRAM",
        help="the other build (default: release.installer of the directory's plan.yaml)",
    )
    parser.add_argument("--target", choices=TARGETS, default="image", metavar="TARGET",
                        help="what both create (default image): " + ", ".join(TARGETS))  # fmt: skip
    parser.add_argument(
        "--release-image",
        metavar="PULLSPEC",
        default="",
        help="what is installed (default: $OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE, else what the directory's manifests name, else "
        "the newest lab payload, if there is one)",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="form of the result (default text)"
    )
    return parser


def main(argv: list[str]) -> int:
    """Run `agentlab compare`; returns the exit status.

    argv: after `compare`. `Exit.OK` when both agree, `Exit.FAILED` when they differ, `Exit.USAGE` when they cannot be
    compared. The directory stays as it is.
    """
    args = _parser().parse_args(argv)
    try:
        program = _program(args.binary, args.dir)
        with signals.raise_terminated(), tempfile.TemporaryDirectory(prefix="agentlab-compare-") as work:
            ours, theirs = _create_both(args, program, Path(work))
            found = compare.differences(ours, theirs)
    except (rundir.RunError, InstallerError, OSError) as error:
        write_line(redact(f"{_CALLED}: {message(error)}"), sys.stderr)
        return Exit.USAGE
    agreeing = len({*ours.files, *theirs.files} - {difference.file for difference in found})
    if args.output == "json":
        rows = [{key: redact(value) for key, value in row._asdict().items()} for row in found]
        write_line(json.dumps({"agreeing_files": agreeing, "differences": rows}, indent=2, ensure_ascii=False))
    else:
        _print(found, agreeing)
    return Exit.FAILED if found else Exit.OK


def _program(given: str | None, directory: Path) -> Path:
    """Return the other build. Raises `InstallerError` when it cannot be used, `RunError` when nothing names it."""
    if given is None:
        if not (directory / rundir.PLAN).exists():
            raise InstallerError("--binary is required: there is no plan.yaml in the directory that names a build")
        given = program(rundir.load_plan(directory)["release"]["installer"], directory)
        if not given:
            raise InstallerError(f"--binary is required: {directory / rundir.PLAN} has no build in release.installer")
    try:
        check(given, None)
    except InstallerBuildError as error:
        raise InstallerError(f"{given}: {error}") from error
    return Path(given).expanduser().absolute()


def _create_both(args: argparse.Namespace, program: Path, work: Path) -> tuple[compare.Side, compare.Side]:
    inputs = sorted(binary.inputs_of(args.dir))
    if not inputs:
        raise InstallerError(
            f"{args.dir.absolute()} has neither install-config.yaml nor agent-config.yaml nor cluster-manifests"
        )
    # The lab payload is agentlab's default, which another build does not know; the newest may be that of another lab.
    options = run.Options.from_environment(dict(os.environ), args.dir, ASSETS)
    args.release_image = args.release_image or options.release_image or rundir.release_image(args.dir)
    args.release_image = args.release_image or lab_payload(options.cache).get("release", "")
    found: list[compare.Side] = []
    for name, create in (("agentlab", _create_ours), (str(program), _create_theirs)):
        directory = work / f"side{len(found)}"
        for path in inputs:
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(args.dir / path, directory / path)
        started = time.monotonic()
        write_line(f"{name}: agent create {args.target}...", sys.stderr)
        code, messages = create(args, program, directory)
        write_line(f"{name}: exit code {code}, {time.monotonic() - started:.1f} s", sys.stderr)
        lines = [(level, text.replace(str(directory), "DIR")) for level, text in messages]
        found.append(compare.Side(code, lines, compare.contents(directory, inputs)))
    return found[0], found[1]


def _create_ours(args: argparse.Namespace, _program: Path, directory: Path) -> tuple[int, list[tuple[str, str]]]:
    options = run.Options.from_environment(dict(os.environ), directory, ASSETS)
    if args.release_image:
        options = dataclasses.replace(options, release_image=args.release_image)
    log = Log(None, emit=lambda _line: None)
    return attempt(args.target, options, log, consume=True), log.lines


def _create_theirs(args: argparse.Namespace, program: Path, directory: Path) -> tuple[int, list[tuple[str, str]]]:
    messages: list[tuple[str, str]] = []
    cache = run.Options.from_environment(dict(os.environ), directory, ASSETS).cache / "openshift-install"
    collection = ASSETS.parents[3]
    given = binary.InstallerBuild(program, directory, collection, cache, args.release_image)
    with tempfile.TemporaryDirectory(prefix="tools-", dir=directory.parent) as tools:
        environment = binary.prepare(given, Path(tools))
        command = [str(program), "agent", "create", args.target, "--dir", str(directory)]
        with binary.RunningProgram(command, environment, lambda level, text: messages.append((level, text))) as running:
            code = running.wait(binary.CREATE_SECONDS)
    if code is None:
        raise InstallerError(f"{program} timed out after {binary.CREATE_SECONDS // 60} minutes")
    return code, messages


def _print(found: list[compare.Difference], agreeing: int) -> None:
    for difference in found:
        write_line(redact(" ".join(part for part in (difference.file, difference.where) if part)))
        for sign, value in (("-", difference.ours), ("+", difference.theirs)):
            for line in value.splitlines():
                write_line(redact(f"  {sign} {line}"))
    files = len({difference.file for difference in found})
    write_line(f"{len(found)} differences (- agentlab, + the other build) in {files} places; {agreeing} files agree")
