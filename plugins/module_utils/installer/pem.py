"""Certificate bundles as Go's encoding/pem reads them, which is what the installer and the cluster do."""

from __future__ import annotations

import base64
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._deps import optional

if TYPE_CHECKING:
    from cryptography import x509
else:
    x509 = optional("cryptography.x509", "cryptography")

_BEGIN = re.compile(r"^-----BEGIN (.*)-----[ \t\r]*$\n?", re.MULTILINE)
_END = re.compile(r"^-----END (.*)$\n?", re.MULTILINE)
_HEADERS = re.compile(r"(?:[^\n:]*:[^\n]*\n)*")


def blocks(text: str) -> Iterator[tuple[str, bytes, int]]:
    """Type and content of each PEM block, and where it ends; other text and damaged blocks are passed over.

    The place is the index in `text` behind the block's last line. Headers in a block are skipped.
    """
    at, end = 0, _END.search(text)
    while (begin := _BEGIN.search(text, at)) is not None:
        headers = _HEADERS.match(text, begin.end())
        at = headers.end() if headers else begin.end()
        if end is not None and end.start() < at:
            end = _END.search(text, at)
        if end is None:
            return
        content = _decoded(text[at : end.start()]) if end[1].rstrip(" \t\r") == f"{begin[1]}-----" else None
        if content is not None:
            at = end.end()
            yield begin[1], content, at


def _decoded(body: str) -> bytes | None:
    try:
        return base64.b64decode(re.sub(r"[ \t\r\n]", "", body), validate=True)
    except ValueError:
        return None


def problem(text: str) -> str | None:
    """Why `text` is not a bundle of certificates, or None: nothing may follow the last one, not even an empty line.

    The reason is Go's or the installer's text. Empty text is `invalid block`.
    """
    at = 0
    for __, content, at in blocks(text):  # noqa: B007
        try:
            x509.load_der_x509_certificate(content).version  # noqa: B018
        except x509.InvalidVersion:
            return "x509: invalid version"
        except ValueError:
            return "x509: malformed certificate"
    return None if at and at == len(text) else "invalid block"


def bundle(text: str) -> tuple[str, list[str]]:
    """The certificates of a bundle without the text between them, and a warning for each that is not of a CA.

    text: a bundle in which `problem` finds none. Lines of the result have 64 characters; order and repetitions stay.
    """
    found, warnings = [], []
    for kind, content, __ in blocks(text):
        lines = "\n".join(textwrap.wrap(base64.b64encode(content).decode(), 64))
        found.append(f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n")
        certificate = x509.load_der_x509_certificate(content)
        version = certificate.version.value + 1
        if version < 3 or not _is_authority(certificate):
            warnings.append(
                f"Certificate {certificate.serial_number:X} from additionalTrustBundle is x509 v{version} but not a "
                "certificate authority"
            )
    return "".join(found), warnings


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        return False
