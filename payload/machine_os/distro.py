"""The host's distribution, from which the lab OS and the images are built, with its configured apt sources."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ORIGINS = {"debian": "Debian", "ubuntu": "Ubuntu"}
_ARCHES = {"x86_64": ("amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2")}


class BuildError(Exception):
    """The payload cannot be built; the message names the remedy."""


@dataclass(frozen=True)
class Distro:
    """A distribution release.

    `sources` are lines of sources.list(5); `arch` is dpkg's name, `triplet` the multiarch directory, `loader` the dynamic loader in it.
    """

    id: str
    codename: str
    name: str
    arch: str
    triplet: str
    loader: str
    sources: tuple[str, ...]


def host() -> Distro:
    """Return the distribution of this host.

    BuildError, with the distributions that are known, if the lab OS cannot be built from it or for its architecture.
    """
    release = platform.freedesktop_os_release()
    ident = release["ID"]
    if ident not in ORIGINS:
        raise BuildError(
            f"/etc/os-release: ID={ident}; the lab payload is built from the packages of {' or '.join(ORIGINS)}"
        )
    machine = platform.machine()
    if machine not in _ARCHES:
        raise BuildError(f"the lab payload is built for {', '.join(_ARCHES)}, not for this host's {machine}")
    arch, triplet, loader = _ARCHES[machine]
    return Distro(
        ident,
        release["VERSION_CODENAME"],
        release.get("PRETTY_NAME", ident),
        arch,
        triplet,
        loader,
        _sources(ident, release["VERSION_CODENAME"]),
    )


def _sources(ident: str, codename: str) -> tuple[str, ...]:
    """Return the host's sources of the distribution's archive (apt-get(8), indextargets)."""
    require("apt-get")
    fields = "|".join(f"$({name})" for name in ("ORIGIN", "LABEL", "REPO_URI", "RELEASE", "COMPONENT", "SIGNED_BY"))
    out = subprocess.run(
        ["apt-get", "indextargets", "--format", fields, "Created-By: Packages"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    suites: dict[str, list[str]] = {}
    for line in out.splitlines():
        origin, _label, uri, suite, component, signed = line.split("|", 5)
        known = origin == ORIGINS[ident] or (
            origin.startswith("$") and suite.split("-")[0] == codename and "-" in f"{suite}-"
        )
        if known and suite.split("-")[0] == codename and "backports" not in suite:
            option = "" if not signed or signed.startswith("$") else f"[signed-by={signed}] "
            suites.setdefault(f"deb {option}{uri} {suite}", []).append(component)
    if not suites:
        raise BuildError(
            f"apt knows no source of {ORIGINS[ident]} {codename}: see /etc/apt/sources.list.d, then run 'apt-get update'"
        )
    return tuple(f"{head} {' '.join(dict.fromkeys(components))}" for head, components in suites.items())


def require(*programs: str) -> None:
    """Raise BuildError if a program is not installed, naming its package."""
    packages = {
        "mksquashfs": "squashfs-tools",
        "mcopy": "mtools",
        "mformat": "mtools",
        "depmod": "kmod",
        "apt-get": "apt",
        "dpkg-deb": "dpkg",
        "zstd": "zstd",
    }
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [program for program in programs if shutil.which(program, path=path) is None]
    if missing:
        raise BuildError(
            "not installed: " + ", ".join(f"{name} (package {packages.get(name, name)})" for name in missing)
        )


def run(*argv: str | Path, stdin: str | None = None, log: Path | None = None, cwd: Path | None = None) -> str:
    """Run a program and return its output.

    stdin: text; log: file that gets its messages; cwd: directory. The locale is C, and programs do not prompt. BuildError
    with the last lines if it fails.
    """
    environment = {
        **os.environ,
        "LC_ALL": "C",
        "DEBIAN_FRONTEND": "noninteractive",
        "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin",
    }
    done = subprocess.run(
        [str(arg) for arg in argv],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        cwd=cwd,
        errors="replace",
        check=False,
    )
    if log is not None:
        log.write_text(done.stdout)
    if done.returncode:
        tail = "\n".join(done.stdout.strip().splitlines()[-12:])
        raise BuildError(f"{Path(str(argv[0])).name} failed with exit code {done.returncode}:\n{tail}")
    return done.stdout
