"""Faults that a profile can inject: kinds and their fields, and the effects of those that are part of a plan.

A fault is either in the plan from the start (`in_plan`), or has a trigger during the installation: then the lab's process
`faults` (`sandbox.faultd`) into machines, cables, media and services. Programs in the nodes have no fault code.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypedDict, cast

from ..vocabulary import STAGES, STATUSES, Component
from .fields import Name, OneOf, Range, Role, TaggedMapping
from .shapes import fields

BOOT = "boot"
"""The trigger of what happens as soon as a machine starts."""

EXTRA: Role = "extra"
NO_SERIAL = "no-disk-has-this"
"""A serial number that no disk of the lab has; the format of a profile's serial numbers allows it, a check does not."""
FAILS = "fails"
"""As an override of a component: each of its programs exits with an error at once."""

ON_BRIDGE = ("arp_one_way", "delay", "loss", "rate")
"""The kinds that take effect at a bridge of the sandbox."""
MEDIA = ("eject", "slow_media", "boot_order")
"""Kinds that are about a medium, which network boots lack."""

_COMPONENTS = (
    Component.API_SERVER, Component.ORCHESTRATOR, Component.CSR_APPROVER, Component.MACHINE_CONFIG_OPERATOR, Component.HYPERKUBE,
    Component.CLUSTER_ETCD_OPERATOR,
)  # fmt: skip
SERVICES = ("registry", "ntp", "bmc", "http")
When = Annotated[str, OneOf((BOOT, *STAGES, *STATUSES))]
Seconds = Annotated[int, Range(1, 86400)]


class _Kind(TypedDict):
    kind: str
    """What goes wrong."""


class Fault(_Kind, total=False):
    """Something that goes wrong on purpose; see docs/faults.md. Which fields there are depends on `kind`."""

    node: Name
    """The machine that it happens to."""
    nic: Name
    """Its interface, eth0 unless given."""
    peer: Name
    """The machine whose replies it does not receive."""
    of: Name
    """The machine whose host name it has."""
    mtu: Annotated[int, Range(576, 9216)]
    """The largest packet that the switch port passes, in bytes."""
    milliseconds: Annotated[int, Range(1, 60000)]
    """By how long each packet is late, in either direction."""
    percent: Annotated[int, Range(1, 100)]
    """How many of a hundred packets are lost, in either direction."""
    kbits: Annotated[int, Range(8, 10**7)]
    """The rate of either direction, in kilobits per second."""
    bytes_per_second: Annotated[int, Range(1024, 10**9)]
    """How fast the machine reads its medium at most."""
    service: Annotated[str, OneOf(SERVICES)]
    """The service of the lab that ends."""
    component: Name
    """The component of the release."""
    offset: Annotated[int, Range(-(10**9), 10**9)]
    """By how many seconds the clock is off."""
    when: When
    """The trigger: `boot`, or an installation stage or status of the node that it has reached."""
    seconds: Seconds | None
    """How long it lasts; null, or not given: until the end."""


class Kind(NamedTuple):
    """One kind: what it does, its symptom, the fields of its own, which of them are required. docs/faults.md is made of it.

    in_plan: it is in the plan and has no trigger; lasting: it cannot be undone, so it takes no `seconds`; components:
    the only ones that it can be about.
    """

    effect: str
    symptom: str
    fields: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    in_plan: bool = False
    lasting: bool = False
    components: tuple[str, ...] = ()

    def names(self) -> tuple[str, ...]:
        """Return the fields that a profile can give in addition to `kind`.

        A fault with a trigger has `when`; one that can be undone also has `seconds`.
        """
        trigger: tuple[str, ...] = () if self.in_plan else ("when",) if self.lasting else ("when", "seconds")
        return (*self.fields, *trigger)


