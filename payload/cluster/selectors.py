"""Label and field selectors of list and watch requests."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Matcher = Callable[[dict[str, Any]], bool]

_REQUIREMENT = re.compile(r"\s*(?P<key>[\w./-]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)\s*")
_FIELD = re.compile(r"\s*(?P<path>[\w./-]+)\s*(?P<op>!=|==?)\s*(?P<value>.*?)\s*")


class SelectorError(ValueError):
    """A selector cannot be read."""


# Fields that can be selected in addition to a name and a namespace, by resource; those of Kubernetes and OpenShift.
_FIELDS: dict[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "namespaces": frozenset({"status.phase"}),
    "projects.project.openshift.io": frozenset({"status.phase"}),
    "secrets": frozenset({"type"}),
    "jobs.batch": frozenset({"status.successful"}),
    "certificatesigningrequests.certificates.k8s.io": frozenset({"spec.signerName"}),
    "routes.route.openshift.io": frozenset({"spec.host", "spec.path", "spec.to.name"}),
    "events": frozenset(
        {
            *(
                f"involvedObject.{name}"
                for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
            ),
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
}
_EVERYWHERE = frozenset({"metadata.name", "metadata.namespace"})


def selector(resource: str, labels: str, fields: str) -> Matcher:
    """Return a test of objects for the query parameters `labelSelector` and `fieldSelector`.

    resource: the store key. Raises `SelectorError` for a selector that cannot be read, and for a field of this resource
    that cannot be selected.
    """
    tests = _label_tests(labels) + _field_tests(fields, _EVERYWHERE | _FIELDS.get(resource, frozenset()))
    return lambda obj: all(test(obj) for test in tests)


def _split(text: str) -> list[str]:
    return [part for part in re.split(r",(?![^()]*\))", text) if part.strip()]


def _label_tests(text: str) -> list[Matcher]:
    return [_label_test(part.strip()) for part in _split(text)]


def _label_test(part: str) -> Matcher:
    def labels(obj: dict[str, Any]) -> dict[str, str]:
        return obj["metadata"].get("labels") or {}

    found = _REQUIREMENT.fullmatch(part)
    if found:
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["op"] == "in":
            return lambda obj: labels(obj).get(key) in values
        return lambda obj: labels(obj).get(key) not in values
    if "!=" in part:
        key, value = (side.strip() for side in part.split("!=", 1))
        return lambda obj: labels(obj).get(key) != value
    if "=" in part:
        key, value = (side.strip() for side in re.split("==?", part, maxsplit=1))
        return lambda obj: labels(obj).get(key) == value
    if part.startswith("!"):
        return lambda obj: part[1:].strip() not in labels(obj)
    if " " in part:
        raise SelectorError(f"unable to parse requirement: {part!r}")
    return lambda obj: part in labels(obj)


def _field_tests(text: str, known: frozenset[str]) -> list[Matcher]:
    tests: list[Matcher] = []
    for part in _split(text):
        found = _FIELD.fullmatch(part)
        if not found:
            raise SelectorError(f"invalid field selector: {part!r}")
        if found["path"] not in known:
            raise SelectorError(f"field label not supported: {found['path']}")
        tests.append(_field_test(found["path"], found["value"], found["op"] == "!="))
    return tests


def _field_test(path: str, value: str, negated: bool) -> Matcher:
    def test(obj: dict[str, Any]) -> bool:
        at: Any = obj
        for part in path.split("."):
            at = at.get(part) if isinstance(at, dict) else None
        if at is None and path == "spec.unschedulable":
            at = False
        shown = str(at).lower() if isinstance(at, bool) else str("" if at is None else at)
        return (shown == value) != negated

    return test
