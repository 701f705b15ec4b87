"""What a swarm is to be, and the tables behind its choices."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Topology(NamedTuple):
    """`masters` without `arbiters`; a host after these is an arbiter, then come workers. `hosts`: how many when none are asked for."""

    masters: int
    arbiters: int
    hosts: int
    text: str

    def size(self, asked: int) -> int:
        """How many hosts a cluster has; a single node is never more than one."""
        return 1 if self.masters == 1 else asked or self.hosts


TOPOLOGIES = {
    "sno": Topology(1, 0, 1, "single node"),
    "compact": Topology(3, 0, 3, "three control-plane nodes"),
    "ha": Topology(3, 0, 5, "three control-plane nodes and workers"),
    "tna": Topology(2, 1, 3, "two control-plane nodes and an arbiter"),
    "4_masters": Topology(4, 0, 4, "four control-plane nodes"),
    "5_masters": Topology(5, 0, 5, "five control-plane nodes"),
}

FAILURES = {
    "disk": "the installation disk is too slow (250 ms)",
    "image": "the release's images cannot be pulled",
    "ntp": "no time source answers",
    "dns": "the cluster's names do not resolve",
    "memory": "the host has 1 GiB of memory",
    "isolated": "the host reaches no other host",
    "install": "the installer fails while it writes the disk",
    "vanish": "the host falls silent after its first replies",
    "restart": "the agent is restarted once and registers again",
    "lossy": "every tenth request of the host is lost",
}

# Seconds that the steps and stages of a real host take; multiplied by `think_time`.
STEP_SECONDS = {
    "inventory": 1.5, "connectivity-check": 10.0, "free-network-addresses": 5.0, "verify-vips": 2.0, "ntp-synchronizer": 0.5,
    "domain-resolution": 0.2, "dhcp-lease-allocate": 3.0, "installation-disk-speed-check": 6.0,
    "container-image-availability": 30.0, "tang-connectivity-check": 0.5, "api-vip-connectivity-check": 0.5,
    "install": 8.0, "stop-installation": 2.0, "logs-gather": 20.0, "upgrade-agent": 20.0,
}  # fmt: skip
STAGE_SECONDS = {
    "Starting installation": 5.0, "Installing": 15.0, "Writing image to disk": 150.0, "Waiting for control plane": 30.0,
    "Waiting for bootkube": 300.0, "Waiting for controller": 120.0, "Rebooting": 180.0, "Waiting for ignition": 60.0,
    "Configuring": 120.0, "Joined": 90.0,
}  # fmt: skip
# The controller's, in its order. Without an OLM operator it goes from the third straight to the last, and the service may call
# the cluster installed any time after the router's certificate.
OLM_STAGES = ("Applying olm manifests", "Waiting for olm operators csv")
FINALIZING_STAGES = (
    "Waiting for cluster operators", "Adding router ca", "Waiting for olm operators csv initialization", *OLM_STAGES, "Done",
)  # fmt: skip


class SwarmError(ValueError):
    """A setting that makes no sense, or a service that cannot be used; one message for people."""


@dataclass(slots=True)
class Settings:
    """`hosts`: per cluster (0: as many as the topology needs). Times in seconds. `failures`: kind -> share of all hosts.

    `topology`: name -> share of the clusters. `part`: of a swarm on several machines, this one's number and how many there are.
    `kubeconfig`: of a hub, where the clusters are resources; the service's URL is then known there. `template`: kind -> what is
    laid over the resources that the swarm makes. `network_delay`: before each request, with as much again at random as `network_jitter`.
    `poll_limit`: most seconds between two polls of a host, for short runs against a service that asks for 60 (0: as it asks).
    `operators`: OLM operators that each cluster is registered with. `stall`: a cluster of which nothing changes for so long is given up.
    """

    url: str = ""
    kubeconfig: Path | None = None
    template: dict[str, dict[str, Any]] = field(default_factory=dict)
    clusters: int = 1
    hosts: int = 0
    topology: dict[str, float] = field(default_factory=lambda: {"compact": 1.0})
    part: tuple[int, int] = (1, 1)
    discover: bool = False
    name: str = "swarm"
    base_domain: str = "swarm.test"
    openshift_version: str = "4.22"
    release_image: str = ""
    operators: tuple[str, ...] = ()
    agent_version: str = ""
    pull_secret: str = field(default='{"auths":{"registry.agentlab.test":{"auth":"dXNlcjpwYXNz"}}}', repr=False)
    agent_token: str = field(default="", repr=False)
    user_token: str = field(default="", repr=False)
    insecure: bool = False
    cacert: str = ""
    ramp_up: float = 0.0
    think_time: float = 1.0
    jitter: float = 0.3
    network_delay: float = 0.0
    network_jitter: float = 0.0
    failures: dict[str, float] = field(default_factory=dict)
    hardware: dict[str, float] = field(default_factory=lambda: {"vm": 1.0})
    watch: float = 30.0
    controller_poll: float = 30.0
    installer_poll: float = 5.0
    register_interval: float = 60.0
    poll_limit: float = 0.0
    write_reports: int = 20
    logs_kib: int = 64
    install: bool = True
    keep: bool = False
    duration: float = 0.0
    stall: float = 3600.0
    connections: int = 512
    seed: int = 1
    report: Path | None = None
    progress: float = 1.0

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")) and not (self.kubeconfig and not self.url):
            raise SwarmError(f"url {self.url!r}: must begin with http:// or https://")
        self.url = self.url.rstrip("/")
        wrong = set(self.topology) - set(TOPOLOGIES)
        if wrong or not self.topology or min(self.topology.values()) <= 0:
            raise SwarmError(f"topology {', '.join(sorted(wrong or self.topology))}: must be of {', '.join(TOPOLOGIES)}, shares above 0")
        for name in self.topology:
            shape = TOPOLOGIES[name]
            least = shape.masters + shape.arbiters
            if shape.size(self.hosts) < least or (len(self.topology) == least == 1 and self.hosts > 1):
                raise SwarmError(f"hosts {self.hosts}: topology {name} needs {least}{' or more' * (least > 1)}")
        if self.hosts > 65_000 or not 1 <= self.clusters <= 65_000:
            raise SwarmError(f"clusters {self.clusters}, hosts {self.hosts}: both must be between 1 and 65000")
        if not 1 <= self.part[0] <= self.part[1]:
            raise SwarmError(f"part {self.part[0]}/{self.part[1]}: must be between 1/{self.part[1]} and {self.part[1]}/{self.part[1]}")
        unknown = set(self.failures) - set(FAILURES)
        if unknown:
            raise SwarmError(f"failures {', '.join(sorted(unknown))}: must be of {', '.join(FAILURES)}")
        if sum(self.failures.values()) > 1 or min(self.failures.values(), default=0) < 0:
            raise SwarmError(f"failures {self.failures}: shares must be between 0 and 1, and no more than 1 in all")

    def public(self) -> dict[str, Any]:
        """The settings for a report, without what is secret."""
        values = asdict(self)
        for name in ("pull_secret", "agent_token", "user_token", "template"):
            values.pop(name)
        return values | {name: str(values[name] or "") for name in ("report", "kubeconfig")}


def topologies(settings: Settings) -> list[str]:
    """The topology of each cluster: any first few of them are as near to the wanted shares as can be."""
    whole = sum(settings.topology.values())
    counts = dict.fromkeys(settings.topology, 0)
    names = []
    for number in range(1, settings.clusters + 1):
        name = max(counts, key=lambda name: settings.topology[name] / whole * number - counts[name])
        counts[name] += 1
        names.append(name)
    return names


def part_of(text: str) -> tuple[int, int]:
    """`2/4` as numbers. SwarmError: it is something else."""
    number, __, whole = text.partition("/")
    if not (number.isdigit() and whole.isdigit()):
        raise SwarmError(f"--part {text!r}: want NUMBER/COUNT, as 2/4")
    return int(number), int(whole)


def shares(text: str, what: str) -> dict[str, float]:
    """`a=0.1,b=2` or `a,b` (1 each) as a mapping. SwarmError names the bad part."""
    found = {}
    for part in filter(None, text.split(",")):
        name, __, value = part.strip().partition("=")
        try:
            found[name] = float(value or 1)
        except ValueError:
            raise SwarmError(f"{what} {part!r}: want NAME=NUMBER") from None
    return found
