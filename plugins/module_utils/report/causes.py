"""Why an installation does not go on: facts in, causes out, the first one first.

Causes are asked for in the order of the road, so that what explains the rest is told first: machines that are off
before hosts that are missing, a missing host before a cluster that is not ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..assisted.monitor import host_name, parse_validations
from ..cluster.watcher import operator_report

CONSOLE_SIGNS = (
    (re.compile(r"Kernel panic - not syncing.*"), "the kernel panicked"),
    (re.compile(r"Ignition (?:has )?failed.*", re.IGNORECASE), "Ignition did not apply its config"),
    (re.compile(r"(?:You are in|Entering) emergency mode.*", re.IGNORECASE), "the machine is in emergency mode"),
    (re.compile(r"Installation cannot proceed.*"), "the host configuration could not be applied"),
    (re.compile(r".*(?:release image|release-image).*(?:failed|cannot|unable).*", re.IGNORECASE), "the release image can't be pulled"),
)


class Cause(NamedTuple):
    """text: what is wrong, naming what it is wrong with; step: what to do next."""

    text: str
    step: str


@dataclass
class Facts:
    """What gather found out. Anything that could not be asked is None or empty.

    plan: the plan; domains: libvirt domain -> state ("running", "shut off", ...); consoles: domain -> last text;
    cluster, events: as the service last told them; nodes, operators: of the OpenShift API; reachable: host name -> ssh
    answered; services: lab service -> "" or its error; node_zero: unit name -> state on the rendezvous host.
    """

    plan: dict[str, Any]
    domains: dict[str, str] | None = None
    consoles: dict[str, str] = field(default_factory=dict)
    cluster: dict[str, Any] | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    nodes: list[dict[str, Any]] | None = None
    operators: list[dict[str, Any]] | None = None
    reachable: dict[str, bool] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    node_zero: dict[str, str] = field(default_factory=dict)


def causes(facts: Facts) -> list[Cause]:
    """All causes that the facts show, those that explain others first."""
    found: list[Cause] = []
    for ask in (_services, _domains, _consoles, _node_zero, _registered, _hosts, _cluster, _operators):
        found += [cause for cause in ask(facts) if cause not in found]
    return found


def _services(facts: Facts) -> Iterator[Cause]:
    for name, error in facts.services.items():
        if error:
            yield Cause(f"the lab's {name} does not answer: {error}", "agentlab prepare  starts it again")


def _domains(facts: Facts) -> Iterator[Cause]:
    if facts.domains is None:
        return
    for node in facts.plan["nodes"]:
        state = facts.domains.get(node["domain"])
        if state is None:
            yield Cause(f"VM {node['domain']} does not exist", "agentlab prepare  defines it, agentlab boot  starts it")
        elif state != "running":
            yield Cause(f"VM {node['domain']} ({node['name']}) is {state}", "agentlab boot  starts it; its console log tells how it ended")


def _consoles(facts: Facts) -> Iterator[Cause]:
    for domain, text in facts.consoles.items():
        for sign, meaning in CONSOLE_SIGNS:
            if match := sign.search(text):
                yield Cause(f"{domain}: {meaning}: {match.group(0).strip()[:200]}", f"read the console log of {domain}")
                break


def _node_zero(facts: Facts) -> Iterator[Cause]:
    address = facts.plan["rendezvous_ip"]
    if facts.cluster is not None or facts.nodes is not None:
        return
    for unit, state in facts.node_zero.items():
        if state in ("failed", "activating"):
            yield Cause(f"assisted-service never started: {unit} on the rendezvous host {address} is {state}",
                        f"agentlab exec -- ssh core@{address} journalctl -u {unit}")
    holders = [n["name"] for n in facts.plan["nodes"] for nic in n["nics"] for a in nic["addresses"] if a["ip"] == address]
    holder = holders[0] if holders else None
    if not facts.node_zero:
        if holder is None:
            yield Cause(f"rendezvousIP {address} is not the address of any node of the plan", "set it to a control-plane node's address")
        elif facts.reachable and not facts.reachable.get(holder):
            yield Cause(f"the rendezvous host {holder} ({address}) does not answer on the network", "read its console log")
        else:
            yield Cause(f"the assisted service at {address}:8090 never answered", "read the journal of the rendezvous host")


def _registered(facts: Facts) -> Iterator[Cause]:
    if facts.cluster is None or facts.cluster["status"] not in ("insufficient", "pending-for-input", "ready"):
        return
    hosts = {host_name(h) for h in facts.cluster.get("hosts") or []}
    planned = {n["name"] for n in facts.plan["nodes"]}
    for name in sorted(planned - hosts):
        yield Cause(f"host {name} never registered", f"is its VM up, and can it reach {facts.plan['rendezvous_ip']}? read its console log")
    for name in sorted(hosts - planned):
        yield Cause(f"host {name} is not of this plan; {len(hosts)} hosts registered, {len(planned)} are expected",
                    "power the extra machine off: the installation starts only with exactly the expected hosts")


def _failing(thing: dict[str, Any]) -> Iterable[str]:
    return [check["message"] for check in parse_validations(thing.get("validations_info")) if check["status"] in ("failure", "error")]


def _hosts(facts: Facts) -> Iterator[Cause]:
    for host in (facts.cluster or {}).get("hosts") or []:
        name, status, stage = host_name(host), host["status"], (host.get("progress") or {}).get("current_stage")
        if status in ("error", "installing-pending-user-action", "disconnected", "cancelled", "preparing-failed"):
            yield Cause(f"host {name} is {status}" + (f" at {stage}" if stage else "") + f": {host.get('status_info', '')}",
                        "see its logs in this report")
        elif status in ("insufficient", "pending-for-input"):
            for message in _failing(host):
                yield Cause(f"host {name} fails a validation: {message}", "mend the host or the profile, then deploy again")


def _cluster(facts: Facts) -> Iterator[Cause]:
    if facts.cluster is None or facts.nodes is not None:
        return
    for message in _failing(facts.cluster):
        yield Cause(f"the cluster fails a validation: {message}", "mend the profile, then deploy again")
    last = next((e for e in reversed(facts.events) if e["severity"] in ("error", "critical")), None)
    if last:
        yield Cause(f"last error event: {last['message']}", "see events.json in this report")


def _operators(facts: Facts) -> Iterator[Cause]:
    for node in facts.nodes or []:
        ready = next((c for c in (node.get("status") or {}).get("conditions") or [] if c["type"] == "Ready"), None)
        if not ready or ready["status"] != "True":
            yield Cause(f"node {node['metadata']['name']} is not Ready: {(ready or {}).get('message', 'no condition')}", "see its journal")
    for line in operator_report(facts.operators or []):
        yield Cause(line, "see clusteroperators.json in this report")
