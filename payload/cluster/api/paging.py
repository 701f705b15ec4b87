"""Lists in parts: `limit`, `continue`, and lists of an earlier revision."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import NamedTuple

from ....plugins.module_utils.documents import load_json
from ..selectors import Matcher
from ..store import ExpiredRevision, Object, Store
from .errors import ApiError
from .requests import Target


class Page(NamedTuple):
    """A part of a list.

    revision: of the list; token: the value of `continue` for the next part, empty for the last one; remaining: number of
    objects after this part, None if it is not known, as with selectors.
    """

    items: list[Object]
    revision: str
    token: str = ""
    remaining: int | None = None


def page(store: Store, target: Target, chosen: Matcher, query: Mapping[str, str], *, selects: bool) -> Page:
    """Return the part of a list that a request asks for; all parts are of the revision of the first one.

    selects: whether the request has a selector. Raises ApiError 400 for parameters that cannot be read, 410 when the
    revision is no longer known, 504 for one that is not reached yet.
    """
    limit, token, wanted = _number(query, "limit"), query.get("continue", ""), query.get("resourceVersion", "")
    revision, start = store.revision, ""
    if token:
        if wanted not in ("", "0"):
            raise ApiError(400, "BadRequest", "specifying resource version is not allowed when using continue")
        revision, start = _parsed(token)
    elif wanted:
        requested = _number(query, "resourceVersion")
        if requested > revision:
            raise too_large(requested, revision)
        if query.get("resourceVersionMatch") == "Exact" and requested:
            revision = requested
    try:
        if revision < 0 or revision > store.revision:
            raise ApiError(400, "BadRequest", "continue key is not valid")
        found = store.items(target.resource.key, target.namespace)
        if revision != store.revision:
            found = store.items_at(target.resource.key, target.namespace, revision)
    except ExpiredRevision:
        raise ApiError(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
            "the continue parameter, or use the continue token in this response to retrieve the remainder of the results."
            if token
            else f"The resourceVersion for the provided list is too old: {revision}",
        ) from None
    found = sorted((obj for obj in found if chosen(obj)), key=lambda obj: _key(obj, target))
    found = [obj for obj in found if _key(obj, target) > start]
    if not limit or len(found) <= limit:
        return Page(found, str(revision))
    shown = found[:limit]
    return Page(
        shown, str(revision), _token(revision, _key(shown[-1], target)), None if selects else len(found) - limit
    )


def too_large(requested: int, revision: int) -> ApiError:
    """Return the error for a revision that the store has not reached."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ApiError(504, "Timeout", f"Too large resource version: {requested}, current: {revision}", details)


def _key(obj: Object, target: Target) -> str:
    """Return the key of an object below that of its list, as in tokens of the real API; a continued list starts after it."""
    namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
    return f"{namespace}/{name}\0" if namespace and not target.namespace else f"{name}\0"


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "") or "0"
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise ApiError(400, "BadRequest", f"{name}: Invalid value: {text!r}: must be a non-negative integer")
    return int(text)


def _token(revision: int, start: str) -> str:
    data = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(data.encode()).decode().rstrip("=")


def _parsed(token: str) -> tuple[int, str]:
    try:
        data = load_json(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), name="continue")
        return int(data["rv"]), str(data["start"])
    except (ValueError, LookupError, TypeError):
        raise ApiError(400, "BadRequest", "continue key is not valid") from None
