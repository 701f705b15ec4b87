"""Three masters and a worker: bootstrap, hand-over, the rendezvous host's reboot, and the loss of the leader."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.cluster.ignition import render

from .installation import in_namespace
from .lab import Host, Lab, cluster_model, host_model, signers, until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "keepalived", "kubectl", "openssl"))),
    reason="needs root, iproute2, keepalived, kubectl and openssl",
)
VIP = "192.168.111.5"
INGRESS = "192.168.111.4"
NAMES = {
    "master-0": "192.168.111.20",
    "master-1": "192.168.111.21",
    "master-2": "192.168.111.22",
    "worker-0": "192.168.111.23",
}
SETTINGS = {"OPERATOR_SETTLE_SECONDS": "0.2"}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, VIP, SETTINGS)
    try:
        yield made
    finally:
        made.close()


def ready(lab: Lab) -> set[str]:
    return {
        n["metadata"]["name"]
        for n in lab.objects("nodes")
        if any(c["type"] == "Ready" and c["status"] == "True" for c in n.get("status", {}).get("conditions", ()))
    }


def leader(hosts: dict[str, Host]) -> str:
    return next((name for name, host in hosts.items() if host.has(VIP)), "")


@pytest.mark.slow
def test_cluster_comes_up_and_survives(lab: Lab, tmp_path: Path) -> None:
    tls = signers(tmp_path / "tls")
    roles = {name: "worker" if name.startswith("worker") else "master" for name in NAMES}
    configs = render(
        cluster_model(control_plane_count=3, api_vips=[{"ip": VIP}], ingress_vips=[{"ip": INGRESS}]),
        [host_model(name, address, roles[name], name == "master-0") for name, address in NAMES.items()],
        tls,
        {"hyperkube": "lab/hyperkube"},
        SETTINGS,
        {},
        node_files={},
    )
    hosts = {name: lab.add(name, address) for name, address in NAMES.items()}
    bootkube = hosts["master-0"].boot_live(configs["bootstrap.ign"])
    lab.admin(tls, hosts["master-0"].root / "live/etc/kubernetes/ca.crt")
    until("the bootstrap API answers", lambda: lab.kubectl("get", "namespaces", check=False))
    assert leader(hosts) == "master-0"
    lab.kubectl("create", "configmap", "made-on-bootstrap", "--from-literal=a=b")

    for name in ("master-1", "master-2"):
        hosts[name].boot_disk(configs["master.ign"])
    until("two masters are ready", lambda: ready(lab) >= {"master-1", "master-2"})
    until("bootkube ends", lambda: bootkube.poll() is not None)
    assert bootkube.returncode == 0
    assert (hosts["master-0"].root / "live/opt/openshift/.bootkube.done").exists()
    first = leader(hosts)
    assert first in ("master-1", "master-2"), "the API's address moves to a master"
    assert lab.kubectl("get", "configmap", "made-on-bootstrap", "-o", "jsonpath={.data.a}") == "b"
    assert (
        lab.kubectl("get", "configmap", "-n", "kube-system", "bootstrap", "-o", "jsonpath={.data.status}") == "complete"
    )

    hosts["master-0"].shut_down()
    hosts["master-0"].boot_disk(configs["master.ign"])
    hosts["worker-0"].boot_disk(configs["worker.ign"])

    def all_ready() -> bool:
        lab.approve()
        return ready(lab) == set(NAMES)

    until("all nodes are ready", all_ready)
    until(
        "the version is there",
        lambda: (
            lab.kubectl(
                "get", "clusterversion", "version", "-o", "jsonpath={.status.conditions[?(@.type=='Available')].status}"
            )
            == "True"
        ),
    )
    assert not [
        o
        for o in lab.objects("clusteroperators")
        if not any(c["type"] == "Available" and c["status"] == "True" for c in o["status"]["conditions"])
    ]
    until("a worker routes", lambda: hosts["worker-0"].has(INGRESS), 20)
    assert [name for name in NAMES if hosts[name].has(INGRESS)] == ["worker-0"]

    # The leader, and a member that forwards writes to it.
    follower = next(name for name in ("master-1", "master-2") if name != leader(hosts))
    for address in (VIP, NAMES[follower]):
        assert " 0 failed, " in lab.conformance(address)

    # The leader loses power: nothing that was answered is lost.
    lab.kubectl("create", "configmap", "before-the-loss")
    hosts[first].power_off()
    until("another master leads", lambda: leader(hosts) not in ("", first), 20)
    until("it answers", lambda: "before-the-loss" in lab.kubectl("get", "configmaps", check=False), 30)
    lab.kubectl("create", "configmap", "after-the-loss")
    second = leader(hosts)
    hosts[first].boot_disk(None)
    until(
        "the lost master follows again",
        lambda: "epoch" in (tmp_path / f"{first}.log").read_text().rsplit("cluster begins", 1)[-1],
    )

    # And all members lose power.
    for host in hosts.values():
        host.power_off()
    for host in hosts.values():
        host.boot_disk(None)
    until("the API is back", lambda: "after-the-loss" in lab.kubectl("get", "configmaps", check=False), 60)
    assert second


async def balance(backends: list[str]) -> None:
    """A balancer of a user: passes 6443 and 22623 on to the first backend that is ready to be connected to."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    def handler(port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for backend in backends:
                try:
                    there = await asyncio.wait_for(asyncio.open_connection(backend, port), 1)
                except (TimeoutError, OSError):
                    continue
                await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))
                return
            writer.close()

        return handle

    for port in (6443, 22623):
        await asyncio.start_server(handler(port), "192.168.111.1", port)
    await asyncio.Event().wait()


