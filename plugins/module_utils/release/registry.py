"""A reader for registries that speak the OCI distribution API (HTTP API v2)."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

TIMEOUT = 20.0
"""Seconds that a connection may be silent."""

_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)  # fmt: skip
_PULLSPEC = re.compile(r"(?P<host>\[[0-9a-fA-F:]+\](?::\d+)?|[^/]+)/(?P<path>[^@:]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>.+))?")


class RegistryError(ValueError):
    """A registry can't be reached, refuses, or has not what was asked for; names the pullspec and every place tried."""


@dataclass(frozen=True)
class Reference:
    """A pullspec in parts; `version` is the digest, or else the tag (`latest` without one)."""

    host: str
    path: str
    version: str

    def __str__(self) -> str:
        return f"{self.host}/{self.path}{'@' if ':' in self.version else ':'}{self.version}"


def parse(pullspec: str) -> Reference:
    """Take a pullspec apart. Raises `RegistryError`."""
    match = _PULLSPEC.fullmatch(pullspec)
    if not match:
        raise RegistryError(f"{pullspec!r} is no pullspec: use HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]")
    return Reference(match["host"], match["path"], match["digest"] or match["tag"] or "latest")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Blobs are often served elsewhere; credentials stay with the registry."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if new is not None and urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            new.headers.pop("Authorization", None)
        return new


