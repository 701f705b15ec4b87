"""Intervals that programs of the lab payload read, with upstream's values and the lab's.

A program looks for a setting in its environment first, then in `/etc/agentlab/settings.json` or the ConfigMap
`agentlab-settings`, then takes upstream's value. The plan of a lab payload carries the lab's values.
"""

from __future__ import annotations

from typing import NamedTuple


class Setting(NamedTuple):
    """One interval: upstream's value (None: upstream has no such thing), the lab's, and who reads it."""

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


def lab_settings() -> dict[str, str]:
    """Return the settings of a lab payload, name to value."""
    return {name: setting.lab for name, setting in SETTINGS.items()}
