"""How the replies of a BMC are read: bounded, as JSON of the project's limits, and from that BMC alone."""

from __future__ import annotations

import urllib.parse
from typing import TYPE_CHECKING, Any

from .. import deadline
from .._deps import optional
from ..documents import DocumentError, Limits, load_json, read_reply

if TYPE_CHECKING:
    import requests
    import sushy
else:
    requests = optional("requests")
    sushy = optional("sushy")

_LIMITS = Limits(size=8 << 20, nodes=200_000, depth=50)
MOST_SECONDS = 900.0
"""Limit of a request with its reply: an emulator downloads an image before it replies."""
MOST_BYTES = _LIMITS.size
"""Length of a reply. Message registries, the largest ones, have some hundred kilobytes."""


def connector(root: str, **options: Any) -> sushy.connector.Connector:
    """Return sushy's connector, whose replies are bounded; it sends nothing, so no credentials either, to other hosts than root's.

    root: URL of the service; options: those of sushy's class.
    """
    made = sushy.connector.Connector(root, **options)
    for scheme in ("http://", "https://"):
        made._session.mount(scheme, _adapter(urllib.parse.urlsplit(root).netloc))
    return made


def _adapter(host: str) -> requests.adapters.HTTPAdapter:
    """Return a transport of `requests` that refuses what does not come from `host`, or is too large or too deep."""

    class Adapter(requests.adapters.HTTPAdapter):
        def send(self, *arguments: Any, **options: Any) -> Any:
            url = str(arguments[0].url)
            if urllib.parse.urlsplit(url).netloc != host:
                raise requests.exceptions.InvalidURL(f"it refers to {url[:200]}, another host")
            send = super().send

            def ask() -> tuple[requests.Response, bytes]:
                with send(*arguments, **{**options, "stream": True}) as answer:
                    return answer, read_reply(answer, limits=_LIMITS)

            try:
                answer, body = deadline.within(MOST_SECONDS, ask)
            except TimeoutError as error:
                raise requests.exceptions.RequestException(str(error)) from error
            if len(body) > MOST_BYTES:
                raise requests.exceptions.InvalidJSONError(f"the reply is longer than {MOST_BYTES} bytes")
            if answer.ok and body.strip():
                try:
                    load_json(body, name="the reply", limits=_LIMITS)
                except DocumentError as error:
                    raise requests.exceptions.InvalidJSONError(str(error)) from error
            answer._content, answer._content_consumed = body, True
            return answer

    return Adapter()
