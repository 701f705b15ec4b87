"""One run of pytest has all the tests, cheap ones first.

With `-n`, tests that share sandboxes, namespaces or guests stay together in one process, one after the other. Those that boot a
cluster come first: a virtual machine leaves time for a process with checks of sources and libraries. They compare the host before
and after, so no test of another share, which changes the host, runs meanwhile.
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import signal
import socket
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

ORDER = ("lint", "unit", "conformance", "integration", "molecule", "e2e", "benchmark")
# Folders whose tests run in one process -> name of the process's share. All others are handed out one by one.
SHARES = {
    "integration/hypervisor": "sandboxes",
    "integration/cluster": "namespaces",
    "integration/node_agent": "namespaces",
    "integration/mirror": "namespaces",
    "integration/payload_build": "namespaces",
    "molecule": "namespaces",
    "e2e": "machine",
    "benchmark": "machine",
}
HERE = Path(__file__).parent
# Seconds since 1970 after which no test begins, 0: no limit.
UNTIL = float(os.environ.get("AGENTLAB_TESTS_UNTIL", "0"))

UMASK = 0o022
os.umask(UMASK)  # as the entry points, below which most tests call; those that start a program as a user does take 077
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored


def _area(path: Path) -> str:
    return path.relative_to(HERE).parts[0]


def _share(path: Path) -> str | None:
    folder = path.relative_to(HERE).parent.as_posix()
    return next((share for start, share in SHARES.items() if f"{folder}/".startswith(f"{start}/")), None)


@pytest.hookimpl(trylast=True)  # after `-m` has deselected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    items.sort(
        key=lambda item: (
            not (parallel and _share(item.path) == "machine"),
            ORDER.index(_area(item.path)),
            list(SHARES.values()).index(_share(item.path) or "sandboxes"),
        )
    )
    if UNTIL:  # begin at another test every hour, so that each has its turn
        first = int(UNTIL // 3600) % max(1, len(items))
        items[:] = items[first:] + items[:first]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    if UNTIL and time.time() > UNTIL:
        pytest.skip("its turn comes in another run: this one has no time left")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than processors: a third of the time of the tests is waiting."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    # Not `--dist loadgroup`: with pytest 9.2, pytest-xdist 3.8 takes no notice of the groups.
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        """Hands out tests one by one in their order, and each share in one piece."""

        def _split_scope(self, nodeid: str) -> str:
            return _share(config.rootpath / nodeid.partition("::")[0]) or nodeid

        def _assign_work_unit(self, node: Any) -> None:
            # A share can begin once the machine's has ended, and then does: at the very end one process would work alone.
            here = any("machine" in units for units in (self.workqueue, *self.assigned_work.values()))
            share = next((scope for scope in self.workqueue if scope in SHARES.values()), None)
            if share and not here and not UNTIL:
                self.workqueue.move_to_end(share, last=False)
            super()._assign_work_unit(node)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            # The base class counts all units that a process has had at each test that ends: seconds, with thousands of units.
            super().mark_test_complete(node, item_index, duration)
            left = {scope: unit for scope, unit in self.assigned_work[node].items() if not all(unit.values())}
            self.assigned_work[node] = left

    config.option.loadscopereorder = False
    return Scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a test of the machine begin when no other share runs in another process, and hold those until it ends.

    Not a fixture: fixtures of a module, which create namespaces, are set up before those of a test.
    """
    share = _share(item.path)
    if not share:
        return (yield)
    run = item.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    with ((run.parent if "PYTEST_XDIST_WORKER" in os.environ else run) / "others").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX if share == "machine" else fcntl.LOCK_SH)
        return (yield)


@pytest.fixture(autouse=True)
def process_settings() -> Iterator[None]:
    """Restore what the main function of a program sets: another test may send itself a signal, or let other users read its files."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    os.umask(UMASK)


@pytest.fixture(scope="session", autouse=True)
def no_name_server() -> Iterator[None]:
    """Know no names but this host's: a question that a name server does not answer takes five seconds."""
    resolve = socket.getaddrinfo

    def resolve_here(host: str | bytes | None, *rest: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name and name not in ("localhost", socket.gethostname()):
            try:
                ipaddress.ip_address(name)
            except ValueError:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known") from None
        return resolve(host, *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", resolve_here)
        yield


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print why a test failed that was run again, also when it passed then."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"run again: {report.nodeid}", "_")
        terminalreporter.line(report.longreprtext)
