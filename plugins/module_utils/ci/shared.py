"""The files that OpenShift CI's later steps read: SHARED_DIR, which is flat and small, and names in ARTIFACT_DIR.

Readers and formats: docs/ci.md. Nothing here fails a job: what cannot be written is one message at the end.
"""

from __future__ import annotations

import errno
import html
import os
import shlex
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..documents import DocumentError, load_yaml, read_file
from ..files import new_file
from ..plan.model import Plan
from ..plan.rundir import dump
from ..report.hypervisor_logs import SCREEN
from ..state import write_atomic
from ..vocabulary import RunFile
from . import outcome

LINKS = "custom-links.txt"
PULL_SECRET = "auth/pull_secret.json"
"""In the run directory, which is DS_WORKING_DIR's."""
_STACKS = {"ipv4": "v4", "ipv6": "v6", "dualstack": "v4v6"}
_PRIVATE = 0o600


class Place:
    """A directory for results. It need not exist or be writable; `problem` is one message about what could not be written.

    name: for messages, such as SHARED_DIR; path: None for a place that is not there, to which nothing is written.
    """

    def __init__(self, name: str, path: Path | None) -> None:
        self.name, self.path = name, path
        self._lost: dict[str, str] = {}

    @property
    def folder(self) -> Path:
        """The directory, of a place that has one."""
        if self.path is None:
            raise ValueError(f"{self.name} is not set")
        return self.path

    def write(self, name: str, text: str) -> None:
        """Write a file, 0600.

        name: of a file in the directory; secrets must have been removed. An error is kept for `problem`, not raised.
        """
        self.make(name, lambda: text)

    def make(self, name: str, content: Callable[[], str]) -> None:
        """Write what `content` returns; its OSError or ValueError counts as one of the file.

        Without a directory `content` is not called. The file is complete or not there.
        """
        if self.path is None:
            return
        try:
            if not self.path.is_dir():
                raise FileNotFoundError(errno.ENOENT, "no such directory")
            write_atomic(self.path / name, content(), _PRIVATE)
        except (OSError, ValueError) as error:
            self._lost[name] = _reason(error)

    def append(self, name: str, text: str) -> str:
        """Add a line to a file, and return all of it; without a directory, the line alone."""
        before = self.read(name)
        after = before + ("\n" if before and not before.endswith("\n") else "") + text + "\n"
        self.write(name, after)
        return after

    def add(self, name: str, text: str) -> None:
        """Append to a file that grows, such as a log (0600); without an end of line of its own.

        After an error the file is left as it is: later text would hide the gap.
        """
        if self.path is None or name in self._lost:
            return
        try:
            with open(self.path / name, "a", encoding="utf-8", opener=partial(os.open, mode=_PRIVATE)) as stream:
                stream.write(text)
        except OSError as error:
            self._lost[name] = _reason(error)

    def lose(self, name: str, error: OSError) -> None:
        """Note something else that could not be written there.

        name: what it is, for the message of `problem`.
        """
        self._lost[name] = _reason(error)

    def read(self, name: str) -> str:
        """The content of a file; empty when there is none.

        Bytes that are not UTF-8 are replaced; an error counts as one of the file, and is in `problem`.
        """
        if self.path is not None:
            try:
                return (self.path / name).read_text(errors="replace")
            except FileNotFoundError:
                pass
            except OSError as error:
                self._lost[name] = _reason(error)
        return ""

    @property
    def problem(self) -> str:
        """What could not be written and why; empty when nothing was lost.

        It names the directory, all files, and the different reasons of the system.
        """
        if not self._lost:
            return ""
        reasons = ", ".join(sorted(set(self._lost.values())))
        return f"{self.name} {self.path}: cannot write {', '.join(sorted(self._lost))}: {reasons}"


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


class Result(NamedTuple):
    """How an attempt ended: its class, the first cause of a failure, and whether the cluster stays.

    partial: only some stages were asked for, so that nothing is installed although nothing failed.
    """

    ended: outcome.Class
    cause: str
    kept: bool
    partial: bool = False


def leave(
    result: Result,
    shared: Place,
    artifacts: Place,
    plan: Plan | None,
    run_dir: Path,
    *,
    proxy: str = "",
    link: str = "",
) -> None:
    """Write everything that later steps read.

    plan: of the cluster, if it got that far; proxy: URL of an HTTP proxy that leads into the cluster's network;
    link: URL of the artifacts, for the job's page. For a cluster that is removed, nothing describes how to reach it.
    """
    history = shared.append(outcome.STATUS, str(int(result.ended)))
    artifacts.write(outcome.STATUS, history)
    if result.ended or not result.partial:
        suites: Any = outcome.junit(outcome.attempts(history), result.cause)  # junitparser has no types
        artifacts.write(outcome.JUNIT, suites.tostring().decode())
    if result.ended:
        for place in (shared, artifacts):
            place.write(outcome.INFRASTRUCTURE_LOG, outcome.printable(result.cause) + "\n")
    shared.append(LINKS, _link(result, link))
    if not result.kept or plan is None:
        return
    shared.write("ds-vars.conf", variables(plan, run_dir))
    artifacts.write("ds-vars.conf", variables(plan, run_dir))
    access, password = run_dir / RunFile.KUBECONFIG, run_dir / RunFile.PASSWORD
    if access.exists():
        shared.make("kubeconfig", lambda: kubeconfig(access, proxy))
    if password.exists():
        shared.make("kubeadmin-password", password.read_text)
    if proxy:
        shared.write("proxy-conf.sh", proxy_settings(proxy))
    if not (result.ended or result.partial):
        for place in (shared, artifacts):
            place.write("console.url", plan["endpoints"]["console"]["url"])


