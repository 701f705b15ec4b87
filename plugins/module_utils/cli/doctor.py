"""`agentlab doctor [PROFILE]`: whether this host can run a lab, one line for each check, with the remedy."""

from __future__ import annotations

import argparse
import ctypes
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, TypedDict

from .. import files
from ..errors import LabError
from ..packages import PackageError
from ..plan import capacity, names, profile
from ..sandbox import kvm, lifecycle, prune
from ..terminal import write_line
from ..vocabulary import Exit
from . import lab, orphans
from .cluster import lacks_root
from .output import add_output, message, print_output
from .places import DEFAULT_PROFILE, PROFILES, ROOT
from .scratch import PREFIX

Level = Literal["ok", "warning", "failed"]


class Check(TypedDict):
    """One check: its name, its result, what was found, and what to do (empty if it is ok)."""

    check: str
    result: Level
    found: str
    remedy: str


_TIME_ERROR = 5  # adjtimex(2): the clock is not synchronized
_OLDEST = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
# What a lab creates in a network namespace of its own, and the modules that it needs.
_FEATURES = (
    ("network namespaces", ["true"], "run on a host or in a container that may create them (CAP_SYS_ADMIN)"),
    ("bridges", ["ip", "link", "add", "agentlab0", "type", "bridge"], "modprobe bridge"),
    ("veth pairs", ["ip", "link", "add", "agentlab0", "type", "veth", "peer", "name", "agentlab1"], "modprobe veth"),
    (
        "TAP devices",
        ["ip", "tuntap", "add", "agentlab0", "mode", "tap"],
        "modprobe tun; in a container, pass /dev/net/tun",
    ),
    ("nftables", ["nft", "add", "table", "bridge", "agentlab"], "agentlab setup; modprobe nf_tables"),
)


