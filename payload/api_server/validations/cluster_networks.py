"""Validations of a cluster's networks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..facts import is_day2, is_sno, machine_cidrs, outside_balancer, user_managed
from ..hardware import Inventory
from ..network import contains, family, host_networks, network, overlapping_pairs
from ..objects import VIPS
from .base import ERROR, FAILURE, PENDING, SUCCESS, Category, Gate, Result, validation
from .view import View, cidrs_of, machine_networks_needed

ClusterCheck = Callable[[View], Result]


@validation("machine-cidr-defined", Category.NETWORK, gate=Gate.INPUT)
def c_machine_cidr(v: View) -> Result:
    if not machine_networks_needed(v.cluster) or is_day2(v.cluster):
        return SUCCESS, "No Machine Network CIDR needed: User Managed Networking"
    if machine_cidrs(v.cluster):
        return SUCCESS, "The Machine Network CIDR is defined."
    if not v.inventories:
        return PENDING, "Hosts have not been discovered yet"
    text = "The Machine Network CIDR is undefined; "
    if v.cluster.get("vip_dhcp_allocation"):
        return FAILURE, text + "setting the Machine Network CIDR initiates the VIPs DHCP lease allocation."
    if is_sno(v.cluster):
        return FAILURE, text + "Setting Machine Network CIDR is required for single node cluster"
    return FAILURE, text + "the Machine Network CIDR can be defined by setting either the API or Ingress virtual IPs."


def _defined(field_name: str, label: str) -> ClusterCheck:
    def check(v: View) -> Result:
        if v.cluster.get(field_name) or is_day2(v.cluster):
            return SUCCESS, f"The {label} Network CIDR is defined."
        return FAILURE, f"The {label} Network CIDR is undefined."

    return check


def _missing_networks(v: View) -> Result | None:
    """Return the pending result while a network is undefined."""
    names = ["machine_networks"] if machine_networks_needed(v.cluster) else []
    if all(v.cluster.get(name) for name in (*names, "cluster_networks", "service_networks")):
        return None
    listed = "Machine Network, Cluster Network, Service Network" if names else "Cluster Network, Service Network"
    return PENDING, f"At least one of the CIDRs ({listed}) is undefined."


@validation("no-cidrs-overlapping", Category.NETWORK)
def c_overlap(v: View) -> Result:
    """Validate that machine, service and cluster networks do not overlap.

    They are compared by position: with dual stack the first of each, then the second; the last machine network stands
    for missing ones. `error` when there are not as many service as cluster networks.
    """
    missing = None if is_day2(v.cluster) else _missing_networks(v)
    if missing:
        return missing
    found = cidrs_of(v)
    machine, cluster, service = (found[f"{name}_networks"] for name in ("machine", "cluster", "service"))
    if len(cluster) != len(service):
        return ERROR, "A mismatch between the number of Cluster and Service networks"
    for number, (pods, services) in enumerate(zip(cluster, service, strict=True)):
        host = machine[min(number, len(machine) - 1)] if machine and machine_networks_needed(v.cluster) else ""
        for label, one, other in (
            ("MachineNetworkCIDR and ServiceNetworkCIDR", host, services),
            ("MachineNetworkCIDR and ClusterNetworkCidr", host, pods),
            ("ServiceNetworkCidr and ClusterNetworkCidr", services, pods),
        ):
            if one and (one == other or overlapping_pairs([one, other])):
                return FAILURE, f"CIDRS Overlapping: {label}: CIDRS {one} and {other} overlap."
    return SUCCESS, "No CIDRS are overlapping."


def _families_in_order(cidrs: list[str]) -> list[str]:
    kinds = [family(cidr) for cidr in cidrs]
    return [kind for number, kind in enumerate(kinds) if number == 0 or kind != kinds[number - 1]]


@validation("networks-same-address-families", Category.NETWORK)
def c_families(v: View) -> Result:
    """Validate that the networks of each kind have the same address families, in the same order.

    Repeated networks of a family count once. Machine networks are compared where they are needed.
    """
    missing = None if is_day2(v.cluster) else _missing_networks(v)
    if missing:
        return missing
    found = {name: _families_in_order(cidrs) for name, cidrs in cidrs_of(v).items()}
    if found["service_networks"] != found["cluster_networks"]:
        return FAILURE, "Address families of networks (ServiceNetworks, ClusterNetworks) are not the same."
    if machine_networks_needed(v.cluster) and found["machine_networks"] != found["service_networks"]:
        return FAILURE, (
            "Address families of networks (MachineNetworks, ServiceNetworks, ClusterNetworks) are not the same."
        )
    return SUCCESS, "Same address families for all networks."


@validation("network-prefix-valid", Category.NETWORK)
def c_prefix(v: View) -> Result:
    """Validate `host_prefix` of each cluster network: 128 addresses per node at least, and a part for every node.

    Fewer than four hosts are counted as four, except for a single one.
    """
    if not v.cluster.get("cluster_networks") and not is_day2(v.cluster):
        return PENDING, "The Cluster Network CIDR is undefined."
    count = len(v.hosts)
    for entry in v.cluster.get("cluster_networks", ()):
        net, prefix = network(entry.get("cidr", "")), entry.get("host_prefix", 0)
        if net is None:
            continue
        bits = net.max_prefixlen
        if prefix < 1:
            return FAILURE, f"Invalid Cluster Network prefix: Host prefix, now {prefix}, must be a positive integer."
        if prefix > bits - 7:
            return FAILURE, (
                f"Host prefix, now {prefix}, must be less than or equal to {bits - 7} to allow at least 128 addresses"
            )
        if (1 if count == 1 else max(4, count)) > 1 << min(63, max(prefix - net.prefixlen, 0)):
            return FAILURE, (
                f"Cluster network CIDR prefix {net.prefixlen} does not contain enough addresses for {count} hosts each one with "
                f"{prefix} prefix ({1 << min(63, bits - prefix)} addresses)"
            )
    return SUCCESS, "The Cluster Network prefix is valid."


def calculated_cidr(v: View, number: int = 0) -> str:
    """Return the hosts' network with the VIP at an index; empty if no host is on it.

    The index counts from 0 and is the position among the machine networks. API VIPs come first; ingress VIPs are used
    only when there is no API VIP at that index. Used where users give VIPs but no machine network.
    """
    for key in VIPS:
        vips = [vip["ip"] for vip in v.cluster.get(key, ()) if vip.get("ip")]
        if number < len(vips):
            return network_of(vips[number], v.inventories.values())
    return ""


def network_of(ip: str, inventories: Iterable[Inventory]) -> str:
    """Return the first network of hosts that contains an address; empty if no host is on it.

    `ip` has no prefix. The networks are those of the inventories' interfaces, in the order of hosts and interfaces, and
    the result is such a network as CIDR.
    """
    networks = (cidr for found in inventories for cidr in host_networks(found))
    return next((cidr for cidr in networks if contains(cidr, ip)), "")


@validation("machine-cidr-equals-to-calculated-cidr", Category.NETWORK)
def c_calculated(v: View) -> Result:
    """Validate that each machine network is the hosts' network that has the API VIP of the same position.

    The message lists all mismatches, in the format of upstream's library for lists of errors. Not needed with
    user-managed networking, an outside load balancer or on day 2.
    """
    if user_managed(v.cluster):
        return SUCCESS, "The Cluster Machine CIDR is not required: User Managed Networking"
    if outside_balancer(v.cluster):
        return SUCCESS, "Calculating machine network CIDR is not enabled: User Managed Load Balancer"
    if is_day2(v.cluster):
        return SUCCESS, "The Cluster Machine CIDR is equivalent to the calculated CIDR."
    vips = v.cluster.get("api_vips") or ()
    if not vips and not v.cluster.get("ingress_vips"):
        return PENDING, "The Machine Network CIDR, API virtual IPs, or Ingress virtual IPs are undefined."
    if not v.inventories:
        return PENDING, "Hosts have not been discovered yet"
    cidrs, errors = machine_cidrs(v.cluster), []
    for number, vip in enumerate(vips):
        found = calculated_cidr(v, number)
        if not found:
            errors.append(f"No suitable matching CIDR found for VIP {vip['ip']}")
        elif cidrs and number < len(cidrs) and found != cidrs[number]:
            errors.append(f"The Cluster Machine CIDR {cidrs[number]} is different than the calculated CIDR {found}.")
    if errors:
        # The format of upstream's library for lists of errors.
        lines = "".join(f"\n\t* {text}" for text in errors)
        return FAILURE, f"{len(errors)} error{'s' if len(errors) > 1 else ''} occurred:{lines}\n\n"
    return SUCCESS, "The Cluster Machine CIDR is equivalent to the calculated CIDR."


@validation("network-type-valid", Category.NETWORK)
def c_network_type(v: View) -> Result:
    kind = v.cluster.get("network_type")
    if kind == "OpenShiftSDN" and "IPv6" in v.families:
        return FAILURE, (
            "The cluster is configured with IPv6 which is not supported by OpenShiftSDN; use OVNKubernetes instead"
        )
    if kind == "OpenShiftSDN" and is_sno(v.cluster):
        return FAILURE, (
            "Control Plane Count '1' (SNO) is not supported by OpenShiftSDN; use another network type instead"
        )
    if kind == "OVNKubernetes" and v.cluster.get("vip_dhcp_allocation"):
        return FAILURE, "VIP DHCP allocation is not supported when the cluster is configured to use OVNKubernetes."
    return SUCCESS, "The cluster has a valid network type"


cluster_cidr_defined = validation("cluster-cidr-defined", Category.NETWORK, gate=Gate.INPUT)(
    _defined("cluster_networks", "Cluster")
)
service_cidr_defined = validation("service-cidr-defined", Category.NETWORK, gate=Gate.INPUT)(
    _defined("service_networks", "Service")
)
