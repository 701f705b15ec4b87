"""Evaluation of a host's inventory: usable interfaces, eligible disks, installation disk, roles."""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections.abc import Callable, Sequence

from ...plugins.module_utils.addresses import LINK_LAYER
from .hardware import Disk, Interface, Inventory, Requirement
from .network import network
from .objects import Host

VIRTUAL_TYPES = frozenset({"bridge", "dummy", "tun", "tap", "veth", "macvlan", "macvtap", "ipvlan", "vxlan", "device"})
#: Eligible kinds of disks, in the order of messages, and additional ones of s390x.
DRIVE_TYPES = ("HDD", "SSD", "Multipath", "RAID", "iSCSI", "FC")
_DRIVE_TYPES_S390X = ("ECKD (ESE)", "ECKD", "FBA")
_BAD_PATH = "Installation on multipath device is not possible due to errors on at least one iSCSI disk"
_OWN_REASONS = (
    "Disk is too small (",
    "Drive type is ",
    "Host IP address is not available",
    "Cannot find the network interface behind the default route",
    "Cannot parse iSCSI host IP ",
    "iSCSI host IP ",
    "Disk is a member of multipath device ",
    "Multipath device has path",
    _BAD_PATH,
)

HOSTNAME = r"^[a-z0-9][a-z0-9-]{0,62}(?:[.][a-z0-9-]{1,63})*$"
HOSTNAME_LENGTH = 63
_NIC = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,63}")
_HOSTNAME = re.compile(HOSTNAME)
FORBIDDEN_HOSTNAMES = (
    "localhost",
    "localhost.localdomain",
    "localhost4",
    "localhost4.localdomain4",
    "localhost6",
    "localhost6.localdomain6",
)


def human_bytes(size: float) -> str:
    """A size in powers of 1000, rounded up to three digits, as messages about disks show it: `21.475 GB`, `100 GB`.

    The maximum of three decimals loses trailing zeros. `size` is in bytes; below 1000 it has no decimals. It rounds up,
    so a disk that is slightly too small may show the same as the threshold: `prepare` then adds the difference.
    """
    for unit, least in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= least:
            return f"{math.ceil(size * 1000 / least) / 1000:.3f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{size:.0f} B"


def gib(mib: float) -> str:
    """RAM as messages show it: `16.00 GiB`."""
    return f"{mib / 1024:.2f} GiB"


def _is_network(text: str, version: int) -> bool:
    net = network(text) if "/" in text and "%" not in text else None
    return net is not None and net.version == version


def hostname_allowed(name: str) -> bool:
    """Return whether a name can be a host's: HOSTNAME, at most 63 characters, and not a name of localhost.

    Lower case only. 63 is the limit of the whole name, dots included. The validation `hostname-valid` and the host's
    update both use it.
    """
    return bool(_HOSTNAME.fullmatch(name)) and len(name) <= HOSTNAME_LENGTH and name not in FORBIDDEN_HOSTNAMES


def disk_id(disk: Disk) -> str:
    """Return the identifier of a disk that survives a reboot, if it has one.

    The agent's `id` if it gave one, else `by_id`, `by_path`, and last the path, which may change from boot to boot.
    Empty if the disk has none of them.
    """
    return str(disk.get("id") or disk.get("by_id") or disk.get("by_path") or disk.get("path") or "")


def prepare(raw: Inventory, least_gb: float, keep_virtual: bool) -> Inventory:
    """Return the inventory as stored: without what is virtual or unusable, with the eligibility of disks.

    Virtual interfaces, unusable names and addresses are left out, because other hosts get them as arguments.

    `least_gb` is the minimum disk size of the host's role (10^9 bytes).
    """
    interfaces = []
    for nic in raw.get("interfaces", []):
        if (not keep_virtual and nic.get("type") in VIRTUAL_TYPES) or not _NIC.fullmatch(nic.get("name", "")):
            continue
        clean: Interface = {
            **nic,
            "ipv4_addresses": [text for text in nic.get("ipv4_addresses", []) if _is_network(text, 4)],
            "ipv6_addresses": [text for text in nic.get("ipv6_addresses", []) if _is_network(text, 6)],
        }
        if not LINK_LAYER.fullmatch(clean.get("mac_address", "")):
            clean.pop("mac_address", None)
        interfaces.append(clean)
    disks: list[Disk] = []
    types = DRIVE_TYPES + (_DRIVE_TYPES_S390X if raw.get("cpu", {}).get("architecture") == "s390x" else ())
    for disk in raw.get("disks", []):
        given = disk.get("installation_eligibility", {}).get("not_eligible_reasons", [])
        reasons = [reason for reason in given if not reason.startswith(_OWN_REASONS)]
        size, least = disk.get("size_bytes", 0), least_gb * 10**9
        if size < least:
            has, wanted = human_bytes(size), human_bytes(least)
            short = f" (short by {human_bytes(least - size)})" if has == wanted else ""
            reasons.append(f"Disk is too small (disk only has {has}{short}, but {wanted} are required)")
        if disk.get("drive_type") not in types:
            reasons.append(
                f"Drive type is {disk.get('drive_type') or 'Unknown'}, it must be one of {', '.join(types)}."
            )
        if disk.get("drive_type") == "iSCSI":
            reasons += _iscsi_reasons(disk, raw)
        reasons += _multipath_reasons(disk, raw)
        disks.append(
            {
                **disk,
                "id": disk_id(disk),
                "installation_eligibility": {"eligible": not reasons, "not_eligible_reasons": reasons},
            }
        )
    return {**raw, "interfaces": interfaces, "disks": disks}


