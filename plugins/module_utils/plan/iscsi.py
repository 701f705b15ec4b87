"""The boot mode `iscsi`: the first disk of each machine is a LUN, from which it boots by iPXE. docs/hosts.md is the guide.

As dev-scripts has it (`agent/iscsi_utils.sh`): a network of its own, a target for each machine with the name of its
initiator, and a minimal ISO at the beginning of the LUN, which the installation overwrites.
"""

from __future__ import annotations

from typing import Any

from ..addresses import in_url
from .model import Plan
from .options import Profile

MODE = "iscsi"
NETWORK = "iscsi"
"""Name of the network between machines and targets."""
IPV4 = "192.168.145.0/24"
"""Its range unless the profile has a network of that name; dev-scripts' `ISCSI_NETWORK_SUBNET`."""
PORT = 3260
"""Of the targets, as IANA has it."""
_PREFIX = "iqn.2024-01"


def laid(profile: dict[str, Any]) -> None:
    """Give a profile that is laid over its defaults the network `iscsi`, if the boot mode needs it and it has none."""
    if profile["boot"]["mode"] == MODE and all(one["name"] != NETWORK for one in profile["extra_networks"]):
        profile["extra_networks"].append({"name": NETWORK, "ipv4": IPV4})


def add(plan: Plan, _profile: Profile) -> None:
    """Add targets, their service and the iPXE script to a plan whose machines boot from LUNs. The plan is changed."""
    boot = plan["boot"]
    if boot["mode"] != MODE:
        return
    gateway = next(one for one in plan["networks"] if one["name"] == NETWORK)["subnets"][0]["gateway"]
    for node in plan["nodes"]:
        node["disks"][0]["iqn"] = f"{_base(plan)}:{node['name']}"
    plan["services"]["iscsi"] = {"address": gateway, "port": PORT, "lun": 1}
    boot["script"] = boot["script"].replace(".ipxe", "-iscsi.ipxe")
    boot["script_url"] = f"http://{in_url(gateway)}:{plan['services']['http']['port']}/{boot['script']}"


def script(plan: Plan) -> str:
    """Return the iPXE script of all machines, which know their host names by DHCP.

    iPXE leaves the session's values in the firmware's table (iBFT), from which Linux makes a session of its own. Raises
    `ValueError` for a plan of another boot mode.
    """
    iscsi = plan["services"].get("iscsi")
    if not iscsi:
        raise ValueError("services.iscsi is missing: the plan is not one of `boot: {mode: iscsi}`")
    name = f"{_base(plan)}:${{hostname}}"
    root = f"iscsi:{in_url(iscsi['address'])}::{iscsi['port']}:{iscsi['lun']}:{name}"
    return f"#!ipxe\nset initiator-iqn {name}\nsanboot --keep {root}\n"


def _base(plan: Plan) -> str:
    return f"{_PREFIX}.{plan['cluster']['domain']}"
