"""Whether the objects of the extra manifests are in an installed cluster, with the fields that the manifests have.

They are those of the profile (`installer.manifests`), of its folder (`installer.manifests_dir`), and the lab's settings. A folder is left
out where the checks run on a host that does not have it.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ..documents import load_yaml_all
from ..plan import files
from ..plan.configs import settings_manifest
from ..plan.model import Plan
from . import shapes
from .client import ClusterClient
from .links import Finding

_AS_GIVEN = "as in the manifest"
_OF_THE_SERVER = ("status", "creationTimestamp", "generation", "managedFields", "resourceVersion", "uid")


def findings(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield for each object of the extra manifests whether the API has it as given. Raises `ClusterError`.

    What differs is named by its path, without values, which may be secret. An object of a kind that the API does not serve cannot
    have been created, either.
    """
    served: dict[str, Mapping[str, Mapping[str, Any]]] = {}
    for given in _objects(plan):
        version, kind, metadata = given["apiVersion"], given["kind"], given["metadata"]
        prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if prefix not in served:
            resources = (kube.find(prefix, shapes.RESOURCES) or {}).get("resources") or []
            served[prefix] = {one["kind"]: one for one in resources if "/" not in one["name"]}
        resource = served[prefix].get(kind)
        if resource is None:
            yield Finding(
                f"manifest {kind} {metadata['name']}", _AS_GIVEN, f"the API does not serve {kind} of {version}"
            )
            continue
        namespace = metadata.get("namespace") or "default"
        place = f"/namespaces/{quote(namespace, safe='')}" if resource["namespaced"] else ""
        there = kube.find(f"{prefix}{place}/{resource['name']}/{quote(metadata['name'], safe='')}")
        lacking = [".".join(path) for path in _differences(_stored(given), there)] if there else []
        wrong = f"differs in {', '.join(lacking)}" if lacking else _AS_GIVEN
        yield Finding(f"manifest {kind} {metadata['name']}", _AS_GIVEN, wrong if there else "missing")


def _objects(plan: Plan) -> Iterator[Mapping[str, Any]]:
    installer, settings = plan["installer"], settings_manifest(plan)
    given = [*([settings] if settings else []), *(installer.get("manifests") or {}).values()]
    if folder := installer.get("manifests_dir"):
        with contextlib.suppress(files.FileError):
            for name, text in files.manifests_of(folder).items():
                given += load_yaml_all(text, name=name)
    for one in given:
        yield from one.get("items") or () if one["kind"].endswith("List") else (one,)


def _stored(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an object as the API stores it: the texts of a Secret are part of its data."""
    texts = given.get("stringData")
    if given["kind"] != "Secret" or not texts:
        return given
    coded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
    return {
        **{key: value for key, value in given.items() if key != "stringData"},
        "data": {**(given.get("data") or {}), **coded},
    }


def _differences(given: object, there: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths of fields that an object has with another value, or not at all; it may have more. Empty values are as none."""
    if isinstance(given, Mapping):
        below = there if isinstance(there, Mapping) else {}
        for name, value in given.items():
            if name not in _OF_THE_SERVER or path not in ((), ("metadata",)):
                yield from _differences(value, below.get(name), (*path, str(name)))
    elif isinstance(given, list) and isinstance(there, list) and len(given) == len(there):
        for number, (value, other) in enumerate(zip(given, there, strict=True)):
            yield from _differences(value, other, (*path, str(number)))
    elif given != there and given not in (None, "", []):
        yield path
