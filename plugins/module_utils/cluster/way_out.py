"""Whether the nodes of a lab reach what is outside of it: by the host's end of the sandbox's uplink."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from ..plan import faults
from ..plan.machines import Node, address_of
from ..plan.model import Plan
from .links import Ask, Finding

SECONDS = 5
"""How long a node waits for an answer."""


def findings(plan: Plan, ask: Ask) -> Iterator[Finding]:
    """Yield which nodes reach the host, and which ones should: all, or none where there is no way out but a proxy.

    Nothing without a sandbox, without IPv4, which is all that leaves a lab, where packets keep their addresses, and with
    `hypervisor.route` alone, by which the host answers the nodes.
    """
    hypervisor, network = plan["hypervisor"], plan["networks"][0]
    four = any(subnet["family"] == "ipv4" for subnet in network["subnets"])
    leaves = hypervisor["egress"] and network["nat"]
    answered = leaves or plan["services"].get("proxy") or not (hypervisor["egress"] or hypervisor["route"])
    if hypervisor["kind"] != "sandbox" or not four or not answered:
        return
    nodes = [node for node in plan["nodes"] if node["role"] != faults.EXTRA]
    command = f"ping -c 1 -W {SECONDS} {hypervisor['uplink']['host_address']} >/dev/null && echo yes || echo no"

    def reaches(node: Node) -> str:
        try:
            return ask(address_of(node, plan["networks"]), command).strip()
        except (OSError, ValueError) as error:
            return f"{error}"

    with ThreadPoolExecutor() as pool:
        said = dict(zip([node["name"] for node in nodes], pool.map(reaches, nodes), strict=True))
    unknown = [f"{name}: {answer}" for name, answer in said.items() if answer not in ("yes", "no")]
    there = [name for name, answer in said.items() if answer == "yes"]
    yield Finding("way out of the lab", _shown([*said] if leaves else []), "; ".join(unknown) or _shown(there))


def _shown(names: list[str]) -> str:
    return f"{', '.join(names)} reach the host" if names else "no node reaches the host"
