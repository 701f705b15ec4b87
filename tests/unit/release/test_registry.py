"""A release in a registry that uses TLS and asks for credentials, read through mirrors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import mirrors
from ansible_collections.agentlab.ocp.plugins.module_utils.release.content import RegistryError
from ansible_collections.agentlab.ocp.plugins.module_utils.release.payload import (
    Release,
    extract_file,
    read_files,
    read_matching,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.release.registry import Registry, parse

from .fake_registry import Fake, basic_auth

SOURCE = "registry.agentlab.test/lab/release"


@pytest.fixture(params=[("127.0.0.1", "Basic"), ("127.0.0.1", "Bearer"), ("::1", "Basic")], ids=str)
def fake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fake]:
    host, scheme = request.param
    try:
        found = Fake(host, tmp_path, scheme)
    except OSError:
        pytest.skip("no IPv6 here")
    yield found
    found.server.shutdown()
    found.server.server_close()


def _registry(fake: Fake, *, auth: bool = True, ca: bool = True) -> Registry:
    auths = {fake.place: {"auth": basic_auth("u", "p")}} if auth else {}
    table = [{"source": "registry.agentlab.test/lab", "mirrors": [f"{fake.place}/lab"]}]
    return Registry(auths, fake.ca if ca else "", lambda pullspec: mirrors.mirrors_of(pullspec, table))


def _release(fake: Fake) -> str:
    os_images = fake.image(
        {"coreos/coreos-x86_64.iso": b"old"},
        {"coreos/coreos-x86_64.iso": b"ISO" * 100000, "coreos/.wh.gone": b""},
    )
    references = {
        "metadata": {"name": "4.22.0-lab"},
        "spec": {
            "tags": [{"name": "machine-os-images", "from": {"name": f"registry.agentlab.test/lab/payload@{os_images}"}}]
        },
    }
    metadata = {
        "version": "4.22.0-lab", "metadata": {"io.agentlab.hw-validator-requirements": [{"version": "default"}]}
    }  # fmt: skip
    digest = fake.image(
        {"usr/bin/thing": b"x"},
        {
            "release-manifests/image-references": json.dumps(references).encode(),
            "./release-manifests/release-metadata": json.dumps(metadata).encode(),
        },
    )
    return f"{SOURCE}@{digest}"


def test_release_through_a_mirror(fake: Fake, tmp_path: Path) -> None:
    release = Release(_release(fake), _registry(fake))
    assert release.version == "4.22.0-lab"
    assert release.architecture == "amd64"
    assert release.hw_requirements == '[{"version":"default"}]'
    target = tmp_path / "cache" / "coreos.iso"
    digest = extract_file(
        release.registry, release.image("machine-os-images"), "amd64", "/coreos/coreos-x86_64.iso", target
    )
    assert target.read_bytes() == b"ISO" * 100000
    assert digest == hashlib.sha256(b"ISO" * 100000).hexdigest()
    assert [path.name for path in target.parent.iterdir()] == ["coreos.iso"]
    with pytest.raises(RegistryError, match="has no component nothing"):
        release.image("nothing")


def test_whited_out_file_is_gone(fake: Fake) -> None:
    digest = fake.image({"etc/a": b"1", "etc/b": b"2"}, {"etc/.wh.a": b""})
    found = read_files(_registry(fake), f"{SOURCE}@{digest}", "amd64", {"etc/a", "etc/b"})
    assert found == {"etc/b": b"2"}


def test_files_by_pattern(fake: Fake) -> None:
    digest = fake.image(
        {"usr/lib64/libx.so.1": b"1", "usr/bin/tui": b"t"},
        {"usr/lib64/libx.so.2": b"2", "usr/lib64/.wh.libx.so.1": b""},
    )
    found = read_matching(_registry(fake), f"{SOURCE}@{digest}", "amd64", ["usr/lib64/libx.so.*", "usr/bin/tui"])
    assert found == {"usr/lib64/libx.so.2": b"2", "usr/bin/tui": b"t"}


def test_refusals_have_a_reason(fake: Fake) -> None:
    pullspec = _release(fake)
    with pytest.raises(RegistryError, match=r"pull secret has no entry for .*name does not resolve"):
        _registry(fake, auth=False).manifest(pullspec)
    with pytest.raises(RegistryError, match="certificate is not trusted"):
        _registry(fake, ca=False).manifest(pullspec)
    lost = f"{SOURCE}@sha256:{'0' * 64}"
    with pytest.raises(RegistryError, match=r"not found \(404\)"):
        _registry(fake).manifest(lost)


def test_registry_that_is_down() -> None:
    with pytest.raises(RegistryError, match="Connection refused"):
        Registry({}).manifest("127.0.0.1:9/lab/release:latest")


@pytest.mark.parametrize(
    ("pullspec", "parts"),
    [
        ("quay.io/a/b@sha256:12", ("quay.io", "a/b", "sha256:12")),
        ("virthost.x:5000/lab/release:4.22", ("virthost.x:5000", "lab/release", "4.22")),
        ("[fd00::1]:5000/r", ("[fd00::1]:5000", "r", "latest")),
        ("h:1/r:tag@sha256:ab", ("h:1", "r", "sha256:ab")),
    ],
)
def test_pullspecs(pullspec: str, parts: tuple[str, str, str]) -> None:
    reference = parse(pullspec)
    assert (reference.host, reference.path, reference.version) == parts


def test_no_pullspec() -> None:
    with pytest.raises(RegistryError, match="is not a pullspec"):
        parse("release")
