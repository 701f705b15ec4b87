"""What was acknowledged survives a loss of power; what was refused never happens.

SQLite flushes its main file whenever it writes to it (checkpoints), and the WAL before that; everything since then is in the
WAL, which the store flushes for those who wait. So after a loss of power there are the main file and the WAL as it was when its
last flush began: `Power` keeps that, and drops all that was written later.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import store as stores
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.api_server.store import Store, Unwritable

from .lab import ENV, PULL_SECRET, Agent, Lab


class Power:
    """Keeps what the disk has of a store's files."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path, self.flushes, self.works = Path(store.path), 0, True
        self.wal = b""
        real = os.fdatasync

        def flush(handle: int) -> None:
            if os.readlink(f"/proc/self/fd/{handle}") == f"{self.path}-wal" and self.works:
                before = Path(f"{self.path}-wal").read_bytes()
                real(handle)
                self.wal, self.flushes = before, self.flushes + 1

        monkeypatch.setattr(stores.os, "fdatasync", flush)

    def lost(self, folder: Path) -> Store:
        """The store as the next service finds it."""
        folder.mkdir()
        shutil.copy(self.path, folder)
        (folder / f"{self.path.name}-wal").write_bytes(self.wal)
        return Store(folder / self.path.name)


async def test_acknowledged_writes_survive_a_loss_of_power(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "x.db")
    power = Power(store, monkeypatch)
    acknowledged: set[str] = set()

    async def writer(number: int) -> None:
        for turn in range(20):
            ident = f"{number}-{turn}"
            store.create("host", ident, {"id": ident, "text": "x" * 300})
            store.event({"severity": "info", "message": ident, "category": "user"})
            await store.durable()
            acknowledged.add(ident)

    writers = [asyncio.create_task(writer(number)) for number in range(8)]
    for turn in range(12):
        await asyncio.sleep(0.005)
        known = set(acknowledged)
        found = power.lost(tmp_path / f"lost{turn}")
        assert known <= set(found.kinds["host"])
        assert known <= {message for (message,) in found.db.execute("SELECT message FROM event")}
        found.close()
    await asyncio.gather(*writers)
    assert len(power.lost(tmp_path / "end").kinds["host"]) == 160
    assert power.flushes < 160, "those who wait at the same time share a flush"
    store.close()


async def test_the_test_would_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a flush nothing is there, though every commit was made."""
    store = Store(tmp_path / "x.db")
    power = Power(store, monkeypatch)
    power.works = False
    for number in range(20):
        store.create("host", str(number), {"id": str(number)})
        await store.durable()
    assert power.lost(tmp_path / "lost").kinds["host"] == {}
    store.close()


async def test_checkpoints_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "x.db")
    store.db.execute("PRAGMA wal_autocheckpoint = 5")
    power = Power(store, monkeypatch)
    for number in range(60):
        store.create("host", str(number), {"id": str(number), "text": "x" * 3000})
        await store.durable()
        if number % 7 == 0:
            found = power.lost(tmp_path / f"lost{number}")
            assert len(found.kinds["host"]) == number + 1
            found.close()
    store.close()


async def test_requests_are_acknowledged_when_the_disk_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Lab(tmp_path) as lab:
        power = Power(lab.engine.store, monkeypatch)
        clusters = await asyncio.gather(*(lab.cluster(name=f"c{number}") for number in range(20)))
        infra_env = await lab.infra_env(clusters[0]["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        await lab.call("PATCH", f"/clusters/{clusters[3]['id']}", {"name": "renamed"})
        await lab.call("DELETE", f"/clusters/{clusters[5]['id']}", status=204)
        found = power.lost(tmp_path / "lost")
        assert {name for name, cluster in found.kinds["cluster"].items()} == {cluster["id"] for cluster in clusters} - {
            clusters[5]["id"]
        }
        assert found.kinds["cluster"][clusters[3]["id"]]["name"] == "renamed" and agent.id in found.kinds["host"]
        # Reading does not wait for a flush.
        before = power.flushes
        for __ in range(10):
            await lab.call("GET", f"{agent.path}/instructions", query={"timestamp": 1})
        assert power.flushes - before < 10


async def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed flush the content of the disk is unknown: nothing is acknowledged any more, reading continues."""
    async with Lab(tmp_path) as lab:
        cluster = await lab.cluster()

        def fails(handle: int) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(stores.os, "fdatasync", fails)
        for name in ("a", "b"):
            refused = await unavailable(lab, "PATCH", f"/clusters/{cluster['id']}", {"name": name})
            assert "the disk failed (Input/output error); start the service again" in refused["reason"]
        monkeypatch.undo()
        await unavailable(lab, "PATCH", f"/clusters/{cluster['id']}", {"name": "c"})
        await lab.call("GET", f"/clusters/{cluster['id']}")


# -- refused ------------------------------------------------------------------------------------------------------------


def fields_of(store: Store) -> dict[str, Any]:
    return {
        kind: {ident: dict(document) for ident, document in documents.items()}
        for kind, documents in store.kinds.items()
    }


