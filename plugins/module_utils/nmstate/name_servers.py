"""Name servers, search domains and options of a network state: which interfaces hold them."""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable
from typing import Any

from ..addresses import version as family_of
from .errors import NmstateError, not_implemented
from .interface import Interface, Ip, is_auto, is_static
from .kinds import canonical
from .state import Network

_PRIORITY = 40
_OPTIONS = {
    *("debug", "edns0", "inet6", "ip6-bytestring", "ip6-dotint", "no-aaaa", "no-check-names", "no-ip6-dotint"),
    *("no-reload", "no-tld-query", "rotate", "single-request", "single-request-reopen", "trust-ad", "use-vc"),
}
_OPTIONS_WITH_VALUE = {"ndots", "timeout", "attempts"}


def _server(value: str) -> str:
    ip, percent, zone = value.partition("%")
    try:
        return canonical(ipaddress.ip_address(ip)) + percent + zone
    except ValueError:
        raise NmstateError(f"Invalid DNS server string {value}") from None


def store_dns(network: Network, config: dict[str, Any]) -> None:
    """Give name servers, search domains and options to interfaces with addresses of their family.

    `config` is `dns-resolver.config` of a parsed state. Fills `Interface.dns` by family, with priority 40 for the
    family of the first server and 50 for the other. Raises `NmstateError` when no interface can hold them.
    """
    servers = [_server(server) for server in config.get("server", [])]
    for option in config.get("options", []):
        name, colon, __ = option.partition(":")
        if name not in (_OPTIONS_WITH_VALUE if colon else _OPTIONS):
            raise NmstateError(f"Unsupported DNS option {option}")
    rest = {"search": config.get("search", []), "options": config.get("options", [])}
    if not servers:
        if any(rest.values()):
            _store_search(network, rest)
        return
    families = [family_of(server) for server in servers]
    turns = sum(a != b for a, b in itertools.pairwise(families))
    scopes = [server.split("%") for server in servers if "%" in server]
    for server, name in scopes:
        if name not in network.kernel:
            raise NmstateError(
                f"Desired IPv6 link local DNS server {server}%{name} is pointing to interface {name} which does not "
                "exist."
            )
        if not _valid(network.kernel[name], 6):
            raise NmstateError(
                f"Interface {name} has IPv6 disabled, hence cannot hold desired IPv6 link local DNS server "
                f"{server}%{name}"
            )
    if len(scopes) > 1:
        raise not_implemented("Only support IPv6 link local DNS name server(s) pointing to a single interface")
    if turns > 1:
        raise not_implemented(
            "Placing IPv4/IPv6 nameserver in the middle of IPv6/IPv4 nameservers is not supported yet"
        )
    for family in (6, 4):
        own = [server.split("%")[0] for server in servers if family_of(server) == family]
        if not own:
            continue
        interface = network.kernel[scopes[0][1]] if family == 6 and scopes else _interface_for(network, family)
        if interface is None:
            listed = ", ".join(f'"{server}"' for server in own)
            raise NmstateError(f"Failed to find suitable(IP enabled) interface for DNS server [{listed}]")
        first = families[0] == family
        extra = rest if first else {}
        interface.dns[family] = {"server": own, **extra, "priority": _PRIORITY + (0 if first else 10)}


def _candidates(network: Network) -> list[Interface]:
    return [i for i in network.ordered() if not i.user_space and i.type != "loopback"]


def _valid(interface: Interface, family: int) -> bool:
    ip = interface.usable(family)
    return is_static(ip) or is_auto(ip)


def _interface_for(network: Network, family: int) -> Interface | None:
    candidates = _candidates(network)
    for interface in candidates:
        ip = interface.ip[family] or {}
        if is_static(ip) or (is_auto(ip) and ip.get("auto-dns") is False):
            return interface
    return next((i for i in candidates if _valid(i, family)), None)


def _store_search(network: Network, rest: dict[str, Any]) -> None:
    checks: tuple[Callable[[Ip], bool], ...] = (is_auto, lambda ip: bool(ip.get("enabled")))
    for check in checks:
        for interface in _candidates(network):
            for family in (6, 4):
                if check(interface.usable(family)):
                    interface.dns[family] = {**rest, "priority": _PRIORITY}
                    return
    raise NmstateError(f"Failed to find suitable(IP enabled) interface for DNS searches '{' '.join(rest['search'])}'")
