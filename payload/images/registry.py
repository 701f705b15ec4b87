"""Writes images into a registry's storage, without a network and without the registry.

The layout is that of the file-system driver of the CNCF distribution registry 2.x (`docker-registry`): below
docker/registry/v2/, blobs by digest and, for each repository, links to the layers, to the manifests and from tags.
"""

from __future__ import annotations

from pathlib import Path

from ...plugins.module_utils.state import write_atomic
from ...plugins.module_utils.vocabulary import PAYLOAD_REPOSITORY, RELEASE_REPOSITORY
from .oci import ImageError, Layout, link_or_copy


def push(payload_dir: Path, storage_dir: Path, *, dry: bool = False) -> dict[str, int]:
    """Make the images of a payload (`payload_dir`/oci) available in the storage directory of a registry.

    Blobs are hard links where the file system allows. A registry that runs on the directory serves them at once. An
    image without a tag is served by its digest.
    Returns {"images", "blobs", "added"}, with "added" the number of new files: 0 if nothing
    changed; `dry` only counts. Raises `ImageError` when the payload is incomplete.
    """
    layout = Layout(payload_dir / "oci")
    root = storage_dir / "docker/registry/v2"
    images, blobs, added = layout.tags(), set[str](), 0
    for tag, image in images.items():
        repository = root / "repositories" / (RELEASE_REPOSITORY if tag == "release" else PAYLOAD_REPOSITORY)
        parts = layout.blobs_of(image.digest)
        for digest in (*parts, image.digest):
            if not layout.blob(digest).exists():
                raise ImageError(
                    f"{layout.path}: image {tag} needs blob {digest}, which is missing; run 'agentlab payload build --force'"
                )
            if digest not in blobs:
                blobs.add(digest)
                hexadecimal = digest.removeprefix("sha256:")
                target = root / "blobs/sha256" / hexadecimal[:2] / hexadecimal / "data"
                if not target.exists():
                    added += 1
                    if not dry:
                        target.parent.mkdir(parents=True, exist_ok=True)
                        link_or_copy(layout.blob(digest), target)
        links = [
            *((_link(repository / "_layers", digest), digest) for digest in parts),
            (_link(repository / "_manifests/revisions", image.digest), image.digest),
        ]
        if tag:
            folder = repository / "_manifests/tags" / tag
            links += [(_link(folder / "index", image.digest), image.digest), (folder / "current/link", image.digest)]
        for link, digest in links:
            if not link.exists() or link.read_text() != digest:
                added += 1
                if not dry:
                    write_atomic(link, digest)
    return {"images": len(images), "blobs": len(blobs), "added": added}


def _link(folder: Path, digest: str) -> Path:
    algorithm, __, hexadecimal = digest.partition(":")
    return folder / algorithm / hexadecimal / "link"
