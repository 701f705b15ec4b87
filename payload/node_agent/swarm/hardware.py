"""Hardware profiles, and the inventory that a host of a profile reports."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import random
import uuid
from dataclasses import dataclass, field
from typing import Any

from ..protocol import Identity, ReplyCache
from .settings import PROFILES, Profile, Settings, SwarmError, topologies, topology

GIB = 1 << 30
# Half of 10/8: the other half has the usual cluster network in it.
ADDRESSES = ipaddress.IPv4Network("10.0.0.0/9")
FIRST_HOST, RESERVED = 10, 16
NAMESPACE = uuid.UUID("6f1d4d2c-2f5b-5c0e-9a0e-6a1d6b1f0c11")


FLAGS = [
    "fpu", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic", "sep", "mtrr", "pge", "mca", "cmov", "pat", "pse36",
    "clflush", "mmx", "fxsr", "sse", "sse2", "ss", "ht", "syscall", "nx", "pdpe1gb", "rdtscp", "lm", "constant_tsc",
    "arch_perfmon", "nopl", "pni", "pclmulqdq", "vmx", "ssse3", "fma", "cx16", "sse4_1", "sse4_2", "x2apic", "movbe",
    "popcnt", "aes", "xsave", "avx", "f16c", "rdrand", "hypervisor", "lahf_lm", "avx2", "bmi1", "bmi2", "erms",
]  # fmt: skip


@dataclass(slots=True)
class Cluster:
    """`roles`, `stages`: host number -> what the service made it, the last stage reported for it.

    `rebooted`: host number -> when its next stage is due; `changed`: when anything last did (event loop time).
    `size`: hosts, of which the first are the control plane. `created`: by this run, which therefore deletes it. `token`: of its agents.
    `namespace`, `resource`, `infra_env`: on a hub, where its resources are and the names of AgentClusterInstall and InfraEnv.
    `controlled`: its controller is a program. `pivoted`: when the first host rebooted that needs no other (event loop time), 0 before.
    `broken`: why a program of it ended too early.
    """

    number: int
    name: str
    domain: str
    masters: int
    arbiters: int
    size: int
    network: ipaddress.IPv4Network
    api_vip: str
    ingress_vip: str
    id: str = ""
    infra_env_id: str = ""
    token: str = field(default="", repr=False)
    namespace: str = ""
    resource: str = ""
    infra_env: str = ""
    created: bool = False
    controlled: bool = False
    pivoted: float = 0.0
    broken: str = ""
    status: str = ""
    changed: float = 0.0
    roles: dict[int, str] = field(default_factory=dict)
    stages: dict[int, str] = field(default_factory=dict)
    rebooted: dict[int, float] = field(default_factory=dict)

    @property
    def gateway(self) -> str:
        return str(self.network[1])

    def address(self, number: int) -> str:
        """Return the address of a host: consecutive ones, without the VIPs.

        number: of the host in its cluster, from 0. Its network is large enough, see `plan_clusters`.
        """
        at = FIRST_HOST + number
        for vip in sorted({ipaddress.IPv4Address(text) for text in (self.api_vip, self.ingress_vip) if text}):
            at += FIRST_HOST <= int(vip) - int(self.network.network_address) <= at
        return str(self.network[at])


@dataclass(slots=True)
class Host:
    """One host of a cluster. Everything is derived from its numbers, so only these are stored. `gone`: it gave up permanently.

    `program`: an agent program runs it. `polled`: when it last asked for instructions (event loop time).
    """

    cluster: Cluster
    number: int
    profile: str
    failure: str
    me: Identity
    cache: ReplyCache
    installing: bool = False
    silent: bool = False
    gone: bool = False
    program: bool = False
    polls: int = 0
    polled: float = 0.0

    @property
    def name(self) -> str:
        return f"{self.cluster.name}-{self.number}"

    @property
    def ip(self) -> str:
        return self.cluster.address(self.number)

    def mac(self, nic: int = 0) -> str:
        return (
            (0x02 << 40 | (self.cluster.number & 0xFFFF) << 24 | (self.number & 0xFFFF) << 8 | nic)
            .to_bytes(6, "big")
            .hex(":")
        )

    def inventory(self) -> dict[str, Any]:
        """Return the model `inventory` of this host; the same each time.

        Serial numbers and addresses follow from its id and number, so that a host which registers again is known.
        """
        kind = PROFILES[self.profile]
        memory = GIB if self.failure == "memory" else kind.memory_gib * GIB
        serial = hashlib.md5(self.me.host_id.encode(), usedforsecurity=False).hexdigest()
        return {
            "bmc_address": "0.0.0.0",
            "bmc_v6address": "::/0",
            "boot": {"current_boot_mode": kind.boot, "pxe_interface": "", "command_line": "BOOT_IMAGE=/images/pxeboot/vmlinuz",
                     "secure_boot_state": "Disabled" if kind.boot == "uefi" else "NotSupported", "device_type": "ephemeral"},
            "cpu": {"architecture": "x86_64", "count": kind.cpus, "frequency": 2000.0, "flags": FLAGS, "model_name": kind.model},
            "disks": [disk(at, entry, serial) for at, entry in enumerate(kind.disks)],
            "gpus": [],
            "hostname": self.name,
            "interfaces": [self._nic(at, name, kind) for at, name in enumerate(kind.nics)],
            "memory": {"physical_bytes": memory, "physical_bytes_method": "dmidecode", "usable_bytes": memory - memory // 32},
            "routes": [
                {"interface": kind.nics[0], "gateway": self.cluster.gateway, "destination": "0.0.0.0", "family": 2, "metric": 100},
                {"interface": kind.nics[0], "gateway": "", "destination": str(self.cluster.network.network_address), "family": 2,
                 "metric": 100},
            ],
            "system_vendor": {"manufacturer": kind.manufacturer, "product_name": kind.product, "serial_number": serial[:12],
                              "virtual": kind.virtual},
            "tpm_version": "2.0" if kind.boot == "uefi" else "none",
        }  # fmt: skip

    def _nic(self, at: int, name: str, kind: Profile) -> dict[str, Any]:
        used = at == 0
        return {
            "name": name, "mac_address": self.mac(at), "type": "physical", "mtu": 1500, "speed_mbps": kind.speed,
            "has_carrier": used, "flags": ["up", "broadcast", "multicast", *(["running"] if used else [])],
            "product": "0x0001", "vendor": "0x1af4" if kind.virtual else "0x8086", "biosdevname": "",
            "ipv4_addresses": [f"{self.ip}/{self.cluster.network.prefixlen}"] if used else [], "ipv6_addresses": [],
        }  # fmt: skip


def disk(at: int, entry: tuple[str, str, int, str], serial: str) -> dict[str, Any]:
    name, kind, gib, bus = entry
    wwn = "" if bus == "virtio" else f"0x5{serial[:14]}{at}"
    by_id = (
        f"/dev/disk/by-id/wwn-{wwn}"
        if bus == "scsi"
        else f"/dev/disk/by-id/nvme-eui.{serial[:16]}"
        if bus == "nvme"
        else ""
    )
    by_path = f"/dev/disk/by-path/pci-0000:0{at + 4}:00.0"
    return {
        "id": by_id or by_path, "name": name, "path": f"/dev/{name}", "by_id": by_id, "by_path": by_path, "drive_type": kind,
        "size_bytes": gib * GIB, "model": "" if bus == "virtio" else "SIM-2000", "vendor": "0x1af4" if bus == "virtio" else "SIM",
        "serial": serial[:20], "wwn": wwn, "hctl": f"{at}:0:0:0" if bus == "scsi" else "", "removable": False, "bootable": False,
        "is_installation_media": False, "smart": "", "has_uuid": bus != "virtio", "holders": "",
        "installation_eligibility": {"eligible": True, "not_eligible_reasons": None},
    }  # fmt: skip


def populate(settings: Settings, clusters: list[Cluster]) -> list[Host]:
    """The hosts of all clusters: ids, hardware and failures follow from the seed.

    Those that a program runs are spread evenly, beginning with the first. They have no failure.
    """
    kinds, weights = list(settings.hardware), list(settings.hardware.values())
    failures = [*settings.failures, ""]
    shares = [*settings.failures.values(), 1 - sum(settings.failures.values())]
    hosts: list[Host] = []
    for cluster in clusters:
        chance = random.Random(f"{settings.seed}/{cluster.number}")  # the same wherever the cluster's part runs
        for number in range(cluster.size):
            host_id = str(uuid.uuid5(NAMESPACE, f"{settings.seed}/{cluster.infra_env_id}/{cluster.number}/{number}"))
            program = settings.agent is not None and begins(len(hosts), settings.share)
            cluster.controlled |= program and settings.controller is not None
            profile, failure = chance.choices(kinds, weights)[0], chance.choices(failures, shares)[0]
            hosts.append(
                Host(
                    cluster=cluster,
                    number=number,
                    profile=profile,
                    failure="" if program else failure,
                    program=program,
                    me=Identity(
                        cluster.infra_env_id,
                        host_id,
                        settings.agent_version,
                        cluster.token or settings.agent_token,
                        settings.register_interval,
                    ),
                    cache=ReplyCache(),
                )
            )
    return hosts


def begins(number: int, share: float) -> bool:
    """Return whether a host is of a share of all, of which every prefix of hosts has at least its part."""
    return math.ceil((number + 1) * share) > math.ceil(number * share)


def subnet_prefix(settings: Settings) -> int:
    """Return the length of the prefix of each cluster's network, at most 24.

    It has an address for each host of the largest cluster, and for RESERVED others.
    """
    most = max(topology(name).size(settings.hosts) for name in settings.topology)
    return min(24, 32 - (most + RESERVED - 1).bit_length())


def plan_clusters(settings: Settings) -> list[Cluster]:
    """Return the clusters of this part to register, each with a subnet of its own.

    Networks are by number, so that the parts of a swarm on several machines do not overlap. SwarmError: too few
    addresses.
    """
    prefix = subnet_prefix(settings)
    if settings.clusters > 2 ** (prefix - ADDRESSES.prefixlen):
        raise SwarmError(
            f"clusters {settings.clusters}, hosts {settings.hosts}: {ADDRESSES} does not have enough addresses"
        )
    part, parts = settings.part
    found = []
    for number, (kind, network) in enumerate(
        zip(topologies(settings), ADDRESSES.subnets(new_prefix=prefix), strict=False)
    ):
        if number % parts == part - 1:
            shape, name = topology(kind), f"{settings.name}-{number}"
            domain, vips = f"{name}.{settings.base_domain}", (str(network[-3]), str(network[-2]))
            size = shape.size(settings.hosts)
            found.append(Cluster(number, name, domain, shape.masters, shape.arbiters, size, network, *vips))
    return found


MOST_MASTERS = 5


def existing_cluster(
    number: int, found: dict[str, Any], infra_env_id: str, settings: Settings, size: int = 0
) -> Cluster:
    """A cluster of the service's, of `size` hosts (0: what the settings say): its hosts get addresses in its machine network, or next to its VIPs."""
    masters = int(found.get("control_plane_count") or (1 if found.get("high_availability_mode") == "None" else 3))
    if not 1 <= masters <= MOST_MASTERS:
        raise SwarmError(
            f"cluster {found['name']}: control_plane_count is {masters}, at most {MOST_MASTERS} is possible"
        )
    api, ingress = (next((entry["ip"] for entry in found.get(key) or ()), "") for key in ("api_vips", "ingress_vips"))
    cidr = next((entry["cidr"] for entry in found.get("machine_networks") or ()), f"{api}/24" if api else "")
    size = (
        size or (1 if masters == 1 else settings.hosts) or max(masters, topology(next(iter(settings.topology))).hosts)
    )
    planned = next(ADDRESSES.subnets(new_prefix=subnet_prefix(settings)))
    try:
        network = ipaddress.IPv4Network(cidr, strict=False) if cidr else planned
    except ValueError:
        raise SwarmError(
            f"cluster {found['name']}: machine network {cidr} is not IPv4, the only family that the swarm supports"
        ) from None
    if network.num_addresses < size + RESERVED:
        raise SwarmError(f"cluster {found['name']}: machine network {network} has too few addresses for {size} hosts")
    domain = f"{found['name']}.{found.get('base_dns_domain', '')}"
    return Cluster(number, found["name"], domain, masters, 0, size, network, api, ingress, found["id"], infra_env_id)
