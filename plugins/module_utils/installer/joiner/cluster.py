"""What the add-nodes workflow knows of the installed cluster, and the install-config that it makes of that."""

from __future__ import annotations

from typing import TypedDict

from ...vocabulary import ARCHITECTURES, INSTALL_CONFIG_OVERRIDES, PLATFORMS
from .. import gojson
from ..errors import FieldErrors, InstallerError
from ..models import Host, ImageSource, InstallConfig, Manifest
from ..nodes_config import NodesConfig

NAMESPACE = "cluster0"


class Endpoint(TypedDict):
    """Where workers get their Ignition config: `url`, and the CA of it, PEM in base64."""

    ca_certificate: str
    url: str


class ClusterInfo(TypedDict):
    """An installed cluster, as its API shows it. Names of releases, architectures and platforms are Go's.

    platform: as in an Infrastructure, such as `BareMetal`; endpoint, chrony: None for a cluster without; chrony: the text of
    the workers' chrony.conf.
    """

    cluster_id: str
    name: str
    api: str
    version: str
    release_image: str
    pull_secret: str
    trust_bundle: str
    proxy: dict[str, str]
    architecture: str
    image_sources: list[ImageSource]
    platform: str
    ssh_key: str
    endpoint: Endpoint | None
    fips: bool
    chrony: str | None


class Member(TypedDict):
    """A node of the cluster: its name and its addresses, names among them."""

    name: str
    addresses: list[str]


def install_config(info: ClusterInfo, nodes: NodesConfig) -> InstallConfig:
    """Return what the manifests of a node ISO need of an install-config; nodes-config.yaml wins over the cluster.

    Raises `InstallerError` for an architecture that the platform does not support, or that there is not.
    """
    arch = nodes.get("cpuArchitecture") or info["architecture"]
    platform = next((name for name, shown in PLATFORMS.items() if shown == info["platform"]), "")
    if not platform:
        raise InstallerError(f"unable to convert platform type {info['platform']}")
    if arch not in ARCHITECTURES:
        raise InstallerError(f"Config.Spec.CpuArchitecture {arch} is not supported ")
    errors = FieldErrors()
    if arch in ("ppc64le", "s390x") and platform != "none":
        errors.invalid("platform", platform, f'CPU architecture "{arch}" only supports platform "none".')
    if errors:
        raise InstallerError(errors.text())
    return {
        "metadata": {"name": info["name"], "namespace": NAMESPACE},
        "controlPlane": {"name": "master", "architecture": arch},
        "platform": {platform: {}},
        "pullSecret": info["pull_secret"],
        "sshKey": nodes.get("sshKey") or info["ssh_key"],
        "additionalTrustBundle": info["trust_bundle"],
        "imageDigestSources": info["image_sources"],
        "proxy": {key: value for key, value in info["proxy"].items() if value},
    }


def agent_cluster_install(info: ClusterInfo) -> Manifest:
    """Return the little that images ask an AgentClusterInstall for: whether the cluster is in FIPS mode."""
    annotations = {INSTALL_CONFIG_OVERRIDES: gojson.dumps({"fips": True})} if info["fips"] else {}
    return {"metadata": {"annotations": annotations}, "spec": {}}


def user_managed(info: ClusterInfo) -> bool:
    """Return whether the network of the cluster is managed by users: on the platforms none and external."""
    return info["platform"] in ("None", "External")


def check_conflicts(hosts: list[Host], networks: list[list[str]], members: list[Member]) -> None:
    """Raise `InstallerError` when a host would have the name or a static address that a node of the cluster has.

    networks: the static addresses of each host; members: the nodes of the cluster.
    """
    errors = []
    for host, addresses in zip(hosts, networks, strict=True):
        for member in members:
            errors += [
                f"address conflict found. The configured address {address} is already used by the cluster node {member['name']}"
                for address in addresses
                if address in member["addresses"]
            ]
            name = host.get("hostname")
            if name and name in (member["name"], *member["addresses"]):
                errors.append(f"hostname conflict found. The configured hostname {name} is already used in the cluster")
    if errors:
        raise InstallerError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
