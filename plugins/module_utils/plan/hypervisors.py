"""Several hypervisors: which machine is where, how their networks are joined, and the plan as one of them sees it.

The first hypervisor (`hypervisor` of the profile) has the services and the gateway. Each further one carries machines, and has bridges
of the same names. A VXLAN for each network joins it to the first one's (a star, so that there is no loop).
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

from ..bmc.redfish.address import systems_url
from ..errors import LabError
from . import names
from .hypervisor_model import Further, Hypervisor
from .hypervisor_options import FurtherOptions
from .machines import Network, Node, interfaces, own_machines, virtual
from .model import Plan, Services, Vips
from .options import Profile
from .problems import Finding, Problem, ProfileError

FIRST = "hypervisor"
"""Name of the hypervisor with the services, in the inventory and in `nodes.NAME.hypervisor`."""
SERVICE = "bmc"
"""The service that a further hypervisor has."""
_INSIDE: tuple[Literal["console_dir", "pool_dir"], ...] = ("console_dir", "pool_dir")
_PAIRS = "169.254.{}.{}"
"""Addresses of the links between sandboxes of one host, each in a /24 of the block for single links (RFC 3927)."""


def place(machines: Sequence[tuple[str, int, str | None]], memory: Mapping[str, int | None]) -> dict[str, str]:
    """Return on which hypervisor each machine is: name -> name.

    machines: name, memory in MiB, and the hypervisor that the profile names; memory: of the hypervisors in MiB, or None, in their
    order. The others go, the largest first, to the hypervisor with the most memory left, and of equal ones to the first.
    """
    left = {name: given or 0 for name, given in memory.items()}
    found: dict[str, str] = {}
    # Sorting is stable: machines of one size keep their order.
    for name, size, wanted in sorted(machines, key=lambda one: (one[2] is None, -one[1])):
        where = wanted or max(left, key=lambda one: left[one])
        found[name] = where
        left[where] -= size
    return {one[0]: found[one[0]] for one in machines}


def memory_of(profile: Profile) -> dict[str, int | None]:
    """Return the memory that a complete profile gives each hypervisor for machines, in MiB, by name; the first one first."""
    return {
        FIRST: profile["hypervisor"].get("memory_mib"),
        **{one["name"]: one.get("memory_mib") for one in profile["hypervisors"]},
    }


def add(plan: Plan, profile: Profile) -> None:
    """Add the further hypervisors of a complete profile to its plan, and which of the nodes each has. The plan is changed."""
    if profile["hypervisors"]:
        found = further(profile, plan["cluster"]["name"], plan["networks"], plan["nodes"], plan["vips"])
        assign(profile, plan["nodes"], found)
        plan["hypervisors"] = found


def further(profile: Profile, cluster: str, networks: list[Network], nodes: list[Node], vips: Vips) -> list[Hypervisor]:
    """Return the further hypervisors of a complete profile's plan, whose networks, nodes and VIPs are given.

    Raises `ProfileError` for a network that has no free address for one.
    """
    taken = {address["ip"] for node in nodes for one in interfaces(node) for address in one["addresses"]}
    taken |= {*vips["api"], *vips["ingress"]}
    free = {network["name"]: [_free(subnet, taken) for subnet in network["subnets"]] for network in networks}
    found: list[Hypervisor] = []
    for index, given in enumerate(profile["hypervisors"]):
        own: dict[str, list[str]] = {}
        for network in networks:
            own[network["name"]] = [ip for one in free[network["name"]] if (ip := next(one, None)) is not None]
            if len(own[network["name"]]) < len(network["subnets"]):
                place = ("hypervisors", index, "name")
                remedy = f"network {network['name']} has no free address for it, outside of the DHCP range: use a larger network"
                raise ProfileError([Problem.of("profile", place, given["name"], remedy)])
        found.append(_hypervisor(profile, cluster, index, own, networks))
    return found


def assign(profile: Profile, nodes: Sequence[Node], given: Sequence[Hypervisor]) -> None:
    """Give each VM on one of the hypervisors `given` its name, and a console there; `nodes` are changed."""
    named = profile["nodes"]
    machines = [
        (node["name"], node["memory_mib"], named.get(node["name"], {}).get("hypervisor")) for node in virtual(nodes)
    ]
    placed, known = place(machines, memory_of(profile)), {name_of(one): one for one in given}
    for node in virtual(nodes):
        if there := known.get(placed[node["name"]]):
            node["hypervisor"] = name_of(there)
            node["console"] = names.console(there["state_dir"], node["domain"])


def _free(subnet: Mapping[str, Any], taken: set[str]) -> Iterator[str]:
    """Yield the addresses of a subnet after its gateway that nothing has."""
    dhcp = subnet["dhcp"]
    bounds = [int(ipaddress.ip_address(dhcp[end])) for end in ("start", "end")] if dhcp else [1, 0]
    network = ipaddress.ip_network(subnet["cidr"])
    gateway = ipaddress.ip_address(subnet["gateway"])
    for number in range(int(gateway) + 1, int(network.broadcast_address)):
        ip = str(ipaddress.ip_address(number) if network.version == 4 else ipaddress.IPv6Address(number))
        if ip not in taken and not bounds[0] <= number <= bounds[1]:
            yield ip


def _hypervisor(
    profile: Profile, cluster: str, index: int, own: dict[str, list[str]], networks: Sequence[Network]
) -> Hypervisor:
    given: FurtherOptions = profile["hypervisors"][index]
    first, name, kind = profile["hypervisor"], given["name"], given.get("kind", "sandbox")
    state_dir = names.state_dir(f"{cluster}-{name}", given.get("state_dir") or first["state_dir"])
    paired = kind == "sandbox"
    ends = (_PAIRS.format(index + 1, 1), _PAIRS.format(index + 1, 2))
    peer, address = ends if paired else (first.get("address"), given.get("address"))
    port = profile["services"]["bmc"]["port"]
    return {
        "kind": kind,
        "host": given.get("host"),
        "user": given.get("user"),
        "netns": names.netns(f"{cluster}-{name}"),
        "state_dir": state_dir,
        "console_dir": names.console_dir(state_dir),
        "pool": names.pool(cluster),
        "pool_dir": names.pool_dir(state_dir),
        "egress": False,
        "route": False,
        "uplink": names.uplink(cluster),
        "domain_type": given.get("domain_type") or first["domain_type"],
        "further": {
            "name": name,
            "addresses": own,
            "bmc": systems_url(own[networks[0]["name"]][0], port),
            "tunnel": {
                "address": str(address),
                "peer": str(peer),
                "paired": paired,
                "ids": {network["name"]: _vni(cluster, name, network["name"]) for network in networks},
            },
        },
    }


def _vni(cluster: str, hypervisor: str, network: str) -> int:
    """Return the VXLAN network identifier of a network between the first hypervisor and another: 24 bits (RFC 7348, 5), not 0.

    It is a hash, so that clusters which share hosts have different ones.
    """
    digest = hashlib.sha256(f"{cluster}/{hypervisor}/{network}".encode()).digest()
    return int.from_bytes(digest[:3], "big") or 1


def view(plan: Plan, name: str) -> Plan:
    """Return `plan` as the hypervisor `name` has to make its part of it; the whole plan for the first one.

    That of a further one has its machines, its BMCs, and networks without any service. The nodes that others carry have the
    field `hypervisor`, as in the whole plan. Raises `LabError` for a name that no hypervisor has.
    """
    if name == FIRST:
        return plan
    known = {other: one for one in plan.get("hypervisors") or [] if (other := name_of(one)) != FIRST}
    if name not in known:
        raise LabError(f"the plan has no hypervisor {name!r}; there are {', '.join([FIRST, *known])}")
    here = known[name]
    seen = cast(Plan, {key: value for key, value in plan.items() if key not in ("hypervisors", "machines")})
    seen["hypervisor"] = here
    seen["nodes"] = [_seen(node, name) for node in plan["nodes"]]
    seen["networks"] = [_joined(network, plan["cluster"]["name"], here) for network in plan["networks"]]
    seen["services"] = _services(plan, here)
    return seen


def _seen(node: Node, name: str) -> Node:
    if node.get("hypervisor") != name:
        return {**node, "hypervisor": node.get("hypervisor") or FIRST}
    return cast(Node, {key: value for key, value in node.items() if key != "hypervisor"})


def _further_of(here: Hypervisor) -> Further:
    own = here.get("further")
    if own is None:
        raise LabError("hypervisors: must not list the first hypervisor")
    return own


def _joined(network: Network, cluster: str, here: Hypervisor) -> Network:
    own = _further_of(here)
    pairs = zip(network["subnets"], own["addresses"][network["name"]], strict=True)
    return {
        **network,
        "bridge_mac": names.bridge_mac(f"{cluster}/{own['name']}", network["name"]),
        "nat": False,
        "domain": None,
        "subnets": [{**subnet, "gateway": ip, "dhcp": None} for subnet, ip in pairs],
        "dns": {"hosts": [], "wildcards": []},
        "reservations": [],
    }


def _services(plan: Plan, here: Hypervisor) -> Services:
    own, services = _further_of(here), plan["services"]
    directory = names.services_dir(here["state_dir"])
    return {
        "address": own["addresses"][plan["networks"][0]["name"]][0],
        "host": services["host"],
        "directory": directory,
        "process_dir": names.process_dir(here["state_dir"]),
        "registry": {**services["registry"], "storage": f"{directory}/registry/storage"},
        "bmc": {**services["bmc"], "url": own["bmc"]},
        "http": {**services["http"], "root": f"{directory}/http/root"},
        "ntp": services["ntp"],
    }


class End(NamedTuple):
    """The end of a network's VXLAN on a hypervisor: the device `link` at `bridge`, from address `local` to address `remote`.

    number: its VXLAN network identifier; mtu: in bytes, that of the network.
    """

    link: str
    bridge: str
    number: int
    local: str
    remote: str
    mtu: int


def ends(plan: Plan) -> list[End]:
    """Return the ends of VXLANs on the hypervisor of a plan or a view: of the first to each other one, of another to the first."""
    own = plan["hypervisor"].get("further")
    found = []
    for one in [own] if own else [other.get("further") for other in plan.get("hypervisors") or []]:
        if one is None:
            continue
        tunnel = one["tunnel"]
        local, remote = (tunnel["address"], tunnel["peer"]) if own else (tunnel["peer"], tunnel["address"])
        for network in plan["networks"]:
            number = tunnel["ids"][network["name"]]
            found.append(End(f"vx{number:06x}", network["bridge"], number, local, remote, network["mtu"]))
    return found


def is_paired(plan: Plan, end: End) -> bool:
    """Return whether an end of `ends` is at a pair of links between sandboxes of one host."""
    own = plan["hypervisor"].get("further")
    others = [own] if own else [one.get("further") for one in plan.get("hypervisors") or []]
    return any(one["tunnel"]["paired"] for one in others if one and end.number in one["tunnel"]["ids"].values())


def bmcs(plan: Plan) -> dict[str, tuple[str, str]]:
    """Return the BMCs of a plan's machines on further hypervisors: UUID -> name of the hypervisor, URL of its collection of systems."""
    known = {own["name"]: own["bmc"] for one in plan.get("hypervisors") or [] if (own := one.get("further"))}
    return {
        node["uuid"]: (name, known[name]) for node in plan["nodes"] if (name := node.get("hypervisor") or "") in known
    }


