"""A release in a registry that speaks TLS and asks for credentials, read through mirrors."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import ssl
import tarfile
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import mirrors
from ansible_collections.agentlab.ocp.plugins.module_utils.release.payload import (
    Release,
    extract_file,
    read_files,
    read_matching,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.release.registry import (
    Registry,
    RegistryError,
    basic_auth,
    parse,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SOURCE = "registry.agentlab.test/lab/release"


def _layer(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


class Fake:
    """A registry: `blobs` by digest, `manifests` by digest or tag."""

    def __init__(self, host: str, work: Path, scheme: str = "Basic") -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.scheme, self.requests = scheme, []
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "registry")])
        now = datetime.now(UTC)
        cert = (
            x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.ca = cert.public_bytes(serialization.Encoding.PEM).decode()
        pem = work / f"{scheme}.pem"
        pem.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ) + self.ca.encode()
        )  # fmt: skip
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_args: Any) -> None:
                return

            def do_GET(self) -> None:
                fake.answer(self)

        class Server(ThreadingHTTPServer):
            import socket as _socket

            address_family = _socket.AF_INET6 if ":" in host else _socket.AF_INET

        self.server = Server((host, 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.place = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.requests.append(request.path)
        wanted = {"Basic": f"Basic {basic_auth('u', 'p')}", "Bearer": "Bearer secret"}[self.scheme]
        if request.path.startswith("/token"):
            good = request.headers.get("Authorization") == f"Basic {basic_auth('u', 'p')}"
            self._send(request, 200 if good else 401, json.dumps({"token": "secret"}).encode())
            return
        if request.headers.get("Authorization") != wanted:
            challenge = 'Basic realm="r"' if self.scheme == "Basic" else (
                f'Bearer realm="https://{self.place}/token",service="s"'
            )
            self._send(request, 401, b"", {"WWW-Authenticate": challenge})
            return
        kind, version = request.path.split("/")[-2:]
        found = (self.manifests if kind == "manifests" else self.blobs).get(version)
        self._send(request, 200 if found is not None else 404, found or b"")

    @staticmethod
    def _send(
        request: BaseHTTPRequestHandler, code: int, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        request.send_response(code)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        request.wfile.write(body)

    def blob(self, data: bytes) -> dict[str, Any]:
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return {"digest": digest, "size": len(data)}

    def image(self, *layers: dict[str, bytes]) -> str:
        """Add an image; returns its digest."""
        kind = "application/vnd.oci.image.layer.v1.tar+gzip"
        manifest = {
            "schemaVersion": 2,
            "config": self.blob(json.dumps({"architecture": "amd64"}).encode()),
            "layers": [{"mediaType": kind, **self.blob(_layer(files))} for files in layers],
        }
        body = json.dumps(manifest).encode()
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        self.manifests[digest] = body
        return digest


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
            "tags": [
                {"name": "machine-os-images", "from": {"name": f"registry.agentlab.test/lab/payload@{os_images}"}}
            ]
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
    digest = fake.image({"usr/lib64/libx.so.1": b"1", "usr/bin/tui": b"t"}, {"usr/lib64/libx.so.2": b"2", "usr/lib64/.wh.libx.so.1": b""})
    found = read_matching(_registry(fake), f"{SOURCE}@{digest}", "amd64", ["usr/lib64/libx.so.*", "usr/bin/tui"])
    assert found == {"usr/lib64/libx.so.2": b"2", "usr/bin/tui": b"t"}


def test_refusals_say_why(fake: Fake) -> None:
    pullspec = _release(fake)
    with pytest.raises(RegistryError, match=r"pull secret has no entry for .*name does not resolve"):
        _registry(fake, auth=False).manifest(pullspec)
    with pytest.raises(RegistryError, match="certificate is not trusted"):
        _registry(fake, ca=False).manifest(pullspec)
    lost = f"{SOURCE}@sha256:{'0' * 64}"
    with pytest.raises(RegistryError, match=r"not found \(404\)"):
        _registry(fake).manifest(lost)


def test_damaged_blob_is_noticed(fake: Fake) -> None:
    digest = fake.image({"a": b"1"})
    layer = json.loads(fake.manifests[digest])["layers"][0]["digest"]
    fake.blobs[layer] = _layer({"a": b"2"})
    with (
        pytest.raises(RegistryError, match="arrived damaged"),
        _registry(fake).blob(f"{SOURCE}@{digest}", layer) as stream,
    ):
        while stream.read(100):
            pass


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
    with pytest.raises(RegistryError, match="is no pullspec"):
        parse("release")


def test_basic_auth() -> None:
    assert base64.b64decode(basic_auth("u", "p")) == b"u:p"
