"""install-config.yaml of a cluster, as the service derives it from its documents and the user's overrides."""

from __future__ import annotations

import json
from typing import Any

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.merging import merge
from ..cluster.facts import overrides as overrides_of
from .facts import installation_disk, is_sno, outside_balancer
from .models import MODELS, Invalid
from .objects import Cluster, Host

_ROLE_ORDER = ("master", "arbiter", "worker")


def _threads(cluster: Cluster, roles: str) -> str:
    """Return whether nodes of some roles (`masters`, `workers`, `arbiters`) have hyperthreading."""
    wanted = str(cluster.get("hyperthreading") or "all").split(",")
    return "Enabled" if "all" in wanted or roles in wanted else "Disabled"


def _no_proxy(cluster: Cluster) -> str:
    """Return noProxy: the user's entries, the cluster's own names and its networks."""
    given = str(cluster.get("no_proxy") or "").strip()
    if given == "*":
        return given
    lists = (cluster.get("cluster_networks"), cluster.get("service_networks"), cluster.get("machine_networks"))
    cidrs = [net["cidr"] for networks in lists for net in networks or ()]
    own = f".{cluster.get('name', '')}.{cluster.get('base_dns_domain', '')}"
    return ",".join([*filter(None, given.split(",")), own, *cidrs])


def text(cluster: Cluster, hosts: list[Host]) -> str:
    """Return install-config.yaml of the cluster with the overrides merged in: JSON, as upstream writes it.

    Replicas are the numbers of hosts per role. Overrides win: objects are merged by key, lists and texts are replaced.
    The pull secret is part of it, so it may only be returned to users.
    """
    roles = [host.get("role") for host in hosts]
    kind = str((cluster.get("platform") or {}).get("type", "baremetal"))
    disk = next((installation_disk(host) for host in hosts if host.get("bootstrap")), "")

    def pool(name: str, plural: str) -> dict[str, Any]:
        return {"hyperthreading": _threads(cluster, plural), "name": name, "replicas": roles.count(name)}

    config: dict[str, Any] = {"apiVersion": "v1", "baseDomain": cluster.get("base_dns_domain", "")}
    if cluster.get("http_proxy") or cluster.get("https_proxy"):
        proxies = {
            "httpProxy": cluster.get("http_proxy"),
            "httpsProxy": cluster.get("https_proxy"),
            "noProxy": _no_proxy(cluster),
        }
        config["proxy"] = {name: value for name, value in proxies.items() if value}
    networks = cluster.get("cluster_networks") or ()
    machine = [{"cidr": net["cidr"]} for net in cluster.get("machine_networks") or ()]
    config["networking"] = {
        "networkType": cluster.get("network_type", "OVNKubernetes"),
        "clusterNetwork": [{"cidr": net["cidr"], "hostPrefix": net["host_prefix"]} for net in networks],
        **({"machineNetwork": machine} if machine else {}),
        "serviceNetwork": [net["cidr"] for net in cluster.get("service_networks") or ()],
    }
    config |= {
        "metadata": {"name": cluster.get("name", "")},
        "compute": [pool("worker", "workers")],
        "controlPlane": pool("master", "masters"),
        **({"arbiter": pool("arbiter", "arbiters")} if roles.count("arbiter") else {}),
        "platform": {kind: _platform(cluster, hosts, kind)},
        **({"bootstrapInPlace": {"installationDisk": disk}} if is_sno(cluster) and disk else {}),
        "fips": False,
        "pullSecret": cluster.get("pull_secret", ""),
        "sshKey": cluster.get("ssh_public_key", ""),
    }
    return json.dumps(merge(config, overrides_of(cluster)), ensure_ascii=False, separators=(",", ":"))


def _platform(cluster: Cluster, hosts: list[Host], kind: str) -> dict[str, Any]:
    vips = {
        "apiVIPs": [vip["ip"] for vip in cluster.get("api_vips") or ()],
        "ingressVIPs": [vip["ip"] for vip in cluster.get("ingress_vips") or ()],
    }
    if kind in ("vsphere", "nutanix"):
        return vips
    if kind == "external":
        external = (cluster.get("platform") or {}).get("external") or {}
        named = {
            "platformName": external.get("platform_name"),
            "cloudControllerManager": external.get("cloud_controller_manager"),
        }
        return {name: value for name, value in named.items() if value}
    if kind != "baremetal":
        return {}
    order = {role: number for number, role in enumerate(_ROLE_ORDER)}
    ordered = sorted(hosts, key=lambda host: (order.get(str(host.get("role")), 9), str(host.get("requested_hostname"))))
    found: dict[str, Any] = {
        "provisioningNetwork": "Disabled",
        **vips,
        **({"loadBalancer": {"type": "UserManaged"}} if outside_balancer(cluster) else {}),
        "hosts": [_host_entry(host) for host in ordered],
    }
    sources = cluster.get("ntp_sources") or cluster.get("additional_ntp_source") or ""
    if sources:
        found["additionalNTPServers"] = sources.split(",")
    return found


def _host_entry(host: Host) -> dict[str, Any]:
    inventory = load_json(host.get("inventory") or "{}", name="inventory")
    nics = inventory.get("interfaces", [])
    mac = next(
        (nic.get("mac_address", "") for nic in nics if nic.get("ipv4_addresses") or nic.get("ipv6_addresses")), ""
    )
    mode = "UEFI" if inventory.get("boot", {}).get("current_boot_mode", "uefi") == "uefi" else "legacy"
    return {
        "name": host.get("requested_hostname", ""),
        "role": host.get("role", ""),
        "bootMACAddress": mac,
        "bootMode": mode,
    }


def wrong_override(overrides: object) -> str:
    """Return why install-config overrides cannot be merged, as the decoder's message; "" if they can.

    `overrides` is decoded JSON. The model `install-config` has types only: values are validated by the OpenShift
    installer.
    """
    try:
        MODELS.strict("install-config", overrides)
    except Invalid as err:
        return str(err)
    return ""
