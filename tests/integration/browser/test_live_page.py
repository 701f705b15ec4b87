"""The assisted service's live page in a real browser, over recordings of runs of virtual machines."""

from __future__ import annotations

import asyncio
import gzip
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.app import PAGE
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import report
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings
from ansible_collections.agentlab.ocp.plugins.module_utils.report import replay
from ansible_collections.agentlab.ocp.plugins.module_utils.report.replay.server import ReplayClock, ReplayServer

from tests.integration.api_server.served import Served
from tests.integration.browser.chromium import CONTRAST, PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no chromium: make environment installs it")
JOBS = Path(__file__).resolve().parents[2] / "recorded/jobs"
READY = "Boolean(document.querySelector('#clusters table') && document.querySelector('#events tbody tr'))"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@contextmanager
def served(job: str, folder: Path) -> Iterator[str]:
    """Serve the end of a job's recording; the URL of the live page."""
    (folder / "logs").mkdir(parents=True)
    (folder / "logs/recording.jsonl").write_bytes(gzip.decompress((JOBS / f"{job}.jsonl.gz").read_bytes()))
    server = ReplayServer(ReplayClock(replay.find(folder), 10_000.0), "127.0.0.1", 0, PAGE.read_bytes())
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"{server.url}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Three clusters of a swarm, one of which fails; the URL of their service, and the report."""
    folder = tmp_path_factory.mktemp("swarm")
    service = Served(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOST_MONITOR_INTERVAL", "CLUSTER_MONITOR_INTERVAL"):
            patch.setenv(name, "1s")
        for name in ("AGENT_NEXT_INSTRUCTION_SECONDS", "STEP_REPEAT_SECONDS"):
            patch.setenv(name, "1")
        service.start()
    try:
        settings = Settings(
            service.url, clusters=3, topology={"sno": 1}, failures={"memory": 0.5}, keep=True, duration=10.0, think_time=0.0,
            watch=0.5, controller_poll=0.2, installer_poll=0.1, poll_limit=0.2, register_interval=0.2, logs_kib=1,
        )  # fmt: skip
        report.save(asyncio.run(Swarm(settings).run()), folder)
        yield f"{service.url}/", folder / "report.html"
    finally:
        service.end(signal.SIGTERM)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, swarm: tuple[str, Path]) -> Iterator[dict[str, str]]:
    with served("fault-memory", tmp_path_factory.mktemp("runs")) as failing:
        yield {"failing": failing, "swarm": swarm[0]}


@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["failing", "swarm"])
def test_any_window(browser: Browser, places: dict[str, str], name: str, width: int, dark: bool) -> None:
    browser.open(places[name], width=width, dark=dark, ready=READY)
    assert browser.console == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert browser.run(CONTRAST) == []


def test_the_head_names_the_lab_and_its_totals(browser: Browser, places: dict[str, str]) -> None:
    browser.open(places["failing"], ready=READY)
    assert browser.run("document.querySelector('h1').textContent") == "e2ep.test.metalkube.org"
    totals = browser.wait("document.getElementById('totals').innerText")
    assert "1 host" in totals and "0 installed" in totals and "1 failing" in totals and "elapsed" in totals
    assert browser.run("document.title") == "e2ep.test.metalkube.org: insufficient - assisted-service"
    assert browser.run("document.querySelector('#state .pill').textContent") == "live"


def test_a_host_has_its_addresses_and_disks(browser: Browser, places: dict[str, str]) -> None:
    browser.open(places["failing"], ready=READY)
    shown = browser.run("document.querySelector('#clusters table').innerText")
    assert "192.168.111.20/24" in shown and "GB" in shown
    # One click selects an identifier, to be copied.
    assert browser.run("getComputedStyle(document.querySelector('#clusters table .id')).userSelect") == "all"


def test_events_are_searched_and_lead_to_their_cluster(browser: Browser, places: dict[str, str]) -> None:
    browser.open(places["failing"], ready=READY)
    rows = "[...document.querySelectorAll('#events tbody tr')].map(row => row.innerText)"
    everything = len(browser.run(rows))
    browser.run(
        "document.getElementById('text').value = 'MEMORY'; document.getElementById('text').dispatchEvent(new Event('input'))"
    )
    browser.wait(f"document.querySelectorAll('#events tbody tr').length < {everything}")
    found = browser.run(rows)
    assert found and all("memory" in row.lower() for row in found)
    browser.run("document.querySelector('#clusters details').open = false")
    browser.run("document.querySelector('#events tbody a').click()")
    browser.wait("document.querySelector('#clusters details').open")
    # The usual severity is not repeated in each row.
    assert not any(row.split()[1] == "info" for row in found)


def test_an_installation_has_the_time_that_it_still_takes(browser: Browser, places: dict[str, str]) -> None:
    browser.open(places["failing"], ready=READY)

    def left(status: str, percent: int, began: str = "new Date(Date.now() - 600000).toISOString()") -> str:
        progress = f"{{total_percentage: {percent}}}"
        return str(browser.run(f"left({{status: '{status}', progress: {progress}, install_started_at: {began}}})"))

    assert re.fullmatch(r", about 30 min \d+ s left", left("installing", 25))
    assert left("error", 25) == left("installing", 0) == left("installing", 100) == ""
    assert left("installing", 5, "'0001-01-01T00:00:00Z'") == ""


def test_an_installed_host_has_the_time_that_it_took(browser: Browser, places: dict[str, str]) -> None:
    browser.open(places["swarm"], ready=READY)
    browser.wait("document.body.innerText.includes('Done, after ')")
    browser.wait(
        "document.getElementById('totals').innerText"
    )  # which has its text after the hosts of all clusters have come
    assert browser.run("document.querySelectorAll('.stages').length") == 0
    shown = browser.run("document.getElementById('clusters').innerText")
    assert "swarm-1-0" in shown and shown.count("Require at least 16.00 GiB RAM") == 1
    assert browser.run("document.getElementById('totals').innerText").split("\n")[:3] == [
        "3 hosts:",
        "2 installed",
        "1 failing",
    ]


@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_report_of_a_swarm(browser: Browser, swarm: tuple[str, Path], width: int, dark: bool) -> None:
    browser.open(swarm[1].as_uri(), width=width, dark=dark, ready="document.readyState === 'complete'")
    assert browser.console == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert browser.run(CONTRAST) == []
