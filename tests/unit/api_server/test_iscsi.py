"""Disks of a host that are iSCSI LUNs: which of them may be installed to."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import inventory

DEFAULT = {"destination": "0.0.0.0", "gateway": "192.168.111.1", "interface": "eth0", "family": 2, "metric": 100}
HOST = {
    "interfaces": [
        {"name": "eth0", "ipv4_addresses": ["192.168.111.20/24"]},
        {"name": "eth1", "ipv4_addresses": ["192.168.145.20/24"], "ipv6_addresses": ["fd00::20/64"]},
    ],
    "routes": [DEFAULT],
}


def reasons(ip: str | None, **changed: Any) -> list[str]:
    """Return why a LUN that is reached from the address `ip` is not eligible; twice prepared is as once."""
    disk = {"drive_type": "iSCSI", "size_bytes": 10**12, "iscsi": {"host_ip_address": ip} if ip else {}}
    raw: Any = HOST | changed | {"disks": [disk]}
    once = inventory.prepare(raw, 20, keep_virtual=False)
    assert inventory.prepare(once, 20, keep_virtual=False) == once
    return once["disks"][0]["installation_eligibility"]["not_eligible_reasons"]


@pytest.mark.parametrize(
    ("ip", "changed", "expected"),
    [
        ("192.168.145.20", {}, []),
        ("192.168.111.20", {"routes": []}, []),
        ("fd00::20", {}, []),  # there is no default route of its family
        ("192.168.111.20", {}, ["iSCSI host IP 192.168.111.20 is the same as host IP, they must be different"]),
        # The default route is the one with the lowest metric.
        ("192.168.111.20", {"routes": [DEFAULT, DEFAULT | {"interface": "eth1", "metric": 99}]}, []),
        (None, {}, ["Host IP address is not available"]),
        (
            "nowhere",
            {},
            ["Cannot parse iSCSI host IP nowhere: 'nowhere' does not appear to be an IPv4 or IPv6 address"],
        ),
        ("192.168.145.20", {"interfaces": []}, ["Cannot find the network interface behind the default route"]),
    ],
)
def test_the_session_is_not_over_the_default_route(
    ip: str | None, changed: dict[str, Any], expected: list[str]
) -> None:
    assert reasons(ip, **changed) == expected


def disk(name: str, drive_type: str, holders: str = "", **more: Any) -> dict[str, Any]:
    """Return a disk of 1 TB as an agent reports it."""
    return {
        "id": f"/dev/{name}",
        "name": name,
        "drive_type": drive_type,
        "holders": holders,
        "size_bytes": 10**12,
        "bootable": True,
        **more,
    }


def lun(name: str, ip: str) -> dict[str, Any]:
    """Return a path of dm-0 over the session from the address `ip`."""
    return disk(name, "iSCSI", "dm-0", iscsi={"host_ip_address": ip})


def why(*disks: dict[str, Any]) -> dict[str, list[str]]:
    """Return why each disk of a host is not eligible, by its name; twice prepared is as once."""
    raw: Any = HOST | {"disks": list(disks)}
    once = inventory.prepare(raw, 20, keep_virtual=False)
    assert inventory.prepare(once, 20, keep_virtual=False) == once
    return {str(one["name"]): one["installation_eligibility"]["not_eligible_reasons"] for one in once["disks"]}


MEMBER = (
    "Disk is a member of multipath device dm-0 and is not eligible for installation. Use the multipath device instead."
)
MIXED = "Multipath device has paths of different types, but they must all be the same type"
UNSUPPORTED = "Multipath device has path of unsupported type. It must be FC, iSCSI"
DEVICE = disk("dm-0", "Multipath")


@pytest.mark.parametrize(
    ("disks", "expected"),
    [
        ([lun("sda", "192.168.145.20"), lun("sdb", "192.168.145.21")], {"dm-0": [], "sda": [MEMBER], "sdb": [MEMBER]}),
        ([disk("sda", "FC", "dm-0"), disk("sdb", "FC", "dm-1")], {"dm-0": [], "sda": [MEMBER], "sdb": []}),
        ([disk("sda", "HDD", "dm-0"), disk("sdb", "HDD", "dm-0")], {"dm-0": [UNSUPPORTED], "sda": [], "sdb": []}),
        (
            [disk("sda", "FC", "dm-0"), disk("sdb", "SSD", "dm-0")],
            {"dm-0": [MIXED], "sda": [MEMBER], "sdb": []},
        ),
        ([], {"dm-0": [UNSUPPORTED]}),
    ],
)
def test_a_multipath_device_in_place_of_its_paths(disks: list[dict[str, Any]], expected: dict[str, list[str]]) -> None:
    assert why(DEVICE, *disks) == expected


def test_a_multipath_device_with_a_session_over_the_default_route() -> None:
    found = why(DEVICE, lun("sda", "192.168.145.20"), lun("sdb", "192.168.111.20"))
    assert found["dm-0"] == [
        "Installation on multipath device is not possible due to errors on at least one iSCSI disk"
    ]


def test_the_default_disk_and_how_it_is_found_again() -> None:
    raw: Any = HOST | {"disks": [lun("sda", "192.168.145.20"), lun("sdb", "fd00::20"), DEVICE]}
    prepared = inventory.prepare(raw, 20, keep_virtual=False)
    assert [one["name"] for one in inventory.eligible_disks(prepared)] == ["dm-0"]
    kargs = ["rw", "rd.multipath=default", "rd.iscsi.firmware=1"]
    assert inventory.lun_arguments(prepared, "/dev/dm-0", addressed=True) == kargs
    assert inventory.lun_arguments(prepared, "/dev/dm-0", addressed=False) == [*kargs, "ip=eth1:dhcp", "ip=eth1:dhcp6"]
    assert inventory.lun_arguments(prepared, "/dev/sdc", addressed=True) == []
