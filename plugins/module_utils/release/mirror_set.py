"""Mirrors of repositories as resources of `config.openshift.io/v1`: what oc-mirror v2 leaves, and `agentlab mirror` too.

oc-mirror writes `working-dir/cluster-resources/idms-oc-mirror.yaml`: one or several documents of the kind
ImageDigestMirrorSet. Its `itms-oc-mirror.yaml` is about tags, which an installer has no field for.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from ..documents import DocumentError, load_yaml_all

KIND = "ImageDigestMirrorSet"


class MirrorSource(TypedDict):
    """An entry of install-config's `imageDigestSources`: a repository, and its mirrors in the order of preference."""

    source: str
    mirrors: list[str]
    sourcePolicy: NotRequired[str]


class MirrorSetError(ValueError):
    """A text is not a set of mirrors; the message is what follows the name of its file."""


def read(text: str, name: str) -> list[MirrorSource]:
    """The mirrors in a file of ImageDigestMirrorSets; a source that it has twice has the mirrors of both.

    name: of the file, for messages about YAML. Raises `MirrorSetError` for other kinds, and for a file without mirrors.
    """
    try:
        documents = load_yaml_all(text, name=name)
    except DocumentError as error:
        raise MirrorSetError(f"is not YAML: line {error.line}, column {error.column}: {error.problem}") from None
    found: dict[str, MirrorSource] = {}
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind != KIND:
            hint = "; use idms-oc-mirror.yaml" if kind == "ImageTagMirrorSet" else ""
            raise MirrorSetError(f"has a document of the kind {kind!r}: must be {KIND}{hint}")
        spec = document.get("spec")
        entries = spec.get("imageDigestMirrors") if isinstance(spec, dict) else None
        if not isinstance(entries, list):
            raise MirrorSetError("lacks spec.imageDigestMirrors, a list")
        for nth, entry in enumerate(entries):
            _add(found, entry, f"spec.imageDigestMirrors[{nth}]")
    if not found:
        raise MirrorSetError("has no mirrors")
    return list(found.values())


def _add(found: dict[str, MirrorSource], entry: Any, field: str) -> None:
    source, mirrors = (entry.get("source"), entry.get("mirrors")) if isinstance(entry, dict) else (None, None)
    if not isinstance(source, str) or not source:
        raise MirrorSetError(f"{field}.source is {source!r}: must be a repository")
    if not isinstance(mirrors, list) or not all(isinstance(mirror, str) and mirror for mirror in mirrors):
        raise MirrorSetError(f"{field}.mirrors is {mirrors!r}: must be a list of repositories")
    known = found.setdefault(source, {"source": source, "mirrors": []})
    known["mirrors"] += [mirror for mirror in mirrors if mirror not in known["mirrors"]]
    policy = entry.get("mirrorSourcePolicy")
    if policy is not None:
        if policy not in ("AllowContactingSource", "NeverContactSource"):
            raise MirrorSetError(
                f"{field}.mirrorSourcePolicy is {policy!r}: must be AllowContactingSource or NeverContactSource"
            )
        known["sourcePolicy"] = policy


def resource(sources: list[MirrorSource], name: str = "agentlab-mirror") -> dict[str, Any]:
    """The ImageDigestMirrorSet with these mirrors; name: of the resource."""
    entries = [
        {("mirrorSourcePolicy" if key == "sourcePolicy" else key): value for key, value in source.items()}
        for source in sources
    ]
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"imageDigestMirrors": entries},
    }
