"""The environment that `make` builds is locked: each package in one version, with the hashes of its files."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("", "-build", "-hypervisor", "-test", "-ironic", "-ironic-agent")


def asked(name: str) -> list[Requirement]:
    """The requirements that maintainers write; those of included files, too."""
    found = []
    for line in (ROOT / f"requirements{name}.txt").read_text().splitlines():
        if included := re.match(r"-r requirements(.*)\.txt", line):
            found += asked(included[1])
        elif line and not line.startswith("#"):
            found.append(Requirement(line))
    return found


def locked(name: str) -> list[tuple[Requirement, list[str]]]:
    """Each line of a lock file, with its hashes."""
    text = (ROOT / f"requirements{name}.lock").read_text().replace("\\\n", "")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [
        (Requirement(line.partition(" --hash")[0]), re.findall(r"--hash=sha256:([0-9a-f]{64})", line)) for line in lines
    ]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_asked_for_is_locked(name: str) -> None:
    found = locked(name)
    for requirement, hashes in found:
        assert re.fullmatch(r"==[^*]+", str(requirement.specifier)) and hashes, requirement
    for wanted in asked(name):
        for python in ("3.11", "3.12", "3.13"):
            environment = {
                "python_version": python,
                "python_full_version": f"{python}.0",
                "sys_platform": "linux",
                "os_name": "posix",
            }
            versions = [
                next(iter(one.specifier)).version
                for one, __ in found
                if one.name == wanted.name.lower() and (one.marker is None or one.marker.evaluate(environment))
            ]
            assert len(versions) == 1 and wanted.specifier.contains(versions[0]), (
                f"{wanted}: {versions}; `make lock` writes the lock files again"
            )


@pytest.mark.parametrize("name", NAMES)
def test_lock_files_have_no_index(name: str) -> None:
    assert not re.search(r"://|^--?[a-z]", (ROOT / f"requirements{name}.lock").read_text(), re.MULTILINE)


def test_lock_files_agree() -> None:
    """The test environment is the users' one with more in it."""
    known = {(one.name, str(one.specifier)) for one, __ in locked("-test")}
    for name in NAMES[:3]:
        assert {(one.name, str(one.specifier)) for one, __ in locked(name)} <= known


def test_pip_checks_hashes_wherever_it_installs_a_lock() -> None:
    """A lock names all packages. pip that resolves them again prefers, for `coverage[toml]`, a release that is not locked."""
    for name in ("agentlab.sh", "Makefile", "roles/setup/tasks/main.yml"):
        text = (ROOT / name).read_text()
        assert "--require-hashes --no-deps" in text and not re.search(r"-r \S*requirements\S*\.txt", text), name


def test_the_environment_has_what_its_packages_require() -> None:
    """What a lock lacked would be missing: pip installs it without dependencies."""
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
