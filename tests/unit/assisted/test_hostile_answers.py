"""Any program may answer at the rendezvous address: whatever it sends, a wait reports it and continues."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted import monitor, shapes, view
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import AssistedClient
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.watcher import BootstrapFailed, BootstrapWatcher
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import AssistedError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.report import causes, evidence
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Diagnosis, WaitState

PLAN = build.build(profile.load("sno_ipv4", Path(__file__).parents[3] / "config_examples"), "ostest")
CHECKS = json.dumps({"network": [{"id": "v", "status": "failure", "message": "no"}]})
INVENTORY = json.dumps({"hostname": "m0", "interfaces": [{"name": "eth0", "ipv4_addresses": ["192.0.2.9/24"]}]})
CLUSTER: dict[str, Any] = {
    "id": "c", "name": "ostest", "status": "installing", "status_info": "x", "validations_info": CHECKS,
    "hosts": [{"id": "h", "status": "installing-in-progress", "status_info": "x", "requested_hostname": "m0", "role": "master",
               "bootstrap": True, "validations_info": CHECKS, "inventory": INVENTORY, "updated_at": "2026-11-24T01:00:00.000Z",
               "progress": {"current_stage": "Writing image to disk", "progress_info": "50%", "installation_percentage": 30}}],
}  # fmt: skip
EVENTS = [{"severity": "info", "message": "m", "event_time": "2026-11-24T01:00:00.000Z", "host_id": "h"}]
ANSWERS: dict[str, Any] = {
    "/infra-envs": [{"id": "i"}],
    "/clusters": [{"id": "c"}],
    "/clusters/c": CLUSTER,
    "/events": EVENTS,
}
ODD: list[Any] = [
    None, 5, True, 1.5, "x", "", "[1]", "{}", "null", '{"a": 1}', '{"a": [1]}', '{"a": [{}]}', "\x1b[2J[/x]", [], [None], ["x"], [[]],
    [{}], {}, {"x": None}, "../../x?y#z", "[" * 200, 10**400,
]  # fmt: skip


def replaced(value: Any) -> Iterator[Any]:
    """The value with each part of it replaced by each odd one, or left out."""
    yield from ODD
    if isinstance(value, dict):
        for key in value:
            yield {other: part for other, part in value.items() if other != key}
            for part in replaced(value[key]):
                yield {**value, key: part}
    elif isinstance(value, list):
        for part in replaced(value[0]):
            yield [part]


class Quiet:
    now = 0.0

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Kube:
    def live(self) -> bool:
        return False

    def bootstrap_status(self) -> str | None:
        return None


def waited(answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a wait reports in its first minute."""
    client, reported, clock = AssistedClient("192.0.2.1", None), list[str](), Quiet()
    monkeypatch.setattr(client, "get", lambda path, **query: copy.deepcopy(answers.get(path, answers["/clusters/c"])))

    def diagnose(seen: WaitState) -> Diagnosis:
        return Diagnosis(causes.causes(evidence.Facts(PLAN, cluster=seen.cluster, events=seen.events)))

    def show(cluster: dict[str, Any], events: list[dict[str, Any]]) -> None:
        assert all(isinstance(cell, str) for row in view.rows(cluster) for cell in row)

    watcher = BootstrapWatcher(
        client, Kube(), "192.0.2.1", lambda message: reported.append(message.text), show, clock, stall=600, diagnose=diagnose,
        limit=60, reachable=lambda host: True,
    )  # fmt: skip
    with pytest.raises(BootstrapFailed):
        watcher.run()
    return reported


@pytest.mark.parametrize("path", ANSWERS)
def test_any_answer_is_taken_or_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    for odd in replaced(ANSWERS[path]):
        reported = waited({**ANSWERS, path: odd}, monkeypatch)
        assert all(isinstance(text, str) for text in reported)
        count += 1
    assert count > 40


@pytest.mark.parametrize(
    ("path", "answer", "wanted"),
    [
        ("/clusters", {"code": 1}, "/v2/clusters: the answer is a mapping, not a list"),
        ("/clusters", [{"id": 5}], "/v2/clusters: [0]: id is a number, not a string"),
        ("/clusters/c", {**CLUSTER, "hosts": ["x"]}, "/v2/clusters/c: hosts[0]: is a string, not a mapping"),
        ("/clusters/c", {**CLUSTER, "validations_info": "["}, "/v2/clusters/c: validations_info:1:2: unexpected end of JSON input"),
        ("/events", [{"message": "x"}], "/v2/events: [0]: severity is null, not a string"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(path: str, answer: Any, wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reported = waited({**ANSWERS, path: answer}, monkeypatch)
    assert any(
        text.startswith("Unable to retrieve cluster metadata from Agent Rest API: ") and wanted in text
        for text in reported
    ), reported


def test_disks_of_an_inventory() -> None:
    """Each odd part is refused before anything reads it, or it is not a reason."""
    eligible = {"eligible": False, "not_eligible_reasons": ["Disk is too small"]}
    disks = [{"name": "sda", "drive_type": "HDD", "installation_eligibility": eligible}]
    read = 0
    for odd in (disks, *replaced(disks)):
        host = {**CLUSTER["hosts"][0], "inventory": json.dumps({"disks": odd})}
        try:
            shapes.cluster({**CLUSTER, "hosts": [host]}, "URL")
        except AssistedError:
            continue
        assert isinstance(monitor.ineligible(host), str)
        read += 1
    assert 0 < read < len(list(replaced(disks)))
