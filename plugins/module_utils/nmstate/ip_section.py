"""The sections `ipv4` and `ipv6` of a keyfile: addresses, routes, rules and name servers."""

from __future__ import annotations

from typing import Any

from ..addresses import version as family_of
from .errors import not_implemented
from .interface import FAMILIES, MAIN_TABLE, Interface, Ip, is_auto
from .section import Section, pick

_FOREVER = 2**31 - 1

_MAY_FAIL = {"any": (True, True), "ipv4": (False, True), "ipv6": (True, False), "ipv4+ipv6": (False, False)}

_CLIENT_ID = {"ll": "mac", "LL": "mac", "iaid+duid": "duid", "IAID+DUID": "duid"}
_DUID = {"LLT": "llt", "EN": "en", "LL": "ll", "UUID": "uuid"}


def _route_lines(routes: list[dict[str, Any]], family: int) -> list[Section]:
    lines: list[Section] = []
    for route in routes:
        destination = route.get("destination")
        if destination is None:
            lines.append({})
            continue
        if family_of(destination) != family:
            continue
        options = [f"table={route.get('table-id') or MAIN_TABLE}"]
        options += [
            f"{key}={route[old]}" for key, old in (("weight", "weight"), ("type", "route-type")) if old in route
        ]
        if "cwnd" in route:
            options += [f"cwnd={route['cwnd']}", "lock-cwnd=true"]
        if "source" in route:
            options.append(f"src={route['source']}")
        metric = max(route.get("metric", 0), 0)
        line = f"{destination},{route.get('next-hop-address', '')},{metric}"
        lines.append({"": line, "_options": ",".join(options)})
    return lines


def _rule_line(rule: dict[str, Any]) -> str:
    words = [f"priority {rule['priority']}"]
    words += [f"{word} {rule[key]}" for word, key in (("to", "ip-to"), ("from", "ip-from")) if key in rule]
    if len(words) == 1:
        words.append("from 0.0.0.0/0" if rule["family"] == "ipv4" else "from ::/0")
    words += [
        f"{word} {rule[key]}"
        for word, key in (("iif", "iif"), ("suppress_prefixlength", "suppress-prefix-length"), ("type", "action"))
        if key in rule
    ]
    words.append(f"table {rule.get('route-table') or MAIN_TABLE}")
    if "fwmark" in rule:
        mask = f"/{rule['fwmask']}" if "fwmask" in rule else ""
        words.append(f"fwmark {rule['fwmark']}{mask}")
    return " ".join(words)


def _method(interface: Interface, family: int, ip: Ip, has_routes: bool) -> str:
    if not ip["enabled"]:
        return "disabled"
    if ip.get("dhcp"):
        return "auto" if family == 4 or ip.get("autoconf") else "dhcp"
    if ip.get("autoconf"):
        raise not_implemented(f"interface {interface.name}: Autoconf without DHCP is not supported yet")
    if ip["address"] or has_routes:
        return "manual"
    return "disabled" if family == 4 else "link-local"


def _addr_gen_mode(mode: str) -> int:
    known = {"eui64": 0, "EUI64": 0, "stable-privacy": 1, "STABLE-PRIVACY": 1}
    return known.get(mode, int(mode) if mode.isdecimal() else 0)


def _automatic(family: int, ip: Ip) -> Section:
    section: Section = {
        "ignore-auto-dns": not ip["auto-dns"],
        "never-default": not ip["auto-gateway"],
        "ignore-auto-routes": not ip["auto-routes"],
        "route-table": ip.get("auto-route-table-id"),
        "route-metric": ip.get("auto-route-metric"),
        "dhcp-send-hostname": ip.get("dhcp-send-hostname", True),
    }
    if family == 4:
        section["dhcp-client-id"] = _CLIENT_ID.get(ip.get("dhcp-client-id", "ll"), ip.get("dhcp-client-id"))
    else:
        duid = ip.get("dhcp-duid", "ll")
        token = ip.get("token", "::")
        section |= {"ra-timeout": _FOREVER, "dhcp-duid": _DUID.get(duid, duid), "dhcp-iaid": "mac"}
        section["token"] = None if token == "::" else token
    hostname = ip.get("dhcp-custom-hostname") if section["dhcp-send-hostname"] else None
    section["dhcp-fqdn" if hostname and "." in hostname and family == 4 else "dhcp-hostname"] = hostname
    return section


def ip_section(interface: Interface, family: int) -> Section:
    ip = interface.ip[family]
    section: Section = {"dhcp-timeout": _FOREVER, "method": "disabled"}
    wait = interface.conf.get("wait-ip")
    if wait:
        section["may-fail"] = _MAY_FAIL[wait][FAMILIES.index(family)]
    if ip is None:
        return section
    routes = _route_lines(interface.routes or [], family)
    section["method"] = _method(interface, family, ip, bool(routes))
    if family == 6:
        section["addr-gen-mode"] = _addr_gen_mode(ip.get("addr-gen-mode", "eui64"))
    section |= {f"address{index}": address for index, address in enumerate(ip["address"])}
    if is_auto(ip):
        section |= _automatic(family, ip)
    if ip["enabled"]:
        section |= {f"route{i}{suffix}": text for i, route in enumerate(routes) for suffix, text in route.items()}
    section |= {f"routing-rule{i}": _rule_line(rule) for i, rule in enumerate(interface.rules[family])}
    if family in interface.dns:
        dns = interface.dns[family]
        section |= pick(dns, dns="server", dns_search="search", dns_options="options", dns_priority="priority")
    return section
