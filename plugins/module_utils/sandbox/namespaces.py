"""The namespaces of a sandbox: make, find, enter and remove them.

`<state_dir>/sandbox.json` is `{"cluster", "netns", "pid", "start", "work"}` of a running one; `pid` is its first process
(`keeper`), as the host counts. Everything in it ends with that process.
"""

from __future__ import annotations

import contextlib
import fcntl
import inspect
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..documents import load_json, read_file
from ..state import write_atomic
from . import LabError, keeper, processes

FILE = "sandbox.json"
HOST_FILE = "host.json"
NETNS_DIR = Path("/run/netns")
DEVICE = Path("/dev/kvm")
READY_SECONDS = 20.0
PRIVATE = ("/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
# dbus and systemd would lead libvirt to the host's firewalld and machined, and the resolver to the host's.
HIDDEN = ("libvirt", "dbus", "systemd", "chrony", "netns", "nscd", "mount", "libvirtd.pid", "virtlogd.pid")
LIBVIRT_CONFIG = {
    "libvirtd.conf": 'auth_unix_ro = "none"\nauth_unix_rw = "none"\n',
    "virtlogd.conf": "max_size = 1073741824\nmax_backups = 1\n",
    "qemu.conf": 'security_driver = "none"\nnamespaces = []\ncgroup_controllers = []\nremember_owner = 0\n',
}
# What sudo would take from a user's command.
KEPT = ("HOME", "USER", "LOGNAME", "PATH", "TERM", "LANG", "KUBECONFIG", "AGENTLAB_CLUSTER")
PROGRAMS = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "libvirtd": "libvirt-daemon-system",
    "virtlogd": "libvirt-daemon-system",
    "dnsmasq": "dnsmasq-base",
    "qemu-img": "qemu-utils",
}


@dataclass(frozen=True)
class Running:
    """A sandbox that runs."""

    cluster: str
    netns: str
    pid: int
    start: int
    work: str


def find(state_dir: Path) -> Running | None:
    """Return the sandbox whose state is in `state_dir`, if its first process runs."""
    try:
        running = Running(**load_json(read_file(state_dir / FILE), name=str(state_dir / FILE)))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return running if processes.start_time(running.pid) == running.start else None


def default_state_dir(cluster: str) -> Path:
    """Return where the state of a cluster is, unless its plan says otherwise."""
    return Path("/var/lib/agentlab") / cluster


def require(cluster: str, state_dir: Path) -> Running:
    """Return the sandbox of `cluster`; `LabError` says how to get one."""
    running = find(state_dir)
    if not running:
        raise LabError(
            f"cluster {cluster} has no running sandbox ({state_dir / FILE}): agentlab prepare --cluster {cluster}"
        )
    return running


def enter(running: Running, directory: str | None = None) -> list[str]:
    """Return the start of a command line that runs the rest in the sandbox, in `directory` (default `/`)."""
    place = [f"--wdns={directory}"] if directory else []
    # The root is that of the sandbox, too: in a chroot the mount namespace's own is another.
    return ["nsenter", f"--target={running.pid}", "--net", "--mount", "--pid", "--root", *place, "--"]


def as_caller() -> list[str]:
    """Return what goes between `enter` and a command to run it as the present user, whom `sudo` makes root on the way."""
    if os.geteuid() == 0:
        return []
    kept = [f"{name}={os.environ[name]}" for name in KEPT if name in os.environ]
    return ["setpriv", f"--reuid={os.getuid()}", f"--regid={os.getgid()}", "--init-groups", "env", *kept]


