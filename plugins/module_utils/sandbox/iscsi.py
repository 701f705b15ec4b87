"""The iSCSI targets of a lab: tgtd, in user space, with a LUN for each machine that boots from one (`plan.iscsi`)."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import LabError
from ..plan import names
from ..plan.iscsi import addresses
from ..plan.machines import Disk
from ..plan.model import Plan
from . import processes
from .lifecycle import Service

NAME = "iscsi"


def render(plan: Plan, base: Path, tgtd: str, tgtadm: str) -> Service:
    """Return the service. base: its directory; tgtd, tgtadm: the programs.

    tgtd has its targets in memory only, so that the health check declares those that it lacks. It ends by SIGKILL alone;
    what machines have written is in their files by then. Raises `LabError` for a plan without LUNs.
    """
    settings = plan["services"].get("iscsi")
    if not settings:
        raise LabError("no machine of this plan has a LUN: boot.mode must be iscsi")
    environment = {"TGT_IPC_SOCKET": f"{base}/socket"}
    pool = Path(plan["hypervisor"]["pool_dir"])
    disks = [disk for node in plan["nodes"] for disk in node["disks"] if disk.get("iqn")]

    def ask(*words: str) -> str:
        done = subprocess.run(
            [tgtadm, "--lld", "iscsi", *words], env=environment, capture_output=True, text=True, timeout=5, check=False
        )
        if done.returncode:
            raise ValueError(f"tgtadm {' '.join(words)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def healthy() -> None:
        found = targets(ask("--mode", "target", "--op", "show"))
        for tid, disk in enumerate(disks, 1):
            iqn = str(disk.get("iqn"))
            if found.get(iqn) == iqn:
                continue
            if iqn in found:  # interrupted while it was declared
                ask("--mode", "target", "--op", "delete", "--force", "--tid", str(tid))
            for words in declaration(disk, tid, settings["lun"], pool):
                ask(*words)
        for address in addresses(settings):
            socket.create_connection((address, settings["port"]), timeout=5).close()

    portals = [f"portal={address}:{settings['port']}" for address in addresses(settings)]
    argv = [tgtd, "-f", "--iscsi", ",".join(portals)]
    program = processes.Program(NAME, argv, base / names.SERVICE_LOG, environment, ())
    return Service(program, {}, settings["port"], "tcp", healthy, (base,))


def declaration(disk: Disk, tid: int, lun: int, pool: Path) -> Iterator[list[str]]:
    """Yield the arguments of tgtadm(8) that declare the target of a disk; the last lets its initiator in, and no other.

    tid: the target's number, from 1; pool: directory with the disk's file.
    """
    target, unit = ["--tid", str(tid)], ["--tid", str(tid), "--lun", str(lun)]
    iqn = str(disk.get("iqn"))
    yield ["--mode", "target", "--op", "new", *target, "--targetname", iqn]
    yield ["--mode", "logicalunit", "--op", "new", *unit, "--backing-store", str(pool / disk["name"])]
    yield ["--mode", "logicalunit", "--op", "update", *unit, "--params", f"scsi_sn={disk['serial']}"]
    yield ["--mode", "target", "--op", "bind", *target, "--initiator-name", iqn]


def targets(shown: str) -> Mapping[str, str]:
    """Return the initiator that each target lets in, or nothing, by the target's name. shown: output of `tgtadm --op show`."""
    found = {}
    for part in re.split(r"^Target [0-9]+: ", shown, flags=re.MULTILINE)[1:]:
        allowed = part.partition("ACL information:")[2].split()
        found[part.splitlines()[0].strip()] = allowed[0] if allowed else ""
    return found
