"""The state of a cluster now: stages of the run, the service's view, machines, and the first cause of a failure.

The same data is what `agentlab status` prints. Its JSON schema is docs/status.schema.json.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeGuard

from .. import state
from ..assisted.client import AssistedClient, AssistedError
from ..assisted.monitor import host_name, parse_validations
from ..boot import bmc
from ..documents import load_json, read_file
from ..errors import LabError
from ..installer.state import StateError, load_wait_for
from ..plan import outside, secrets
from ..plan.access import Access
from ..plan.machines import Node
from ..plan.model import Plan
from ..redact import redact
from ..vocabulary import RunFile
from ..watch import WaitState
from .causes import UNKNOWN
from .hypervisor_logs import domain_states
from .probe import Probe

_FAILED = ("failure", "error")
_RESULTS: dict[str | None, Literal["ok", "failed"]] = {"ok": "ok", "failed": "failed"}


class StageStatus(TypedDict):
    """A stage of the run."""

    name: str
    """Name of the stage, as of its verb."""
    start: str
    """When it began, ISO 8601."""
    end: str | None
    """When it ended; null while it runs, and after it was killed."""
    result: Literal["ok", "failed"] | None
    """Its result; null while it runs, and after it was killed."""


class Validation(TypedDict):
    """A validation of the assisted service that fails."""

    id: str
    """Its identifier, such as `ntp-synced`."""
    message: str
    """The message of the service."""


class Installation(TypedDict):
    """The cluster as the assisted service describes it."""

    source: Literal["service", "record"]
    """`service`: it was asked now; `record`: it does not answer, and this is its last answer."""
    status: str
    """The cluster's status, such as `installing`."""
    info: str
    """The service's words for it."""
    percentage: int
    """How much of the installation is done, in percent."""
    failing: list[Validation]
    """Validations of the cluster that fail."""


class HostStatus(TypedDict):
    """A machine of the plan, or a host that registered without being in it."""

    name: str
    """Host name."""
    role: str
    """Its role: of the plan, or as the service assigned it; `outside` for a machine that is not part of the cluster."""
    power: str | None
    """Power state as its BMC, or libvirt for one without, reports it (`on`, `off`); null if that cannot be asked."""
    medium: str | None
    """URL of the inserted boot medium; null without one, or if the BMC cannot be asked."""
    problem: str | None
    """Why the BMC cannot be asked."""
    status: str | None
    """The host's status in the assisted service, such as `known`; null before it registers."""
    info: str
    """The service's words for it."""
    stage: str
    """Installation stage, such as `Writing image to disk`; empty before the installation."""
    percentage: int
    """How much of its installation is done, in percent."""
    failing: list[Validation]
    """Validations of the host that fail."""


class FirstCause(TypedDict):
    """Why the installation does not continue."""

    text: str
    """What is wrong, naming what it is wrong with."""
    next: str
    """What to do next."""


class Status(TypedDict):
    """A cluster now."""

    cluster: str
    """Its name."""
    topology: str
    """Its topology, as in the profile."""
    stack: str
    """Its address families, as in the profile."""
    run_dir: str
    """Absolute path of the run directory."""
    stages: list[StageStatus]
    """Stages that have begun, in the order in which they began."""
    installation: Installation | None
    """The installation; null before the service has answered for the first time, and once the cluster is installed."""
    hosts: list[HostStatus]
    """Every machine, in the order of the plan; then hosts that are not in it."""
    first_cause: FirstCause | None
    """The first of all known causes that has lasted longer than its grace period; null if there is none."""


