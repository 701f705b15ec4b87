"""Replaces a component's image on those nodes of a running lab that run it: on all of them, or on none."""

from __future__ import annotations

import inspect
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import NamedTuple

from ..documents import load_json
from ..errors import LabError
from ..plan.machines import Node, interfaces
from ..plan.model import Plan
from ..vocabulary import Component
from . import on_node
from .logins import Logins

_SSH_FAILED = 255


class Nodes(Enum):
    """On which nodes a place is."""

    RENDEZVOUS = "the rendezvous host"
    ALL = "all nodes, at the same time"
    EACH = "all nodes, one after the other"


class Place(NamedTuple):
    """Where a component runs: a name of `on_node.PLACES`, and on which nodes."""

    name: str
    nodes: Nodes


PLACES: Mapping[str, tuple[Place, ...]] = {
    Component.API_SERVER: (Place("service", Nodes.RENDEZVOUS),),
    # The service orders their images; the controller's pod is on one of the installed nodes.
    Component.ORCHESTRATOR: (Place("service", Nodes.RENDEZVOUS),),
    Component.CSR_APPROVER: (Place("service", Nodes.RENDEZVOUS), Place("controller", Nodes.ALL)),
    # First the service: it has an agent with another image than its own replaced.
    Component.NODE_AGENT: (Place("service", Nodes.RENDEZVOUS), Place("agent", Nodes.ALL)),
    Component.HYPERKUBE: (Place("cluster", Nodes.EACH),),
}
"""The places of the components that run in a lab, in the order in which they are replaced."""


class Outcome(Enum):
    """What became of one place on one node; the values are exit codes of `on_node`."""

    REPLACED = 0
    FAILED = 1
    UNCHANGED = on_node.UNCHANGED
    ABSENT = on_node.ABSENT
    BUSY = on_node.BUSY
    SILENT = _SSH_FAILED


_FAILURES = (Outcome.FAILED, Outcome.BUSY)


class Attempt(NamedTuple):
    """One place on one node: its outcome, the image before, and the reason of a failure."""

    node: Node
    place: Place
    outcome: Outcome
    before: str
    reason: str


class Lab(NamedTuple):
    """A running lab: prefix is the command that enters its network, from which `logins` are, too; report gets a line for users."""

    plan: Plan
    prefix: Sequence[str]
    logins: Logins
    report: Callable[[str], None]


def places_of(component: str) -> tuple[Place, ...]:
    """Return the places of a component. Raises LabError for one that never runs by itself in a running lab."""
    if component not in PLACES:
        raise LabError(
            f"{component}: a running lab has nothing to restart with it; agentlab deploy --override {component}=DIR installs "
            f"with another one. Components that can be reloaded: {', '.join(PLACES)}"
        )
    return PLACES[component]


def log_in(lab: Lab, component: str) -> None:
    """Begin to log in to the nodes that may run a component, for `replace`."""
    nodes = {node["name"]: node for place in places_of(component) for node in _nodes(lab, place)}
    lab.logins.begin(address for node in nodes.values() if (address := _address(node)))


def replace(lab: Lab, component: str, image: str) -> bool:
    """Let all places of a component run `image`, a pullspec; return whether one of them did not before.

    Raises LabError when one cannot, with all of them as they were, and when none runs now.
    """
    attempts: list[Attempt] = []
    for place in places_of(component):
        phase = _phase(lab, place, component, image)
        attempts += phase
        for one in phase:
            if one.outcome is Outcome.UNCHANGED:
                lab.report(f"{one.node['name']}: no change ({one.place.name})")
            elif one.outcome is Outcome.SILENT:
                lab.report(f"{one.node['name']}: left out, it does not answer: {one.reason}")
        if failed := [one for one in phase if one.outcome in _FAILURES]:
            _undo(lab, component, [one for one in attempts if one.outcome is Outcome.REPLACED])
            raise LabError(f"{component}: {failed[0].node['name']}: {failed[0].reason}")
    if all(one.outcome in (Outcome.ABSENT, Outcome.SILENT) for one in attempts):
        silent = [one for one in attempts if one.outcome is Outcome.SILENT]
        why = f" ({silent[0].node['name']} does not answer: {silent[0].reason})" if silent else ""
        raise LabError(
            f"{component} runs nowhere in cluster {lab.plan['cluster']['name']} now{why}; "
            f"agentlab deploy --override {component}=DIR installs with another one"
        )
    return any(one.outcome is Outcome.REPLACED for one in attempts)


def _phase(lab: Lab, place: Place, component: str, image: str) -> list[Attempt]:
    """Attempt a place on its nodes, one after the other until one fails, or all at the same time."""
    nodes = _nodes(lab, place)
    if place.nodes is Nodes.EACH:
        found: list[Attempt] = []
        for node in nodes:
            found.append(_attempt(lab, node, place, component, image))
            if found[-1].outcome in _FAILURES:
                break
        return found
    with ThreadPoolExecutor(max_workers=len(nodes)) as pool:
        return list(pool.map(lambda node: _attempt(lab, node, place, component, image), nodes))


def _nodes(lab: Lab, place: Place) -> Sequence[Node]:
    nodes = lab.plan["nodes"]
    if place.nodes is Nodes.RENDEZVOUS:
        return [node for node in nodes if node["name"] == lab.plan["rendezvous"]["node"]]
    return nodes


def _address(node: Node) -> str | None:
    return next((address["ip"] for nic in interfaces(node) for address in nic["addresses"]), None)


def _undo(lab: Lab, component: str, replaced: Sequence[Attempt]) -> None:
    for one in reversed(replaced):
        lab.report(f"{one.node['name']}: back to the former image")
        _attempt(lab, one.node, one.place, component, one.before)


def _attempt(lab: Lab, node: Node, place: Place, component: str, image: str) -> Attempt:
    """Run `on_node` on a node and report its steps."""
    address = _address(node)
    if address is None:
        return Attempt(node, place, Outcome.SILENT, "", "it has no address in the plan")
    words = [*lab.logins.command(address), "sudo", "python3", "-IS", "-", place.name, component, image]
    before = ""
    with tempfile.TemporaryFile("w+") as program, tempfile.TemporaryFile("w+") as errors:
        program.write(inspect.getsource(on_node))
        program.seek(0)
        with subprocess.Popen(
            [*lab.prefix, *words], stdin=program, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace"
        ) as process:
            for line in process.stdout or ():
                answer = load_json(line, name=node["name"])
                before = answer.get("before", before)
                if "step" in answer:
                    lab.report(f"{node['name']}: {answer['step']}")
        errors.seek(0)
        lines = errors.read().strip().splitlines()
    known = {one.value for one in Outcome}
    outcome = Outcome(process.returncode) if process.returncode in known else Outcome.FAILED
    reason = lines[-1] if lines else f"ssh ended with {process.returncode}"
    if outcome is Outcome.BUSY:
        reason = "an installation is under way, which ends with the images that it began with"
    return Attempt(node, place, outcome, before, reason)
