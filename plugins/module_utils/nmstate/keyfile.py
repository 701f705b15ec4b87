"""NetworkManager keyfiles of interfaces: which sections each has, and their text.

Format: nm-settings-keyfile(5). Sections are in the order of `_SECTIONS`, keys are sorted, empty values left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from .checks import trunk_range
from .errors import not_implemented
from .ethtool import ethtool_section
from .interface import Interface, ovs_port_of
from .ip_section import ip_section
from .section import Section, pick, text_of
from .state import Network
from .type_sections import BY_TYPE

_NM_TYPES = {
    "ethernet": "802-3-ethernet",
    "linux-bridge": "bridge",
    "mac-vlan": "macvlan",
    "mac-vtap": "macvlan",
    "ipsec": "vpn",
}
_SUFFIX = {"ovs-bridge": "-br", "ovs-interface": "-if", "ovs-port": "-port"}
_MPTCP = {"signal": 0x10, "subflow": 0x20, "backup": 0x40, "fullmesh": 0x80}
_MPTCP_DISABLED, _MPTCP_WITHOUT_DEFAULT_ROUTE = 0x01, 0x08


def _ranges(interface: Interface, tags: list[dict[str, Any]]) -> list[tuple[int, str]]:
    found = [trunk_range(interface, tag) for tag in tags]
    return [(low, str(low) if low == high else f"{low}-{high}") for low, high in found]


# --- what every type has ---------------------------------------------------------------------------------------------


def _connection(interface: Interface, nm_type: str, slave_type: str | None, controller: str) -> Section:
    conf = interface.conf
    section: Section = {
        "id": profile_id(interface),
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{interface.type}://{interface.name}")),
        "type": nm_type,
        "autoconnect": conf["state"] != "down",
        "autoconnect-slaves": 1 if interface.type in ("bond", "linux-bridge", "ovs-bridge", "vrf") else -1,
    }
    if interface.type != "ipsec" and conf.get("identifier") != "mac-address":
        section["interface-name"] = interface.name
    if slave_type:
        section |= {"master": controller, "slave-type": slave_type}
    if "lldp" in conf:
        section["lldp"] = int(conf["lldp"]["enabled"])
    if "address-flags" in conf.get("mptcp", {}):
        flags = sum(_MPTCP[flag] for flag in set(conf["mptcp"]["address-flags"]))
        section["mptcp-flags"] = flags | _MPTCP_WITHOUT_DEFAULT_ROUTE if flags else _MPTCP_DISABLED
    return section


def profile_id(interface: Interface) -> str:
    """Return the name of a profile, which is also that of its file.

    The field `profile-name` of the interface, else its name; those of Open vSwitch have a suffix (`-br`, `-if`,
    `-port`), because a bridge and its interface may have one name.
    """
    return str(interface.conf.get("profile-name") or interface.name + _SUFFIX.get(interface.type, ""))


def _wired(interface: Interface) -> Section:
    conf = interface.conf
    section: Section = {}
    mac = conf.get("mac-address")
    if mac is not None:
        section["mac-address" if conf.get("identifier") == "mac-address" else "cloned-mac-address"] = mac.upper()
    section |= pick(conf, ["mtu"])
    ethernet = conf.get("ethernet", {})
    if "auto-negotiation" in ethernet:
        section["auto-negotiate"] = ethernet["auto-negotiation"]
        if not ethernet["auto-negotiation"]:
            section |= pick(ethernet, ["speed", "duplex"])
    if "accept-all-mac-addresses" in conf:
        section["accept-all-mac-addresses"] = int(conf["accept-all-mac-addresses"])
    return section


def _ieee8021x(interface: Interface) -> Section:
    conf = interface.conf["802.1x"]
    names = ["identity", "private-key", "client-cert", "ca-cert", "private-key-password", "phase2-auth", "password"]
    section = pick(conf, names)
    if "eap-methods" in conf:
        section["eap"] = "".join(f"{method};" for method in conf["eap-methods"])
    return section


def _user(interface: Interface) -> Section:
    return {"nmstate.interface.description": interface.conf["description"]}


def _ovs_data(key: str) -> Callable[[dict[str, Any]], Section | None]:
    def section(ovs_db: dict[str, Any]) -> Section | None:
        return {f"data.{name}": value for name, value in ovs_db[key].items()} if ovs_db.get(key) else None

    return section


_OVS_DB = {"ovs-external-ids": _ovs_data("external_ids"), "ovs-other-config": _ovs_data("other_config")}


# --- ports -----------------------------------------------------------------------------------------------------------


def _entry(interface: Interface, entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    if interface.conf.get("identifier") == "mac-address":
        return None
    return next((entry for entry in entries if entry["name"] == interface.name), None)


def _bond_port(interface: Interface, controller: Interface) -> Section | None:
    entry = _entry(interface, controller.conf.get("link-aggregation", {}).get("ports-config", [])) or {}
    if not entry.get("priority") and not entry.get("queue-id"):
        return None
    section = pick(entry, ["queue-id"])
    return section | ({"prio": entry["priority"]} if entry.get("priority") else {})


def _bridge_port(interface: Interface, controller: Interface) -> Section | None:
    entry = _entry(interface, controller.conf.get("bridge", {}).get("port", []))
    if entry is None:
        return None
    section = pick(entry, hairpin_mode="stp-hairpin-mode", path_cost="stp-path-cost", priority="stp-priority")
    vlan = entry.get("vlan", {})
    found = _ranges(controller, vlan.get("trunk-tags", [])) if vlan.get("mode") == "trunk" else []
    if "mode" in vlan and "tag" in vlan:
        found.append((vlan["tag"], f"{vlan['tag']} pvid untagged"))
    return section | {"vlans": ",".join(text for __, text in sorted(found))}


_PORT_SECTIONS = {"bond": ("bond-port", _bond_port), "linux-bridge": ("bridge-port", _bridge_port)}


def _ovs_port(bridge: Interface, port: dict[str, Any]) -> tuple[str, str]:
    interface = Interface({"name": port["name"], "type": "ovs-port", "state": bridge.conf["state"]})
    bond = port.get("link-aggregation", {})
    vlan = port.get("vlan", {})
    section = pick(bond, ["bond-downdelay", "bond-updelay"]) | pick(vlan, ["tag"], vlan_mode="mode")
    mode = bond.get("mode")
    if mode:
        section["lacp"] = "active" if mode in ("lacp", "balance-tcp") else "off"
        section |= {} if mode == "lacp" else {"bond-mode": mode}
    if "trunk-tags" in vlan:
        section["trunks"] = ",".join(text for __, text in sorted(_ranges(bridge, vlan["trunk-tags"])))
    sections = {"connection": _connection(interface, "ovs-port", "ovs-bridge", bridge.name), "ovs-port": section}
    for name, data in _OVS_DB.items():
        sections[name] = data(bond.get("ovs-db", {})) or {}
    return _file(interface, {k: v for k, v in sections.items() if v or k == "ovs-port"})


def _veth_peer(interface: Interface, peer: str) -> tuple[str, str]:
    ip = {"enabled": False, "address": []}
    end = Interface({"name": peer, "type": "veth", "state": interface.conf["state"], "ipv4": ip, "ipv6": ip})
    sections = {"connection": _connection(end, "veth", None, ""), "veth": {"peer": interface.name}}
    return _file(end, sections | {f"ipv{family}": ip_section(end, family) for family in (4, 6)})


# --- files -----------------------------------------------------------------------------------------------------------

_SECTIONS = (
    *("connection", "bond", "bond-port", "bridge", "bridge-port", "ipv4", "ipv6", "ovs-bridge", "ovs-port"),
    *("ovs-interface", "ovs-patch", "ovs-dpdk", "ethernet", "vlan", "vxlan", "sriov", "macvlan", "vrf", "veth", "user"),
    *("802-1x", "ethtool", "infiniband", "ovs-external-ids", "ovs-other-config", "vpn", "vpn-secrets"),
)
_GENERAL = {"802.1x": ("802-1x", _ieee8021x), "description": ("user", _user), "ethtool": ("ethtool", ethtool_section)}


def _file(interface: Interface, sections: dict[str, Section]) -> tuple[str, str]:
    name = profile_id(interface)
    if "/" in name or name in ("", ".", ".."):
        raise interface.error(f"{name!r} cannot be the name of a file")
    blocks = []
    for section in _SECTIONS:
        if section in sections:
            lines = {key: text_of(value) for key, value in sections[section].items()}
            blocks.append(f"[{section}]\n" + "".join(f"{key}={lines[key]}\n" for key in sorted(lines) if lines[key]))
    return f"{name}.nmconnection", "\n".join(blocks)


def _nm_type(interface: Interface) -> str:
    if interface.type == "xfrm":
        raise not_implemented(f"interface {interface.name}: Does not support iface type: xfrm yet")
    if interface.type == "ethernet" and "veth" in interface.conf:
        return "veth"
    return _NM_TYPES.get(interface.type, interface.type)


def files(network: Network, interface: Interface) -> list[tuple[str, str]]:
    """Return the keyfiles that one interface needs: its own, and those of OVS ports or a veth peer of no other interface.

    Pairs of file name and text, in the format of nm-settings-keyfile(5). Raises `NmstateError` for what NetworkManager
    cannot have.
    """
    conf = interface.conf
    slave_type, controller_name = interface.controller_type, interface.controller
    sections: dict[str, Section] = {}
    if slave_type == "ovs-bridge":
        bridge = network.user.get((controller_name, "ovs-bridge"))
        slave_type = "ovs-port"
        controller_name = ovs_port_of(bridge, interface.name) if bridge else interface.name
    elif slave_type:
        slave_type = _NM_TYPES.get(slave_type, slave_type)
    sections["connection"] = _connection(interface, _nm_type(interface), slave_type, controller_name)
    if interface.can_have_ip:
        sections |= {f"ipv{family}": ip_section(interface, family) for family in (4, 6)}
    if interface.type not in ("infiniband", "loopback"):
        wired = _wired(interface)
        sections |= {"ethernet": wired} if wired else {}
    if "ovs-bridge" in (interface.type, interface.controller_type):
        for name, data in _OVS_DB.items():
            found = data(conf.get("ovs-db", {}))
            sections |= {name: found} if found else {}
    for key, (name, build) in _GENERAL.items():
        if key in conf:
            sections[name] = build(interface)
    if interface.type in BY_TYPE:
        sections |= BY_TYPE[interface.type](interface)
    controller = network.get(interface.controller, interface.controller_type)
    if controller and interface.controller_type in _PORT_SECTIONS:
        name, build_port = _PORT_SECTIONS[interface.controller_type]
        port = build_port(interface, controller)
        sections |= {name: port} if port is not None else {}
    found_files = [_file(interface, sections)]
    if interface.type == "ovs-bridge":
        found_ports = sorted(conf.get("bridge", {}).get("port", []), key=lambda port: str(port["name"]))
        found_files += [_ovs_port(interface, port) for port in found_ports]
    peer = conf.get("veth", {}).get("peer")
    if peer and peer not in network.kernel and peer not in network.ignored:
        found_files.append(_veth_peer(interface, peer))
    return found_files