def collect(plan: Plan, run_dir: Path, *, inside: bool) -> Status:
    """Return the state of the cluster of `plan`.

    inside: whether this process is in the cluster's network, and may ask BMCs, service and libvirt. Raises `ValueError` for a
    state file that is damaged.
    """
    machines: dict[str, _Machine] = {}
    live = None
    if inside:
        with ThreadPoolExecutor(max_workers=len(plan["nodes"]) + 1) as pool:
            pending = pool.submit(_ask, run_dir)
            nodes = secrets.with_passwords(plan, secrets.passwords_of(plan, run_dir))["nodes"]
            ca = str(run_dir / RunFile.CA)
            machines = dict(pool.map(lambda node: (node["name"], _machine(node, ca)), nodes))
            machines |= _outside_machines(plan)
            live = pending.result()
    stages = _stages(run_dir)
    # The service ends before the installation does: its last answer would contradict a wait that has succeeded.
    installed = any(stage["name"] == "wait" and stage["result"] == "ok" for stage in stages)
    shown = live or (None if installed else _recorded(run_dir))
    return {
        "cluster": plan["cluster"]["name"],
        "topology": plan["cluster"]["topology"],
        "stack": plan["cluster"]["stack"],
        "run_dir": str(run_dir.absolute()),
        "stages": stages,
        "installation": _installation(shown, "service" if live else "record") if shown else None,
        "hosts": list(_hosts(plan, machines, shown)),
        "first_cause": _first_cause(plan, run_dir, stages, shown, inside=inside),
    }


def _first_cause(
    plan: Plan, run_dir: Path, stages: list[StageStatus], cluster: dict[str, Any] | None, *, inside: bool
) -> FirstCause | None:
    """Return the first cause between boot and installation: before and after, machines and service may be off."""
    results = {stage["name"]: stage["result"] for stage in stages}
    if "boot" not in results or results.get("wait") == "ok":
        return None
    if not inside:
        name = plan["cluster"]["name"]
        return {"text": f"the lab of cluster {name} is not running", "next": Access(plan, run_dir).verb("prepare")}
    # A wait that has failed has allowed for the grace periods.
    idle = (
        float("inf") if results.get("wait") == "failed" else _idle(stages, cluster, datetime.datetime.now(datetime.UTC))
    )
    for cause in Probe(plan, run_dir).causes(WaitState(cluster=cluster)):
        if idle > (UNKNOWN if cause.grace is None else cause.grace):
            return {"text": _line(cause.text), "next": _line(cause.step)}
    return None


def _idle(stages: list[StageStatus], cluster: dict[str, Any] | None, now: datetime.datetime) -> float:
    """Return the seconds since the run or the service last made progress; without a readable time, infinite."""
    texts: list[object] = [stage[edge] for stage in stages for edge in ("start", "end")]
    for thing in (cluster or {}, *((cluster or {}).get("hosts") or ())):
        texts += [thing.get("status_updated_at"), (thing.get("progress") or {}).get("stage_updated_at")]
    times = []
    for text in texts:
        try:
            found = datetime.datetime.fromisoformat(str(text))
        except ValueError:
            continue
        if found.tzinfo:
            times.append(min(found, now))
    return (now - max(times)).total_seconds() if times else float("inf")


class _Machine(TypedDict):
    power: str | None
    medium: str | None
    problem: str | None


_UNKNOWN: _Machine = {"power": None, "medium": None, "problem": None}


def _machine(node: Node, ca: str) -> _Machine:
    try:
        machine = bmc.of_node(node, ca)
        return {"power": machine.power(), "medium": machine.medium(), "problem": None}
    except LabError as error:
        return {"power": None, "medium": None, "problem": str(error)}


def _outside_machines(plan: Plan) -> dict[str, _Machine]:
    """Return the power of the machines outside of the cluster, which have no BMC, by their names."""
    if not outside.machines(plan):
        return {}
    found = domain_states(plan) or {}
    states = {machine["name"]: found.get(machine["domain"]) for machine in outside.machines(plan)}
    return {
        name: {"power": "on" if state == "running" else "off", "medium": None, "problem": None}
        for name, state in states.items()
        if state
    }


