"""The OpenShift API: REST over the store, as kubectl, oc and the client libraries of Kubernetes call it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import string
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from ...plugins.module_utils.documents import load_json, load_yaml
from . import printers, protobuf
from .patch import PatchError, json_patch, merge_patch, strategic_merge_patch
from .resources import Registry, Resource, subresources
from .selectors import Matcher, SelectorError, selector
from .store import AlreadyExists, Conflict, Event, Expired, NotFound, Object, Store, now

JSON = "application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED = re.compile(r"v=v2;[^,]*as=APIGroupDiscoveryList|as=APIGroupDiscoveryList;[^,]*v=v2\b")
OPENAPI_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

_PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/json-patch+json": json_patch,
    "application/merge-patch+json": merge_patch,
    "application/strategic-merge-patch+json": strategic_merge_patch,
    # Server-side apply without ownership of fields: the applied fields win.
    "application/apply-patch+yaml": merge_patch,
    "application/apply-patch+json": merge_patch,
}
_READ = frozenset({"get", "list", "watch"})
_PUBLIC = ("/version", "/healthz", "/livez", "/readyz")
_PLAIN_TYPES = (JSON, "application/yaml", "application/octet-stream", protobuf.CONTENT_TYPE)


@dataclass(frozen=True)
class User:
    """The user of a request."""

    name: str
    groups: tuple[str, ...]


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
MASTERS = "system:masters"


@dataclass(frozen=True)
class Target:
    """The target of a request, parsed from its URL."""

    resource: Resource
    namespace: str
    name: str
    sub: str


class ApiError(Exception):
    """An error that is returned as a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self) -> dict[str, Any]:
        """Return the Status object."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


@dataclass
class Access:
    """Bearer tokens and the permissions of groups; the group `system:masters` has full access."""

    tokens: dict[str, User] = field(default_factory=dict)

    # group -> (resources it may write, resources it may read besides)
    rules: dict[str, tuple[frozenset[str], frozenset[str]]] = field(
        default_factory=lambda: {
            "system:nodes": (
                frozenset(
                    {
                        "nodes",
                        "pods",
                        "events",
                        "leases.coordination.k8s.io",
                        "certificatesigningrequests.certificates.k8s.io",
                    }
                ),
                frozenset({"secrets", "configmaps", "services", "routes.route.openshift.io", "namespaces"}),
            ),
            "system:bootstrappers": (frozenset({"certificatesigningrequests.certificates.k8s.io"}), frozenset()),
        }
    )

    def user(self, request: web.Request) -> User:
        """Return the user of a request: from the client certificate (CN, O) or bearer token, or anonymous."""
        user = self._authenticated(request)
        as_user = request.headers.get("Impersonate-User")
        if as_user and MASTERS in user.groups:
            return User(as_user, tuple(request.headers.getall("Impersonate-Group", [])))
        return user

    def _authenticated(self, request: web.Request) -> User:
        certificate = request.transport.get_extra_info("peercert") if request.transport else None
        if certificate:
            subject = [attribute for rdn in certificate.get("subject", ()) for attribute in rdn]
            name = next((value for kind, value in subject if kind == "commonName"), "")
            return User(
                name, (*(value for kind, value in subject if kind == "organizationName"), "system:authenticated")
            )
        kind, __, token = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() == "bearer":
            if token not in self.tokens:
                raise ApiError(401, "Unauthorized", "Unauthorized")
            return self.tokens[token]
        return ANONYMOUS

    def allowed(self, user: User, verb: str, resource: Resource) -> bool:
        """Return whether the user may do this to the resource."""
        for group in user.groups:
            if group == MASTERS:
                return True
            writes, reads = self.rules.get(group, (frozenset(), frozenset()))
            if resource.key in writes or (verb in _READ and resource.key in reads):
                return True
        return False


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
        self.writable, self.ready, self.forward, self.replicate, self.log_of = (
            writable,
            ready,
            forward,
            replicate,
            log_of,
        )

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request; every error becomes a Status."""
        try:
            return await self._handle(request)
        except ApiError as error:
            return _json(error.status(), error.code, {"Retry-After": "1"} if error.code == 503 else None)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path.rstrip("/") or "/"
        probe = "/" + path.split("/")[1]
        if probe in _PUBLIC:
            return self._probe(probe)
        user = self.access.user(request)
        if user is ANONYMOUS:
            raise ApiError(
                403,
                "Forbidden",
                f'forbidden: User "system:anonymous" cannot {_verb(request, None)} path "{request.path}"',
            )
        document = self._discovery(request, path)
        if document is not None:
            return document
        if not self.ready():
            raise ApiError(503, "ServiceUnavailable", "the store of this control plane member is not in sync yet")
        review = _self_review(path, user)
        if review:
            return _json(review, 201 if request.method == "POST" else 200)
        target = self._target(path)
        verb = _verb(request, target)
        if not self.access.allowed(user, verb, target.resource):
            scope = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
            raise ApiError(
                403,
                "Forbidden",
                f'{target.resource.key} "{target.name}" is forbidden: User "{user.name}" cannot {verb} resource "{target.resource.plural}" '
                f'in API group "{target.resource.group}" {scope}',
            )
        if verb in _READ:
            return await self._read(request, target, verb)
        if not self.writable():
            if self.forward is None:
                raise ApiError(503, "ServiceUnavailable", "this control plane member is not the leader")
            return await self.forward(request, user)
        body = await _body(request)
        revision = self.store.revision
        answer, code = self._write(request, target, verb, body, user)
        if self.replicate and self.store.revision > revision:
            await self.replicate(self.store.revision)
        return _json(answer, code)

    # Everything but objects

    def _probe(self, path: str) -> web.Response:
        if path == "/version":
            return _json(self._version())
        if path == "/readyz" and not self.ready():
            return web.Response(status=503, text="[-]store failed: not in sync\nreadyz check failed\n")
        return web.Response(text="ok")

    def _version(self) -> dict[str, str]:
        major, minor, *__ = self.version.lstrip("v").split(".")
        return {
            "major": major,
            "minor": minor,
            "gitVersion": self.version,
            "gitCommit": "",
            "gitTreeState": "clean",
            "buildDate": "",
            "goVersion": "",
            "compiler": "",
            "platform": "linux/amd64",
        }

    def _discovery(self, request: web.Request, path: str) -> web.Response | None:
        parts = path.split("/")[1:]
        accept = request.headers.get("Accept", "")
        if path in ("/api", "/apis") and _AGGREGATED.search(accept):
            return web.Response(
                body=json.dumps(self.registry.aggregated(path == "/api")).encode(), headers={"Content-Type": AGGREGATED}
            )
        if path == "/api":
            return _json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
        if path == "/apis":
            return _json(self.registry.group_list())
        if path == "/api/v1":
            return _json(self.registry.resource_list("", "v1"))
        if path == "/openapi/v2":
            if OPENAPI_V2_PROTOBUF in accept:
                return web.Response(body=b"", headers={"Content-Type": OPENAPI_V2_PROTOBUF})
            return _json(
                {
                    "swagger": "2.0",
                    "info": {"title": "Kubernetes", "version": self.version},
                    "paths": {},
                    "definitions": {},
                }
            )
        if path == "/openapi/v3":
            return _json(
                {
                    "paths": {
                        f"apis/{g}/{v}": {"serverRelativeURL": f"/openapi/v3/apis/{g}/{v}"}
                        for g, vs in self.registry.groups().items()
                        for v in vs
                    }
                    | {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}
                }
            )
        if parts[:2] == ["openapi", "v3"]:
            return _json(self._openapi(*(("", "v1") if parts[2] == "api" else (parts[3], parts[4]))))
        if parts[0] == "apis":
            if len(parts) == 2 and parts[1] in self.registry.groups():
                return _json(self.registry.group(parts[1]))
            if len(parts) == 3 and parts[2] in self.registry.groups().get(parts[1], ()):
                return _json(self.registry.resource_list(parts[1], parts[2]))
        return None

    def _openapi(self, group: str, version: str) -> dict[str, Any]:
        """Declare server-side field validation for every kind, so that clients do not request schemas."""
        prefix = f"/apis/{group}/{version}" if group else "/api/v1"
        paths = {}
        for r in self.registry:
            if (r.group, r.version) == (group, version):
                place = f"{prefix}/namespaces/{{namespace}}/{r.plural}" if r.namespaced else f"{prefix}/{r.plural}"
                paths[f"{place}/{{name}}"] = {
                    "patch": {
                        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": r.kind},
                        "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                        "responses": {"200": {"description": "OK"}},
                    }
                }
        return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": self.version}, "paths": paths}

    def _target(self, path: str) -> Target:
        parts = path.split("/")[1:]
        if parts[0] == "api" and parts[1:2] == ["v1"]:
            group, version, rest = "", "v1", parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            raise _no_such_path()
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        resource = self.registry.by_path(group, version, rest[0])
        name = rest[1] if len(rest) > 1 else ""
        sub = rest[2] if len(rest) > 2 else ""
        if resource is None or len(rest) > 3 or (sub and sub not in subresources(resource)):
            raise _no_such_path()
        return Target(resource, namespace, name, sub)

    # Reading

    async def _read(self, request: web.Request, target: Target, verb: str) -> web.StreamResponse:
        resource, query = target.resource, request.query
        if verb == "get":
            obj = self._get(target)
            if target.sub == "log":
                text = self.log_of(obj)
                if text is None:
                    raise ApiError(
                        404,
                        "NotFound",
                        f'the log of pod "{target.name}" is on node "{obj["spec"].get("nodeName", "")}"',
                    )
                return web.Response(text=text)
            return _json(self._shown(request, resource, [obj], single=True))
        try:
            chosen = selector(query.get("labelSelector", ""), query.get("fieldSelector", ""))
        except SelectorError as error:
            raise ApiError(400, "BadRequest", str(error)) from None
        if target.name:
            wanted = target.name
            chosen = _both(chosen, lambda obj: obj["metadata"]["name"] == wanted)
        if verb == "watch":
            return await self._watch(request, target, chosen)
        items = [obj for obj in self.store.items(resource.key, target.namespace) if chosen(obj)]
        return _json(self._shown(request, resource, items))

    def _get(self, target: Target) -> Object:
        try:
            return self.store.get(target.resource.key, target.namespace, target.name)
        except NotFound:
            raise _not_found(target) from None

    def _shown(self, request: web.Request, resource: Resource, items: list[Object], single: bool = False) -> Any:
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
                    events = list(self.store.since(int(revision)))
                except Expired as error:
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
        query: Any,
        seen: Callable[[Event], tuple[str, Object] | None],
        line: Callable[[str, Object], bytes],
        bookmark: Callable[[], bytes],
    ) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + float(query.get("timeoutSeconds", 0) or random.uniform(1800, 3600))
        bookmarks = query.get("allowWatchBookmarks") == "true"
        while (left := end - loop.time()) > 0:
            try:
                event = await asyncio.wait_for(queue.get(), min(left, 60))
            except TimeoutError:
                if bookmarks:
                    await response.write(bookmark())
                continue
            if event is None:
                return
            shown = seen(event)
            if shown:
                await response.write(line(*shown))

    # Writing

    def _write(self, request: web.Request, target: Target, verb: str, body: Any, user: User) -> tuple[Any, int]:
        resource = target.resource
        dry = "All" in request.query.getall("dryRun", [])
        if verb == "create" and target.sub == "binding":
            pod = self._get(target)
            node = body["target"]["name"]
            self.store.update("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}})
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        if verb == "create":
            return self._create(target, self._prepared(target, body, user), dry), 201
        if verb == "delete":
            return self._delete(target, dry), 200
        if verb == "deletecollection":
            chosen = selector(request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))
            victims = [obj for obj in self.store.items(resource.key, target.namespace) if chosen(obj)]
            for obj in victims:
                self._delete(Target(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], ""), dry)
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}, 200
        if verb == "patch":
            return self._patch(request, target, body, user, dry)
        return self._update(target, self._get(target), _object(body), dry), 200

    def _prepared(self, target: Target, body: Any, user: User) -> Object:
        obj = _object(body)
        resource = target.resource
        if (obj.get("apiVersion", resource.api_version), obj.get("kind", resource.kind)) != (
            resource.api_version,
            resource.kind,
        ):
            raise ApiError(
                400,
                "BadRequest",
                f"the API version and kind in the data ({obj.get('apiVersion')}, {obj.get('kind')}) do not match "
                f"the expected ones ({resource.api_version}, {resource.kind})",
            )
        metadata = dict(obj.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
        if not metadata.get("name"):
            raise _invalid(resource, "", "metadata.name: Required value: name or generateName is required")
        free = resource.group.startswith("rbac.") or resource.kind == "Event"
        if set(metadata["name"]) - set(string.ascii_lowercase + string.digits + "-.:") and not free:
            raise _invalid(
                resource,
                metadata["name"],
                f'metadata.name: Invalid value: "{metadata["name"]}": lower case letters, digits, - and . are allowed',
            )
        if resource.namespaced:
            if metadata.get("namespace", target.namespace) != target.namespace:
                raise ApiError(
                    400,
                    "BadRequest",
                    "the namespace of the provided object does not match the namespace sent on the request",
                )
            metadata["namespace"] = target.namespace
        else:
            metadata.pop("namespace", None)
        obj = {"apiVersion": resource.api_version, "kind": resource.kind, **obj, "metadata": metadata}
        if resource.plural == "certificatesigningrequests":
            obj["spec"] = {**obj.get("spec", {}), "username": user.name, "groups": list(user.groups)}
            obj["status"] = {}
        elif resource.plural == "namespaces" and not resource.group:
            obj["status"] = {"phase": "Active"}
        elif resource.plural == "secrets" and "stringData" in obj:
            import base64

            texts = obj.pop("stringData")
            obj["data"] = {
                **obj.get("data", {}),
                **{name: base64.b64encode(text.encode()).decode() for name, text in texts.items()},
            }
        return obj

    def _create(self, target: Target, obj: Object, dry: bool) -> Object:
        resource, name = target.resource, obj["metadata"]["name"]
        if resource.namespaced and not self.store.find("namespaces", "", target.namespace):
            raise ApiError(
                404,
                "NotFound",
                f'namespaces "{target.namespace}" not found',
                {"name": target.namespace, "kind": "namespaces"},
            )
        if dry:
            return obj
        try:
            created = self.store.create(resource.key, obj)
        except AlreadyExists:
            raise ApiError(
                409,
                "AlreadyExists",
                f'{resource.key} "{name}" already exists',
                {"name": name, "group": resource.group, "kind": resource.plural},
            ) from None
        if resource.kind == "CustomResourceDefinition":
            self.registry.add_definition(created)
        return created

    def _update(self, target: Target, old: Object, new: Object, dry: bool) -> Object:
        resource = target.resource
        metadata = dict(new.get("metadata") or {})
        if metadata.get("name", target.name) != target.name:
            raise ApiError(
                400,
                "BadRequest",
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})",
            )
        metadata["name"] = target.name
        if target.namespace:
            metadata["namespace"] = target.namespace
        if target.sub:
            new = {
                **old,
                "status": new.get("status", {}),
                "metadata": {**old["metadata"], "resourceVersion": metadata.get("resourceVersion", "")},
            }
        else:
            new = {**new, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            if resource.status:
                new.pop("status", None)
                if "status" in old:
                    new["status"] = old["status"]
        if dry:
            return new
        try:
            updated = self.store.update(resource.key, new)
        except Conflict:
            raise ApiError(
                409,
                "Conflict",
                f'Operation cannot be fulfilled on {resource.key} "{target.name}": the object has been modified; '
                "please apply your changes to the latest version and try again",
                {"name": target.name, "group": resource.group, "kind": resource.plural},
            ) from None
        if updated["metadata"].get("deletionTimestamp") and not updated["metadata"].get("finalizers"):
            return self.store.delete(resource.key, target.namespace, target.name)
        return updated

    def _patch(self, request: web.Request, target: Target, body: Any, user: User, dry: bool) -> tuple[Object, int]:
        content_type = request.content_type
        if content_type not in _PATCHES:
            raise ApiError(
                415,
                "UnsupportedMediaType",
                f"the body of the request was in an unknown format - accepted media types include: {', '.join(_PATCHES)}",
            )
        old = self.store.find(target.resource.key, target.namespace, target.name)
        if old is None:
            if "apply-patch" in content_type and not target.sub:
                return self._create(target, self._prepared(target, body, user), dry), 201
            raise _not_found(target)
        try:
            new = _PATCHES[content_type](old, body)
        except PatchError as error:
            raise _invalid(target.resource, target.name, str(error)) from None
        # Without a resourceVersion the patch applies to the current object.
        given = body.get("metadata", {}).get("resourceVersion", "") if isinstance(body, dict) else ""
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": given}}
        return self._update(target, old, new, dry), 200

    def _delete(self, target: Target, dry: bool) -> Object:
        old = self._get(target)
        if dry:
            return old
        if old["metadata"].get("finalizers"):
            if old["metadata"].get("deletionTimestamp"):
                return old
            return self.store.update(
                target.resource.key, {**old, "metadata": {**old["metadata"], "deletionTimestamp": now()}}
            )
        if target.resource.key == "namespaces":
            for resource, items in list(self.store.objects.items()):
                for namespace, name in list(items):
                    if namespace == target.name:
                        self.store.delete(resource, namespace, name)
        return self.store.delete(target.resource.key, target.namespace, target.name)


def _verb(request: web.Request, target: Target | None) -> str:
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


def _self_review(path: str, user: User) -> Object | None:
    """Answer the requests of `oc whoami` and `kubectl auth`."""
    if path == "/apis/user.openshift.io/v1/users/~":
        return {
            "kind": "User",
            "apiVersion": "user.openshift.io/v1",
            "metadata": {"name": user.name},
            "identities": None,
            "groups": list(user.groups),
        }
    if path == "/apis/authentication.k8s.io/v1/selfsubjectreviews":
        info = {"username": user.name, "groups": list(user.groups)}
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {},
            "status": {"userInfo": info},
        }
    if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
        allowed = MASTERS in user.groups
        return {
            "kind": "SelfSubjectAccessReview",
            "apiVersion": "authorization.k8s.io/v1",
            "metadata": {},
            "status": {"allowed": allowed},
        }
    return None


