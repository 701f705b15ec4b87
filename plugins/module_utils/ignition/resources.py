"""Contents of Ignition configs: resources as data URLs (RFC 2397), and files with them. The standard library is all that it needs.

The machine-config daemon takes this module along to hosts (`payload/cluster/machine_config_daemon.py`).
"""

from __future__ import annotations

import base64
import gzip
import urllib.parse
from typing import Any

VERSION = "3.2.0"
"""The specification that nodes of all releases understand."""
TEXT = "text/plain;charset=utf-8"
"""The media type that `openshift-install` writes for its files."""


class IgnitionError(ValueError):
    """A config breaks the specification; the text has one line for each finding.

    Findings name the place in the config as `$.storage.files[0]`, where there is one.
    """


def data_url(content: str | bytes, media_type: str = TEXT) -> str:
    """Return `content` as a data URL in base64.

    Text is encoded in UTF-8. `media_type` may be empty, for bytes of no type.
    """
    raw = content.encode() if isinstance(content, str) else content
    return f"data:{media_type};base64,{base64.b64encode(raw).decode()}"


def resource(data: bytes, *, compress: bool = False) -> dict[str, str]:
    """Return `data` as a resource without a media type; with `compress` in gzip, the same bytes for the same data.

    It is the value of `contents` of a file, or of an entry of `append`.
    """
    if not compress:
        return {"source": data_url(data, "")}
    return {"source": data_url(gzip.compress(data, mtime=0), ""), "compression": "gzip"}


def data_file(path: str, data: bytes, mode: int, *, compress: bool = False) -> dict[str, Any]:
    """Return an entry of `storage.files` with content `data`, which replaces a file of the image.

    `path` is absolute, `mode` the permission bits; with `compress` the content is in gzip.
    """
    return {"path": path, "overwrite": True, "mode": mode, "contents": resource(data, compress=compress)}


def read_data_url(url: str, compression: str | None = None) -> bytes:
    """The content of a data URL (RFC 2397). Raises `IgnitionError`, or ValueError or OSError for what cannot be decoded.

    In base64 or percent-encoded. `compression` is that of the resource: `gzip`, else none.
    """
    if not url.startswith("data:") or "," not in url:
        raise IgnitionError(f"source {url[:60]!r} is not a data URL")
    head, __, body = url.partition(",")
    raw = base64.b64decode(body, validate=True) if head.endswith(";base64") else urllib.parse.unquote_to_bytes(body)
    return gzip.decompress(raw) if compression == "gzip" else raw
