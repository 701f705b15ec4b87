from __future__ import annotations

import gzip
import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Literal

import pytest
from ansible_collections.agentlab.ocp.payload.build import layers
from ansible_collections.agentlab.ocp.payload.images import code, components, oci, registry, release

MODULES = Path(__file__).resolve().parents[3]


def tree() -> dict[str, oci.Node]:
    return {
        "usr/bin/tool": oci.Node(b"#!/bin/sh\n", mode=0o755),
        "usr/bin/link": oci.Node(link="tool"),
        "etc/empty": oci.Node(mode=0o700),
    }


def image(layout: oci.Layout, tmp_path: Path, text: bytes) -> oci.Descriptor:
    layer = oci.write_layer(tmp_path / "layer", {"file": oci.Node(text, mode=0o644)})
    (tmp_path / "layer").rename(layout.blob(layer.digest))
    return layout.add_image(oci.Image([layer], entrypoint=["/tool"], labels={"name": "x"}))


def payload(tmp_path: Path) -> Path:
    layout = oci.Layout.create(tmp_path / "payload/oci")
    layout.write_index(
        {
            "release": image(layout, tmp_path, b"release"),
            "a": image(layout, tmp_path, b"a"),
            "same": image(layout, tmp_path, b"a"),
        }
    )
    return tmp_path / "payload"


@pytest.mark.parametrize("compression", ["gzip", "zstd", ""])
def test_layer_is_reproducible_and_described(tmp_path: Path, compression: Literal["gzip", "zstd", ""]) -> None:
    first = oci.write_layer(tmp_path / "one", tree(), compression=compression)
    second = oci.write_layer(tmp_path / "two", dict(reversed(tree().items())), compression=compression)
    data = (tmp_path / "one").read_bytes()
    unpack = {"gzip": gzip.decompress, "zstd": lambda data: subprocess.check_output(["zstd", "-dc"], input=data)}
    plain = unpack[compression](data) if compression else data
    assert first == second
    assert first.digest == "sha256:" + hashlib.sha256(data).hexdigest()
    assert first.diff_id == "sha256:" + hashlib.sha256(plain).hexdigest()
    assert first.size == len(data)
    with tarfile.open(fileobj=io.BytesIO(plain)) as archive:
        members = {member.name: member for member in archive}
    assert list(members) == ["etc", "etc/empty", "usr", "usr/bin", "usr/bin/link", "usr/bin/tool"]
    assert all((member.uid, member.gid, member.mtime) == (0, 0, 0) for member in members.values())
    assert members["usr/bin/link"].linkname == "tool"
    assert members["etc/empty"].mode == 0o700


