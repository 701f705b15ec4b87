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
    """Return thresholds for a host of a role; without a role, the minimum of the roles that it may get.

    `table` has the thresholds of an OpenShift version by role, `sno` being the role of a single node. The result is a
    copy; it is empty for a role that the table does not have. Hosts that join a single-node cluster count by their own
    role.
    """
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


def smallest_requirement(table: Mapping[str, Requirement], cluster: Cluster) -> Requirement:
    """Return the minimum CPU, RAM and disk of a control-plane node of the cluster or a worker.

    Each key of `hardware.LEAST` gets the smaller of the two roles' values (0 where a role has none). Empty if the table
    has neither role. A host below it can have no role at all.
    """
    roles = [found for found in (requirement(table, cluster, "master"), table.get("worker")) if found]
    found: Requirement = {}
    for key in LEAST if roles else ():
        found[key] = min(values.get(key, 0) for values in roles)
    return found


def dns_needed(cluster: Cluster, dnsmasq: bool) -> bool:
    """Return whether the user's DNS must resolve api, api-int and apps.

    True with user-managed networking. A single node that is installed with its own dnsmasq (`dnsmasq`: the service's
    setting) resolves the names itself.
    """
    if is_sno(cluster) and dnsmasq and not is_day2(cluster):
        return False
    return user_managed(cluster)


def reaches_api(host: Host) -> bool:
    """Return whether a host that joins a cluster got its config from it.

    Read from the reply to the step `api-vip-connectivity-check` (`is_success`). False before the first reply.
    """
    return bool(load_json(host.get("api_vip_connectivity") or "{}", name="api_vip_connectivity").get("is_success"))


@dataclass
class View:
    """Input of the validations of one cluster.

    It is built per pass and not changed afterwards, which is why derived values are cached. `hosts` and `inventories`
    are keyed by host id, and a host without inventory has no entry in the latter. `table` has thresholds by role,
    `groups` the majority group (host ids) per network, `hostnames` how many hosts have a name, `now` seconds since the
    epoch.
    """

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
        """Ids of the hosts of each role.

        The role is that of `role_of`: the assigned one, or the suggested one while users leave it to the service.
        """
        found: dict[str, list[str]] = {}
        for ident, host in self.hosts.items():
            found.setdefault(role_of(host), []).append(ident)
        return found

    @functools.cached_property
    def operators(self) -> frozenset[str]:
        """Names of the OLM operators that the cluster gets.

        Selected ones, those of selected bundles and their dependencies, as `operators.selected_operators` returns them.
        """
        return frozenset(operators.selected_operators(self.cluster))

    @functools.cached_property
    def collisions(self) -> dict[str, list[str]]:
        """Return addresses for which several MACs answered, in any host's report.

        Address -> MACs. Empty before the first report of a host with several peers, and when there is no collision.
        """
        return load_json(self.cluster.get("ip_collisions") or "{}", name="ip_collisions")

    @functools.cached_property
    def families(self) -> set[str]:
        """Address families of the cluster's networks.

        `IPv4` and `IPv6`, of the machine, service and cluster networks together.
        """
        return {family(cidr) for cidrs in cidrs_of(self).values() for cidr in cidrs}


@dataclass
class HostView:
    """One host of a view.

    Each host gets a new one per pass. `connected` is whether its agent has polled recently enough, as the monitor
    decides it; validations do not compare times themselves.
    """

    view: View
    host: Host
    connected: bool
    _resolved: dict[str, list[str]] | None = None

    @property
    def cluster(self) -> Cluster:
        return self.view.cluster

    @property
    def inventory(self) -> Inventory | None:
        """The host's inventory as stored; None until its agent has reported one."""
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
    def past_reboot(self) -> bool:
        """Whether the host's installation is past the reboot: its live system has ended.

        No agent reports from there on, so what only the live system can observe is not validated any more.
        """
        return self.host.get("progress", {}).get("current_stage") in AFTER_REBOOT

    def resolved(self, name: str) -> list[str] | None:
        """Return the host's resolution of a name, addresses and canonical names; None if it was not requested.

        Names are compared as the step `domain-resolution` asked for them, with or without a final dot. An empty list
        means that the host asked and got no answer. The report is parsed once per view.
        """
        if self._resolved is None:
            self._resolved = {}
            for entry in load_json(
                self.host.get("domain_name_resolutions") or "{}", name="domain_name_resolutions"
            ).get("resolutions", ()):
                found = [*entry.get("ipv4_addresses", ()), *entry.get("ipv6_addresses", ()), *entry.get("cnames", ())]
                self._resolved.setdefault(entry.get("domain_name", ""), []).extend(found)
        return self._resolved.get(name)


def total_requirement(v: View, host: Host, role: str) -> Requirement:
    """Return thresholds for a host in a role, including those of the cluster's operators.

    Operators add to `cpu_cores` and `ram_mib` only; their needs may depend on the host's hardware, for example its GPUs
    or disks. The other keys are those of `requirement`.
    """
    needed = requirement(v.table, v.cluster, role)
    if v.operators:
        cpu, ram = operators.needs(v, host, role)
        needed |= {"cpu_cores": needed.get("cpu_cores", 0) + cpu, "ram_mib": needed.get("ram_mib", 0) + ram}
    return needed


def cidrs_of(v: View) -> dict[str, list[str]]:
    """Return the CIDRs of each kind of network, by the name of the cluster's field.

    The keys are `machine_networks`, `service_networks` and `cluster_networks`, each always present. Entries without a
    CIDR are left out, the order is the user's.
    """
    return {name: [entry["cidr"] for entry in v.cluster.get(name, ()) if entry.get("cidr")] for name in NETWORKS}


def machine_networks_needed(cluster: Cluster) -> bool:
    """Return whether the cluster must have machine networks.

    Only several nodes with user-managed networking need none: then no VIP has to be in one of them.
    """
    return not user_managed(cluster) or is_sno(cluster)


def vips_needed(cluster: Cluster) -> bool:
    """Return whether the cluster needs API and ingress VIPs.

    A single node, user-managed networking and hosts that join an installed cluster (day 2) need none.
    """
    return not (is_sno(cluster) or user_managed(cluster) or is_day2(cluster))


def release_image_host(image: str) -> str:
    """The registry's name in a pullspec, without port.

    An IPv6 address loses its brackets. Empty if the pullspec has no registry (`ubi9:latest`). Hosts get the name in
    their step `domain-resolution`.
    """
    host, slash, __ = image.partition("/")
    if not slash:
        return ""
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def address_list(inventory: Inventory) -> list[str]:
    """Addresses of a host without prefix."""
    return [text.partition("/")[0] for __, text in addresses(inventory)]


HostCheck = Callable[[HostView], Result]


def before_reboot(check: HostCheck) -> HostCheck:
    """A validation that is hidden once the live system has ended.

    `check` is called only before; afterwards the result is (`hidden`, empty message), which counts as passed. For what
    an agent would have to observe again, such as its clock.
    """
    return lambda v: (HIDDEN, "") if v.past_reboot else check(v)
