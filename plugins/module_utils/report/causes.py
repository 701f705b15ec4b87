"""Why an installation does not continue: facts in, causes out, the first one first.

Causes are checked in the order of the workflow, so that those that explain the rest come first: machines that are off
before hosts that are missing, a missing host before a cluster that is not ready.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from ..assisted.monitor import host_name, ineligible
from ..assisted.validations import LASTING, WARNINGS
from ..cluster.pods import NAMESPACE, failure_of_pod
from ..cluster.pods import name as pod_name
from ..cluster.watcher import operator_report
from ..documents import load_json
from ..plan import hypervisors
from ..plan.faults import EXTRA
from ..plan.machines import interfaces, own_machines, virtual
from ..plan.outside import machines
from ..vocabulary import FAILED_WITH_CLUSTER, Port, RunFile, Stage, Status
from .evidence import RESTARTS, Facts

SURE, LIKELY = 60.0, 360.0
"""Grace periods in seconds without progress: for causes that do not resolve themselves, and for those that may on a slow machine."""
UNKNOWN = 900.0
"""Grace period of all others; the default of `agentlab_wait_for_stall_minutes`."""
# Console output -> its meaning. The first are fatal; the others are remarks, which other causes explain.
CONSOLE_ENDS = (
    (re.compile(r"BdsDxe: failed to load .*: Access Denied"), "the firmware does not trust what it should boot"),
    (re.compile(r"Kernel panic - not syncing.*"), "the kernel panicked"),
    (re.compile(r"Ignition (?:has )?failed.*", re.IGNORECASE), "Ignition did not apply its config"),
    (re.compile(r"(?:You are in|Entering) emergency mode.*", re.IGNORECASE), "the machine is in emergency mode"),
    (re.compile(r"initrd: .*(?=\s+initrd: a shell follows)"), "the machine could not find or start its system"),
)
_REFUSED = "the host configuration could not be applied"
CONSOLE_REMARKS = (
    # The lab's words and upstream's, of the rendezvous host's client: no validation is about hints.
    (re.compile(r"\S+: (?:No disk of the host matches the root|Failed to update .*not-found-by-hints).*"), _REFUSED),
    (re.compile(r"Installation cannot proceed.*"), _REFUSED),
    (
        re.compile(r".*(?:release image|release-image).*(?:failed|cannot|unable).*", re.IGNORECASE),
        "the release image can't be pulled",
    ),
    (
        re.compile(r"rcu: INFO: \w+ (?:self-)?detected stalls? on CPU.*"),
        "a processor of the machine hangs or is too slow",
    ),
)
# Control sequences of consoles, which are invalid in XML.
CONTROLS = re.compile(r"\x1b\[[0-9;]*m|[\x00-\x08\x0b\x0c\x0e-\x1f]")
DISKS = "has-min-valid-disks"
# It follows from others of its category: lost packets, for example, split the hosts into groups.
MAJORITY = "belongs-to-majority-group"
PREPARING_FAILED = re.compile(
    r"Host (\S+): updated status from \S+ to preparing-failed "
    r"\((?:Host failed to prepare for installation due to following failing validation\(s\): )?(.*)\)"
)
# The service's message for hosts that failed because of another host.
# Status of a host that cannot continue by itself -> grace period.
BROKEN: dict[str, float | None] = {
    Status.ERROR: SURE, Status.CANCELLED: SURE, Status.DISCONNECTED: LIKELY, Status.PENDING_USER_ACTION: LIKELY, Status.PREPARING_FAILED: None,
}  # fmt: skip


class Cause(NamedTuple):
    """text: what is wrong, naming what it is wrong with; step: what to do next.

    grace: seconds without progress that a wait allows before it fails with this cause; None: as for an unknown cause.
    """

    text: str
    step: str
    grace: float | None = None


def causes(facts: Facts) -> list[Cause]:
    """Return all causes in the facts, those that explain others first.

    Each cause is in the list once. A source that could not be queried (None or empty in the facts) yields no cause of
    its own: the result is empty when all that is known is healthy.
    """
    found: list[Cause] = []
    agent = (_services, _hypervisors, _domains, _consoles, _node_zero, _registered, _large_packets, _preparation, _hosts, _console_remarks, _remarks,
             _cluster, _pods, _joined, _operators, _other_services)  # fmt: skip
    # Ironic switches machines off, and its own error has the reason.
    ipi = (_services, _consoles, _installer, _domains, _pods, _not_nodes, _operators, _other_services)
    for ask in ipi if facts.ipi else agent:
        found += [cause for cause in ask(facts) if cause not in found]
    return found


def _services(facts: Facts) -> Iterator[Cause]:
    if error := facts.services.get("registry"):
        # Registered hosts may already have pulled their images.
        yield Cause(
            f"the lab's registry does not answer: {error}",
            f"{facts.access.verb('prepare')}  # starts it again",
            LIKELY if facts.cluster else SURE,
        )


def _hypervisors(facts: Facts) -> Iterator[Cause]:
    for one in facts.plan.get("hypervisors") or []:
        if error := facts.services.get(f"hypervisor {hypervisors.name_of(one)}"):
            yield Cause(
                f"hypervisor {hypervisors.name_of(one)} does not answer: {error}",
                f"{facts.access.verbs('prepare', 'boot')}  # starts its sandbox, its BMCs and its machines again",
                SURE,
            )


def _other_services(facts: Facts) -> Iterator[Cause]:
    """Services that an installation does not need after the machines have booted."""
    for name in ("ntp", "bmc", "http"):
        if error := facts.services.get(name):
            yield Cause(
                f"the lab's {name} does not answer: {error}", f"{facts.access.verb('prepare')}  # starts it again"
            )


def _domains(facts: Facts) -> Iterator[Cause]:
    if facts.domains is None:
        return
    elsewhere = [
        node for node in virtual(facts.plan["nodes"]) if node.get("hypervisor") and node["domain"] in facts.domains
    ]
    for node in [*own_machines(facts.plan["nodes"]), *machines(facts.plan), *elsewhere]:
        state = facts.domains.get(node["domain"])
        if state is None:
            yield Cause(
                f"VM {node['domain']} does not exist",
                f"{facts.access.verbs('prepare', 'boot')}  # defines it and starts it",
                SURE,
            )
        elif state == "paused":
            here = node not in elsewhere
            step = facts.access.virsh("resume", node["domain"]) if here else facts.access.console(node["domain"])
            yield Cause(f"VM {node['domain']} ({node['name']}) is paused", step, LIKELY)
        elif state != "running":
            yield Cause(
                f"VM {node['domain']} ({node['name']}) is {state}",
                f"{facts.access.verb('boot')}  # starts it; for the reason see: {facts.access.console(node['domain'])}",
                SURE,
            )


def signs(text: str) -> str:
    """Return the lines of a console that mean something to `causes`, which finds the same in them as in the whole text."""
    found = (sign.search(line) for line in text.splitlines() for sign, __ in (*CONSOLE_ENDS, *CONSOLE_REMARKS))
    return "\n".join(dict.fromkeys(match.string[:2000] for match in found if match))


def _consoles(facts: Facts) -> Iterator[Cause]:
    yield from _of_consoles(facts, CONSOLE_ENDS, SURE)


def _console_remarks(facts: Facts) -> Iterator[Cause]:
    yield from _of_consoles(facts, CONSOLE_REMARKS, None)


def _of_consoles(facts: Facts, signs: Sequence[tuple[re.Pattern[str], str]], grace: float | None) -> Iterator[Cause]:
    for domain, text in facts.consoles.items():
        for sign, meaning in signs:
            if match := sign.search(text):
                message = CONTROLS.sub("", match.group(0)).strip()[:200]
                yield Cause(f"{domain}: {meaning}: {message}", facts.access.console(domain), grace)
                break


def _installer(facts: Facts) -> Iterator[Cause]:
    """What `openshift-install create cluster` ended with; Ironic's reason is in it."""
    if facts.installer:
        yield Cause(
            facts.installer, f"ls {facts.access.run_dir}/logs  # create-cluster.log and ironic.log have what led to it"
        )


