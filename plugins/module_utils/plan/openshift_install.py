"""Checks of an openshift-install that a profile names: a build, or a repository of it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..vocabulary import RunFile
from .overrides import machine

VERSION_SECONDS = 30
"""Longest time that it may take to print its version."""
_VERSION = re.compile(rb"^\S+ v?(\d+\.\d+)(?:\.\S*)?$", re.MULTILINE)


class InstallerBuildError(ValueError):
    """A build that cannot be used; the message does not name it.

    The text follows the name in a message: "is not executable: chmod +x", say.
    """


def program(installer: Mapping[str, Any], directory: str | Path) -> str:
    """Return the path of the build of openshift-install that installs; "": none, which is agentlab's own installer.

    installer: `release.installer` of a plan, or a part of it. A build from a repository is a link in `directory`, the run directory,
    which the module `installer_build` makes.
    """
    return f"{directory}/{RunFile.OPENSHIFT_INSTALL}" if installer.get("git") else installer.get("binary") or ""


def check(name: str, release: str | None) -> None:
    """Check a build of openshift-install for `release`, a version. Raises `InstallerBuildError`.

    A build without a version of a release (`unreleased-master-...`) is for any.
    """
    path = Path(name).expanduser()
    if not path.is_file():
        raise InstallerBuildError("is not a file" if path.exists() else "there is no such file")
    if not os.access(path, os.X_OK):
        raise InstallerBuildError("is not executable: chmod +x")
    here, built_for = platform.machine(), machine(path)
    if built_for not in (None, here):
        raise InstallerBuildError(f"is an ELF file for {built_for}; this host is {here}")
    try:
        done = subprocess.run(
            [path, "version"], capture_output=True, check=True, timeout=VERSION_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise InstallerBuildError(f"did not print its version within {VERSION_SECONDS} s") from None
    except subprocess.CalledProcessError as error:
        raise InstallerBuildError(f"cannot print its version: exit code {error.returncode}") from None
    except OSError as error:
        raise InstallerBuildError(f"cannot be started: {error.strerror}") from None
    found = _VERSION.search(done.stdout)
    line = ".".join((release or "").split(".")[:2])
    if found and line and found[1].decode() != line:
        raise InstallerBuildError(
            f"is version {found[1].decode()}, the release is {release}: must be a build of {line}, or of no release"
        )


def missing() -> str:
    """Return what a build from a repository needs and this host lacks, to follow its name; "" when it has all."""
    lacking = [name for name in ("git", "go") if not shutil.which(name)]
    return f"is built with git and go: {' and '.join(lacking)} must be in PATH" if lacking else ""


def is_repository(path: Path) -> bool:
    """Return whether `path` is a git repository, with or without a working tree."""
    return (path / ".git").exists() or (path / "HEAD").is_file()
