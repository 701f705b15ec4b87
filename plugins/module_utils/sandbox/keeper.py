"""The first process of a sandbox: creates its namespaces and mounts, starts its daemons, watches them, reaps orphans.

A separate program that needs only the standard library: `python3 keeper.py < SPEC`. SPEC is JSON:

    name      name of the process in `ps`, agentlab-<cluster>
    mark      alias of its loopback interface, which identifies the owner of the network namespace
    work      directory of the sandbox's private files
    binds     [[source, target], ...]: mounted over the targets, in this sandbox only
    hidden    entries of /run that the sandbox does not see
    shown_as  path at which the sandbox also sees the parent of `work`; null: nowhere else
    resolver  content of its /etc/resolv.conf
    masked    devices that only root can open in the sandbox
    daemons   {name: argv}: started in order, restarted when they exit

Prints the process id of the keeper, as the host sees it, when the sandbox is ready; otherwise exits with the reason on
standard error. The namespaces are net, mount and pid: when the keeper ends, every process in the sandbox ends with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import stat
import subprocess
import sys
import time
from typing import TypedDict

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_SLAVE = 2, 4, 8, 4096, 16384, 1 << 19
RESTART_PAUSE = 1.0
_libc = ctypes.CDLL(None, use_errno=True)


class _Spec(TypedDict):
    """SPEC, as the top of this file describes it."""

    name: str
    mark: str
    work: str
    binds: list[tuple[str, str]]
    hidden: list[str]
    shown_as: str | None
    resolver: str
    masked: list[str]
    daemons: dict[str, list[str]]


def _call(what: str, result: int) -> None:
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, data: str | None = None) -> None:
    """mount(2) itself: mount(8) would leave /run/mount behind on the host.

    flags: the MS_ constants above; data: options of the file system. Raises `OSError` with both paths.
    """
    arguments = [text.encode() if text is not None else None for text in (source, target, kind)]
    _call(
        f"mount {source} on {target}",
        _libc.mount(*arguments, ctypes.c_ulong(flags), data.encode() if data else None),
    )


def unmount(target: str) -> None:
    """umount2(2) itself, for the same reason."""
    _call(f"unmount {target}", _libc.umount2(target.encode(), 0))


def _view(directory: str, stage: str, hidden: set[str]) -> None:
    """Make a tmpfs at `stage` that shows the entries of `directory`, except the hidden ones."""
    os.makedirs(stage, exist_ok=True)
    mount("tmpfs", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
    for name in sorted(set(os.listdir(directory)) - hidden):
        source, target = os.path.join(directory, name), os.path.join(stage, name)
        kind = os.lstat(source).st_mode
        if stat.S_ISLNK(kind):
            os.symlink(os.readlink(source), target)
        elif stat.S_ISDIR(kind):
            os.mkdir(target)
            mount(source, target, None, MS_BIND | MS_REC)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
            mount(source, target, None, MS_BIND)


def alias(work: str, shown_as: str) -> None:
    """Show the directory that `work` is in at another path, too, whether or not the host has something there."""
    directory, name = os.path.split(shown_as)
    stage = os.path.join(work, "beside")
    _view(directory, stage, {name})
    os.mkdir(os.path.join(stage, name))
    mount(os.path.dirname(work), os.path.join(stage, name), None, MS_BIND)
    mount(stage, directory, None, MS_BIND | MS_REC)


def private_run(work: str, hidden: set[str]) -> None:
    """Put a tmpfs over /run that shows the host's entries, except the hidden ones.

    work: directory of the sandbox's private files; hidden: names of entries. libvirt, lock and openvswitch are there,
    and empty.
    """
    stage = os.path.join(work, "run")
    _view("/run", stage, hidden)
    for name in ("libvirt", "lock", "openvswitch"):
        os.makedirs(os.path.join(stage, name), exist_ok=True)
    mount(stage, "/run", None, MS_BIND | MS_REC)


def private_resolver(work: str, content: str) -> None:
    """Give the sandbox its own /etc/resolv.conf, wherever that points to."""
    target = os.path.realpath("/etc/resolv.conf")
    if target.startswith("/run/"):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w") as stream:
            stream.write(content)
        return
    source = os.path.join(work, "resolv.conf")
    with open(source, "w") as stream:
        stream.write(content)
    mount(source, target, None, MS_BIND)


def prepare(spec: _Spec) -> None:
    """Make the mounts and the loopback of the namespaces that this process is in.

    spec: see the top of this file. The process must be the first one of its namespaces. Raises `OSError` and
    `CalledProcessError`.
    """
    mount("none", "/", None, MS_REC | MS_SLAVE)
    mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    # sysfs shows the links of the namespace it was mounted in; libvirt reads and writes bridges there. A new one also hides
    # the host's cgroups, so that libvirt leaves nothing in them.
    mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if spec["shown_as"]:
        alias(spec["work"], spec["shown_as"])
    private_run(spec["work"], set(spec["hidden"]))
    private_resolver(spec["work"], spec["resolver"])
    for source, target in spec["binds"]:
        mount(source, target, None, MS_BIND)
    for target in spec["masked"]:
        nothing = os.path.join(spec["work"], "nothing")
        os.close(os.open(nothing, os.O_CREAT | os.O_RDONLY, 0))
        mount(nothing, target, None, MS_BIND)
    subprocess.run(["ip", "link", "set", "lo", "up", "alias", spec["mark"]], check=True)
    # A bridge without ports has no carrier, so duplicate address detection would never end on it.
    if os.path.exists("/proc/sys/net/ipv6"):
        with open("/proc/sys/net/ipv6/conf/default/accept_dad", "w") as stream:
            stream.write("0")


def watch(daemons: dict[str, list[str]], work: str, ready: int) -> None:
    """Start the daemons and keep them running; reap what the sandbox orphans; end at SIGTERM.

    daemons: name -> argv; work: for `NAME.log`; ready: descriptor that gets `ready` once all have been started. One
    that ends is started again, at most once in `RESTART_PAUSE` seconds.
    """
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGALRM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    # The mark identifies this process, so children must not inherit it.
    environment = {name: value for name, value in os.environ.items() if name != "AGENTLAB_PROCESS"}
    running: dict[int, str] = {}
    started: dict[str, float] = {}

    def start(name: str) -> None:
        log = os.open(os.path.join(work, f"{name}.log"), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        process = subprocess.Popen(
            daemons[name],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=environment,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, signals),
        )
        os.close(log)
        running[process.pid], started[name] = name, time.monotonic()
        process.returncode = 0  # we reap it ourselves

    for name in daemons:
        start(name)
    os.write(ready, b"ready")
    os.close(ready)
    waiting: set[str] = set()
    while True:
        received = signal.sigwait(signals)
        if received == signal.SIGTERM:
            return
        while True:
            try:
                pid, __ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            if pid in running:
                waiting.add(running.pop(pid))
        for name in sorted(waiting):
            if time.monotonic() - started[name] >= RESTART_PAUSE:
                waiting.discard(name)
                start(name)
        if waiting:
            signal.setitimer(signal.ITIMER_REAL, RESTART_PAUSE)


def main(spec: _Spec) -> int:
    os.setsid()
    _call("unshare", _libc.unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID))
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        message = b""
        while part := os.read(reader, 4096):
            message += part
        if message != b"ready":
            sys.stderr.write(message.decode() or "the keeper ended before the sandbox was ready")
            return 1
        sys.stdout.write(f"{pid}\n")
        sys.stdout.flush()
        return 0
    os.close(reader)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.chdir("/")
    with open("/proc/self/comm", "w") as stream:
        stream.write(spec["name"][:15])
    try:
        prepare(spec)
        watch(spec["daemons"], spec["work"], writer)
    except Exception as error:  # the pipe is the only way to report errors
        os.write(writer, f"{type(error).__name__}: {error}".encode())
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(json.load(sys.stdin)))
