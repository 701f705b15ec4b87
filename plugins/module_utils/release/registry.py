"""A reader for registries that implement the OCI distribution API (HTTP API v2)."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from .content import Descriptor, MissingError, RegistryError, Source, VerifiedStream, digest_of, parse_object, read_all

TIMEOUT = 20.0
"""Seconds that a connection may be silent."""

MOST_DOCUMENT = 8 * 2**20
"""Bytes of a manifest, an index or a configuration; registries take 4 MiB at most."""

_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json", "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)  # fmt: skip
_PULLSPEC = re.compile(
    r"(?P<host>\[[0-9a-fA-F:]+\](?::\d+)?|[^/]+)/(?P<path>[^@:]+)(?::(?P<tag>[^@]+))?(?:@(?P<digest>.+))?"
)
_TOKEN = re.compile(r"[!-~]+", re.ASCII)


@dataclass(frozen=True)
class Reference:
    """A pullspec in parts; `version` is the digest, or else the tag (`latest` without one).

    host: with a port if there is one; path: the repository. `str` gives the pullspec again.
    """

    host: str
    path: str
    version: str

    def __str__(self) -> str:
        return f"{self.host}/{self.path}{'@' if ':' in self.version else ':'}{self.version}"


def parse(pullspec: str) -> Reference:
    """Take a pullspec apart. Raises `RegistryError`.

    A digest wins over a tag. The host may be an IPv6 address in brackets.
    """
    match = _PULLSPEC.fullmatch(pullspec)
    if not match:
        raise RegistryError(f"{pullspec!r} is not a pullspec: use HOST[:PORT]/REPOSITORY[:TAG][@DIGEST]")
    return Reference(match["host"], match["path"], match["digest"] or match["tag"] or "latest")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Blobs are often served elsewhere; credentials stay with the registry, and everything stays with https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        new = super().redirect_request(req, fp, code, msg, headers, newurl)
        if urllib.parse.urlsplit(newurl).scheme != "https":
            raise RegistryError(f"redirected to {newurl[:200]!r}: must be https")
        if new is not None and urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            new.headers.pop("Authorization", None)
        return new


class _Answer:
    """The body of an answer; what goes wrong while it arrives is a RegistryError."""

    def __init__(self, response: Source) -> None:
        self._response = response

    def read1(self, size: int = -1, /) -> bytes:
        try:
            return self._response.read1(size)
        except (OSError, http.client.HTTPException, ValueError) as error:  # a chunk's length may be no number
            raise RegistryError(_reason(error)) from error


class Registry:
    """Reads images, each from the first of its mirrors that has it.

    auths: the `auths` object of a pull secret. ca_bundle: PEM text trusted in addition to the system's.
    mirrors: callable pullspec -> list of pullspecs to try first.
    """

    def __init__(
        self, auths: Mapping[str, object], ca_bundle: str = "", mirrors: Callable[[str], Sequence[str]] | None = None
    ) -> None:
        self._auths = auths
        self._mirrors = mirrors or (lambda _pullspec: [])
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
        body, place = self._fetch_manifest(pullspec)
        document = parse_object(body, pullspec)
        if "manifests" not in document:
            return document, digest_of(body)
        entries = document["manifests"]
        for nth, entry in enumerate(entries if isinstance(entries, list) else ()):
            platform = entry.get("platform") if isinstance(entry, dict) else None
            if not arch or (isinstance(platform, dict) and platform.get("architecture") == arch):
                found = Descriptor.of(entry, f"{pullspec}: manifests[{nth}]")
                return parse_object(self._content(place, "manifests", found), pullspec), found.digest
        raise RegistryError(f"{pullspec} has no image for architecture {arch}")

    def document(self, pullspec: str) -> tuple[dict[str, Any], Reference, str]:
        """The manifest or the index of `pullspec` as it is stored, the mirror or source that has it, and its digest.

        Raises `RegistryError`.
        """
        body, place = self._fetch_manifest(pullspec)
        return parse_object(body, pullspec), place, digest_of(body)

    def has(self, pullspec: str) -> bool:
        """Return whether the registry itself, not one of its mirrors, has the manifest or index of `pullspec`.

        Raises `RegistryError` for every answer but "here it is" and 404.
        """
        place = parse(pullspec)
        return self._length(place, "manifests", place.version) is not None

    def blob_size(self, pullspec: str, digest: str) -> int | None:
        """Bytes of a blob in the repository of `pullspec`, as the registry announces them; None when it is not there.

        Raises `RegistryError`, also for an answer without a length.
        """
        return self._length(parse(pullspec), "blobs", digest)

    def _length(self, place: Reference, kind: str, version: str) -> int | None:
        try:
            with self._open(place, kind, version, "HEAD") as response:
                length = response.headers.get("Content-Length", "")
        except MissingError:
            return None
        except RegistryError as error:
            raise RegistryError(f"{place}: {error}") from error
        if not length.isascii() or not length.isdigit():
            raise RegistryError(f"{place}: the answer to HEAD for {version} has no Content-Length")
        return int(length)

    def layers(self, pullspec: str, arch: str = "") -> list[Descriptor]:
        """The layers of the image, lowest first.

        arch: Go's name, empty for the first image of an index. Raises `RegistryError`.
        """
        manifest, digest = self.manifest(pullspec, arch)
        found = manifest.get("layers")
        if not isinstance(found, list):
            raise RegistryError(f"{pullspec}: {digest} is not an image manifest: it has no list of layers")
        return [Descriptor.of(layer, f"{pullspec}: layers[{nth}]") for nth, layer in enumerate(found)]

    def config(self, pullspec: str, arch: str = "") -> dict[str, Any]:
        """The image configuration (`architecture`, `config`, `rootfs`, ...).

        arch: as for `layers`. It is compared with the digest in the manifest. Raises `RegistryError`.
        """
        manifest, __ = self.manifest(pullspec, arch)
        expected = Descriptor.of(manifest.get("config"), f"{pullspec}: config")
        return parse_object(self._content(self._chosen[pullspec], "blobs", expected), pullspec)

    @contextmanager
    def blob(self, pullspec: str, expected: Descriptor) -> Iterator[VerifiedStream]:
        """Stream a blob of the image `pullspec`. Call `finish` before anything of it is used."""
        if pullspec not in self._chosen:
            self._fetch_manifest(pullspec)
        with self._open(self._chosen[pullspec], "blobs", expected.digest) as response:
            yield VerifiedStream(_Answer(response), expected)

    def _fetch_manifest(self, pullspec: str) -> tuple[bytes, Reference]:
        known = self._chosen.get(pullspec)
        places = [known] if known else [parse(place) for place in [*self._mirrors(pullspec), pullspec]]
        reasons = []
        for place in places:
            try:
                with self._open(place, "manifests", place.version) as response:
                    body = read_all(_Answer(response), MOST_DOCUMENT)
            except RegistryError as error:
                reasons.append(f"{place}: {error}")
                continue
            if ":" in place.version:
                digest = digest_of(body, place.version.partition(":")[0])
                if digest != place.version:
                    reasons.append(f"{place}: the registry sent {digest}")
                    continue
            self._chosen[pullspec] = place
            return body, place
        raise RegistryError(f"unable to read image {pullspec}: " + "; ".join(reasons))

    def _content(self, place: Reference, kind: str, expected: Descriptor) -> bytes:
        """A small piece of content that agrees with its descriptor."""
        if expected.size > MOST_DOCUMENT:
            raise RegistryError(f"{place}: {expected.digest} has {expected.size} bytes, {MOST_DOCUMENT} is the limit")
        try:
            with self._open(place, kind, expected.digest) as response:
                stream = VerifiedStream(_Answer(response), expected)
                body = stream.read()
                stream.finish()
        except RegistryError as error:
            raise RegistryError(f"{place}: {error}") from error
        return body

    def _open(self, reference: Reference, kind: str, version: str, method: str = "GET") -> Any:
        url = f"https://{reference.host}/v2/{reference.path}/{kind}/{version}"
        headers = {"Accept": _MANIFESTS} if kind == "manifests" else {}
        key = (reference.host, reference.path)
        for attempt in range(2):
            if key in self._tokens:
                headers["Authorization"] = self._tokens[key]
            try:
                return self._opener.open(urllib.request.Request(url, headers=headers, method=method), timeout=TIMEOUT)
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
                    raise MissingError("not found (404)") from error
                raise RegistryError(f"HTTP {error.code} {error.reason[:200]}") from error
            except (OSError, http.client.HTTPException, ValueError) as error:
                if isinstance(error, RegistryError):
                    raise
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
        fields = dict(re.findall(r'\b(\w+)="([^"]*)"', rest))
        query = {"service": fields.get("service", ""), "scope": f"repository:{reference.path}:pull"}
        realm = fields.get("realm", "")
        if urllib.parse.urlsplit(realm).scheme != "https":
            raise RegistryError(f"tokens are at {realm[:200]!r}: must be https")
        url = f"{realm}?{urllib.parse.urlencode(query)}"
        headers = {"Authorization": f"Basic {basic}"} if basic else {}
        try:
            with self._opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
                answer = parse_object(read_all(_Answer(response), 2**20), "the answer")
        except (urllib.error.URLError, ValueError, OSError, http.client.HTTPException) as error:
            hint = "" if basic else f": the pull secret has no entry for {reference.host}"
            raise RegistryError(f"no token from {realm}: {_reason(error)}{hint}") from error
        token = answer.get("token") or answer.get("access_token") or ""
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise RegistryError(f"no token from {realm}: the answer has none")
        return f"Bearer {token}"


def _reason(error: Exception) -> str:
    inner = getattr(error, "reason", error)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {inner.verify_message}"
    if isinstance(inner, socket.gaierror):
        return f"its name does not resolve: {inner.strerror}"
    return str(inner) or type(inner).__name__
