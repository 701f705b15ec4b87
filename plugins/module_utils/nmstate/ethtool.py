"""The section `ethtool` of a keyfile: offload features, pause frames, rings and coalescing."""

from __future__ import annotations

from .interface import Interface
from .section import Section

_ALIASES = {
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
_NAMES = {
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
_FEATURES = {
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


def ethtool_section(interface: Interface) -> Section:
    ethtool = interface.conf["ethtool"]
    pause = dict(ethtool.get("pause", {}))
    if pause.get("autoneg") is not False:
        pause = {key: value for key, value in pause.items() if key == "autoneg"}
    section: Section = {f"pause-{key}": value for key, value in pause.items()}
    for key, value in ethtool.get("feature", {}).items():
        kernel = _ALIASES.get(key, key)
        name = _NAMES.get(kernel, kernel)
        if name not in _FEATURES:
            raise interface.error(f"Unsupported ethtool feature feature-{name}")
        section[f"feature-{name}"] = value
    coalesce = ethtool.get("coalesce", {})
    section |= {f"coalesce-{key}": int(value) for key, value in coalesce.items() if key not in _COALESCE_IGNORED}
    section |= {f"ring-{key}": value for key, value in ethtool.get("ring", {}).items() if not key.endswith("-max")}
    return section
