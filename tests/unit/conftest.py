"""Unit tests do not depend on the labs of this machine, nor on former runs."""

from __future__ import annotations

import asyncio
import gc
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import names
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page import history
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

#: Seconds that `_reference` takes there.
USUAL = 0.004


def _reference() -> float:
    """Processor time of work like that of the service, in seconds."""
    before = time.thread_time()
    text = json.dumps([{"cidr": f"10.{n}.0.0/16", "name": f"n{n}"} for n in range(2500)])
    assert len({entry["name"]: entry for entry in json.loads(text)}) == 2500
    return time.thread_time() - before


def slowness() -> float:
    """Return how many times slower this machine is now than a usual one; at least 1."""
    return max(1.0, min(_reference() for __ in range(5)) / USUAL)


@asynccontextmanager
async def _watched() -> AsyncIterator[Callable[[], float]]:
    """The longest turn of the event loop so far, in seconds of a usual processor.

    It is processor time of the loop's thread between two turns: the load of the machine does not count.
    """
    slow = slowness()
    longest, done = 0.0, False

    async def tick() -> None:
        nonlocal longest
        while not done:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)

    gc.freeze()  # what the tests have loaded is not part of it
    task = asyncio.create_task(tick())
    await asyncio.sleep(0.01)
    try:
        yield lambda: longest / slow
    finally:
        done = True
        await task
        gc.unfreeze()


@pytest.fixture
def watched() -> Callable[[], AbstractAsyncContextManager[Callable[[], float]]]:
    """A context that measures how long the event loop is held."""
    return _watched


@pytest.fixture(autouse=True)
def no_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of tests name the default state directory, where a developer may have a cluster of the same name."""
    read = owner.read
    monkeypatch.setattr(
        owner, "read", lambda state_dir: None if Path(names.STATE_DIR) in state_dir.parents else read(state_dir)
    )


@pytest.fixture(autouse=True)
def no_history(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setattr(history, "cache_directory", lambda: tmp_path_factory.getbasetemp() / "history")
