"""Which jobs prove which field of a profile, and by which check: proof.yml and docs/fields.md."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.ci import fields, results
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs, records
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RUN_STAGES

NOW = "2027-01-01T00:00:00+00:00"
ALL = fields.PassedJob(datetime.fromisoformat(NOW), RUN_STAGES)
WHOLE = [*RUN_STAGES, "destroy"]
UNTIL_WAIT = ["prepare", "configure", "image", "boot", "wait", "destroy"]
UNTIL_IMAGE = ["prepare", "configure", "image", "destroy"]
MODULES = {
    "machine of each node": "machine", "network of each node": "links", "boot of each node": "booted", "medium of each node": "booted",
    "time servers": "booted", "way out": "way_out", "pulls through": "proxied", "load balancer": "balancing", "fencing on": "fencing",
    "pod and service": "asked", "BMCs of": "asked", "FIPS mode": "asked", "mirrors of": "asked", "registries of": "asked",
    "SSH keys": "asked", "addresses": "validate", "nodes of each role": "validate", "platform of": "validate", "DNS names": "validate",
    "`ClusterVersion`": "validate", "`assisted-installer-controller`": "validate", "API and ingress": "validate",
    "tests of the profile": "tests", "extra manifests": "manifests", "outside machines": "outside", "architecture of": "validate",
}  # fmt: skip
"""What begins the name of a check, and the module of the library `cluster` that has it."""
NO_CHECK_OF_VALIDATE = {
    "installed with the program", "installed from the image of that build", "installed by a foreign BMC", "the steps' own texts",
}  # fmt: skip
"""That the cluster is installed is the check; a job of it must get through `validate` all the same."""


def page_of(job: dict[str, Any], *stages: str) -> dict[str, list[str]]:
    """Return the checks of each field in whose row a job is, when it passed with these stages."""
    ran: records.Record = {
        "job": "one", "profile": records.profile_id(results.source(job["profile"])), "commit": "abc1234",
        "date": NOW, "seconds": 1.0, "result": "passed", "stages": dict.fromkeys(stages, 1.0), "host": "h",
    }  # fmt: skip
    table = {"one": job}
    found: dict[str, list[str]] = {}
    for line in fields.page(results.proven([ran], table), results.passed_jobs([ran], table)).splitlines():
        if "| `one` |" in line:
            field, __, check, __ = (cell.strip() for cell in line.strip("|").split("|"))
            found.setdefault(field.strip("`"), []).append(check)
    return found


def test_a_job_that_ends_in_the_wait_proves_no_check_of_validate() -> None:
    """docs/fields.md had it in the row of each field of its profile, next to a check that had never been made."""
    profile = {"boot": {"mode": "pxe"}, "master": {"memory_mib": 4096}, "faults": [{"kind": "expired_token"}]}
    job = {"profile": profile, "expect": {"exit_code": 5, "cause": "x", "log": []}}
    assert {"boot.mode: pxe", "stack: ipv4", "topology: sno", "faults"} <= page_of({"profile": profile}, *WHOLE).keys()
    found = page_of(job, *UNTIL_WAIT)
    assert found["faults"] == ["first cause of the report"]
    assert found["machine.memory_mib"] == ["validations of the service"]
    assert found["release.profile: 4.22"] == ["units and manifests of the image"]
    assert not {"boot.mode: pxe", "stack: ipv4", "topology: sno", "release.payload: lab"} & found.keys()


def test_a_job_that_ends_in_the_stage_image_proves_nothing_of_the_image() -> None:
    job = {"profile": {"topology": "sno"}, "expect": {"stage": "image", "exit_code": 3, "cause": "x", "log": []}}
    found = page_of(job, *UNTIL_IMAGE)
    assert not {"release.profile: 4.22", "boot.mode: redfish", "topology: sno"} & found.keys()
    assert {check for checks in found.values() for check in checks} <= {"", "stage `prepare`"}


def test_a_job_whose_validate_fails_as_expected_has_made_the_other_checks() -> None:
    job = {
        "profile": {"boot": {"mode": "pxe"}},
        "expect": {"stage": "validate", "exit_code": 7, "cause": "x", "log": []},
    }
    assert page_of(job, *WHOLE)["boot.mode: pxe"] == ["boot of each node"]


@pytest.mark.parametrize(("minutes", "there"), [(-1, False), (0, True)])
def test_a_record_that_is_older_than_the_check_proves_nothing(minutes: int, *, there: bool) -> None:
    """docs/fields.md had jobs that had passed before `validate` compared the field."""
    row = next(row for row in fields.proof()["rows"] if row["field"] == "machine.vcpus")
    since = {row["check"]: "2026-03-01T02:00:00+02:00"}
    date = datetime.fromisoformat("2026-03-01T00:00:00+00:00") + timedelta(minutes=minutes)
    assert fields.PassedJob(date, RUN_STAGES).proves(row, since) == there
    assert fields.PassedJob(date, RUN_STAGES).proves(row, {}), "a check that is older than all records"
    assert not fields.PassedJob(date, ["wait"]).proves(row, {})
    del row["check"]
    assert fields.PassedJob(date, []).proves(row, since)


def test_each_date_of_a_check_still_matters() -> None:
    proof = fields.proof()
    checks = {row.get("check") for row in proof["rows"]}
    assert sorted(proof["since"].keys() - checks) == [], "no row has this check"
    oldest = min(one.date for one in results.passed_jobs(records.load(results.RESULTS), results.job_table()).values())
    passed = [check for check, date in proof["since"].items() if datetime.fromisoformat(date) <= oldest]
    assert passed == [], "all records are newer: delete the line"


@pytest.mark.parametrize(("stages", "there"), [(WHOLE, False), ([*WHOLE, "add_nodes", "validate-day2"], True)])
def test_a_day_2_node_is_checked_once_it_has_joined(stages: list[str], there: bool) -> None:
    profile = {"topology": "compact", "worker": {"count": 1}, "nodes": {"worker-0": {"day2": True}}}
    assert ("machine.day2" in page_of({"profile": profile}, *stages)) == there


def test_the_test_of_a_row_is_about_its_check() -> None:
    """The tests of some rows were about the plan alone: in none of them did the check fail."""
    for row in fields.proof()["rows"]:
        check = row.get("check", "")
        if not check or row.get("stage", "validate") != "validate" or check in NO_CHECK_OF_VALIDATE:
            continue
        modules = {module for name, module in MODULES.items() if check.startswith(name)}
        assert modules, f"{row}: no check of validate begins with this"
        text = (fields.ROOT / row["test"]).read_text()
        # The checks of `asked` are tested by way of `validate`.
        assert any(re.search(rf"module_utils\.cluster import .*\b({one}|validate)\b", text) for one in modules), row


def test_each_field_of_a_profile_has_a_check_or_a_test() -> None:
    """By itself, or with the field that it is part of; no row is about a field that does not exist, or names a lost test."""
    known, proof = fields.known_fields(), fields.proof()["rows"]
    rows = {row["field"].partition(": ")[0] for row in proof}
    assert [field for field in known if not rows & {field, field.partition(".")[0]}] == []
    assert sorted(rows - known.keys() - {field.partition(".")[0] for field in known}) == []
    assert [row["test"] for row in proof if not (results.ROOT / row["test"]).exists()] == []


def test_each_field_has_a_job_and_a_check_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all jobs have passed: several rows had no job with the field, or no check of it."""
    table = results.job_table()
    passed = {
        job: {"date": NOW, "stages": dict.fromkeys(jobs.cases(jobs.load(job, results.JOBS)), 1.0)} for job in table
    }
    monkeypatch.setattr(results, "last_passed", lambda records, table: passed)
    page = fields.page(results.proven([], table), results.passed_jobs([], table))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line.startswith("| `")
    ]
    assert len(rows) > 100 and [row for row in rows if not all(row)] == []
    without = {row[0] for row in rows if row[1].startswith("none: ")}
    assert without == {"`release.payload: ocp`", "`release.payload: okd`"}


def test_a_job_proves_the_choices_of_its_profile() -> None:
    lines = fields.page({"e2e-agent-sno-oci": "sno_oci"}, {"e2e-agent-sno-oci": ALL}).splitlines()
    proven = [line.split("`")[1] for line in lines if "`e2e-agent-sno-oci`" in line]
    assert {"platform: external", "boot.mode: minimal", "topology: sno", "external.platform_name"} <= set(proven)
    assert "boot.mode: redfish" not in proven and "bonds.nics" not in proven


def test_a_job_proves_the_fields_of_its_extra_networks() -> None:
    lines = fields.page({"segments": "compact_segments_static"}, {"segments": ALL}).splitlines()
    proven = {line.split("`")[1] for line in lines if "`segments`" in line}
    assert {part for part in proven if part.startswith("extra_networks.")} == {
        "extra_networks.interface",
        "extra_networks.roles",
    }
