"""Machines outside of the cluster: what `validate` finds of those that are as planned, and of others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import outside
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile

PROFILE = {
    "topology": "sno",
    "outside_networks": [{"name": "outside0", "ipv4": "192.168.230.0/24"}],
    "machines": [
        {"name": "landing", "networks": [{"name": "outside0"}, {"name": "machine"}]},
        {
            "name": "client",
            "image": None,
            "disk_gib": 5,
            "vcpus": 2,
            "memory_mib": 1024,
            "networks": [{"name": "outside0"}],
        },
        {"name": "own", "image": "/srv/own.qcow2", "firmware": "bios", "networks": [{"name": "outside0"}]},
    ],
}
LANDING = "1 vCPUs, 512 MiB, uefi"
CLIENT = "2 vCPUs, 1024 MiB, uefi"
OWN = "1 vCPUs, 512 MiB, bios"
PLANNED = {
    "outside machine landing": f"running; {LANDING}; outside0: 192.168.230.70; onebm: 192.168.111.70",
    "outside machine client": f"running; {CLIENT}; outside0; disk of 5 GiB",
    "outside machine own": f"running; {OWN}; outside0; disk of 10 GiB over /srv/own.qcow2",
}


class Host:
    """A hypervisor: states of its domains, the network of each NIC, and who has which address."""

    def __init__(self) -> None:
        self.plan: Any = build.build(profile.complete(PROFILE), "one")
        self.states = {one["domain"]: "running" for one in self.plan["machines"]}
        self.networks = {
            one["domain"]: {nic["mac"]: nic["network"] for nic in one["nics"]} for one in self.plan["machines"]
        }
        landing = self.plan["machines"][0]
        self.neighbors = {address["ip"]: nic["mac"] for nic in landing["nics"] for address in nic["addresses"]}
        self.sizes = {"one_landing": (1, 512, "efi"), "one_client": (2, 1024, "efi"), "one_own": (1, 512, "")}
        self.disks = {"one_client": (5, ""), "one_own": (10, "/srv/own.qcow2")}
        self.asked: list[str] = []

    def command(self, words: list[str]) -> str:
        if words[0] == "ip":
            mac = self.neighbors.get(words[-1])
            return json.dumps([{"dst": words[-1], "state": ["REACHABLE"], **({"lladdr": mac} if mac else {})}])
        if words[1] == "vol-dumpxml":
            assert words[3:] == ["--pool", self.plan["hypervisor"]["pool"]]
            gib, image = self.disks[words[2]]
            below = f"<backingStore><path>{image}</path></backingStore>" if image else ""
            return f"<volume type='file'><capacity unit='bytes'>{gib << 30}</capacity>{below}</volume>"
        if words[1] == "domstate":
            return f"{self.states[words[2]]}\n\n"
        nics = "".join(
            f"<interface type='network'><mac address='{mac}'/><source network='{network}' bridge='b'/></interface>"
            for mac, network in self.networks[words[2]].items()
        )
        vcpus, mib, firmware = self.sizes[words[2]]
        efi = "<loader type='pflash'>f</loader>" if self.states[words[2]] == "running" else ""
        system = {"efi": f"<os>{efi}</os>" if efi else "<os firmware='efi'/>", "": "<os/>"}[firmware]
        size = f"<memory unit='KiB'>{mib << 10}</memory><vcpu>{vcpus}</vcpu>{system}"
        has_disk = words[2] in self.disks
        disk = f"<disk device='disk'><source pool='p' volume='{words[2]}'/></disk>" if has_disk else ""
        media = "<disk device='cdrom'><source pool='p' volume='iso'/></disk>"
        return f"<domain>{size}<devices>{nics}{disk}{media}</devices></domain>"

    def reach(self, address: str) -> None:
        self.asked.append(address)
        if address not in self.neighbors:
            raise OSError("No route to host")

    def found(self) -> dict[str, str]:
        made = [*outside.findings(self.plan, self.command, self.reach)]
        assert {one.subject: one.expected for one in made} == PLANNED
        return {one.subject: one.found for one in made if not one.ok}


def test_machines_as_planned() -> None:
    host = Host()
    assert host.found() == {}
    assert sorted(host.asked) == ["192.168.111.70", "192.168.230.70"], "an image of another system may have no server"


def test_a_machine_that_is_off() -> None:
    host = Host()
    host.states = dict.fromkeys(host.states, "shut off")
    assert host.found() == {
        "outside machine landing": f"shut off; {LANDING}; outside0: ; onebm: ",
        "outside machine client": f"shut off; {CLIENT}; outside0; disk of 5 GiB",
        "outside machine own": f"shut off; {OWN}; outside0; disk of 10 GiB over /srv/own.qcow2",
    }


def test_a_machine_in_another_network() -> None:
    host = Host()
    [mac] = host.networks["one_client"]
    host.networks["one_client"] = {mac: "onebm", "52:54:00:00:00:01": "outside0"}
    _first, second = host.networks["one_landing"]
    del host.networks["one_landing"][second]
    assert host.found() == {
        "outside machine landing": f"running; {LANDING}; outside0: 192.168.230.70; no network: 192.168.111.70",
        "outside machine client": f"running; {CLIENT}; onebm; outside0; disk of 5 GiB",
    }


@pytest.mark.parametrize("other", ["/srv/other.qcow2", ""])
def test_a_disk_over_another_image(other: str) -> None:
    host = Host()
    host.disks["one_own"] = (10, other)
    assert host.found() == {
        "outside machine own": f"running; {OWN}; outside0; disk of 10 GiB{f' over {other}' if other else ''}"
    }


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        ((1, 1024, "efi"), "1 vCPUs, 1024 MiB, uefi"),
        ((2, 1023, "efi"), "2 vCPUs, 1023 MiB, uefi"),
        ((2, 1024, ""), "2 vCPUs, 1024 MiB, bios"),
    ],
)
def test_another_size(size: tuple[int, int, str], shown: str) -> None:
    host = Host()
    host.sizes["one_client"] = size
    assert host.found() == {"outside machine client": f"running; {shown}; outside0; disk of 5 GiB"}


@pytest.mark.parametrize(
    ("disks", "shown"),
    [
        ({"one_client": (4, "")}, {"client": f"{CLIENT}; outside0; disk of 4 GiB"}),
        ({"one_client": (5, "/srv/own.qcow2")}, {"client": f"{CLIENT}; outside0; disk of 5 GiB over /srv/own.qcow2"}),
        (
            {"one_landing": (5, "")},
            {"landing": f"{LANDING}; outside0: 192.168.230.70; onebm: 192.168.111.70; disk of 5 GiB"},
        ),
    ],
)
def test_another_disk(disks: dict[str, tuple[int, str]], shown: dict[str, str]) -> None:
    host = Host()
    host.disks |= disks
    assert host.found() == {f"outside machine {name}": f"running; {found}" for name, found in shown.items()}


def test_addresses_that_it_does_not_have() -> None:
    host = Host()
    del host.neighbors["192.168.230.70"]
    host.neighbors["192.168.111.70"] = "52:54:00:00:00:01"
    assert host.found() == {
        "outside machine landing": f"running; {LANDING}; outside0: 192.168.230.70: No route to host; onebm: 192.168.111.70 of 52:54:00:00:00:01"
    }


@pytest.mark.parametrize("error", ["error: failed to get domain", "<"])
def test_machines_that_are_not_known(error: str) -> None:
    host = Host()

    def command(words: list[str]) -> str:
        if error == "<":
            return error
        raise OSError(error)

    found = [*outside.findings(host.plan, command, host.reach)]
    assert len(found) == 3 and all(one.found.startswith("unknown: ") for one in found)


def test_where_it_is_not_the_hypervisor() -> None:
    host = Host()

    def missing(words: list[str]) -> str:
        raise FileNotFoundError(words[0])

    assert [*outside.findings(host.plan, missing, host.reach)] == []
    host.plan["hypervisor"]["kind"] = "ssh"
    assert [*outside.findings(host.plan, host.command, host.reach)] == []


def test_a_plan_without_machines() -> None:
    plan = build.build(profile.complete({"topology": "sno"}), "one")
    assert [*outside.findings(plan, lambda words: Path(words[0]).read_text())] == []
