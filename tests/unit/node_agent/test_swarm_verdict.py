"""The verdict on a run, from its report."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import main, page
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import THRESHOLDS, Settings, SwarmError
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.verdict import FIGURES, exceeded_thresholds, problems
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted
from ansible_collections.agentlab.ocp.tests.unit.node_agent.test_swarm import FAST, run


@pytest.fixture
def result(service: FakeAssisted) -> dict[str, Any]:
    return run(Settings(service.url, topology={"sno": 1}, thresholds={"errors": 0.0}, **FAST))[1]


def test_a_good_run(result: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert FIGURES.keys() == THRESHOLDS.keys()
    assert problems(result) == [] and main.conclude(result) == 0
    assert "<dt>Verdict</dt>" in page.page(result) and ">passed</dd>" in page.page(result)
    result["settings"]["thresholds"] = dict.fromkeys(THRESHOLDS, 1e9)
    assert exceeded_thresholds(result) == []
    result["resources"]["kib_per_agent"] = 28.0  # one host may fit into what the process already had
    result["settings"]["thresholds"] = {name: 0.0 for name in THRESHOLDS if "error" not in name}
    assert [line.split()[1] for line in exceeded_thresholds(result)] == ["poll-delay", "latency", "installed", "memory"]
    assert main.conclude(result) == 1
    assert "agentlab swarm: threshold memory (KiB of memory per agent): " in capsys.readouterr().err


def test_what_makes_a_run_bad(result: dict[str, Any]) -> None:
    result["errors"] = {"register: 500": 3}
    assert problems(result) == ["threshold errors (responses that were errors): 3, the limit is 0"]
    bad = {
        **result,
        "ends": {"error": 2, "unfinished": 1},
        "gave_up": {"x": 4},
        "left": ["a"],
        "time_to_cluster_status": {},
    }
    bad["settings"] = result["settings"] | {"thresholds": {"installed": 5.0}}
    assert problems(bad) == [
        "2 clusters error",
        "1 cluster unfinished",
        "4 hosts gave up",
        "1 cluster could not be removed",
        "threshold installed (seconds to an installed cluster, 95th percentile): the run has no such figure",
    ]
    bad["settings"]["allow_unfinished"] = True
    assert "1 cluster unfinished" not in problems(bad)


@pytest.mark.parametrize("given", ["speed=1", "errors=-1", "errors=inf", "errors=nan"])
def test_invalid_thresholds(given: str) -> None:
    with pytest.raises(SwarmError, match=r"--threshold .*: must be NAME=NUMBER, with a name of errors, error-share, "):
        main.settings_of(main.parser().parse_args(["--url", "http://h:1", "--threshold", given]))
