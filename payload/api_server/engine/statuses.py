"""Events, and the statuses of hosts and clusters, whose changes are events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from .. import state
from ..document import tracked_document
from ..objects import Cluster, Host
from ..state import HostCondition, HostEffect, HostTrigger
from ..tables import EVENTS, STATUS_SEVERITY
from .index import LOG, Index

#: Longest status_info of a host.
STATUS_INFO_LENGTH = 2048


class Statuses(Index):
    """Writes events and moves statuses.

    One of the layers of `Engine`. A status is never set anywhere else, so that each change has its event and its time.
    """

    def event(
        self,
        name: str,
        *,
        host: Host | None = None,
        cluster_id: str | None = None,
        infra_env_id: str | None = None,
        severity: str | None = None,
        **props: object,
    ) -> None:
        """Add an event of the table `EVENTS`; events of a host have its name and infra-env, and its cluster if the table does.

        `props` fill the template of the message: KeyError if one is missing or the name is unknown. `severity`
        overrides the table's. The event is visible after the next commit.
        """
        kind = EVENTS[name]
        if host is not None:
            props = {"host_name": self.hostname(host), **props}
            cluster_id = host.get("cluster_id") if kind.of_cluster else None
            infra_env_id = host.get("infra_env_id")
        values = {"cluster_id": cluster_id, "host_id": host["id"] if host else None, **props}
        self.store.event(
            {
                "name": name,
                "cluster_id": cluster_id,
                "host_id": host["id"] if host else None,
                "infra_env_id": infra_env_id,
                "severity": severity or kind.severity,
                "category": "user",
                "message": kind.message.format(**values),
                "event_time": time_text(self.clock()),
            }
        )

    def set_host_status(self, host: Host, status: str, info: str) -> None:
        """Move a host to a status, or only change its `status_info` if the status stays.

        A new status adds the event `host_status_updated`, restarts the status's timeouts and has host and cluster
        validated again. `info` is cut to STATUS_INFO_LENGTH.
        """
        before, info = host["status"], info[:STATUS_INFO_LENGTH]
        if before != status:
            now = self.clock()
            tracked_document(host).set(
                status=status, status_info=info, status_updated_at=time_text(now), _status_at=now
            )
            self.event(
                "host_status_updated",
                host=host,
                severity=STATUS_SEVERITY.get(status),
                src_status=before,
                new_status=status,
                info=f"({info})" if info else "",
            )
            self.touch_cluster(host.get("cluster_id"))
            self.dirty.add(host["id"])
            LOG.info("host %s (%s): %s -> %s: %s", host["id"], self.hostname(host), before, status, info)
        elif host.get("status_info") != info:
            host["status_info"] = info

    def set_cluster_status(self, cluster: Cluster, status: str, info: str) -> None:
        """Move a cluster to a status, or only change its `status_info` if the status stays.

        A new status adds the event `cluster_status_updated`, restarts the status's timeouts and has the cluster and all
        its hosts evaluated again.
        """
        before = cluster["status"]
        if before != status:
            now = self.clock()
            tracked_document(cluster).set(
                status=status, status_info=info, status_updated_at=time_text(now), _status_at=now
            )
            self.event("cluster_status_updated", cluster_id=cluster["id"], cluster_status=status)
            self.dirty.add(cluster["id"])
            self.touch_hosts(cluster["id"])
            LOG.info("cluster %s: %s -> %s: %s", cluster["id"], before, status, info)
        elif cluster.get("status_info") != info:
            cluster["status_info"] = info

    def trigger(
        self, host: Host, trigger: HostTrigger, holds: Callable[[HostCondition], bool], **values: str
    ) -> state.HostRule | None:
        """Apply a trigger of the host state machine; return its rule, or None if the host's status allows none.

        `holds` evaluates conditions, `values` fill placeholders of the text. Resets are done here; the other effects of
        the rule are the caller's.
        """
        rule = state.decide(state.HOST, trigger, host["status"], holds)
        if rule is None:
            return None
        if HostEffect.RESET_INVENTORY in rule.effects:
            self.reset_discovery(host)
        if HostEffect.RESET_PREPARATION in rule.effects:
            tracked_document(host).drop("disks_info", "images_status")
        if HostEffect.RESET_INSTALLATION in rule.effects:
            tracked_document(host).drop(
                "progress",
                "stage_started_at",
                "stage_updated_at",
                "logs_collected_at",
                "logs_started_at",
                "logs_info",
                "bootstrap",
                "disks_info",
                "images_status",
                "_stage_at",
                "_stage_info_at",
            )
            self.reset_discovery(host)
        info = state.fill(rule.info, **values) if rule.info is not None else host.get("status_info", "")
        self.set_host_status(host, rule.destination(host["status"]), info)
        return rule

    def reset_discovery(self, host: Host) -> None:
        """Reset what a new boot of the discovery image invalidates.

        Inventory, reports, stage and logs are dropped. What users set (name, role, labels) stays, as does the
        installation disk's identifier, which the next inventory confirms or replaces.
        """
        tracked_document(host).drop(
            "inventory",
            "bootstrap",
            "progress",
            "ntp_sources",
            "connectivity",
            "free_addresses",
            "domain_name_resolutions",
            "disks_info",
            "images_status",
            "stage_started_at",
            "stage_updated_at",
            "media_status",
            "logs_info",
            "logs_collected_at",
            "logs_started_at",
            "_stage_at",
            "_stage_info_at",
            "_addresses",
        )
        self.inventories.pop(host["id"], None)
        cluster_id = host.get("cluster_id", "")
        if cluster_id in self.reach:
            self.reach[cluster_id].drop(host["id"])
        self._groups.pop(cluster_id, None)
        self._peers.pop(cluster_id, None)
        self.touch_cluster(cluster_id)
        self.dirty.add(host["id"])


def time_text(moment: float) -> str:
    """Return seconds since the epoch as an RFC 3339 time in UTC, with milliseconds: `2026-01-31T12:00:00.000Z`."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
