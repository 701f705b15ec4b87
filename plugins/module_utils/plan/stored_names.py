"""Names in a plan that was edited: those that follow from the cluster's name, and those that only one thing can have. See `stored`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..addresses import in_url
from ..bmc.redfish.address import systems_url
from . import ipi, names
from .hypervisor_model import Hypervisor
from .machines import Node
from .model import Plan, Services
from .outside import machines
from .problems import Finding, Path, duplicates

_BY_NAME = "what removes the cluster finds it by the cluster's name"
_DNS = 53
HOME = ("machine", "segment")
"""Purposes of the networks in which the cluster knows its nodes."""
_SERVICES = ("registry", "bmc", "http", "proxy")


def every(plan: Plan) -> list[tuple[Path, Mapping[str, Any]]]:
    """Return all machines of a plan with their places: nodes, machines outside of the cluster, and the bootstrap machine.

    The last one has no lists of NICs and disks, but `mac` and `addresses`.
    """
    found: list[tuple[Path, Mapping[str, Any]]] = [(("nodes", index), node) for index, node in enumerate(plan["nodes"])]
    found += [(("machines", index), one) for index, one in enumerate(machines(plan))]
    bootstrap = ipi.bootstrap(plan)
    return [*found, *([(("installer", "bootstrap"), bootstrap)] if bootstrap else [])]


def wrong_names(plan: Plan) -> Iterator[Finding]:
    """Yield the names that do not follow from the cluster's name."""
    cluster, first = plan["cluster"], plan["hypervisor"]
    name, domain = cluster["name"], cluster["domain"]
    # The copy of a snapshot has the names of the original inside of its sandbox.
    inside = domain.split(".", 1)[0] if first["kind"] == "sandbox" else name
    if domain != (wanted := f"{inside}.{cluster['base_domain']}"):
        yield ("cluster", "domain"), domain, f"must be {wanted}: name and base_domain"
    if plan["services"]["host"] != (wanted := f"virthost.{domain}"):
        yield ("services", "host"), plan["services"]["host"], f"must be {wanted}, in cluster.domain"
    for index, network in enumerate(plan["networks"]):
        if network["purpose"] in HOME and network["domain"] not in (domain, None):
            yield ("networks", index, "domain"), network["domain"], f"must be {domain}, as cluster.domain"
    for path, one in every(plan):
        if not one["domain"].startswith((f"{inside}_", f"{inside}-")):
            yield (*path, "domain"), one["domain"], f"must begin with {inside}_: it is removed with the cluster"
    yield from _urls(plan)
    yield from _hypervisor(("hypervisor",), first, name, inside)
    for index, one in enumerate(plan.get("hypervisors") or []):
        yield from _hypervisor(("hypervisors", index), one, name, inside)


def _urls(plan: Plan) -> Iterator[Finding]:
    """Yield URLs of services, and of BMCs at the lab's emulator, that have another address, port or UUID than their fields."""
    services = plan["services"]
    address, bmc, http = services["address"], services["bmc"], services["http"]
    if bmc["url"] != (wanted := systems_url(address, bmc["port"])):
        yield ("services", "bmc", "url"), bmc["url"], f"must be {wanted}, by services.address and services.bmc.port"
    # A further hypervisor uses the files of the first one.
    if not plan["hypervisor"].get("further") and http["url"] != (wanted := f"http://{in_url(address)}:{http['port']}"):
        yield ("services", "http", "url"), http["url"], f"must be {wanted}, by services.address and services.http.port"
    systems = f"redfish-virtualmedia+{bmc['url']}/"
    for index, node in enumerate(plan["nodes"]):
        found = node["bmc"]["address"]
        if found.startswith(systems) and found != (wanted := f"{systems}{node['uuid']}"):
            yield ("nodes", index, "bmc", "address"), found, f"must be {wanted}, with the node's uuid"


