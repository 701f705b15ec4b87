"""Operations on infra-envs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from .. import images, refusals
from ..calls import Call, handler
from ..engine import ApiError, Engine, time_text
from .hosts import check_ignition, forget_host
from .shown import public


def _static_networks(entries: list[dict[str, Any]]) -> str:
    for entry in entries:
        if not entry.get("mac_interface_map"):
            raise ApiError(400, "static_network_config: mac_interface_map is empty")
    try:
        images.static_networks(entries)
    except ValueError as err:
        raise ApiError(400, f"static_network_config: {str(err)[:300]}") from None
    return json.dumps(
        sorted(entries, key=lambda entry: (entry.get("network_yaml", ""), str(entry.get("mac_interface_map"))))
    )


_INFRA_PLAIN = (
    "additional_ntp_sources",
    "ntp_sources",
    "ssh_authorized_key",
    "rendezvous_ip",
    "ignition_config_override",
    "proxy",
    "additional_trust_bundle",
    "network_discovery_delay_seconds",
    "openshift_version",
)


def _infra_fields(body: dict[str, Any]) -> dict[str, Any]:
    proxy = body.get("proxy") or {}
    refusals.proxies(proxy.get("http_proxy"), proxy.get("https_proxy"), proxy.get("no_proxy"))
    refusals.ntp_sources(body.get("additional_ntp_sources"), body.get("ntp_sources"))
    refusals.ssh_keys(body.get("ssh_authorized_key") or "")
    fields = {key: body[key] for key in _INFRA_PLAIN if body.get(key) is not None}
    if body.get("static_network_config") is not None:
        fields["static_network_config"] = _static_networks(body["static_network_config"])
    if body.get("kernel_arguments") is not None:
        fields["kernel_arguments"] = json.dumps(body["kernel_arguments"])
    if body.get("ignition_config_override"):
        check_ignition(body["ignition_config_override"], "ignition_config_override")
    if body.get("image_type"):
        fields["type"] = body["image_type"]
    if body.get("pull_secret"):
        refusals.pull_secret(body["pull_secret"])
        fields |= {"pull_secret_set": True, "_pull_secret": body["pull_secret"]}
    return fields


@handler
def register_infra_env(e: Engine, call: Call) -> Any:
    body = call.body
    fields = _infra_fields(body)
    cluster_id = (body.get("cluster_id") or "").lower()
    if cluster_id:
        cluster_id = e.cluster(cluster_id)["id"]
    predefined = e.config.get("INFRA_ENV_ID").lower()
    ident, now = predefined if predefined and predefined not in e.infra_envs else str(uuid.uuid4()), e.clock()
    infra_env = e.store.create(
        "infra_env",
        ident,
        {
            "kind": "InfraEnv",
            "id": ident,
            "href": f"/api/assisted-install/v2/infra-envs/{ident}",
            "name": body["name"],
            "type": "full-iso",
            "cpu_architecture": body.get("cpu_architecture", "x86_64"),
            "created_at": time_text(now),
            "updated_at": time_text(now),
            "email_domain": "Unknown",
            "user_name": "admin",
            "cluster_id": cluster_id or None,
            "proxy": {},
            **fields,
        },
    )
    e.event("infra_env_registered", infra_env_id=ident)
    return _infra_model(infra_env)


def _infra_model(infra_env: Mapping[str, Any]) -> dict[str, Any]:
    return public(infra_env)


@handler
def list_infra_envs(e: Engine, call: Call) -> Any:
    wanted = call.query.get("cluster_id")
    return [
        _infra_model(entry)
        for entry in e.infra_envs.values()
        if not wanted or entry.get("cluster_id") == wanted.lower()
    ]


@handler
def get_infra_env(e: Engine, call: Call) -> Any:
    return _infra_model(e.infra_env(call.path["infra_env_id"]))


@handler
def update_infra_env(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    infra_env.set(**_infra_fields(call.body), updated_at=time_text(e.clock()))
    return _infra_model(infra_env)


@handler
def delete_infra_env(e: Engine, call: Call) -> Any:
    infra_env = e.infra_env(call.path["infra_env_id"])
    hosts = [host for host in e.hosts.values() if host["infra_env_id"] == infra_env["id"]]
    busy = [host["id"] for host in hosts if host["status"].startswith(("installing", "preparing"))]
    if busy:
        raise ApiError(409, f"InfraEnv {infra_env['id']} has hosts that are being installed: {', '.join(busy)}")
    for host in hosts:
        forget_host(e, host)
    e.store.delete("infra_env", infra_env["id"])
    e.store.forget_events("infra_env_id", infra_env["id"])
    return None


@handler
def regenerate_key(e: Engine, call: Call) -> Any:
    e.infra_env(call.path["infra_env_id"])
    return None
