"""What cannot be about one interface, and what nmstate tidies up before it writes a profile."""

from __future__ import annotations

import ipaddress
from typing import Any

from .interface import Interface, Ip, is_auto
from .kinds import canonical

_MIN_MTU_IPV6 = 1280
_STP_LIMITS = {"hello-time": (1, 10), "max-age": (6, 40), "forward-delay": (2, 30)}
_AUTO = ("auto-dns", "auto-gateway", "auto-routes")
_AUTO_ONLY = (
    *_AUTO,
    "auto-route-table-id",
    "auto-route-metric",
    "dhcp-client-id",
    "dhcp-send-hostname",
    "dhcp-custom-hostname",
)


def _token(interface: Interface, token: str) -> str:
    try:
        ip = ipaddress.IPv6Address(token or "::")
    except ValueError as error:
        raise interface.error(f"Desired IPv6 token '{token}' is not a valid IPv6 address: {error}") from None
    if any(ip.packed[:8]):
        raise interface.error(f"Desired IPv6 token should be lead by 64 bits 0. But got {token}")
    # nmstate's spelling: that of an address with a prefix in front, so that "::5" and not "0::5" comes out.
    return str(ipaddress.IPv6Address(b"\x20\x01\x0d\xb8" + ip.packed[4:])).removeprefix("2001:db8")


def clean_ip(interface: Interface, family: int, ip: Ip) -> Ip:
    """Return the address configuration without what does not apply, and with the defaults of automatic ones."""
    limit = 32 if family == 4 else 128
    addresses = []
    for entry in ip.get("address", []):
        address = ipaddress.ip_address(entry["ip"])
        if address.version != family:
            raise interface.error(f"Got IPv{address.version} address {entry['ip']} in ipv{family} config section")
        if entry["prefix-length"] > limit:
            raise interface.error(
                f"Invalid IPv{family} network prefix length '{entry['prefix-length']}', should be in the range of 0 to {limit}"
            )
        learned = entry.get("valid-life-time", "forever") != "forever"
        if not learned and not (family == 6 and address.is_link_local):
            addresses.append(f"{canonical(address)}/{entry['prefix-length']}")
    enabled = ip.get("enabled", False)
    ip = {**ip, "enabled": enabled, "address": addresses if enabled else []}
    if not enabled:
        ip.pop("dhcp", None)
        ip.pop("autoconf", None)
    auto = is_auto(ip)
    ip = {**dict.fromkeys(_AUTO, True), **{key: value for key, value in ip.items() if auto or key not in _AUTO_ONLY}}
    if "token" in ip:
        if ip.get("autoconf") is False and ip["token"] not in ("", "::"):
            raise interface.error(f"Desired IPv6 token '{ip['token']}' cannot be applied with IPv6 autoconf disabled")
        ip["token"] = _token(interface, ip["token"])
    return ip


def _bond(interface: Interface) -> None:
    bond = interface.conf.get("link-aggregation", {})
    options = bond.get("options", {})
    mode = bond.get("mode")
    if interface.up and mode is None:
        raise interface.error(f"Bond mode is mandatory for new bond interface: {interface.name}")
    if "mac-address" in interface.conf and (mode, options.get("fail_over_mac")) == ("active-backup", "active"):
        raise interface.error(
            "MAC address cannot be specified in bond interface along with fail_over_mac active on active backup mode"
        )
    configured = [port["name"] for port in bond.get("ports-config", [])]
    if "port" in bond and "ports-config" in bond and sorted(bond["port"]) != sorted(configured):
        raise interface.error(
            "The port names specified in `port` conflict with the port names specified in `ports-config`"
        )
    queues = [port["queue-id"] for port in bond.get("ports-config", []) if port.get("queue-id")]
    if len(queues) != len(set(queues)):
        raise interface.error("two ports are sharing the same queue-id which is not supported by linux kernel yet")
    if options.get("ad_actor_system", "").upper().startswith("01:00:5E"):
        raise interface.error(
            "The ad_actor_system bond option cannot be an IANA multicast address(prefix with 01:00:5E)"
        )
    if options.get("miimon") and options.get("arp_interval"):
        raise interface.error("Bond miimon and arp interval are not compatible options.")
    if options.get("balance_slb") and (mode, options.get("xmit_hash_policy")) != ("balance-xor", "vlan+srcmac"):
        raise interface.error(
            "To enable balance-slb, bond mode should be balance-xor and xmit_hash_policy: 'vlan+srcmac'"
        )