def _not_nodes(facts: Facts) -> Iterator[Cause]:
    """Machines of `flow: ipi` that are not nodes, once the API answers."""
    if facts.nodes is None:
        return
    there = {node["metadata"]["name"] for node in facts.nodes}
    for node in facts.plan["nodes"]:
        if node["name"] not in there:
            yield Cause(f"{node['name']} has not joined the cluster", facts.console(node["name"]))


def _node_zero(facts: Facts) -> Iterator[Cause]:
    address = facts.rendezvous_ip or facts.plan["rendezvous"]["ip"]
    if facts.refusal:
        code, __, message = facts.refusal.rpartition("HTTP ")[2].partition(": ")
        yield Cause(
            f"the assisted service at {address}:{Port.ASSISTED_SERVICE} refuses this run's token (HTTP {code}): {message}",
            f"{facts.access.verbs('image', 'boot')}  # starts over; the tokens have expired, or the host was booted from an image of another run",
            SURE,
        )
    if facts.cluster is not None or facts.nodes is not None:
        return
    hopeless = any(unit.broken(name) for name, unit in facts.node_zero.items())
    for name, unit in sorted(facts.node_zero.items(), key=lambda item: not item[1].unhealthy(item[0])):
        if unit.unhealthy(name) or unit.state == "activating":
            yield Cause(
                f"assisted-service never started: {name} on the rendezvous host {address} "
                + (
                    "is still starting"
                    if not unit.unhealthy(name)
                    else "has failed"
                    if unit.state == "failed" and not unit.restarts
                    else "fails repeatedly"
                )
                + (f": {unit.said[:300]}" if unit.said else ""),
                facts.access.ssh(address, f"sudo journalctl --no-pager -u {name}"),
                SURE if hopeless and unit.unhealthy(name) else None,
            )
    holders = [
        n["name"] for n in facts.plan["nodes"] for nic in interfaces(n) for a in nic["addresses"] if a["ip"] == address
    ]
    holder = holders[0] if holders else None
    if not facts.node_zero:
        if holder is None:
            yield Cause(
                f"rendezvousIP {address} is not the address of any node of the plan",
                f"set rendezvousIP in {facts.access.run_dir}/agent-config.yaml to the address of a control-plane node, then: "
                f"{facts.access.verbs('image', 'boot')}",
                SURE,
            )
        elif facts.reachable and not facts.reachable.get(holder):
            yield Cause(
                f"the rendezvous host {holder} ({address}) does not answer on the network", facts.console(holder)
            )
        else:
            yield Cause(
                f"the assisted service at {address}:{Port.ASSISTED_SERVICE} never answered",
                facts.access.ssh(address, "sudo journalctl --no-pager -b"),
            )


