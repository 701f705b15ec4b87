"""Checks of the nodes' machines against a plan: host name, size, UUID, firmware, secure boot, TPM, root disk, leases, way out.

Each node is asked once: a login takes an emulated machine seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..documents import load_json
from ..plan import disks
from ..plan.machines import Disk, Node, address_of, in_network, interfaces
from ..plan.model import Plan
from . import way_out
from .links import Ask, Finding, is_static

_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
COMMAND = (
    "echo name $(hostname); "
    "echo firmware $(test -d /sys/firmware/efi && echo uefi || echo bios); "
    f"echo secure $(od -An -tu1 -j4 -N1 {_SECURE_BOOT} 2>/dev/null); "
    "echo iscsi $(cat /sys/class/iscsi_session/*/targetname 2>/dev/null | sort -u); "
    "echo paths $(sudo multipathd show paths raw format %m:%t:%o:%T 2>/dev/null); "
    "echo tpm $(cat /sys/class/tpm/tpm0/tpm_version_major 2>/dev/null); "
    "echo vcpus $(grep -c ^processor /proc/cpuinfo); "
    "echo memory $(grep ^MemTotal: /proc/meminfo); "
    "echo uuid $(sudo cat /sys/class/dmi/id/product_uuid 2>/dev/null); "
    "echo leases $(ip -oneline address show dynamic | sed -nE 's,.* ([0-9a-f.:]+)/[0-9]+ .* valid_lft ([0-9]+)sec.*,\\1=\\2,p'); "
    "lsblk --json --bytes --output NAME,TYPE,TRAN,SERIAL,SIZE,MOUNTPOINTS"
)

_ACTIVE = "active:running:ready"
"""A path that carries I/O: its states in the kernel's device-mapper, of the SCSI device, and of multipathd's checker."""

KEPT = 8
"""The kernel keeps at most this part of the memory for itself, an eighth: in the lab's machines it is between an 18th and a 24th."""

RENEWAL_SECONDS = 30
"""A lease is renewed when half of its time is over, or this much later."""


class NodeHardware(NamedTuple):
    """What a node has; a USB stick is not one of its disks. problem: why that is not known.

    firmware: `uefi` or `bios`; secure_boot, tpm: as messages; vcpus, memory_kib: 0 where they are not known; uuid: in small letters;
    disk: serial number of the disk with the boot file system, or why there is none; lun: name of the iSCSI target whose LUN it is, or
    nothing; paths: number of its active paths if it is a multipath device, else 0; disks: size in bytes and bus of all, sorted; leases: for
    how many seconds each leased address is still valid; out: the answer to `way_out.question`.
    """

    name: str = ""
    firmware: str = ""
    secure_boot: str = ""
    tpm: str = ""
    vcpus: int = 0
    memory_kib: int = 0
    uuid: str = ""
    disk: str = ""
    lun: str = ""
    paths: int = 0
    disks: tuple[tuple[int, str], ...] = ()
    leases: Mapping[str, int] = MappingProxyType({})
    out: str = ""
    problem: str = ""


def look(plan: Plan, node: Node, ask: Ask) -> NodeHardware:
    """Return what a node has.

    ask: runs `COMMAND` and the question for the way out on the node by its first address in the machine network. An error
    of it, or output of another form, is `problem`.
    """
    address = address_of(node, plan["networks"])
    try:
        return read(ask(address, way_out.question(plan) + COMMAND), node["name"])
    except (OSError, ValueError, TypeError, KeyError) as error:
        return NodeHardware(problem=f"{error}")


def read(text: str, name: str) -> NodeHardware:
    """Read the output of `COMMAND` on the node `name`; ValueError for text of another form.

    Lines of a word and its value, then the JSON of lsblk(8).
    """
    lines, brace, document = text.partition("{")
    words = dict(re.findall(r"^(\w+) ?(.*)$", lines, re.MULTILINE))
    missing = {"name", "firmware", "secure", "tpm", "vcpus", "memory", "uuid"} - words.keys()
    if missing or not brace:
        raise ValueError(f"{name} prints no {', '.join(sorted(missing)) or 'disks'}: {text.strip()[:200] or 'nothing'}")
    there = [
        one
        for one in load_json(brace + document, name=f"lsblk on {name}")["blockdevices"]
        if one["type"] == "disk" and one.get("tran") != "usb"
    ]
    root = next((one for one in there if _mounted(one, "/boot")), None)
    devices = {_multipath(one) or one["name"]: one for one in there}
    return NodeHardware(
        name=words["name"].strip(),
        firmware=words["firmware"].strip(),
        secure_boot={"1": "enabled", "0": "disabled"}.get(words["secure"].strip(), "not supported"),
        tpm={"2": "2.0", "1": "1.2"}.get(words["tpm"].strip(), "none"),
        vcpus=_number(words["vcpus"]),
        memory_kib=_number(words["memory"]),
        uuid=words["uuid"].strip().lower(),
        disk=str((root or {}).get("serial") or "no disk with /boot"),
        lun=words.get("iscsi", "").strip() if (root or {}).get("tran") == "iscsi" else "",
        paths=words.get("paths", "").split().count(f"{_multipath(root or {})}:{_ACTIVE}"),
        disks=tuple(sorted((int(one["size"]), _bus(one)) for one in devices.values())),
        leases={address: int(left) for address, left in re.findall(r"(\S+)=(\d{1,10})", words.get("leases", ""))},
        out=words.get("out", "").strip(),
    )


