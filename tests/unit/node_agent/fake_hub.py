"""A small hub, as strict about resources as the tests need.

It serves the custom resources of the kube-api mode, and does with a fake assisted service what the real one's controllers do with theirs.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any

from aiohttp import web

from .fake_assisted import FakeAssisted

Object = dict[str, Any]
PATH = re.compile(r"/(?:api|apis/[\w.-]+)/v\w+(?:/namespaces/([\w.-]+))?/(\w+)(?:/([\w.-]+))?")
NEEDED = {
    "clusterdeployments": ("baseDomain", "clusterName", "clusterInstallRef", "pullSecretRef"),
    "agentclusterinstalls": ("clusterDeploymentRef", "imageSetRef", "provisionRequirements"),
    "infraenvs": ("clusterRef", "pullSecretRef"),
    "clusterimagesets": ("releaseImage",),
}
TOKEN = "hub-token"


class FakeHub:
    """`objects`: (plural, namespace, name) -> object. `service` gets the hosts; `refused` lists what was wrong with requests."""

    def __init__(self, service: FakeAssisted) -> None:
        self.service = service
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.refused: list[str] = []
        self.url = ""
        self._clusters: dict[tuple[str, str], str] = {}

    # Life, in the service's thread

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self._listen(), self.service.loop).result(10)

    def stop(self) -> None:
        async def end() -> None:
            self.work.cancel()
            await self.runner.cleanup()

        asyncio.run_coroutine_threadsafe(end(), self.service.loop).result(10)

    async def _listen(self) -> None:
        app = web.Application()
        app.router.add_get("/ignition/{infra_env}", self.ignition)
        app.router.add_route("*", "/{path:.*}", self.handle)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        self.work = asyncio.get_running_loop().create_task(self._reconcile())

    def kubeconfig(self) -> str:
        return json.dumps({
            "current-context": "hub",
            "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "me"}}],
            "clusters": [{"name": "hub", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": {"token": TOKEN}}],
        })  # fmt: skip

    # API

    def error(self, code: int, text: str) -> web.Response:
        self.refused.append(text)
        return web.json_response({"kind": "Status", "status": "Failure", "code": code, "message": text}, status=code)

    async def handle(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.error(401, "Unauthorized")
        match = PATH.fullmatch(request.path)
        if match is None:
            return self.error(404, f"no such path {request.path}")
        namespace, plural, name = match[1] or "", match[2], match[3] or ""
        if plural == "namespaces":
            namespace = ""
        key = (plural, namespace, name)
        if request.method == "POST":
            return self.create(plural, namespace, await request.json())
        if request.method == "GET" and not name:
            label = request.query.get("labelSelector", "")
            wanted = dict([label.split("=", 1)]) if label else {}
            items = [
                found for (kind, where, __), found in self.objects.items()
                if kind == plural and namespace in ("", where) and wanted.items() <= (found["metadata"].get("labels") or {}).items()
            ]  # fmt: skip
            return web.json_response({"items": items})
        if key not in self.objects:
            return self.error(404, f'{plural} "{name}" not found')
        if request.method == "PATCH":
            if request.content_type != "application/merge-patch+json":
                return self.error(415, f"patch of {plural} with {request.content_type}")
            for part, value in (await request.json()).items():
                self.objects[key][part] = {**self.objects[key].get(part, {}), **value}
        if request.method == "DELETE":
            await self.delete(key)
            return web.json_response({"kind": "Status", "status": "Success"})
        return web.json_response(self.objects[key])

    def create(self, plural: str, namespace: str, body: Object) -> web.Response:
        name = body["metadata"]["name"]
        if (plural, namespace, name) in self.objects:
            return self.error(409, f'{plural} "{name}" already exists')
        if namespace and ("namespaces", "", namespace) not in self.objects:
            return self.error(404, f'namespaces "{namespace}" not found')
        missing = [field for field in NEEDED.get(plural, ()) if field not in (body.get("spec") or {})]
        if missing:
            return self.error(422, f"{plural} {name}: spec lacks {', '.join(missing)}")
        if plural == "secrets":
            base64.b64decode(body["data"][".dockerconfigjson"], validate=True)
        self.objects[plural, namespace, name] = {**body, "status": {}}
        return web.json_response(body, status=201)

    async def delete(self, key: tuple[str, str, str]) -> None:
        plural, namespace, name = key
        self.objects.pop(key)
        if plural == "namespaces":
            for other in [other for other in self.objects if other[1] == name]:
                self.objects.pop(other)
        if plural == "clusterdeployments":
            ident = self._clusters.pop((namespace, name), "")
            self.service.clusters.pop(ident, None)
            for infra_env in [
                one for one, found in self.service.infra_envs.items() if found.get("cluster_id") == ident
            ]:
                self.service.infra_envs.pop(infra_env)
                for host in [one for one, found in self.service.hosts.items() if found["infra_env_id"] == infra_env]:
                    self.service.hosts.pop(host)

    async def ignition(self, request: web.Request) -> web.Response:
        infra_env = request.match_info["infra_env"]
        unit = (
            f"[Service]\nEnvironment=PULL_SECRET_TOKEN=token-{infra_env}\nExecStartPre=/usr/local/bin/agent-pull-image {self.service.image}\n"
            f"ExecStart=/usr/local/bin/agent --url {self.service.url} --infra-env-id {infra_env} --agent-version {self.service.image} "
            "--insecure=false \n"
        )
        config = {"ignition": {"version": "3.1.0"}, "systemd": {"units": [{"name": "agent.service", "contents": unit}]}}
        return web.Response(text=json.dumps(config), content_type="application/octet-stream")

    # Controllers

    async def _reconcile(self) -> None:
        while True:
            for (plural, namespace, name), found in list(self.objects.items()):
                if plural == "infraenvs":
                    self._infra_env(namespace, name, found)
            await asyncio.sleep(0.05)

    def _infra_env(self, namespace: str, name: str, infra_env: Object) -> None:
        deployment = self.objects.get(("clusterdeployments", namespace, infra_env["spec"]["clusterRef"]["name"]))
        if deployment is None:
            return
        install = self.objects[("agentclusterinstalls", namespace, deployment["spec"]["clusterInstallRef"]["name"])]
        wanted = install["spec"]["provisionRequirements"]
        count = sum(wanted.values())
        key = (namespace, deployment["metadata"]["name"])
        if key not in self._clusters:
            ident = self._clusters[key] = f"cluster-{namespace}"
            self.service.clusters[ident] = {
                "id": ident, "name": deployment["spec"]["clusterName"], "base_dns_domain": deployment["spec"]["baseDomain"], "kind": "Cluster",
                "status": "insufficient", "operators": {}, "control_plane_count": wanted["controlPlaneAgents"], "expected_hosts": count,
            }  # fmt: skip
            self.service.infra_envs[f"ie-{namespace}"] = {"id": f"ie-{namespace}", "cluster_id": ident}
            infra_env["status"] = {"bootArtifacts": {"discoveryIgnitionURL": f"{self.url}/ignition/ie-{namespace}"}}
        cluster = self.service.clusters[self._clusters[key]]
        hosts = self.service.members(cluster)
        agents = [self._agent(namespace, name, host) for host in hosts]
        if (
            cluster["status"] == "ready"
            and len(agents) == count
            and all(agent["spec"].get("approved") for agent in agents)
        ):
            for host, agent in zip(hosts, agents, strict=True):
                host["role"] = agent["spec"].get("role") or host["role"]
            cluster["status"] = "preparing-for-installation"
            for host in hosts:
                host["status"] = "preparing-for-installation"
        over = cluster["status"] == "installed"
        install["status"] = {
            "debugInfo": {"state": "adding-hosts" if over else cluster["status"]},  # it continues to day 2 at once
            "conditions": [
                {"type": "Completed", "status": str(over)},
                {"type": "Failed", "status": str(cluster["status"] == "error")},
            ],
        }

    def _agent(self, namespace: str, infra_env: str, host: Object) -> Object:
        key = ("agents", namespace, host["id"])
        labels = {"infraenvs.agent-install.openshift.io": infra_env}
        metadata = {
            "name": host["id"],
            "namespace": namespace,
            "labels": labels,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        agent = self.objects.setdefault(key, {"metadata": metadata, "spec": {"approved": False}})
        stage = (host.get("progress") or {}).get("current_stage")
        agent["status"] = {"debugInfo": {"state": host["status"]}, "progress": {"currentStage": stage} if stage else {}}
        return agent
