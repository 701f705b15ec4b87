"""What a plan allows and its users may not expect."""

from __future__ import annotations

from .model import Plan


def warnings(plan: Plan) -> list[str]:
    """Return a sentence for each.

    An empty list for most plans. Commands and modules print them; nothing is refused because of one.
    """
    found = []
    if plan["hypervisor"]["route"] and plan["cluster"]["stack"] == "dualstack":
        found.append(
            "hypervisor.route reaches only the IPv4 addresses of this cluster; its IPv6 addresses are not reachable from the host"
        )
    return found