def has_address(nic: Interface, ip: str) -> bool:
    """Return whether an interface has the address `ip`, which has no prefix."""
    return any(
        text.partition("/")[0] == ip for text in (*nic.get("ipv4_addresses", ()), *nic.get("ipv6_addresses", ()))
    )


def _iscsi_reasons(disk: Disk, raw: Inventory) -> list[str]:
    """Return why an iSCSI disk is not eligible: its session must not use the interface of the default route of its family."""
    text = disk.get("iscsi", {}).get("host_ip_address", "")
    if not text:
        return ["Host IP address is not available"]
    try:
        own = ipaddress.ip_address(text)
    except ValueError as error:
        return [f"Cannot parse iSCSI host IP {text}: {error}"]
    ways = [
        route
        for route in raw.get("routes", ())
        if route.get("destination", "").partition("/")[0] == ("0.0.0.0" if own.version == 4 else "::")
    ]
    if not ways:
        return []
    name = min(ways, key=lambda route: route.get("metric", 0)).get("interface")
    nic = next((one for one in raw.get("interfaces", ()) if one.get("name") == name), None)
    if nic is None:
        return ["Cannot find the network interface behind the default route"]
    if has_address(nic, text):
        return [f"iSCSI host IP {text} is the same as host IP, they must be different"]
    return []


def _holds(device: Disk, disk: Disk) -> bool:
    return device.get("name") in disk.get("holders", "").split(",")


def paths_of(device: Disk, inventory: Inventory) -> list[Disk]:
    """Return the paths of a multipath device: the disks that it holds."""
    return [disk for disk in inventory.get("disks", ()) if _holds(device, disk)]


def _multipath_reasons(disk: Disk, raw: Inventory) -> list[str]:
    """Return why a multipath device or one of its paths is not eligible: all paths must be FC, or all iSCSI, and none is a disk itself."""
    if disk.get("drive_type") in ("FC", "iSCSI"):
        devices = [one for one in raw.get("disks", ()) if one.get("drive_type") == "Multipath"]
        return [
            f"Disk is a member of multipath device {device.get('name')} and is not eligible for installation. "
            "Use the multipath device instead."
            for device in devices
            if _holds(device, disk)
        ]
    if disk.get("drive_type") != "Multipath":
        return []
    paths = paths_of(disk, raw)
    kinds = {path.get("drive_type") for path in paths}
    if not kinds & {"FC", "iSCSI"}:
        return ["Multipath device has path of unsupported type. It must be FC, iSCSI"]
    reasons = (
        ["Multipath device has paths of different types, but they must all be the same type"] if len(kinds) > 1 else []
    )
    if any(_iscsi_reasons(path, raw) for path in paths if path.get("drive_type") == "iSCSI"):
        reasons.append(_BAD_PATH)
    return reasons


def kept_inventory(
    raw: Inventory, least_gb: float, keep_virtual: bool, encode: Callable[..., str] = json.dumps
) -> tuple[Inventory, str]:
    """Return what `prepare` gives, and the same as compact JSON.

    Runs in a thread for large inventories; `encode` is then `aside.in_pieces`, which lets other threads run.
    """
    prepared = prepare(raw, least_gb, keep_virtual)
    return prepared, encode(prepared, ensure_ascii=False, separators=(",", ":"))


def eligible_disks(inventory: Inventory) -> list[Disk]:
    """Return the eligible disks, the default first.

    Order: bootable ones first, NVMe last, HDD first, small first, and by the SCSI address (`hctl`), as upstream. The
    host's installation disk is the first, unless a user selects another.
    """
    disks = [disk for disk in inventory.get("disks", ()) if disk.get("installation_eligibility", {}).get("eligible")]
    return sorted(
        disks,
        key=lambda disk: (
            not disk.get("bootable", False),
            str(disk.get("name", "")).startswith("nvme"),
            disk.get("drive_type") != "HDD",
            disk.get("size_bytes", 0),
            disk.get("hctl", ""),
        ),
    )


def find_disk(inventory: Inventory, ident: str) -> Disk | None:
    """Return the disk with an identifier of any kind (id, by-id, by-path, path), or None.

    Users and hints may name a disk by any of them. An empty identifier matches nothing. Eligible or not: the caller
    checks it.
    """
    for disk in inventory.get("disks", ()):
        if ident and ident in (disk.get("id"), disk.get("by_id"), disk.get("by_path"), disk.get("path")):
            return disk
    return None


