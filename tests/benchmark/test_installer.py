"""How long the manifests of a large cluster and an agent ISO take, and how much memory they need.

Not part of the unit suite: `pytest -s tests/benchmark/test_installer.py`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from ansible_collections.agentlab.ocp.tests.unit.release.fake_registry import Fake, Payload

from .processes import AGENTLAB, compare, run, where


def write(folder: Path, config: dict[str, object], agent: dict[str, object]) -> Path:
    """Make a directory of inputs."""
    folder.mkdir()
    (folder / "install-config.yaml").write_text(yaml.safe_dump(config))
    (folder / "agent-config.yaml").write_text(yaml.safe_dump(agent))
    return folder


def test_cluster_manifests_of_250_hosts(inputs: ModuleType, tmp_path: Path) -> None:
    """Wall time under 3 s on a machine that has nothing else to do; so the best of five counts."""
    environment = {
        "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE": inputs.RELEASE,
        "AGENTLAB_RELEASE_VERSION": "4.22.0",
    }
    folders = [write(tmp_path / str(number), *inputs.fleet(250)) for number in range(6)]
    words = ("create", "cluster-manifests", "--log-level", "error", "--dir")
    ran = min(run(AGENTLAB, *words, folder, **environment) for folder in folders[1:])
    print(
        f"\ncluster-manifests of 250 hosts: {ran.seconds:.2f} s ({ran.processor:.2f} s of processor time), "
        f"peak memory {ran.memory:.0f} MiB"
    )
    print(where(*words, folders[0], **environment))
    assert ran.seconds < 3 and ran.memory < 100


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Fake]:
    found = Fake("127.0.0.1", tmp_path)
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_create_image(inputs: ModuleType, big: Path, registry: Fake, tmp_path: Path) -> None:
    """`agentlab create image` in a new directory, from a base ISO that is in the cache: 1.3 copies of it, and 0.6 s.

    The release is read from a registry with TLS; the first run, which verifies the cache, is not measured.
    """
    payload = Payload(registry, {"coreos-stream.json": b"{}"})
    cached = tmp_path / "cache/agentlab/image_cache" / payload.images.replace(":", "-") / "coreos-x86_64.iso"
    cached.parent.mkdir(parents=True)
    shutil.copy(big, cached)
    with cached.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    cached.with_name(f"{cached.name}.sha256").write_text(f"{digest}\n")
    environment = {
        "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE": payload.pullspec,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    folder, copy = tmp_path / "run", tmp_path / "copy.iso"
    words = ("create", "image", "--log-level", "error", "--dir", folder)

    def clean() -> None:
        copy.unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)
        write(folder, payload.install_config(inputs), inputs.agent_config())

    clean()
    run(AGENTLAB, *words, **environment)
    pair = compare(lambda: run(AGENTLAB, *words, **environment), lambda: run("cp", cached, copy), 1.3, 0.6, clean)
    print(f"\ncreate image: {pair.ours:.2f} s, cp: {pair.other:.2f} s; {pair.over:+.2f} s against 1.3 cp + 0.6 s")
    print(where(*words, **environment))
    assert pair.over <= 0
