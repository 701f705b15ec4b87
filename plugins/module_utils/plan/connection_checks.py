"""Checks of what a lab's machines reach, and of the ways out of its networks; see `checks`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .networks import leaves
from .options import Profile
from .problems import Finding, Path


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what contradicts `network.connection`, and networks with a way out of a lab that has none."""
    connection, kind = profile["network"]["connection"], profile["hypervisor"]["kind"]
    place: Path = ("network", "connection")
    if connection == "disconnected" and profile["hypervisor"]["egress"]:
        yield place, connection, "contradicts `hypervisor.egress: true`: remove one of them"
    if connection == "proxied" and kind != "sandbox":
        yield place, connection, f"requires `hypervisor.kind: sandbox`, not {kind}"
    if connection == "connected":
        if profile["network"]["nat"] is False:
            yield ("network", "nat"), False, "contradicts `network.connection: connected`: remove one of them"
        if kind == "sandbox" and profile["stack"] == "ipv6":
            remedy = (
                "the way out of a sandbox supports IPv4 addresses only, and `stack: ipv6` has none: must be proxied"
            )
            yield place, connection, remedy
    for path, network in _networks(profile):
        if not network.get("nat"):
            continue
        if connection == "proxied":
            remedy = "must be false: with `network.connection: proxied` the proxy is the only way out"
            yield (*path, "nat"), True, remedy
        elif kind == "sandbox" and not leaves(profile):
            remedy = "requires `hypervisor.egress: true` or `network.connection: connected`: nothing leaves this lab"
            yield (*path, "nat"), True, remedy


def _networks(profile: Profile) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    yield ("network",), profile["network"]
    for index, extra in enumerate(profile["extra_networks"]):
        yield ("extra_networks", index), extra
    for index, outside in enumerate(profile["outside_networks"]):
        yield ("outside_networks", index), outside
