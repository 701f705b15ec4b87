"""What runs in the background for a cluster: reading its release image, making its Ignition configs and credentials."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from ....plugins.module_utils.vocabulary import Status
from .. import operators, prepare, release, validations, versions
from ..config import Config
from ..objects import Cluster, Host
from ..prepare import Render
from ..store import Store
from .cluster_machine import ClusterMachine
from .index import LOG

#: Seconds after each failed attempt to read a release image.
RELEASE_WAITS: tuple[float, ...] = (1, 2, 5, 10, 30, 60, 0)


class Preparation(ClusterMachine):
    """Prepares clusters for installation.

    One of the layers of `Engine`. Slow work runs in threads with copies of the data; results are stored only if the
    cluster still exists in the same state. `RELEASE_WAITS` bounds the attempts to read a release.
    """

    def __init__(
        self, config: Config, store: Store, render: Render | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(config, store, render, clock)
        self._preparing: dict[str, asyncio.Task[None]] = {}
        self._releases: dict[str, asyncio.Task[None]] = {}
        self._release_errors: dict[str, str] = {}

    def start_release(self, cluster: Cluster) -> None:
        """Read images and version of the cluster's release in the background.

        Nothing happens if they are known, if a task is already under way, without a release image, and with
        `DUMMY_IGNITION`. The result is the cluster's `_images` and `_release_version`. After the last failed attempt the preparation of the
        cluster reports the error.
        """
        if cluster.get("_images") or not cluster.get("ocp_release_image") or self.config.flag("DUMMY_IGNITION"):
            return
        task = self._releases.get(cluster["id"])
        if task is None or task.done():
            self._releases[cluster["id"]] = asyncio.get_running_loop().create_task(self._release(cluster))

    async def _release(self, cluster: Cluster) -> None:
        mirror = self.config.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR")
        arguments = (cluster["ocp_release_image"], cluster.get("_pull_secret", ""), mirror)
        for wait in RELEASE_WAITS:
            try:
                found = await asyncio.get_running_loop().run_in_executor(None, release.contents, *arguments)
            except (ValueError, OSError) as err:
                LOG.warning("release image of cluster %s: %s", cluster["id"], err)
                self._release_errors[cluster["id"]] = str(err)
                await asyncio.sleep(wait)
                continue
            if self.clusters.get(cluster["id"]) is cluster:
                cluster["_images"], cluster["_release_version"] = found.images, found.version
                self.touch_hosts(cluster["id"])
                self.store.commit()
            return

    def start_preparation(self, cluster: Cluster) -> None:
        """Create Ignition configs and credentials of a cluster in the background.

        It waits for the release's images first. The outcome is in `last-installation-preparation` (`success` or
        `failed` and a reason), which the state machine of clusters reads. A second call while it runs does nothing.
        """
        task = self._preparing.get(cluster["id"])
        if task is None or task.done():
            self._preparing[cluster["id"]] = asyncio.get_running_loop().create_task(self._prepare(cluster))

    async def _prepare(self, cluster: Cluster) -> None:
        ident = cluster["id"]
        self.start_release(cluster)
        if ident in self._releases:
            await self._releases[ident]
        try:
            job = self.job(cluster)
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
        if self.clusters.get(ident) is not cluster or cluster["status"] != Status.PREPARING:
            return
        for name, content in files.items():
            self.store.put_file(ident, name, content)
        cluster["last-installation-preparation"] = {
            "status": "success",
            "reason": "Installation preparation successful",
        }
        cluster["openshift_cluster_id"] = ident  # prepare.files gives it to the ClusterVersion
        self.event("cluster_prepare_installation_started", cluster_id=ident)
        self.dirty.add(ident)
        self.store.commit()

    def job(self, cluster: Cluster) -> prepare.Job:
        """Return what the preparation of a cluster needs, as copies, so that a thread can do it.

        Private fields are left out, except the pull secret. Users' manifests have precedence over those of operators
        with the same name. Trust bundles of all infra-envs of the hosts are joined, each once.
        """
        import yaml

        ident = cluster["id"]
        shown = _public(cluster)
        shown |= {"pull_secret": cluster.get("_pull_secret", ""), "openshift_version": versions.of_release(cluster)}
        hosts: list[Host] = []
        for host in self.hosts_of(ident).values():
            entry: Host = _public(host)
            entry["requested_hostname"] = self.hostname(host)
            if entry.get("role", "auto-assign") == "auto-assign":
                entry["role"] = validations.role_of(host)
            hosts.append(entry)
        networks = {
            name: self.static_networks(host) for name, host in {host["infra_env_id"]: host for host in hosts}.items()
        }
        manifests = {
            name.removeprefix("manifest/"): content.decode() for name, content in self.store.files(ident, "manifest/")
        }
        installed, custom = operators.manifests(cluster)
        for name, documents in installed.items():
            manifests.setdefault(f"openshift/{name}", yaml.safe_dump_all(documents, sort_keys=False))
        bundles = (
            self.infra_envs[name].get("additional_trust_bundle") or "" for name in networks if name in self.infra_envs
        )
        return prepare.Job(
            cluster=shown,
            hosts=hosts,
            tls_dir=self.tls_dir,
            images=self.images(cluster),
            settings=self.settings(ident),
            manifests=manifests,
            static_networks=networks,
            render=self.render,
            dummy=self.config.flag("DUMMY_IGNITION", self.settings(ident)),
            invoker="agent-installer" if self.config.abi else "assisted-installer",
            trust="".join(dict.fromkeys(bundles)),
            custom=custom,
        )


def _public(document: Host | Cluster) -> Any:
    """Return a host or cluster without its private fields."""
    return {name: value for name, value in document.items() if name[0] != "_"}
