"""From a plan to the installer's input: install-config.yaml, agent-config.yaml, and the lab's extra manifest.

Formats: `openshift-install explain installconfig`, and the AgentConfig `v1beta1` of the agent-based installer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..addresses import in_url
from ..merging import merge
from ..release.mirror_set import MirrorSource
from ..vocabulary import BOOT_ARTIFACTS, SETTINGS_MANIFEST, WITH_VIPS, go_arch
from . import disks, faults, ipi, phases, proxied
from .machines import Node
from .model import Plan
from .modes import MODES
from .options import DigestSource
from .topologies import TOPOLOGIES


def install_config(
    plan: Plan,
    *,
    pull_secret: Mapping[str, object],
    ssh_key: str,
    trust_bundle: str,
    more_sources: Iterable[MirrorSource] = (),
) -> dict[str, Any]:
    """Return install-config.yaml (v1).

    pull_secret: `{"auths": {...}}` of the user; the lab registry's is added. ssh_key: lines of authorized_keys.
    trust_bundle: certificates in PEM, or nothing. more_sources: mirrors of `installer.mirrors_file`, which follow those
    of the plan; a source of both has the mirrors of both. The plan's `installer.install_config` is merged into the result.
    """
    cluster, installer = plan["cluster"], plan["installer"]
    architecture = go_arch(cluster["arch"])
    sources = _joined([*installer["image_digest_sources"], *more_sources])

    def pool(name: str, role: str) -> dict[str, Any]:
        return {"name": name, "replicas": len(_nodes_of(plan, role)), "architecture": architecture}

    config: dict[str, Any] = {
        "apiVersion": "v1",
        "baseDomain": cluster["base_domain"],
        "metadata": {"name": cluster["name"]},
        "controlPlane": pool("master", "master"),
        "compute": [pool("worker", "worker")],
        "networking": {
            "networkType": installer["network_type"],
            "clusterNetwork": [
                {"cidr": network["cidr"], "hostPrefix": network["host_prefix"]}
                for network in installer["cluster_network"]
            ],
            "machineNetwork": [{"cidr": cidr} for cidr in installer["machine_network"]],
            "serviceNetwork": installer["service_network"],
        },
        "platform": _platform(plan),
        "pullSecret": json.dumps(
            merge(pull_secret, _registry_auths(plan, sources)), separators=(",", ":"), sort_keys=True
        ),
        "sshKey": ssh_key,
    }
    if _nodes_of(plan, "arbiter"):
        config["arbiter"] = pool("arbiter", "arbiter")
    if TOPOLOGIES[cluster["topology"]].fencing:
        config["controlPlane"]["fencing"] = {
            "credentials": [_fencing(plan, node) for node in _nodes_of(plan, "master")]
        }
    if installer["fips"]:
        config["fips"] = True
    if trust_bundle:
        config["additionalTrustBundle"] = trust_bundle
    if proxy := plan["services"].get("proxy"):
        near = [cluster["domain"], *(subnet["cidr"] for network in plan["networks"] for subnet in network["subnets"])]
        config["proxy"] = {"httpProxy": proxy["url"], "httpsProxy": proxy["url"], "noProxy": ",".join(near)}
    if sources:
        config["imageDigestSources"] = sources
    return merge(config, installer["install_config"])


def _joined(sources: Iterable[DigestSource | MirrorSource]) -> list[dict[str, Any]]:
    """Mirrors with each source once, in the order of first mention."""
    found: dict[str, dict[str, Any]] = {}
    for source in sources:
        known = found.setdefault(source["source"], {**source, "mirrors": []})
        known["mirrors"] += [mirror for mirror in source["mirrors"] if mirror not in known["mirrors"]]
        known.update({key: value for key, value in source.items() if key == "sourcePolicy"})
    return list(found.values())


def agent_config(plan: Plan) -> dict[str, Any]:
    """Return agent-config.yaml (v1beta1). The plan's `installer.agent_config` is merged into the result."""
    config: dict[str, Any] = {
        "apiVersion": "v1beta1",
        "kind": "AgentConfig",
        "metadata": {"name": plan["cluster"]["name"]},
        "rendezvousIP": plan["rendezvous"]["ip"],
        "additionalNTPSources": plan["installer"]["ntp_sources"],
    }
    folder = MODES[plan["boot"]["mode"]].folder
    if folder is not None:
        config["bootArtifactsBaseURL"] = plan["services"]["http"]["url"]
    # With platform external the image is minimal anyway.
    if folder == BOOT_ARTIFACTS and plan["cluster"]["platform"] != "external":
        config["minimalISO"] = True
    if not _hosts_in_install_config(plan):
        config["hosts"] = [_host(plan, node) for node in phases.installed_nodes(plan)]
    return merge(config, plan["installer"]["agent_config"])


def nodes_config(plan: Plan) -> dict[str, Any]:
    """Return nodes-config.yaml: the day-2 nodes, in the form that agent-config.yaml has for hosts.

    Everything else that it may have (architecture, SSH key) is left to the cluster, which the node ISO is made from.
    """
    return {"hosts": [_host(plan, node) for node in phases.joining_nodes(plan)]}


