"""Operations on the logs of hosts and clusters."""

from __future__ import annotations

import json
import os
import re
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from .. import validations
from ..calls import Call, Download, handler
from ..document import tracked_document
from ..engine import Engine, time_text
from ..errors import ApiError
from ..events import Filter
from ..objects import Cluster, Host
from .hosts import called_host

#: Maximum number of events in the archive of a cluster's logs.
EVENTS = 10_000


def _logs_state(e: Engine, document: Host | Cluster, value: str, started: str) -> None:
    document["logs_info"] = value
    document["_logs_at"] = e.clock()
    if value == "requested":
        tracked_document(document).set(**{started: time_text(e.clock())})


@handler
def host_logs_progress(e: Engine, call: Call) -> Any:
    _logs_state(e, called_host(e, call), call.body["logs_state"], "logs_started_at")


@handler
def cluster_logs_progress(e: Engine, call: Call) -> Any:
    _logs_state(e, e.cluster(call.path["cluster_id"]), call.body["logs_state"], "controller_logs_started_at")


def logs_path(e: Engine, call: Call) -> Any:
    """Return the path for uploaded logs; ApiError if the call may not upload. File names are ids known to the service."""
    kind = call.query["logs_type"]
    if kind == "host" and not call.query.get("host_id"):
        raise ApiError(400, "cluster_id and host_id are required for upload host logs")
    cluster = e.clusters.get(call.path["cluster_id"].lower())
    if cluster is None:
        raise ApiError(404, "record not found")
    folder = e.config.data_dir / "logs" / cluster["id"]
    if kind == "controller":
        return folder / "controller.tar.gz"
    if kind != "host":
        raise ApiError(400, f"logs_type {kind!r}: host or controller")
    ident = call.query.get("host_id", "").lower()
    host = e.hosts_of(cluster["id"]).get(ident)
    if host is None or call.query.get("infra_env_id", host["infra_env_id"]).lower() != host["infra_env_id"]:
        raise ApiError(404, f"Host {ident} was not found in cluster {cluster['id']}")
    return folder / f"{ident}.tar.gz"


@handler
def upload_logs(e: Engine, call: Call) -> Any:
    cluster, now = e.cluster(call.path["cluster_id"]), time_text(e.clock())
    if call.query["logs_type"] == "controller":
        if not cluster.get("controller_logs_collected_at"):
            e.event("cluster_logs_uploaded", cluster_id=cluster["id"])
        cluster["controller_logs_collected_at"] = now
        _logs_state(e, cluster, "collecting", "")
    else:
        host = e.hosts_of(cluster["id"])[call.query["host_id"].lower()]
        host["logs_collected_at"] = now
        e.event("host_logs_uploaded", host=host, cluster_id=cluster["id"])
    return None


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", text)[:128].strip(".") or "unnamed"


@handler
async def download_logs(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    folder = e.config.data_dir / "logs" / cluster["id"]
    kind = call.query.get("logs_type") or "all"
    name = _safe(cluster.get("name", ""))
    members = e.hosts_of(cluster["id"])

    def host_name(host: Host) -> str:
        role = "bootstrap" if host.get("bootstrap") else validations.role_of(host)
        return f"{name}_{role}_{_safe(e.hostname(host))}.tar.gz"

    if kind == "host":
        ident = call.query.get("host_id", "").lower()
        if not ident:
            raise ApiError(400, "Host ID must be provided for downloading host logs")
        if ident not in members:
            raise ApiError(404, f"Host {ident} was not found in cluster {cluster['id']}")
        if not (folder / f"{ident}.tar.gz").is_file():
            raise ApiError(409, f"Logs for host {ident} were not found")
        return Download(host_name(members[ident]), path=str(folder / f"{ident}.tar.gz"))
    controller = folder / "controller.tar.gz"
    controller_name = f"{name}_{cluster['id']}_controller.tar.gz"
    if kind == "controller":
        if not controller.is_file():
            raise ApiError(409, f"Controller Logs for cluster {cluster['id']} were not found")
        return Download(controller_name, path=str(controller))
    files = {controller_name: controller}
    for ident, host in members.items():
        part = host_name(host)
        while part in files:  # two hosts with the same name must not hide each other's logs
            part = f"{ident}_{part}"
        files[part] = folder / f"{ident}.tar.gz"
    parts = [(part, path) for part, path in files.items() if path.is_file()]
    pages = e.store.event_pages(Filter(cluster_id=cluster["id"]), limit=EVENTS)
    events = [event async for page in pages for event in page]
    return Download(f"{name}_{cluster['id']}.tar", stream=_tar(json.dumps(events).encode(), parts))


async def _tar(events: bytes, parts: list[tuple[str, Path]]) -> AsyncIterator[bytes]:
    """Yield a tar archive of a cluster's events and (name, file) in pieces: all files together may exceed the memory."""
    info = tarfile.TarInfo("cluster_events.json")
    info.size = len(events)
    yield info.tobuf() + events + bytes(-info.size % tarfile.BLOCKSIZE)
    for name, path in parts:
        with path.open("rb") as file:
            info = tarfile.TarInfo(name)
            status = os.fstat(file.fileno())
            info.size, info.mtime = status.st_size, int(status.st_mtime)
            yield info.tobuf()
            while chunk := file.read(2**18):
                yield chunk
            yield bytes(-info.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)
