"""The documents by which clients discover the API: groups, resources, OpenAPI, version."""

from __future__ import annotations

import json
import re

from aiohttp import web

from ..resources import Registry
from ..store import Object
from .errors import respond

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED = re.compile(r"v=v2;[^,]*as=APIGroupDiscoveryList|as=APIGroupDiscoveryList;[^,]*v=v2\b")
OPENAPI_V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def document(registry: Registry, version: str, request: web.Request, path: str) -> web.Response | None:
    """Return the answer to a request for such a document, None for any other path; `version` is that of Kubernetes."""
    parts = path.split("/")[1:]
    accept = request.headers.get("Accept", "")
    if path in ("/api", "/apis") and _AGGREGATED.search(accept):
        return web.Response(
            body=json.dumps(registry.aggregated(path == "/api")).encode(), headers={"Content-Type": AGGREGATED}
        )
    if path == "/api":
        return respond({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})
    if path == "/apis":
        return respond(registry.group_list())
    if path == "/api/v1":
        return respond(registry.resource_list("", "v1"))
    if path == "/openapi/v2":
        if OPENAPI_V2_PROTOBUF in accept:
            return web.Response(body=b"", headers={"Content-Type": OPENAPI_V2_PROTOBUF})
        return respond(
            {
                "swagger": "2.0",
                "info": {"title": "Kubernetes", "version": version},
                "paths": {},
                "definitions": {},
            }
        )
    if path == "/openapi/v3":
        return respond(
            {
                "paths": {
                    f"apis/{g}/{v}": {"serverRelativeURL": f"/openapi/v3/apis/{g}/{v}"}
                    for g, vs in registry.groups().items()
                    for v in vs
                }
                | {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}
            }
        )
    if parts[:2] == ["openapi", "v3"]:
        return respond(_openapi(registry, version, *(("", "v1") if parts[2] == "api" else (parts[3], parts[4]))))
    if parts[0] == "apis":
        if len(parts) == 2 and parts[1] in registry.groups():
            return respond(registry.group(parts[1]))
        if len(parts) == 3 and parts[2] in registry.groups().get(parts[1], ()):
            return respond(registry.resource_list(parts[1], parts[2]))
    return None


def version_info(version: str) -> dict[str, str]:
    """Return the document of /version for a version as v1.30.0."""
    major, minor, *__ = version.lstrip("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": version,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


def _openapi(registry: Registry, release: str, group: str, version: str) -> Object:
    """Declare server-side field validation for every kind, so that clients do not request schemas."""
    prefix = f"/apis/{group}/{version}" if group else "/api/v1"
    paths = {}
    for r in registry:
        if (r.group, r.version) == (group, version):
            place = f"{prefix}/namespaces/{{namespace}}/{r.plural}" if r.namespaced else f"{prefix}/{r.plural}"
            paths[f"{place}/{{name}}"] = {
                "patch": {
                    "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": r.kind},
                    "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                    "responses": {"200": {"description": "OK"}},
                }
            }
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": release}, "paths": paths}
