"""Facts of `causes` in a recording: what the wait and gather found in the lab, and the answers of the two APIs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..assisted import shapes
from ..documents import load_yaml, read_file
from ..errors import AssistedError
from ..plan import rundir
from ..plan.model import Plan
from ..plan.stored import checked
from ..state.recording import CAUSES, PROFILE, Answer, Player, Tape
from .causes import Cause, signs
from .evidence import Facts, Unit

PLAN = "/plan"


def record(tape: Tape, facts: Facts, causes: Sequence[Cause], plan: Plan) -> None:
    """Record what the facts have of the lab, and the causes. plan: with all nodes, also those of day 2.

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
    found = _body(player, PLAN, None)
    return checked(found) if isinstance(found, dict) else None


def replayed(player: Player, plan: Plan, run_dir: Path | None = None) -> Facts:
    """Return the facts at the current time of a player.

    run_dir: that commands in the causes name. What has another form than expected is left out.
    """
    at = _named(player)
    nodes = _items(player.get("openshift", "/api/v1/nodes"))
    live = _ok(player.get("openshift", "/version"))
    if not live and nodes is not None and player.get("openshift", "/version") is not None:
        nodes = None
    units = {name: unit for name, unit in at("/units").items() if isinstance(unit, dict)}
    refused = player.get("assisted", "/infra-envs")
    return Facts(
        plan=plan,
        domains=_body(player, "/domains", None),
        consoles=at("/consoles"),
        cluster=cluster(player),
        events=events(player),
        nodes=[] if nodes is None and live else nodes,
        operators=operators(player),
        pods=_items(player.get("openshift", "/api/v1/pods")) or (),
        reachable=at("/reachable"),
        services=at("/services"),
        node_zero={
            name: Unit(str(unit.get("state")), int(unit.get("restarts") or 0), str(unit.get("said") or ""))
            for name, unit in units.items()
        },
        rendezvous_ip=str(_body(player, "/rendezvous-ip", "") or ""),
        refusal=f"HTTP 401: {refused.body}" if refused and refused.status == 401 else "",
        refused=at("/refused"),
        run_dir=run_dir,
    )


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
    return _items(player.get("openshift", "/apis/config.openshift.io/v1/clusteroperators"))


def _named(player: Player) -> Callable[[str], dict[str, Any]]:
    def at(path: str) -> dict[str, Any]:
        found = _body(player, path, {})
        return found if isinstance(found, dict) else {}

    return at


def _body(player: Player, path: str, default: Any) -> Any:
    answer = player.get("lab", path)
    return default if answer is None else answer.body


def _ok(answer: Answer | None) -> bool:
    return answer is not None and answer.status == 200


def _items(answer: Answer | None) -> list[dict[str, Any]] | None:
    if answer is None or answer.status != 200 or not isinstance(answer.body, dict):
        return None
    found = answer.body.get("items")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else None
