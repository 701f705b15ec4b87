"""A service on loopback and fake agents that drive it by REST."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer
from ansible_collections.agentlab.ocp.payload.api_server import data
from ansible_collections.agentlab.ocp.payload.api_server.app import Service
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.api_server.store import Store

from . import description

PULL_SECRET = json.dumps({"auths": {"registry.example.test:5000": {"auth": "dXNlcjpwYXNz"}}})
VERSION = "4.22.0-lab"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
AGENT = "registry.example.test/lab/payload@sha256:" + "a" * 64
ENV = {
    "AUTH_TYPE": "none",
    "HOST_MONITOR_INTERVAL": "20ms",
    "CLUSTER_MONITOR_INTERVAL": "20ms",
    "AGENT_NEXT_INSTRUCTION_SECONDS": "1",
    "AGENT_DOCKER_IMAGE": AGENT,
    "INSTALLER_IMAGE": AGENT.replace("a" * 64, "b" * 64),
    "CONTROLLER_IMAGE": AGENT.replace("a" * 64, "c" * 64),
    "RELEASE_IMAGES": json.dumps(
        [
            {
                "openshift_version": VERSION,
                "version": VERSION,
                "cpu_architecture": "x86_64",
                "cpu_architectures": ["x86_64"],
                "url": "registry.example.test/lab/release@sha256:" + "d" * 64,
            }
        ]
    ),
    "HW_VALIDATOR_REQUIREMENTS": json.dumps(
        [
            {
                "version": "default",
                **{
                    role: {
                        "cpu_cores": 2,
                        "ram_mib": 2048,
                        "disk_size_gb": 10,
                        "installation_disk_speed_threshold_ms": 50,
                        "network_latency_threshold_ms": 100,
                        "packet_loss_percentage": 10,
                    }
                    for role in ("master", "arbiter", "worker", "sno")
                },
            }
        ]
    ),
    "DUMMY_IGNITION": "true",
    "INSTALL_INVOKER": "agent-installer",
}

_found = description.find()
DESCRIPTION = description.Description(_found) if _found else None
#: The description in the tree: every request of tests and its answer conform to it.
OWN = description.Description(data.FOLDER / "swagger.yaml")
#: What the service is compared with: the description in the tree, and upstream's where it is at hand.
DESCRIPTIONS = [pytest.param(OWN, id="own"), *([pytest.param(DESCRIPTION, id="upstream")] if DESCRIPTION else [])]
V2 = "/api/assisted-install/v2"


class Lab:
    """`async with Lab(tmp_path) as lab`: `lab.call(...)` checks each exchange against the description."""

    def __init__(self, folder: Path, env: dict[str, str] | None = None, **config: Any) -> None:
        self.config = Config({**ENV, **(env or {})}, folder, folder / "state.sqlite", **config).check()
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> Lab:
        self.engine = Engine(self.config, Store(self.config.state_file))
        self.server = TestServer(Service(self.engine).app())
        await self.server.start_server()
        self.session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *__: Any) -> None:
        await self.session.close()
        await self.server.close()

    def url(self, path: str) -> str:
        return str(self.server.make_url(path if path.startswith("/api") else V2 + path))

    async def raw(self, method: str, path: str, **kwargs: Any) -> tuple[int, bytes, Any]:
        async with self.session.request(method, self.url(path), **kwargs) as answer:
            return answer.status, await answer.read(), answer.headers

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        status: int | None = None,
        query: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        kwargs: dict[str, Any] = {"params": query, "headers": {**self.headers, **(headers or {})}}
        if body is not None:
            kwargs["json"] = body
        code, raw, found = await self.raw(method, path, **kwargs)
        value: Any = raw
        if found.get("Content-Type", "").startswith("application/json"):
            value = json.loads(raw)
        if status is not None:
            assert code == status, f"{method} {path}: {code} {raw[:600]!r}"
        else:
            assert code < 400, f"{method} {path}: {code} {raw[:600]!r}"
        if code < 400:
            OWN.exchange(method, V2 + path, body, code, value)
        else:
            OWN.refused(method, V2 + path, code, value)
        if DESCRIPTION:
            DESCRIPTION.exchange(method, V2 + path, body, code, value)
        return value

    async def cluster(self, **fields: Any) -> dict[str, Any]:
        body = {
            "name": "ostest",
            "openshift_version": VERSION,
            "base_dns_domain": "test.example",
            "pull_secret": PULL_SECRET,
            "machine_networks": [{"cidr": "192.168.111.0/24"}],
            **fields,
        }
        return await self.call("POST", "/clusters", body, 201)

    async def infra_env(self, cluster_id: str | None, **fields: Any) -> dict[str, Any]:
        body = {
            "name": "env",
            "pull_secret": PULL_SECRET,
            **({"cluster_id": cluster_id} if cluster_id else {}),
            **fields,
        }
        return await self.call("POST", "/infra-envs", body, 201)

    async def until(self, path: str, good: Any, limit: float = 40) -> Any:
        """Polls a GET until `good(answer)`; bounded."""
        end = asyncio.get_running_loop().time() + limit
        while True:
            found = await self.call("GET", path)
            if good(found):
                return found
            shown = (
                json.dumps({k: v for k, v in found.items() if k in ("status", "status_info", "validations_info")})
                if isinstance(found, dict)
                else ""
            )
            assert asyncio.get_running_loop().time() < end, (
                f"{path} stayed: {shown[:3000]} {[(h['status'], h['status_info']) for h in found.get('hosts', [])]}"
            )
            await asyncio.sleep(0.02)


def inventory(index: int, **fields: Any) -> dict[str, Any]:
    return {
        "hostname": f"node-{index}",
        "bmc_address": "0.0.0.0",
        "bmc_v6address": "::/0",
        "interfaces": [
            {
                "name": "eth0",
                "mac_address": f"52:54:00:00:00:{index:02x}",
                "ipv4_addresses": [f"192.168.111.{20 + index}/24"],
                "ipv6_addresses": [],
                "flags": ["up"],
                "mtu": 1500,
                "has_carrier": True,
                "type": "physical",
            }
        ],
        "disks": [
            {
                "name": "sda",
                "path": "/dev/sda",
                "by_path": "/dev/disk/by-path/pci-0",
                "drive_type": "HDD",
                "size_bytes": 20 * 10**9,
                "installation_eligibility": {"eligible": True, "not_eligible_reasons": []},
            }
        ],
        "cpu": {"count": 4, "architecture": "x86_64", "model_name": "test", "frequency": 2000.0},
        "memory": {"physical_bytes": 4 * 2**30, "usable_bytes": 4 * 2**30, "physical_bytes_method": "dmidecode"},
        "system_vendor": {"manufacturer": "QEMU", "product_name": "KVM", "serial_number": "", "virtual": True},
        "boot": {"current_boot_mode": "uefi"},
        "routes": [
            {"interface": "eth0", "gateway": "192.168.111.1", "destination": "0.0.0.0", "family": 2, "metric": 100}
        ],
        "tpm_version": "none",
        **fields,
    }


class Agent:
    """Answers every step well, until its host is installed or `leave` stops it."""

    def __init__(
        self,
        lab: Lab,
        infra_env_id: str,
        index: int,
        final: str = "Rebooting",
        headers: dict[str, str] | None = None,
        **fields: Any,
    ) -> None:
        self.lab, self.infra_env_id, self.index, self.final = lab, infra_env_id, index, final
        self.id = str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{infra_env_id}-{index}"))
        self.inventory = inventory(index, **fields)
        self.headers = {"discovery_agent_version": AGENT, **(headers or {})}
        self.path = f"/infra-envs/{infra_env_id}/hosts/{self.id}"
        self.steps: list[str] = []
        self.install: dict[str, Any] = {}
        self.done = False

    async def register(self, status: int = 201) -> Any:
        body = {"host_id": self.id, "discovery_agent_version": AGENT}
        return await self.lab.call("POST", f"/infra-envs/{self.infra_env_id}/hosts", body, status, headers=self.headers)

    async def poll(self) -> dict[str, Any]:
        import time

        steps = await self.lab.call(
            "GET", f"{self.path}/instructions", query={"timestamp": int(time.time())}, headers=self.headers
        )
        for step in steps["instructions"]:
            await self.answer(step)
        return steps

    async def run(self) -> None:
        await self.register()
        while not self.done:
            await self.poll()
            await asyncio.sleep(0.01)

    async def reply(self, step: dict[str, Any], output: Any, code: int = 0, status: int = 204) -> None:
        body = {
            "step_type": step["step_type"],
            "step_id": step["step_id"],
            "exit_code": code,
            "output": "" if output is None else json.dumps(output),
            "error": "",
        }
        await self.lab.call("POST", f"{self.path}/instructions", body, status, headers=self.headers)

    async def answer(self, step: dict[str, Any]) -> None:
        kind, args = step["step_type"], step["args"]
        self.steps.append(kind)
        output = getattr(self, "do_" + kind.replace("-", "_"), lambda args: None)(args)
        await self.reply(step, output)
        if kind == "install":
            self.install = json.loads(args[0])
            await self.installation()

    def do_inventory(self, args: list[str]) -> Any:
        return self.inventory

    def do_connectivity_check(self, args: list[str]) -> Any:
        own = self.inventory["interfaces"][0]["ipv4_addresses"][0].partition("/")[0]
        peers = []
        for peer in json.loads(args[0]):
            pairs = [(nic, ip) for nic in peer["nics"] for ip in nic["ip_addresses"]]
            peers.append(
                {
                    "host_id": peer["host_id"],
                    "l2_connectivity": [
                        {
                            "outgoing_nic": "eth0",
                            "outgoing_ip_address": own,
                            "remote_ip_address": ip,
                            "remote_mac": nic["mac"],
                            "successful": True,
                        }
                        for nic, ip in pairs
                    ],
                    "l3_connectivity": [
                        {
                            "outgoing_nic": "eth0",
                            "remote_ip_address": ip,
                            "successful": True,
                            "average_rtt_ms": 0.3,
                            "packet_loss_percentage": 0,
                        }
                        for __, ip in pairs
                    ],
                    "mtu_report": [
                        {"outgoing_nic": "eth0", "remote_ip_address": ip, "mtu_successful": True} for __, ip in pairs
                    ],
                }
            )
        return {"remote_hosts": peers}

    def do_free_network_addresses(self, args: list[str]) -> Any:
        return [{"network": cidr, "free_addresses": ["192.168.111.4", "192.168.111.5"]} for cidr in json.loads(args[0])]

    def do_verify_vips(self, args: list[str]) -> Any:
        return [{**vip, "verification": "succeeded"} for vip in json.loads(args[0])]

    def do_ntp_synchronizer(self, args: list[str]) -> Any:
        return {"ntp_sources": [{"source_name": "192.168.111.1", "source_state": "synced"}]}

    def do_domain_resolution(self, args: list[str]) -> Any:
        names = [entry["domain_name"] for entry in json.loads(args[0])["domains"]]
        return {
            "resolutions": [
                {
                    "domain_name": name,
                    "ipv4_addresses": [] if "validateNo" in name else ["192.168.111.20"],
                    "ipv6_addresses": [],
                    "cnames": [],
                }
                for name in names
            ]
        }

    def do_installation_disk_speed_check(self, args: list[str]) -> Any:
        return {"path": json.loads(args[0])["path"], "io_sync_duration": 2}

    def do_container_image_availability(self, args: list[str]) -> Any:
        images = json.loads(args[0])["images"]
        return {
            "images": [
                {"name": name, "result": "success", "size_bytes": 4e8, "time": 10, "download_rate": 100}
                for name in images
            ]
        }

    async def stage(self, stage: str, info: str = "", status: int = 200) -> Any:
        return await self.lab.call(
            "PUT",
            f"{self.path}/progress",
            {"current_stage": stage, "progress_info": info},
            status,
            headers=self.headers,
        )

    async def installation(self) -> None:
        code, content, __ = await self.lab.raw(
            "GET",
            f"/infra-env/{self.infra_env_id}/hosts/{self.id}/downloads/ignition",
            headers={**self.lab.headers, **self.headers},
        )
        assert code == 200, content
        self.ignition = json.loads(content)
        me = await self.lab.call("GET", f"/clusters/{self.install['cluster_id']}", headers=self.headers)
        stages = next(host for host in me["hosts"] if host["id"] == self.id)["progress_stages"]
        for stage in stages:
            await self.stage(stage)
            if stage == "Writing image to disk":
                await self.stage(stage, "50%")
            if stage == self.final:
                break
        self.done = True
