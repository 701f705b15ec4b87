"""JUnit of a run, as CI reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.report import page
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, EventLog, event
from ansible_collections.agentlab.ocp.tests.recorded import runs
from junitparser import JUnitXml, TestCase


def cases(run_dir: Path) -> dict[str, TestCase]:
    page.write(run_dir)
    suites = list(JUnitXml.fromfile(str(run_dir / "report/junit.xml")))
    for suite in suites:
        assert {one.name: one.value for one in suite.properties()}["cluster"] == "ut"
        assert (suite.tests, suite.timestamp) == (len(list(suite)), "2026-01-01T00:00:00")
    return {case.name: case for suite in suites for case in suite}


def test_a_good_run(tmp_path: Path) -> None:
    runs.good(tmp_path)
    EventLog(tmp_path / FILE).write(
        [event("check", "test login", "ok", "exit status 0", at=runs.START + 600, seconds=7)]
    )
    found = cases(tmp_path)
    assert list(found) == [
        "prepare", "configure", "image", "boot", "wait", "validate", "nodes", "test login", "host master-0 reaches Done",
        "host master-1 reaches Done", "host master-2 reaches Done", "ClusterOperator etcd",
    ]  # fmt: skip
    assert all(case.is_passed for case in found.values())
    assert found["wait"].time == 440.0 and "439.0 s  Task of wait" in found["wait"].system_out
    assert (found["nodes"].time, found["test login"].time) == (0, 7)
    assert "installing-in-progress" in found["host master-1 reaches Done"].system_out


def test_a_failure_has_a_body(tmp_path: Path) -> None:
    """The cause, the next step, and the end of the log."""
    runs.failed(tmp_path)
    early = event("operator", "etcd", "Progressing", "", at=runs.START + 238)
    operator = event("operator", "etcd", "Degraded", "no quorum", level="warning", at=runs.START + 250)
    EventLog(tmp_path / FILE).write(
        [early, operator, event("check", "pods", "failed", "1 of 2 running", level="error", at=runs.START + 251)]
    )
    found = cases(tmp_path)
    assert {name for name, case in found.items() if not case.is_passed} == {
        "wait", "pods", "host master-0 reaches Done", "host master-1 reaches Done", "host master-2 reaches Done", "ClusterOperator etcd",
    }  # fmt: skip
    (wait,) = found["wait"].result
    assert wait.message.startswith("Wait for the installation: bootstrap process returned error: VM ut_master_1")
    for part in (
        "First cause: VM ut_master_1 (master-1) is shut off",
        "Next: agentlab boot",
        "Cluster has hosts in error",
        "console/ut_master_1.log",
    ):
        assert part in wait.text, part
    assert found["ClusterOperator etcd"].time == 12
    (host,) = found["host master-1 reaches Done"].result
    assert host.message == "host master-1 is error at Installing: Host lost" and "line 299" in host.text
    (pods,) = found["pods"].result
    assert pods.message == "1 of 2 running" and "Next: agentlab boot" in pods.text
    assert "Cluster has hosts in error" in pods.text and found["pods"].system_out == "1 of 2 running"


@pytest.mark.parametrize("text", ["\x00\x1b[1m]]>", "\ufffe\ud800", "<failure>&x;"])
def test_foreign_text_is_valid_xml(tmp_path: Path, text: str) -> None:
    runs.failed(tmp_path, text.encode(errors="replace").decode())
    assert "host master-1 reaches Done" in cases(tmp_path)
