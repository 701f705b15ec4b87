"""How long an ISO takes, against what the machine can do.

Not part of the unit suite: `pytest tests/benchmark`. `AGENTLAB_BENCH_MIB` sets the size of the image.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso

SIZE = int(os.environ.get("AGENTLAB_BENCH_MIB", "1200"))
CONFIG = b'{"ignition": {"version": "3.2.0"}, "storage": {"files": []}}' * 1000


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = Path(__file__).parents[1] / "unit/coreos/conftest.py"
    spec = importlib.util.spec_from_file_location("live_iso_builder", source)
    assert spec and spec.loader
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    path = builder.build(tmp_path_factory.mktemp("bench") / "base.iso", area=1 << 18)
    block = os.urandom(1 << 20)
    with path.open("ab") as file:
        for __ in range(SIZE):
            file.write(block)
        os.fsync(file.fileno())
    return path


def best(action: Callable[[], object], clean: Callable[[], object] = lambda: None, rounds: int = 5) -> float:
    """Return the median time of an action in seconds."""
    times = []
    for __ in range(rounds):
        clean()
        os.sync()
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def test_a_copy_takes_as_long_as_cp(big: Path) -> None:
    mine, theirs = big.with_name("mine.iso"), big.with_name("theirs.iso")

    def copy() -> None:
        with LiveIso(big) as iso:
            iso.ignition = CONFIG
            iso.save_as(mine)

    def clean() -> None:
        mine.unlink(missing_ok=True)
        theirs.unlink(missing_ok=True)

    ratios = []
    for __ in range(5):  # in turns, so that the machine's other work weighs on both
        cp = best(lambda: subprocess.run(["cp", big, theirs], check=True), clean, rounds=1)
        ours = best(copy, clean, rounds=1)
        ratios.append((ours / cp, ours, cp))
    clean()
    ratio, ours, cp = sorted(ratios)[len(ratios) // 2]
    print(f"\ncopy with config: {ours:.2f} s, cp: {cp:.2f} s, ratio {ratio:.2f}")
    assert ratio <= 1.15


def test_replacing_in_place_is_instant(big: Path) -> None:
    count = iter(range(100))

    def replace() -> None:
        with LiveIso(big) as iso:
            iso.ignition = CONFIG + str(next(count)).encode()
            assert iso.save()

    taken = best(replace)
    print(f"\nreplace in place: {taken * 1000:.1f} ms")
    assert taken < 0.05
