"""The profile of a cluster whose install-config and agent-config are known: topology, addresses, networks, machines."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..addresses import family
from ..plan import disks, formats
from ..plan.machine_options import RootDeviceHints
from ..plan.shapes import mismatches
from ..plan.topologies import TOPOLOGIES

# Fields of install-config that are laid over the lab's as they are; all others are derived, or named as not taken.
_KEPT = ("capabilities", "featureSet", "featureGates", "cpuPartitioningMode", "publish")
_DERIVED = {
    "apiVersion", "kind", "metadata", "baseDomain", "controlPlane", "arbiter", "compute", "networking", "platform", "fips",
}  # fmt: skip
_NOT_TAKEN = {
    "pullSecret": "a secret; the lab has its own",
    "sshKey": "the lab has its own key",
    "additionalTrustBundle": "the lab's registry has a certificate of its own",
    "additionalTrustBundlePolicy": "there is no trust bundle",
    "imageDigestSources": "the lab mirrors its own release",
    "imageContentSources": "the lab mirrors its own release",
    "proxy": "the lab has no proxy",
}


class Shape(NamedTuple):
    """A profile that was derived. names: host name in the run -> name of the lab's node; unknown: what could not be taken, and why.

    raw: the profile as plain data; cluster: its name, empty if unknown.
    """

    raw: dict[str, Any]
    cluster: str
    names: dict[str, str]
    unknown: list[str]


def derive(install: Mapping[str, object], agent: Mapping[str, object]) -> Shape:
    """Return the profile for the content of install-config.yaml and agent-config.yaml; fields of a wrong type count as missing.

    install, agent: decoded documents, {} for none. The topology with the same masters and arbiters is taken, and the
    lab's own names; `unknown` has a sentence for each field that has no counterpart.
    """
    unknown = [f"install-config.yaml: {name}: {why}" for name, why in _NOT_TAKEN.items() if install.get(name)]
    others = sorted(install.keys() - _DERIVED - {*_KEPT} - _NOT_TAKEN.keys())
    unknown += [f"install-config.yaml: {name}: has no counterpart in a profile" for name in others]
    counts = _counts(install)
    raw: dict[str, Any] = _topology(counts, bool(_map(install, "controlPlane").get("fencing")))
    if install.get("baseDomain"):
        raw["base_domain"] = install["baseDomain"]
    raw |= _networks(install, unknown)
    platform = _platform(install, counts, unknown)
    overlay = {name: install[name] for name in _KEPT if install.get(name)} | platform.pop("overlay", {})
    raw |= platform
    if overlay:
        raw.setdefault("installer", {})["install_config"] = overlay
    if install.get("fips"):
        raw.setdefault("installer", {})["fips"] = True
    if TOPOLOGIES[raw["topology"]].fencing and _fenced_by_mac(install):
        raw.setdefault("installer", {})["fencing_by"] = "macAddress"
    described = _list(agent, "hosts")
    if not described:
        described = [_host(host) for host in _list(_map(_map(install, "platform"), "baremetal"), "hosts")]
        if described:
            raw.setdefault("installer", {})["hosts_in"] = "install-config"
    names, nodes, static = _hosts(described, counts, raw.get("network", {}), unknown)
    for role, count in counts.items():
        if (found := _format(described, role, count)) != f"{role}-%d":
            raw.setdefault(role, {})["name_format"] = found
    if nodes:
        raw["nodes"] = nodes
    if static:
        raw["addressing"] = "static"
    _rendezvous(agent, raw, nodes, unknown)
    return Shape(raw, str(_map(install, "metadata").get("name") or ""), names, unknown)


def _fenced_by_mac(install: Mapping[str, object]) -> bool:
    """Whether credentials have no host; openshift-install ignores the case of keys."""
    credentials = _list(_map(_map(install, "controlPlane"), "fencing"), "credentials")
    return not any(str(key).lower() == "hostname" for entry in credentials for key in entry)


def _map(value: Mapping[str, object], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _list(value: Mapping[str, object], key: str) -> list[Any]:
    found = value.get(key)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _counts(install: Mapping[str, object]) -> dict[str, int]:
    def replicas(pool: Mapping[str, object], default: int) -> int:
        found = pool.get("replicas", default)
        return found if isinstance(found, int) else default

    return {
        "master": replicas(_map(install, "controlPlane"), 3),
        "arbiter": replicas(_map(install, "arbiter"), 0),
        "worker": sum(replicas(pool, 0) for pool in _list(install, "compute")),
    }


def _topology(counts: Mapping[str, int], fencing: bool) -> dict[str, Any]:
    """The topology with these masters and arbiters whose number of workers is nearest, and the number if it differs."""
    same = [
        (abs(row.worker.number - counts["worker"]), name, row)
        for name, row in TOPOLOGIES.items()
        if (row.master.number, row.arbiter.number, row.fencing) == (counts["master"], counts["arbiter"], fencing)
    ]
    if not same:
        return {"topology": "ha", "master": {"count": counts["master"]}, "worker": {"count": counts["worker"]}}
    __, name, row = min(same, key=lambda found: found[0])
    differs = row.worker.number != counts["worker"]
    return {"topology": name, **({"worker": {"count": counts["worker"]}} if differs else {})}


def _networks(install: Mapping[str, object], unknown: list[str]) -> dict[str, Any]:
    networking = _map(install, "networking")
    machine = [str(entry.get("cidr")) for entry in _list(networking, "machineNetwork")]
    families = [family(cidr.partition("/")[0]) for cidr in machine]
    stack = {("ipv4",): "ipv4", ("ipv6",): "ipv6", ("ipv4", "ipv6"): "dualstack", ("ipv6", "ipv4"): "v6v4"}
    first = {kind: machine[families.index(kind)] for kind in dict.fromkeys(families)}
    raw: dict[str, Any] = {"stack": stack[tuple(dict.fromkeys(families))] if families else "ipv4"}
    unknown += [
        f"install-config.yaml: machineNetwork {cidr}: a lab has one network for each family"
        for cidr in machine
        if cidr not in first.values()
    ]
    if first:
        raw["network"] = dict(first)
    installer: dict[str, Any] = {}
    if networking.get("networkType"):
        installer["network_type"] = networking["networkType"]
    ranges: dict[str, list[dict[str, Any]]] = {}
    for entry in _list(networking, "clusterNetwork"):
        if entry.get("cidr") and entry.get("hostPrefix"):
            kind = family(str(entry["cidr"]).partition("/")[0])
            ranges.setdefault(kind, []).append({"cidr": entry["cidr"], "host_prefix": entry["hostPrefix"]})
    if ranges:
        installer["cluster_network"] = ranges
    services = networking.get("serviceNetwork")
    if isinstance(services, list) and services:
        installer["service_network"] = {family(str(cidr).partition("/")[0]): cidr for cidr in services}
    return {**raw, **({"installer": installer} if installer else {})}


def _platform(install: Mapping[str, object], counts: Mapping[str, int], unknown: list[str]) -> dict[str, Any]:
    platform = _map(install, "platform")
    name = next(iter(platform), "none" if counts["master"] == 1 else "baremetal")
    raw: dict[str, Any] = {"platform": name}
    fields = _map(platform, name)
    vips = {
        short: fields.get(f"{short}VIPs") or ([fields[f"{short}VIP"]] if fields.get(f"{short}VIP") else None)
        for short in ("api", "ingress")
    }
    if any(vips.values()):
        raw["vips"] = {short: value for short, value in vips.items() if value}
    known = {"apiVIPs", "apiVIP", "ingressVIPs", "ingressVIP"}
    if name == "external":
        known |= {"platformName", "cloudControllerManager"}
        if fields.get("platformName"):
            manager = fields.get("cloudControllerManager") or "None"
            raw["external"] = {"platform_name": fields["platformName"], "cloud_controller_manager": manager}
    if name == "baremetal":
        known |= {"hosts", *(("provisioningNetwork",) if fields.get("provisioningNetwork") == "Disabled" else ())}
    rest = {key: _without_passwords(value) for key, value in fields.items() if key not in known}
    if name in ("vsphere", "nutanix") and rest:
        raw["overlay"] = {"platform": {name: rest}}
    else:
        unknown += [f"install-config.yaml: platform.{name}.{key}: not taken" for key in rest]
    return raw


def _without_passwords(value: object) -> Any:
    """A platform's section for a lab in which nothing logs in to it."""
    if isinstance(value, list):
        return [_without_passwords(entry) for entry in value]
    if isinstance(value, dict):
        return {key: "not-used" if key == "password" else _without_passwords(entry) for key, entry in value.items()}
    return value