def name_of(hypervisor: Hypervisor) -> str:
    """Return the name of a plan's hypervisor, that of its host in the inventory."""
    own = hypervisor.get("further")
    return own["name"] if own else FIRST


def hypervisor_line(plan: Plan, further: Hypervisor) -> str:
    """Return a line about a further hypervisor of a plan: its name, where it is, and its nodes."""
    name = name_of(further)
    nodes = [node["name"] for node in plan["nodes"] if node.get("hypervisor") == name]
    return f"{name}: {further['kind']} {further['host'] or further['netns']}, {', '.join(nodes) or 'no nodes'}"


def views(plan: Plan) -> dict[str, Plan]:
    """Return the plan as each hypervisor sees it, by their names, the first one first."""
    found = [FIRST, *(name_of(one) for one in plan.get("hypervisors") or [])]
    return {name: view(plan, name) for name in found}


def on_this_host(plan: Plan) -> list[Node]:
    """Return the machines of a plan, or of a view, that take resources of the host of its hypervisor: those of other sandboxes, too."""
    found = own_machines(plan["nodes"])
    for one in plan.get("hypervisors") or []:
        if one["kind"] == plan["hypervisor"]["kind"] == "sandbox":
            found += own_machines(view(plan, name_of(one))["nodes"])
    return found


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield what is wrong in how a plan's nodes and its further hypervisors refer to each other."""
    given = plan.get("hypervisors") or []
    networks = [network["name"] for network in plan["networks"]]
    for index, one in enumerate(given):
        own = one.get("further")
        place = ("hypervisors", index, "further")
        if own is None:
            yield place, None, "must not be null: the first hypervisor is `hypervisor`"
            continue
        for network in plan["networks"]:
            count = len(network["subnets"])
            if len(own["addresses"].get(network["name"], [])) != count:
                yield (*place, "addresses", network["name"]), None, f"must be {count}, one for each subnet"
            if network["name"] not in own["tunnel"]["ids"]:
                yield (*place, "tunnel", "ids"), None, f"must have each of {', '.join(networks)}"
        for field in _INSIDE:
            if not one[field].startswith(one["state_dir"] + "/"):
                yield (
                    ("hypervisors", index, field),
                    one[field],
                    "must be in state_dir, which is removed with the cluster",
                )
    known = {own["name"]: one for one in given if (own := one.get("further"))}
    if not known:
        return
    for number, node in enumerate(plan["nodes"]):
        name = node.get("hypervisor")
        if name and name not in known:
            yield ("nodes", number, "hypervisor"), name, f"must be one of {', '.join(known)}, or null for the first"
        elif name and not node["console"].startswith(known[name]["state_dir"] + "/"):
            yield ("nodes", number, "console"), node["console"], f"must be in state_dir of {name}"
