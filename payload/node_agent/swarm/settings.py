"""Settings of a swarm, and the tables of their values."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ....plugins.module_utils.log import visible
from ....plugins.module_utils.plan.topologies import TOPOLOGIES
from ....plugins.module_utils.vocabulary import LAB_VERSION, REGISTRY, FinalizingStage, Stage
from ..protocol import API


class Topology(NamedTuple):
    """`masters` without `arbiters`; a host after these is an arbiter, then come workers. `hosts`: default number.

    `fixed`: it always has that size.
    """

    masters: int
    arbiters: int
    hosts: int
    text: str
    fixed: bool = False

    def size(self, requested: int) -> int:
        """Return how many hosts a cluster has.

        requested: by the settings, 0 for as many as the topology needs. A single node is never more than one.
        """
        return self.hosts if self.fixed else requested or self.hosts


def kinds() -> dict[str, Topology]:
    """Return the topologies that hosts without a BMC can have, which fencing would need."""
    return {
        name: Topology(
            row.master.number,
            row.arbiter.number,
            row.master.number + row.arbiter.number + row.worker.number,
            row.meaning,
            fixed=row.master.number == 1,
        )
        for name, row in TOPOLOGIES.items()
        if not row.fencing
    }


class Profile(NamedTuple):
    """`disks`: (name, drive type, GiB, bus), the first one is installed to. `nics`: names; the first has the address."""

    manufacturer: str
    product: str
    virtual: bool
    cpus: int
    model: str
    memory_gib: int
    boot: str
    disks: tuple[tuple[str, str, int, str], ...]
    nics: tuple[str, ...]
    speed: int


PROFILES = {
    "vm": Profile(
        "Red Hat", "KVM", True, 8, "Intel Xeon Processor (Icelake)", 32, "uefi", (("vda", "HDD", 120, "virtio"),), ("enp1s0",), -1
    ),
    "baremetal": Profile(
        "Dell Inc.", "PowerEdge R650", False, 64, "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", 256, "uefi",
        (("nvme0n1", "SSD", 960, "nvme"), ("sda", "SSD", 480, "scsi"), ("sdb", "HDD", 4000, "scsi"), ("sdc", "HDD", 4000, "scsi")),
        ("eno1", "eno2", "ens1f0", "ens1f1"), 25000,
    ),
    "edge": Profile(
        "Advantech", "EPC-T2286", False, 8, "11th Gen Intel(R) Core(TM) i7-1185GRE @ 2.80GHz", 32, "uefi",
        (("nvme0n1", "SSD", 250, "nvme"),), ("enp0s31f6", "enp2s0"), 1000,
    ),
    "legacy": Profile(
        "HP", "ProLiant DL380p Gen8", False, 16, "Intel(R) Xeon(R) CPU E5-2650 0 @ 2.00GHz", 64, "bios",
        (("sda", "HDD", 600, "scsi"), ("sdb", "HDD", 600, "scsi")), ("eno1", "eno2", "eno3", "eno4"), 1000,
    ),
}  # fmt: skip

#: Registries for which a service requires credentials: those of a real service's images, and the lab's.
REGISTRIES = ("quay.io", "registry.redhat.io", REGISTRY)
#: `user:pass` for each: simulated hosts pull nothing.
PULL_SECRET = json.dumps({"auths": {name: {"auth": "dXNlcjpwYXNz"} for name in REGISTRIES}}, separators=(",", ":"))

FAILURES = {
    "disk": "the installation disk cannot be measured before the installation",
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

THRESHOLDS = {
    "errors": "responses that were errors",
    "error-share": "percentage of requests that were errors",
    "poll-delay": "delay of polls in milliseconds, 99th percentile",
    "latency": "latency of the slowest operation in milliseconds, 99th percentile",
    "installed": "seconds to an installed cluster, 95th percentile",
    "memory": "KiB of memory per agent",
}
DOWNLOADS = {
    "iso": "the discovery ISO, in ranges as virtual media are read",
    "rootfs": "the live system's root file system, as its initramfs fetches it",
    "ignition": "the discovery Ignition config",
}

# Seconds that the boot of the discovery image, the steps and the stages of a real host take; multiplied by `think_time`.
BOOT_SECONDS = 120.0
STEP_SECONDS = {
    "inventory": 1.5, "connectivity-check": 10.0, "free-network-addresses": 5.0, "verify-vips": 2.0, "ntp-synchronizer": 0.5,
    "domain-resolution": 0.2, "dhcp-lease-allocate": 3.0, "installation-disk-speed-check": 6.0,
    "container-image-availability": 30.0, "tang-connectivity-check": 0.5, "api-vip-connectivity-check": 0.5,
    "install": 8.0, "stop-installation": 2.0, "logs-gather": 20.0, "upgrade-agent": 20.0,
}  # fmt: skip
STAGE_SECONDS = {
    Stage.STARTING: 5.0, Stage.INSTALLING: 15.0, Stage.WRITING: 150.0, Stage.CONTROL_PLANE: 30.0,
    Stage.BOOTKUBE: 300.0, Stage.CONTROLLER: 120.0, Stage.REBOOTING: 180.0, Stage.IGNITION: 60.0,
    Stage.CONFIGURING: 120.0, Stage.JOINED: 90.0,
}  # fmt: skip
# The controller's, in its order. Without an OLM operator it goes from the third straight to the last, and the service may call
# the cluster installed any time after the router's certificate.
OLM_STAGES = (FinalizingStage.OLM_MANIFESTS, FinalizingStage.CSV)
FINALIZING_STAGES = (
    FinalizingStage.CLUSTER_OPERATORS, FinalizingStage.ROUTER_CA, FinalizingStage.CSV_INITIALIZATION, *OLM_STAGES, FinalizingStage.DONE,
)  # fmt: skip


MOST = 65_000
# Least and most of the settings that are one number; no end: None.
RANGES: dict[str, tuple[float, float | None]] = {
    "clusters": (1, MOST), "hosts": (0, MOST), "ramp_up": (0, None), "think_time": (0, None), "jitter": (0, 1),
    "network_delay": (0, None), "network_jitter": (0, None), "watch": (0.01, None), "controller_poll": (0.01, None),
    "installer_poll": (0.01, None), "register_interval": (0.01, None), "poll_limit": (0, None), "write_reports": (0, 10_000),
    "logs_kib": (0, 512 * 1024), "duration": (0, None), "stall": (0.1, None), "connections": (1, MOST), "progress": (0.01, None),
}  # fmt: skip
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?")


class SwarmError(ValueError):
    """An invalid setting, or an unusable service; one message for users.

    Parts of it may be a service's: what cannot be printed becomes spaces.
    """

    def __init__(self, text: str) -> None:
        super().__init__(visible(text))


class StoppedRun(SwarmError):
    """Stopped before registered clusters were deleted; one message for users."""


@dataclass(slots=True)
class Settings:
    """`hosts`: per cluster (0: as many as the topology needs). Times in seconds. `failures`: kind -> share of all hosts.

    `topology`: name, as `topology` takes it -> share of the clusters. `part`: of a swarm on several machines, this one's number and how many there are.
    `kubeconfig`: of a hub, where the clusters are resources; the service's URL is then known there. `template`: kind -> what is
    laid over the resources that the swarm makes. `network_delay`: before each request, with as much again at random as `network_jitter`.
    `poll_limit`: most seconds between two polls of a host, for short runs against a service that requests 60 (0: as requested).
    `allow_unfinished`: clusters that are not installed when `duration` is over do not count as a failure.
    `agent`: a program that runs the `share` of the hosts in its dry-run mode; `installer`, `controller`: programs that then install
    these hosts and control their clusters.
    `download`: what each host downloads before it registers, of `DOWNLOADS`.
    `bmc`: address of the hosts' BMCs, by which they are switched on; without it all appear during `ramp_up`.
    `thresholds`: name of a figure of `THRESHOLDS` -> the most it may be.
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
    openshift_version: str = LAB_VERSION.rpartition(".")[0]
    release_image: str = ""
    operators: tuple[str, ...] = ()
    agent_version: str = ""
    pull_secret: str = field(default=PULL_SECRET, repr=False)
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
    download: tuple[str, ...] = ()
    agent: Path | None = None
    installer: Path | None = None
    controller: Path | None = None
    share: float = 0.05
    bmc: str = ""
    bmc_password: str = field(default="", repr=False)
    write_reports: int = 20
    logs_kib: int = 64
    install: bool = True
    keep: bool = False
    duration: float = 0.0
    allow_unfinished: bool = False
    thresholds: dict[str, float] = field(default_factory=dict)
    stall: float = 3600.0
    connections: int = 512
    seed: int = 1
    report: Path | None = None
    progress: float = 1.0

    def __post_init__(self) -> None:
        if self.url or not self.kubeconfig:
            self.url = service_url(self.url)
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if not math.isfinite(value) or value < least or (most is not None and value > most):
                wanted = f"{least} or more" if most is None else f"between {least} and {most}"
                raise SwarmError(f"--{name.replace('_', '-')} {value}: must be {wanted}")
        if not LABEL.fullmatch(self.name):
            raise SwarmError(f"--name {self.name!r}: must be lower-case letters, digits and hyphens, no more than 42")
        self.topology = {alias(name): share for name, share in self.topology.items()}
        of_kind("--topology", self.topology, kinds(), sizes=True)
        of_kind("--hardware", self.hardware, PROFILES)
        for name in self.topology:
            shape = topology(name)
            least = shape.masters + shape.arbiters
            size = self.hosts if len(self.topology) == least == 1 and self.hosts else shape.size(self.hosts)
            if size < least or size > MOST or (least == 1 and size > 1):
                raise SwarmError(f"--hosts {size}: topology {name} needs {least}{' or more' * (least > 1)}")
        if not 1 <= self.part[0] <= self.part[1]:
            raise SwarmError(
                f"--part {self.part[0]}/{self.part[1]}: must be NUMBER/COUNT, with a number from 1 to the count"
            )
        if self.failures:
            of_kind("--failures", self.failures, FAILURES)
        if sum(self.failures.values()) > 1:
            raise SwarmError(f"--failures: the shares add up to {sum(self.failures.values()):g}, the limit is 1")
        unknown = sorted(self.thresholds.keys() - THRESHOLDS.keys())
        if unknown or not all(0 <= most < math.inf for most in self.thresholds.values()):
            raise SwarmError(
                f"--threshold {', '.join(unknown or self.thresholds)}: must be NAME=NUMBER, with a name of {', '.join(THRESHOLDS)}"
            )
        if self.download:
            of_kind("--download", dict.fromkeys(self.download, 1.0), DOWNLOADS)
        self._exclusive()

    def _exclusive(self) -> None:
        """Raise SwarmError for settings that exclude each other."""
        if self.template and (self.discover or not self.kubeconfig):
            raise SwarmError("--template: requires --kubeconfig, and cannot be used with --discover")
        if self.download and self.kubeconfig:
            raise SwarmError("--download: cannot be used with --kubeconfig")
        if not 0 < self.share <= 1:
            raise SwarmError(f"--share {self.share:g}: must be above 0, and 1 at most")
        for name in ("installer", "controller"):
            if getattr(self, name) and not self.agent:
                raise SwarmError(f"--{name}: requires --agent, whose hosts it installs")
        if self.controller and self.operators:
            raise SwarmError("--operators: cannot be used with --controller, whose dry-run mode has no OLM operators")
        if self.bmc and self.ramp_up:
            raise SwarmError("--ramp-up: cannot be used with --bmc, by which hosts are switched on")
        if self.operators and (self.discover or self.kubeconfig):
            raise SwarmError("--operators: cannot be used with --kubeconfig or --discover")

    def public(self) -> dict[str, Any]:
        """Return the settings for a report, without secrets."""
        values = asdict(self)
        for name in ("pull_secret", "agent_token", "user_token", "bmc_password", "template"):
            values.pop(name)
        return values | {
            name: str(values[name] or "") for name in ("report", "kubeconfig", "agent", "installer", "controller")
        }


