"""The run page in a real browser: of a good, a failed and a large run, as a file and live."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.report import page
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page.server import Server
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, EventLog, event
from ansible_collections.agentlab.ocp.tests.recorded import runs

from tests.integration.browser.chromium import CONTRAST, PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no chromium: make environment installs it")
HOSTILE = "</script><img src=x onerror=document.title='owned'><b>x</b>\u2028'\"&lt;"
PANELS = ("verdict", "timeline", "validations", "lines", "topology", "steps", "files")
COUNT = """
(() => {
  let made = 0;
  const make = document.createElement;
  document.createElement = (...given) => (made++, make.apply(document, given));
  zoom(2);
  filter();
  document.createElement = make;
  return made;
})()
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    made = {
        "good": runs.good(folder / "good"),
        "failed": runs.failed(folder / "failed", lines=1500),
        "hostile": runs.failed(folder / "hostile", HOSTILE),
        "many": runs.good(folder / "many", hosts=200),
    }
    manifest = made["failed"] / "openshift/99-extra.yaml"
    manifest.parent.mkdir(exist_ok=True)
    manifest.write_text(f"kind: ConfigMap\ndata: {{text: '{HOSTILE}'}}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        for run_dir in made.values():
            page.write(run_dir)
    return {name: (run_dir / "report/index.html").as_uri() for name, run_dir in made.items()}


@pytest.mark.parametrize("width", [400, 800, 1280])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["good", "failed", "hostile"])
def test_every_panel(browser: Browser, pages: dict[str, str], name: str, width: int, dark: bool) -> None:
    browser.open(pages[name], width=width, dark=dark)
    assert browser.console == []
    for panel in PANELS:
        assert browser.run(f"document.getElementById('{panel}').getBoundingClientRect().height > 10"), panel
        if panel != "lines":  # which have what programs print
            text = browser.run(f"document.getElementById('{panel}').innerText")
            assert not re.search(r"\b(null|undefined|NaN)\b", text), panel
    assert browser.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the window"
    assert browser.run(CONTRAST) == []
    assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
    assert browser.run("document.querySelector('#topology img').decode().then(() => true)")


def test_foreign_text_is_not_markup(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["hostile"])
    assert browser.run("document.title") == "ut: failed"
    assert browser.run("document.querySelectorAll('main b b, img[src=x], main script').length") == 0
    shown = browser.run("document.querySelector('.cause p').textContent")
    assert shown == f"First cause: VM ut_master_1 (master-1) is shut off{HOSTILE.replace(chr(0x2028), ' ')}"
    browser.run("document.querySelector('[data-item]').click()")
    assert "<img src=x" in browser.run("document.getElementById('lines').textContent")


def test_a_reader_finds_what_failed(browser: Browser, pages: dict[str, str]) -> None:
    """What failed, where, when, why, and what to do next is in the first panel; a click shows the logs at that second."""
    browser.open(pages["failed"])
    shown = browser.run("document.getElementById('verdict').innerText")
    for answer in (
        "failed",
        "VM ut_master_1 (master-1) is shut off",
        "00:02:30",
        "power_off master-1 begins",
        "agentlab boot",
        "console/ut_master_1.log",
    ):
        assert answer in shown, answer
    assert browser.run("document.getElementById('verdict').getBoundingClientRect().bottom < innerHeight")
    browser.run("document.querySelector('.cause button').click()")
    assert browser.run("document.querySelector('.lines .here').textContent").startswith("00:02:30")
    assert browser.run("document.activeElement.id") == "lines"


def test_the_connections(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["failed"])
    assert browser.run("document.querySelectorAll('#connections td.bad-text').length") == 2
    assert "master-0 to master-1: 192.168.111.21 layer 2: fails" in browser.run(
        "document.getElementById('connections').innerText"
    )


def test_the_screens(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["failed"])
    assert browser.run("document.getElementById('screens').innerText") == "master-1"
    assert browser.run("document.querySelector('#screens a').getAttribute('href')") == "screen/ut_master_1.png"
    shown = "document.querySelector('#screens img')"
    assert browser.run(f"{shown}.decode().then(() => [{shown}.naturalWidth, {shown}.naturalHeight])") == [2, 1]
    browser.open(pages["good"])
    assert browser.run("document.getElementById('screens').closest('section').hidden")


def test_what_is_unusual(browser: Browser, pages: dict[str, str]) -> None:
    """Times are shown next to those of former runs; what was given to the last good one is compared."""
    browser.open(pages["failed"])
    assert "usually" in browser.run("document.querySelector('#steps .step').innerText")
    assert "median of 1 installed run of this profile" in browser.run("document.getElementById('steps').innerText")
    shown = browser.run("document.getElementById('changes').innerText")
    assert "openshift/99-extra.yaml" in shown and "+kind: ConfigMap" in shown and "<img src=x" in shown
    browser.open(pages["good"])
    assert browser.run("document.getElementById('changes').closest('section').hidden")


