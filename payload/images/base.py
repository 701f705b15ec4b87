"""The base layer of all component images: Python and the programs' dependencies, from the distribution's packages."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from ..machine_os import debs
from ..machine_os.distro import BuildError, Distro, run
from . import oci
from .components import BASE_PACKAGES, EXTRA_FILES, EXTRA_PACKAGES, Provision

# Paths that no program of the payload opens, as globs.
EXCLUDE: tuple[str, ...] = (
    "boot",
    "media",
    "mnt",
    "opt",
    "srv",
    "home",
    "var/lib/dpkg",
    "var/lib/systemd",
    "var/cache/*",
    "var/backups",
    "etc/init.d",
    "etc/cron*",
    "etc/rc*.d",
    "etc/apparmor*",
    "etc/dpkg",
    "etc/apt",
    "etc/perl",
    "etc/logrotate.d",
    "etc/default",
    "etc/pam.d",
    "etc/kernel",
    "etc/sensors*",
    "etc/snmp",
    "etc/debconf.conf",
    "etc/skel",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/lintian",
    "usr/share/perl*",
    "usr/share/bash-completion",
    "usr/share/debconf",
    "usr/share/dpkg",
    "usr/share/snmp",
    "usr/share/misc",
    "usr/share/common-licenses",
    "usr/share/gcc",
    "usr/share/gdb",
    "usr/share/pixmaps",
    "usr/share/applications",
    "usr/share/glib-2.0",
    "usr/share/base-files",
    "usr/share/python3",
    "usr/share/mime",
    "usr/share/zsh",
    "usr/share/bug",
    "usr/share/pam*",
    "usr/share/ca-certificates",
    "usr/share/zoneinfo",
    "usr/share/menu",
    "usr/share/initramfs-tools",
    "usr/share/polkit-1",
    "usr/share/dbus-1",
    "usr/share/tabset",
    "usr/games",
    "usr/include",
    "usr/src",
    "usr/bin/perl*",
    "usr/bin/dpkg*",
    "usr/bin/cpan*",
    "usr/bin/tar",
    "usr/bin/mawk",
    "usr/bin/debconf*",
    "usr/bin/pydoc*",
    "usr/bin/py3*",
    "usr/sbin/dpkg*",
    "usr/lib/dpkg",
    "usr/lib/*/perl*",
    "usr/lib/*/gconv",
    "usr/lib/*/libgtk*",
    "usr/lib/*/girepository*",
    "usr/lib/*/libicu*",
    "usr/lib/systemd",
    "usr/lib/udev",
    "usr/lib/init",
    "usr/lib/usrmerge",
    "usr/lib/python3*/test",
    "usr/lib/python3*/idlelib",
    "usr/lib/python3*/lib2to3",
    "usr/lib/python3*/ensurepip",
    "usr/lib/python3*/tkinter",
    "usr/lib/python3*/turtledemo",
    "usr/lib/python3*/pydoc_data",
    "usr/lib/python3*/distutils",
    "usr/lib/python3*/unittest",
    "usr/lib/python3*/config-*",
    "usr/lib/python3/dist-packages/*/tests",
    "usr/lib/python3/dist-packages/*-info",
)

USERS = (
    "root:x:0:0:root:/root:/bin/sh",
    "postgres:x:26:26:PostgreSQL Server:/var/lib/pgsql:/bin/bash",  # the user of assisted-db
    "hacluster:x:189:189:cluster user:/var/lib/pacemaker:/usr/sbin/nologin",  # of Pacemaker, as on RHEL
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin",
)
# Layers whose programs need what `_NEEDED` has: libxml2 of Pacemaker is linked with ICU.
_WITH_NEEDED = ("pacemaker",)
# What PostgreSQL and `file` need of `EXCLUDE`, and PostgreSQL's compiler of expressions, which is larger than all the rest.
_NEEDED = {"usr/lib/*/libicu*", "usr/share/zoneinfo", "usr/share/misc"}
_JIT = ("usr/lib/llvm*", "usr/lib/*/libLLVM*", "usr/lib/postgresql/*/lib/llvmjit*", "usr/lib/postgresql/*/lib/bitcode")
# Folders with libraries, from the distribution's own: librados, which fio is linked with, names the second (RUNPATH); the third,
# /usr/lib, has those of packages without multi-arch.
_RUNPATHS = ("", "ceph", "..")
# Programs that the payload calls besides Python, by layer ("" is the base), as globs.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "": ("usr/bin/ip", "usr/bin/nsenter", "usr/bin/openssl", "usr/bin/dash", "usr/bin/bash", "usr/bin/lsblk"),
    "keepalived": ("usr/sbin/keepalived",),
    "pacemaker": (
        *(f"usr/sbin/{name}" for name in ("corosync", "crm_mon", "pacemakerd")),
        *(f"usr/lib/pacemaker/pacemaker-{name}" for name in ("based", "controld", "execd", "fenced", "schedulerd")),
    ),
    "database": tuple(f"usr/lib/postgresql/*/bin/{name}" for name in ("initdb", "pg_ctl", "postgres", "psql")),
    "agent-tools": (
        *(f"usr/bin/{name}" for name in ("arping", "file", "fio", "ipmitool", "nmap", "ping", "sg_inq")),
        "usr/sbin/dmidecode",
    ),
}
# Commands provided by busybox, if no package has them.
APPLETS = (  # noqa: SIM905
    "arping awk basename cat chgrp chmod chown chroot clear cmp cp cut date dd df diff dirname dmesg du echo egrep env expr false fgrep find free "
    "fuser getopt grep gunzip gzip head hexdump hostname id ifconfig install kill killall less ln ls lsof md5sum mkdir mkfifo mknod mktemp more "
    "mount mountpoint mv nc netstat nice nproc nslookup od paste pgrep pidof ping ping6 pkill printenv printf ps pwd readlink realpath rm rmdir "
    "route sed seq setsid sha256sum sha512sum sleep sort ss stat stty sync tail tar tee telnet test time timeout top touch tr traceroute true "
    "truncate tty umount uname uniq unzip uptime usleep vi watch wc wget which whoami xargs xxd yes zcat"
).split()


def build(distro: Distro, apt: debs.Apt, out: Path) -> dict[str, oci.Descriptor]:
    """Build the base layer and those on top of it.

    Below `out`: `tree`, the base layer unpacked, and a file `<name>.tar` for each layer. Returns their descriptors by
    name; "base" is the base layer's.
    """
    tree = out / "tree"
    archives = apt.download(*BASE_PACKAGES, dependencies=True)
    debs.unpack(archives, tree, merged_usr=True)
    certificates = b"".join(
        path.read_bytes().strip() + b"\n" for path in sorted((tree / "usr/share/ca-certificates").rglob("*.crt"))
    )
    _trim(tree)
    _configure(tree, certificates)
    _compile(distro, tree)
    _complete(distro, "", tree)
    layers = {"base": oci.write_layer(out / "base.tar", dict(oci.tree_nodes(tree)), compression="zstd")}
    for name, wanted in EXTRA_PACKAGES.items():
        exclude = sorted({*EXCLUDE} - _NEEDED) if name in _WITH_NEEDED else EXCLUDE
        layers[name] = _top(distro, apt, out, name, wanted, tree, exclude)
    return layers


def provision(distro: Distro, apt: debs.Apt, out: Path, wanted: Provision, tree: Path) -> oci.Descriptor:
    """Build the layer `<wanted.layer>.tar` with its packages on top of the base layer that is unpacked in `tree`.

    out: where `<wanted.layer>.tar` is written, compressed with zstd. Raises `BuildError` when a program that it should
    bring is missing.
    """
    exclude = (*sorted({*EXCLUDE} - _NEEDED), *_JIT)
    return _top(distro, apt, out, wanted.layer, wanted.packages, tree, exclude, wanted.alternatives)


def _top(
    distro: Distro,
    apt: debs.Apt,
    out: Path,
    name: str,
    wanted: Iterable[str],
    tree: Path,
    exclude: Iterable[str],
    alternatives: Mapping[str, str] | None = None,
) -> oci.Descriptor:
    archives = apt.download(*BASE_PACKAGES, dependencies=True)
    more = [path for path in apt.download(*BASE_PACKAGES, *wanted, dependencies=True) if path not in archives]
    top = out / f"{name}.tree"
    debs.unpack(more, top, merged_usr=True)
    _trim(top, exclude)
    for package, paths in EXTRA_FILES.get(name, {}).items():
        whole = out / f"{package}.tree"
        debs.unpack(apt.download(package, dependencies=False), whole)
        for path in paths:
            (top / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(whole / path, top / path)
        shutil.rmtree(whole)
    for path, target in (alternatives or {}).items():
        (top / path).symlink_to(target)
    _complete(distro, name, top, tree)
    nodes = {path: node for path, node in oci.tree_nodes(top) if node.data is not None or node.link is not None}
    nodes = {path: node for path, node in nodes.items() if path not in ("bin", "sbin", "lib", "lib64")}
    layer = oci.write_layer(out / f"{name}.tar", nodes, compression="zstd")
    shutil.rmtree(top)
    return layer


def _trim(tree: Path, exclude: Iterable[str] = EXCLUDE) -> None:
    for pattern in exclude:
        for path in sorted(tree.glob(pattern)):
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _compile(distro: Distro, tree: Path) -> None:
    """Keep only the byte code of the packages' Python: half the files to unpack on a node."""
    paths = list(tree.glob("usr/lib/python3*"))
    python(
        distro,
        tree,
        "-m",
        "compileall",
        "-q",
        "-f",
        "-b",
        "--invalidation-mode",
        "unchecked-hash",
        "-s",
        tree,
        "-p",
        "/",
        *paths,
    )
    for path in paths:
        for source in sorted(path.rglob("*.py")):
            source.unlink()
        for folder in sorted(path.rglob("__pycache__")):
            shutil.rmtree(folder)


