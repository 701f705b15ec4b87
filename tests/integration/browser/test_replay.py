"""A replayed recording of a failed run in a real browser: `agentlab serve --replay` as a program, its live page and its run page."""

from __future__ import annotations

import gzip
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.browser.chromium import PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no chromium: make environment installs it")
JOB = "fault-memory"
RECORDING = Path(__file__).resolve().parents[2] / f"recorded/jobs/{JOB}.jsonl.gz"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses that the program prints, of a recording that is over within a second."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "logs").mkdir()
    (folder / "logs/recording.jsonl").write_bytes(gzip.decompress(RECORDING.read_bytes()))
    module = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
    words = ["serve", "--replay", str(folder), "--speed", "10000", "--listen", "127.0.0.1:0"]
    with subprocess.Popen([sys.executable, "-m", module, *words], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        found = {}
        for line in program.stdout:
            if shown := re.match(r"  (service|run page) +(\S+)", line):
                found[shown[1]] = shown[2]
            if "run page" in found:
                break
        yield found
        program.send_signal(signal.SIGINT)
        assert program.wait(30) == 0


def test_the_live_page_shows_the_validation_that_fails(browser: Browser, places: dict[str, str]) -> None:
    browser.open(f"{places['service']}/", ready="document.body?.innerText.includes('has-memory-for-role')")
    shown = browser.run("document.body.innerText")
    assert "master-0" in shown
    assert browser.console == []


@pytest.mark.parametrize("width", [400, 1280])
@pytest.mark.parametrize("dark", [False, True])
def test_the_run_page_shows_what_both_apis_answered(
    browser: Browser, places: dict[str, str], width: int, dark: bool
) -> None:
    """There is no log of events next to the recording, so stages are not shown, and that is named."""
    browser.open(places["run page"], width=width, dark=dark)
    # The page may have been loaded before the end of the recording; it gets what follows.
    browser.wait("document.getElementById('validations').innerText.includes('has-memory-for-role')")
    verdict = browser.run("document.getElementById('verdict').innerText").splitlines()[:3]
    assert verdict == ["e2ep", "stopped", "2 min 40 s"]
    lanes = browser.run("[...document.querySelectorAll('.lane')].map(lane => lane.innerText).join()")
    assert "master-0" in lanes and "Stages" not in lanes
    assert browser.console == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
