"""Hosts of the service: their stage, their addresses, the node that each becomes, and who has fetched a config."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.vocabulary import Stage
from ..cluster import nodes as node_list
from ..cluster.kube import Object

# A host in one of these stages has fetched its config.
FETCHED = (Stage.IGNITION, Stage.CONFIGURING, Stage.JOINED, Stage.DONE)
_MCS_LINE = re.compile(r'Pool (?P<pool>\S+) requested by address:"(?P<address>[^"]+):\d+" User-Agent:"Ignition')


def stage_of(host: Mapping[str, Any]) -> str:
    """Return the installation stage of a host; empty before the first."""
    return str((host.get("progress") or {}).get("current_stage", ""))


def machine_config_requests(text: str) -> list[tuple[str, str]]:
    """Return pool and address of every Ignition request, from the log of a machine-config server.

    text: lines as machine-config-server writes them. Only requests with Ignition as user agent count; addresses have no
    brackets.
    """
    return [(found["pool"], found["address"].strip("[]")) for found in _MCS_LINE.finditer(text)]


def host_addresses(host: Mapping[str, Any]) -> set[str]:
    """Return the addresses in a host's inventory, without prefix length, in canonical form.

    host: as the service returns it, whose `inventory` is JSON in a string; without one the set is empty.
    """
    inventory = load_json(host.get("inventory") or "{}", name="inventory")
    return {
        str(ipaddress.ip_interface(address).ip)
        for nic in inventory.get("interfaces") or ()
        for address in [*(nic.get("ipv4_addresses") or ()), *(nic.get("ipv6_addresses") or ())]
    }


def find_host(hosts: Sequence[Object], node: Object) -> Object | None:
    """Return the host that a node is: by name, else by address.

    hosts: of the service; node: of the API. Names are compared in lower case. None for a node that the service does not
    know.
    """
    name, addresses = node["metadata"]["name"].lower(), set(node_list.addresses(node))
    by_name = next((h for h in hosts if str(h.get("requested_hostname", "")).lower() == name), None)
    return by_name or next((h for h in hosts if host_addresses(h) & addresses), None)
