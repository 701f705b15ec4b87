"""Catalogs: versions, architectures, support levels, operators and their bundles."""

from __future__ import annotations

from typing import Any

from .. import features, operators, releases, versions
from ..calls import Call, handler
from ..engine import Engine
from ..errors import ApiError


@handler
def openshift_versions(e: Engine, call: Call) -> Any:
    wanted, latest = call.query.get("version", ""), bool(call.query.get("only_latest"))
    found: dict[str, Any] = {}
    newest: dict[tuple[int, ...], str] = {}
    for image in e.config.release_images():
        version = str(image.get("version") or image.get("openshift_version"))
        if wanted not in version:
            continue
        found[version] = {
            "display_name": version,
            "support_level": image.get("support_level", "production"),
            **({"default": True} if image.get("default") else {}),
            "cpu_architectures": image.get("cpu_architectures") or [image.get("cpu_architecture", "x86_64")],
        }
        minor = (versions.numbers(version) or (0, 0, 0))[:2]
        if minor not in newest or versions.at_least(version, newest[minor]):
            newest[minor] = version
    return {version: found[version] for version in newest.values()} if latest else found


@handler
def release_sources(e: Engine, call: Call) -> Any:
    return []


@handler
def domains(e: Engine, call: Call) -> Any:
    return []


@handler
def supported_operators(e: Engine, call: Call) -> Any:
    return list(operators.OPERATORS)


@handler
def operator_properties(e: Engine, call: Call) -> Any:
    if call.path["operator_name"] not in operators.OPERATORS:
        raise ApiError(404, "")
    return []


def _filters(call: Call) -> features.Filters:
    """Return the filters of a query; ApiError 400 when version, architecture or platform are not supported."""
    version, given = call.query["openshift_version"], call.query.get("cpu_architecture", "x86_64")
    cpu = releases.architecture(given)
    if versions.numbers(version) is None:
        raise ApiError(400, f"invalid openshift version: Malformed version: {version[:80]}")
    if features.architecture_level(cpu, version) == features.UNAVAILABLE:
        raise ApiError(400, f"cpu architecture {given} is not supported for openshift version {version}")
    kind, name = call.query.get("platform_type", ""), call.query.get("external_platform_name", "")
    platform = "oci" if kind == "external" and name == "oci" else kind
    if kind and not features.available(features.PLATFORMS[platform], features.Filters(version, cpu)):
        raise ApiError(
            400, f"platform {kind} is not supported for openshift version {version} and cpu architecture {given}"
        )
    return features.Filters(version, cpu, platform)


@handler
def bundles(e: Engine, call: Call) -> Any:
    filters = _filters(call) if call.query.get("openshift_version") else None
    return operators.bundles(filters, call.query.get("feature_ids") or ())


@handler
def get_bundle(e: Engine, call: Call) -> Any:
    ident = call.path["id"]
    if ident not in operators.BUNDLES:
        raise ApiError(404, f"bundle '{ident[:80]}' is not supported")
    return operators.bundle(ident, call.query.get("feature_ids") or ())


@handler
def supported_features(e: Engine, call: Call) -> Any:
    platform, name = call.query.get("platform_type", ""), call.query.get("external_platform_name", "")
    filters = features.Filters(
        call.query["openshift_version"],
        releases.architecture(call.query.get("cpu_architecture", "x86_64")),
        "oci" if platform == "external" and name == "oci" else platform,
    )
    return {"features": {ident: level for ident, (level, *__) in features.levels(filters).items()}}


@handler
def detailed_features(e: Engine, call: Call) -> Any:
    shown: dict[str, list[dict[str, Any]]] = {"features": [], "operators": []}
    by_feature = {op.feature: op for op in operators.OPERATORS.values()}
    for ident, (level, reason, others) in features.levels(_filters(call)).items():
        entry = {"feature-support-level-id": ident, "support_level": level, "incompatibilities": others}
        if reason:
            entry["reason"] = reason
        op = by_feature.get(ident)
        if op is None:
            shown["features"].append(entry)
        else:
            needs = [operators.OPERATORS[need.operator].feature for need in op.needs]
            shown["operators"].append({**entry, "name": op.name, "dependencies": needs})
    return shown


@handler
def supported_architectures(e: Engine, call: Call) -> Any:
    version = call.query["openshift_version"]
    return {
        "architectures": {
            found.ident: features.architecture_level(name, version) for name, found in features.ARCHITECTURES.items()
        }
    }
