"""Registries of the distribution on loopback, with TLS and a user, and images for them."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import certificates
from ansible_collections.agentlab.ocp.tests.unit.release.fake_registry import LAYER, basic_auth, layer_of

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


class Store:
    """A running docker-registry with the user u, whose password is p; `storage` is its directory.

    public: it asks for no credentials.
    """

    def __init__(self, work: Path, tls: Path, storage: Path | None = None, *, public: bool = False) -> None:
        self.storage, self.log = storage or work / "storage", work / "log"
        self.ca = (tls / "ca.crt").read_text()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.place = f"127.0.0.1:{probe.getsockname()[1]}"
        (work / "htpasswd").write_text(f"u:{bcrypt.hashpw(b'p', bcrypt.gensalt(4)).decode()}\n")
        settings = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(self.storage)}, "delete": {"enabled": True}},
            "http": {
                "addr": self.place,
                "secret": "s",
                "tls": {"certificate": str(tls / "server.crt"), "key": str(tls / "server.key")},
            },
            **({} if public else {"auth": {"htpasswd": {"realm": "test", "path": str(work / "htpasswd")}}}),
        }
        (work / "config.json").write_text(json.dumps(settings))
        with self.log.open("w") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", work / "config.json"], stdout=log, stderr=log)
        self.auths = {self.place: {"auth": basic_auth("u", "p")}}
        context = ssl.create_default_context(cadata=self.ca)
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        deadline = time.monotonic() + 20
        while True:
            try:
                self.ask("GET", "")
                return
            except OSError:
                assert self.process.poll() is None, self.log.read_text()
                assert time.monotonic() < deadline, self.log.read_text()
                time.sleep(0.05)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()

    def ask(self, method: str, path: str, data: bytes | None = None, media_type: str = "") -> Any:
        url = path if path.startswith("https:") else f"https://{self.place}/v2/{path}"
        headers = {"Authorization": f"Basic {base64.b64encode(b'u:p').decode()}"}
        headers |= {"Content-Type": media_type} if media_type else {}
        return self._opener.open(urllib.request.Request(url, data, headers, method=method), timeout=10)

    def requests(self, method: str, repository: str) -> int:
        """How many such requests its log has."""
        return self.log.read_text().count(f'"{method} /v2/{repository}')

    def blob(self, repository: str, data: bytes, media_type: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        location = self.ask("POST", f"{repository}/blobs/uploads/", b"").headers["Location"]
        self.ask("PUT", f"{location}&digest={digest}", data, "application/octet-stream")
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def document(self, repository: str, tag: str, value: dict[str, Any]) -> dict[str, Any]:
        """Put a manifest or an index with a tag; returns its descriptor."""
        data = json.dumps(value).encode()
        self.ask("PUT", f"{repository}/manifests/{tag}", data, value["mediaType"])
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        return {"mediaType": value["mediaType"], "digest": digest, "size": len(data)}

    def image(self, repository: str, tag: str, *layers: dict[str, bytes], arch: str = "amd64") -> dict[str, Any]:
        packed = [layer_of(files) for files in layers]
        config = {
            "architecture": arch,
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in packed]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.blob(repository, json.dumps(config).encode(), CONFIG),
            "layers": [self.blob(repository, data, LAYER) for data in packed],
        }
        return self.document(repository, tag, manifest)

    def release(self, version: str = "4.18.9") -> str:
        """A release with three components: one that shares a layer, one of two architectures that is signed.

        Returns its pullspec by tag.
        """
        base = {"base": os.urandom(200_000)}
        one = self.image("art/dev", "one", base, {"one": b"1"})
        two = self.image("art/dev", "two", base, {"two": os.urandom(100_000)})
        both = [
            {**self.image("art/dev", arch, {"both": os.urandom(50_000)}, arch=arch), "platform": {"architecture": arch, "os": "linux"}}
            for arch in ("amd64", "arm64")
        ]  # fmt: skip
        multi = self.document("art/dev", "multi", {"schemaVersion": 2, "mediaType": INDEX, "manifests": both})
        self.image("art/dev", f"{multi['digest'].replace(':', '-')}.sig", {"signature": b"signed"})
        tags = {"one": one, "two": two, "multi": multi}
        references = {
            "kind": "ImageStream",
            "metadata": {"name": version},
            "spec": {
                "tags": [
                    {"name": name, "from": {"kind": "DockerImage", "name": f"{self.place}/art/dev@{found['digest']}"}}
                    for name, found in tags.items()
                ]
            },
        }
        files = {
            "release-manifests/image-references": json.dumps(references).encode(),
            "release-manifests/release-metadata": json.dumps(
                {"kind": "cincinnati-metadata-v0", "version": version}
            ).encode(),
        }
        self.image("art/release", version, files)
        return f"{self.place}/art/release:{version}"


@contextlib.contextmanager
def two(work: Path, second: Path | None = None, *, public: bool = False) -> Iterator[tuple[Store, Store]]:
    """Two registries with certificates of one authority; second: the storage of the second one; public: as of `Store`."""
    for program in ("docker-registry", "skopeo"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    certificates.ensure(work / "tls", "mirror", ["127.0.0.1"])
    stores = list[Store]()
    try:
        for name, storage in (("source", None), ("target", second)):
            (work / name).mkdir()
            stores.append(Store(work / name, work / "tls", storage, public=public))
        yield stores[0], stores[1]
    finally:
        for store in stores:
            store.close()
