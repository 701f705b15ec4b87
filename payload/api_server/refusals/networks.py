"""Networks and VIPs that the service refuses: families, sizes, overlaps, addresses outside of their networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....plugins.module_utils.addresses import version
from ..bodies import ClusterParams
from ..errors import ApiError
from ..network import address, contains, network
from ..objects import NETWORKS, Cluster, NetworkKey
from .base import raise_all

#: Minimum host part of an address, in bits, by kind of network.
_SERVICE_BITS, _MACHINE_BITS, _USERS_BALANCER_BITS, _SNO_BITS = 7, 4, 2, 1


_KINDS: dict[NetworkKey, str] = {
    "machine_networks": "Machine",
    "service_networks": "Service",
    "cluster_networks": "Cluster",
}


def networks(body: ClusterParams) -> None:
    """Validate the CIDRs of a request, and that dual-stack ones have both families.

    ApiError 400 has all unreadable CIDRs; after that, two families in any kind of network mean that each kind given
    must have exactly one of each. `body` needs only what the request sets.
    """
    problems = []
    for key, kind in _KINDS.items():
        for index, entry in enumerate(body.get(key) or ()):
            cidr = entry.get("cidr") or ""
            if not cidr:
                problems.append(f"{kind} Network CIDR cannot be empty (index {index})")
            elif network(cidr) is None:
                problems.append(
                    f"Could not parse {kind} Network CIDR {cidr} (index {index}): invalid CIDR address: {cidr}"
                )
    raise_all(problems)
    lists = {key: [str(entry["cidr"]) for entry in body.get(key) or ()] for key in _KINDS}
    if any(len({*map(version, cidrs)}) == 2 for cidrs in lists.values()):
        for key, cidrs in lists.items():
            if cidrs:
                _dual(cidrs, key.replace("_", " "), "subnet")
    elif len(lists["machine_networks"]) > 1 and (body.get("load_balancer") or {}).get("type") != "user-managed":
        raise ApiError(400, "Single-stack cluster cannot contain multiple Machine Networks")


def networks_strict(cluster: Cluster) -> None:
    """Refuse CIDRs with host bits, which upstream accepts and the OpenShift installer refuses later."""
    for key, kind in _KINDS.items():
        for entry in cluster.get(key) or ():
            net = network(entry["cidr"])
            if net is not None and address(entry["cidr"]) != net.network_address:
                raise ApiError(400, f"{kind} network CIDR {entry['cidr']}: {entry['cidr']} is not a valid network CIDR")


def vips_in_use(api: list[str], ingress: list[str], cidrs: list[str], taken: Mapping[str, frozenset[str]]) -> None:
    """Refuse VIPs that hosts reported as not free; `taken` has the free addresses of each network that all hosts scanned."""
    for first, second, cidr in zip(api, ingress, cidrs, strict=False):
        for ip, name in ((first, "api-vip"), (second, "ingress-vip")):
            if cidr in taken and ip not in taken[cidr]:
                raise ApiError(400, f"{name} <{ip}> is already in use in cidr {cidr}")


def _dual(items: list[str], what: str, unit: str) -> None:
    if len(items) != 2:
        raise ApiError(400, f"Expected 2 {what}, found {len(items)}")
    for name, six in (("IPv4", False), ("IPv6", True)):
        if not any((version(item) == 6) == six for item in items):
            raise ApiError(400, f"dual-stack {what} must include exactly one {name} {unit}")


def vips(api: list[str], ingress: list[str], cluster: Cluster | ClusterParams) -> None:
    """Validate the VIPs of a cluster with these fields; `user_managed_networking` counts if the request sets it.

    Lists have addresses without prefix: as many for the API as for the ingress, two at most, and two only with one of
    each family. They must be in the machine networks, by position, or with an outside load balancer in any of them.
    ApiError 400.
    """
    users = (cluster.get("load_balancer") or {}).get("type") == "user-managed"
    problems = []
    for listed, plural, name in ((api, "apiVIPs", "API"), (ingress, "ingressVips", "Ingress")):
        if len(listed) > 2:
            problems.append(f"{plural} supports 2 vips. got: {len(listed)}")
        else:
            problems += [f"{name} VIP IP at index {index} cannot be empty" for index, ip in enumerate(listed) if not ip]
            problems += [f"Could not parse VIP ip {ip}" for ip in listed if ip and address(ip) is None]
    if len(api) != len(ingress):
        problems.append(
            f"configuration must include the same number of apiVIPs (got {len(api)}) and ingressVIPs (got {len(ingress)})"
        )
    raise_all(problems)
    problems = [
        f'The IP address "{ip}" appears multiple times in apiVIPs' for index, ip in enumerate(api) if ip in api[:index]
    ]
    for index, ip in enumerate(ingress):
        if ip in ingress[:index]:
            problems.append(f'The IP address "{ip}" appears multiple times in ingressVIPs')
        if ip in api and not users:
            problems.append(f'The IP address "{ip}" appears both in apiVIPs and ingressVIPs')
    raise_all(problems)
    for listed, plural in ((api, "apiVIPs"), (ingress, "ingressVips")):
        if len(listed) == 2:
            _dual(listed, plural, "address")
    machine = [str(entry["cidr"]) for entry in cluster.get("machine_networks") or ()]
    if cluster.get("vip_dhcp_allocation"):
        for listed, name in ((api, "API"), (ingress, "Ingress")):
            if listed:
                raise ApiError(400, f"Setting {name} VIPs is forbidden when cluster is in vip-dhcp-allocation mode")
    elif not machine or not api:
        if len(api) == 2 and not machine:
            raise ApiError(400, "Dual-stack cluster cannot be created with empty Machine Networks")
    elif users:
        _vip_of_any(api[0], ingress[0], machine)
    else:
        pairs = zip(api, ingress, machine, strict=False)
        found = (
            _vip_outside(one, "api-vip", cidr) or _vip_outside(two, "ingress-vip", cidr) for one, two, cidr in pairs
        )
        raise_all(filter(None, found))


def _vip_outside(ip: str, name: str, cidr: str) -> str:
    if not contains(cidr, ip):
        return f"{name} <{ip}> does not belong to machine-network-cidr <{cidr}>"
    net = network(cidr)
    if net is not None and net.version == 4 and ip == str(net.broadcast_address):
        return f"{name} <{ip}> is the broadcast address of machine-network-cidr <{cidr}>"
    return ""


def _vip_of_any(api: str, ingress: str, machine: list[str]) -> None:
    for ip, name in ((api, "api-vip"), (ingress, "ingress-vip")):
        problems = [_vip_outside(ip, name, cidr) for cidr in machine]
        if all(problems):
            raise_all(problems)


def subnets(cluster: Cluster, changed: Iterable[str], hosts: int, sno: bool) -> None:
    """Validate the sizes of the networks in an update, and that none of the cluster's networks overlap.

    `changed` are the fields that the request sets; only their sizes are validated. `hosts` is the number of hosts, for
    the number of parts of a cluster network. ApiError 400 for the first problem.
    """
    names = set(changed)
    users = (cluster.get("load_balancer") or {}).get("type") == "user-managed"
    machine_bits = _SNO_BITS if sno else _USERS_BALANCER_BITS if users else _MACHINE_BITS
    texts: dict[NetworkKey, str] = {
        "cluster_networks": "Cluster network CIDR {}",
        "service_networks": "Service network CIDR {}",
        "machine_networks": "Machine network CIDR '{}'",
    }
    prefixes = [entry.get("host_prefix") or 0 for entry in cluster.get("cluster_networks") or ()]
    for key, text in texts.items():
        if key not in names:
            continue
        for index, entry in enumerate(cluster.get(key) or ()):
            cidr = str(entry["cidr"])
            net = network(cidr)
            bits = machine_bits if key == "machine_networks" else _SERVICE_BITS
            if net is None:
                continue
            most = net.max_prefixlen - bits
            if not 1 <= net.prefixlen <= most:
                reason = (
                    f"Address mask size must be between 1 to {most} and must include at least {1 << bits} addresses"
                )
                raise ApiError(400, f"{text.format(cidr)}: {reason}")
            if int(net.network_address) == 0:
                reason = f"The specified CIDR {cidr} is invalid because its resulting routing prefix matches the unspecified address"
                raise ApiError(400, f"{text.format(cidr)}: {reason}")
            if "/" in cidr and address(cidr) != net.network_address:
                raise ApiError(400, f"{text.format(cidr)}: {cidr} is not a valid network CIDR")
            if key == "cluster_networks":
                host_prefix = prefixes[index]
                if host_prefix < 1:
                    raise ApiError(
                        400,
                        f"Cluster network host prefix {host_prefix}: Host prefix, now {host_prefix}, must be a positive integer",
                    )
                _cluster_size(net.prefixlen, net.max_prefixlen, host_prefix, hosts)
    if not names:
        return
    lists = {key: [str(entry["cidr"]) for entry in cluster.get(key) or ()] for key in NETWORKS}
    for index, pods in enumerate(lists["cluster_networks"]):
        machine, service = (
            lists[key][index] if index < len(lists[key]) else "" for key in ("machine_networks", "service_networks")
        )
        pairs = [(service, pods, "ServiceNetworkCidr and ClusterNetworkCidr")]
        if cluster.get("user_managed_networking"):
            pairs = [
                (machine, service, "MachineNetworkCIDR and ServiceNetworkCIDR"),
                (machine, pods, "MachineNetworkCIDR and ClusterNetworkCidr"),
                *pairs,
            ]
        for one, two, what in pairs:
            a, b = network(one), network(two)
            if a is not None and b is not None and a.version == b.version and a.overlaps(b):
                raise ApiError(400, f"{what}: CIDRS {one} and {two} overlap")


def _cluster_size(prefix: int, bits: int, host_prefix: int, hosts: int) -> None:
    if host_prefix > bits - _SERVICE_BITS:
        reason = f"Host prefix, now {host_prefix}, must be less than or equal to {bits - _SERVICE_BITS} to allow at least 128 addresses"
        raise ApiError(400, f"Cluster CIDR size: {reason}")
    if (1 if hosts == 1 else max(4, hosts)) > 1 << min(63, max(host_prefix - prefix, 0)):
        raise ApiError(
            400,
            f"Cluster CIDR size: Cluster network CIDR prefix {prefix} does not contain enough addresses for {hosts} hosts each one with "
            f"{host_prefix} prefix ({1 << min(63, bits - host_prefix)} addresses)",
        )
