"""The table of `data/operators.yaml`: what operators and bundles are, need and depend on. Source: `internal/operators` of assisted-service."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Protocol

from .. import data, features, versions
from ..facts import is_sno
from ..hardware import Inventory
from ..objects import Cluster, Host

SUCCESS, FAILURE, PENDING = "success", "failure", "pending"
Result = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Need:
    """An operator that another one needs; `sno`: in clusters of a single node only.

    In `data/operators.yaml` it is a name, or an object with `operator` for one that only a single node needs.
    """

    operator: str
    sno: bool


@dataclass(frozen=True, slots=True)
class Membership:
    """An operator's membership in a bundle: whether the user may leave it out, and for which clusters it holds.

    `with_feature` and `without_feature` are feature ids: it holds for clusters that use, or do not use, the feature.
    Empty: it always holds.
    """

    bundle: str
    optional: bool = False
    with_feature: str = ""
    without_feature: str = ""

    def holds(self, ident: str, given: Set[str]) -> bool:
        return (
            self.bundle == ident
            and (not self.with_feature or self.with_feature in given)
            and (not self.without_feature or self.without_feature not in given)
        )


@dataclass(frozen=True, slots=True)
class LeastVersion:
    """The lowest version on which an operator runs, and the names of the operator and of OpenShift in the message.

    `high_availability` is that for clusters of several nodes, where they need a higher one.
    """

    version: str
    name: str
    word: str
    high_availability: str = ""

    def refused(self, version: str, sno: bool) -> str:
        """Return upstream's message about a version that is too low; empty for one that is not."""
        if not versions.at_least(version, self.version):
            return f"{self.name} is only supported for {self.word} versions {self.version} and above"
        if self.high_availability and not sno and not versions.at_least(version, self.high_availability):
            least = self.high_availability
            return f"{self.name} is only supported for highly available {self.word} with version {least} or above"
        return ""


@dataclass(frozen=True, slots=True)
class Former:
    """The name of an operator's subscription before a version."""

    name: str
    before: str


@dataclass(frozen=True, slots=True)
class Memory:
    """RAM in MiB that an operator requires before a version; without one: of all others."""

    mib: int
    before: str = ""


@dataclass(frozen=True, slots=True)
class SnoDisk:
    """The additional disk that an operator requires of a single node, and the versions that do: `since` to below `before`."""

    gib: int
    since: str
    before: str

    def required(self, version: str) -> bool:
        return versions.at_least(version, self.since) and not versions.at_least(version, self.before)


@dataclass(frozen=True, slots=True)
class Conflict:
    """An operator that another one excludes before a version, and the message."""

    operator: str
    before: str
    message: str

    def refused(self, version: str) -> str:
        """Return the message; empty for a version on which they go together."""
        return "" if versions.at_least(version, self.before) else self.message


@dataclass(frozen=True, slots=True)
class Gpu:
    """The vendor of the GPUs that an operator serves, and its PCI id."""

    vendor_id: str
    vendor: str


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of `data/operators.yaml`, whose schema describes the fields."""

    name: str
    full_name: str
    namespace: str
    subscription: str
    timeout_minutes: int
    feature: str
    #: Id of its validation, of hosts and of clusters.
    validation: str
    package: str
    source: str
    needs: tuple[Need, ...]
    bundles: tuple[Membership, ...]
    least_version: LeastVersion | None
    former_subscription: Former | None
    memory: tuple[Memory, ...]
    sno_disk: SnoDisk | None
    conflicts: tuple[Conflict, ...]
    validate_cpu: bool
    gpu: Gpu | None
    #: Resources that start it, without their metadata's nesting.
    custom_resources: tuple[Mapping[str, Any], ...]

    def subscription_in(self, version: str) -> str:
        """Return the name of its subscription in a version of OpenShift."""
        former = self.former_subscription
        return former.name if former and not versions.at_least(version, former.before) else self.subscription

    def memory_in(self, version: str) -> int:
        """Return the RAM in MiB that it requires in a version of OpenShift. StopIteration if that depends on other things."""
        return next(one.mib for one in self.memory if not one.before or not versions.at_least(version, one.before))

    def too_old(self, version: str, sno: bool) -> str:
        """Return why it does not run on a version of OpenShift, in upstream's words; empty if it does."""
        return self.least_version.refused(version, sno) if self.least_version else ""


def _need(entry: Any) -> Need:
    return Need(entry, False) if isinstance(entry, str) else Need(entry["operator"], True)


def _operator(name: str, entry: Mapping[str, Any]) -> Operator:
    least, gpu = entry.get("least_version"), entry.get("gpu")
    former, disk = entry.get("former_subscription"), entry.get("sno_disk")
    return Operator(
        name=name,
        full_name=entry["full_name"],
        namespace=entry["namespace"],
        subscription=entry["subscription"],
        timeout_minutes=entry["timeout_minutes"],
        feature=entry["feature"],
        validation=f"{entry.get('validation_name', name)}-requirements-satisfied",
        package=entry.get("package", ""),
        source=entry.get("source", "redhat-operators"),
        needs=tuple(map(_need, entry.get("needs", ()))),
        bundles=tuple(Membership(**one) for one in entry.get("bundles", ())),
        least_version=LeastVersion(**least) if least else None,
        former_subscription=Former(**former) if former else None,
        memory=tuple(Memory(**one) for one in entry.get("memory", ())),
        sno_disk=SnoDisk(disk["gib"], disk["from"], disk["before"]) if disk else None,
        conflicts=tuple(Conflict(**one) for one in entry.get("conflicts", ())),
        validate_cpu=entry.get("validate_cpu", False),
        gpu=Gpu(**gpu) if gpu else None,
        custom_resources=tuple(entry.get("custom_resources", ())),
    )


@dataclass(frozen=True, slots=True)
class Bundle:
    """A group of operators."""

    title: str
    description: str


_TABLE = data.load("operators")
BUNDLES: dict[str, Bundle] = {ident: Bundle(**entry) for ident, entry in _TABLE["bundles"].items()}
OPERATORS: dict[str, Operator] = {name: _operator(name, entry) for name, entry in _TABLE["operators"].items()}
#: Former names of operators in requests, and names elsewhere.
ALIASES = {alias: name for name, entry in _TABLE["operators"].items() for alias in entry.get("aliases", ())}
for _one in OPERATORS.values():
    _field = f"operators.{_one.name}"
    data.check_known("operators", _field, [_one.feature], features.FEATURES)
    data.check_known("operators", f"{_field}.needs", (need.operator for need in _one.needs), OPERATORS)
    data.check_known("operators", f"{_field}.conflicts", (other.operator for other in _one.conflicts), OPERATORS)
    data.check_known("operators", f"{_field}.bundles", (member.bundle for member in _one.bundles), BUNDLES)


class View(Protocol):
    """The cluster in which an operator is validated."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def hosts(self) -> Mapping[str, Host]: ...
    @property
    def inventories(self) -> Mapping[str, Inventory]: ...


def selected_operators(cluster: Cluster) -> list[str]:
    """Names of the OLM operators of a cluster."""
    return [op["name"] for op in cluster.get("monitored_operators", ()) if op.get("operator_type") == "olm"]


def dependencies_of(name: str, cluster: Cluster) -> list[str]:
    return [need.operator for need in OPERATORS[name].needs if not need.sno or is_sno(cluster)]
