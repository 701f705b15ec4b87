"""Faults that a profile can inject: what there is, with the fields of each, and what those do that are part of a plan.

A fault either stands in the plan from the start (`in_plan`), or happens at a moment of the installation: then the lab's process
`faults` (`sandbox.faultd`) does it to machines, cables, media and services. Programs in the nodes know nothing of faults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..vocabulary import STAGES, STATUSES, Component
from .formats import INTEGER
from .model import Plan, Role

BOOT = "boot"
"""The moment at which a machine starts."""

EXTRA: Role = "extra"
FAILS = "fails"
"""As an override of a component: each of its programs ends at once with an error."""

_TEXT: dict[str, Any] = {"type": "string", "format": "name"}
_WHEN: dict[str, Any] = {"enum": [BOOT, *STAGES, *STATUSES]}
_SECONDS: dict[str, Any] = {"type": "integer", "format": INTEGER, "minimum": 1, "maximum": 86400}
_COMPONENTS = (
    Component.API_SERVER, Component.ORCHESTRATOR, Component.CSR_APPROVER, Component.MACHINE_CONFIG_OPERATOR, Component.HYPERKUBE,
)  # fmt: skip


class Fault(NamedTuple):
    """One kind: its meaning, what comes of it, the JSON schema of its own fields, which of them are needed.

    in_plan: it stands in the plan and has no moment; lasting: it cannot be undone, so it takes no `seconds`.
    """

    meaning: str
    ending: str
    fields: Mapping[str, dict[str, Any]] = MappingProxyType({})
    required: tuple[str, ...] = ()
    in_plan: bool = False
    lasting: bool = False

    def schema(self, kind: str) -> dict[str, Any]:
        """Return the JSON schema of a fault of this kind in a profile."""
        moment = {} if self.in_plan else {"when": _WHEN} | ({} if self.lasting else {"seconds": _SECONDS})
        return {
            "type": "object",
            "properties": {"kind": {"const": kind}, **self.fields, **moment},
            "additionalProperties": False,
            "required": list(self.required),
        }


KINDS: dict[str, Fault] = {
    "power_off": Fault("the machine loses its power", "VM ... is shut off", {"node": _TEXT}, ("node",)),
    "pause": Fault("the machine stands still", "host ... is disconnected, or slow", {"node": _TEXT}, ("node",)),
    "link_down": Fault(
        "the cable of a network card is pulled; at `boot`: the host never registers",
        "host ... never registered, or is disconnected",
        {"node": _TEXT, "nic": _TEXT},
        ("node",),
    ),
    "mtu": Fault(
        "the switch port of a network card passes smaller packets only",
        "validation mtu-valid",
        {"node": _TEXT, "nic": _TEXT, "mtu": {"type": "integer", "format": INTEGER, "minimum": 576, "maximum": 9216}},
        ("node", "mtu"),
    ),
    "arp_one_way": Fault(
        "the node does not hear what `peer` answers to ARP and neighbour solicitations",
        "validation belongs-to-majority-group",
        {"node": _TEXT, "peer": _TEXT},
        ("node", "peer"),
    ),
    "eject": Fault("the medium is taken out of the running machine", "validation media-connected", {"node": _TEXT}, ("node",)),
    "disk_lost": Fault(
        "the first disk is gone", "host ... is error: failed after 3 attempts", {"node": _TEXT}, ("node",), lasting=True
    ),
    "service_down": Fault(
        "a service of the lab ends", "the lab's ... does not answer", {"service": {"enum": ["registry", "ntp", "bmc", "http"]}}, ("service",)
    ),
    "image_missing": Fault(
        "the registry has lost the image of a component", "preparing fails, or a unit cannot pull", {"component": _TEXT}, ("component",)
    ),
    "component_fails": Fault(
        "the programs of a component end at once with an error (lab payload)",
        "assisted-service never started, for agent-installer-api-server",
        {"component": {"enum": list(_COMPONENTS)}},
        ("component",),
        in_plan=True,
    ),
    "clock": Fault(
        "the machine's clock is off by so many seconds; with `service_down` of ntp nothing sets it right",
        "validation time-synced-between-host-and-service",
        {"node": _TEXT, "offset": {"type": "integer", "format": INTEGER, "minimum": -(10**9), "maximum": 10**9}},
        ("node", "offset"),
        in_plan=True,
    ),
    "wrong_token": Fault(
        "the machine boots an image of another run: the key of this run's service did not sign its token",
        "host ... is refused by the assisted service",
        {"node": _TEXT},
        ("node",),
        in_plan=True,
    ),
    "expired_token": Fault(
        "the tokens of the image have expired when the machines boot it", "the service refuses this run's token", in_plan=True
    ),
    "boot_order": Fault(
        "the machine starts from its medium even when its disk was written",
        "installing-pending-user-action",
        {"node": _TEXT},
        ("node",),
        in_plan=True,
    ),
    "dns_wildcard": Fault("a wildcard answers for every name of the cluster's domain", "validation dns-wildcard-not-configured", in_plan=True),
    "duplicate_hostname": Fault(
        "the node has the host name of another", "validation hostname-unique", {"node": _TEXT, "of": _TEXT}, ("node", "of"), in_plan=True
    ),
    "extra_host": Fault("a machine more, extra-0, boots the image (DHCP)", "host ... is not part of this plan", in_plan=True),
}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"kind": {"enum": list(KINDS)}},
    "required": ["kind"],
    "allOf": [
        {"if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]}, "then": fault.schema(kind)} for kind, fault in KINDS.items()
    ],
}


def complete(fault: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fault of a profile with its defaults: it happens at `boot`, to `eth0`, and lasts (`seconds: null`)."""
    kind = KINDS[fault["kind"]]
    defaults: dict[str, Any] = {} if kind.in_plan else {"when": BOOT, "seconds": None}
    return {**defaults, **({"nic": "eth0"} if "nic" in kind.fields else {}), **fault}


def of_kind(plan: Mapping[str, Any], kind: str, node: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the faults of a kind in a plan, or those of one of its nodes."""
    return (fault for fault in plan["faults"] if fault["kind"] == kind and node in (None, fault.get("node")))


def of_lab(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the faults that the lab's process does."""
    return [fault for fault in plan["faults"] if not KINDS[fault["kind"]].in_plan]


def apply(plan: Plan) -> None:
    """Change a plan by those of its faults that are values of it; the others are read where machines and files are made."""
    for fault in plan["faults"]:
        if fault["kind"] == "dns_wildcard":
            plan["networks"][0]["dns"]["wildcards"].append({"domain": plan["cluster"]["domain"], "ip": plan["services"]["address"]})
        elif fault["kind"] == "component_fails":
            plan["release"]["payload_overrides"][fault["component"]] = FAILS