def _host(host: Mapping[str, object]) -> dict[str, Any]:
    """A host of platform baremetal in agent-config's form; the lab has a BMC of its own for it."""
    nics = [
        {"name": nic["name"], "macAddress": nic["mac-address"]}
        for nic in _list(_map(host, "networkConfig"), "interfaces")
        if nic.get("name") and nic.get("mac-address")
    ]
    return {
        **host,
        "hostname": host.get("name"),
        "interfaces": nics or [{"name": "boot", "macAddress": host.get("bootMACAddress")}],
    }


def _format(hosts: list[Any], role: str, count: int) -> str:
    """The format of a role's host names, if they have one and are numbered from 0; else the lab's."""
    names = [str(host.get("hostname")) for host in hosts if host.get("role") == role]
    found = names[0].removesuffix("0") + "%d" if names else ""
    fits = formats.fits("name_format", found) and names == [found % number for number in range(count)]
    return found if fits else f"{role}-%d"


_LETTER = re.compile(r"/dev/(?P<bus>[sv])d(?P<letter>[a-z])")
_MORE_GIB = 20


def _hosts(
    hosts: list[Any], counts: Mapping[str, int], networks: Mapping[str, str], unknown: list[str]
) -> tuple[dict[str, str], dict[str, dict[str, Any]], bool]:
    """Hosts of agent-config as the lab's nodes: those with a role first, the others in their order."""
    free = {role: [_format(hosts, role, count) % number for number in range(count)] for role, count in counts.items()}
    names: dict[str, str] = {}
    nodes: dict[str, dict[str, Any]] = {}
    static = False
    for at, host in sorted(enumerate(hosts), key=lambda one: not one[1].get("role")):
        given = host.get("role")
        role = given if given and isinstance(given, str) else next((role for role in free if free[role]), "")
        if not free.get(role):
            unknown.append(f"agent-config.yaml: hosts[{at}]: the cluster has no {role or 'node'} left for it")
            continue
        name = free[role].pop(0)
        names[str(host.get("hostname") or name)] = name
        node, fixed = _node(host, networks, f"hosts[{at}]", unknown)
        static = static or fixed
        if node:
            nodes[name] = node
        if host.get("hostname") and host["hostname"] != name:
            unknown.append(f"agent-config.yaml: hosts[{at}].hostname {host['hostname']}: the lab calls it {name}")
    return names, nodes, static


