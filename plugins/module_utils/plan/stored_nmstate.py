"""The nmstate of machines in a plan that was edited: what a profile's gets (`nmstate_checks`), compared with the plan. See `stored`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..redact import redact
from .machines import Node
from .machines import interfaces as links_and_nics
from .model import Plan
from .outside import machines
from .problems import Finding, Path
from .stored_names import HOME

_INSTALLER = "openshift-install refuses it: "
_LAB = "nmstate refuses it: "


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield what is wrong with `network_config` of nodes and of machines outside of the cluster."""
    for index, node in enumerate(plan["nodes"]):
        if given := node["network_config"]:
            path: Path = ("nodes", index, "network_config")
            refused = _refused(given, _INSTALLER)
            yield from [(path, None, refused)] if refused else _contradictions(plan, path, node, given)
    for index, one in enumerate(machines(plan)):
        if (given := one["network_config"]) and (refused := _refused(given, _LAB)):
            yield ("machines", index, "network_config"), None, refused


def _refused(given: dict[str, Any], who: str) -> str:
    """Return why nmstate refuses a state, after `who`; "" if it does not."""
    from ..nmstate import NmstateError, generate  # few plans have it
    from .nmstate_checks import plain_values

    try:
        found = generate(plain_values(given))
    except NmstateError as error:
        return redact(f"{who}failed to execute 'nmstatectl gc', error: {error}")
    return "" if found else f"{who}nmstate generated an empty NetworkManager config file content"


def _contradictions(plan: Plan, path: Path, node: Node, given: dict[str, Any]) -> Iterator[Finding]:
    from ..nmstate.schema import parse
    from .nmstate_checks import default_route_problems, nic_problems, plain_values, vlan_problems

    state = plain_values(given)
    interfaces = parse(state).get("interfaces") or []
    wrong = [*vlan_problems(path, interfaces), *default_route_problems(path, state)]
    # An existing machine may have more NICs than those that the lab knows, and by names of its own.
    if node["nics"] and not node.get("bare_metal"):
        wrong += nic_problems(path, state, node["name"], [nic["name"] for nic in node["nics"]])
    yield from wrong or _addresses(plan, path, node, interfaces)


def _addresses(plan: Plan, path: Path, node: Node, interfaces: list[dict[str, Any]]) -> Iterator[Finding]:
    """Yield the state of a node that is neither given nor leased an address by which the cluster knows it."""
    from .nmstate_checks import has_address, is_leased

    homes = [network["name"] for network in plan["networks"] if network["purpose"] in HOME]
    own = next((one["addresses"] for one in links_and_nics(node) if one["network"] in homes), [])
    by_itself = (node.get("addressing") or plan["cluster"]["addressing"]) == "slaac"
    known = [one["ip"] for one in own if not (by_itself and one["family"] == "ipv6")]
    if missing := [ip for ip in known if not any(has_address(one, ip) or is_leased(one, ip) for one in interfaces)]:
        text = " and ".join(missing)
        yield path, None, f"gives {node['name']} neither {text}, its address by the plan, nor DHCP: add that"
