"""`inventory`: hardware of this machine, from the kernel and the firmware's tables (model `inventory`)."""

from __future__ import annotations

import os
import re
import shutil
import socket
import struct
import sys
from pathlib import Path
from typing import Any

from . import flags, gpus, host, network
from .disks import disks
from .program import main as program
from .program import marshal
from .protocol import Result
from .steps import Context

FORBIDDEN_HOSTNAMES = {
    "localhost", "localhost.localdomain", "localhost4", "localhost4.localdomain4", "localhost6", "localhost6.localdomain6",
}  # fmt: skip
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
ROOT = Path("/")
IPV4 = re.compile(r"\d{1,3}(\.\d{1,3}){3}", re.ASCII)
LIMITS = (
    flags.Flag(
        "output-max-size", 0, "Maximum size of the output in bytes, 0: unlimited; disks that do not fit are omitted"
    ),
    flags.Flag("disk-min-size", 0, "Minimum size of a reported disk in bytes"),
)
FLAGS = (flags.Flag("gpu-config-file", "", "Configuration file for GPU discovery"), *LIMITS)


def cpu(root: Path = ROOT) -> dict[str, Any]:
    """Return the processors, as the model `cpu` of the service's API.

    `count` is what the kernel's list of present ones has, or the number in cpuinfo; `frequency` is in MHz: the maximum,
    or the current one. What a virtual /proc or /sys lacks is empty or 0.
    """
    fields: dict[str, str] = {}
    count = 0
    for line in host.read(root / "proc/cpuinfo").splitlines():
        key, __, value = (part.strip() for part in line.partition(":"))
        count += key == "processor"
        fields.setdefault(key, value)
    count = count_listed(host.read(root / "sys/devices/system/cpu/present")) or count
    top = host.read(root / "sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    return {
        "architecture": os.uname().machine,
        "count": count,
        "frequency": int(top) / 1000 if top.isdigit() else number(fields.get("cpu MHz", "")),
        "flags": (fields.get("flags") or fields.get("Features") or "").split(),
        "model_name": next((fields[key] for key in ("model name", "cpu", "machine") if fields.get(key)), ""),
    }


def count_listed(text: str) -> int:
    """Return how many numbers a list of the kernel, such as `0-3,8`, has; 0 if it is invalid."""
    total = 0
    for part in filter(None, text.split(",")):
        first, __, last = part.partition("-")
        if not first.isdigit() or not (last or first).isdigit():
            return 0
        total += int(last or first) - int(first) + 1
    return total


def number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def smbios_memory(table: bytes) -> int:
    """Return the bytes of all memory devices (type 17) in an SMBIOS structure table.

    table: /sys/firmware/dmi/tables/DMI; what comes after a damaged structure is not counted. Source: DMTF DSP0134,
    7.18.
    """
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
    """Return the memory in bytes, as the model `memory` of the service's API.

    `physical_bytes_method` is where it was found: `dmidecode` (the firmware's table), `ghw` (the kernel's blocks), or
    `meminfo` (nothing else was there: it is the usable memory).
    """
    usable = 0
    for line in host.read(root / "proc/meminfo").splitlines():
        if found := re.match(r"MemTotal:\s+(\d+)", line):
            usable = int(found[1]) * 1024
    try:
        physical = smbios_memory((root / "sys/firmware/dmi/tables/DMI").read_bytes())
    except OSError:
        physical = 0
    method = "dmidecode"
    if not physical:
        blocks = root / "sys/devices/system/memory"
        size = host.read(blocks / "block_size_bytes")
        online = sum(host.read(path / "online") == "1" for path in blocks.glob("memory[0-9]*"))
        physical = online * (int(size, 16) if re.fullmatch(r"[0-9a-fA-F]+", size) else 0)
        method = "ghw"
    if not physical:
        physical, method = usable, "meminfo"
    return {"physical_bytes": physical, "physical_bytes_method": method, "usable_bytes": usable}


def boot(root: Path = ROOT) -> dict[str, Any]:
    """Return how the machine has booted, as the model `boot` of the service's API.

    `device_type` is `ephemeral` for a live system, `persistent` for an installed one, empty for any other;
    `pxe_interface` is the value of BOOTIF, the MAC of the network card that loaded the kernel.
    """
    command_line = host.read(root / "proc/cmdline")
    arguments = command_line.split()
    sysroot = next((mount.source for mount in host.mounts(root) if mount.target == "/sysroot"), "")
    if sysroot:
        device = "ephemeral" if sysroot.startswith("/dev/loop") else "persistent"
    else:
        device = "ephemeral" if any(word.startswith("coreos.live") for word in arguments) else ""
    return {
        "command_line": command_line and f"{command_line}\n",
        "current_boot_mode": "uefi" if (root / "sys/firmware/efi").is_dir() else "bios",
        "pxe_interface": next((word.removeprefix("BOOTIF=") for word in arguments if word.startswith("BOOTIF=")), ""),
        "secure_boot_state": secure_boot(root),
        "device_type": device,
    }