def _node(
    host: Mapping[str, object], networks: Mapping[str, str], where: str, unknown: list[str]
) -> tuple[dict[str, Any], bool]:
    node: dict[str, Any] = {}
    interfaces = _list(host, "interfaces")
    renamed = {str(nic.get("name")): f"eth{number}" for number, nic in enumerate(interfaces)}
    nics: dict[str, dict[str, Any]] = {
        renamed[str(nic.get("name"))]: {"mac": str(nic["macAddress"]).lower()}
        for nic in interfaces
        if nic.get("macAddress")
    }
    config = host.get("networkConfig")
    static = False
    if isinstance(config, dict) and config:
        node["network_config"] = _renamed(config, renamed)
        addresses = _addresses(config, networks)
        if addresses and len(addresses) == len(networks):
            nics.setdefault("eth0", {})["addresses"] = addresses
            static = True
        links = sorted({str(one.get("type")) for one in _list(config, "interfaces")} - {"ethernet", "None"})
        unknown += [
            f"agent-config.yaml: {where}.networkConfig: {kind}: the lab's switch is not prepared for it"
            for kind in links
        ]
    if nics:
        node["nics"] = nics
    hints = _map(host, "rootDeviceHints")
    device = str(hints.get("deviceName") or "")
    if device:
        node["root_device"] = device
    if letter := _LETTER.fullmatch(device):
        # So many disks that there is one of this name.
        node["disk_bus"] = "scsi" if letter["bus"] == "s" else "virtio"
        if before := ord(letter["letter"]) - ord("a"):
            node["extra_disks"] = [{"size_gib": _MORE_GIB}] * before
    taken = _disk(hints)
    if taken:
        node["root_device_hints"] = {short: hints[name] for short, name in taken.items()}
        node.setdefault("extra_disks", []).append(_extra_disk(node["root_device_hints"]))
    unknown += [
        f"agent-config.yaml: {where}.rootDeviceHints.{name}: not taken"
        for name in hints
        if name not in ("deviceName", *taken.values())
    ]
    return node, static


