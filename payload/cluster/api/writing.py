"""Writes of the API: create, update, patch and delete, each atomic within the store."""

from __future__ import annotations

import random
import string

from aiohttp import web

from ..apply import ApplyConflict, apply
from ..objects import store_texts
from ..patch import PATCHES, PatchError
from ..resources import Registry, Resource
from ..selectors import SelectorError, selector
from ..store import AlreadyExists, Conflict, Event, Object, Store, timestamp
from .access import User
from .errors import ApiError, invalid, not_found
from .requests import Target, stored_object
from .validation import (
    CSR,
    DEFINITIONS,
    changed_request,
    check,
    check_change,
    check_request_for_certificate,
    established_status,
)


class Writer:
    """Writes to the store of the leader."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store, self.registry = store, registry
        store.listeners.append(self._define)

    def _define(self, event: Event | None) -> None:
        """Serve what a CustomResourceDefinition defines, also one that another member has stored."""
        if event is None or event["resource"] != DEFINITIONS:
            return
        if event["type"] == "DELETED":
            self.registry.remove_definition(event["object"])
        else:
            self.registry.add_definition(event["object"])

    def write(self, request: web.Request, target: Target, verb: str, body: object, user: User) -> tuple[Object, int]:
        """Do one write; return the answer and its HTTP status. `body` is the decoded one, None for a delete.

        Raises ApiError with Kubernetes' codes: 404, 409 (AlreadyExists, Conflict), 415 for a patch of another type, 422.
        """
        resource = target.resource
        options = body if verb in ("delete", "deletecollection") and isinstance(body, dict) else {}
        dry = "All" in [*request.query.getall("dryRun", []), *(options.get("dryRun") or ())]
        if verb == "create" and target.sub == "binding":
            pod = stored_object(self.store, target)
            node = _object(body)["target"]["name"]
            self.store.update("pods", {**pod, "spec": {**pod["spec"], "nodeName": node}})
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}, 201
        if verb == "create":
            return self._create(target, self._prepared(target, body, user), dry), 201
        if verb == "delete":
            self._check_preconditions(target, options)
            return self._deleted(target, dry), 200
        if verb == "deletecollection":
            query = request.query
            try:
                chosen = selector(resource.key, query.get("labelSelector", ""), query.get("fieldSelector", ""))
            except SelectorError as error:
                raise ApiError(400, "BadRequest", str(error)) from None
            victims = [obj for obj in self.store.items(resource.key, target.namespace) if chosen(obj)]
            for obj in victims:
                self._delete(Target(resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"], ""), dry)
            metadata = {"resourceVersion": str(self.store.revision)}
            return {
                "kind": f"{resource.kind}List",
                "apiVersion": resource.api_version,
                "metadata": metadata,
                "items": victims,
            }, 200
        if verb == "patch":
            return self._patch(request, target, body, user, dry)
        old, new = stored_object(self.store, target), _object(body)
        if not resource.unconditional and not (new.get("metadata") or {}).get("resourceVersion"):
            raise invalid(
                resource, target.name, "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
            )
        return self._update(target, old, new, dry), 200

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
            obj["spec"] = {**(obj.get("spec") or {}), "username": user.name, "groups": list(user.groups)}
            obj["status"] = {}
            check_request_for_certificate(resource, obj)
        elif resource.plural == "namespaces" and not resource.group:
            obj["status"] = {"phase": "Active"}
            metadata["labels"] = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
        elif resource.key == "secrets":
            obj.setdefault("type", "Opaque")
            store_texts(obj)
        elif resource.kind == "CustomResourceDefinition":
            obj["status"] = established_status(obj)
        elif (resource.custom or resource.group in ("apps", "batch")) and resource.status:
            obj.pop("status", None)  # only the subresource writes it
        check(resource, obj)
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
        if "managedFields" in old["metadata"]:
            metadata.setdefault("managedFields", old["metadata"]["managedFields"])
        given = {**new, "metadata": metadata}
        if target.sub:
            new = {
                **old,
                "status": new.get("status", {}),
                "metadata": {
                    **old["metadata"],
                    "resourceVersion": metadata.get("resourceVersion", ""),
                    "managedFields": metadata.get("managedFields", []),
                },
            }
        else:
            new = {**new, "apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            if resource.status:
                new.pop("status", None)
                if "status" in old:
                    new["status"] = old["status"]
        if not new["metadata"].get("managedFields"):
            new["metadata"].pop("managedFields", None)
        if resource.key == CSR:
            new = changed_request(resource, old, new, target.sub)
        check(resource, new)
        check_change(resource, old, given)
        if dry:
            self._check_revision(target, old, new)
            return {
                **new,
                "metadata": {
                    **old["metadata"],
                    **new["metadata"],
                    "resourceVersion": old["metadata"]["resourceVersion"],
                },
            }
        try:
            updated = self.store.update(resource.key, new)
        except Conflict:
            raise _modified(target) from None
        if updated["metadata"].get("deletionTimestamp") and not updated["metadata"].get("finalizers"):
            return self.store.delete(resource.key, target.namespace, target.name)
        return updated

    def _patch(self, request: web.Request, target: Target, body: object, user: User, dry: bool) -> tuple[Object, int]:
        content_type, resource = request.content_type, target.resource
        known = [kind for kind in PATCHES if not (resource.custom and "strategic" in kind)]
        if content_type not in known:
            raise ApiError(
                415,
                "UnsupportedMediaType",
                f"the body of the request was in an unknown format - accepted media types include: {', '.join(known)}",
            )
        applied = "apply-patch" in content_type
        if applied and not request.query.get("fieldManager"):
            raise ApiError(
                422,
                "Invalid",
                'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
            )
        old = self.store.find(resource.key, target.namespace, target.name)
        if old is None and (not applied or target.sub):
            raise not_found(resource, target.name)
        try:
            if applied:
                new = self._applied(request, target, old or {}, body, user)
            else:
                new = PATCHES[content_type](old, body)
        except PatchError as error:
            raise invalid(resource, target.name, str(error)) from None
        if old is None:
            return self._create(target, new, dry), 201
        # Without a resourceVersion the patch applies to the current object.
        given = body.get("metadata", {}).get("resourceVersion", "") if isinstance(body, dict) else ""
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise invalid(resource, target.name, "metadata: Required value")
        if isinstance(body, list):  # JSON patch
            tested = new["metadata"].get("resourceVersion", "")
            given = "" if tested == old["metadata"]["resourceVersion"] else tested
        new = {**new, "metadata": {**new["metadata"], "resourceVersion": given}}
        return self._update(target, old, new, dry), 200

    def _applied(self, request: web.Request, target: Target, old: Object, body: object, user: User) -> Object:
        """Return the object after a server-side apply; ApiError 409 for a field that another manager manages."""
        manager, force = request.query.get("fieldManager", ""), request.query.get("force") == "true"
        given = self._prepared(target, body, user) if not old else body
        try:
            return apply(old, given, manager, force=force)
        except ApplyConflict as conflict:
            causes = [
                {"reason": "FieldManagerConflict", "message": f'conflict with "{other}"', "field": field}
                for other, fields in conflict.found.items()
                for field in fields
            ]
            raise ApiError(409, "Conflict", str(conflict), {"causes": causes}) from None

    def _check_revision(self, target: Target, old: Object, new: Object) -> None:
        if new["metadata"].get("resourceVersion") not in (None, "", old["metadata"]["resourceVersion"]):
            raise _modified(target)

    def _check_preconditions(self, target: Target, options: Object) -> None:
        """Refuse to delete another object than the caller means; ApiError 409."""
        wanted = options.get("preconditions")
        if not isinstance(wanted, dict):
            return
        metadata = stored_object(self.store, target)["metadata"]
        for field, name in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
            if wanted.get(field) and wanted[field] != metadata[field]:
                raise ApiError(
                    409,
                    "Conflict",
                    f'Operation cannot be fulfilled on {target.resource.key} "{target.name}": Precondition failed: {name} in '
                    f"precondition: {wanted[field]}, {name} in object meta: {metadata[field]}",
                    {"name": target.name, "group": target.resource.group, "kind": target.resource.plural},
                )

    def _deleted(self, target: Target, dry: bool) -> Object:
        """Delete an object; return it if it remains for a while, or a Status as the real API does."""
        found = self._delete(target, dry)
        resource, metadata = target.resource, found["metadata"]
        if metadata.get("finalizers") or resource.key in ("pods", "namespaces", "serviceaccounts"):
            return found
        details = {"name": target.name, "group": resource.group, "kind": resource.plural, "uid": metadata["uid"]}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}

    def _delete(self, target: Target, dry: bool) -> Object:
        old = stored_object(self.store, target)
        if dry:
            return old
        if old["metadata"].get("finalizers"):
            if old["metadata"].get("deletionTimestamp"):
                return old
            return self.store.update(
                target.resource.key, {**old, "metadata": {**old["metadata"], "deletionTimestamp": timestamp()}}
            )
        if target.resource.key == "namespaces":
            for resource, items in list(self.store.objects.items()):
                for namespace, name in list(items):
                    if namespace == target.name:
                        self.store.delete(resource, namespace, name)
        if target.resource.kind == "CustomResourceDefinition":
            key = f"{old['spec']['names']['plural']}.{old['spec']['group']}"
            for obj in self.store.items(key):
                self.store.delete(key, obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        return self.store.delete(target.resource.key, target.namespace, target.name)


def _object(body: object) -> Object:
    if not isinstance(body, dict):
        raise ApiError(400, "BadRequest", "the body is not an object")
    return dict(body)


def _modified(target: Target) -> ApiError:
    resource: Resource = target.resource
    return ApiError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on {resource.key} "{target.name}": the object has been modified; '
        "please apply your changes to the latest version and try again",
        {"name": target.name, "group": resource.group, "kind": resource.plural},
    )
