"""Intervals that programs of the lab payload read, with upstream's values and the lab's.

A program looks for a setting in its environment first, then in `/etc/agentlab/settings.json` or the ConfigMap
`agentlab-settings`, then takes upstream's value. The plan of a lab payload carries the lab's values.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..vocabulary import Component


class Setting(NamedTuple):
    """One interval: upstream's value (None: upstream has no such thing), the lab's, and who reads it.

    Values are as programs read them: a number of seconds, or a number with a unit. `reader` is the program that looks
    for it.
    """

    upstream: str | None
    lab: str
    reader: str
    meaning: str


SETTINGS: dict[str, Setting] = {
    "AGENT_NEXT_INSTRUCTION_SECONDS": Setting("60", "5", "service", "pause of an agent between two instructions"),
    "STEP_REPEAT_SECONDS": Setting(
        None, "20", "service", "pause before an agent is given the same check again; upstream: at each poll"
    ),
    "HOST_MONITOR_INTERVAL": Setting("8s", "2s", "service", "pace of the host state machine"),
    "CLUSTER_MONITOR_INTERVAL": Setting("10s", "2s", "service", "pace of the cluster state machine"),
    "INSTALLER_POLL_SECONDS": Setting(None, "3", "installer", "waits for hosts, nodes and workers; upstream 5 to 30"),
    "REBOOT_DELAY_SECONDS": Setting("60", "5", "installer", "delay before a host reboots into its disk"),
    "CONTROLLER_POLL_SECONDS": Setting(None, "3", "controller", "pace of the controller's loops; upstream 1 to 60"),
    "OPERATOR_SETTLE_SECONDS": Setting(None, "2", "cluster", "pace of the simulated operators"),
}


# A real program works at upstream's pace: each step of a real agent is a container of its own, and a real service orders all checks
# at each poll.
_REAL: dict[str, dict[str, str]] = {
    component: {"AGENT_NEXT_INSTRUCTION_SECONDS": "60", "STEP_REPEAT_SECONDS": "0"}
    for component in (Component.NODE_AGENT, Component.API_SERVER)
}


def lab_settings(replaced: Collection[str] = ()) -> dict[str, str]:
    """Return the settings of a lab payload, name to value; `replaced` are the components with other programs than the lab's.

    A component that is replaced by a real program works at upstream's pace, so its intervals are upstream's, not the
    lab's.
    """
    found = {name: setting.lab for name, setting in SETTINGS.items()}
    for component in replaced:
        found |= _REAL.get(component, {})
    return found
