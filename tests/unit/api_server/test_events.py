"""Events: what is asked for is what is there, and no question holds the event loop, however many there are.

What a slice of the loop costs is counted in instructions of SQLite's virtual machine: the machine's load does not matter.
"""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import random
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import events
from ansible_collections.agentlab.ocp.payload.api_server.events import Filter
from ansible_collections.agentlab.ocp.payload.api_server.store import Store

from .lab import Lab

STEPS = 100
#: Instructions that may run without a pause; a window of 1,000 events has about 40,000.
MOST = 150_000
CLUSTERS, HOSTS = (
    [str(uuid.UUID(int=number)) for number in range(3)],
    [str(uuid.UUID(int=number)) for number in range(10, 40)],
)


def make(number: int) -> dict[str, Any]:
    draw = random.Random(number)
    host = draw.choice([None, *HOSTS])
    return {
        "name": f"event{number % 7}", "cluster_id": draw.choice([None, *CLUSTERS]), "host_id": host, "infra_env_id": draw.choice([None, *CLUSTERS]),
        "severity": draw.choice(["info", "info", "info", "warning", "error", "critical"]), "category": draw.choice(["user", "user", "user", "metrics"]),
        "message": f"Message {number} of {draw.choice(['Hosts', 'clusters'])}", "event_time": "2026-11-22T01:00:00.000Z", "props": None,
    }  # fmt: skip


def filled(store: Store, count: int, start: int = 0) -> list[dict[str, Any]]:
    made = [make(number) for number in range(start, start + count)]
    for event in made:
        store.event(event)
    store.commit()
    return made


class Slices:
    """The most instructions that SQLite ran between two turns of the event loop."""

    def __init__(self, store: Store) -> None:
        self.now = self.most = 0
        store.db.set_progress_handler(self._step, STEPS)
        self._ticker = asyncio.create_task(self._tick())

    def _step(self) -> int:
        self.now += STEPS
        return 0

    async def _tick(self) -> None:
        while True:
            self.most, self.now = max(self.most, self.now), 0
            await asyncio.sleep(0)

    def end(self) -> int:
        self._ticker.cancel()
        return max(self.most, self.now)


def expected(made: list[dict[str, Any]], gone: set[str], wanted: Filter) -> list[dict[str, Any]]:
    def takes(event: dict[str, Any]) -> bool:
        by_host = (
            not (wanted.hosts or wanted.cluster_level or wanted.deleted_hosts)
            or event["host_id"] in wanted.hosts
            or (wanted.cluster_level and event["host_id"] is None)
            or (wanted.deleted_hosts and event["host_id"] in gone)
        )
        return (
            (not wanted.cluster_id or event["cluster_id"] == wanted.cluster_id) and (not wanted.infra_env_id or event["infra_env_id"] == wanted.infra_env_id)
            and by_host and wanted.message.lower() in event["message"].lower()
            and (not wanted.categories or event["category"] in wanted.categories) and (not wanted.severities or event["severity"] in wanted.severities)
        )  # fmt: skip

    return [{name: event[name] for name in events.SHOWN if event[name]} for event in made if takes(event)]


def any_filter(draw: random.Random) -> Filter:
    return Filter(
        draw.choice(["", "", *CLUSTERS]), draw.choice(["", "", "", *CLUSTERS]), tuple(draw.sample(HOSTS, draw.choice([0, 0, 1, 3]))), draw.random() < 0.3,
        draw.random() < 0.3, draw.choice(["", "", "hosts", "MESSAGE 1", "nothing"]), draw.choice([(), ("user",), ("user", "metrics")]),
        draw.choice([(), ("info",), ("error", "critical")]),
    )  # fmt: skip


async def ask(store: Store, wanted: Filter, **options: Any) -> list[dict[str, Any]]:
    return [event async for page in store.event_pages(wanted, **options) for event in page]


@pytest.mark.parametrize("seed", range(4))
async def test_any_question_is_answered(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "WINDOW", 64)
    monkeypatch.setattr(events, "COUNTS", 10)
    draw = random.Random(seed)
    store = Store(tmp_path / "x.db")
    made, gone = filled(store, 1500), set[str]()
    for turn in range(120):
        wanted, limit, offset = any_filter(draw), draw.choice([-1, 0, 1, 70, 5000]), draw.choice([0, 0, 1, 65, 1400])
        good = expected(made, gone, wanted)
        assert await store.count_events(wanted) == Counter(event["severity"] for event in good), wanted
        for descending in (False, True):
            ordered = good[::-1] if descending else good
            found = await ask(store, wanted, descending=descending, limit=limit, offset=offset)
            assert found == (ordered[offset:] if limit < 0 else ordered[offset : offset + limit]), (
                wanted,
                limit,
                offset,
                descending,
            )
        match draw.randrange(12):
            case 0:
                gone.add(host := draw.choice(HOSTS))
                store.drop_events("host_id", host)
                store.commit()
            case 1 if turn > 60:
                cluster, column = draw.choice(CLUSTERS), draw.choice(["cluster_id", "infra_env_id"])
                made = [event for event in made if event[column] != cluster]
                store.drop_events(column, cluster)
                store.commit()
            case 2:
                store.sweep()
            case 3:
                while store.sweep():
                    pass
            case 4:
                new = filled(store, 50, 10_000 + 100 * turn)
                made += new
                # Events of a host that came back are not those of the deleted one.
                if gone & {event["host_id"] for event in new}:
                    return
            case 5:
                store.close()
                store = Store(tmp_path / "x.db")
    store.close()


