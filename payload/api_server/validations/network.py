"""Validations of a host's networks: machine networks, connectivity, its quality, routes, collisions and iSCSI."""

from __future__ import annotations

from collections.abc import Iterable

from .. import inventory as inv
from ..facts import control_planes, hostname_of, is_day2, is_sno, machine_cidrs, outside_balancer, role_of, user_managed
from ..hardware import Disk, LimitKey
from ..network import addresses, contains, family, in_networks, network, overlapping_pairs
from ..objects import Cluster, Host
from .base import ERROR, FAILURE, HIDDEN, NO_INVENTORY, PENDING, SUCCESS, Category, Gate, Result, validation
from .view import HostView, address_list, machine_networks_needed

_DAY2_ALONE = "Day2 host is not required to be connected to other hosts in the cluster"


@validation("machine-cidr-defined", Category.NETWORK, gate=Gate.INPUT, ignorable=False)
def machine_cidr_defined(v: HostView) -> Result:
    if user_managed(v.cluster):
        return SUCCESS, "No Machine Network CIDR needed: User Managed Networking"
    if is_day2(v.cluster):
        return SUCCESS, "No Machine Network CIDR needed: Day2 cluster"
    if machine_cidrs(v.cluster):
        return SUCCESS, "Machine Network CIDR is defined"
    if v.cluster.get("vip_dhcp_allocation"):
        return FAILURE, "Machine Network CIDR is undefined"
    return FAILURE, (
        "Machine Network CIDR is undefined; the Machine Network CIDR can be defined by setting either the API "
        "or Ingress virtual IPs"
    )


@validation("belongs-to-machine-cidr", Category.NETWORK)
def belongs_to_machine_cidr(v: HostView) -> Result:
    """Validate that a host has an address in every machine network; in one of them with an outside load balancer.

    With user-managed networking it applies to a single node and to the bootstrap host of a cluster that has machine
    networks. Pending without an inventory or machine networks.
    """
    cidrs = machine_cidrs(v.cluster)
    if user_managed(v.cluster) and not is_sno(v.cluster) and not (v.host.get("bootstrap") and cidrs):
        return SUCCESS, "No machine network CIDR validation needed: User Managed Networking"
    if is_day2(v.cluster):
        return SUCCESS, "No machine network CIDR validation needed: Day2 cluster"
    if v.inventory is None or not cidrs:
        return PENDING, "Missing inventory or machine network CIDR"
    found = [in_networks(v.inventory, cidr) for cidr in cidrs]
    if outside_balancer(v.cluster):
        if any(found):
            return SUCCESS, "Host belongs to at least one machine network CIDR"
        return FAILURE, (
            "Host does not belong to any machine network CIDR. Verify that the host belongs to at least one CIDR "
            "listed under machine networks"
        )
    if all(found):
        return SUCCESS, "Host belongs to all machine network CIDRs"
    return FAILURE, (
        "Host does not belong to machine network CIDRs. Verify that the host belongs to every CIDR listed under "
        "machine networks"
    )


def majority_least(cluster: Cluster, hosts: Iterable[Host]) -> int:
    """Return the minimum size of a majority group: 2 for two nodes with fencing, else 3.

    Without so many hosts `belongs-to-majority-group` is pending, and groups smaller than it are not stored. `hosts` are
    all hosts of the cluster.
    """
    return 2 if fencing(cluster, hosts) else 3


def fencing(cluster: Cluster, hosts: Iterable[Host]) -> bool:
    """Return whether the cluster has two control-plane nodes that fence each other, and no arbiter.

    Exactly two hosts with the role `master` need `fencing_credentials`. Of more or fewer it is False, and so it is
    while one of the two has not got its credentials yet.
    """
    return (
        control_planes(cluster) == 2
        and sum(role_of(host) == "master" and bool(host.get("fencing_credentials")) for host in hosts) == 2
    )


