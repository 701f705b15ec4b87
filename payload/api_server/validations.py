"""Validations of hosts and clusters: pure functions of a view, in tables with id and category.

A validation gives (status, message); status is success, failure, pending, error or disabled, or `hidden`: it holds
and is not shown. Ids and messages are those of assisted-service.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import inventory as inv
from . import operators
from .connectivity import Reach
from .facts import control_planes, domain, hostname_of, is_day2, is_sno, machine_cidrs, role_of, user_managed
from .network import addresses, contains, family, host_networks, in_networks, network, overlapping
from .tables import AFTER_REBOOT, MEDIA_DISCONNECTED

Result = tuple[str, str]
SUCCESS, FAILURE, PENDING, HIDDEN = "success", "failure", "pending", "hidden"


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
    """The least of CPU and RAM that any role needs."""
    if is_sno(cluster) and not is_day2(cluster):
        return requirement(table, cluster, "master")
    names = ["master", "worker"] + (["arbiter"] if control_planes(cluster) == 2 else [])
    roles = [table[name] for name in names if name in table]
    return (
        {key: min(values.get(key, 0) for values in roles) for key in ("cpu_cores", "ram_mib", "disk_size_gb")}
        if roles
        else {}
    )


def dns_needed(cluster: Mapping[str, Any], dnsmasq: bool) -> bool:
    """Whether the user's DNS has to know api, api-int and apps."""
    if is_day2(cluster):
        return False
    if is_sno(cluster) and dnsmasq:
        return False
    return user_managed(cluster) or (cluster.get("load_balancer") or {}).get("type") == "user-managed"


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
    release_host: str = ""
    images: tuple[str, ...] = ()
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
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
        """Addresses the host resolved a name to; None when it has not tried."""
        if self._resolved is None:
            self._resolved = {}
            for entry in json.loads(self.host.get("domain_name_resolutions") or "{}").get("resolutions", ()):
                found = [*entry.get("ipv4_addresses", ()), *entry.get("ipv6_addresses", ())]
                self._resolved.setdefault(entry.get("domain_name", "").rstrip("."), []).extend(found)
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


def connected(v: HostView) -> Result:
    return (SUCCESS, "Host is connected") if v.connected or v.late else (FAILURE, "Host is disconnected")


def media_connected(v: HostView) -> Result:
    bad = v.host.get("media_status") == "disconnected" and not v.late
    return (FAILURE, MEDIA_DISCONNECTED) if bad else (SUCCESS, "Media device is connected")


