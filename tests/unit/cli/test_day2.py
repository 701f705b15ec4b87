"""`agentlab add-nodes`: its words, and what is refused before Ansible starts."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli, state
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import day2
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run directory of cluster `lab`, whose worker-0 is of day 2."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "lab", "compact_day2")
    return tmp_path / "lab"


def write(folder: Path, name: str) -> None:
    chosen = profile.load(name, PROFILES)
    chosen["hypervisor"]["state_dir"] = str(folder.parent / "state")
    folder.mkdir(exist_ok=True)
    (folder / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))


def words(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("profile", nargs="?")
    parser.add_argument("--cluster", default="lab")
    day2.add_arguments(parser)
    return parser.parse_args(argv)


@pytest.mark.parametrize(
    ("argv", "chosen", "nodes"),
    [
        ([], None, []),
        (["worker-0"], None, ["worker-0"]),
        (["worker-0", "worker-1"], None, ["worker-0", "worker-1"]),
        (["compact_day2"], "compact_day2", []),
        (["compact_day2", "worker-0"], "compact_day2", ["worker-0"]),
        (["worker-7"], None, ["worker-7"]),
    ],
)
def test_the_first_word_may_be_a_node(run_dir: Path, argv: list[str], chosen: str | None, nodes: list[str]) -> None:
    args = words(*argv)
    day2.sort_out(args, run_dir)
    assert (args.profile, args.node) == (chosen, nodes)


def test_a_cluster_that_is_not_installed_is_refused(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["add-nodes", "--cluster", "lab"]) == 2
    assert "cluster lab is not installed, and nodes join an installed cluster: " in capsys.readouterr().err
    state.begin(run_dir, "wait")
    assert cli.main(["add-nodes", "--cluster", "lab"]) == 2
    assert "is not installed" in capsys.readouterr().err


def test_other_nodes_are_refused(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["add-nodes", "master-0", "--cluster", "lab"]) == 2
    assert capsys.readouterr().err == "master-0: not a day-2 node of cluster lab; there are worker-0\n"
    write(run_dir, "compact_ipv4")
    assert cli.main(["add-nodes", "--cluster", "lab"]) == 2
    assert "cluster lab has no node to add" in capsys.readouterr().err


def test_variables(run_dir: Path) -> None:
    state.finish(run_dir, "wait", failed=False)
    assert day2.variables(words("--approve"), run_dir) == {
        "agentlab_add_nodes_only": [],
        "agentlab_add_nodes_approve": True,
    }
    args = words("worker-0")
    day2.sort_out(args, run_dir)
    assert day2.variables(args, run_dir) == {"agentlab_add_nodes_only": ["worker-0"]}
