"""QEMU with one thread for all virtual CPUs of a machine, for emulation on a host with few processors.

By default each virtual CPU has a thread. Where these are more than the processors of the host, a virtual CPU often waits for one
that does not run: for a lock that it holds, or for its answer to an interrupt. In one thread they take turns, and no instruction
has to be atomic for other threads. libvirt has no setting for `thread` of QEMU's `-accel tcg`, so that its `<emulator>` is a script
that adds it.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from ..plan.machines import Node, own_machines
from ..plan.model import Plan
from ..plan.outside import Machine
from ..state import write_atomic

_QEMU = "qemu-system-x86_64"
# libvirt also starts it to learn what QEMU can do, then without `-accel`.
_SCRIPT = """\
#!/bin/sh
for argument; do
    shift
    case $argument in
        tcg,*) argument=$argument,thread=single ;;
    esac
    set -- "$@" "$argument"
done
exec {qemu} "$@"
"""


def write(state_dir: Path) -> None:
    """Write the script of a sandbox. Without QEMU, which libvirt then misses, there is none."""
    if qemu := shutil.which(_QEMU):
        write_atomic(_path(state_dir), _SCRIPT.format(qemu=shlex.quote(qemu)), 0o755)


def emulator(plan: Plan, machine: Node | Machine, domain_type: str) -> Path | None:
    """Return what libvirt starts as QEMU for a machine of the plan; None for its default.

    domain_type: kvm or qemu. The script is used for machines with several virtual CPUs in a sandbox whose host has no more processors
    than the cluster has nodes there.
    """
    hypervisor = plan["hypervisor"]
    fewer_nodes = len(own_machines(plan["nodes"])) < len(os.sched_getaffinity(0))
    if domain_type == "kvm" or hypervisor["kind"] != "sandbox" or machine["vcpus"] == 1 or fewer_nodes:
        return None
    path = _path(Path(hypervisor["state_dir"]))
    return path if path.exists() else None


def _path(state_dir: Path) -> Path:
    return state_dir / "sandbox" / "qemu-one-thread"
