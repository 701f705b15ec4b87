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
