"""A build of `openshift-install` from a git repository, with the Go toolchain of this host.

It is made as the repository's own contributors do it, by `hack/build.sh`, and kept by commit and version.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from .errors import InstallerError

SCRIPT = Path("hack/build.sh")
"""What builds it, in a checkout of openshift/installer."""
PROGRAM = Path("bin/openshift-install")
"""What the script writes."""
FETCH_SECONDS, BUILD_SECONDS = 1800, 7200
"""Longest time of one `git fetch`, and of one build."""
_GIT = ("init", "fetch", "worktree")
_SILENT = 30.0
_VERSION = re.compile(r"(\w[\w.+-]*)?")  # it becomes the name of a directory
_KEPT_LINES = 15

Report = Callable[[str], None]


class Build(NamedTuple):
    """commit: the full hash; program: the built program; changed: whether it, or the link to it, was not there before."""

    commit: str
    program: Path
    changed: bool


def ensure(
    repository: str, ref: str, cache: Path, link: Path, report: Report, *, version: str = "", check: bool = False
) -> Build:
    """Build `ref` of `repository` unless its commit has been built, and make `link` lead to the program.

    repository: a URL, or the path of a repository on this host, of which uncommitted changes are not built; ref: a branch,
    tag or commit; cache: directory for sources and builds; link: a path whose directory exists; report: gets the progress;
    version: of the release that it is for, which it hands to the assisted service; without it the build names its commit,
    which no service takes for a version; BUILD_VERSION of the environment counts before it; check: fetch, but build and link nothing. The program is
    `CACHE/COMMIT/VERSION/openshift-install`. Raises `InstallerError` with the last lines of what git or the build printed,
    and leaves nothing half-made.
    """
    version = os.environ.get("BUILD_VERSION") or version
    if not _VERSION.fullmatch(version):
        raise InstallerError(f"the version of the build is {version!r}: must be one as 4.22.0")
    store = cache / "git" / f"{hashlib.sha256(repository.encode()).hexdigest()[:16]}.git"
    store.parent.mkdir(parents=True, exist_ok=True)
    with _locked(store.with_suffix(".lock")):
        commit = _fetch(repository, ref, store, report)
        program = cache / commit / version / PROGRAM.name
        built = program.exists()
        linked = link.is_symlink() and os.readlink(link) == str(program)
        if not check:
            if not built:
                tree = store.with_suffix(".tree")
                try:
                    _build(store, tree, commit, program, {"BUILD_VERSION": version} if version else {}, report)
                finally:
                    shutil.rmtree(tree, ignore_errors=True)
            if not linked:
                _point(link, program)
    return Build(commit, program, not (built and linked))


def _fetch(repository: str, ref: str, store: Path, report: Report) -> str:
    """Bring `ref` into the bare repository `store`; return its commit."""
    if not (store / "HEAD").exists():
        _run(["git", "init", "--quiet", "--bare", str(store)], 60, report)
    git = ["git", "-C", str(store)]
    known = subprocess.run([*git, "cat-file", "-e", f"{ref}^{{commit}}"], capture_output=True, check=False)
    full = len(ref) in (40, 64) and not ref.strip("0123456789abcdef")
    if full and known.returncode == 0:
        return ref
    report(f"Fetching {ref} of {repository}")
    try:
        _run([*git, "fetch", "--depth=1", "--no-tags", "--end-of-options", repository, ref], FETCH_SECONDS, report)
    except InstallerError:
        # A server gives an abbreviated commit, or one that no branch ends in, only with its branches.
        _run(
            [*git, "fetch", "--tags", "--end-of-options", repository, "+refs/heads/*:refs/heads/*"],
            FETCH_SECONDS,
            report,
        )
        return _commit(git, ref, repository)
    return _commit(git, "FETCH_HEAD", repository)


def _commit(git: list[str], ref: str, repository: str) -> str:
    done = subprocess.run(
        [*git, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = done.stdout.split()
    if done.returncode or not found:
        raise InstallerError(f"release.installer.ref: {repository} has no branch, tag or commit {ref}")
    return found[-1]


def _build(store: Path, tree: Path, commit: str, program: Path, more: Mapping[str, str], report: Report) -> None:
    """Build a commit in `tree`: the same for each, as Go's build cache serves a package again in its directory alone."""
    shutil.rmtree(tree, ignore_errors=True)  # of a run that was killed
    # The script asks git for the commit. What a former run left in the list of trees is dropped.
    _run(["git", "-C", str(store), "worktree", "prune"], 60, report)
    _run(["git", "-C", str(store), "worktree", "add", "--quiet", "--detach", str(tree), commit], 600, report)
    if not (tree / SCRIPT).is_file():
        raise InstallerError(
            f"commit {commit} has no {SCRIPT}: release.installer.git must be a repository of openshift/installer"
        )
    report(f"Building openshift-install of {commit[:12]}; the first build of a release takes many minutes")
    started = time.monotonic()
    _run([str(tree / SCRIPT)], BUILD_SECONDS, report, cwd=tree, more=more)
    if not os.access(tree / PROGRAM, os.X_OK):
        raise InstallerError(f"{SCRIPT} of commit {commit} ended without {PROGRAM}")
    program.parent.mkdir(parents=True, exist_ok=True)
    os.replace(tree / PROGRAM, program)
    report(f"Built {program} in {time.monotonic() - started:.0f} s")


def _point(link: Path, program: Path) -> None:
    new = link.with_name(f".{link.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(program)
    os.replace(new, link)


def _run(
    command: list[str],
    seconds: float,
    report: Report,
    cwd: Path | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Run a program to its end, with its lines as progress, and its name while it prints nothing."""
    name = " ".join([Path(command[0]).name, *(word for word in command if word in _GIT)])
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **more}
    try:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise InstallerError(f"{name} cannot be started: {error.strerror}") from error
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in process.stdout or ():
            lines.put(line.decode(errors="replace").rstrip()[:500])
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    last: list[str] = []
    started = time.monotonic()
    try:
        while True:
            passed = time.monotonic() - started
            if passed > seconds:
                raise InstallerError(f"{name} timed out after {seconds / 60:.0f} minutes")
            try:
                line = lines.get(timeout=min(_SILENT, seconds - passed))
            except queue.Empty:
                report(f"{name} has been running for {time.monotonic() - started:.0f} s")
                continue
            if line is None:
                break
            last = [*last, line][-_KEPT_LINES:]
            report(line)
        code = process.wait(10)
    finally:
        _end(process)
    if code:
        raise InstallerError("\n".join([f"{name} ended with exit code {code}:", *last]))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started."""
    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(10)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(10)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time fetch and build from a repository."""
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
