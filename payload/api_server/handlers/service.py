"""Events, and what the service says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..calls import Call, Download, handler
from ..engine import Engine, time_text
from ..errors import ApiError


@handler
def list_events(e: Engine, call: Call) -> Any:
    query = call.query
    clauses, values = ["1"], []
    for key in ("cluster_id", "infra_env_id"):
        if query.get(key):
            clauses.append(f"{key} = ?")
            values.append(query[key].lower())
    hosts = [text.strip().lower() for text in str(query.get("host_ids", "")).split(",") if text.strip()]
    if query.get("host_id"):
        hosts.append(query["host_id"].lower())
    who = []
    if hosts:
        who.append(f"host_id IN ({','.join('?' * len(hosts))})")
        values += hosts
    if query.get("cluster_level"):
        who.append("cluster_level = 1")
    if who:
        clauses.append("(" + " OR ".join(who) + ")")
    if query.get("deleted_hosts") is False:
        clauses.append("deleted_host = 0")
    if query.get("message"):
        clauses.append("instr(lower(message), ?) > 0")
        values.append(query["message"].lower())
    categories = [text for text in str(query.get("categories", "user")).split(",") if text]
    clauses.append(f"category IN ({','.join('?' * len(categories))})")
    values += categories
    where = " AND ".join(clauses)
    counts = e.store.severities(where, values)
    wanted = [text for text in str(query.get("severities", "")).split(",") if text]
    if wanted:
        where += f" AND severity IN ({','.join('?' * len(wanted))})"
        values = [*values, *wanted]
    total = sum(count for severity, count in counts.items() if not wanted or severity in wanted)
    order = "DESC" if query.get("order") == "descending" else "ASC"
    limit, offset = query.get("limit"), query.get("offset", 0)
    events = e.store.events(where, values, order, -1 if limit is None else limit, offset)
    headers = {
        f"Severity-Count-{name.capitalize()}": str(counts.get(name, 0))
        for name in ("info", "warning", "error", "critical")
    }
    return Download("", headers={**headers, "Event-Count": str(total)}, value=events)


@handler
def trigger_event(e: Engine, call: Call) -> Any:
    body = call.body
    host_id, cluster_id = body.get("host_id"), body.get("cluster_id")
    if cluster_id:
        e.cluster(cluster_id)
    if host_id and host_id.lower() not in e.hosts:
        raise ApiError(404, f"Host {host_id} was not found")
    host: Mapping[str, Any] = e.hosts.get((host_id or "").lower()) or {}
    e.store.event(
        {
            "name": body.get("name", ""),
            "cluster_id": cluster_id or host.get("cluster_id"),
            "host_id": host_id and host_id.lower(),
            "infra_env_id": body.get("infra_env_id") or host.get("infra_env_id"),
            "severity": body["severity"],
            "category": body.get("category", "user"),
            "message": body["message"],
            "event_time": time_text(e.clock()),
            "props": body.get("props", ""),
        },
        cluster_level=not host_id,
    )
    return None


@handler
def component_versions(e: Engine, call: Call) -> Any:
    names = {
        "assisted-installer": "INSTALLER_IMAGE",
        "assisted-installer-controller": "CONTROLLER_IMAGE",
        "assisted-installer-service": "SERVICE_IMAGE",
        "discovery-agent": "AGENT_DOCKER_IMAGE",
    }
    tag = e.config.get("RELEASE_TAG")
    return {"versions": {name: e.config.image(key) for name, key in names.items()}, **({"release_tag": tag} if tag else {})}
