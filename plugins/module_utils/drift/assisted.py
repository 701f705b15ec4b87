"""assisted-service: routes, fields and enumerations of its API description, and the transitions of its state machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..documents import load_yaml
from .checkout import CheckoutError, Tree
from .facts import Disagreement, Facts, disagreements_in, facts_of_names

SWAGGER = "swagger.yaml"
MACHINES = {
    "host": ("internal/host/statemachine.go", "internal/host/pool_host_statemachine.go"),
    "cluster": ("internal/cluster/statemachine.go",),
}
_METHODS = ("get", "post", "put", "patch", "delete", "head")
_RULE = re.compile(
    r"^(\t*)\w+\.AddTransitionRule\(\s*stateswitch\.TransitionRule\{(.*?)\n\1\}\)", re.DOTALL | re.MULTILINE
)
_SOURCES = re.compile(r"SourceStates:\s*(?:\[\]stateswitch\.State\{(.*?)\}|(\w+))", re.DOTALL)
_STATE = re.compile(r"models\.(?:Host|Cluster)Status(\w+)|\"\"")
_LIST = re.compile(r"(?:var\s+)?(\w+)\s*:?=\s*\[\]stateswitch\.State\{(.*?)\n?\t?\}", re.DOTALL)


def facts(tree: Tree) -> Facts:
    """Return the facts of a checkout; CheckoutError for files that are not there or cannot be read."""
    try:
        document = load_yaml(tree.read(SWAGGER), name=f"{tree.repository}:{SWAGGER}")
    except ValueError as error:
        raise CheckoutError(str(error)) from None
    found: dict[str, dict[str, str]] = description_facts(document)
    for name, paths in MACHINES.items():
        found[f"{name} transitions"] = facts_of_names({one for path in paths for one in transitions(tree.read(path))})
    return found


def description_facts(document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return routes, fields and enumerations of an API description (Swagger 2.0)."""
    routes = {
        f"{method.upper()} {path}": _operation(operation)
        for path, item in (document.get("paths") or {}).items()
        for method, operation in item.items()
        if method in _METHODS and path.startswith("/v2/")
    }
    fields: dict[str, str] = {}
    enumerations: dict[str, str] = {}
    definitions = document.get("definitions") or {}
    for name, schema in definitions.items():
        required = schema.get("required") or ()
        for field, kind in _properties(schema):
            fields[f"{name}.{field}"] = "required" if field in required else "optional"
            values = _values(kind, definitions)
            if values:
                enumerations[f"{name}.{field}"] = ", ".join(sorted(map(str, values)))
    return {"routes": routes, "fields": fields, "enumerations": enumerations}


def transitions(text: str) -> set[str]:
    """Return the transitions of a state machine in Go, as `known -> preparingforinstallation`, without those to the same state."""
    lists = dict(_LIST.findall(text))
    found = set()
    for __, rule in _RULE.findall(text):
        source = _SOURCES.search(rule)
        dest = re.search(r"DestinationState:\s*(.*)", rule)
        if not source or not dest:
            continue
        goal = _STATE.search(dest[1])
        body = source[1] if source[1] is not None else lists.get(source[2], "")
        for state in _STATE.finditer(body):
            if goal and state[1] != goal[1]:
                found.add(f"{_plain(state[1] or 'initial')} -> {_plain(goal[1] or 'initial')}")
    return found


def disagreements(upstream: Facts, ours: Facts) -> Iterator[Disagreement]:
    """Yield where the simulator of the service differs: its API is a part of upstream's, its machines are the same.

    Fields are compared in the definitions that both have.
    """
    yield from disagreements_in(
        "routes", facts_of_names(set(upstream["routes"])), facts_of_names(set(ours["routes"])), missing=False
    )
    shared = {name.partition(".")[0] for name in upstream["fields"]} & {n.partition(".")[0] for n in ours["fields"]}
    for section in ("fields", "enumerations"):
        theirs, own = (
            {name: value for name, value in side[section].items() if name.partition(".")[0] in shared}
            for side in (upstream, ours)
        )
        # Ours checks fewer values than upstream documents.
        yield from disagreements_in(section, theirs, own, missing=section == "fields")
    for name in MACHINES:
        section = f"{name} transitions"
        yield from disagreements_in(section, upstream[section], ours[section])


def _operation(operation: object) -> str:
    return _plain(str(operation.get("operationId", ""))).removeprefix("v2") if isinstance(operation, Mapping) else ""


def _values(schema: object, definitions: Mapping[str, Any]) -> list[Any]:
    """Return the values of an enumeration, also of one that a schema refers to."""
    if not isinstance(schema, Mapping):
        return []
    target = definitions.get(str(schema.get("$ref", "")).rpartition("/")[2])
    return list(schema.get("enum") or (target or {}).get("enum") or ())


def _properties(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from (schema.get("properties") or {}).items()
    for part in schema.get("allOf") or ():
        yield from (part.get("properties") or {}).items()


def _plain(name: str) -> str:
    """Return a name without hyphens and underscores, which the sources write differently."""
    return re.sub(r"[-_]", "", name).lower()