def _planned(facts: Facts, host: dict[str, Any]) -> str | None:
    """Return the plan's node of a host: by its network cards, else by name."""
    cards = {
        (nic.get("mac_address") or "").lower()
        for nic in load_json(host.get("inventory") or "{}", name="inventory").get("interfaces") or ()
    }
    nodes = [node for node in facts.plan["nodes"] if node["role"] != EXTRA]
    by_card = (node["name"] for node in nodes if cards & {nic["mac"] for nic in node["nics"]})
    return next(
        by_card, None if cards else next((node["name"] for node in nodes if node["name"] == host_name(host)), None)
    )


def _registered(facts: Facts) -> Iterator[Cause]:
    if facts.cluster is None or facts.cluster["status"] not in (
        Status.INSUFFICIENT,
        Status.PENDING_FOR_INPUT,
        Status.READY,
    ):
        return
    hosts = facts.cluster.get("hosts") or []
    there = {_planned(facts, host) for host in hosts}
    planned = [node["name"] for node in facts.plan["nodes"] if node["role"] != EXTRA]
    for name in planned:
        if name in there:
            continue
        if message := facts.refused.get(name):
            yield Cause(
                f"host {name} is refused by the assisted service: {message}",
                f"{facts.access.verb('boot')}  # boots it from this run's image if it was booted from another one",
                LIKELY,
            )
        else:
            yield Cause(
                f"host {name} never registered",
                f"{facts.console(name)}  # check that it reaches {facts.rendezvous_ip or facts.plan['rendezvous']['ip']}",
                LIKELY,
            )
    for host in hosts:
        if _planned(facts, host) is None:
            yield Cause(
                f"host {host_name(host)} is not part of this plan ({len(hosts)} hosts registered, {len(planned)} expected)",
                "power the extra machine off: the installation starts only with exactly the expected hosts",
                LIKELY,
            )


def _failing(thing: dict[str, Any], warnings: Collection[str] = ()) -> Iterator[tuple[str, float]]:
    """Yield messages of failing validations, or of some warnings among them, with their grace periods: hardware does not change."""
    for category, checks in load_json(thing.get("validations_info") or "{}", name="validations_info").items():
        for check in sorted(checks, key=lambda check: check["id"] == MAJORITY):
            if check["status"] in ("failure", "error") and (
                check["id"] in warnings if warnings else check["id"] not in WARNINGS
            ):
                # What the service could not check has a text that does not name it.
                message = check["message"] if check["status"] == "failure" else f"{check['id']}: {check['message']}"
                message += ineligible(thing) if check["id"] == DISKS else ""
                yield message, SURE if category == "hardware" and check["id"] in LASTING else LIKELY


