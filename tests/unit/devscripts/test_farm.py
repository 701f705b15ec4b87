"""A run under the names of dev-scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import main
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import farm
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir, secrets


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    directory = tmp_path / "runs/two"
    directory.mkdir(parents=True)
    plan = build.build(profile.complete({"topology": "compact", "stack": "dualstack"}), "two")
    (directory / rundir.PLAN).write_text(rundir.dump(plan))
    secrets.ensure(plan, directory)
    (directory / "auth").mkdir()
    (directory / "auth/kubeconfig").write_text("a kubeconfig\n")
    return directory, plan


def test_names_of_dev_scripts(run: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory, plan = run
    arguments = ["export", "devscripts", "--files", str(tmp_path / "ds"), "--cluster", "two"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"{tmp_path}/ds/ocp/two/install-config.yaml"
    ocp = tmp_path / "ds/ocp/two"
    assert (ocp / "auth/kubeconfig").read_text() == "a kubeconfig\n"
    assert (ocp / "agent.x86_64.iso").readlink() == directory / "agent.x86_64.iso"
    assert (ocp / "hosts").read_text().splitlines() == [
        f"192.168.111.{20 + index} master-{index}" for index in range(3)
    ]
    path = tmp_path / "ds/two/ironic_nodes.json"
    assert path.stat().st_mode & 0o777 == 0o600
    first = json.loads(path.read_text())["nodes"][0]
    assert first["name"] == "two-master-0" and first["ports"][0]["address"] == plan["nodes"][0]["nics"][0]["mac"]
    assert first["driver_info"]["password"] == secrets.passwords_of(plan, directory)["bmc"]
    assert main(arguments) == 0 and capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["ocp/two/install-config.yaml", "ocp/two/hosts", "two/ironic_nodes.json"])
def test_files_of_dev_scripts_are_kept(run: tuple[Path, Any], tmp_path: Path, name: str) -> None:
    directory, plan = run
    path = tmp_path / "ds" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(farm.FarmError, match=rf"{name}: was not made by agentlab"):
        farm.write(plan, directory, tmp_path / "ds")
    assert [found for found in (tmp_path / "ds").rglob("*") if found.is_symlink()] == []
    assert path.read_text() == "mine"


def test_without_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    assert main(["export", "devscripts", "--files", str(tmp_path / "ds")]) == 2
    assert "there is no plan yet" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["export", "devscripts", "HA_IPV4", "--files", "x"])


def test_hosts_of_a_directory_of_dev_scripts(tmp_path: Path) -> None:
    """As `agent/05_agent_configure.sh` writes them."""
    assert farm.hosts(tmp_path) == []
    (tmp_path / "hosts").write_text("192.168.111.80 master-0.ostest.test.metalkube.org\nfd2e::51 worker-0 alias\n\n")
    assert farm.hosts(tmp_path) == [
        {"address": "192.168.111.80", "name": "master-0"},
        {"address": "fd2e::51", "name": "worker-0"},
    ]
