"""Events, and information about the service itself."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from ..calls import Call, Download, handler
from ..engine import Engine, time_text
from ..errors import ApiError
from ..events import Filter
from ..objects import Host

#: A response with more events than this is streamed.
_AT_ONCE = 1000


def _words(text: object) -> tuple[str, ...]:
    return tuple(word for word in str(text or "").split(",") if word)


@handler
async def list_events(e: Engine, call: Call) -> Any:
    query = call.query
    hosts = [text.strip().lower() for text in _words(query.get("host_ids")) if text.strip()]
    if query.get("host_id"):
        hosts.append(query["host_id"].lower())
    wanted = Filter(
        cluster_id=str(query.get("cluster_id") or "").lower(),
        infra_env_id=str(query.get("infra_env_id") or "").lower(),
        hosts=tuple(hosts),
        cluster_level=bool(query.get("cluster_level")),
        deleted_hosts=bool(query.get("deleted_hosts")),
        message=query.get("message") or "",
        categories=_words(query.get("categories", "user")) or ("",),  # an empty category matches nothing
    )
    counts = await e.store.count_events(wanted)
    severities = _words(query.get("severities"))
    wanted = replace(wanted, severities=severities)
    total = sum(count for severity, count in counts.items() if not severities or severity in severities)
    limit, offset = query.get("limit"), query.get("offset", 0)
    pages = e.store.event_texts(
        wanted, descending=query.get("order") == "descending", limit=-1 if limit is None else limit, offset=offset
    )
    headers = {
        f"Severity-Count-{name.capitalize()}": str(counts.get(name, 0))
        for name in ("info", "warning", "error", "critical")
    }
    headers["Event-Count"] = str(total)
    if min(total, total if limit is None else limit) > _AT_ONCE:
        return Download("", headers=headers, stream=_list(pages), json=True)
    return Download("", headers=headers, content=b"".join([piece async for piece in _list(pages)]), json=True)


async def _list(pages: AsyncIterator[list[str]]) -> AsyncIterator[bytes]:
    """A JSON list in pieces."""
    start = "["
    async for page in pages:
        yield (start + ",".join(page)).encode("utf-8", "replace")
        start = ","
    yield b"[]" if start == "[" else b"]"


@handler
def trigger_event(e: Engine, call: Call) -> Any:
    body = call.body
    host_id, cluster_id = body.get("host_id"), body.get("cluster_id")
    if cluster_id:
        e.cluster(cluster_id)
    if host_id and host_id.lower() not in e.hosts:
        raise ApiError(404, f"Host {host_id} was not found")
    host: Host = e.hosts.get((host_id or "").lower()) or {}
    e.store.event(
        {
            "name": body.get("name", ""),
            "cluster_id": cluster_id or host.get("cluster_id"),
            "host_id": host_id.lower() if host_id else None,
            "infra_env_id": body.get("infra_env_id") or host.get("infra_env_id"),
            "severity": body["severity"],
            "category": body.get("category", "user"),
            "message": body["message"],
            "event_time": time_text(e.clock()),
            "props": body.get("props", ""),
        }
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
    return {
        "versions": {name: e.config.image(key) for name, key in names.items()},
        **({"release_tag": tag} if tag else {}),
    }
