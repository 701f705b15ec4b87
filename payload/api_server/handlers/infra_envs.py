"""Operations on infra-envs."""

from __future__ import annotations

import uuid
from typing import Any

from .. import images, limits, refusals, releases, usage
from ..aside import QUICK_YAML, in_pieces, run_in_thread
from ..bodies import InfraEnvParams, MacEntry, StaticNetwork
from ..calls import Call, handler
from ..document import tracked_document
from ..engine import Engine, time_text
from ..errors import ApiError
from ..objects import Cluster, InfraEnv
from .hosts import check_ignition
from .shown import COMPACT, compact, given_fields, infra_env_model


def _static_networks(entries: list[StaticNetwork]) -> str:
    """Static network configs as text, in upstream's order; ApiError 400 with the problems of all hosts up to the first without keyfiles."""
    problems: list[str] = []
    for number, entry in enumerate(entries):
        pairs = entry.get("mac_interface_map") or []
        if not pairs:
            problems.append(f"at least one interface for host {number} must be provided")
        elif any(len({pair[key] for pair in pairs}) < len(pairs) for key in ("mac_address", "logical_nic_name")):
            problems.append(f"MACs and Interfaces for host {number} must be unique")
        reason = _unusable(entry)
        if reason:
            problems.append(f"failed to validate network yaml for host {number}, {reason}")
            break
        names = frozenset(pair["logical_nic_name"] for pair in pairs)
        unmapped = images.unmapped_interface(entry.get("network_yaml", ""), names)
        if unmapped:
            problems.append(f"mac-interface mapping for interface {unmapped} is missing and not a physical interface")
    refusals.raise_all(problems)
    order = sorted(entries, key=lambda entry: (entry.get("network_yaml", ""), str(entry.get("mac_interface_map"))))
    return in_pieces(order, **COMPACT) if order else ""


def _is_short(entry: StaticNetwork) -> bool:
    pairs = entry.get("mac_interface_map") or ()
    return len(pairs) <= 10 and len(entry.get("network_yaml", "")) + len(str(pairs)) <= QUICK_YAML // 2


async def _checked_networks(body: InfraEnvParams) -> str | ApiError:
    """`_static_networks` of a request, or the refusal, which is raised when its turn comes. Large ones are read in a thread."""
    if sum(len(value) for value in body.values() if isinstance(value, str)) > limits.MAX_BODY:
        raise ApiError(400, f"the body without static_network_config is larger than {limits.MAX_BODY} bytes")
    entries = body.get("static_network_config") or []
    if len(entries) > limits.MAX_STATIC_HOSTS:
        return ApiError(400, f"static_network_config has more than {limits.MAX_STATIC_HOSTS} hosts")
    try:
        if len(entries) <= 2 and all(_is_short(entry) for entry in entries):
            return _static_networks(entries)
        return await run_in_thread(_static_networks, entries)
    except ApiError as err:
        return err


def _unusable(entry: StaticNetwork) -> str:
    """Why a static network config gives no keyfiles; "" when it gives some."""
    if not entry.get("network_yaml"):
        return "cannot generate configuration with an empty host YAML"
    any_pair: MacEntry = {
        "mac_address": "02:00:00:00:00:01",
        "logical_nic_name": "any",
    }  # keyfiles do not depend on the map
    try:
        images.static_networks([{**entry, "mac_interface_map": [any_pair]}])
    except ValueError as err:
        text = str(err)
        failed = "nmstate GenerateConfiguration failed, error: " if "'nmstatectl gc'" in text else ""
        return failed + text.rpartition("'nmstatectl gc', error: ")[2][:300]
    return ""


_INFRA_PLAIN = (
    "additional_ntp_sources",
    "ntp_sources",
    "ssh_authorized_key",
    "rendezvous_ip",
    "additional_trust_bundle",
    "network_discovery_delay_seconds",
)


