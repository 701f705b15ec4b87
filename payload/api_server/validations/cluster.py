"""Validations of a cluster as a whole: domain, pull secret, hosts, platform and manifests."""

from __future__ import annotations

import contextlib

from ....plugins.module_utils.vocabulary import Status
from ...cluster.facts import network_type
from ..facts import control_planes, is_day2, role_of
from .base import FAILURE, SUCCESS, Category, Gate, Result, validation
from .network import fencing
from .view import View


@validation("dns-domain-defined", Category.NETWORK, gate=Gate.INPUT)
def c_domain(v: View) -> Result:
    if v.cluster.get("base_dns_domain") or is_day2(v.cluster):
        return SUCCESS, "The base domain is defined."
    return FAILURE, "The base domain is undefined and must be provided."


_NO_CLOCK = frozenset({Status.DISCONNECTED, Status.RESETTING_PENDING, Status.DISCOVERING})


@validation("ntp-server-configured", Category.NETWORK)
def c_ntp(v: View) -> Result:
    clocks = [float(h["_clock"]) for h in v.hosts.values() if "_clock" in h and h.get("status") not in _NO_CLOCK]
    if clocks and (max(clocks) - min(clocks)) // 60 > 4:
        return FAILURE, (
            "Hosts' clocks are not synchronized (there's more than a 4 minutes gap between clocks), please configure "
            "an NTP server via DHCP or set clocks manually."
        )
    return SUCCESS, "No ntp problems found"


@validation("custom-manifests-requirements-satisfied", Category.NETWORK)
def c_custom_manifests(v: View) -> Result:
    kind = v.cluster.get("network_type", "")
    with contextlib.suppress(ValueError, AttributeError):
        kind = network_type(v.cluster)
    if kind not in ("Cilium", "Calico", "CiscoACI", "None"):
        return SUCCESS, "No custom manifests are required"
    if v.manifests:
        return SUCCESS, "Custom manifests are uploaded"
    return FAILURE, (
        f"Custom manifests are required for: {kind} network type. Please upload manifests via the custom manifests API."
    )


@validation("platform-requirements-satisfied", Category.CONFIGURATION)
def c_platform(v: View) -> Result:
    platform = v.cluster.get("platform") or {}
    if (platform.get("external") or {}).get("platform_name") == "oci" and not v.manifests:
        return FAILURE, (
            "The custom manifest required for Oracle Cloud Infrastructure platform integration has not been added. Add a custom "
            "manifest to continue."
        )
    return SUCCESS, "Platform requirements satisfied"


_READY = frozenset({Status.KNOWN, Status.PREPARING, Status.PREPARED})


@validation("all-hosts-are-ready-to-install", Category.HOSTS_DATA, ignorable=False)
def c_hosts_ready(v: View) -> Result:
    if all(host["status"] in _READY for host in v.hosts.values()):
        return SUCCESS, "All hosts in the cluster are ready to install."
    return FAILURE, "The cluster has hosts that are not ready to install."


@validation("sufficient-masters-count", Category.HOSTS_DATA, ignorable=False)
def c_masters(v: View) -> Result:
    roles = [role_of(host) for host in v.hosts.values()]
    wanted = control_planes(v.cluster)
    good = (SUCCESS, "The cluster has the exact amount of dedicated control plane nodes.")
    if is_day2(v.cluster):
        return good
    if wanted == 1:
        if roles == ["master"]:
            return good
        return FAILURE, "Single-node clusters must have a single control plane node and no workers."
    missing = wanted == 2 and "arbiter" not in roles and not fencing(v.cluster, v.hosts.values())
    suffix = " and at least 1 arbiter node or the control plane nodes must have fencing credentials" if missing else ""
    if roles.count("master") == wanted and not missing:
        return good
    return FAILURE, (
        f"The cluster must have exactly {wanted} dedicated control plane nodes{suffix}. Add or remove hosts, or change "
        "their roles configurations to meet the requirement."
    )


@validation("pull-secret-set", Category.CONFIGURATION, gate=Gate.INPUT, ignorable=False)
def c_pull_secret(v: View) -> Result:
    if v.cluster.get("pull_secret_set") or is_day2(v.cluster):
        return SUCCESS, "The pull secret is set."
    return FAILURE, "The pull secret is not set."
