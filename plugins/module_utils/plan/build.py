"""The plan: everything that follows from a profile and a cluster name, derived once."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, Literal, TypeVar, cast

from ..addresses import in_url
from ..bmc.redfish.address import systems_url
from ..vocabulary import MAKERS, PAYLOAD_REPOSITORY, REGISTRY, RELEASE_REPOSITORY, WITH_VIPS, ClusterNames, Port
from . import dialog, faults, hypervisors, ipi, iscsi, names, outside_build, proxied, tests
from .balancers import balancer, balances
from .boot_modes import boot, mode_of, node_disks
from .fields import Addressing, Platform, Role
from .host_network import network_config
from .installer_inputs import DigestSource
from .links import nics as nics_of
from .links import of_node, of_role
from .machine_options import NicOptions
from .machines import Address, Network, Node
from .model import (
    BmcService,
    Endpoint,
    Endpoints,
    External,
    Hypervisor,
    Installer,
    Plan,
    Registry,
    Release,
    Rendezvous,
    Services,
    Vips,
)
from .networks import (
    addresses_of,
    extra_network,
    fill_dns,
    given_addresses,
    leaves,
    machine_network,
    machine_networks,
    own_addresses,
    reservations,
    segment,
    tag,
)
from .options import Profile, ServicesOptions
from .outside import load_balancer
from .presets import DAY2, DEFAULTS, FAMILIES, ROLES

T = TypeVar("T")
_IF_GIVEN = ("secure_boot", "screen", "screen_steps", "root_device_hints")


def build(profile: Profile, cluster: str) -> Plan:
    """Return the plan of a complete profile (`profile.complete`) for the cluster named `cluster`.

    A pure function. The profile must have passed `checks.check`: the behavior for an invalid one is undefined.
    """
    domain = f"{cluster}.{profile['base_domain']}"
    dhcp = any(addressing_of(profile, name, role) != "static" for name, role, __ in node_names(profile))
    machine = machine_network(profile, cluster, domain, dhcp=dhcp or mode_of(profile).fetches)
    networks = [machine, *(extra_network(extra, profile, cluster, dhcp=dhcp) for extra in profile["extra_networks"])]
    segments = [segment(name, profile, cluster, machine) for name in profile["segments"]]
    tag(networks, profile)
    networks += [*segments, *outside_build.outside_networks(profile, cluster)]
    nodes = _nodes(profile, cluster, networks)
    platform = platform_of(profile)
    behind = balances(profile, platform)
    vips = _vips(profile, networks, nodes, platform, balanced=behind)
    rendezvous: Rendezvous = {"node": nodes[0]["name"], "ip": own_addresses(nodes[0], networks)[0]["ip"]}
    if mode_of(profile).dialog:
        dialog.ask(nodes, rendezvous["ip"])
    gateway = machine["subnets"][0]["gateway"]
    services = lab_services(profile["services"], gateway, domain, state_directory(profile, cluster))
    proxied.add(services, profile, domain)
    if behind:
        services["balancer"] = balancer(profile, nodes, networks, services["directory"], vips)
    fill_dns(networks, nodes, vips, domain)
    for network in networks:
        network["reservations"] = reservations(network, nodes, profile["addressing"])
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
        "release": cast(Release, deepcopy(profile["release"])),
        "hypervisor": _hypervisor(profile, cluster),
        "networks": networks,
        "vips": vips,
        "endpoints": _endpoints(domain, vips, rendezvous),
        "rendezvous": rendezvous,
        "nodes": nodes,
        "services": services,
        "boot": boot(profile, services["http"]["url"]),
        "installer": installer(profile, networks, services),
        "settings": {name: str(value) for name, value in profile["settings"].items()},
        "faults": [faults.complete(fault) for fault in profile["faults"]],
        "snapshots": list(profile["snapshots"]),
        "tests": [tests.complete(test) for test in profile["tests"]],
    }
    for add in (outside_build.add, hypervisors.add, ipi.add, iscsi.add):
        add(plan, profile)
    if platform == "external":
        plan["cluster"]["external"] = external_of(profile)
    if maker := MAKERS.get(platform):
        for node in nodes:
            node["manufacturer"] = maker
    _apply_faults(plan)
    return plan


def _apply_faults(plan: Plan) -> None:
    """Apply faults that are values of the plan; the others are read where machines and files are created.

    The plan is changed: `dns_wildcard` adds a wildcard for the cluster's whole domain, `component_fails` replaces the
    component by `fails`.
    """
    for fault in plan["faults"]:
        if fault["kind"] == "dns_wildcard":
            plan["networks"][0]["dns"]["wildcards"].append(
                {"domain": plan["cluster"]["domain"], "ip": plan["services"]["address"]}
            )
        elif fault["kind"] == "component_fails":
            plan["release"]["payload_overrides"][fault["component"]] = faults.FAILS


def platform_of(profile: Profile) -> Platform:
    """Return the platform that a complete profile asks for, or else the one that follows from its number of masters."""
    return profile["platform"] or ("none" if profile["master"]["count"] == 1 else "baremetal")


def external_of(profile: Profile) -> External:
    """Return the external platform of a complete profile: its name, and whether it has a cloud controller manager."""
    name, manager = profile["external"]["platform_name"], profile["external"]["cloud_controller_manager"]
    return {"platform_name": name, "cloud_controller_manager": manager or ("External" if name == "oci" else "None")}


def node_names(profile: Profile) -> list[tuple[str, Role, int]]:
    """Return (host name, role, index within the role) of each node, in the order of their addresses.

    Roles come in the order master, arbiter, worker, then the `extra` machines of the fault extra_host. Capacity, checks
    and addresses count by this order.
    """
    extra = sum(fault["kind"] == "extra_host" for fault in profile["faults"])
    counts: dict[Role, int] = {**{role: profile[role]["count"] for role in ROLES}, faults.EXTRA: extra}
    return [(_name_format(profile, role) % i, role, i) for role, count in counts.items() for i in range(count)]


def node_roles(profile: Profile) -> dict[str, Role]:
    """Return the role of each node by its name, in the order of `node_names`."""
    return {name: role for name, role, _index in node_names(profile)}


def _name_format(profile: Profile, role: Role) -> str:
    return (None if role == "extra" else profile[role].get("name_format")) or f"{role}-%d"


def machine(profile: Profile, name: str, role: Role) -> dict[str, Any]:
    """Return a profile's values for the machine of node `name`: its role's, overridden by its own.

    An extra machine is sized as a master, one of day 2 at least as `presets.DAY2`. The keys are those of
    `machine_options.RoleOptions`, and what else the profile gives the node.
    """
    own = profile["nodes"].get(name, {})
    size: dict[str, Any] = {**profile["master" if role == "extra" else role], **own}
    if own.get("day2"):
        least = DAY2[profile["release"]["payload"]]
        size |= {field: max(size[field], value) for field, value in least.items() if field not in own}
    return size


def addressing_of(profile: Profile, name: str, role: Role) -> Addressing:
    """Return how node `name` gets its addresses, `dhcp`, `slaac` or `static`; an extra machine as the cluster."""
    own = None if role == faults.EXTRA else machine(profile, name, role)["addressing"]
    return own or profile["addressing"]


def day2_names(profile: Profile) -> list[str]:
    """Return the names of the nodes that a profile leaves to day 2, in the order of the profile.

    A name without a node is among them; the checks report it.
    """
    return [str(name) for name, node in profile["nodes"].items() if node.get("day2")]


def state_directory(profile: Profile, cluster: str) -> str:
    """Return the state directory of the cluster on the hypervisor.

    The profile's `hypervisor.state_dir` is the directory of all clusters; each has one with its own name in it.
    """
    return names.state_dir(cluster, profile["hypervisor"]["state_dir"])


def _hypervisor(profile: Profile, cluster: str) -> Hypervisor:
    given, state_dir = profile["hypervisor"], state_directory(profile, cluster)
    return {
        "kind": given["kind"],
        "host": given["host"],
        "user": given["user"],
        "netns": names.netns(cluster),
        "state_dir": state_dir,
        "console_dir": names.console_dir(state_dir),
        "pool": names.pool(cluster),
        "pool_dir": names.pool_dir(state_dir),
        "egress": leaves(profile),
        "route": given["route"],
        "uplink": names.uplink(cluster),
        "domain_type": given["domain_type"],
    }


def lab_services(given: ServicesOptions, gateway: str, domain: str, state_dir: str) -> Services:
    """Return the services at `gateway`, the first address of the machine network, whose domain is `domain`. given: a complete option.

    Nothing is started here. `state_dir` is the cluster's, on the hypervisor; content and configuration of each service
    are in a directory of it. Passwords stay null unless `given` has them.
    """
    directory = names.services_dir(state_dir)
    return {
        "address": gateway,
        "host": f"virthost.{domain}",
        "directory": directory,
        "process_dir": names.process_dir(state_dir),
        "registry": cast(Registry, {**given["registry"], "storage": f"{directory}/registry/storage"}),
        "bmc": cast(BmcService, {**given["bmc"], "url": systems_url(gateway, given["bmc"]["port"])}),
        "http": {
            "port": given["http"]["port"],
            "url": f"http://{in_url(gateway)}:{given['http']['port']}",
            "root": f"{directory}/http/root",
        },
        "ntp": {"port": given["ntp"]["port"]},
    }


def _endpoints(domain: str, vips: Vips, rendezvous: Rendezvous) -> Endpoints:
    def endpoint(host: str, addresses: list[str], port: int, scheme: str = "https") -> Endpoint:
        at = in_url(host) if (scheme, port) == ("https", Port.HTTPS) else f"{in_url(host)}:{port}"
        return {"host": host, "addresses": addresses, "port": port, "url": f"{scheme}://{at}"}

    served = ClusterNames.of(domain)
    return {
        "api": endpoint(served.api, [*vips["api"]], Port.API),
        "api_int": endpoint(served.api_int, [*vips["api"]], Port.API),
        "console": endpoint(served.console, [*vips["ingress"]], Port.HTTPS),
        "service": endpoint(rendezvous["ip"], [rendezvous["ip"]], Port.ASSISTED_SERVICE, "http"),
    }


def installer(profile: Profile, networks: list[Network], services: Services) -> Installer:
    """Return what the installer's input files need beyond the machines. networks: of the plan, the machine network first."""
    given, families = profile["installer"], FAMILIES[profile["stack"]]
    lab = profile["release"]["payload"] == "lab"
    made: Installer = {
        "ssh_key_file": given["ssh_key_file"],
        "pull_secret_file": given["pull_secret_file"],
        "network_type": given["network_type"],
        "cluster_network": [deepcopy(entry) for family in families for entry in given["cluster_network"][family]],
        "service_network": [given["service_network"][family] for family in families],
        "machine_network": [
            subnet["cidr"] for network in machine_networks(profile, networks) for subnet in network["subnets"]
        ],
        "ntp_sources": _value_or(given["ntp_sources"], [services["address"]]),
        "image_digest_sources": _value_or(
            given["image_digest_sources"],
            _lab_mirrors(services) if lab and not proxied.registry(services) else [],
        ),
        "fips": given["fips"],
        "install_config": deepcopy(given["install_config"]),
        "agent_config": deepcopy(given["agent_config"]),
    }
    keys, defaults = Installer.__optional_keys__, cast(Mapping[str, object], DEFAULTS["installer"])
    changed = {key: deepcopy(value) for key, value in given.items() if key in keys and value != defaults[key]}
    return cast(Installer, {**made, **changed})


