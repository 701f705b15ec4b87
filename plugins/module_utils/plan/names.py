"""Names, addresses and paths that follow from a cluster's name. Removing what is left of a cluster that has no plan needs them."""

from __future__ import annotations

import hashlib
import ipaddress
import uuid

from .hypervisor_model import Uplink

# RFC 2544's block for laboratories, which is not routed.
_LINKS = ipaddress.IPv4Network("198.18.0.0/15")
_MAX_LINK = 15
_NODES = uuid.UUID("5f1a7c1e-8a3f-5d0c-9e55-0b6a0d3f2c11")
SERVICE_LOG = "log"
"""File in the directory of a service with what it logs, see `service_log`."""
STATE_DIR = "/var/lib/agentlab"
"""Directory on the hypervisor with a directory for each cluster, unless a profile names another."""


def state_dir(cluster: str, base: str = STATE_DIR) -> str:
    """Return the directory on the hypervisor in which everything of a cluster is.

    `base` is the directory of all clusters. The result is removed with the cluster.
    """
    return f"{base}/{cluster}"


def netns(cluster: str) -> str:
    """Return the name of the network namespace of a cluster's sandbox.

    There is one even where the hypervisor is not a sandbox; then nothing has this name.
    """
    return f"agentlab-{cluster}"


def pool(cluster: str) -> str:
    """Return the name of a cluster's storage pool, on each of its hypervisors."""
    return f"agentlab-{cluster}"


def pool_dir(state_dir: str) -> str:
    """Return the directory of the storage pool, with the machines' disks.

    `state_dir` is that of the cluster. `libvirt.storage` makes a pool of it, with a qcow2 file for each disk.
    """
    return f"{state_dir}/pool"


def services_dir(state_dir: str) -> str:
    """Return the directory with content and configuration of the lab's services, each in a directory of its own.

    `state_dir` is that of the cluster.
    """
    return f"{state_dir}/services"


def service_log(services_dir: str, name: str) -> str:
    """Return the file in which service `name` logs.

    `services_dir` is the directory of all services, `services.directory` in a plan; `name` is that of the service's own one in it.
    """
    return f"{services_dir}/{name}/{SERVICE_LOG}"


def console_dir(state_dir: str) -> str:
    """Return the directory of the machines' console logs.

    `state_dir` is that of the cluster. Files in it are named after the machines' domains, see `console`.
    """
    return f"{state_dir}/console"


def process_dir(state_dir: str) -> str:
    """Return the directory with a file for each process of the lab.

    `state_dir` is that of the cluster. By these files `destroy` finds processes that a stage has started.
    """
    return f"{state_dir}/processes"


def console(state_dir: str, domain: str) -> str:
    """Return the file in which libvirt's domain `domain` logs its serial console.

    `state_dir` is that of the cluster. `Node.console` in a plan has it.
    """
    return f"{console_dir(state_dir)}/{domain}.log"


def node_uuid(cluster: str, node: str) -> str:
    """Return the UUID of a node's machine: same input, same UUID, on any machine.

    A version 5 UUID of `cluster/node` in a namespace of agentlab. BMCs know the machine by it.
    """
    return str(uuid.uuid5(_NODES, f"{cluster}/{node}"))


def uplink(cluster: str) -> Uplink:
    """Return the pair of links that leads out of a cluster's sandbox and into it.

    The network is a /30 of 198.18.0.0/15, chosen by a hash of the name. The host's end is named after the cluster, or
    by the hash where that exceeds the 15 characters of a link's name.
    """
    name = f"al-{cluster}"
    digest = hashlib.sha256(cluster.encode())
    number = int.from_bytes(digest.digest()[:4], "big") % (_LINKS.num_addresses // 4)
    network = ipaddress.IPv4Network((int(_LINKS.network_address) + 4 * number, 30))
    host, inside = network.hosts()
    return {
        "link": name if len(name) <= _MAX_LINK else f"al-{digest.hexdigest()[:12]}",
        "inside": "uplink",
        "table": f"agentlab-{cluster}",
        "network": str(network),
        "host_address": str(host),
        "address": str(inside),
    }


def bridge_mac(cluster: str, network: str) -> str:
    """Return the MAC of a network's bridge, in the range of QEMU.

    The prefix is 52:54:00; the last three bytes are a hash of cluster and network, so it is the same at each run.
    """
    return "52:54:00:" + hashlib.sha256(f"{cluster}/{network}".encode()).digest()[:3].hex(":")


def mac_address(cluster: str, nic: str, index: int) -> str:
    """Return the MAC of interface `nic` of the node at `index`: same input, same address, on any machine.

    As in dev-scripts `00:` and four bytes, with the last byte counting up from node to node.
    """
    digest = hashlib.sha256(f"{cluster}/{nic}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in (0, *digest[:4], (digest[4] + index) % 256))


def slaac(cidr: str, mac: str) -> str:
    """Return the IPv6 address that a machine with this Ethernet address gives itself in a /64 (modified EUI-64, RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    identifier = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    return str(ipaddress.IPv6Network(cidr)[int.from_bytes(identifier, "big")])


def duid_ll(mac: str) -> str:
    """Return the link-layer DHCPv6 unique identifier of an Ethernet address (RFC 8415, 11.4).

    In the notation of dnsmasq and libvirt: type 3 (DUID-LL), hardware type 1 (Ethernet), then the address, as
    hexadecimal bytes with colons.
    """
    return f"00:03:00:01:{mac}"
