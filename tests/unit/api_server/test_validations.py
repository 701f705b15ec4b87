"""Validations as pure functions: thresholds, messages, blocking sets, reachability, roles."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import inventory as inv
from ansible_collections.agentlab.ocp.payload.api_server import validations
from ansible_collections.agentlab.ocp.payload.api_server.config import DEFAULT_REQUIREMENTS, requirements_for
from ansible_collections.agentlab.ocp.payload.api_server.connectivity import Reach
from ansible_collections.agentlab.ocp.payload.api_server.validations.base import Gate

from . import lab
from .description import Description

TABLE = requirements_for(DEFAULT_REQUIREMENTS, "4.22")
CLUSTER: dict[str, Any] = {
    "id": "c",
    "name": "ostest",
    "base_dns_domain": "test.example",
    "control_plane_count": 3,
    "platform": {"type": "baremetal"},
    "machine_networks": [{"cidr": "192.168.111.0/24"}],
    "pull_secret_set": True,
    "status": "insufficient",
    "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
    "service_networks": [{"cidr": "172.30.0.0/16"}],
    "api_vips": [{"ip": "192.168.111.5", "verification": "succeeded"}],
    "ingress_vips": [{"ip": "192.168.111.4", "verification": "succeeded"}],
    "connectivity_majority_groups": "{}",
    "ip_collisions": "{}",
}
RESOLVED = json.dumps(
    {
        "resolutions": [
            {"domain_name": f"validateNoWildcardDNS.ostest.test.example{dot}", "ipv4_addresses": []}
            for dot in ("", ".")
        ]
    }
)


def machine(index: int, **fields: Any) -> dict[str, Any]:
    found = lab.inventory(index, memory={"physical_bytes": 16 * 2**30, "physical_bytes_method": "dmidecode"}, **fields)
    for disk in found["disks"]:
        disk["size_bytes"] = disk.get("size_bytes", 0) * 6
    return inv.prepare(found, 100, False)


def report(index: int, peers: list[int], rtt: float = 0.3, loss: float = 0, **fields: Any) -> dict[str, Any]:
    remote = []
    for peer in peers:
        ip = f"192.168.111.{20 + peer}"
        remote.append(
            {
                "host_id": f"h{peer}",
                "l2_connectivity": [
                    {"remote_ip_address": ip, "remote_mac": f"52:54:00:00:00:{peer:02x}", "successful": True}
                ],
                "l3_connectivity": [
                    {"remote_ip_address": ip, "successful": True, "average_rtt_ms": rtt, "packet_loss_percentage": loss}
                ],
                "mtu_report": [],
                **fields,
            }
        )
    return {"remote_hosts": remote}


def view(
    count: int = 3, cluster: dict[str, Any] | None = None, reports: bool = True, **changes: dict[str, Any]
) -> validations.View:
    """Hosts h0, h1, ... that are all well; `h1={...}` changes fields of one, `inventory` among them."""
    cluster = {**CLUSTER, **(cluster or {})}
    hosts, inventories, reach = {}, {}, Reach()
    for index in range(count):
        ident = f"h{index}"
        change = dict(changes.get(ident, {}))
        inventories[ident] = change.pop("inventory", machine(index))
        hosts[ident] = {
            "id": ident,
            "status": "known",
            "role": "auto-assign",
            "suggested_role": "master" if index < 3 else "worker",
            "domain_name_resolutions": RESOLVED,
            "_clock": 0,
            "ntp_sources": '[{"source_name": "x", "source_state": "synced"}]',
            **change,
        }
        if reports:
            reach.report(
                ident,
                report(index, [peer for peer in range(count) if peer != index]),
                validations.machine_cidrs(cluster),
            )
    if inventories.get("h0") is None:
        del inventories["h0"]
    names = [*validations.machine_cidrs(cluster), "IPv4", "IPv6"]
    groups = {
        name: frozenset(reach.group(name, list(hosts), validations.majority_least(cluster, hosts.values())))
        for name in names
    }
    counted: dict[str, int] = {}
    for ident, host in hosts.items():
        name = validations.hostname_of(host, inventories.get(ident))
        counted[name] = counted.get(name, 0) + 1
    found = {ident: validations.address_list(inventory) for ident, inventory in inventories.items()}
    return validations.View(
        cluster,
        hosts,
        inventories,
        TABLE,
        reach,
        time.time(),
        groups=groups,
        connected_addresses=reach.connected_addresses(found),
        hostnames=counted,
    )


def of(made: validations.View, ident: str = "h0", connected: bool = True) -> dict[str, tuple[str, str, str]]:
    return validations.evaluate(validations.HOST, validations.HostView(made, made.hosts[ident], connected))


def test_all_is_well() -> None:
    made = view(5)
    for ident in made.hosts:
        results = of(made, ident)
        assert {name: result for name, result in results.items() if result[1] not in ("success", "hidden")} == {}
    results = validations.evaluate(validations.CLUSTER, made)
    assert {name: result for name, result in results.items() if result[1] not in ("success", "hidden")} == {}
    assert results["api-vips-valid"][2] == "api vips 192.168.111.5 belongs to the Machine CIDR and is not in use."


@pytest.mark.parametrize("description", lab.DESCRIPTIONS)
def test_ids_are_those_of_the_description(description: Description) -> None:
    gone = set() if description is lab.OWN else {"ocs-requirements-satisfied", "release-domain-name-resolved-correctly"}
    for table, model in ((validations.HOST, "host-validation-id"), (validations.CLUSTER, "cluster-validation-id")):
        assert {entry.ident for entry in table} == set(description.definitions[model]["enum"]) - gone


def small(**fields: Any) -> dict[str, Any]:
    return {"inventory": {**machine(0), **fields}}


HOST_CASES: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    ("has-inventory", {}, {"inventory": None}, "failure", "Inventory has not been received for the host"),
    (
        "has-min-cpu-cores",
        {},
        small(cpu={"count": 1}),
        "failure",
        "minimum required CPU cores for any role is 2, found only 1",
    ),
    (
        "has-cpu-cores-for-role",
        {},
        small(cpu={"count": 2}),
        "failure",
        "Require at least 4 CPU cores for master role, found only 2",
    ),
    (
        "has-min-memory",
        {},
        small(memory={"physical_bytes": 2**32}),
        "failure",
        "minimum required RAM for any role is 8.00 GiB, found only 4.00 GiB",
    ),
    (
        "has-memory-for-role",
        {},
        small(memory={"physical_bytes": 2**33}),
        "failure",
        "Require at least 16.00 GiB RAM for role master, found only 8.00 GiB",
    ),
    (
        "has-memory-for-role",
        {},
        small(memory={"physical_bytes": 16200 * 2**20}),
        "failure",
        "Require at least 16.00 GiB",
    ),
    ("has-memory-for-role", {}, small(memory={"physical_bytes": 16290 * 2**20}), "success", ""),
    (
        "has-memory-for-role",
        {},
        small(memory={"physical_bytes": 16000 * 2**20, "physical_bytes_method": "meminfo"}),
        "failure",
        "Require at least 16.00 GiB RAM for role master, found only 15.62 GiB",
    ),
    (
        "has-min-memory",
        {},
        small(memory={"physical_bytes": 8000 * 2**20, "physical_bytes_method": "meminfo"}),
        "success",
        "Sufficient minimum RAM",
    ),
    ("has-min-valid-disks", {}, small(disks=[]), "error", "Failed to detected disks"),
    ("has-min-valid-disks", {}, small(disks=[{"name": "sr0"}]), "failure", "No eligible disks were found"),
    ("hostname-valid", {}, {"inventory": None}, "failure", "Missing inventory"),
    ("compatible-with-cluster-platform", {}, {"inventory": None}, "pending", "Missing inventory or platform isn't set"),
    ("has-default-route", {}, {"inventory": None}, "pending", "Missing default routing information."),
    ("mtu-valid", {}, {"inventory": None}, "pending", "Missing host inventory"),
    ("ignition-downloadable", {}, {}, "hidden", ""),
    ("vsphere-disk-uuid-enabled", {}, {}, "hidden", ""),
    ("compatible-agent", {}, {"progress": {"current_stage": "Installing"}}, "hidden", ""),
    ("ntp-synced", {}, {"progress": {"current_stage": "Joined"}}, "hidden", ""),
    (
        "belongs-to-machine-cidr",
        {"user_managed_networking": True},
        {},
        "success",
        "No machine network CIDR validation needed: User Managed Networking",
    ),
    (
        "belongs-to-machine-cidr",
        {"machine_networks": [{"cidr": "10.9.0.0/16"}], "load_balancer": {"type": "user-managed"}},
        {},
        "failure",
        "Verify that the host belongs to at least one CIDR listed under machine networks",
    ),
    (
        "non-overlapping-subnets",
        {},
        small(interfaces=[{"name": f"eth{n}", "ipv4_addresses": ["192.168.111.20/24"]} for n in range(2)]),
        "failure",
        "Address networks are overlapping: Address network 192.168.111.0/24 appears on multiple interfaces [eth0, eth1]",
    ),
    (
        "non-overlapping-subnets",
        {},
        small(interfaces=[{"name": f"eth{n}", "ipv4_addresses": [f"192.168.111.20/{24 - n}"]} for n in range(2)]),
        "failure",
        "Address networks 192.168.111.0/24 in interface eth0 and 192.168.110.0/23 in interface eth1 overlap",
    ),
    ("hostname-valid", {}, small(hostname="localhost"), "failure", "The host name localhost is forbidden"),
    (
        "hostname-valid",
        {},
        small(hostname="UPPER"),
        "failure",
        "Hostname UPPER is forbidden, hostname should match pattern ^[a-z0-9]",
    ),
    ("hostname-unique", {}, {"requested_hostname": "node-1"}, "failure", "Hostname node-1 is not unique in cluster"),
    (
        "belongs-to-machine-cidr",
        {"machine_networks": [{"cidr": "10.9.0.0/16"}]},
        {},
        "failure",
        "Host does not belong to machine network CIDRs.",
    ),
    (
        "machine-cidr-defined",
        {"machine_networks": []},
        {},
        "failure",
        "Machine Network CIDR is undefined; the Machine Network CIDR can be defined by",
    ),
    (
        "machine-cidr-defined",
        {"machine_networks": [], "user_managed_networking": True},
        {},
        "success",
        "No Machine Network CIDR needed",
    ),
    ("has-default-route", {}, small(routes=[]), "failure", "Host has not yet been configured with a default route."),
    ("ntp-synced", {}, {"ntp_sources": "[]"}, "failure", "Host couldn't synchronize with any NTP server"),
    (
        "time-synced-between-host-and-service",
        {},
        {"_clock": 1500},
        "failure",
        "Host clock is not synchronized, service time is ahead of host's at least for 20.0 minutes, please configure an NTP server",
    ),
    (
        "time-synced-between-host-and-service",
        {},
        {"_clock": -3700},
        "failure",
        "host time is ahead of service at least for 60.0 minutes",
    ),
    ("time-synced-between-host-and-service", {}, {"_clock": -3500}, "success", ""),
    (
        "dns-wildcard-not-configured",
        {},
        {"domain_name_resolutions": None},
        "pending",
        "has not yet performed DNS resolution",
    ),
    (
        "dns-wildcard-not-configured",
        {},
        {"domain_name_resolutions": RESOLVED.replace("[]", '["1.2.3.4"]')},
        "failure",
        "The domain resolves to 1.2.3.4",
    ),
    (
        "api-domain-name-resolved-correctly",
        {"user_managed_networking": True},
        {"domain_name_resolutions": None},
        "error",
        "Error while evaluating DNS resolution on this host",
    ),
    (
        "apps-domain-name-resolved-correctly",
        {"user_managed_networking": True},
        {
            "domain_name_resolutions": json.dumps(
                {
                    "resolutions": [
                        {
                            "domain_name": "console-openshift-console.apps.ostest.test.example",
                            "ipv4_addresses": ["192.168.111.20"],
                        }
                    ]
                }
            )
        },
        "failure",
        "Domain *.apps.ostest.test.example must not point at 192.168.111.20 as it is the API address of this host.",
    ),
    (
        "dns-wildcard-not-configured",
        {},
        {"domain_name_resolutions": RESOLVED.replace("[]", '["1.2.3.4"]', 1)},
        "failure",
        "The relative domain name resolves to 1.2.3.4",
    ),
    (
        "api-domain-name-resolved-correctly",
        {"user_managed_networking": True},
        {"domain_name_resolutions": json.dumps({"resolutions": [{"domain_name": "api.ostest.test.example"}]})},
        "failure",
        "Couldn't resolve domain name api.ostest.test.example on the host. To continue installation, create the necessary "
        "DNS entries to resolve this domain name to your cluster's API load balancer IP address",
    ),
    (
        "compatible-with-cluster-platform",
        {"platform": {"type": "vsphere"}},
        {},
        "failure",
        "Host is not compatible with cluster platform vsphere",
    ),
    (
        "disk-encryption-requirements-satisfied",
        {"disk_encryption": {"enable_on": "all"}},
        {},
        "failure",
        "TPM version could not be found",
    ),
    ("disk-encryption-requirements-satisfied", {"disk_encryption": {"enable_on": "workers"}}, {}, "hidden", ""),
    (
        "sufficient-installation-disk-speed",
        {},
        {"installation_disk_id": "x", "disks_info": '{"x": {"disk_speed": {"tested": true, "exit_code": 1}}}'},
        "failure",
        "the installation disk speed measurement failed or was found to be insufficient",
    ),
    (
        "container-images-available",
        {},
        {"images_status": '{"a/c": {"result": "failure"}, "a/b": {"result": "failure"}}'},
        "failure",
        "installation from a/b,a/c.",
    ),
    (
        "no-skip-installation-disk",
        {},
        {"installation_disk_id": "x", "skip_formatting_disks": "x"},
        "failure",
        "is not allowed",
    ),
    ("no-skip-missing-disk", {}, {"skip_formatting_disks": "gone"}, "failure", "are no longer present on this host"),
    ("media-connected", {}, {"media_status": "disconnected"}, "failure", "Unable to read from the discovery media."),
    (
        "media-connected",
        {},
        {"media_status": "disconnected", "progress": {"current_stage": "Rebooting"}},
        "hidden",
        "",
    ),
    (
        "valid-platform-network-settings",
        {},
        small(system_vendor={"product_name": "OpenStack Compute"}),
        "failure",
        "Platform OpenStack Compute is allowed only",
    ),
    (
        "inventory-not-partially-truncated",
        {},
        small(truncation={"type": "partial", "reasons": ["too long"]}),
        "failure",
        "Inventory is truncated (partial): too long",
    ),
]


@pytest.mark.parametrize(("ident", "cluster", "host", "status", "text"), HOST_CASES)
def test_host_case(ident: str, cluster: dict[str, Any], host: dict[str, Any], status: str, text: str) -> None:
    result = of(view(3, cluster, h0=host))[ident]
    assert result[1] == status, result
    assert text in result[2]


@pytest.mark.parametrize(
    ("platform", "maker", "compatible"),
    [("vsphere", "VMware, Inc.", "success"), ("vsphere", "Nutanix", "failure"), ("nutanix", "Nutanix", "success"),
     ("nutanix", "QEMU", "failure"), ("external", "QEMU", "success"), ("baremetal", "VMware, Inc.", "success")],
)  # fmt: skip
def test_the_manufacturer_decides_on_a_platform(platform: str, maker: str, compatible: str) -> None:
    inventory = machine(0, system_vendor={"manufacturer": maker})
    result = of(view(3, {"platform": {"type": platform}}, h0={"inventory": inventory}))[
        "compatible-with-cluster-platform"
    ]
    assert result[1] == compatible, result


@pytest.mark.parametrize(
    ("has_uuid", "status", "text"),
    [(True, "success", "VSphere disk.EnableUUID is enabled for this virtual machine"),
     (False, "failure", "VSphere disk.EnableUUID isn't enabled for this virtual machine, it's necessary for disks to be mounted properly")],
)  # fmt: skip
def test_disks_of_vsphere_need_a_uuid(has_uuid: bool, status: str, text: str) -> None:
    inventory = machine(0, system_vendor={"manufacturer": "VMware, Inc."})
    for disk in inventory["disks"]:
        disk["has_uuid"] = has_uuid
    result = of(view(3, {"platform": {"type": "vsphere"}}, h0={"inventory": inventory}))["vsphere-disk-uuid-enabled"]
    assert (result[1], result[2]) == (status, text)


CLUSTER_CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("machine-cidr-defined", {"machine_networks": []}, "failure", "The Machine Network CIDR is undefined; "),
    ("cluster-cidr-defined", {"cluster_networks": []}, "failure", "The Cluster Network CIDR is undefined."),
    (
        "no-cidrs-overlapping",
        {"service_networks": [{"cidr": "192.168.0.0/16"}]},
        "failure",
        "CIDRS Overlapping: MachineNetworkCIDR and ServiceNetworkCIDR: CIDRS 192.168.111.0/24 and 192.168.0.0/16 overlap.",
    ),
    (
        "no-cidrs-overlapping",
        {"service_networks": []},
        "pending",
        "At least one of the CIDRs (Machine Network, Cluster Network, Service Network) is undefined.",
    ),
    ("networks-same-address-families", {"service_networks": [{"cidr": "fd02::/112"}]}, "failure", "are not the same"),
    (
        "network-prefix-valid",
        {"cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 0}]},
        "failure",
        "Invalid Cluster Network prefix: Host prefix, now 0, must be a positive integer.",
    ),
    (
        "network-prefix-valid",
        {"cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 13}]},
        "failure",
        "Cluster network CIDR prefix 14 does not contain enough addresses for 3 hosts each one with 13 prefix (524288 addresses)",
    ),
    (
        "network-prefix-valid",
        {"cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 26}]},
        "failure",
        "Host prefix, now 26, must be less than or equal to 25 to allow at least 128 addresses",
    ),
    (
        "machine-cidr-equals-to-calculated-cidr",
        {"machine_networks": [{"cidr": "192.168.0.0/16"}]},
        "failure",
        "The Cluster Machine CIDR 192.168.0.0/16 is different than the calculated CIDR 192.168.111.0/24.",
    ),
    ("api-vips-defined", {"api_vips": []}, "failure", "API virtual IPs are undefined and must be provided."),
    (
        "api-vips-valid",
        {"api_vips": [{"ip": "192.168.111.5"}]},
        "failure",
        "api vips <192.168.111.5> are not verified yet.",
    ),
    (
        "api-vips-valid",
        {"api_vips": [{"ip": "10.0.0.1"}]},
        "failure",
        "api vips <10.0.0.1> does not belong to machine-network-cidr <192.168.111.0/24>",
    ),
    ("api-vips-valid", {"api_vips": [{"ip": "192.168.111.255"}]}, "failure", "is the broadcast address of"),
    (
        "ingress-vips-valid",
        {"ingress_vips": [{"ip": "192.168.111.4", "verification": "failed"}]},
        "failure",
        "ingress vips <192.168.111.4> is already in use in cidr 192.168.111.0/24",
    ),
    ("dns-domain-defined", {"base_dns_domain": ""}, "failure", "The base domain is undefined and must be provided."),
    ("pull-secret-set", {"pull_secret_set": False}, "failure", "The pull secret is not set."),
    (
        "sufficient-masters-count",
        {"control_plane_count": 5},
        "failure",
        "The cluster must have exactly 5 dedicated control plane nodes. Add or remove hosts",
    ),
    (
        "sufficient-masters-count",
        {"control_plane_count": 1},
        "failure",
        "Single-node clusters must have a single control plane node and no workers.",
    ),
    (
        "network-type-valid",
        {"network_type": "OpenShiftSDN", "service_networks": [{"cidr": "fd02::/112"}]},
        "failure",
        "The cluster is configured with IPv6 which is not supported by OpenShiftSDN; use OVNKubernetes instead",
    ),
    (
        "custom-manifests-requirements-satisfied",
        {"network_type": "Calico"},
        "failure",
        "Custom manifests are required for: Calico network type. Please upload manifests via the custom manifests API.",
    ),
    (
        "sufficient-masters-count",
        {"control_plane_count": 2},
        "failure",
        "exactly 2 dedicated control plane nodes and at least 1 arbiter node or the control plane nodes must have fencing credentials.",
    ),
]


@pytest.mark.parametrize(("ident", "cluster", "status", "text"), CLUSTER_CASES)
def test_cluster_case(ident: str, cluster: dict[str, Any], status: str, text: str) -> None:
    result = validations.evaluate(validations.CLUSTER, view(3, cluster))[ident]
    assert result[1] == status, result
    assert text in result[2]


def test_clocks_of_hosts() -> None:
    assert validations.c_ntp(view(3, h1={"_clock": 299}))[0] == "success"
    assert validations.c_ntp(view(3, h1={"_clock": 301}))[0] == "failure"
    assert validations.c_ntp(view(3, h1={"_clock": 301, "status": "disconnected"}))[0] == "success"


def test_free_addresses_verify_vips() -> None:
    free = json.dumps([{"network": "192.168.111.0/24", "free_addresses": ["192.168.111.5"]}])
    unverified = {"api_vips": [{"ip": "192.168.111.5"}], "ingress_vips": [{"ip": "192.168.111.4"}]}
    results = validations.evaluate(validations.CLUSTER, view(3, unverified, h0={"free_addresses": free}))
    assert (results["api-vips-valid"][1], results["ingress-vips-valid"][1]) == ("success", "failure")


def test_ignored() -> None:
    results = of(view(3, h0=small(routes=[])))
    assert results["has-default-route"][1] == "failure"
    assert not validations.all_passed(results, validations.SUFFICIENT)
    assert validations.all_passed(results, validations.SUFFICIENT, frozenset({"has-default-route"}))


def test_majority_group() -> None:
    made = view(2)
    assert of(made)["belongs-to-majority-group"][1:] == (
        "pending",
        "Not enough hosts in cluster to calculate connectivity groups",
    )
    assert of(view(3, reports=False))["belongs-to-majority-group"][1:] == (
        "failure",
        "No connectivity to the majority of hosts in the cluster",
    )
    assert of(view(3, {"connectivity_majority_groups": ""}))["belongs-to-majority-group"][1] == "pending"
    managed = {"user_managed_networking": True}
    assert of(view(3, managed))["belongs-to-majority-group"][1] == "success"
    assert of(view(3, managed, reports=False))["belongs-to-majority-group"][1] == "failure"
    reach = Reach()
    cidr = "192.168.111.0/24"
    hosts = [f"h{index}" for index in range(5)]
    # h4 receives from all others, no other host receives from h4.
    for index in range(5):
        reach.report(
            f"h{index}", report(index, [peer for peer in range(4 if index < 4 else 5) if peer != index]), [cidr]
        )
    assert reach.group(cidr, hosts, 3) == hosts[:4]
    reach.report("h3", report(3, []), [cidr])
    assert reach.group(cidr, hosts, 3) == hosts[:3]
    reach.report("h3", report(3, [0, 1, 2, 4]), [cidr])
    for index in range(4):
        reach.report(f"h{index}", report(index, [peer for peer in range(5) if peer != index]), [cidr])
    assert reach.group(cidr, hosts, 3) == hosts
    reach.drop("h0")
    assert reach.group(cidr, hosts, 3) == hosts[1:]
    assert reach.group(cidr, ["h1", "h2"], 3) == []
    addresses = {f"h{index}": [f"192.168.111.{20 + index}", "10.0.0.1"] for index in range(1, 5)}
    assert reach.connected_addresses(addresses)["h1"] == ["192.168.111.21"]


def test_two_islands() -> None:
    reach, cidr = Reach(), "192.168.111.0/24"
    for island in ([0, 1, 2], [3, 4, 5, 6]):
        for index in island:
            reach.report(f"h{index}", report(index, [peer for peer in island if peer != index]), [cidr])
    assert reach.group(cidr, [f"h{index}" for index in range(7)], 3) == ["h3", "h4", "h5", "h6"]


def test_ipv6_counts_by_layer_three() -> None:
    reach, cidr = Reach(), "fd00::/64"
    for index in range(3):
        remote = [
            {"host_id": f"h{peer}", "l3_connectivity": [{"remote_ip_address": f"fd00::{peer + 1}", "successful": True}]}
            for peer in range(3)
            if peer != index
        ]
        reach.report(f"h{index}", {"remote_hosts": remote}, [cidr])
    assert len(reach.group(cidr, ["h0", "h1", "h2"], 3)) == 3
    assert len(reach.group("IPv6", ["h0", "h1", "h2"], 3)) == 3
    assert reach.group("IPv4", ["h0", "h1", "h2"], 3) == []


def test_quality_mtu_and_collisions() -> None:
    made = view(3)
    cidrs = ["192.168.111.0/24"]
    broken = {"outgoing_nic": "eth0", "remote_ip_address": "192.168.111.21", "mtu_successful": False}
    made.reach.report("h0", report(0, [1, 2], rtt=150, loss=5, mtu_report=[broken]), cidrs)
    results = of(made)
    text = results["sufficient-network-latency-requirement-for-role"][2]
    assert text.startswith(
        "A total network latency above the tolerated threshold of 100.00 ms was encountered when performing network latency "
        "tests between host h0 and node-1 (150.00 ms), node-2 (150.00 ms)\\n"
    )
    assert "ping -c 10 -W 3 -q -I eth0 192.168.111.20/24" in text
    text = results["sufficient-packet-loss-requirement-for-role"][2]
    assert "tolerated threshold of 0.00% was" in text
    assert "node-1 (5.00%)" in text
    assert results["mtu-valid"][1:] == ("failure", "MTU is broken. Interface: eth0, remote IP address: 192.168.111.21")
    # With machine networks, what happens on others does not matter.
    made.reach.report("h0", report(0, [1, 2], mtu_report=[{**broken, "remote_ip_address": "10.0.0.1"}]), cidrs)
    assert of(made)["mtu-valid"][1] == "success"
    twice = report(0, [1, 2])
    twice["remote_hosts"][0]["l2_connectivity"].append(
        {"remote_ip_address": "192.168.111.21", "remote_mac": "aa:aa:aa:aa:aa:aa", "successful": True}
    )
    made.reach.report("h0", twice, cidrs)
    made = view(3, {"ip_collisions": json.dumps(made.reach.collisions["h0"])})
    # The host whose address it is fails, not the one that noticed.
    assert of(made)["no-ip-collisions-in-network"][1] == "success"
    assert of(made, "h1")["no-ip-collisions-in-network"][2] == (
        "Collisions detected for host ID h1, IP address: 192.168.111.21 Mac addresses: 52:54:00:00:00:01,aa:aa:aa:aa:aa:aa\n"
    )


def test_blocking_sets() -> None:
    every = {entry.ident: entry.gate for entry in validations.HOST}
    blocking = {*validations.SUFFICIENT, *validations.MIN_HARDWARE, *validations.INPUT}
    assert blocking == {ident for ident, gate in every.items() if gate not in (Gate.PRESENCE, Gate.WARNING)}
    assert "ntp-synced" not in validations.SUFFICIENT
    assert "belongs-to-majority-group" in validations.SUFFICIENT


def test_disks() -> None:
    raw = {
        "disks": [
            {"name": "sda", "path": "/dev/sda", "size_bytes": 21 * 10**9, "drive_type": "HDD"},
            {
                "name": "sr0",
                "path": "/dev/sr0",
                "size_bytes": 10**12,
                "drive_type": "ODD",
                "installation_eligibility": {"not_eligible_reasons": ["Disk is removable"]},
            },
            {"name": "nvme0n1", "path": "/dev/nvme0n1", "size_bytes": 200 * 10**9, "drive_type": "SSD"},
            {
                "name": "sdb",
                "path": "/dev/sdb",
                "size_bytes": 300 * 10**9,
                "drive_type": "SSD",
                "by_id": "/dev/disk/by-id/b",
            },
        ]
    }
    made = inv.prepare(raw, 100, False)
    assert made["disks"][0]["installation_eligibility"]["not_eligible_reasons"] == [
        "Disk is too small (disk only has 21 GB, but 100 GB are required)"
    ]
    assert made["disks"][1]["installation_eligibility"]["not_eligible_reasons"][0] == "Disk is removable"
    assert [disk["id"] for disk in inv.eligible_disks(made)] == ["/dev/disk/by-id/b", "/dev/nvme0n1"]
    # Another evaluation, with a different threshold, starts from the agent's report.
    again = inv.prepare(made, 20, False)
    assert inv.eligible_disks(again)[0]["name"] == "sda"
    assert len(again["disks"][1]["installation_eligibility"]["not_eligible_reasons"]) == 2


def hosts(count: int, **roles: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    made = []
    for index in range(count):
        host = {"id": f"h{index}", "role": roles.get(f"h{index}", "auto-assign")}
        made.append((host, machine(index, cpu={"count": 4 + index})))
    return made


def test_roles() -> None:
    def needed(host: Any, role: str) -> Any:
        return TABLE[role]

    roles = inv.assign_roles(hosts(5), needed, 3)
    assert [roles[f"h{index}"] for index in range(5)] == ["master"] * 3 + ["worker"] * 2, (
        "the weakest that fit are masters"
    )
    roles = inv.assign_roles(hosts(5, h0="worker"), needed, 3)
    assert [roles[f"h{index}"] for index in range(5)] == ["worker", "master", "master", "master", "worker"]
    roles = inv.assign_roles(hosts(5), needed, 3, "52:54:00:00:00:04")
    assert roles["h4"] == "master"
    assert sorted(roles.values()) == ["master"] * 3 + ["worker"] * 2
    assert sorted(inv.assign_roles(hosts(3), needed, 2).values()) == ["arbiter", "master", "master"]
    assert inv.assign_roles(hosts(1), needed, 1) == {"h0": "master"}