def test_whose_time_it_was(browser: Browser, pages: dict[str, str]) -> None:
    """The wait is the machines' time but for what it noticed late, the other stages are ours; the parts add up to the whole run."""
    browser.open(pages["failed"])
    shares = browser.run("[...document.querySelectorAll('.share')].map(one => one.textContent)")
    assert shares == [
        "agentlab 1 min 6 s, 21 %",
        "machines 3 min 54 s, 75 %",
        "poll intervals of the wait 6 s, 2 %",
        "between the stages 5 s, 2 %",
    ]


def test_durations_are_whole_on_a_narrow_screen(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["failed"], width=400)
    cut = "[...document.querySelectorAll('.step .number')].filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)"
    assert browser.run(cut) == []


def test_a_status_has_an_icon(browser: Browser, pages: dict[str, str]) -> None:
    icons = {}
    for name in ("good", "failed"):
        browser.open(pages[name])
        icons[name] = browser.run("getComputedStyle(document.querySelector('.pill'), '::before').content")
    assert icons["good"] != icons["failed"] and "none" not in icons.values()


def test_the_keyboard(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["failed"])
    browser.run("document.querySelector('[data-item][tabindex=\"0\"]').focus()")
    shown = "document.getElementById('said').textContent"
    assert browser.run(shown).startswith("Stages: prepare, 00:00:00 to 00:00:14 (14 s)")
    browser.press("ArrowRight")
    assert browser.run(shown).startswith("Stages: configure")
    browser.press("End")
    assert browser.run(shown).startswith("Stages: gather")
    for __ in range(4):
        browser.press("ArrowDown")
    assert browser.run(shown).startswith("master-0: ")
    browser.press("+")
    assert browser.run("getComputedStyle(document.getElementById('rows')).getPropertyValue('--zoom')") == "2"
    assert (
        browser.run(shown).startswith("master-0: ") and browser.run("document.activeElement.dataset.item") is not None
    )
    browser.press("Enter")
    assert (
        browser.run("document.activeElement.id") == "lines"
        and browser.run("document.getElementById('host').value") == "master-0"
    )


def test_filters_of_the_logs(browser: Browser, pages: dict[str, str]) -> None:
    browser.open(pages["failed"])

    def choose(control: str, value: str) -> list[str]:
        kind = "input" if control == "text" else "change"
        return browser.run(
            f"(() => {{ const c = document.getElementById('{control}'); c.value = {json.dumps(value)}; c.dispatchEvent(new Event('{kind}'));"
            "return [...document.querySelectorAll('#lines tr')].map(row => row.cells[1].textContent + ' | ' + row.cells[3].textContent); })()"
        )  # fmt: skip

    assert len(choose("text", "")) == 400
    assert choose("text", "LINE 77") and all("line 77" in line for line in choose("text", "LINE 77"))
    assert {line.partition(" |")[0] for line in choose("host", "master-2")} == {"master-2 journal"}
    assert (
        choose("host", "")
        and choose("text", "")
        and choose("severity", "warning") == ["wait-for | Cluster has hosts in error"]
    )
    choose("severity", "")
    assert choose("source", "master-1 console")[0] == "master-1 console | BdsDxe: starting"
    assert browser.run("document.querySelector('#known a').getAttribute('href')") == "console/ut_master_1.log"
    assert choose("text", "no such line") == [] and "No line" in browser.run(
        "document.getElementById('known').textContent"
    )


def test_two_hundred_hosts(browser: Browser, pages: dict[str, str]) -> None:
    """The bound is one of work, not of time: elements that are made, and rows that a filter draws. Measured: 0.5 s on two busy cores."""
    browser.open(pages["many"])
    assert browser.console == []
    assert browser.run("document.querySelectorAll('.lane').length") > 200
    assert browser.run("document.querySelectorAll('*').length") < 12_000
    made = browser.run(COUNT)
    assert made < 12_000
    browser.run("document.querySelector('.group button').click()")
    assert browser.run("document.querySelectorAll('.lane').length") < 20
    assert browser.run("document.querySelectorAll('.matrix tbody tr').length") == 200


@pytest.mark.parametrize("width", [400, 800])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_two_hundred_hosts_fit_the_window(browser: Browser, pages: dict[str, str], width: int, dark: bool) -> None:
    browser.open(pages["many"], width=width, dark=dark)
    assert browser.console == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth") and browser.run(CONTRAST) == []


def test_a_live_run(browser: Browser, tmp_path: Path) -> None:
    """What happens is shown without a new page; what the reader has chosen stays."""
    runs.failed(tmp_path)
    with Server(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        browser.open(server.url)
        assert browser.run("document.querySelector('.pill').textContent") == "failed"
        browser.run("document.getElementById('text').value = 'line'; zoom(4)")
        EventLog(tmp_path / FILE).write([event("stage", "wait", "started"), event("host", "master-9", "known")])
        browser.wait("document.querySelector('.pill').textContent === 'running'")
        browser.wait("[...document.querySelectorAll('.lane > b')].some(name => name.textContent === 'master-9')")
        assert browser.run("document.getElementById('text').value") == "line" and browser.run("view.zoom") == 4
        assert browser.console == []
        server.shutdown()