def test_members_elect_without_a_virtual_address(tmp_path: Path) -> None:
    names = dict(list(NAMES.items())[:3])
    lab = Lab(tmp_path, "192.168.111.1", SETTINGS)
    try:
        tls = signers(tmp_path / "tls")
        models = [host_model(name, address, "master", name == "master-0") for name, address in names.items()]
        gateway = {"name": "virthost", "ipv4_addresses": ["192.168.111.1/24"]}
        inventory = json.loads(models[0]["inventory"])
        models[0]["inventory"] = json.dumps(
            {**inventory, "interfaces": [*inventory["interfaces"], gateway]}
        )  # for the certificate
        model = cluster_model(control_plane_count=3, platform={"type": "none"})
        configs = render(model, models, tls, {"hyperkube": "lab/hyperkube"}, SETTINGS, {}, node_files={})
        hosts = {name: lab.add(name, address) for name, address in names.items()}
        in_namespace(lab.prefix, lambda: balance(list(names.values())))
        bootkube = hosts["master-0"].boot_live(configs["bootstrap.ign"])
        lab.admin(tls, hosts["master-0"].root / "live/etc/kubernetes/ca.crt")
        until("the bootstrap API answers", lambda: lab.kubectl("get", "namespaces", check=False))
        for name in ("master-1", "master-2"):
            hosts[name].boot_disk(configs["master.ign"])
        until("bootkube ends", lambda: bootkube.poll() is not None, 90)
        assert bootkube.returncode == 0
        hosts["master-0"].shut_down()
        lab.kubectl("create", "configmap", "kept")
        hosts["master-0"].boot_disk(configs["master.ign"])

        def all_ready() -> bool:
            lab.approve()
            return ready(lab) == set(names)

        until("all masters are ready", all_ready)
        first = next(
            name for name in names if "leading: epoch" in (tmp_path / f"{name}.log").read_text() and name != "master-0"
        )
        hosts[first].power_off()
        until("the others continue", lambda: lab.kubectl("create", "configmap", "after", check=False), 60)
        assert "kept" in lab.kubectl("get", "configmaps")
    finally:
        lab.close()
