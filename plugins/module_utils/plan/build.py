"""The plan: everything that follows from a profile and a cluster name, derived once."""

from __future__ import annotations

import hashlib
import ipaddress
import uuid
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from ..addresses import family as family_of
from ..addresses import in_url
from . import faults
from .fields import Family, Platform, Role
from .machines import Address, Disk, Network, Nic, Node, Reservation, Subnet
from .model import Plan, Vips
from .presets import FAMILIES, ROLES

_NAMESPACE = uuid.UUID("5f1a7c1e-8a3f-5d0c-9e55-0b6a0d3f2c11")
_LAB_REPOSITORY = "registry.agentlab.test/lab"
_TARGETS = {"scsi": "sd", "sata": "sd", "virtio": "vd"}


def build(profile: Mapping[str, Any], cluster: str) -> Plan:
    """Return the plan of a complete profile (`profile.complete`) for the cluster named `cluster`.

    A pure function. The profile must have passed `checks.check`: what is wrong there raises whatever it raises here.
    """
    families = FAMILIES[profile["stack"]]
    domain = f"{cluster}.{profile['base_domain']}"
    machine = _machine_network(profile, cluster, domain)
    networks = [machine, *(_extra_network(extra, profile) for extra in profile["extra_networks"])]
    services = profile["services"]
    gateway = machine["subnets"][0]["gateway"]
    systems = f"redfish-virtualmedia+https://{in_url(gateway)}:{services['bmc']['port']}/redfish/v1/Systems"
    nodes = _nodes(profile, cluster, networks, systems)
    sno = sum(node["role"] == "master" for node in nodes) == 1
    platform: Platform = profile["platform"] or ("none" if sno else "baremetal")
    vips = _vips(profile, machine, nodes, platform)
    host = f"virthost.{domain}"
    _fill_dns(machine, nodes, vips, domain)
    for network in networks:
        network["reservations"] = _reservations(network, nodes)
    lab = profile["release"]["payload"] == "lab"
    state_dir = state_directory(profile, cluster)
    installer = profile["installer"]
    plan: Plan = {
        "cluster": {
            "name": cluster,
            "base_domain": profile["base_domain"],
            "domain": domain,
            "topology": profile["topology"],
            "stack": profile["stack"],
            "addressing": profile["addressing"],
            "platform": platform,
            "arch": profile["arch"],
        },
        "release": deepcopy(profile["release"]),
        "hypervisor": {
            "kind": profile["hypervisor"]["kind"],
            "host": profile["hypervisor"]["host"],
            "user": profile["hypervisor"]["user"],
            "netns": f"agentlab-{cluster}",
            "state_dir": state_dir,
            "pool": f"agentlab-{cluster}",
            "pool_dir": f"{state_dir}/pool",
            "egress": profile["hypervisor"]["egress"],
            "route": profile["hypervisor"]["route"],
            "domain_type": profile["hypervisor"]["domain_type"],
        },
        "networks": networks,
        "vips": vips,
        "rendezvous_ip": nodes[0]["nics"][0]["addresses"][0]["ip"],
        "nodes": nodes,
        "services": {
            "address": gateway,
            "host": host,
            "registry": deepcopy(services["registry"]),
            "bmc": deepcopy(services["bmc"]),
            "http": {
                "port": services["http"]["port"],
                "url": f"http://{in_url(gateway)}:{services['http']['port']}",
            },
            "ntp": deepcopy(services["ntp"]),
        },
        "boot": deepcopy(profile["boot"]),
        "installer": {
            "ssh_key_file": installer["ssh_key_file"],
            "pull_secret_file": installer["pull_secret_file"],
            "network_type": installer["network_type"],
            "cluster_network": [
                deepcopy(entry) for family in families for entry in installer["cluster_network"][family]
            ],
            "service_network": [installer["service_network"][family] for family in families],
            "machine_network": [subnet["cidr"] for subnet in machine["subnets"]],
            "ntp_sources": _or(installer["ntp_sources"], [gateway]),
            "image_digest_sources": _or(
                installer["image_digest_sources"],
                _lab_mirrors(f"{host}:{services['registry']['port']}") if lab else [],
            ),
            "fips": installer["fips"],
            "install_config": deepcopy(installer["install_config"]),
            "agent_config": deepcopy(installer["agent_config"]),
        },
        "settings": deepcopy(profile["settings"]),
        "faults": [faults.complete(fault) for fault in profile["faults"]],
    }
    faults.apply(plan)
    return plan