def _preparation(facts: Facts) -> Iterator[Cause]:
    """The service retries indefinitely: the cluster falls back to ready, and is prepared again."""
    if facts.nodes is not None or (facts.cluster or {}).get("status") not in (
        Status.READY,
        Status.INSUFFICIENT,
        Status.PREPARING,
    ):
        return
    failed = Counter(match.groups() for event in facts.events if (match := PREPARING_FAILED.match(event["message"])))
    for (name, reason), times in failed.items():
        if times >= RESTARTS:
            yield Cause(
                f"host {name} fails to prepare for the installation, repeatedly: {reason}",
                "fix the condition above; the service retries automatically",
                LIKELY,
            )


def _hosts(facts: Facts) -> Iterator[Cause]:
    for host in sorted(
        (facts.cluster or {}).get("hosts") or [], key=lambda host: host.get("status_info") == FAILED_WITH_CLUSTER
    ):
        name, status, stage = host_name(host), host["status"], (host.get("progress") or {}).get("current_stage")
        if status in BROKEN:
            # At the next refresh the service replaces the reason: the host has stopped communicating.
            medium = next((message for message, __ in _failing(host, {"media-connected"})), None)
            text = medium if medium and status == Status.DISCONNECTED else host.get("status_info", "")
            yield Cause(
                f"host {name} is {status}" + (f" at {stage}" if stage else "") + f": {text}",
                f"ls {facts.access.run_dir}/report/hosts/{shlex.quote(name)}  # its logs, after  {facts.access.verb('gather')}",
                BROKEN[status],
            )
        elif status in (Status.INSUFFICIENT, Status.PENDING_FOR_INPUT):
            for message, grace in _failing(host):
                yield Cause(f"host {name} fails a validation: {message}", facts.restart_command(), grace)


def _warnings(facts: Facts, of: Collection[str]) -> Iterator[Cause]:
    """Validations that fail without blocking a host."""
    for host in (facts.cluster or {}).get("hosts") or []:
        for message, __ in _failing(host, of) if host["status"] != Status.INSTALLED else ():
            yield Cause(f"host {host_name(host)} fails a validation: {message}", facts.restart_command())


def _large_packets(facts: Facts) -> Iterator[Cause]:
    """A network that drops large packets lets a host register, but not pull or fetch anything."""
    return _warnings(facts, {"mtu-valid"})


def _remarks(facts: Facts) -> Iterator[Cause]:
    """The other warnings: no status shows an image that could not be pulled."""
    return _warnings(facts, WARNINGS)


def _cluster(facts: Facts) -> Iterator[Cause]:
    if facts.cluster is None or facts.nodes is not None:
        return
    for message, grace in _failing(facts.cluster):
        yield Cause(f"the cluster fails a validation: {message}", facts.restart_command(), grace)
    last = next((e for e in reversed(facts.events) if e["severity"] in ("error", "critical")), None)
    if last:
        yield Cause(f"last error event: {last['message']}", f"less {facts.access.run_dir}/{RunFile.LAST_EVENTS}")


def _pods(facts: Facts) -> Iterator[Cause]:
    """Containers that fail or do not start; one that has not started yet is only a symptom. The controller's are first."""
    for pod in sorted(facts.pods, key=lambda pod: pod["metadata"].get("namespace") != NAMESPACE):
        if message := failure_of_pod(pod):
            namespace, name = pod["metadata"].get("namespace", "default"), pod["metadata"]["name"]
            yield Cause(
                f"pod {pod_name(pod)}: {message}",
                facts.access.kubectl("describe", "pod", "-n", namespace, name),
                LIKELY,
            )


def _joined(facts: Facts) -> Iterator[Cause]:
    """Hosts that are not nodes. The rendezvous host becomes one only after its reboot."""
    if facts.nodes is None:
        return
    there = {node["metadata"]["name"] for node in facts.nodes}
    for host in (facts.cluster or {}).get("hosts") or []:
        name, stage = host_name(host), (host.get("progress") or {}).get("current_stage")
        if name not in there and stage and (not host.get("bootstrap") or stage == Stage.REBOOTING):
            yield Cause(f"host {name} has not joined the cluster: its last stage is {stage}", facts.console(name))


def _operators(facts: Facts) -> Iterator[Cause]:
    for node in facts.nodes or []:
        ready = next((c for c in (node.get("status") or {}).get("conditions") or [] if c["type"] == "Ready"), None)
        if not ready or ready["status"] != "True":
            yield Cause(
                f"node {node['metadata']['name']} is not Ready: {(ready or {}).get('message', 'no condition')}",
                facts.access.kubectl("describe", "node", node["metadata"]["name"]),
            )
    for message in operator_report(facts.operators or []):
        if message.level == "error" or " Progressing is " in message.text:
            yield Cause(message.text, facts.access.kubectl("get", "clusteroperators"))
