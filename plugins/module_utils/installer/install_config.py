"""install-config.yaml: parse, upconvert older forms, fill in defaults. Validation is in `validation`."""

from __future__ import annotations

import ipaddress
import socket
import threading

from ..log import Log
from ..releases import ReleaseProfile
from ..releases.distributions import of_version
from ..vocabulary import ClusterNames, RunFile
from . import check
from .conversion import upconvert
from .errors import InstallerError
from .models import InstallConfig, Section
from .schema import decode_file
from .shapes import INSTALL_CONFIG

FILENAME = RunFile.INSTALL_CONFIG
_ROLE_ORDER = {"master": 0, "arbiter": 1, "worker": 2}


def parse(text: str, log: Log, *, lenient: bool = False) -> InstallConfig:
    """Decode install-config.yaml into canonical keys, upconverted to v1, without defaults.

    With `lenient` (an invoker is set) unknown fields are warnings. Raises `InstallerError`.
    """
    unknown: list[str] = []
    try:
        config: InstallConfig = decode_file(text, FILENAME, INSTALL_CONFIG, unknown=unknown)
    except InstallerError as error:
        try:  # wrong types and unknown fields in one report
            decode_file(text, FILENAME, INSTALL_CONFIG, strict=not lenient)
        except InstallerError as all_of_it:
            raise InstallerError(f"failed to create install config: {all_of_it}") from error
        raise
    if unknown:
        stray = unknown[0] if len(unknown) == 1 else f"[{', '.join(unknown)}]"
        message = (
            f"failed to parse first occurrence of unknown field: failed to unmarshal {FILENAME}: "
            f"error unmarshaling JSON: while decoding JSON: {stray}"
        )
        if not lenient:
            raise InstallerError(f"failed to create install config: {message}")
        log.warning(message)
    upconvert(config, platform_name(config), log)
    return config


def set_defaults(config: InstallConfig, profile: ReleaseProfile, version: str) -> None:
    """Fill in what was left out, in place.

    version: that of the release, for its OS image stream. VIPs of baremetal are looked up in DNS, with five seconds for
    each. The defaults are those of the installer's pkg/types/defaults.
    """
    networking = config.setdefault("networking", {})
    networking.setdefault("networkType", "OVNKubernetes")
    if not networking.get("machineNetwork"):
        networking["machineNetwork"] = [{"cidr": "10.0.0.0/16"}]
    if not networking.get("serviceNetwork"):
        networking["serviceNetwork"] = ["172.30.0.0/16"]
    if not networking.get("clusterNetwork"):
        networking["clusterNetwork"] = [{"cidr": "10.128.0.0/14", "hostPrefix": 23}]
    config.setdefault("controlPlane", {})["name"] = "master"
    if not any(pool.get("name") == "worker" for pool in config.setdefault("compute", [])):
        config["compute"].append({"name": "worker"})
    for pool, replicas in [
        (config["controlPlane"], 3),
        *((pool, 3 if pool.get("name", "worker") == "worker" else 0) for pool in config["compute"]),
        *([(config["arbiter"], 0)] if config.get("arbiter") is not None else []),
    ]:
        pool.setdefault("replicas", replicas)
        pool.setdefault("hyperthreading", "Enabled")
        pool.setdefault("architecture", "amd64")
    config.setdefault("publish", "External")
    config.setdefault("additionalTrustBundlePolicy", "Proxyonly")
    if profile.os_image_stream and (stream := default_stream(version)):
        config.setdefault("osImageStream", stream)
    platform = config.setdefault("platform", {})
    if platform.get("baremetal") is not None:
        _baremetal_defaults(config, platform["baremetal"])
    if platform.get("nutanix") is not None:
        config.setdefault("credentialsMode", "Manual")
    for name in ("vsphere", "nutanix"):
        section = platform.get(name)
        if section is not None:
            section.setdefault("dnsRecordsType", "Internal")
    for domain in (platform.get("vsphere") or {}).get("failureDomains") or []:
        topology = domain.setdefault("topology", {})
        if topology.get("computeCluster") and not topology.get("resourcePool"):
            topology["resourcePool"] = f"{topology['computeCluster']}/Resources"


def default_stream(version: str) -> str:
    """The OS image stream that a release installs when none is asked for; "" of a distribution with one stream.

    version: as `4.21.3`; from 5 on it is rhel-10.
    """
    if not of_version(version).os_streams:
        return ""
    major = version.lstrip("v").partition(".")[0]
    return "rhel-10" if major.isdigit() and int(major) >= 5 else "rhel-9"


def _baremetal_defaults(config: InstallConfig, section: Section) -> None:
    section.setdefault("libvirtURI", "qemu:///system")
    section.setdefault("externalBridge", "baremetal")
    section.setdefault("provisioningBridge", "provisioning")
    kind = section.setdefault("provisioningNetwork", "Managed")
    if kind != "Disabled":
        section.setdefault("provisioningNetworkCIDR", "172.22.0.0/24")
        net = check.network(section["provisioningNetworkCIDR"])
        if net is not None and net.num_addresses > 16:
            section.setdefault("bootstrapProvisioningIP", str(net.network_address + 2))
            section.setdefault("clusterProvisioningIP", str(net.network_address + 3))
            if kind == "Managed":
                last = net.broadcast_address - 1
                section.setdefault("provisioningDHCPRange", f"{net.network_address + 10},{last}")
    for host in section.get("hosts", []):
        host.setdefault("bootMode", "UEFI")
    section["hosts"] = sorted(section.get("hosts", []), key=lambda host: _ROLE_ORDER.get(host.get("role", ""), 3))
    names = ClusterNames.of(f"{config.get('metadata', {}).get('name', '')}.{config.get('baseDomain', '')}")
    for field, name in (("apiVIPs", names.api), ("ingressVIPs", f"test.{names.apps}")):
        if not section.get(field):
            found = _lookup(name)
            if found:
                section[field] = [found]


def _lookup(name: str, seconds: float = 5.0) -> str:
    """The first address of `name`, or "" when the resolver has none within `seconds`."""
    found: list[str] = []

    def resolve() -> None:
        try:
            found.append(str(socket.getaddrinfo(name, None)[0][4][0]))
        except (OSError, UnicodeError):
            return

    worker = threading.Thread(target=resolve, daemon=True)
    worker.start()
    worker.join(seconds)
    return found[0] if found else ""


def platform_name(config: InstallConfig) -> str:
    """The platform that is set; "" when none is.

    A section that is null counts as not set; of several the first one counts.
    """
    return next((name for name, value in config.get("platform", {}).items() if value is not None), "")


def replicas(config: InstallConfig) -> dict[str, int]:
    """Replicas by role: master, arbiter, worker.

    config: an install-config with defaults. Workers are those of all compute pools together.
    """
    return {
        "master": config["controlPlane"].get("replicas", 0),
        "arbiter": (config.get("arbiter") or {}).get("replicas", 0),
        "worker": sum(pool.get("replicas", 0) for pool in config.get("compute", [])),
    }


def machine_network_of(config: InstallConfig, ip: str) -> str:
    """The machine network that `ip` belongs to, as CIDR text; "" when none.

    ip: a valid address. The text is as `cidr` returns it.
    """
    for entry in config["networking"]["machineNetwork"]:
        net = check.network(entry.get("cidr"))
        if net is not None and ipaddress.ip_address(ip) in net:
            return cidr(entry["cidr"])
    return ""


def cidr(text: str) -> str:
    """A CIDR as Go prints it: host bits are masked, IPv6 is compressed.

    What is not a CIDR comes back as it is.
    """
    net = check.network(text)
    return str(net) if net is not None else text