@validation("belongs-to-majority-group", Category.NETWORK)
def belongs_to_majority(v: HostView) -> Result:
    """Validate that a host is in the cluster's largest group of hosts that reach each other.

    With VIPs: in the group of each machine network. With user-managed networking or an outside load balancer: every
    other host reaches one of its addresses in each family of the cluster's networks. It fails only when the cluster has
    enough hosts for a group (`majority_least`).
    """
    good = (SUCCESS, "Host has connectivity to the majority of hosts in the cluster")
    if is_day2(v.cluster):
        return SUCCESS, _DAY2_ALONE
    if is_sno(v.cluster):
        return good
    if not v.cluster.get("connectivity_majority_groups"):
        return PENDING, "Machine Network CIDR or Connectivity Majority Groups missing"
    ident = v.host["id"]
    if user_managed(v.cluster) or outside_balancer(v.cluster):
        met = v.view.families <= {family(text) for text in v.view.connected_addresses.get(ident, ())}
    elif not machine_cidrs(v.cluster):
        return PENDING, "Not enough information to calculate host majority groups"
    else:
        met = all(ident in v.view.groups.get(cidr, frozenset()) for cidr in machine_cidrs(v.cluster))
    if met:
        return good
    if len(v.view.hosts) < majority_least(v.cluster, v.view.hosts.values()):
        return PENDING, "Not enough hosts in cluster to calculate connectivity groups"
    return FAILURE, "No connectivity to the majority of hosts in the cluster"


@validation("mtu-valid", Category.NETWORK, gate=Gate.WARNING)
def mtu_valid(v: HostView) -> Result:
    """Validate that packets of the interfaces' full size reach the other hosts; it warns and does not block.

    It fails at the first broken path whose two ends are in machine networks; with user-managed networking every path
    counts. Hidden for a single node, pending until the host's connectivity report has MTU results.
    """
    if v.inventory is None:
        return PENDING, "Missing host inventory"
    if is_day2(v.cluster):
        return SUCCESS, _DAY2_ALONE
    if is_sno(v.cluster):
        return HIDDEN, ""
    if v.host["id"] not in v.view.reach.mtu:
        return PENDING, "Missing MTU report information"
    cidrs, own = machine_cidrs(v.cluster), dict[str, list[str]]()
    for nic, text in addresses(v.inventory):
        own.setdefault(nic.get("name", ""), []).append(text)
    for name, ip in v.view.reach.mtu[v.host["id"]]:
        mine = [text for text in own.get(name, []) if family(text) == family(ip)]
        here = any(contains(cidr, text) for cidr in cidrs for text in mine) and any(contains(c, ip) for c in cidrs)
        if user_managed(v.cluster) or here:
            return FAILURE, f"MTU is broken. Interface: {name}, remote IP address: {ip}"
    return SUCCESS, "MTU is ok"


_OPENSTACK = "OpenStack Compute"


