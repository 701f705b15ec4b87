"""Rules for `platform.baremetal.hosts` of installer-provisioned infrastructure (the installer's `ValidateHosts`)."""

from __future__ import annotations

from ...log import Log
from .. import check
from ..errors import FieldErrors
from ..install_config import replicas
from ..models import InstallConfig, Section

_BOOT_MODES = ("UEFI", "UEFISecureBoot", "legacy")
_NO_SECURE_BOOT = {"ipmi": "ipmi", "libvirt": "ipmi"}
_POOLS = (("master", "ControlPlane"), ("arbiter", "Arbiter"), ("worker", "Compute"))
_UNIQUE = (("name", "Name"), ("bootMACAddress", "BootMACAddress"))


def check_hosts(config: InstallConfig, section: Section, log: Log, errors: FieldErrors) -> None:
    """Check the machines that the installer provisions: enough for the replicas, each with a name and a MAC of its own.

    section: `platform.baremetal` with its defaults. Problems are added to `errors`, with upstream's texts; a host without
    a role is a warning. MACs are compared without regard to case, which is stricter than upstream.
    """
    path, hosts = "platform.baremetal.hosts", section["hosts"]
    if not hosts:
        errors.invalid(path, None, "bare metal hosts are missing")
    _check_count(config, hosts, path, log, errors)
    seen: dict[str, set[str]] = {field: set() for field, __ in _UNIQUE}
    for index, host in enumerate(hosts):
        for field, name in _UNIQUE:
            value = str(host.get(field) or "")
            known = value.lower() if field == "bootMACAddress" else value
            if not value:
                errors.required(f"{path}[{index}].{field}", f"missing {name}")
            elif known in seen[field]:
                errors.duplicate(f"{path}[{index}].{field}", value)
            seen[field].add(known)
    for index, host in enumerate(hosts):
        _check_host(host, f"{path}[{index}]", errors)


def _check_count(config: InstallConfig, hosts: list[Section], path: str, log: Log, errors: FieldErrors) -> None:
    wanted = replicas(config)
    found = dict.fromkeys(wanted, 0)
    for host in hosts:
        role = host.get("role") or ""
        if role not in wanted:
            log.warning(f"Host {host.get('name', '')} hasn't any role configured")
            role = next((pool for pool, __ in _POOLS if found[pool] < wanted[pool]), "")
        if role:
            found[role] += 1
    for role, pool in _POOLS:
        if found[role] < wanted[role]:
            text = (
                f"not enough hosts found ({found[role]}) to support all the configured {pool} replicas ({wanted[role]})"
            )
            errors.required(path, text)
            return


def _check_host(host: Section, path: str, errors: FieldErrors) -> None:
    mode = host.get("bootMode", "")
    if mode and mode not in _BOOT_MODES:
        errors.unsupported(f"{path}.bootMode", mode, _BOOT_MODES)
    driver = _NO_SECURE_BOOT.get(driver_scheme((host.get("bmc") or {}).get("address", "")))
    if mode == "UEFISecureBoot" and driver:
        errors.invalid(f"{path}.bootMode", mode, f"driver {driver} does not support UEFI secure boot")
    check_device_name((host.get("rootDeviceHints") or {}).get("deviceName", ""), f"{path}.rootDeviceHints", errors)
    network = host.get("networkConfig")
    for number, interface in enumerate((network.get("interfaces") if isinstance(network, dict) else None) or []):
        mtu = interface.get("mtu", 0) if isinstance(interface, dict) else 0
        if isinstance(mtu, str):
            quoted = " (not quoted string)" if mtu.removeprefix("-").isdecimal() else ""
            errors.invalid(
                f"{path}.networkConfig.interfaces[{number}].mtu", mtu, f"mtu must be an integer{quoted}"
            )  # fmt: skip
    name = host.get("name") or ""
    if why := check.subdomain(name):
        errors.invalid(f"{path}.name", name, why)


def driver_scheme(address: str) -> str:
    """Return the kind of BMC that an address names by its scheme; without one it is IPMI's."""
    return address.partition("://")[0].partition("+")[0] if "://" in address else "ipmi"


def check_device_name(device: str, path: str, errors: FieldErrors) -> None:
    """Check `deviceName` of root device hints; path: that of the hints. An empty one is right."""
    at = f"{path}.deviceName"
    if device and not device.startswith("/dev/"):
        errors.invalid(at, device, "Device Name of root device hint must be a /dev/ path")
    elif "/" in device.removeprefix("/dev/").removeprefix("disk/by-path/"):
        errors.invalid(at, device, "Device Name of root device hint must be path in /dev/ or /dev/disk/by-path/")
