"""From a parsed network state to the profiles that it needs: who is whose port, in which order, with which addresses.

The rules are nmstate's for `gc`, where nothing is known of the host but its loopback interface.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .errors import NmstateError
from .interface import (
    FAMILIES,
    LOOPBACK,
    MAIN_TABLE,
    USER_SPACE,
    Interface,
    is_controller,
    ports,
    without_ports,
)
from .routes import check_hop, normal_route, normal_rule, route_family, route_key, same_table, show_route

_RULE_PRIORITY = 30000
_COPIES_MAC = {"bond", "linux-bridge", "ovs-interface"}


class Network:
    """All interfaces of a state. Kernel interfaces have unique names; OVS bridges are in addition to them.

    `kernel` is by name, `user` by name and type; `order` is that of the document. Interfaces that are only named as
    ports are made (ethernet, up), and those with state `ignore` removed, also from lists of ports.
    """

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
        if kind is not None and kind in USER_SPACE:
            return self.user.get((name, kind))
        return self.kernel.get(name)

    def ordered(self) -> Iterator[Interface]:
        """Yield the interfaces in the order in which the state names them.

        Those that are only ports of others, and the loopback interface unless the state names it, are left out.
        """
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
            without_ports(interface.conf, gone)

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
        """Find controllers and ports for each other, the order of activation, and what cannot be.

        Sets `controller`, `controller_type` and `priority` of each interface. Raises `NmstateError` for unknown
        controllers, ports of two controllers, parents that are absent, and nesting deeper than four levels.
        """
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
        """Give every route to the interface that it leaves by.

        `routes` is `routes.config` of a parsed state. Of routes that are the same the first one counts; each interface
        gets its own sorted. Raises `NmstateError` for one that cannot be, or whose interface is absent.
        """
        for route in routes:
            check_hop(route)
        checked = [normal_route(route) for route in routes]
        by_interface: dict[str, list[dict[str, Any]]] = {}
        touched: list[str] = []
        for route in checked:
            if "state" in route:
                continue
            name = route.get("next-hop-interface", LOOPBACK)
            interface = self.kernel.get(name)
            family = route_family(route)
            if interface and "next-hop-interface" in route:
                shown = show_route(route)
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
            unique = {route_key(route): route for route in reversed(found)}
            self.routes[name] = [unique[key] for key in sorted(unique)]
            interface = self.touch(name)
            if interface:
                interface.routes = self.routes[name]
        self.route_interfaces = touched

    def store_rules(self, rules: list[dict[str, Any]]) -> None:
        """Give every routing rule to an interface that has a route of its table, or any address at all.

        `rules` is `route-rules.config` of a parsed state; call it after `store_routes`. Rules without a priority get
        the next ones from 30000. Raises `NmstateError` for one that cannot be.
        """
        wanted = [normal_rule(rule) for rule in rules if "state" not in rule]
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
            routes = (route for route in self.routes.get(name, []) if route_family(route) == family)
            if any(same_table(route.get("table-id", MAIN_TABLE), table) for route in routes):
                return name
            automatic = (
                self.kernel[name].usable(family).get("auto-route-table-id", MAIN_TABLE) if name in self.kernel else None
            )
            if automatic is not None and same_table(automatic, table):
                return name
        for interface in self.ordered():
            if interface.usable(family).get("enabled"):
                return interface.name
        return LOOPBACK

    def profiles(self) -> list[Interface]:
        """Return what needs a profile, in the order of activation.

        Those that the state names or that routes, rules or name servers have changed, but for absent ones; by priority,
        then by name.
        """
        wanted = [i for i in self if i.changed and not i.absent]
        return sorted(wanted, key=lambda i: (i.priority, i.name))