def explain(cause: str, shared: Place, *, link: str = "") -> None:
    """After a gathering: replace the cause of an attempt that failed, or was interrupted before its cause was known.

    cause: as `Runner.cause` returns it; link: as for `leave`. A success in `install-status.txt` is left alone.
    """
    history = outcome.attempts(shared.read(outcome.STATUS))
    if history and history[-1]:
        shared.write(outcome.INFRASTRUCTURE_LOG, outcome.printable(cause) + "\n")
        shared.append(LINKS, _link(Result(history[-1], cause, False), link))


def kubeconfig(path: Path, proxy: str = "") -> str:
    """A kubeconfig whose clusters are reached through `proxy`.

    path: of the kubeconfig; proxy: URL, empty for none. Raises `OSError` and `DocumentError`.
    """
    data = _mapping(load_yaml(read_file(path), name=str(path)))
    for entry in data.get("clusters") or []:
        if proxy:
            entry["cluster"]["proxy-url"] = proxy
    return dump(data)


def _mapping(data: object) -> dict[str, Any]:
    return data if isinstance(data, dict) else {}


def variables(plan: Plan, run_dir: Path) -> str:
    """`ds-vars.conf`, which OpenShift CI's test step sources.

    DS_OPENSHIFT_VERSION is major.minor; DS_WORKING_DIR has `pull_secret.json` (`write_pull_secret`).
    """
    values = {
        "DS_OPENSHIFT_VERSION": plan["release"]["profile"],
        "DS_REGISTRY": f"{plan['services']['host']}:{plan['services']['registry']['port']}",
        "DS_WORKING_DIR": str((run_dir / PULL_SECRET).parent.absolute()),
        "DS_IP_STACK": _STACKS[plan["cluster"]["stack"]],
    }
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())


def proxy_settings(proxy: str) -> str:
    """`proxy-conf.sh`, which steps source before they call a client.

    proxy: URL with a port. It sets the variables in both cases, and PROXYPORT to the port alone.
    """
    names: Mapping[str, str] = {"HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "NO_PROXY": "localhost,127.0.0.1"}
    lines = [
        f"export {name}={shlex.quote(value)} {name.lower()}={shlex.quote(value)}\n" for name, value in names.items()
    ]
    return "".join([f"export PROXYPORT={proxy.rstrip('/').rpartition(':')[2]}\n", *lines])


def write_pull_secret(run_dir: Path) -> None:
    """Write the run's pull secret where `DS_WORKING_DIR` is; nothing when install-config.yaml has none, or was not written yet."""
    for path in (run_dir / RunFile.INSTALL_CONFIG, run_dir / f"inputs/{RunFile.INSTALL_CONFIG}"):
        if path.exists():
            try:
                secret = _mapping(load_yaml(read_file(path), name=str(path))).get("pullSecret")
            except DocumentError:
                return
            if isinstance(secret, str):
                write_atomic(run_dir / PULL_SECRET, secret, _PRIVATE)
            return


def _link(result: Result, url: str) -> str:
    text = html.escape(outcome.printable(result.cause).partition("\n")[0] if result.ended else _success(result))
    report = f'<a target="_blank" href="{html.escape(url)}">agentlab</a>' if url else "agentlab"
    return f"<p>{report}: {text}</p>"


def _success(result: Result) -> str:
    return "the stages that were asked for passed" if result.partial else "installed"


def archives(report: Path, target: Path) -> None:
    """Pack a gathered report under the names that tools for OpenShift CI look for.

    `agent-gather-<host>.tar.xz` has the logs of a host, `libvirt-logs.tar.gz` the consoles,
    `agent-gather-console-screenshots.tar.xz` pictures of the screens. Texts in the report are redacted already. Raises
    OSError.
    """
    for host in sorted(path for path in (report / "hosts").glob("*") if path.is_dir()):
        with _packed(target / f"agent-gather-{host.name}.tar.xz", "w:xz") as tar:
            tar.add(host, f"agent-gather-{host.name}")
    if screens := sorted((report / SCREEN).glob("*.png")):
        with _packed(target / "agent-gather-console-screenshots.tar.xz", "w:xz") as tar:
            for path in screens:
                tar.add(path, f"{_dashed(path.stem)}_console_screenshot.png")
    consoles = [(path, f"{_dashed(path.stem)}_console.log") for path in sorted((report / "console").glob("*.log"))]
    others = [(path, path.name) for path in sorted((report / "libvirt").glob("*"))]
    if consoles or others:
        with _packed(target / "libvirt-logs.tar.gz", "w:gz") as tar:
            for path, name in _unique([*consoles, *others]):
                tar.add(path, f"libvirt-logs/{name}")


@contextmanager
def _packed(path: Path, mode: Literal["w:xz", "w:gz"]) -> Iterator[tarfile.TarFile]:
    with new_file(path, overwrite=True) as stream, tarfile.open(fileobj=stream, mode=mode) as tar:
        yield tar


def _unique(files: list[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    seen = set[str]()
    for path, name in files:
        if name not in seen:
            seen.add(name)
            yield path, name


def _dashed(domain: str) -> str:
    """A domain's name as in the file names of others: `ostest-master-0`."""
    return domain.replace("_", "-")