def _port_vlan(interface: Interface, vlan: dict[str, Any]) -> None:
    mode, tags = vlan.get("mode"), vlan.get("trunk-tags")
    native = vlan.get("enable-native")
    if mode == "trunk" and vlan.get("tag") and not native:
        raise interface.error("Bridge VLAN filtering `tag` cannot be use in trunk mode without `enable-native`")
    if mode == "access" and native:
        raise interface.error("Bridge VLAN filtering `enable-native: true` cannot be set in access mode")
    if mode == "access" and tags:
        raise interface.error("Bridge VLAN filtering access mode cannot have trunk-tags defined")
    if mode == "trunk" and tags is None:
        raise interface.error("Bridge VLAN filtering trunk mode cannot have empty trunk-tags")
    last = -1
    for low, high in sorted(trunk_range(interface, tag) for tag in tags or []):
        if low <= last:
            raise interface.error(f"Bridge VLAN trunk tag {low} is overlapping with other tag {last}")
        last = high


def trunk_range(interface: Interface, tag: dict[str, Any]) -> tuple[int, int]:
    """Return first and last VLAN of a trunk tag."""
    if "id" in tag:
        return tag["id"], tag["id"]
    if "id-range" in tag:
        return tag["id-range"]["min"], tag["id-range"]["max"]
    raise interface.error(f"BridgePortTrunkTag only support 'id' or 'id-range', but got {tag}")


def _bridge(interface: Interface) -> None:
    bridge = interface.conf.get("bridge", {})
    options = bridge.get("options", {})
    masks = {options[key] for key in ("group-forward-mask", "group-fwd-mask") if key in options}
    if len(masks) > 1:
        raise interface.error("group_forward_mask and group_fwd_mask are the same property, hence conflicting")
    if options.get("vlan-default-pvid", 1) != 1 and not any(port.get("vlan") for port in bridge.get("port", [])):
        raise interface.error("vlan-default-pvid different than 1 but VLAN filtering is not enabled.")
    for key, (low, high) in _STP_LIMITS.items():
        value = options.get("stp", {}).get(key, low)
        if not low <= value <= high:
            raise interface.error(f"Desired STP {key} {value} is not in the range of [{low}, {high}]")
    for port in bridge.get("port", []):
        _port_vlan(interface, port.get("vlan", {}))


def _ovs_bridge(interface: Interface) -> None:
    if interface.conf.get("mac-address"):
        raise interface.error(
            "OVS Bridge can not hold MAC address, please set MAC address on OVS internal interface instead"
        )
    for key in ("mtu", "ipv4", "ipv6"):
        interface.conf.pop(key, None)
    interface.ip = {4: None, 6: None}
    for port in interface.conf.get("bridge", {}).get("port", []):
        _port_vlan(interface, port.get("vlan", {}))


def _ovs_interface(interface: Interface) -> None:
    if "patch" in interface.conf:
        if "mtu" in interface.conf:
            raise interface.error("OVS patch interface is not allowed to hold MTU configuration")
        if interface.enabled(4) or interface.enabled(6):
            raise interface.error("OVS patch interface is not allowed to hold IP configuration")
    for key in ("n_rxq_desc", "n_txq_desc"):
        count = interface.conf.get("dpdk", {}).get(key, 0)
        if count & (count - 1) or count > 4096:
            raise interface.error(f"OVS DPDK {key} must power of 2 within range of 1 to 4096, but got {count}")


def _vlan(interface: Interface) -> None:
    if "vlan" in interface.conf and "base-iface" not in interface.conf["vlan"]:
        raise interface.error(f"Missing 'vlan.base-iface' for interface '{interface.name}'")


