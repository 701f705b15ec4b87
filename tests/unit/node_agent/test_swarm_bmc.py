"""The BMCs of a swarm's hosts, driven by sushy as the role `boot` drives them, and by plain requests."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.bmc import address
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings, SwarmError
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.redfish.client import Bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted

from .test_swarm import FAST

SECONDS = 60


class Running:
    """A swarm in a thread: its result when it has ended, and its BMCs by name of the host."""

    def __init__(self, settings: Settings) -> None:
        self.root, self.swarm = f"http://127.0.0.1:{settings.bmc}", Swarm(settings)
        self.result: dict[str, Any] = {}
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        self.result = asyncio.run(asyncio.wait_for(self.swarm.run(), SECONDS))

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.root}{path}", timeout=SECONDS) as answer:
            return json.load(answer)

    def systems(self, count: int) -> dict[str, dict[str, Any]]:
        """The systems by name, as soon as there are so many."""
        end = time.monotonic() + SECONDS
        while True:
            assert time.monotonic() < end, "no systems"
            try:
                found = self.get("/redfish/v1/Systems")
                if found["Members@odata.count"] == count:
                    break
            except urllib.error.URLError:
                pass  # it does not listen yet
            time.sleep(0.02)
        return {system["Name"]: system for system in (self.get(one["@odata.id"]) for one in found["Members"])}

    def bmc(self, system: dict[str, Any], password: str = "any") -> Bmc:
        return Bmc(system["Name"], f"redfish-virtualmedia+{self.root}{system['@odata.id']}", "admin", password)

    def end(self) -> dict[str, Any]:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        return self.result


def image(swarm: Swarm, name: str) -> str:
    cluster = next(cluster for cluster in swarm.clusters if cluster.name == name.rpartition("-")[0])
    return f"http://127.0.0.1:9/byid/{cluster.infra_env_id}/4.22/x86_64/full.iso"


def test_hosts_appear_when_they_boot_the_image(service: FakeAssisted, port: str) -> None:
    running = Running(Settings(service.url, clusters=2, topology={"sno": 1}, bmc=port, **FAST))
    systems = running.systems(2)
    assert set(systems) == {"swarm-0-0", "swarm-1-0"} and not service.hosts
    first, second = (running.bmc(systems[name]) for name in sorted(systems))
    assert (first.power(), first.medium()) == ("off", None)
    first.power_on()  # without a medium it boots nothing
    assert first.insert(image(running.swarm, "swarm-0-0")) and not first.insert(image(running.swarm, "swarm-0-0"))
    assert first.power_off() and not service.hosts
    first.power_on()
    end = time.monotonic() + SECONDS
    while not service.hosts:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert set(service.hosts) == {systems["swarm-0-0"]["UUID"]}
    second.insert(image(running.swarm, "swarm-1-0"))
    second.power_on()
    assert running.end()["ends"] == {"installed": 2}
    assert running.result["operations"]["register"]["count"] == 2


def test_a_host_without_power_is_silent_and_comes_back(service: FakeAssisted, port: str) -> None:
    running = Running(Settings(service.url, topology={"sno": 1}, install=False, duration=20.0, bmc=port, **FAST))
    [system] = running.systems(1).values()
    bmc = running.bmc(system)
    bmc.insert(image(running.swarm, system["Name"]))
    for registrations in (1, 2):
        bmc.power_on()
        end = time.monotonic() + SECONDS
        while sum(method == "POST" and path.endswith("/hosts") for method, path in service.requests) < registrations:
            assert time.monotonic() < end
            time.sleep(0.02)
        bmc.power_off()
        assert running.swarm.hosts[0].silent
    running.swarm.stop()
    assert running.end()["resources"]["peak_agents"] == 1


def test_requests_that_are_refused(service: FakeAssisted, port: str) -> None:
    settings = Settings(service.url, topology={"sno": 1}, bmc=port, bmc_password="right", duration=20.0, **FAST)
    running = Running(settings)
    end = time.monotonic() + SECONDS
    while not running.swarm.hosts:
        assert time.monotonic() < end
        time.sleep(0.02)
    path = f"/redfish/v1/Systems/{running.swarm.hosts[0].me.host_id}"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        running.get(path)
    system = {"Name": "swarm-0-0", "@odata.id": path}
    with pytest.raises(LabError, match="refuses the credentials"):
        running.bmc(system, "wrong")
    bmc = running.bmc(system, "right")
    with pytest.raises(LabError, match=r"Image http://x/00000000-.*: swarm-0-0 belongs to infra-env "):
        bmc.insert("http://x/00000000-0000-0000-0000-000000000000.iso")
    with pytest.raises(LabError, match="must be an http or https URL"):
        bmc.insert("file:///etc/passwd")
    word = {"Authorization": "Basic " + base64.b64encode(b"admin:right").decode()}
    for method, what, body, status in (
        ("POST", f"{path}/Actions/ComputerSystem.Reset", b'{"ResetType": "Nmi"}', 400),
        ("POST", f"{path}/Actions/ComputerSystem.Reset", b"{" * 1000, 400),
        ("POST", f"{path}/Actions/ComputerSystem.Reset", b'{"ResetType": []}', 400),
        ("POST", f"{path}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", b'{"Image": "http://[x/a.iso"}', 400),
        ("PATCH", path, b'{"Boot": {"BootSourceOverrideTarget": {}}}', 400),
        ("POST", f"{path}/Actions/ComputerSystem.Reset", b"x" * 100_000, 413),
        ("PATCH", path, b'{"Boot": {"BootSourceOverrideTarget": "Moon"}}', 400),
        ("DELETE", path, b"", 405),
        ("GET", f"{path}/Memory", None, 404),
        ("GET", "/redfish/v1/Systems/x", None, 404),
        ("GET", "/redfish/v2", None, 404),
    ):
        request = urllib.request.Request(f"{running.root}{what}", body, word, method=method)
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request, timeout=SECONDS)
        assert caught.value.code == status, what
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(urllib.request.Request(f"{running.root}{path}", headers={"Authorization": "Basic \xe4"}))
    running.swarm.stop()
    running.end()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", r"--bmc 'x': must be ADDRESS:PORT"),
        ("0", r"--bmc '0': must be ADDRESS:PORT"),
        ("127.0.0.1:70000", r"must be ADDRESS:PORT, or a port from 1 to 65535"),
        ("0.0.0.0:8000", r"--bmc 0.0.0.0:8000: needs a password in BMC_PASSWORD"),
    ],
)
def test_addresses_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(SwarmError, match=message):
        Swarm(Settings("http://127.0.0.1:9", bmc=text))


def test_addresses() -> None:
    assert address("8000") == ("127.0.0.1", 8000)
    assert address("[::1]:8000") == ("::1", 8000)


def test_a_port_that_is_taken_is_named_before_anything_is_registered(service: FakeAssisted) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = str(server.getsockname()[1])
        with pytest.raises(SwarmError, match=rf"^--bmc {taken}: Address already in use; choose another port$"):
            asyncio.run(Swarm(Settings(service.url, bmc=taken, **FAST)).run())
    assert not service.requests


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_of_this_machine(service: FakeAssisted, host: str) -> None:
    settings = Settings(service.url, bmc=f"{host}:8000", bmc_password="x", **FAST)
    with pytest.raises(SwarmError, match=rf"^--bmc {host}:8000: [^()]+; must be an address of this machine$"):
        asyncio.run(Swarm(settings).run())


def test_hosts_that_are_switched_on_have_no_ramp_up() -> None:
    with pytest.raises(SwarmError, match="--ramp-up: cannot be used with --bmc"):
        Settings("http://x", bmc="8000", ramp_up=1.0)
