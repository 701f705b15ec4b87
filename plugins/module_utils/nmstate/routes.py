"""Routes and rules by themselves: what is wrong with one, and its normal form."""

from __future__ import annotations

import ipaddress
from typing import Any

from ..addresses import version as family_of
from .errors import NmstateError, not_implemented
from .interface import LOOPBACK, MAIN_TABLE
from .kinds import canonical


def _network(value: str, where: str) -> str:
    try:
        if "%" in value:
            raise ValueError("an address with a zone")
        network = ipaddress.ip_network(value, strict=False)
        if "/" in value and not value.rpartition("/")[2].isdecimal():
            raise ValueError("the prefix length is not a number")
    except ValueError as error:
        raise NmstateError(f"{where}: Invalid IP network '{value}': {error}") from None
    return f"{canonical(network.network_address)}/{network.prefixlen}"


def _host(value: str, where: str) -> str:
    try:
        if "%" in value:
            raise ValueError
        return canonical(ipaddress.ip_address(value))
    except ValueError:
        raise NmstateError(f"{where}: invalid IP address syntax: {value!r}") from None


def show_route(route: dict[str, Any]) -> str:
    shown = ("destination", "next-hop-interface", "next-hop-address", "source", "metric", "table-id", "weight", "cwnd")
    return " ".join(f"{key}: {route[key]}" for key in shown if key in route)


def route_family(route: dict[str, Any]) -> int:
    return family_of(route.get("destination", ""))


def route_key(route: dict[str, Any]) -> tuple[Any, ...]:
    return (
        route_family(route) == 4,
        route.get("table-id", MAIN_TABLE),
        route.get("destination", ""),
        route.get("next-hop-address", ""),
        route.get("source", ""),
        route.get("weight", 0),
        route.get("cwnd", 0),
    )


def same_table(found: int, wanted: int) -> bool:
    return found == wanted or (found, wanted) == (0, MAIN_TABLE)


def check_hop(route: dict[str, Any]) -> None:
    shown = f"route '{show_route(route)}'"
    unicast = "route-type" not in route
    if "state" not in route:
        if not unicast and ("next-hop-address" in route or route.get("next-hop-interface", LOOPBACK) != LOOPBACK):
            raise NmstateError(f"{shown}: A {route['route-type']} Route cannot have a next hop")
        if unicast and "next-hop-interface" not in route:
            raise not_implemented(f"Route with empty next hop interface is not supported: {shown}")
    if "destination" in route:
        network = ipaddress.ip_network(_network(route["destination"], shown))
        if unicast and network.version == 4 and network.network_address.packed[0] == 0 and network.prefixlen >= 8:
            raise NmstateError(
                f"{shown}: 0.0.0.0/8 and its subnet cannot be used as the route destination for unicast route, please use "
                "the default gateway 0.0.0.0/0 instead"
            )


def normal_route(route: dict[str, Any]) -> dict[str, Any]:
    shown = f"route '{show_route(route)}'"
    route = dict(route)
    if "destination" in route:
        route["destination"] = _network(route["destination"], shown)
    for key in ("next-hop-address", "source"):
        if key in route:
            route[key] = _host(route[key], shown)
    if not 1 <= route.get("weight", 1) <= 256:
        raise NmstateError(f"{shown}: Invalid ECMP route weight {route['weight']}, should be in the range of 1 to 256")
    if "weight" in route and route_family(route) == 6:
        raise NmstateError("IPv6 ECMP route with weight is not supported yet", "NotSupportedError")
    if route.get("cwnd") == 0:
        raise NmstateError(f"{shown}: The value of 'cwnd' cannot be 0")
    return route


def normal_rule(rule: dict[str, Any]) -> dict[str, Any]:
    rule = {key: value for key, value in rule.items() if value != ""}
    for key in ("ip-from", "ip-to"):
        if key in rule:
            rule[key] = _network(rule[key], f"route rule {key}")
            family = f"ipv{family_of(rule[key])}"
            if rule.setdefault("family", family) != family:
                raise NmstateError(f"The {key} format mismatches with the family set: {rule[key]}, {rule['family']}")
    if "family" not in rule:
        raise NmstateError(f"Neither ip-from, ip-to nor family is defined in route rule {rule}")
    if "fwmask" in rule and "fwmark" not in rule:
        raise NmstateError(f"fwmask is present but fwmark is not defined or is zero in route rule {rule}")
    return rule
