"""Unpacks packages without installing them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import packages
from .distro import BuildError, Distro, run


class Apt:
    """The host's apt with a separate package state.

    It ignores what the host has installed, and changes nothing on it. state: a directory for its lists and archives,
    which is kept for the next build.
    """

    def __init__(self, distro: Distro, state: Path) -> None:
        self.distro = distro
        self.state = state.resolve()
        for name in ("lists/partial", "archives/partial", "etc"):
            (self.state / name).mkdir(parents=True, exist_ok=True)
        (self.state / "status").touch()
        (self.state / "etc/sources.list").write_text("".join(f"{line}\n" for line in distro.sources))
        self._options = [
            f"Dir::State::lists={self.state}/lists",
            f"Dir::State::status={self.state}/status",
            f"Dir::Cache={self.state}",
            f"Dir::Cache::archives={self.state}/archives",
            f"Dir::Etc::sourcelist={self.state}/etc/sources.list",
            "Dir::Etc::sourceparts=-",
            "Dir::Etc::preferences=-",
            "Dir::Etc::preferencesparts=-",
            "APT::Sandbox::User=root",
            "Debug::NoLocking=true",
            "Acquire::Languages=none",
            "APT::Keep-Downloaded-Packages=true",
            "APT::Install-Recommends=false",
            "DPkg::Post-Invoke::=",
            "APT::Update::Post-Invoke::=",
        ]

    def _apt(self, program: str, *arguments: str) -> str:
        options = [word for option in self._options for word in ("-o", option)]
        return run(program, *options, *arguments)

    def update(self) -> None:
        self._apt("apt-get", "-q", "update")

    def download(self, *names: str, dependencies: bool) -> list[Path]:
        """Return the .deb files of packages, with or without their dependencies, in a fixed order.

        Files that are already there are not downloaded again. BuildError for a package
        that does not exist.
        """
        if not dependencies:
            options = [word for option in self._options for word in ("-o", option)]
            run("apt-get", *options, "download", "-q", *names, cwd=self.state / "archives")
            return [self._archive(name, None) for name in names]
        self._apt("apt-get", "install", "-y", "-q", "--download-only", *names)
        plan = self._apt("apt-get", "install", "-y", "-q", "--simulate", *names)
        chosen = sorted(tuple(line.split()[1:3]) for line in plan.splitlines() if line.startswith("Inst "))
        return [self._archive(name, version.strip("([")) for name, version in chosen]

    def _archive(self, name: str, version: str | None) -> Path:
        pattern = f"{name}_*_*.deb" if version is None else f"{name}_{version.replace(':', '%3a')}_*.deb"
        found = sorted((self.state / "archives").glob(pattern), key=lambda path: path.stat().st_mtime)
        if not found:
            raise BuildError(f"apt downloaded no {pattern}")
        return found[-1]

    def kernel(self) -> str:
        """Return the name of the package with the distribution's current kernel.

        It is what the distribution's meta package depends on. BuildError if it depends on none.
        """
        meta = packages.KERNEL[self.distro.id]
        for line in self._apt("apt-cache", "depends", "--important", meta).splitlines():
            word = line.split()[-1] if line.split() else ""
            if word.startswith("linux-image-") and word != meta:
                return word
        raise BuildError(f"package {meta} depends on no linux-image-*")


def unpack(archives: list[Path], target: Path, merged_usr: bool = False) -> None:
    """Unpack packages into a directory, without running their scripts.

    merged_usr: /bin, /lib and /sbin are links into /usr. All files are owned by the caller. Raises BuildError.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64") if merged_usr else ():
        (target / "usr" / name).mkdir(parents=True, exist_ok=True)
        (target / name).symlink_to(f"usr/{name}")
    for archive in archives:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", archive], stdout=subprocess.PIPE) as reader:
            done = subprocess.run(
                ["tar", "-x", "--keep-directory-symlink", "--no-same-owner", "-C", target],
                stdin=reader.stdout,
                check=False,
            )
        if reader.returncode or done.returncode:
            raise BuildError(f"cannot unpack {archive}")
