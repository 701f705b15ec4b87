"""From a parsed network state to the profiles that it needs: who is whose port, in which order, with which addresses.

The rules are nmstate's for `gc`, where nothing is known of the host but its loopback interface.
"""

from __future__ import annotations

import ipaddress
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..addresses import version as family_of
from .errors import NmstateError, not_implemented
from .schema import canonical

LOOPBACK = "lo"
MAIN_TABLE = 254
FAMILIES = (4, 6)
_RULE_PRIORITY = 30000
_DNS_PRIORITY = 40
_USER_SPACE = {"ovs-bridge", "ipsec"}
_COPIES_MAC = {"bond", "linux-bridge", "ovs-interface"}
_PARENTS = {kind: (kind, "base-iface") for kind in ("vlan", "vxlan", "mac-vlan", "mac-vtap", "infiniband", "macsec")}
_DNS_OPTIONS = {
    *("debug", "edns0", "inet6", "ip6-bytestring", "ip6-dotint", "no-aaaa", "no-check-names", "no-ip6-dotint"),
    *("no-reload", "no-tld-query", "rotate", "single-request", "single-request-reopen", "trust-ad", "use-vc"),
}
_DNS_OPTIONS_WITH_VALUE = {"ndots", "timeout", "attempts"}

Ip = dict[str, Any]


@dataclass
class Interface:
    """One profile to be: its configuration, and what other parts of the state make of it.

    `ip` holds the addresses' configuration by family, None when there is none, `given` the same before it was tidied up;
    `rules` and `dns` are by family as well.
    `desired` means that the state names it.
    """

    conf: dict[str, Any]
    desired: bool = True
    controller: str = ""
    controller_type: str | None = None
    priority: int = 0
    ip: dict[int, Ip | None] = field(default_factory=dict)
    given: dict[int, Ip | None] = field(default_factory=dict)
    routes: list[dict[str, Any]] | None = None
    rules: dict[int, list[dict[str, Any]]] = field(default_factory=lambda: {4: [], 6: []})
    dns: dict[int, dict[str, Any]] = field(default_factory=dict)
    changed: bool = True

    def __post_init__(self) -> None:
        self.ip = {family: self.conf.get(f"ipv{family}") for family in FAMILIES}
        self.given = dict(self.ip)
        self.controller = self.conf.get("controller", "")

    @property
    def name(self) -> str:
        return str(self.conf["name"])

    @property
    def type(self) -> str:
        return str(self.conf["type"])

    @property
    def up(self) -> bool:
        return bool(self.conf["state"] == "up")

    @property
    def absent(self) -> bool:
        return bool(self.conf["state"] == "absent")

    @property
    def user_space(self) -> bool:
        return self.type in _USER_SPACE

    @property
    def can_have_ip(self) -> bool:
        return not self.controller or self.type == "ovs-interface" or self.controller_type == "vrf"

    @property
    def parent(self) -> str | None:
        if self.type == "ovs-interface":
            return self.controller or None
        section, key = _PARENTS.get(self.type, ("", ""))
        return self.conf.get(section, {}).get(key) or None

    def error(self, message: str) -> NmstateError:
        return NmstateError(f"interface {self.name}: {message}")

    def enabled(self, family: int) -> bool:
        ip = self.ip[family]
        return bool(ip and ip.get("enabled"))

    def usable(self, family: int) -> Ip:
        """Return what routes, rules and name servers go by: the given configuration, nothing for a port."""
        port = self.controller_type is not None and not self.can_have_ip
        return (None if port else self.given[family]) or {}


def is_auto(ip: Ip) -> bool:
    return bool(ip.get("enabled") and (ip.get("dhcp") or ip.get("autoconf")))


def is_static(ip: Ip) -> bool:
    return bool(ip.get("enabled") and not is_auto(ip) and ip.get("address"))


# --- ports -----------------------------------------------------------------------------------------------------------


def _names(entries: list[dict[str, Any]] | None) -> list[str] | None:
    return None if entries is None else [entry["name"] for entry in entries]


def _bond_ports(conf: dict[str, Any]) -> list[str] | None:
    bond = conf.get("link-aggregation", {})
    return bond.get("port") if "port" in bond else _names(bond.get("ports-config"))


