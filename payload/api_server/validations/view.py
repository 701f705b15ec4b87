"""What the validations of a cluster and its hosts look at, and the facts that several of them need."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ....plugins.module_utils.documents import load_json
from .. import operators
from ..connectivity import Reach
from ..facts import is_day2, is_sno, role_of, user_managed
from ..hardware import LEAST, REQUIREMENTS, Inventory, Requirement
from ..network import addresses, family
from ..objects import NETWORKS, Cluster, Host
from ..tables import AFTER_REBOOT
from .base import HIDDEN, Result


def requirement(table: Mapping[str, Requirement], cluster: Cluster, role: str) -> Requirement:
    """Return thresholds for a host of a role; without a role, the minimum of the roles that it may get."""
    if is_sno(cluster) and not is_day2(cluster):
        return table.get("sno", table.get("master", {})).copy()
    if role in ("master", "arbiter", "worker"):
        return table.get(role, {}).copy()
    roles = [table[name] for name in ("master", "worker") if name in table]
    found: Requirement = {}
    for values in roles:
        for key in REQUIREMENTS:
            if key in values:
                found[key] = min(found.get(key, values[key]), values[key])
    return found


def least(table: Mapping[str, Requirement], cluster: Cluster) -> Requirement:
    """Return the minimum CPU, RAM and disk of a control-plane node of the cluster or a worker."""
    roles = [found for found in (requirement(table, cluster, "master"), table.get("worker")) if found]
    found: Requirement = {}
    for key in LEAST if roles else ():
        found[key] = min(values.get(key, 0) for values in roles)
    return found


def dns_needed(cluster: Cluster, dnsmasq: bool) -> bool:
    """Return whether the user's DNS must resolve api, api-int and apps."""
    if is_sno(cluster) and dnsmasq and not is_day2(cluster):
        return False
    return user_managed(cluster)


def reaches_api(host: Host) -> bool:
    """Return whether a host that joins a cluster got its config from it."""
    return bool(load_json(host.get("api_vip_connectivity") or "{}", name="api_vip_connectivity").get("is_success"))


@dataclass
class View:
    """Input of the validations of one cluster."""

    cluster: Cluster
    hosts: Mapping[str, Host]
    inventories: Mapping[str, Inventory]
    table: Mapping[str, Requirement]
    reach: Reach
    now: float
    agent_version: str = ""
    upgrade_agent: bool = False
    dnsmasq: bool = True
    images: tuple[str, ...] = ()
    #: Whether a user added manifests.
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
        """Return addresses for which several MACs answered, in any host's report."""
        return load_json(self.cluster.get("ip_collisions") or "{}", name="ip_collisions")

    @functools.cached_property
    def families(self) -> set[str]:
        """Address families of the cluster's networks."""
        return {family(cidr) for cidrs in cidrs_of(self).values() for cidr in cidrs}


@dataclass
class HostView:
    """One host of a view."""

    view: View
    host: Host
    connected: bool
    _resolved: dict[str, list[str]] | None = None

    @property
    def cluster(self) -> Cluster:
        return self.view.cluster

    @property
    def inventory(self) -> Inventory | None:
        return self.view.inventories.get(self.host["id"])

    @property
    def role(self) -> str:
        return role_of(self.host)

    @property
    def requirement(self) -> Requirement:
        return requirement(self.view.table, self.cluster, self.role)

    @property
    def total(self) -> Requirement:
        """Return what OpenShift and the operators together require of the host."""
        return total_requirement(self.view, self.host, self.role)

    @property
    def late(self) -> bool:
        return self.host.get("progress", {}).get("current_stage") in AFTER_REBOOT

    def resolved(self, name: str) -> list[str] | None:
        """Return the host's resolution of a name, addresses and canonical names; None if it was not requested."""
        if self._resolved is None:
            self._resolved = {}
            for entry in load_json(
                self.host.get("domain_name_resolutions") or "{}", name="domain_name_resolutions"
            ).get("resolutions", ()):
                found = [*entry.get("ipv4_addresses", ()), *entry.get("ipv6_addresses", ()), *entry.get("cnames", ())]
                self._resolved.setdefault(entry.get("domain_name", ""), []).extend(found)
        return self._resolved.get(name)


def total_requirement(v: View, host: Host, role: str) -> Requirement:
    """Return thresholds for a host in a role, including those of the cluster's operators."""
    needed = requirement(v.table, v.cluster, role)
    if v.operators:
        cpu, ram = operators.needs(v, host, role)
        needed |= {"cpu_cores": needed.get("cpu_cores", 0) + cpu, "ram_mib": needed.get("ram_mib", 0) + ram}
    return needed


def cidrs_of(v: View) -> dict[str, list[str]]:
    return {name: [entry["cidr"] for entry in v.cluster.get(name, ()) if entry.get("cidr")] for name in NETWORKS}


def machine_networks_needed(cluster: Cluster) -> bool:
    return not user_managed(cluster) or is_sno(cluster)


def outside_balancer(cluster: Cluster) -> bool:
    return (cluster.get("load_balancer") or {}).get("type") == "user-managed"


def vips_needed(cluster: Cluster) -> bool:
    return not (is_sno(cluster) or user_managed(cluster) or is_day2(cluster))


def release_image_host(image: str) -> str:
    """The registry's name in a pullspec, without port."""
    host, slash, __ = image.partition("/")
    if not slash:
        return ""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def address_list(inventory: Inventory) -> list[str]:
    """Addresses of a host without prefix."""
    return [text.partition("/")[0] for __, text in addresses(inventory)]


HostCheck = Callable[[HostView], Result]


def before_reboot(check: HostCheck) -> HostCheck:
    """A validation that is hidden once the live system has ended."""
    return lambda v: (HIDDEN, "") if v.late else check(v)