def _infra_fields(body: InfraEnvParams, infra_env: InfraEnv, networks: str | ApiError) -> InfraEnv:
    """What a request sets; `infra_env` is the one that it changes, empty for a new one, `networks` what `_checked_networks` gave."""
    new, proxy = not infra_env, body.get("proxy", {})
    refusals.proxies(proxy.get("http_proxy"), proxy.get("https_proxy"), proxy.get("no_proxy"))
    merged: Any = {**infra_env, **body}
    refusals.ntp_sources(merged.get("additional_ntp_sources"), merged.get("ntp_sources"), "additional_ntp_sources")
    try:
        refusals.ssh_keys(body.get("ssh_authorized_key") or "")
    except ApiError:
        if not new:
            raise
        raise ApiError(400, "SSH key is not valid") from None
    fields: InfraEnv = given_fields(body, _INFRA_PLAIN)
    if body.get("static_network_config") is not None:
        if isinstance(networks, ApiError):
            raise networks
        fields["static_network_config"] = networks
    if body.get("additional_trust_bundle") is not None:
        fields["additional_trust_bundle"] = body["additional_trust_bundle"].strip()
        refusals.trust_bundle(fields["additional_trust_bundle"])
    kind = body.get("image_type") or infra_env.get("type", "full-iso")
    if body.get("rendezvous_ip") and kind != "disconnected-iso":
        raise ApiError(400, "RendezvousIP is only supported for disconnected ISO infra-envs")
    if body.get("ignition_config_override"):
        check_ignition(body["ignition_config_override"])
        fields["ignition_config_override"] = body["ignition_config_override"]
    for entry in body.get("kernel_arguments") or ():
        if entry.get("operation") != "append":
            raise ApiError(
                400, f"Only kernel argument operation append is supported.  Got {entry.get('operation', '')}"
            )
    if body.get("kernel_arguments") is not None:
        refusals.kernel_arguments(body["kernel_arguments"])
        fields["kernel_arguments"] = compact(body["kernel_arguments"]) if body["kernel_arguments"] else ""
    if body.get("proxy") is not None:
        fields["proxy"] = {**infra_env.get("proxy", {}), **proxy}
    if body.get("image_type"):
        fields["type"] = kind
    if new or body.get("pull_secret"):
        refusals.pull_secret(body["pull_secret"], "pull secret for new infraEnv is invalid" if new else "")
        fields |= {"pull_secret_set": True, "_pull_secret": body["pull_secret"]}
    return fields


def _os_image(e: Engine, version: str, cpu: str) -> str:
    """Return the version of the discovery images of a version and an architecture; ApiError 400 if there are none."""
    if not e.config.flag("ENABLE_IMAGE_SERVICE") or not e.config.os_images():
        return version
    try:
        return str(releases.os_image(e.config.os_images(), version, cpu).get("openshift_version"))
    except ApiError as err:
        if not version:
            raise ApiError(400, f"Failed to get latest OS image for architecture {cpu}: {err.reason}") from None
        raise ApiError(
            400, f"No OS image for Openshift version {version} and architecture {cpu}: {err.reason}"
        ) from None


@handler
async def register_infra_env(e: Engine, call: Call) -> Any:
    body = call.body
    networks = await _checked_networks(body)
    wanted = (body.get("cluster_id") or "").lower()
    cluster = e.clusters.get(wanted) if wanted else None
    if wanted and cluster is None:
        raise ApiError(404, f"Cluster ID {wanted} does not exist")
    cpu = releases.architecture(body.get("cpu_architecture", ""))
    own = cluster.get("cpu_architecture", "") if cluster is not None else ""
    if own not in ("", "multi", cpu):
        raise ApiError(400, f"Specified CPU architecture ({cpu}) doesn't match the cluster ({own})")
    fields = _infra_fields(body, {}, networks)
    version = _os_image(e, body.get("openshift_version", ""), cpu)
    predefined = e.config.get("INFRA_ENV_ID").lower()
    ident, now = predefined if predefined and predefined not in e.infra_envs else str(uuid.uuid4()), e.clock()
    e.store.create(
        "infra_env",
        ident,
        {
            "kind": "InfraEnv",
            "id": ident,
            "href": f"/api/assisted-install/v2/infra-envs/{ident}",
            "name": body["name"],
            "type": "full-iso",
            "cpu_architecture": cpu,
            "openshift_version": version,
            "created_at": time_text(now),
            "updated_at": time_text(now),
            "email_domain": "Unknown",
            "user_name": "admin",
            "cluster_id": wanted or None,
            "proxy": {},
            **fields,
        },
    )
    infra_env = e.infra_envs[ident]
    e.event("infra_env_registered", infra_env_id=ident)
    _new_image(e, infra_env)
    _note(cluster, fields, {})
    if cluster is not None and own == "multi":
        usage.note(cluster, f"{cpu} architecture", cpu != "x86_64")
    return infra_env_model(infra_env)


