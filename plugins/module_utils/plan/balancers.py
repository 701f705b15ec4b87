"""The lab's load balancer: which cluster has one, and what is behind it."""

from __future__ import annotations

from collections.abc import Sequence

from ..vocabulary import WITH_VIPS, Port
from .balancer import Backend, Balancer, Frontend
from .fields import Platform
from .machines import Network, Node
from .model import Plan, Vips
from .networks import outside_balancer, own_addresses
from .options import Profile
from .outside import load_balancer

STATS_PORT = 9000
"""Of a load balancer that is a machine: the port at which it reports its nodes."""
BALANCED = (Port.API, Port.MACHINE_CONFIG, Port.HTTPS, Port.HTTP)
"""Its ports."""


def needs_balancer(profile: Profile, platform: Platform) -> bool:
    """Return whether a complete profile's cluster needs a load balancer that the profile does not name, in `vips` or in `machines`.

    That is so on none and external with several masters: the assisted service refuses names that resolve to a node's own address. A
    single node is reached by its own, and those of `WITH_VIPS` have virtual ones, unless install-config has
    `loadBalancer: {type: UserManaged}`.
    """
    without = platform not in WITH_VIPS or outside_balancer(profile)
    named = any(profile["vips"].values()) or load_balancer(profile) is not None
    return profile["master"]["count"] > 1 and without and not named


def balances(profile: Profile, platform: Platform) -> bool:
    """Return whether a complete profile's lab has a load balancer: the sandbox (see `needs_balancer`), or one of `machines`."""
    own = needs_balancer(profile, platform) and profile["hypervisor"]["kind"] == "sandbox"
    return own or load_balancer(profile) is not None


def balancer(
    profile: Profile, nodes: Sequence[Node], networks: Sequence[Network], directory: str, vips: Vips
) -> Balancer:
    """Return the load balancer: a machine, which has the addresses of API and ingress (`vips`), or a service at the gateway.

    directory: of the services.

    All masters are behind the API and the machine-config server. One of them is the rendezvous host, which alone serves both while it
    is the bootstrap host. Workers serve the ingress, or masters where there are none. Day-2 nodes are not there yet.
    """
    present = [node for node in nodes if not node.get("day2")]
    masters = [node for node in present if node["role"] == "master"]
    routers = [node for node in present if node["role"] == "worker"] or masters

    def front(name: str, port: int, health: str | None, members: Sequence[Node]) -> Frontend:
        behind: list[Backend] = [
            {"name": node["name"], "ip": own_addresses(node, networks)[0]["ip"]} for node in members
        ]
        return {"name": name, "port": port, "health": health, "backends": behind}

    made: Balancer = {
        "addresses": [subnet["gateway"] for subnet in networks[0]["subnets"]],
        "frontends": [
            front("api", Port.API, "/readyz", masters),
            front("machine-config", Port.MACHINE_CONFIG, "/healthz", masters),
            front("ingress", Port.HTTPS, None, routers),
            front("ingress-http", Port.HTTP, None, routers),
        ],
        "stats": f"{directory}/balancer/stats.sock",
    }
    if own := load_balancer(profile):
        addresses = list(dict.fromkeys([*vips["api"], *vips["ingress"]]))
        made |= {"addresses": addresses, "stats": "/run/haproxy/admin.sock", "machine": own["name"]}
    return made


def of_sandbox(plan: Plan) -> bool:
    """Return whether the load balancer of a plan is a service of the sandbox."""
    made = plan["services"].get("balancer")
    return made is not None and not made.get("machine")
