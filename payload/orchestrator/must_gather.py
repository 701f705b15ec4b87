"""Resources of a failed cluster, in the layout of `oc adm must-gather`; collected through the API, without a pod."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from ..cluster.kube import KubeClient, KubeError
from ..cluster.resources import RESOURCES
from .logs import tarball

FOLDER = "must-gather.local/must-gather"


def must_gather(kube: KubeClient) -> bytes:
    """Return a tar.gz with the lists of all kinds, namespace by namespace, except those with keys.

    Raise KubeError when the API does not answer.
    """
    files: dict[str, str] = {}
    for resource in RESOURCES:
        if resource.kind in ("Secret", "MachineConfig"):
            continue
        prefix = f"/apis/{resource.api_version}" if resource.group else "/api/v1"
        try:
            items = kube.get(f"{prefix}/{resource.plural}")["items"]
        except KubeError as error:
            if error.code == 0:
                raise
            continue
        places: dict[str, list[Any]] = defaultdict(list)
        for item in items:
            namespace = item["metadata"].get("namespace", "")
            places[f"namespaces/{namespace}" if namespace else "cluster-scoped-resources"].append(item)
        for place, found in places.items():
            content = {"apiVersion": resource.api_version, "kind": f"{resource.kind}List", "items": found}
            # JSON, which is YAML.
            files[f"{FOLDER}/{place}/{resource.group or 'core'}/{resource.plural}.yaml"] = json.dumps(content, indent=1)
    return tarball(files)
