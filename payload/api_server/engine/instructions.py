"""What agents are asked to do at a poll."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from ....plugins.module_utils.vocabulary import Status
from .. import steps, validations
from ..bodies import Step, Steps
from ..config import Config
from ..objects import Cluster, Host, InfraEnv
from ..prepare import Render
from ..store import Store
from .reports import Reports


class Instructions(Reports):
    """Chooses the steps of a host.

    One of the layers of `Engine`. It remembers in memory what each host was given, so that a step with a long run is
    not ordered twice; after a restart of the service every step is due again.
    """

    def __init__(
        self, config: Config, store: Store, render: Render | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        super().__init__(config, store, render, clock)
        #: Per cluster: when checks were admitted in the last minute, and the hosts that were served.
        self._admitted: dict[str, tuple[deque[float], set[str]]] = {}
        #: Per host: step type -> its last arguments, and when they were sent.
        self._given: dict[str, dict[str, tuple[list[str], float]]] = {}

    def peers(self, host: Host) -> str | None:
        """Return the argument of connectivity-check for a host: a JSON list with the other hosts.

        None without peers, or when the cluster's quota of this minute (`CONNECTIVITY_CHECKS_PER_MINUTE`) is exhausted.
        The quota applies to clusters with more hosts than it; hosts take turns. A call that returns a text counts.
        """
        cluster_id = host.get("cluster_id", "")
        members = self.hosts_of(cluster_id)
        cache = self._peers.setdefault(cluster_id, {})
        if len(members) != len(cache) or host["id"] not in cache:
            for ident in members:
                if ident not in cache:
                    found = self.inventories.get(ident)
                    cache[ident] = steps.peer_entry(members[ident], found) if found else ""
            for ident in [ident for ident in cache if ident not in members]:
                del cache[ident]
        entries = [
            text
            for ident, text in cache.items()
            if text
            and ident != host["id"]
            and members[ident]["status"] not in (Status.DISCOVERING, Status.DISCONNECTED)
        ]
        if not entries:
            return None
        limit = self.config.number("CONNECTIVITY_CHECKS_PER_MINUTE", self.settings(cluster_id))
        if len(members) > limit:
            now, (admitted, turn) = self.clock(), self._admitted.setdefault(cluster_id, (deque(), set()))
            while admitted and not 0 <= now - admitted[0] < 60:
                admitted.popleft()
            if len(turn) > len(entries):
                turn.clear()
            if len(admitted) >= limit or host["id"] in turn:
                return None
            admitted.append(now)
            turn.add(host["id"])
        return f"[{','.join(entries)}]"

    def instructions(self, host: Host) -> Steps:
        """Return the response to a poll of a host (`v2GetNextSteps`): what its agent is to do, and when to poll again.

        An agent with another image than the service's gets an upgrade instead, before the installation and if
        `ENABLE_UPGRADE_AGENT` allows it. Steps that were recently given are left out.
        """
        cluster: Cluster = self.cluster_of(host) or {}
        infra_env: InfraEnv = self.infra_envs.get(host["infra_env_id"]) or {}
        settings = self.settings(host.get("cluster_id"))
        ntp = _ntp_sources(self.config.get("NTP_DEFAULT_SERVER"), infra_env, cluster)
        agent = self.config.image("AGENT_DOCKER_IMAGE")
        old = host.get("discovery_agent_version")
        upgrade = (
            agent
            if agent
            and old
            and old != agent
            and self.config.flag("ENABLE_UPGRADE_AGENT", settings)
            and host["status"]
            in (Status.DISCOVERING, Status.INSUFFICIENT, Status.KNOWN, Status.PENDING_FOR_INPUT, Status.DISCONNECTED)
            else ""
        )
        if upgrade:
            self.event("upgrade_agent_started", host=host, agent_image=upgrade)
        view = steps.StepView(
            host=host,
            cluster=cluster,
            infra_env=infra_env,
            inventory=self.inventories.get(host["id"], {}),
            peers=lambda: self.peers(host),
            images=self.images(cluster),
            needed_images=self.needed_images(cluster),
            release_host=self.release_host(cluster),
            ntp=ntp,
            settings=lambda name: self.seconds(name, host.get("cluster_id")),
            check_cvo=self.config.flag("CHECK_CLUSTER_VERSION", settings),
            cluster_hosts=self.hosts_of(host.get("cluster_id", "")),
        )
        interval = max(1, round(self.seconds("AGENT_NEXT_INSTRUCTION_SECONDS", host.get("cluster_id"))))
        disabled = frozenset(filter(None, self.config.setting("DISABLED_STEPS", settings).split(",")))
        answer = steps.instructions(view, validations.is_day2(cluster), interval, disabled, upgrade)
        answer["instructions"] = self._due(host, answer["instructions"])
        return answer

    def _due(self, host: Host, found: list[Step]) -> list[Step]:
        """Return the steps of `found` that the host did not recently get with the same arguments.

        Checks are repeated after STEP_REPEAT_SECONDS. Where agents poll more often than upstream's, a step that changes the
        host is not ordered again while its reply is outstanding: agents start a container for each order, and the second
        fails because of the name of the first. A new status, a failure, a new registration or the end of the step's time
        end the wait.
        """
        given, now, due = self._given.setdefault(host["id"], {}), self.clock(), []
        cluster_id = host.get("cluster_id")
        often = self.seconds("AGENT_NEXT_INSTRUCTION_SECONDS", cluster_id) < steps.UPSTREAM_POLL
        for step in found:
            kind = step["step_type"]
            args, when = given.get(kind, ([], 0.0))
            pause = 0.0
            if kind in steps.CHECKS:
                pause = self.seconds("STEP_REPEAT_SECONDS", cluster_id)
            elif often and kind in steps.ONCE and when >= float(host.get("_status_at") or 0):
                pause = self.seconds(steps.ONCE[kind], cluster_id) + steps.GRACE
            if pause and args == step["args"] and 0 <= now - when < pause:
                continue
            given[kind] = (step["args"], now)
            due.append(step)
        return due

    def replied(self, host_id: str, step_type: str, code: int) -> None:
        """Record a step's reply, so that the step can be ordered again if it failed or is over.

        `code` is the exit code of the agent's program. The installer is started by a step that replies at once and
        continues to run: success does not end it.
        """
        if code != 0 or (step_type in steps.ONCE and step_type != "install"):
            self.ask_again(host_id, step_type)

    def ask_again(self, host_id: str, step_type: str | None = None) -> None:
        """Discard the record that a host got a step, or all of them: it failed, or its agent is new.

        `step_type` None discards all. Every step is then due at the next poll, if the host's status still calls for it.
        """
        if step_type is None:
            self._given.pop(host_id, None)
        else:
            self._given.get(host_id, {}).pop(step_type, None)


def _ntp_sources(default: str, infra_env: InfraEnv, cluster: Cluster) -> str:
    """Return the time sources for a host: the cluster's if it has some, else its infra-env's."""
    for owner, additional in ((cluster, "additional_ntp_source"), (infra_env, "additional_ntp_sources")):
        if owner.get("ntp_sources") or owner.get(additional):
            return str(owner.get("ntp_sources") or owner.get(additional))
    return default
