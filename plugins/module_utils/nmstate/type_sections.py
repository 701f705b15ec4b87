"""The sections of a keyfile that only one type of interface has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .errors import NmstateError
from .interface import Interface
from .section import Section, pick, text_of

_NUMBERED = {name: number for number, name in enumerate(("unknown", "vepa", "bridge", "private", "passthru", "source"))}
_PROTOCOL = {"802.1q": "802.1Q", "802.1ad": "802.1ad"}


def _numbers(mac: str) -> str:
    """A MAC address the way nmstate writes the bytes of a D-Bus array."""
    try:
        return ";".join(str(int(part, 16)) for part in mac.split(":"))
    except ValueError:
        raise NmstateError(f"{mac!r} is not a MAC address") from None


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
    return {"bond": options | flags | pick(bond, ["mode"])}


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
    section = pick(
        options, [*_BRIDGE_SAME, "vlan-default-pvid"], multicast_hash_max="hash-max", ageing_time="mac-ageing-time"
    )
    section |= pick(options, group_forward_mask="group-forward-mask")
    section |= pick(options, group_forward_mask="group-fwd-mask")
    section |= pick(options.get("stp", {}), ["forward-delay", "hello-time", "max-age", "priority"], stp="enabled")
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
    section = pick(vlan, ["id"], parent="base-iface")
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
    return {"vxlan": pick(vxlan, ["id", "learning", "local", "remote", "destination-port"], parent="base-iface")}


def _vrf(interface: Interface) -> dict[str, Section]:
    return {"vrf": pick(interface.conf.get("vrf", {}), table="route-table-id")}


def _mac_vlan(interface: Interface) -> dict[str, Section]:
    if interface.type not in interface.conf:
        return {}
    conf = interface.conf[interface.type]
    section = pick(conf, ["promiscuous"], parent="base-iface")
    return {"macvlan": section | {"mode": _NUMBERED[conf["mode"]], "tap": interface.type == "mac-vtap"}}


def _infiniband(interface: Interface) -> dict[str, Section]:
    conf = interface.conf.get("infiniband", {})
    section = pick(conf, parent="base-iface", transport_mode="mode", p_key="pkey") | pick(interface.conf, ["mtu"])
    if section.get("p-key") == 0xFFFF:
        del section["p-key"]
    return {"infiniband": section}


def _vf(vf: dict[str, Any]) -> str:
    words = [f"mac={vf['mac-address'].upper()}"] if "mac-address" in vf else []
    for key in ("spoof-check", "trust", "min-tx-rate", "max-tx-rate"):
        if key in vf:
            words.append(f"{key}={text_of(vf[key])}")
    if "vlan-id" in vf:
        words.append(f"vlans={vf['vlan-id']}.{vf.get('qos', 0)}.{'ad' if vf.get('vlan-proto') == '802.1ad' else 'q'}")
    return " ".join(words)


def _ethernet(interface: Interface) -> dict[str, Section]:
    sections: dict[str, Section] = {}
    if "veth" in interface.conf:
        sections["veth"] = pick(interface.conf["veth"], ["peer"])
    sriov = interface.conf.get("ethernet", {}).get("sr-iov")
    if sriov is not None and sriov.get("total-vfs") != 0:
        section = pick(sriov, ["total-vfs"])
        if "drivers-autoprobe" in sriov:
            section["autoprobe-drivers"] = int(sriov["drivers-autoprobe"])
        sections["sriov"] = section | {f"vf.{vf['id']}": _vf(vf) for vf in sriov.get("vfs", [])}
    return sections


def _ovs_bridge(interface: Interface) -> dict[str, Section]:
    options = interface.conf.get("bridge", {}).get("options", {})
    section = pick(
        options, ["mcast-snooping-enable", "fail-mode"], rstp_enable="rstp", datapath_type="datapath"
    ) | pick(options.get("stp", {}), stp_enable="enabled")
    return {"ovs-bridge": section}


def _ovs_interface(interface: Interface) -> dict[str, Section]:
    sections: dict[str, Section] = {"ovs-interface": {"type": "internal"}}
    if "patch" in interface.conf:
        sections = {"ovs-interface": {"type": "patch"}, "ovs-patch": pick(interface.conf["patch"], ["peer"])}
    elif interface.conf.get("dpdk", {}).get("devargs"):
        section = pick(
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


BY_TYPE: dict[str, Callable[[Interface], dict[str, Section]]] = {
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
