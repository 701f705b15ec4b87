"""A million events: how long a question holds the service's loop, and how long its answer takes.

CPU time of the loop's thread between two of its turns is the measure that does not depend on who else uses the machine.
Figures go to standard output (`pytest -s`), and to the file that AGENTLAB_BENCHMARK names, as JSON lines.
"""

from __future__ import annotations

import asyncio
import gc
import time
import urllib.request
from pathlib import Path
from typing import Any

from aiohttp.test_utils import TestServer
from ansible_collections.agentlab.ocp.payload.api_server import events
from ansible_collections.agentlab.ocp.payload.api_server.__main__ import collect_rarely
from ansible_collections.agentlab.ocp.payload.api_server.app import Service
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.api_server.store import Store

from .test_service import V2, record

EVENTS, HOSTS, CLUSTERS = 1_000_000, 5000, 100
QUESTIONS = {
    "the page's": "limit=200&order=descending",
    "a cluster's": "cluster_id=00000000-0000-0000-0000-000000000007&limit=200&order=descending",
    "the last page": "limit=100&offset=999900",
    "a word": "message=nothing",
    "a cluster's own": "cluster_id=00000000-0000-0000-0000-000000000007&cluster_level=true",
    "a host's": "host_id=00000000-0000-0001-0000-000000000007",
    "all": "",
}


def fill(path: Path) -> None:
    store = Store(path)
    clusters = [f"00000000-0000-0000-0000-{number:012}" for number in range(CLUSTERS)]
    hosts = [f"00000000-0000-0001-0000-{number:012}" for number in range(HOSTS)]
    marks = ",".join("?" * len(events.FIELDS))
    store.db.execute("BEGIN")
    store.db.executemany(
        f"INSERT INTO event ({', '.join(events.FIELDS)}) VALUES ({marks})",
        (
            ("host_status_updated", clusters[n % CLUSTERS], None if n % 3 == 0 else hosts[n % HOSTS], clusters[n % CLUSTERS],
             ("info", "warning")[n % 11 == 0], "user",
             f"Host node-{n % HOSTS}: updated status from known to insufficient (number {n})", "2026-11-22T01:00:00.000Z", None)
            for n in range(EVENTS)
        ),
    )  # fmt: skip
    store.db.execute("COMMIT")
    store.close()


class Watch:
    """The longest turn of the event loop, in CPU seconds of its thread."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            self.longest = max(self.longest, time.thread_time() - before)

    def end(self) -> float:
        self._task.cancel()
        return self.longest


def _get(url: str) -> tuple[int, int]:
    with urllib.request.urlopen(url, timeout=600) as answer:
        size = 0
        while piece := answer.read(65536):
            size += len(piece)
        return int(answer.headers["Event-Count"]), size


async def _ask(folder: Path) -> dict[str, dict[str, Any]]:
    config = Config({"AUTH_TYPE": "none", "DUMMY_IGNITION": "true"}, folder, folder / "state.sqlite").check()
    started = time.thread_time()
    engine = Engine(config, Store(config.state_file))
    record(events=EVENTS, start_cpu_s=round(time.thread_time() - started, 2))
    server = TestServer(Service(engine).app())
    await server.start_server()
    # As the service does when it starts: the objects of the test runner are not what a question goes through.
    thresholds = gc.get_threshold()
    collect_rarely()
    found: dict[str, dict[str, Any]] = {}
    for name, query in QUESTIONS.items():
        watch = Watch()
        started = time.monotonic()
        # The caller has a thread of its own: what it costs is not the service's.
        total, size = await asyncio.to_thread(_get, str(server.make_url(f"{V2}/events?{query}")))
        found[name] = {
            "total": total,
            "bytes": size,
            "seconds": round(time.monotonic() - started, 2),
            "loop_ms": round(1000 * watch.end(), 1),
        }
        record(question=name, **found[name])
    await server.close()
    gc.set_threshold(*thresholds)
    gc.unfreeze()
    return found


def test_a_million_events(tmp_path: Path) -> None:
    fill(tmp_path / "state.sqlite")
    found = asyncio.run(_ask(tmp_path))
    assert found["all"]["total"] == EVENTS and found["a word"]["total"] == 0
    assert max(entry["loop_ms"] for entry in found.values()) < 50
