"""What is fetched from another hypervisor: packed there, and unpacked into the report, whatever it sends."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import hypervisors, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.build import build
from ansible_collections.agentlab.ocp.plugins.module_utils.report import gather, hypervisor_logs
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes

NOTE = b'{"domains": {"t1_master_1": "shut off"}, "missing": {"services": "gone"}}'


@pytest.fixture
def plan(tmp_path: Path) -> Any:
    second = f"{{name: second, kind: ssh, host: h, address: 192.0.2.2, state_dir: {tmp_path}/there}}"
    first = f"{{address: 192.0.2.1, state_dir: {tmp_path}/here}}"
    (tmp_path / "p.yml").write_text(f"topology: compact\nhypervisor: {first}\nhypervisors:\n  - {second}\n")
    return build(profile.load(tmp_path / "p.yml", None, "t1"), "t1")


@pytest.fixture
def gatherer(plan: Any, tmp_path: Path) -> gather.Gatherer:
    (tmp_path / "run/logs").mkdir(parents=True)
    return gather.Gatherer(plan, tmp_path / "run", tmp_path / "run/report", (None, "watcher"))


def archive(path: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:xz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def fetch(gatherer: gather.Gatherer) -> None:
    gatherer._fetched(gatherer.plan["hypervisors"][0])


def test_what_is_packed_is_unpacked(
    plan: Any, gatherer: gather.Gatherer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUDO_UID", str(os.getuid()))
    monkeypatch.setenv("PATH", "")  # no virsh
    there = hypervisors.view(plan, "second")
    assert hypervisor_logs.pack(there) is None
    for name, text in {
        "console/t1_master_1.log": "Bearer canaryTokenOfTheConsole4\n",
        "services/bmc/log": "x\n",
    }.items():
        path = Path(there["hypervisor"]["state_dir"], name)
        path.parent.mkdir(parents=True)
        path.write_text(text)
    packed = hypervisor_logs.pack(there)
    assert packed and packed.stat().st_mode & 0o777 == 0o600
    packed.rename(tmp_path / "run/logs/second.tar.xz")
    fetch(gatherer)
    report = tmp_path / "run/report"
    assert (report / "services/second-bmc.log").read_text() == "x\n"
    assert "canary" not in (report / "console/t1_master_1.log").read_text()
    assert "virsh" in gatherer.out.missing["hypervisor second, libvirt"]
    assert not (tmp_path / "run/logs/second.tar.xz").exists()


def test_its_machines_are_causes(gatherer: gather.Gatherer, tmp_path: Path) -> None:
    fetched = tmp_path / "run/logs/second.tar.xz"
    archive(fetched, {"console/t1_master_1.log": b"BdsDxe: starting\r\nagain\r\n", "note.json": NOTE})
    fetch(gatherer)
    gatherer.facts.domains = {"t1_master_0": "running", "t1_master_2": "running"}
    gatherer._add_fetched()
    assert "VM t1_master_1 (master-1) is shut off" in [cause.text for cause in causes(gatherer.facts)]
    assert gatherer.facts.consoles == {"t1_master_1": "\r\nagain\r\n"}
    assert gatherer.out.missing == {"hypervisor second, services": "gone"}


def test_it_writes_only_what_is_its_own(gatherer: gather.Gatherer, tmp_path: Path) -> None:
    names = ("run/state.json", "summary.txt", "../../auth/kubeconfig", "/console/../hosts/x", "console/one.log")
    archive(tmp_path / "run/logs/second.tar.xz", {**dict.fromkeys(names, b"x"), "note.json": NOTE})
    fetch(gatherer)
    found = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert found == {"report/console/hosts/x", "report/console/one.log"}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[" * 10_000,
        b'{"domains": []}',
        b'{"domains": [], "missing": {}}',
        b'{"domains": {"a": 1}, "missing": {}}',
    ],
)
def test_a_damaged_note_is_an_error(gatherer: gather.Gatherer, tmp_path: Path, content: bytes) -> None:
    archive(tmp_path / "run/logs/second.tar.xz", {"note.json": content})
    with pytest.raises(ValueError, match=r"note\.json"):
        fetch(gatherer)


def test_a_file_that_is_not_an_archive_is_an_error(gatherer: gather.Gatherer, tmp_path: Path) -> None:
    (tmp_path / "run/logs/second.tar.xz").write_bytes(b"no archive")
    with pytest.raises(OSError, match="cannot be read"):
        fetch(gatherer)
    with pytest.raises(OSError, match="nothing was fetched from h: "):
        fetch(gatherer)
