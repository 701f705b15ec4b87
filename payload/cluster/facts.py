"""Facts about the cluster for programs on a node: `/etc/kubernetes/cluster.json`, created once from the service's models."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from ...plugins.module_utils.documents import load_json, read_file

FACTS_FILE = Path("/etc/kubernetes/cluster.json")


class HostFacts(TypedDict):
    """One host of the installation.

    role: master, worker or arbiter; bootstrap: whether it is the rendezvous host; addresses: those it had when it was
    discovered, without prefix length.
    """

    id: str
    name: str
    role: str
    bootstrap: bool
    addresses: list[str]


class ExternalFacts(TypedDict, total=False):
    """The platform `external`, as the service's model `platform-external`; empty for another one."""

    platform_name: str
    cloud_controller_manager: str


class ClusterFacts(TypedDict):
    """See the fields; networks are CIDRs, addresses have no prefix length, `images` maps components to pullspecs.

    `fencing`: two nodes that fence each other, each with the credentials of its BMC. `outside_balancer`: the addresses of API and
    ingress are those of a load balancer that is not part of the cluster.
    """

    id: str
    name: str
    base_domain: str
    domain: str
    version: str
    platform: str
    external: ExternalFacts
    topology: str
    fencing: bool
    schedulable_masters: bool
    api_vips: list[str]
    ingress_vips: list[str]
    outside_balancer: bool
    machine_networks: list[str]
    cluster_networks: list[dict[str, Any]]
    service_networks: list[str]
    network_type: str
    images: dict[str, str]
    invoker: str
    hosts: list[HostFacts]


def topology(roles: Sequence[str]) -> str:
    """Return the controlPlaneTopology of hosts with these roles.

    It is one of SingleReplica, DualReplica (two masters), HighlyAvailableArbiter and HighlyAvailable.
    """
    masters = roles.count("master")
    if masters == 1:
        return "SingleReplica"
    if "arbiter" in roles:
        return "HighlyAvailableArbiter"
    return "DualReplica" if masters == 2 else "HighlyAvailable"


def build(
    cluster: Mapping[str, Any], hosts: Iterable[Mapping[str, Any]], images: Mapping[str, str], invoker: str
) -> ClusterFacts:
    """Return the facts of a cluster from the service's models.

    cluster and hosts: `cluster` and `host`, as they are when the installation is prepared; images: component ->
    pullspec; invoker: the program that installs it. KeyError for a cluster without name or base domain.
    """
    models = list(hosts)
    known = [host_facts(host) for host in models]
    workers = [h for h in known if h["role"] == "worker"]
    control_plane = topology([h["role"] for h in known])
    single = control_plane == "SingleReplica"
    platform: Mapping[str, Any] = cluster.get("platform") or {}
    external: ExternalFacts | None = platform.get("external")
    domain = f"{cluster['name']}.{cluster['base_dns_domain']}"
    own = {address for host in known for address in host["addresses"]}
    return {
        "id": str(cluster["id"]),
        "name": cluster["name"],
        "base_domain": cluster["base_dns_domain"],
        "domain": domain,
        "version": cluster["openshift_version"],
        "platform": platform.get("type", "none"),
        "external": external or {},
        "topology": control_plane,
        "fencing": control_plane == "DualReplica"
        and sum(bool(host.get("fencing_credentials")) for host in models) == 2,
        "schedulable_masters": bool(cluster.get("schedulable_masters")) or not workers,
        # A single node and a user-managed load balancer have no virtual address.
        "api_vips": [] if single else [v["ip"] for v in cluster.get("api_vips") or () if v["ip"] not in own],
        "ingress_vips": [] if single else [v["ip"] for v in cluster.get("ingress_vips") or () if v["ip"] not in own],
        "outside_balancer": (cluster.get("load_balancer") or {}).get("type") == "user-managed",
        "machine_networks": [n["cidr"] for n in cluster.get("machine_networks") or ()],
        "cluster_networks": [dict(n) for n in cluster.get("cluster_networks") or ()],
        "service_networks": [n["cidr"] for n in cluster.get("service_networks") or ()],
        "network_type": network_type(cluster),
        "images": dict(images),
        "invoker": invoker,
        "hosts": known,
    }


def overrides(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is laid over the install-config of a cluster, which is the service's model."""
    found: dict[str, Any] = load_json(cluster.get("install_config_overrides") or "{}", name="install_config_overrides")
    return found


def network_type(cluster: Mapping[str, Any]) -> str:
    """Return the network plugin of a cluster: the agent-based installer passes on one that the service does not know as an override."""
    given = (overrides(cluster).get("networking") or {}).get("networkType")
    return str(given or cluster.get("network_type") or "OVNKubernetes")


def virtual_addresses(facts: ClusterFacts) -> tuple[list[str], list[str]]:
    """Return the addresses of API and ingress that nodes hold by keepalived: none with an outside load balancer."""
    return ([], []) if facts["outside_balancer"] else (facts["api_vips"], facts["ingress_vips"])


def host_facts(host: Mapping[str, Any]) -> HostFacts:
    """Return the facts of one `host` model.

    Its inventory may be an object or JSON. A host without a role counts as a master.
    """
    inventory = host.get("inventory") or {}
    if isinstance(inventory, str):
        inventory = load_json(inventory, name="inventory")
    addresses = [
        address.partition("/")[0]
        for nic in inventory.get("interfaces") or ()
        for address in [*(nic.get("ipv4_addresses") or ()), *(nic.get("ipv6_addresses") or ())]
    ]
    role = host.get("role") or "master"
    if role in ("auto-assign", "bootstrap"):
        role = host.get("suggested_role") if role == "auto-assign" else "master"
    return {
        "id": str(host["id"]),
        "name": host.get("requested_hostname") or inventory.get("hostname") or str(host["id"]),
        "role": str(role or "master"),
        "bootstrap": bool(host.get("bootstrap")),
        "addresses": [
            a for a in addresses if not (ipaddress.ip_address(a).is_link_local or ipaddress.ip_address(a).is_loopback)
        ],
    }


def load(path: Path = FACTS_FILE) -> ClusterFacts:
    """Read the facts on a node."""
    loaded: ClusterFacts = load_json(read_file(path), name=str(path))
    return loaded


def count(facts: ClusterFacts, role: str) -> int:
    """Return how many hosts have this role."""
    return sum(1 for host in facts["hosts"] if host["role"] == role)


def single_node(facts: ClusterFacts) -> bool:
    """Return whether there is one control-plane node only."""
    return facts["topology"] == "SingleReplica"


def kubernetes_version(version: str) -> str:
    """Return the Kubernetes version of an OpenShift version: 4.22 has 1.35."""
    minor = int(version.split(".")[1])
    return f"v1.{minor + 13}.0"