def _number(text: str) -> int:
    """Return the first number in a line; 0 without one."""
    found = re.search(r"\d{1,18}", text)
    return int(found[0]) if found else 0


def _multipath(disk: Mapping[str, Any]) -> str:
    """Return the name of the multipath device that a disk is a path of, or nothing."""
    return next((str(child["name"]) for child in disk.get("children") or [] if child["type"] == "mpath"), "")


def _bus(disk: Mapping[str, Any]) -> str:
    """Return the bus of a disk by its name in a profile; lsblk(8) knows no transport of virtio-scsi's."""
    transport = str(disk.get("tran") or ("virtio" if str(disk["name"]).startswith("vd") else "scsi"))
    return {"ata": "sata"}.get(transport, transport)


def _mounted(device: Mapping[str, Any], place: str) -> bool:
    return place in (device.get("mountpoints") or []) or any(
        _mounted(child, place) for child in device.get("children") or []
    )


def findings(node: Node, seen: NodeHardware) -> Iterator[Finding]:
    """Yield name, size, UUID, firmware, TPM, disks, and the disk that was installed to, as planned and as found.

    seen: of `look`, without a problem. The last is compared where the plan has root device hints. Of an existing machine the plan knows the
    name, and at most the serial number of the disk.
    """
    yield Finding("host name", node["name"], seen.name.split(".")[0])
    if node.get("bare_metal"):
        if serial := disks.given_hints(node.get("root_device_hints")).get("serial_number"):
            yield Finding("root disk", serial, seen.disk)
        return
    yield Finding("vCPUs", str(node["vcpus"]), str(seen.vcpus or "unknown"))
    yield Finding("memory", _mib(node["memory_mib"]), _memory(node["memory_mib"], seen.memory_kib))
    yield Finding("UUID", node["uuid"].lower(), seen.uuid or "unknown")
    yield Finding("firmware", node["firmware"], seen.firmware)
    if node.get("secure_boot"):
        yield Finding("secure boot", "enabled", seen.secure_boot)
    yield Finding("TPM", "2.0" if node["tpm"] else "none", seen.tpm)
    planned = sorted((disk["size_gib"] * disks.GIB, disk["bus"]) for disk in node["disks"])
    yield Finding("disks", _listed(planned), _listed(seen.disks))
    if iqn := node["disks"][0].get("iqn"):
        yield Finding("root disk", f"LUN of {iqn}", f"LUN of {seen.lun}" if seen.lun else f"local disk {seen.disk}")
        if paths := node["disks"][0].get("paths"):
            yield Finding("active paths to the root disk", str(paths), str(seen.paths))
        return
    wanted = disks.matching_disks(node["disks"], node["root_device"], node.get("root_device_hints"))
    if wanted is not None:
        by_serial = {disk["serial"]: disk for disk in node["disks"]}
        found = by_serial.get(seen.disk)
        named = " or ".join(map(disks.disk_text, wanted)) or "none"
        yield Finding(
            "root disk", named if found not in wanted else _named(found), _named(found) if found else seen.disk
        )


def leases(plan: Plan, node: Node, seen: NodeHardware) -> Iterator[Finding]:
    """Yield for how long the addresses of a node are leased; seen: of `look`, without a problem.

    A kernel has the time that is left, of which a renewal leaves about half. Nothing of static addresses, of an existing machine, and of one that
    boots from a LUN, whose firmware has the lease.
    """
    if node.get("bare_metal") or node["disks"][0].get("iqn") or is_static(plan, node):
        return
    own = {one["network"] for one in interfaces(node)}
    for network in plan["networks"]:
        held = in_network(node, network["name"])["addresses"] if network["name"] in own else []
        dhcp = {subnet["family"]: subnet["dhcp"] for subnet in network["subnets"]}
        for address in held:
            if served := dhcp[address["family"]]:
                left, seconds = seen.leases.get(address["ip"], 0), served["lease_minutes"] * 60
                expected = f"{served['lease_minutes']} minutes"
                found = f"{left / 60:.1f} minutes left" if left else "no lease"
                is_right = seconds / 2 - RENEWAL_SECONDS <= left <= seconds
                yield Finding(f"lease of {address['ip']}", expected, expected if is_right else found)


def _memory(planned: int, kib: int) -> str:
    """Describe the memory that a kernel has: the planned one, unless it is more, or less by more than what a kernel keeps."""
    there = kib / 1024
    if planned - planned / KEPT <= there <= planned:
        return _mib(planned)
    return _mib(math.ceil(there) if there > planned else int(there)) if kib else "unknown"


def _mib(size: int) -> str:
    return f"{size} MiB"


def _named(disk: Disk | None) -> str:
    return disks.disk_text(disk) if disk else "none"


def _listed(found: Iterable[tuple[int, str]]) -> str:
    return ", ".join(f"{size / disks.GIB:g} GiB {bus}" for size, bus in found) or "none"
