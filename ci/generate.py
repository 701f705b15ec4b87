"""Write what is made of the types of profile and plan, and of the command line: `ci/generate.py`. A lint test fails when one of the files is not current."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils.cli import parsers
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import reference as devscripts
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import reference, schema
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page.model import Run
from ansible_collections.agentlab.ocp.plugins.module_utils.report.status import Status
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import Event

ROOT = Path(__file__).resolve().parents[1]
FILES: dict[str, Callable[[], str]] = {
    "config_examples/profile.schema.json": lambda: schema.text(schema.profile()),
    "docs/plan.schema.json": lambda: schema.text(schema.plan()),
    "docs/events.schema.json": lambda: schema.text(schema.document("event", Event)),
    "docs/run.schema.json": lambda: schema.text(schema.document("run", Run)),
    "docs/status.schema.json": lambda: schema.text(schema.document("status", Status)),
    "docs/profile.md": reference.page,
    "docs/dev-scripts.md": devscripts.page,
    "docs/verbs.md": parsers.page,
}


def main() -> None:
    for name, text in FILES.items():
        (ROOT / name).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
