"""Nodes of a plan as libvirt domains (https://libvirt.org/formatdomain.html).

Boot order is disk, then medium: an empty disk falls through to the agent ISO, a written one boots. With one disk it is in `<os>`.
With several, any of which may be installed to, and with a USB stick, it is on the devices: `<os>` only boots the first disk.
A LUN is not a device of the domain: the NIC in its network boots, always.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LabError
from ..plan.iscsi import NETWORK
from ..plan.machines import Disk, Nic, Node
from ..plan.modes import Medium
from ..plan.outside import Machine
from ..state.owner import Owner
from . import LOGS
from .connection import lookup
from .xmldiff import difference, element, text, unified_diff

if TYPE_CHECKING:
    import libvirt

METADATA = "{https://agentlab.test/xmlns/1.0}node"
# What RHEL 9 needs (x86-64-v2). `-cpu max` costs TCG half of its speed.
TCG_CPU = "Nehalem"
AGENT_CHANNEL = "org.qemu.guest_agent.0"  # by which libvirt knows the QEMU guest agent
_COMPARED = {("scsi", "virtio-scsi"), ("usb", "none"), ("usb", "qemu-xhci")}
UNDEFINE = 4 | 2 | 1 | 16  # NVRAM | SNAPSHOTS_METADATA | MANAGED_SAVE | CHECKPOINTS_METADATA


def render(
    node: Node | Machine,
    owner: Owner,
    *,
    pool: str,
    domain_type: str,
    console: Path,
    medium: Medium = "cdrom",
    medium_first: bool = False,
    clock_offset: int = 0,
    emulator: Path | None = None,
) -> ET.Element:
    """Return the definition of `node` (an entry of a plan's `nodes` or `machines`) of the cluster of `owner`, with its mark.

    pool: where its disks are; domain_type: kvm or qemu; console: the file that gets its serial console; medium: what an
    empty disk falls through to; medium_first: whether that comes before the disk; clock_offset: seconds that the machine's
    clock is ahead of the host's; emulator: started as QEMU, None for libvirt's default.
    """
    disks = [disk for disk in node["disks"] if disk["bus"] != "iscsi"]
    scsi = any(disk["bus"] == "scsi" for disk in disks)
    boot = ["hd", medium]
    ordered = medium in ("usb", "lun") or len(disks) > 1
    first = 1 + medium_first
    maker = node.get("manufacturer")
    role = str(node.get("role", "outside"))
    return element(
        "domain",
        {"type": domain_type},
        element("name", text=node["domain"]),
        element("uuid", text=node["uuid"]),
        element(
            "metadata",
            None,
            element(METADATA, {"cluster": owner.cluster, "mark": owner.mark, "name": node["name"], "role": role}),
        ),
        element("memory", {"unit": "KiB"}, text=node["memory_mib"] * 1024),
        element("vcpu", text=node["vcpus"]),
        element(
            "os",
            {"firmware": "efi"} if node["firmware"] == "uefi" else None,
            element("type", {"arch": "x86_64", "machine": "q35"}, text="hvm"),
            _firmware(bool(node.get("secure_boot"))) if node["firmware"] == "uefi" else None,
            *(element("boot", {"dev": device}) for device in (reversed(boot) if medium_first else boot) if not ordered),
            element("smbios", {"mode": "sysinfo"}) if maker else None,
        ),
        element(
            "sysinfo",
            {"type": "smbios"},
            element("system", None, element("entry", {"name": "manufacturer"}, text=maker)),
        )
        if maker
        else None,
        element(
            "features",
            None,
            element("acpi"),
            element("apic"),
            # Only the firmware may write its variables.
            element("smm", {"state": "on"}) if node.get("secure_boot") else None,
            *_translation(domain_type),
        ),
        _cpu(domain_type),
        element(
            "clock",
            {"offset": "variable", "adjustment": clock_offset, "basis": "utc"} if clock_offset else {"offset": "utc"},
        ),
        element("on_poweroff", text="destroy"),
        element("on_reboot", text="restart"),
        element("on_crash", text="destroy"),
        element(
            "devices",
            None,
            element("emulator", text=emulator) if emulator else None,
            *(_disk(disk, pool, order if ordered else None) for order, disk in enumerate(disks, first)),
            element("controller", {"type": "scsi", "index": 0, "model": "virtio-scsi"}) if scsi else None,
            element("controller", {"type": "usb", "model": "qemu-xhci" if medium == "usb" else "none"}),
            *(
                _interface(nic, _free(first, len(disks)) if ordered and _boots(nic, node, medium) else None)
                for nic in node["nics"]
            ),
            element("serial", {"type": "pty"}, element("log", {"file": console, "append": "on"})),
            # The guest agent's, by which a restored machine gets the time.
            element("channel", {"type": "unix"}, element("target", {"type": "virtio", "name": AGENT_CHANNEL})),
            element("memballoon", {"model": "none"}),
            element("rng", {"model": "virtio"}, element("backend", {"model": "random"}, text="/dev/urandom")),
            element("tpm", {"model": "tpm-crb"}, element("backend", {"type": "emulator", "version": "2.0"}))
            if node["tpm"]
            else None,
            element("video", None, element("model", {"type": "vga"})) if node.get("screen") else None,
        ),
    )


def apply(connection: libvirt.virConnect, wanted: Sequence[ET.Element], *, check: bool = False) -> list[dict[str, Any]]:
    """Define domains so that they are as `wanted`; return a difference (`before`, `after`) for each that was not.

    Raises `LabError` for a domain of that name that another cluster owns, and for a change of a running machine.
    """
    changes = []
    for tree in wanted:
        name, ours = tree.findtext("name"), tree.findtext("uuid")
        domain = lookup(connection, "lookupByName", str(name))
        if domain is not None and (domain.UUIDString() != ours or mark_of(domain) != _mark(tree)):
            raise LabError(
                f"domain {name} exists in libvirt and was not made by this cluster: remove it, or choose another CLUSTER"
            )
        diff = difference(definition_of(domain) if domain is not None else None, tree)
        if not diff:
            continue
        if domain is not None and domain.isActive():
            raise LabError(f"domain {name} would change while it runs: destroy the cluster first\n{unified_diff(diff)}")
        changes.append({**diff, "name": name})
        if not check:
            connection.defineXML(text(tree))
    return changes


def _devices(tree: ET.Element) -> ET.Element:
    found = tree.find("devices")
    if found is None:
        raise LabError(f"libvirt gave a domain without devices: {ET.tostring(tree, encoding='unicode')[:200]}")
    return found


def definition_of(domain: libvirt.virDomain) -> ET.Element:
    """Return the persistent definition without parts that are not compared: the medium, and the machine type's version.

    `domain` is libvirt's object. The version of the machine type follows the QEMU of the day it was defined, and the medium
    changes with each boot.
    """
    tree = ET.fromstring(domain.XMLDesc(2))  # VIR_DOMAIN_XML_INACTIVE
    devices = _devices(tree)
    for disk in _media(devices):
        devices.remove(disk)
    for controller in devices.findall("controller"):
        if (controller.get("type"), controller.get("model")) not in _COMPARED:
            devices.remove(controller)
    machine = tree.find("os/type")
    if machine is not None and machine.get("machine", "").startswith("pc-q35"):
        machine.set("machine", "q35")
    for feature in tree.findall("os/firmware/feature"):
        if feature.get("name") != "secure-boot" and feature.get("enabled") == "no":
            tree.find("os/firmware").remove(feature)  # type: ignore[union-attr]
    return tree


def remove(connection: libvirt.virConnect, name: str, mark: str) -> bool:
    """Stop and undefine domain `name` if it carries `mark`, with its NVRAM, TPM state and logs; return whether it was there.

    Disks stay: they belong to the pool (`storage.remove`). A domain without this mark is left alone.
    """
    domain = lookup(connection, "lookupByName", name)
    if domain is None or mark_of(domain) != mark:
        return False
    if domain.isActive():
        domain.destroy()
    if domain.isPersistent():
        domain.undefineFlags(UNDEFINE)
    for log in [LOGS / f"{name}.log", *LOGS.glob(f"{name}.log.*")]:
        log.unlink(missing_ok=True)
    return True


def is_medium(disk: ET.Element) -> bool:
    """Whether a `disk` of a domain's definition is a CD or a USB stick, which `set_media` puts in and takes away."""
    return disk.get("device") == "cdrom" or any(target.get("bus") == "usb" for target in disk.findall("target"))


def _media(devices: ET.Element) -> list[ET.Element]:
    return [disk for disk in devices.findall("disk") if is_medium(disk)]


def set_media(connection: libvirt.virConnect, name: str, images: Sequence[str], medium: Medium = "cdrom") -> bool:
    """Put `images` into domain `name` as CDs or USB sticks, for the next cold start; return whether that changed it.

    `images` are paths on the hypervisor, of which the first is booted; without any, the drives are taken away. The running
    machine, if there is one, keeps what it has.
    """
    tree = ET.fromstring(connection.lookupByName(name).XMLDesc(2))
    devices = _devices(tree)
    present = _media(devices)
    if [source.get("file") for disk in present for source in disk.findall("source")] == [*images]:
        return False
    for disk in present:
        devices.remove(disk)
    buses = [target.get("bus", "") for target in devices.findall("disk/target")]
    bus = "usb" if medium == "usb" else "scsi" if "scsi" in buses else "sata"
    orders = {int(boot.get("order", "0")) for boot in devices.findall("*/boot")}
    order = element("boot", {"order": min({*range(1, len(orders) + 2)} - orders)}) if orders else None
    for number, image in enumerate(images):
        unit = {"type": "drive", "controller": 0, "bus": 0, "target": 0, "unit": buses.count(bus) + number}
        devices.append(
            element(
                "disk",
                {"type": "file", "device": "disk" if bus == "usb" else "cdrom"},
                element("driver", {"name": "qemu", "type": "raw"}),
                element("source", {"file": image}),
                element(
                    "target", {"dev": f"sd{'xyz'[number]}", "bus": bus, **({"removable": "on"} if bus == "usb" else {})}
                ),
                element("readonly"),
                order if number == 0 else None,
                element("address", unit) if bus != "usb" else None,
            )
        )
    connection.defineXML(ET.tostring(tree, encoding="unicode"))
    return True


def mark_of(domain: libvirt.virDomain) -> str | None:
    """Return the mark of the cluster that made `domain` (`state.owner`), or None.

    It is in the metadata of the persistent definition. None for a domain that agentlab has not made.
    """
    return _mark(ET.fromstring(domain.XMLDesc(2)))


def _mark(tree: ET.Element) -> str | None:
    metadata = tree.find(f"metadata/{METADATA}")
    return None if metadata is None else metadata.get("mark")


def _firmware(secure: bool) -> ET.Element:
    names = ["secure-boot", "enrolled-keys"] if secure else ["secure-boot"]
    enabled = "yes" if secure else "no"
    return element("firmware", None, *(element("feature", {"enabled": enabled, "name": name}) for name in names))


def _translation(domain_type: str) -> list[ET.Element]:
    # A small cache of translated code: leftovers of the live system in it make the first boot from disk 50 % slower.
    if domain_type == "kvm":
        return []
    return [element("tcg", None, element("tb-cache", {"unit": "KiB"}, text=131072))]


def _cpu(domain_type: str) -> ET.Element:
    if domain_type == "kvm":
        return element("cpu", {"mode": "host-passthrough", "check": "none"})
    return element(
        "cpu",
        {"mode": "custom", "match": "exact", "check": "none"},
        element("model", {"fallback": "forbid"}, text=TCG_CPU),
    )


def _disk(disk: Disk, pool: str, order: int | None) -> ET.Element:
    return element(
        "disk",
        {"type": "volume", "device": "disk"},
        element("driver", {"name": "qemu", "type": "qcow2", "cache": "unsafe", "discard": "unmap"}),
        element("source", {"pool": pool, "volume": disk["name"]}),
        element("target", {"dev": disk["target"], "bus": disk["bus"], **_rotation(disk)}),
        element("serial", text=disk["serial"]),
        element("wwn", text=str(disk["wwn"]).removeprefix("0x")) if disk.get("wwn") else None,
        element("vendor", text=disk["vendor"]) if disk.get("vendor") else None,
        element("product", text=disk["model"]) if disk.get("model") else None,
        element("boot", {"order": order}) if order else None,
    )


def _rotation(disk: Disk) -> dict[str, int]:
    """What a disk reports: rotations per minute, or 1 for none (SCSI Block Commands, Block Device Characteristics)."""
    rotational = disk.get("rotational")
    return {} if rotational is None else {"rotation_rate": 7200 if rotational else 1}


def _free(first: int, disks: int) -> int:
    """Boot order of the medium: before the disks, or behind them."""
    return 1 if first > 1 else disks + 1


def _boots(nic: Nic, node: Node | Machine, medium: Medium) -> bool:
    """Return whether the machine boots from this NIC, if from one."""
    return nic["network"] == NETWORK if medium == "lun" else medium == "network" and nic is node["nics"][0]


def _interface(nic: Nic, order: int | None) -> ET.Element:
    port = nic.get("port")
    if port:
        # A switch in user space reads what QEMU writes to a tap, so checksums must be complete: QEMU computes those of an
        # e1000, and leaves those of e1000e and virtio to the host's kernel. And LACP needs a NIC that has a speed and a
        # duplex mode, unlike libvirt's virtio.
        return element(
            "interface",
            {"type": "ethernet"},
            element("mac", {"address": nic["mac"]}),
            element("target", {"dev": port, "managed": "no"}),
            element("model", {"type": "e1000"}),
            element("boot", {"order": order}) if order else None,
        )
    return element(
        "interface",
        {"type": "network"},
        element("mac", {"address": nic["mac"]}),
        element("source", {"network": nic["network"]}),
        element("model", {"type": "virtio"}),
        element("boot", {"order": order}) if order else None,
    )
