"""Requests and responses as handlers see them, and the table in which handlers register."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import Engine


@dataclass
class Call:
    """One request: path and query parameters, body as the model describes it, scheme it was authorized with."""

    path: dict[str, str]
    query: dict[str, Any] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    scheme: str = "userAuth"


@dataclass
class Download:
    """A file as response: content, a stream, or a path on disk."""

    name: str
    content: bytes = b""
    stream: AsyncIterator[bytes] | None = None
    path: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    #: The content or stream is JSON, and no file.
    json: bool = False
    #: A status other than the operation's default.
    status: int = 0


Handler = Callable[["Engine", Call], Any]
HANDLERS: dict[str, Handler] = {}


def handler(function: Handler) -> Handler:
    HANDLERS[function.__name__] = function
    return function
