"""Fields that the agent-based installer knows and does not use."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import quote
from ..install_config import platform_name
from ..models import InstallConfig

_IGNORED = {
    "baremetal": (
        "platform.baremetal",
        {
            "libvirtURI": "debug", "bootstrapProvisioningIP": "debug", "bootstrapExternalStaticIP": "debug",
            "bootstrapExternalStaticGateway": "debug", "externalBridge": "warning", "provisioningBridge": "warning",
            "defaultMachinePlatform": "warning",
        },
        {
            "libvirtURI": "qemu:///system", "externalBridge": "baremetal", "provisioningBridge": "provisioning"
        },
    ),
    "vsphere": (
        "platform.vsphere",
        dict.fromkeys(("clusterOSImage", "defaultMachinePlatform", "diskType", "loadBalancer", "hosts"), "warning"),
        {},
    ),
    "nutanix": (
        "Platform.Nutanix",
        dict.fromkeys(
            ("clusterOSImage", "preloadedOSImageName", "defaultMachinePlatform", "loadBalancer", "prismAPICallTimeout",
             "failureDomains"), "warning",
        ),
        {},
    ),
}  # fmt: skip
_POINTERS = ("defaultMachinePlatform", "loadBalancer", "prismAPICallTimeout")


def _shown(field: str, value: object) -> str:
    """A value as Go prints it; larger structs, for which that has no names, as JSON."""
    if field == "loadBalancer" and isinstance(value, dict):
        return f"&{{{value.get('type', '')}}}"
    if value == {}:
        return "&{}"
    return value if isinstance(value, str) else quote(value)


def ignored_fields(config: InstallConfig) -> Iterator[tuple[str, str]]:
    """(level, text) for every field that is given and not used.

    config: with defaults. level is `debug` or `warning`; a value that is the default is not reported. Pools come first.
    """
    pools = [("controlPlane", config["controlPlane"])]
    pools = [*((f"compute[{index}]", pool) for index, pool in enumerate(config.get("compute", []))), *pools]
    for path, pool in pools:
        if pool.get("hyperthreading") not in (None, "Enabled"):
            yield "warning", f"{path}.hyperthreading: {pool['hyperthreading']} is ignored"
        if pool.get("platform"):
            yield "warning", f"{path}.platform is ignored"
    name = platform_name(config)
    section = config["platform"].get(name) or {}
    path, fields, defaults = _IGNORED.get(name, ("", {}, {}))
    for field, level in fields.items():
        value = section.get(field)
        if field == "hosts" and len(value or []) < 2:
            continue
        # What Go has as a pointer is given when it is empty, too.
        given = value is not None if field in _POINTERS else bool(value)
        if not given or value == defaults.get(field) or (field == "bootstrapProvisioningIP" and level == "debug"):
            continue
        shown = field[0].upper() + field[1:] if name == "nutanix" else field
        yield level, f"{path}.{shown}: {_shown(field, value)} is ignored"
    for index, host in enumerate(section.get("hosts") or [] if name == "baremetal" else []):
        if host.get("bootMode", "UEFI") != "UEFI":
            yield "warning", f"platform.baremetal.hosts[{index}].bootMode: {host['bootMode']} is ignored"
    if config.get("publish", "External") != "External":
        yield "warning", f"publish: {config['publish']} is ignored"
    if config.get("credentialsMode"):
        yield "warning", f"credentialsMode: {config['credentialsMode']} is ignored"
    if (config.get("bootstrapInPlace") or {}).get("installationDisk"):
        disk = config["bootstrapInPlace"]["installationDisk"]
        yield "warning", f"bootstrapInPlace.installationDisk: {disk} is ignored"
