"""Images that replace a component: from a container store, as skopeo writes and reads it."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.build import layers
from ansible_collections.agentlab.ocp.payload.images import oci
from ansible_collections.agentlab.ocp.payload.machine_os.distro import BuildError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import overrides
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.overrides import Kind

AGENT = "agent-installer-node-agent"
NAME = "containers-storage:localhost/agent:latest"

pytestmark = pytest.mark.skipif(
    not shutil.which("skopeo") or os.geteuid() != 0, reason="needs skopeo, and root for a container store"
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty container store; returns the directory of the test."""
    (tmp_path / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/graph"\nrunroot = "{tmp_path}/run"\n'
    )
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "storage.conf"))
    return tmp_path


def tagged(folder: Path, path: str) -> None:
    """Put an image with a file of this path into the store."""
    made = oci.Layout.create(folder / "layout")
    layer = oci.write_layer(folder / "layer", {path: oci.Node(b"#!/bin/sh\n")})
    os.replace(folder / "layer", made.blob(layer.digest))
    made.write_index({"agent": made.add_image(oci.Image([layer]))})
    subprocess.run(["skopeo", "copy", "--quiet", f"oci:{folder}/layout:agent", NAME], check=True)


def test_a_store_is_not_left_mounted(store: Path) -> None:
    """skopeo mounts the directory of an overlay store, and leaves it: the host kept a mount after a refused override."""
    path = store / "storage.conf"
    path.write_text(path.read_text().replace("vfs", "overlay"))
    with pytest.raises(overrides.OverrideError, match="cannot be read from the container store of this user"):
        overrides.stored_config(NAME)
    assert (store / "graph/overlay").is_dir() and str(store) not in Path("/proc/mounts").read_text()


def test_an_image_of_a_store_becomes_a_component(store: Path) -> None:
    tagged(store, "usr/bin/agent")
    assert overrides.check(AGENT, NAME) is Kind.STORE
    copied = layers.copy_image(NAME, store / "copied", AGENT)
    layout = oci.Layout.create(store / "payload")
    image = layers.adopt(layout, copied, AGENT)
    assert layout.verify(layout.blobs_of(image.digest)) is None


def test_an_image_of_a_store_without_an_entry_point(store: Path) -> None:
    tagged(store, "usr/bin/other")
    message = f"payload_overrides: {AGENT}: {NAME} has no entry point of {AGENT}: the image must have /usr/bin/agent"
    with pytest.raises(BuildError, match=f"^{message}$"):
        layers.copy_image(NAME, store / "copied", AGENT)


def test_an_image_that_is_not_in_the_store(store: Path) -> None:
    with pytest.raises(overrides.OverrideError, match="cannot be read from the container store of this user: "):
        overrides.check(AGENT, NAME)
