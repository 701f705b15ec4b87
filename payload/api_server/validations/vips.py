"""Validations of a cluster's API and ingress VIPs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ....plugins.module_utils.documents import load_json
from ..facts import is_day2, is_sno, machine_cidrs, outside_balancer, user_managed
from ..network import contains, network
from ..objects import Host, Vip, VipKey
from .base import FAILURE, PENDING, SUCCESS, Category, Gate, Result, validation
from .view import View, address_list

ClusterCheck = Callable[[View], Result]


def _vips_defined(key: VipKey, label: str) -> ClusterCheck:
    def check(v: View) -> Result:
        if user_managed(v.cluster) or is_day2(v.cluster):
            return SUCCESS, f"{label} virtual IPs are not required: User Managed Networking"
        if is_sno(v.cluster):
            return SUCCESS, f"{label} virtual IPs are not required: SNO"
        if v.cluster.get(key):
            return SUCCESS, f"{label} virtual IPs are defined."
        if not v.cluster.get("vip_dhcp_allocation"):
            return FAILURE, f"{label} virtual IPs are undefined and must be provided."
        if not machine_cidrs(v.cluster):
            return PENDING, "The Machine Network CIDR is undefined"
        if v.now - float(v.cluster.get("_machine_cidr_at", v.now)) > _DHCP_MINUTES * 60:
            return FAILURE, f"{label} virtual IPs are undefined; IP allocation from the DHCP server timed out."
        return FAILURE, (
            f"{label} virtual IPs are undefined; after the Machine Network CIDR has been defined, {label} virtual IPs are received "
            f"from a DHCP lease allocation task which may take up to {_DHCP_MINUTES} minutes."
        )

    return check


_DHCP_MINUTES = 2


def own_addresses(v: View, ident: str) -> list[str]:
    """The addresses of a host in the cluster's machine networks, one for each.

    Without prefix, in the order of the machine networks. A network in which the host has no address is left out, so the
    list may be shorter than the networks. Empty without an inventory.
    """
    found = [text.partition("/")[0] for text in address_list(v.inventories.get(ident) or {})]
    cidrs = machine_cidrs(v.cluster)
    return [
        next(text for text in found if contains(cidr, text))
        for cidr in cidrs
        if any(contains(cidr, text) for text in found)
    ]


def free_addresses(hosts: Iterable[Host]) -> dict[str, frozenset[str]]:
    """Return for each scanned network the addresses that all hosts found free, without empty networks.

    Key: CIDR as the hosts wrote it; value: addresses without prefix. From the replies to the step
    `free-network-addresses`. A network that no host scanned (IPv6, or larger than /22) is missing.
    """
    found: dict[str, frozenset[str]] = {}
    for host in hosts:
        for entry in load_json(host.get("free_addresses") or "[]", name="free_addresses"):
            free, name = frozenset(entry.get("free_addresses", ())), str(entry.get("network", ""))
            found[name] = found[name] & free if name in found else free
    return {name: free for name, free in found.items() if free}


def _free(v: View, ip: str, cidr: str) -> str:
    """Return the verification of an address, from the hosts' lists of free addresses of the network."""
    common = free_addresses(v.hosts.values()).get(cidr)
    if not common:
        return "unverified"
    return "succeeded" if ip in common else "failed"


def _vip(v: View, vip: Vip, cidr: str, label: str, free: bool) -> tuple[str, str]:
    """Return (verification, problem) of a VIP in one machine network."""
    ip = vip["ip"]
    if not cidr:
        return "unverified", f"{label} <{ip}> cannot be set if Machine Network CIDR is empty"
    if not contains(cidr, ip):
        return "failed", f"{label} <{ip}> does not belong to machine-network-cidr <{cidr}>"
    net = network(cidr)
    if net is not None and net.version == 4 and ip == str(net.broadcast_address):
        return "failed", f"{label} <{ip}> is the broadcast address of machine-network-cidr <{cidr}>"
    if not free:
        return "succeeded", ""
    found = vip.get("verification", "unverified")
    found = _free(v, ip, cidr) if found == "unverified" else found
    if found == "failed":
        text = f"{label} <{ip}> is already in use in cidr {cidr}"
        count = len(v.hosts)
        if net is not None and (count != 1 and net.num_addresses < count + 4):
            text += ". The machine network range is too small for the cluster. Please redefine the network."
        return found, text
    return found, "" if found == "succeeded" else f"{label} <{ip}> are not verified yet."


def _vips_valid(key: VipKey, name: str) -> ClusterCheck:
    def check(v: View) -> Result:
        if user_managed(v.cluster) or is_day2(v.cluster):
            return SUCCESS, f"{name} virtual IPs are not required: User Managed Networking"
        if is_sno(v.cluster):
            return SUCCESS, f"{name} virtual IPs are not required: SNO"
        vips = v.cluster.get(key) or []
        if not vips:
            return PENDING, f"{name} virtual IPs are undefined."
        cidrs = machine_cidrs(v.cluster)
        if not v.inventories or not cidrs:
            return PENDING, "Hosts have not been discovered yet"
        if outside_balancer(v.cluster):
            label = f"{name.lower()} vip"
            results = [(cidr, *_vip(v, vips[0], cidr, label, False)) for cidr in cidrs]
            if any(found == "succeeded" for __, found, __ in results):
                return SUCCESS, f"{label} {vips[0]['ip']} is valid"
            texts = "; ".join(
                f"machine network CIDR <{cidr}> verification failed: {text}" for cidr, __, text in results
            )
            return FAILURE, (
                f"{label} '{vips[0]['ip']}' failed verification: none of the machine networks is satisfying the requirements, "
                f"description: {texts}"
            )
        label = f"{name.lower()} vips"
        found = [
            _vip(v, vip, cidrs[number] if number < len(cidrs) else "", label, True) for number, vip in enumerate(vips)
        ]
        if any(state != "succeeded" for state, __ in found):
            return FAILURE, ";".join(text for __, text in found if text)
        return SUCCESS, f"{label} {', '.join(vip['ip'] for vip in vips)} belongs to the Machine CIDR and is not in use."

    return check


api_vips_defined = validation("api-vips-defined", Category.NETWORK, gate=Gate.INPUT, ignorable=False)(
    _vips_defined("api_vips", "API")
)
api_vips_valid = validation("api-vips-valid", Category.NETWORK)(_vips_valid("api_vips", "API"))
ingress_vips_defined = validation("ingress-vips-defined", Category.NETWORK, gate=Gate.INPUT, ignorable=False)(
    _vips_defined("ingress_vips", "Ingress")
)
ingress_vips_valid = validation("ingress-vips-valid", Category.NETWORK)(_vips_valid("ingress_vips", "Ingress"))
