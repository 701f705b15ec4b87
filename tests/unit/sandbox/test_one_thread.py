"""When the virtual CPUs of a machine share a thread, and how QEMU gets to know it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import one_thread

PROFILES = Path(__file__).parents[3] / "config_examples"


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The plan of a compact cluster whose sandbox has the script, which starts a QEMU that prints its arguments."""
    (tmp_path / "sandbox").mkdir()
    qemu = tmp_path / "qemu-system-x86_64"
    qemu.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    qemu.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    one_thread.write(tmp_path)
    plan = build.build(profile.load("compact_ipv4", PROFILES), "ostest")
    plan["hypervisor"]["state_dir"] = str(tmp_path)
    return plan


@pytest.mark.parametrize(
    ("processors", "changes", "domain_type", "shared"),
    [
        (2, {}, "qemu", True),
        (3, {}, "qemu", True),
        (4, {}, "qemu", False),
        (2, {}, "kvm", False),
        (2, {"vcpus": 1}, "qemu", False),
    ],
)
def test_shared_where_machines_need_all_processors(
    lab: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    processors: int,
    changes: dict[str, int],
    domain_type: str,
    shared: bool,
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(processors)))
    found = one_thread.emulator(lab, lab["nodes"][0] | changes, domain_type)
    assert (found is not None) is shared


def test_libvirt_of_the_host_starts_its_own_qemu(lab: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    lab["hypervisor"]["kind"] = "local"
    assert one_thread.emulator(lab, lab["nodes"][0], "qemu") is None


def test_only_the_accelerator_gets_another_value(lab: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    script = one_thread.emulator(lab, lab["nodes"][0], "qemu")
    given = ["-name", "guest=a b,x='*'", "-accel", "tcg,tb-size=128", "-smp", "2", "", "-machine", "none,accel=kvm:tcg"]
    done = subprocess.run([str(script), *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [*given[:3], "tcg,tb-size=128,thread=single", *given[4:]]
