"""Whether the nodes of a lab reach what is outside of it: by the host's end of the sandbox's uplink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..plan.model import Plan
from .links import Finding

SECONDS = 5
"""How long a node waits for an answer."""


def question(plan: Plan) -> str:
    """Return the command by which a node prints `out yes` or `out no`; empty where the answer would mean nothing.

    A node that does not even reach its gateway, or cannot ask, prints `out unknown`. The answer would mean nothing
    without a sandbox, without IPv4, which is all that leaves a lab, where packets keep their addresses, and with
    `hypervisor.route` alone, by which the host answers the nodes.
    """
    hypervisor = plan["hypervisor"]
    gateway = next((one["gateway"] for one in plan["networks"][0]["subnets"] if one["family"] == "ipv4"), None)
    closed = plan["services"].get("proxy") or not (hypervisor["egress"] or hypervisor["route"])
    if hypervisor["kind"] != "sandbox" or not gateway or not (_leaves(plan) or closed):
        return ""
    gone, out = (
        f"sudo ping -c 1 -W {SECONDS} {address} >/dev/null 2>&1"
        for address in (gateway, hypervisor["uplink"]["host_address"])
    )
    return f"echo out $({gone} || {{ echo unknown; exit; }}; {out} && echo yes || echo no); "


def findings(plan: Plan, answers: Mapping[str, str]) -> Iterator[Finding]:
    """Yield which nodes reach the host, and which ones should: all, or none where there is no way out but a proxy.

    answers: name of a node -> what it printed after `out`. Nothing without a question.
    """
    if question(plan):
        there = [name for name, answer in answers.items() if answer == "yes"]
        unknown = [name for name, answer in answers.items() if answer not in ("yes", "no")]
        found = f"{', '.join(unknown)}: no answer of the gateway" if unknown else _shown(there)
        yield Finding("way out of the lab", _shown([*answers] if _leaves(plan) else []), found)


def _leaves(plan: Plan) -> bool:
    return plan["hypervisor"]["egress"] and plan["networks"][0]["nat"]


def _shown(names: list[str]) -> str:
    return f"{', '.join(names)} reach the host" if names else "no node reaches the host"
