"""What operators require of hosts in addition to OpenShift: CPU cores, RAM and disks that depend on host and cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..facts import is_sno, schedulable_masters
from ..hardware import Inventory
from ..objects import Host
from .table import OPERATORS, View, dependencies_of, selected_operators

#: Device ids of which each adds a GiB to what cnv needs.
_CNV_DEVICES = frozenset({"10de:1db6", "10de:1eb8", "8086:158b", "15b3:1015", "15b3:1017", "15b3:1013", "15b3:101b"})
Requirement = tuple[int, int]
"""CPU cores, RAM in MiB."""


def spare_disks(host: Host, inventory: Inventory, least_gb: float) -> tuple[int, int]:
    """Return how many disks a host has besides its installation disk: (large enough, too small).

    SSDs and HDDs with a known size count. `least_gb` is in GB of 10^9 bytes.
    """
    sizes = [
        disk.get("size_bytes", 0)
        for disk in inventory.get("disks", ())
        if disk.get("drive_type") in ("SSD", "HDD")
        and disk.get("id") != host.get("installation_disk_id")
        and disk.get("size_bytes")
    ]
    large = sum(size >= least_gb * 10**9 for size in sizes)
    return large, len(sizes) - large


def _devices(inventory: Inventory) -> int:
    def ident(text: object) -> str:
        return str(text or "").lower().removeprefix("0x")

    gpus = [f"{gpu.get('vendor_id', '')}:{gpu.get('device_id', '')}" for gpu in inventory.get("gpus", ())]
    nics = [f"{ident(nic.get('vendor'))}:{ident(nic.get('product'))}" for nic in inventory.get("interfaces", ())]
    return sum(name in _CNV_DEVICES for name in (*gpus, *nics))


def _cnv_need(v: View, host: Host, role: str, inventory: Inventory) -> Requirement:
    extra = _devices(inventory) * 1024
    if is_sno(v.cluster):
        return 6, 510 + extra
    return {"master": (4, 150), "arbiter": (0, 0)}.get(role, (2, 360 + extra))


def _lvm_need(v: View, host: Host, role: str, inventory: Inventory) -> Requirement:
    if role == "arbiter" or (role == "master" and not schedulable_masters(v.cluster, v.hosts.values())):
        return 0, 0
    return 1, OPERATORS["lvm"].memory_in(str(v.cluster.get("openshift_version", "")))


def _mce_need(v: View, host: Host, role: str, inventory: Inventory) -> Requirement:
    if is_sno(v.cluster):
        return 8, 32 * 1024
    return (0, 0) if role == "arbiter" else (4, 16 * 1024)


def _one_need(v: View, host: Host, role: str, inventory: Inventory) -> Requirement:
    return (0, 0) if role == "arbiter" else (1, 1024)


def _ai_need(v: View, host: Host, role: str, inventory: Inventory) -> Requirement:
    return (8, 32 * 1024) if role == "worker" else (0, 0)


ODF_LEAST_GB = 25


def odf_mode(v: View) -> str:
    """Return where odf runs; empty while the roles fit no mode.

    `Compact`: on control plane nodes; `Standard`: on workers. By the roles that users set: hosts whose role is left to
    the service count as future control-plane nodes of three.
    """
    roles = [host.get("role", "auto-assign") for host in v.hosts.values()]
    masters, arbiters, workers, free = (roles.count(name) for name in ("master", "arbiter", "worker", "auto-assign"))
    if workers == 0 and (masters + free == 3 or (free == 0 and masters + arbiters >= 3)):
        return "Compact"
    if (masters >= 3 or (masters >= 2 and arbiters)) and workers >= 3:
        return "Standard"
    return ""


def odf_runs(v: View, role: str) -> bool:
    return role in {"Compact": ("master", "arbiter", "auto-assign"), "Standard": ("worker",)}.get(odf_mode(v), ())


def _odf_need(v: View, host: Host, role: str, inventory: Inventory) -> Requirement:
    if not odf_runs(v, role):
        return 0, 0
    disks, __ = spare_disks(host, inventory, ODF_LEAST_GB)
    compact = odf_mode(v) == "Compact"
    disks = max(1, disks) if compact else disks
    return (6 if compact else 8) + 2 * disks, (19 + 5 * disks) * 1024


_NEEDS: dict[str, Callable[[View, Host, str, Inventory], Requirement]] = {
    "cnv": _cnv_need,
    "lvm": _lvm_need,
    "mce": _mce_need,
    "mtv": _one_need,
    "osc": _one_need,
    "openshift-ai": _ai_need,
    "odf": _odf_need,
}


def need(name: str, v: View, host: Host, role: str) -> Requirement:
    """Return what one operator requires of a host in a role, in addition to OpenShift.

    (CPU cores, RAM in MiB). It may depend on the host's devices and disks; without an inventory these count as none.
    (0, 0) for operators without requirements.
    """
    found = _NEEDS.get(name)
    return found(v, host, role, v.inventories.get(host["id"], {})) if found else (0, 0)


def needs(v: View, host: Host, role: str) -> Requirement:
    """Return what all operators of the cluster together require of a host.

    (CPU cores, RAM in MiB). Dependencies count, as each is an operator of the cluster.
    """
    found = [need(name, v, host, role) for name in selected_operators(v.cluster)]
    return sum(cpu for cpu, __ in found), sum(ram for __, ram in found)


def preflight(name: str, v: View) -> dict[str, Any]:
    """Return `operator-hardware-requirements`: requirements of an operator before the hosts are known.

    `quantitative` has CPU cores and MiB for masters and workers, `qualitative` has upstream's texts. Part of the
    response of the preflight requirements of a cluster.
    """
    version = str(v.cluster.get("openshift_version", ""))
    odf = ["At least 3 {hosts}", "At least 1 non-boot SSD or HDD disk on 3 {hosts}"]
    lvm = OPERATORS["lvm"].memory_in(version)
    cnv_texts = [
        "Additional 1GiB of RAM per each supported GPU",
        "Additional 1GiB of RAM per each supported SR-IOV NIC",
        "CPU has virtualization flag (vmx or svm)",
    ]
    lvm_texts = [
        "At least 1 non-boot disk per host",
        f"{lvm} MiB of additional RAM",
        "1 additional CPUs for each non-boot disk",
    ]
    table: dict[str, tuple[Requirement, Requirement, list[str], list[str]]] = {
        "cnv": ((6, 510) if is_sno(v.cluster) else (4, 150), (2, 360), cnv_texts, cnv_texts),
        "lvm": ((1, lvm), (1, lvm), lvm_texts, lvm_texts),
        "mce": ((4, 16384), (4, 16384), [], []),
        "openshift-ai": ((0, 0), (8, 32768), [], []),
        "odf": (
            (6, 19 * 1024),
            (8, 19 * 1024),
            ["Requirements apply only for master-only clusters", *(text.format(hosts="hosts") for text in odf)],
            [
                "Requirements apply only for clusters with workers",
                "5 GiB of additional RAM for each non-boot disk",
                "2 additional CPUs for each non-boot disk",
                *(text.format(hosts="workers") for text in odf),
            ],
        ),
    }
    one = ["1024 MiB of additional RAM", "1 additional CPUs"]
    table["mtv"] = table["osc"] = ((1, 1024), (1, 1024), one, one)
    master, worker, master_texts, worker_texts = table.get(name, ((0, 0), (0, 0), [], []))

    def part(found: Requirement, texts: list[str]) -> dict[str, Any]:
        return {"quantitative": {"cpu_cores": found[0], "ram_mib": found[1]}, "qualitative": texts}

    return {
        "operator_name": name,
        "dependencies": dependencies_of(name, v.cluster),
        "requirements": {"master": part(master, master_texts), "worker": part(worker, worker_texts)},
    }