def missing_programs() -> dict[str, str]:
    """Return {program: Debian package} for what a sandbox needs and this host does not have."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return {name: package for name, package in PROGRAMS.items() if not shutil.which(name, path=path)}


def ensure(
    cluster: str, netns: str, state_dir: Path, resolver: list[str], search: str, kvm: Callable[[], bool] = lambda: False
) -> bool:
    """Make the sandbox of `cluster` unless it runs; return whether it had to be made.

    netns: name of its network namespace (for `ip netns`); resolver, search: what its /etc/resolv.conf says; kvm: says
    whether guests may use KVM, asked when a sandbox is made. The daemons of libvirt answer when this returns.
    """
    if find(state_dir):
        _name(find(state_dir), netns)  # type: ignore[arg-type]
        return False
    if lacking := missing_programs():
        raise LabError(
            f"a sandbox needs {', '.join(sorted(lacking))}: install {' '.join(sorted(set(lacking.values())))}"
        )
    claim(state_dir, NETNS_DIR)
    remove_keeper(state_dir)
    work = state_dir / "sandbox"
    for name in PRIVATE:
        (work / name.strip("/").replace("/", "-")).mkdir(parents=True, exist_ok=True)
    accelerated = DEVICE.exists() and kvm()
    for name, text in LIBVIRT_CONFIG.items():
        # QEMU's user gets at the device by its group, whatever the group's number is here.
        group = f'group = "+{DEVICE.stat().st_gid}"\n' if accelerated and name == "qemu.conf" else ""
        write_atomic(work / "etc-libvirt" / name, text + group)
    for path in (state_dir, work):
        path.chmod(0o755)
    spec = {
        "name": netns,
        "work": str(work),
        "binds": [[str(work / name.strip("/").replace("/", "-")), name] for name in PRIVATE],
        "hidden": list(HIDDEN),
        # A device that opens for root and not for QEMU's user makes libvirt look for QEMU's capabilities at every call.
        "masked": [str(DEVICE)] if DEVICE.exists() and not accelerated else [],
        "resolver": "".join(f"nameserver {address}\n" for address in resolver) + f"search {search}\n",
        "daemons": {"virtlogd": ["virtlogd"], "libvirtd": ["libvirtd"]},
    }
    running = _start(cluster, netns, state_dir, spec)
    _name(running, netns)
    _wait_for_libvirt(running)
    return True


def remove(netns: str, state_dir: Path) -> bool:
    """End the sandbox and everything in it, and remove its name and its files; return whether there was anything."""
    running = remove_keeper(state_dir)
    named = (NETNS_DIR / netns).exists()
    if named:
        _ip("netns", "delete", netns)
    existed = state_dir.is_dir()
    if existed:
        if not (state_dir.parent / HOST_FILE).exists():
            raise LabError(f"{state_dir} was not made by agentlab ({HOST_FILE} is missing beside it): not removed")
        shutil.rmtree(state_dir)
    leave_host(state_dir.parent)
    return running or named or existed


def remove_keeper(state_dir: Path) -> bool:
    """End the first process of the sandbox, also one that was never written down; return whether there was one."""
    known = find(state_dir)
    found = known or processes.find(state_dir, "keeper")
    if found:
        processes.end(found.pid, found.start)
    with contextlib.suppress(FileNotFoundError):
        (state_dir / FILE).unlink()
    return found is not None


def claim(state_dir: Path, *others: Path) -> None:
    """Make `state_dir`, after noting which of the directories that clusters share are about to be made."""
    with shared(state_dir.parent) as made:
        made |= {str(path) for path in others if not path.is_dir()}
    state_dir.mkdir(exist_ok=True)


@contextlib.contextmanager
def shared(parent: Path) -> Iterator[set[str]]:
    """Change, under a lock, the set of what all clusters of this host share and the first of them made (`host.json`)."""
    created = not parent.is_dir()
    parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        path = parent / HOST_FILE
        made = set(load_json(read_file(path), name=str(path))) if path.exists() else set()
        made |= {str(parent)} if created else set()
        yield made
        write_atomic(path, json.dumps(sorted(made)))
    finally:
        os.close(handle)


def leave_host(parent: Path) -> None:
    """When no cluster is left below `parent`, remove what the first one made for all."""
    if not parent.is_dir():
        return
    with shared(parent) as made:
        if any(entry.is_dir() for entry in parent.iterdir()):
            return
        if str(NETNS_DIR) in made and NETNS_DIR.is_dir() and not any(NETNS_DIR.iterdir()):
            while _mount_of(NETNS_DIR) != _mount_of(NETNS_DIR.parent):
                keeper.unmount(str(NETNS_DIR))
            NETNS_DIR.rmdir()
        for setting in (name.removeprefix("sysctl:") for name in made if name.startswith("sysctl:")):
            path, __, value = setting.rpartition("=")
            with contextlib.suppress(FileNotFoundError):
                Path(path).write_text(value)
    (parent / HOST_FILE).unlink()
    if str(parent) in made:
        with contextlib.suppress(OSError):
            parent.rmdir()


def _start(cluster: str, netns: str, state_dir: Path, spec: dict[str, Any]) -> Running:
    script = state_dir / "sandbox" / "keeper.py"
    write_atomic(script, inspect.getsource(keeper))
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    try:
        result = subprocess.run(
            [sys.executable, "-I", str(script)],
            input=json.dumps(spec),
            capture_output=True,
            text=True,
            timeout=READY_SECONDS,
            cwd="/",
            env={**processes.lasting(os.environ), "PATH": path, **processes.mark(state_dir, "keeper")},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        remove_keeper(state_dir)
        raise LabError(f"sandbox {netns} was not ready within {READY_SECONDS:.0f} s") from error
    if result.returncode:
        raise LabError(f"sandbox {netns} cannot be made: {result.stderr.strip()}")
    pid = int(result.stdout)
    running = Running(cluster, netns, pid, processes.start_time(pid) or 0, str(state_dir / "sandbox"))
    write_atomic(state_dir / FILE, json.dumps(running.__dict__) + "\n")
    return running


def _name(running: Running, netns: str) -> None:
    path = NETNS_DIR / netns
    if path.exists():
        if os.path.samefile(path, f"/proc/{running.pid}/ns/net"):
            return
        _ip("netns", "delete", netns)
    _ip("netns", "attach", netns, str(running.pid))


def _mount_of(path: Path) -> str:
    """Return the id of the mount that `path` is in; os.path.ismount does not see a bind mount within one file system."""
    handle = os.open(path, os.O_PATH)
    try:
        return next(line for line in Path(f"/proc/self/fdinfo/{handle}").read_text().splitlines() if "mnt_id" in line)
    finally:
        os.close(handle)


def _ip(*arguments: str) -> None:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise LabError(f"ip {' '.join(arguments)}: {result.stderr.strip()}")


def _wait_for_libvirt(running: Running) -> None:
    path = f"/proc/{running.pid}/root/run/libvirt/libvirt-sock"
    deadline = time.monotonic() + READY_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
            return
        if time.monotonic() > deadline:
            log = processes.log_tail(Path(running.work) / "libvirtd.log")
            raise LabError(f"libvirtd in sandbox {running.netns} does not answer after {READY_SECONDS:.0f} s: {log}")
        time.sleep(0.02)