@pytest.mark.parametrize("seed", range(20))
def test_any_refused_change_is_undone(tmp_path: Path, seed: int) -> None:
    """Random changes; some commits find the disk full. The store is then what it was, in memory and in its file."""
    draw = random.Random(seed)
    store = Store(tmp_path / "x.db")
    seen: list[set[tuple[str, str]]] = []
    store.on_undo = seen.append
    (most,) = store.db.execute("PRAGMA max_page_count").fetchone()
    committed, events, files = fields_of(store), 0, dict[str, bytes]()
    for __ in range(150):
        pending_events, pending_files = 0, dict[str, bytes | None]()
        for __ in range(draw.randrange(1, 6)):
            kind, ident = draw.choice(["cluster", "host"]), draw.choice("abcd")
            document = store.kinds[kind].get(ident)
            match draw.randrange(6):
                case 0:
                    store.create(kind, ident, {"id": ident, "text": draw.random()})
                case 1:
                    store.delete(kind, ident)
                case 2 if document is not None:
                    document[draw.choice("xyz")] = "v" * draw.randrange(2000)
                case 3 if document is not None:
                    document.set(x=None, y=draw.random())
                case 4:
                    store.event({"message": "m", "severity": "info", "category": "user"})
                    pending_events += 1
                case 5:
                    name, content = draw.choice("abc"), draw.choice([None, draw.randbytes(3000)])
                    store.put_file("o", name, content)
                    pending_files[name] = content
        if draw.random() < 0.4:
            (pages,) = store.db.execute("PRAGMA page_count").fetchone()
            store.db.execute(f"PRAGMA max_page_count = {pages}")
            store.put_file("o", "large", bytes(2**20))
            with pytest.raises(Unwritable, match="disk is full"):
                store.commit()
            store.db.execute(f"PRAGMA max_page_count = {most}")
            assert fields_of(store) == committed and seen
        else:
            store.commit()
            committed, events = fields_of(store), events + pending_events
            files = {name: content for name, content in {**files, **pending_files}.items() if content is not None}
        assert dict(store.files("o")) == files
        assert store.db.execute("SELECT count(*) FROM event").fetchone() == (events,)
    assert [list(documents) for documents in store.kinds.values()] == [
        list(documents) for documents in committed.values()
    ]
    store.close()
    again = Store(tmp_path / "x.db")
    assert fields_of(again) == committed
    again.close()


async def test_a_refused_request_is_not_done_later(tmp_path: Path) -> None:
    """503 on a full disk: neither this service nor the next one does it when there is space again."""
    async with Lab(tmp_path) as lab:
        store = lab.engine.store
        cluster = await lab.cluster(high_availability_mode="None")
        path = f"/clusters/{cluster['id']}"
        infra_env = await lab.infra_env(cluster["id"])
        agent = Agent(lab, infra_env["id"], 0)
        await agent.register()
        await agent.poll()
        await lab.until(path, lambda found: found["hosts"] and found["hosts"][0].get("inventory"))
        before = await lab.call("GET", path)
        real = store._write

        def full() -> None:
            raise stores.sqlite3.OperationalError("database or disk is full")

        store._write = full
        await unavailable(lab, "PATCH", path, {"name": "refused"})
        await unavailable(
            lab, "POST", "/clusters", {"name": "refused", "openshift_version": "4.22.0-lab", "pull_secret": PULL_SECRET}
        )
        await unavailable(lab, "POST", f"{path}/manifests", {"file_name": "refused.yaml", "content": "YTogMQo="})
        await unavailable(lab, "PATCH", agent.path, {"host_name": "refused"})
        await unavailable(lab, "DELETE", agent.path)
        await unavailable(lab, "POST", f"/infra-envs/{infra_env['id']}/hosts", {"host_id": str(uuid.uuid4())})
        await unavailable(lab, "DELETE", path)
        assert (await lab.call("GET", path))["name"] == before["name"], "reading continues"
        store._write = real
        await lab.call("PATCH", path, {"base_dns_domain": "other.example"})
        found = await lab.call("GET", path)
        assert found["name"] == before["name"] and len(found["hosts"]) == 1
        assert len(await lab.call("GET", "/clusters")) == 1
        assert await lab.call("GET", f"{path}/manifests") == []
        assert found["hosts"][0].get("requested_hostname") == before["hosts"][0].get("requested_hostname")
        engine = lab.engine
        assert set(engine.hosts) == {agent.id} == set(engine.members[cluster["id"]]) == set(engine.inventories)
        await agent.poll()  # and the agent continues
    again = Engine(Config(ENV, tmp_path, tmp_path / "state.sqlite").check(), Store(tmp_path / "state.sqlite"))
    assert again.clusters[cluster["id"]]["name"] == before["name"] and set(again.hosts) == {agent.id}
    again.store.close()


async def unavailable(lab: Lab, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """503, which the description does not have for every operation."""
    code, raw, __ = await lab.raw(method, path, json=body)
    assert code == 503, (method, path, raw)
    value: dict[str, Any] = json.loads(raw)
    return value
