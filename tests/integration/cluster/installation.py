"""Whole installations without VMs: the real service, installer, bootkube, kubelets and controller; agents and disks are played."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shutil
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from ansible_collections.agentlab.ocp.payload.api_server import install_config, prepare, release
from ansible_collections.agentlab.ocp.payload.api_server.app import Service
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.api_server.store import Store
from ansible_collections.agentlab.ocp.payload.cluster.facts import host_facts
from ansible_collections.agentlab.ocp.payload.cluster.ignition import render
from ansible_collections.agentlab.ocp.payload.tools import openshift_install

from tests.unit.api_server import lab as rest

from .lab import PACKAGE, PYTHON, Host, Lab, until

SETTINGS = {
    "OPERATOR_SETTLE_SECONDS": "0.2",
    "INSTALLER_POLL_SECONDS": "1",
    "CONTROLLER_POLL_SECONDS": "1",
    "REBOOT_DELAY_SECONDS": "1",
}
_PROGRAMS = {
    "coreos-installer": """
while [ $# -gt 1 ]; do [ "$1" = -i ] && cp "$AGENTLAB_HOST_ROOT$2" "$AGENTLAB_HOST_ROOT/disk.ign"; shift; done
for p in 0 3 6 40 52 99 100; do printf '> Read disk 1.2 GiB/2.3 GiB (%s%%)   \\r' $p >&2; sleep 0.1; done
echo 'Install complete.' >&2
""",
    "systemctl": """
case "$*" in
  start*bootkube*) touch "$AGENTLAB_HOST_ROOT/start-bootkube" ;;
  is-failed*) echo active; exit 1 ;;
esac
""",
    **dict.fromkeys(("systemd-run", "shutdown"), 'touch "$AGENTLAB_HOST_ROOT/reboot"\n'),
    "podman": f"""
case "$*" in
  run*assisted-installer-controller)
    exec {PYTHON} {Path(__file__).parent}/container.py "$@" ;;
esac
""",
    **dict.fromkeys(("wipefs", "dd", "hostnamectl", "journalctl", "dmesg", "mount", "lsblk"), ":\n"),
}


def in_namespace(name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> threading.Thread:
    """Run an event loop in a thread that is in a network namespace."""

    def run() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        with Path(f"/run/netns/{name}").open() as namespace:
            assert libc.setns(namespace.fileno(), 0x40000000) == 0, os.strerror(ctypes.get_errno())
        asyncio.run(work())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class _Remote(rest.Lab):
    """The agents' way to a service that runs elsewhere."""

    def __init__(self, base: str) -> None:
        self.base = base
        self.headers = {}

    async def __aenter__(self) -> _Remote:
        self.session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *__: Any) -> None:
        await self.session.close()

    def url(self, path: str) -> str:
        return self.base + (path if path.startswith("/api") else rest.V2 + path)


class _Agent(rest.Agent):
    """Starts the real installer, in the host's namespace, on request."""

    def __init__(self, lab: rest.Lab, infra_env_id: str, index: int, host: Host, base: str) -> None:
        name = host.name
        super().__init__(lab, infra_env_id, index, hostname=name)
        self.inventory["interfaces"][0]["ipv4_addresses"] = [f"{host.address}/24"]
        self.host, self.base = host, base

    async def installation(self) -> None:
        request, live = self.install, self.host.root / "live"
        live.mkdir(parents=True, exist_ok=True)
        (live / "var/log").mkdir(parents=True, exist_ok=True)
        self.host.run(
            PYTHON,
            "-m",
            f"{PACKAGE}.orchestrator.installer",
            "--role",
            request["role"],
            "--infra-env-id",
            request["infra_env_id"],
            "--cluster-id",
            request["cluster_id"],
            "--host-id",
            request["host_id"],
            "--boot-device",
            request["boot_device"],
            "--url",
            self.base,
            "--control-plane-count",
            str(request["control_plane_count"]),
            "--installer-args",
            request.get("installer_args") or "[]",
            "--insecure",
            AGENTLAB_HOST_ROOT=str(live),
            AGENTLAB_HOST_COMMAND="",
            PULL_SECRET_TOKEN="token",
        )
        self.done = True


def through_openshift_install(folder: Path) -> Callable[..., dict[str, Any]]:
    """Return a function like `render` that calls the lab's openshift-install in the order of the real assisted service."""

    def made(
        cluster: dict[str, Any],
        hosts: list[dict[str, Any]],
        tls: Path,
        images: dict[str, str],
        settings: dict[str, str],
        manifests: dict[str, str],
        **__: Any,
    ) -> dict[str, Any]:
        shutil.copytree(tls, folder / "tls")
        job = prepare.Job(cluster, hosts, tls, images, settings, manifests, {}, None, False, "agent-installer")
        (folder / "install-config.yaml").write_text(install_config.text(job.cluster, job.hosts))
        [first] = [host for host in hosts if host.get("bootstrap")]
        environment = {
            "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE": "lab/release",
            "OPENSHIFT_INSTALL_INVOKER": "agent-installer",
            "OPENSHIFT_INSTALL_LOAD_CLUSTER_CERTS": "true",
            "OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP": host_facts(first)["addresses"][0],
        }
        openshift_install.create_manifests(folder, environment)
        lab_settings = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "agentlab-settings", "namespace": "default"},
            "data": settings,
        }
        (folder / "openshift/settings.yaml").write_text(json.dumps(lab_settings))
        single = sum(host["role"] == "master" for host in hosts) == 1
        with pytest.MonkeyPatch.context() as patch:
            found = release.Contents(cluster["openshift_version"], images)
            patch.setattr(openshift_install, "contents", lambda *_: found)
            patch.setattr(openshift_install.ignition, "live_node_files", dict)
            openshift_install.create_ignition(folder, environment, single)
        if single:
            (folder / openshift_install.SINGLE).rename(folder / "bootstrap.ign")
            for role in ("master", "worker"):  # as the service does: the bootstrap host makes its own
                (folder / f"{role}.ign").write_text('{"ignition": {"version": "3.2.0"}}')
        return {path.name: json.loads(path.read_text()) for path in folder.glob("*.ign")}

    return made