def python(distro: Distro, tree: Path, *arguments: str | Path) -> str:
    """Runs the Python of an unpacked tree, with its own libraries.

    arguments: for that interpreter, such as `-c` and a text. Returns its stdout. Raises `BuildError` with the end of
    its error output.
    """
    libraries = tree / "usr/lib" / distro.triplet
    environment = {"PYTHONHOME": str(tree / "usr"), "LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", "")}
    done = subprocess.run(
        [
            str(libraries / distro.loader),
            "--library-path",
            str(libraries),
            str(tree / "usr/bin/python3"),
            "-s",
            *map(str, arguments),
        ],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(f"python of {tree}: {(done.stderr or done.stdout).strip()[-2000:]}")
    return done.stdout


def _configure(tree: Path, certificates: bytes) -> None:
    for name in (
        "etc/ssl/certs",
        "etc/pki/ca-trust/extracted/pem",
        "etc/pki/tls/certs",
        "tmp",
        "run",
        "proc",
        "sys",
        "dev",
        "root",
        "var/tmp",
        "var/lib",
    ):
        (tree / name).mkdir(parents=True, exist_ok=True)
    files = {
        "etc/passwd": "".join(f"{line}\n" for line in USERS),
        "etc/group": "root:x:0:\ntty:x:5:\npostgres:x:26:\nhaclient:x:189:\nnogroup:x:65534:\n",
        "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "etc/ssl/openssl.cnf": (tree / "usr/lib/ssl/openssl.cnf").resolve().read_text()
        if (tree / "etc/ssl/openssl.cnf").exists()
        else "",
    }
    for name, text in files.items():
        (tree / name).write_text(text)
    for name in ("etc/ssl/certs/ca-certificates.crt", "etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"):
        (tree / name).write_bytes(certificates)
    for link, target in {
        "usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt",
        "usr/bin/sh": "dash",
        "etc/pki/tls/certs/ca-bundle.crt": "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
        "var/run": "/run",
    }.items():
        path = tree / link
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    for applet in APPLETS:
        if not any(os.path.lexists(tree / "usr" / folder / applet) for folder in ("bin", "sbin")):
            (tree / "usr/bin" / applet).symlink_to("busybox")


def _complete(distro: Distro, name: str, tree: Path, *below: Path) -> None:
    """Raise BuildError if a program is missing or lacks a library, or an import of the payload fails."""
    trees = (tree, *below)
    libraries = [root / "usr/lib" / distro.triplet / folder for root in trees for folder in _RUNPATHS]
    loader = next(folder / distro.loader for folder in libraries if (folder / distro.loader).exists())
    if not below:
        python(
            distro,
            tree,
            "-c",
            "import aiohttp, yaml, cryptography.x509, jsonschema, sqlite3, ssl, asyncio, ctypes, multiprocessing",
        )
    found = {pattern: [path.relative_to(tree) for path in tree.glob(pattern)] for pattern in PROGRAMS[name]}
    if missing := [pattern for pattern, paths in found.items() if not paths]:
        raise BuildError(f"the images lack /{', /'.join(missing)}: the distribution's packages no longer have them")
    for program in itertools.chain.from_iterable(found.values()):
        listed = run(loader, "--library-path", ":".join(map(str, libraries)), "--list", tree / program)
        for root in trees:
            listed = listed.replace(str(root), "<tree>")
        if "not found" in listed or re.search(r"=> /(usr/)?lib", listed):
            raise BuildError(f"/{program} of the images needs libraries that were removed:\n{listed}")
