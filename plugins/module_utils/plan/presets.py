"""What a profile differs from: its defaults. Those that follow from a topology are in `topologies`.

The numbers are those of dev-scripts (`common.sh`, `network.sh`), so that results compare and users can move over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..releases.distributions import DISTRIBUTIONS
from .fields import ClusterRole, Family
from .names import STATE_DIR

ROLES: tuple[ClusterRole, ...] = ("master", "arbiter", "worker")

FAMILIES: dict[str, tuple[Family, ...]] = {
    "ipv4": ("ipv4",),
    "ipv6": ("ipv6",),
    "dualstack": ("ipv4", "ipv6"),
    "v6v4": ("ipv6", "ipv4"),
}

MTU = 1500
"""MTU of Ethernet in bytes: that of a NIC that nothing has set."""

DEFAULTS: dict[str, Any] = {
    "flow": "agent",
    "topology": "sno",
    "stack": "ipv4",
    "addressing": "dhcp",
    "platform": None,
    "external": {"platform_name": "agentlab", "cloud_controller_manager": None},
    "base_domain": "test.metalkube.org",
    "arch": "x86_64",
    "release": {
        "payload": "lab",
        "version": None,
        "profile": None,
        "image": None,
        "payload_overrides": {},
        "installer": {"binary": None, "git": None, "ref": "HEAD"},
    },
    "hypervisor": {
        "kind": "sandbox",
        "host": None,
        "user": None,
        "state_dir": STATE_DIR,
        "egress": False,
        "route": False,
        "domain_type": "auto",
    },
    "hypervisors": [],
    "network": {
        "bridge": None,
        "mtu": MTU,
        "nat": None,
        "connection": None,
        "ipv4": "192.168.111.0/24",
        "ipv6": "fd2e:6f44:5dd8:c956::/120",
        "lease_minutes": 60,
        "interface": None,
        "vlan": None,
        "routes": [],
        "offsets": {
            "gateway": 1,
            "ingress": 4,
            "api": 5,
            "dhcp_start": 20,
            "dhcp_end": 60,
            "dhcp_nodes": 20,
            "static_nodes": 80,
            "machines": 70,
        },
    },
    "bonds": {},
    "extra_networks": [],
    "segments": {},
    "master": {"count": 1},
    "arbiter": {"count": 0},
    "worker": {"count": 0},
    "machines_from": None,
    "nodes": {},
    "machines": [],
    "outside_networks": [],
    "vips": {"api": None, "ingress": None},
    "services": {
        "registry": {"port": 5000, "username": "ocp-user", "password": None},
        "bmc": {"port": 8000, "username": "admin", "password": None},
        "http": {"port": 8089},
        "ntp": {"port": 123},
    },
    "boot": {"mode": "redfish", "eject": "never", "paths": 1},
    "installer": {
        "hosts_in": "agent-config",
        "fencing_by": "hostName",
        "ssh_key_file": None,
        "pull_secret_file": None,
        "network_type": "OVNKubernetes",
        "cluster_network": {
            "ipv4": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
            "ipv6": [{"cidr": "fd01::/48", "host_prefix": 64}],
        },
        "service_network": {"ipv4": "172.30.0.0/16", "ipv6": "fd02::/112"},
        "ntp_sources": None,
        "image_digest_sources": None,
        "mirrors_file": None,
        "manifests": {},
        "manifests_dir": None,
        "fips": False,
        "install_config": {},
        "agent_config": {},
    },
    "settings": {},
    "faults": [],
    "snapshots": [],
    "tests": [],
}

MACHINE: dict[str, Any] = {
    "firmware": "uefi",
    "secure_boot": False,
    "tpm": False,
    "screen": False,
    "screen_steps": [],
    "root_device": None,
    "root_device_hints": {},
    "disk_bus": "scsi",
    "extra_disks": [],
    "addressing": None,
    "segment": None,
}

# What a day-2 machine has at least with a payload: it runs an assisted service of its own before it is a worker.
DAY2: dict[str, dict[str, int]] = {
    "lab": {"vcpus": 2, "memory_mib": 3072},
    **{name: {"vcpus": 4, "memory_mib": 16384} for name in DISTRIBUTIONS},
}

SLAAC_IPV6 = "fd2e:6f44:5dd8:c956::/64"
"""The machine network with `addressing: slaac`: interface identifiers have 64 bits (RFC 4291, 2.5.1)."""

# dev-scripts' AGENT_E2E_TEST_SCENARIO=<TOPOLOGY>_IP<STACK>[_DHCP]
SCENARIO_STACKS = {"ipv4": "ipv4", "ipv6": "ipv6", "ipv4v6": "dualstack", "ipv6v4": "v6v4"}

# Resources of nodes beyond their memory: QEMU's overhead in MiB, GiB that an installation writes per node and once.
CAPACITY: dict[str, dict[str, int]] = {
    **{name: {"vm_overhead_mib": 300, "node_gib": 40, "shared_gib": 20} for name in DISTRIBUTIONS},
    "lab": {"vm_overhead_mib": 150, "node_gib": 3, "shared_gib": 3},
}

OVERCOMMIT = 4


def is_default(path: Sequence[Any], value: object) -> bool:
    """Return whether the field of a profile at `path` has this value by default: then a finding is better about another field."""
    default: Any = DEFAULTS
    try:
        for key in path:
            default = default[key]
    except (IndexError, KeyError, TypeError):
        return False
    return bool(default == value)
