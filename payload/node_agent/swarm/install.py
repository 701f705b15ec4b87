"""The parts of the installer and of the in-cluster controller, as conversations with the service."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ....plugins.module_utils.vocabulary import LAB_VERSION, ClusterStatus, FinalizingStage, Stage, Status
from ..protocol import API, Conversation, Identity, Request, Response, Wait, exchange
from .hardware import Cluster, Host
from .settings import FINALIZING_STAGES, OLM_STAGES, STAGE_SECONDS, Settings

TRIES = 360
DELETED = "deleted"
BROKEN = "broken"
OVER = (Status.INSTALLED, Status.ERROR, Status.CANCELLED, ClusterStatus.ADDING_HOSTS, DELETED)
UNDER_WAY = (Status.PREPARING, Status.INSTALLING, Status.FINALIZING, Status.PENDING_USER_ACTION)
DONE_MASTERS = 2


@dataclass(slots=True)
class Pace:
    """Durations in seconds: those of a table, times the setting `think_time`.

    Each has a jitter, which is a share of it, so that hosts do not move in step.
    """

    settings: Settings

    def seconds(self, base: float) -> float:
        spread = self.settings.jitter
        return base * self.settings.think_time * random.uniform(1 - spread, 1 + spread)

    def stage(self, name: str) -> float:
        return self.seconds(STAGE_SECONDS.get(name, 0.0))


def persist(request: Request, settings: Settings) -> Conversation:
    """Send as the installer does: retry while the service is unreachable or busy, up to its client's limits.

    The result is the last response. Other refusals are not retried.
    """
    for __ in range(TRIES):
        response: Response = yield request
        if response.ok or not (response.status in (0, 408, 425, 429) or response.status >= 500):
            break
        yield Wait(min(settings.installer_poll, random.uniform(2, 10)))
    return response


def progress(host: Host, settings: Settings, stage: str, info: str = "") -> Conversation:
    """Report a host's stage, and remember it for the others if the service took it.

    info: text next to the stage. Returns the response.
    """
    body = {"current_stage": stage, "progress_info": info}
    response: Response = yield from persist(Request("progress", "PUT", f"{host.me.host_path}/progress", body), settings)
    if response.ok:
        host.cluster.stages[host.number] = stage
    return response


def installer(host: Host, role: str, pace: Pace, archive: bytes) -> Conversation:
    """Send the reports of one host's installer, from its start to the reboot. Returns False if it failed.

    `role`: bootstrap, master, arbiter or worker. `archive`: uploaded as the host's logs.
    """
    cluster, settings = host.cluster, pace.settings
    cluster.roles[host.number] = role
    single = cluster.masters == 1
    yield from persist(Request("cluster", "GET", f"{API}/clusters/{cluster.id}?exclude-hosts=true"), settings)

    def stage(name: str, info: str = "") -> Conversation:
        yield from progress(host, settings, name, info)
        yield Wait(pace.stage(name))

    yield from stage(Stage.STARTING, role)
    if role == "bootstrap":
        yield from persist(
            Request("bootstrap.ign", "GET", f"{API}/clusters/{cluster.id}/downloads/files?file_name=bootstrap.ign"),
            settings,
        )
    # A single node becomes a master only when it has bootstrapped itself.
    yield from stage(Stage.INSTALLING, "master" if role == "bootstrap" and not single else role)
    if single:
        yield from stage(Stage.BOOTKUBE)
    yield from persist(
        Request(
            "host ignition", "GET", f"{API}/infra-env/{host.me.infra_env_id}/hosts/{host.me.host_id}/downloads/ignition"
        ),
        settings,
    )
    yield from progress(host, settings, Stage.WRITING)
    pause = pace.stage(Stage.WRITING) / max(settings.write_reports, 1)
    for number in range(1, settings.write_reports + 1):
        yield Wait(pause)
        if host.failure == "install" and number > settings.write_reports // 2:
            yield from progress(host, settings, Stage.FAILED, "failed executing coreos-installer: simulated failure")
            return False
        yield from progress(host, settings, Stage.WRITING, f"{100 * number // settings.write_reports}%")
    if role == "bootstrap" and not single:
        yield from stage(Stage.CONTROL_PLANE)
        needed = min(cluster.masters - 1, 2) + cluster.arbiters
        yield from poll_until(
            lambda: masters_at(cluster, (Stage.CONFIGURING, Stage.JOINED, Stage.DONE)) >= needed, settings
        )
        yield from stage(Stage.BOOTKUBE)
        yield from stage(Stage.CONTROLLER)
        early = ("", Stage.STARTING, Stage.INSTALLING, Stage.CONTROL_PLANE)
        yield from poll_until(
            lambda: all(
                cluster.stages.get(at, "") not in early for at, role in cluster.roles.items() if role == "worker"
            ),
            settings,
        )
    if role == "worker":
        yield from progress(host, settings, Stage.CONTROL_PLANE)
        while masters_at(cluster, (Stage.DONE,)) < DONE_MASTERS and cluster.status not in OVER:
            yield from persist(Request("masters", "GET", f"{API}/clusters/{cluster.id}/hosts?role=master"), settings)
            yield Wait(settings.installer_poll)
    yield from send_logs(host, archive, settings)
    yield from progress(host, settings, Stage.REBOOTING)
    return True


def poll_until(condition: Callable[[], bool], settings: Settings) -> Conversation:
    while not condition():
        yield Wait(settings.installer_poll)


def masters_at(cluster: Cluster, stages: tuple[str, ...]) -> int:
    return sum(cluster.stages.get(number) in stages for number, role in cluster.roles.items() if role != "worker")


def send_logs(host: Host, archive: bytes, settings: Settings) -> Conversation:
    """Upload logs as `logs_sender` does: two states, the archive, the last state."""
    path = f"{host.me.host_path}/logs-progress"
    for state in ("requested", "collecting"):
        yield from persist(Request("logs progress", "PUT", path, {"logs_state": state}), settings)
    query = f"logs_type=host&host_id={host.me.host_id}&infra_env_id={host.me.infra_env_id}"
    yield from persist(
        Request("logs upload", "POST", f"{API}/clusters/{host.cluster.id}/logs?{query}", archive), settings
    )
    yield from persist(Request("logs progress", "PUT", path, {"logs_state": "completed"}), settings)


def after_reboot(host: Host, role: str) -> tuple[str, ...]:
    """Return the stages that others report for a rebooted host."""
    if host.cluster.masters == 1:
        return (Stage.JOINED, Stage.DONE)
    return (*((Stage.IGNITION,) if role == "worker" else ()), Stage.CONFIGURING, Stage.JOINED, Stage.DONE)


def controller(cluster: Cluster, hosts: list[Host], pace: Pace, clock: Callable[[], float]) -> Conversation:
    """Make one round over rebooted hosts: each advances by a stage when it is due.

    clock: monotonic seconds. It reports in the hosts' names, as the real controller does for hosts that have left their
    installer.
    """
    settings = pace.settings
    for host in hosts:
        now = cluster.stages.get(host.number, "")
        order = (Stage.REBOOTING, *after_reboot(host, cluster.roles.get(host.number, "master")))
        if now not in order or now == Stage.DONE:
            continue
        due = cluster.rebooted.setdefault(host.number, clock() + pace.stage(now))
        if clock() >= due:
            following = order[order.index(now) + 1]
            response = yield from progress(host, settings, following)
            if response.ok:
                cluster.rebooted[host.number] = clock() + pace.stage(following)


def by_rest(cluster: Cluster, settings: Settings) -> Conversation:
    """Return a cluster with its hosts; None if the service does not answer, `DELETED` if it does not exist.

    Hosts are listed separately: the cluster's own view of 150 hosts has their connectivity reports, 10 MB.
    """
    shown: Response = yield from persist(
        Request("cluster", "GET", f"{API}/clusters/{cluster.id}?exclude-hosts=true"), settings
    )
    if shown.status == 404:
        return {"status": DELETED}
    hosts: Response = yield from persist(Request("hosts", "GET", f"{API}/clusters/{cluster.id}/hosts"), settings)
    return {**shown.body, "hosts": hosts.body} if shown.ok and hosts.ok else None


def finalize(cluster: Cluster, pace: Pace, certificate: str) -> Conversation:
    """Send the controller's reports once the cluster is finalizing.

    Returns whether the service accepted the last report; if not, all are sent again in the next round.
    """
    base, settings = f"{API}/clusters/{cluster.id}", pace.settings
    monitored: Response = yield from persist(Request("operators", "GET", f"{base}/monitored-operators"), settings)
    operators: dict[str, list[str]] = {"builtin": [], "olm": []}
    for entry in (monitored.body or ()) if monitored.ok else ():
        operators.setdefault(entry.get("operator_type") or "builtin", []).append(entry["name"])

    def become_available(kind: str, seconds: float) -> Conversation:
        for status in ("progressing", "available"):
            for name in operators[kind]:
                report = {"name": name, "status": status, "status_info": f"{name} is {status}", "version": LAB_VERSION}
                yield from persist(Request("operator", "PUT", f"{base}/monitored-operators", report), settings)
            yield Wait(pace.seconds(seconds))

    for stage in FINALIZING_STAGES:
        if stage in OLM_STAGES and not operators["olm"]:
            continue
        # 400: the service has called the cluster installed already.
        request = Request("finalizing stage", "PUT", f"{base}/progress", {"finalizing_stage": stage}, answers=(400,))
        response: Response = yield from persist(request, settings)
        if response.status == 400:
            break
        if stage == FinalizingStage.CLUSTER_OPERATORS:
            yield from become_available("builtin", 120)
        if stage == FinalizingStage.ROUTER_CA:
            yield from persist(
                Request("ingress certificate", "POST", f"{base}/uploads/ingress-cert", certificate), settings
            )
        if stage == FinalizingStage.OLM_MANIFESTS:
            for kind, name in (("files", "custom_manifests.json"), ("credentials", "kubeconfig-noingress")):
                yield from persist(Request(name, "GET", f"{base}/downloads/{kind}?file_name={name}"), settings)
        if stage == FinalizingStage.CSV:
            yield from become_available("olm", 60)
    last = Request("complete", "POST", f"{base}/actions/complete-installation", {"is_success": True})
    done: Response = yield from persist(last, settings)
    return done.ok


def conduct(
    cluster: Cluster,
    hosts: list[Host],
    pace: Pace,
    clock: Callable[[], float],
    observe: Callable[[Cluster, dict[str, Any]], None],
    certificate: str,
    look: Callable[[], Conversation],
) -> Conversation:
    """Watch a cluster, start its installation when it is ready, act as its controller; return its last status and last view.

    As in an agent-based installation, "ready" requires every expected host of the cluster: the service only requires the
    control plane, and would refuse later hosts. A hub starts by itself, and only then its clusters get an id. `look` reads
    the cluster, with its hosts; `observe` gets each view. A cluster without changes for long is `stalled`; one whose
    preparation fails repeatedly does change. One whose hosts all gave up is `refused`; one with a program that ended too
    early is `broken`. The reports of a controller are not sent where a program is the controller.
    """
    settings = pace.settings
    finalized, seen = False, set[int]()
    last: dict[str, Any] = {}
    cluster.changed = clock()
    while True:
        body: dict[str, Any] | None = yield from look()
        if body is not None:
            last, cluster.status = body, body.get("status", "")
            observe(cluster, body)
        if cluster.status in OVER:
            return cluster.status, last
        if cluster.broken:
            return BROKEN, last
        if all(host.gone for host in hosts):
            return "refused", last
        now = hash((cluster.status, *sorted(cluster.stages.items())))
        if now not in seen:
            seen.add(now)
            cluster.changed = clock()
        elif clock() - cluster.changed > settings.stall:
            return "stalled", last
        known = sum(host.get("status") == Status.KNOWN for host in (body or {}).get("hosts") or ())
        if cluster.status == Status.READY and settings.install and not cluster.namespace and known == cluster.size:
            yield from persist(Request("install", "POST", f"{API}/clusters/{cluster.id}/actions/install"), settings)
        if cluster.status in (Status.INSTALLING, Status.FINALIZING) and not cluster.controlled:
            yield from controller(cluster, hosts, pace, clock)
        if cluster.status == Status.FINALIZING and not finalized and not cluster.controlled:
            finalized = yield from finalize(cluster, pace, certificate)
        yield Wait(
            settings.controller_poll if cluster.status in (Status.INSTALLING, Status.FINALIZING) else settings.watch
        )


def remove(cluster: Cluster) -> Conversation:
    """Delete a cluster with its hosts and infra-env, in any status; one that is being installed is cancelled first.

    Returns whether it is deleted. What is gone already is not an error.
    """
    base = f"{API}/clusters/{cluster.id}"

    def ask(method: str, path: str) -> Conversation:
        return exchange(Request("remove", method, path, answers=(404,)))

    shown: Response = yield from ask("GET", f"{base}?exclude-hosts=true")
    if shown.ok and shown.body["status"] in UNDER_WAY:
        yield from ask("POST", f"{base}/actions/cancel")
    listed: Response = yield from ask("GET", f"{base}/hosts")
    if not listed.status:
        return False
    for host in listed.body if listed.ok else ():
        yield from ask("DELETE", f"{API}/infra-envs/{host['infra_env_id']}/hosts/{host['id']}")
    if cluster.infra_env_id:
        yield from ask("DELETE", f"{API}/infra-envs/{cluster.infra_env_id}")
    deleted: Response = yield from ask("DELETE", base)
    return deleted.ok or deleted.status == 404


def as_controller(cluster: Cluster, settings: Settings) -> Identity:
    """Return the host in whose name the cluster's own requests are sent."""
    return Identity(cluster.infra_env_id, "", settings.agent_version, cluster.token or settings.agent_token)