def service_url(text: str) -> str:
    """Return the URL of a service, without the path of its API and a slash at the end.

    SwarmError for anything but http://HOST:PORT or https://HOST:PORT.
    """
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise SwarmError(f"--url {text!r}: must be like http://HOST:PORT or https://HOST:PORT")
    return text.rstrip("/").removesuffix(API)


def of_kind(flag: str, shares: dict[str, float], known: Collection[str], sizes: bool = False) -> None:
    """Raise SwarmError for missing shares, unknown names, or shares that are not above 0. `sizes`: names may have one, such as ha:150."""
    unknown = {name for name in shares if (name.partition(":")[0] if sizes else name) not in known}
    if unknown or not shares or not all(0 < share < math.inf for share in shares.values()):
        raise SwarmError(
            f"{flag} {', '.join(sorted(unknown or shares)) or 'nothing'}: must be one of {', '.join(known)}, shares above 0"
        )


def alias(name: str) -> str:
    """The name of a topology, or of one of a size, for any of its names."""
    kind, colon, hosts = name.partition(":")
    found = next((key for key, row in TOPOLOGIES.items() if kind in row.aliases), kind)
    return f"{found}{colon}{hosts}"


def topology(name: str) -> Topology:
    """Return the topology of a name.

    name: as `ha`, or `ha:150` for one with so many hosts. SwarmError: the number is invalid; KeyError for an unknown
    name, which `of_kind` excludes.
    """
    kind, __, hosts = name.partition(":")
    if not hosts:
        return kinds()[kind]
    if not hosts.isdecimal():
        raise SwarmError(f"--topology {name!r}: must be NAME:HOSTS, e.g. ha:150")
    return kinds()[kind]._replace(hosts=int(hosts), fixed=True)


