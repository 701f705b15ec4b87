"""Writes of the API: create, update, patch and delete, each atomic within the store."""

from __future__ import annotations

import base64
import random
import string

from aiohttp import web

from ..patch import PATCHES, PatchError
from ..resources import Registry
from ..selectors import selector
from ..store import AlreadyExists, Conflict, Object, Store, now
from .access import User
from .errors import ApiError, invalid, not_found
from .requests import Target, stored


class Writer:
    """Writes to the store of the leader."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store, self.registry = store, registry

    def write(self, request: web.Request, target: Target, verb: str, body: object, user: User) -> tuple[Object, int]:
        """Do one write; return the answer and its HTTP status. `body` is the decoded one, None for a delete.

        Raises ApiError with Kubernetes' codes: 404, 409 (AlreadyExists, Conflict), 415 for a patch of another type, 422.
        """
        resource = target.resource
        dry = "All" in request.query.getall("dryRun", [])
        if verb == "create" and target.sub == "binding":
            pod = stored(self.store, target)
            node = _object(body)["target"]["name"]
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
        return self._update(target, stored(self.store, target), _object(body), dry), 200

    def _prepared(self, target: Target, body: object, user: User) -> Object:
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
            raise invalid(resource, "", "metadata.name: Required value: name or generateName is required")
        free = resource.group.startswith("rbac.") or resource.kind == "Event"
        if set(metadata["name"]) - set(string.ascii_lowercase + string.digits + "-.:") and not free:
            raise invalid(
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

    def _patch(self, request: web.Request, target: Target, body: object, user: User, dry: bool) -> tuple[Object, int]:
        content_type = request.content_type
        if content_type not in PATCHES:
            raise ApiError(
                415,
                "UnsupportedMediaType",
                f"the body of the request was in an unknown format - accepted media types include: {', '.join(PATCHES)}",
            )
        old = self.store.find(target.resource.key, target.namespace, target.name)
        if old is None:
            if "apply-patch" in content_type and not target.sub:
                return self._create(target, self._prepared(target, body, user), dry), 201
            raise not_found(target.resource, target.name)
        try:
            new = PATCHES[content_type](old, body)
        except PatchError as error:
            raise invalid(target.resource, target.name, str(error)) from None
        # Without a resourceVersion the patch applies to the current object.
        given = body.get("metadata", {}).get("resourceVersion", "") if isinstance(body, dict) else ""
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": given}}
        return self._update(target, old, new, dry), 200

    def _delete(self, target: Target, dry: bool) -> Object:
        old = stored(self.store, target)
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


def _object(body: object) -> Object:
    if not isinstance(body, dict):
        raise ApiError(400, "BadRequest", "the body is not an object")
    return dict(body)
