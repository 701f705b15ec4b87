"""The ClusterDeployment, the ClusterImageSet, and credentials for fencing."""

from __future__ import annotations

from typing import Any

from ...releases import ReleaseProfile
from ..errors import FieldErrors
from ..models import Host, InstallConfig, Manifest
from ..schema import decode_file
from ..shapes import FENCING as FENCING_FIELDS
from ..yamlio import dump
from . import shapes
from .meta import DIRECTORY, metadata, names

FENCING = "fencing-credentials.yaml"


def cluster_deployment(config: InstallConfig, profile: ReleaseProfile) -> Manifest:
    """The ClusterDeployment.

    config: an install-config with defaults. It refers to the AgentClusterInstall and the pull secret by name.
    """
    cluster, namespace = names(config)
    return {
        "apiVersion": "hive.openshift.io/v1", "kind": "ClusterDeployment",
        "metadata": metadata(cluster, namespace, profile),
        "spec": {
            "baseDomain": config.get("baseDomain", ""),
            "clusterInstallRef": {
                "group": "extensions.hive.openshift.io", "kind": "AgentClusterInstall", "name": cluster,
                "version": "v1beta1",
            },
            "clusterName": cluster,
            "controlPlaneConfig": {"servingCertificates": {}},
            "installed": False,
            "platform": {},
            "pullSecretRef": {"name": f"{cluster}-pull-secret"},
        },
        "status": {},
    }  # fmt: skip


def cluster_image_set(config: InstallConfig | None, release: str, version: str, profile: ReleaseProfile) -> Manifest:
    """The ClusterImageSet of the installer's own release.

    release: its pullspec; version: as in the name, `openshift-VERSION`; config: for the namespace alone.
    """
    return {
        "apiVersion": "hive.openshift.io/v1", "kind": "ClusterImageSet",
        "metadata": metadata(f"openshift-{version}", names(config)[1], profile),
        "spec": {"releaseImage": release}, "status": {},
    }  # fmt: skip


def load_cluster_image_set(text: str, release: str) -> Manifest:
    """Read cluster-image-set.yaml; it must name the release that this image is for.

    release: the pullspec that `spec.releaseImage` must be. Raises `InstallerError` for another, and for wrong fields.
    """
    found: Manifest = decode_file(text, f"{DIRECTORY}/cluster-image-set.yaml", shapes.CLUSTER_IMAGE_SET)
    given = found.get("spec", {}).get("releaseImage", "")
    errors = FieldErrors()
    if given != release:
        errors.invalid("spec.releaseImage", given, f"value must be equal to {release}")
    errors.check("invalid ClusterImageSet configuration")
    return found


def load_cluster_deployment(text: str) -> Manifest:
    """Read cluster-deployment.yaml.

    Returns the manifest as decoded. Raises `InstallerError` for unknown fields and wrong types.
    """
    found: Manifest = decode_file(text, f"{DIRECTORY}/cluster-deployment.yaml", shapes.CLUSTER_DEPLOYMENT)
    return found


def load_fencing_credentials(text: str) -> dict[str, str]:
    """Return fencing-credentials.yaml as the user wrote it: it is for all hosts, and passed on unchanged.

    Returns {"": text}, as `fencing_credentials` does for hosts by name. Raises `InstallerError` for wrong fields.
    """
    decode_file(text, FENCING, FENCING_FIELDS)
    return {"": text}


def fencing_credentials(config: InstallConfig, hosts: list[Host]) -> dict[str, str]:
    """fencing-credentials.yaml of two nodes with fencing, by the number of the host that it is for.

    Credentials for a MAC address are their host's; "" has those that name a host, which the service matches.
    """
    by_mac = {nic["macAddress"].lower(): str(number) for number, host in enumerate(hosts) for nic in host["interfaces"]}
    renamed = {"hostName": "hostname", "macAddress": "macaddress"}
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in (config["controlPlane"].get("fencing") or {}).get("credentials") or []:
        place = "" if entry.get("hostName") else by_mac.get(entry.get("macAddress", "").lower(), "")
        found.setdefault(place, []).append({renamed.get(key, key): value for key, value in entry.items() if value})
    return {place: dump({"credentials": entries}, sort=False) for place, entries in found.items()}
