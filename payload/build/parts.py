"""What the images of components consist of: layers of finished steps, and what each component has of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from ...plugins.module_utils.plan import overrides
from ...plugins.module_utils.vocabulary import PAYLOAD_REPOSITORY, REGISTRY
from ..images import code, components, oci
from ..machine_os.distro import BuildError, Distro
from . import layers


@dataclass
class Parts:
    """What component images consist of, and the layout that they are written to.

    work: a directory for files in the making; bottom, image: directories of the steps "base" and "iso".
    """

    distro: Distro
    layout: oci.Layout
    work: Path
    bottom: Path
    image: Path | None = None

    @cached_property
    def lowest(self) -> oci.Descriptor:
        """The base layer."""
        return self.linked(self.bottom, "base")

    def programs(self, component: components.Component) -> dict[str, oci.Node]:
        """Return the files of a component: its programs, and the code that they import."""
        return code.programs(self.distro, self.bottom / "tree", self.work / "code", component)

    def stack(self, name: str, component: components.Component | None) -> list[oci.Descriptor]:
        """Return the layers of a component, without those of its replacement. Raises `BuildError`."""
        if component is None:
            return [self.lowest]
        if component.extra == "machine-os":
            if self.image is None:
                raise BuildError(f"{name}: contains the base ISO, and is built with the whole payload only")
            return [self.linked(self.image, "layer")]
        if component.extra == "node-agent":
            return [
                self.lowest,
                self.layer(code.node_agent(self.distro, self.bottom / "tree", self.work / "code"), name),
            ]
        middle = [self.linked(self.bottom, layer) for layer in component.layers]
        return [self.lowest, *middle, self.layer(self.programs(component), name)]

    def replacement(self, nodes: Mapping[str, oci.Node], name: str) -> list[oci.Descriptor]:
        """Return the layers of what replaces component `name`: a layer for each program, after one for the rest."""
        # An emulated machine pulls 4 MB/s: after a change only the program that changed.
        rest = dict(nodes)
        paths = [path.lstrip("/") for path in overrides.ENTRY_POINTS.get(name, ())]
        programs = [{path: rest.pop(path)} for path in paths if path in rest]
        return [self.layer(some, name) for some in (rest, *programs) if some]

    def linked(self, folder: Path, name: str) -> oci.Descriptor:
        """Return the layer `name` of a step's directory, linked into the layout."""
        layer = layers.load(folder / name)
        self.layout.link_blob(folder / f"{name}.tar", layer.digest)
        return layer

    def layer(self, nodes: Mapping[str, oci.Node], name: str) -> oci.Descriptor:
        """Return a new layer of component `name` with these files.

        zstd packs programs of 100 MB in a fifth of gzip's time, and is for podman alone.
        """
        compression: Literal["gzip", "zstd"] = "gzip" if name in components.EXTRACTED else "zstd"
        layer = oci.write_layer(self.work / "layer.tar", nodes, compression=compression, level=3)
        os.replace(self.work / "layer.tar", self.layout.blob(layer.digest))
        return layer


def pullspec(image: oci.Descriptor) -> str:
    """Return where an image of the lab payload is pulled from, by its digest."""
    return f"{REGISTRY}/{PAYLOAD_REPOSITORY}@{image.digest}"