def _vrf(interface: Interface) -> None:
    if not interface.conf.get("vrf", {}).get("route-table-id"):
        raise interface.error("Route table ID undefined or 0 is not allowed for new VRF interface")
    interface.conf.pop("mac-address", None)
    if interface.conf.get("accept-all-mac-addresses") is False:
        del interface.conf["accept-all-mac-addresses"]


def _mac_vlan(interface: Interface) -> None:
    conf = interface.conf.get(interface.type, {})
    if conf.get("promiscuous") is False and conf["mode"] != "passthru":
        raise interface.error("Disable accept-all-mac-addresses(promiscuous) is only allowed on passthru mode")


def _loopback(interface: Interface) -> None:
    for family in (4, 6):
        if interface.ip[family] is not None and not interface.enabled(family):
            raise interface.error(f"Loopback interface cannot be have IPv{family} disabled")
        if is_auto(interface.ip[family] or {}):
            raise interface.error(f"Loopback interface cannot be have IPv{family} DHCP or autoconf enabled")


def _macsec(interface: Interface) -> None:
    conf = interface.conf.get("macsec", {})
    if ("mka-cak" in conf) != ("mka-ckn" in conf):
        raise interface.error("The mka_cak and mka_cnk must be all missing or present.")
    if len(conf.get("mka-cak", "0" * 32)) != 32:
        raise interface.error("The mka_cak must be a string of 32 characters")
    size = len(conf.get("mka-ckn", "00"))
    if not 2 <= size <= 64 or size % 2:
        raise interface.error("The mka_ckn must be a string of even size between 2 and 64 characters")


def _ipvlan(interface: Interface) -> None:
    conf = interface.conf.get("ipvlan", {})
    if conf.get("private") and conf.get("vepa"):
        raise interface.error("Both private and VEPA flags cannot be enabled at the same time")


def _ipsec(interface: Interface) -> None:
    ip = interface.ip[4]
    if ip and ip.get("enabled") and ip.get("dhcp") is False:
        interface.ip[4] = {**ip, "enabled": False}


def _ethernet(interface: Interface) -> None:
    for vf in interface.conf.get("ethernet", {}).get("sr-iov", {}).get("vfs", []):
        if vf.get("vlan-proto") == "802.1ad" and not vf.get("vlan-id") and not vf.get("qos"):
            raise interface.error(
                "VLAN protocol 802.1ad is not allowed when both VLAN ID and VLAN QoS are zero or unset"
            )


_BY_TYPE = {
    "bond": _bond,
    "ethernet": _ethernet,
    "ipsec": _ipsec,
    "ipvlan": _ipvlan,
    "linux-bridge": _bridge,
    "loopback": _loopback,
    "mac-vlan": _mac_vlan,
    "mac-vtap": _mac_vlan,
    "macsec": _macsec,
    "ovs-bridge": _ovs_bridge,
    "ovs-interface": _ovs_interface,
    "vlan": _vlan,
    "vrf": _vrf,
}


def check(interface: Interface) -> None:
    """Refuse an impossible interface with its name; tidy up a possible one."""
    conf = interface.conf
    if "dispatch" in conf:
        raise interface.error("Dispatch script is not supported in gc(gen_conf) mode")
    if conf.get("identifier") == "mac-address" and not conf.get("mac-address"):
        raise interface.error("identifier mac-address needs mac-address")
    if {"signal", "fullmesh"} <= set(conf.get("mptcp", {}).get("address-flags", [])):
        raise interface.error("MPTCP flags mustn't have both signal and fullmesh")
    if not interface.can_have_ip and interface.up and (interface.enabled(4) or interface.enabled(6)):
        raise interface.error(
            f"Interface {interface.name} cannot have IP enabled as it is attached to a controller where IP is not allowed"
        )
    for family, ip in interface.ip.items():
        if ip is not None:
            interface.ip[family] = clean_ip(interface, family, ip)
    if "ipv6" in conf and interface.enabled(6) and conf.get("mtu", _MIN_MTU_IPV6) < _MIN_MTU_IPV6:
        raise interface.error(f"MTU should be >= {_MIN_MTU_IPV6} when IPv6 is enabled, but got mtu: {conf['mtu']}")
    if interface.type in _BY_TYPE:
        _BY_TYPE[interface.type](interface)