def _hypervisor(place: Path, one: Hypervisor, cluster: str, inside: str) -> Iterator[Finding]:
    own = one.get("further")
    label = f"{cluster}-{own['name']}" if own else cluster
    if not one["state_dir"].endswith(f"/{label}"):
        yield (*place, "state_dir"), one["state_dir"], f"must end with /{label}: it is removed with the cluster"
    if one["netns"] != (netns := names.netns(label)):
        yield (*place, "netns"), one["netns"], f"must be {netns}: {_BY_NAME}"
    if one["pool"] != (pool := names.pool(inside)):
        yield (*place, "pool"), one["pool"], f"must be {pool}: {_BY_NAME}"
    uplink: Mapping[str, object] = {**names.uplink(cluster)}
    for name, found in one["uplink"].items():
        if found != uplink[name]:
            yield (*place, "uplink", name), found, f"must be {uplink[name]}: {_BY_NAME}"


def repeated_names(plan: Plan) -> Iterator[Finding]:
    """Yield names, UUIDs, MACs, disks and ports that something else in the plan has, too."""
    found = every(plan)
    for field in ("name", "domain", "console"):
        yield from duplicates(((*path, field), one[field]) for path, one in found)
    yield from duplicates(((*path, "uuid"), one["uuid"].lower()) for path, one in found)
    yield from duplicates((path, mac.lower()) for path, mac in _macs(plan))
    disks = [((*path, "disks", at), disk) for path, one in found for at, disk in enumerate(one.get("disks") or [])]
    yield from duplicates(((*path, "name"), disk["name"]) for path, disk in disks)
    yield from duplicates(((*path, "iqn"), disk["iqn"]) for path, disk in disks if disk.get("iqn"))
    nics = [((*path, "nics", at), nic) for path, one in found for at, nic in enumerate(one.get("nics") or [])]
    yield from duplicates(((*path, "port"), nic["port"]) for path, nic in nics if nic.get("port"))
    yield from duplicates(
        (("nodes", at, "bmc", "address"), one["bmc"]["address"]) for at, one in enumerate(plan["nodes"])
    )
    for index, node in enumerate(plan["nodes"]):
        yield from _of_node(("nodes", index), node)
    for field in ("name", "bridge"):
        networks: list[Mapping[str, Any]] = [*plan["networks"]]
        yield from duplicates((("networks", at, field), network[field]) for at, network in enumerate(networks))
    yield from _ports(plan["services"])


def _macs(plan: Plan) -> Iterator[tuple[Path, str]]:
    for path, one in every(plan):
        if mac := one.get("mac"):
            yield (*path, "mac"), mac
        yield from (((*path, "nics", at, "mac"), nic["mac"]) for at, nic in enumerate(one.get("nics") or []))
    for index, network in enumerate(plan["networks"]):
        yield ("networks", index, "bridge_mac"), network["bridge_mac"]


def _of_node(place: Path, node: Node) -> Iterator[Finding]:
    """Yield what two interfaces or disks of a node have, and the MACs of bonds and VLANs that are not those of their NICs."""
    links = node.get("links") or []
    yield from duplicates(
        ((*place, kind, at, "name"), one["name"])
        for kind, all_of_it in (("nics", node["nics"]), ("links", links))
        for at, one in enumerate(all_of_it)
    )
    yield from duplicates(((*place, "disks", at, "target"), disk["target"]) for at, disk in enumerate(node["disks"]))
    macs = {nic["name"]: nic["mac"] for nic in node["nics"]}
    for position, link in enumerate(links):
        bond, vlan = link["bond"], link["vlan"]
        below = bond["nics"][:1] if bond else [vlan["parent"]] if vlan else []
        wanted = macs.get(below[0]) if below else None
        macs[link["name"]] = wanted or link["mac"]
        if wanted and link["mac"].lower() != wanted.lower():
            yield (*place, "links", position, "mac"), link["mac"], f"must be {wanted}, the MAC of its first NIC"


def _ports(services: Services) -> Iterator[Finding]:
    """Yield TCP ports that two services at the gateway have."""
    every_service: Mapping[str, Any] = {**services}
    ports: list[tuple[Path, int]] = [
        (("services", name, "port"), every_service[name]["port"]) for name in _SERVICES if every_service.get(name)
    ]
    balancer = services.get("balancer")
    if balancer and not balancer.get("machine"):
        fronts = enumerate(balancer["frontends"])
        ports += [(("services", "balancer", "frontends", at, "port"), front["port"]) for at, front in fronts]
    yield from duplicates((path, str(port)) for path, port in ports)
    for path, port in ports:
        if port == _DNS:
            yield path, port, "is that of the lab's DNS: choose another one"