def has_inventory(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Inventory has not been received for the host"
    return SUCCESS, "Valid inventory exists for the host"


def _truncation(v: HostView, kind: str, other: str) -> Result:
    truncation = (v.inventory or {}).get("truncation")
    if not truncation:
        return SUCCESS, "Inventory is not truncated"
    if truncation.get("type") == kind:
        return FAILURE, "; ".join(truncation.get("reasons", ())) or f"Inventory is {kind}ly truncated"
    return SUCCESS, f"Inventory is {other} truncated"


def not_partially_truncated(v: HostView) -> Result:
    return _truncation(v, "partial", "not partially")


def not_fully_truncated(v: HostView) -> Result:
    return _truncation(v, "full", "partially")


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
    if inv.eligible_disks(v.inventory):
        return SUCCESS, "Sufficient disk capacity"
    return FAILURE, "No eligible disks were found, please check specific disks to see why they are not eligible"


def role_cpu(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    needed, found = v.total.get("cpu_cores", 0), v.inventory.get("cpu", {}).get("count", 0)
    if found >= needed:
        return SUCCESS, f"Sufficient CPU cores for role {v.role}"
    return FAILURE, f"Require at least {needed} CPU cores for {v.role} role, found only {found}"


def role_memory(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    needed = v.total.get("ram_mib", 0)
    if inv.ram_fits(v.inventory, needed):
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
        return NO_INVENTORY
    name = hostname_of(v.host, v.inventory)
    if name in inv.FORBIDDEN_HOSTNAMES:
        return FAILURE, f"The host name {name} is forbidden"
    if not inv.hostname_allowed(name):
        return FAILURE, f"Hostname {name} is forbidden, hostname should match pattern {inv.HOSTNAME}"
    return SUCCESS, f"Hostname {name} is allowed"


_PLATFORM_MAKERS = {"vsphere": "vmware", "nutanix": "nutanix"}


def compatible_platform(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    platform = (v.cluster.get("platform") or {}).get("type", "baremetal")
    maker = str(v.inventory.get("system_vendor", {}).get("manufacturer", "")).lower()
    if _PLATFORM_MAKERS.get(platform, "") not in maker:
        return FAILURE, (
            f"Host is not compatible with cluster platform {platform}; either disable this host or discover "
            "a new compatible host."
        )
    return SUCCESS, f"Host is compatible with cluster platform {platform}"


def disk_encryption(v: HostView) -> Result:
    encryption = v.cluster.get("disk_encryption") or {}
    enabled = str(encryption.get("enable_on", "none")).split(",")
    if "all" not in enabled and f"{v.role}s" not in enabled:
        return HIDDEN, ""
    if v.inventory is None:
        return NO_INVENTORY
    if encryption.get("mode", "tpmv2") == "tpmv2":
        tpm = v.inventory.get("tpm_version", "none")
        if tpm == "none":
            return FAILURE, "TPM version could not be found, make sure TPM is enabled in host's BIOS"
        if tpm != "2.0":
            return FAILURE, f"The host's TPM version is not supported, expected-version: 2.0, actual-version: {tpm}"
        return SUCCESS, "Installation disk can be encrypted using tpmv2"
    answer = v.host.get("tang_connectivity")
    if not answer:
        return PENDING, "Missing Tang connectivity information"
    if not json.loads(answer).get("is_success"):
        return FAILURE, f"Could not validate that all Tang servers are reachable and working: {answer}"
    return SUCCESS, "Installation disk can be encrypted using tang"


def disk_speed(v: HostView) -> Result:
    info = (
        json.loads(v.host.get("disks_info") or "{}")
        .get(v.host.get("installation_disk_id", ""), {})
        .get("disk_speed", {})
    )
    if not info.get("tested"):
        return SUCCESS, "Speed of installation disk has not yet been measured"
    if info.get("exit_code"):
        return FAILURE, (
            "While preparing the previous installation the installation disk speed measurement failed or was "
            "found to be insufficient"
        )
    return SUCCESS, "Speed of installation disk is sufficient"


def vsphere_uuid(v: HostView) -> Result:
    if (v.cluster.get("platform") or {}).get("type") != "vsphere":
        return SUCCESS, "VSphere disk.EnableUUID is enabled for this virtual machine"
    if v.inventory is None:
        return NO_INVENTORY
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
            "Requesting to skip the formatting of the installation disk is not allowed. It is always formatted. "
            "Either change this host's installation disk or do not skip the formatting of it"
        )
    return SUCCESS, "No request to skip formatting of the installation disk"


def no_skip_missing_disk(v: HostView) -> Result:
    if any(inv.find_disk(v.inventory or {}, ident) is None for ident in _skipped(v)):
        return FAILURE, (
            "One or more of the disks that you have requested to skip the formatting of are no longer present on "
            "this host. Request that they be formatted, or add them back"
        )
    return SUCCESS, "All disks that have skipped formatting are present in the host inventory"


def _cidr_needed(cluster: Mapping[str, Any]) -> bool:
    return not (is_day2(cluster) or (user_managed(cluster) and not is_sno(cluster)))


def machine_cidr_defined(v: HostView) -> Result:
    if machine_cidrs(v.cluster):
        return SUCCESS, "Machine Network CIDR is defined"
    if not _cidr_needed(v.cluster):
        return SUCCESS, "No Machine Network CIDR needed: " + (
            "Day2 cluster" if is_day2(v.cluster) else "User Managed Networking"
        )
    if is_sno(v.cluster) or v.cluster.get("vip_dhcp_allocation"):
        return FAILURE, "Machine Network CIDR is undefined"
    return FAILURE, (
        "Machine Network CIDR is undefined; the Machine Network CIDR can be defined by setting either the API "
        "or Ingress virtual IPs"
    )


def _in_machine_networks(v: HostView, inventory: Mapping[str, Any]) -> bool:
    cidrs = machine_cidrs(v.cluster)
    per_family = len({family(cidr) for cidr in cidrs}) == len(cidrs)
    return (all if per_family else any)(in_networks(inventory, cidr) for cidr in cidrs)


def belongs_to_machine_cidr(v: HostView) -> Result:
    if not _cidr_needed(v.cluster):
        return SUCCESS, "Host belongs to all machine network CIDRs"
    if v.inventory is None or not machine_cidrs(v.cluster):
        return PENDING, "Missing inventory or machine network CIDR"
    if _in_machine_networks(v, v.inventory):
        return SUCCESS, "Host belongs to all machine network CIDRs"
    return FAILURE, (
        "Host does not belong to machine network CIDRs. Verify that the host belongs to every CIDR listed under "
        "machine networks"
    )


def majority_names(cluster: Mapping[str, Any]) -> list[str]:
    """Networks whose majority group matters; with user-managed networking one of the families is enough."""
    return ["IPv4", "IPv6"] if user_managed(cluster) else machine_cidrs(cluster)


def majority_least(cluster: Mapping[str, Any]) -> int:
    return 2 if control_planes(cluster) == 2 else 3


def belongs_to_majority(v: HostView) -> Result:
    good = (SUCCESS, "Host has connectivity to the majority of hosts in the cluster")
    if is_sno(v.cluster) or is_day2(v.cluster):
        return good
    if len(v.view.hosts) < majority_least(v.cluster):
        return PENDING, "Not enough hosts in cluster to calculate connectivity groups"
    groups = [v.view.groups.get(name, frozenset()) for name in majority_names(v.cluster)]
    if not groups or v.host["id"] not in v.view.reach.reached:
        return PENDING, "Machine Network CIDR or Connectivity Majority Groups missing"
    if (any if user_managed(v.cluster) else all)(v.host["id"] in group for group in groups):
        return good
    return FAILURE, "No connectivity to the majority of hosts in the cluster"


def mtu_valid(v: HostView) -> Result:
    if is_sno(v.cluster):
        return HIDDEN, ""
    broken = [f"Interface: {nic}, remote IP address: {ip}" for nic, ip in v.view.reach.mtu.get(v.host["id"], ())]
    return (FAILURE, "MTU is broken. " + "; ".join(broken)) if broken else (SUCCESS, "MTU is ok")


def platform_network(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    vendor = v.inventory.get("system_vendor", {})
    platform = str(vendor.get("product_name", ""))
    if platform == "OpenStack Compute" and not (user_managed(v.cluster) or is_sno(v.cluster)):
        return FAILURE, f"Platform {platform} is allowed only for Single Node OpenShift or user-managed networking"
    return SUCCESS, f"Platform {platform} is allowed"


def ntp_synced(v: HostView) -> Result:
    sources = json.loads(v.host.get("ntp_sources") or "[]")
    if v.late or any(source.get("source_state") == "synced" for source in sources):
        return SUCCESS, "Host NTP is synced"
    return FAILURE, "Host couldn't synchronize with any NTP server"


def time_synced(v: HostView) -> Result:
    ahead = float(v.host.get("_clock", 0))
    if v.late or -3600 <= ahead <= 1200:
        return SUCCESS, "Host clock is synchronized with service"
    return FAILURE, (
        f"Host clock is not synchronized, service time is {'ahead of' if ahead > 0 else 'behind'} host's at least for "
        f"{abs(ahead) / 60:.1f} minutes, please configure an NTP server via DHCP. Service time: {v.view.now:.0f}"
    )


def failed_images(v: HostView) -> list[str]:
    images = json.loads(v.host.get("images_status") or "{}")
    return [
        name
        for name, image in images.items()
        if image.get("result") == "failure" or 0 < image.get("download_rate", 0) < 0.001
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
        "sure you're not blocked."
    )


def _quality(
    v: HostView, key: str, position: int, good: str, missing: str, bad: Callable[[float, str, float], str]
) -> Result:
    threshold = v.requirement.get(key)
    peers = v.view.by_role.get(v.role, [])
    if threshold is None or is_sno(v.cluster) or is_day2(v.cluster) or len(peers) < 2 or v.role == "auto-assign":
        return SUCCESS, good
    quality = v.view.reach.quality.get(v.host["id"])
    if quality is None:
        return PENDING, missing
    over = []
    for peer in peers:
        value = quality.get(peer, (-1.0, -1.0))[position]
        if value > threshold:
            over.append(bad(threshold, hostname_of(v.view.hosts[peer], v.view.inventories.get(peer)), value))
    return (FAILURE, " ".join(over)) if over else (SUCCESS, good)


def latency(v: HostView) -> Result:
    return _quality(
        v,
        "network_latency_threshold_ms",
        0,
        "Network latency requirement has been satisfied.",
        "Missing network latency information.",
        lambda limit, peer, value: (
            f"Network latency requirements of less than or equal {limit:.2f} ms not met for connectivity "
            f"between {hostname_of(v.host, v.inventory)} and {peer} ({value:.2f} ms)."
        ),
    )


def packet_loss(v: HostView) -> Result:
    return _quality(
        v,
        "packet_loss_percentage",
        1,
        "Packet loss requirement has been satisfied.",
        "Missing packet loss information.",
        lambda limit, peer, value: (
            f"Packet loss percentage requirement of equal or less than {limit:.2f}% not met for "
            f"connectivity between {hostname_of(v.host, v.inventory)} and {peer} ({value:.2f}%)."
        ),
    )


def default_route(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    for route in v.inventory.get("routes", ()):
        if route.get("destination", "").partition("/")[0] in ("0.0.0.0", "::") and route.get("gateway"):
            return SUCCESS, "Host has been configured with at least one default route."
    return FAILURE, "Host has not yet been configured with a default route."


def _domain(v: HostView, name: str, label: str, what: str, needed: bool) -> Result:
    if not needed:
        return SUCCESS, f"Domain name resolution for the {label} domain was successful or not required"
    found = v.resolved(name)
    if found is None:
        return PENDING, "DNS validation cannot be completed at the moment. This could be due to other validations"
    if found:
        return SUCCESS, f"Domain name resolution for the {name} domain was successful or not required"
    return FAILURE, (
        f"Couldn't resolve domain name {name} on the host. To continue installation, create the necessary DNS "
        f"entries to resolve this domain name to your cluster's {what} IP address"
    )


def _own_domain(prefix: str, label: str, what: str) -> HostCheck:
    def check(v: HostView) -> Result:
        name = domain(v.cluster, prefix)
        return _domain(
            v,
            name,
            f"{label}.{v.cluster.get('name', '')}.{v.cluster.get('base_dns_domain', '')}",
            what,
            dns_needed(v.cluster, v.view.dnsmasq),
        )

    return check


def release_domain(v: HostView) -> Result:
    name = v.view.release_host
    needed = bool(name) and not contains("0.0.0.0/0", name) and not contains("::/0", name)
    return _domain(v, name, name, "release image host", needed)


WILDCARD = "validateNoWildcardDNS"


def no_wildcard(v: HostView) -> Result:
    if is_day2(v.cluster):
        return SUCCESS, "DNS wildcard check is not required for day2"
    found = v.resolved(domain(v.cluster, WILDCARD))
    if found is None:
        return (
            PENDING,
            "DNS wildcard check cannot be performed yet because the host has not yet performed DNS resolution",
        )
    if found:
        return FAILURE, (
            f"DNS wildcard configuration was detected for domain *.{v.cluster.get('name')}.{v.cluster.get('base_dns_domain')} "
            "- the installation will not be able to complete while this record exists. Please remove it to proceed. "
            f"The domain resolves to {','.join(found)}"
        )
    return SUCCESS, "DNS wildcard check was successful"


def non_overlapping(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    pairs = overlapping(host_networks(v.inventory))
    if pairs:
        return FAILURE, "Address networks are overlapping: " + ", ".join(f"{a} and {b}" for a, b in pairs)
    return SUCCESS, "Host subnets are not overlapping"


def ignition_downloadable(v: HostView) -> Result:
    if not is_day2(v.cluster):
        return SUCCESS, "Ignition is downloadable"
    answer = json.loads(v.host.get("api_vip_connectivity") or "{}")
    if not answer:
        return PENDING, "Ignition is not ready, pending API VIP connectivity."
    if answer.get("is_success"):
        return SUCCESS, "Ignition is downloadable"
    return FAILURE, (
        f"This host has failed to download the ignition file from {answer.get('url', '')} with the following error: "
        f"{answer.get('download_error', '')}. Please ensure the host can reach this URL"
    )


def no_collisions(v: HostView) -> Result:
    own = v.view.reach.collisions.get(v.host["id"], {})
    if own:
        return FAILURE, "\n".join(
            f"Collisions detected for host ID {v.host['id']}, IP address: {ip} Mac addresses: {', '.join(macs)}"
            for ip, macs in sorted(own.items())
        )
    return SUCCESS, f"No IP collisions were detected by host {v.host['id']}"


def no_iscsi_nic(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    disk = inv.find_disk(v.inventory, v.host.get("installation_disk_id", "")) or {}
    address = (disk.get("iscsi") or {}).get("host_ip_address", "")
    if disk.get("drive_type") == "iSCSI" and any(contains(cidr, address) for cidr in machine_cidrs(v.cluster)):
        return FAILURE, "Network interface connected to iSCSI disk cannot belong to machine network CIDRs"
    return SUCCESS, "Network interface connected to iSCSI disk does not belong to machine network CIDRs"


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
    ("release-domain-name-resolved-correctly", "network", release_domain),
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
INPUT: tuple[str, ...] = ("machine-cidr-defined",)
#: Shown, but no reason to hold an installation back.
NOT_BLOCKING: frozenset[str] = frozenset(
    {
        "ntp-synced",
        "mtu-valid",
        "release-domain-name-resolved-correctly",
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
    if not _cidr_needed(v.cluster):
        return SUCCESS, "No Machine Network CIDR needed: User Managed Networking"
    if machine_cidrs(v.cluster):
        return SUCCESS, "The Machine Network CIDR is defined."
    if not v.inventories:
        return PENDING, "Hosts have not been discovered yet"
    return FAILURE, (
        "The Machine Network CIDR is undefined; the Machine Network CIDR can be defined by setting either the API "
        "or Ingress virtual IPs"
    )


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


def c_overlap(v: View) -> Result:
    every = [cidr for cidrs in _cidrs(v).values() for cidr in cidrs]
    pairs = overlapping(every)
    doubles = sorted({cidr for cidr in every if every.count(cidr) > 1})
    if pairs or doubles:
        return FAILURE, "CIDRS Overlapping: " + ", ".join(
            [f"{a} and {b}" for a, b in pairs] + [f"{c} twice" for c in doubles]
        ) + "."
    return SUCCESS, "No CIDRS are overlapping."


def c_families(v: View) -> Result:
    kinds = [{family(cidr) for cidr in cidrs} for cidrs in _cidrs(v).values() if cidrs]
    if kinds and any(kind != kinds[0] for kind in kinds):
        return FAILURE, (
            "Address families of networks (MachineNetworks, ServiceNetworks, ClusterNetworks) are not the same."
        )
    return SUCCESS, "Same address families for all networks."


def c_prefix(v: View) -> Result:
    for entry in v.cluster.get("cluster_networks", ()):
        net, prefix = network(entry.get("cidr", "")), entry.get("host_prefix", 0)
        if net is not None and not net.prefixlen < prefix < net.max_prefixlen:
            return FAILURE, (
                f"Invalid Cluster Network prefix: Host prefix, now {prefix}, must be between {net.prefixlen} and "
                f"{net.max_prefixlen}."
            )
    return SUCCESS, "The Cluster Network prefix is valid."


def calculated_cidr(v: View) -> str:
    """The hosts' network that holds the first VIP."""
    vips = [vip["ip"] for key in ("api_vips", "ingress_vips") for vip in v.cluster.get(key, ()) if vip.get("ip")]
    for found in v.inventories.values():
        for cidr in host_networks(found):
            if vips and contains(cidr, vips[0]):
                return cidr
    return ""


def c_calculated(v: View) -> Result:
    good = (SUCCESS, "The Cluster Machine CIDR is equivalent to the calculated CIDR.")
    if user_managed(v.cluster) or v.cluster.get("vip_dhcp_allocation") or is_day2(v.cluster):
        return good
    cidrs, found = machine_cidrs(v.cluster), calculated_cidr(v)
    if not cidrs or not found or found in cidrs:
        return good
    if (v.cluster.get("load_balancer") or {}).get("type") == "user-managed":
        return good
    return FAILURE, f"The Cluster Machine CIDR {cidrs[0]} is different than the calculated CIDR {found}."


def vips_needed(cluster: Mapping[str, Any]) -> bool:
    return not (is_sno(cluster) or user_managed(cluster) or is_day2(cluster))


def _vips_defined(key: str, label: str) -> ClusterCheck:
    def check(v: View) -> Result:
        if not vips_needed(v.cluster):
            return SUCCESS, f"{label} virtual IPs are not required: " + (
                "SNO" if is_sno(v.cluster) else "User Managed Networking"
            )
        if v.cluster.get(key):
            return SUCCESS, f"{label} virtual IPs are defined."
        if v.cluster.get("vip_dhcp_allocation"):
            return PENDING, f"{label} virtual IPs are undefined and are being allocated by DHCP"
        return FAILURE, f"{label} virtual IPs are undefined and must be provided."

    return check


def _in_use(v: View, ip: str) -> bool | None:
    """Whether the address answers on its network, from the hosts' lists of free addresses; None when no list covers it."""
    seen = None
    for host in v.hosts.values():
        for entry in json.loads(host.get("free_addresses") or "[]"):
            if contains(entry.get("network", ""), ip):
                if ip in entry.get("free_addresses", ()):
                    return False
                seen = True
    return seen


def _vips_valid(key: str, label: str) -> ClusterCheck:
    def check(v: View) -> Result:
        if not vips_needed(v.cluster):
            return SUCCESS, f"{label} are not required"
        vips = v.cluster.get(key) or []
        if not vips:
            return PENDING, f"{label} are undefined."
        cidrs, names = machine_cidrs(v.cluster), ", ".join(vip["ip"] for vip in vips)
        outside = (v.cluster.get("load_balancer") or {}).get("type") == "user-managed"
        for vip in vips:
            ip = vip["ip"]
            home = [cidr for cidr in cidrs if contains(cidr, ip)]
            if not cidrs:
                return PENDING, f"{label} <{names}> are not verified yet."
            if not home and not outside:
                return FAILURE, f"{label} <{ip}> does not belong to machine-network-cidr <{', '.join(cidrs)}>"
            net = network(home[0]) if home else None
            if net is not None and net.version == 4 and ip == str(net.broadcast_address):
                return FAILURE, f"{label} <{ip}> is the broadcast address of machine-network-cidr <{net}>"
            if outside:
                continue
            state = vip.get("verification", "unverified")
            if state == "unverified":
                used = _in_use(v, ip)
                state = "unverified" if used is None else "failed" if used else "succeeded"
            if state == "failed":
                return FAILURE, f"{label} <{ip}> is already in use in cidr {home[0]}"
            if state != "succeeded":
                return PENDING, f"{label} <{names}> are not verified yet."
        return SUCCESS, f"{label} {names} belongs to the Machine CIDR and is not in use."

    return check


def c_domain(v: View) -> Result:
    if v.cluster.get("base_dns_domain") or is_day2(v.cluster):
        return SUCCESS, "The base domain is defined."
    return FAILURE, "The base domain is undefined and must be provided."


def c_ntp(v: View) -> Result:
    clocks = [float(host["_clock"]) for host in v.hosts.values() if "_clock" in host]
    if clocks and max(clocks) - min(clocks) > 240:
        return FAILURE, (
            "Hosts' clocks are not synchronized (there's more than a 4 minutes gap between clocks), please configure "
            "an NTP server via DHCP or set clocks manually."
        )
    return SUCCESS, "No ntp problems found"


def c_network_type(v: View) -> Result:
    if v.cluster.get("network_type") == "OpenShiftSDN" and any(
        family(c) == "IPv6" for cidrs in _cidrs(v).values() for c in cidrs
    ):
        return FAILURE, "The cluster is configured with an IPv6 network, which OpenShiftSDN does not support."
    return SUCCESS, "The cluster has a valid network type"


_READY = frozenset(
    {"known", "preparing-for-installation", "preparing-successful", "installing", "installing-in-progress", "installed"}
)


def c_hosts_ready(v: View) -> Result:
    if v.hosts and all(host["status"] in _READY for host in v.hosts.values()):
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
    suffix = ""
    missing = False
    if wanted == 2:
        fenced = sum(bool(host.get("fencing_credentials")) for host in v.hosts.values())
        missing = "arbiter" not in roles and fenced < 2
        suffix = " and at least 1 arbiter node, or fencing credentials for both"
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


def _fixed(text: str) -> ClusterCheck:
    return lambda __: (SUCCESS, text)


CLUSTER: tuple[tuple[str, str, ClusterCheck], ...] = (
    ("machine-cidr-defined", "network", c_machine_cidr),
    ("cluster-cidr-defined", "network", _defined("cluster_networks", "Cluster")),
    ("service-cidr-defined", "network", _defined("service_networks", "Service")),
    ("no-cidrs-overlapping", "network", c_overlap),
    ("networks-same-address-families", "network", c_families),
    ("network-prefix-valid", "network", c_prefix),
    ("machine-cidr-equals-to-calculated-cidr", "network", c_calculated),
    ("api-vips-defined", "network", _vips_defined("api_vips", "API")),
    ("api-vips-valid", "network", _vips_valid("api_vips", "api vips")),
    ("ingress-vips-defined", "network", _vips_defined("ingress_vips", "Ingress")),
    ("ingress-vips-valid", "network", _vips_valid("ingress_vips", "ingress vips")),
    ("all-hosts-are-ready-to-install", "hosts-data", c_hosts_ready),
    ("sufficient-masters-count", "hosts-data", c_masters),
    ("dns-domain-defined", "network", c_domain),
    ("pull-secret-set", "configuration", c_pull_secret),
    ("ntp-server-configured", "network", c_ntp),
    ("network-type-valid", "network", c_network_type),
    ("custom-manifests-requirements-satisfied", "network", _fixed("No custom manifests are required")),
    ("platform-requirements-satisfied", "configuration", _fixed("Platform requirements satisfied")),
    *(
        (op.validation, "operators", _cluster_operator(op.name, functools.partial(operators.validate_cluster, op.name)))
        for op in operators.OPERATORS.values()
    ),
    (
        "openshift-ai-gpu-requirements-satisfied",
        "operators",
        _cluster_operator("openshift-ai", operators.validate_ai_gpu),
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


def evaluate(
    table: tuple[tuple[str, str, Callable[[Any], Result]], ...], view: Any, ignored: frozenset[str]
) -> dict[str, tuple[str, str, str]]:
    """id -> (category, status, message) for every validation of a table; ignored ones count as passed."""
    results = {}
    for ident, category, check in table:
        status, message = check(view)
        if status != SUCCESS and (ident in ignored or "all" in ignored):
            status = "disabled"
        results[ident] = (category, status, message)
    return results


def passed(results: Mapping[str, tuple[str, str, str]], idents: tuple[str, ...]) -> bool:
    return all(results[ident][1] in (SUCCESS, HIDDEN, "disabled") for ident in idents)


def shown(results: Mapping[str, tuple[str, str, str]]) -> str:
    """`validations_info`: JSON in a string, by category."""
    categories: dict[str, list[dict[str, str]]] = {}
    for ident, (category, status, message) in results.items():
        if status != HIDDEN:
            categories.setdefault(category, []).append({"id": ident, "status": status, "message": message})
    return json.dumps(categories, ensure_ascii=False, separators=(",", ":"))


def failing(results: Mapping[str, tuple[str, str, str]]) -> str:
    """$FAILING_VALIDATIONS: every message that failed, whether it blocks or not; what is pending when nothing failed."""
    failed = [message for __, status, message in results.values() if status in (FAILURE, "error")]
    return " ; ".join(failed or [message for __, status, message in results.values() if status == PENDING])


def release_image_host(image: str) -> str:
    """The registry's name in a pullspec, without port."""
    host, slash, __ = image.partition("/")
    if not slash:
        return ""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def address_list(inventory: Mapping[str, Any]) -> list[str]:
    """Addresses of a host without prefix."""
    return [text.partition("/")[0] for __, text in addresses(inventory)]