KINDS: dict[str, Kind] = {
    "power_off": Kind(
        "powers the machine off, and on again after `seconds`",
        "`VM ... is shut off`",
        ("node",),
        ("node",),
    ),
    "pause": Kind(
        "pauses the machine: a slow worker, an agent that disconnects",
        "`host ... is disconnected`, or `error` after the service's three minutes",
        ("node",),
        ("node",),
    ),
    "link_down": Kind(
        "unplugs the cable",
        "at `boot`: `host ... never registered`",
        ("node", "nic"),
        ("node",),
    ),
    "mtu": Kind(
        "limits the packet size of the switch port",
        "Validation `mtu-valid` warns where the network's MTU is not 1500; large packets are lost.",
        ("node", "nic", "mtu"),
        ("node", "mtu"),
    ),
    "delay": Kind(
        "adds latency in each direction",
        "Requests and pulls are slow.",
        ("node", "nic", "milliseconds"),
        ("node", "milliseconds"),
    ),
    "loss": Kind(
        "drops packets at random in each direction: 45 loses 70 % of pings",
        "validation `sufficient-packet-loss-requirement-for-role`",
        ("node", "nic", "percent"),
        ("node", "percent"),
    ),
    "rate": Kind(
        "limits the rate in each direction, in kbit/s",
        "Pulls and writing the image to disk take long; requests that time out are retried.",
        ("node", "nic", "kbits"),
        ("node", "kbits"),
    ),
    "arp_one_way": Kind(
        "drops the peer's ARP and neighbour discovery replies to the node",
        "validation `belongs-to-majority-group`",
        ("node", "peer"),
        ("node", "peer"),
    ),
    "eject": Kind(
        "removes the medium from the running machine",
        "validation `media-connected`, status `disconnected`",
        ("node",),
        ("node",),
    ),
    "slow_media": Kind(
        "limits how fast the machine reads its medium",
        "The host registers late; a live system reads about 300 MB.",
        ("node", "bytes_per_second"),
        ("node", "bytes_per_second"),
    ),
    "disk_lost": Kind(
        "unplugs the first disk",
        "`host ... is error at Writing image to disk: Failed - failed after 3 attempts`",
        ("node",),
        ("node",),
        lasting=True,
    ),
    "service_down": Kind(
        "stops `registry`, `ntp`, `bmc` or `http` of the lab",
        "`the lab's registry does not answer`; ntp: validation `ntp-synced` warns; bmc: the boot is refused",
        ("service",),
        ("service",),
    ),
    "image_missing": Kind(
        "removes the image of a component from the registry",
        "`Failed to fetch container images`; at `boot`: a unit that cannot pull",
        ("component",),
        ("component",),
    ),
    "component_fails": Kind(
        "makes the programs in the image of a component exit with an error",
        "for `agent-installer-api-server`: `assisted-service never started`",
        ("component",),
        ("component",),
        in_plan=True,
        components=_COMPONENTS,
    ),
    "clock": Kind(
        "shifts the machine's clock by `offset` seconds; chrony corrects it unless ntp is down",
        "on hosts other than node zero: validation `time-synced-between-host-and-service`",
        ("node", "offset"),
        ("node", "offset"),
        in_plan=True,
    ),
    "wrong_token": Kind(
        "boots the machine from an image of another run, whose tokens this service did not sign",
        "`host ... is refused by the assisted service: ... HTTP 401`",
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "expired_token": Kind(
        "expires the tokens of the image before it is booted; otherwise they never expire",
        "`the assisted service ... refuses this run's token (HTTP 401): ... expired`",
        in_plan=True,
    ),
    "unsigned_image": Kind(
        "makes the live system require signatures on the payload's images, which have none",
        "`assisted-service never started: ... A signature was required, but no signature exists`",
        in_plan=True,
    ),
    "boot_order": Kind(
        "puts the medium before the disk in the boot order",
        "`installing-pending-user-action`, until the medium is removed and the machine is powered off",
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "dns_wildcard": Kind(
        "resolves `*.<cluster domain>`",
        "validation `dns-wildcard-not-configured`",
        in_plan=True,
    ),
    "duplicate_hostname": Kind(
        "gives two hosts the same name",
        "validation `hostname-unique`",
        ("node", "of"),
        ("node", "of"),
        in_plan=True,
    ),
    "wrong_root_device": Kind(
        "gives the node a root device hint that matches none of its disks",
        "`... No disk of the host matches the root device hints`, while the cluster stays `ready`",
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "fence_fails": Kind(
        "gives the cluster a wrong password of the node's BMC: it cannot fence the node",
        "once the node freezes: the API does not answer, as long as the node is frozen",
        ("node",),
        ("node",),
        in_plan=True,
    ),
    "extra_host": Kind(
        "boots an additional machine, `extra-0`, from the image (DHCP)",
        "`host ... is not part of this plan`",
        in_plan=True,
    ),
}


@functools.cache
def _in_profile(kind: str) -> tuple[Mapping[str, Any], Collection[str]]:
    """Return the fields of a fault in a profile, and those that are required."""
    row, types = KINDS[kind], fields(Fault)
    known = {name: types[name] for name in row.names()}
    if "seconds" in known:
        known["seconds"] = Seconds
    if row.components:
        known["component"] = Annotated[str, OneOf(row.components)]
    return known, row.required


@functools.cache
def _in_plan(kind: str) -> tuple[Mapping[str, Any], Collection[str]]:
    """Return the fields of a fault in a plan, which `complete` has filled in: all of them."""
    known = {**_in_profile(kind)[0], **({} if KINDS[kind].in_plan else {"seconds": Seconds | None})}
    return known, known.keys()


class WithFaults(TypedDict):
    """What this module reads of a plan. `model.Plan` has it, and is made of types of this module."""

    faults: list[Fault]


_EFFECTS = {name: kind.effect for name, kind in KINDS.items()}
ProfileFault = Annotated[Fault, TaggedMapping("kind", _EFFECTS, _in_profile)]
PlanFault = Annotated[Fault, TaggedMapping("kind", _EFFECTS, _in_plan)]


def complete(fault: Mapping[str, Any]) -> Fault:
    """Return a fault of a profile with its defaults: at `boot`, on `eth0`, permanent (`seconds: null`).

    `fault` has passed the checks. What its kind has no field for is not added.
    """
    kind = KINDS[fault["kind"]]
    defaults: dict[str, Any] = {} if kind.in_plan else {"when": BOOT, "seconds": None}
    return cast(Fault, {**defaults, **({"nic": "eth0"} if "nic" in kind.fields else {}), **fault})


def of_kind(plan: WithFaults, kind: str, node: str | None = None) -> Iterator[Fault]:
    """Yield the faults of a kind in a plan, or those of one of its nodes.

    `node` is a name; a fault without a node, such as one of a service, belongs to none.
    """
    return (fault for fault in plan["faults"] if fault["kind"] == kind and node in (None, fault.get("node")))
