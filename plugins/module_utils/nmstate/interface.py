"""One interface of a network state: its addresses, its ports, and what other parts of the state make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .errors import NmstateError

LOOPBACK = "lo"
MAIN_TABLE = 254
FAMILIES = (4, 6)

USER_SPACE = {"ovs-bridge", "ipsec"}

_PARENTS = {kind: (kind, "base-iface") for kind in ("vlan", "vxlan", "mac-vlan", "mac-vtap", "infiniband", "macsec")}

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
        return self.type in USER_SPACE

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
        """Return what routes, rules and name servers go by: the given configuration, nothing for a port.

        For `family` 4 or 6. Empty where the interface has no addresses of its own, as a port of a bond has none.
        """
        port = self.controller_type is not None and not self.can_have_ip
        return (None if port else self.given[family]) or {}


def is_auto(ip: Ip) -> bool:
    return bool(ip.get("enabled") and (ip.get("dhcp") or ip.get("autoconf")))


def is_static(ip: Ip) -> bool:
    return bool(ip.get("enabled") and not is_auto(ip) and ip.get("address"))


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
    """Return the names of an interface's ports, None when it names none.

    In the order of the state. None also for a type that has no ports; an empty list for a controller that is `absent`.
    """
    if interface.type not in _PORTS:
        return None
    return [] if interface.absent else _PORTS[interface.type](interface.conf)


def is_controller(interface: Interface) -> bool:
    return interface.type in _PORTS


def ovs_port_of(bridge: Interface, name: str) -> str:
    """Return the name of the OVS port that carries interface `name`: its own, or that of the bond it is in.

    In Open vSwitch a port is between bridge and interface; a bond is one port with several interfaces.
    """
    for port in bridge.conf.get("bridge", {}).get("port") or []:
        if name in (_names(port.get("link-aggregation", {}).get("port")) or []):
            return str(port["name"])
    return name


def without_ports(conf: dict[str, Any], gone: set[str]) -> None:
    for section, key in (("link-aggregation", "port"), ("bridge", "port"), ("vrf", "port")):
        found = conf.get(section, {}).get(key)
        if found:
            conf[section][key] = [p for p in found if (p if isinstance(p, str) else p["name"]) not in gone]
