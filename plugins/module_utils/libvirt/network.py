"""Networks of a plan as libvirt networks (https://libvirt.org/formatnetwork.html).

libvirt's dnsmasq serves each: DHCP with reservations by MAC (IPv4) or DUID-LL (IPv6), router advertisements, and names.
A machine network without NAT still has a default route, because nodes are refused without one: `forward mode='open'`
where the namespace is ours (NAT is `sandbox.uplink`'s there); on a plain libvirt, where that would switch on the
host's forwarding, an isolated network whose router is announced by an option of dnsmasq.
"""

from __future__ import annotations

import ipaddress
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents import load_json
from ..errors import LabError
from ..plan.fields import Family
from ..plan.machines import Network, Reservation, Subnet
from ..state.owner import Owner, identity
from .connection import lookup
from .xmldiff import difference, element, text, unified_diff

if TYPE_CHECKING:
    import libvirt

SERVICE = "dhcp"
"""Name of the directory with dnsmasq's log, which is among those of the lab's services."""
DNSMASQ = "{http://libvirt.org/schemas/network/dnsmasq/1.0}"


def render(
    network: Network,
    owner: Owner,
    *,
    private: bool,
    forwarders: Sequence[str] = (),
    boot_file: str | None = None,
    log: Path | None = None,
    bare: bool = False,
) -> ET.Element:
    """Return the definition of `network` (an entry of a plan's `networks`).

    owner: of the cluster; the UUID is its mark; private: whether the network namespace is a sandbox's; forwarders:
    name servers for other names (only with `nat`); boot_file: URL of the iPXE script for those that boot
    from the network (the network cards' own firmware is iPXE, which fetches it); log: file to which dnsmasq adds its
    lines, in a directory that exists; None: it writes to the system's log; bare: another hypervisor serves it, so that no dnsmasq is
    wanted here.
    """
    name = network["name"]
    families = {subnet["family"]: subnet for subnet in network["subnets"]}
    served = network["domain"] is not None
    dns = network["dns"]
    options = [
        *_options(network, families, served, private, forwarders),
        *_boot_options(boot_file, families),
        *([f"log-facility={log}"] if log else []),
    ]
    if bare:
        options = []
    return element(
        "network",
        None,
        element("name", text=name),
        element("uuid", text=identity(owner.mark, "network", name)),
        _forward(network, private),
        element("bridge", {"name": network["bridge"], "stp": "off", "delay": "0"}),
        element("mtu", {"size": network["mtu"]}),
        element("mac", {"address": network["bridge_mac"]}),
        element("domain", {"name": network["domain"], "localOnly": "yes"}) if served else None,
        element("dns", {"enable": "no"})
        if bare
        else element(
            "dns",
            None,
            *(element("forwarder", {"addr": address}) for address in forwarders if network["nat"]),
            *(
                element("host", {"ip": host["ip"]}, *(element("hostname", text=label) for label in host["names"]))
                for host in dns["hosts"]
            ),
        )
        if dns["hosts"] or (forwarders and network["nat"])
        else None,
        *(_ip(subnet, network["reservations"]) for subnet in network["subnets"]),
        element(
            f"{DNSMASQ}options",
            None,
            *(element(f"{DNSMASQ}option", {"value": value}) for value in options),
        )
        if options
        else None,
    )


def apply(connection: libvirt.virConnect, wanted: Sequence[ET.Element], *, check: bool = False) -> list[dict[str, Any]]:
    """Define and start networks so that they are as `wanted`; return a difference (`before`, `after`) for each that was not.

    Raises `LabError` for a network of that name that another cluster owns, and for a change under running machines.
    """
    changes = []
    for tree in wanted:
        name, ours = tree.findtext("name"), tree.findtext("uuid")
        network = lookup(connection, "networkLookupByName", str(name))
        if network is not None and network.UUIDString() != ours:
            raise LabError(
                f"network {name} exists in libvirt and was not made by this cluster: choose another name, or remove it"
            )
        diff = difference(ET.fromstring(network.XMLDesc(INACTIVE)) if network is not None else None, tree)
        if network is not None and network.isActive():
            if not diff:
                if not _is_served(tree):
                    changes.append(
                        {"before": "its dnsmasq is stopped\n", "after": "its dnsmasq is running\n", "name": name}
                    )
                    if not check:
                        _serve(network)
                continue
            _refuse_if_used(connection, str(name), diff)
        changes.append({**(diff or {"before": "stopped\n", "after": "started\n"}), "name": name})
        if check:
            continue
        if network is not None and diff and network.isActive():
            network.destroy()
        _refuse_taken(tree)
        if network is None or diff:
            network = connection.networkDefineXML(text(tree))
        network.create()
        settle_addresses(tree)
    return changes


def _is_served(tree: ET.Element) -> bool:
    """Return whether the dnsmasq of an active network runs; libvirt does not notice when it ends."""
    pid = Path(f"/run/libvirt/network/{tree.findtext('name')}.pid")
    try:
        return (
            tree.find("ip") is None
            or tree.find("dns[@enable='no']") is not None
            or Path(f"/proc/{int(pid.read_text())}/comm").read_text().strip() == "dnsmasq"
        )
    except (OSError, ValueError):
        return False


def _serve(network: libvirt.virNetwork) -> None:
    """Let libvirt start the dnsmasq of an active network by changing a DNS entry."""
    for command in (3, 2):  # VIR_NETWORK_UPDATE_COMMAND_ADD_LAST, _DELETE
        network.update(
            command, 11, -1, "<txt name='agentlab' value='served'/>", 1
        )  # VIR_NETWORK_SECTION_DNS_TXT, AFFECT_LIVE


