"""The fields of an interface, by type: a table of names and kinds, as nmstate 2.2 has them.

https://nmstate.io/devel/yaml_api.html describes what the fields mean.
"""

from __future__ import annotations

from typing import Any

from .kinds import (
    I32,
    U8,
    U16,
    U32,
    U64,
    Kind,
    address,
    any_value,
    boolean,
    dictionary,
    fields,
    flag,
    list_of,
    mandatory,
    one_of,
    optional,
    scalar,
    struct,
    text,
)

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

OVS_DB = struct(fields(dictionary(scalar, nullable=True), "external_ids", "other_config"))

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
    "ovs-db": OVS_DB,
    "802.1x": struct(
        {
            "eap-methods": list_of(text),
            **fields(text, "identity", "private-key", "client-cert", "ca-cert"),
            **fields(text, "private-key-password", "phase2-auth", "password"),
        },
        open_ended=True,
    ),
    "lldp": struct({"enabled": boolean, "neighbors": any_value}, required=("enabled",)),
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
    "dispatch": struct(fields(any_value, "post-activation", "post-deactivation"), open_ended=True),
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
                                    "ovs-db": OVS_DB,
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