def settings_manifest(plan: Plan) -> dict[str, Any] | None:
    """Return the ConfigMap with the run's settings; None if all have upstream's values."""
    if not plan["settings"]:
        return None
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SETTINGS_MANIFEST, "namespace": "openshift-config"},
        "data": dict(plan["settings"]),
    }


def registry_auth(plan: Plan) -> dict[str, Any]:
    """Return the lab registry's part of a pull secret."""
    registry = plan["services"]["registry"]
    token = base64.b64encode(f"{registry['username']}:{registry['password']}".encode()).decode()
    return {"auths": {f"{plan['services']['host']}:{registry['port']}": {"auth": token}}}


def _registry_auths(plan: Plan, sources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the lab registry's part of the cluster's pull secret: `registry_auth`, and by its other names.

    These are the one that only the proxy knows, and its addresses, where mirrors of `sources` have them.
    """
    made = registry_auth(plan)
    (auth,) = made["auths"].values()
    if registry := proxied.registry(plan["services"]):
        made["auths"][registry] = auth
    mirrors = {mirror.partition("/")[0] for source in sources for mirror in source["mirrors"]}
    port = plan["services"]["registry"]["port"]
    places = (f"{in_url(subnet['gateway'])}:{port}" for subnet in plan["networks"][0]["subnets"])
    made["auths"].update({place: auth for place in places if place in mirrors})
    return made


def _nodes_of(plan: Plan, role: str) -> list[Node]:
    return [node for node in phases.installed_nodes(plan) if node["role"] == role]


def _hosts_in_install_config(plan: Plan) -> bool:
    return plan["installer"].get("hosts_in") == "install-config" or ipi.bootstrap(plan) is not None


def _platform(plan: Plan) -> dict[str, Any]:
    name = plan["cluster"]["platform"]
    section: dict[str, Any] = {}
    if name in WITH_VIPS:
        section |= {"apiVIPs": plan["vips"]["api"], "ingressVIPs": plan["vips"]["ingress"]}
    if external := plan["cluster"].get("external"):
        section["platformName"] = external["platform_name"]
        # An empty value is the API's None.
        if external["cloud_controller_manager"] == "External":
            section["cloudControllerManager"] = "External"
    if _hosts_in_install_config(plan):
        # Otherwise the BMCs would ask for a provisioning network, which the lab lacks.
        section["provisioningNetwork"] = "Disabled"
        section |= ipi.platform(plan)
        section["hosts"] = [_baremetal_host(plan, node) for node in phases.installed_nodes(plan)]
    return {name: section}


def _baremetal_host(plan: Plan, node: Node) -> dict[str, Any]:
    """The form of install-config.yaml for what `_host` has, with the BMC."""
    host, bmc = _host(plan, node), node["bmc"]
    verified = node.get("bare_metal") and bmc.get("verify_ca") is not False and not bmc.get("ca_file")
    return {
        "name": host.pop("hostname"),
        "role": host.pop("role"),
        "bootMACAddress": host.pop("interfaces")[0]["macAddress"],
        "bmc": {
            **{key: bmc[key] for key in ("address", "username", "password")},
            "disableCertificateVerification": not verified,
        },
        **host,
    }


def _fencing(plan: Plan, node: Node) -> dict[str, Any]:
    bmc = node["bmc"]
    wrong = any(faults.of_kind(plan, "fence_fails", node["name"]))
    by_mac = plan["installer"].get("fencing_by") == "macAddress"
    return {
        **({"macAddress": node["nics"][0]["mac"]} if by_mac else {"hostname": node["name"]}),
        "address": bmc["address"].replace("redfish-virtualmedia+", "redfish+", 1),
        "username": bmc["username"],
        "password": f"{bmc['password']}-wrong" if wrong else bmc["password"],
        "certificateVerification": "Disabled",
    }


def _hints(plan: Plan, node: Node) -> dict[str, Any]:
    hints: dict[str, Any] = {"deviceName": node["root_device"]} if node["root_device"] else {}
    hints |= {disks.HINTS[key]: value for key, value in disks.given_hints(node.get("root_device_hints")).items()}
    if any(faults.of_kind(plan, "wrong_root_device", node["name"])):
        hints["serialNumber"] = faults.NO_SERIAL
    return hints


def _host(plan: Plan, node: Node) -> dict[str, Any]:
    duplicate = next(faults.of_kind(plan, "duplicate_hostname", node["name"]), None)
    host: dict[str, Any] = {
        "hostname": duplicate["of"] if duplicate else node["name"],
        "role": node["role"],
        "interfaces": [{"name": nic["name"], "macAddress": nic["mac"]} for nic in node["nics"]],
    }
    if hints := _hints(plan, node):
        host["rootDeviceHints"] = hints
    if node["network_config"]:
        host["networkConfig"] = node["network_config"]
    return host
