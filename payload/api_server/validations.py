"""Validations of hosts and clusters: pure functions of a view, in tables with id and category.

A validation gives (status, message); status is success, failure, pending, error or disabled, or `hidden`: it holds
and is not shown. Ids and messages are those of assisted-service.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from ...plugins.module_utils.documents import load_json
from . import inventory as inv
from . import operators
from .connectivity import Reach
from .facts import control_planes, domain, hostname_of, is_day2, is_sno, machine_cidrs, role_of, user_managed
from .network import addresses, contains, family, host_networks, in_networks, network, overlapping
from .tables import AFTER_REBOOT, MEDIA_DISCONNECTED

Result = tuple[str, str]
SUCCESS, FAILURE, PENDING, ERROR, HIDDEN = "success", "failure", "pending", "error", "hidden"


def requirement(table: Mapping[str, Mapping[str, Any]], cluster: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Thresholds for a host of a role; for an undecided one the least of the roles it may get."""
    if is_sno(cluster) and not is_day2(cluster):
        return dict(table.get("sno", table.get("master", {})))
    if role in ("master", "arbiter", "worker"):
        return dict(table.get(role, {}))
    roles = [table[name] for name in ("master", "worker") if name in table]
    return {
        key: min(values[key] for values in roles if key in values)
        for key in {key for values in roles for key in values}
    }


def least(table: Mapping[str, Mapping[str, Any]], cluster: Mapping[str, Any]) -> dict[str, Any]:
    """The least of CPU, RAM and disk that a control plane node of the cluster or a worker needs."""
    roles = [found for found in (requirement(table, cluster, "master"), table.get("worker")) if found]
    keys = ("cpu_cores", "ram_mib", "disk_size_gb")
    return {key: min(values.get(key, 0) for values in roles) for key in keys} if roles else {}


def dns_needed(cluster: Mapping[str, Any], dnsmasq: bool) -> bool:
    """Whether the user's DNS has to know api, api-int and apps."""
    if is_sno(cluster) and dnsmasq and not is_day2(cluster):
        return False
    return user_managed(cluster)


def _reaches_api(host: Mapping[str, Any]) -> bool:
    """Whether a host that joins a cluster got its config from there."""
    return bool(load_json(host.get("api_vip_connectivity") or "{}", name="api_vip_connectivity").get("is_success"))


@dataclass
class View:
    """Everything the validations of one cluster look at."""

    cluster: Mapping[str, Any]
    hosts: Mapping[str, Mapping[str, Any]]
    inventories: Mapping[str, Mapping[str, Any]]
    table: Mapping[str, Mapping[str, Any]]
    reach: Reach
    now: float
    agent_version: str = ""
    upgrade_agent: bool = False
    dnsmasq: bool = True
    images: tuple[str, ...] = ()
    #: Whether a user gave manifests of his own.
    manifests: bool = False
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Host -> its addresses that every other host reaches.
    connected_addresses: Mapping[str, list[str]] = field(default_factory=dict)
    hostnames: Mapping[str, int] = field(default_factory=dict)

    @functools.cached_property
    def by_role(self) -> dict[str, list[str]]:
        """Ids of the hosts of each role."""
        found: dict[str, list[str]] = {}
        for ident, host in self.hosts.items():
            found.setdefault(role_of(host), []).append(ident)
        return found

    @functools.cached_property
    def operators(self) -> frozenset[str]:
        """Names of the OLM operators that the cluster gets."""
        return frozenset(operators.selected(self.cluster))

    @functools.cached_property
    def collisions(self) -> dict[str, list[str]]:
        """Addresses that several MACs answered for, by any host's report."""
        return load_json(self.cluster.get("ip_collisions") or "{}", name="ip_collisions")

    @functools.cached_property
    def families(self) -> set[str]:
        """Address families of the cluster's networks."""
        return {family(cidr) for cidrs in _cidrs(self).values() for cidr in cidrs}


@dataclass
class HostView:
    """One host of a view."""

    view: View
    host: Mapping[str, Any]
    connected: bool
    _resolved: dict[str, list[str]] | None = None

    @property
    def cluster(self) -> Mapping[str, Any]:
        return self.view.cluster

    @property
    def inventory(self) -> Mapping[str, Any] | None:
        return self.view.inventories.get(self.host["id"])

    @property
    def role(self) -> str:
        return role_of(self.host)

    @property
    def requirement(self) -> dict[str, Any]:
        return requirement(self.view.table, self.cluster, self.role)

    @property
    def total(self) -> dict[str, Any]:
        """What OpenShift and the operators ask of the host together."""
        return total_requirement(self.view, self.host, self.role)

    @property
    def late(self) -> bool:
        return self.host.get("progress", {}).get("current_stage") in AFTER_REBOOT

    def resolved(self, name: str) -> list[str] | None:
        """What the host resolved a name to, addresses and canonical names; None when it was not asked for."""
        if self._resolved is None:
            self._resolved = {}
            for entry in load_json(self.host.get("domain_name_resolutions") or "{}", name="domain_name_resolutions").get("resolutions", ()):
                found = [*entry.get("ipv4_addresses", ()), *entry.get("ipv6_addresses", ()), *entry.get("cnames", ())]
                self._resolved.setdefault(entry.get("domain_name", ""), []).extend(found)
        return self._resolved.get(name)


