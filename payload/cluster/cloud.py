"""Platforms with a cloud provider outside of Kubernetes: their nodes start with a taint, which the provider removes if it can log in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...plugins.module_utils.vocabulary import UNINITIALIZED
from .facts import ClusterFacts

# Namespace and name of the Secret with which vSphere's cloud provider logs in.
CREDENTIALS = ("kube-system", "vsphere-creds")
INTEGRATED = ("nutanix", "vsphere")
# The service's placeholders for missing values.
PLACEHOLDERS = {"user": "usernameplaceholder", "password": "passwordplaceholder", "server": "vcenterplaceholder"}


def waited_for(facts: ClusterFacts) -> bool:
    """Return whether nodes start with the taint: on an integrated platform, or an external one with a cloud controller manager."""
    return facts["platform"] in INTEGRATED or facts["external"].get("cloud_controller_manager") == "External"


def is_tainted(node: Mapping[str, Any]) -> bool:
    """Return whether a node still waits for its cloud provider."""
    return any(taint["key"] == UNINITIALIZED for taint in (node.get("spec") or {}).get("taints") or ())


def redact_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return an install-config as the cluster keeps it: vCenters without their logins, as `redactedInstallConfig` of upstream."""
    section = (config.get("platform") or {}).get("vsphere") or {}
    if not section.get("vcenters"):
        return {**config}
    centers = [
        {name: center[name] for name in ("server", "datacenters") if name in center} for center in section["vcenters"]
    ]
    return {**config, "platform": {**config["platform"], "vsphere": {**section, "vcenters": centers}}}


def logins(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the data of the Secret `CREDENTIALS`, in plain text: user and password of each vCenter; {} without credentials."""
    if not credentials(config):
        return {}
    return {
        f"{center['server']}.{key}": str(center.get(field, ""))
        for center in config["platform"]["vsphere"]["vcenters"]
        for key, field in (("username", "user"), ("password", "password"))
    }


def credentials(config: Mapping[str, Any], needed: Iterable[str] = tuple(PLACEHOLDERS)) -> bool:
    """Return whether an install-config, or its overrides, have the credentials for vSphere."""
    centers = ((config.get("platform") or {}).get("vsphere") or {}).get("vcenters") or [{}]
    return all(centers[0].get(name) not in (None, "", PLACEHOLDERS[name]) for name in needed)
