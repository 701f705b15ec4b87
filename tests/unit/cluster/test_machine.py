"""Checks of the nodes' hardware: what agrees with a plan, and what does not."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import machine
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
GIB = 1 << 30
UUID = "11111111-2222-4333-8444-555555555555"
TWO_PATHS = "topology: sno\nmaster: {firmware: bios}\nboot: {mode: iscsi, paths: 2}\n"


@pytest.fixture
def plan() -> Any:
    return build.build(profile.load("compact_disks", PROFILES), "ostest")


def size(node: dict[str, Any]) -> dict[str, str]:
    """Lines about the machine itself; a node of the lab with 4096 MiB reported 4008504 kB."""
    memory = f"MemTotal: {round(node['memory_mib'] * 1024 * 0.956)} kB"
    return {"vcpus": str(node["vcpus"]), "memory": memory, "uuid": node["uuid"]}


def answer(node: dict[str, Any], root: int, **words: str) -> str:
    """Output of `COMMAND` on a node that was installed to its disk number `root`."""
    reported = {"name": node["name"], "firmware": "uefi", "secure": "   0", "tpm": "", **size(node), **words}
    there = [
        {
            "name": disk["target"],
            "type": "disk",
            "tran": disk["bus"] if disk["bus"] in ("sata", "virtio") else None,
            "serial": disk["serial"],
            "size": disk["size_gib"] * GIB,
            "mountpoints": [None],
            "children": [{"name": "p", "type": "part", "size": 1, "mountpoints": ["/boot"]}] if number == root else [],
        }
        for number, disk in enumerate(node["disks"])
    ]
    more = [
        {"name": "sr0", "type": "rom", "tran": "sata", "serial": "QM00001", "size": 1, "mountpoints": [None]},
        {"name": "sdx", "type": "disk", "tran": "usb", "serial": "1", "size": 5 * GIB, "mountpoints": [None]},
    ]
    return (
        "\n".join(f"{key} {value}" for key, value in reported.items())
        + "\n"
        + json.dumps({"blockdevices": there + more})
    )


def wrong(node: dict[str, Any], text: str) -> dict[str, tuple[str, str]]:
    found = machine.findings(node, machine.read(text, node["name"]))
    return {one.subject: (one.expected, one.found) for one in found if not one.ok}


@pytest.mark.parametrize(("number", "root"), [(0, 5), (1, 2), (2, 2)])
def test_as_planned(plan: Any, number: int, root: int) -> None:
    node = plan["nodes"][number]
    assert wrong(node, answer(node, root)) == {}
    seen = machine.look(plan, node, lambda address, command: answer(node, root))
    assert (seen.problem, seen.firmware, seen.secure_boot, seen.tpm) == ("", "uefi", "disabled", "none")


def test_another_disk(plan: Any) -> None:
    node = plan["nodes"][0]
    expected, found = wrong(node, answer(node, 4))["root disk"]
    assert "model FAST-1" in expected and "SSD" in expected
    assert found.startswith("sde (vendor AGENTLAB, model FAST-1, serial ") and found.endswith("HDD)")
    assert wrong(node, answer(node, 99))["root disk"][1] == "no disk with /boot"


@pytest.mark.parametrize(
    ("words", "subject", "found"),
    [
        ({"name": "master-0"}, "host name", ("control-0", "master-0")),
        ({"firmware": "bios"}, "firmware", ("uefi", "bios")),
        ({"tpm": "2"}, "TPM", ("none", "2.0")),
        ({"vcpus": "1"}, "vCPUs", ("2", "1")),
        ({"vcpus": "4"}, "vCPUs", ("2", "4")),
        ({"vcpus": ""}, "vCPUs", ("2", "unknown")),
        ({"memory": "MemTotal: 2621440 kB"}, "memory", ("3072 MiB", "2560 MiB")),
        ({"memory": "MemTotal: 4008504 kB"}, "memory", ("3072 MiB", "3915 MiB")),
        ({"memory": ""}, "memory", ("3072 MiB", "unknown")),
        ({"uuid": "6e9a7c3b-2d1f-4b8e-9a55-0c4de1f7a2b3"}, "UUID", (UUID, "6e9a7c3b-2d1f-4b8e-9a55-0c4de1f7a2b3")),
        ({"uuid": ""}, "UUID", (UUID, "unknown")),
    ],
)
def test_another_machine(plan: Any, words: dict[str, str], subject: str, found: tuple[str, str]) -> None:
    node = plan["nodes"][0]
    node["uuid"] = UUID
    assert wrong(node, answer(node, 5, **words)) == {subject: found}


@pytest.mark.parametrize(("kib", "ok"), [(3145728, True), (2752512, True), (2752511, False), (3145729, False)])
def test_the_kernel_keeps_up_to_an_eighth_of_the_memory(plan: Any, kib: int, ok: bool) -> None:
    node = plan["nodes"][0]
    assert node["memory_mib"] == 3072
    assert (wrong(node, answer(node, 5, memory=f"MemTotal:        {kib} kB")) == {}) == ok


def test_a_machine_prints_its_size(tmp_path: Path) -> None:
    """The command itself, on this host."""
    for name, text in (("sudo", 'exec "$@"'), ("lsblk", """echo '{"blockdevices": []}'""")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    printed = subprocess.run(
        ["sh", "-c", machine.COMMAND],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    ).stdout
    seen = machine.read(printed, "host")
    assert seen.vcpus == os.cpu_count()
    assert f"MemTotal: {seen.memory_kib} kB" in " ".join(Path("/proc/meminfo").read_text().split())


def leases(given: dict[str, Any], printed: str) -> dict[str, tuple[str, str]]:
    """Return what is wrong with the leases of a single node: its planned and other text."""
    plan: Any = build.build(profile.complete({"topology": "sno", **given}), "ostest")
    node = plan["nodes"][0]
    found = list(machine.leases(plan, node, machine.read(answer(node, 0, leases=printed), "master-0")))
    return {one.subject: (one.expected, one.found) for one in found if not one.ok}


FOUR, SIX = "192.168.111.20", "fd2e:6f44:5dd8:c956::14"


@pytest.mark.parametrize(
    ("left", "found"),
    [(1800, None), (900, None), (870, None), (1801, "30.0 minutes left"), (3540, "59.0 minutes left"), (860, "14.3 minutes left")],
)  # fmt: skip
def test_leases_of_another_time(left: int, found: str | None) -> None:
    """A kernel has what is left of it, which is half before a renewal."""
    given = {"stack": "dualstack", "network": {"lease_minutes": 30}}
    expected = {f"lease of {SIX}": ("30 minutes", found)} if found else {}
    assert leases(given, f"{FOUR}=1700 {SIX}={left} fd2e::99=9") == expected


def test_addresses_that_are_not_leased() -> None:
    nothing = {f"lease of {FOUR}": ("60 minutes", "no lease")}
    assert leases({}, "") == leases({}, "192.168.111.99=3600") == nothing
    assert leases({"addressing": "static"}, "") == {}
    assert leases({"stack": "ipv6", "addressing": "slaac"}, "") == {}
    assert leases({"boot": {"mode": "iscsi"}, "master": {"firmware": "bios"}}, "") == {}


def test_a_node_prints_its_leases(tmp_path: Path) -> None:
    """The command itself, with what ip(8) prints of a node."""
    shown = (
        f"2: enp1s0    inet {FOUR}/24 brd 192.168.111.255 scope global dynamic noprefixroute enp1s0\\       valid_lft 3423sec preferred_lft 3423sec\n"
        f"2: enp1s0    inet6 {SIX}/128 scope global dynamic noprefixroute \\       valid_lft 1780sec preferred_lft 1780sec\n"
        "2: enp1s0    inet6 fd00::9/64 scope global dynamic \\       valid_lft forever preferred_lft forever\n"
    )
    (tmp_path / "shown").write_text(shown)
    (tmp_path / "ip").write_text(f"#!/bin/sh\n[ \"$*\" = '-oneline address show dynamic' ] && cat {tmp_path}/shown\n")
    (tmp_path / "ip").chmod(0o755)
    command = machine.COMMAND[machine.COMMAND.index("echo leases") : machine.COMMAND.index("lsblk")]
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
    )
    assert done.stdout == f"leases {FOUR}=3423 {SIX}=1780\n"


def test_a_uuid_in_capital_letters_is_the_same(plan: Any) -> None:
    node = plan["nodes"][0]
    assert not wrong(node, answer(node, 5, uuid=node["uuid"].upper()))


def test_of_an_existing_machine_name_and_a_serial_number_are_known(plan: Any) -> None:
    node = plan["nodes"][1]
    text = answer(node, 2, firmware="bios", tpm="2", vcpus="64", memory="MemTotal: 9 kB", uuid=UUID)
    node |= {"bare_metal": True, "disks": node["disks"][:1], "root_device": None, "root_device_hints": {}}
    assert wrong(node, text) == {}
    node["root_device_hints"] = {"serial_number": "S-9"}
    assert wrong(node, text)["root disk"][0] == "S-9"
    assert "host name" in wrong(node, text.replace("control-1", "other"))


def test_a_disk_less(plan: Any) -> None:
    node = plan["nodes"][1]
    text = answer(node, 2)
    node["disks"].append({**node["disks"][0], "size_gib": 7})
    assert wrong(node, text) == {"disks": ("7 GiB scsi" + 3 * ", 20 GiB scsi", "20 GiB scsi, 20 GiB scsi, 20 GiB scsi")}


@pytest.mark.parametrize("bus", ["scsi", "sata", "virtio"])
def test_disks_of_another_bus(bus: str) -> None:
    given: Any = profile.complete({"topology": "sno", "master": {"disk_bus": bus}})
    node: Any = build.build(given, "ostest")["nodes"][0]
    assert wrong(node, answer(node, 0)) == {}
    for other in {"scsi", "sata", "virtio"} - {bus}:
        target = "vda" if other == "virtio" else "sda"
        text = answer({**node, "disks": [{**node["disks"][0], "bus": other, "target": target}]}, 0)
        assert wrong(node, text) == {"disks": (f"20 GiB {bus}", f"20 GiB {other}")}


@pytest.mark.parametrize(
    "text", ["", "name a\n", "name a\nfirmware uefi\nsecure \ntpm \n", "name a\nfirmware x\nsecure\ntpm\n{}"]
)
def test_other_output_is_a_problem(plan: Any, text: str) -> None:
    assert machine.look(plan, plan["nodes"][0], lambda address, command: text).problem


@pytest.mark.parametrize(("variable", "found"), [("   1", None), ("   0", "disabled"), ("", "not supported")])
def test_secure_boot(plan: Any, variable: str, found: str | None) -> None:
    node = plan["nodes"][1]
    node["secure_boot"] = True
    text = answer(node, 2, secure=variable)
    assert wrong(node, text) == ({"secure boot": ("enabled", found)} if found else {})


def test_installed_to_a_lun() -> None:
    node: Any = build.build(profile.load("sno_iscsi", PROFILES), "ostest")["nodes"][0]
    iqn = node["disks"][0]["iqn"]
    local = answer(node, 0, firmware="bios")
    text = local.replace('"tran": null', '"tran": "iscsi"').replace("tpm ", f"iscsi {iqn}\ntpm ")
    assert wrong(node, text) == {}
    assert wrong(node, local) == {
        "disks": ("20 GiB iscsi", "20 GiB scsi"),
        "root disk": (f"LUN of {iqn}", f"local disk {node['disks'][0]['serial']}"),
    }
    assert wrong(node, text.replace(iqn, "iqn.other")) == {"root disk": (f"LUN of {iqn}", "LUN of iqn.other")}


def test_installed_to_a_multipath_device() -> None:
    """The output was recorded in a machine, but for its size, and the states of a path that was lost there."""
    options = profile.validated_profile(profile.parse(TWO_PATHS, "p.yml"), "multipath")
    node: Any = build.build(options, "multipath")["nodes"][0]
    lines = "".join(f"{key} {value}\n" for key, value in size(node).items())
    text = lines + (Path(__file__).parent / "multipath.txt").read_text()
    assert wrong(node, text) == {}
    for lost in (
        text.replace("active:running:ready", "failed:offline:faulty", 1),
        text.replace(" mpatha:active:running:ready", "", 1),
    ):
        assert wrong(node, lost) == {"active paths to the root disk": ("2", "1")}
    alone = text.replace('"type": "mpath"', '"type": "part"')
    assert wrong(node, alone)["active paths to the root disk"] == ("2", "0")
