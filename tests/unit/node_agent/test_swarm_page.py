"""The page of a swarm's report: what its readers look for, in the words of the API."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from ansible_collections.agentlab.ocp.payload.node_agent.swarm import operations, page, report
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.stats import Stats

AGENT = Path(operations.__file__).parents[1]


def made(*ends: str) -> dict[str, object]:
    stats = Stats(clusters=len(ends))
    for at, end in enumerate(ends):
        stats.end(f"swarm-{at}", end, 3)
    stats.record("register", 0.1, 201)
    stats.record("reply inventory", 0.1, 500, "no")
    settings = Settings("http://x", topology={"sno": 2.0, "ha:9": 1.0}, failures={"ntp": 0.1})
    return {"settings": settings.public(), "stopped": False, "left": [], **stats.report()}


def test_each_cluster_has_a_row_and_those_not_installed_are_first() -> None:
    shown = page.page(made("installed", "error", "installed", "unfinished"))
    table = shown.partition("<h2>Clusters</h2>")[2].partition("</table>")[0]
    assert re.findall(r"<td>(swarm-\d)</td><td class=\"(\w+)\">(\w+)", table)[:2] in (
        [("swarm-1", "bad", "error"), ("swarm-3", "bad", "unfinished")],
        [("swarm-3", "bad", "unfinished"), ("swarm-1", "bad", "error")],
    )
    assert table.count("<tr>") == 5


def test_reports_of_machines_have_the_clusters_of_all() -> None:
    both = report.merge_reports([made("installed"), made("error", "installed")])
    assert [row["end"] for row in both["outcomes"]] == ["installed", "error", "installed"]


def test_settings_are_as_the_command_line_takes_them() -> None:
    shown = page.page(made("installed"))
    settings = shown.partition("<h2>Settings</h2>")[2]
    assert "<dd>sno=2, ha:9=1</dd>" in settings and "<dd>1, 1</dd>" in settings and "<dd>ntp=0.1</dd>" in settings
    assert not re.search(r"[{}]|True|False", settings)


def test_operations_have_the_names_of_the_api() -> None:
    shown = page.page(made("installed"))
    assert "<td>v2RegisterHost</td>" in shown and shown.count("<td>v2PostStepReply, inventory</td>") == 2
    assert operations.shown_name("bootstrap.ign") == "V2DownloadClusterFiles, bootstrap.ign"
    assert operations.shown_name("set up") == "set up"


def test_every_request_to_the_service_has_its_operation() -> None:
    """Names that the sources give to requests of the service; those of a hub's API begin with `hub`."""
    given = {
        node.args[0].value
        for path in [AGENT / "protocol.py", AGENT / "logs_sender.py", *(AGENT / "swarm").glob("*.py")]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Request"
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    assert len(given) > 15
    assert {str(name) for name in given if not str(name).startswith("hub ")} - {
        "remove"
    } <= operations.OPERATION_IDS.keys()
