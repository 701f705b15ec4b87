"""Older forms of install-config.yaml brought to v1, with the installer's texts (pkg/types/conversion and vsphere/conversion)."""

from __future__ import annotations

import posixpath
from typing import Any

from ..log import Log
from ..vocabulary import WITH_VIPS
from . import check
from .errors import FieldErrors, InstallerError
from .models import InstallConfig, Networking, Section

_NETWORK_TYPES = {"openshiftsdn": "OpenShiftSDN", "ovnkubernetes": "OVNKubernetes"}
_VERSIONS = ("v1", "v1beta3", "v1beta4")
_LEGACY_TOPOLOGY = ("datacenter", "folder", "cluster", "defaultDatastore", "resourcePool", "network")
_LEGACY = ("vCenter", "username", "password", *_LEGACY_TOPOLOGY)


def upconvert(config: InstallConfig, platform: str, log: Log) -> None:
    """Bring a decoded install-config to v1, in place.

    platform: the one that is set, "" for none; its section and `networking` get the fields of today. Old forms of
    vSphere are logged as deprecated. Raises `InstallerError` with the first thing that cannot be converted.
    """
    errors = FieldErrors()
    version = config.get("apiVersion", "")
    if not version:
        errors.required("apiVersion", "no version was provided")
    elif version not in _VERSIONS:
        errors.invalid("apiVersion", version, f"cannot upconvert from version {version}")
    else:
        config["apiVersion"] = "v1"
        _networking(config.get("networking", {}))
        section = config.get("platform", {}).get(platform, {})
        if platform == "baremetal":
            _provisioning(section, errors)
        elif platform == "vsphere":
            _vsphere(section, log)
        if platform in WITH_VIPS:
            _vips(section, f"platform.{platform}", errors)
    if errors:
        # The first one ends it, as upstream.
        raise InstallerError(f"failed to create install config: failed to upconvert install config: {errors[0]}")


def _networking(networking: Networking) -> None:
    given = networking.pop("type", "")
    kind = networking.get("networkType") or given
    if kind:
        networking["networkType"] = _NETWORK_TYPES.get(kind.lower(), kind)
    machine, service = networking.pop("machineCIDR", ""), networking.pop("serviceCIDR", "")
    if machine and not networking.get("machineNetwork"):
        networking["machineNetwork"] = [{"cidr": machine}]
    if service and not networking.get("serviceNetwork"):
        networking["serviceNetwork"] = [service]
    cluster = networking.pop("clusterNetworks", [])
    if cluster and not networking.get("clusterNetwork"):
        networking["clusterNetwork"] = cluster
    for entry in networking.get("clusterNetwork", []):
        length = entry.pop("hostSubnetLength", 0)
        net = check.network(entry.get("cidr"))
        if length and net is not None:
            entry.setdefault("hostPrefix", net.max_prefixlen - length)


def _provisioning(section: Section, errors: FieldErrors) -> None:
    if section.pop("provisioningDHCPExternal", False) and not section.get("provisioningNetwork"):
        section["provisioningNetwork"] = "Unmanaged"
    ip = section.pop("provisioningHostIP", "")
    if ip and not section.get("clusterProvisioningIP"):
        section["clusterProvisioningIP"] = ip
    elif ip and section["clusterProvisioningIP"] != ip:
        errors.invalid(
            "platform.baremetal.provisioningHostIP", ip,
            "provisioningHostIP is deprecated; only clusterProvisioningIP needs to be specified",
        )  # fmt: skip


def _vips(section: Section, path: str, errors: FieldErrors) -> None:
    for old, new in (("apiVIP", "apiVIPs"), ("ingressVIP", "ingressVIPs")):
        value = section.pop(old, "")
        if value and not section.get(new):
            section[new] = [value]
        elif value and value not in section[new]:
            # Upstream mixes up the two names, so this is its text for the new one.
            errors.invalid(f"{path}.{new}", value, f"{new} is deprecated; only {old} needs to be specified")


# --- vSphere --------------------------------------------------------------------------


def _vsphere(section: Section, log: Log) -> None:
    """Credentials and topology of before 4.13; unlike upstream without a look into the vCenter, which may be out of reach."""
    old = {name: section.pop(name, "") for name in _LEGACY}
    # Errors then name the old field.
    section["deprecatedFields"] = bool(old["vCenter"] or old["password"] or old["datacenter"])
    domains = section.get("failureDomains") or []
    if not section.get("vcenters"):
        log.warning("vsphere authentication fields are now deprecated; please use vcenters")
        section["vcenters"] = [_vcenter(old, domains)]
        for domain in domains:
            topology = domain.setdefault("topology", {})
            topology["datacenter"] = topology.get("datacenter") or old["datacenter"]
            domain["server"] = domain.get("server") or old["vCenter"]
    elif old["vCenter"]:
        log.warning("vcenter field is deprecated please avoid using both vcenter and vcenters fields together")
    servers = [center.get("server", "") for center in section["vcenters"]]
    for domain in domains:
        if domain.get("server", "") not in servers:
            # Validation refuses it.
            log.warning(f"unable to find finder for vCenter {domain.get('server', '')} in order to do upconvert")
            break
        _full_paths(domain.setdefault("topology", {}), log)
    if not domains:
        log.warning("vsphere topology fields are now deprecated; please use failureDomains")
        section["failureDomains"] = [_failure_domain(old, servers[0], log)]
    elif any(old[name] for name in _LEGACY_TOPOLOGY):
        log.warning(
            "vsphere topology fields are now deprecated; please avoid using failureDomains and the vsphere topology "
            "fields together"
        )


def _vcenter(old: dict[str, str], domains: list[Section]) -> dict[str, Any]:
    datacenters = [old["datacenter"], *((domain.get("topology") or {}).get("datacenter", "") for domain in domains)]
    return {
        "server": old["vCenter"], "port": 443, "user": old["username"], "password": old["password"],
        "datacenters": [name for name in dict.fromkeys(datacenters) if name],
    }  # fmt: skip


def _failure_domain(old: dict[str, str], server: str, log: Log) -> dict[str, Any]:
    topology: dict[str, Any] = {
        "datacenter": old["datacenter"], "computeCluster": old["cluster"], "networks": [old["network"]],
        "datastore": old["defaultDatastore"],
    }  # fmt: skip
    topology |= {name: old[name] for name in ("resourcePool", "folder") if old[name]}
    _full_paths(topology, log)
    return {
        "name": "generated-failure-domain", "region": "generated-region", "zone": "generated-zone", "server": server,
        "topology": topology,
    }  # fmt: skip


def _full_paths(topology: Section, log: Log) -> None:
    for name, kind in (("computeCluster", "host"), ("datastore", "datastore"), ("folder", "vm")):
        value = topology.get(name, "")
        if value and not value.startswith("/"):
            topology[name] = posixpath.normpath(f"/{topology.get('datacenter', '')}/{kind}/{value}".replace("//", "/"))
            log.warning(f"{name} as a non-path is now deprecated; please use the joined form: {topology[name]}")
