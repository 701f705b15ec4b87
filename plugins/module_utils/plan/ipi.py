"""Installer-provisioned infrastructure (`flow: ipi`): the bootstrap machine of a plan, and its part of install-config.yaml."""

from __future__ import annotations

import ipaddress
from typing import Any

from ..vocabulary import RunFile
from . import names
from .installer_inputs import Bootstrap
from .machines import Reservation
from .model import Plan
from .options import Profile
from .topologies import Size

NAME = "bootstrap"
"""Host name of the bootstrap machine."""
PROVISIONING, CLUSTER_PROVISIONING, BOOTSTRAP = 7, 8, 9
"""Offsets in the machine network of the addresses of both Ironics and of the bootstrap machine, as dev-scripts (`network.sh`) has them."""
LIBVIRT = "qemu:///system"
"""Where the installer creates the bootstrap machine: it runs in the sandbox, which has a libvirt of its own."""
LEFT = (".openshift_install_cluster.json", RunFile.INSTALLER_STATE, "metadata.json", "ipi")
"""What `openshift-install create cluster`, or its simulator, continues from, in the run directory."""
_LAB, _REAL = Size(2, 3072, 0), Size(4, 6144, 20)


def size(payload: str) -> Size:
    """Return the size of the bootstrap machine; that of a real payload is fixed in openshift-install (pkg/infrastructure/baremetal)."""
    return _LAB if payload == "lab" else _REAL


def bootstrap(plan: Plan) -> Bootstrap | None:
    """Return the bootstrap machine of a cluster of flow `ipi`; None for another flow, and for nodes alone, which have no installer."""
    return plan["installer"].get("bootstrap") if "installer" in plan else None


def add(plan: Plan, profile: Profile) -> None:
    """Add the bootstrap machine of flow `ipi` to a plan, with its name and its leases in the machine network. The plan is changed."""
    if profile["flow"] != "ipi":
        return
    machine, machine_size = plan["networks"][0], size(plan["release"]["payload"])
    nets = [ipaddress.ip_network(subnet["cidr"]) for subnet in machine["subnets"]]
    cluster, state_dir = plan["cluster"]["name"], plan["hypervisor"]["state_dir"]
    mac, domain = names.mac_address(cluster, NAME, 0), f"{cluster}-{NAME}"
    addresses = [str(net[BOOTSTRAP]) for net in nets]
    plan["installer"]["bootstrap"] = {
        "name": NAME,
        "mac": mac,
        "addresses": addresses,
        "provisioning_ip": str(nets[0][PROVISIONING]),
        "cluster_provisioning_ip": str(nets[0][CLUSTER_PROVISIONING]),
        "vcpus": machine_size.vcpus,
        "memory_mib": machine_size.memory_mib,
        "domain": domain,
        "uuid": names.node_uuid(cluster, NAME),
        "console": names.console(state_dir, domain),
        "image": f"{state_dir}/{NAME}.iso",
    }
    machine["dns"]["hosts"] += [{"ip": ip, "names": [NAME]} for ip in addresses]
    for subnet, ip in zip(machine["subnets"], addresses, strict=True):
        if subnet["dhcp"]:
            lease: Reservation = {"mac": mac, "duid": None, "ip": ip, "name": NAME}
            if subnet["family"] == "ipv6":
                lease |= {"mac": None, "duid": names.duid_ll(mac)}
            machine["reservations"].append(lease)


def platform(plan: Plan) -> dict[str, Any]:
    """Return what `platform.baremetal` of install-config.yaml has beyond VIPs and hosts; nothing for the agent-based installer.

    The bootstrap machine gets its address by DHCP, or where the machine network has none, `bootstrapExternalStaticIP`.
    """
    machine_of_installer = bootstrap(plan)
    if not machine_of_installer:
        return {}
    machine = plan["networks"][0]
    section: dict[str, Any] = {
        "libvirtURI": LIBVIRT,
        "externalBridge": machine["bridge"],
        "externalMACAddress": machine_of_installer["mac"],
        "bootstrapProvisioningIP": machine_of_installer["provisioning_ip"],
        "clusterProvisioningIP": machine_of_installer["cluster_provisioning_ip"],
    }
    subnet = machine["subnets"][0]
    if not subnet["dhcp"]:
        section |= {
            "bootstrapExternalStaticIP": machine_of_installer["addresses"][0],
            "bootstrapExternalStaticGateway": subnet["gateway"],
            "bootstrapExternalStaticDNS": subnet["gateway"],
        }
    return section
