"""Rules for `platform.vsphere`: vCenters and failure domains."""

from __future__ import annotations

import re

from .. import check
from ..errors import FieldErrors
from ..models import Section

GENERATED = {"name": "generated-failure-domain", "region": "generated-region", "zone": "generated-zone"}
_CREDENTIALS = ("server", "user", "password", "datacenters")


def has_credentials(center: Section) -> bool:
    """Return whether any credential of a vCenter is given; then all of them must be.

    center: an entry of `vcenters`; credentials are server, user, password and datacenters.
    """
    return any(center.get(field) for field in _CREDENTIALS)


def check_vsphere_credentials(section: Section, errors: FieldErrors) -> None:
    """Check that credentials are complete, and that failure domains have a folder when there are any."""
    centers = section.get("vcenters") or []
    path = "platform.vsphere"
    for index, center in enumerate(centers):
        for field in _CREDENTIALS if has_credentials(center) else ():
            if not center.get(field):
                place = f"{path}.vcenters[{index}].{'datacenter' if field == 'datacenters' else field}"
                if field == "user" and section.get("deprecatedFields"):
                    place = f"{path}.username"
                errors.required(place, "All credential fields are required if any one is specified")
    if not any(map(has_credentials, centers)):
        return
    for index, domain in enumerate(section.get("failureDomains") or []):
        if not (domain.get("topology") or {}).get("folder"):
            errors.required(
                f"{path}.failureDomains[{index}].topology.folder", "must specify a folder for agent-based installs"
            )


def check_vsphere(section: Section, errors: FieldErrors) -> None:
    """Check the disk type, vCenters and failure domains, as for every way to install.

    section: `platform.vsphere`. vCenters are validated only if the first one has credentials.
    """
    path = "platform.vsphere"
    disk = section.get("diskType", "")
    if disk and disk not in ("eagerZeroedThick", "thick", "thin"):
        errors.invalid(f"{path}.diskType", disk, "diskType must be one of [eagerZeroedThick thick thin]")
    centers = section.get("vcenters") or []
    if centers and all(centers[0].get(field) for field in _CREDENTIALS):
        for index, center in enumerate(centers):
            _vcenter(f"{path}.vcenters[{index}]", center, errors)
    domains = section.get("failureDomains") or []
    if not domains or any(domains[0].get(key) == value for key, value in GENERATED.items()):
        return
    servers = [center.get("server", "") for center in centers]
    names: list[str] = []
    for index, domain in enumerate(domains):
        name = domain.get("name", "")
        if name in names:
            errors.duplicate(f"{path}.failureDomains.name[{index}]", name)
        names.append(name)
        if not _failure_domain(f"{path}.failureDomains", domain, servers, errors):
            return


def _vcenter(path: str, center: Section, errors: FieldErrors) -> None:
    server = center.get("server", "")
    text = "must be the domain name or IP address of the vCenter"
    if not server:
        errors.required(f"{path}.server", text)
    elif check.address(server) is None and check.subdomain(server):
        errors.invalid(f"{path}.server", server, text)
    for field, name in (("user", "username"), ("password", "password")):
        if not center.get(field):
            errors.required(f"{path}.{name}", f"must specify the {name}")
    if not center.get("datacenters"):
        errors.required(f"{path}.datacenters", "must specify at least one datacenter")


_TAG = re.compile(r"urn:vmomi:InventoryServiceTag:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:[^:]+")
# Field, required text, form of a full path, text for another form, text for the wrong datacenter.
_PATHS = (
    ("datastore", "must specify a datastore", r"/(.*?)/datastore/(.*)",
     "full path of datastore must be provided in format /<datacenter/datastore/<datastore>",
     "the datastore defined does not exist in the correct datacenter"),
    ("folder", "", r"/(.*?)/vm/(.*)", "full path of folder must be provided in format /<datacenter>/vm/<folder>",
     "the folder defined does not exist in the correct datacenter"),
    ("computeCluster", "must specify a computeCluster", r"/(.*?)/host/(.*)",
     "full path of compute cluster must be provided in format /<datacenter>/host/<cluster>",
     "compute cluster must be in datacenter {}"),
    ("resourcePool", "", r"/(.*?)/host/(.*?)/(.*)",
     "full path of resource pool must be provided in format /<datacenter>/host/<cluster>/...",
     "resource pool must be in datacenter {}"),
)  # fmt: skip


def _failure_domain(path: str, domain: Section, servers: list[str], errors: FieldErrors) -> bool:
    """Check one failure domain; False when a path in it is so wrong that upstream looks no further."""
    topology = domain.get("topology") or {}
    server, datacenter = domain.get("server", ""), topology.get("datacenter", "")
    region, zone = domain.get("regionType", ""), domain.get("zoneType", "")
    if zone and not region:
        errors.required(f"{path}.regionType", "must specify regionType if zoneType is defined")
    if region and not zone:
        errors.required(f"{path}.zoneType", "must specify zoneType if regionType is defined")
    if region == "HostGroup":
        errors.required(f"{path}.regionType", "region type cannot be used for host group failure domains")
        return False
    if zone == "HostGroup" and not topology.get("hostGroup"):
        errors.required(f"{path}.hostGroup", "must not be empty if zoneType is HostGroup")
    if region == "ComputeCluster" and zone != "HostGroup":
        errors.required(f"{path}.regionType", "zoneType must be HostGroup")
        return False
    if not domain.get("name"):
        errors.required(f"{path}.name", "must specify the name")
    if not server:
        errors.required(f"{path}.server", "must specify a vCenter server")
    elif server not in servers:
        errors.invalid(f"{path}.server", server, "server does not exist in vcenters")
    for field in ("zone", "region"):
        if not domain.get(field):
            errors.required(f"{path}.{field}", f"must specify {field} tag value")
    at = f"{path}.topology"
    if not datacenter:
        errors.required(f"{at}.datacenter", "must specify a datacenter")
    tags = topology.get("tagIDs") or []
    if len(tags) > 10:
        errors.invalid(f"{at}.tagIDs", tags, "a maximum of 10 tags are allowed")
    if not all(_TAG.fullmatch(tag) for tag in tags):
        errors.invalid(
            f"{at}.tagIDs", tags, "tag ID must be in the format of urn:vmomi:InventoryServiceTag:<UUID>:GLOBAL"
        )
    if not topology.get("networks"):
        errors.required(f"{at}.networks", "must specify a network")
    for field, required, form, wrong_form, wrong_datacenter in _PATHS:
        value = topology.get(field, "")
        match = re.fullmatch(form, value)
        if not value:
            if required:
                errors.required(f"{at}.{field}", required)
        elif not match:
            errors.invalid(f"{at}.{field}", value, wrong_form)
            return False
        elif (str(match[1]) not in datacenter) if "{}" in wrong_datacenter else (datacenter not in value):
            errors.invalid(f"{at}.{field}", value, wrong_datacenter.format(datacenter))
            return False
        elif field == "resourcePool" and str(match[2]) not in topology.get("computeCluster", str(match[2])):
            errors.invalid(
                f"{at}.{field}", value, f"resource pool must be in compute cluster {topology['computeCluster']}"
            )
            return False
    return True
