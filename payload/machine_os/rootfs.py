"""The lab OS's root file system: the distribution's packages, in the layout of CoreOS."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from . import checkout, packages
from .distro import BuildError, Distro, run

FILES = Path(__file__).parent / "files/rootfs"
# Not read-only in CoreOS: links into /var.
VAR_LINKS = {
    "home": "var/home",
    "root": "var/roothome",
    "opt": "var/opt",
    "srv": "var/srv",
    "mnt": "var/mnt",
    "usr/local": "../var/usrlocal",
}
VAR_DIRS = (
    "var/home",
    "var/roothome",
    "var/opt",
    "var/srv",
    "var/mnt",
    "var/usrlocal",
    "var/usrlocal/bin",
    "var/usrlocal/sbin",
    "var/usrlocal/lib",
    "var/usrlocal/share",
    "var/usrlocal/etc",
    "var/log",
    "var/log/journal",
    "var/tmp",
    "var/cache",
    "var/spool",
    "var/lib/containers",
    "var/lib/misc",
)
SELINUX_TOOLS = (
    "checkmodule",
    "semodule_package",
    "semodule",
    "restorecon",
    "chcon",
    "setenforce",
    "getenforce",
    "setsebool",
    "getsebool",
    "sestatus",
    "semanage",
    "fixfiles",
    "load_policy",
    "selinuxenabled",
    "matchpathcon",
    "setfiles",
)


def bootstrap(distro: Distro, target: Path, log: Path) -> None:
    """Install packages.ROOTFS into a directory with mmdebstrap.

    target: is removed first; log: file that gets the messages. BuildError without root, and for packages that cannot be
    installed.
    """
    if os.geteuid() != 0:
        raise BuildError(
            "the root file system is installed with mmdebstrap as root: run 'agentlab payload build' with sudo"
        )
    shutil.rmtree(target, ignore_errors=True)
    run(
        "mmdebstrap",
        "--quiet",
        "--variant=custom",
        "--mode=root",
        f"--include={','.join(packages.ROOTFS)}",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        distro.codename,
        target,
        "-",
        stdin="".join(f"{line}\n" for line in distro.sources),
        log=log,
    )


def copy(tree: Path, target: Path) -> None:
    """Copy an installed tree as a working copy."""
    run("cp", "-a", "--reflink=auto", tree, target)


def finish(distro: Distro, root: Path, version: str, volume_id: str) -> None:
    """Turn an installed tree into the lab OS: remove what is not needed, add what CoreOS has.

    root: the tree, which is changed; version: of the release; volume_id: label of the live ISO.
    """
    _precompile(root)
    bundle = root / "usr/share/pki/ca-trust-source/bundle.pem"
    bundle.parent.mkdir(parents=True, exist_ok=True)
    if not bundle.exists():
        shutil.copy2(root / "etc/ssl/certs/ca-certificates.crt", bundle)
    for path in matches(root, packages.EXCLUDE):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
    for unit in packages.UNITS_REMOVED:
        (root / "usr/lib/systemd/system" / unit).unlink(missing_ok=True)
    for link in list((root / "etc/systemd/system").rglob("*")):
        if link.is_symlink():
            link.unlink()
    _links(root)
    checkout.copy_tree(FILES, root)
    _identity(root, distro, version, volume_id)
    _accounts(root)
    logins(root)


def squash(root: Path, out: Path) -> None:
    """Pack the tree into a squashfs file, which becomes the first member of rootfs.img.

    out: is replaced. Raises BuildError.
    """
    out.unlink(missing_ok=True)
    run(
        "mksquashfs",
        root,
        out,
        "-noappend",
        "-quiet",
        "-no-progress",
        "-comp",
        "zstd",
        "-Xcompression-level",
        "9",
        "-b",
        "131072",
        "-mkfs-time",
        "0",
        "-no-xattrs",
    )


def matches(root: Path, patterns: tuple[str, ...]) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(root.glob(pattern))


def _precompile(root: Path) -> None:
    """Compile byte code that is never checked against its source: imports are slow in an emulated machine."""
    for lib in sorted(root.glob("usr/lib/python3*")):
        relative = "/" + str(lib.relative_to(root))
        subprocess.run(
            [
                "chroot",
                str(root),
                "python3",
                "-m",
                "compileall",
                "-q",
                "-j",
                "0",
                "--invalidation-mode",
                "unchecked-hash",
                "-f",
                "-x",
                "/(test|lib2to3|idlelib)/",
                relative,
            ],
            check=False,
            capture_output=True,
        )


def _links(root: Path) -> None:
    for name in VAR_DIRS:
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "var/roothome").chmod(0o700)
    (root / "var/tmp").chmod(0o1777)
    for name, target in VAR_LINKS.items():
        path = root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    for name in ("sysroot", "boot", "run", "proc", "sys", "dev", "tmp", "media"):
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "var/run").unlink(missing_ok=True)
    (root / "var/run").symlink_to("../run")
    for name in SELINUX_TOOLS:
        (root / "usr/sbin" / name).unlink(missing_ok=True)
        (root / "usr/bin" / name).unlink(missing_ok=True)
        (root / "usr/bin" / name).symlink_to("../libexec/selinux-simulator")
    for link, target in {
        "usr/lib/systemd/system/sshd.service": "ssh.service",
        "usr/lib/systemd/system/default.target": "multi-user.target",
        "usr/lib/ssl/cert.pem": "/etc/ssl/certs/ca-certificates.crt",
        "usr/bin/chronyd": "../sbin/chronyd",
        "etc/systemd/system/polkit.service": "/dev/null",
        "etc/systemd/system/modprobe@drm.service": "/dev/null",
    }.items():
        (root / link).parent.mkdir(parents=True, exist_ok=True)
        (root / link).unlink(missing_ok=True)
        (root / link).symlink_to(target)
    for name in (
        "etc/pki/ca-trust/extracted/pem",
        "etc/pki/tls/certs",
        "etc/ssl/certs",
        "etc/containers/registries.conf.d",
        "usr/libexec",
    ):
        (root / name).mkdir(parents=True, exist_ok=True)
    pem = (root / "usr/share/pki/ca-trust-source/bundle.pem").read_bytes()
    for name in ("etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "etc/ssl/certs/ca-certificates.crt"):
        (root / name).write_bytes(pem)
    tls = root / "etc/pki/tls/certs/ca-bundle.crt"
    tls.unlink(missing_ok=True)
    tls.symlink_to("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")


def _identity(root: Path, distro: Distro, version: str, volume_id: str) -> None:
    release = root / "usr/lib/os-release"
    lines = [
        line
        for line in release.read_text().splitlines()
        if line.split("=")[0] not in ("PRETTY_NAME", "VARIANT", "VARIANT_ID", "OSTREE_VERSION", "OPENSHIFT_VERSION")
    ]
    lines += [
        f'PRETTY_NAME="agentlab machine-os {version} ({distro.name})"',
        'VARIANT="agentlab machine-os"',
        "VARIANT_ID=coreos",
        f"OSTREE_VERSION='{version}'",
        f'OPENSHIFT_VERSION="{version.split("-")[0].rsplit(".", 1)[0]}"',
    ]
    release.write_text("\n".join(lines) + "\n")
    (root / "etc/machine-id").write_text("uninitialized\n")
    (root / "var/lib/dbus/machine-id").unlink(missing_ok=True)
    (root / "etc/hostname").write_text("localhost\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost localhost.localdomain\n::1 localhost localhost.localdomain\n")
    (root / "etc/fstab").write_text("")
    (root / "etc/issue").write_text("\\S (\\l)\n\n")
    (root / "etc/motd").write_text("")
    for name in ("resolv.conf", "mtab"):
        (root / "etc" / name).unlink(missing_ok=True)
    (root / "etc/mtab").symlink_to("../proc/self/mounts")
    for name in ("etc/.updated", "var/.updated"):
        (root / name).write_text("")


def logins(root: Path) -> None:
    """Let a login over ssh start no session: its scope and the user's manager take an emulated machine 3 to 13 s.

    root: the tree, with the configuration of libpam-systemd.
    """
    config = root / "etc/pam.d/common-session"
    lines = config.read_text().splitlines(keepends=True)
    config.write_text("".join(line for line in lines if "pam_systemd.so" not in line))


def _accounts(root: Path) -> None:
    """Add the groups of configs. Ignition creates the user core from the initrd's base config, as on CoreOS."""
    if "\nwheel:" not in (root / "etc/group").read_text():
        run("groupadd", "--root", root, "--system", "wheel")
    for path in (root / "etc/sudoers.d").iterdir():
        path.chmod(0o440)
