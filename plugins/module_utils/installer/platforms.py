"""Rules of the platforms that the agent-based installer knows, and their fields that it doesn't use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import check
from .errors import FieldErrors
from .install_config import ON_PREM, platform_name


def validate(config: dict[str, Any], errors: FieldErrors) -> None:
    """Check `platform`."""
    given = [name for name, value in config["platform"].items() if value is not None]
    if not given:
        errors.invalid("platform", "", f"must specify one of the platforms ({', '.join(sorted(ON_PREM))})")
        return
    if len(given) > 1:
        errors.invalid(
            "platform", given[0],
            f'must only specify a single type of platform; cannot use both "{given[0]}" and "{given[1]}"',
        )  # fmt: skip
    platform = platform_name(config)
    section = config["platform"][platform] or {}
    path = f"platform.{platform}"
    if platform in ("baremetal", "vsphere", "nutanix"):
        _vips(config, section, path, errors)
        kind = (section.get("loadBalancer") or {}).get("type", "")
        if kind not in ("", "OpenShiftManagedDefault", "UserManaged"):
            errors.invalid(f"{path}.loadBalancer.type", kind, "invalid load balancer type")
        if section.get("dnsRecordsType") == "External" and kind != "UserManaged":
            errors.invalid(
                f"{path}.dnsRecordsType", "External",
                "external DNS records can only be configured with user-managed loadbalancers",
            )  # fmt: skip
    if platform == "baremetal":
        _provisioning(config, section, errors)
    elif platform == "vsphere":
        _vsphere(section, errors)
    elif platform == "nutanix":
        _nutanix(section, errors)


# --- VIPs -----------------------------------------------------------------------------


def _vips(config: dict[str, Any], section: dict[str, Any], path: str, errors: FieldErrors) -> None:
    user_managed = (section.get("loadBalancer") or {}).get("type") == "UserManaged"
    machine = [entry.get("cidr", "") for entry in config["networking"]["machineNetwork"]]
    families = {net.version for net in map(check.network, machine) if net is not None}
    lists = {"apiVIPs": section.get("apiVIPs") or [], "ingressVIPs": section.get("ingressVIPs") or []}
    if not any(lists.values()):
        errors.required(f"{path}.apiVIPs", "must specify at least one VIP for the API")
        errors.required(f"{path}.ingressVIPs", "must specify at least one VIP for the Ingress")
        return
    if not lists["ingressVIPs"]:
        errors.required(f"{path}.ingressVIPs", "must specify VIP for ingress, when VIP for API is set")
    if not lists["apiVIPs"]:
        errors.required(f"{path}.apiVIPs", "must specify VIP for API, when VIP for ingress is set")
    for name, label in (("apiVIPs", "API"), ("ingressVIPs", "Ingress")):
        vips, at = lists[name], f"{path}.{name}"
        if len(vips) > 2:
            errors.too_many(at, len(vips), 2)
        addresses = [check.address(vip) for vip in vips]
        for vip, address in zip(vips, addresses, strict=True):
            if address is None:
                errors.invalid(at, vip, f'"{vip}" is not a valid IP')
                continue
            nets = [net for net in map(check.network, machine) if net is not None]
            if not user_managed and not any(address.version == net.version and address in net for net in nets):
                errors.invalid(at, vip, f"IP expected to be in one of the machine networks: {','.join(machine)}")
            if not user_managed and name == "apiVIPs" and vip in lists["ingressVIPs"]:
                errors.invalid(at, vip, "VIP for API must not be one of the Ingress VIPs")
        known = [address for address in addresses if address is not None]
        if len(known) == 2 and len({address.version for address in known}) == 1:
            errors.invalid(
                at, vips, f"If two {label} VIPs are given, one must be an IPv4 address, the other an IPv6"
            )
        if len(known) == 2 and len(families) == 1:
            errors.invalid(at, vips, "wrong number of VIPs given. Expecting 1 VIP for single stack")
        if known:
            _primary_family(config, known[0].version, at, vips, label, errors)


def _primary_family(
    config: dict[str, Any], version: int, at: str, vips: list[str], label: str, errors: FieldErrors
) -> None:
    networking = config["networking"]
    lists = {
        "machineNetwork": [entry.get("cidr", "") for entry in networking["machineNetwork"]],
        "clusterNetwork": [entry.get("cidr", "") for entry in networking["clusterNetwork"]],
        "serviceNetwork": networking["serviceNetwork"],
    }
    for name, cidrs in lists.items():
        first = check.network(cidrs[0]) if cidrs else None
        if first is not None and first.version != version:
            errors.invalid(
                at, vips[0], f"{name} primary IP Family and primary IP family for the {label} VIP should match"
            )


# --- baremetal ------------------------------------------------------------------------


def _provisioning(config: dict[str, Any], section: dict[str, Any], errors: FieldErrors) -> None:
    """Checks of the provisioning network: only when a BMC is given, as otherwise nothing uses it."""
    hosts = section.get("hosts") or []
    if not any((host.get("bmc") or {}).get("address") for host in hosts):
        return
    path = "platform.baremetal"
    kind = section.get("provisioningNetwork", "Managed")
    if kind not in ("Disabled", "Managed", "Unmanaged"):
        errors.unsupported(f"{path}.provisioningNetwork", kind, ("Disabled", "Managed", "Unmanaged"))
        return
    if kind != "Disabled":
        _provisioning_network(config, section, path, errors)
    external, internal = section.get("externalMACAddress", ""), section.get("provisioningMACAddress", "")
    for name, mac in (("externalMACAddress", external), ("provisioningMACAddress", internal)):
        why = check.mac(mac) if mac else None
        if why:
            errors.invalid(f"{path}.{name}", mac, why)
    if external and external.lower() == internal.lower():
        errors.duplicate(f"{path}.provisioningMACAddress", "provisioning and external MAC addresses may not be identical")
    seen: dict[str, set[str]] = {"address": set(), "bootMACAddress": set()}
    for index, host in enumerate(hosts):
        at, bmc = f"{path}.hosts[{index}]", host.get("bmc") or {}
        address, mac = bmc.get("address", ""), host.get("bootMACAddress", "")
        for field in ("address", "username", "password"):
            if not bmc.get(field):
                errors.required(f"{at}.bmc.{field}", f"missing {field.capitalize()}")
        if kind == "Disabled" and (address.startswith("ipmi") or ":" not in address) and address:
            errors.invalid(f"{at}.bmc.address", address, "driver ipmi requires provisioning network")
        for field, value, place in (("address", address, f"{at}.bmc.address"), ("bootMACAddress", mac, f"{at}.bootMACAddress")):
            if value and value.lower() in seen[field]:
                errors.duplicate(place, value)
            seen[field].add(value.lower())


def _provisioning_network(
    config: dict[str, Any], section: dict[str, Any], path: str, errors: FieldErrors
) -> None:
    text = section.get("provisioningNetworkCIDR", "")
    net = check.network(text)
    if net is None:
        errors.invalid(f"{path}.provisioningNetworkCIDR", text, f"invalid CIDR address: {text}")
        return
    for entry in config["networking"]["machineNetwork"]:
        machine = check.network(entry.get("cidr"))
        if machine is not None and machine.version == net.version and machine.overlaps(net):  # type: ignore[arg-type]
            errors.invalid(
                f"{path}.provisioningNetworkCIDR", text, f"overlaps with the machine network {machine}"
            )
    dhcp = section.get("provisioningDHCPRange", "")
    ends: list[check.Address] = []
    if dhcp:
        at = f"{path}.provisioningDHCPRange"
        found = [check.address(part.strip()) for part in dhcp.split(",")]
        if len(found) != 2 or None in found:
            errors.invalid(at, dhcp, "provisioning DHCP range should be in format: start_ip,end_ip")
        else:
            ends = [address for address in found if address is not None]
            for address in ends:
                if address.version != net.version or address not in net:
                    errors.invalid(at, dhcp, f'"{address}" is not in the provisioning network')
    for name in ("clusterProvisioningIP", "bootstrapProvisioningIP", "provisioningNetworkGateway"):
        ip = section.get(name, "")
        if not ip:
            continue
        known = check.address(ip)
        if known is None:
            errors.invalid(f"{path}.{name}", ip, f'"{ip}" is not a valid IP')
        elif known.version != net.version or known not in net:
            errors.invalid(f"{path}.{name}", ip, f'"{ip}" is not in the provisioning network')
        elif len(ends) == 2 and int(ends[0]) <= int(known) <= int(ends[1]):
            errors.invalid(f"{path}.{name}", ip, f'"{ip}" overlaps with the allocated DHCP range')
        elif name == "provisioningNetworkGateway" and known in (net.network_address, net.broadcast_address):
            errors.invalid(f"{path}.{name}", ip, f'"{ip}" is the network or broadcast address of the provisioning network')


# --- vSphere --------------------------------------------------------------------------


def _vsphere(section: dict[str, Any], errors: FieldErrors) -> None:
    path = "platform.vsphere"
    centers = section.get("vcenters") or []
    fields = ("server", "user", "password", "datacenters")
    complete = False
    for index, center in enumerate(centers):
        given = [field for field in fields if center.get(field)]
        if not any(center.get(field) for field in ("user", "password")):
            continue
        for field in fields:
            if field not in given:
                place = f"{path}.vcenters[{index}].{'datacenter' if field == 'datacenters' else field}"
                if section.get("deprecatedFields"):
                    names = {"server": "vcenter", "user": "username", "datacenters": "datacenter"}
                    place = f"{path}.{names.get(field, field)}"
                errors.required(place, "All credential fields are required if any one is specified")
        complete = complete or len(given) == len(fields)
    domains = section.get("failureDomains") or []
    named = any(domain.get("name") != "generated-failure-domain" for domain in domains)
    if not complete and not named:
        return
    servers = [center.get("server", "") for center in centers]
    for index, center in enumerate(centers):
        at = f"{path}.vcenters[{index}]"
        server = center.get("server", "")
        if server and (server != server.lower() or (check.address(server) is None and check.domain_name(server))):
            errors.invalid(f"{at}.server", server, "must be the domain name or IP address of the vCenter")
    for index, domain in enumerate(domains):
        _failure_domain(f"{path}.failureDomains", index, domain, servers, complete, errors)


def _failure_domain(
    path: str, index: int, domain: dict[str, Any], servers: list[str], complete: bool, errors: FieldErrors
) -> None:
    topology = domain.get("topology") or {}
    server = domain.get("server", "")
    if not server:
        errors.required(f"{path}.server", "must specify a vCenter server")
    elif server not in servers:
        errors.invalid(f"{path}.server", server, "server does not exist in vcenters")
    for field in ("zone", "region"):
        if not domain.get(field):
            errors.required(f"{path}.{field}", f"must specify {field} tag value")
    at = f"{path}.topology"
    for field, article in (("datacenter", "a datacenter"), ("datastore", "a datastore"), ("computeCluster", "a computeCluster")):
        if not topology.get(field):
            errors.required(f"{at}.{field}", f"must specify {article}")
    if not topology.get("networks"):
        errors.required(f"{at}.networks", "must specify a network")
    datacenter = topology.get("datacenter", "")
    for field, kind in (("computeCluster", "host"), ("resourcePool", "host"), ("folder", "vm"), ("datastore", "datastore")):
        value = topology.get(field, "")
        if value and not value.startswith(f"/{datacenter}/{kind}/"):
            errors.invalid(f"{at}.{field}", value, f"full path of {field} must be provided in format /<datacenter>/{kind}/...")
    if len(topology.get("tagIDs") or []) > 10:
        errors.invalid(f"{at}.tagIDs", topology["tagIDs"], "a maximum of 10 tags are allowed")
    if complete and not topology.get("folder"):
        errors.required(f"{path}[{index}].topology.folder", "must specify a folder for agent-based installs")


# --- Nutanix --------------------------------------------------------------------------


def _endpoint(path: str, endpoint: dict[str, Any], what: str, errors: FieldErrors) -> None:
    address, port = endpoint.get("address", ""), endpoint.get("port", 0)
    if not address:
        errors.required(f"{path}.address", f"must specify the {what} endpoint address")
    elif check.address(address) is None and check.domain_name(address):
        errors.invalid(f"{path}.address", address, f"must be the domain name or IP address of the {what}")
    if not 1 <= port <= 65535:
        errors.invalid(
            f"{path}.port", port, f"The {what} endpoint port is invalid, must be in the range of 1 to 65535"
        )


def _nutanix(section: dict[str, Any], errors: FieldErrors) -> None:
    path = "platform.nutanix"
    central = section.get("prismCentral") or {}
    _endpoint(f"{path}.prismCentral.endpoint", central.get("endpoint") or {}, "Prism Central", errors)
    for field in ("username", "password"):
        if not central.get(field):
            errors.required(f"{path}.prismCentral.{field}", f"must specify the Prism Central {field}")
    elements = section.get("prismElements") or []
    if not elements:
        errors.required(f"{path}.prismElements", "must specify one Prism Element")
    for element in elements:
        if not element.get("uuid"):
            errors.required(f"{path}.prismElements.uuid", "must specify the Prism Element UUID")
        _endpoint(f"{path}.prismElements.endpoint", element.get("endpoint") or {}, "Prism Element", errors)
    subnets = section.get("subnetUUIDs") or []
    if not subnets:
        errors.required(f"{path}.subnetUUIDs", "must specify at least one subnet")
    elif len(set(subnets)) < len(subnets):
        errors.invalid(f"{path}.subnetUUIDs", subnets, "should not configure duplicate value")


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
        if not value or value == defaults.get(field) or (field == "bootstrapProvisioningIP" and level == "debug"):
            continue
        shown = field[0].upper() + field[1:] if name == "nutanix" else field
        text = f": {value}" if isinstance(value, str) else ""
        yield level, f"{path}.{shown}{text} is ignored"
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
