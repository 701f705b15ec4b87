"""The namespaces of a sandbox: create, find, enter and remove them.

`<state_dir>/sandbox.json` is `{"cluster", "netns", "pid", "start", "work"}` of a running one; `pid` is its first process
(`keeper`), in the host's namespace. Everything in it ends with that process.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from ..documents import load_json, read_file
from ..errors import LabError
from ..plan import names
from ..state import owner, write_atomic
from . import keeper, one_thread, processes, supervise, switch
from .host import NETNS_DIR, claim, leave_host, mount_of

FILE = "sandbox.json"
ORIGIN = "origin"
"""In the state directory of a copy: a link with the path of the state directory that its machines know."""
DEVICE = Path("/dev/kvm")
READY_SECONDS = 20.0
PRIVATE = ("/etc/libvirt", "/var/lib/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
# dbus and systemd would connect libvirt to the host's firewalld and machined, and to the host's resolver.
HIDDEN = (
    "libvirt",
    "dbus",
    "systemd",
    "chrony",
    "netns",
    "nscd",
    "mount",
    "openvswitch",
    "libvirtd.pid",
    "virtlogd.pid",
)
LIBVIRT_CONFIG = {
    "libvirtd.conf": 'auth_unix_ro = "none"\nauth_unix_rw = "none"\n',
    "virtlogd.conf": "max_size = 1073741824\nmax_backups = 1\n",
    "qemu.conf": 'security_driver = "none"\nnamespaces = []\ncgroup_controllers = []\nremember_owner = 0\n',
}
# Environment variables that sudo would remove.
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
class RunningSandbox:
    """A running sandbox.

    pid, start: its first process, as the host sees it; work: directory of its private files. The fields are those of
    `sandbox.json`.
    """

    cluster: str
    netns: str
    pid: int
    start: int
    work: str


def find(state_dir: Path) -> RunningSandbox | None:
    """Return the sandbox whose state is in `state_dir`, if it is running.

    Within the sandbox itself, its pid is 1. None is also the answer for a damaged file, and for a pid that was reused.
    """
    try:
        running = RunningSandbox(**load_json(read_file(state_dir / FILE), name=str(state_dir / FILE)))
    except (OSError, ValueError, TypeError):
        return None
    texts = (running.cluster, running.netns, running.work)
    if not all(isinstance(text, str) for text in texts):
        return None
    if not processes.runs(running.pid, running.start):
        return _enclosing_sandbox(state_dir, running)
    # A file that was damaged may name any process. Only root can read the environment of root's processes.
    environment = processes.environment_of(running.pid)
    if environment and environment.get(processes.MARK) != f"{state_dir}/keeper":
        return None
    return running


def _enclosing_sandbox(state_dir: Path, noted: RunningSandbox) -> RunningSandbox | None:
    """Return the sandbox that this process itself is in, where its first process has the number 1."""
    here = processes.start_time(1) == noted.start and processes.is_ours(1, state_dir, "keeper")
    return replace(noted, pid=1) if here else None


def private(state_dir: Path, name: str) -> Path:
    """Return the directory, as the host sees it, that a sandbox shows at `name`, one of `PRIVATE`."""
    return state_dir / "sandbox" / name.strip("/").replace("/", "-")


def default_state_dir(cluster: str) -> Path:
    """Return the default state directory of a cluster."""
    return Path(names.state_dir(cluster))


def require(cluster: str, state_dir: Path) -> RunningSandbox:
    """Return the sandbox of `cluster`; `LabError` has the command that creates one.

    It names state directory and verb. A process in the sandbox gets it, too.
    """
    running = find(state_dir)
    if not running:
        raise LabError(
            f"cluster {cluster} has no running sandbox ({state_dir / FILE}): agentlab prepare --cluster {cluster}"
        )
    return running


def enter(running: RunningSandbox, directory: str | None = None) -> list[str]:
    """Return the command prefix to run in the sandbox, in `directory` (default `/`).

    The words are for root. directory: must exist in the sandbox. Append the command.
    """
    place = [f"--wdns={directory}"] if directory else []
    # The sandbox's root, too: in a chroot the root of the mount namespace differs.
    return ["nsenter", f"--target={running.pid}", "--net", "--mount", "--pid", "--root", *place, "--"]


def supervised_prefix(running: RunningSandbox, directory: str = "/") -> list[str]:
    """Return the command prefix to run in the sandbox what a person or a program may end, by a signal or Ctrl-C: see `supervise`.

    The words are for root; in all else they are as those of `enter`.
    """
    return [sys.executable, "-I", "-S", inspect.getfile(supervise), str(running.pid), directory]


def as_caller() -> list[str]:
    """Return what goes between `enter` or `supervised_prefix` and a command to run it as the current user, after `sudo` became root.

    Empty for root. Variables of `KEPT` are set again, because sudo removes them.
    """
    if os.geteuid() == 0:
        return []
    kept = [f"{name}={os.environ[name]}" for name in KEPT if name in os.environ]
    return [
        "setpriv",
        f"--reuid={os.getuid()}",
        f"--regid={os.getgid()}",
        "--init-groups",
        "--pdeathsig=TERM",
        "env",
        *kept,
    ]


def missing_programs(more: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return {program: Debian package} for missing programs of a sandbox; more: programs that it needs beyond the usual."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    return {name: package for name, package in {**PROGRAMS, **more}.items() if not shutil.which(name, path=path)}


def ensure(
    who: owner.Caller,
    netns: str,
    state_dir: Path,
    resolver: list[str],
    search: str,
    kvm: Callable[[], bool] = lambda: False,
    *,
    switched: bool = False,
) -> bool:
    """Create the sandbox of a cluster unless it is running; return whether it was created.

    who: its owner; netns: name of its network namespace (for `ip netns`); resolver, search: content of its
    /etc/resolv.conf; kvm: returns whether guests may use KVM, called when a sandbox is created; switched: whether it has a switch
    (`switch`). The daemons of libvirt answer when this returns. Raises `owner.OwnerError` for a cluster of another, `LabError` for a
    namespace of another owner.
    """
    if (running := find(state_dir)) is not None:
        mark = claim(state_dir, who).mark
        _name(running, netns, mark)
        return False
    if lacking := missing_programs(switch.PROGRAMS if switched else {}):
        raise LabError(
            f"a sandbox needs {', '.join(sorted(lacking))}: install {' '.join(sorted(set(lacking.values())))}"
        )
    found = claim(state_dir, who, NETNS_DIR)
    refuse_foreign_namespace(netns, state_dir, found.mark)
    remove_keeper(state_dir)
    work = state_dir / "sandbox"
    for name in PRIVATE:
        private(state_dir, name).mkdir(parents=True, exist_ok=True)
    accelerated = DEVICE.exists() and kvm()
    for name, text in LIBVIRT_CONFIG.items():
        # QEMU's user accesses the device by its group, with any group id.
        group = f'group = "+{DEVICE.stat().st_gid}"\n' if accelerated and name == "qemu.conf" else ""
        write_atomic(work / "etc-libvirt" / name, text + group)
    work.chmod(0o755)
    spec = {
        "name": netns,
        "mark": owner.label(found.mark),
        "work": str(work),
        "binds": [[str(private(state_dir, name)), name] for name in PRIVATE],
        "hidden": list(HIDDEN),
        "shown_as": os.readlink(state_dir / ORIGIN) if (state_dir / ORIGIN).is_symlink() else None,
        # If root can open a device and QEMU's user cannot, libvirt probes QEMU's capabilities at every call.
        "masked": [str(DEVICE)] if DEVICE.exists() and not accelerated else [],
        "resolver": "".join(f"nameserver {address}\n" for address in resolver) + f"search {search}\n",
        "daemons": {
            **(switch.daemons(work) if switched else {}),
            "virtlogd": ["virtlogd"],
            "libvirtd": ["libvirtd"],
        },
    }
    running = _start(found.cluster, netns, state_dir, spec)
    _name(running, netns, found.mark)
    _wait_for_libvirt(running)
    return True


def remove(netns: str, state_dir: Path, found: owner.Owner) -> None:
    """End the sandbox of the cluster that is `found`, and remove its state directory. Raises as `stop`.

    found: as `owner.marked_owner` returned it. What the clusters of this host share is removed with the last one.
    """
    stop(netns, state_dir, found.mark)
    owner.remove(state_dir, found)
    leave_host(state_dir.parent)


def stop(netns: str, state_dir: Path, mark: str) -> None:
    """End the sandbox of the cluster with `mark` and everything in it, and remove its name.

    Raises `LabError` for a network namespace of that name without the mark.
    """
    refuse_foreign_namespace(netns, state_dir, mark)
    remove_keeper(state_dir)
    if _is_namespace(netns):
        _ip("netns", "delete", netns)
    elif mark and _is_unfinished(NETNS_DIR / netns):
        (NETNS_DIR / netns).unlink()


def remove_keeper(state_dir: Path) -> bool:
    """End the first process of the sandbox, also one that was not recorded; return whether there was one.

    Everything in the sandbox ends with it. Raises `LabError` if it does not end after SIGKILL.
    """
    found = find(state_dir) or processes.find(state_dir, "keeper")
    if found:
        processes.end(found.pid, found.start)
    with contextlib.suppress(FileNotFoundError):
        (state_dir / FILE).unlink()
    return found is not None


def refuse_foreign_namespace(netns: str, state_dir: Path, mark: str) -> None:
    """Raise `LabError` for a network namespace of this name that the cluster with `mark` did not make.

    The mark is the alias of its loopback interface. Nothing happens when there is no such namespace.
    """
    if not _is_namespace(netns):
        return
    links = load_json(_ip("-netns", netns, "-json", "link", "show", "dev", "lo") or "[]", name="ip")
    if not mark or not any(link.get("ifalias") == owner.label(mark) for link in links):
        raise LabError(
            f"network namespace {NETNS_DIR / netns} does not have the mark of the cluster in {state_dir}, so another program created it, or its marker is "
            f"lost: choose another cluster name; or, if it is unused, end its processes (ip netns pids {netns}) and remove it "
            f"(ip netns delete {netns})"
        )


def _start(cluster: str, netns: str, state_dir: Path, spec: Mapping[str, object]) -> RunningSandbox:
    script = state_dir / "sandbox" / "keeper.py"
    write_atomic(script, inspect.getsource(keeper))
    one_thread.write(state_dir)
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    try:
        result = subprocess.run(
            [sys.executable, "-I", str(script)],
            input=json.dumps(spec),
            capture_output=True,
            text=True,
            timeout=READY_SECONDS,
            cwd="/",
            env={**processes.lasting_environment(os.environ), "PATH": path, **processes.mark(state_dir, "keeper")},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        remove_keeper(state_dir)
        raise LabError(f"sandbox {netns} was not ready within {READY_SECONDS:.0f} s") from error
    if result.returncode:
        raise LabError(f"sandbox {netns} cannot be created: {result.stderr.strip()}")
    pid = int(result.stdout)
    running = RunningSandbox(cluster, netns, pid, processes.start_time(pid) or 0, str(state_dir / "sandbox"))
    write_atomic(state_dir / FILE, json.dumps(running.__dict__) + "\n")
    return running


def _name(running: RunningSandbox, netns: str, mark: str) -> None:
    path = NETNS_DIR / netns
    if path.exists():
        if os.path.samefile(path, f"/proc/{running.pid}/ns/net"):
            return
        refuse_foreign_namespace(netns, Path(running.work).parent, mark)
        _ip("netns", "delete", netns)
    _ip("netns", "attach", netns, str(running.pid))


def _is_namespace(netns: str) -> bool:
    """Return whether this name is that of a network namespace; what `ip netns` leaves when it is killed is an empty file."""
    path = NETNS_DIR / netns
    return path.exists() and mount_of(path) != mount_of(NETNS_DIR)


def _is_unfinished(path: Path) -> bool:
    """Return whether this is the empty file that `ip netns attach` leaves when it is killed before it mounts."""
    return path.is_file() and not path.is_symlink() and not path.stat().st_size


def _ip(*arguments: str) -> str:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise LabError(f"ip {' '.join(arguments)}: {result.stderr.strip()}")
    return result.stdout


def _wait_for_libvirt(running: RunningSandbox) -> None:
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
