"""Clusters and infra-envs of a swarm: found or registered before its hosts start, and removed afterwards."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, Protocol

from ....plugins.module_utils.shapes import Shape, ShapeError, check
from .. import protocol
from ..protocol import API, Conversation, Identity, Request, Response
from . import hub, install
from .hardware import Cluster, existing_cluster, plan_clusters
from .settings import Settings, SwarmError
from .support import AT_ONCE, run_bounded

REMOVE_TRIES, REMOVE_SECONDS = 4, 3.0


class Swarm(Protocol):
    """What registration needs of the swarm whose clusters it registers: its settings, and a client that sends requests.

    clusters: set by `Registration.set_up`; stopped: nothing new is registered any more.
    """

    settings: Settings
    clusters: list[Cluster]
    stopped: bool

    async def send(self, request: Request, me: Identity) -> Response:
        """Send one request; a service that does not answer is a response with status 0."""

    async def talk(self, conversation: Conversation, me: Identity) -> Any:
        """Execute the requests of a conversation and return its result."""


_VERSIONS: Shape = {"versions": {"discovery-agent": str}}
_MADE: Shape = {"id!": str}
_INFRA_ENV: Shape = {"id!": str, "cluster_id": str}
_CLUSTER: Shape = {
    "id!": str,
    "name!": str,
    "status": str,
    "base_dns_domain": str,
    "control_plane_count": int,
    "high_availability_mode": str,
    "api_vips": [{"ip!": str}],
    "ingress_vips": [{"ip!": str}],
    "machine_networks": [{"cidr!": str}],
}


class Registration:
    """What a user of the service does for a swarm, over REST or through a hub."""

    def __init__(self, swarm: Swarm, at: hub.Hub | None) -> None:
        self._swarm, self._hub = swarm, at
        self._image_set = f"{swarm.settings.name}-{swarm.settings.part[0]}"

    async def ask(self, method: str, path: str, shape: Shape, body: Any = None, name: str = "set up") -> Any:
        """Send a request that must succeed, with an answer of a shape. SwarmError otherwise."""
        me = Identity("", "", self._swarm.settings.agent_version, self._swarm.settings.agent_token)
        response = await self._swarm.talk(protocol.exchange(Request(name, method, f"{API}{path}", body)), me)
        where = f"{method} {self._swarm.settings.url}{API}{path}"
        if not response.ok:
            hint = (
                "; tokens are read from USER_AUTH_TOKEN and PULL_SECRET_TOKEN" if response.status in (401, 403) else ""
            )
            hint = "; is this an assisted service?" if response.status and response.body is None else hint
            raise SwarmError(f"{where}: {response.reason()}{hint}")
        if not isinstance(response.body, dict | list):
            raise SwarmError(f"{where}: the answer is not JSON: is this an assisted service?")
        try:
            check(response.body, shape, "the answer")
        except ShapeError as error:
            raise SwarmError(f"{where}: {error}: is this an assisted service?") from None
        return response.body

    async def set_up(self) -> None:
        settings = self._swarm.settings
        if self._hub:
            await self._set_up_hub()
            return
        versions = (await self.ask("GET", "/component-versions", _VERSIONS)).get("versions") or {}
        settings.agent_version = settings.agent_version or versions.get("discovery-agent") or "agent"
        # Otherwise refused agents would only be noticed when everything is registered.
        anonymous = Request("agents' token", "GET", f"{API}/clusters/{uuid.UUID(int=0)}", answers=(404,))
        refused = await self._swarm.talk(
            protocol.exchange(anonymous), Identity("", "", settings.agent_version, settings.agent_token)
        )
        if refused.status in (401, 403):
            raise SwarmError(
                f"{settings.url}: refuses the token of agents, which is read from PULL_SECRET_TOKEN: {refused.reason()}"
            )
        if settings.discover:
            self._swarm.clusters = await self._discover()
            return
        self._swarm.clusters = plan_clusters(settings)
        await run_bounded([self._register(cluster) for cluster in self._swarm.clusters], AT_ONCE)

    async def _set_up_hub(self) -> None:
        settings, anonymous = self._swarm.settings, Identity("", "", "")
        if settings.discover:
            found = await self._swarm.talk(hub.discover(settings), anonymous)
            part, parts = settings.part
            self._swarm.clusters = found[part - 1 :: parts]
        else:
            self._swarm.clusters = plan_clusters(settings)
            spec = {"spec": {"releaseImage": settings.release_image or settings.openshift_version}}
            entry = hub.resource(
                "ClusterImageSet", self._image_set, **hub.laid_over(spec, settings.template.get("ClusterImageSet", {}))
            )
            await self._swarm.talk(hub.ask("set up", "POST", hub.place("ClusterImageSet"), entry), anonymous)
        known: set[tuple[str, str]] = set()

        async def one(cluster: Cluster) -> None:
            work = (
                hub.introduce(cluster, settings)
                if settings.discover
                else hub.register(cluster, settings, self._image_set)
            )
            if not self._swarm.stopped:
                known.add(await self._swarm.talk(work, anonymous))

        await run_bounded([one(cluster) for cluster in self._swarm.clusters], AT_ONCE)
        services, images = {url for url, __ in known}, {image for __, image in known}
        if not settings.url and len(services) > 1:
            raise SwarmError(
                f"the hub's InfraEnvs name several services: {', '.join(sorted(services))}; choose one with --url"
            )
        settings.url = settings.url or max(services, default="")
        settings.agent_version = settings.agent_version or max(images, default="") or "agent"

    async def _discover(self) -> list[Cluster]:
        """Return the existing infra-envs with clusters that are not installed."""
        known = {cluster["id"]: cluster for cluster in await self.ask("GET", "/clusters", [_CLUSTER])}
        found: list[Cluster] = []
        for infra_env in await self.ask("GET", "/infra-envs", [_INFRA_ENV]):
            cluster = known.get(infra_env.get("cluster_id") or "")
            if cluster and cluster.get("status") not in install.OVER:
                found.append(existing_cluster(len(found), cluster, infra_env["id"], self._swarm.settings))
        if not found:
            raise SwarmError(f"{self._swarm.settings.url}: there is no infra-env with a cluster that is not installed")
        part, parts = self._swarm.settings.part
        return found[part - 1 :: parts]

    async def _register(self, cluster: Cluster) -> None:
        if self._swarm.stopped:
            return
        settings = self._swarm.settings
        single = cluster.masters == 1
        common = {
            "openshift_version": settings.openshift_version,
            "pull_secret": settings.pull_secret,
            "cpu_architecture": "x86_64",
        }
        vips = {} if single else {"api_vips": [{"ip": cluster.api_vip}], "ingress_vips": [{"ip": cluster.ingress_vip}]}
        body = {
            **common,
            **vips,
            "name": cluster.name,
            "base_dns_domain": settings.base_domain,
            "control_plane_count": cluster.masters,
            "high_availability_mode": "None" if single else "Full",
            "user_managed_networking": single,
            "network_type": "OVNKubernetes",
            "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
            "service_networks": [{"cidr": "172.30.0.0/16"}],
            **({"machine_networks": [{"cidr": str(cluster.network)}]} if single else {}),
            **({"ocp_release_image": settings.release_image} if settings.release_image else {}),
            **({"olm_operators": [{"name": name} for name in settings.operators]} if settings.operators else {}),
        }
        made = await self.ask("POST", "/clusters", _MADE, body)
        cluster.id, cluster.created = made["id"], True
        infra_env = {**common, "name": f"{cluster.name}_infra-env", "cluster_id": cluster.id}
        cluster.infra_env_id = (await self.ask("POST", "/infra-envs", _MADE, infra_env))["id"]

    async def remove(self) -> None:
        """Delete what was registered here. Missing objects count as deleted; those that cannot be deleted stay in `left`."""

        async def remove(cluster: Cluster) -> None:
            me = Identity("", "", self._swarm.settings.agent_version, self._swarm.settings.agent_token)
            for attempt in range(REMOVE_TRIES):
                await asyncio.sleep(REMOVE_SECONDS * bool(attempt))
                if await self._swarm.talk(hub.remove(cluster) if self._hub else install.remove(cluster), me):
                    cluster.created = False
                    return

        await run_bounded([remove(cluster) for cluster in self._swarm.clusters if cluster.created], AT_ONCE)
        if self._hub and not self._swarm.settings.discover:
            request = Request("remove", "DELETE", hub.place("ClusterImageSet", name=self._image_set), answers=(404,))
            await self._swarm.send(request, Identity("", "", ""))
