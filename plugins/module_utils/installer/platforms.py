"""Rules of the platforms that the agent-based installer knows, and their fields that it doesn't use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..addresses import version
from . import check
from .errors import FieldErrors, quote
from .install_config import platform_name

_KNOWN = ("aws", "azure", "baremetal", "external", "gcp", "ibmcloud", "none", "nutanix", "openstack", "powervc",
          "powervs", "vsphere")  # fmt: skip
_WITH_VIPS = ("baremetal", "vsphere", "nutanix")


def validate(config: dict[str, Any], errors: FieldErrors) -> None:
    """Check `platform` as for every way to install."""
    given = [name for name, value in config["platform"].items() if value is not None]
    if not given:
        errors.invalid("platform", "", f"must specify one of the platforms ({', '.join(_KNOWN)})")
        return
    platform = platform_name(config)
    for other in given[1:]:
        errors.invalid(
            "platform",
            platform,
            f'must only specify a single type of platform; cannot use both "{platform}" and "{other}"',
        )
    section = config["platform"][platform] or {}
    path = f"platform.{platform}"
    if platform == "baremetal":
        _baremetal(section, errors)
    elif platform == "vsphere":
        _vsphere(section, errors)
    elif platform == "nutanix":
        _nutanix(section, errors)
    if platform in _WITH_VIPS:
        balancer = section.get("loadBalancer")
        kind = (balancer or {}).get("type", "")
        if balancer is not None and kind not in ("OpenShiftManagedDefault", "UserManaged"):
            errors.invalid(f"{path}.loadBalancer.type", kind, "invalid load balancer type")
        if section.get("dnsRecordsType") == "External" and kind != "UserManaged":
            errors.invalid(
                f"{path}.dnsRecordsType", "External",
                "external DNS records can only be configured with user-managed loadbalancers",
            )  # fmt: skip


def validate_agent(config: dict[str, Any], errors: FieldErrors) -> None:
    """Check what the agent-based installer wants of `platform` in addition."""
    platform = platform_name(config)
    section = config["platform"].get(platform) or {}
    if platform == "baremetal":
        _provisioning(config, section, errors)
    elif platform == "vsphere":
        _vsphere_credentials(section, errors)


# --- VIPs -----------------------------------------------------------------------------


def vips(config: dict[str, Any], errors: FieldErrors) -> None:
    """Check the VIPs of a platform that has some; Nutanix' are put into order."""
    platform = platform_name(config)
    if platform not in _WITH_VIPS:
        return
    section, path = config["platform"][platform], f"platform.{platform}"
    if platform == "nutanix":
        _ipv4_first(section, path, errors)
    user_managed = (section.get("loadBalancer") or {}).get("type") == "UserManaged"
    lists = {"API": section.get("apiVIPs") or [], "Ingress": section.get("ingressVIPs") or []}
    fields = {"API": f"{path}.apiVIPs", "Ingress": f"{path}.ingressVIPs"}
    lacking = {
        "API": "must specify VIP for ingress, when VIP for API is set",
        "Ingress": "must specify VIP for API, when VIP for ingress is set",
    }
    for label, other in (("API", "Ingress"), ("Ingress", "API")):
        found, at = lists[label], fields[label]
        if not found:
            errors.required(at, f"must specify at least one VIP for the {label}")
        elif len(found) > 2:
            errors.too_many(at, len(found), 2)
        else:
            _vip_list(config, found, at, label, lists["Ingress"] if label == "API" else [], user_managed, errors)
            if not lists[other]:
                errors.required(fields[other], lacking[label])


def _ipv4_first(section: dict[str, Any], path: str, errors: FieldErrors) -> None:
    """Bring VIPs of two families into the order that Nutanix wants."""
    for field in ("apiVIPs", "ingressVIPs"):
        found = section.get(field) or []
        versions = [address.version for address in map(check.address, found) if address is not None]
        if len(versions) != len(found) or len({*versions}) < 2:
            continue
        if len(found) == 2:
            section[field] = sorted(found, key=version)
        else:
            errors.invalid(f"{path}.{field}", found, "wrong number of VIPs given. Expecting 2 VIPs for dual stack")