def _disk(hints: Mapping[str, Any]) -> dict[str, str]:
    """Hints that a disk of the lab can be made for; a SCSI address is the lab's own, and with a device the name decides."""
    wanted = {short: name for short, name in disks.HINTS.items() if name in hints and short != "hctl"}
    given = {short: hints[name] for short, name in wanted.items()}
    return {} if hints.get("deviceName") or any(mismatches(given, RootDeviceHints)) else wanted


def _extra_disk(hints: Mapping[str, Any]) -> dict[str, Any]:
    size = -(-hints.get("min_size_gigabytes", 0) * 10**9 // disks.GIB)
    named = {"serial_number": "serial"}
    return {
        "size_gib": max(size, _MORE_GIB),
        "bus": "scsi",
        **{named.get(key, key): value for key, value in hints.items() if key != "min_size_gigabytes"},
    }


def _renamed(value: object, names: Mapping[str, str]) -> object:
    """An nmstate with the lab's names of interfaces: those themselves, and VLANs on them (eno1.100)."""
    if isinstance(value, dict):
        return {key: _renamed(entry, names) for key, entry in value.items()}
    if isinstance(value, list):
        return [_renamed(entry, names) for entry in value]
    if isinstance(value, str):
        parent, dot, rest = value.partition(".")
        return f"{names[parent]}{dot}{rest}" if parent in names else value
    return value


def _addresses(config: Mapping[str, object], networks: Mapping[str, str]) -> list[str]:
    """The first static address in the machine network of each family, in the order of the families."""
    given = [
        str(entry.get("ip"))
        for interface in _list(config, "interfaces")
        for kind in ("ipv4", "ipv6")
        for entry in _list(_map(interface, kind), "address")
        if _map(interface, kind).get("enabled") and not _map(interface, kind).get("dhcp")
    ]
    return [ip for cidr in networks.values() for ip in [next((ip for ip in given if _is_inside(ip, cidr)), "")] if ip]


def _is_inside(address: str, cidr: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False


def _rendezvous(agent: Mapping[str, object], raw: dict[str, Any], nodes: Mapping[str, Any], unknown: list[str]) -> None:
    """Keep a rendezvousIP that no host has: it may be the failure itself."""
    address = agent.get("rendezvousIP")
    if not address:
        return
    known = [ip for node in nodes.values() for nic in node.get("nics", {}).values() for ip in nic.get("addresses", ())]
    network = raw.get("network", {})
    inside = any(_is_inside(str(address), str(cidr)) for cidr in network.values())
    if (known and address not in known) or not inside:
        raw.setdefault("installer", {})["agent_config"] = {"rendezvousIP": address}
    elif not known:
        unknown.append(
            f"agent-config.yaml: rendezvousIP {address}: nodes have DHCP; the lab gives its first master another"
        )
    for name in sorted(agent.keys() - {"apiVersion", "kind", "metadata", "rendezvousIP", "hosts"}):
        unknown.append(f"agent-config.yaml: {name}: not taken")
