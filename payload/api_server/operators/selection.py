"""Which operators a cluster gets: those requested, those of bundles, and what they depend on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import features, releases
from ..bodies import OperatorChoice
from ..facts import is_sno
from ..objects import BundleChoice, Cluster, MonitoredOperator
from .table import ALIASES, BUNDLES, OPERATORS, dependencies_of


def bundle(ident: str, with_features: Iterable[str] = ()) -> dict[str, Any]:
    """Return a bundle as the API shows it; KeyError if the id is unknown.

    Keys: `id`, `title`, `description`, `operators`, `optional_operators`. `with_features` are feature ids (`SNO`) that
    change the membership of some operators.
    """
    described = BUNDLES[ident]
    given = set(with_features)
    required: list[str] = []
    optional: list[str] = []
    for op in OPERATORS.values():
        for member in op.bundles:
            if member.holds(ident, given):
                (optional if member.optional else required).append(op.name)
    return {
        "id": ident,
        "title": described.title,
        "description": described.description,
        "operators": sorted(required),
        "optional_operators": sorted(optional),
    }


def bundles(filters: features.Filters | None, with_features: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return bundles whose required operators are all available, without unavailable optional ones.

    `filters` None (no version given) filters nothing. `with_features` also excludes operators that are incompatible
    with one of them. Each is in the form of `bundle`.
    """
    given = set(with_features)

    def is_supported(name: str) -> bool:
        feature = OPERATORS[name].feature
        return filters is None or (
            features.available(feature, filters)
            and not given & set(features.FEATURES[feature].incompatible(filters.version))
        )

    found = []
    for ident in BUNDLES:
        made = bundle(ident, given)
        if made["operators"] and all(is_supported(name) for name in made["operators"]):
            made["optional_operators"] = [name for name in made["optional_operators"] if is_supported(name)]
            found.append(made)
    return found


def _monitored(name: str, cluster: Cluster) -> MonitoredOperator:
    op = OPERATORS[name]
    return {
        "cluster_id": cluster["id"],
        "name": name,
        "namespace": op.namespace,
        "subscription_name": op.subscription_in(str(cluster.get("openshift_version", ""))),
        "operator_type": "olm",
        "timeout_seconds": op.timeout_minutes * 60,
    }


def choose(
    cluster: Cluster, standalone: Iterable[OperatorChoice], chosen_bundles: Iterable[BundleChoice]
) -> list[MonitoredOperator]:
    """Return `monitored_operators` entries for requested operators and their dependencies.

    ValueError for invalid requests. The texts are upstream's; the handler returns them as 400. An operator requested by
    name does not count as part of its bundles. Dependencies have `dependency_only`. Former names of operators are
    accepted.
    """
    sources: dict[str, list[str]] = {}
    wanted: dict[str, MonitoredOperator] = {}
    for chosen in chosen_bundles:
        ident, optional = chosen["id"], chosen.get("optional_operators") or ()
        if ident not in BUNDLES:
            raise ValueError(f"bundle '{ident}' is not supported")
        found = bundle(ident)
        for name in optional:
            if name not in found["optional_operators"]:
                raise ValueError(f"operator '{name}' is not a valid optional operator for bundle '{ident}'")
        for name in (*found["operators"], *optional):
            sources.setdefault(name, []).append(ident)
            wanted[name] = {}
    for entry in standalone:
        name = ALIASES.get(entry.get("name", ""), entry.get("name", ""))
        if name not in OPERATORS:
            raise ValueError(f"operator {name} isn't supported")
        sources.pop(name, None)
        wanted[name] = {"properties": entry["properties"]} if entry.get("properties") else {}
    for name, idents in sources.items():
        wanted[name]["source_bundles"] = idents
    made: list[MonitoredOperator] = [{**_monitored(name, cluster), **extra} for name, extra in wanted.items()]
    for name in _all_dependencies(wanted, cluster):
        made.append({**_monitored(name, cluster), "dependency_only": True})
    return made


def chosen_bundles(cluster: Cluster) -> list[dict[str, Any]]:
    """`operator_bundles` of a cluster: the bundles its operators come from, with the optional ones among them."""
    found: dict[str, list[str]] = {}
    for op in cluster.get("monitored_operators", ()):
        for ident in op.get("source_bundles") or ():
            found.setdefault(ident, []).append(op["name"])
    return [
        {"id": ident, "optional_operators": [name for name in bundle(ident)["optional_operators"] if name in names]}
        for ident, names in found.items()
    ]


def _all_dependencies(names: Iterable[str], cluster: Cluster) -> list[str]:
    """Return the dependencies of the named operators, nearest first."""
    known = list(names)
    found: list[str] = []
    for name in known:
        for need in dependencies_of(name, cluster):
            if need not in known:
                known.append(need)
                found.append(need)
    return found


def check(cluster: Cluster, chosen: Iterable[MonitoredOperator], cpu: str) -> None:
    """Raise ValueError unless the operators are compatible with the release, the architecture and each other.

    `chosen` is what `choose` returned, `cpu` the cluster's architecture. The texts are upstream's.
    """
    names = [op["name"] for op in chosen]
    version = str(cluster.get("openshift_version", ""))
    for op in (OPERATORS[name] for name in names):
        for conflict in op.conflicts:
            if conflict.operator not in names:
                continue
            if refused := conflict.refused(version) or op.too_old(version, is_sno(cluster)):
                raise ValueError(refused)
    filters = features.Filters(version, releases.architecture(cpu))
    bad = [
        OPERATORS[name].full_name
        for name in names
        if features.FEATURES[OPERATORS[name].feature].incompatible_cpu(filters)
    ]
    if bad:
        raise ValueError(
            f"{', '.join(bad)} is not available when {cluster.get('cpu_architecture', cpu)} CPU architecture is selected"
        )
    for name in names:
        feature = features.FEATURES[OPERATORS[name].feature]
        against = set(feature.incompatible(version)) & active(cluster, names)
        if against:
            other = features.FEATURES[sorted(against)[0]].name
            raise ValueError(f"cannot use {feature.name} because it's not compatible with {other}")
        if not features.available(feature.ident, filters):
            raise ValueError(
                f"cannot use {feature.name} because it's not compatible with the {cpu} architecture on version {version} of OpenShift"
            )


def active(cluster: Cluster, names: Iterable[str]) -> set[str]:
    """Return features in use that may be incompatible with operators: other operators, topology and platform."""
    platform = cluster.get("platform") or {}
    kind = platform.get("type", "")
    found = {OPERATORS[name].feature for name in names} | ({"SNO"} if is_sno(cluster) else set())
    found |= {features.PLATFORMS[kind]} if kind in features.PLATFORMS else set()
    if kind == "external" and (platform.get("external") or {}).get("platform_name") == "oci":
        found.add("EXTERNAL_PLATFORM_OCI")
    if cluster.get("vip_dhcp_allocation"):
        found.add("VIP_AUTO_ALLOC")
    if cluster.get("user_managed_networking") is False:
        found.add("CLUSTER_MANAGED_NETWORKING")
    return found
