"""The service without HTTP: documents, what is derived from them, and the monitors that move the state machines.

Derived things (parsed inventories, reachability, validation results) live in memory and are rebuilt from the documents;
a host or cluster is looked at again only when something of it changed, or when time alone may move it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.vocabulary import Component, Stage
from . import inventory as inv
from . import settings, state, steps, validations
from .config import Config, requirements_for
from .connectivity import Reach
from .errors import ApiError
from .metrics import Metrics
from .network import host_networks
from .store import Document, Store, Unwritable
from .tables import (
    AFTER_REBOOT,
    BEFORE_INSTALL,
    EVENTS,
    FINALIZING_NOT_FAILING,
    PROGRESSING,
    STATUS_SEVERITY,
    WAITING_FOR_OTHERS,
    finalizing_setting,
    stage_setting,
)

LOG = logging.getLogger("assisted-service")
Results = dict[str, tuple[str, str, str]]
#: (cluster, hosts, tls_dir, images, settings, manifests) -> Ignition configs by file name.
Render = Callable[..., dict[str, dict[str, Any]]]

#: Host statuses in which time alone may change something.
_TIMED = frozenset(
    {
        "preparing-for-installation",
        "preparing-failed",
        "preparing-successful",
        "installing",
        "installing-in-progress",
        "installing-pending-user-action",
        "error",
        "cancelled",
        "installed",
        "known",
    }
)
_UNFINISHED_LOGS = frozenset({"requested", "collecting"})
#: Longest status_info of a host.
STATUS_INFO_LENGTH = 2048
#: How long a chunk of a monitor pass may hold the event loop, in seconds.
_SLICE = 0.005
#: Seconds after each failed attempt to read a release image.
RELEASE_WAITS: tuple[float, ...] = (1, 2, 5, 10, 30, 60, 0)


def time_text(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Engine:
    """State and behaviour of the service. `clock` gives seconds since the epoch; `render` makes the Ignition configs."""

    def __init__(
        self, config: Config, store: Store, render: Render | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.config, self.store, self.clock = config, store, clock
        self.render = render
        self.clusters = store.kinds["cluster"]
        self.infra_envs = store.kinds["infra_env"]
        self.hosts = store.kinds["host"]
        self.inventories: dict[str, dict[str, Any]] = {}
        self.reach: dict[str, Reach] = {}
        self.members: dict[str, dict[str, Document]] = {}
        self.results: dict[str, Results] = {}
        self.dirty: set[str] = set()
        #: Host -> what its registration was refused for last.
        self.refused_hosts: dict[str, str] = {}
        #: Clusters that were deleted since the start, the newest last: who asks for unregistered ones gets them.
        self.deleted_clusters: dict[str, dict[str, Any]] = {}
        self.dirty_roles: set[str] = set()
        self._was_connected: dict[str, bool] = {}
        self._groups: dict[str, dict[str, frozenset[str]]] = {}
        self._connected: dict[str, dict[str, list[str]]] = {}
        self._manifests: dict[str, bool] = {}
        self._peers: dict[str, dict[str, str]] = {}
        self._settings: dict[str, dict[str, str]] = {}
        self._tables: dict[str, dict[str, dict[str, Any]]] = {}
        #: Per cluster when checks were admitted in the last minute, and the hosts that had their turn.
        self._admitted: dict[str, tuple[deque[float], set[str]]] = {}
        #: Per host: step type -> arguments it was given last, and when.
        self._given: dict[str, dict[str, tuple[list[str], float]]] = {}
        self._preparing: dict[str, asyncio.Task[None]] = {}
        self._releases: dict[str, asyncio.Task[None]] = {}
        self._release_errors: dict[str, str] = {}
        self.requirements_table = config.requirements()
        self.metrics = Metrics()
        #: Called when the rendezvous host (the bootstrap host) reports that it reboots, with its cluster.
        self.on_bootstrap_reboot: Callable[[Document], None] | None = None
        self.stopped = asyncio.Event()
        store.on_undo = self._undone
        self._load()

    # -- documents ---------------------------------------------------------------------------------------------------

    def _load(self) -> None:
        for host in self.hosts.values():
            self._join(host)
            if "inventory" in host:
                self.inventories[host["id"]] = load_json(host["inventory"], name="inventory")
            # Who was away was the service: hosts have their time anew.
            dict.__setitem__(host, "_checked_in", self.clock())
            if host.get("validations_info"):
                self.results[host["id"]] = self._previous(host["validations_info"])
        for host in self.hosts.values():
            if host.get("connectivity") and host.get("cluster_id") in self.clusters:
                self._heard(self.clusters[host["cluster_id"]], host, load_json(host["connectivity"], name="connectivity"))
        for cluster in self.clusters.values():
            if cluster.get("validations_info"):
                self.results[cluster["id"]] = self._previous(cluster["validations_info"])
        self.dirty.update(self.hosts)
        self.dirty_roles.update(self.clusters)

    def _undone(self, keys: set[tuple[str, str]]) -> None:
        """Derives anew what comes of documents whose changes could not be written and were undone."""
        self._settings.clear()
        self._manifests.clear()
        back = {ident for kind, ident in keys if kind == "cluster"}
        hosts = {ident for kind, ident in keys if kind == "host"}
        hosts |= {ident for ident, host in self.hosts.items() if host.get("cluster_id") in back}
        for ident in hosts:
            for cluster_id, members in self.members.items():
                if members.pop(ident, None) is not None:
                    back.add(cluster_id)
            self.inventories.pop(ident, None)
        for ident in hosts | back:
            self.results.pop(ident, None)
        for ident in hosts & self.hosts.keys():
            host = self.hosts[ident]
            self._join(host)
            back.add(str(host.get("cluster_id", "")))
            if "inventory" in host:
                self.inventories[ident] = load_json(host["inventory"], name="inventory")
        for cluster_id in back:
            for cache in (self._peers, self._groups, self.reach):
                cache.pop(cluster_id, None)
            for host in self.hosts_of(cluster_id).values():
                if host.get("connectivity") and cluster_id in self.clusters:
                    self._heard(self.clusters[cluster_id], host, load_json(host["connectivity"], name="connectivity"))
        for document in (*(self.hosts[ident] for ident in hosts & self.hosts.keys()), *(self.clusters[ident] for ident in back & self.clusters.keys())):
            if document.get("validations_info"):
                self.results[document["id"]] = self._previous(document["validations_info"])
            self.dirty.add(document["id"])
        self.dirty_roles.update(back & self.clusters.keys())

    @staticmethod
    def _previous(text: str) -> Results:
        return {
            entry["id"]: (category, entry["status"], entry["message"])
            for category, entries in load_json(text, name="validations_info").items()
            for entry in entries
        }

    def _join(self, host: Document) -> None:
        cluster_id = host.get("cluster_id")
        if cluster_id:
            self.members.setdefault(cluster_id, {})[host["id"]] = host

    def leave(self, host: Document) -> None:
        """Takes a host out of its cluster's derived state."""
        cluster_id = host.get("cluster_id", "")
        self.members.get(cluster_id, {}).pop(host["id"], None)
        self._peers.pop(cluster_id, None)
        self._groups.pop(cluster_id, None)
        if cluster_id in self.reach:
            self.reach[cluster_id].forget(host["id"])
        self.touch_cluster(cluster_id)

    def join(self, host: Document) -> None:
        self._join(host)
        self._peers.pop(host.get("cluster_id", ""), None)
        self._groups.pop(host.get("cluster_id", ""), None)
        self.touch_cluster(host.get("cluster_id", ""))

    def cluster(self, ident: str) -> Document:
        """The cluster of an id; ApiError 404 without one. `infra_env` and `host` likewise."""
        found = self.clusters.get(ident.lower())
        if found is None:
            raise ApiError(404, f"Failed to get cluster {ident}: record not found")
        return found

    def infra_env(self, ident: str) -> Document:
        found = self.infra_envs.get(ident.lower())
        if found is None:
            raise ApiError(404, "record not found")
        return found

    def host(self, infra_env_id: str, host_id: str) -> Document:
        found = self.hosts.get(host_id.lower())
        if found is None or found["infra_env_id"] != infra_env_id.lower():
            raise ApiError(404, f"failed to get host {host_id} in infra_env {infra_env_id}: record not found")
        return found

    def cluster_of(self, host: Mapping[str, Any]) -> Document | None:
        return self.clusters.get(str(host.get("cluster_id", "")))

    def static_networks(self, host: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The static network configs of a host's infra-env."""
        infra_env: Mapping[str, Any] = self.infra_envs.get(host["infra_env_id"]) or {}
        found: list[dict[str, Any]] = load_json(infra_env.get("static_network_config") or "[]", name="static_network_config")
        return found

    def hosts_of(self, cluster_id: str) -> dict[str, Document]:
        return self.members.get(cluster_id, {})

    def reach_of(self, cluster_id: str) -> Reach:
        return self.reach.setdefault(cluster_id, Reach())

    def hostname(self, host: Mapping[str, Any]) -> str:
        return validations.hostname_of(host, self.inventories.get(host["id"])) or str(host["id"])

    def table(self, cluster: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
        version = str((cluster or {}).get("openshift_version", ""))
        if version not in self._tables:
            self._tables[version] = requirements_for(self.requirements_table, version)
        return self._tables[version]

    # -- settings and images -----------------------------------------------------------------------------------------

    def settings(self, cluster_id: str | None) -> dict[str, str]:
        """Settings of a cluster from its manifest ConfigMap `agentlab-settings`; empty without one."""
        if not cluster_id:
            return {}
        if cluster_id not in self._settings:
            self._settings[cluster_id] = self._read_settings(cluster_id)
        return self._settings[cluster_id]

    def _read_settings(self, cluster_id: str) -> dict[str, str]:
        for content in self.store.files_with(cluster_id, "manifest/", settings.NAME.encode(), settings.MOST_BYTES):
            found = settings.read(content)
            if found is not None:
                return found
        return {}

    def settings_changed(self, cluster_id: str) -> None:
        """The manifests of a cluster changed, and with them perhaps its settings."""
        self._settings.pop(cluster_id, None)
        self._manifests.pop(cluster_id, None)
        self.touch_cluster(cluster_id)

    def has_manifests(self, cluster_id: str) -> bool:
        """Whether a user gave the cluster manifests of his own."""
        if cluster_id not in self._manifests:
            self._manifests[cluster_id] = bool(self.store.file_names(cluster_id, "manifest/"))
        return self._manifests[cluster_id]

    def seconds(self, name: str, cluster_id: str | None = None) -> float:
        return self.config.duration(name, self.settings(cluster_id))

    def interval(self, name: str) -> float:
        """A monitor's interval: the shortest any cluster asks for."""
        return max(0.02, min([self.seconds(name, cluster_id) for cluster_id in self.clusters] or [self.seconds(name)]))

    def images(self, cluster: Mapping[str, Any]) -> dict[str, str]:
        """Component name -> pullspec: what the release told, and what the environment names."""
        env = {
            Component.NODE_AGENT: "AGENT_DOCKER_IMAGE",
            Component.CSR_APPROVER: "CONTROLLER_IMAGE",
            Component.ORCHESTRATOR: "INSTALLER_IMAGE",
            Component.API_SERVER: "SERVICE_IMAGE",
        }
        named = {name: self.config.image(key) for name, key in env.items()}
        found = cluster.get("_images") or {}
        release = str(cluster.get("ocp_release_image", ""))
        if not found and release and self.config.flag("DUMMY_IGNITION"):
            found = {name: placeholder(release, name) for name in (Component.MACHINE_CONFIG_OPERATOR, Component.MUST_GATHER)}
        return {"release": release, **found, **named}

    def needed_images(self, cluster: Mapping[str, Any]) -> tuple[str, ...]:
        """Images every host must have pulled before the installation."""
        images = self.images(cluster)
        names = ("release", Component.MACHINE_CONFIG_OPERATOR, Component.MUST_GATHER, Component.ORCHESTRATOR)
        return tuple(dict.fromkeys(images[name] for name in names if images.get(name)))

    def release_host(self, cluster: Mapping[str, Any]) -> str:
        image = self.config.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR") or cluster.get("ocp_release_image", "")
        return validations.release_image_host(image)

    # -- events and status -------------------------------------------------------------------------------------------

    def event(
        self,
        name: str,
        *,
        host: Mapping[str, Any] | None = None,
        cluster_id: str | None = None,
        infra_env_id: str | None = None,
        severity: str | None = None,
        **props: Any,
    ) -> None:
        """Adds an event of the table; host events bring their host's name, cluster and infra-env."""
        scope, usual, template = EVENTS[name]
        if host is not None:
            props = {"host_name": self.hostname(host), **props}
            cluster_id, infra_env_id = host.get("cluster_id"), host.get("infra_env_id")
        values = {"cluster_id": cluster_id, "host_id": host["id"] if host else None, **props}
        self.store.event(
            {
                "name": name,
                "cluster_id": cluster_id,
                "host_id": host["id"] if host else None,
                "infra_env_id": infra_env_id,
                "severity": severity or usual,
                "category": "user",
                "message": template.format(**values).rstrip(),
                "event_time": time_text(self.clock()),
            },
            cluster_level=scope == "cluster",
        )

    def touch_cluster(self, cluster_id: str | None) -> None:
        if cluster_id:
            self.dirty.add(cluster_id)
            self.dirty_roles.add(cluster_id)

    def touch_hosts(self, cluster_id: str | None) -> None:
        self.dirty.update(self.hosts_of(cluster_id or ""))

    def set_host_status(self, host: Document, status: str, info: str) -> None:
        before, info = host["status"], info[:STATUS_INFO_LENGTH]
        if before != status:
            now = self.clock()
            host.set(status=status, status_info=info, status_updated_at=time_text(now), _status_at=now)
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

    def set_cluster_status(self, cluster: Document, status: str, info: str) -> None:
        before = cluster["status"]
        if before != status:
            now = self.clock()
            cluster.set(status=status, status_info=info, status_updated_at=time_text(now), _status_at=now)
            self.event("cluster_status_updated", cluster_id=cluster["id"], cluster_status=status)
            self.dirty.add(cluster["id"])
            self.touch_hosts(cluster["id"])
            LOG.info("cluster %s: %s -> %s: %s", cluster["id"], before, status, info)
        elif cluster.get("status_info") != info:
            cluster["status_info"] = info

    def trigger(self, host: Document, trigger: str, holds: Callable[[str], bool], **values: str) -> state.Rule | None:
        """Applies a trigger of the host state machine; None when it is not allowed in the host's status."""
        rule = state.decide(state.HOST[trigger], host["status"], holds)
        if rule is None:
            return None
        if "reset-inventory" in rule.effects:
            self.reset_discovery(host)
        if "reset-preparation" in rule.effects:
            host.drop("disks_info", "images_status")
        if "reset-installation" in rule.effects:
            host.drop(
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
        self.set_host_status(host, host["status"] if rule.dest == state.SAME else rule.dest, info)
        return rule

    def reset_discovery(self, host: Document) -> None:
        """What a fresh boot of the discovery image makes void."""
        host.drop(
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
            self.reach[cluster_id].forget(host["id"])
        self._groups.pop(cluster_id, None)
        self._peers.pop(cluster_id, None)
        self.touch_cluster(cluster_id)
        self.dirty.add(host["id"])

    # -- what hosts report -------------------------------------------------------------------------------------------

    def check_in(self, host: Document, timestamp: int | None, version: str | None) -> None:
        """A poll of the agent. Written with the next change: it is an observation, nothing was promised."""
        now = self.clock()
        host.touch("_checked_in", now)
        host.touch("checked_in_at", time_text(now))
        if timestamp is not None:
            ahead = now - timestamp
            if abs(ahead - float(host.get("_clock", 0))) > 60:
                self.dirty.add(host["id"])
                self.dirty.add(host.get("cluster_id", ""))
            host.touch("timestamp", timestamp)
            host.touch("_clock", round(ahead))
        if version and version != host.get("discovery_agent_version"):
            host["discovery_agent_version"] = version
            self.dirty.add(host["id"])
        if not self._was_connected.get(host["id"], True):
            self.dirty.add(host["id"])

    def connected(self, host: Mapping[str, Any]) -> bool:
        limit = self.seconds("HOST_MAX_DISCONNECTION_TIME", host.get("cluster_id")) + (
            120 if host.get("bootstrap") else 0
        )
        return self.clock() - float(host.get("_checked_in", 0)) < limit

    def inventory_rules(self, host: Document) -> tuple[float, bool]:
        """What `inventory.prepare` has to know of a host: GB of the smallest disk, and whether virtual interfaces are kept."""
        cluster = self.cluster_of(host)
        needed = validations.requirement(self.table(cluster), cluster or {}, validations.role_of(host))
        keep = self.config.flag("ENABLE_VIRTUAL_INTERFACES", self.settings(host.get("cluster_id")))
        return needed.get("disk_size_gb", 0), keep

    def take_inventory(self, host: Document, raw: dict[str, Any]) -> None:
        """Stores a host's inventory and what follows from it (installation disk, hostname)."""
        self.keep_inventory(host, *inv.kept(raw, *self.inventory_rules(host)))

    def keep_inventory(self, host: Document, prepared: dict[str, Any], text: str) -> None:
        """As `take_inventory`, of what `inventory.kept` gave."""
        if text == host.get("inventory"):
            return
        old_name = self.hostname(host)
        self.inventories[host["id"]] = prepared
        host["inventory"] = text
        host["_addresses"] = validations.address_list(prepared)
        self.choose_disk(host)
        self.name_changed(host, old_name)
        cluster_id = host.get("cluster_id", "")
        self._peers.get(cluster_id, {}).pop(host["id"], None)
        self._groups.pop(cluster_id, None)
        self.dirty.add(host["id"])
        self.touch_cluster(cluster_id)

    def choose_disk(self, host: Document) -> None:
        """Keeps the chosen installation disk while it is there, else takes the default."""
        inventory = self.inventories.get(host["id"], {})
        chosen = inv.find_disk(inventory, host.get("installation_disk_id", ""))
        disks = inv.eligible_disks(inventory)
        if chosen is None or (not host.get("_disk_by_user") and chosen not in disks):
            chosen = disks[0] if disks else None
            host.drop("_disk_by_user")
        host.set(
            installation_disk_id=chosen and chosen["id"],
            installation_disk_path=chosen and (chosen.get("path") or chosen["id"]),
        )

    def name_changed(self, host: Document, old: str) -> None:
        new = self.hostname(host)
        if new != old:
            for other in self.hosts_of(host.get("cluster_id", "")).values():
                if self.hostname(other) in (old, new):
                    self.dirty.add(other["id"])
        self.dirty.add(host["id"])

    def take_connectivity(self, host: Document, report: dict[str, Any], text: str) -> None:
        """Stores a host's connectivity report, given also as JSON, and what follows from it."""
        cluster = self.cluster_of(host)
        host["connectivity"] = text
        if cluster is not None:
            self._heard(cluster, host, report)
            self._groups.pop(cluster["id"], None)
            self.dirty.add(cluster["id"])
        self.dirty.add(host["id"])

    def _heard(self, cluster: Document, host: Document, report: dict[str, Any]) -> None:
        """Counts what a host says of the others in its cluster; what it says of anybody else does not matter."""
        members = self.hosts_of(cluster["id"])
        known = {peer["host_id"]: peer for peer in report.get("remote_hosts", ()) if peer.get("host_id") in members}
        self.reach_of(cluster["id"]).report(host["id"], {"remote_hosts": known.values()}, validations.machine_cidrs(cluster))

    def networks_changed(self, cluster: Document) -> None:
        """The machine networks changed: reachability per network is counted anew."""
        self.reach[cluster["id"]] = Reach()
        for host in self.hosts_of(cluster["id"]).values():
            if host.get("connectivity"):
                self._heard(cluster, host, load_json(host["connectivity"], name="connectivity"))
        self._groups.pop(cluster["id"], None)
        self.touch_cluster(cluster["id"])
        self.touch_hosts(cluster["id"])

    # -- progress ----------------------------------------------------------------------------------------------------

    def stages_of(self, host: Mapping[str, Any]) -> tuple[str, ...]:
        cluster: Mapping[str, Any] = self.cluster_of(host) or {}
        return state.stages(
            validations.role_of(host),
            bool(host.get("bootstrap")),
            validations.is_sno(cluster),
            validations.is_day2(cluster),
        )

    def progress(self, host: Document, stage: str, info: str) -> None:
        """A host's stage, by the rules of `UpdateInstallProgress`; ApiError 409 when it may not be there."""
        now, before = self.clock(), host.get("progress", {})
        previous = before.get("current_stage", "")
        if previous == stage and before.get("progress_info", "") == info:
            return
        if previous == stage:
            host["progress"] = {**before, "progress_info": info, "stage_updated_at": time_text(now)}
            host.set(stage_updated_at=time_text(now), _stage_info_at=now)
            self._progress_event(host, stage, info)
            return
        if host["status"] in ("installed", "resetting-pending-user-action"):
            return
        if host["status"] not in ("installing", "installing-in-progress", "installing-pending-user-action"):
            raise ApiError(409, f"Can't set progress <{stage}> to host in status <{host['status']}>")
        if stage == Stage.FAILED:
            host["progress"] = {**before, "progress_info": info}
            self.set_host_status(host, "error", f"Failed - {info}")
            self.metrics.host_done(host, self.inventories.get(host["id"], {}), _metric_role(host), stage)
            return
        order = self.stages_of(host)
        if stage not in order and previous:
            raise ApiError(
                409,
                f"Stages {stage} isn't available for host role {host.get('role')} bootstrap {str(bool(host.get('bootstrap'))).lower()}",
            )
        if previous in order and order.index(stage) < order.index(previous):
            raise ApiError(409, f'Can\'t assign lower stage "{stage}" after host has been in stage "{previous}"')
        host["progress"] = {
            "current_stage": stage,
            "progress_info": info,
            "stage_started_at": time_text(now),
            "stage_updated_at": time_text(now),
            # As upstream: a stage of another role is taken as the first one, and counts nothing.
            "installation_percentage": (order.index(stage) + 1) * 100 // len(order) if stage in order else 0,
        }
        host.set(stage_started_at=time_text(now), stage_updated_at=time_text(now), _stage_at=now, _stage_info_at=now)
        if previous:
            took = now - float(host.get("_metric_stage_at", now))
            self.metrics.observe("host_installation_phase_seconds", took, previous, Stage.DONE)
        host.touch("_metric_stage_at", now)
        if stage == Stage.DONE:
            self.metrics.host_done(host, self.inventories.get(host["id"], {}), _metric_role(host), stage)
        if not previous:
            host["installer_version"] = self.config.image("INSTALLER_IMAGE")
        cluster: Mapping[str, Any] = self.cluster_of(host) or {}
        day2 = validations.is_day2(cluster)
        facts = {"day2": day2, "day2-done": stage in (Stage.DONE, Stage.REBOOTING) and day2, "stage-done": stage == Stage.DONE}
        self.trigger(host, "progress", lambda name: facts[name], STAGE=stage)
        self._progress_event(host, stage, info)
        if host.get("cluster_id"):
            self.cluster_progress(self.clusters[host["cluster_id"]])
            self.dirty.add(host["cluster_id"])
        self.dirty.add(host["id"])
        if stage == Stage.REBOOTING and host.get("bootstrap") and self.on_bootstrap_reboot and host.get("cluster_id"):
            self.on_bootstrap_reboot(self.clusters[host["cluster_id"]])

    def _progress_event(self, host: Document, stage: str, info: str) -> None:
        text = f"reached installation stage {stage}" + (f": {info}" if info else "")
        self.event("host_install_progress_updated", host=host, event=text)

    def cluster_progress(self, cluster: Document) -> None:
        """Percentages of a cluster from its hosts' stages and its operators."""
        before = cluster.get("progress", {})
        if cluster["status"] in BEFORE_INSTALL:
            return
        done = count = 0
        for host in self.hosts_of(cluster["id"]).values():
            order, stage = self.stages_of(host), host.get("progress", {}).get("current_stage")
            count += len(order)
            done += order.index(stage) + 1 if stage in order else 0
        started = cluster["status"] not in ("insufficient", "ready", "pending-for-input", "preparing-for-installation")
        operators = cluster.get("monitored_operators", [])
        ready = sum(operator.get("status") in ("available", "failed") for operator in operators)
        preparing = 100 if started else 0
        installing = done * 100 // count if started and count else 0
        finalizing = (
            ready * 100 // len(operators) if cluster["status"] in ("finalizing", "installed") and operators else 0
        )
        total = 100 if cluster["status"] == "installed" else state.total_percentage(preparing, installing, finalizing)
        cluster["progress"] = {
            **before,
            "preparing_for_installation_stage_percentage": preparing,
            "installing_stage_percentage": installing,
            "finalizing_stage_percentage": finalizing,
            "total_percentage": total,
        }

    # -- steps -------------------------------------------------------------------------------------------------------

    def peers(self, host: Document) -> str | None:
        """Arguments of connectivity-check; None when there is no peer, or the cluster's share of this minute is used up."""
        cluster_id = host.get("cluster_id", "")
        members = self.hosts_of(cluster_id)
        cache = self._peers.setdefault(cluster_id, {})
        if len(members) != len(cache) or host["id"] not in cache:
            for ident in members:
                if ident not in cache:
                    found = self.inventories.get(ident)
                    cache[ident] = steps.peer_entry(members[ident], found) if found else ""
            for ident in [ident for ident in cache if ident not in members]:
                del cache[ident]
        entries = [
            text
            for ident, text in cache.items()
            if text and ident != host["id"] and members[ident]["status"] not in ("discovering", "disconnected")
        ]
        if not entries:
            return None
        limit = self.config.number("CONNECTIVITY_CHECKS_PER_MINUTE", self.settings(cluster_id))
        if len(members) > limit:
            now, (admitted, turn) = self.clock(), self._admitted.setdefault(cluster_id, (deque(), set()))
            while admitted and not 0 <= now - admitted[0] < 60:
                admitted.popleft()
            if len(turn) > len(entries):
                turn.clear()
            if len(admitted) >= limit or host["id"] in turn:
                return None
            admitted.append(now)
            turn.add(host["id"])
        return f"[{','.join(entries)}]"

    def instructions(self, host: Document) -> dict[str, Any]:
        cluster: Mapping[str, Any] = self.cluster_of(host) or {}
        infra_env: Mapping[str, Any] = self.infra_envs.get(host["infra_env_id"]) or {}
        settings = self.settings(host.get("cluster_id"))
        ntp = _ntp_sources(self.config.get("NTP_DEFAULT_SERVER"), infra_env, cluster)
        agent = self.config.image("AGENT_DOCKER_IMAGE")
        old = host.get("discovery_agent_version")
        upgrade = (
            agent
            if agent
            and old
            and old != agent
            and self.config.flag("ENABLE_UPGRADE_AGENT", settings)
            and host["status"] in ("discovering", "insufficient", "known", "pending-for-input", "disconnected")
            else ""
        )
        if upgrade:
            self.event("upgrade_agent_started", host=host, agent_image=upgrade)
        view = steps.StepView(
            host,
            cluster,
            infra_env,
            self.inventories.get(host["id"], {}),
            lambda: self.peers(host),
            self.images(cluster),
            self.needed_images(cluster),
            self.release_host(cluster),
            ntp,
            lambda name: self.seconds(name, host.get("cluster_id")),
            self.config.flag("CHECK_CLUSTER_VERSION", settings),
            self.hosts_of(host.get("cluster_id", "")),
        )
        interval = max(1, round(self.seconds("AGENT_NEXT_INSTRUCTION_SECONDS", host.get("cluster_id"))))
        disabled = frozenset(filter(None, self.config.setting("DISABLED_STEPS", settings).split(",")))
        answer = steps.instructions(view, validations.is_day2(cluster), interval, disabled, upgrade)
        answer["instructions"] = self._due(host, answer["instructions"])
        return answer

    def _due(self, host: Document, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those of `found` that the host was not given with the same arguments a short while ago.

        Checks are repeated after STEP_REPEAT_SECONDS. Where agents poll more often than upstream's, a step that changes the
        host is not ordered again while its reply is outstanding: agents start a container for each order, and the second
        fails because of the name of the first. A new status, a failure, a new registration or the end of the step's time
        end the wait.
        """
        given, now, due = self._given.setdefault(host["id"], {}), self.clock(), []
        cluster_id = host.get("cluster_id")
        often = self.seconds("AGENT_NEXT_INSTRUCTION_SECONDS", cluster_id) < steps.UPSTREAM_POLL
        for step in found:
            kind = step["step_type"]
            args, when = given.get(kind, ([], 0.0))
            pause = 0.0
            if kind in steps.CHECKS:
                pause = self.seconds("STEP_REPEAT_SECONDS", cluster_id)
            elif often and kind in steps.ONCE and when >= float(host.get("_status_at") or 0):
                pause = self.seconds(steps.ONCE[kind], cluster_id) + steps.GRACE
            if pause and args == step["args"] and 0 <= now - when < pause:
                continue
            given[kind] = (step["args"], now)
            due.append(step)
        return due

    def replied(self, host_id: str, step_type: str, code: int) -> None:
        """A step's reply came. The installer is started by a step that answers at once and runs on."""
        if code != 0 or (step_type in steps.ONCE and step_type != "install"):
            self.ask_again(host_id, step_type)

    def ask_again(self, host_id: str, step_type: str | None = None) -> None:
        """Forget that a host was given a step, or any: it failed, or its agent is a new one."""
        if step_type is None:
            self._given.pop(host_id, None)
        else:
            self._given.get(host_id, {}).pop(step_type, None)

    # -- refresh -----------------------------------------------------------------------------------------------------

    def view(self, cluster: Document) -> validations.View:
        members = self.hosts_of(cluster["id"])
        inventories = {ident: self.inventories[ident] for ident in members if ident in self.inventories}
        names = Counter(
            validations.hostname_of(host, inventories.get(ident))
            for ident, host in members.items()
            if ident in inventories
        )
        settings = self.settings(cluster["id"])
        return validations.View(
            cluster,
            members,
            inventories,
            self.table(cluster),
            self.reach_of(cluster["id"]),
            self.clock(),
            self.config.image("AGENT_DOCKER_IMAGE"),
            self.config.flag("ENABLE_UPGRADE_AGENT", settings),
            self.config.flag("ENABLE_SINGLE_NODE_DNSMASQ", settings),
            self.needed_images(cluster),
            self.has_manifests(cluster["id"]),
            self.groups(cluster),
            self._connected[cluster["id"]],
            names,
        )

    def groups(self, cluster: Document) -> dict[str, frozenset[str]]:
        """Majority groups of a cluster; a change makes the hosts concerned dirty."""
        known = self._groups.get(cluster["id"])
        if known is not None:
            return known
        members = [ident for ident in self.hosts_of(cluster["id"]) if ident in self.inventories]
        reach = self.reach_of(cluster["id"])
        least = validations.majority_least(cluster, self.hosts_of(cluster["id"]).values())
        names = dict.fromkeys([*validations.machine_cidrs(cluster), "IPv4", "IPv6"])
        lists = {name: reach.group(name, members, least) for name in names}
        found = {name: frozenset(group) for name, group in lists.items()}
        old = cluster.get("connectivity_majority_groups")
        addresses = {ident: self.hosts[ident].get("_addresses", []) for ident in members}
        connected = reach.connected_addresses(addresses)
        shown = {
            "majority_groups": {name: sorted(group) for name, group in lists.items()},
            "l3_connected_addresses": connected,
        }
        text = json.dumps(shown, separators=(",", ":"))
        if cluster["status"] in BEFORE_INSTALL and text != old:
            earlier = load_json(old or "{}", name="validations_info")
            before = {name: frozenset(group) for name, group in earlier.get("majority_groups", {}).items()}
            for name in {*before, *found}:
                self.dirty.update(before.get(name, frozenset()) ^ found.get(name, frozenset()))
            reached = earlier.get("l3_connected_addresses", {})
            self.dirty.update(ident for ident in members if reached.get(ident) != connected.get(ident))
            cluster["connectivity_majority_groups"] = text
        collisions = {ip: macs for ident in members for ip, macs in reach.collisions.get(ident, {}).items()}
        text = json.dumps(collisions)
        if members and text != cluster.get("ip_collisions"):
            cluster["ip_collisions"] = text
            self.touch_hosts(cluster["id"])
        self._groups[cluster["id"]] = found
        self._connected[cluster["id"]] = connected
        return found

    def refresh_roles(self, cluster: Document) -> None:
        """Suggested roles and, where it follows from the hosts, the machine network."""
        members = self.hosts_of(cluster["id"])
        if cluster["status"] in ("pending-for-input", "insufficient", "ready") and not validations.is_day2(cluster):
            pairs = [(host, self.inventories[ident]) for ident, host in members.items() if ident in self.inventories]
            mac, view = self.config.get("BOOTSTRAP_HOST_MAC"), self.view(cluster)
            needed = functools.partial(validations.total_requirement, view)
            roles = inv.assign_roles(pairs, needed, validations.control_planes(cluster), mac)
            changed = False
            for ident, role in roles.items():
                host = members[ident]
                if host.get("suggested_role") != role:
                    host["suggested_role"] = role
                    changed = True
                    self.event("host_role_updated", host=host, suggested_role=role)
                    self.take_inventory(host, self.inventories[ident])
            if changed:
                self.touch_hosts(cluster["id"])
            self._derive_networks(cluster)

    def _derive_networks(self, cluster: Document) -> None:
        if validations.machine_cidrs(cluster):
            return
        view = self.view(cluster)
        cidr = ""
        if validations.is_sno(cluster):
            networks = {cidr for found in view.inventories.values() for cidr in host_networks(found)}
            cidr = networks.pop() if len(networks) == 1 else ""
        elif validations.vips_needed(cluster):
            cidr = validations.calculated_cidr(view)
        if cidr:
            cluster["machine_networks"] = [{"cidr": cidr, "cluster_id": cluster["id"]}]
            self.networks_changed(cluster)

    def _ignored(self, cluster: Mapping[str, Any], kind: str, results: Results) -> frozenset[str]:
        """Validations of a kind (host, cluster) that the user wants ignored, where they may be."""
        found: set[str] = set()
        with contextlib.suppress(ValueError, TypeError):
            found = set(load_json(cluster.get(f"ignored_{kind}_validations") or "[]", name="ignored validations"))
        return frozenset(results if "all" in found else found) - validations.NEVER_IGNORED[kind]

    def _tell(self, before: Results | None, after: Results, failed: str, fixed: str, **where: Any) -> None:
        for ident, (__, status, __) in after.items():
            old = (before or {}).get(ident, ("", "", ""))[1]
            if status == "failure" and old not in ("", "failure", "hidden"):
                message = "that used to succeed is now failing" if old == "success" else "failed"
                if old == "success":
                    kind = "host" if "host" in where else "cluster"
                    self.metrics.count(f"{kind}_validation_failed_after_success_before_installation", ident)
                self.event(failed, validation_id=ident, failure_message=message, **where)
            elif status == "success" and old == "failure":
                self.event(fixed, validation_id=ident, **where)

    def validate_host(self, host: Document, view: validations.View) -> Results:
        """Validates a host and keeps what came out, with events of what changed."""
        results = validations.evaluate(validations.HOST, validations.HostView(view, host, self.connected(host)))
        self._tell(self.results.get(host["id"]), results, "host_validation_failed", "host_validation_fixed", host=host)
        self.results[host["id"]] = results
        host["validations_info"] = validations.shown(results)
        return results

    def refresh_host(self, host: Document, view: validations.View) -> None:
        """Validates a host when something of it changed, and moves its state machine."""
        cluster = view.cluster
        ident = host["id"]
        connected = self.connected(host)
        if self._was_connected.get(ident) != connected:
            self._was_connected[ident] = connected
            self.dirty.add(ident)
        fresh = ident in self.dirty
        self.dirty.discard(ident)
        before = self.results.get(ident)
        if fresh or before is None or "connected" not in before or "has-inventory" not in before:
            self.validate_host(host, view)
        results = self.results[ident]
        ignored = self._ignored(cluster, "host", results)
        stage = host.get("progress", {}).get("current_stage", "")
        now = self.clock()
        limit = self._stage_limit(host, cluster, stage)
        since = now - float(host.get("_status_at", now))
        stage_since = now - float(host.get("_stage_info_at" if stage in PROGRESSING else "_stage_at", now))

        def after(name: str) -> bool:
            return since > self.seconds(name, cluster["id"])

        images = load_json(host.get("images_status") or "{}", name="images_status")

        def done_without() -> bool:
            others = [
                (validations.role_of(other), other["status"]) for other in view.hosts.values() if other["id"] != ident
            ]
            return state.enough_installed(others, validations.control_planes(cluster))

        conditions: dict[str, Callable[[], bool]] = {
            "connected": lambda: connected and host.get("media_status") != "disconnected",
            "online": lambda: connected or stage in AFTER_REBOOT,
            "day2": lambda: validations.is_day2(cluster),
            "lost-told": lambda: bool(host.get("connection_timed_out")),
            "waits-for-others": lambda: (
                cluster["status"] == "installing-pending-user-action" and stage in WAITING_FOR_OTHERS
            ),
            "stage-told": lambda: bool(host.get("progress", {}).get("stage_timed_out")),
            "cluster-done": lambda: cluster["status"] in ("installed", "adding-hosts"),
            "role": lambda: validations.role_of(host) in ("master", "arbiter", "worker"),
            "inventory": lambda: ident in view.inventories and results["inventory-not-fully-truncated"][1] == "success",
            "min-hardware": lambda: validations.passed(results, validations.MIN_HARDWARE, ignored),
            "input": lambda: validations.passed(results, validations.INPUT, ignored),
            "sufficient": lambda: validations.passed(results, validations.SUFFICIENT, ignored),
            "cluster-preparing": lambda: cluster["status"] == "preparing-for-installation",
            "cluster-installing": lambda: (
                cluster["status"] in ("installing", "finalizing", "installing-pending-user-action")
            ),
            "cluster-error": lambda: cluster["status"] == "error",
            "disk-speed-ok": lambda: (
                self._disk_done(host) and results["sufficient-installation-disk-speed"][1] != "failure"
            ),
            "disk-speed-failed": lambda: results["sufficient-installation-disk-speed"][1] == "failure",
            "images-ok": lambda: (
                all(images.get(image, {}).get("result") == "success" for image in view.images)
                and results["container-images-available"][1] != "failure"
            ),
            "images-failed": lambda: results["container-images-available"][1] == "failure",
            "prepare-timeout": lambda: after("PREPARE_FOR_INSTALLATION_HOST_TIMEOUT"),
            "install-timeout": lambda: after("HOST_INSTALLING_TIMEOUT"),
            "pending-timeout": lambda: after("HOST_INSTALLING_PENDING_USER_ACTION_TIMEOUT"),
            "cluster-without-host": done_without,
            "rebooting": lambda: stage == Stage.REBOOTING,
            "progressing-stage": lambda: stage in PROGRESSING,
            "stage-timeout": lambda: bool(stage) and stage_since > limit,
            "soft-timeouts": lambda: self.config.flag("ENABLE_SOFT_TIMEOUTS", self.settings(cluster["id"])),
            "logs-timeout": lambda: self._logs_timeout(host, host["status"], "HOST_LOG"),
        }
        unknown = [
            text
            for name, text in (("disk-speed-ok", state.DISK_SPEED_UNKNOWN), ("images-ok", state.IMAGES_UNKNOWN))
            if host["status"] == "preparing-for-installation" and not conditions[name]()
        ]
        rule = self.trigger(
            host,
            "refresh",
            lambda name: conditions[name](),
            FAILING_VALIDATIONS=validations.failing(results),
            FAILING_CONDITIONS="\n".join(unknown),
            STAGE=stage,
            MAX_TIME=_minutes_text(limit),
            INSTALLATION_DISK=self.disk_text(host, False),
        )
        for effect in rule.effects if rule else ():
            if effect == "stage-timed-out":
                host["progress"] = {**host["progress"], "stage_timed_out": True}
                self.event("host_stage_timed_out", host=host, stage=stage, minutes=round(limit / 60))
            elif effect == "reset-failed-images" and results["container-images-available"][1] == "failure":
                host.drop("images_status")
            elif effect in ("lost", "found"):
                host["connection_timed_out"] = effect == "lost"
            elif effect == "restart-stage-clock":
                host.touch("_stage_at", now)
                host.touch("_stage_info_at", now)
            elif effect == "logs-timed-out":
                host["logs_info"] = "timeout"

    def _disk_done(self, host: Mapping[str, Any]) -> bool:
        disk = host.get("installation_disk_id", "")
        tested = load_json(host.get("disks_info") or "{}", name="disks_info").get(disk, {}).get("disk_speed", {}).get("tested")
        persistent = self.inventories.get(host["id"], {}).get("boot", {}).get("device_type") == "persistent"
        return bool(tested or persistent or "--save-part" in str(host.get("installer_args", "")))

    def _stage_limit(self, host: Mapping[str, Any], cluster: Mapping[str, Any], stage: str) -> float:
        name = stage_setting(stage)
        if stage == Stage.REBOOTING and validations.is_sno(cluster):
            name = "HOST_STAGE_REBOOTING_SNO_TIMEOUT"
        from .config import DEFAULTS

        return self.seconds(name if name in DEFAULTS else "HOST_STAGE_OTHER_TIMEOUT", cluster.get("id"))

    def _logs_timeout(self, document: Mapping[str, Any], status: str, prefix: str) -> bool:
        if status not in ("error", "cancelled"):
            return False
        info, now = document.get("logs_info", ""), self.clock()
        cluster_id = document.get("cluster_id") or document["id"]
        if info in _UNFINISHED_LOGS:
            return now - float(document.get("_logs_at", now)) > self.seconds(f"{prefix}_COLLECTION_TIMEOUT", cluster_id)
        return not info and now - float(document.get("_status_at", now)) > self.seconds(
            f"{prefix}_PENDING_TIMEOUT", cluster_id
        )

    def disk_text(self, host: Mapping[str, Any], long: bool = True) -> str:
        """The installation disk of a host as messages name it, with or without model and serial number."""
        ident = host.get("installation_disk_id", "")
        disk = inv.find_disk(self.inventories.get(host["id"], {}), ident)
        if disk is None:
            return ""
        short = f"({disk.get('name', '')}, {ident})"
        return f"{disk.get('model', '')} {disk.get('serial', '')} {short}".strip() if long else short

    def refresh_cluster(self, cluster: Document) -> None:
        """Validates a cluster when something of it changed, and moves its state machine."""
        ident = cluster["id"]
        members = self.hosts_of(ident)
        judged = cluster["status"] in (*BEFORE_INSTALL, "preparing-for-installation") and not validations.is_day2(
            cluster
        )
        fresh = ident in self.dirty
        self.dirty.discard(ident)
        if judged and (fresh or ident not in self.results):
            view = self.view(cluster)
            results = validations.evaluate(validations.CLUSTER, view)
            self._tell(
                self.results.get(ident),
                results,
                "cluster_validation_failed",
                "cluster_validation_fixed",
                cluster_id=ident,
            )
            self.results[ident] = results
            cluster["validations_info"] = validations.shown(results)
        results = self.results.get(ident, {})
        ignored = self._ignored(cluster, "cluster", results)
        now = self.clock()
        status, stage = cluster["status"], cluster.get("progress", {}).get("finalizing_stage", "")
        statuses = [host["status"] for host in members.values()]
        roles = [(validations.role_of(host), host["status"]) for host in members.values()]
        preparation = cluster.get("last-installation-preparation", {}).get("status", "not_started")
        control = validations.control_planes(cluster)
        stage_limit = self.seconds(finalizing_setting(stage), ident) if stage else float("inf")
        alive = [(role, "installed" if other != "error" else "error") for role, other in roles]
        operators = cluster.get("monitored_operators", [])
        builtin = [op for op in operators if op.get("operator_type") == "builtin"]
        since = now - float(cluster.get("_status_at", now))
        installing_since = now - float(cluster.get("_install_at", now))

        conditions: dict[str, Callable[[], bool]] = {
            "input": lambda: validations.passed(results, validations.CLUSTER_INPUT, ignored),
            "sufficient": lambda: validations.passed(results, validations.CLUSTER_SUFFICIENT, ignored),
            "all-prepared": lambda: bool(statuses) and all(other == "preparing-successful" for other in statuses),
            "preparation-success": lambda: preparation == "success",
            "preparation-failed": lambda: preparation == "failed" or "preparing-failed" in statuses,
            "hosts-failed-preparing": lambda: "preparing-failed" in statuses,
            "host-stopped-preparing": lambda: any(
                other not in ("known", "preparing-for-installation", "preparing-successful", "preparing-failed")
                for other in statuses
            ),
            "prepare-timeout": lambda: since > self.seconds("PREPARE_FOR_INSTALLATION_TIMEOUT", ident),
            "installation-timeout": lambda: installing_since > self.seconds("INSTALLATION_TIMEOUT", ident),
            "finalizing-timeout": lambda: since > self.seconds("FINALIZING_TIMEOUT", ident),
            "finalizing-stage-timeout": lambda: now - float(cluster.get("_stage_at", now)) > stage_limit,
            "finalizing-stage-fails": lambda: stage not in FINALIZING_NOT_FAILING,
            "finalizing-stage-told": lambda: bool(cluster.get("progress", {}).get("finalizing_stage_timed_out")),
            "soft-timeouts": lambda: self.config.flag("ENABLE_SOFT_TIMEOUTS", self.settings(ident)),
            "hopeless": lambda: not state.enough_installed(alive, control),
            "user-action-pending": lambda: "installing-pending-user-action" in statuses,
            "enough-installed": lambda: state.enough_installed(roles, control),
            "all-settled": lambda: all(other in ("installed", "error") for other in statuses),
            "kubeconfig": lambda: self.store.file(ident, "kubeconfig") is not None,
            "operators-settled": lambda: (
                all(op.get("status") == "available" for op in builtin)
                and all(op.get("status") in ("available", "failed") for op in operators)
            ),
            "logs-timeout": lambda: self._logs_timeout(cluster, status, "CLUSTER_LOG"),
        }
        rule = state.decide(state.CLUSTER["refresh"], status, lambda name: conditions[name]())
        if rule is None:
            return
        info = cluster.get("status_info", "")
        if rule.info is not None:
            info = state.fill(
                rule.info,
                STAGE=stage,
                MINUTES=str(round(stage_limit / 60)) if stage else "",
                INSTALLATION_MINUTES=str(round(self.seconds("INSTALLATION_TIMEOUT", ident) / 60)),
                INSTALLED=self._installed_text(roles, operators),
            )
        self.set_cluster_status(cluster, status if rule.dest == state.SAME else rule.dest, info)
        for effect in rule.effects:
            self._cluster_effect(cluster, effect, stage, info, stage_limit)
        if cluster["status"] != status:
            self.cluster_progress(cluster)

    @staticmethod
    def _installed_text(roles: list[tuple[str, str]], operators: Iterable[Mapping[str, Any]]) -> str:
        failed = [
            str(op["name"]) for op in operators if op.get("operator_type") == "olm" and op.get("status") == "failed"
        ]
        if failed:
            return f"Cluster is installed but degraded. Failed OLM operators: {', '.join(failed)}"
        if any(role == "worker" and status == "error" for role, status in roles):
            return "Cluster is installed but degraded: some workers did not join"
        return "Cluster is installed"

    def _cluster_effect(self, cluster: Document, effect: str, stage: str, info: str, limit: float) -> None:
        now, ident = self.clock(), cluster["id"]
        if effect == "installing-started":
            cluster["_installing_at"] = now
            self.metrics.count("cluster_installation_started")
            if validations.is_sno(cluster):
                # A single node's API is at the node itself.
                view, ident = self.view(cluster), next(iter(self.hosts_of(ident)), "")
                own = [{"cluster_id": cluster["id"], "ip": ip} for ip in validations.own_addresses(view, ident)]
                cluster.set(api_vips=own, ingress_vips=own)
        elif effect == "prepare-timed-out":
            reason = "Installation failed. Try again, and contact support if the issue persists."
            cluster["last-installation-preparation"] = {"status": "failed", "reason": reason}
            self.event("installation_preparing_timed_out", cluster_id=ident, reason=reason)
        elif effect == "finalizing-stage-timed-out":
            cluster["progress"] = {**cluster["progress"], "finalizing_stage_timed_out": True}
            self.event("finalizing_stage_timed_out", cluster_id=ident, stage=stage, minutes=round(limit / 60))
        elif effect == "failed":
            cluster["install_completed_at"] = time_text(now)
            self.event("cluster_installation_failed", cluster_id=ident, failure_reason=info)
            self.metrics.observe("cluster_installation_seconds", now - float(cluster.get("_install_at", now)), "error")
        elif effect == "completed":
            cluster["install_completed_at"] = time_text(now)
            self.event("cluster_installation_completed", cluster_id=ident)
            self.metrics.observe("cluster_installation_seconds", now - float(cluster.get("_install_at", now)), "installed")
            failed = [op["name"] for op in cluster.get("monitored_operators", []) if op.get("status") == "failed"]
            if failed:
                self.event(
                    "cluster_degraded_OLM_operators_failed", cluster_id=ident, failed_operators=", ".join(failed)
                )
        elif effect == "logs-timed-out":
            cluster["logs_info"] = "timeout"

    # -- monitors ----------------------------------------------------------------------------------------------------

    def refresh_unbound(self, host: Document) -> None:
        """Validates and moves a host of no cluster."""
        ident, connected = host["id"], self.connected(host)
        self._was_connected[ident] = connected
        self.dirty.discard(ident)
        view = validations.View({}, {ident: host}, self.inventories, self.table(None), Reach(), self.clock())
        results = validations.evaluate(validations.UNBOUND, validations.HostView(view, host, connected))
        self._tell(self.results.get(ident), results, "host_validation_failed", "host_validation_fixed", host=host)
        self.results[ident] = results
        host["validations_info"] = validations.shown(results)
        conditions = {
            "online": connected,
            "connected": connected and host.get("media_status") != "disconnected",
            "inventory": ident in self.inventories and results["inventory-not-fully-truncated"][1] == "success",
            "sufficient": validations.passed(results, validations.UNBOUND_REQUIRED),
        }
        self.trigger(host, "refresh", lambda name: conditions.get(name, False), FAILING_VALIDATIONS=validations.failing(results))

    async def monitor_hosts(self) -> None:
        """One pass over all hosts, in slices, so that requests are answered in between."""
        for host in [host for host in self.hosts.values() if not host.get("cluster_id")]:
            if host["id"] in self.dirty or self.connected(host) != self._was_connected.get(host["id"]):
                self.refresh_unbound(host)
        for cluster in list(self.clusters.values()):
            if cluster["id"] in self.dirty_roles:
                self.dirty_roles.discard(cluster["id"])
                self.refresh_roles(cluster)
            members = self.hosts_of(cluster["id"])
            due = [
                host
                for ident, host in list(members.items())
                if ident in self.dirty
                or host["status"] in _TIMED
                or self.connected(host) != self._was_connected.get(ident)
            ]
            if not due:
                continue
            view, started = self.view(cluster), time.monotonic()
            for host in due:
                if host["id"] not in self.hosts:
                    continue
                if (
                    host["status"] == "known"
                    and host["id"] not in self.dirty
                    and cluster["status"] != "preparing-for-installation"
                    and self.connected(host) == self._was_connected.get(host["id"])
                ):
                    continue
                began = time.perf_counter()
                self.refresh_host(host, view)
                self.metrics.observe("monitored_hosts_duration_ms", (time.perf_counter() - began) * 1000)
                if time.monotonic() - started > _SLICE:
                    self.store.commit()
                    await asyncio.sleep(0)
                    if cluster["id"] not in self.clusters:
                        break
                    view, started = self.view(cluster), time.monotonic()
        for number, host in enumerate(list(self.hosts.values())):
            host.flush()
            if number % 50 == 49:
                self.store.commit()
                await asyncio.sleep(0)
        self.store.commit()

    async def monitor_clusters(self) -> None:
        for cluster in list(self.clusters.values()):
            if cluster["id"] in self.dirty or cluster["status"] not in (
                "insufficient",
                "pending-for-input",
                "ready",
                "installed",
                "adding-hosts",
            ):
                began = time.perf_counter()
                self.refresh_cluster(cluster)
                self.metrics.observe("monitored_clusters_duration_ms", (time.perf_counter() - began) * 1000)
                self.store.commit()
                await asyncio.sleep(0)

    async def run(self) -> None:
        """The monitors until `stopped`. An error in a pass is logged and the next pass tries again."""
        for cluster in self.clusters.values():
            self.start_release(cluster)
            if cluster["status"] == "preparing-for-installation":
                self.start_preparation(cluster)
        await asyncio.gather(
            *(
                self._loop(name, work)
                for name, work in (
                    ("HOST_MONITOR_INTERVAL", self.monitor_hosts),
                    ("CLUSTER_MONITOR_INTERVAL", self.monitor_clusters),
                    ("CLUSTER_MONITOR_INTERVAL", self.sweep),
                )
            )
        )

    async def sweep(self) -> None:
        """Removes the events of what was deleted, a few at a time."""
        while not self.stopped.is_set() and self.store.sweep():
            await asyncio.sleep(0)

    async def _loop(self, setting: str, work: Callable[[], Any]) -> None:
        while not self.stopped.is_set():
            try:
                began = time.perf_counter()
                await work()
                kind = "hosts" if work == self.monitor_hosts else "clusters"
                self.metrics.observe(f"monitored_{kind}_cycle_duration_ms", (time.perf_counter() - began) * 1000, "false")
            except Unwritable as err:
                LOG.error("monitor: %s", err)
            except Exception:
                LOG.exception("monitor pass failed")
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self.stopped.wait(), self.interval(setting))

    # -- preparation -------------------------------------------------------------------------------------------------

    def start_release(self, cluster: Document) -> None:
        """Reads in the background which images the cluster's release is made of."""
        if cluster.get("_images") or not cluster.get("ocp_release_image") or self.config.flag("DUMMY_IGNITION"):
            return
        task = self._releases.get(cluster["id"])
        if task is None or task.done():
            self._releases[cluster["id"]] = asyncio.get_running_loop().create_task(self._release(cluster))

    async def _release(self, cluster: Document) -> None:
        from . import release

        mirror = self.config.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR")
        arguments = (cluster["ocp_release_image"], cluster.get("_pull_secret", ""), mirror)
        for wait in RELEASE_WAITS:
            try:
                found = await asyncio.get_running_loop().run_in_executor(None, release.component_images, *arguments)
            except (ValueError, OSError) as err:
                LOG.warning("release image of cluster %s: %s", cluster["id"], err)
                self._release_errors[cluster["id"]] = str(err)
                await asyncio.sleep(wait)
                continue
            if self.clusters.get(cluster["id"]) is cluster:
                cluster["_images"] = found
                self.touch_hosts(cluster["id"])
                self.store.commit()
            return

    def start_preparation(self, cluster: Document) -> None:
        """Makes Ignition configs and credentials of a cluster in the background."""
        task = self._preparing.get(cluster["id"])
        if task is None or task.done():
            self._preparing[cluster["id"]] = asyncio.get_running_loop().create_task(self._prepare(cluster))

    async def _prepare(self, cluster: Document) -> None:
        from . import prepare

        ident = cluster["id"]
        self.start_release(cluster)
        if ident in self._releases:
            await self._releases[ident]
        try:
            job = prepare.job(self, cluster)
            if ident in self._releases and "_images" not in cluster:
                raise ValueError(f"the release image cannot be read: {self._release_errors.get(ident, '')}")
            files = await asyncio.get_running_loop().run_in_executor(None, prepare.files, job)
        except Exception as err:
            LOG.exception("preparation of cluster %s failed", ident)
            if self.clusters.get(ident) is cluster:
                cluster["last-installation-preparation"] = {"status": "failed", "reason": str(err)[:500]}
                self.event("prepare_installation_failed", cluster_id=ident, error=str(err)[:500])
                self.store.commit()
            return
        if self.clusters.get(ident) is not cluster or cluster["status"] != "preparing-for-installation":
            return
        for name, content in files.items():
            self.store.put_file(ident, name, content)
        cluster["last-installation-preparation"] = {"status": "success", "reason": "Installation preparation successful"}
        self.event("cluster_prepare_installation_started", cluster_id=ident)
        self.dirty.add(ident)
        self.store.commit()

    async def stop(self) -> None:
        self.stopped.set()
        tasks = [*self._preparing.values(), *self._releases.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def tls_dir(self) -> Path | None:
        text = self.config.get("EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR")
        return Path(text) if text else None


def _metric_role(host: Mapping[str, Any]) -> str:
    return "bootstrap" if host.get("bootstrap") else validations.role_of(host)


def _ntp_sources(default: str, infra_env: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """The time sources that a host is asked to use: the cluster's where it has some, else its infra-env's."""
    for owner, additional in ((cluster, "additional_ntp_source"), (infra_env, "additional_ntp_sources")):
        if owner.get("ntp_sources") or owner.get(additional):
            return str(owner.get("ntp_sources") or owner.get(additional))
    return default


def placeholder(release: str, component: str) -> str:
    """A pullspec for a component of a release that is not read: no image has it, hosts that are simulated report it all the same."""
    repository = release.partition("@")[0].rpartition("/")[0]
    return f"{repository}/ocp-v4.0-art-dev@sha256:{hashlib.sha256(component.encode()).hexdigest()}"


def _minutes_text(seconds: float) -> str:
    """A limit as messages show it: `40m0s`, `1h30m0s`."""
    if seconds == float("inf"):
        return ""
    hours, rest = divmod(int(seconds), 3600)
    return (f"{hours}h" if hours else "") + f"{rest // 60}m{rest % 60}s"