def main(argv: list[str]) -> int:
    """Print every check; fail if one did.

    argv: after `doctor`. `Exit.FAILED` only for results `failed`, `Exit.USAGE` for an invalid profile; a warning does
    not count.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab doctor",
        description="Check whether this host can run a lab. A warning does not keep a lab in a sandbox from running.",
    )
    parser.add_argument(
        "profile", nargs="?", default=DEFAULT_PROFILE, help="what to check memory and disk for (default: %(default)s)"
    )
    add_output(parser)
    args = parser.parse_args(argv)
    try:
        wanted = profile.load(args.profile, PROFILES, "doctor")
    except (ValueError, OSError) as error:
        write_line(message(error), sys.stderr)
        return Exit.USAGE
    found: list[Check] = []
    checks: tuple[Callable[[], Iterator[Check]], ...] = (
        _host, _environment, _packages, _accelerator, lambda: _capacity(args.profile, wanted), _features, _clock, lambda: _ports(wanted),
        _leftovers,
    )  # fmt: skip
    for check in checks:
        for one in check():
            found.append(one)
            if not args.output:
                write_line(
                    f"{one['result']:<8} {one['check']}: {one['found']}"
                    + (f"; {one['remedy']}" if one["remedy"] else "")
                )
    if args.output:
        print_output(found, args.output)
    return Exit.FAILED if any(one["result"] == "failed" for one in found) else Exit.OK


def _result(name: str, fine: bool, found: str, remedy: str, bad: Level = "failed") -> Check:
    return {"check": name, "result": "ok" if fine else bad, "found": found, "remedy": "" if fine else remedy}


def _host() -> Iterator[Check]:
    machine = f"{platform.system()} {platform.machine()}, kernel {platform.release()}"
    yield _result("host", machine.startswith("Linux x86_64"), machine, "use an x86_64 Linux host")
    yield _result("root", not lacks_root(), "root" if os.geteuid() == 0 else "sudo", "run as root, or install sudo")


def _environment() -> Iterator[Check]:
    path = Path(sys.executable).parent / "ansible-playbook"
    mine, wanted = path.parents[1] / "agentlab-requirements.lock", ROOT / "requirements.lock"
    current = not mine.exists() or not wanted.exists() or mine.read_bytes() == wanted.read_bytes()
    there = path.exists() and current
    yield _result(
        "environment", there, f"Python {platform.python_version()} in {path.parents[1]}", "bin/agentlab setup"
    )


def _packages() -> Iterator[Check]:
    try:
        lacking = lab.missing_packages()
    except (PackageError, ValueError, OSError) as error:
        yield _result("packages", False, message(error), "install what roles/setup/vars/main.yml lists", "warning")
        return
    found = f"missing: {', '.join(lacking)}" if lacking else "all are installed"
    yield _result("packages", not lacking, found, "agentlab setup")


def _accelerator() -> Iterator[Check]:
    try:
        answer = kvm.usable()
    except OSError as error:
        yield _result("KVM", False, message(error), "agentlab setup", "warning")
        return
    found = "a guest boots" if answer["usable"] else f"{answer['reason']}; QEMU emulates (TCG), which is much slower"
    yield _result("KVM", answer["usable"], found, "enable virtualization, and access to /dev/kvm", "warning")


def _capacity(name: str, wanted: profile.Profile) -> Iterator[Check]:
    state_dir = Path(names.STATE_DIR)
    has = capacity.measure(state_dir)
    lacking = {path[-1]: remedy for path, __, remedy in capacity.check_here(wanted, "doctor")}
    for check, field, amount in (
        ("memory", "memory_mib", f"{has['memory_mib']} MiB available"),
        ("processors", "vcpus", f"{has['cpus']}"),
        ("disk", "disks", f"{has['disk_free_gib']} GiB free for {state_dir}"),
    ):
        yield _result(check, field not in lacking, f"{amount}, for {name}", lacking.get(field, ""))
    cache = files.cache_directory()
    there = [path for path in (cache, *cache.parents) if path.exists()]
    free = shutil.disk_usage(there[0]).free >> 30
    yield _result("cache", free >= 2, f"{free} GiB free for {cache}", "free 2 GiB, or set XDG_CACHE_HOME")


def _features() -> Iterator[Check]:
    """Try what a lab creates in a network namespace that ends with the command."""
    if os.geteuid():
        yield _result("kernel", False, "not checked", "run as root: sudo bin/agentlab doctor", "warning")
        return
    for name, command, remedy in _FEATURES:
        try:
            done = subprocess.run(
                ["unshare", "--net", *command], capture_output=True, text=True, timeout=20, check=False
            )
            problem = (
                (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1] if done.returncode else ""
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = message(error)
        yield _result(name, not problem, problem or "can be created", remedy)


def _clock() -> Iterator[Check]:
    now = datetime.datetime.now(datetime.UTC)
    yield _result("clock", now > _OLDEST, f"{now:%Y-%m-%d %H:%M:%S} UTC", "set it: certificates would not be valid")
    # struct timex is 208 bytes on x86_64; modes 0 only reads.
    state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024))
    found = "not synchronized" if state == _TIME_ERROR else "synchronized" if state >= 0 else "unknown"
    yield _result("clock source", found == "synchronized", found, "start chronyd or systemd-timesyncd", "warning")


def _ports(wanted: profile.Profile) -> Iterator[Check]:
    """Ports of the services: a sandbox has its own; `hypervisor: {kind: local}` uses the host's."""
    taken = []
    given = wanted["services"]
    ports = (given["bmc"]["port"], given["registry"]["port"], given["http"]["port"], given["ntp"]["port"])
    for port in ports:
        transport = "udp" if port == given["ntp"]["port"] else "tcp"
        if user := lifecycle.port_owner(port, transport):
            taken.append(f"{port}/{transport} by {user}")
    shared = wanted["hypervisor"]["kind"] == "local"
    found = f"in use: {', '.join(taken)}" if taken else "free"
    remedy = "matters with hypervisor.kind `local` only: stop it, or choose another port"
    yield _result("ports", not taken, found, remedy, "failed" if shared else "warning")


def _leftovers() -> Iterator[Check]:
    try:
        found = [
            str(one.state_dir)
            for one in prune.leftovers(Path(names.STATE_DIR), os.getuid(), orphans.run_dirs())
            if not one.stays
        ]
    except (LabError, ValueError, OSError) as error:
        yield _result("leftovers", False, message(error), "agentlab list", "warning")
        return
    killed = len(list(Path(tempfile.gettempdir()).glob(f"{PREFIX}*")))
    shown = f"{', '.join(found)}" if found else f"none; {killed} temporary directories of runs" if killed else "none"
    yield _result("leftovers", not found, shown, "agentlab prune", "warning")