@validation("valid-platform-network-settings", Category.NETWORK)
def platform_network(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    if not v.inventory.get("system_vendor"):
        return ERROR, "Validation error"
    platform = str(v.inventory["system_vendor"].get("product_name", ""))
    if platform == _OPENSTACK and not user_managed(v.cluster):
        return FAILURE, f"Platform {platform} is allowed only for Single Node OpenShift or user-managed networking"
    return SUCCESS, f"Platform {platform} is allowed"


_MANY = 4


def _pings(v: HostView) -> str:
    """Return commands for users to investigate latency or packet loss."""
    lines = [
        f"2: Please try the following commands on the host {hostname_of(v.host, v.inventory)} to investigate the packet loss further\n\n"
    ]
    for nic in (v.inventory or {}).get("interfaces", ()):
        texts = nic.get("ipv4_addresses", ())
        lines += [f"ping -c 10 -W 3 -q -I {nic.get('name', '')} {text}\n" for text in texts[: _MANY + 1]]
        lines += ["etc... \n"] if len(texts) > _MANY + 1 else []
    return "".join(lines) if len(lines) > 1 else ""


def _quality(v: HostView, key: LimitKey, position: int, words: tuple[str, str, str, str], actions: str) -> Result:
    """Check latency or loss between hosts of one role. `words`: name, verb in the message, format of a value, of the threshold."""
    name, verb, shown, limit = words
    threshold = v.requirement.get(key)
    if v.inventory is None:
        return PENDING, "The inventory is not available yet."
    good = f"{name[0].upper()}{name[1:]} requirement has been satisfied."
    if len(v.view.hosts) == 1 or threshold is None or v.role == "auto-assign" or is_day2(v.cluster):
        return SUCCESS, good
    quality = v.view.reach.quality.get(v.host["id"])
    if quality is None:
        return PENDING, f"Missing {name} information."
    over = []
    for peer in v.view.by_role.get(v.role, []):
        value = quality.get(peer, (-1.0, -1.0))[position]
        if value > threshold:
            over.append(f"{hostname_of(v.view.hosts[peer], v.view.inventories.get(peer))} ({value:.2f}{shown})")
    if not over:
        return SUCCESS, good
    text = ", ".join(over[: _MANY + 2]) + (" and others..." if len(over) > _MANY + 1 else "")
    return FAILURE, (
        f"A total {name} above the tolerated threshold of {threshold:.2f}{limit} was encountered when performing {verb} between host "
        f"{v.host['id']} and {text}\\n{actions}"
    )


@validation("sufficient-network-latency-requirement-for-role", Category.NETWORK)
def latency(v: HostView) -> Result:
    """Validate the latency to the hosts of the same role: `network_latency_threshold_ms` of the role's requirements.

    The average in ms is from the layer-3 part of the host's connectivity report. The message lists commands with which
    users can repeat the measurement.
    """
    pings = _pings(v)
    actions = (
        f"Actions:\n1: Please try the following commands on the host {hostname_of(v.host, v.inventory)} and examine averages to "
        f"investigate the latency issue further\n\n{pings}"
    )
    return _quality(
        v,
        "network_latency_threshold_ms",
        0,
        ("network latency", "network latency tests", " ms", " ms"),
        actions if pings else "",
    )


@validation("sufficient-packet-loss-requirement-for-role", Category.NETWORK)
def packet_loss(v: HostView) -> Result:
    """Validate the packet loss to the hosts of the same role: `packet_loss_percentage` of the role's requirements.

    The percentage is from the layer-3 part of the host's connectivity report. A role that is still to be assigned has
    no threshold and passes, as does a cluster's only host.
    """
    actions = (
        "Actions:\n1: Check if there are multiple devices on the same L2 network, if so then use the built-in nmstate-based advanced "
        "networking configuration to create a bond or disable all but one of the interfaces.\n"
    )
    return _quality(
        v,
        "packet_loss_percentage",
        1,
        ("packet loss", "connectivity validation", "%", "%"),
        actions + _pings(v),
    )


@validation("has-default-route", Category.NETWORK)
def default_route(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Missing default routing information."
    for route in v.inventory.get("routes", ()):
        if route.get("destination", "").partition("/")[0] in ("0.0.0.0", "::") and route.get("gateway"):
            return SUCCESS, "Host has been configured with at least one default route."
    return FAILURE, "Host has not yet been configured with a default route."


@validation("non-overlapping-subnets", Category.NETWORK)
def non_overlapping(v: HostView) -> Result:
    """Validate that no two networks of a host's interfaces overlap or are equal.

    Link-local networks and single addresses (/32, /128) do not count. The message names the first pair only. A network
    twice on the same interface is one network.
    """
    if v.inventory is None:
        return NO_INVENTORY
    nets: list[tuple[str, str]] = []
    for nic, text in addresses(v.inventory):
        net = network(text)
        if net is not None and not net.is_link_local and net.prefixlen < net.max_prefixlen:
            entry = (str(net), str(nic.get("name", "")))
            if entry not in nets:
                nets.append(entry)
    for number, (cidr, nic_name) in enumerate(nets):
        for other, other_name in nets[number + 1 :]:
            if cidr == other:
                text = f"Address network {cidr} appears on multiple interfaces [{nic_name}, {other_name}]"
                return FAILURE, f"Address networks are overlapping: {text}"
            if overlapping_pairs([cidr, other]):
                text = f"Address networks {cidr} in interface {nic_name} and {other} in interface {other_name} overlap"
                return FAILURE, f"Address networks are overlapping: {text}"
    return SUCCESS, "Host subnets are not overlapping"


@validation("no-ip-collisions-in-network", Category.NETWORK)
def no_collisions(v: HostView) -> Result:
    """Validate that no other MAC address answers for an address of the host, in any host's ARP or NDP checks.

    The collisions are the cluster's `ip_collisions`, see `View.collisions`. It passes as long as there is nothing to
    look at.
    """
    ident = v.host["id"]
    if v.inventory is None:
        return SUCCESS, "Host inventory has not yet been defined, skipping validation."
    if is_day2(v.cluster):
        return SUCCESS, f"Skipping validation for day 2 host {ident}"
    if not v.cluster.get("ip_collisions"):
        return SUCCESS, "IP collisions have not yet been evaluated"
    own = set(address_list(v.inventory))
    lines = [
        f"Collisions detected for host ID {ident}, IP address: {ip} Mac addresses: {','.join(macs)}\n"
        for ip, macs in sorted(v.view.collisions.items())
        if ip in own
    ]
    return (FAILURE, "".join(lines)) if lines else (SUCCESS, f"No IP collisions were detected by host {ident}")


_ISCSI_BAD = "Network interface connected to iSCSI disk cannot belong to machine network CIDRs"
_ISCSI_GOOD = "Network interface connected to iSCSI disk does not belong to machine network CIDRs"


def _iscsi(v: HostView, disk: Disk) -> Result:
    ip = (disk.get("iscsi") or {}).get("host_ip_address", "")
    if not ip:
        return ERROR, "iSCSI disk is missing host IP address"
    nics = [nic for nic, text in addresses(v.inventory or {}) if text.partition("/")[0] == ip]
    if not nics:
        return ERROR, "Cannot find network interface associated to iSCSI host IP address"
    own = (*nics[0].get("ipv4_addresses", ()), *nics[0].get("ipv6_addresses", ()))
    bad = any(contains(machine_cidrs(v.cluster)[0], text) for text in own)
    return (FAILURE, _ISCSI_BAD) if bad else (SUCCESS, _ISCSI_GOOD)


@validation("no-iscsi-nic-belongs-to-machine-cidr", Category.NETWORK)
def no_iscsi_nic(v: HostView) -> Result:
    """Validate that the interface to an iSCSI installation disk is outside of the machine network.

    A multipath disk fails if any of its iSCSI paths does. `error` when the disk or its address is not in the inventory
    as needed; hidden for other disks and where no machine network is needed. Only the first machine network counts.
    """
    disk = inv.find_disk(v.inventory or {}, v.host.get("installation_disk_id", "")) or {}
    kind = disk.get("drive_type")
    if not machine_networks_needed(v.cluster) or is_day2(v.cluster) or kind not in ("iSCSI", "Multipath"):
        return HIDDEN, ""
    if not machine_cidrs(v.cluster):
        return PENDING, "Missing inventory or machine network CIDR"
    if kind == "iSCSI":
        return _iscsi(v, disk)
    bad, last = [], (SUCCESS, "")
    for part in (v.inventory or {}).get("disks", ()):
        if part.get("drive_type") == "iSCSI" and disk.get("name") in str(part.get("holders", "")).split(","):
            last = _iscsi(v, part)
            if last[0] == ERROR:
                return last
            bad += [str(part.get("name", ""))] if last[0] == FAILURE else []
    if bad:
        return FAILURE, (
            "Installation on multipath device is not possible due to errors on at least one iSCSI disk: Network interface "
            f"connected to iSCSI disk ({', '.join(bad)}) cannot belong to machine network CIDRs"
        )
    return last
