"""A registry on loopback that uses TLS and asks for credentials; its answers can be made bad."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import ssl
import tarfile
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def layer_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(out.getvalue(), mtime=0)


def basic_auth(user: str, password: str) -> str:
    """The `auth` value of a pull secret's entry (RFC 7617)."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()


class Fake:
    """A registry: `blobs` by digest, `manifests` by digest or tag."""

    def __init__(self, host: str, work: Path, scheme: str = "Basic") -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.scheme, self.requests = scheme, list[str]()
        #: Answers a path in place of the registry; False: does not.
        self.challenge = ""  # in place of the right one
        self.twist: Callable[[BaseHTTPRequestHandler], bool] = lambda _request: False
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"registry {scheme}")])
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
            challenge = (
                'Basic realm="r"'
                if self.scheme == "Basic"
                else (f'Bearer realm="https://{self.place}/token",service="s"')
            )
            self._send(request, 401, b"", {"WWW-Authenticate": self.challenge or challenge})
            return
        if self.twist(request):
            return
        kind, version = request.path.split("/")[-2:]
        found = (self.manifests if kind == "manifests" else self.blobs).get(version)
        self._send(request, 200 if found is not None else 404, found or b"")

    @staticmethod
    def _send(request: BaseHTTPRequestHandler, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
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
        return self.packed(*(layer_of(files) for files in layers))

    def packed(self, *layers: bytes, media_type: str = LAYER) -> str:
        """Add an image of layers as they are; returns its digest."""
        return self.document(
            {
                "schemaVersion": 2,
                "config": self.blob(json.dumps({"architecture": "amd64"}).encode()),
                "layers": [{"mediaType": media_type, **self.blob(layer)} for layer in layers],
            }
        )

    def document(self, value: Any) -> str:
        """Add a manifest or an index; returns its digest."""
        body = json.dumps(value).encode()
        digest = "sha256:" + hashlib.sha256(body).hexdigest()
        self.manifests[digest] = body
        return digest


class Payload:
    """A release in a registry: its pullspec, and the install-config that reaches it. Without files it has no OS images.

    images: the digest of the image that has the files, in `coreos/`.
    """

    def __init__(self, registry: Fake, files: dict[str, bytes], version: str = "4.22.0") -> None:
        self.registry = registry
        self.images = registry.image({f"coreos/{name}": data for name, data in files.items()})
        name = "machine-os-images" if files else "cli"
        tags = [{"name": name, "from": {"name": f"registry.agentlab.test/lab/payload@{self.images}"}}]
        references = {"metadata": {"name": version}, "spec": {"tags": tags}}
        digest = registry.image(
            {
                "release-manifests/image-references": json.dumps(references).encode(),
                "release-manifests/release-metadata": json.dumps({"version": version}).encode(),
            }
        )
        self.pullspec = f"registry.agentlab.test/lab/release@{digest}"

    def install_config(self, make: Any, **more: Any) -> dict[str, Any]:
        sources = [
            {"source": f"registry.agentlab.test/lab/{name}", "mirrors": [f"{self.registry.place}/lab/{name}"]}
            for name in ("release", "payload")
        ]
        secret = {"auths": {self.registry.place: {"auth": basic_auth("u", "p")}}}
        found: dict[str, Any] = make.install_config(
            imageDigestSources=sources, pullSecret=json.dumps(secret), additionalTrustBundle=self.registry.ca, **more
        )
        return found