def remove(connection: libvirt.virConnect, name: str, mark: str) -> bool:
    """Remove network `name` if it carries `mark`; return whether it was there.

    The mark is in its UUID. A network of that name that another cluster or a user has made is left alone.
    """
    network = lookup(connection, "networkLookupByName", name)
    if network is None or network.UUIDString() != identity(mark, "network", name):
        return False
    if network.isActive():
        network.destroy()
    if network.isPersistent():
        network.undefine()
    return True


INACTIVE = 1  # VIR_NETWORK_XML_INACTIVE


def settle_addresses(tree: ET.Element) -> None:
    """Make the bridge's IPv6 addresses usable immediately.

    Without a port a bridge has no carrier, duplicate address detection does not end, and nothing can listen there.
    """
    bridge = tree.find("bridge")
    link = bridge.get("name", "") if bridge is not None else ""
    table = Path("/proc/net/if_inet6")
    lines = table.read_text().splitlines() if table.exists() else []
    tentative = {line.split()[0] for line in lines if line.split()[5] == link and int(line.split()[4], 16) & 0x40}
    for ip in tree.findall("ip"):
        address, prefix = ip.get("address", ""), ip.get("prefix", "")
        if ip.get("family") == "ipv6" and _packed(address) in tentative:
            place = [f"{address}/{prefix}", "dev", link]
            for command in (["delete", *place], ["add", *place, "nodad"]):
                subprocess.run(["ip", "-6", "address", *command], check=True, capture_output=True)


def _packed(address: str) -> str:
    return ipaddress.IPv6Address(address).packed.hex()


def _forward(network: Network, private: bool) -> ET.Element | None:
    if private:
        return element("forward", {"mode": "open"})
    if network["nat"]:
        six = any(subnet["family"] == "ipv6" for subnet in network["subnets"])
        return element("forward", {"mode": "nat"}, element("nat", {"ipv6": "yes"}) if six else None)
    return None


def _ip(subnet: Subnet, reservations: Sequence[Reservation]) -> ET.Element:
    dhcp = subnet["dhcp"]
    lease = {"expiry": dhcp["lease_minutes"], "unit": "minutes"} if dhcp else {}
    six = subnet["family"] == "ipv6"
    return element(
        "ip",
        {"family": subnet["family"], "address": subnet["gateway"], "prefix": subnet["prefix"]},
        element(
            "dhcp",
            None,
            element("range", {"start": dhcp["start"], "end": dhcp["end"]}, element("lease", lease)),
            *(
                element(
                    "host",
                    {"id": entry["duid"], "mac": entry["mac"], "name": entry["name"], "ip": entry["ip"]},
                    element("lease", lease),
                )
                for entry in reservations
                if (entry["duid"] is not None) == six
            ),
        )
        if dhcp
        else None,
    )


def _options(
    network: Network, families: Mapping[Family, Subnet], served: bool, private: bool, forwarders: Sequence[str]
) -> list[str]:
    options = [f"address=/{entry['domain']}/{entry['ip']}" for entry in network["dns"]["wildcards"]]
    if private and not (network["nat"] and forwarders):
        options.append("no-resolv")
    if not served:
        # The machine network has all names; a second resolver and a second default route would be wrong.
        options += ["dhcp-option=6", "dhcp-option=option6:dns-server"]
        if not network["nat"]:
            options += ["dhcp-option=3", f"ra-param={network['bridge']},0,0"]
    elif not network["nat"] and not private:
        if "ipv4" in families:
            options.append(f"dhcp-option=3,{families['ipv4']['gateway']}")
        if "ipv6" in families:
            options.append(f"ra-param={network['bridge']},0,1800")
    return options


def _boot_options(boot_file: str | None, families: Mapping[Family, Subnet]) -> list[str]:
    if not boot_file:
        return []
    return [f"dhcp-boot={boot_file}"] if "ipv4" in families else [f"dhcp-option=option6:bootfile-url,{boot_file}"]


def _refuse_taken(tree: ET.Element) -> None:
    """Raise an error that names the conflict: libvirt only reports that the network is in use."""
    bridge = tree.find("bridge")
    own = bridge.get("name") if bridge is not None else None
    done = subprocess.run(["ip", "-json", "-4", "route"], capture_output=True, text=True, check=False)
    for route in load_json(done.stdout or "[]", name="ip route"):
        if route["dst"] == "default" or route.get("dev") == own:
            continue
        for ip in tree.findall("ip"):
            subnet = ipaddress.ip_network(f"{ip.get('address')}/{ip.get('prefix')}", strict=False)
            if subnet.version == 4 and subnet.overlaps(ipaddress.IPv4Network(route["dst"])):
                raise LabError(
                    f"network {tree.findtext('name')}: {subnet} is in use on this host by {route.get('dev')}: choose another (network.ipv4)"
                )


def _refuse_if_used(connection: libvirt.virConnect, name: str, diff: dict[str, str]) -> None:
    users = []
    for domain in connection.listAllDomains(1):  # VIR_CONNECT_LIST_DOMAINS_ACTIVE
        tree = ET.fromstring(domain.XMLDesc())
        if any(source.get("network") == name for source in tree.findall("devices/interface/source")):
            users.append(domain.name())
    if users:
        raise LabError(
            f"network {name} would change while {', '.join(sorted(users))} use it: destroy the cluster first\n{unified_diff(diff)}"
        )
