"""Plans that people may have edited: `plan.yaml`, and the fact `agentlab_plan`. Their shape is that of the types in `model`."""

from __future__ import annotations

import difflib
import functools
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from ..documents import Positions
from . import faults
from .formats import FORMATS, fits
from .model import Finding, Path, Plan, Problem, Range

_FAULT_NAMES = ("kind", "node", "peer", "of", "nic", "component")
_TYPES: dict[Any, str] = {str: "a string", int: "an integer", bool: "true or false", types.NoneType: "null"}


class PlanError(ValueError):
    """Everything that is wrong with a plan, in one report (`problems`)."""

    def __init__(self, problems: list[Problem], remedy: str = "") -> None:
        self.problems = problems
        super().__init__("\n".join([*(str(problem) for problem in problems), *([remedy] if remedy else [])]))


def checked(plan: Any, source: str = "agentlab_plan", positions: Positions | None = None, remedy: str = "") -> Plan:
    """Return `plan`, which is one. Raises `PlanError` with file, field, value and what would be right of all that is wrong.

    source: where the plan is from; remedy: what else can be done, the last line of the report.
    """
    if found := findings(plan):
        raise PlanError([_problem(finding, source, positions) for finding in found], remedy)
    return cast(Plan, plan)


def _problem(finding: Finding, source: str, positions: Positions | None) -> Problem:
    path, value, remedy = finding
    at = None
    # A missing field has no place; the mapping that lacks it has.
    for length in range(len(path), 0, -1):
        at = at or (positions.get(path[:length]) if positions else None)
    return Problem.of(f"{source}:{at[0]}:{at[1]}" if at else source, path, value, remedy)


def findings(plan: Any) -> list[Finding]:
    """Return all in which `plan`, as it was read, is no plan: fields, types, formats, and what contradicts itself."""
    return list(_mismatches(plan, Plan, ())) or list(_contradictions(plan))


def _mismatches(value: Any, wanted: Any, path: Path) -> Iterator[Finding]:
    """Yield every field below `value` that is not of the type `wanted`."""
    rule: Any = "line"
    if get_origin(wanted) is Annotated:
        wanted, rule = get_args(wanted)
    origin = get_origin(wanted)
    if wanted is Any:
        return
    if origin in (typing.Union, types.UnionType):
        yield from _of_either(value, get_args(wanted), path)
    elif origin is Literal:
        if value not in get_args(wanted):
            yield path, value, _choice(value, get_args(wanted))
    elif typing.is_typeddict(wanted):
        yield from _of_mapping(value, wanted, path)
    elif origin is list:
        if not isinstance(value, list):
            yield path, value, "must be a list"
            return
        for index, item in enumerate(value):
            yield from _mismatches(item, get_args(wanted)[0], (*path, index))
    elif origin is dict:
        if not isinstance(value, Mapping):
            yield path, value, "must be a mapping"
            return
        for key, item in value.items():
            if not isinstance(key, str) or not key.isprintable():
                yield (*path, key), None, "the name of a field is one line of printable characters"
            yield from _mismatches(item, get_args(wanted)[1], (*path, key))
    elif wanted is str:
        if not isinstance(value, str) or not fits(rule, value):
            yield path, value, f"must be {FORMATS[rule][1]}"
    elif not isinstance(value, wanted) or isinstance(value, bool) is not (wanted is bool):
        yield path, value, f"must be {_TYPES[wanted]}"
    elif isinstance(rule, Range) and not rule.least <= value <= rule.most:
        yield path, value, f"must be from {rule.least} to {rule.most}"


def _of_either(value: Any, choices: tuple[Any, ...], path: Path) -> Iterator[Finding]:
    """Optional values: null, or what the other type asks for."""
    if value is None and types.NoneType in choices:
        return
    (other,) = (choice for choice in choices if choice is not types.NoneType)
    for where, found, remedy in _mismatches(value, other, path):
        yield where, found, f"{remedy}, or null" if where == path else remedy


