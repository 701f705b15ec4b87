"""The boot mode `iscsi`: the first disk of each machine is a LUN, from which it boots by iPXE. docs/hosts.md is the guide.

As dev-scripts has it (`agent/iscsi_utils.sh`): a network of its own, a target for each machine with the name of its
initiator, and a minimal ISO at the beginning of the LUN, which the installation overwrites. With two paths there is a
second network, in which the targets have a second portal: the LUN is a multipath device.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..addresses import in_url
from .model import IscsiService, Plan
from .modes import MODES
from .options import Profile

NETWORK = "iscsi"
"""Name of the network between machines and targets, over which they boot."""
SECOND = "iscsi2"
"""Name of the network of the second path to each LUN."""
_IPV4 = {NETWORK: "192.168.145.0/24", SECOND: "192.168.146.0/24"}
"""Ranges unless the profile has a network of that name; the first is dev-scripts' `ISCSI_NETWORK_SUBNET`."""
PORT = 3260
"""Of the targets, as IANA has it."""
_PREFIX = "iqn.2024-01"


def networks(profile: Mapping[str, Any]) -> list[str]:
    """Return the names of the networks to the LUNs, one for each path; none in another boot mode."""
    boot = profile["boot"]
    return [NETWORK, SECOND][: boot["paths"]] if MODES[boot["mode"]].medium == "lun" else []


def add_networks(profile: dict[str, Any]) -> None:
    """Give a profile that is laid over its defaults the networks to the LUNs that it needs and does not have."""
    there = {one["name"] for one in profile["extra_networks"]}
    profile["extra_networks"] += [
        {"name": name, "ipv4": _IPV4[name]} for name in networks(profile) if name not in there
    ]


def add(plan: Plan, profile: Profile) -> None:
    """Add targets, their service and the iPXE script to a plan whose machines boot from LUNs. The plan is changed."""
    boot, wanted = plan["boot"], networks(profile)
    if not wanted:
        return
    by_name = {one["name"]: one["subnets"][0]["gateway"] for one in plan["networks"]}
    gateway = by_name[NETWORK]
    service: IscsiService = {"address": gateway, "port": PORT, "lun": 1}
    if SECOND in wanted:
        service["second"] = by_name[SECOND]
    plan["services"]["iscsi"] = service
    for node in plan["nodes"]:
        node["disks"][0]["iqn"] = f"{_base(plan)}:{node['name']}"
    boot["script"] = boot["script"].replace(".ipxe", "-iscsi.ipxe")
    boot["script_url"] = f"http://{in_url(gateway)}:{plan['services']['http']['port']}/{boot['script']}"


def addresses(service: IscsiService) -> list[str]:
    """Return the addresses of the targets, one for each path."""
    second = service.get("second")
    return [service["address"], *([second] if second else [])]


def script(plan: Plan) -> str:
    """Return the iPXE script of all machines, which know their host names by DHCP.

    iPXE leaves the sessions' values in the firmware's table (iBFT), from which Linux makes sessions of its own. Its NICs
    are numbered as those of the machines, all of which have the same ones; the one that booted has an address. Raises
    `ValueError` for a plan of another boot mode.
    """
    iscsi = plan["services"].get("iscsi")
    if not iscsi:
        raise ValueError("services.iscsi is missing: the plan is not one of `boot: {mode: iscsi}`")
    name = f"{_base(plan)}:${{hostname}}"
    roots = " ".join(f"iscsi:{in_url(address)}::{iscsi['port']}:{iscsi['lun']}:{name}" for address in addresses(iscsi))
    lines = ["#!ipxe", f"set initiator-iqn {name}", f"sanboot --keep {roots}"]
    if iscsi.get("second"):
        nics = [nic["network"] for nic in plan["nodes"][0]["nics"] if not nic.get("port")]
        lines.insert(1, f"dhcp net{nics.index(SECOND)}")
    return "\n".join(lines) + "\n"


def _base(plan: Plan) -> str:
    return f"{_PREFIX}.{plan['cluster']['domain']}"
