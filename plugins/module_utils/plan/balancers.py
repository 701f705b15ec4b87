"""The lab's load balancer: which cluster has one, and what is behind it."""

from __future__ import annotations

from collections.abc import Sequence

from ..vocabulary import WITH_VIPS, Port
from .fields import Platform
from .machines import Network, Node
from .model import Backend, Balancer, Frontend
from .networks import outside_balancer, own_addresses
from .options import Profile

BALANCED = (Port.API, Port.MACHINE_CONFIG, Port.HTTPS, Port.HTTP)
"""Its ports."""


def wanted(profile: Profile, platform: Platform) -> bool:
    """Return whether a complete profile's cluster needs a load balancer that the profile does not name in `vips`.

    That is so on none and external with several masters: the assisted service refuses names that resolve to a node's own address. A
    single node is reached by its own, and those of `WITH_VIPS` have virtual ones, unless install-config has
    `loadBalancer: {type: UserManaged}`.
    """
    without = platform not in WITH_VIPS or outside_balancer(profile)
    return profile["master"]["count"] > 1 and without and not any(profile["vips"].values())


def balances(profile: Profile, platform: Platform) -> bool:
    """Return whether a complete profile's sandbox has a load balancer; see `wanted`."""
    return wanted(profile, platform) and profile["hypervisor"]["kind"] == "sandbox"


def balancer(nodes: Sequence[Node], networks: Sequence[Network], directory: str) -> Balancer:
    """Return the load balancer at the gateway of the machine network. directory: of the services.

    All masters are behind the API and the machine-config server. One of them is the rendezvous host, which alone serves both while it
    is the bootstrap host. Workers serve the ingress, or masters where there are none. Nodes of day 2 are not there yet.
    """
    present = [node for node in nodes if not node.get("day2")]
    masters = [node for node in present if node["role"] == "master"]
    routers = [node for node in present if node["role"] == "worker"] or masters

    def front(name: str, port: int, health: str | None, members: Sequence[Node]) -> Frontend:
        behind: list[Backend] = [
            {"name": node["name"], "ip": own_addresses(node, networks)[0]["ip"]} for node in members
        ]
        return {"name": name, "port": port, "health": health, "backends": behind}

    return {
        "addresses": [subnet["gateway"] for subnet in networks[0]["subnets"]],
        "frontends": [
            front("api", Port.API, "/readyz", masters),
            front("machine-config", Port.MACHINE_CONFIG, "/healthz", masters),
            front("ingress", Port.HTTPS, None, routers),
            front("ingress-http", Port.HTTP, None, routers),
        ],
        "stats": f"{directory}/balancer/stats.sock",
    }