def secure_boot(root: Path = ROOT) -> str:
    """Return `Enabled`, `Disabled`, `NotSupported` (no EFI variable) or `Unknown`.

    The variable has four bytes of attributes, then one of value.
    """
    try:
        content = (root / SECURE_BOOT).read_bytes()
    except FileNotFoundError:
        return "NotSupported"
    except OSError:
        return "Unknown"
    return {b"\0": "Disabled", b"\1": "Enabled"}.get(content[4:], "Unknown")


def system_vendor(root: Path = ROOT, cpu_flags: list[str] | None = None) -> dict[str, Any]:
    """Return the machine's maker, product and serial number, and whether it is a virtual one.

    cpu_flags: as in /proc/cpuinfo; `hypervisor` among them marks a guest, which systemd-detect-virt confirms where a
    host of guests has the flag, too. `unknown` is what the firmware has no table for.
    """
    dmi = root / "sys/class/dmi/id"

    def field(name: str) -> str:
        """As upstream: a firmware without tables is unknown, which differs from an empty string in a table."""
        return host.read(dmi / name) if (dmi / name).exists() else "unknown"

    product, maker = field("product_name"), field("sys_vendor")
    if host.read(dmi / "product_family") in ("oVirt", "RHV"):
        product = "oVirt"
    if host.read(dmi / "chassis_asset_tag") == "OracleCloud.com":
        maker = "OracleCloud.com"
    # A hypervisor sets a processor flag for its guests and, with Xen or Hyper-V, for the system that manages the guests,
    # which is not a guest. systemd-detect-virt distinguishes them, and knows more ways.
    told_by_flag = "hypervisor" in (cpu_flags or ())
    detected = Result("", "", 0)
    if not told_by_flag or (root / "proc/xen").exists() or maker == "Microsoft Corporation":
        detected = host.run(["systemd-detect-virt", "--vm"], 10, host=True)
    virtual = told_by_flag if detected.exit_code == host.NOT_FOUND else detected.exit_code == 0
    return {
        "manufacturer": maker,
        "product_name": product,
        "serial_number": field("product_serial"),
        "virtual": virtual,
    }


def tpm(root: Path = ROOT) -> str:
    """Return the version of the TPM: `1.2`, `2.0`, or `none`.

    A version that is neither is returned as the kernel has it.
    """
    major = host.read(root / "sys/class/tpm/tpm0/tpm_version_major")
    return {"": "none", "1": "1.2", "2": "2.0"}.get(major, major)


def bmc_channels(root: Path = ROOT) -> range:
    """Return IPMI channels that may have a network; empty without an IPMI device."""
    return range(1, 13) if any((root / "dev").glob("ipmi*")) else range(0)


def bmc_address(root: Path = ROOT) -> str:
    """Return the address that the machine's BMC reports through IPMI; 0.0.0.0 if it has none."""
    for channel in bmc_channels(root):
        result = host.run(["ipmitool", "lan", "print", str(channel)], 10)
        for line in result.output.splitlines() if result.exit_code == 0 else ():
            key, __, value = (part.strip() for part in line.partition(":"))
            if key == "IP Address" and value != "0.0.0.0" and IPV4.fullmatch(value):
                return value
    return "0.0.0.0"


def bmc_v6address(root: Path = ROOT) -> str:
    """Return the IPv6 address of the machine's BMC, without a prefix length; ::/0 if it has none.

    It is an active one of a channel with IPv6 enabled, a dynamic one before a static one.
    """
    for channel in bmc_channels(root):
        enabled = host.run(["ipmitool", "lan6", "print", str(channel), "enables"], 10).output
        if not re.search(r"^IPv6/IPv4 Addressing Enables: (both|ipv6)\s*$", enabled, re.MULTILINE):
            continue
        for kind in ("dynamic", "static"):
            output = host.run(["ipmitool", "lan6", "print", str(channel), f"{kind}_addr"], 10).output
            for block in re.split(r"^(?=\S)", output, flags=re.MULTILINE):
                fields = {
                    key.strip(): value.strip()
                    for key, __, value in (line.partition(":") for line in block.splitlines())
                }
                on = (
                    fields.get("Source/Type") in ("DHCPv6", "SLAAC")
                    if kind == "dynamic"
                    else fields.get("Enabled") in ("yes", "true", "on")
                )
                address = fields.get("Address", "").partition("/")[0]
                if on and fields.get("Status") == "active" and address.strip(":0"):
                    return address
    return "::/0"


def interfaces(root: Path = ROOT) -> list[dict[str, Any]]:
    """Return the network interfaces, as the model `interface` of the service's API.

    `speed_mbps` is -1 where the link has none and 0 where the kernel does not have the file; addresses are with their
    prefix, link-local ones are left out. The interfaces are those of this process's network namespace.
    """
    found, named = [], shutil.which("biosdevname")
    for nic in network.nics():
        sys = root / "sys/class/net" / nic.name
        speed = host.read(sys / "speed")
        found.append(
            {
                "name": nic.name,
                "mac_address": nic.mac,
                "type": nic.kind,
                "mtu": nic.mtu,
                "speed_mbps": min(int(speed), 2**31 - 1) if speed.removeprefix("-").isdigit() else 0,
                "has_carrier": nic.carrier,
                "flags": nic.flags,
                "product": host.read(sys / "device/device"),
                "vendor": host.read(sys / "device/vendor"),
                "biosdevname": host.run(["biosdevname", "-i", nic.name], 10).output.strip() if named else "",
                "ipv4_addresses": [str(address) for address in nic.outgoing if address.version == 4],
                "ipv6_addresses": [str(address) for address in nic.outgoing if address.version == 6],
            }
        )
    return found