def _value_or(value: T | None, default: T) -> T:
    return default if value is None else value


def _lab_mirrors(services: Services) -> list[DigestSource]:
    """Return where the lab's registry has the lab payload: `installer.image_digest_sources` unless the profile has it."""
    registry = f"{services['host']}:{services['registry']['port']}"
    return [
        {"source": f"{REGISTRY}/{repository}", "mirrors": [f"{registry}/{repository}"]}
        for repository in (RELEASE_REPOSITORY, PAYLOAD_REPOSITORY)
    ]


def _vips(profile: Profile, networks: list[Network], nodes: list[Node], platform: str, *, balanced: bool) -> Vips:
    """The addresses that api and *.apps resolve to: the lab's load balancer if there is one (`balanced`).

    A machine that is it has virtual ones. Otherwise those of `WITH_VIPS` have virtual ones; on none and external the nodes' own are listed.
    """

    def of(name: Literal["api", "ingress"], roles: tuple[str, ...]) -> list[str]:
        given = profile["vips"][name]
        if given is not None:
            return list(given)
        if balanced and not own:
            return [subnet["gateway"] for subnet in networks[0]["subnets"]]
        if platform in WITH_VIPS or own:
            offset = profile["network"]["offsets"][name]
            return [str(ipaddress.ip_network(subnet["cidr"])[offset]) for subnet in networks[0]["subnets"]]
        carriers = [node for node in nodes if node["role"] in roles and not node.get("day2")]
        return [address["ip"] for node in carriers for address in own_addresses(node, networks)]

    own = load_balancer(profile)
    workers = any(node["role"] == "worker" and not node.get("day2") for node in nodes)
    return {"api": of("api", ("master",)), "ingress": of("ingress", ("worker" if workers else "master",))}


