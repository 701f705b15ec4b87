"""A small assisted service in memory, as strict about the protocol as the tests need: steps by status, stages in order.

`python fake_assisted.py PORT [INTERVAL]` serves it by itself, for measurements.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

from aiohttp import web

API = "/api/assisted-install/v2"
STAGES = {
    "sno": ["Starting installation", "Installing", "Waiting for bootkube", "Writing image to disk",
            "Copying registry data to disk", "Rebooting", "Joined", "Done"],
    "bootstrap": ["Starting installation", "Installing", "Writing image to disk", "Copying registry data to disk",
                  "Waiting for control plane", "Waiting for bootkube", "Waiting for controller", "Rebooting",
                  "Configuring", "Joined", "Done"],
    "master": ["Starting installation", "Installing", "Writing image to disk", "Copying registry data to disk",
               "Rebooting", "Configuring", "Joined", "Done"],
    "worker": ["Starting installation", "Installing", "Writing image to disk", "Waiting for control plane", "Rebooting",
               "Waiting for ignition", "Configuring", "Joined", "Done"],
}  # fmt: skip


class FakeAssisted:
    """`instructions`: steps handed out instead of those of the state machine, once per host and poll (a list of lists)."""

    def __init__(self, interval: float = 1) -> None:
        self.interval = interval
        self.clusters: dict[str, dict[str, Any]] = {}
        self.infra_envs: dict[str, dict[str, Any]] = {}
        self.hosts: dict[str, dict[str, Any]] = {}
        self.replies: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.uploads: list[bytes] = []
        self.instructions: list[list[dict[str, Any]]] | None = None
        self.answers: list[int] = []  # status codes for the next requests of agents, before anything else
        self.instead: dict[str, Callable[[], web.Response]] = {}  # part of a path -> what is answered there
        self.slow_deletes = 0.0  # seconds
        self.refuse_cluster = 0  # the cluster to be registered that is refused, counted from 1
        self.image = "registry.example/agent:1"
        self.errors: list[str] = []
        self.counts: Counter[str] = Counter()
        self.keep = True
        self.url = ""

    # Life

    def start(self) -> None:
        ready = threading.Event()

        def serve() -> None:
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
            self.loop.run_until_complete(self._listen("127.0.0.1", 0))
            ready.set()
            self.loop.run_forever()

        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()
        ready.wait(10)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.runner.cleanup(), self.loop).result(10)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    async def _listen(self, host: str, port: int) -> None:
        self.runner = web.AppRunner(self.app(), access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, host, port)
        await site.start()
        port = site._server.sockets[0].getsockname()[1]
        self.url = f"http://{host}:{port}"

    def app(self) -> web.Application:
        app = web.Application(client_max_size=1 << 28, middlewares=[self._middleware])
        add = app.router.add_route
        add("GET", API + "/component-versions", self.component_versions)
        add("GET", API + "/clusters", self.list_clusters)
        add("POST", API + "/clusters", self.register_cluster)
        add("GET", API + "/clusters/{c}", self.get_cluster)
        add("DELETE", API + "/clusters/{c}", self.delete)
        add("GET", API + "/clusters/{c}/hosts", self.list_hosts)
        add("POST", API + "/clusters/{c}/actions/install", self.install)
        add("POST", API + "/clusters/{c}/actions/cancel", self.nothing)
        add("POST", API + "/clusters/{c}/actions/complete-installation", self.complete)
        add("GET", API + "/clusters/{c}/monitored-operators", self.operators)
        add("PUT", API + "/clusters/{c}/monitored-operators", self.operator)
        add("PUT", API + "/clusters/{c}/progress", self.cluster_progress)
        add("PUT", API + "/clusters/{c}/logs-progress", self.nothing)
        add("POST", API + "/clusters/{c}/uploads/ingress-cert", self.ingress)
        add("POST", API + "/clusters/{c}/logs", self.logs)
        add("GET", API + "/clusters/{c}/downloads/files", self.file)
        add("GET", API + "/infra-envs", self.list_infra_envs)
        add("POST", API + "/infra-envs", self.register_infra_env)
        add("GET", API + "/infra-envs/{i}/hosts", self.list_hosts)
        add("DELETE", API + "/infra-envs/{i}", self.delete)
        add("DELETE", API + "/infra-envs/{i}/hosts/{h}", self.delete_host)
        add("PATCH", API + "/infra-envs/{i}/hosts/{h}", self.update_host)
        add("POST", API + "/infra-envs/{i}/hosts", self.register_host)
        add("GET", API + "/infra-envs/{i}/hosts/{h}/instructions", self.steps)
        add("POST", API + "/infra-envs/{i}/hosts/{h}/instructions", self.reply)
        add("PUT", API + "/infra-envs/{i}/hosts/{h}/progress", self.progress)
        add("PUT", API + "/infra-envs/{i}/hosts/{h}/logs-progress", self.nothing)
        add("GET", API + "/infra-env/{i}/hosts/{h}/downloads/ignition", self.file)
        return app

    @web.middleware
    async def _middleware(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.counts[request.method] += 1
        if request.method == "DELETE":
            await asyncio.sleep(self.slow_deletes)
        if self.keep:
            self.requests.append((request.method, request.path_qs))
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
        for part, answer in self.instead.items():
            if part in request.path_qs:
                return answer()
        if self.answers and "/hosts" in request.path:
            status = self.answers.pop(0)
            if status != 200:
                return self.error(status, "as ordered")
        return await handler(request)

    def error(self, status: int, reason: str) -> web.Response:
        self.errors.append(reason)
        return web.json_response(
            {"kind": "Error", "id": status, "href": "", "code": str(status), "reason": reason}, status=status
        )

    # Clusters

    async def component_versions(self, request: web.Request) -> web.Response:
        return web.json_response({"versions": {"discovery-agent": self.image}, "release_tag": ""})

    async def register_cluster(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.refuse_cluster -= 1
        if self.refuse_cluster == 0:
            return self.error(500, "as ordered")
        cluster = {**body, "id": str(uuid.uuid4()), "kind": "Cluster", "status": "insufficient", "operators": {}}
        cluster["api_vips"] = body.get("api_vips") or []
        self.clusters[cluster["id"]] = cluster
        return web.json_response(cluster, status=201)

    async def register_infra_env(self, request: web.Request) -> web.Response:
        infra_env = {**await request.json(), "id": str(uuid.uuid4())}
        self.infra_envs[infra_env["id"]] = infra_env
        return web.json_response(infra_env, status=201)

    async def list_clusters(self, request: web.Request) -> web.Response:
        return web.json_response([self.view(cluster) for cluster in self.clusters.values()])

    async def list_infra_envs(self, request: web.Request) -> web.Response:
        return web.json_response(list(self.infra_envs.values()))

    async def get_cluster(self, request: web.Request) -> web.Response:
        cluster = self.clusters.get(request.match_info["c"])
        if cluster is None:
            return web.json_response({"code": "404", "reason": "no such cluster"}, status=404)
        shown = self.view(cluster)
        if request.query.get("exclude-hosts") == "true":
            shown.pop("hosts")
        return web.json_response(shown)

    async def delete(self, request: web.Request) -> web.Response:
        self.clusters.pop(request.match_info.get("c", ""), None)
        self.infra_envs.pop(request.match_info.get("i", ""), None)
        return web.Response(status=204)

    async def delete_host(self, request: web.Request) -> web.Response:
        host = self.hosts.pop(request.match_info["h"], None)
        if host and host["cluster_id"] in self.clusters:
            self.members(self.clusters[host["cluster_id"]]).remove(host)
        return web.Response(status=204)

    def view(self, cluster: dict[str, Any]) -> dict[str, Any]:
        shown = {key: value for key, value in cluster.items() if key != "members"}
        return {**shown, "hosts": [self.host_view(host) for host in self.members(cluster)]}

    def host_view(self, host: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in host.items() if key not in ("members", "seen")}

    def members(self, cluster: dict[str, Any]) -> list[dict[str, Any]]:
        return cluster.setdefault("members", [])

    async def list_hosts(self, request: web.Request) -> web.Response:
        if cluster := self.clusters.get(request.match_info.get("c", "")):
            hosts = self.members(cluster)
        else:
            hosts = [host for host in self.hosts.values() if host["infra_env_id"] == request.match_info.get("i")]
        role = request.query.get("role")
        return web.json_response([self.host_view(host) for host in hosts if role in (None, host["role"])])

    async def install(self, request: web.Request) -> web.Response:
        cluster = self.clusters[request.match_info["c"]]
        if cluster["status"] != "ready":
            return self.error(409, f"cluster is {cluster['status']}")
        cluster["status"] = "preparing-for-installation"
        for host in self.members(cluster):
            host["status"] = "preparing-for-installation"
        return web.json_response(self.view(cluster), status=202)

    async def operators(self, request: web.Request) -> web.Response:
        return web.json_response([{"name": "console", "operator_type": "builtin"}])

    async def operator(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.clusters[request.match_info["c"]]["operators"][body["name"]] = body["status"]
        return web.json_response({})

    async def cluster_progress(self, request: web.Request) -> web.Response:
        cluster = self.clusters[request.match_info["c"]]
        if cluster["status"] not in ("installing", "finalizing"):
            return self.error(400, f"finalizing stage in {cluster['status']}")
        cluster["finalizing_stage"] = (await request.json())["finalizing_stage"]
        return web.Response()

    async def ingress(self, request: web.Request) -> web.Response:
        cluster = self.clusters[request.match_info["c"]]
        certificate = await request.json()
        if cluster["status"] != "finalizing" or "BEGIN CERTIFICATE" not in certificate:
            return self.error(400, "ingress certificate refused")
        cluster["ingress"] = True
        return web.Response(status=201)

    async def complete(self, request: web.Request) -> web.Response:
        cluster = self.clusters[request.match_info["c"]]
        good = cluster.get("ingress") and cluster["operators"].get("console") == "available"
        if cluster["status"] == "finalizing" and good and (await request.json())["is_success"]:
            cluster["status"] = "installed"
        return web.json_response(self.view(cluster), status=202)

    async def nothing(self, request: web.Request) -> web.Response:
        return web.Response(status=204)

    async def logs(self, request: web.Request) -> web.Response:
        async for part in await request.multipart():
            self.uploads.append(bytes(await part.read()))
        return web.Response(status=204)

    async def file(self, request: web.Request) -> web.Response:
        return web.json_response({"ignition": {"version": "3.2.0"}})

    # Hosts

    async def register_host(self, request: web.Request) -> web.Response:
        infra_env = request.match_info["i"]
        if infra_env not in self.infra_envs:
            return self.error(404, "no such infra-env")
        cluster_id = self.infra_envs[infra_env].get("cluster_id", "")
        host_id = (await request.json())["host_id"]
        old = self.hosts.get(host_id)
        host = {"id": host_id, "infra_env_id": infra_env, "cluster_id": cluster_id, "status": "discovering",
                "role": "auto-assign", "bootstrap": False, "progress": {}, "seen": set()}  # fmt: skip
        self.hosts[host_id] = host
        if cluster_id in self.clusters:
            members = self.members(self.clusters[cluster_id])
            if old in members:
                members.remove(old)
            members.append(host)
        args = json.dumps({"infra_env_id": infra_env, "host_id": host_id, "agent_version": self.image})
        command = {"command": "", "args": [args], "retry_seconds": 1}
        return web.json_response({**self.host_view(host), "next_step_runner_command": command}, status=201)

    async def update_host(self, request: web.Request) -> web.Response:
        host = self.hosts[request.match_info["h"]]
        host["role"] = (await request.json())["host_role"]
        return web.json_response(self.host_view(host), status=201)

    async def steps(self, request: web.Request) -> web.Response:
        host = self.hosts.get(request.match_info["h"])
        if host is None:
            return self.error(404, "no such host")
        if "timestamp" not in request.query:
            self.errors.append("instructions without timestamp")
        if self.instructions is not None:
            steps = self.instructions.pop(0) if self.instructions else []
            return web.json_response(
                {"next_instruction_seconds": self.interval, "post_step_action": "continue", "instructions": steps}
            )
        steps = [
            {"step_type": kind, "step_id": f"{kind}-{uuid.uuid4().hex[:8]}", "args": args}
            for kind, args in self.wanted(host)
        ]
        return web.json_response(
            {"next_instruction_seconds": self.interval, "post_step_action": "continue", "instructions": steps}
        )

    def wanted(self, host: dict[str, Any]) -> list[tuple[str, list[str]]]:
        cluster = self.clusters.get(host["cluster_id"], {})
        status = host["status"]
        if status == "discovering":
            return [("inventory", [host["id"]])]
        if status in ("insufficient", "known"):
            others = []
            for other in self.members(cluster):
                if other is not host and "inventory" in other:
                    nics = [
                        {"name": nic["name"], "mac": nic["mac_address"],
                         "ip_addresses": [a.split("/")[0] for a in nic["ipv4_addresses"] + nic["ipv6_addresses"]]}
                        for nic in json.loads(other["inventory"])["interfaces"]
                    ]  # fmt: skip
                    others.append({"host_id": other["id"], "nics": nics})
            steps = [("inventory", [host["id"]])]
            if others:
                steps.append(("connectivity-check", [json.dumps(others)]))
            name = f"{cluster.get('name')}.{cluster.get('base_dns_domain')}"
            domains = [{"domain_name": f"{label}.{name}"} for label in ("api", "api-int", "validateNoWildcardDNS")]
            return [
                *steps,
                ("free-network-addresses", ['["10.123.0.0/24"]']),
                ("ntp-synchronizer", ['{"ntp_source":"ntp.example"}']),
                ("domain-resolution", [json.dumps({"domains": domains})]),
            ]
        if status == "preparing-for-installation":
            disk = json.loads(host["inventory"])["disks"][0]["id"]
            return [
                ("installation-disk-speed-check", [json.dumps({"path": disk}), "480.00"]),
                ("container-image-availability", [json.dumps({"images": ["registry.example/mco"], "timeout": 960})]),
            ]
        if status == "installing":
            role = "bootstrap" if host["bootstrap"] else host["role"]
            return [("install", [json.dumps({
                "cluster_id": host["cluster_id"], "infra_env_id": host["infra_env_id"], "host_id": host["id"], "role": role,
                "boot_device": json.loads(host["inventory"])["disks"][0]["id"], "controller_image": "c", "installer_image": "i",
                "control_plane_count": cluster.get("control_plane_count", 3)})])]  # fmt: skip
        return []

    async def reply(self, request: web.Request) -> web.Response:
        reply = await request.json()
        host = self.hosts[request.match_info["h"]]
        if self.keep:
            self.replies.append(reply)
        kind, output = reply["step_type"], reply["output"]
        if kind == "inventory" and reply.get("exit_code", 0) == 0:
            host["inventory"] = output
            inventory = json.loads(output)
            host["requested_hostname"] = inventory["hostname"]
            if host["status"] == "discovering":
                host["status"] = "insufficient"
        if reply.get("exit_code", 0) == 0 and kind != "inventory":
            host["seen"].add(kind)
            if kind == "connectivity-check":
                report = json.loads(output)
                if not all(link["successful"] for one in report["remote_hosts"] for link in one["l3_connectivity"]):
                    host["seen"].discard(kind)
        self.advance(host)
        return web.Response(status=204)

    def advance(self, host: dict[str, Any]) -> None:
        cluster = self.clusters.get(host["cluster_id"])
        if cluster is None:
            return
        members = self.members(cluster)
        want = {"ntp-synchronizer", "domain-resolution"} | ({"connectivity-check"} if len(members) > 1 else set())
        if host["status"] == "insufficient" and want <= host["seen"]:
            host["status"] = "known"
        expected = cluster.get("expected_hosts") or cluster.get("control_plane_count", 1)
        known = len(members) >= expected and all(one["status"] == "known" for one in members)
        if cluster["status"] == "insufficient" and known:
            cluster["status"] = "ready"
        prepared = {"installation-disk-speed-check", "container-image-availability"}
        if cluster["status"] == "preparing-for-installation" and all(prepared <= one["seen"] for one in members):
            cluster["status"] = "installing"
            masters = int(cluster.get("control_plane_count", 1))
            others = [one for one in members if one["role"] == "auto-assign"]
            for one in members:
                if one in others:
                    one["role"] = "master" if others.index(one) < masters else "worker"
                one["bootstrap"] = one is others[0]
                one["status"] = "installing"
                stages_of = {"arbiter": "master"}.get(one["role"], one["role"])
                kind = "sno" if masters == 1 else "bootstrap" if one["bootstrap"] else stages_of
                one["progress_stages"] = STAGES[kind]

    async def progress(self, request: web.Request) -> web.Response:
        host = self.hosts[request.match_info["h"]]
        stage = (await request.json())["current_stage"]
        if host["status"] not in ("installing", "installing-in-progress"):
            return self.error(409, f"Can't set progress <{stage}> to host in status <{host['status']}>")
        if stage == "Failed":
            host["status"] = "error"
            return web.Response()
        stages = host["progress_stages"]
        now = host["progress"].get("current_stage")
        if stage not in stages or (now and stages.index(stage) < stages.index(now)):
            return self.error(409, f"stage {stage} after {now}")
        host["progress"] = {"current_stage": stage}
        host["status"] = "installed" if stage == "Done" else "installing-in-progress"
        cluster = self.clusters[host["cluster_id"]]
        if all(one["status"] == "installed" for one in self.members(cluster)):
            cluster["status"] = "finalizing"
        return web.Response()


async def main(port: int, interval: float) -> None:
    fake = FakeAssisted(interval)
    fake.keep = False
    await fake._listen("127.0.0.1", port)
    print(fake.url, flush=True)
    while True:
        await asyncio.sleep(3600)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 60))