def _ovs_ports(conf: dict[str, Any]) -> list[str] | None:
    found = conf.get("bridge", {}).get("port")
    if found is None:
        return None
    names: list[str] = []
    for port in found:
        names += (
            _names(port["link-aggregation"].get("port", [])) or [] if "link-aggregation" in port else [port["name"]]
        )
    return names


_PORTS: dict[str, Callable[[dict[str, Any]], list[str] | None]] = {
    "bond": _bond_ports,
    "linux-bridge": lambda conf: _names(conf.get("bridge", {}).get("port")),
    "ovs-bridge": _ovs_ports,
    "vrf": lambda conf: conf.get("vrf", {}).get("port"),
}


def ports(interface: Interface) -> list[str] | None:
    """Return the names of an interface's ports, None when it names none."""
    if interface.type not in _PORTS:
        return None
    return [] if interface.absent else _PORTS[interface.type](interface.conf)


def is_controller(interface: Interface) -> bool:
    return interface.type in _PORTS


def ovs_port_of(bridge: Interface, name: str) -> str:
    """Return the name of the OVS port that carries interface `name`: its own, or that of the bond it is in."""
    for port in bridge.conf.get("bridge", {}).get("port") or []:
        if name in (_names(port.get("link-aggregation", {}).get("port")) or []):
            return str(port["name"])
    return name


def _without_ports(conf: dict[str, Any], gone: set[str]) -> None:
    for section, key in (("link-aggregation", "port"), ("bridge", "port"), ("vrf", "port")):
        found = conf.get(section, {}).get(key)
        if found:
            conf[section][key] = [p for p in found if (p if isinstance(p, str) else p["name"]) not in gone]


# --- the network -----------------------------------------------------------------------------------------------------


