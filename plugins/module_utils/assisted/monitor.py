"""Messages about a cluster that is being installed: a pure function of what was observed before.

Messages and levels are those of `openshift-install agent wait-for`; every event is reported, not only the last one of a poll.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..documents import load_json
from ..vocabulary import ClusterStatus, Status
from ..watch import Message

STATUS_TEXT = {
    ClusterStatus.ADDING_HOSTS: "Cluster is adding hosts",
    Status.CANCELLED: "Cluster installation cancelled",
    Status.ERROR: "Cluster has hosts in error",
    Status.FINALIZING: "Finalizing cluster installation",
    Status.INSTALLING: "Cluster installation in progress",
    Status.PENDING_USER_ACTION: "Cluster has hosts requiring user input",
    Status.INSUFFICIENT: "Cluster is not ready for install. Check validations",
    Status.PENDING_FOR_INPUT: "User input is required to continue cluster installation",
    Status.PREPARING: "Preparing cluster for installation",
    Status.READY: "Cluster is ready for install",
}
ERRORED = frozenset({Status.ERROR, Status.PENDING_USER_ACTION})
READY_LIMIT = 60.0
"""Seconds that a cluster may stay `ready` before the installation counts as failed to start."""


@dataclass
class Monitor:
    """Remembers what was reported, so that only changes are reported.

    Call `update` with each answer of the service. status: the last of the cluster; not_ready_since: when `ready` began,
    in the seconds of `update`; validations: (prefix, id) -> (status, message); events_seen: number of events reported.
    """

    status: str | None = None
    not_ready_since: float | None = None
    validations: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    events_seen: int = 0
    retry: str | None = None
    """Why the installation makes no progress now, or None."""
    fatal: str | None = None
    """Why the installation cannot continue, or None."""

    def update(self, cluster: dict[str, Any], events: list[dict[str, Any]], now: float) -> list[Message]:
        """Messages for what is new in `cluster` (with its hosts) and `events` (oldest first); `now` in seconds.

        Afterwards `fatal` is set if the installation was cancelled or never starts.
        """
        messages = self._status(cluster, now)
        messages += self._validations("Cluster validation: ", cluster)
        for host in cluster.get("hosts") or []:
            messages += self._validations(f"Host {host_name(host)} validation: ", host)
        if len(events) < self.events_seen:  # the service lost its state, or was replaced
            self.events_seen = 0
        messages += [
            Message("info" if e["severity"] == "info" else "warning", e["message"]) for e in events[self.events_seen :]
        ]
        self.events_seen = len(events)
        return messages

    def _status(self, cluster: dict[str, Any], now: float) -> list[Message]:
        status, before = cluster["status"], self.status
        messages = []
        if status != before:
            messages.append(Message("info", STATUS_TEXT.get(status, f"Cluster is {status}")))
            if status == Status.PENDING_USER_ACTION:
                messages += [
                    Message("warning", f"Host {host_name(h)} {h.get('status_info', '')}")
                    for h in cluster.get("hosts") or []
                    if h["status"] == status
                ]
        self.status = status
        if status != Status.READY or self.not_ready_since is None:
            self.not_ready_since = now
        self.retry = None
        if status == Status.CANCELLED:
            self.fatal = "cluster installation was cancelled"
        if status in ERRORED:
            self.retry = "cluster has stopped installing... working to recover installation"
        elif status == Status.READY and before == Status.PREPARING:
            self.retry = "failed to prepare cluster installation, retrying"
        elif status == Status.READY and now - self.not_ready_since > READY_LIMIT:
            self.fatal = "failed to progress after all hosts available"
        return messages

    def _validations(self, prefix: str, thing: dict[str, Any]) -> list[Message]:
        messages = []
        for check in parse_validations(thing.get("validations_info")):
            key, new = (prefix, check["id"]), (check["status"], check["message"])
            old = self.validations.get(key)
            if old == new:
                continue
            self.validations[key] = new
            level = _level(new[0], old[0] if old else None)
            if level and not (old and old[1] == new[1]):
                messages.append(Message(level, prefix + new[1]))
        return messages


def _level(status: str, before: str | None) -> str | None:
    if status in ("failure", "error"):
        return "warning"
    if status != "success":
        return None
    if before is None:
        return "debug"
    return "info" if before in ("failure", "error") else None


def parse_validations(text: str | None) -> list[dict[str, str]]:
    """The checks of a `validations_info` (JSON in a string, or empty): dicts with id, status, message.

    text: of a cluster or a host; in the JSON they are lists by category. Raises `ValueError` for text that is not JSON.
    """
    return [check for checks in (load_json(text, name="validations_info") if text else {}).values() for check in checks]


def ineligible(host: dict[str, Any]) -> str:
    """Return why the disks of a host are not eligible, as the end of a message; empty if its inventory does not have it.

    host: as the service returns it. CD-ROM drives are left out.
    """
    disks = load_json(host.get("inventory") or "{}", name="inventory").get("disks") or ()
    reasons = (
        f"{disk.get('name')}: {', '.join(map(str, found))}"
        for disk in disks
        if disk.get("drive_type") != "ODD"
        and (found := (disk.get("installation_eligibility") or {}).get("not_eligible_reasons"))
    )
    return "".join(f"; {reason}" for reason in reasons)


def host_name(host: dict[str, Any]) -> str:
    """Return the display name of a host.

    host: as the service returns it. Before its inventory is known, that is its id (a UUID).
    """
    return str(host.get("requested_hostname") or host["id"])