class Installation:
    """One installation. `on_host`: the service runs on the first host and ends with it."""

    limits: dict[str, str] = {}  # noqa: RUF012 - of the service
    render: Callable[..., dict[str, Any]] = staticmethod(render)
    events: list[tuple[str, dict[str, Any]]]

    def __init__(self, lab: Lab, tls: Path, roles: dict[str, str], *, on_host: bool, **cluster: Any) -> None:
        self.events = []
        self.lab, self.roles, self.on_host, self.cluster_fields, self.tls = lab, roles, on_host, cluster, tls
        for name, text in _PROGRAMS.items():
            program = lab.directory / "bin" / name
            program.write_text(f"#!/bin/sh\n{text}")
            program.chmod(0o755)
        self.hosts = {name: lab.add(name, f"192.168.111.{20 + index}") for index, name in enumerate(roles)}
        first = next(iter(self.hosts.values()))
        address, self.service_namespace = (first.address, first.namespace) if on_host else ("192.168.111.1", lab.prefix)
        self.base = f"http://{address}:8090"
        self.cluster: dict[str, Any] = {}
        self.stages: dict[str, list[str]] = {name: [] for name in roles}
        self.rebooted: set[str] = set()
        self.failure: BaseException | None = None
        self._stop_service = threading.Event()

    def run(self) -> None:
        """Continue until every host runs from its disk."""
        in_namespace(self.service_namespace, self._serve)
        in_namespace(self.lab.prefix, self._drive)
        until("every host runs from its disk", self._reboots, 150)

    def _reboots(self) -> bool:
        if self.failure:
            raise self.failure
        for name, host in self.hosts.items():
            live = host.root / "live"
            if (live / "start-bootkube").exists():
                (live / "start-bootkube").unlink()
                self.lab.admin(self.tls, live / "etc/kubernetes/ca.crt")
                host.python(
                    "cluster.hyperkube",
                    "kube-apiserver",
                    "--bootstrap",
                    "--config-dir",
                    live / "etc/kubernetes",
                    "--run-dir",
                    live / "run/agentlab",
                    "--bootstrap-dir",
                    live / "opt/openshift",
                )
                host._resolve(live)
            if (live / "reboot").exists() and name not in self.rebooted:
                self.rebooted.add(name)
                if self.on_host and host is next(iter(self.hosts.values())):
                    self._stop_service.set()
                host.shut_down()
                threading.Thread(
                    target=host.boot_disk, args=(json.loads((live / "disk.ign").read_text()),), daemon=True
                ).start()
        return self.rebooted == set(self.hosts)

    async def _serve(self) -> None:
        folder = self.lab.directory / "service"
        folder.mkdir()
        env = {
            **rest.ENV,
            "SERVICE_BASE_URL": self.base,
            "PULL_SECRET_TOKEN": "token",
            "EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR": str(self.tls),
            "BOOTSTRAP_HOST_MAC": "52:54:00:00:00:00",
            "INSTALL_INVOKER": "agent-installer" if self.on_host else "assisted-installer",
            **SETTINGS,
            **self.limits,
        }
        env.pop("DUMMY_IGNITION")
        engine = Engine(Config(env, folder, folder / "state.sqlite").check(), Store(folder / "state.sqlite"))
        engine.render = lambda *a, **k: self.render(*a[:4], {**a[4], **SETTINGS}, *a[5:], **{**k, "node_files": {}})
        engine.start_release = lambda cluster: cluster.update({"_images": {"hyperkube": "lab/hyperkube"}})
        event = engine.event

        def record(name: str, **fields: Any) -> None:
            event(name, **fields)
            self.events.append((name, fields))
            if name == "host_install_progress_updated":
                self.stages[engine.hostname(fields["host"])].append(
                    fields["event"].removeprefix("reached installation stage ")
                )

        engine.event = record
        runner = web.AppRunner(Service(engine).app(), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "0.0.0.0", 8090).start()
        while not self._stop_service.is_set():
            await asyncio.sleep(0.1)
        await runner.cleanup()

    async def _drive(self) -> None:
        try:
            async with _Remote(self.base) as lab:
                await self._install(lab)
        except BaseException as error:
            if not self._stop_service.is_set():
                self.failure = error

    async def _install(self, lab: rest.Lab) -> None:
        for __ in range(50):
            try:
                cluster = await lab.cluster(base_dns_domain="test.metalkube.org", **self.cluster_fields)
                break
            except aiohttp.ClientError:
                await asyncio.sleep(0.2)
        infra_env = await lab.infra_env(cluster["id"])
        agents = [
            _Agent(lab, infra_env["id"], index, host, self.base) for index, host in enumerate(self.hosts.values())
        ]
        tasks = [asyncio.create_task(agent.run()) for agent in agents]
        path = f"/clusters/{cluster['id']}"
        await lab.until(path, lambda c: len(c["hosts"]) == len(agents))
        for agent, role in zip(agents, self.roles.values(), strict=True):
            await lab.call(
                "PATCH", agent.path, {"host_role": role, "node_labels": [{"key": "zone", "value": role}]}, 201
            )
        await lab.until(path, lambda c: c["status"] == "ready")
        await lab.call("POST", f"{path}/actions/install", status=202)
        while True:
            self.cluster = await lab.call("GET", path)
            for task in tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.1)
