"""Layers of earlier steps, and images that replace a component."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from ...plugins.module_utils.documents import load_json, read_file
from ...plugins.module_utils.plan import overrides
from ..images import oci
from ..machine_os.distro import BuildError, run


def save(path: Path, layer: oci.Descriptor) -> None:
    """Write the descriptor of the layer `path` next to it, as JSON.

    path: the layer's, or its name without a suffix; the file is PATH with the suffix `.json`.
    """
    path.with_suffix(".json").write_text(json.dumps(dataclasses.asdict(layer)))


def load(path: Path) -> oci.Descriptor:
    """Return the descriptor that `save` wrote for the layer `path`.

    path: as for `save`. Raises `OSError` when the step did not write it.
    """
    return oci.Descriptor(**load_json(read_file(path.with_suffix(".json")), name=str(path.with_suffix(".json"))))


def adopt(layout: oci.Layout, source: Path, name: str) -> oci.Descriptor:
    """Copy the image from another layout: the one tagged `name`, or the only one.

    source: directory of the layout. All blobs are verified. Returns the descriptor of its manifest. Raises `BuildError`
    and `ImageError`.
    """
    other = oci.Layout(source)
    found = other.tags()
    if name not in found and len(found) != 1:
        raise BuildError(f"payload_overrides: {name}: {source} has {len(found)} images and none is tagged {name}")
    image = found.get(name) or next(iter(found.values()))
    parts = (*other.blobs_of(image.digest), image.digest)
    other.verify(parts)
    for blob in parts:
        layout.link_blob(other.blob(blob), blob)
    return image


def copy_image(source: str, target: Path, name: str) -> Path:
    """Copy an image of a local store to a new OCI layout; with zstd, which nodes unpack fast.

    Raises `BuildError` also when the image cannot be the component `name`.
    """
    run(*overrides.from_store("copy", "--quiet", "--dest-compress-format", "zstd", source, f"oci:{target}"))
    try:
        overrides.check_layout(target, name)
    except overrides.OverrideError as error:
        raise BuildError(f"payload_overrides: {name}: {source} {error}") from None
    return target
