"""The fields of a network state: names, types and accepted spellings, as nmstate 2.2 has them.

A kind is a function of value and place that returns the value in its proper type or raises `NmstateError` naming the
place. The tables at the end are the API; https://nmstate.io/devel/yaml_api.html describes what the fields mean.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any

from .errors import NmstateError

Kind = Callable[[Any, str], Any]

_NODES = 200_000
_DEPTH = 32
_TRUE = {"1", "true", "yes", "on", "y"}
_FALSE = {"0", "false", "no", "off", "n"}


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise NmstateError(f"{where}: expected a string, not {value!r}")
    if any(ord(c) < 32 and c != "\t" for c in value):
        raise NmstateError(f"{where}: control characters are not allowed in {value!r}")
    return value


def flag(value: object, where: str) -> bool:
    """A boolean proper."""
    if not isinstance(value, bool):
        raise NmstateError(f"{where}: expected a boolean, not {value!r}")
    return value


def boolean(value: object, where: str) -> bool:
    """A boolean, or a word or number for one; not null."""
    if isinstance(value, bool):
        return value
    word = str(value).lower() if isinstance(value, (str, int)) else ""
    if word not in _TRUE | _FALSE:
        raise NmstateError(f"{where}: Need to be boolean: 1|0|true|false|yes|no|on|off|y|n, not {value!r}")
    return word in _TRUE


_NEVER_NULL: set[Kind] = {boolean}
"""Kinds that nmstate reads by functions of its own, which do not take null; for all others null is the same as nothing."""


def integer(bits: int, signed: bool = False) -> Kind:
    """An integer that fits, or a decimal or hexadecimal string of one; not null."""
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def kind(value: Any, where: str) -> int:
        number = value
        if isinstance(value, str) and len(value) <= 24 and "_" not in value:
            with contextlib.suppress(ValueError):
                number = int(value, 16 if value.lower().startswith("0x") else 10)
        if isinstance(number, bool) or not isinstance(number, int):
            raise NmstateError(f"{where}: expected an integer, not {value!r}")
        if not low <= number <= high:
            raise NmstateError(f"{where}: {number} is out of range, expected {low} to {high}")
        return number

    _NEVER_NULL.add(kind)
    return kind


def optional(kind: Kind) -> Kind:
    """`kind`, but null is the same as nothing."""

    def check(value: Any, where: str) -> Any:
        return kind(value, where)

    return check  # an object of its own, which is not among those that refuse null


def mandatory(kind: Kind) -> Kind:
    """`kind`, but null is refused."""

    def never_null(value: object, where: str) -> Any:
        if value is None:
            raise NmstateError(f"{where}: null is not allowed")
        return kind(value, where)

    _NEVER_NULL.add(never_null)
    return never_null


def one_of(*names: str, numbered: int | None = None, **aliases: str) -> Kind:
    """One of `names`; with `numbered` also the number of one of them, counted from that."""
    known = {name: name for name in names} | aliases
    if numbered is not None:
        known |= {str(numbered + index): name for index, name in enumerate(names)}

    def kind(value: Any, where: str) -> str:
        if isinstance(value, bool) or not isinstance(value, (str, int)) or str(value) not in known:
            expected = ", ".join(f"`{name}`" for name in names)
            raise NmstateError(f"{where}: unknown variant `{value}`, expected one of {expected}")
        return known[str(value)]

    return kind


def list_of(item: Kind) -> Kind:
    def kind(value: Any, where: str) -> list[Any]:
        if not isinstance(value, list):
            raise NmstateError(f"{where}: expected a list, not {value!r}")
        return [item(entry, f"{where}[{index}]") for index, entry in enumerate(value)]

    return kind


def struct(
    fields: Mapping[str, Kind], required: tuple[str, ...] = (), open_ended: bool = False, **aliases: str
) -> Kind:
    """A mapping with these fields. `open_ended` drops unknown ones, otherwise an error."""
    renamed = {alias.replace("_", "-"): name for alias, name in aliases.items()} | aliases

    def kind(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise NmstateError(f"{where}: expected a mapping, not {value!r}")
        given = {str(renamed.get(key, key)): content for key, content in value.items()}
        known = {
            name: content for name, content in given.items() if content is not None or fields.get(name) in _NEVER_NULL
        }
        for missing in required:
            if missing not in known:
                raise NmstateError(f"{where}: missing field `{missing}`")
        for unknown in given.keys() - fields.keys() if not open_ended else ():
            expected = ", ".join(f"`{field}`" for field in fields)
            raise NmstateError(f"{where + ': ' if where else ''}unknown field `{unknown}`, expected one of {expected}")
        dot = f"{where}." if where else ""
        return {name: fields[name](content, dot + name) for name, content in known.items() if name in fields}

    return kind


def dictionary(item: Kind, nullable: bool = False) -> Kind:
    def kind(value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise NmstateError(f"{where}: expected a mapping, not {value!r}")
        wanted = {k: v for k, v in value.items() if v is not None or not nullable}
        return {text(k, where): item(v, f"{where}.{k}") for k, v in wanted.items()}

    return kind


def address(value: Any, where: str) -> str:
    """An IP address in its canonical form."""
    try:
        if "%" in text(value, where):
            raise ValueError
        return canonical(ipaddress.ip_address(value))
    except ValueError:
        raise NmstateError(f"{where}: invalid IP address syntax: {value!r}") from None


def canonical(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    mapped = ip.ipv4_mapped if ip.version == 6 else None
    return f"::ffff:{mapped}" if mapped else str(ip)


def scalar(value: object, where: str) -> str:
    """A string, also when it was written as a number or boolean, as nmstate takes it outside of interfaces and for OVS."""
    if isinstance(value, bool):
        return str(value).lower()
    return text(str(value) if isinstance(value, (int, float)) else value, where)


def anything(value: object, where: str) -> Any:
    return value


U8, U16, U32, U64 = integer(8), integer(16), integer(32), integer(64)
I32, I64 = integer(32, signed=True), integer(64, signed=True)


def fields(kind: Kind, *names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, kind)


VLAN_PROTOCOL = one_of("802.1q", "802.1ad")
MPTCP_FLAGS = list_of(one_of("signal", "subflow", "backup", "fullmesh"))

_IP = {
    **fields(boolean, "enabled", "dhcp", "auto-dns", "auto-gateway", "auto-routes"),
    **fields(U32, "auto-route-table-id", "auto-route-metric"),
    **fields(flag, "dhcp-send-hostname", "allow-extra-address"),
    "dhcp-custom-hostname": text,
    "dhcp-client-id": text,
    "dhcp-duid": text,
    "addr-gen-mode": text,
    "token": text,
    "address": list_of(
        struct(
            {
                "ip": address,
                "prefix-length": U8,
                "mptcp-flags": MPTCP_FLAGS,
                "valid-life-time": text,
                "preferred-life-time": text,
            },
            required=("ip", "prefix-length"),
            valid_left="valid-life-time",
            valid_lft="valid-life-time",
            preferred_left="preferred-life-time",
            preferred_lft="preferred-life-time",
        )
    ),
}
IPV4 = struct(_IP)
IPV6 = struct(_IP | {"autoconf": boolean})

_OVS_DB = struct(fields(dictionary(scalar, nullable=True), "external_ids", "other_config"))

_COALESCE = struct(
    {
        **fields(boolean, "adaptive-rx", "adaptive-tx"),
        **fields(U32, "pkt-rate-high", "pkt-rate-low", "sample-interval", "stats-block-usecs"),
        **{
            f"{way}-{unit}{limit}": U32
            for way in ("rx", "tx")
            for unit in ("frames", "usecs")
            for limit in ("", "-high", "-irq", "-low")
        },
    }
)

BASE: dict[str, Kind] = {
    **fields(text, "name", "profile-name", "description", "driver", "type", "controller", "copy-mac-from"),
    **fields(text, "mac-address", "permanent-mac-address"),
    "state": mandatory(one_of("up", "down", "absent", "unknown", "ignore")),
    "identifier": one_of("name", "mac-address"),
    "mtu": U64,
    **fields(optional(U64), "min-mtu", "max-mtu"),
    "wait-ip": one_of("any", "ipv4", "ipv6", "ipv4+ipv6"),
    "ipv4": IPV4,
    "ipv6": IPV6,
    "mptcp": struct({"address-flags": MPTCP_FLAGS}),
    "accept-all-mac-addresses": boolean,
    "ovs-db": _OVS_DB,
    "802.1x": struct(
        {
            "eap-methods": list_of(text),
            **fields(text, "identity", "private-key", "client-cert", "ca-cert"),
            **fields(text, "private-key-password", "phase2-auth", "password"),
        },
        open_ended=True,
    ),
    "lldp": struct({"enabled": boolean, "neighbors": anything}, required=("enabled",)),
    "ethtool": struct(
        {
            "pause": struct(fields(boolean, "rx", "tx", "autoneg")),
            "feature": dictionary(boolean),
            "coalesce": _COALESCE,
            "ring": struct(
                fields(U32, "rx", "rx-max", "rx-jumbo", "rx-jumbo-max", "rx-mini", "rx-mini-max", "tx", "tx-max")
            ),
        }
    ),
    "dispatch": struct(fields(anything, "post-activation", "post-deactivation"), open_ended=True),
}

_BRIDGE_VLAN = struct(
    {
        "enable-native": boolean,
        "mode": one_of("trunk", "access"),
        "tag": U16,
        "trunk-tags": list_of(
            struct({"id": U16, "id-range": struct({"min": U16, "max": U16}, required=("min", "max"))})
        ),
    }
)

_BOND_OPTIONS = struct(
    {
        **fields(U16, "ad_actor_sys_prio", "ad_user_port_key"),
        **fields(text, "ad_actor_system", "arp_ip_target", "primary"),
        **fields(U8, "num_grat_arp", "num_unsol_na", "arp_missed_max"),
        **fields(U32, "arp_interval", "downdelay", "lp_interval", "miimon", "min_links", "packets_per_slave"),
        **fields(U32, "resend_igmp", "updelay"),
        **fields(boolean, "tlb_dynamic_lb", "use_carrier", "balance_slb"),
        "ad_select": one_of("stable", "bandwidth", "count", numbered=0),
        "all_slaves_active": one_of("dropped", "delivered", numbered=0),
        "arp_all_targets": one_of("any", "all", numbered=0),
        "arp_validate": one_of(
            "none", "active", "backup", "all", "filter", "filter_active", "filter_backup", numbered=0
        ),
        "fail_over_mac": one_of("none", "active", "follow", numbered=0),
        "lacp_rate": one_of("slow", "fast", numbered=0),
        "primary_reselect": one_of("always", "better", "failure", numbered=0),
        "xmit_hash_policy": one_of("layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac", numbered=0),
    },
    balance_slb="balance_slb",
)

_BRIDGE_OPTIONS = struct(
    {
        **fields(U64, "gc-timer", "hello-timer"),
        **fields(U16, "group-forward-mask", "group-fwd-mask", "vlan-default-pvid"),
        **fields(U32, "hash-max", "mac-ageing-time"),
        **fields(U32, "multicast-last-member-count", "multicast-startup-query-count"),
        **fields(U64, "multicast-last-member-interval", "multicast-membership-interval"),
        **fields(U64, "multicast-querier-interval", "multicast-query-interval"),
        **fields(U64, "multicast-query-response-interval", "multicast-startup-query-interval"),
        **fields(boolean, "multicast-querier", "multicast-query-use-ifaddr", "multicast-snooping"),
        "multicast-router": one_of("disabled", "auto", "enabled", numbered=0),
        "vlan-protocol": VLAN_PROTOCOL,
        "group-addr": text,
        "stp": struct({"enabled": boolean, **fields(U8, "forward-delay", "hello-time", "max-age"), "priority": U16}),
    }
)

_OVS_STP = struct({"enabled": boolean})


def _ovs_stp(value: object, where: str) -> dict[str, Any]:
    return {"enabled": boolean(value, where)} if isinstance(value, (bool, str)) else _OVS_STP(value, where)


def _ipsec_interface(value: object, where: str) -> str:
    return value if value in ("yes", "no") else str(U32(value, where))


_SR_IOV = struct(
    {
        "drivers-autoprobe": boolean,
        "total-vfs": U32,
        "vfs": list_of(
            struct(
                {
                    **fields(U32, "id", "min-tx-rate", "max-tx-rate", "vlan-id", "qos"),
                    **fields(text, "iface-name", "mac-address"),
                    **fields(boolean, "spoof-check", "trust"),
                    "vlan-proto": VLAN_PROTOCOL,
                },
                required=("id",),
            )
        ),
    }
)

_MAC_VLAN = struct(
    {
        "base-iface": text,
        "mode": one_of("vepa", "bridge", "private", "passthru", "source", "unknown"),
        "promiscuous": boolean,
    },
    required=("base-iface", "mode"),
    accept_all_mac="promiscuous",
)

_ETHERNET: dict[str, Kind] = {
    "ethernet": struct(
        {"sr-iov": _SR_IOV, "auto-negotiation": boolean, "speed": U32, "duplex": one_of("full", "half")}
    ),
    "veth": struct({"peer": text}, required=("peer",), open_ended=True),
}

# What an interface of each type may have in addition to BASE.
TYPES: dict[str, dict[str, Kind]] = {
    "ethernet": _ETHERNET,
    "veth": _ETHERNET,
    "bond": {
        "link-aggregation": struct(
            {
                "mode": one_of(
                    "balance-rr",
                    "active-backup",
                    "balance-xor",
                    "broadcast",
                    "802.3ad",
                    "balance-tlb",
                    "balance-alb",
                    numbered=0,
                ),
                "options": _BOND_OPTIONS,
                "port": list_of(text),
                "ports-config": list_of(
                    struct({"name": text, "priority": I32, "queue-id": U16}, required=("name",), open_ended=True)
                ),
            },
            ports="port",
        )
    },
    "vlan": {
        "vlan": struct(
            {
                "base-iface": text,
                "id": U16,
                "protocol": VLAN_PROTOCOL,
                "registration-protocol": one_of("gvrp", "mvrp", "none"),
                **fields(flag, "reorder-headers", "loose-binding"),
            },
            required=("id",),
        )
    },
    "vxlan": {
        "vxlan": struct(
            {
                "base-iface": text,
                "id": U32,
                "learning": flag,
                **fields(address, "local", "remote"),
                "destination-port": U16,
            },
            required=("id",),
        )
    },
    "vrf": {"vrf": struct({"port": list_of(text), "route-table-id": U32}, ports="port")},
    "dummy": {},
    "loopback": {},
    "xfrm": {},
    "linux-bridge": {
        "bridge": struct(
            {
                "options": _BRIDGE_OPTIONS,
                "port": list_of(
                    struct(
                        {
                            "name": text,
                            "stp-hairpin-mode": boolean,
                            "stp-path-cost": U32,
                            "stp-priority": U16,
                            "vlan": _BRIDGE_VLAN,
                        },
                        required=("name",),
                    )
                ),
            },
            ports="port",
        )
    },
    "ovs-bridge": {
        "bridge": struct(
            {
                "allow-extra-patch-ports": flag,
                "options": struct(
                    {
                        "stp": _ovs_stp,
                        **fields(boolean, "rstp", "mcast-snooping-enable"),
                        **fields(text, "fail-mode", "datapath"),
                    }
                ),
                "port": list_of(
                    struct(
                        {
                            "name": text,
                            "vlan": _BRIDGE_VLAN,
                            "link-aggregation": struct(
                                {
                                    "mode": one_of("active-backup", "balance-slb", "balance-tcp", "lacp"),
                                    "port": list_of(struct({"name": text}, required=("name",), open_ended=True)),
                                    **fields(U32, "bond-downdelay", "bond-updelay"),
                                    "ovs-db": _OVS_DB,
                                },
                                ports="port",
                            ),
                        },
                        required=("name",),
                    )
                ),
            },
            ports="port",
        )
    },
    "ovs-interface": {
        "patch": struct({"peer": text}, required=("peer",)),
        "dpdk": struct(
            {"devargs": text, **fields(U32, "rx-queue", "n_rxq_desc", "n_txq_desc")},
            required=("devargs",),
            n_rxq="rx-queue",
        ),
    },
    "mac-vlan": {"mac-vlan": _MAC_VLAN},
    "mac-vtap": {"mac-vtap": _MAC_VLAN},
    "infiniband": {
        "infiniband": struct(
            {"mode": one_of("datagram", "connected"), "base-iface": text, "pkey": U16}, required=("mode", "pkey")
        )
    },
    "macsec": {
        "macsec": struct(
            {
                **fields(flag, "encrypt", "send-sci"),
                **fields(text, "base-iface", "mka-cak", "mka-ckn"),
                "port": U32,
                "validation": one_of("disabled", "check", "strict"),
                "offload": one_of("off", "phy", "mac"),
            },
            required=("encrypt", "base-iface", "port", "validation", "send-sci"),
            open_ended=True,
        )
    },
    "hsr": {
        "hsr": struct(
            {
                **fields(text, "port1", "port2", "supervision-address"),
                "multicast-spec": U8,
                "protocol": one_of("hsr", "prp"),
            },
            required=("port1", "port2", "multicast-spec", "protocol"),
            open_ended=True,
        )
    },
    "ipvlan": {
        "ipvlan": struct({"base-iface": text, "mode": one_of("l2", "l3", "l3s"), **fields(boolean, "private", "vepa")})
    },
    "ipsec": {
        "libreswan": struct(
            {
                **fields(text, "right", "rightid", "rightrsasigkey", "rightcert", "left", "leftid", "leftrsasigkey"),
                **fields(text, "leftcert", "ikev2", "psk", "ikelifetime", "salifetime", "ike", "esp", "dpdaction"),
                **fields(text, "authby", "rightsubnet", "leftsubnet"),
                **fields(U64, "dpddelay", "dpdtimeout"),
                **fields(flag, "leftmodecfgclient", "require-id-on-certificate"),
                **fields(one_of("ipv4", "ipv6"), "hostaddrfamily", "clientaddrfamily"),
                "type": one_of("tunnel", "transport"),
                "ipsec-interface": _ipsec_interface,
            },
            required=("right",),
        )
    },
}

_ROUTE = struct(
    {
        "state": one_of("absent"),
        **fields(scalar, "destination", "next-hop-interface", "next-hop-address", "source"),
        "metric": I64,
        "table-id": U32,
        "cwnd": optional(U32),
        "weight": U16,
        "route-type": one_of("blackhole", "unreachable", "prohibit"),
    }
)

_RULE = struct(
    {
        "state": one_of("absent"),
        "family": one_of("ipv4", "ipv6"),
        **fields(scalar, "ip-from", "ip-to", "iif"),
        "priority": I64,
        **fields(U32, "route-table", "fwmark", "fwmask", "suppress-prefix-length"),
        "action": one_of("blackhole", "unreachable", "prohibit"),
    },
    suppress_prefixlength="suppress-prefix-length",
)

_DNS = struct(fields(list_of(scalar), "server", "search", "options"))


def _bridge_mappings(value: object, where: str) -> list[dict[str, Any]]:
    found = list_of(
        struct({"localnet": scalar, "bridge": scalar, "state": one_of("absent", "present")}, required=("localnet",))
    )(value, where)
    seen: set[str] = set()
    for mapping in found:
        if mapping["localnet"] in seen:
            raise NmstateError(f"Found duplicate `localnet` key {mapping['localnet']}")
        seen.add(mapping["localnet"])
        if mapping.get("state") != "absent" and "bridge" not in mapping:
            raise NmstateError(f"mapping for `localnet` key {mapping['localnet']} missing the `bridge` attribute")
    return found


_TOP = struct(
    {
        "description": mandatory(scalar),
        "hostname": struct(fields(scalar, "running", "config")),
        "dns-resolver": struct(fields(_DNS, "running", "config")),
        "route-rules": mandatory(struct({"config": list_of(_RULE)})),
        "routes": mandatory(struct(fields(list_of(_ROUTE), "running", "config"))),
        "interfaces": mandatory(list_of(anything)),
        "ovs-db": struct(fields(dictionary(scalar, nullable=True), "external_ids", "other_config")),
        "ovn": mandatory(struct({"bridge-mappings": _bridge_mappings})),
    }
)


def _interface(value: object, index: int) -> dict[str, Any]:
    where = f"interfaces[{index}]"
    if not isinstance(value, dict):
        raise NmstateError(f"{where}: expected a mapping, not {value!r}")
    if isinstance(value.get("name"), str):
        where = f"interface {value['name']}"
    if value.get("state") == "absent":
        value = {key: value[key] for key in ("name", "type", "state") if key in value}
    kind = value.get("type")
    if kind is None or (isinstance(kind, str) and kind not in TYPES):
        kind = "ethernet"  # what nmstate treats it as when it cannot ask the host, a misspelled type too
    known = TYPES[kind] if isinstance(kind, str) else {}
    interface: dict[str, Any] = struct(BASE | known, required=("name",))(value, where)
    if not interface["name"]:
        raise NmstateError(f"{where}: the name is empty")
    return interface | {"type": "ethernet" if kind == "veth" else kind, "state": interface.get("state", "up")}


def _bounded(state: object) -> None:
    """Refuse what is enormous or endless, as YAML aliases can make it."""
    stack = [(state, 0)]
    for __ in range(_NODES):
        if not stack:
            return
        value, depth = stack.pop()
        if isinstance(value, (dict, list)) and depth < _DEPTH:
            stack += [(item, depth + 1) for item in (value.values() if isinstance(value, dict) else value)]
    raise NmstateError(f"the state has more than {_NODES} values")


def parse(state: Any) -> dict[str, Any]:
    """Return a network state with every value in its proper type; raise `NmstateError` naming what is wrong."""
    if state is None:
        state = {}
    _bounded(state)
    parsed: dict[str, Any] = _TOP(state, "")
    parsed["interfaces"] = [_interface(value, index) for index, value in enumerate(parsed.get("interfaces", []))]
    return parsed
