"""Checks of what a profile has written of a node's nmstate by hand (`nodes.NAME.network_config`). See `checks`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..redact import redact
from . import links
from .build import node_roles
from .options import Profile
from .problems import Finding, Path

_OF_LAB = re.compile(r"eth\d+")
_ALL = {"0.0.0.0/0": "IPv4", "::/0": "IPv6"}
_MAIN_TABLES = (0, 254)


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what the installer refuses of a node's nmstate, and what its machine or another part of it contradicts."""
    roles = node_roles(profile)
    for name, node in profile["nodes"].items():
        given = node.get("network_config")
        if not given or name not in roles:
            continue
        from ..nmstate import NmstateError, generate  # few profiles have it

        path: Path = ("nodes", name, "network_config")
        state = _plain(given)
        start = "openshift-install refuses it: "
        try:
            if not generate(state):
                yield path, None, f"{start}nmstate generated an empty NetworkManager config file content"
                continue
        except NmstateError as error:
            yield path, None, redact(f"{start}failed to execute 'nmstatectl gc', error: {error}")
            continue
        # An existing machine may have more NICs than those that the lab knows, and by names of its own.
        if not node.get("bare_metal"):
            yield from _nics(path, state, name, links.nics(profile, roles[name]))
        yield from _default_routes(path, state)


def _nics(path: Path, state: dict[str, Any], node: str, known: list[str]) -> Iterator[Finding]:
    """Yield Ethernet interfaces that the machine has not: it has the NICs of the plan, which may have other names in the OS."""
    from ..nmstate.schema import parse
    from ..nmstate.state import Network

    parsed = parse(state)
    hops = [route.get("next-hop-interface", "") for route in parsed.get("routes", {}).get("config", [])]
    network = Network(parsed)
    found = [
        one.name
        for one in network.kernel.values()
        if one.type == "ethernet" and one.up and one.conf.get("identifier") != "mac-address" and "veth" not in one.conf
    ]
    others = [one.parent or "" for one in network.kernel.values()] + hops
    found += dict.fromkeys(other for other in others if other and other not in network.kernel and other not in found)
    missing = [one for one in found if _OF_LAB.fullmatch(one) and one not in known]
    if missing:
        place, has = _place_of(missing[0], state), ", ".join(known)
        remedy = f"there is no such NIC: {node} has {has}" + (f", not {', '.join(missing)}" if missing[1:] else "")
        yield (*path, *place), missing[0], remedy
    elif len(found) > len(known):
        yield (
            path,
            None,
            f"has the Ethernet interfaces {', '.join(found)}, and {node} has fewer NICs: {', '.join(known)}",
        )


def _default_routes(path: Path, state: dict[str, Any]) -> Iterator[Finding]:
    """Yield a default route that contradicts another one: of its family and table, of the same metric, and over another interface."""
    seen: dict[tuple[str, int | None], str] = {}
    for index, route in enumerate((state.get("routes") or {}).get("config") or []):
        family = _ALL.get(str(route.get("destination")))
        hop = str(route.get("next-hop-interface"))
        # Routes with weights share the traffic.
        if not family or route.get("state") == "absent" or route.get("weight") is not None:
            continue
        if int(route.get("table-id") or 0) not in _MAIN_TABLES:
            continue
        metric = route.get("metric")
        first = seen.setdefault((family, None if metric is None else int(metric)), hop)
        if first != hop:
            remedy = f"is a second {family} default route, next to that over {first}: remove one, or give them different metrics"
            yield (*path, "routes", "config", index, "next-hop-interface"), hop, remedy


def _plain(value: Any) -> Any:
    """Return a copy as nested dictionaries, which nmstate's documents are."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _place_of(name: str, state: Any) -> Path:
    """Return where a state has `name` first, other than in a text about it."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(state, dict):
        items = state.items()
    elif isinstance(state, list):
        items = enumerate(state)
    for key, value in items:
        if value == name and key not in ("description", "profile-name"):
            return (key,)
        if inner := _place_of(name, value):
            return (key, *inner)
    return ()
