"""Reads of the API: get, list and watch, as objects, tables or metadata."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping

from aiohttp import web

from .. import printers
from ..resources import Resource
from ..selectors import Matcher, SelectorError, selector
from ..store import Event, ExpiredRevision, Object, Store
from .errors import JSON, ApiError, respond
from .paging import page
from .requests import Target, stored_object

_BOOKMARK_SECONDS = 60.0
_BEFORE_END_SECONDS = 2.0


class Reader:
    """Answers reads from the store.

    log_of: returns the log of a pod as text, or None if this member does not have it.
    """

    def __init__(self, store: Store, log_of: Callable[[Object], str | None]) -> None:
        self.store, self.log_of = store, log_of

    async def read(self, request: web.Request, target: Target, verb: str) -> web.StreamResponse:
        """Answer a get, list or watch.

        target: what the path names; verb: `get`, `list` or `watch`. ApiError 404 for what does not exist, 400 for a
        selector that cannot be read. A watch from a revision that is not in the history gets the event ERROR with 410.
        """
        resource, query = target.resource, request.query
        if verb == "get":
            obj = stored_object(self.store, target)
            if target.sub == "log":
                text = self.log_of(obj)
                if text is None:
                    raise ApiError(
                        404,
                        "NotFound",
                        f'the log of pod "{target.name}" is on node "{obj["spec"].get("nodeName", "")}"',
                    )
                return web.Response(text=text)
            return respond(self._shown(request, resource, [obj], single=True))
        try:
            chosen = selector(resource.key, query.get("labelSelector", ""), query.get("fieldSelector", ""))
        except SelectorError as error:
            raise ApiError(400, "BadRequest", str(error)) from None
        if target.name:
            wanted = target.name
            chosen = _combined_matcher(chosen, lambda obj: obj["metadata"]["name"] == wanted)
        if verb == "watch":
            return await self._watch(request, target, chosen)
        selects = bool(query.get("labelSelector") or query.get("fieldSelector"))
        found = page(self.store, target, chosen, query, selects=selects)
        answer = self._shown(request, resource, found.items)
        metadata: Object = {"resourceVersion": found.revision}
        if found.token:
            metadata["continue"] = found.token
        if found.remaining is not None:
            metadata["remainingItemCount"] = found.remaining
        return respond({**answer, "metadata": metadata})

    def _shown(self, request: web.Request, resource: Resource, items: list[Object], *, single: bool = False) -> Object:
        accept = request.headers.get("Accept", "")
        revision = str(self.store.revision)
        if "as=Table" in accept:
            return printers.table(resource, items, revision, include=request.query.get("includeObject", "Metadata"))
        if "as=PartialObjectMetadata" in accept:
            items = [_partial(obj) for obj in items]
            kind, api_version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        else:
            kind, api_version = f"{resource.kind}List", resource.api_version
        if single:
            return items[0]
        return {"kind": kind, "apiVersion": api_version, "metadata": {"resourceVersion": revision}, "items": items}

    async def _watch(self, request: web.Request, target: Target, chosen: Matcher) -> web.StreamResponse:
        query, key = request.query, target.resource.key
        as_table = "as=Table" in request.headers.get("Accept", "")
        partial = "as=PartialObjectMetadata" in request.headers.get("Accept", "")
        headers_due = True

        def line(kind: str, obj: Object) -> bytes:
            nonlocal headers_due
            if as_table and kind in ("ADDED", "MODIFIED", "DELETED"):
                include = query.get("includeObject", "Metadata")
                obj = printers.table(target.resource, [obj], obj["metadata"]["resourceVersion"], headers_due, include)
                headers_due = False
            elif partial and kind != "ERROR":
                obj = _partial(obj)
            return json.dumps({"type": kind, "object": obj}, separators=(",", ":")).encode() + b"\n"

        def bookmark(annotations: dict[str, str] | None = None) -> bytes:
            metadata: Object = {"resourceVersion": str(self.store.revision), "creationTimestamp": None}
            if annotations:
                metadata["annotations"] = annotations
            return line(
                "BOOKMARK",
                {"kind": target.resource.kind, "apiVersion": target.resource.api_version, "metadata": metadata},
            )

        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self.store.listeners.append(queue.put_nowait)
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        try:
            start: list[bytes] = []
            revision = query.get("resourceVersion", "")
            initial = query.get("sendInitialEvents") == "true"
            if revision in ("", "0") or initial:
                start = [line("ADDED", obj) for obj in self.store.items(key, target.namespace) if chosen(obj)]
                if initial:
                    start.append(bookmark({"k8s.io/initial-events-end": "true"}))
            else:
                try:
                    events = list(self.store.events_since(int(revision)))
                except ExpiredRevision as error:
                    start = [line("ERROR", ApiError(410, "Expired", str(error)).status())]
                    await response.prepare(request)
                    await response.write(b"".join(start))
                    return response
                except ValueError:
                    raise ApiError(400, "BadRequest", f"resourceVersion: Invalid value: {revision!r}") from None
                start = [line(*shown) for event in events if (shown := _seen(event, key, target.namespace, chosen))]
            await response.prepare(request)
            if start:
                await response.write(b"".join(start))
            await self._stream(
                response, queue, query, lambda e: _seen(e, key, target.namespace, chosen), line, bookmark
            )
        except (TimeoutError, ConnectionResetError):
            pass
        finally:
            self.store.listeners.remove(queue.put_nowait)
        return response

    async def _stream(
        self,
        response: web.StreamResponse,
        queue: asyncio.Queue[Event | None],
        query: Mapping[str, str],
        seen: Callable[[Event], tuple[str, Object] | None],
        line: Callable[[str, Object], bytes],
        bookmark: Callable[[], bytes],
    ) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + float(query.get("timeoutSeconds", 0) or random.uniform(1800, 3600))
        bookmarks = query.get("allowWatchBookmarks") == "true"
        # A client resumes from the last bookmark, so one is sent before the end, too.
        due = min(loop.time() + _BOOKMARK_SECONDS, end - _BEFORE_END_SECONDS)
        while (left := end - loop.time()) > 0:
            try:
                event = await asyncio.wait_for(
                    queue.get(), min(left, max(0.0, due - loop.time())) if bookmarks else left
                )
            except TimeoutError:
                if bookmarks and loop.time() >= due:
                    await response.write(bookmark())
                    due = min(loop.time() + _BOOKMARK_SECONDS, end - _BEFORE_END_SECONDS)
                    due = due if due > loop.time() else end + 1
                continue
            if event is None:
                return
            shown = seen(event)
            if shown:
                await response.write(line(*shown))


def _seen(event: Event, key: str, namespace: str, chosen: Matcher) -> tuple[str, Object] | None:
    """Return a watch event: an object that enters the selection is ADDED, one that leaves it DELETED."""
    obj, old = event["object"], event["old"]
    if event["resource"] != key or (namespace and obj["metadata"].get("namespace") != namespace):
        return None
    before = old is not None and event["type"] != "ADDED" and chosen(old)
    if event["type"] == "DELETED":
        return ("DELETED", obj) if old is None or before else None
    if chosen(obj):
        return ("MODIFIED" if before or (old is None and event["type"] == "MODIFIED") else "ADDED", obj)
    return ("DELETED", obj) if before else None


def _partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _combined_matcher(first: Matcher, second: Matcher) -> Matcher:
    return lambda obj: first(obj) and second(obj)