def total_requirement(v: View, host: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Thresholds for a host in a role, with what the cluster's operators ask on top."""
    needed = requirement(v.table, v.cluster, role)
    if v.operators:
        cpu, ram = operators.needs(v, host, role)
        needed |= {"cpu_cores": needed.get("cpu_cores", 0) + cpu, "ram_mib": needed.get("ram_mib", 0) + ram}
    return needed


HostCheck = Callable[[HostView], Result]
NO_INVENTORY: Result = (PENDING, "Missing inventory")


def _before_reboot(check: HostCheck) -> HostCheck:
    """A validation that is not shown once the live system is gone."""
    return lambda v: (HIDDEN, "") if v.late else check(v)


@_before_reboot
def connected(v: HostView) -> Result:
    return (SUCCESS, "Host is connected") if v.connected else (FAILURE, "Host is disconnected")


@_before_reboot
def media_connected(v: HostView) -> Result:
    bad = v.host.get("media_status") == "disconnected"
    return (FAILURE, MEDIA_DISCONNECTED) if bad else (SUCCESS, "Media device is connected")


def has_inventory(v: HostView) -> Result:
    if v.inventory is None:
        return FAILURE, "Inventory has not been received for the host"
    return SUCCESS, "Valid inventory exists for the host"


def _truncation(v: HostView, kind: str, otherwise: str) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    truncation = v.inventory.get("truncation")
    if not truncation:
        return SUCCESS, "Inventory is not truncated"
    if truncation.get("type") not in ("partial", "full"):
        return ERROR, "Unexpected inventory truncation type"
    if truncation["type"] != kind:
        return SUCCESS, otherwise
    reasons = "; ".join(truncation.get("reasons", ()))
    return FAILURE, f"Inventory is truncated ({kind})" + (f": {reasons}" if reasons else "")


def not_partially_truncated(v: HostView) -> Result:
    return _truncation(v, "partial", "Inventory is not partially truncated (inventory fully truncated)")


def not_fully_truncated(v: HostView) -> Result:
    return _truncation(v, "full", "Inventory is partially truncated")


def min_cpu(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    needed, found = least(v.view.table, v.cluster).get("cpu_cores", 0), v.inventory.get("cpu", {}).get("count", 0)
    if found >= needed:
        return SUCCESS, "Sufficient CPU cores"
    return FAILURE, (
        "The host is not eligible to participate in Openshift Cluster because the minimum required CPU cores "
        f"for any role is {needed}, found only {found}"
    )


def min_memory(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    needed = least(v.view.table, v.cluster).get("ram_mib", 0)
    if inv.ram_fits(v.inventory, needed):
        return SUCCESS, "Sufficient minimum RAM"
    return FAILURE, (
        "The host is not eligible to participate in Openshift Cluster because the minimum required RAM "
        f"for any role is {inv.gib(needed)}, found only {inv.gib(inv.ram_mib(v.inventory))}"
    )


def min_disks(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    if not v.inventory.get("disks"):
        return ERROR, "Failed to detected disks"
    if inv.eligible_disks(v.inventory):
        return SUCCESS, "Sufficient disk capacity"
    return FAILURE, "No eligible disks were found, please check specific disks to see why they are not eligible"


def role_cpu(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Missing inventory or role"
    needed, found = v.total.get("cpu_cores", 0), v.inventory.get("cpu", {}).get("count", 0)
    if found >= needed:
        return SUCCESS, f"Sufficient CPU cores for role {v.role}"
    return FAILURE, f"Require at least {needed} CPU cores for {v.role} role, found only {found}"


def role_memory(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Missing inventory or role"
    needed = v.total.get("ram_mib", 0)
    if inv.ram_mib(v.inventory) + inv.RAM_TOLERANCE_MIB >= needed:
        return SUCCESS, f"Sufficient RAM for role {v.role}"
    return (
        FAILURE,
        f"Require at least {inv.gib(needed)} RAM for role {v.role}, found only {inv.gib(inv.ram_mib(v.inventory))}",
    )


def hostname_unique(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    name = hostname_of(v.host, v.inventory)
    if v.view.hostnames.get(name, 0) > 1:
        return FAILURE, f"Hostname {name} is not unique in cluster"
    return SUCCESS, f"Hostname {name} is unique in cluster"


def hostname_valid(v: HostView) -> Result:
    if v.inventory is None:
        return FAILURE, "Missing inventory"
    name = hostname_of(v.host, v.inventory)
    if name in inv.FORBIDDEN_HOSTNAMES:
        return FAILURE, f"The host name {name} is forbidden"
    if not inv.hostname_allowed(name):
        return FAILURE, f"Hostname {name} is forbidden, hostname should match pattern {inv.HOSTNAME}"
    return SUCCESS, f"Hostname {name} is allowed"


_PLATFORM_MAKERS = {"vsphere": "VMware, Inc.", "nutanix": "Nutanix"}


def _made_for(inventory: Mapping[str, Any], platform: str) -> bool:
    maker = str(inventory.get("system_vendor", {}).get("manufacturer", ""))
    return _PLATFORM_MAKERS.get(platform, maker) == maker


def compatible_platform(v: HostView) -> Result:
    platform = (v.cluster.get("platform") or {}).get("type", "")
    if v.inventory is None or not platform:
        return PENDING, "Missing inventory or platform isn't set"
    if not _made_for(v.inventory, platform):
        return FAILURE, (
            f"Host is not compatible with cluster platform {platform}; either disable this host or discover "
            "a new compatible host."
        )
    return SUCCESS, f"Host is compatible with cluster platform {platform}"


def disk_encryption(v: HostView) -> Result:
    encryption = v.cluster.get("disk_encryption") or {}
    enabled = str(encryption.get("enable_on") or "none").split(",")
    if enabled == ["none"] or is_day2(v.cluster):
        return HIDDEN, ""
    if v.inventory is None:
        return PENDING, "Missing host inventory"
    if v.role == "auto-assign":
        return PENDING, "Missing role assignment"
    if "all" not in enabled and f"{v.role}s" not in enabled:
        return HIDDEN, ""
    mode = encryption.get("mode", "tpmv2")
    if mode == "tang":
        answer = v.host.get("tang_connectivity")
        if not answer:
            return PENDING, "Disk encryption check was not performed yet"
        if not load_json(answer, name="answer").get("is_success"):
            return FAILURE, f"Could not validate that all Tang servers are reachable and working: {answer}"
    else:
        tpm = v.inventory.get("tpm_version", "none")
        if tpm == "none":
            return FAILURE, "TPM version could not be found, make sure TPM is enabled in host's BIOS"
        if tpm != "2.0":
            return FAILURE, f"The host's TPM version is not supported, expected-version: 2.0, actual-version: {tpm}"
    return SUCCESS, f"Installation disk can be encrypted using {mode}"


def disk_speed(v: HostView) -> Result:
    info = (
        load_json(v.host.get("disks_info") or "{}", name="disks_info")
        .get(v.host.get("installation_disk_id", ""), {})
        .get("disk_speed", {})
    )
    if v.inventory is not None and not inv.eligible_disks(v.inventory):
        return ERROR, "Validation error"
    if not info.get("tested"):
        return SUCCESS, "Speed of installation disk has not yet been measured"
    if info.get("exit_code"):
        return FAILURE, (
            "While preparing the previous installation the installation disk speed measurement failed or was "
            "found to be insufficient"
        )
    return SUCCESS, "Speed of installation disk is sufficient"


def vsphere_uuid(v: HostView) -> Result:
    if v.inventory is None or not _made_for(v.inventory, "vsphere"):
        return HIDDEN, ""
    if all(disk.get("has_uuid") for disk in inv.eligible_disks(v.inventory)):
        return SUCCESS, "VSphere disk.EnableUUID is enabled for this virtual machine"
    return FAILURE, (
        "VSphere disk.EnableUUID isn't enabled for this virtual machine, it's necessary for disks to be "
        "mounted properly"
    )


def agent_outdated(v: HostView) -> bool:
    found = v.host.get("discovery_agent_version", "")
    return bool(v.view.upgrade_agent and v.view.agent_version and found and found != v.view.agent_version)


def compatible_agent(v: HostView) -> Result:
    if v.host.get("progress", {}).get("current_stage"):
        return HIDDEN, ""
    if not v.view.upgrade_agent:
        return SUCCESS, "Host agent compatibility checking is disabled"
    if agent_outdated(v):
        return FAILURE, (
            "This host's agent is in the process of being upgraded to a compatible version. "
            "This might take a few minutes"
        )
    return SUCCESS, "Host agent is compatible with the service"


def _skipped(v: HostView) -> list[str]:
    return [text for text in str(v.host.get("skip_formatting_disks", "")).split(",") if text]


def no_skip_installation_disk(v: HostView) -> Result:
    if v.host.get("installation_disk_id") in _skipped(v):
        return FAILURE, (
            "Requesting to skip the formatting of the installation disk is not allowed. The installation disk must be "
            "formatted. Please either change this host's installation disk or do not skip the formatting of the "
            "installation disk"
        )
    return SUCCESS, "No request to skip formatting of the installation disk"


def no_skip_missing_disk(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Host inventory not available yet"
    if any(inv.find_disk(v.inventory, ident) is None for ident in _skipped(v)):
        return FAILURE, (
            "One or more of the disks that you have requested to skip the formatting of are no longer present on "
            "this host. To ensure they haven't just changed their identity, please remove your request to skip their "
            "formatting and then if needed add them back using the new ID"
        )
    return SUCCESS, "All disks that have skipped formatting are present in the host inventory"


def machine_networks_needed(cluster: Mapping[str, Any]) -> bool:
    return not user_managed(cluster) or is_sno(cluster)


def outside_balancer(cluster: Mapping[str, Any]) -> bool:
    return (cluster.get("load_balancer") or {}).get("type") == "user-managed"


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


def belongs_to_machine_cidr(v: HostView) -> Result:
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


_DAY2_ALONE = "Day2 host is not required to be connected to other hosts in the cluster"


def majority_least(cluster: Mapping[str, Any], hosts: Iterable[Mapping[str, Any]]) -> int:
    """Least size of a majority group: 2 for two nodes with fencing, else 3."""
    return 2 if fencing(cluster, hosts) else 3


def fencing(cluster: Mapping[str, Any], hosts: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the cluster has two control plane nodes that fence each other, and no arbiter."""
    return (
        control_planes(cluster) == 2
        and sum(role_of(host) == "master" and bool(host.get("fencing_credentials")) for host in hosts) == 2
    )


def belongs_to_majority(v: HostView) -> Result:
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


def mtu_valid(v: HostView) -> Result:
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


def platform_network(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    if not v.inventory.get("system_vendor"):
        return ERROR, "Validation error"
    platform = str(v.inventory["system_vendor"].get("product_name", ""))
    if platform == _OPENSTACK and not user_managed(v.cluster):
        return FAILURE, f"Platform {platform} is allowed only for Single Node OpenShift or user-managed networking"
    return SUCCESS, f"Platform {platform} is allowed"


@_before_reboot
def ntp_synced(v: HostView) -> Result:
    sources = load_json(v.host.get("ntp_sources") or "[]", name="ntp_sources")
    if any(source.get("source_state") == "synced" for source in sources):
        return SUCCESS, "Host NTP is synced"
    return FAILURE, "Host couldn't synchronize with any NTP server"


#: How far the service may be ahead of a host's clock, and the host of the service's, in seconds.
_SERVICE_AHEAD, _HOST_AHEAD = 1200, 3600


@_before_reboot
def time_synced(v: HostView) -> Result:
    if "_clock" not in v.host:
        return PENDING, "Missing host time, can't determine synchronization between host and service"
    ahead = float(v.host["_clock"])
    if -_HOST_AHEAD <= ahead <= _SERVICE_AHEAD:
        return SUCCESS, "Host clock is synchronized with service"
    who, limit = (
        ("service time is ahead of host's", _SERVICE_AHEAD)
        if ahead > 0
        else ("host time is ahead of service", _HOST_AHEAD)
    )
    now = datetime.fromtimestamp(v.view.now, UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC")
    return FAILURE, (
        f"Host clock is not synchronized, {who} at least for {limit / 60:.1f} minutes, please configure an NTP server "
        f"via DHCP. Service time: {now}"
    )


def failed_images(v: HostView) -> list[str]:
    images = load_json(v.host.get("images_status") or "{}", name="images_status")
    return [
        name
        for name, image in images.items()
        if image.get("result") == "failure"
        or (image.get("size_bytes", 0) > 0 and image.get("download_rate", 0) < 0.001)
    ]


def images_available(v: HostView) -> Result:
    failed = failed_images(v)
    if not failed:
        return (
            SUCCESS,
            "All required container images were either pulled successfully or no attempt was made to pull them",
        )
    return FAILURE, (
        f"Failed to fetch container images needed for installation from {','.join(failed)}. This may be due to a "
        "network hiccup. Retry to install again. If this problem persists, check your network settings to make "
        "sure you\u2019re not blocked."
    )


_MANY = 4


def _pings(v: HostView) -> str:
    """Commands that a person tries when packets are late or lost."""
    lines = [
        f"2: Please try the following commands on the host {hostname_of(v.host, v.inventory)} to investigate the packet loss further\n\n"
    ]
    for nic in (v.inventory or {}).get("interfaces", ()):
        texts = nic.get("ipv4_addresses", ())
        lines += [f"ping -c 10 -W 3 -q -I {nic.get('name', '')} {text}\n" for text in texts[: _MANY + 1]]
        lines += ["etc... \n"] if len(texts) > _MANY + 1 else []
    return "".join(lines) if len(lines) > 1 else ""


def _quality(v: HostView, key: str, position: int, words: tuple[str, str, str, str], actions: str) -> Result:
    """Latency or loss between hosts of one role. `words`: name, verb in the message, format of a value, of the threshold."""
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


def latency(v: HostView) -> Result:
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


def packet_loss(v: HostView) -> Result:
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


def default_route(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Missing default routing information."
    for route in v.inventory.get("routes", ()):
        if route.get("destination", "").partition("/")[0] in ("0.0.0.0", "::") and route.get("gateway"):
            return SUCCESS, "Host has been configured with at least one default route."
    return FAILURE, "Host has not yet been configured with a default route."


def _own_domain(prefix: str, shown_prefix: str, what: str) -> HostCheck:
    """Whether the user's DNS knows a name of the cluster; the installation needs it where nobody else answers for it."""

    def check(v: HostView) -> Result:
        name, shown_name = domain(v.cluster, prefix), domain(v.cluster, shown_prefix)
        good = (SUCCESS, f"Domain name resolution for the {shown_name} domain was successful or not required")
        if v.cluster.get("imported") and not any(_reaches_api(host) for host in v.view.hosts.values()):
            return PENDING, (
                f"DNS validation for the {shown_name} domain cannot be completed at the moment. This could be due to other validations"
            )
        if not dns_needed(v.cluster, v.view.dnsmasq):
            return good
        if not v.cluster.get("base_dns_domain"):
            return ERROR, (
                f"DNS validation for the {what} domain cannot be completed because the cluster does not have base_dns_domain "
                "set. Please update the cluster with the correct base_dns_domain"
            )
        if not v.host.get("domain_name_resolutions"):
            return ERROR, "Error while evaluating DNS resolution on this host"
        found = v.resolved(name)
        if not found:
            return FAILURE, (
                f"Couldn't resolve domain name {shown_name} on the host. To continue installation, create the necessary DNS "
                f"entries to resolve this domain name to your cluster's {what} IP address"
            )
        own = {text.partition("/")[0] for text in address_list(v.inventory or {})} & set(found)
        if own and not is_sno(v.cluster) and not is_day2(v.cluster):
            return FAILURE, (
                f"Domain {shown_name} must not point at {sorted(own)[0]} as it is the API address of this host. This domain must "
                "instead point at the IP address of a load balancer when using user managed networking in a multi "
                "control-plane node cluster"
            )
        return good

    return check


WILDCARD = "validateNoWildcardDNS"


def no_wildcard(v: HostView) -> Result:
    if is_day2(v.cluster):
        return SUCCESS, "DNS wildcard check is not required for day2"
    if not v.host.get("domain_name_resolutions"):
        return (
            PENDING,
            "DNS wildcard check cannot be performed yet because the host has not yet performed DNS resolution",
        )
    name, cluster = domain(v.cluster, WILDCARD), f"*.{v.cluster.get('name')}.{v.cluster.get('base_dns_domain')}"
    for asked, text in (
        (
            f"{name}.",
            f"DNS wildcard configuration was detected for domain {cluster} - the installation will not be able to complete "
            "while this record exists. Please remove it to proceed. The domain resolves to ",
        ),
        (
            name,
            f"Unexpected domain name resolution was detected for the relative domain name with the sub-domain {cluster} despite "
            "the fact that no resolution exists for a Fully Qualified Domain Name (FQDN) with same sub-domain. This is usually a "
            "sign of DHCP-provided domain-search configuration. The installation will not be able to complete with this "
            "configuration in place. Please remove it to proceed. The relative domain name resolves to ",
        ),
    ):
        found = v.resolved(asked)
        if found is None:
            return ERROR, (
                "Internal error - DNS wildcard check cannot be performed because the DNS validation result doesn't contain "
                "the wildcard domain"
            )
        if found:
            return FAILURE, text + ", ".join(found)
    return SUCCESS, "DNS wildcard check was successful"


def non_overlapping(v: HostView) -> Result:
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
            if overlapping([cidr, other]):
                text = f"Address networks {cidr} in interface {nic_name} and {other} in interface {other_name} overlap"
                return FAILURE, f"Address networks are overlapping: {text}"
    return SUCCESS, "Host subnets are not overlapping"


def ignition_downloadable(v: HostView) -> Result:
    if not is_day2(v.cluster):
        return HIDDEN, ""
    answer = load_json(v.host.get("api_vip_connectivity") or "{}", name="api_vip_connectivity")
    if not answer:
        return PENDING, "Ignition is not yet available, pending API connectivity"
    if answer.get("is_success"):
        return SUCCESS, "Ignition is downloadable"
    if not answer.get("url"):
        return FAILURE, (
            "This host has failed to download the ignition file from the cluster, please ensure the host can reach the cluster"
        )
    return FAILURE, (
        f"This host has failed to download the ignition file from {answer['url']} with the following error: "
        f"{answer.get('download_error', '')}. Please ensure the host can reach this URL"
    )


def no_collisions(v: HostView) -> Result:
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


def _iscsi(v: HostView, disk: Mapping[str, Any]) -> Result:
    ip = (disk.get("iscsi") or {}).get("host_ip_address", "")
    if not ip:
        return ERROR, "iSCSI disk is missing host IP address"
    nics = [nic for nic, text in addresses(v.inventory or {}) if text.partition("/")[0] == ip]
    if not nics:
        return ERROR, "Cannot find network interface associated to iSCSI host IP address"
    own = (*nics[0].get("ipv4_addresses", ()), *nics[0].get("ipv6_addresses", ()))
    bad = any(contains(machine_cidrs(v.cluster)[0], text) for text in own)
    return (FAILURE, _ISCSI_BAD) if bad else (SUCCESS, _ISCSI_GOOD)


def no_iscsi_nic(v: HostView) -> Result:
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


_DAY2_OPERATOR = "{} validation is disabled when adding hosts to an existing cluster."


def _host_operator(name: str) -> HostCheck:
    def check(v: HostView) -> Result:
        if name not in v.view.operators:
            return SUCCESS, f"{name} is disabled"
        if is_day2(v.cluster):
            return SUCCESS, _DAY2_OPERATOR.format(name)
        return operators.validate_host(name, v.view, v.host)

    return check


#: (id, category, function) in upstream's order.
HOST: tuple[tuple[str, str, HostCheck], ...] = (
    ("connected", "network", connected),
    ("media-connected", "network", media_connected),
    ("has-inventory", "hardware", has_inventory),
    ("inventory-not-partially-truncated", "hardware", not_partially_truncated),
    ("inventory-not-fully-truncated", "hardware", not_fully_truncated),
    ("has-min-cpu-cores", "hardware", min_cpu),
    ("has-min-memory", "hardware", min_memory),
    ("has-min-valid-disks", "hardware", min_disks),
    ("has-cpu-cores-for-role", "hardware", role_cpu),
    ("has-memory-for-role", "hardware", role_memory),
    ("hostname-unique", "hardware", hostname_unique),
    ("hostname-valid", "hardware", hostname_valid),
    ("ignition-downloadable", "network", ignition_downloadable),
    ("belongs-to-majority-group", "network", belongs_to_majority),
    ("valid-platform-network-settings", "network", platform_network),
    ("ntp-synced", "network", ntp_synced),
    ("time-synced-between-host-and-service", "network", time_synced),
    ("container-images-available", "network", images_available),
    ("sufficient-installation-disk-speed", "hardware", disk_speed),
    ("sufficient-network-latency-requirement-for-role", "network", latency),
    ("sufficient-packet-loss-requirement-for-role", "network", packet_loss),
    ("has-default-route", "network", default_route),
    ("api-domain-name-resolved-correctly", "network", _own_domain("api", "api", "API load balancer")),
    (
        "api-int-domain-name-resolved-correctly",
        "network",
        _own_domain("api-int", "api-int", "internal API load balancer"),
    ),
    (
        "apps-domain-name-resolved-correctly",
        "network",
        _own_domain("console-openshift-console.apps", "*.apps", "application ingress"),
    ),
    ("compatible-with-cluster-platform", "hardware", compatible_platform),
    ("dns-wildcard-not-configured", "network", no_wildcard),
    ("disk-encryption-requirements-satisfied", "hardware", disk_encryption),
    ("non-overlapping-subnets", "network", non_overlapping),
    ("vsphere-disk-uuid-enabled", "hardware", vsphere_uuid),
    ("compatible-agent", "hardware", compatible_agent),
    ("no-skip-installation-disk", "hardware", no_skip_installation_disk),
    ("no-skip-missing-disk", "hardware", no_skip_missing_disk),
    ("no-ip-collisions-in-network", "network", no_collisions),
    ("no-iscsi-nic-belongs-to-machine-cidr", "network", no_iscsi_nic),
    ("machine-cidr-defined", "network", machine_cidr_defined),
    ("belongs-to-machine-cidr", "network", belongs_to_machine_cidr),
    ("mtu-valid", "network", mtu_valid),
    *((op.validation, "operators", _host_operator(op.name)) for op in operators.OPERATORS.values()),
)

MIN_HARDWARE: tuple[str, ...] = (
    "has-min-valid-disks",
    "has-min-cpu-cores",
    "has-min-memory",
    "compatible-with-cluster-platform",
    "disk-encryption-requirements-satisfied",
)
#: What is looked at in a host of no cluster; the last four must hold before it is bound to one.
UNBOUND: tuple[str, ...] = (
    "connected",
    "media-connected",
    "has-inventory",
    "inventory-not-fully-truncated",
    "has-min-valid-disks",
    "has-min-cpu-cores",
    "has-min-memory",
    "hostname-valid",
)
INPUT: tuple[str, ...] = ("machine-cidr-defined",)
#: Shown, but no reason to hold an installation back.
NOT_BLOCKING: frozenset[str] = frozenset(
    {
        "ntp-synced",
        "mtu-valid",
        "container-images-available",
        "inventory-not-partially-truncated",
        "connected",
        "media-connected",
        "has-inventory",
    }
)
SUFFICIENT: tuple[str, ...] = tuple(
    ident for ident, *__ in HOST if ident not in NOT_BLOCKING and ident not in MIN_HARDWARE and ident not in INPUT
)


# --- clusters -------------------------------------------------------------------------------------------------------

ClusterCheck = Callable[[View], Result]


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


def _cidrs(v: View) -> dict[str, list[str]]:
    return {
        name: [entry["cidr"] for entry in v.cluster.get(name, ()) if entry.get("cidr")]
        for name in ("machine_networks", "service_networks", "cluster_networks")
    }


def _missing_networks(v: View) -> Result | None:
    """What is pending while networks are not all defined."""
    names = ["machine_networks"] if machine_networks_needed(v.cluster) else []
    if all(v.cluster.get(name) for name in (*names, "cluster_networks", "service_networks")):
        return None
    listed = "Machine Network, Cluster Network, Service Network" if names else "Cluster Network, Service Network"
    return PENDING, f"At least one of the CIDRs ({listed}) is undefined."


def c_overlap(v: View) -> Result:
    missing = None if is_day2(v.cluster) else _missing_networks(v)
    if missing:
        return missing
    found = _cidrs(v)
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
            if one and (one == other or overlapping([one, other])):
                return FAILURE, f"CIDRS Overlapping: {label}: CIDRS {one} and {other} overlap."
    return SUCCESS, "No CIDRS are overlapping."


def _families_in_order(cidrs: list[str]) -> list[str]:
    kinds = [family(cidr) for cidr in cidrs]
    return [kind for number, kind in enumerate(kinds) if number == 0 or kind != kinds[number - 1]]


def c_families(v: View) -> Result:
    missing = None if is_day2(v.cluster) else _missing_networks(v)
    if missing:
        return missing
    found = {name: _families_in_order(cidrs) for name, cidrs in _cidrs(v).items()}
    if found["service_networks"] != found["cluster_networks"]:
        return FAILURE, "Address families of networks (ServiceNetworks, ClusterNetworks) are not the same."
    if machine_networks_needed(v.cluster) and found["machine_networks"] != found["service_networks"]:
        return FAILURE, (
            "Address families of networks (MachineNetworks, ServiceNetworks, ClusterNetworks) are not the same."
        )
    return SUCCESS, "Same address families for all networks."


def c_prefix(v: View) -> Result:
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
    """The hosts' network that holds the VIP of a number; empty when no host is on it."""
    for key in ("api_vips", "ingress_vips"):
        vips = [vip["ip"] for vip in v.cluster.get(key, ()) if vip.get("ip")]
        if number < len(vips):
            return network_of(vips[number], v.inventories.values())
    return ""


def network_of(ip: str, inventories: Iterable[Mapping[str, Any]]) -> str:
    """The first network of hosts that holds an address; empty when no host is on it."""
    networks = (cidr for found in inventories for cidr in host_networks(found))
    return next((cidr for cidr in networks if contains(cidr, ip)), "")


def c_calculated(v: View) -> Result:
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
        # The form of upstream's library for lists of errors.
        lines = "".join(f"\n\t* {text}" for text in errors)
        return FAILURE, f"{len(errors)} error{'s' if len(errors) > 1 else ''} occurred:{lines}\n\n"
    return SUCCESS, "The Cluster Machine CIDR is equivalent to the calculated CIDR."


def vips_needed(cluster: Mapping[str, Any]) -> bool:
    return not (is_sno(cluster) or user_managed(cluster) or is_day2(cluster))


def _vips_defined(key: str, label: str) -> ClusterCheck:
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
    """The addresses of a host in the cluster's machine networks, one for each."""
    found = [text.partition("/")[0] for text in address_list(v.inventories.get(ident) or {})]
    cidrs = machine_cidrs(v.cluster)
    return [next(text for text in found if contains(cidr, text)) for cidr in cidrs if any(contains(cidr, text) for text in found)]


def free_addresses(hosts: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """For each network that hosts looked at, the addresses that all of them found free; networks without any are left out."""
    found: dict[str, frozenset[str]] = {}
    for host in hosts:
        for entry in load_json(host.get("free_addresses") or "[]", name="free_addresses"):
            free, name = frozenset(entry.get("free_addresses", ())), str(entry.get("network", ""))
            found[name] = found[name] & free if name in found else free
    return {name: free for name, free in found.items() if free}


def _free(v: View, ip: str, cidr: str) -> str:
    """Whether an address answers, by the hosts' lists of free addresses of the network: one of the verifications."""
    common = free_addresses(v.hosts.values()).get(cidr)
    if not common:
        return "unverified"
    return "succeeded" if ip in common else "failed"


def _vip(v: View, vip: Mapping[str, Any], cidr: str, label: str, free: bool) -> tuple[str, str]:
    """(verification, what is wrong) of a VIP in one machine network."""
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


def _vips_valid(key: str, name: str) -> ClusterCheck:
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


def c_domain(v: View) -> Result:
    if v.cluster.get("base_dns_domain") or is_day2(v.cluster):
        return SUCCESS, "The base domain is defined."
    return FAILURE, "The base domain is undefined and must be provided."


_NO_CLOCK = frozenset({"disconnected", "resetting-pending-user-action", "discovering"})


def c_ntp(v: View) -> Result:
    clocks = [float(h["_clock"]) for h in v.hosts.values() if "_clock" in h and h.get("status") not in _NO_CLOCK]
    if clocks and (max(clocks) - min(clocks)) // 60 > 4:
        return FAILURE, (
            "Hosts' clocks are not synchronized (there's more than a 4 minutes gap between clocks), please configure "
            "an NTP server via DHCP or set clocks manually."
        )
    return SUCCESS, "No ntp problems found"


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


def c_custom_manifests(v: View) -> Result:
    kind = v.cluster.get("network_type", "")
    with contextlib.suppress(ValueError, AttributeError):
        overrides = load_json(v.cluster.get("install_config_overrides") or "{}", name="install_config_overrides")
        kind = (overrides.get("networking") or {}).get("networkType") or kind
    if kind not in ("Cilium", "Calico", "CiscoACI", "None"):
        return SUCCESS, "No custom manifests are required"
    if v.manifests:
        return SUCCESS, "Custom manifests are uploaded"
    return FAILURE, (
        f"Custom manifests are required for: {kind} network type. Please upload manifests via the custom manifests API."
    )


def c_platform(v: View) -> Result:
    platform = v.cluster.get("platform") or {}
    if (platform.get("external") or {}).get("platform_name") == "oci" and not v.manifests:
        return FAILURE, (
            "The custom manifest required for Oracle Cloud Infrastructure platform integration has not been added. Add a custom "
            "manifest to continue."
        )
    return SUCCESS, "Platform requirements satisfied"


_READY = frozenset({"known", "preparing-for-installation", "preparing-successful"})


def c_hosts_ready(v: View) -> Result:
    if all(host["status"] in _READY for host in v.hosts.values()):
        return SUCCESS, "All hosts in the cluster are ready to install."
    return FAILURE, "The cluster has hosts that are not ready to install."


def c_masters(v: View) -> Result:
    roles = [role_of(host) for host in v.hosts.values()]
    wanted = control_planes(v.cluster)
    good = (SUCCESS, "The cluster has the exact amount of dedicated control plane nodes.")
    if is_day2(v.cluster):
        return good
    if wanted == 1:
        if roles == ["master"]:
            return good
        return FAILURE, "Single-node clusters must have a single control plane node and no workers."
    missing = wanted == 2 and "arbiter" not in roles and not fencing(v.cluster, v.hosts.values())
    suffix = " and at least 1 arbiter node or the control plane nodes must have fencing credentials" if missing else ""
    if roles.count("master") == wanted and not missing:
        return good
    return FAILURE, (
        f"The cluster must have exactly {wanted} dedicated control plane nodes{suffix}. Add or remove hosts, or change "
        "their roles configurations to meet the requirement."
    )


def c_pull_secret(v: View) -> Result:
    if v.cluster.get("pull_secret_set") or is_day2(v.cluster):
        return SUCCESS, "The pull secret is set."
    return FAILURE, "The pull secret is not set."


def _cluster_operator(name: str, validate: Callable[[View], Result]) -> ClusterCheck:
    def check(v: View) -> Result:
        if name not in v.operators:
            return SUCCESS, f"{name} is disabled"
        return (SUCCESS, _DAY2_OPERATOR.format(name)) if is_day2(v.cluster) else validate(v)

    return check


def _ai_gpu(v: View) -> Result:
    """Shown of clusters that get OpenShift AI only."""
    return operators.validate_ai_gpu(v) if "openshift-ai" in v.operators else (HIDDEN, "")


CLUSTER: tuple[tuple[str, str, ClusterCheck], ...] = (
    ("machine-cidr-defined", "network", c_machine_cidr),
    ("cluster-cidr-defined", "network", _defined("cluster_networks", "Cluster")),
    ("service-cidr-defined", "network", _defined("service_networks", "Service")),
    ("no-cidrs-overlapping", "network", c_overlap),
    ("networks-same-address-families", "network", c_families),
    ("network-prefix-valid", "network", c_prefix),
    ("machine-cidr-equals-to-calculated-cidr", "network", c_calculated),
    ("api-vips-defined", "network", _vips_defined("api_vips", "API")),
    ("api-vips-valid", "network", _vips_valid("api_vips", "API")),
    ("ingress-vips-defined", "network", _vips_defined("ingress_vips", "Ingress")),
    ("ingress-vips-valid", "network", _vips_valid("ingress_vips", "Ingress")),
    ("all-hosts-are-ready-to-install", "hosts-data", c_hosts_ready),
    ("sufficient-masters-count", "hosts-data", c_masters),
    ("dns-domain-defined", "network", c_domain),
    ("pull-secret-set", "configuration", c_pull_secret),
    ("ntp-server-configured", "network", c_ntp),
    ("network-type-valid", "network", c_network_type),
    ("openshift-ai-gpu-requirements-satisfied", "operators", _ai_gpu),
    ("custom-manifests-requirements-satisfied", "network", c_custom_manifests),
    ("platform-requirements-satisfied", "configuration", c_platform),
    *(
        (op.validation, "operators", _cluster_operator(op.name, functools.partial(operators.validate_cluster, op.name)))
        for op in operators.OPERATORS.values()
    ),
)

CLUSTER_INPUT: tuple[str, ...] = (
    "machine-cidr-defined",
    "cluster-cidr-defined",
    "service-cidr-defined",
    "dns-domain-defined",
    "pull-secret-set",
    "api-vips-defined",
    "ingress-vips-defined",
)
CLUSTER_SUFFICIENT: tuple[str, ...] = tuple(ident for ident, *__ in CLUSTER if ident not in CLUSTER_INPUT)


#: Validations that cannot be ignored.
NEVER_IGNORED: dict[str, frozenset[str]] = {
    "host": frozenset(
        {
            "connected",
            "has-inventory",
            "inventory-not-fully-truncated",
            "machine-cidr-defined",
            "hostname-unique",
            "hostname-valid",
        }
    ),
    "cluster": frozenset(
        {
            "api-vips-defined",
            "ingress-vips-defined",
            "all-hosts-are-ready-to-install",
            "sufficient-masters-count",
            "pull-secret-set",
        }
    ),
}


def evaluate(table: tuple[tuple[str, str, Callable[[Any], Result]], ...], view: Any) -> dict[str, tuple[str, str, str]]:
    """id -> (category, status, message) for every validation of a table."""
    return {ident: (category, *check(view)) for ident, category, check in table}


def passed(
    results: Mapping[str, tuple[str, str, str]], idents: tuple[str, ...], ignored: frozenset[str] = frozenset()
) -> bool:
    """Whether validations hold or are ignored; `all` ignores whatever may be."""
    return all(results[ident][1] in (SUCCESS, HIDDEN) or ident in ignored for ident in idents)


def shown(results: Mapping[str, tuple[str, str, str]]) -> str:
    """`validations_info`: JSON in a string, by category."""
    categories: dict[str, list[dict[str, str]]] = {}
    for ident, (category, status, message) in sorted(results.items(), key=lambda item: (item[1][0], item[0])):
        if status != HIDDEN:
            categories.setdefault(category, []).append({"id": ident, "status": status, "message": message})
    return json.dumps(categories, ensure_ascii=False, separators=(",", ":"))


def failing(results: Mapping[str, tuple[str, str, str]]) -> str:
    """$FAILING_VALIDATIONS: every message that failed, whether it blocks or not."""
    return " ; ".join(sorted(message for __, status, message in results.values() if status == FAILURE))


def release_image_host(image: str) -> str:
    """The registry's name in a pullspec, without port."""
    host, slash, __ = image.partition("/")
    if not slash:
        return ""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def address_list(inventory: Mapping[str, Any]) -> list[str]:
    """Addresses of a host without prefix."""
    return [text.partition("/")[0] for __, text in addresses(inventory)]
