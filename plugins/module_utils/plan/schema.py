"""The JSON schema (draft 2020-12) of a profile. Everything is optional: what a profile does not say is a default."""

from __future__ import annotations

from typing import Any

from ..releases import RELEASES
from . import faults
from .formats import INTEGER
from .presets import FAMILIES, TOPOLOGIES
from .settings import SETTINGS


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **more}


def _number(minimum: int, maximum: int, *types: str) -> dict[str, Any]:
    return {"type": ["integer", *types], "format": INTEGER, "minimum": minimum, "maximum": maximum}


def _list(items: dict[str, Any], *types: str) -> dict[str, Any]:
    return {"type": ["array", *types], "items": items}


def _text(kind: str, *types: str) -> dict[str, Any]:
    """A string of a format (`formats`). No field has a string without one: what is in none may reach a shell or a unit file."""
    return {"type": ["string", *types] if types else "string", "format": kind}


FLAG = {"type": "boolean"}
FREE = {"type": "object"}
CIDR, IP, MAC = _text("cidr"), _text("ip"), _text("mac")
PORT = _number(1, 65535)
BRIDGE = _text("bridge", "null")
BUS = {"enum": ["scsi", "sata", "virtio"]}
DISK = _object({"size_gib": _number(1, 65536), "bus": BUS}, required=["size_gib"])
CREDENTIALS = {"username": _text("login"), "password": _text("line", "null")}
SERVED = {**CREDENTIALS, "password": _text("password", "null")}

MACHINE = {
    "vcpus": _number(1, 256),
    "memory_mib": _number(512, 1 << 22),
    "disk_gib": _number(1, 65536),
    "disk_bus": BUS,
    "extra_disks": _list(DISK),
    "firmware": {"enum": ["uefi", "bios"]},
    "tpm": FLAG,
    "root_device": _text("device", "null"),
}
ROLE = {**MACHINE, "count": _number(0, 100)}
NODE = {
    **MACHINE,
    "uuid": _text("uuid"),
    "nics": {
        "type": "object",
        "propertyNames": {"pattern": r"^eth[0-9]+\Z"},
        "additionalProperties": _object({"mac": MAC, "addresses": _list(IP)}),
    },
    "network_config": FREE,
    "bmc": _object({"address": _text("bmc"), **CREDENTIALS}),
}

SCHEMA: dict[str, Any] = _object(
    {
        "topology": {"enum": list(TOPOLOGIES["lab"])},
        "stack": {"enum": list(FAMILIES)},
        "addressing": {"enum": ["dhcp", "static"]},
        "platform": {"enum": ["none", "baremetal", "external", None]},
        "base_domain": _text("domain"),
        "arch": {"enum": ["x86_64"]},
        "release": _object(
            {
                "payload": {"enum": list(TOPOLOGIES)},
                "version": _text("version", "null"),
                "profile": {"enum": [*RELEASES, None]},
                "image": _text("repository", "null"),
                "payload_overrides": {"type": "object", "additionalProperties": _text("line")},
            }
        ),
        "hypervisor": _object(
            {
                "kind": {"enum": ["sandbox", "local", "ssh"]},
                "host": _text("host", "null"),
                "user": _text("user", "null"),
                "state_dir": _text("directory"),
                "egress": FLAG,
                "route": FLAG,
                "domain_type": {"enum": ["auto", "kvm", "qemu"]},
            }
        ),
        "network": _object(
            {
                "bridge": BRIDGE,
                "mtu": _number(1280, 9216),
                "nat": {"type": ["boolean", "null"]},
                "ipv4": CIDR,
                "ipv6": CIDR,
                "lease_minutes": _number(2, 525600),
                "offsets": _object(
                    {
                        name: _number(1, 1 << 24)
                        for name in (
                            "gateway",
                            "ingress",
                            "api",
                            "dhcp_start",
                            "dhcp_end",
                            "dhcp_nodes",
                            "static_nodes",
                        )
                    }
                ),
            }
        ),
        "extra_networks": _list(
            _object(
                {
                    "name": _text("bridge"),
                    "bridge": BRIDGE,
                    "mtu": _number(1280, 9216),
                    "nat": FLAG,
                    "ipv4": CIDR,
                    "ipv6": CIDR,
                },
                required=["name"],
            )
        ),
        "master": _object(ROLE),
        "arbiter": _object(ROLE),
        "worker": _object(ROLE),
        "nodes": {"type": "object", "additionalProperties": _object(NODE)},
        "vips": _object({"api": _list(IP, "null"), "ingress": _list(IP, "null")}),
        "services": _object(
            {
                "registry": _object({"port": PORT, **SERVED}),
                "bmc": _object({"port": PORT, **SERVED}),
                "http": _object({"port": PORT}),
                "ntp": _object({"port": {"const": 123}}),
            }
        ),
        "boot": _object({"mode": {"enum": ["redfish", "cdrom", "pxe", "minimal", "manual"]}}),
        "installer": _object(
            {
                "ssh_key_file": _text("file", "null"),
                "pull_secret_file": _text("file", "null"),
                "network_type": {"enum": ["OVNKubernetes", "Calico", "Cilium", "Contrail"]},
                "cluster_network": _object(
                    {
                        family: _list(
                            _object(
                                {"cidr": CIDR, "host_prefix": _number(1, 128)},
                                required=["cidr", "host_prefix"],
                            )
                        )
                        for family in ("ipv4", "ipv6")
                    }
                ),
                "service_network": _object({"ipv4": CIDR, "ipv6": CIDR}),
                "ntp_sources": _list(_text("host"), "null"),
                "image_digest_sources": _list(
                    _object({"source": _text("repository"), "mirrors": _list(_text("repository"))}, required=["source", "mirrors"]),
                    "null",
                ),
                "fips": FLAG,
                "install_config": FREE,
                "agent_config": FREE,
            }
        ),
        "settings": _object(
            {name: {"type": ["integer", "string"], "format": "duration", "minimum": 0} for name in SETTINGS}
        ),
        "faults": _list(faults.SCHEMA),
    }
)
