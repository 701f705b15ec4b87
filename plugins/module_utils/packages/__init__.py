"""The distribution's packages: which are missing, and how to install them so that no service starts, now or at the next boot."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import AgentlabError

OS_RELEASE = Path("/etc/os-release")
LIMIT = 1800
# invoke-rc.d asks this program; 101 forbids the action (Debian policy, /usr/share/doc/init-system-helpers).
POLICY = Path("/usr/sbin/policy-rc.d")
# The first preset that matches a unit decides (systemd.preset(5)).
PRESET = Path("/run/systemd/system-preset/00-agentlab.preset")


class PackageError(AgentlabError, RuntimeError):
    """It is not known which packages are missing, or they cannot be installed.

    The message has the end of the package manager's output, or the name of the program that is missing.
    """


def distribution(table: Mapping[str, object], text: str | None = None) -> str:
    """Return the key of `table` that fits this host (or the os-release in `text`): `ID-VERSION`, `ID-MAJOR`, `ID`, or an `ID_LIKE`.

    Raises `PackageError` when the table knows none of them.
    """
    text = OS_RELEASE.read_text() if text is None else text
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    found = {key.strip(): value.strip().strip("\"'") for key, value in pairs}
    version = found.get("VERSION_ID", "")
    for name in (found.get("ID", ""), *found.get("ID_LIKE", "").split()):
        for key in (f"{name}-{version}", f"{name}-{version.split('.')[0]}", name):
            if key in table:
                return key
    raise PackageError(
        f"{found.get('PRETTY_NAME', 'this system')} is not in the table of packages, which has {', '.join(sorted(table))}: "
        "install what roles/setup/vars/main.yml lists by hand, or add your distribution there"
    )


def missing(names: list[str]) -> list[str]:
    """Return those of the packages that are not installed. Of alternatives (`a | b`) any will do, and the first is returned.

    names: in the terms of dpkg or rpm, whichever is there. Raises `PackageError`.
    """
    choices = [[one.strip() for one in name.split("|")] for name in names]
    every = [one for alternatives in choices for one in alternatives]
    if Path("/usr/bin/dpkg-query").exists():
        done = _run(["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *every], check=False)
        installed = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    else:
        installed = {
            one for one in every if not _run(["rpm", "--query", "--whatprovides", one], check=False).returncode
        }
    return [alternatives[0] for alternatives in choices if installed.isdisjoint(alternatives)]


def install(names: list[str]) -> None:
    """Install packages; none of their services starts. Raises `PackageError` with the package manager's own words.

    names: of packages, no alternatives. It needs root; on Debian the package lists are updated only if the first
    attempt fails.
    """
    if Path("/usr/bin/apt-get").exists():
        with _quiet_debian():
            before = _units()
            # The lists may be old, or not there at all: then again with new ones.
            command = ["apt-get", "install", "--yes", "--no-install-recommends", *names]
            if _run(command, check=False).returncode:
                _run(["apt-get", "update"])
                _run(command)
            new = sorted(_units() - before)
            if new:
                _run(["systemctl", "disable", *new])
    else:
        with _quiet_systemd():
            _run(["dnf", "install", "--assumeyes", "--setopt=install_weak_deps=False", *names])


def _run(command: list[str], check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise PackageError(f"{command[0]}: there is no such program on this host") from None
    except subprocess.TimeoutExpired:
        raise PackageError(f"{' '.join(command[:3])}: not finished after {LIMIT} s") from None
    if check and done.returncode:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise PackageError(f"{' '.join(command)}: exit status {done.returncode}\n{tail}")
    return done


def _units() -> set[str]:
    """The units that are enabled: what a package's scripts add to them is taken back."""
    links = Path("/etc/systemd/system").glob("*.wants/*")
    return {link.name for link in links if not link.name.endswith(".target")}


@contextlib.contextmanager
def _quiet_debian() -> Iterator[None]:
    if POLICY.exists():
        # It is forbidden already, as in container images.
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


@contextlib.contextmanager
def _quiet_systemd() -> Iterator[None]:
    PRESET.parent.mkdir(parents=True, exist_ok=True)
    PRESET.write_text("disable *\n")
    try:
        yield
    finally:
        PRESET.unlink(missing_ok=True)