def _vip_list(
    config: dict[str, Any],
    found: list[str],
    at: str,
    label: str,
    others: list[str],
    user_managed: bool,
    errors: FieldErrors,
) -> None:
    machine = [entry.get("cidr", "") for entry in config["networking"]["machineNetwork"]]
    nets = [net for net in map(check.network, machine) if net is not None]
    addresses = [check.address(vip) for vip in found]
    for vip, address in zip(found, addresses, strict=True):
        if address is None:
            errors.invalid(at, vip, f'"{vip}" is not a valid IP')
        # A user's own balancer may be outside, and serve both.
        if user_managed:
            continue
        if address is not None and address in map(check.address, others):
            errors.invalid(at, vip, "VIP for API must not be one of the Ingress VIPs")
        if not any(address is not None and address.version == net.version and address in net for net in nets):
            errors.invalid(at, vip, f"IP expected to be in one of the machine networks: {','.join(machine)}")
    networking = config["networking"]
    lists = {
        "clusterNetwork": [entry.get("cidr", "") for entry in networking["clusterNetwork"]],
        "machineNetwork": machine,
        "serviceNetwork": networking["serviceNetwork"],
    }
    versions = {name: [net.version for net in map(check.network, texts) if net] for name, texts in lists.items()}
    primary = 6 if addresses[0] is not None and addresses[0].version == 6 else 4
    if len({*versions["serviceNetwork"]}) == 2:
        for name, kinds in versions.items():
            if kinds and kinds[0] != primary:
                errors.invalid(
                    at, found[0], f"{name} primary IP Family and primary IP family for the {label} VIP should match"
                )
    if len(found) == 2 and len({address.version for address in addresses if address is not None}) < 2:
        errors.invalid(at, found, f"If two {label} VIPs are given, one must be an IPv4 address, the other an IPv6")


# --- baremetal ------------------------------------------------------------------------


def _baremetal(section: dict[str, Any], errors: FieldErrors) -> None:
    path = "platform.baremetal"
    kind = section["provisioningNetwork"]
    if kind not in ("Disabled", "Managed", "Unmanaged"):
        errors.unsupported(f"{path}.provisioningNetwork", kind, ("Disabled", "Managed", "Unmanaged"))
    for name in ("bootstrapProvisioningIP", "clusterProvisioningIP"):
        ip = section.get(name, "")
        if ip and check.address(ip) is None:
            errors.invalid(f"{path}.{name}", ip, f'"{ip}" is not a valid IP')


def _provisioning(config: dict[str, Any], section: dict[str, Any], errors: FieldErrors) -> None:
    """Checks of the provisioning network: only when a BMC is given, as otherwise nothing uses it."""
    hosts = section.get("hosts") or []
    if not any((host.get("bmc") or {}).get("address") for host in hosts):
        return
    path = "platform.baremetal"
    if section["provisioningNetwork"] == "Disabled":
        _no_provisioning_network(config, section, path, errors)
    else:
        _provisioning_network(config, section, path, errors)
    external, internal = section.get("externalMACAddress", ""), section.get("provisioningMACAddress", "")
    for name, mac in (("externalMACAddress", external), ("provisioningMACAddress", internal)):
        why = check.mac(mac) if mac else None
        if why:
            errors.invalid(f"{path}.{name}", mac, why)
    if external and external.lower() == internal.lower():
        errors.duplicate(
            f"{path}.provisioningMACAddress", "provisioning and external MAC addresses may not be identical"
        )
    seen: set[str] = set()
    for index, host in enumerate(hosts):
        at, bmc = f"{path}.hosts[{index}]", host.get("bmc") or {}
        for field in ("username", "password", "address"):
            if not bmc.get(field):
                errors.required(f"{at}.bmc.{field}", f"missing {field.capitalize()}")
        address = bmc.get("address", "")
        if address and address.lower() in seen:
            errors.duplicate(f"{at}.bmc.address", address)
        seen.add(address.lower())


# Drivers of bare metal's controllers that boot over the network only, by the scheme of the address.
_NETWORK_BOOT = {
    "ibmc": "ibmc", "idrac": "idrac", "idrac-redfish": "idrac-redfish", "ilo4": "ilo", "ilo5": "ilo5", "ipmi": "ipmi",
    "irmc": "irmc", "libvirt": "ipmi", "redfish": "redfish",
}  # fmt: skip


