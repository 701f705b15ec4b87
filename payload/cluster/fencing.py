"""Two nodes that fence each other: what Corosync and Pacemaker are given, and what Pacemaker knows of the other node.

OpenShift's etcd operator sets both up on a cluster of two nodes; in the lab, each node has their files from its machine
config. Names are those of its jobs: a device is `<node>_redfish`.
"""

from __future__ import annotations

import ipaddress
import secrets
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.documents import load_json
from .facts import ClusterFacts

COROSYNC = "/etc/corosync"
CIB = "/etc/kubernetes/cib.xml"
#: In /etc/kubernetes. Exists once both nodes have been online together: from then on, a node alone needs Pacemaker's consent.
FORMED = "two-nodes"
#: In the run directory: what Pacemaker knows of the other node, one of the words below, written every few seconds.
PEER = "peer"
ONLINE, OFFLINE, UNKNOWN = ("online", "offline", "unknown")
#: Seconds after which the word in `PEER` counts no more.
FRESH_SECONDS = 20.0
# Milliseconds without a token until a node counts as lost. Corosync's default of 3 s is too short for emulated machines.
TOKEN_MS = 8000
# Of a call of the fence agent, a Python program that takes seconds to start on an emulated machine that boots. Pacemaker's is 20 s.
AGENT_TIMEOUT = "120s"


class Device(NamedTuple):
    """A node's BMC: `node` is what it fences; `address` is as in install-config, `redfish+https://host:port/path`."""

    node: str
    address: str
    username: str
    password: str
    verify: bool

    @property
    def secret(self) -> str:
        """Return the name of the Secret in openshift-etcd that has the credentials, as the installer names it."""
        return f"fencing-credentials-{self.node}"


def devices(hosts: Sequence[Mapping[str, object]], names: Sequence[str]) -> list[Device]:
    """Return the BMCs of the service's `host` models; `names` are their host names. Hosts without credentials have none."""
    found = []
    for host, name in zip(hosts, names, strict=True):
        text = host.get("fencing_credentials")
        if isinstance(text, str) and text:
            given = load_json(text, name="fencing_credentials")
            verify = given.get("certificate_verification") != "Disabled"
            found.append(Device(name, given["address"], given["username"], given["password"], verify))
    return found


def corosync_conf(facts: ClusterFacts) -> str:
    """Return corosync.conf: one encrypted link between the nodes, in the machine network of the primary family.

    With `two_node`, one of two is enough to continue, but after a start each waits until it has seen the other.
    """
    network = ipaddress.ip_network(facts["machine_networks"][0], strict=False)
    nodes = [
        (host["name"], next(a for a in host["addresses"] if ipaddress.ip_address(a) in network))
        for host in facts["hosts"]
        if host["role"] == "master"
    ]
    listed = "".join(
        f"    node {{\n        ring0_addr: {address}\n        name: {name}\n        nodeid: {number}\n    }}\n"
        for number, (name, address) in enumerate(sorted(nodes), 1)
    )
    return (
        f"totem {{\n    version: 2\n    cluster_name: {facts['name']}\n    transport: knet\n    crypto_cipher: aes256\n"
        f"    crypto_hash: sha256\n    token: {TOKEN_MS}\n}}\n"
        f"nodelist {{\n{listed}}}\n"
        "quorum {\n    provider: corosync_votequorum\n    two_node: 1\n}\n"
        "logging {\n    to_stderr: yes\n    to_logfile: no\n    to_syslog: no\n}\n"
    )


def authkey() -> str:
    """Return a random key of Corosync: 256 characters, of which it needs at least 128."""
    return secrets.token_hex(128)


