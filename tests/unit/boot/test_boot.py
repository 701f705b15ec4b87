"""Which machines are booted, in what order, and what a second call does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.redfish.address import parse
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc, sequence
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError


@pytest.mark.parametrize(
    ("address", "root", "system"),
    [
        (
            "redfish-virtualmedia+https://192.168.111.1:8000/redfish/v1/Systems/1",
            "https://192.168.111.1:8000",
            "/redfish/v1/Systems/1",
        ),
        ("redfish+http://[fd00::1]:8000/redfish/v1/Systems/1/", "http://[fd00::1]:8000", "/redfish/v1/Systems/1"),
        ("redfish-virtualmedia://bmc.example/redfish/v1/Systems/a", "https://bmc.example", "/redfish/v1/Systems/a"),
        (
            "idrac-virtualmedia+https://bmc.example/redfish/v1/Systems/E.1",
            "https://bmc.example",
            "/redfish/v1/Systems/E.1",
        ),
        ("https://bmc.example", "https://bmc.example", None),
    ],
)
def test_address(address: str, root: str, system: str | None) -> None:
    assert parse(address) == (root, system)


@pytest.mark.parametrize(
    "address", ["ipmi://192.168.111.1:6230", "redfish+ftp://x/1", "https://", "192.168.111.1", "ipmi+https://x/1"]
)
def test_invalid_address(address: str) -> None:
    with pytest.raises(LabError, match=re.escape(f"BMC address {address}: ")):
        bmc.connect("master-0", address, "admin", "password")


class Machine:
    """A machine that remembers what was done to it."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log, self.state, self.image = name, log, "off", ""

    def power(self) -> str:
        return self.state

    def power_on(self) -> bool:
        self.log.append(f"{self.name} on")
        self.state = "on"
        return True

    def power_off(self) -> bool:
        if self.state == "off":
            return False
        self.log.append(f"{self.name} off")
        self.state = "off"
        return True

    def insert(self, url: str) -> bool:
        self.log.append(f"{self.name} insert {url}")
        self.image = url
        return True

    def eject(self) -> bool:
        had, self.image = self.image, ""
        return bool(had)

    def boot_from_cd(self) -> None:
        assert self.image


class Room:
    def __init__(self, directory: Path) -> None:
        self.directory, self.log = directory, list[str]()
        names = ("worker-0", "master-0", "master-1")
        self.machines = {name: Machine(name, self.log) for name in names}
        nodes: list[Any] = [{"name": name} for name in names]
        self.nodes = sequence.order(nodes, "master-0")

    def boot(self, image: str, **options: Any) -> list[str]:
        def blank(node: Mapping[str, Any]) -> None:
            assert self.machines[node["name"]].state == "off"
            self.log.append(f"{node['name']} blank")

        def pick(node: Mapping[str, Any]) -> sequence.Image:
            return sequence.Image(f"http://x/{image}", image)

        done = sequence.boot(
            self.nodes, lambda node: self.machines[node["name"]], pick, self.directory, blank, **options
        )
        return [change["name"] for change in done]


def test_rendezvous_host_goes_first(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert room.boot("a") == ["master-0", "worker-0", "master-1"]
    starts = [line for line in room.log if line.endswith(" on")]
    assert starts[0] == "master-0 on"
    assert len(starts) == 3


def test_second_boot_changes_nothing(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.boot("a")
    room.log.clear()
    assert room.boot("a") == []
    assert room.log == []


def test_one_that_is_off_is_switched_on_as_it_is(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.boot("a")
    room.log.clear()
    room.machines["master-1"].state = "off"
    assert room.boot("a") == ["master-1"]
    assert room.log == ["master-1 on"]


def test_new_image_is_a_redeploy(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.boot("a")
    room.log.clear()
    assert len(room.boot("b")) == 3
    assert [line for line in room.log if line.startswith("master-0")] == [
        "master-0 off",
        "master-0 blank",
        "master-0 insert http://x/b",
        "master-0 on",
    ]


def test_interrupted_boot_continues(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def fail() -> bool:
        raise LabError("no power")

    room.machines["master-1"].power_on = fail
    with pytest.raises(LabError, match="no power"):
        room.boot("a")
    del room.machines["master-1"].power_on
    room.log.clear()
    assert "master-0" not in room.boot("a")
    assert room.log[-1] == "master-1 on"


def test_check_touches_nothing(tmp_path: Path) -> None:
    room = Room(tmp_path)
    assert len(room.boot("a", check=True)) == 3
    assert room.log == [] and not list(tmp_path.iterdir())


def test_eject(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.boot("a")
    room.machines["worker-0"].eject()
    assert sequence.eject(room.nodes, lambda node: room.machines[node["name"]]) == ["master-0", "master-1"]


def test_release_switches_off_first(tmp_path: Path) -> None:
    """A BMC may refuse to eject while the machine is on."""
    room = Room(tmp_path)
    room.boot("a")
    for machine in room.machines.values():
        machine.eject = lambda one=machine: (one.log.append(f"{one.name} eject in {one.state}"), True)[1]
    room.log.clear()
    assert sequence.release(room.nodes[:1], lambda node: room.machines[node["name"]]) == ["master-0"]
    assert room.log == ["master-0 off", "master-0 eject in off"]


def test_release_tries_all(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.boot("a")

    def reach(node: Mapping[str, Any]) -> Machine:
        if node["name"] == "worker-0":
            raise LabError("BMC of worker-0: cannot connect: No route to host")
        return room.machines[node["name"]]

    with pytest.raises(LabError, match="BMC of worker-0: cannot connect"):
        sequence.release(room.nodes, reach)
    assert room.machines["master-0"].state == room.machines["master-1"].state == "off"


def test_image_identity_changes_with_the_file(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_text("a")
    before = sequence.identity([image])
    assert sequence.identity([image]) == before
    image.write_text("ab")
    assert sequence.identity([image]) != before
