"""`inventory`: what this machine is made of, from the kernel and the firmware's tables (model `inventory`)."""

from __future__ import annotations

import os
import socket
import struct
import sys
from pathlib import Path
from typing import Any, NamedTuple

from . import flags, host, network
from .disks import disks
from .program import dumps
from .program import main as program
from .protocol import Result
from .steps import Context

FORBIDDEN_HOSTNAMES = {
    "localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
}  # fmt: skip
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ROOT = Path("/")
# PCI base class and subclass: VGA, 3D, other display controllers; processing accelerators.
GPU_CLASSES = frozenset({"0300", "0302", "0380", "1200"})
FLAGS = (flags.Flag("gpu-config-file", "", "Configuration file for GPU discovery"),)


class GpuConfig(NamedTuple):
    """Hexadecimal PCI ids, put together: class; class and vendor; class, vendor and device."""

    classes: frozenset[str]
    vendors: frozenset[str] = frozenset()
    models: frozenset[str] = frozenset()


def cpu(root: Path = ROOT) -> dict[str, Any]:
    """`frequency` in MHz: the highest the processor does, else what it does now."""
    fields: dict[str, str] = {}
    count = 0
    for line in host.read(root / "proc/cpuinfo").splitlines():
        key, __, value = (part.strip() for part in line.partition(":"))
        count += key == "processor"
        fields.setdefault(key, value)
    top = host.read(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    return {
        "architecture": os.uname().machine,
        "count": count,
        "frequency": int(top) / 1000 if top.isdigit() else float(fields.get("cpu MHz") or 0),
        "flags": (fields.get("flags") or fields.get("Features") or "").split(),
        "model_name": fields.get("model name", ""),
    }


def smbios_memory(table: bytes) -> int:
    """Bytes of all memory devices (type 17) in an SMBIOS structure table. DMTF DSP0134, 7.18."""
    total, offset = 0, 0
    while offset + 4 <= len(table):
        kind, length = table[offset], table[offset + 1]
        if length < 4:
            break
        if kind == 17 and length >= 0x0E:
            (size,) = struct.unpack_from("<H", table, offset + 0x0C)
            if size == 0x7FFF and length >= 0x20:
                (extended,) = struct.unpack_from("<I", table, offset + 0x1C)
                total += (extended & 0x7FFFFFFF) << 20
            elif size != 0xFFFF:
                total += (size & 0x7FFF) << (10 if size & 0x8000 else 20)
        if kind == 127:
            break
        end = table.find(b"\0\0", offset + length)
        if end < 0:
            break
        offset = end + 2
    return total


def memory(root: Path = ROOT) -> dict[str, Any]:
    """Physical memory by the firmware's table (what dmidecode reads), the kernel's blocks, or what is usable."""
    usable = 0
    for line in host.read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            usable = int(line.split()[1]) * 1024
    try:
        physical = smbios_memory((root / "sys/firmware/dmi/tables/DMI").read_bytes())
    except OSError:
        physical = 0
    method = "dmidecode"
    if not physical:
        blocks = root / "sys/devices/system/memory"
        size = int(host.read(blocks / "block_size_bytes") or "0", 16)
        physical = size * sum(host.read(path / "online") == "1" for path in blocks.glob("memory[0-9]*"))
        method = "ghw"
    if not physical:
        physical, method = usable, "meminfo"
    return {"physical_bytes": physical, "physical_bytes_method": method, "usable_bytes": usable}


def boot(root: Path = ROOT) -> dict[str, Any]:
    command_line = host.read(root / "proc/cmdline")
    arguments = command_line.split()
    sysroot = next((mount.source for mount in host.mounts(root) if mount.target == "/sysroot"), "")
    if sysroot:
        device = "ephemeral" if sysroot.startswith("/dev/loop") else "persistent"
    else:
        device = "ephemeral" if any(word.startswith("coreos.live") for word in arguments) else ""
    return {
        "command_line": command_line,
        "current_boot_mode": "uefi" if (root / "sys/firmware/efi").is_dir() else "bios",
        "pxe_interface": next((word.removeprefix("BOOTIF=") for word in arguments if word.startswith("BOOTIF=")), ""),
        "secure_boot_state": secure_boot(root),
        "device_type": device,
    }


def secure_boot(root: Path = ROOT) -> str:
    """An EFI variable: four bytes of attributes, then one of value."""
    try:
        content = (root / SECURE_BOOT).read_bytes()
    except FileNotFoundError:
        return "NotSupported"
    except OSError:
        return "Unknown"
    return {b"\0": "Disabled", b"\1": "Enabled"}.get(content[4:], "Unknown")


def system_vendor(root: Path = ROOT, cpu_flags: list[str] | None = None) -> dict[str, Any]:
    dmi = root / "sys/class/dmi/id"

    def told(name: str) -> str:
        """As the namesake has it: a firmware without tables is unknown, which is something else than an empty string in one."""
        return host.read(dmi / name) if (dmi / name).exists() else "unknown"

    product, maker = told("product_name"), told("sys_vendor")
    if host.read(dmi / "product_family") in ("oVirt", "RHV"):
        product = "oVirt"
    if host.read(dmi / "chassis_asset_tag") == "OracleCloud.com":
        maker = "OracleCloud.com"
    # A hypervisor tells its guests by a processor flag; where there is none, systemd knows more ways.
    virtual = "hypervisor" in (cpu_flags or ()) or host.run(["systemd-detect-virt", "--vm"], 10).exit_code == 0
    return {
        "manufacturer": maker,
        "product_name": product,
        "serial_number": told("product_serial"),
        "virtual": virtual,
    }


def tpm(root: Path = ROOT) -> str:
    major = host.read(root / "sys/class/tpm/tpm0/tpm_version_major")
    return {"": "none", "1": "1.2", "2": "2.0"}.get(major, major)


def gpu_config(path: Path | None) -> GpuConfig:
    """What counts as a GPU: the lists of a YAML file (`classes:`, `vendors:`, `models:`, each with `- "0302 10de"` lines), or by default
    display controllers and processing accelerators. ValueError names what is wrong in the file; OSError: it cannot be read.
    """
    if path is None:
        return GpuConfig(GPU_CLASSES)
    lists: dict[str, set[str]] = {"classes": set(), "vendors": set(), "models": set()}
    here = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.partition("#")[0].strip()
        if text.startswith("- ") and here:
            lists[here].add(text[2:].strip(" \"'").replace(" ", "").lower())
        elif text.endswith(":") and text[:-1] in lists:
            here = text[:-1]
        elif text:
            raise ValueError(f"{path}, line {number}: {text!r}: want one of {', '.join(lists)}, or - PCI-ID")
    return GpuConfig(*(frozenset(values) for values in lists.values()))


def gpus(root: Path = ROOT, config: GpuConfig | None = None) -> list[dict[str, str]]:
    """Devices on the PCI bus whose class, class and vendor, or class, vendor and device are in the configuration."""
    wanted, found = config or GpuConfig(GPU_CLASSES), []
    for address in host.names(root / "sys/bus/pci/devices"):
        device = root / "sys/bus/pci/devices" / address
        kind, vendor, model = (host.read(device / key).removeprefix("0x") for key in ("class", "vendor", "device"))
        kind = kind[:4]
        if kind in wanted.classes or kind + vendor in wanted.vendors or kind + vendor + model in wanted.models:
            found.append({"address": address, "vendor_id": vendor, "device_id": model, "vendor": "", "name": ""})
    return found


def bmc_address(root: Path = ROOT) -> str:
    """The address that the machine's own BMC tells through IPMI; 0.0.0.0 when it has none."""
    if any((root / "dev").glob("ipmi*")):
        for channel in range(1, 12):
            for line in host.run(["ipmitool", "lan", "print", str(channel)], 10).output.splitlines():
                key, __, value = (part.strip() for part in line.partition(":"))
                if key == "IP Address" and value != "0.0.0.0":
                    return value
    return "0.0.0.0"


def interfaces(root: Path = ROOT) -> list[dict[str, Any]]:
    found = []
    for nic in network.nics():
        sys = root / "sys/class/net" / nic.name
        speed = host.read(sys / "speed")
        found.append(
            {
                "name": nic.name,
                "mac_address": nic.mac,
                "type": nic.kind,
                "mtu": nic.mtu,
                "speed_mbps": int(speed) if speed.lstrip("-").isdigit() else 0,
                "has_carrier": nic.carrier,
                "flags": nic.flags,
                "product": host.read(sys / "device/device"),
                "vendor": host.read(sys / "device/vendor"),
                "biosdevname": "",
                "ipv4_addresses": [str(address) for address in nic.outgoing if address.version == 4],
                "ipv6_addresses": [str(address) for address in nic.outgoing if address.version == 6],
            }
        )
    return found


def hostname(nics: list[dict[str, Any]]) -> str:
    """The host's name; when that is none, the MAC of the first real interface with a global address."""
    name = socket.gethostname().strip()
    if name not in FORBIDDEN_HOSTNAMES:
        return name
    for nic in sorted(nics, key=lambda nic: nic["name"]):
        addresses = [*nic["ipv4_addresses"], *nic["ipv6_addresses"]]
        usable = any(not address.startswith(("127.", "::1/")) for address in addresses)
        if nic["type"] in ("physical", "vlan", "bond") and nic["mac_address"] and usable:
            return str(nic["mac_address"]).replace(":", "-").lower()
    return name


def collect(root: Path = ROOT, disk_min_bytes: int = 0, gpu: GpuConfig | None = None) -> dict[str, Any]:
    """The whole inventory. `gpu`: what counts as one. `root`: where /sys, /proc, /dev and /run are; the network is always that of this process."""
    nics, processor = interfaces(root), cpu(root)
    return {
        "bmc_address": bmc_address(root),
        "bmc_v6address": "::/0",
        "boot": boot(root),
        "cpu": processor,
        "disks": disks(root, disk_min_bytes),
        "gpus": gpus(root, gpu),
        "hostname": hostname(nics),
        "interfaces": nics,
        "memory": memory(root),
        "routes": network.routes(),
        "system_vendor": system_vendor(root, processor["flags"]),
        "tpm_version": tpm(root),
    }


def limited(inventory: dict[str, Any], most: int) -> str:
    """The inventory as JSON, at most `most` bytes long (0: any): disks go first, and `truncation` says so."""
    text = dumps(inventory)
    if not most or len(text) <= most:
        return text
    disks_left = list(inventory["disks"])
    while disks_left and len(text) > most:
        disks_left.pop()
        truncation = {"type": "partial", "reasons": [f"disks cut to {len(disks_left)} to keep the output below {most} bytes"]}
        text = dumps({**inventory, "disks": disks_left, "truncation": truncation})
    return text


def step(args: list[str], context: Context) -> Result:
    """args: the host's id, which is not needed, and limits: --output-max-size=BYTES, --disk-min-size=BYTES."""
    limits = {"--output-max-size": 0, "--disk-min-size": 0}
    for word in args[1:]:
        name, __, value = word.partition("=")
        if name not in limits or not value.isdigit():
            raise ValueError(f"inventory: unknown argument {word}")
        limits[name] = int(value)
    return Result(limited(collect(disk_min_bytes=limits["--disk-min-size"]), limits["--output-max-size"]))


def main(argv: list[str] | None = None) -> int:
    options = flags.parse("inventory", (*flags.logging_flags(text=False), *FLAGS), argv)
    try:
        config = gpu_config(Path(options.gpu_config_file) if options.gpu_config_file else None)
    except (OSError, ValueError) as error:
        print(f"Error getting GPU configuration: {error}; using default GPU discovery configuration", file=sys.stderr)
        config = gpu_config(None)
    return program("inventory", lambda args, context: Result(dumps(collect(gpu=config))), argv, arguments=0, extra=FLAGS)


if __name__ == "__main__":
    raise SystemExit(main())