def lun_arguments(inventory: Inventory, ident: str, *, addressed: bool) -> list[str]:
    """Return the kernel arguments by which an installed system finds the disk `ident` again, if that is a LUN or a multipath device.

    A LUN is in the firmware's table, and reached over the interface of its session. addressed: a user gave an `ip=` argument.
    """
    disk = find_disk(inventory, ident)
    kind = disk.get("drive_type") if disk else ""
    if disk is None or kind not in ("iSCSI", "Multipath"):
        return []
    found = ["rw", "rd.multipath=default"] if kind == "Multipath" else []
    for lun in [disk] if kind == "iSCSI" else paths_of(disk, inventory):
        if lun.get("drive_type") == "iSCSI":
            ip = lun.get("iscsi", {}).get("host_ip_address", "")
            nics = [] if addressed else [nic for nic in inventory.get("interfaces", ()) if has_address(nic, ip)]
            found += ["rd.iscsi.firmware=1", *(ip_argument(nic, "dhcp6" if ":" in ip else "dhcp") for nic in nics)]
    return list(dict.fromkeys(found))


def ip_argument(nic: Interface, kind: str) -> str:
    """Return the kernel argument for an interface: by MAC address, as the installed system may name it differently."""
    return f"ip={nic.get('mac_address', '').replace(':', '-') or nic.get('name')}:{kind}"


def ram_mib(inventory: Inventory) -> int:
    """Return the physical RAM in MiB, rounded down; 0 if it was not reported."""
    return int(inventory.get("memory", {}).get("physical_bytes", 0)) // 2**20


RAM_TOLERANCE_MIB = 100.0


def ram_fits(inventory: Inventory, needed_mib: float) -> bool:
    """Return whether the host has the RAM, with upstream's tolerance.

    It is 100 MiB, plus 2 % of the requirement if only /proc/meminfo has the size. `needed_mib` is in MiB. Firmware
    reserves some RAM, which is why machines with a nominal size of the minimum pass.
    """
    tolerance = RAM_TOLERANCE_MIB
    if inventory.get("memory", {}).get("physical_bytes_method") == "meminfo":
        tolerance += needed_mib * 0.02
    return ram_mib(inventory) + tolerance >= needed_mib


def fits(inventory: Inventory, requirement: Requirement) -> bool:
    """Return whether CPU, RAM and a disk meet a role's requirement.

    A missing key requires nothing. A disk counts if it is eligible and large enough (`disk_size_gb`, GB of 10^9 bytes);
    without eligible disks no host fits.
    """
    return (
        inventory.get("cpu", {}).get("count", 0) >= requirement.get("cpu_cores", 0)
        and ram_fits(inventory, requirement.get("ram_mib", 0))
        and any(
            disk.get("size_bytes", 0) >= requirement.get("disk_size_gb", 0) * 10**9
            for disk in eligible_disks(inventory)
        )
    )


def weight(inventory: Inventory) -> float:
    """Sort key of a host: the smallest sufficient hosts become control-plane nodes, those without GPU first.

    CPUs above 4 weigh 1 each, GiB of RAM above 16 weigh 0.1, GB of the largest eligible disk above 100 weigh 0.004. A
    GPU outweighs all of them. The unit has no meaning; negative values are possible.
    """
    largest = max((disk.get("size_bytes", 0) for disk in eligible_disks(inventory)), default=0)
    return float(
        (inventory.get("cpu", {}).get("count", 0) - 4)
        + 0.1 * (ram_mib(inventory) / 1024 - 16)
        + 0.004 * (largest / 10**9 - 100)
        + (10**6 if inventory.get("gpus") else 0)
    )


def has_mac(inventory: Inventory, mac: str) -> bool:
    return any(str(nic.get("mac_address", "")).lower() == mac.lower() for nic in inventory.get("interfaces", ()))


def assign_roles(
    hosts: Sequence[tuple[Host, Inventory]],
    requirement: Callable[[Host, str], Requirement],
    control_planes: int,
    bootstrap_mac: str = "",
) -> dict[str, str]:
    """Return role per host id: roles set by users stay, the others are assigned.

    `hosts` are (host, inventory) pairs; hosts without inventory are left out by the caller. `requirement` returns what a host
    needs to have a role.
    """
    roles: dict[str, str] = {}
    free: list[tuple[Host, Inventory]] = []
    for host, inventory in hosts:
        role = host.get("role", "auto-assign")
        if role != "auto-assign":
            roles[host["id"]] = role
        elif bootstrap_mac and has_mac(inventory, bootstrap_mac):
            roles[host["id"]] = "master"
        else:
            free.append((host, inventory))
    free.sort(key=lambda pair: (weight(pair[1]), pair[0]["id"]))
    fencing = any(host.get("fencing_credentials") for host, __ in hosts)
    arbiters = 1 if control_planes == 2 and not fencing else 0
    wanted = [
        ("master", control_planes - sum(role == "master" for role in roles.values())),
        ("arbiter", arbiters - sum(role == "arbiter" for role in roles.values())),
    ]
    for role, count in wanted:
        for pair in [pair for pair in free if fits(pair[1], requirement(pair[0], role))][: max(count, 0)]:
            roles[pair[0]["id"]] = role
            free.remove(pair)
    for host, __ in free:
        roles[host["id"]] = "worker"
    return roles
