"""NetworkManager keyfiles of interfaces, as tables of sections and keys.

Format: nm-settings-keyfile(5). Sections are in the order of `_SECTIONS`, keys are sorted, empty values left out.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..addresses import version as family_of
from .checks import trunk_range
from .errors import NmstateError, not_implemented
from .state import FAMILIES, MAIN_TABLE, Interface, Ip, Network, is_auto, ovs_port_of

Section = dict[str, Any]

_FOREVER = 2**31 - 1
_NM_TYPES = {
    "ethernet": "802-3-ethernet",
    "linux-bridge": "bridge",
    "mac-vlan": "macvlan",
    "mac-vtap": "macvlan",
    "ipsec": "vpn",
}
_SUFFIX = {"ovs-bridge": "-br", "ovs-interface": "-if", "ovs-port": "-port"}
_MAY_FAIL = {"any": (True, True), "ipv4": (False, True), "ipv6": (True, False), "ipv4+ipv6": (False, False)}
_MPTCP = {"signal": 0x10, "subflow": 0x20, "backup": 0x40, "fullmesh": 0x80}
_MPTCP_DISABLED, _MPTCP_WITHOUT_DEFAULT_ROUTE = 0x01, 0x08
_NUMBERED = {name: number for number, name in enumerate(("unknown", "vepa", "bridge", "private", "passthru", "source"))}
_CLIENT_ID = {"ll": "mac", "LL": "mac", "iaid+duid": "duid", "IAID+DUID": "duid"}
_DUID = {"LLT": "llt", "EN": "en", "LL": "ll", "UUID": "uuid"}
_PROTOCOL = {"802.1q": "802.1Q", "802.1ad": "802.1ad"}

_ETHTOOL_ALIASES = {
    "rx": "rx-checksum",
    "rx-checksumming": "rx-checksum",
    "ufo": "tx-udp-fragmentation",
    "gso": "tx-generic-segmentation",
    "generic-segmentation-offload": "tx-generic-segmentation",
    "gro": "rx-gro",
    "generic-receive-offload": "rx-gro",
    "lro": "rx-lro",
    "large-receive-offload": "rx-lro",
    "rxvlan": "rx-vlan-hw-parse",
    "rx-vlan-offload": "rx-vlan-hw-parse",
    "txvlan": "tx-vlan-hw-insert",
    "tx-vlan-offload": "tx-vlan-hw-insert",
    "ntuple": "rx-ntuple-filter",
    "ntuple-filters": "rx-ntuple-filter",
    "rxhash": "rx-hashing",
    "receive-hashing": "rx-hashing",
}
_ETHTOOL_NAMES = {
    "rx-checksum": "rx",
    "tx-scatter-gather": "sg",
    "tx-tcp-segmentation": "tso",
    "rx-gro": "gro",
    "tx-generic-segmentation": "gso",
    "rx-hashing": "rxhash",
    "rx-lro": "lro",
    "rx-ntuple-filter": "ntuple",
    "rx-vlan-hw-parse": "rxvlan",
    "tx-vlan-hw-insert": "txvlan",
}
_ETHTOOL_FEATURES = {
    *("esp-hw-offload", "esp-tx-csum-hw-offload", "fcoe-mtu", "gro", "gso", "highdma", "hw-tc-offload"),
    *("l2-fwd-offload", "loopback", "lro", "macsec-hw-offload", "ntuple", "rx", "rxhash", "rxvlan", "rx-all", "rx-fcs"),
    *("rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding", "rx-udp_tunnel-port-offload", "rx-vlan-filter"),
    *("rx-vlan-stag-filter", "rx-vlan-stag-hw-parse", "sg", "tls-hw-record", "tls-hw-rx-offload"),
    *("tls-hw-tx-offload", "tso", "tx", "txvlan", "tx-checksum-fcoe-crc", "tx-checksum-ipv4", "tx-checksum-ipv6"),
    *("tx-checksum-ip-generic", "tx-checksum-sctp", "tx-esp-segmentation", "tx-fcoe-segmentation"),
    *("tx-gre-csum-segmentation", "tx-gre-segmentation", "tx-gso-list", "tx-gso-partial", "tx-gso-robust"),
    *("tx-ipxip4-segmentation", "tx-ipxip6-segmentation", "tx-nocache-copy", "tx-scatter-gather"),
    *("tx-scatter-gather-fraglist", "tx-sctp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation"),
    *("tx-tcp-mangleid-segmentation", "tx-tcp-segmentation", "tx-tunnel-remcsum-segmentation"),
    *("tx-udp-segmentation", "tx-udp_tnl-csum-segmentation", "tx-udp_tnl-segmentation", "tx-vlan-stag-hw-insert"),
}
_COALESCE_IGNORED = {"sample-interval", "stats-block-usecs"}


def _renamed(conf: Mapping[str, Any], names: Iterable[str] = (), **renamed: str) -> Section:
    """Pick fields of an nmstate mapping: `names` as they are, `renamed` ones (new=old, dashes for underscores)."""
    table = dict.fromkeys(names, "") | {new.replace("_", "-"): old for new, old in renamed.items()}
    return {new: conf[old or new] for new, old in table.items() if (old or new) in conf}


def _ranges(interface: Interface, tags: list[dict[str, Any]]) -> list[tuple[int, str]]:
    found = [trunk_range(interface, tag) for tag in tags]
    return [(low, str(low) if low == high else f"{low}-{high}") for low, high in found]


def _numbers(mac: str) -> str:
    """A MAC address the way nmstate writes the bytes of a D-Bus array."""
    try:
        return ";".join(str(int(part, 16)) for part in mac.split(":"))
    except ValueError:
        raise NmstateError(f"{mac!r} is not a MAC address") from None


# --- addresses -------------------------------------------------------------------------------------------------------


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


def _ip(interface: Interface, family: int) -> Section:
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
        section |= _renamed(dns, dns="server", dns_search="search", dns_options="options", dns_priority="priority")
    return section


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
    """Return the name of a profile, which is also that of its file."""
    return str(interface.conf.get("profile-name") or interface.name + _SUFFIX.get(interface.type, ""))


def _wired(interface: Interface) -> Section:
    conf = interface.conf
    section: Section = {}
    mac = conf.get("mac-address")
    if mac is not None:
        section["mac-address" if conf.get("identifier") == "mac-address" else "cloned-mac-address"] = mac.upper()
    section |= _renamed(conf, ["mtu"])
    ethernet = conf.get("ethernet", {})
    if "auto-negotiation" in ethernet:
        section["auto-negotiate"] = ethernet["auto-negotiation"]
        if not ethernet["auto-negotiation"]:
            section |= _renamed(ethernet, ["speed", "duplex"])
    if "accept-all-mac-addresses" in conf:
        section["accept-all-mac-addresses"] = int(conf["accept-all-mac-addresses"])
    return section


def _ethtool(interface: Interface) -> Section:
    ethtool = interface.conf["ethtool"]
    pause = dict(ethtool.get("pause", {}))
    if pause.get("autoneg") is not False:
        pause = {key: value for key, value in pause.items() if key == "autoneg"}
    section: Section = {f"pause-{key}": value for key, value in pause.items()}
    for key, value in ethtool.get("feature", {}).items():
        kernel = _ETHTOOL_ALIASES.get(key, key)
        name = _ETHTOOL_NAMES.get(kernel, kernel)
        if name not in _ETHTOOL_FEATURES:
            raise interface.error(f"Unsupported ethtool feature feature-{name}")
        section[f"feature-{name}"] = value
    coalesce = ethtool.get("coalesce", {})
    section |= {f"coalesce-{key}": int(value) for key, value in coalesce.items() if key not in _COALESCE_IGNORED}
    section |= {f"ring-{key}": value for key, value in ethtool.get("ring", {}).items() if not key.endswith("-max")}
    return section


def _ieee8021x(interface: Interface) -> Section:
    conf = interface.conf["802.1x"]
    names = ["identity", "private-key", "client-cert", "ca-cert", "private-key-password", "phase2-auth", "password"]
    section = _renamed(conf, names)
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


# --- by type ---------------------------------------------------------------------------------------------------------


def _bond(interface: Interface) -> dict[str, Section]:
    bond = interface.conf.get("link-aggregation", {})
    options = {key.replace("balance_slb", "balance-slb"): value for key, value in bond.get("options", {}).items()}
    if options.get("arp_missed_max") == 2:  # the default; NetworkManager before 1.42 does not know the option
        del options["arp_missed_max"]
    if "all_slaves_active" in options:
        options["all_slaves_active"] = options["all_slaves_active"] == "delivered"
    if "ad_actor_system" in options:
        options["ad_actor_system"] = options["ad_actor_system"].upper()
    flags = {key: int(value) for key, value in options.items() if isinstance(value, bool)}
    return {"bond": options | flags | _renamed(bond, ["mode"])}


_BRIDGE_SAME = [
    f"multicast-{rest}"
    for rest in (
        *("last-member-count", "last-member-interval", "membership-interval", "querier", "querier-interval"),
        *("query-interval", "query-response-interval", "query-use-ifaddr", "router", "snooping"),
        *("startup-query-count", "startup-query-interval"),
    )
]


def _linux_bridge(interface: Interface) -> dict[str, Section]:
    bridge = interface.conf.get("bridge", {})
    options = bridge.get("options", {})
    section = _renamed(
        options, [*_BRIDGE_SAME, "vlan-default-pvid"], multicast_hash_max="hash-max", ageing_time="mac-ageing-time"
    )
    section |= _renamed(options, group_forward_mask="group-forward-mask")
    section |= _renamed(options, group_forward_mask="group-fwd-mask")
    section |= _renamed(options.get("stp", {}), ["forward-delay", "hello-time", "max-age", "priority"], stp="enabled")
    if "group-addr" in options:
        section["group-address"] = _numbers(options["group-addr"])
    if "vlan-protocol" in options:
        section["vlan-protocol"] = _PROTOCOL[options["vlan-protocol"]]
    if "port" in bridge:
        section["vlan-filtering"] = any(port.get("vlan") for port in bridge["port"])
    return {"bridge": section}


def _vlan(interface: Interface) -> dict[str, Section]:
    if "vlan" not in interface.conf:
        return {}
    vlan = interface.conf["vlan"]
    section = _renamed(vlan, ["id"], parent="base-iface")
    section["flags"] = (
        int(vlan.get("reorder-headers", True))
        | {"gvrp": 2, "mvrp": 8}.get(vlan.get("registration-protocol"), 0)
        | (4 if vlan.get("loose-binding") else 0)
    )
    if vlan.get("protocol") == "802.1ad":  # the other one is the default, and unknown to NetworkManager before 1.42
        section["protocol"] = "802.1ad"
    return {"vlan": section}


def _vxlan(interface: Interface) -> dict[str, Section]:
    if "vxlan" not in interface.conf:
        return {}
    vxlan = interface.conf["vxlan"]
    return {"vxlan": _renamed(vxlan, ["id", "learning", "local", "remote", "destination-port"], parent="base-iface")}


def _vrf(interface: Interface) -> dict[str, Section]:
    return {"vrf": _renamed(interface.conf.get("vrf", {}), table="route-table-id")}


def _mac_vlan(interface: Interface) -> dict[str, Section]:
    if interface.type not in interface.conf:
        return {}
    conf = interface.conf[interface.type]
    section = _renamed(conf, ["promiscuous"], parent="base-iface")
    return {"macvlan": section | {"mode": _NUMBERED[conf["mode"]], "tap": interface.type == "mac-vtap"}}


def _infiniband(interface: Interface) -> dict[str, Section]:
    conf = interface.conf.get("infiniband", {})
    section = _renamed(conf, parent="base-iface", transport_mode="mode", p_key="pkey") | _renamed(
        interface.conf, ["mtu"]
    )
    if section.get("p-key") == 0xFFFF:
        del section["p-key"]
    return {"infiniband": section}


def _vf(vf: dict[str, Any]) -> str:
    words = [f"mac={vf['mac-address'].upper()}"] if "mac-address" in vf else []
    for key in ("spoof-check", "trust", "min-tx-rate", "max-tx-rate"):
        if key in vf:
            words.append(f"{key}={_text(vf[key])}")
    if "vlan-id" in vf:
        words.append(f"vlans={vf['vlan-id']}.{vf.get('qos', 0)}.{'ad' if vf.get('vlan-proto') == '802.1ad' else 'q'}")
    return " ".join(words)


def _ethernet(interface: Interface) -> dict[str, Section]:
    sections: dict[str, Section] = {}
    if "veth" in interface.conf:
        sections["veth"] = _renamed(interface.conf["veth"], ["peer"])
    sriov = interface.conf.get("ethernet", {}).get("sr-iov")
    if sriov is not None and sriov.get("total-vfs") != 0:
        section = _renamed(sriov, ["total-vfs"])
        if "drivers-autoprobe" in sriov:
            section["autoprobe-drivers"] = int(sriov["drivers-autoprobe"])
        sections["sriov"] = section | {f"vf.{vf['id']}": _vf(vf) for vf in sriov.get("vfs", [])}
    return sections


def _ovs_bridge(interface: Interface) -> dict[str, Section]:
    options = interface.conf.get("bridge", {}).get("options", {})
    section = _renamed(
        options, ["mcast-snooping-enable", "fail-mode"], rstp_enable="rstp", datapath_type="datapath"
    ) | _renamed(options.get("stp", {}), stp_enable="enabled")
    return {"ovs-bridge": section}


def _ovs_interface(interface: Interface) -> dict[str, Section]:
    sections: dict[str, Section] = {"ovs-interface": {"type": "internal"}}
    if "patch" in interface.conf:
        sections = {"ovs-interface": {"type": "patch"}, "ovs-patch": _renamed(interface.conf["patch"], ["peer"])}
    elif interface.conf.get("dpdk", {}).get("devargs"):
        section = _renamed(
            interface.conf["dpdk"], ["devargs"], n_rxq="rx-queue", n_rxq_desc="n_rxq_desc", n_txq_desc="n_txq_desc"
        )
        sections = {"ovs-interface": {"type": "dpdk"}, "ovs-dpdk": section}
    if interface.controller_type != "ovs-bridge":
        del sections["ovs-interface"]
    return sections


def _ipsec(interface: Interface) -> dict[str, Section]:
    if "libreswan" not in interface.conf:
        return {}
    conf = interface.conf["libreswan"]
    data = {k: ("yes" if v else "no") if isinstance(v, bool) else v for k, v in conf.items() if k != "psk"}
    sections = {"vpn": data | {"service-type": "org.freedesktop.NetworkManager.libreswan"}}
    if "psk" in conf:
        sections["vpn-secrets"] = {"pskvalue": conf["psk"]}
    return sections


_BY_TYPE: dict[str, Callable[[Interface], dict[str, Section]]] = {
    "bond": _bond,
    "ethernet": _ethernet,
    "infiniband": _infiniband,
    "ipsec": _ipsec,
    "linux-bridge": _linux_bridge,
    "mac-vlan": _mac_vlan,
    "mac-vtap": _mac_vlan,
    "ovs-bridge": _ovs_bridge,
    "ovs-interface": _ovs_interface,
    "vlan": _vlan,
    "vrf": _vrf,
    "vxlan": _vxlan,
}


# --- ports -----------------------------------------------------------------------------------------------------------


def _entry(interface: Interface, entries: list[dict[str, Any]]) -> dict[str, Any] | None:
    if interface.conf.get("identifier") == "mac-address":
        return None
    return next((entry for entry in entries if entry["name"] == interface.name), None)


def _bond_port(interface: Interface, controller: Interface) -> Section | None:
    entry = _entry(interface, controller.conf.get("link-aggregation", {}).get("ports-config", [])) or {}
    if not entry.get("priority") and not entry.get("queue-id"):
        return None
    section = _renamed(entry, ["queue-id"])
    return section | ({"prio": entry["priority"]} if entry.get("priority") else {})


def _bridge_port(interface: Interface, controller: Interface) -> Section | None:
    entry = _entry(interface, controller.conf.get("bridge", {}).get("port", []))
    if entry is None:
        return None
    section = _renamed(entry, hairpin_mode="stp-hairpin-mode", path_cost="stp-path-cost", priority="stp-priority")
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
    section = _renamed(bond, ["bond-downdelay", "bond-updelay"]) | _renamed(vlan, ["tag"], vlan_mode="mode")
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
    return _file(end, sections | {f"ipv{family}": _ip(end, family) for family in (4, 6)})


# --- files -----------------------------------------------------------------------------------------------------------

_SECTIONS = (
    *("connection", "bond", "bond-port", "bridge", "bridge-port", "ipv4", "ipv6", "ovs-bridge", "ovs-port"),
    *("ovs-interface", "ovs-patch", "ovs-dpdk", "ethernet", "vlan", "vxlan", "sriov", "macvlan", "vrf", "veth", "user"),
    *("802-1x", "ethtool", "infiniband", "ovs-external-ids", "ovs-other-config", "vpn", "vpn-secrets"),
)
_GENERAL = {"802.1x": ("802-1x", _ieee8021x), "description": ("user", _user), "ethtool": ("ethtool", _ethtool)}


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ";".join(value)
    return str(value)


def _file(interface: Interface, sections: dict[str, Section]) -> tuple[str, str]:
    name = profile_id(interface)
    if "/" in name or name in ("", ".", ".."):
        raise interface.error(f"{name!r} cannot be the name of a file")
    blocks = []
    for section in _SECTIONS:
        if section in sections:
            lines = {key: _text(value) for key, value in sections[section].items()}
            blocks.append(f"[{section}]\n" + "".join(f"{key}={lines[key]}\n" for key in sorted(lines) if lines[key]))
    return f"{name}.nmconnection", "\n".join(blocks)


def _nm_type(interface: Interface) -> str:
    if interface.type == "xfrm":
        raise not_implemented(f"interface {interface.name}: Does not support iface type: xfrm yet")
    if interface.type == "ethernet" and "veth" in interface.conf:
        return "veth"
    return _NM_TYPES.get(interface.type, interface.type)


def files(network: Network, interface: Interface) -> list[tuple[str, str]]:
    """Return the keyfiles that one interface needs: its own, and those of OVS ports or a veth peer of no other interface."""
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
        sections |= {f"ipv{family}": _ip(interface, family) for family in (4, 6)}
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
    if interface.type in _BY_TYPE:
        sections |= _BY_TYPE[interface.type](interface)
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
