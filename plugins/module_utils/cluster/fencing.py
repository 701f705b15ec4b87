"""Check of two nodes that fence each other: what Pacemaker reports on each of them."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import NamedTuple

from ..plan import faults
from ..plan.machines import address_of
from ..plan.model import Plan
from .links import Ask, Finding

# On OpenShift Pacemaker is part of the OS, in the lab a container.
COMMAND = (
    'sudo sh -c "$(command -v crm_mon >/dev/null || echo podman exec pacemaker) crm_mon --one-shot --output-as=xml"'
)


SETTLE_SECONDS = 180.0
"""How long a fence device may take to start after the installation: Pacemaker tries a failed one again after a minute."""
POLL_SECONDS = 5.0


class Report(NamedTuple):
    """online: nodes that Pacemaker sees, sorted; works: nodes whose device answers; failed: nodes that could not be fenced."""

    online: list[str]
    works: set[str]
    failed: set[str]


def read(text: str) -> Report:
    """Read the XML report of `crm_mon`; devices have the names that OpenShift gives them, `<node>_redfish`.

    Raises ValueError for other text.
    """
    try:
        root = ET.fromstring(text)
    except ET.ParseError:
        raise ValueError(f"crm_mon prints no report: {text.strip()[:200] or 'nothing'}") from None
    return Report(
        sorted(
            str(node.get("name"))
            for node in root.iterfind("nodes/node")
            if node.get("online") == "true" and node.get("unclean") == "false" and node.get("pending") == "false"
        ),
        {
            str(resource.get("id")).removesuffix("_redfish")
            for resource in root.iterfind("resources/resource")
            if resource.get("role") == "Started" and resource.get("failed") == "false"
        },
        {str(e.get("target")) for e in root.iterfind("fence_history/fence_event") if e.get("status") == "failed"},
    )


def findings(plan: Plan, ask: Ask) -> Iterator[Finding]:
    """Yield for each of the two nodes whether Pacemaker sees both there, and whether their BMCs answer.

    Waits until both are so, `SETTLE_SECONDS` at most.
    """
    nodes = [node for node in plan["nodes"] if node["role"] == "master"]
    names = sorted(node["name"] for node in nodes)
    fenced = [name for name in names if not any(faults.of_kind(plan, "fence_fails", name))]
    expected = _found(names, fenced)
    deadline = time.monotonic() + SETTLE_SECONDS
    for node in nodes:
        address = address_of(node, plan["networks"])
        while (found := _reported(address, ask)) != expected and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        yield Finding(f"fencing on {node['name']}", expected, found)


def _reported(address: str, ask: Ask) -> str:
    try:
        report = read(ask(address, COMMAND))
    except (OSError, ValueError) as error:
        return str(error)
    return _found(report.online, sorted(report.works))


def _found(online: list[str], works: list[str]) -> str:
    return f"online: {', '.join(online) or 'none'}; can be fenced: {', '.join(works) or 'none'}"
