"""The run pages of fault jobs, of what virtual machines left: a reader who is new to one answers five questions from it.

What failed, where, when, why, and what to do next is in its first panel; a click on the cause shows the logs at that second.
`tests/recorded/keep.py` makes the test data.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs
from ansible_collections.agentlab.ocp.plugins.module_utils.report import page

from tests.integration.browser.chromium import PROGRAM, Browser

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no chromium: make environment installs it")
ROOT = Path(__file__).resolve().parents[3]
RUNS = ROOT / "tests/recorded/jobs"


class Answers(NamedTuple):
    """What a reader looks for. where: the thing that failed; why: the fault that was injected, or what is wrong; then: the next step."""

    where: str
    why: str
    then: str


ANSWERS = {
    "fault-controller-fails": Answers(
        "assisted-installer-controller-", "kind component_fails, component agent-installer-csr-approver", "describe pod"
    ),
    "fault-disk-lost": Answers(
        "master-0", "disk_lost master-0 begins (Writing image to disk)", "report/hosts/master-0"
    ),
    "fault-disk-size": Answers("master-0", "disk only has 5.369 GB, but 15 GB are required", "profile.yaml"),
    "fault-image-missing": Answers("master-0", "image_missing agent-installer-orchestrator begins (ready)", "retries"),
    "fault-media-lost": Answers("master-0", "eject master-0 begins (known)", "report/hosts/master-0"),
    "fault-memory": Answers(
        "master-0", "Require at least 3.42 GiB RAM for role master, found only 3.22 GiB", "profile.yaml"
    ),
    "fault-power-off": Answers("master-0", "power_off master-0 begins (Installing)", "agentlab boot"),
    "fault-registry-down": Answers(
        "192.168.111.1 port 5000", "service_down registry begins (boot)", "agentlab prepare"
    ),
    "fault-rendezvous": Answers("192.168.111.99", "is not the address of any node of the plan", "set rendezvousIP in"),
    "fault-token": Answers("192.168.111.20:8090", "kind expired_token", "agentlab image"),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as made:
        yield made


def test_every_kept_run_has_its_answers() -> None:
    assert sorted(ANSWERS) == sorted(path.name.removesuffix(".tgz") for path in RUNS.glob("*.tgz"))


@pytest.mark.parametrize("job", sorted(ANSWERS))
def test_a_reader_finds_the_answers(
    browser: Browser, job: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with tarfile.open(RUNS / f"{job}.tgz") as archive:
        archive.extractall(tmp_path, filter="data")
    run_dir = tmp_path / "run"
    (tmp_path / "report").rename(run_dir / "report")
    page.write(run_dir)
    browser.open((run_dir / "report/index.html").as_uri())
    assert browser.console == []
    shown = browser.run("document.getElementById('verdict').innerText")
    expected = jobs.load(job, ROOT / "ci/jobs.yml")["expect"]
    assert expected
    assert "failed" in shown.splitlines()[:3]
    assert re.search(f"First cause: {expected['cause']}", shown), shown
    answers = ANSWERS[job]
    for answer in answers:
        assert answer in shown, answer
    assert browser.run("document.getElementById('verdict').getBoundingClientRect().bottom < innerHeight")
    when = re.search(r"\d\d:\d\d:\d\d", shown)
    assert when
    browser.run("document.querySelector('.cause button').click()")
    # What the logs say next.
    assert browser.run("document.querySelector('.lines .here').textContent")[:8] >= when[0]
