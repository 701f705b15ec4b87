"""The real registration client's requests for manifests of ours: our client makes the same, and our service takes them.

`client.json`, for each of some profiles: its `manifests`, its `extra` manifests, and the requests that change something, as the real client
sent them to a real service, which answered with `status`.
"""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.client import register
from ansible_collections.agentlab.ocp.tests.recorded.replay import HERE

from .lab import Lab

PROFILES: list[dict[str, Any]] = json.loads((HERE / "client.json").read_text())


class Service:
    """Answers as one that had nothing yet, and keeps what it is asked to make."""

    def __init__(self) -> None:
        self.made: list[tuple[str, str, Any]] = []
        self.objects: dict[str, list[dict[str, Any]]] = {"/clusters": [], "/infra-envs": []}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        path = urllib.parse.urlsplit(path).path
        if method == "GET":
            return self.objects.get(path) or (
                [] if path in self.objects or path.endswith("/manifests") else self.objects["/clusters"][0]
            )
        self.made.append((method, path, body))
        if path in self.objects:
            self.objects[path].append({**body, "id": f"id-of{path}"})
            return self.objects[path][-1]
        return {}


def plain(body: Any) -> Any:
    """Without what the real client sends empty, and without ids."""
    return {key: value for key, value in body.items() if value not in (None, [], {}, "") and key != "cluster_id"}


@pytest.fixture(params=PROFILES, ids=lambda profile: profile["profile"])
def profile(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    for folder in ("manifests", "extra"):
        (tmp_path / folder).mkdir()
        for name, text in request.param[folder].items():
            (tmp_path / folder / name).write_text(text)
    return dict(request.param)


def test_our_client_asks_for_the_same(profile: dict[str, Any], tmp_path: Path) -> None:
    service: Any = Service()
    register.register_cluster(service, tmp_path / "manifests", tmp_path / "extra", tmp_path / "client_config")
    register.register_infra_env(service, tmp_path / "manifests", {})
    ids = {entry["id"]: f"id-of{entry['path']}" for entry in profile["requests"] if entry["path"] in service.objects}
    recorded = []
    for entry in profile["requests"]:
        path = entry["path"]
        for ident, other in ids.items():
            path = path.replace(ident, other)
        recorded.append((entry["method"], path, plain(entry["body"])))
    assert [(method, path, plain(body)) for method, path, body in service.made] == recorded


async def test_our_service_takes_it(profile: dict[str, Any], tmp_path: Path) -> None:
    release = {
        "openshift_version": "4.22.0-lab",
        "version": "4.22.0-lab",
        "cpu_architecture": "x86_64",
        "cpu_architectures": ["x86_64"],
    }
    image = profile["requests"][0]["body"]["ocp_release_image"]
    environment = {"RELEASE_IMAGES": json.dumps([{**release, "url": image}]), "TNA_CLUSTERS_SUPPORT": "true"}
    async with Lab(tmp_path / "state", environment) as lab:
        ids: dict[str, str] = {}
        for entry in profile["requests"]:
            text = json.dumps([entry["path"], entry["body"]])
            for ident, other in ids.items():
                text = text.replace(ident, other)
            path, body = json.loads(text)
            code, raw, __ = await lab.raw(entry["method"], path, json=body)
            assert code == entry["status"], raw
            if entry["id"]:
                ids[entry["id"]] = json.loads(raw)["id"]
