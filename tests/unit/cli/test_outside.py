"""The everyday verbs on a machine outside of the cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import cluster, completion, listing, node
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import access, build, created, profile, render, rundir

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cluster.Cluster:
    """A cluster with a load balancer of its own, which does not run."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    chosen = profile.load("compact_balancer_static", PROFILES)
    chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
    (tmp_path / "lab/ssh").mkdir(parents=True)
    (tmp_path / "lab/ssh/id_ecdsa").write_text("key")
    (tmp_path / "lab" / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))
    return cluster.find("lab")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    commands: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda __, command: commands.append(command) or os._exit)
    monkeypatch.setattr(cluster.Cluster, "enter", lambda *__, **___: ["inside"])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return commands


def test_ssh_and_console(made: cluster.Cluster, started: list[list[str]]) -> None:
    node.ssh(["lb", "--cluster", "lab", "--", "true"])
    node.console(["lb", "-i", "--cluster", "lab"])
    assert started[0][-2:] == ["core@192.168.111.70", "true"]
    assert started[1][-2:] == ["console", "lab_lb"]


def test_a_name_that_nothing_has(made: cluster.Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert node.power(["lc", "--cluster", "lab"]) == 1
    printed = capsys.readouterr().err
    assert (
        "cluster lab has no node 'lc'; its nodes are master-0, " in printed and ", machines outside of it lb" in printed
    )


def test_a_machine_is_found_by_its_address(made: cluster.Cluster) -> None:
    assert made.machine("192.168.111.70")["name"] == made.machine("lab_lb")["name"] == "lb"


def test_listed_and_shown(made: cluster.Cluster) -> None:
    [row] = listing.rows(made.directory.parent, made.directory / "none")
    assert (row["nodes"], row["machines"]) == (4, 1)
    assert "lb 192.168.111.70 (load balancer, 1 vCPU, 512 MiB, image lab)" in render.table(made.plan)
    assert any(
        "machines" in line and "lb 192.168.111.70" in line
        for line in access.closing_lines(access.Access(made.plan, made.directory))
    )
    assert ("domain", "lab_lb") in [(item["kind"], item["name"]) for item in created.items(made.plan, "h")]


def test_completed(made: cluster.Cluster) -> None:
    assert "lb" in completion._nodes("lab")
