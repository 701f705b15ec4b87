"""What a request of the API is about: its object, verb and body."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from ....plugins.module_utils.documents import load_json, load_yaml
from .. import protobuf
from ..patch import PATCHES
from ..resources import Registry, Resource, subresources
from ..store import NotFound, Object, Store
from .errors import JSON, ApiError, no_such_path, not_found

READ = frozenset({"get", "list", "watch"})
_PLAIN_TYPES = (JSON, "application/yaml", "application/octet-stream", protobuf.CONTENT_TYPE)


@dataclass(frozen=True)
class Target:
    """The target of a request, parsed from its URL."""

    resource: Resource
    namespace: str
    name: str
    sub: str


def target_of(registry: Registry, path: str) -> Target:
    """Return what a path below /api/v1 or /apis names; ApiError 404 if it names nothing."""
    parts = path.split("/")[1:]
    if parts[0] == "api" and parts[1:2] == ["v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise no_such_path()
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    resource = registry.by_path(group, version, rest[0])
    name = rest[1] if len(rest) > 1 else ""
    sub = rest[2] if len(rest) > 2 else ""
    if resource is None or len(rest) > 3 or (sub and sub not in subresources(resource)):
        raise no_such_path()
    return Target(resource, namespace, name, sub)


def stored_object(store: Store, target: Target) -> Object:
    """Return the stored object; ApiError 404 if there is none."""
    try:
        return store.get(target.resource.key, target.namespace, target.name)
    except NotFound:
        raise not_found(target.resource, target.name) from None


def verb_of(request: web.Request, target: Target | None) -> str:
    """Return the verb of permissions (get, list, watch, create, ...); ApiError 405 for a method that no resource has."""
    if target is not None and not _fits(request.method, target):
        raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    if request.method in ("GET", "HEAD"):
        if target is None or (target.name and request.query.get("watch", "") not in ("true", "1")):
            return "get"
        return "watch" if request.query.get("watch", "") in ("true", "1") else "list"
    if request.method == "DELETE":
        return "delete" if target is None or target.name else "deletecollection"
    try:
        return {"POST": "create", "PUT": "update", "PATCH": "patch"}[request.method]
    except KeyError:
        raise ApiError(405, "MethodNotAllowed", f"the server does not allow {request.method} here") from None


async def body_of(request: web.Request) -> object:
    """Return the decoded body, None for a DELETE without options; ApiError 415 for a content type that is not understood, 400 if it cannot be read."""
    if request.method == "DELETE" and not request.can_read_body:
        return None
    content_type = request.content_type
    if content_type not in PATCHES and content_type not in _PLAIN_TYPES:
        raise ApiError(
            415, "UnsupportedMediaType", f"content type {content_type} is not understood; send application/json"
        )
    data = await request.read()
    if request.method == "DELETE" and not data.strip():
        return None
    try:
        if content_type == protobuf.CONTENT_TYPE:
            return protobuf.decode(data)
        return load_yaml(data, name="the body") if "yaml" in content_type else load_json(data, name="the body")
    except ValueError as error:
        raise ApiError(400, "BadRequest", f"the body cannot be read: {error}") from None


def check_accept(request: web.Request) -> None:
    """Refuse a request that accepts nothing that can be sent; ApiError 406."""
    accepted = [part.partition(";")[0].strip() for part in request.headers.get("Accept", "").split(",")]
    if not any(kind in ("", "*/*", "application/*", JSON) for kind in accepted):
        raise ApiError(406, "NotAcceptable", f"only the following media types are accepted: {JSON}")


def _fits(method: str, target: Target) -> bool:
    """Return whether a method is for a collection or for an object, as the target is."""
    if not set(target.resource.verbs) & {"get", "list"}:
        return method == "POST" and not target.name
    if method in ("PUT", "PATCH"):
        return bool(target.name)
    return method != "POST" or not target.name or target.sub == "binding"
