"""Records of e2e jobs: read, chosen from, and shown as the support matrix."""

from __future__ import annotations

import datetime
import json
import re
import subprocess
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.ci import fields, results
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs, records

NOW = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)
JOBS = {name: {"profile": "sno_ipv4"} for name in ("sno", "ha", "fault", "new")}


SNO, HA = (records.profile_id(results.source(name)) for name in ("sno_ipv4", "ha_ipv4"))


def record(
    job: str, *, days: float, result: str = "passed", seconds: float = 300.0, profile: str | None = SNO
) -> records.Record:
    date = (NOW - datetime.timedelta(days=days)).isoformat()
    return {
        "job": job,
        "profile": profile,
        "commit": "abc1234",
        "date": date,
        "seconds": seconds,
        "result": result,
        "stages": {},
        "host": "Debian, TCG",
    }


def test_the_job_that_passed_longest_ago_is_next() -> None:
    records = [
        record("ha", days=9),
        record("sno", days=5),
        record("fault", days=3),
        record("sno", days=1),
        record("gone", days=99),
    ]
    assert results.next_jobs(records, JOBS, most=2, minutes=60) == ["ha", "fault"]
    assert results.next_jobs(records, JOBS, most=2, minutes=60, leave=["ha"]) == ["fault", "sno"]


def test_a_failed_run_does_not_count_and_a_job_that_never_passed_is_left_out() -> None:
    records = [
        record("ha", days=9),
        record("ha", days=1, result="failed"),
        record("new", days=2, result="failed"),
        record("sno", days=5),
    ]
    assert results.next_jobs(records, JOBS, most=3, minutes=60) == ["ha", "sno"]


def test_a_run_with_another_profile_does_not_count() -> None:
    records = [
        record("ha", days=9, profile=HA),
        record("sno", days=5, profile=None),
        record("fault", days=3),
    ]
    assert results.next_jobs(records, JOBS, most=3, minutes=60) == ["fault"]
    assert f"| `ha` | sno_ipv4 | sno | ipv4 | redfish |  |  | {results.NEVER} |  |  |  |  |" in results.matrix(
        records, JOBS, NOW
    )


def test_a_run_before_a_job_changed_its_own_profile_does_not_count() -> None:
    """docs/fields.md named jobs for fields that their profiles got after the run."""
    before, now = {"topology": "ha"}, {"topology": "ha", "stack": "ipv6"}
    ran = record("ha", days=9, profile=records.profile_id(results.source(before)))
    assert results.proven([ran], {"ha": {"profile": before}}) == {"ha": before}
    assert results.proven([ran], {"ha": {"profile": now}}) == {}


def test_a_run_before_the_file_of_its_profile_changed_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(fields, "PROFILES", tmp_path)
    (tmp_path / "sno_ipv4.yml").write_text("topology: sno\n")
    ran = record("sno", days=1, profile=records.profile_id(results.source("sno_ipv4")))
    assert results.proven([ran], JOBS) == {"sno": "sno_ipv4"}
    (tmp_path / "sno_ipv4.yml").write_text("# One node\ntopology: 'sno'\n")
    assert results.proven([ran], JOBS) == {"sno": "sno_ipv4"}
    (tmp_path / "sno_ipv4.yml").write_text("topology: sno\nstack: ipv6\n")
    assert results.proven([ran], JOBS) == {}


