"""An API server on loopback, and the installer's signers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from ansible_collections.agentlab.ocp.payload.cluster.api.access import Access, User
from ansible_collections.agentlab.ocp.payload.cluster.api.server import Api
from ansible_collections.agentlab.ocp.payload.cluster.pki import Signer
from ansible_collections.agentlab.ocp.payload.cluster.resources import Registry
from ansible_collections.agentlab.ocp.payload.cluster.store import Store

SIGNERS = (
    "kube-apiserver-lb-signer",
    "kube-apiserver-localhost-signer",
    "kube-apiserver-service-network-signer",
    "admin-kubeconfig-signer",
)


@pytest.fixture(scope="session")
def tls_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    for name in SIGNERS:
        pair = Signer.create(name).pair
        (folder / f"{name}.crt").write_text(pair.certificate)
        (folder / f"{name}.key").write_text(pair.key)
    return folder


class Client:
    """Calls the API as the administrator."""

    def __init__(self, http: TestClient[Any, Any], store: Store) -> None:
        self.http, self.store = http, store

    async def call(
        self, method: str, path: str, body: Any = None, code: int = 200, token: str = "admin", **headers: str
    ) -> Any:
        headers = {
            "Authorization": f"Bearer {token}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        answer = await self.http.request(
            method,
            path,
            json=body if not isinstance(body, bytes) else None,
            data=body if isinstance(body, bytes) else None,
            headers=headers,
        )
        assert answer.status == code, await answer.text()
        return await answer.json() if "json" in answer.content_type else await answer.text()


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Client]:
    store = Store()
    store.begin_epoch(1)
    store.create(
        "namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}, "status": {"phase": "Active"}},
    )
    access = Access(
        {
            "admin": User("system:admin", ("system:masters",)),
            "node": User("system:node:n", ("system:nodes",)),
            "boot": User("bootstrapper", ("system:bootstrappers",)),
        }
    )
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", Api(store, Registry(), access, "v1.35.0").handle)
    async with TestClient(TestServer(app)) as http:
        yield Client(http, store)
