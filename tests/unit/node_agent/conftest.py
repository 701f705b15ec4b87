from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import PROGRAMS, bundle
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted


@pytest.fixture
def service() -> Iterator[FakeAssisted]:
    fake = FakeAssisted(interval=0.2)
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def port() -> str:
    """A free port of 127.0.0.1, which another program may still take."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every program, as in the image."""
    folder = tmp_path_factory.mktemp("bin")
    bundle.write(folder / "agent")
    for name in PROGRAMS:
        if name != "agent":
            (folder / name).symlink_to("agent")
    return folder
