"""One run of pytest has all the tests, cheap ones first.

With `-n`, tests that use the machine as a whole (sandboxes, guests, namespaces) stay together in one process, one after the other.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ORDER = ("lint", "unit", "conformance", "integration", "molecule", "e2e", "benchmark")
SERIAL = {"integration", "molecule", "e2e", "benchmark"}
HERE = Path(__file__).parent


def _area(path: Path) -> str:
    return path.relative_to(HERE).parts[0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: ORDER.index(_area(item.path)))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    # Not `--dist loadgroup`: with pytest 9.2, pytest-xdist 3.8 takes no notice of the groups.
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        """Hands out tests one by one in their order, and those of the machine in one piece."""

        def _split_scope(self, nodeid: str) -> str:
            area = _area(config.rootpath / nodeid.partition("::")[0])
            return "machine" if area in SERIAL else nodeid

    config.option.loadscopereorder = False
    return Scheduler(config, log)


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Restore what the main function of a program sets: another test in this process may send itself a signal."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def guests() -> Iterator[None]:
    """Hold the lock for guests, if `AGENTLAB_VM_LOCK` names one."""
    path = os.environ.get("AGENTLAB_VM_LOCK")
    if not path:
        yield
        return
    with open(path, "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
