"""Operations on a cluster's own manifests."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from ....plugins.module_utils.documents import DocumentError, load_json, load_yaml_all, off_loop
from .. import limits, operators, refusals, settings, usage
from ..calls import Call, Download, handler
from ..engine import Engine
from ..errors import ApiError
from ..objects import Cluster
from ..tables import BEFORE_INSTALL


def _manifest(folder: str, name: str, source: str = "user") -> dict[str, Any]:
    return {"folder": folder, "file_name": name, "manifest_source": source}


async def _manifest_content(text: str, path: str, cluster_id: str) -> bytes:
    """Return the content of a user's manifest; ApiError 400 if it is invalid. It is parsed outside the event loop."""
    where = f"of file {path} for cluster ID {cluster_id}"
    if not text.strip(" "):
        raise ApiError(400, f"Manifest content {where} is empty")
    try:
        content = base64.b64decode(re.sub(r"[\r\n]", "", text), validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(400, f"failed to base64-decode cluster manifest content for cluster {cluster_id}") from None
    if len(content) > limits.MAX_MANIFEST:
        raise ApiError(400, f"Manifest content {where} exceeds the maximum file size of 1MiB")
    json_file, patch = path.endswith(".json"), ".patch" in path.rpartition("/")[2]
    try:
        found = await off_loop(load_json if json_file else load_yaml_all, content, name=path)
        if patch and not json_file and not all(isinstance(entry, list) for entry in found):
            raise ValueError("it should be a list of operations")
    except ValueError as err:
        reason = f"yaml: line {err.line}: {err.problem}" if isinstance(err, DocumentError) else str(err)
        reason = " ".join(reason.split())[:300]
        if json_file:
            raise ApiError(400, f"Manifest content {where} has an illegal JSON format") from None
        if patch:
            raise ApiError(400, f"Patch content {where} is invalid: {reason}") from None
        raise ApiError(400, f"Manifest content {where} has an invalid YAML format: {reason}") from None
    _check_settings(found if isinstance(found, list) else [found], content, where)
    return content


def _check_settings(documents: list[object], content: bytes, where: str) -> None:
    """Validate a cluster's settings here: later, no user is there to correct them."""
    values = settings.settings_of(documents)
    if values is None:
        return
    if len(content) > settings.MOST_BYTES:  # before its values, which are checked on the event loop
        problems = [f"it has {len(content)} bytes, the limit of a manifest with settings is {settings.MOST_BYTES}"]
    elif settings.read(content) is None:
        problems = ["it has more than 1,000 values"]
    else:
        problems = [text for name, value in values.items() if (text := settings.problem(str(name), value))]
    if problems:
        raise ApiError(400, f"Manifest content {where} has invalid settings: {'; '.join(problems)[:1000]}")


@handler
def list_manifests(e: Engine, call: Call) -> Any:
    cluster = e.clusters.get(call.path["cluster_id"].lower())
    if cluster is None:
        raise ApiError(404, "Object Not Found")
    found = [_manifest(*name.split("/", 2)[1:]) for name in e.store.file_names(cluster["id"], "manifest/")]
    if call.query.get("include_system_generated"):
        known = {(entry["folder"], entry["file_name"]) for entry in found}
        made, __ = operators.manifests(cluster)
        found += [_manifest("openshift", name, "system") for name in made if ("openshift", name) not in known]
    return found


def _changeable(cluster: Cluster) -> None:
    if cluster["status"] not in BEFORE_INSTALL:
        raise ApiError(
            400,
            f"cluster {cluster['id']} is not in pre-installation states, can't modify manifests after installation has been started",
        )


def _distinct(e: Engine, cluster: Cluster, folder: str, name: str) -> None:
    other = "openshift" if folder == "manifests" else "manifests"
    if e.store.file(cluster["id"], f"manifest/{other}/{name}") is not None:
        raise ApiError(
            400,
            f"manifest file {name} for cluster ID {cluster['id']} in folder {folder} cannot be uploaded as it is not distinct between "
            "{manifest, openshift} folders",
        )


def _put_manifest(e: Engine, cluster: Cluster, folder: str, name: str, content: bytes | None) -> None:
    e.store.put_file(cluster["id"], f"manifest/{folder}/{name}", content)
    e.settings_changed(cluster["id"])


@handler
async def create_manifest(e: Engine, call: Call) -> Any:
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    folder, name = body.get("folder", "manifests"), body["file_name"]
    refusals.manifest_name(name, cluster["id"])
    content = await _manifest_content(body["content"], f"{folder}/{name}", cluster["id"])
    cluster = e.cluster(call.path["cluster_id"])  # it may have been deleted, or its installation started, meanwhile
    _distinct(e, cluster, folder, name)
    _put_manifest(e, cluster, folder, name, content)
    usage.note(cluster, usage.MANIFEST)
    return _manifest(folder, name)


def _existing(e: Engine, cluster: Cluster, folder: str, name: str) -> bytes:
    content = e.store.file(cluster["id"], f"manifest/{folder}/{name}")
    if content is None:
        raise ApiError(404, f"Cluster manifest {folder}/{name} doesn't exist in cluster {cluster['id']}")
    return content


@handler
async def update_manifest(e: Engine, call: Call) -> Any:
    cluster, body = e.cluster(call.path["cluster_id"]), call.body
    folder, name = body.get("updated_folder") or body["folder"], body.get("updated_file_name") or body["file_name"]
    _changeable(cluster)
    for file_name in (body["file_name"], name):
        refusals.manifest_name(file_name, cluster["id"])
    _existing(e, cluster, body["folder"], body["file_name"])
    if name != body["file_name"]:
        _distinct(e, cluster, folder, name)
    new = None
    if body.get("updated_content") is not None:
        new = await _manifest_content(body["updated_content"], name, cluster["id"])
        cluster = e.cluster(call.path["cluster_id"])
        _changeable(cluster)
    content = _existing(e, cluster, body["folder"], body["file_name"]) if new is None else new
    _put_manifest(e, cluster, folder, name, content)
    if (folder, name) != (body["folder"], body["file_name"]):
        _put_manifest(e, cluster, body["folder"], body["file_name"], None)
    return _manifest(folder, name)


@handler
def delete_manifest(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    folder, name = call.query.get("folder", "manifests"), call.query["file_name"]
    _changeable(cluster)
    refusals.manifest_name(name, cluster["id"])
    _put_manifest(e, cluster, folder, name, None)
    usage.note(cluster, usage.MANIFEST, e.has_manifests(cluster["id"]))
    return None


@handler
def download_manifest(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    name = call.query["file_name"]
    refusals.manifest_name(name, cluster["id"])
    return Download(name, _existing(e, cluster, call.query.get("folder", "manifests"), name))
