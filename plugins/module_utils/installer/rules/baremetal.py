"""Rules for `platform.baremetal`: the provisioning network and the hosts' BMCs."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from .. import check
from ..errors import FieldErrors
from ..models import InstallConfig, Section
from .hosts import driver_scheme


def check_baremetal(section: Section, errors: FieldErrors) -> None:
    """Check the kind of provisioning network and its addresses, as for every way to install.

    section: `platform.baremetal` with its defaults. Problems are added to `errors`, with upstream's texts.
    """
    path = "platform.baremetal"
    kind = section["provisioningNetwork"]
    if kind not in ("Disabled", "Managed", "Unmanaged"):
        errors.unsupported(f"{path}.provisioningNetwork", kind, ("Disabled", "Managed", "Unmanaged"))
    for name in ("bootstrapProvisioningIP", "clusterProvisioningIP"):
        ip = section.get(name, "")
        if ip and check.address(ip) is None:
            errors.invalid(f"{path}.{name}", ip, f'"{ip}" is not a valid IP')


def check_provisioning(config: InstallConfig, section: Section, errors: FieldErrors) -> None:
    """Check the provisioning network: only when a BMC is given, as otherwise nothing uses it.

    section: `platform.baremetal` with its defaults. Problems are added to `errors`, with upstream's texts.
    """
    hosts = section.get("hosts") or []
    if any((host.get("bmc") or {}).get("address") for host in hosts):
        check_provisioning_network(config, section, errors)


def check_provisioning_network(config: InstallConfig, section: Section, errors: FieldErrors) -> None:
    """Check the provisioning network and the BMCs of the hosts, each of which needs one; as `check_provisioning`."""
    path, hosts = "platform.baremetal", section.get("hosts") or []
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


def check_bootstrap(config: InstallConfig, section: Section, errors: FieldErrors) -> None:
    """Check what the installer needs for its bootstrap machine: where it is created, its addresses and images.

    section: `platform.baremetal` with its defaults. Problems are added to `errors`, with upstream's texts. Whether the
    images are there, and the bridges of another host, is up to the installer.
    """
    path, ip = "platform.baremetal", section.get("bootstrapProvisioningIP", "")
    machine = [entry.get("cidr", "") for entry in config["networking"]["machineNetwork"]]
    inside = any(net is not None and _is_within(ip, net) for net in map(check.network, machine))
    if section["provisioningNetwork"] == "Disabled":
        if ip and not inside:
            text = f"provisioning network is disabled, IP expected to be in one of the machine networks: {','.join(machine)}"
            errors.invalid(f"{path}.bootstrapProvisioningIP", ip, text)
    else:
        net = check.network(section.get("provisioningNetworkCIDR", ""))
        if net is not None and not _is_within(ip, net):
            errors.invalid(f"{path}.bootstrapProvisioningIP", ip, f'"{ip}" is not in the provisioning network')
        if inside:
            errors.invalid(f"{path}.bootstrapProvisioningIP", ip, "the IP must not be in one of the machine networks")
    if why := check.uri(section["libvirtURI"]):
        errors.invalid(f"{path}.libvirtURI", section["libvirtURI"], why)
    for field in ("bootstrapOSImage", "clusterOSImage"):
        url = section.get(field, "")
        if url and (why := _image_fault(url)):
            errors.invalid(f"{path}.{field}", url, why)


def check_static_bootstrap(section: Section, errors: FieldErrors) -> None:
    """Check that the static network of the bootstrap machine is whole; the first part that lacks another one is reported."""
    given = {part: section.get(f"bootstrapExternalStatic{part}") for part in ("IP", "Gateway", "DNS")}
    for part, needed in (("IP", "Gateway"), ("IP", "DNS"), ("Gateway", "IP"), ("DNS", "IP")):
        if given[part] and not given[needed]:
            names = (f"BootstrapExternalStatic{needed}", f"BootstrapExternalStatic{part}")
            errors.required("platform.baremetal", f"You must specify a value for {names[0]} when {names[1]} is set.")
            return


def _image_fault(url: str) -> str:
    if check.request_uri(url):
        return f"the URI provided: {url} is invalid"
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return f"the URI provided: {url} must begin with http/https"
    checksum = parse_qs(parts.query).get("sha256", [""])[0]
    if not checksum:
        return f"the sha256 parameter in the {url} URI is missing"
    return f"the sha256 parameter in the {url} URI is invalid" if len(checksum) != 64 else ""


def _no_provisioning_network(config: InstallConfig, section: Section, path: str, errors: FieldErrors) -> None:
    for index, host in enumerate(section["hosts"]):
        address = (host.get("bmc") or {}).get("address", "")
        driver = _NETWORK_BOOT.get(driver_scheme(address))
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


def _provisioning_network(config: InstallConfig, section: Section, path: str, errors: FieldErrors) -> None:
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
    if not _is_within(cluster, net):
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
        elif not _is_within(gateway, net):
            errors.invalid(at, gateway, f'"{gateway}" is not in the provisioning network')
        elif known in (net.network_address, net.broadcast_address):
            errors.invalid(at, gateway, f'"{gateway}" is the network or broadcast address of the provisioning network')


def _is_within(ip: str, net: check.Network) -> bool:
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
        if not _is_within(part, net):
            errors.invalid(path, text, f'"{part}" is not in the provisioning network')
            return ()
        found.append(address)
    return tuple(found)
