"""The targets of a lab, with the real tgtd on an address of this host's loopback."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import iscsi, lifecycle, processes
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox.services import find_program

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    made: Any = build.build(profile.load("sno_iscsi", PROFILES), "ostest")
    with socket.create_server(("127.0.0.1", 0)) as free:
        made["services"]["iscsi"] = {
            "address": "127.0.0.1",
            "port": free.getsockname()[1],
            "lun": 1,
            "second": "127.0.0.2",
        }
    made["hypervisor"]["pool_dir"] = str(tmp_path)
    with (tmp_path / made["nodes"][0]["disks"][0]["name"]).open("wb") as file:
        file.truncate(1 << 30)
    return made


@pytest.fixture
def service(plan: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[lifecycle.Service]:
    monkeypatch.setattr(processes, "TERM_SECONDS", 1.0)  # tgtd ignores SIGTERM
    yield iscsi.render(plan, tmp_path / "iscsi", find_program("tgtd", "tgt"), find_program("tgtadm", "tgt"))
    if running := processes.find(tmp_path, iscsi.NAME):
        with contextlib.suppress(ProcessLookupError):
            processes.end(running.pid, running.start)


def shown(service: lifecycle.Service) -> str:
    words = [find_program("tgtadm", "tgt"), "--lld", "iscsi", "--mode", "target", "--op", "show"]
    return subprocess.run(
        words, env=dict(service.program.environment), capture_output=True, text=True, check=True
    ).stdout


def test_a_target_for_each_machine(plan: Any, service: lifecycle.Service, tmp_path: Path) -> None:
    disk = plan["nodes"][0]["disks"][0]
    assert lifecycle.ensure({iscsi.NAME: service}, tmp_path)[0]["after"].startswith("running on port ")
    text = shown(service)
    assert iscsi.targets(text) == {disk["iqn"]: disk["iqn"]}
    assert f"SCSI SN: {disk['serial']}" in text and f"Backing store path: {tmp_path / disk['name']}" in text
    assert lifecycle.ensure({iscsi.NAME: service}, tmp_path) == []
    # One that was interrupted before it let its initiator in is declared again.
    words = ["--lld", "iscsi", "--mode", "target", "--op", "unbind", "--tid", "1", "--initiator-name", disk["iqn"]]
    subprocess.run([find_program("tgtadm", "tgt"), *words], env=dict(service.program.environment), check=True)
    assert iscsi.targets(shown(service)) == {disk["iqn"]: ""}
    lifecycle.ensure({iscsi.NAME: service}, tmp_path)
    assert iscsi.targets(shown(service)) == {disk["iqn"]: disk["iqn"]}


def test_ends_although_it_ignores_sigterm(service: lifecycle.Service, tmp_path: Path) -> None:
    lifecycle.ensure({iscsi.NAME: service}, tmp_path)
    running = processes.find(tmp_path, iscsi.NAME)
    assert running
    started = time.monotonic()
    assert processes.stop(tmp_path, iscsi.NAME)
    assert time.monotonic() - started < 2.0
    assert not processes.runs(running.pid, running.start) and processes.find(tmp_path, iscsi.NAME) is None
    assert lifecycle.port_owner(service.port, "tcp") is None


def test_without_the_file_of_a_disk(
    plan: Any, service: lifecycle.Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / plan["nodes"][0]["disks"][0]["name"]).unlink()
    monkeypatch.setattr(lifecycle, "HEALTH_SECONDS", 1.0)
    with pytest.raises(
        lifecycle.LabError, match=r"iscsi: does not answer after 1 s .tgtadm --mode logicalunit --op new"
    ):
        lifecycle.ensure({iscsi.NAME: service}, tmp_path)
