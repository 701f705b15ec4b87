"""A lab with a small guest (`guest`), its machine, and `agentlab` on it."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import guest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

BOOT_SECONDS = 60
CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"


def wait_for(console: Path, text: str, seconds: float = BOOT_SECONDS) -> None:
    end = time.monotonic() + seconds
    while text not in (console.read_text(errors="replace") if console.exists() else ""):
        assert time.monotonic() < end, f"{text!r} is not in {console}"
        time.sleep(0.1)


def until(condition: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def command(one: Any, *arguments: str) -> list[str]:
    return [sys.executable, "-m", CLI, "snapshot", *arguments, "--cluster", one.cluster]


def environment(one: Any) -> dict[str, str]:
    return {**one.environment(), "AGENTLAB_RUNS": str(one.run_dir.parent)}


def snapshot(one: Any, *arguments: str, wrong: bool = False) -> str:
    """Run the verb on the lab's host; return its output."""
    done = subprocess.run(
        [*namespaces.enter(one.host, str(Path.cwd())), *command(one, *arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(one),
        check=False,
    )
    assert (done.returncode != 0) == wrong, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def domain(one: Any) -> str:
    return str(one.plan["nodes"][0]["domain"])


def state(one: Any) -> str:
    return str(one.enter("virsh", "domstate", domain(one))).strip()


def copied(one: Any, name: str) -> Any:
    """Return a copy of the lab, which `agentlab snapshot copy` made."""
    made = copy.copy(one)
    made.cluster, made.run_dir = name, one.run_dir.parent / name
    made.plan = rundir.load_plan(made.run_dir)
    return made


def press_a_key(one: Any) -> None:
    """Let the guest continue: it resets when a byte comes over its console."""
    terminal = re.search(r"<console type='pty' tty='([^']+)'", one.enter("virsh", "dumpxml", domain(one)))
    assert terminal
    one.enter("sh", "-c", f"(printf r; sleep 3) > {terminal[1]}")


def write(one: Any, text: str, base: Path) -> None:
    """Write a bootable disk that prints a line, through the running machine's QEMU."""
    written = base / "disk"
    written.write_bytes(guest.disk(text))
    written.chmod(0o644)
    script = f'qemu-io -d scsi0-0-0-0 "write -s {written} 0 {written.stat().st_size}"'
    one.enter("virsh", "qemu-monitor-command", domain(one), "--hmp", script)


def boot(lab: Any, mode: str = "redfish", **more: Any) -> Any:
    """Return a lab whose machine waits for a key; more: fields of the node."""
    nodes = {"master-0": {"memory_mib": 1024, **more}}
    one = lab("agtest", {"topology": "sno", "stack": "ipv4", "nodes": nodes, "boot": {"mode": mode}})
    one.play("prepare")
    guest.iso(one.run_dir / "agent.x86_64.iso", "this is the image")
    if mode == "redfish":  # else QEMU reads it in the run directory
        (one.run_dir / "agent.x86_64.iso").chmod(0o600)
    one.play("boot")
    wait_for(one.state_dir / "console/agtest_master_0.log", "this is the image")
    return one
