"""Documents of the service, and what is derived from them: parsed inventories, reachability, settings, images.

Derived things live in memory and are rebuilt from the documents; a host or cluster is evaluated again only when something of it
changed, or when time alone may move it.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import SETTINGS_MANIFEST, Component
from .. import settings, validations
from ..bodies import ConnectivityReport
from ..config import Config, requirements_for
from ..connectivity import Reach
from ..document import tracked_document
from ..errors import ApiError
from ..hardware import Inventory, Requirement
from ..metrics import Metrics
from ..objects import Cluster, Host, InfraEnv
from ..prepare import Render
from ..store import Store
from ..validations import Results

LOG = logging.getLogger("assisted-service")


class Index:
    """Keep the documents and what is derived from them.

    `clock` returns seconds since the epoch; `render` creates the Ignition configs. `clusters`, `infra_envs` and `hosts`
    are the store's documents by id. `dirty` has ids of hosts and clusters to validate again, `dirty_roles` clusters
    whose roles are to be suggested again. Timeouts of disconnected hosts restart with the service.
    """

    def __init__(
        self, config: Config, store: Store, render: Render | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.config, self.store, self.clock = config, store, clock
        self.render = render
        self.clusters = cast("dict[str, Cluster]", store.kinds["cluster"])
        self.infra_envs = cast("dict[str, InfraEnv]", store.kinds["infra_env"])
        self.hosts = cast("dict[str, Host]", store.kinds["host"])
        self.inventories: dict[str, Inventory] = {}
        self.reach: dict[str, Reach] = {}
        self.members: dict[str, dict[str, Host]] = {}
        self.results: dict[str, Results] = {}
        self.dirty: set[str] = set()
        #: Host -> last reason for which its registration was refused.
        self.refused_hosts: dict[str, str] = {}
        #: Clusters that were deleted since the start, newest last; requests for unregistered clusters return them.
        self.deleted_clusters: dict[str, Cluster] = {}
        self.dirty_roles: set[str] = set()
        self._was_connected: dict[str, bool] = {}
        self._groups: dict[str, dict[str, frozenset[str]]] = {}
        self._connected: dict[str, dict[str, list[str]]] = {}
        self._manifests: dict[str, bool] = {}
        self._peers: dict[str, dict[str, str]] = {}
        self._settings: dict[str, dict[str, str]] = {}
        self._tables: dict[str, dict[str, Requirement]] = {}
        self.requirements_table = config.requirements()
        self.metrics = Metrics()
        #: Called when the rendezvous host (the bootstrap host) reports that it reboots, with its cluster.
        self.on_bootstrap_reboot: Callable[[Cluster], None] | None = None
        store.on_undo = self._undone
        self._load()

    def _load(self) -> None:
        for host in self.hosts.values():
            self._join(host)
            if "inventory" in host:
                self.inventories[host["id"]] = load_json(host["inventory"], name="inventory")
            # The service was down, not the hosts: restart their timeouts.
            tracked_document(host).restore("_checked_in", self.clock())
            if host.get("validations_info"):
                self.results[host["id"]] = self._previous(host["validations_info"])
        for host in self.hosts.values():
            if host.get("connectivity") and host.get("cluster_id") in self.clusters:
                self._process_report(
                    self.clusters[host["cluster_id"]], host, load_json(host["connectivity"], name="connectivity")
                )
        for cluster in self.clusters.values():
            if cluster.get("validations_info"):
                self.results[cluster["id"]] = self._previous(cluster["validations_info"])
        self.dirty.update(self.hosts)
        self.dirty_roles.update(self.clusters)

    def _undone(self, keys: set[tuple[str, str]]) -> None:
        """Rebuild the data derived from documents whose changes could not be written and were undone."""
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
                    self._process_report(
                        self.clusters[cluster_id], host, load_json(host["connectivity"], name="connectivity")
                    )
        for document in (
            *(self.hosts[ident] for ident in hosts & self.hosts.keys()),
            *(self.clusters[ident] for ident in back & self.clusters.keys()),
        ):
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

    def _join(self, host: Host) -> None:
        cluster_id = host.get("cluster_id")
        if cluster_id:
            self.members.setdefault(cluster_id, {})[host["id"]] = host

    def leave(self, host: Host) -> None:
        """Takes a host out of its cluster's derived state.

        Call it before the host's `cluster_id` changes or the host is deleted. Its connectivity to the others is
        discarded, and the cluster is evaluated again. Nothing happens for a host of no cluster.
        """
        cluster_id = host.get("cluster_id", "")
        self.members.get(cluster_id, {}).pop(host["id"], None)
        self._peers.pop(cluster_id, None)
        self._groups.pop(cluster_id, None)
        if cluster_id in self.reach:
            self.reach[cluster_id].drop(host["id"])
        self.touch_cluster(cluster_id)

    def join(self, host: Host) -> None:
        """Put a host into its cluster's derived state; its `cluster_id` is already set.

        The counterpart of `leave`. The others of the cluster get it as a peer to check with their next connectivity
        check.
        """
        self._join(host)
        self._peers.pop(host.get("cluster_id", ""), None)
        self._groups.pop(host.get("cluster_id", ""), None)
        self.touch_cluster(host.get("cluster_id", ""))

    def cluster(self, ident: str) -> Cluster:
        """Return the cluster of an id; ApiError 404 if there is none. `infra_env` and `host` likewise.

        Ids are compared regardless of case. The texts are upstream's. `host` also refuses a host of another infra-env
        than the one in the path.
        """
        found = self.clusters.get(ident.lower())
        if found is None:
            raise ApiError(404, f"Failed to get cluster {ident}: record not found")
        return found

    def infra_env(self, ident: str) -> InfraEnv:
        found = self.infra_envs.get(ident.lower())
        if found is None:
            raise ApiError(404, "record not found")
        return found

    def host(self, infra_env_id: str, host_id: str) -> Host:
        found = self.hosts.get(host_id.lower())
        if found is None or found["infra_env_id"] != infra_env_id.lower():
            raise ApiError(404, f"failed to get host {host_id} in infra_env {infra_env_id}: record not found")
        return found

    def cluster_of(self, host: Host) -> Cluster | None:
        """Return the cluster of a host; None for a host that is not bound to one."""
        return self.clusters.get(str(host.get("cluster_id", "")))

    def static_networks(self, host: Host) -> str:
        """The static network configs of a host's infra-env: JSON, which may be too long to be read in the event loop.

        A list of objects with `network_yaml` and `mac_interface_map`; `[]` if the infra-env has none or is gone.
        `prepare` reads it in a thread.
        """
        infra_env: InfraEnv = self.infra_envs.get(host["infra_env_id"]) or {}
        return str(infra_env.get("static_network_config") or "[]")

    def hosts_of(self, cluster_id: str) -> dict[str, Host]:
        return self.members.get(cluster_id, {})

    def reach_of(self, cluster_id: str) -> Reach:
        return self.reach.setdefault(cluster_id, Reach())

    def hostname(self, host: Host) -> str:
        return validations.hostname_of(host, self.inventories.get(host["id"])) or str(host["id"])

    def table(self, cluster: Cluster | None) -> dict[str, Requirement]:
        """Return thresholds by role for the OpenShift version of a cluster; without a cluster, the default ones.

        From `HW_VALIDATOR_REQUIREMENTS`, cached per version. Callers must not change it.
        """
        version = str((cluster or {}).get("openshift_version", ""))
        if version not in self._tables:
            self._tables[version] = requirements_for(self.requirements_table, version)
        return self._tables[version]

    def settings(self, cluster_id: str | None) -> dict[str, str]:
        """Settings of a cluster from its manifest ConfigMap `agentlab-settings`; empty without one.

        Setting -> text, without invalid values; cached until `settings_changed`. The environment has precedence
        (`Config.setting`). A cluster that does not exist has none.
        """
        if not cluster_id:
            return {}
        if cluster_id not in self._settings:
            self._settings[cluster_id] = self._read_settings(cluster_id)
        return self._settings[cluster_id]

    def _read_settings(self, cluster_id: str) -> dict[str, str]:
        for content in self.store.files_with(cluster_id, "manifest/", SETTINGS_MANIFEST.encode(), settings.MOST_BYTES):
            found = settings.read(content)
            if found is not None:
                return found
        return {}

    def settings_changed(self, cluster_id: str) -> None:
        """Handle a change of a cluster's manifests, which may change its settings.

        Call it after each upload and deletion of a manifest: it also clears what `has_manifests` remembers, so the
        validation `custom-manifests-requirements-satisfied` sees the change.
        """
        self._settings.pop(cluster_id, None)
        self._manifests.pop(cluster_id, None)
        self.touch_cluster(cluster_id)

    def has_manifests(self, cluster_id: str) -> bool:
        """Return whether a user added manifests to the cluster."""
        if cluster_id not in self._manifests:
            self._manifests[cluster_id] = bool(self.store.file_names(cluster_id, "manifest/"))
        return self._manifests[cluster_id]

    def seconds(self, name: str, cluster_id: str | None = None) -> float:
        """Return a setting in seconds, as `Config.duration` does, with the settings of a cluster."""
        return self.config.duration(name, self.settings(cluster_id))

    def interval(self, name: str) -> float:
        """Return a monitor's interval: the shortest that any cluster sets.

        In seconds, at least 0.02, so that no cluster's setting keeps the event loop busy. Read before each pass: a
        manifest can change it at any time.
        """
        return max(0.02, min([self.seconds(name, cluster_id) for cluster_id in self.clusters] or [self.seconds(name)]))

    def images(self, cluster: Cluster) -> dict[str, str]:
        """Return component name -> pullspec, from the release and the environment.

        Keys are `release` (empty without a release) and names of `Component`. Agent, installer, controller and service
        are always those of the environment. Others are known after the release image was read, or made up with
        `DUMMY_IGNITION`.
        """
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
            found = {
                name: placeholder(release, name) for name in (Component.MACHINE_CONFIG_OPERATOR, Component.MUST_GATHER)
            }
        return {"release": release, **found, **named}

    def needed_images(self, cluster: Cluster) -> tuple[str, ...]:
        """Images every host must have pulled before the installation.

        Release, machine-config-operator, must-gather and installer, without those that are not known (yet). The step
        `container-image-availability` names them, and the host's preparation waits for them.
        """
        images = self.images(cluster)
        names = ("release", Component.MACHINE_CONFIG_OPERATOR, Component.MUST_GATHER, Component.ORCHESTRATOR)
        return tuple(dict.fromkeys(images[name] for name in names if images.get(name)))

    def release_host(self, cluster: Cluster) -> str:
        """Return the registry that hosts pull the release from, without port; the mirror's if the environment has one.

        Empty without a release. Hosts check that they can resolve it.
        """
        image = self.config.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR") or cluster.get("ocp_release_image", "")
        return validations.release_image_host(image)

    def _process_report(self, cluster: Cluster, host: Host, report: ConnectivityReport) -> None:
        """Process a host's report about the others in its cluster; reports about other hosts are ignored."""
        members = self.hosts_of(cluster["id"])
        known = {peer["host_id"]: peer for peer in report.get("remote_hosts", ()) if peer.get("host_id") in members}
        self.reach_of(cluster["id"]).report(
            host["id"], {"remote_hosts": list(known.values())}, validations.machine_cidrs(cluster)
        )

    def touch_cluster(self, cluster_id: str | None) -> None:
        """Mark a cluster: the next pass evaluates its validations and its hosts' roles again. None is ignored."""
        if cluster_id:
            self.dirty.add(cluster_id)
            self.dirty_roles.add(cluster_id)

    def touch_hosts(self, cluster_id: str | None) -> None:
        """Mark all hosts of a cluster: their validations are evaluated again in the next pass."""
        self.dirty.update(self.hosts_of(cluster_id or ""))

    @property
    def tls_dir(self) -> Path | None:
        """Directory of the cluster's signers and the kubeadmin password, which the image brings; None without it.

        It is `EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR`. Ignition configs can be made only with it, unless
        `DUMMY_IGNITION` is set.
        """
        text = self.config.get("EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR")
        return Path(text) if text else None


def placeholder(release: str, component: str) -> str:
    """Return a placeholder pullspec for a component of a release that is not read; simulated hosts report it as pulled.

    Same repository path as the release's, and a digest that is the SHA-256 of the component's name. Used with
    `DUMMY_IGNITION` only; nothing can be pulled from it.
    """
    repository = release.partition("@")[0].rpartition("/")[0]
    return f"{repository}/ocp-v4.0-art-dev@sha256:{hashlib.sha256(component.encode()).hexdigest()}"