async def test_a_host_that_came_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.db")
    event = {**make(1), "host_id": HOSTS[0], "category": "user"}
    for __ in range(300):
        store.event({**event, "message": "old"})
    store.commit()
    store.drop_events("host_id", HOSTS[0])
    store.commit()
    store.event({**event, "message": "new"})
    for __ in range(5):
        found = await ask(store, Filter(deleted_hosts=True))
        assert {entry["message"] for entry in found} == {"old"} and len(found) == 300
        assert sum((await store.count_events(Filter(deleted_hosts=True))).values()) == 300
        assert len(await ask(store, Filter(hosts=(HOSTS[0],)))) == 301
        store.sweep()
    store.close()


async def test_no_question_holds_the_loop(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.db")
    made = filled(store, 30_000)
    slices = Slices(store)
    one = Filter(cluster_id=CLUSTERS[0])
    for wanted in (Filter(), one, Filter(infra_env_id=CLUSTERS[1]), Filter(hosts=tuple(HOSTS[:3])), Filter(message="nothing"), Filter(message="hosts"),
                   Filter(cluster_id=CLUSTERS[2], message="nothing"), Filter(hosts=(HOSTS[3],), message="9"), Filter(severities=("critical",))):  # fmt: skip
        await store.count_events(wanted)
        for options in (
            {},
            {"descending": True},
            {"limit": 10, "offset": 29_000},
            {"limit": 200, "descending": True},
            {"limit": 5, "offset": 10**9},
        ):
            async for _page in store.event_pages(wanted, **options):
                pass
    # What was deleted is removed in pieces as well.
    store.drop_events("cluster_id", CLUSTERS[0])
    store.drop_events("host_id", HOSTS[0])
    store.commit()
    assert await ask(store, one) == []
    while store.sweep():
        await asyncio.sleep(0)
    assert store.db.execute("SELECT count(*) FROM event").fetchone()[0] == len(
        [event for event in made if event["cluster_id"] != CLUSTERS[0]]
    )
    assert slices.end() < MOST
    store.close()


@pytest.mark.parametrize("more", [{"cluster_level": True}, {"infra_env_id": CLUSTERS[2]}, {"hosts": (HOSTS[0],)}])
async def test_a_window_is_read_by_the_index_that_measured_it(tmp_path: Path, more: dict[str, Any]) -> None:
    """Few events of a cluster, among many that the other fields of the filter select."""
    store = Store(tmp_path / "x.db")
    for number in range(30_000):
        store.event({**make(number), "cluster_id": CLUSTERS[number % 100 != 0], "host_id": more.get("hosts", [None])[0],
                     "infra_env_id": CLUSTERS[2]})  # fmt: skip
    store.commit()
    slices = Slices(store)
    wanted = Filter(cluster_id=CLUSTERS[0], **more)
    assert len(await ask(store, wanted)) == 300
    assert sum((await store.count_events(dataclasses.replace(wanted, message="message"))).values()) == 300
    assert slices.end() < MOST
    store.close()


async def test_a_count_reads_no_event(tmp_path: Path) -> None:
    """The page requests counts every few seconds: they cost the same whatever is there."""
    store = Store(tmp_path / "x.db")
    filled(store, 5000)
    slices = Slices(store)
    assert sum((await store.count_events(Filter())).values()) == 5000
    assert slices.end() == 0
    store.close()


async def test_texts_are_those_of_the_documents(tmp_path: Path) -> None:
    store = Store(tmp_path / "x.db")
    for message in ("", "plain", 'quoted "\\\n\x00\x7f', "\u2028 é 😀", "x" * 5000):
        store.event({**make(1), "message": message, "props": message, "host_id": ""})
    store.commit()
    texts = [text async for page in store.event_texts(Filter()) for text in page]
    assert texts == [
        json.dumps(event, ensure_ascii=False, separators=(",", ":")) for event in await ask(store, Filter())
    ]


async def test_a_long_list_does_not_slow_the_garbage_collector(tmp_path: Path) -> None:
    """It walks all objects of the process, which holds the event loop: the more there are, the longer."""
    store = Store(tmp_path / "x.db")
    filled(store, 20_000)
    passes = 0

    def count(phase: str, info: dict[str, int]) -> None:
        nonlocal passes
        passes += phase == "start"

    gc.callbacks.append(count)
    try:
        assert sum([len(page) async for page in store.event_texts(Filter())]) == 20_000
    finally:
        gc.callbacks.remove(count)
    assert passes < 5


async def test_the_list_is_sent_while_it_is_read(tmp_path: Path) -> None:
    """All events in one answer, in pieces; others are answered meanwhile."""
    async with Lab(tmp_path) as lab:
        made = filled(lab.engine.store, 20_000)
        slices = Slices(lab.engine.store)
        good = expected(made, set(), Filter(categories=("user",)))
        async with lab.session.get(lab.url("/events")) as answer:
            assert answer.status == 200 and answer.content_type == "application/json"
            assert "Content-Length" not in answer.headers and answer.headers["Event-Count"] == str(len(good))
            first = await answer.content.read(1000)
            async with lab.session.get(lab.url("/clusters")) as other:
                assert other.status == 200
            found = json.loads(first + await answer.read())
        assert found == good
        assert slices.end() < MOST
        for limit in (0, 1, 999, 1000, 1001, 5000):
            async with lab.session.get(lab.url(f"/events?limit={limit}&offset=7&order=descending")) as answer:
                assert await answer.json() == good[::-1][7 : 7 + limit]
        # A client that disconnects in the middle is not an error.
        answer = await lab.session.get(lab.url("/events"))
        answer.close()
        await lab.call("GET", "/clusters")
