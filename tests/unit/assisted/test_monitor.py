from __future__ import annotations

import json

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.monitor import Monitor
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Message


def cluster(status, checks=(), hosts=()):
    info = json.dumps({"network": [{"id": i, "status": s, "message": m} for i, s, m in checks]}) if checks else ""
    return {"id": "c", "status": status, "status_info": "", "validations_info": info, "hosts": list(hosts)}


def event(message, severity="info"):
    return {"severity": severity, "message": message}


def test_reports_only_what_changed():
    monitor = Monitor()
    assert monitor.update(cluster("insufficient"), [event("a")], 0) == [
        Message("info", "Cluster is not ready for install. Check validations"),
        Message("info", "a"),
    ]
    assert monitor.update(cluster("insufficient"), [event("a")], 2) == []
    assert monitor.update(cluster("insufficient"), [event("a"), event("b", "error"), event("c")], 4) == [
        Message("warning", "b"),
        Message("info", "c"),
    ]


def test_events_again_after_the_service_lost_its_state():
    monitor = Monitor()
    monitor.update(cluster("ready"), [event("a"), event("b")], 0)
    assert monitor.update(cluster("ready"), [event("x")], 2) == [Message("info", "x")]


@pytest.mark.parametrize(
    "first, second, level",
    [
        ("success", None, "debug"),
        ("failure", None, "warning"),
        ("pending", None, None),
        ("failure", "success", "info"),
        ("success", "failure", "warning"),
        ("pending", "success", None),
    ],
)
def test_validations_by_change(first, second, level):
    monitor = Monitor()
    reported = monitor.update(cluster("ready", [("v", first, "one")]), [], 0)
    if second:
        reported = monitor.update(cluster("ready", [("v", second, "two")]), [], 2)
    texts = [(m.level, m.text) for m in reported if "validation" in m.text]
    assert texts == ([(level, f"Cluster validation: {'two' if second else 'one'}")] if level else [])


def test_pending_user_action_names_the_host():
    host = {
        "id": "h",
        "requested_hostname": "master-0",
        "status": "installing-pending-user-action",
        "status_info": "fix boot order",
    }
    monitor = Monitor()
    reported = monitor.update(cluster("installing-pending-user-action", hosts=[host]), [], 0)
    assert Message("warning", "Host master-0 fix boot order") in reported
    assert monitor.retry == "cluster has stopped installing... working to recover installation"


def test_ready_for_too_long_is_fatal():
    monitor = Monitor()
    monitor.update(cluster("insufficient"), [], 0)
    monitor.update(cluster("ready"), [], 10)
    monitor.update(cluster("ready"), [], 59)
    assert monitor.fatal is None
    monitor.update(cluster("ready"), [], 61)
    assert monitor.fatal == "failed to progress after all hosts available"


def test_back_to_ready_is_retried_and_cancelled_is_fatal():
    monitor = Monitor()
    monitor.update(cluster("preparing-for-installation"), [], 0)
    monitor.update(cluster("ready"), [], 2)
    assert monitor.retry == "failed to prepare cluster installation, retrying"
    assert monitor.update(cluster("cancelled"), [event("cancelled by somebody")], 4) == [
        Message("info", "Cluster installation cancelled"),
        Message("info", "cancelled by somebody"),
    ]
    assert monitor.fatal == "cluster installation was cancelled"
