"""What the API refuses or fills in for objects of some kinds, and how certificate requests change."""

from __future__ import annotations

import base64

from ..pki import check_request
from ..resources import Resource
from ..store import Object, timestamp
from .errors import ApiError, invalid

CSR = "certificatesigningrequests.certificates.k8s.io"
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
_DECISIONS = ("Approved", "Denied")
# Fields of custom resources whose type is checked, and the type's name in messages.
_STRINGS = {"clusterversions.config.openshift.io": ("channel", "clusterID", "upstream")}


def check(resource: Resource, obj: Object) -> None:
    """Refuse an object that is not valid.

    resource: its kind. ApiError 422 with the field, in the words of a real API server. Kinds without rules of their own
    may have any content.
    """
    name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
    if not isinstance(spec, dict):
        raise invalid(resource, name, 'spec: Invalid value: "": spec in body must be of type object')
    if resource.key == "leases.coordination.k8s.io":
        for field, least, text in (
            ("leaseDurationSeconds", 1, "greater than 0"),
            ("leaseTransitions", 0, "greater than or equal to 0"),
        ):
            value = spec.get(field)
            if isinstance(value, int) and value < least:
                raise invalid(resource, name, f"spec.{field}: Invalid value: {value}: must be {text}")
    for field in _STRINGS.get(resource.key, ()):
        value = spec.get(field, "")
        if not isinstance(value, str):
            kind = {bool: "boolean", int: "integer"}.get(type(value), "object")
            raise invalid(
                resource,
                name,
                f'spec.{field}: Invalid value: "{kind}": spec.{field} in body must be of type string: "{kind}"',
            )


def check_request_for_certificate(resource: Resource, obj: Object) -> None:
    """Refuse a certificate request without signer, usages or a readable request; ApiError 422."""
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    for field in ("signerName", "usages"):
        if not spec.get(field):
            raise invalid(resource, name, f"spec.{field}: Required value")
    try:
        check_request(base64.b64decode(spec.get("request") or "", validate=True).decode())
    except ValueError as error:
        raise invalid(resource, name, f"spec.request: Invalid value: {error}") from None


def established_status(obj: Object) -> Object:
    """Return the status of a new CustomResourceDefinition, with which it is served.

    ApiError 422 for one that lacks group, names or versions.
    """
    spec, name = obj.get("spec") or {}, obj["metadata"]["name"]
    resource = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False)
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    for field, value in (
        ("group", spec.get("group")),
        ("names.plural", names.get("plural")),
        ("names.kind", names.get("kind")),
    ):
        if not value:
            raise invalid(resource, name, f"spec.{field}: Required value")
    if not versions:
        raise invalid(
            resource, name, "spec.versions: Invalid value: must have exactly one version marked as storage version"
        )
    if name != f"{names['plural']}.{spec['group']}":
        raise invalid(
            resource, name, f'metadata.name: Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        )
    stamp = timestamp()
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": stamp, "reason": reason, "message": text}
        for kind, reason, text in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": [versions[0].get("name", "")]}


def check_change(resource: Resource, old: Object, new: Object) -> None:
    """Refuse a change of what cannot change.

    ApiError 422 for a field, 409 for a UID that is not that of the stored object: it is another object of the same
    name.
    """
    name = old["metadata"]["name"]
    uid = new["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"]:
        raise ApiError(
            409,
            "Conflict",
            f'Operation cannot be fulfilled on {resource.key} "{name}": Precondition failed: UID in precondition: {uid}, '
            f"UID in object meta: {old['metadata']['uid']}",
            {"name": name, "group": resource.group, "kind": resource.plural},
        )
    if resource.key not in ("configmaps", "secrets"):
        return
    if resource.key == "secrets" and new.get("type") != old.get("type"):
        raise invalid(resource, name, f'type: Invalid value: "{new.get("type")}": field is immutable')
    if old.get("immutable") and any(new.get(part) != old.get(part) for part in ("data", "binaryData", "immutable")):
        raise invalid(resource, name, "data: Forbidden: field is immutable when `immutable` is set")


def changed_request(resource: Resource, old: Object, new: Object, sub: str) -> Object:
    """Return a certificate request after a write: its spec never changes, and only `approval` decides about it.

    Raises ApiError 422 for a decision that is taken back, is twofold, or is written to the status.
    """
    name, status = old["metadata"]["name"], new.get("status") or {}
    if not sub:
        return {**new, "spec": old["spec"], "status": old.get("status") or {}}
    before = {c["type"]: c for c in (old.get("status") or {}).get("conditions") or ()}
    conditions = [_stamped(c, before.get(c["type"])) for c in status.get("conditions") or ()]
    kinds = {c["type"] for c in conditions}
    for kind in _DECISIONS:
        if kind in before and kind not in kinds:
            raise invalid(
                resource, name, f"status.conditions: Forbidden: updates may not remove a condition of type {kind!r}"
            )
        if sub == "status" and kind in kinds and kind not in before:
            raise invalid(
                resource, name, f"status.conditions: Forbidden: updates may not add a condition of type {kind!r}"
            )
    if kinds.issuperset(_DECISIONS):
        raise invalid(
            resource,
            name,
            'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive',
        )
    kept = old.get("status") or {}
    return {**new, "spec": old["spec"], "status": {**(kept if sub == "approval" else status), "conditions": conditions}}


def _stamped(condition: Object, before: Object | None) -> Object:
    stamp = timestamp()
    same = before is not None and before.get("status") == condition.get("status", "True")
    return {
        "status": "True",
        "lastUpdateTime": stamp,
        "lastTransitionTime": (before or {}).get("lastTransitionTime", stamp) if same else stamp,
        **{key: value for key, value in condition.items() if value is not None},
    }