def topologies(settings: Settings) -> list[str]:
    """Return the topology of each cluster, in an order whose every prefix approximates the shares."""
    whole = sum(settings.topology.values())
    counts = dict.fromkeys(settings.topology, 0)
    names = []
    for number in range(1, settings.clusters + 1):
        name = max(counts, key=lambda name: settings.topology[name] / whole * number - counts[name])
        counts[name] += 1
        names.append(name)
    return names


def part_of(text: str) -> tuple[int, int]:
    """Return number and count of `2/4`.

    `index/4` is for a pod of an Indexed Job, whose index counts from 0. SwarmError: it is something else.
    """
    number, __, whole = text.partition("/")
    if number == "index":
        index = os.environ.get("JOB_COMPLETION_INDEX", "")
        if not (index.isdecimal() and index.isascii()):
            raise SwarmError(f"--part {text!r}: JOB_COMPLETION_INDEX is {index!r}, must be a number")
        number = str(int(index) + 1)
    if not (number.isdecimal() and whole.isdecimal()):
        raise SwarmError(f"--part {text!r}: want NUMBER/COUNT, as 2/4")
    return int(number), int(whole)


def shares(text: str, what: str) -> dict[str, float]:
    """Return `a=0.1,b=2` or `a,b` (1 each) as a mapping.

    what: the option, for the message. SwarmError names the invalid part. Names and ranges are checked by `of_kind`.
    """
    found = {}
    for part in filter(None, text.split(",")):
        name, __, value = part.strip().partition("=")
        try:
            found[name] = float(value or 1)
        except ValueError:
            raise SwarmError(f"{what} {part!r}: want NAME=NUMBER") from None
    return found
