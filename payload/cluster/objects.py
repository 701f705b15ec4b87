"""Constructors of API objects."""

from __future__ import annotations

import base64
from typing import Any

from .store import Object


def make(
    api_version: str,
    kind: str,
    name: str,
    namespace: str = "",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **fields: Any,
) -> Object:
    """Return an object; `fields` are those in addition to its metadata."""
    metadata: Object = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def config_map(namespace: str, name: str, data: dict[str, str]) -> Object:
    """Return a ConfigMap."""
    return make("v1", "ConfigMap", name, namespace, data=data)


def store_texts(secret: Object) -> None:
    """Turn the texts of a Secret, `stringData`, into its data, as an API server stores them; `secret` is changed."""
    texts = secret.pop("stringData", None) or {}
    coded = {name: base64.b64encode(str(text).encode()).decode() for name, text in texts.items()}
    secret["data"] = {**(secret.get("data") or {}), **coded}