def node_names(profile: Mapping[str, Any]) -> list[tuple[str, Role, int]]:
    """Return (host name, role, index within the role) of each node, in the order of their addresses."""
    extra = sum(fault["kind"] == "extra_host" for fault in profile["faults"])
    counts = {**{role: profile[role]["count"] for role in ROLES}, faults.EXTRA: extra}
    return [(f"{role}-{i}", role, i) for role, count in counts.items() for i in range(count)]


def machine(profile: Mapping[str, Any], name: str, role: str) -> dict[str, Any]:
    """Return what a profile says of the machine of node `name`: its role's values, and over them its own."""
    return {**profile["master" if role == faults.EXTRA else role], **profile["nodes"].get(name, {})}


def state_directory(profile: Mapping[str, Any], cluster: str) -> str:
    """Return the directory on the hypervisor in which the cluster's state is."""
    return f"{profile['hypervisor']['state_dir']}/{cluster}"


def mac_address(cluster: str, nic: str, index: int) -> str:
    """Return the MAC of interface `nic` of the node at `index`: same input, same address, on any machine.

    As in dev-scripts `00:` and four bytes, with the last byte counting up from node to node.
    """
    digest = hashlib.sha256(f"{cluster}/{nic}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0, *digest[:4], (digest[4] + index) % 256))


def duid_ll(mac: str) -> str:
    """Return the link-layer DHCPv6 unique identifier of an Ethernet address (RFC 8415, 11.4)."""
    return f"00:03:00:01:{mac}"


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def _lab_mirrors(registry: str) -> list[Any]:
    return [
        {"source": f"{_LAB_REPOSITORY}/{name}", "mirrors": [f"{registry}/lab/{name}"]}
        for name in ("release", "payload")
    ]


def _subnet(cidr: str, family: Family, settings: Mapping[str, Any], dhcp: bool) -> Subnet:
    network = ipaddress.ip_network(cidr)
    offsets = settings["offsets"]
    return {
        "family": family,
        "cidr": str(network),
        "prefix": network.prefixlen,
        "gateway": str(network[offsets["gateway"]]),
        "dhcp": {
            "start": str(network[offsets["dhcp_start"]]),
            "end": str(network[offsets["dhcp_end"]]),
            "lease_minutes": settings["lease_minutes"],
        }
        if dhcp
        else None,
    }


def _machine_network(profile: Mapping[str, Any], cluster: str, domain: str) -> Network:
    settings = profile["network"]
    bridge = settings["bridge"] or f"{cluster}bm"
    dhcp = profile["addressing"] == "dhcp"
    return {
        "name": bridge,
        "bridge": bridge,
        "purpose": "machine",
        "mtu": settings["mtu"],
        "nat": _or(settings["nat"], profile["hypervisor"]["egress"]),
        "domain": domain,
        "subnets": [_subnet(settings[family], family, settings, dhcp) for family in FAMILIES[profile["stack"]]],
        "dns": {"hosts": [], "wildcards": []},
        "reservations": [],
    }


def _extra_network(extra: Mapping[str, Any], profile: Mapping[str, Any]) -> Network:
    settings = {**profile["network"], **extra}
    return {
        "name": extra["name"],
        "bridge": extra.get("bridge") or extra["name"],
        "purpose": "extra",
        "mtu": settings["mtu"],
        "nat": bool(extra.get("nat")),
        "domain": None,
        "subnets": [
            _subnet(extra[family], family, settings, profile["addressing"] == "dhcp")
            for family in ("ipv4", "ipv6")
            if extra.get(family)
        ],
        "dns": {"hosts": [], "wildcards": []},
        "reservations": [],
    }


def _vips(profile: Mapping[str, Any], machine: Network, nodes: list[Node], platform: str) -> Vips:
    """The addresses that api and *.apps resolve to.

    Baremetal has virtual ones; on the other platforms, where upstream expects a load balancer, the nodes' own are listed.
    """

    def of(name: str, roles: tuple[str, ...]) -> list[str]:
        if profile["vips"][name] is not None:
            return list(profile["vips"][name])
        if platform == "baremetal":
            offset = profile["network"]["offsets"][name]
            return [str(ipaddress.ip_network(subnet["cidr"])[offset]) for subnet in machine["subnets"]]
        carriers = [node for node in nodes if node["role"] in roles]
        return [address["ip"] for node in carriers for address in node["nics"][0]["addresses"]]

    workers = any(node["role"] == "worker" for node in nodes)
    return {"api": of("api", ("master",)), "ingress": of("ingress", ("worker" if workers else "master",))}


def _addresses(network: Network, profile: Mapping[str, Any], index: int) -> list[Address]:
    offsets = profile["network"]["offsets"]
    first = offsets["dhcp_nodes" if profile["addressing"] == "dhcp" else "static_nodes"]
    return [
        {
            "family": subnet["family"],
            "ip": str(ipaddress.ip_network(subnet["cidr"])[first + index]),
            "prefix": subnet["prefix"],
        }
        for subnet in network["subnets"]
    ]


def _given_addresses(given: list[str], network: Network) -> list[Address]:
    found: list[Address] = []
    for text in given:
        family = family_of(text)
        prefix = next(s["prefix"] for s in network["subnets"] if s["family"] == family)
        found.append({"family": family, "ip": str(ipaddress.ip_address(text)), "prefix": prefix})
    return found


def _nodes(profile: Mapping[str, Any], cluster: str, networks: list[Network], systems: str) -> list[Node]:
    nodes: list[Node] = []
    bmc = profile["services"]["bmc"]
    for index, (name, role, number) in enumerate(node_names(profile)):
        size, override = machine(profile, name, role), profile["nodes"].get(name, {})
        domain = f"{cluster}_{role}_{number}"
        identifier = size.get("uuid") or str(uuid.uuid5(_NAMESPACE, f"{cluster}/{name}"))
        nics: list[Nic] = []
        for position, network in enumerate(networks):
            nic = f"eth{position}"
            given = override.get("nics", {}).get(nic, {})
            nics.append(
                {
                    "name": nic,
                    "network": network["name"],
                    "mac": given.get("mac", "").lower() or mac_address(cluster, nic, index),
                    "addresses": _given_addresses(given["addresses"], network)
                    if given.get("addresses")
                    else _addresses(network, profile, index),
                }
            )
        node: Node = {
            "name": name,
            "domain": domain,
            "role": role,
            "uuid": identifier,
            "vcpus": size["vcpus"],
            "memory_mib": size["memory_mib"],
            "firmware": size["firmware"],
            "tpm": size["tpm"],
            "disks": _disks(domain, size),
            "nics": nics,
            "network_config": override.get("network_config") or _network_config(profile, networks, nics),
            "root_device": size["root_device"],
            "bmc": {
                "address": f"{systems}/{identifier}",
                "username": bmc["username"],
                "password": bmc["password"],
                **override.get("bmc", {}),
            },
        }
        nodes.append(node)
    return nodes


def _disks(domain: str, size: Mapping[str, Any]) -> list[Disk]:
    first = {"size_gib": size["disk_gib"], "bus": size["disk_bus"]}
    disks: list[Disk] = []
    for position, disk in enumerate([first, *size["extra_disks"]]):
        name = domain if position == 0 else f"{domain}_{position}"
        bus = disk.get("bus", size["disk_bus"])
        prefix = _TARGETS[bus]
        letter = sum(other["target"].startswith(prefix) for other in disks)
        disks.append(
            {
                "name": name,
                "size_gib": disk["size_gib"],
                "bus": bus,
                "target": f"{prefix}{chr(ord('a') + letter)}",
                "serial": hashlib.sha256(name.encode()).hexdigest()[:20],
            }
        )
    return disks


def _network_config(profile: Mapping[str, Any], networks: list[Network], nics: list[Nic]) -> dict[str, Any] | None:
    """nmstate of a node: all of it when static; with DHCPv6 the identifier that the reservation is made for."""
    if profile["addressing"] == "dhcp":
        if "ipv6" not in FAMILIES[profile["stack"]]:
            return None
        return {"interfaces": [_dhcp_interface(nic) for nic in nics]}
    subnets = networks[0]["subnets"]
    return {
        "interfaces": [_static_interface(nic) for nic in nics],
        "dns-resolver": {"config": {"server": [subnet["gateway"] for subnet in subnets]}},
        "routes": {
            "config": [
                {
                    "destination": "::/0" if subnet["family"] == "ipv6" else "0.0.0.0/0",
                    "next-hop-address": subnet["gateway"],
                    "next-hop-interface": nics[0]["name"],
                    "table-id": 254,
                }
                for subnet in subnets
            ]
        },
    }


def _interface(nic: Nic) -> dict[str, Any]:
    return {"name": nic["name"], "type": "ethernet", "state": "up", "mac-address": nic["mac"]}


def _dhcp_interface(nic: Nic) -> dict[str, Any]:
    interface = _interface(nic)
    auto = {"enabled": True, "dhcp": True, "auto-dns": True, "auto-gateway": True, "auto-routes": True}
    for family in ("ipv4", "ipv6"):
        has = any(address["family"] == family for address in nic["addresses"])
        interface[family] = {**auto} if has else {"enabled": False}
    if interface["ipv6"]["enabled"]:
        interface["ipv6"] |= {"autoconf": True, "dhcp-duid": "ll"}
    return interface


def _static_interface(nic: Nic) -> dict[str, Any]:
    interface = _interface(nic)
    for family in ("ipv4", "ipv6"):
        own = [address for address in nic["addresses"] if address["family"] == family]
        interface[family] = (
            {
                "enabled": True,
                "address": [{"ip": a["ip"], "prefix-length": a["prefix"]} for a in own],
                "dhcp": False,
            }
            if own
            else {"enabled": False}
        )
    return interface


def _fill_dns(machine: Network, nodes: list[Node], vips: Vips, domain: str) -> None:
    names: dict[str, list[str]] = {}
    for ip in vips["api"]:
        names.setdefault(ip, []).extend(["api", "api-int"])
    for node in nodes:
        for address in node["nics"][0]["addresses"]:
            names.setdefault(address["ip"], []).append(node["name"])
    for subnet in machine["subnets"]:
        names.setdefault(subnet["gateway"], []).append("virthost")
    machine["dns"] = {
        "hosts": [{"ip": ip, "names": found} for ip, found in names.items()],
        "wildcards": [{"domain": f"apps.{domain}", "ip": ip} for ip in vips["ingress"]],
    }


def _reservations(network: Network, nodes: list[Node]) -> list[Reservation]:
    if not any(subnet["dhcp"] for subnet in network["subnets"]):
        return []
    return [
        {
            "mac": nic["mac"] if address["family"] == "ipv4" else None,
            "duid": duid_ll(nic["mac"]) if address["family"] == "ipv6" else None,
            "ip": address["ip"],
            "name": node["name"],
        }
        for node in nodes
        for nic in node["nics"]
        if nic["network"] == network["name"]
        for address in nic["addresses"]
    ]