def cib(name: str, fenced: Sequence[Device]) -> str:
    """Return Pacemaker's first configuration: a device for each node, which runs on the other one.

    A device that did not answer is tried again after a minute. The first node's device waits 5 s before it acts, so
    that two nodes that lose each other do not both end.
    """
    root = ET.Element(
        "cib", {"crm_feature_set": "3.0.14", "validate-with": "pacemaker-3.0", "epoch": "1", "num_updates": "0", "admin_epoch": "0"}
    )  # fmt: skip
    configuration = ET.SubElement(root, "configuration")
    options = ET.SubElement(
        ET.SubElement(configuration, "crm_config"), "cluster_property_set", id="cib-bootstrap-options"
    )
    _pairs(
        options,
        {
            "stonith-enabled": "true",
            "cluster-name": name,
            "cluster-recheck-interval": "60s",
            "stonith-timeout": AGENT_TIMEOUT,
        },
    )
    ET.SubElement(configuration, "nodes")
    resources = ET.SubElement(configuration, "resources")
    constraints = ET.SubElement(configuration, "constraints")
    for number, device in enumerate(sorted(fenced)):
        ident = f"{device.node}_redfish"
        primitive = ET.SubElement(resources, "primitive", {"id": ident, "class": "stonith", "type": "fence_redfish"})
        target = urlsplit(device.address.partition("+")[2] or device.address)
        _pairs(
            ET.SubElement(primitive, "instance_attributes", id=f"{ident}-instance_attributes"),
            {
                "ip": in_url(target.hostname or ""),
                "ipport": str(target.port or 443),
                "systems_uri": target.path,
                "username": device.username,
                "password": device.password,
                "ssl_insecure": "false" if device.verify else "true",
                "pcmk_host_list": device.node,
                "pcmk_monitor_timeout": AGENT_TIMEOUT,
                "pcmk_delay_base": "0s" if number else "5s",
            },
        )
        operations = ET.SubElement(primitive, "operations")
        ET.SubElement(operations, "op", id=f"{ident}-start-0s", name="start", interval="0s", timeout=AGENT_TIMEOUT)
        ET.SubElement(
            operations, "op", id=f"{ident}-monitor-120s", name="monitor", interval="120s", timeout=AGENT_TIMEOUT
        )
        ET.SubElement(
            constraints, "rsc_location", id=f"{ident}-elsewhere", rsc=ident, node=device.node, score="-INFINITY"
        )
    defaults = ET.SubElement(ET.SubElement(configuration, "rsc_defaults"), "meta_attributes", id="rsc_defaults-options")
    _pairs(defaults, {"failure-timeout": "60s"})
    ET.SubElement(root, "status")
    return ET.tostring(root, encoding="unicode", xml_declaration=True)


def _pairs(parent: ET.Element, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        ET.SubElement(parent, "nvpair", id=f"{parent.get('id')}-{name}", name=name, value=value)


def peer_state(report: str, own: str) -> str:
    """Return `ONLINE`, `OFFLINE` or `UNKNOWN` from what `crm_mon --output-as=xml` prints on the node `own`.

    A node that was fenced or has left in order is `offline`. One that is lost but not fenced yet is `unknown`, and so
    is every node while this one has no quorum.
    """
    try:
        root = ET.fromstring(report)
    except ET.ParseError:
        return UNKNOWN
    dc = root.find("summary/current_dc")
    others = [node for node in root.iterfind("nodes/node") if node.get("name") != own]
    if dc is None or dc.get("with_quorum") != "true" or len(others) != 1:
        return UNKNOWN
    if others[0].get("online") == "true" and others[0].get("unclean") != "true":
        return ONLINE
    return OFFLINE if others[0].get("unclean") == "false" and others[0].get("pending") != "true" else UNKNOWN


def write_state(run_dir: Path, state: str) -> None:
    """Write what is known of the other node, atomically."""
    fresh = run_dir / f".{PEER}"
    fresh.write_text(f"{state}\n")
    fresh.replace(run_dir / PEER)


def may_be_alone(run_dir: Path, config_dir: Path) -> bool:
    """Return whether a member of the control plane may continue without the other one: Pacemaker knows that it is off.

    True until both nodes have been online together, as during the installation.
    """
    if not (config_dir / FORMED).exists():
        return True
    path = run_dir / PEER
    try:
        return path.read_text().strip() == OFFLINE and time.time() - path.stat().st_mtime < FRESH_SECONDS
    except OSError:
        return False


def secret_data(device: Device) -> dict[str, str]:
    """Return the content of the Secret of a device, with the installer's keys."""
    return {
        "address": device.address,
        "username": device.username,
        "password": device.password,
        "certificateVerification": "Enabled" if device.verify else "Disabled",
    }
