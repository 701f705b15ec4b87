"""What plays a recording in the process of a test: the clients of a wait, its clock, and the facts of which `causes` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.client import AssistedClient, path_of
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import shapes as objects
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.client import ClusterClient
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import AssistedError, ClusterError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.model import Plan
from ansible_collections.agentlab.ocp.plugins.module_utils.report import facts, replay
from ansible_collections.agentlab.ocp.plugins.module_utils.report.evidence import Facts
from ansible_collections.agentlab.ocp.plugins.module_utils.shapes import Shape, ShapeError, check
from ansible_collections.agentlab.ocp.plugins.module_utils.state.recording import Player

TEXTS: Shape = {"*": str}


def replayed(player: Player, plan: Plan) -> Facts:
    """Return the facts at the current time of a player. What has another form than expected is left out."""
    nodes = facts._items(player, "/api/v1/nodes", objects.NODES)
    version = player.get("openshift", "/version")
    live = version is not None and version.status == 200
    if not live and version is not None:
        nodes = None
    refused = player.get("assisted", "/infra-envs")
    return Facts(
        plan=plan,
        domains=facts._body(player, "/domains", TEXTS, None),
        consoles=facts._body(player, "/consoles", TEXTS, {}),
        cluster=facts.cluster(player),
        events=facts.events(player),
        nodes=[] if nodes is None and live else nodes,
        operators=facts.operators(player),
        pods=facts._items(player, "/api/v1/pods", objects.PODS) or (),
        reachable=facts._body(player, "/reachable", {"*": bool}, {}),
        services=facts._body(player, "/services", TEXTS, {}),
        node_zero=facts._units(player),
        rendezvous_ip=facts._body(player, "/rendezvous-ip", str, ""),
        refusal=f"HTTP 401: {refused.body}" if refused and refused.status == 401 else "",
        refused=facts._body(player, "/refused", TEXTS, {}),
        installer=facts._body(player, "/installer", str, ""),
    )


class Clock:
    """The time of a recording (epoch) for a client in this process: sleeping takes none."""

    def __init__(self, player: Player) -> None:
        self.player = player
        self.start = player.wall()

    def time(self) -> float:
        return self.start + self.player.now

    def sleep(self, seconds: float) -> None:
        self.player.seek(self.player.now + seconds)


class Service(AssistedClient):
    """A client of the recorded service."""

    def __init__(self, player: Player) -> None:
        super().__init__("replay", None)
        self.player = player

    def get(self, path: str, **query: str) -> Any:
        found = replay.service_answer(self.player, path_of(path, query))
        if found is None or not found.status:
            raise AssistedError(f"{self.base}{path}: no answer")
        if found.status >= 300:
            raise AssistedError(f"{self.base}{path}: HTTP {found.status}: {found.body}")
        return found.body


class Cluster(ClusterClient):
    """A client of the recorded OpenShift API."""

    def __init__(self, player: Player, kubeconfig: Path) -> None:
        self.player, self.kubeconfig, self.server = player, kubeconfig, "replay:"

    def find(self, path: str, shape: Shape = dict) -> dict[str, Any] | None:
        found = replay.openshift(self.player, path)
        if found is not None and found.status == 404:
            return None
        if found is None or found.status != 200:
            raise ClusterError(f"GET {path}: " + (f"HTTP {found.status}" if found and found.status else "no answer"))
        try:
            check(found.body, shape, "the answer")
        except ShapeError as error:
            raise ClusterError(f"GET {path}: {error}") from error
        body: dict[str, Any] = found.body
        return body
