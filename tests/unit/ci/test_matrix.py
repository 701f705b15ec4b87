"""`agentlab matrix`: what runs at the same time, what a history shows, and matrices whose jobs need no machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import history, matrix_report, records
from ansible_collections.agentlab.ocp.plugins.module_utils.ci.matrix import Budget, Task, next_task, tasks
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.capacity import Needs
from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml

ROOT = Path(__file__).resolve().parents[3]
SMALL, LARGE = Needs(8000, 4, 6), Needs(30_000, 20, 20)
HOST = Budget.of({"memory_mib": 24_000, "cpus": 2, "disk_free_gib": 100}, memory_gib=None, most=9)


def record(job: str, result: str = "passed", **changed: Any) -> records.Record:
    made: dict[str, Any] = {
        "job": job, "profile": "sno_ipv4", "commit": "abc", "date": "2026-03-01T00:00:00+00:00", "seconds": 300.0,
        "result": result, "stages": {}, "host": "Debian, TCG",
    }  # fmt: skip
    return records.Record(**(made | changed))


def test_as_many_run_as_fit() -> None:
    waiting = tasks({"a": SMALL, "b": SMALL, "c": SMALL}, {}, repeat=1, prefix="m")
    running: list[Task] = []
    while task := next_task(waiting, running, HOST):
        waiting.remove(task)
        running.append(task)
    assert [task.name for task in running] == ["a", "b"], "8 virtual CPUs on two processors"
    running.pop()
    assert next_task(waiting, running, HOST) is waiting[0]
    assert HOST.lacking(LARGE) == "it needs 30000 MiB of memory, there are 24000; it needs 20 virtual CPUs, there are 8"
    assert not HOST.lacking(SMALL)
    assert Budget.of({"memory_mib": 24_000, "cpus": 2, "disk_free_gib": 100}, memory_gib=4, most=1).lacking(SMALL)


def test_the_longest_run_first_and_each_job_once_before_any_twice() -> None:
    planned = tasks({"short": SMALL, "long": SMALL, "new": SMALL}, {"short": 60, "long": 600}, repeat=2, prefix="m")
    assert [task.name for task in planned] == ["new", "long", "short", "new.2", "long.2", "short.2"]
    assert [task.cluster for task in planned] == [f"m-{number}" for number in range(1, 7)]


needs = st.builds(Needs, st.integers(0, 24_000), st.integers(0, 8), st.integers(0, 100))


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), needs, min_size=1), st.integers(1, 3), st.integers(1, 5))
def test_every_job_gets_its_turn_and_never_more_than_there_is(jobs: dict[str, Needs], repeat: int, most: int) -> None:
    budget = Budget.of({"memory_mib": 24_000, "cpus": 2, "disk_free_gib": 100}, memory_gib=None, most=most)
    waiting, running, done = tasks(jobs, {}, repeat=repeat, prefix="m"), list[Task](), list[str]()
    assert len({task.cluster for task in waiting}) == len({task.name for task in waiting}) == len(waiting)
    while waiting or running:
        while task := next_task(waiting, running, budget):
            waiting.remove(task)
            running.append(task)
        assert 0 < len(running) <= most
        for kind, has in zip(zip(*(task.needs for task in running), strict=True), budget.resources, strict=True):
            assert sum(kind) <= has
        done.append(running.pop(0).name)
    assert len(done) == len(jobs) * repeat


def test_a_history_names_durations_and_flakes() -> None:
    runs = [
        record("a", seconds=100), record("a", "failed"), record("a", seconds=300, commit="def"), record("b", "failed"),
        record("c", commit="x-dirty"), record("c", "failed", commit="x-dirty"),
    ]  # fmt: skip
    found = history.summaries(runs)
    assert found["a"] == history.Summary(job="a", runs=3, passed=2, usual=200, last="passed", flaky=("abc",))
    assert found["b"].usual is None and found["c"].flaky == ()


def test_histories_are_merged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, both = tmp_path / "one.jsonl", tmp_path / "two.jsonl", tmp_path / "both.jsonl"
    for entry, paths in (
        (record("a"), (one, two)),
        (record("a", "failed", host="other"), (two,)),
        (record("b"), (one,)),
    ):
        for path in paths:
            records.append(entry, path)
    assert cli.main(["matrix", "history", str(one), str(two), "--into", str(both)]) == 0
    assert len(records.load(both)) == 3
    printed = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"a +1 of 2 +passed  usually +5m00s  last failed  passed and failed at abc", printed[0])
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert cli.main(["matrix", "history", str(both), "-o", form]) == 0
        rows = read(capsys.readouterr().out)
        assert rows[0] == {"job": "a", "runs": 2, "passed": 1, "usual": 300, "last": "failed", "flaky": ["abc"]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "bad.jsonl:1"),
        (json.dumps(record("a") | {"seconds": "5"}), "bad.jsonl:1: is not a record: seconds is '5'"),
        (json.dumps(record("a") | {"date": "2026-03-01"}), "not ISO 8601 with a time zone"),
        (json.dumps({"job": "a"}), "bad.jsonl:1: lacks commit, date, host"),
    ],
)
def test_a_damaged_history_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, message: str
) -> None:
    (tmp_path / "bad.jsonl").write_text(f"{line}\n")
    assert cli.main(["matrix", "history", str(tmp_path / "bad.jsonl")]) == 2
    assert message in capsys.readouterr().err


def table(path: Path, **jobs: Any) -> str:
    path.write_text(yaml.safe_dump({"jobs": jobs}))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "jobs.yml: no job 'nope'; there are: big, small"),
        (["big", "--memory", "4"], "big: it needs "),
        (["--cluster", "x" * 49], "must have at most 48 characters"),
        (["--jobs", "nowhere.yml"], "--jobs nowhere.yml: there is no such file"),
    ],
)
def test_nothing_starts_after_bad_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    jobs = table(tmp_path / "jobs.yml", big={"profile": "ha_ipv4"}, small={"profile": "sno_ipv4"})
    given_table = [] if "--jobs" in arguments else ["--jobs", jobs]
    assert cli.main(["matrix", "run", *given_table, "--artifacts", str(tmp_path / "out"), *arguments]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SHARED_DIR", str(tmp_path / "shared"))
    return tmp_path / "out"


@pytest.mark.slow
def test_a_matrix_leaves_a_page_a_junit_and_a_history(
    places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One job passes, one fails, one is skipped; what the page and JUnit say is what the jobs left."""
    release = {"payload": "ocp", "image": "registry.invalid/ocp/release@sha256:" + "0" * 64}
    (tmp_path / "pull").write_text(json.dumps({"auths": {"quay.example": {"auth": "c2VjcmV0OnNlY3JldA=="}}}))
    profile = {"topology": "sno", "stack": "ipv4", "release": release, "installer": {"pull_secret_file": str(tmp_path / "pull")}}  # fmt: skip
    good = {"profile": profile, "stages": ["configure"]}
    jobs = table(
        tmp_path / "jobs.yml",
        good=good,
        bad={"profile": profile, "stages": ["configure", "image"]},
        real=good | {"programs": {"release.installer.binary": "NOT_SET_ANYWHERE"}},
    )
    assert cli.main(["matrix", "run", "--jobs", jobs, "--artifacts", str(places), "--cluster", "utm"]) == 1
    printed = capsys.readouterr().out
    assert "skip  real: NOT_SET_ANYWHERE not set" in printed and "1 passed, 1 failed, 1 skipped" in printed
    [folder] = [path for path in places.iterdir() if path.is_dir()]
    assert [(one["job"], one["result"]) for one in records.load(places / "history.jsonl")] in (
        [("bad", "failed"), ("good", "passed")], [("good", "passed"), ("bad", "failed")],
    )  # fmt: skip
    suites = {suite.name: suite for suite in JUnitXml.fromfile(str(folder / matrix_report.JUNIT))}
    cases = {case.name: [type(result).__name__ for result in case.result] for case in suites["agentlab matrix"]}
    assert cases == {"good": [], "bad": ["Failure"], "real": ["Skipped"]}
    assert {"good: good", "bad: bad"} <= suites.keys()
    page = (folder / matrix_report.PAGE).read_text()
    assert (
        '<td class="bad">failed</td>' in page and 'href="good/report/index.html"' in page and "NOT_SET_ANYWHERE" in page
    )
    assert (folder / "good/report/index.html").exists() and "ok    configure" in (folder / "good.log").read_text()
    assert not (tmp_path / "shared").exists(), "SHARED_DIR belongs to one installation"
    why = next(case.result[0].message for case in suites["agentlab matrix"] if case.name == "bad")
    assert why in printed