def _home(name: str | None, networks: list[Network]) -> Network:
    """Return the segment of that name; None: the machine network."""
    return next(network for network in networks if name is None or network["name"] == name)


def macs(profile: Profile, cluster: str) -> Iterator[tuple[str, str, str]]:
    """Yield (host name, NIC, MAC) of each NIC of a cluster's machines, in the order of `node_names`."""
    for index, (name, role, _number) in enumerate(node_names(profile)):
        given = profile["nodes"].get(name, {}).get("nics", {})
        for nic in nics_of(profile, role):
            yield name, nic, _mac(cluster, given, index, nic)


def _mac(cluster: str, given: Mapping[str, NicOptions], index: int, nic: str) -> str:
    return given.get(nic, {}).get("mac", "").lower() or names.mac_address(cluster, nic, index)


def _nodes(profile: Profile, cluster: str, networks: list[Network]) -> list[Node]:
    nodes: list[Node] = []
    bmc, state_dir = profile["services"]["bmc"], state_directory(profile, cluster)
    systems = f"redfish-virtualmedia+{systems_url(networks[0]['subnets'][0]['gateway'], bmc['port'])}"
    for index, (name, role, number) in enumerate(node_names(profile)):
        size, override = machine(profile, name, role), profile["nodes"].get(name, {})
        domain = f"{cluster}_{role}_{number}"
        identifier = size.get("uuid") or names.node_uuid(cluster, name)
        given: Mapping[str, NicOptions] = override.get("nics", {})
        way = addressing_of(profile, name, role)

        mac = partial(_mac, cluster, given, index)

        def addresses(
            interface: str,
            network: Network,
            given: Mapping[str, NicOptions] = given,
            index: int = index,
            mac: Callable[[str], str] = mac,
            static: bool = way == "static",
        ) -> list[Address]:
            wanted = given.get(interface, {}).get("addresses")
            if wanted:
                return given_addresses(wanted, network)
            return addresses_of(network, profile, index, mac(interface), static=static)

        own = [_home(size["segment"], networks), *of_role(profile, networks, role)]
        nics, links = of_node(profile, role, own, index, mac, addresses)
        node: Node = {
            "name": name,
            "domain": domain,
            "role": role,
            "uuid": identifier,
            "vcpus": size["vcpus"],
            "memory_mib": size["memory_mib"],
            "firmware": size["firmware"],
            "tpm": size["tpm"],
            "disks": node_disks(profile, size, domain),
            "nics": nics,
            "console": names.console(state_dir, domain),
            "network_config": override.get("network_config") or network_config(profile, own, nics, links, way),
            "root_device": size["root_device"],
            "bmc": {
                "address": f"{systems}/{identifier}",
                "username": bmc["username"],
                "password": bmc["password"],
                **override.get("bmc", {}),
            },
        }
        if links:
            node["links"] = links
        if override.get("bare_metal"):
            node["bare_metal"] = True
        if override.get("day2"):
            node["day2"] = True
        if way != "slaac" and way != profile["addressing"]:  # no node has `slaac` of its own
            node["addressing"] = way
        given = {key: value for key, value in size.items() if key in _IF_GIVEN and value}
        nodes.append(cast(Node, {**node, **given}))
    return nodes
