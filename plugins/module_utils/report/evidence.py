"""What is known of a run when its causes are looked for: the facts that `facts` collects and `causes` reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..plan import ipi
from ..plan.access import Access
from ..plan.machines import virtual
from ..plan.model import Plan
from ..vocabulary import RunFile

RESTARTS = 3
"""After as many restarts, a unit is not expected to start by itself, nor a preparation to succeed."""


class Unit(NamedTuple):
    """A systemd unit: its active state, number of restarts, the last error in its journal.

    state: systemd's ActiveState ("active", "activating", "failed", ...); restarts: NRestarts; said: one line, empty for
    a unit that runs without restarts.
    """

    state: str
    restarts: int = 0
    said: str = ""

    def unhealthy(self, name: str) -> bool:
        """Return whether it has failed. Units that register are restarted while they wait for the service.

        name: of the unit without `.service`. Restarts count only for units whose name starts with `assisted-service`.
        """
        return self._hopeless or (self.restarts > 0 and name.startswith("assisted-service"))

    def broken(self, name: str) -> bool:
        """Return whether it will not start by itself.

        name: as for `unhealthy`. A failed unit does not start by itself, nor does one whose image is rejected; one that was
        restarted `RESTARTS` times is not expected to.
        """
        return self.unhealthy(name) and (self._hopeless or self.restarts >= RESTARTS)

    @property
    def _hopeless(self) -> bool:
        """Whether it has failed, or pulls an image without an end that the host's signature policy rejects."""
        return self.state == "failed" or "Source image rejected" in self.said


@dataclass
class Facts:
    """Facts that gather collected. Anything that could not be queried is None or empty.

    plan: the plan; domains: libvirt domain -> state ("running", "shut off", ...); consoles: domain -> last text of its last boot;
    cluster, events: as last reported by the service; nodes, operators, pods: of the OpenShift API; reachable: host name -> ssh
    answered; services: lab service -> "" or its error; node_zero: units of the rendezvous host, in the order in which they need each
    other; rendezvous_ip: the image's rendezvous address; refusal: the service's error for this run's token;
    refused: host name -> why the service refused it, according to its agent; installer: why the last `openshift-install
    create cluster` failed, of `flow: ipi`; run_dir: the run directory, absolute.
    """

    plan: Plan
    domains: dict[str, str] | None = None
    consoles: dict[str, str] = field(default_factory=dict)
    cluster: dict[str, Any] | None = None
    events: Sequence[dict[str, Any]] = ()
    nodes: list[dict[str, Any]] | None = None
    operators: list[dict[str, Any]] | None = None
    pods: Sequence[dict[str, Any]] = ()
    reachable: dict[str, bool] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    node_zero: dict[str, Unit] = field(default_factory=dict)
    rendezvous_ip: str = ""
    refusal: str = ""
    refused: dict[str, str] = field(default_factory=dict)
    installer: str = ""
    run_dir: Path | None = None

    @property
    def ipi(self) -> bool:
        """Whether the cluster is one of `flow: ipi`, which has no assisted service."""
        return ipi.bootstrap(self.plan) is not None

    @property
    def access(self) -> Access:
        """The commands that lead into the lab.

        Without a run directory in the facts, the commands name `runs/CLUSTER`.
        """
        return Access(self.plan, self.run_dir or Path("runs") / self.plan["cluster"]["name"])

    def console(self, name: str) -> str:
        """Return the command that shows the console log of a node, by its host name.

        name: of a host, short or fully qualified. For a host that is not in the plan there is no such command, only a
        hint.
        """
        domain = next(
            (node["domain"] for node in virtual(self.plan["nodes"]) if node["name"] == name.split(".")[0]), None
        )
        return self.access.console(domain) if domain else "read its console log"

    def restart_command(self) -> str:
        """Return the command that starts over with a corrected profile.

        Both commands are in one shell line: destroy the cluster, then deploy the profile of the run directory.
        """
        profile = f"{self.access.run_dir}/{RunFile.PROFILE}"
        return f"correct {profile}, then: {self.access.verb('destroy')} && {self.access.verb('deploy', profile)}"
