"""Facts of `causes` in a recording: what the wait and gather found in the lab, and the answers of the two APIs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..assisted import shapes
from ..cluster import shapes as objects
from ..documents import load_yaml, read_file
from ..errors import AssistedError
from ..plan import rundir
from ..plan.model import Plan
from ..plan.stored import check_plan
from ..shapes import Shape, ShapeError, check
from ..state.recording import CAUSES, FILE, PROFILE, Player, Tape, at_the_end, load
from .causes import Cause, signs
from .evidence import Facts, Unit

PLAN = "/plan"
_UNITS: Shape = {"*": {"state!": str, "restarts": int, "said": str}}


def record(tape: Tape, facts: Facts, causes: Sequence[Cause], plan: Plan) -> None:
    """Record what the facts have of the lab, and the causes. plan: with all nodes, day-2 nodes included.

    What the APIs answered is recorded by their clients. Of consoles only lines that mean something are recorded.
    """
    found: dict[str, Any] = {
        PLAN: plan,
        "/domains": facts.domains,
        "/consoles": {name: text for name, text in ((n, signs(t)) for n, t in facts.consoles.items()) if text},
        "/services": facts.services,
        "/units": {name: unit._asdict() for name, unit in facts.node_zero.items()},
        "/refused": facts.refused,
        "/reachable": facts.reachable,
        "/rendezvous-ip": facts.rendezvous_ip,
        "/installer": facts.installer,
        CAUSES: [{"text": cause.text, "next": cause.step} for cause in causes],
    }
    with contextlib.suppress(OSError, ValueError):
        if facts.run_dir:
            path = facts.run_dir / rundir.PROFILE
            found[PROFILE] = load_yaml(read_file(path), name=str(path))
    for name, body in found.items():
        tape("lab", name, 200, body)


def plan_of(player: Player) -> Plan | None:
    """Return the plan of a recording; None if it has none. Raises `PlanError` for one of another form."""
    found = _body(player, PLAN, dict, None)
    return check_plan(found) if found is not None else None


def recorded_units(run_dir: Path) -> dict[str, Unit]:
    """Return the units of the rendezvous host as the run's recording ends; none without one that can be read."""
    path = run_dir / FILE
    try:
        return _units(at_the_end(load(path.read_bytes(), str(path))))
    except (OSError, ValueError):
        return {}


def _units(player: Player) -> dict[str, Unit]:
    units: dict[str, Any] = _body(player, "/units", _UNITS, {})
    return {
        name: Unit(unit["state"], unit.get("restarts") or 0, unit.get("said") or "") for name, unit in units.items()
    }


def cluster(player: Player) -> dict[str, Any] | None:
    """Return the cluster that the service described last, with its hosts; None before."""
    for (source, path), answer in reversed(player.answers.items()):
        if source == "assisted" and path.startswith("/clusters/"):
            with contextlib.suppress(AssistedError):
                return shapes.cluster(answer.body, path)
    return None


def events(player: Player) -> list[dict[str, Any]]:
    """Return the service's events that were read last."""
    for (source, path), answer in reversed(player.answers.items()):
        if source == "assisted" and path.startswith("/events?"):
            with contextlib.suppress(AssistedError):
                return shapes.events(answer.body, path)
    return []


def operators(player: Player) -> list[dict[str, Any]] | None:
    """Return the ClusterOperators; None while the API does not answer."""
    return _items(player, "/apis/config.openshift.io/v1/clusteroperators", objects.CLUSTER_OPERATORS)


def _body(player: Player, path: str, shape: Shape, default: Any) -> Any:
    """Return what the lab had; the default for what is not there or of another shape."""
    answer = player.get("lab", path)
    return answer.body if answer is not None and _fits(answer.body, shape) else default


def _fits(value: object, shape: Shape) -> bool:
    try:
        check(value, shape, "")
    except ShapeError:
        return False
    return True


def _items(player: Player, path: str, shape: Shape) -> list[dict[str, Any]] | None:
    answer = player.get("openshift", path)
    if answer is None or answer.status != 200 or not _fits(answer.body, shape):
        return None
    items: list[dict[str, Any]] = answer.body["items"]
    return items
