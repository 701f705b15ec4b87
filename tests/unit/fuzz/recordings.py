"""Recordings that are damaged: the few lines of one that causes are read from, with other lines before them."""

from __future__ import annotations

import functools
import gzip
import json
import random
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils.plan.stored import PlanError
from ansible_collections.agentlab.ocp.plugins.module_utils.report import facts, replay
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes
from ansible_collections.agentlab.ocp.plugins.module_utils.report.replay.server import ReplayClock
from ansible_collections.agentlab.ocp.plugins.module_utils.state.recording import at_the_end, load
from ansible_collections.agentlab.ocp.tests.recorded import playing
from damage import bend, mangle

JOBS = Path(__file__).parents[2] / "recorded" / "jobs"
_PATHS = (
    "/api/v1/nodes", "/api/assisted-install/v2/events?limit=3&order=descending", "/api/assisted-install/v2/clusters",
    "/api/assisted-install/v2/clusters/x/hosts",
)  # fmt: skip


@functools.cache
def recordings() -> list[tuple[dict[str, Any], ...]]:
    """The entries of each recording, in their order."""
    texts = [gzip.decompress(path.read_bytes()) for path in sorted(JOBS.glob("*.jsonl.gz"))]
    return [tuple(json.loads(line) for line in text.splitlines()) for text in texts]


def damaged(rng: random.Random, entries: Any) -> bytes:
    """Some lines, some of them with other values, or bytes that are damaged."""
    found = [entries[at] for at in sorted(rng.sample(range(len(entries)), min(len(entries), rng.choice((3, 6, 12)))))]
    found += [one for one in entries if one["source"] == "lab"][: rng.choice((3, 8))]
    if (kind := rng.random()) < 0.6:
        for __ in range(rng.choice((1, 1, 2, 5))):
            at = rng.randrange(len(found))
            patch = found[at]["patch"]
            whole = isinstance(patch, list) and len(patch) == 1
            found[at] = {**found[at], "patch": [bend(rng, patch[0])] if whole else bend(rng, patch)}
    elif kind < 0.8:
        at = rng.randrange(len(found))
        found[at] = bend(rng, found[at])
    data = b"".join(json.dumps(one).encode() + b"\n" for one in found)
    return data if kind < 0.8 else mangle(rng, data)


@functools.cache
def _plan() -> Any:
    return next(one["patch"][0] for entries in recordings() for one in entries if one["path"] == facts.PLAN)


def read(data: bytes) -> None:
    """What a replay and `reproduce` do with it. Its plan may be lost: then causes are looked for with another one."""
    try:
        recording = load(data, "x")
    except ValueError as error:
        assert "has no line of a recording" in str(error) or "gzip" in str(error)
        return
    end = at_the_end(recording)
    try:
        plan = facts.plan_of(end) or _plan()
    except PlanError:
        plan = _plan()
    causes(playing.replayed(end, plan))
    list(replay.derived_events(recording))
    played = ReplayClock(replay.Replay("x", recording, plan, [], []), 1e9)
    for path in _PATHS:
        played.answer(path)
