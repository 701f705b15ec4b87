"""The base ISO out of a release payload: a registry with TLS and credentials, behind the mirrors of the install-config."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.build import rebuild
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.tests.unit.release.fake_registry import Fake, Payload

NOTHING = {
    f"{prefix}-{name}": None
    for prefix in ("coreos", "coreos10")
    for name in ("x86_64.iso", "x86_64.iso.sha256", "stream.json")
}


def stream(release: str) -> bytes:
    disk = {"location": f"https://example/{release}.iso"}
    metal = {
        "release": release,
        "formats": {"iso": {"disk": disk}, "pxe": {"rootfs": {"location": f"https://example/{release}.img"}}},
    }
    return json.dumps({"architectures": {"x86_64": {"artifacts": {"metal": metal}}}}).encode()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Any]:
    found = Fake("127.0.0.1", tmp_path)
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def files(base_iso: Path, tmp_path: Path) -> dict[str, bytes]:
    """The images of both streams, with their sums and metadata."""
    newer = tmp_path / "newer.iso"
    rebuild(base_iso, newer, {"images/pxeboot/vmlinuz": b"kernel of 10"})
    found = {}
    for prefix, path, release in (("coreos", base_iso, "9.6.1"), ("coreos10", newer, "10.0.1")):
        data = path.read_bytes()
        found[f"{prefix}-x86_64.iso"] = data
        found[f"{prefix}-x86_64.iso.sha256"] = f"{hashlib.sha256(data).hexdigest()}  {prefix}-x86_64.iso\n".encode()
        found[f"{prefix}-stream.json"] = stream(release)
    return found


def create(directory: Any, payload: Payload, *targets: str) -> None:
    directory.create(*(targets or ("pxe-files",)), os_image={}, release_image=payload.pullspec, release_version="")


def test_it_is_fetched_once(directory: Any, make: Any, registry: Any, files: dict[str, bytes]) -> None:
    payload = Payload(registry, files)
    directory.write("install-config.yaml", payload.install_config(make))
    directory.write("agent-config.yaml", make.agent_config())
    create(directory, payload, "image", "pxe-files")
    kernel = directory.path / "boot-artifacts/agent.x86_64-vmlinuz"
    assert kernel.read_bytes() == b"kernel"
    reported = directory.reported("info")
    assert "Extracting base ISO from release payload" in reported
    (cached,) = (directory.path / ".cache").rglob("coreos-x86_64.iso")
    assert f"Base ISO obtained from release and cached at [{cached}]" in reported
    assert "https://example/9.6.1.iso" in directory.files()["/usr/local/share/assisted-service/images.env"]
    registry.requests.clear()
    shutil.rmtree(kernel.parent)
    create(directory, payload)
    assert f"Using cached Base ISO {cached}" in directory.reported("info")
    assert kernel.exists() and not registry.requests


def test_a_cached_image_is_verified_once_and_after_a_change(
    directory: Any, make: Any, registry: Any, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    payload = Payload(registry, files)
    directory.write("install-config.yaml", payload.install_config(make))
    directory.write("agent-config.yaml", make.agent_config())
    digest, read = hashlib.file_digest, list[str]()
    monkeypatch.setattr(hashlib, "file_digest", lambda stream, name: read.append(stream.name) or digest(stream, name))
    for __ in range(3):
        create(directory, payload, "image")
    (cached,) = (directory.path / ".cache").rglob("coreos-x86_64.iso")
    assert read == [str(cached)]
    status = cached.stat()
    with cached.open("r+b") as file:
        file.write(b"damaged")
    os.utime(cached, ns=(status.st_atime_ns, status.st_mtime_ns))
    create(directory, payload, "image")
    assert read == [str(cached)] * 2 and "Extracting base ISO from release payload" in directory.reported("info")
    assert cached.read_bytes() == files["coreos-x86_64.iso"]


@pytest.mark.parametrize("left", [b"", b"\n", b"\xff\xfe", b"abc"])
def test_a_sum_that_a_killed_run_left_is_not_believed(
    directory: Any, make: Any, registry: Any, files: dict[str, bytes], left: bytes
) -> None:
    payload = Payload(registry, files)
    directory.write("install-config.yaml", payload.install_config(make))
    directory.write("agent-config.yaml", make.agent_config())
    create(directory, payload, "image")
    (checksum,) = (directory.path / ".cache").rglob("coreos-x86_64.iso.sha256")
    checksum.write_bytes(left)
    create(directory, payload)
    assert (directory.path / "boot-artifacts/agent.x86_64-vmlinuz").read_bytes() == b"kernel"
    assert checksum.read_text().split() == [hashlib.sha256(files["coreos-x86_64.iso"]).hexdigest()]


@pytest.mark.parametrize(("version", "asked", "kernel"), [
    ("4.22.0", "rhel-10", b"kernel of 10"), ("5.0.0", None, b"kernel of 10"), ("5.0.0", "rhel-9", b"kernel"), ("4.22.0", "rhel-9", b"kernel"),
    ("5.0.0-okd-scos.0", None, b"kernel"),
])  # fmt: skip
def test_the_stream_chooses_the_image(
    directory: Any, make: Any, registry: Any, files: dict[str, bytes], version: str, asked: str | None, kernel: bytes
) -> None:
    payload = Payload(registry, files, version)
    directory.write("install-config.yaml", payload.install_config(make, osImageStream=asked))
    directory.write("agent-config.yaml", make.agent_config(minimalISO=True))
    create(directory, payload, "pxe-files", "image")
    assert (directory.path / "boot-artifacts/agent.x86_64-vmlinuz").read_bytes() == kernel
    release = "10.0.1" if b"10" in kernel else "9.6.1"
    assert f"https://example/{release}.iso" in directory.files()["/usr/local/share/assisted-service/images.env"]
    assert f"https://example/{release}.img".encode() in (directory.path / "agent.x86_64.iso").read_bytes()


@pytest.mark.parametrize(("change", "error"), [
    ({"coreos-x86_64.iso": None}, "base ISO for x86_64 not found in release image, check release image architecture"),
    ({"coreos-x86_64.iso.sha256": b"0" * 64}, "/coreos/coreos-x86_64.iso has sha256"),
    (NOTHING, "the release has no component machine-os-images: name a live ISO in OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE"),
])  # fmt: skip
def test_what_is_not_there_or_is_another(
    directory: Any, make: Any, registry: Any, files: dict[str, bytes], change: dict[str, bytes | None], error: str
) -> None:
    payload = Payload(registry, {name: data for name, data in (files | change).items() if data is not None})
    directory.write("install-config.yaml", payload.install_config(make))
    directory.write("agent-config.yaml", make.agent_config())
    with pytest.raises(InstallerError, match=f"failed to get base ISO image: .*{error}"):
        create(directory, payload)
    assert not list((directory.path / ".cache").rglob("coreos-x86_64.iso"))