async def _body(request: web.Request) -> Any:
    if request.method == "DELETE":
        return None
    content_type = request.content_type
    if content_type not in _PATCHES and content_type not in _PLAIN_TYPES:
        raise ApiError(
            415, "UnsupportedMediaType", f"content type {content_type} is not understood; send application/json"
        )
    data = await request.read()
    try:
        if content_type == protobuf.CONTENT_TYPE:
            return protobuf.decode(data)
        return load_yaml(data, name="the body") if "yaml" in content_type else load_json(data, name="the body")
    except ValueError as error:
        raise ApiError(400, "BadRequest", f"the body cannot be read: {error}") from None


def _object(body: Any) -> Object:
    if not isinstance(body, dict):
        raise ApiError(400, "BadRequest", "the body is not an object")
    return dict(body)


def _partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _both(first: Matcher, second: Matcher) -> Matcher:
    return lambda obj: first(obj) and second(obj)


def _not_found(target: Target) -> ApiError:
    details = {"name": target.name, "group": target.resource.group, "kind": target.resource.plural}
    return ApiError(404, "NotFound", f'{target.resource.key} "{target.name}" not found', details)


def _no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def _invalid(resource: Resource, name: str, message: str) -> ApiError:
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return ApiError(
        422,
        "Invalid",
        f'{kind} "{name}" is invalid: {message}',
        {"name": name, "group": resource.group, "kind": resource.kind},
    )


def _json(body: Any, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(
        body=json.dumps(body, separators=(",", ":")).encode(), status=code, content_type=JSON, headers=headers
    )
