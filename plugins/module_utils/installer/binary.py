"""A build of `openshift-install` that runs in place of the built-in installer: its environment, its files, its messages."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, TracebackType

from ..documents import DocumentError, load_json, load_yaml, read_file
from ..files import staging_directory
from ..log import ALIASES, LEVELS, LOG_FILE
from ..state import write_atomic
from ..vocabulary import BOOT_ARTIFACTS, RunFile
from .errors import InstallerError
from .state import FILENAME

RECORD = ".openshift_install_binary.json"
"""What the last run was made from, in the assets directory."""
CREATE_SECONDS = 3600
"""Longest time that one `agent create` may take; the first one fetches the base ISO."""
_STOP_SECONDS = 10
_CONFIGS = (RunFile.INSTALL_CONFIG, RunFile.AGENT_CONFIG)
_MANIFESTS = ("cluster-manifests", "mirror")
_EXTRA = "openshift"
# Programs that openshift-install starts, and the modules of the collection that answer.
_TOOLS = {"oc": "payload.tools.oc", "nmstatectl": "plugins.module_utils.cli nmstate"}
_LINE = re.compile(r'^(?:time="[^"]*" )?level=(\w+) msg=(?:"((?:[^"\\]|\\.)*)"$|(.*))')
_ESCAPED = re.compile(r"\\(.)")
_LEFT = (FILENAME, RunFile.RENDEZVOUS_IP, RunFile.KUBECONFIG, RunFile.PASSWORD)
_PUBLIC = (BOOT_ARTIFACTS, RunFile.RENDEZVOUS_IP)
_PASSWORD = re.compile(r",? and password: .*", re.DOTALL)

Report = Callable[[str, str], None]


@dataclass(frozen=True)
class InstallerBuild:
    """program: the build; directory: the assets; collection: root of this collection, for `oc`; cache: for its base ISOs.

    release_image: pullspec of what it installs, "" for its own; os_image: URL of another base ISO.
    """

    program: Path
    directory: Path
    collection: Path
    cache: Path
    release_image: str
    os_image: str = ""


def message(line: str) -> tuple[str, str]:
    """Return level and text of a line of logrus; any other line is the text of an `info`.

    A level that `log.LEVELS` does not have is `info`, too. Go's escapes in the text are resolved.
    """
    found = _LINE.match(line)
    if not found:
        return "info", line
    level = ALIASES.get(found[1], found[1])
    text = (
        found[3] if found[2] is None else _ESCAPED.sub(lambda one: {"n": "\n", "t": "\t"}.get(one[1], one[1]), found[2])
    )
    return (level if level in LEVELS else "info"), text


def without_password(text: str) -> str:
    """Return a message without the password of kubeadmin, as a log that is kept has it."""
    return _PASSWORD.sub("", text)


class RunningProgram:
    """A started program whose messages go to `report`; leaving the context ends it with all that it started.

    `failure` is the text of its last error.
    """

    def __init__(self, command: list[str], environment: Mapping[str, str], report: Report) -> None:
        self.failure = ""
        self._report = report
        self._process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            level, text = message(line.decode(errors="replace").rstrip())
            if level in ("error", "fatal"):
                self.failure = text
            self._report(level, text)

    @property
    def failed(self) -> bool:
        """Whether it has ended with an error."""
        return bool(self._process.poll())

    def wait(self, seconds: float) -> int | None:
        """Return its exit code, as a shell's; None when it timed out.

        seconds: the longest wait. A program that a signal ended has 128 and the signal's number.
        """
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(_STOP_SECONDS)
        return code if code >= 0 else 128 - code

    def __enter__(self) -> RunningProgram:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS)
        self._reader.join(_STOP_SECONDS)


def create(given: InstallerBuild, targets: Iterable[str], report: Report, *, check: bool = False) -> list[str]:
    """Run `agent create TARGET` for each target and return the changed files, relative to the directory.

    It works on a copy of the inputs, because it deletes them. Nothing changes with the same inputs, program and release.
    Raises `InstallerError`, and then the directory is as it was, but for the log.
    """
    targets = list(targets)
    inputs = sorted(inputs_of(given.directory))
    digest = _digest(given, targets, inputs)
    if _made(given.directory) == [digest, _hash(given.directory / FILENAME)]:
        return []
    if check:
        return [FILENAME]
    with staging_directory(given.directory) as work:
        assets, out = work / "assets", work / "out"
        for name in inputs:
            _copy(given.directory / name, assets / name)
        assets.mkdir(exist_ok=True)
        environment = prepare(given, work)
        for target in targets:
            try:
                _run([str(given.program), "agent", "create", target, "--dir", str(assets)], environment, report)
            finally:
                _keep_log(assets / LOG_FILE, given.directory / LOG_FILE)
            # The next target deletes what is its input: keep it now.
            for path in _files(assets):
                if path not in inputs:
                    _copy(assets / path, out / path)
        changed = sorted(
            _files(out), key=lambda name: (name == FILENAME, name)
        )  # the state last: it vouches for the rest
        if FILENAME not in changed:
            raise InstallerError(f"{given.program} wrote no {FILENAME}: it is not an openshift-install")
        (given.directory / RECORD).unlink(missing_ok=True)
        for name in set(_outputs(given.directory)) - set(changed):
            (given.directory / name).unlink()
        for name in changed:
            target_path = given.directory / name
            target_path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
            (out / name).chmod(0o644 if name.startswith(_PUBLIC) else 0o600)
            os.replace(out / name, target_path)
    write_atomic(given.directory / RECORD, json.dumps([digest, _hash(given.directory / FILENAME)]), 0o600)
    return changed


def discard(directory: Path) -> None:
    """Delete manifests and state that a build made last, so that the built-in installer does not take them for its input.

    directory: the assets. What another program has replaced since then stays.
    """
    made = _made(directory)
    if isinstance(made, list) and made[1:] == [_hash(directory / FILENAME)]:
        for name in (*_outputs(directory), FILENAME, RECORD):  # the record last: until then this can be repeated
            (directory / name).unlink(missing_ok=True)


def prepare(given: InstallerBuild, work: Path, more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return the environment of the program, whose home, tools and trusted certificates are made below `work`.

    work: an empty directory that must outlive the program; more: other programs of the collection, as `_TOOLS`. HOME is in
    it, `oc` and `nmstatectl` come first in PATH (an installed nmstatectl is preferred), and SSL_CERT_FILE has the host's
    CAs and the additionalTrustBundle.
    """
    home, tools, python = work / "home", work / "tools", work / "python"
    package = python / "ansible_collections"
    (package / "agentlab").mkdir(parents=True)
    # A package, so that it comes before one of the same name that is installed.
    (package / "__init__.py").touch()
    (package / "agentlab" / "ocp").symlink_to(given.collection.resolve())
    home.mkdir()
    tools.mkdir()
    for name, words in {**_TOOLS, **more}.items():
        module = f"ansible_collections.agentlab.ocp.{words}"
        script = tools / name
        script.write_text(
            f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(python))} exec {shlex.quote(sys.executable)} -m {module} "$@"\n'
        )
        script.chmod(0o755)
    given.cache.mkdir(parents=True, exist_ok=True)
    trusted = work / "trusted.pem"
    trusted.write_text(_trusted(given.directory))
    path = os.environ.get("PATH", os.defpath)
    found = {
        **os.environ,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(given.cache),
        # An installed nmstatectl is upstream's own, so it comes first; the lab's oc knows the lab's release.
        "PATH": os.pathsep.join([str(tools), path]),
        "SSL_CERT_FILE": str(trusted),
    }
    if given.release_image:
        found["OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"] = given.release_image
    if shutil.which("nmstatectl", path=path):
        (tools / "nmstatectl").unlink()
    if given.os_image:
        found["OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE"] = given.os_image
    return found