def _ask(run_dir: Path) -> dict[str, Any] | None:
    try:
        known = load_wait_for(run_dir)
        client = AssistedClient(known.rendezvous_ip, known.token, known.scheme, timeout=(2, 10))
        found = client.clusters()
        return _shaped(client.cluster(found[0]["id"])) if found else None
    except (StateError, AssistedError, KeyError, TypeError):
        return None


def _recorded(run_dir: Path) -> dict[str, Any] | None:
    try:
        return _shaped(load_json(read_file(run_dir / RunFile.LAST_CLUSTER), name=str(run_dir / RunFile.LAST_CLUSTER)))
    except (OSError, ValueError):
        return None


def _shaped(cluster: object) -> dict[str, Any] | None:
    """Return the description of a cluster, or None for anything else: files are edited, and a host may run any service."""

    def thing(value: object) -> TypeGuard[dict[str, Any]]:
        return (
            isinstance(value, dict)
            and isinstance(value.get("status"), str)
            and isinstance(value.get("progress"), dict | None)
            and isinstance(value.get("validations_info"), str | None)
        )

    if not thing(cluster):
        return None
    hosts = cluster.get("hosts") or []
    valid = isinstance(hosts, list) and all(thing(host) and isinstance(host.get("id"), str) for host in hosts)
    return cluster if valid else None


def _stages(run_dir: Path) -> list[StageStatus]:
    found = sorted(state.load(run_dir)["stages"].items(), key=lambda item: item[1]["start"])
    return [
        {"name": name, "start": stage["start"], "end": stage["end"], "result": _RESULTS.get(stage["result"])}
        for name, stage in found
    ]


def _installation(cluster: dict[str, Any], source: Literal["service", "record"]) -> Installation:
    return {
        "source": source,
        "status": _line(cluster["status"]),
        "info": _line(cluster.get("status_info")),
        "percentage": _percentage(cluster, "total_percentage"),
        "failing": _failing(cluster),
    }


def _hosts(plan: Plan, machines: Mapping[str, _Machine], cluster: dict[str, Any] | None) -> Iterator[HostStatus]:
    registered = {host_name(host): host for host in (cluster or {}).get("hosts") or []}
    for node in plan["nodes"]:
        # A host may have its fully qualified name.
        name = next((name for name in registered if name.split(".")[0] == node["name"]), node["name"])
        yield _host(node["name"], node["role"], machines.get(node["name"], _UNKNOWN), registered.pop(name, None))
    for machine in outside.machines(plan):
        yield _host(machine["name"], "outside", machines.get(machine["name"], _UNKNOWN), None)
    for name, host in sorted(registered.items()):
        yield _host(name, str(host.get("role") or ""), _UNKNOWN, host)


def _host(name: str, role: str, machine: _Machine, host: dict[str, Any] | None) -> HostStatus:
    progress = (host or {}).get("progress") or {}
    return {
        "name": _line(name),
        "role": _line(role),
        "power": machine["power"],
        "medium": machine["medium"] and _line(machine["medium"]),
        "problem": machine["problem"],
        "status": _line(host["status"]) if host else None,
        "info": _line((host or {}).get("status_info")),
        "stage": _line(progress.get("current_stage")),
        "percentage": _percentage(host or {}, "installation_percentage"),
        "failing": _failing(host or {}),
    }


def _line(text: object) -> str:
    """Return a text of the service or of a machine as one printable line without secrets: its source is not trusted."""
    return "".join(letter if letter.isprintable() else " " for letter in redact(str(text or ""))).strip()


def _percentage(thing: dict[str, Any], name: str) -> int:
    value = (thing.get("progress") or {}).get(name)
    return value if isinstance(value, int) else 0


def _failing(thing: dict[str, Any]) -> list[Validation]:
    try:
        checks = parse_validations(thing.get("validations_info"))
        return [
            {"id": _line(check["id"]), "message": _line(check["message"])}
            for check in checks
            if check["status"] in _FAILED
        ]
    except (ValueError, AttributeError, KeyError, TypeError):  # not as the service writes it
        return []