class Registry:
    """Reads images, each from the first of its mirrors that has it.

    auths: the `auths` object of a pull secret. ca_bundle: PEM text trusted in addition to the system's.
    mirrors: callable pullspec -> list of pullspecs to try first.
    """

    def __init__(self, auths: dict[str, Any], ca_bundle: str = "", mirrors: Any = None) -> None:
        self._auths = auths
        self._mirrors: Any = mirrors or (lambda _pullspec: [])
        self._tokens: dict[tuple[str, str], str] = {}
        context = ssl.create_default_context()
        if ca_bundle.strip():
            try:
                context.load_verify_locations(cadata=ca_bundle)
            except (ssl.SSLError, ValueError) as error:
                raise RegistryError(f"the additional trust bundle can't be used: {error}") from error
        self._opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _Redirects())
        self._chosen: dict[str, Reference] = {}

    def manifest(self, pullspec: str, arch: str = "") -> tuple[dict[str, Any], str]:
        """The image manifest of `pullspec` and its digest; of an index, the entry for `arch` (Go's name).

        Raises `RegistryError`.
        """
        body, reference = self._fetch_manifest(pullspec)
        document = json.loads(body)
        if "manifests" in document:
            for entry in document["manifests"]:
                if not arch or entry.get("platform", {}).get("architecture") == arch:
                    body = self._read(reference, "manifests", entry["digest"])
                    return json.loads(body), entry["digest"]
            raise RegistryError(f"{pullspec} has no image for architecture {arch}")
        return document, "sha256:" + hashlib.sha256(body).hexdigest()

    def config(self, pullspec: str, arch: str = "") -> dict[str, Any]:
        """The image configuration (`architecture`, `config`, `rootfs`, ...)."""
        manifest, __ = self.manifest(pullspec, arch)
        found: dict[str, Any] = json.loads(
            self._read(self._chosen[pullspec], "blobs", manifest["config"]["digest"])
        )
        return found

    @contextmanager
    def blob(self, pullspec: str, digest: str) -> Iterator[BinaryIO]:
        """Stream a blob of the image `pullspec`. The reader of all of it has its digest checked."""
        if pullspec not in self._chosen:
            self._fetch_manifest(pullspec)
        with self._open(self._chosen[pullspec], "blobs", digest) as response:
            yield _Checked(response, digest)  # type: ignore[misc]

    def _fetch_manifest(self, pullspec: str) -> tuple[bytes, Reference]:
        known = self._chosen.get(pullspec)
        places = [known] if known else [parse(place) for place in [*self._mirrors(pullspec), pullspec]]
        reasons = []
        for place in places:
            try:
                body = self._read(place, "manifests", place.version)
            except RegistryError as error:
                reasons.append(f"{place}: {error}")
                continue
            if place.version.startswith("sha256:"):
                digest = "sha256:" + hashlib.sha256(body).hexdigest()
                if digest != place.version:
                    reasons.append(f"{place}: the registry sent {digest}")
                    continue
            self._chosen[pullspec] = place
            return body, place
        raise RegistryError(f"unable to read image {pullspec}: " + "; ".join(reasons))

    def _read(self, reference: Reference, kind: str, version: str) -> bytes:
        with self._open(reference, kind, version) as response:
            body: bytes = response.read(64 * 2**20)
            return body

    def _open(self, reference: Reference, kind: str, version: str) -> Any:
        url = f"https://{reference.host}/v2/{reference.path}/{kind}/{version}"
        headers = {"Accept": _MANIFESTS} if kind == "manifests" else {}
        key = (reference.host, reference.path)
        for attempt in range(2):
            if key in self._tokens:
                headers["Authorization"] = self._tokens[key]
            try:
                return self._opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
            except urllib.error.HTTPError as error:
                with error:
                    challenge = error.headers.get("WWW-Authenticate", "")
                if error.code == 401 and attempt == 0 and challenge:
                    self._tokens[key] = self._authorize(reference, challenge)
                    continue
                if error.code == 401:
                    hint = "" if self._basic(reference) else f": the pull secret has no entry for {reference.host}"
                    raise RegistryError(f"the registry asks for credentials (401){hint}") from error
                if error.code == 404:
                    raise RegistryError("not found (404)") from error
                raise RegistryError(f"HTTP {error.code} {error.reason}") from error
            except (urllib.error.URLError, TimeoutError, socket.gaierror, OSError) as error:
                raise RegistryError(_reason(error)) from error
        raise AssertionError("unreachable")

    def _basic(self, reference: Reference) -> str:
        """The `auth` of the most specific entry of the pull secret: HOST/REPO/.., then HOST."""
        parts = f"{reference.host}/{reference.path}".split("/")
        for count in range(len(parts), 0, -1):
            entry = self._auths.get("/".join(parts[:count]))
            if isinstance(entry, dict) and entry.get("auth"):
                return str(entry["auth"])
        return ""

    def _authorize(self, reference: Reference, challenge: str) -> str:
        basic = self._basic(reference)
        scheme, __, rest = challenge.partition(" ")
        if scheme.lower() == "basic":
            return f"Basic {basic}"
        fields = dict(re.findall(r'(\w+)="([^"]*)"', rest))
        query = {"service": fields.get("service", ""), "scope": f"repository:{reference.path}:pull"}
        url = f"{fields.get('realm', '')}?{urllib.parse.urlencode(query)}"
        headers = {"Authorization": f"Basic {basic}"} if basic else {}
        try:
            with self._opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
                answer = json.loads(response.read(2**20))
        except (urllib.error.URLError, ValueError, OSError) as error:
            hint = "" if basic else f": the pull secret has no entry for {reference.host}"
            raise RegistryError(f"no token from {fields.get('realm', '?')}: {_reason(error)}{hint}") from error
        return f"Bearer {answer.get('token') or answer.get('access_token', '')}"


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", error)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {inner.verify_message}"
    if isinstance(inner, socket.gaierror):
        return f"its name does not resolve: {inner.strerror}"
    return str(inner) or type(inner).__name__


class _Checked:
    """A stream that raises at its end when the bytes were not those of the digest."""

    def __init__(self, stream: BinaryIO, digest: str) -> None:
        algorithm, __, self._wanted = digest.partition(":")
        self._stream, self._hash = stream, hashlib.new(algorithm)

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self._hash.update(data)
        if (not data or size < 0) and self._hash.hexdigest() != self._wanted:
            raise RegistryError(f"a blob arrived damaged: expected {self._wanted}, got {self._hash.hexdigest()}")
        return data


def basic_auth(user: str, password: str) -> str:
    """The `auth` value of a pull secret entry."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()