def copy_left(directory: Path, target: Path) -> None:
    """Copy to `target` what a build leaves for its `wait-for`: its state, and how to reach the cluster.

    A build deletes its input. Where that is still next to its state, it discards parts of the state.
    """
    target.mkdir()
    for name in _LEFT:
        if (directory / name).is_file():
            _copy(directory / name, target / name)


def release_of(directory: Path) -> str:
    """Return the pullspec of the release that the manifests of a directory name; empty if they name none.

    A build refuses those of another release than its own, also to wait.
    """
    name = "cluster-manifests/cluster-image-set.yaml"
    try:
        found = load_yaml(read_file(directory / name), name=name)
        return str(found["spec"]["releaseImage"])
    except (OSError, DocumentError, KeyError, TypeError):
        return ""


def _run(command: list[str], environment: Mapping[str, str], report: Report) -> None:
    try:
        with RunningProgram(command, environment, report) as program:
            code = program.wait(CREATE_SECONDS)
    except OSError as error:
        raise InstallerError(f"{command[0]} cannot be started: {error.strerror}") from error
    if code is None:
        raise InstallerError(f"{shlex.join(command[:4])} timed out after {CREATE_SECONDS // 60} minutes")
    if code:
        raise InstallerError(
            f"{shlex.join(command[:4])} ended with exit code {code}: {program.failure or 'it gave no reason'}"
        )


def inputs_of(directory: Path) -> Iterator[str]:
    """Yield the files that it reads, relative to the directory.

    Manifests are its output where there is an install-config.yaml.
    """
    configs = [name for name in _CONFIGS if (directory / name).is_file()]
    yield from configs
    for folder in (_EXTRA, *(() if _CONFIGS[0] in configs else _MANIFESTS)):
        yield from (f"{folder}/{name}" for name in _files(directory / folder))


def _outputs(directory: Path) -> list[str]:
    """Return the manifests of a directory that are the output of an installer: all, if there is an install-config.yaml."""
    if not (directory / _CONFIGS[0]).is_file():
        return []
    return [f"{folder}/{name}" for folder in _MANIFESTS for name in _files(directory / folder)]


def _files(directory: Path) -> list[str]:
    """Return the files of a directory, relative to it; not the program's log."""
    return [
        str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file() and path.name != LOG_FILE
    ]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return ""


def _digest(given: InstallerBuild, targets: list[str], inputs: list[str]) -> str:
    build = given.program.stat()
    facts = [
        *(str(given.program), build.st_size, build.st_mtime_ns, given.release_image, given.os_image, targets),
        *((name, _hash(given.directory / name)) for name in inputs),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _made(directory: Path) -> object:
    try:
        return load_json(read_file(directory / RECORD), name=RECORD)
    except (OSError, DocumentError):
        return None  # it only saves a run


def _keep_log(source: Path, target: Path) -> None:
    with contextlib.suppress(OSError):
        text = source.read_bytes()
        target.touch(mode=0o600)
        with target.open("ab") as log:
            log.write(text)
        source.unlink()


def _trusted(directory: Path) -> str:
    """Return the host's certificates and those of install-config.yaml, as PEM."""
    paths = ssl.get_default_verify_paths()
    own = Path(paths.cafile).read_text(encoding="utf-8") if paths.cafile else ""
    path = directory / _CONFIGS[0]
    if not path.is_file():
        return own
    try:
        config = load_yaml(read_file(path), name=str(path))
    except DocumentError as error:
        raise InstallerError(str(error)) from error
    more = config.get("additionalTrustBundle") if isinstance(config, dict) else None
    return f"{own}\n{more if isinstance(more, str) else ''}"