def _no_provisioning_network(config: dict[str, Any], section: dict[str, Any], path: str, errors: FieldErrors) -> None:
    for index, host in enumerate(section["hosts"]):
        address = (host.get("bmc") or {}).get("address", "")
        scheme = address.partition("://")[0].partition("+")[0] if "://" in address else "ipmi"
        driver = _NETWORK_BOOT.get(scheme)
        if driver:
            errors.invalid(f"{path}.hosts[{index}].bmc", address, f"driver {driver} requires provisioning network")
    ip = section.get("clusterProvisioningIP", "")
    machine = [entry.get("cidr", "") for entry in config["networking"]["machineNetwork"]]
    found = check.address(ip)
    nets = [net for net in map(check.network, machine) if net is not None]
    if ip and not any(found is not None and found.version == net.version and found in net for net in nets):
        errors.invalid(
            f"{path}.clusterProvisioningIP", ip,
            f"provisioning network is disabled, IP expected to be in one of the machine networks: {','.join(machine)}",
        )  # fmt: skip


def _provisioning_network(config: dict[str, Any], section: dict[str, Any], path: str, errors: FieldErrors) -> None:
    text = section.get("provisioningNetworkCIDR", "")
    at = f"{path}.provisioningNetworkCIDR"
    net = check.network(text)
    if net is None:
        errors.invalid(at, text, f"invalid CIDR address: {text}")
        return
    if section["provisioningNetwork"] == "Managed" and net.version == 6 and net.prefixlen < 64:
        errors.invalid(at, text, "provisioningNetworkCIDR mask must be greater than or equal to 64 for IPv6 networks")
    for entry in config["networking"]["machineNetwork"]:
        machine = check.network(entry.get("cidr"))
        if machine is not None and machine.version == net.version and machine.overlaps(net):
            one, other = (net, machine) if machine.prefixlen < net.prefixlen else (machine, net)
            errors.invalid(at, text, f"cannot overlap with machine network: {one} overlaps with {other}")
            break
    cluster = section.get("clusterProvisioningIP", "")
    if not _within(cluster, net):
        errors.invalid(f"{path}.clusterProvisioningIP", cluster, f'"{cluster}" is not in the provisioning network')
    if check.address(text.partition("/")[0]) != net.network_address:
        errors.invalid(at, text, f"provisioningNetworkCIDR has host bits set, expected {net}")
    for server in section.get("additionalNTPServers") or []:
        if check.address(server) is None and check.domain_name(server):
            errors.invalid(f"{path}.additionalNTPServers", server, "NTP server is not a valid IP or domain name")
    dhcp = section.get("provisioningDHCPRange", "")
    ends = _dhcp_range(dhcp, net, f"{path}.provisioningDHCPRange", errors) if dhcp else ()
    for name in ("clusterProvisioningIP", "bootstrapProvisioningIP", "provisioningNetworkGateway"):
        ip = section.get(name, "")
        known = check.address(ip)
        if ends and known is not None and known.version == net.version and int(ends[0]) <= int(known) <= int(ends[1]):
            errors.invalid(f"{path}.{name}", ip, f'"{ip}" overlaps with the allocated DHCP range')
    gateway = section.get("provisioningNetworkGateway", "")
    if gateway:
        known = check.address(gateway)
        at = f"{path}.provisioningNetworkGateway"
        if known is None:
            errors.invalid(at, gateway, f'"{gateway}" is not a valid IP')
        elif not _within(gateway, net):
            errors.invalid(at, gateway, f'"{gateway}" is not in the provisioning network')
        elif known in (net.network_address, net.broadcast_address):
            errors.invalid(at, gateway, f'"{gateway}" is the network or broadcast address of the provisioning network')


def _within(ip: str, net: check.Network) -> bool:
    found = check.address(ip)
    return found is not None and found.version == net.version and found in net