@pytest.mark.slow
def test_a_job_that_passes_and_fails_is_a_flake_of_the_history(
    places: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With `--repeat` each run has a cluster and a directory of its own, and a record."""
    jobs = table(tmp_path / "jobs.yml", a={"profile": "sno_ipv4", "stages": ["configure"]})
    verb = ["matrix", "run", "--jobs", jobs, "--artifacts", str(places), "--cluster", "utr", "--repeat", "2"]
    assert cli.main(verb) == 0
    printed = capsys.readouterr().out
    assert (
        "start a: cluster utr-1" in printed
        and "start a.2: cluster utr-2" in printed
        and "2 passed, 0 failed" in printed
    )
    [folder] = [path for path in places.iterdir() if path.is_dir()]
    assert (folder / "a/junit.xml").exists() and (folder / "turn-2/a/junit.xml").exists()
    found = records.load(places / "history.jsonl")
    assert [one["result"] for one in found] == ["passed", "passed"]
    records.append({**found[0], "result": "failed"}, places / "history.jsonl")
    assert cli.main(["matrix", "history", str(places / "history.jsonl")]) == 0
    shown = capsys.readouterr().out
    assert "2 of 3" in shown
    assert found[0]["commit"].endswith("-dirty") or f"passed and failed at {found[0]['commit']}" in shown


@pytest.mark.slow
def test_an_interrupted_matrix_ends_its_jobs_and_reports_what_is_left(places: Path, tmp_path: Path) -> None:
    slow = {"profile": "sno_ipv4", "stages": ["configure"]}
    jobs = table(tmp_path / "jobs.yml", a=slow, b=slow)
    verb = ["matrix", "run", "--jobs", jobs, "--artifacts", str(places), "--cluster", "uti", "--most", "1"]
    with (tmp_path / "printed").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", cli.__name__, *verb], stdout=output, stderr=output, env=os.environ
        )
    try:
        for __ in range(1200):
            if "start " in (tmp_path / "printed").read_text():
                break
            time.sleep(0.05)
        assert cli.main(["matrix", "run", "--jobs", jobs, "--artifacts", str(places), "--cluster", "uti"]) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    finally:
        process.kill()
    printed = (tmp_path / "printed").read_text()
    assert "interrupted: 1 jobs end" in printed and "destroy --cluster uti-1" in printed
    [folder] = [path for path in places.iterdir() if path.is_dir()]
    assert "the matrix was interrupted" in (folder / matrix_report.PAGE).read_text()


def test_texts_of_jobs_are_not_markup() -> None:
    one = matrix_report.Outcome(name="<b>x", result="failed", end=3.0, why="<script>", folder='"><b>')
    assert "<b>" not in (text := matrix_report.page([one], {}, [("Table", "<b>")])) and "<script>" not in text
