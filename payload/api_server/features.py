"""Support levels of features and CPU architectures per OpenShift version, architecture and platform.

The facts are in `data/features.yaml`, whose schema describes the rules. Source: `internal/featuresupport` of assisted-service.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import data, versions

UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Filters:
    """Query for support levels. `platform`: a key of PLATFORMS, empty if not given."""

    version: str
    cpu: str = "x86_64"
    platform: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A support level and the conditions under which it applies; empty conditions hold."""

    level: str
    #: Why the feature is not available; empty if it is.
    reason: str = ""
    cpu_incompatible: bool = False
    platforms: tuple[str, ...] = ()
    cpus: tuple[str, ...] = ()
    before: str = ""
    since: str = ""
    release: str = ""

    def applies(self, filters: Filters, cpu_incompatible: bool) -> bool:
        names = {filters.platform, "external" if filters.platform == "oci" else filters.platform}
        return (
            (not self.cpu_incompatible or cpu_incompatible)
            and (not self.platforms or bool(filters.platform and names.intersection(self.platforms)))
            and (not self.cpus or filters.cpu in self.cpus)
            and (not self.before or not versions.at_least(filters.version, self.before))
            and (not self.since or versions.at_least(filters.version, self.since))
            and (not self.release or versions.same_minor(filters.version, self.release))
        )


@dataclass(frozen=True, slots=True)
class Incompatible:
    """A feature or CPU architecture that is incompatible; `before`: below this version only."""

    name: str
    before: str = ""

    def applies_to(self, version: str) -> bool:
        return not self.before or not versions.at_least(version, self.before)


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature of the support matrix: where it is supported, and with what it goes together."""

    ident: str
    name: str
    rules: tuple[Rule, ...]
    features: tuple[Incompatible, ...]
    architectures: tuple[Incompatible, ...]

    def level(self, filters: Filters) -> tuple[str, str]:
        """Return (support level, reason); the reason is empty if the feature is supported."""
        return _decide(self.rules, filters, self.incompatible_cpu(filters))

    def incompatible_cpu(self, filters: Filters) -> bool:
        return any(one.name == filters.cpu and one.applies_to(filters.version) for one in self.architectures)

    def incompatible(self, version: str) -> list[str]:
        """Return the features that are incompatible with this one."""
        return [one.name for one in self.features if one.applies_to(version)]


@dataclass(frozen=True, slots=True)
class Architecture:
    """A CPU architecture: its id among the support levels, and their rules."""

    ident: str
    rules: tuple[Rule, ...]


def _decide(rules: tuple[Rule, ...], filters: Filters, cpu_incompatible: bool) -> tuple[str, str]:
    for rule in rules:
        if rule.applies(filters, cpu_incompatible):
            return rule.level, rule.reason
    raise ValueError(f"no rule of {rules} applies")


def _rule(entry: Mapping[str, Any]) -> Rule:
    return Rule(
        level=entry["level"],
        reason=entry.get("reason", ""),
        cpu_incompatible=entry.get("cpu_incompatible", False),
        platforms=tuple(entry.get("platforms", ())),
        cpus=tuple(entry.get("cpus", ())),
        before=entry.get("before", ""),
        since=entry.get("from", ""),
        release=entry.get("release", ""),
    )


def _rules(entries: list[dict[str, Any]]) -> tuple[Rule, ...]:
    return tuple(map(_rule, entries))


def _incompatible(entries: list[Any], key: str) -> tuple[Incompatible, ...]:
    return tuple(
        Incompatible(entry) if isinstance(entry, str) else Incompatible(entry[key], entry["before"])
        for entry in entries
    )


def _feature(ident: str, entry: Mapping[str, Any]) -> Feature:
    return Feature(
        ident,
        entry["name"],
        _rules(entry["levels"]),
        _incompatible(entry.get("incompatible_features", []), "feature"),
        _incompatible(entry.get("incompatible_cpus", []), "cpu"),
    )


_TABLE = data.load("features")
#: Platform type -> its feature; `oci`: external with that name.
PLATFORMS: dict[str, str] = _TABLE["platforms"]
_PLATFORM_FEATURES = frozenset(PLATFORMS.values())
#: CPU architecture -> its support level.
ARCHITECTURES: dict[str, Architecture] = {
    name: Architecture(entry["id"], _rules(entry["levels"])) for name, entry in _TABLE["architectures"].items()
}
FEATURES: dict[str, Feature] = {ident: _feature(ident, entry) for ident, entry in _TABLE["features"].items()}
data.check_known("features", "platforms", PLATFORMS.values(), FEATURES)
for _one in FEATURES.values():
    data.check_known("features", f"features.{_one.ident}", (other.name for other in _one.features), FEATURES)


def architecture_level(name: str, version: str) -> str:
    return _decide(ARCHITECTURES[name].rules, Filters(version, name), False)[0]


def _relevant(ident: str, filters: Filters) -> bool:
    """Return whether a feature is left out: platform features with a given platform, platform networking without one."""
    return ident not in _PLATFORM_FEATURES if filters.platform else ident != "PLATFORM_MANAGED_NETWORKING"


def levels(filters: Filters) -> dict[str, tuple[str, str, list[str]]]:
    """Feature -> (support level, reason, incompatible features)."""
    if architecture_level(filters.cpu, filters.version) == UNAVAILABLE:
        return {ident: (UNAVAILABLE, "", []) for ident in FEATURES}
    found = {}
    for ident, feature in FEATURES.items():
        if _relevant(ident, filters):
            level, reason = feature.level(filters)
            if feature.incompatible_cpu(filters):
                level, reason = UNAVAILABLE, "cpuArchitecture"
            others = [other for other in feature.incompatible(filters.version) if _relevant(other, filters)]
            found[ident] = (level, reason, others)
    return found


def available(ident: str, filters: Filters) -> bool:
    return FEATURES[ident].level(filters)[0] not in (UNAVAILABLE, "unsupported")