def test_tree_round_trip(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("x")
    (tmp_path / "a/link").symlink_to("b/file")
    nodes = dict(oci.tree_nodes(tmp_path))
    assert nodes["a/link"].link == "b/file"
    assert nodes["a/b/file"].data == tmp_path / "a/b/file"
    assert nodes["a/b"].data is None


def test_layout_is_what_skopeo_reads(tmp_path: Path) -> None:
    layout = oci.Layout(payload(tmp_path) / "oci")
    tags = layout.tags()
    assert tags["a"] == tags["same"] != tags["release"]
    manifest = layout.manifest(tags["a"].digest)
    config = json.loads(layout.blob(manifest["config"]["digest"]).read_text())
    assert manifest["mediaType"] == oci.MANIFEST
    assert config["config"]["Entrypoint"] == ["/tool"]
    assert config["rootfs"]["diff_ids"] == [
        "sha256:" + hashlib.sha256(gzip.decompress(layout.blob(layer["digest"]).read_bytes())).hexdigest()
        for layer in manifest["layers"]
    ]
    layout.verify()


def test_a_broken_blob_is_named(tmp_path: Path) -> None:
    layout = oci.Layout(payload(tmp_path) / "oci")
    blob = layout.blob(layout.tags()["a"].digest)
    blob.write_bytes(blob.read_bytes() + b" ")
    with pytest.raises(oci.ImageError, match=blob.name):
        layout.verify()


def test_push_writes_the_registry_layout_once(tmp_path: Path) -> None:
    built, storage = payload(tmp_path), tmp_path / "storage"
    assert registry.push(built, storage, dry=True)["added"] > 0
    assert not storage.exists()
    first = registry.push(built, storage)
    assert first == {"images": 3, "blobs": 6, "added": first["added"]}
    assert registry.push(built, storage)["added"] == 0
    root = storage / "docker/registry/v2"
    digest = (root / "repositories/lab/payload/_manifests/tags/a/current/link").read_text()
    hexadecimal = digest.removeprefix("sha256:")
    blob = root / f"blobs/sha256/{hexadecimal[:2]}/{hexadecimal}/data"
    assert hashlib.sha256(blob.read_bytes()).hexdigest() == hexadecimal
    assert blob.stat().st_nlink == 2
    assert (root / f"repositories/lab/payload/_manifests/revisions/sha256/{hexadecimal}/link").read_text() == digest
    layer = json.loads(blob.read_text())["layers"][0]["digest"].removeprefix("sha256:")
    assert (root / f"repositories/lab/payload/_layers/sha256/{layer}/link").exists()
    assert (root / "repositories/lab/release/_manifests/tags/release/current/link").exists()


def test_push_refuses_an_incomplete_payload(tmp_path: Path) -> None:
    built = payload(tmp_path)
    layout = oci.Layout(built / "oci")
    layout.blob(layout.blobs_of(layout.tags()["a"].digest)[1]).unlink()
    with pytest.raises(oci.ImageError, match="is missing"):
        registry.push(built, tmp_path / "storage")


def test_release_image(tmp_path: Path) -> None:
    (tmp_path / "busybox").write_bytes(b"")
    spec = "registry.agentlab.test/lab/payload@sha256:" + "0" * 64
    nodes = release.nodes("4.22.0-lab", {"cli": spec, "agent-installer-utils": "other"}, tmp_path / "busybox")
    references = json.loads(nodes["release-manifests/image-references"].data)
    assert {tag["name"]: tag["from"]["name"] for tag in references["spec"]["tags"]} == {
        "agent-installer-utils": "other",
        "cli": spec,
    }
    metadata = json.loads(nodes["release-manifests/release-metadata"].data)
    hardware = json.loads(metadata["metadata"]["io.agentlab.hw-validator-requirements"])
    assert {"version", "master", "worker", "arbiter", "sno"} == set(hardware[0])
    service = components.COMPONENTS["agent-installer-api-server"]
    assert json.loads(service.environment["PAYLOAD_HW_REQUIREMENTS"]) == hardware
    program = nodes["usr/bin/cluster-version-operator"].data.decode().replace("/release-manifests", str(tmp_path))
    (tmp_path / "operator").write_text(program)
    (tmp_path / "images").write_bytes(nodes["release-manifests/images"].data)
    answer = subprocess.run(["sh", tmp_path / "operator", "image", "cli"], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (0, spec)
    answer = subprocess.run(["sh", tmp_path / "operator", "image", "nope"], capture_output=True, text=True, check=False)
    assert answer.returncode == 1 and 'no image tag "nope"' in answer.stderr


@pytest.mark.parametrize("name", sorted(components.COMPONENTS))
def test_every_component_finds_its_programs(name: str) -> None:
    component = components.COMPONENTS[name]
    for module in component.programs.values():
        path = MODULES / module.replace(".", "/")
        source = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
        assert "def main(" in source.read_text(), module
    for file, node in code.executables(component).items():
        assert node.mode == 0o755 and (node.data.startswith(b"#!/") or file.startswith("usr/lib64/"))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{", "index.json: is not JSON"),
        ("[" * 100_000, "index.json: is not JSON"),
        ("[]", "must be an object"),
        ("{}", "manifests must be a list"),
        ('{"manifests": [1]}', "manifests must be a list of descriptors"),
        ('{"manifests": [{"digest": "sha256:../../../etc/passwd", "size": 1}]}', r"manifests\[0\].digest is 'sha256:../../../etc/passwd'"),
        ('{"manifests": [{"digest": "sha256:%s", "size": "1"}]}' % ("0" * 64), r"manifests\[0\].size is '1'"),
    ],
)  # fmt: skip
def test_a_layout_of_another_program_is_not_believed(tmp_path: Path, index: str, message: str) -> None:
    layout = oci.Layout.create(tmp_path / "oci")
    (layout.path / "index.json").write_text(index)
    with pytest.raises(oci.ImageError, match=message):
        layout.tags()


@pytest.mark.parametrize("part", ["manifest", "config", "layer"])
def test_damaged_content_is_not_adopted(tmp_path: Path, part: str) -> None:
    layout = oci.Layout(payload(tmp_path) / "oci")
    digest = layout.tags()["a"].digest
    manifest = json.loads(layout.blob(digest).read_text())
    damaged = {"manifest": digest, "config": manifest["config"]["digest"], "layer": manifest["layers"][0]["digest"]}[
        part
    ]
    layout.blob(damaged).write_bytes(layout.blob(damaged).read_bytes() + b" ")
    taker = oci.Layout.create(tmp_path / "taker")
    with pytest.raises(oci.ImageError, match=f"{damaged.removeprefix('sha256:')}: the content has digest"):
        layers.adopt(taker, layout.path, "a")
    assert not list(taker.blobs.iterdir())
