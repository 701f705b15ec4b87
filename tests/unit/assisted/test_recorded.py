"""What `wait-for` printed about a real service through an installation, it prints about the same states now.

`waitfor.json`: `polls`, each with what changed of the validations (`{id: [category, status, message]}`, null: no longer reported) and the
events that were new; `said`: level and text of the resulting messages.
"""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.monitor import Monitor
from ansible_collections.agentlab.ocp.tests.recorded.replay import HERE


class Validations:
    """The checks of one host or cluster, poll after poll."""

    def __init__(self) -> None:
        self.known: dict[str, list[str]] = {}

    def info(self, changes: dict[str, list[str] | None]) -> str:
        self.known = {ident: check for ident, check in {**self.known, **changes}.items() if check}
        found: dict[str, list[dict[str, str]]] = {}
        for ident, (category, status, message) in self.known.items():
            found.setdefault(category, []).append({"id": ident, "status": status, "message": message})
        return json.dumps(found)


def test_messages_about_a_real_service() -> None:
    recorded = json.loads((HERE / "waitfor.json").read_text())
    monitor, events, reported = Monitor(), list[dict[str, Any]](), list[tuple[str, str]]()
    checks: dict[str, Validations] = {}
    for number, poll in enumerate(recorded["polls"]):
        hosts = [
            {**host, "validations_info": checks.setdefault(host["id"], Validations()).info(host["validations"])}
            for host in poll["hosts"]
        ]
        cluster = {
            "status": poll["status"],
            "validations_info": checks.setdefault("", Validations()).info(poll["validations"]),
            "hosts": hosts,
        }
        events += [{"severity": severity, "message": message} for severity, message in poll["events"]]
        reported += monitor.update(cluster, events, 2.0 * number)
    assert sorted(reported) == sorted(tuple(line) for line in recorded["said"])
    told = [text for level, text in reported if level != "debug"]
    assert told[0] == "Cluster is not ready for install. Check validations"
    order = ("Cluster is ready for install", "Preparing cluster for installation", "Cluster installation in progress")
    assert [text for text in told if text in order] == list(order)