class Network:
    """All interfaces of a state. Kernel interfaces have unique names; OVS bridges are in addition to them."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.kernel: dict[str, Interface] = {}
        self.user: dict[tuple[str, str], Interface] = {}
        self.order: list[tuple[str, str]] = []
        for conf in state["interfaces"]:
            self._add(Interface(conf))
            self.order.append((conf["name"], conf["type"]))
        for interface in list(self):
            for port in ports(interface) or []:
                if port not in self.kernel:
                    self._add(Interface({"name": port, "type": "ethernet", "state": "up"}))
        self._ignored()
        self._loopback()

    def __iter__(self) -> Iterator[Interface]:
        yield from self.user.values()
        yield from self.kernel.values()

    def _add(self, interface: Interface) -> None:
        if interface.user_space:
            self.user[interface.name, interface.type] = interface
        else:
            self.kernel[interface.name] = interface

    def get(self, name: str, kind: str | None) -> Interface | None:
        if kind is not None and kind in _USER_SPACE:
            return self.user.get((name, kind))
        return self.kernel.get(name)

    def ordered(self) -> Iterator[Interface]:
        """Yield the interfaces in the order in which the state names them."""
        for name, kind in self.order:
            interface = self.get(name, kind)
            if interface:
                yield interface

    def _ignored(self) -> None:
        gone = {i.name for i in self.kernel.values() if i.conf["state"] == "ignore"}
        self.ignored = gone
        self.kernel = {name: i for name, i in self.kernel.items() if name not in gone}
        self.user = {key: i for key, i in self.user.items() if i.conf["state"] != "ignore"}
        for interface in self:
            _without_ports(interface.conf, gone)

    def _loopback(self) -> None:
        default = {
            f"ipv{family}": {"enabled": True, "address": [{"ip": ip, "prefix-length": length}]}
            for family, ip, length in ((4, "127.0.0.1", 8), (6, "::1", 128))
        }
        desired = self.kernel.get(LOOPBACK)
        if LOOPBACK in self.ignored:
            return
        if desired is None:
            self.kernel[LOOPBACK] = Interface(
                {"name": LOOPBACK, "type": "loopback", "state": "up"} | default, desired=False, changed=False
            )
            return
        for family in FAMILIES:
            ip = desired.ip[family]
            desired.ip[family] = default[f"ipv{family}"] if ip is None else {"enabled": True} | ip
        desired.given = dict(desired.ip)

    # --- controllers ---

    def link(self) -> None:
        """Find controllers and ports for each other, the order of activation, and what cannot be."""
        for interface in list(self.user.values()):
            if interface.type == "ovs-bridge" and interface.up and not ports(interface):
                interface.conf.setdefault("bridge", {})["port"] = [{"name": interface.name}]
        self._copy_macs()
        self._check_controllers()
        for interface in [i for i in self if is_controller(i)]:
            for port in ports(interface) or []:
                if port not in self.kernel and interface.type == "ovs-bridge":
                    self._add(Interface({"name": port, "type": "ovs-interface", "state": "up"}))
                    self.order.append((port, "ovs-interface"))
                self._attach(port, interface)
        for interface in self.kernel.values():
            if interface.up and interface.controller and interface.controller_type is None:
                self._attach(interface.name, self._controller_of(interface))
        if not any(self._set_priorities() for __ in range(4)):
            raise NmstateError(
                "Failed to set up priority: nmstate only support nested interface up to 4 levels. To support more nest "
                "level, please order the interfaces in desire state to place controller before its ports"
            )
        self._check_ports()
        self._check_parents()

    def _copy_macs(self) -> None:
        for interface in self.kernel.values():
            source_name = interface.conf.get("copy-mac-from")
            if not source_name or interface.type not in _COPIES_MAC:
                continue
            source = self.kernel.get(source_name)
            if source is None:
                raise interface.error(f"Failed to find interface {source_name} for copy-mac-from")
            mac = source.conf.get("permanent-mac-address") or source.conf.get("mac-address")
            if not mac:
                raise interface.error(f"Failed to find mac address of interface {source_name} for copy-mac-from")
            interface.conf["mac-address"] = mac

    def _controller_of(self, interface: Interface) -> Interface:
        found = self.user.get((interface.controller, "ovs-bridge")) or self.kernel.get(interface.controller)
        if found is None:
            raise interface.error(f"desired controller {interface.controller} not found")
        return found

    def _check_controllers(self) -> None:
        listed = {port: i.name for i in self if i.desired and i.up for port in ports(i) or []}
        for interface in self.kernel.values():
            if not interface.up or "controller" not in interface.conf:
                continue
            wanted = interface.conf["controller"]
            if wanted:
                named = ports(self._controller_of(interface))
                if named is not None and interface.name not in named:
                    raise interface.error(
                        f"has controller {wanted} but not listed in port list of controller interface"
                    )
            if interface.name in listed and listed[interface.name] != wanted:
                raise interface.error(
                    f"has controller property set to '{wanted}', but been listed as port of controller "
                    f"{listed[interface.name]}"
                )

    def _attach(self, port: str, controller: Interface) -> None:
        interface = self.kernel.get(port)
        if interface is None:
            return
        if interface.type == "loopback":
            raise interface.error(f"cannot be a port of {controller.name}")
        interface.controller, interface.controller_type = controller.name, controller.type

    def _set_priorities(self) -> bool:
        def valid(interface: Interface) -> bool:
            return not interface.controller or interface.priority != 0

        done = True
        pending: dict[str, int] = {}
        for interface in self.ordered():
            if not interface.up or valid(interface):
                continue
            controller = self.get(interface.controller, interface.controller_type)
            if controller is None:
                continue
            if controller.name in pending:
                pending[interface.name] = pending[controller.name] + 1
            elif valid(controller):
                pending[interface.name] = controller.priority + 1
            else:
                done = False
        for interface in self.ordered() if done else ():
            if not interface.up or interface.parent is None:
                continue
            parent = self.kernel.get(interface.parent)
            if interface.parent in pending:
                pending[interface.name] = pending[interface.parent] + 1
            elif parent and parent.changed and valid(parent):
                pending[interface.name] = parent.priority + 1
        for name, priority in pending.items():
            if name in self.kernel:
                self.kernel[name].priority = priority
        return done

    def _check_ports(self) -> None:
        owner: dict[str, str] = {}
        for interface in self:
            if not interface.up or not interface.desired:
                continue
            for port in ports(interface) or []:
                if port in owner:
                    raise NmstateError(f"Port {port} is overbooked by two controller: {owner[port]}, {interface.name}")
                owner[port] = interface.name
                backup = interface.conf.get("link-aggregation", {}).get("mode") == "active-backup"
                if port in self.kernel and self.kernel[port].type == "infiniband" and not backup:
                    raise NmstateError(
                        f"InfiniBand interface {port} cannot use as port of {interface.name}. Only active-backup bond "
                        "allowed."
                    )

    def _check_parents(self) -> None:
        gone = {i.name for i in self.kernel.values() if i.absent and i.type != "ethernet"}
        for interface in self.kernel.values():
            if interface.up and interface.type != "ovs-interface" and interface.parent in gone:
                raise interface.error(
                    f"cannot be in up state as its parent {interface.parent} has been marked as absent"
                )

    # --- routes, rules, name servers ---

    def touch(self, name: str) -> Interface | None:
        interface = self.kernel.get(name)
        if interface:
            interface.changed = True
        return interface

    def store_routes(self, routes: list[dict[str, Any]]) -> None:
        """Give every route to the interface that it leaves by."""
        for route in routes:
            _check_hop(route)
        checked = [_route(route) for route in routes]
        by_interface: dict[str, list[dict[str, Any]]] = {}
        touched: list[str] = []
        for route in checked:
            if "state" in route:
                continue
            name = route.get("next-hop-interface", LOOPBACK)
            interface = self.kernel.get(name)
            family = _route_family(route)
            if interface and "next-hop-interface" in route:
                shown = _show_route(route)
                if interface.absent:
                    raise NmstateError(f"The next hop interface of desired Route '{shown}' has been marked as absent")
                if not interface.usable(family).get("enabled"):
                    raise NmstateError(
                        f"The next hop interface of desired Route '{shown}' has been marked as IPv{family} disabled"
                    )
            if name in self.ignored:
                continue
            if name not in touched:
                touched.append(name)
            by_interface.setdefault(name, []).append(route)
        self.routes: dict[str, list[dict[str, Any]]] = {}
        for name, found in by_interface.items():
            unique = {_route_key(route): route for route in reversed(found)}
            self.routes[name] = [unique[key] for key in sorted(unique)]
            interface = self.touch(name)
            if interface:
                interface.routes = self.routes[name]
        self.route_interfaces = touched

    def store_rules(self, rules: list[dict[str, Any]]) -> None:
        """Give every routing rule to an interface that has a route of its table, or any address at all."""
        wanted = [_rule(rule) for rule in rules if "state" not in rule]
        last = max([rule.get("priority", 0) for rule in wanted] + [_RULE_PRIORITY - 1])
        for rule in wanted:
            if rule.get("priority", -1) == -1:
                last += 1
                rule["priority"] = last
            if rule.get("iif") in self.ignored:
                continue
            interface = self.touch(self._home_of(rule))
            family = int(rule["family"][-1])
            if interface and interface.ip[family] is not None:
                interface.rules[family].append(rule)

    def _home_of(self, rule: dict[str, Any]) -> str:
        family = int(rule["family"][-1])
        table = rule.get("route-table", MAIN_TABLE)
        if "iif" in rule:
            if rule["iif"] not in self.kernel:
                raise NmstateError(f"The interface {rule['iif']} required by route rule {rule} does not exists")
            return str(rule["iif"])
        changed = sorted(name for name, interface in self.kernel.items() if interface.changed)
        known_first = sorted(self.route_interfaces, key=lambda name: name not in self.kernel)
        for name in [*known_first, *changed]:
            routes = (route for route in self.routes.get(name, []) if _route_family(route) == family)
            if any(_same_table(route.get("table-id", MAIN_TABLE), table) for route in routes):
                return name
            automatic = (
                self.kernel[name].usable(family).get("auto-route-table-id", MAIN_TABLE) if name in self.kernel else None
            )
            if automatic is not None and _same_table(automatic, table):
                return name
        for interface in self.ordered():
            if interface.usable(family).get("enabled"):
                return interface.name
        return LOOPBACK

    def store_dns(self, config: dict[str, Any]) -> None:
        """Give name servers, search domains and options to interfaces with addresses of their family."""
        servers = [_server(server) for server in config.get("server", [])]
        for option in config.get("options", []):
            name, colon, __ = option.partition(":")
            if name not in (_DNS_OPTIONS_WITH_VALUE if colon else _DNS_OPTIONS):
                raise NmstateError(f"Unsupported DNS option {option}")
        rest = {"search": config.get("search", []), "options": config.get("options", [])}
        if not servers:
            if any(rest.values()):
                self._store_search(rest)
            return
        families = [family_of(server) for server in servers]
        turns = sum(a != b for a, b in itertools.pairwise(families))
        scopes = [server.split("%") for server in servers if "%" in server]
        for server, name in scopes:
            if name not in self.kernel:
                raise NmstateError(
                    f"Desired IPv6 link local DNS server {server}%{name} is pointing to interface {name} which does not "
                    "exist."
                )
            if not self._valid_for_dns(self.kernel[name], 6):
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
            interface = self.kernel[scopes[0][1]] if family == 6 and scopes else self._dns_interface(family)
            if interface is None:
                listed = ", ".join(f'"{server}"' for server in own)
                raise NmstateError(f"Failed to find suitable(IP enabled) interface for DNS server [{listed}]")
            first = families[0] == family
            extra = rest if first else {}
            interface.dns[family] = {"server": own, **extra, "priority": _DNS_PRIORITY + (0 if first else 10)}

    def _dns_candidates(self) -> list[Interface]:
        return [i for i in self.ordered() if not i.user_space and i.type != "loopback"]

    @staticmethod
    def _valid_for_dns(interface: Interface, family: int) -> bool:
        ip = interface.usable(family)
        return is_static(ip) or is_auto(ip)

    def _dns_interface(self, family: int) -> Interface | None:
        candidates = self._dns_candidates()
        for interface in candidates:
            ip = interface.ip[family] or {}
            if is_static(ip) or (is_auto(ip) and ip.get("auto-dns") is False):
                return interface
        return next((i for i in candidates if self._valid_for_dns(i, family)), None)

    def _store_search(self, rest: dict[str, Any]) -> None:
        checks: tuple[Callable[[Ip], bool], ...] = (is_auto, lambda ip: bool(ip.get("enabled")))
        for check in checks:
            for interface in self._dns_candidates():
                for family in (6, 4):
                    if check(interface.usable(family)):
                        interface.dns[family] = {**rest, "priority": _DNS_PRIORITY}
                        return
        raise NmstateError(
            f"Failed to find suitable(IP enabled) interface for DNS searches '{' '.join(rest['search'])}'"
        )

    def profiles(self) -> list[Interface]:
        """Return what needs a profile, in the order of activation."""
        wanted = [i for i in self if i.changed and not i.absent]
        return sorted(wanted, key=lambda i: (i.priority, i.name))


# --- routes and rules by themselves ------------------------------------------------------------------------------------


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


def _server(value: str) -> str:
    ip, percent, zone = value.partition("%")
    try:
        return canonical(ipaddress.ip_address(ip)) + percent + zone
    except ValueError:
        raise NmstateError(f"Invalid DNS server string {value}") from None


def _show_route(route: dict[str, Any]) -> str:
    shown = ("destination", "next-hop-interface", "next-hop-address", "source", "metric", "table-id", "weight", "cwnd")
    return " ".join(f"{key}: {route[key]}" for key in shown if key in route)


def _route_family(route: dict[str, Any]) -> int:
    return family_of(route.get("destination", ""))


def _route_key(route: dict[str, Any]) -> tuple[Any, ...]:
    return (
        _route_family(route) == 4,
        route.get("table-id", MAIN_TABLE),
        route.get("destination", ""),
        route.get("next-hop-address", ""),
        route.get("source", ""),
        route.get("weight", 0),
        route.get("cwnd", 0),
    )


def _same_table(found: int, wanted: int) -> bool:
    return found == wanted or (found, wanted) == (0, MAIN_TABLE)


def _check_hop(route: dict[str, Any]) -> None:
    shown = f"route '{_show_route(route)}'"
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


def _route(route: dict[str, Any]) -> dict[str, Any]:
    shown = f"route '{_show_route(route)}'"
    route = dict(route)
    if "destination" in route:
        route["destination"] = _network(route["destination"], shown)
    for key in ("next-hop-address", "source"):
        if key in route:
            route[key] = _host(route[key], shown)
    if not 1 <= route.get("weight", 1) <= 256:
        raise NmstateError(f"{shown}: Invalid ECMP route weight {route['weight']}, should be in the range of 1 to 256")
    if "weight" in route and _route_family(route) == 6:
        raise NmstateError("IPv6 ECMP route with weight is not supported yet", "NotSupportedError")
    if route.get("cwnd") == 0:
        raise NmstateError(f"{shown}: The value of 'cwnd' cannot be 0")
    return route


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
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
