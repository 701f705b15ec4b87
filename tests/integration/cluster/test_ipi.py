"""`create cluster` of the lab payload without VMs: simulator, bootkube, kubelets and operators run; machines and Ironic are namespaces.

What a namespace cannot do is up to the e2e job: the ISO of the bootstrap machine, BMCs, Ironic and its agent, the written disk.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.ipi import __main__ as program
from ansible_collections.agentlab.ocp.payload.ipi import bootstrap, masters
from ansible_collections.agentlab.ocp.payload.ipi import lab as simulated
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import inputs, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import COMPONENTS

from .installation import in_namespace
from .lab import Host, Lab

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "keepalived", "kubectl", "openssl"))),
    reason="needs root, iproute2, keepalived, kubectl and openssl",
)
PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
VIP = "192.168.111.5"
ADDRESSES = {"bootstrap": "192.168.111.9", **{f"master-{number}": f"192.168.111.{20 + number}" for number in range(3)}}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path, VIP, {"OPERATOR_SETTLE_SECONDS": "0.2"})
    try:
        yield made
    finally:
        made.close()


def run_directory(path: Path) -> Path:
    plan, changes = rundir.prepare(path, "compact_ipi", PROFILES, "ostest", refuse=False)
    rundir.write([*changes, *inputs.prepare(plan, path)])
    images = {name: {"pullspec": f"lab/{name}"} for name in COMPONENTS}
    payload = {
        "version": "4.22.0-lab",
        "images": images,
        "iso": "/iso",
        "ironic": "/ironic",
        "ironic_images": "/images",
    }
    (path / simulated.PAYLOAD).write_text(json.dumps(payload))
    return path


class Provisioning:
    """In the place of Ironic: a deployed master is a namespace that boots from its disk."""

    def __init__(self, hosts: dict[str, Host]) -> None:
        self.hosts = hosts

    def __enter__(self) -> Provisioning:
        return self

    def __exit__(self, *__: object) -> None:
        return

    def enrol(self, node: Any, ca: Path, **more: object) -> None:
        assert node["bmc"]["password"]

    def provision(self, name: str, verb: str, wanted: str, more: dict[str, Any] | None = None) -> None:
        if more:
            self.hosts[name].boot_disk(more["configdrive"]["user_data"])


@pytest.mark.slow
def test_a_cluster_is_created(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_dir = run_directory(tmp_path / "run")
    hosts = {name: lab.add(name, address) for name, address in ADDRESSES.items()}
    removed: list[str] = []

    def remove(__: object) -> None:
        hosts["bootstrap"].power_off()
        removed.append("bootstrap")

    resolve = socket.getaddrinfo

    def names(host: Any, *more: Any, **others: Any) -> Any:
        return resolve(VIP if str(host).endswith(".test.metalkube.org") else host, *more, **others)

    monkeypatch.setattr(socket, "getaddrinfo", names)
    monkeypatch.setattr(bootstrap, "create", lambda __, config: hosts["bootstrap"].boot_live(config))
    monkeypatch.setattr(bootstrap, "destroy", remove)
    monkeypatch.setattr(masters, "service", lambda __: Provisioning(hosts))
    log = Log(run_dir, emit=lambda __: None)
    failures: list[BaseException] = []

    async def create() -> None:
        try:
            program.Installer(run_dir, log).create_cluster()
        except BaseException as error:
            failures.append(error)

    thread = in_namespace(lab.prefix, create)
    thread.join(420)
    reported = [text for level, text in log.lines if level != "debug"]
    assert not failures and not thread.is_alive(), (failures, reported)
    wanted = [
        "Creating infrastructure resources...",
        "Starting Ironic, on behalf of the bootstrap machine",
        "Waiting up to 20m0s",
        "API v1.35.0 up",
        "Waiting up to 1h0m0s",
        "  Baremetal control plane finished provisioning.",
        "Waiting up to 1h0m0s",
        "Destroying the bootstrap resources...",
        "Waiting up to 40m0s",
        "Waiting up to 30m0s",
        "All cluster operators have completed progressing",
        "Checking to see if there is a route at openshift-console/console...",
        "Install complete!",
    ]
    assert [text[: len(start)] for text, start in zip(reported, wanted, strict=False)] == wanted
    assert removed == ["bootstrap"]
    assert json.loads((run_dir / "metadata.json").read_text())["clusterName"] == "ostest"