def _of_mapping(value: Any, wanted: Any, path: Path) -> Iterator[Finding]:
    if not isinstance(value, Mapping):
        yield path, value, "must be a mapping"
        return
    fields = _fields(wanted)
    for key in value:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(f'`{name}`' for name in sorted(fields))}"
            yield (*path, key), None, f"unknown field; {hint}"
    for name, kind in fields.items():
        if name not in value:
            yield (*path, name), None, f"is missing: must be {_meaning(kind)}"
        else:
            yield from _mismatches(value[name], kind, (*path, name))


@functools.cache
def _fields(wanted: Any) -> dict[str, Any]:
    return typing.get_type_hints(wanted, include_extras=True)


def _meaning(wanted: Any) -> str:
    if get_origin(wanted) is Annotated:
        kind, rule = get_args(wanted)
        return FORMATS[rule][1] if kind is str else f"{_TYPES[kind]} from {rule.least} to {rule.most}"
    if get_origin(wanted) is Literal:
        return f"one of {', '.join(get_args(wanted))}"
    if get_origin(wanted) in (typing.Union, types.UnionType):
        return " or ".join(_meaning(choice) for choice in get_args(wanted))
    return _TYPES.get(wanted, "a list" if get_origin(wanted) is list else "a mapping")


def _choice(value: Any, choices: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(value.lower(), choices, n=1) if isinstance(value, str) else []
    return f"{f'did you mean {near[0]}? ' if near else ''}must be one of {', '.join(choices)}"


def _contradictions(plan: Plan) -> Iterator[Finding]:
    """Yield what is wrong in how the parts of a plan refer to each other."""
    hypervisor = plan["hypervisor"]
    if not hypervisor["pool_dir"].startswith(hypervisor["state_dir"] + "/"):
        yield ("hypervisor", "pool_dir"), hypervisor["pool_dir"], "must be in hypervisor.state_dir, which is removed with the cluster"
    for name in ("networks", "nodes"):
        if not plan[name]:  # type: ignore[literal-required]
            yield (name,), None, "must not be empty"
    for index, network in enumerate(plan["networks"]):
        if not network["subnets"]:
            yield ("networks", index, "subnets"), None, "must not be empty"
    networks = [network["name"] for network in plan["networks"]]
    seen: set[str] = set()
    for index, node in enumerate(plan["nodes"]):
        if node["name"] in seen:
            yield ("nodes", index, "name"), node["name"], "is already the name of another node; each must be its own"
        seen.add(node["name"])
        if not node["nics"]:
            yield ("nodes", index, "nics"), None, "must not be empty"
        for position, nic in enumerate(node["nics"]):
            if nic["network"] not in networks:
                yield ("nodes", index, "nics", position, "network"), nic["network"], f"must be one of {', '.join(networks)}"
    pool, state = plan["hypervisor"]["pool_dir"], plan["hypervisor"]["state_dir"]
    if not pool.startswith(f"{state}/"):
        yield ("hypervisor", "pool_dir"), pool, "must be in hypervisor.state_dir, which is removed with the cluster"
    for index, fault in enumerate(plan["faults"]):
        yield from _fault(fault, ("faults", index))
    ips = [address["ip"] for node in plan["nodes"] for nic in node["nics"] for address in nic["addresses"]]
    if plan["nodes"] and plan["rendezvous_ip"] not in ips:
        yield ("rendezvous_ip",), plan["rendezvous_ip"], f"must be an address of a node: {', '.join(ips)}"


def _fault(fault: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    kind = faults.KINDS.get(str(fault.get("kind")))
    if kind is None:
        yield (*path, "kind"), fault.get("kind"), f"must be one of {', '.join(faults.KINDS)}"
        return
    for key in kind.required:
        if key not in fault:
            yield (*path, key), None, "is needed here"
    for key, value in fault.items():
        if isinstance(value, str):
            rule = "name" if key in _FAULT_NAMES else "line"
            yield from _mismatches(value, Annotated[str, rule], (*path, key))
