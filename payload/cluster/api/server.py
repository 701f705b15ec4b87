"""Handles the requests of one control-plane member."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from ..resources import Registry
from ..store import Object, Store
from . import node_access, reviews
from .access import ANONYMOUS, NODES, Access, User
from .discovery import document, version_info
from .errors import ApiError, respond
from .reading import Reader
from .requests import READ, Target, body_of, check_accept, target_of, verb_of
from .writing import Writer

_PUBLIC = ("/version", "/healthz", "/livez", "/readyz")

# Called with the request when this member may not write; forwards it to the leader.
Forward = Callable[[web.Request, User], Awaitable[web.StreamResponse]]
# Called after a write with its revision; returns when the other members have it.
Replicate = Callable[[int], Awaitable[None]]


class Api:
    """Request handling of one member.

    `writable` returns whether this member is the leader, `ready` whether its state may be read; `log_of` returns the log
    text of a pod, or None if this member does not have it.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        access: Access,
        version: str,
        *,
        writable: Callable[[], bool] = lambda: True,
        ready: Callable[[], bool] = lambda: True,
        forward: Forward | None = None,
        replicate: Replicate | None = None,
        log_of: Callable[[Object], str | None] = lambda pod: None,
    ) -> None:
        self.store, self.registry, self.access, self.version = store, registry, access, version
        self.writable, self.ready, self.forward, self.replicate = writable, ready, forward, replicate
        self._reader, self._writer = Reader(store, log_of), Writer(store, registry)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; every error becomes a Status."""
        try:
            return await self._handle(request)
        except ApiError as error:
            return respond(error.status(), error.code, {"Retry-After": "1"} if error.code == 503 else None)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        probe = "/" + path.split("/")[1]
        if probe in _PUBLIC:
            return self._probe(probe)
        user = self.access.user(request)
        found = self._document(request, path, user)
        if found is not None:
            return found
        target = target_of(self.registry, path)
        verb = verb_of(request, target)
        check_accept(request)
        if not self.access.allowed(user, verb, target, self.store, lambda: request.query.get("fieldSelector", "")):
            raise _forbidden(user, verb, target)
        if verb in READ:
            return await self._reader.read(request, target, verb)
        if not self.writable():
            if self.forward is None:
                raise ApiError(503, "ServiceUnavailable", "this control plane member is not the leader")
            return await self.forward(request, user)
        body = await body_of(request)
        if verb == "create" and (
            answered := reviews.review(target.resource, body, user, self.access, self.registry, self.store)
        ):
            return respond(answered, 201)
        if NODES in user.groups:
            node_access.restrict(self.store, user.name, verb, target, body)
        revision = self.store.revision
        answer, code = self._writer.write(request, target, verb, body, user)
        if self.replicate and self.store.revision > revision:
            await self.replicate(self.store.revision)
        return respond(answer, code)

    def _document(self, request: web.Request, path: str, user: User) -> web.Response | None:
        """Return the answer to a request for what is not in the store, None for any other."""
        if user.name == ANONYMOUS.name:
            if path.count("/") >= (3 if path.startswith("/api/") else 4):
                return None  # an object, which is refused by its name
            raise ApiError(
                403, "Forbidden", f'forbidden: User "{user.name}" cannot {verb_of(request, None)} path "{request.path}"'
            )
        found = document(self.registry, self.version, request, path)
        if found is None and path == reviews.WHO:
            found = respond(reviews.user_info(user))
        if found is None and not self.ready():
            raise ApiError(503, "ServiceUnavailable", "the store of this control plane member is not in sync yet")
        return found

    def _probe(self, path: str) -> web.Response:
        if path == "/version":
            return respond(version_info(self.version))
        if path == "/readyz" and not self.ready():
            return web.Response(status=503, text="[-]store failed: not in sync\nreadyz check failed\n")
        return web.Response(text="ok")


def _forbidden(user: User, verb: str, target: Target) -> ApiError:
    resource = target.resource
    named = f'{resource.key} "{target.name}"' if target.name else resource.key
    scope = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    plural = f"{resource.plural}/{target.sub}" if target.sub else resource.plural
    return ApiError(
        403,
        "Forbidden",
        f'{named} is forbidden: User "{user.name}" cannot {verb} resource "{plural}" in API group "{resource.group}" {scope}',
        {"name": target.name, "group": resource.group, "kind": resource.plural},
    )