def _dhcp_range(text: str, net: check.Network, path: str, errors: FieldErrors) -> tuple[check.Address, ...]:
    """First and last address of the range; none when the text is not a range."""
    parts = text.split(",")
    if len(parts) != 2:
        errors.invalid(path, text, "provisioning DHCP range should be in format: start_ip,end_ip")
        return ()
    found: list[check.Address] = []
    for part in parts:
        address = check.address(part)
        if address is None:
            errors.invalid(path, text, f'{part}: "{part}" is not a valid IP')
            return ()
        if not _within(part, net):
            errors.invalid(path, text, f'"{part}" is not in the provisioning network')
            return ()
        found.append(address)
    return tuple(found)


# --- vSphere --------------------------------------------------------------------------

GENERATED = {"name": "generated-failure-domain", "region": "generated-region", "zone": "generated-zone"}
_CREDENTIALS = ("server", "user", "password", "datacenters")


def has_credentials(center: dict[str, Any]) -> bool:
    """Return whether any credential of a vCenter is given; then all of them must be."""
    return any(center.get(field) for field in _CREDENTIALS)


def _vsphere_credentials(section: dict[str, Any], errors: FieldErrors) -> None:
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


def _vsphere(section: dict[str, Any], errors: FieldErrors) -> None:
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


def _vcenter(path: str, center: dict[str, Any], errors: FieldErrors) -> None:
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


def _failure_domain(path: str, domain: dict[str, Any], servers: list[str], errors: FieldErrors) -> bool:
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


# --- Nutanix --------------------------------------------------------------------------


def _nutanix(section: dict[str, Any], errors: FieldErrors) -> None:
    path = "platform.nutanix"
    central = section.get("prismCentral") or {}
    at = f"{path}.prismCentral"
    _address(f"{at}.endpoint.address", central.get("endpoint") or {}, "Prism Central", "", errors)
    port = (central.get("endpoint") or {}).get("port", 0)
    if not 1 <= port <= 65535:
        errors.invalid(
            f"{at}.endpoint.port",
            port,
            "The Prism Central endpoint port is invalid, must be in the range of 1 to 65535",
        )
    for field in ("username", "password"):
        if not central.get(field):
            errors.required(f"{at}.{field}", f"must specify the Prism Central {field}")
    elements = section.get("prismElements") or []
    if len(elements) != 1:
        errors.required(f"{path}.prismElements", "must specify one Prism Element")
    for element in elements:
        at = f"{path}.prismElements"
        if not element.get("uuid"):
            errors.required(f"{at}.uuid", "must specify the Prism Element UUID")
        endpoint = element.get("endpoint") or {}
        _address(f"{at}.endpoint.address", endpoint, "Prism Element", " (cluster)", errors)
        if not 1 <= endpoint.get("port", 0) <= 65535:
            errors.required(
                f"{at}.endpoint.port", "The Prism Element endpoint port is invalid, must be in the range of 1 to 65535"
            )
    subnets = section.get("subnetUUIDs") or []
    if not subnets or not subnets[0]:
        errors.required(f"{path}.subnetUUIDs", "must specify at least one subnet")
    elif len(subnets) > 32:
        errors.too_many(f"{path}.subnetUUIDs", len(subnets), 32)
    else:
        for index, subnet in enumerate(subnets):
            if subnet in subnets[:index]:
                errors.invalid(f"{path}.subnetUUIDs", subnet, "should not configure duplicate value")
    timeout = section.get("prismAPICallTimeout")
    if timeout is not None and timeout <= 0:
        errors.invalid(f"{path}.prismAPICallTimeout", timeout, "must be a positive integer value")


def _address(path: str, endpoint: dict[str, Any], what: str, more: str, errors: FieldErrors) -> None:
    address = endpoint.get("address", "")
    if not address:
        errors.required(path, f"must specify the {what} endpoint address")
    elif check.address(address) is None and check.subdomain(address):
        errors.invalid(path, address, f"must be the domain name or IP address of the {what}{more}")


# --- what is not used -------------------------------------------------------------------

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


def _shown(field: str, value: Any) -> str:
    """A value as Go prints it; larger structs, for which that has no names, as JSON."""
    if field == "loadBalancer":
        return f"&{{{value.get('type', '')}}}"
    if value == {}:
        return "&{}"
    return value if isinstance(value, str) else quote(value)


def ignored(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(level, text) for every field that is given and not used."""
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
