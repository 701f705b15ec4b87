"""The release image: its components and their digests.

Format: `/release-manifests/image-references` is an ImageStream, `/release-manifests/release-metadata` a
cincinnati-metadata-v0 document, as `oc adm release` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ...plugins.module_utils.vocabulary import HARDWARE_REQUIREMENTS
from .oci import Node

# Requirements of a lab node, in the format of assisted-service's HW_VALIDATOR_REQUIREMENTS. Times are generous: five emulated machines
# share two cores, and the measurement reflects the host's scheduler.
_NODE = {
    "cpu_cores": 1,
    "ram_mib": 1800,
    "disk_size_gb": 15,
    "installation_disk_speed_threshold_ms": 1000,
    "network_latency_threshold_ms": 10000,
    "packet_loss_percentage": 50,
}
_DISK = ("cpu_cores", "disk_size_gb", "installation_disk_speed_threshold_ms")
HARDWARE = [
    {
        "version": "default",
        "master": _NODE | {"ram_mib": 2600},
        "arbiter": _NODE,
        "worker": _NODE,
        "sno": {name: _NODE[name] for name in _DISK} | {"ram_mib": 3500},
    }
]
HARDWARE_JSON = json.dumps(HARDWARE, separators=(",", ":"))

# The image's one program. podman runs it as `podman run RELEASE image NAME`.
_OPERATOR = """\
#!/bin/sh
# cluster-version-operator of the lab: image NAME prints the pullspec of a component.
case $1 in
    image)
        while read -r name pullspec; do
            [ "$name" != "$2" ] || { printf '%s' "$pullspec"; exit 0; }
        done </release-manifests/images
        echo "error: no image tag \\"$2\\" exists in the release image" >&2
        exit 1
        ;;
    version) printf '%s\\n' "$VERSION" ;;
    *)
        echo "usage: cluster-version-operator image NAME | version" >&2
        exit 1
        ;;
esac
"""


def nodes(version: str, images: Mapping[str, str], busybox: Path) -> dict[str, Node]:
    """The release image's one layer; `images` is component -> pullspec.

    version: of the release; busybox: the static program for the image's shell. The result is path -> node, without
    leading slashes.
    """
    references = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "metadata": {
            "name": version,
            "creationTimestamp": "1970-01-01T00:00:00Z",
            "annotations": {"release.openshift.io/from-image-stream": "agentlab/lab"},
        },
        "spec": {
            "lookupPolicy": {"local": False},
            "tags": [
                {
                    "name": name,
                    "annotations": {"io.openshift.build.commit.id": "", "io.openshift.build.source-location": ""},
                    "from": {"kind": "DockerImage", "name": pullspec},
                    "generation": None,
                    "importPolicy": {},
                    "referencePolicy": {"type": "Source"},
                }
                for name, pullspec in sorted(images.items())
            ],
        },
    }
    metadata = {
        "kind": "cincinnati-metadata-v0",
        "version": version,
        "previous": [],
        "metadata": {HARDWARE_REQUIREMENTS: HARDWARE_JSON},
    }
    return {
        "release-manifests/image-references": Node(_json(references), mode=0o644),
        "release-manifests/release-metadata": Node(_json(metadata), mode=0o644),
        "release-manifests/images": Node(
            "".join(f"{name} {pullspec}\n" for name, pullspec in sorted(images.items())).encode(), mode=0o644
        ),
        "usr/bin/cluster-version-operator": Node(_OPERATOR.replace("$VERSION", version).encode(), mode=0o755),
        "bin/busybox": Node(busybox, mode=0o755),
        **{f"bin/{name}": Node(link="busybox") for name in ("sh", "cat", "ls", "tar", "sleep")},
        "etc/passwd": Node(b"root:x:0:0:root:/root:/bin/sh\n", mode=0o644),
        "tmp": Node(mode=0o1777),
    }


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2).encode() + b"\n"
