"""The state of a cluster, without its lab."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.status import table
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.report import causes, status
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs/status.schema.json").read_text())


def host(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "requested_hostname": name, "role": "master", "status": "known", "status_info": "Ready", **more}


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    made, changes = rundir.prepare(tmp_path, "compact_ipv4", ROOT / "config_examples", "ut")
    rundir.write(changes)
    return made


def collect(plan: Plan, run_dir: Path) -> status.Status:
    found = status.collect(plan, run_dir, inside=False)
    jsonschema.validate(found, SCHEMA)
    return found


def record(run_dir: Path, text: str) -> None:
    (run_dir / "logs").mkdir()
    (run_dir / RunFile.LAST_CLUSTER).write_text(text)


def test_of_a_plan(plan: Plan, tmp_path: Path) -> None:
    found = collect(plan, tmp_path)
    assert (found["installation"], found["first_cause"], found["stages"]) == (None, None, [])
    assert [(one["name"], one["power"], one["status"]) for one in found["hosts"]] == [
        (f"master-{index}", None, None) for index in range(3)
    ]
    assert table(found).startswith("cluster ut: compact ipv4, planned\nHOST")


def test_of_a_record(plan: Plan, tmp_path: Path) -> None:
    state.begin(tmp_path, "boot")
    state.finish(tmp_path, "boot", failed=False)
    state.begin(tmp_path, "wait")
    failing = {"network": [{"id": "ntp-synced", "status": "failure", "message": "Host couldn't synchronize with any NTP server"},
                           {"id": "connected", "status": "success", "message": "Host is connected"}]}  # fmt: skip
    hosts = [
        host("stranger"),
        host(
            "master-1.ut.test",
            status="insufficient",
            status_info="Host does not meet",
            validations_info=json.dumps(failing),
        ),
        host(
            "master-0",
            status="installing-in-progress",
            progress={"current_stage": "Writing image to disk", "installation_percentage": 55},
        ),
    ]
    document = {
        "status": "installing",
        "status_info": "Installation in progress",
        "progress": {"total_percentage": 40},
        "hosts": hosts,
    }
    record(tmp_path, json.dumps(document))
    found = collect(plan, tmp_path)
    assert [(stage["name"], stage["result"]) for stage in found["stages"]] == [("boot", "ok"), ("wait", None)]
    assert [one["name"] for one in found["hosts"]] == ["master-0", "master-1", "master-2", "stranger"]
    assert found["hosts"][1]["failing"] == [
        {"id": "ntp-synced", "message": "Host couldn't synchronize with any NTP server"}
    ]
    lines = table(found).splitlines()
    assert lines[:2] == [
        "cluster ut: compact ipv4, boot ok, wait running",
        "installing, 40%: Installation in progress (last answer; the service does not answer now)",
    ]
    assert "Writing image to disk 55%" in lines[3]
    assert lines[-3:] == [
        "  master-1: ntp-synced: Host couldn't synchronize with any NTP server",
        "First cause: the lab of cluster ut is not running",
        "     Next: bin/agentlab prepare --cluster ut",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"status": 1}', "{", "\0", '{"status": "ready", "hosts": null}'])
def test_of_a_damaged_record(plan: Plan, tmp_path: Path, text: str) -> None:
    record(tmp_path, text)
    found = collect(plan, tmp_path)
    assert (found["installation"] is None) == ("ready" not in text)


@pytest.mark.parametrize(
    "damage",
    [
        {"hosts": 1},
        {"hosts": ["x"]},
        {"progress": "x"},
        {"progress": {"total_percentage": "1"}},
        {"hosts": [{"id": "h", "status": "x", "validations_info": "{"}]},
        {"hosts": [{"id": "h", "status": "x", "validations_info": '{"a": 1}'}]},
    ],
)
def test_of_a_record_with_wrong_fields(plan: Plan, tmp_path: Path, damage: dict[str, Any]) -> None:
    record(tmp_path, json.dumps({"status": "ready", **damage}))
    collect(plan, tmp_path)


def test_texts_of_others_are_printable_and_without_secrets(plan: Plan, tmp_path: Path) -> None:
    text = "a\x1b[2J\r\nb password=hunter2"
    record(tmp_path, json.dumps({"status": text, "status_info": text, "hosts": [host(text, status=text, role=text)]}))
    found = collect(plan, tmp_path)
    shown = json.dumps(found) + table(found).replace("\n", "")
    assert "hunter2" not in shown and shown.isprintable()


def test_of_an_installed_cluster(plan: Plan, tmp_path: Path) -> None:
    """The service's last answer is from the middle of the installation."""
    record(tmp_path, json.dumps({"status": "installing", "hosts": [host("master-0", status="installing")]}))
    assert collect(plan, tmp_path)["installation"]
    for stage in ("boot", "wait"):
        state.begin(tmp_path, stage)
        state.finish(tmp_path, stage, failed=False)
    found = collect(plan, tmp_path)
    assert (found["installation"], found["first_cause"], found["hosts"][0]["status"]) == (None, None, None)


@pytest.mark.parametrize(
    ("booted", "grace", "waited", "shown"),
    [
        (30, None, None, False),
        (1000, None, None, True),
        (30, causes.SURE, None, False),
        (90, causes.SURE, None, True),
        (90, causes.LIKELY, None, False),
        (30, None, "failed", True),
    ],
)
def test_a_cause_is_shown_after_its_grace_period(
    plan: Plan,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    booted: int,
    grace: float | None,
    waited: Any,
    shown: bool,
) -> None:
    """Seconds after the boot, `status` printed that the service never answered."""
    cause = causes.Cause("the assisted service never answered", "look", grace)
    monkeypatch.setattr(status.Probe, "causes", lambda *__: [cause])
    then = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=booted)).isoformat(timespec="seconds")
    stages: list[status.StageStatus] = [{"name": "boot", "start": then, "end": None, "result": "ok"}]
    stages += [{"name": "wait", "start": then, "end": then, "result": waited}] if waited else []
    found = status._first_cause(plan, tmp_path, stages, None, inside=True)
    assert found == ({"text": cause.text, "next": "look"} if shown else None)
    moved = {"hosts": [{"progress": {"stage_updated_at": datetime.datetime.now(datetime.UTC).isoformat()}}]}
    assert bool(status._first_cause(plan, tmp_path, stages, moved, inside=True)) == bool(waited)


def test_causes_without_a_grace_period_have_that_of_a_wait() -> None:
    defaults = yaml.safe_load((ROOT / "roles/wait_for/defaults/main.yml").read_text())
    assert defaults["agentlab_wait_for_stall_minutes"] * 60 == causes.UNKNOWN
