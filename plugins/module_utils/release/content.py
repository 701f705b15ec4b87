"""Content that is named by its digest: descriptors, and streams that are compared with them.

Sources: the descriptor of the OCI image specification (media type, digest, size), RFC 9110 for what a server may send
in place of what it announced.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from typing import Any, Protocol

from ..documents import DocumentError, load_json

DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", re.ASCII)
CHUNK = 2**18
GRACE = 60.0
"""Seconds that any answer may take."""
LEAST_RATE = 10_000
"""Bytes per second that an answer must reach on average after that: a peer that sends a byte now and then ends."""


class RegistryError(ValueError):
    """A registry can't be reached, refuses, or has not what was asked for; names the pullspec and every place tried.

    It is a `ValueError`, whose text is for users: it can be shown as it is.
    """


class MissingError(RegistryError):
    """The registry answered, and has no such manifest or blob (404)."""


class Source(Protocol):
    """What content comes from; `read1` returns what is there without waiting for all of it.

    An empty result is the end. Errors are raised as `RegistryError` by the registry's own answers.
    """

    def read1(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Content: its media type, its digest and its size in bytes."""

    media_type: str
    digest: str
    size: int

    @classmethod
    def of(cls, value: object, what: str) -> Descriptor:
        """The descriptor of an index or manifest. RegistryError names `what` and the field that is wrong.

        value: a decoded JSON object with `digest`, `size` and perhaps `mediaType`; what: its name in messages.
        """
        if not isinstance(value, dict):
            raise RegistryError(f"{what} is not a descriptor")
        digest, size, media_type = value.get("digest"), value.get("size"), value.get("mediaType", "")
        if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
            raise RegistryError(f"{what}.digest is {str(digest)[:100]!r}: must be sha256:<64 hexadecimal digits>")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise RegistryError(f"{what}.size is {str(size)[:100]!r}: must be a number of bytes")
        if not isinstance(media_type, str):
            raise RegistryError(f"{what}.mediaType is {str(media_type)[:100]!r}: must be a string")
        return cls(media_type, digest, size)


def digest_of(data: bytes, algorithm: str = "sha256") -> str:
    """The digest of some bytes.

    algorithm: of hashlib. The form is `sha256:` and hexadecimal digits, as in a pullspec.
    """
    return f"{algorithm}:{hashlib.new(algorithm, data).hexdigest()}"


def read_all(source: Source, limit: int) -> bytes:
    """Everything that a source has. RegistryError: it has more than `limit` bytes, or sends them too slowly.

    It must reach `LEAST_RATE` after `GRACE` seconds. For content with a known digest use `VerifiedStream`.
    """
    started, parts, got = time.monotonic(), list[bytes](), 0
    while data := source.read1(min(CHUNK, limit + 1 - got)):
        parts.append(data)
        got += len(data)
        if got > limit:
            raise RegistryError(f"the answer is longer than {limit} bytes")
        _check_pace(started, got)
    return b"".join(parts)


class VerifiedStream:
    """A stream of content that never gives more than the size in its descriptor; `finish` compares size and digest.

    Nothing that was read may be used before `finish` has returned.
    """

    def __init__(self, source: Source, expected: Descriptor) -> None:
        self._source, self._expected = source, expected
        self._hash, self._got = hashlib.new(expected.digest.partition(":")[0]), 0
        self._started = time.monotonic()

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, fewer than asked for only at the end.

        size: negative for all that is left. RegistryError: there is more than the descriptor has, or it comes too
        slowly.
        """
        parts, wanted = list[bytes](), size if size >= 0 else self._expected.size + 1
        while wanted > 0 and (data := self._source.read1(min(wanted, CHUNK))):
            self._got += len(data)
            if self._got > self._expected.size:
                raise self._damaged(f"it is longer than its {self._expected.size} bytes")
            self._hash.update(data)
            _check_pace(self._started, self._got)
            parts.append(data)
            wanted -= len(data)
        return b"".join(parts)

    def finish(self) -> None:
        """Read the rest of the content. RegistryError: it does not match the descriptor.

        Call it even after everything was read: it alone compares the digest.
        """
        while self.read(CHUNK):
            pass
        if self._got != self._expected.size:
            raise self._damaged(f"it ends after {self._got} of {self._expected.size} bytes")
        found = f"{self._hash.name}:{self._hash.hexdigest()}"
        if found != self._expected.digest:
            raise self._damaged(f"its digest is {found}")

    def _damaged(self, why: str) -> RegistryError:
        return RegistryError(f"the registry sent other content than {self._expected.digest}: {why}")


def _check_pace(started: float, got: int) -> None:
    if time.monotonic() - started > GRACE + got / LEAST_RATE:
        raise RegistryError(f"the registry sends too slowly: {got} bytes in {time.monotonic() - started:.0f} s")


def parse_object(data: bytes, name: str) -> dict[str, Any]:
    """Return a registry's JSON object. RegistryError if it is invalid.

    name: of the document, for messages.
    """
    try:
        found = load_json(data, name=name)
    except DocumentError as error:
        raise RegistryError(f"the registry sent no JSON: {error}") from error
    if not isinstance(found, dict):
        raise RegistryError(f"{name}: the registry sent no object")
    return found
