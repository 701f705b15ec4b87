"""Reviews: who a caller is, and what a user may do, as `oc whoami` and `kubectl auth can-i` ask."""

from __future__ import annotations

from ..resources import Registry, Resource
from ..store import Object, Store
from .access import Access, User, impersonated_user
from .errors import ApiError
from .requests import Target

WHO = "/apis/user.openshift.io/v1/users/~"


def user_info(user: User) -> Object:
    """Return the object at `WHO`."""
    return {
        "kind": "User",
        "apiVersion": "user.openshift.io/v1",
        "metadata": {"name": user.name},
        "identities": None,
        "groups": list(user.groups),
    }


def review(
    resource: Resource, body: object, user: User, access: Access, registry: Registry, store: Store
) -> Object | None:
    """Return the answer to the creation of a review, None for another resource. ApiError 422 for one that lacks its question."""
    if resource.group not in ("authentication.k8s.io", "authorization.k8s.io"):
        return None
    given = body if isinstance(body, dict) else {}
    spec = given.get("spec") if isinstance(given.get("spec"), dict) else {}
    answer: Object = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
    if resource.plural == "selfsubjectreviews":
        return answer | {"status": {"userInfo": {"username": user.name, "groups": list(user.groups)}}}
    if resource.plural == "tokenreviews":
        found = access.tokens.get(str((spec or {}).get("token", "")))
        if found is None:
            return answer | {"spec": spec, "status": {"user": {}, "error": "invalid bearer token"}}
        known = {"username": found.name, "groups": list(found.groups)}
        return answer | {"spec": spec, "status": {"authenticated": True, "user": known}}
    subject = user
    if resource.plural == "subjectaccessreviews":
        if not (spec or {}).get("user") and not (spec or {}).get("groups"):
            raise _invalid(resource, 'spec.user: Invalid value: "": at least one of user or group must be specified')
        subject = impersonated_user(
            str((spec or {}).get("user", "")), [str(group) for group in (spec or {}).get("groups") or ()]
        )
    return answer | {
        "spec": spec,
        "status": {"allowed": _allowed(spec or {}, subject, resource, access, registry, store)},
    }


def _allowed(spec: Object, user: User, resource: Resource, access: Access, registry: Registry, store: Store) -> bool:
    wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(path, dict):
        return access.is_master(user) or str(path.get("verb")) == "get"
    if not isinstance(wanted, dict):
        raise _invalid(
            resource,
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be "
            "specified",
        )
    if access.is_master(user):
        return True
    found = next(
        (r for r in registry if (r.group, r.plural) == (wanted.get("group", ""), wanted.get("resource", ""))), None
    )
    if found is None:
        return False
    target = Target(
        found, str(wanted.get("namespace", "")), str(wanted.get("name", "")), str(wanted.get("subresource", ""))
    )
    return access.allowed(user, str(wanted.get("verb", "")), target, store, str)


def _invalid(resource: Resource, message: str) -> ApiError:
    return ApiError(422, "Invalid", f'{resource.kind}.{resource.group} "" is invalid: {message}')