def hostname(nics: list[dict[str, Any]]) -> str:
    """Return the hostname; if it is not set, the MAC of the first real interface with a global address."""
    name = socket.gethostname().strip()
    if name not in FORBIDDEN_HOSTNAMES:
        return name
    for nic in sorted(nics, key=lambda nic: nic["name"]):
        addresses = [*nic["ipv4_addresses"], *nic["ipv6_addresses"]]
        usable = any(not address.startswith(("127.", "::1/")) for address in addresses)
        if nic["type"] in ("physical", "vlan", "bond") and nic["mac_address"] and usable:
            return str(nic["mac_address"]).replace(":", "-").lower()
    return name


def collect(root: Path = ROOT, disk_min_bytes: int = 0, gpu: gpus.GpuConfig | None = None) -> dict[str, Any]:
    """Return the whole inventory, as the model `inventory` of the service's API.

    root: where /sys, /proc, /dev and /run are; the network is always that of this process. disk_min_bytes: smaller
    disks are not eligible for an installation. gpu: what counts as one.
    """
    nics, processor = interfaces(root), cpu(root)
    return {
        "bmc_address": bmc_address(root),
        "bmc_v6address": bmc_v6address(root),
        "boot": boot(root),
        "cpu": processor,
        "disks": disks(root, disk_min_bytes),
        "gpus": gpus.find_gpus(root, gpu),
        "hostname": hostname(nics),
        "interfaces": nics,
        "memory": memory(root),
        "routes": network.routes(),
        "system_vendor": system_vendor(root, processor["flags"]),
        "tpm_version": tpm(root),
    }


def limited_json(inventory: dict[str, Any], most: int) -> str:
    """Return the inventory as JSON of at most `most` bytes; 0: of any length.

    Disks are removed from the end until it fits, and `truncation` has how many were kept. One that is still too long
    without any disk is returned as it is.
    """
    text = marshal(inventory)
    if not most or len(text) <= most:
        return text
    disks_left = list(inventory["disks"])
    while disks_left and len(text) > most:
        disks_left.pop()
        truncation = {
            "type": "partial",
            "reasons": [f"disks cut to {len(disks_left)} to keep the output below {most} bytes"],
        }
        text = marshal({**inventory, "disks": disks_left, "truncation": truncation})
    return text


def rehearsed_inventory(inventory: dict[str, Any], dry: flags.Dry) -> dict[str, Any]:
    """Return the inventory of a simulated machine: one interface, with the given MAC and IPv4 address.

    dry: the options of a dry run, which upstream's agent has for load tests. The rest is this machine's.
    """
    nics = [nic for nic in inventory["interfaces"] if nic["ipv4_addresses"]][:1]
    for nic in nics:
        nic |= {"mac_address": dry.mac, "ipv4_addresses": [dry.ipv4, *nic["ipv4_addresses"][1:]]}
    return {
        **inventory,
        "interfaces": nics or inventory["interfaces"],
        "hostname": dry.hostname or inventory["hostname"],
    }


def measure_host(limits: dict[str, int], dry: flags.Dry, gpu: gpus.GpuConfig | None = None) -> Result:
    inventory = collect(disk_min_bytes=limits["disk-min-size"], gpu=gpu)
    return Result(
        limited_json(rehearsed_inventory(inventory, dry) if dry.enabled else inventory, limits["output-max-size"])
    )


def step(args: list[str], context: Context) -> Result:
    """Answer the step `inventory`.

    args: the host's id, which is ignored, and limits: --output-max-size=BYTES, --disk-min-size=BYTES. ValueError for
    another argument.
    """
    limits = {flag.name: 0 for flag in LIMITS}
    for word in args[1:]:
        name, __, value = word.removeprefix("--").partition("=")
        if name not in limits or not value.isdigit():
            raise ValueError(f"inventory: unknown argument {word}")
        limits[name] = int(value)
    return measure_host(limits, context.dry)


def main(argv: list[str] | None = None) -> int:
    options = flags.parse("inventory", (*flags.logging_flags(text=False), *flags.dry_flags(), *FLAGS), argv)
    try:
        config = gpus.config(Path(options.gpu_config_file) if options.gpu_config_file else None)
    except (OSError, ValueError) as error:
        print(f"Error getting GPU configuration: {error}; using default GPU discovery configuration", file=sys.stderr)
        config = gpus.config(None)
    limits = {"output-max-size": options.output_max_size, "disk-min-size": options.disk_min_size}
    return program(
        "inventory", lambda args, context: measure_host(limits, context.dry, config), argv, arguments=None, extra=FLAGS
    )


if __name__ == "__main__":
    raise SystemExit(main())