def _note(cluster: Cluster | None, fields: InfraEnv, before: InfraEnv) -> None:
    """Notes which features of a cluster an infra-env uses."""
    if fields.get("static_network_config", before.get("static_network_config", "")) != before.get(
        "static_network_config", ""
    ):
        usage.note(cluster, usage.STATIC, fields["static_network_config"])
    if "kernel_arguments" in fields:
        usage.note(cluster, usage.KERNEL_ARGUMENTS, fields["kernel_arguments"])
    if fields.get("ignition_config_override", "") not in ("", before.get("ignition_config_override", "")):
        usage.ignition(cluster, "infra-env", fields["ignition_config_override"])


def _new_image(e: Engine, infra_env: InfraEnv) -> None:
    """Return the current URL of an infra-env's discovery image and its expiration, and add the event for it."""
    proxy = infra_env.get("proxy", {}).get("http_proxy")
    key = "set" if infra_env.get("ssh_authorized_key") else "not set"
    details = f'Image type is "{infra_env["type"]}", SSH public key is {key}'
    if proxy:
        details = f'proxy URL is "{proxy}", {details}'
    e.event("image_info_updated", cluster_id=infra_env.get("cluster_id"), infra_env_id=infra_env["id"], details=details)
    if e.config.flag("ENABLE_IMAGE_SERVICE") and e.config.get("IMAGE_SERVICE_BASE_URL"):
        expires = time_text(e.clock() + images.IMAGE_SECONDS)
        tracked_document(infra_env).set(download_url=images.download_url(e, infra_env), expires_at=expires)


@handler
def list_infra_envs(e: Engine, call: Call) -> Any:
    wanted = call.query.get("cluster_id")
    return [
        infra_env_model(entry)
        for entry in e.infra_envs.values()
        if not wanted or entry.get("cluster_id") == wanted.lower()
    ]


@handler
def get_infra_env(e: Engine, call: Call) -> Any:
    return infra_env_model(e.infra_env(call.path["infra_env_id"]))


@handler
async def update_infra_env(e: Engine, call: Call) -> Any:
    e.infra_env(call.path["infra_env_id"])
    networks = await _checked_networks(call.body)
    infra_env = e.infra_env(call.path["infra_env_id"])  # it may have changed meanwhile
    fields = _infra_fields(call.body, infra_env, networks)
    if call.body.get("openshift_version"):
        _os_image(e, call.body["openshift_version"], infra_env["cpu_architecture"])
        fields["openshift_version"] = call.body["openshift_version"]
    _note(e.clusters.get(infra_env.get("cluster_id", "")), fields, infra_env)
    tracked_document(infra_env).set(**fields, updated_at=time_text(e.clock()))
    if fields:
        _new_image(e, infra_env)
    return infra_env_model(infra_env)


@handler
def delete_infra_env(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    count = sum(host["infra_env_id"] == infra_env["id"] for host in e.hosts.values())
    if count:
        reason = f"failed to deregister infraEnv {infra_env['id']}, {count} hosts are still associated"
        e.event("infra_env_deregister_failed", infra_env_id=infra_env["id"], error=reason)
        raise ApiError(400, reason)
    e.store.delete("infra_env", infra_env["id"])
    e.store.drop_events("infra_env_id", infra_env["id"])
    return None


@handler
def regenerate_key(e: Engine, call: Call) -> Any:
    e.infra_env(call.path["infra_env_id"])
    return None