def test_a_run_before_a_file_that_its_profile_names_changed_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Keys, pull secrets, mirrors, inventories and manifests of a job could change without a new run."""
    monkeypatch.setattr(results, "JOBS", tmp_path / "jobs.yml")
    given = {"installer": {"manifests_dir": "manifests", "ssh_key_file": "a.pub", "pull_secret_file": "~/secret"}}
    changes = [
        ("manifests/a.yaml", "kind: A\n"),
        ("manifests/b.yaml", ""),
        ("a.pub", "ssh-rsa A"),
        ("a.pub", "ssh-rsa B"),
    ]
    (tmp_path / "manifests").mkdir()
    seen = [records.profile_id(results.source(given))]
    for name, text in changes:
        (tmp_path / name).write_text(text)
        seen.append(records.profile_id(results.source(given)))
        assert results.proven([record("sno", days=1, profile=seen[-1])], {"sno": {"profile": given}}) == {"sno": given}
        assert results.proven([record("sno", days=1, profile=seen[-2])], {"sno": {"profile": given}}) == {}
    assert len({*seen}) == len(seen)


def test_the_paths_of_real_programs_are_not_part_of_a_record() -> None:
    job = {
        "profile": "sno_ipv4",
        "programs": {"release.payload_overrides.agent-installer-node-agent": "AGENTLAB_REAL_AGENT"},
    }
    [proven] = results.proven([record("real", days=1, profile=None)], {"real": job}).values()
    assert proven["release"] == {"payload_overrides": {"agent-installer-node-agent": "AGENTLAB_REAL_AGENT"}}
    assert results.proven([record("real", days=1)], {"real": job}) == {}


def test_the_order_of_a_profiles_fields_does_not_matter() -> None:
    one = {"stack": "ipv6", "master": {"vcpus": 1, "tpm": True}}
    other = {"master": {"tpm": True, "vcpus": 1}, "stack": "ipv6"}
    assert records.profile_id(results.source(one)) == records.profile_id(results.source(other))


def test_jobs_fit_into_the_time() -> None:
    records = [record("ha", days=9, seconds=1500), record("sno", days=5, seconds=300)]
    assert results.next_jobs(records, JOBS, most=2, minutes=20) == ["sno"]
    assert results.next_jobs(records, JOBS, most=2, minutes=0) == []


def test_the_matrix_has_the_newest_run_that_passed_and_marks_old_ones() -> None:
    ha = {"topology": "ha"}
    ran = records.profile_id(results.source(ha))
    table = JOBS | {"ha": {"profile": ha}}
    counted: records.Record = {**record("ha", days=2, profile=ran, seconds=725), "nodes": 5, "checks": 61}
    text = results.matrix([record("sno", days=40), counted], table, NOW)
    assert (
        "| `sno` | sno_ipv4 | sno | ipv4 | redfish |  |  | 2026-01-20 | abc1234 | 5m00s | Debian, TCG | stale |" in text
    )
    assert (
        "| `ha` | in the job | ha | ipv4 | redfish | 5 | 61 | 2026-02-27 | abc1234 | 12m05s | Debian, TCG |  |" in text
    )
    assert f"| `new` | sno_ipv4 | sno | ipv4 | redfish |  |  | {results.NEVER} |  |  |  |  |" in text


def test_a_job_announces_the_cases_that_it_had_when_it_passed() -> None:
    had: dict[str, list[list[str]]] = {}
    for run in records.load(results.ROOT / "ci/results.jsonl"):
        if run["result"] == "passed":
            # A cluster may have been kept.
            had.setdefault(run["job"], []).append([*run["stages"], *{"destroy"} - run["stages"].keys()])
    known = had.keys() & set(jobs.names(results.ROOT / "ci/jobs.yml"))
    announced = {job: jobs.cases(jobs.load(job, results.ROOT / "ci/jobs.yml")) for job in known}
    assert len(known) > 20
    assert {job: names for job, names in announced.items() if names not in had[job]} == {}


def test_records_are_kept_and_a_wrong_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert records.load(path) == []
    for days in (1, 3):
        records.append(record("sno", days=days), path)
    assert [one["date"] for one in records.load(path)] == [record("sno", days=days)["date"] for days in (3, 1)]
    path.write_text(
        json.dumps(record("sno", days=1)) + "\n" + json.dumps({"job": "sno", "date": NOW.isoformat()}) + "\n"
    )
    with pytest.raises(ValueError, match=r"results\.jsonl:2: lacks commit, host, "):
        records.load(path)
    path.write_text(json.dumps({**record("sno", days=1), "nodes": "five"}) + "\n")
    with pytest.raises(ValueError, match=r"results\.jsonl:1: is not a record: nodes is 'five'"):
        records.load(path)
    path.write_text("[]\n")
    with pytest.raises(ValueError, match=r"results\.jsonl:1: is not a record"):
        records.load(path)


def test_the_support_matrix_rests_on_records(tmp_path: Path) -> None:
    """docs/support.md and docs/fields.md are what `make matrix` writes, but for the marks of age; both as git has them, since an e2e job may write them now."""

    def rows(text: str) -> list[str]:
        return [line.removesuffix(" stale |").removesuffix("  |") for line in text.splitlines()]

    def staged(name: str) -> str:
        return subprocess.run(
            ["git", "show", f":{name}"], cwd=results.ROOT, capture_output=True, text=True, check=True
        ).stdout

    path = tmp_path / "results.jsonl"
    path.write_text(staged("ci/results.jsonl"))
    ran, table = records.load(path), results.job_table()
    assert staged("docs/fields.md") == fields.page(results.proven(ran, table), results.passed_jobs(ran, table))
    assert rows(staged("docs/support.md")) == rows(results.matrix(ran, table, NOW))
    without = sorted(table.keys() - results.last_passed(ran, table).keys())
    assert without == [], "a job passes with its profile before it is committed: ci/run-job"
    empty = [line for line in staged("docs/fields.md").splitlines() if re.match(r"\| `[^|]*\| +\|", line)]
    assert empty == [], "a field without a job that has proven it since its check exists"
