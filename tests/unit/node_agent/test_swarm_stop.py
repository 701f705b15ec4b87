"""Signals that stop a swarm, and readers of its output that are gone: clusters are deleted and the report is written."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import bundle, main, report
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted

CLI = ["-m", "ansible_collections.agentlab.ocp.plugins.module_utils.cli", "swarm"]
SECONDS = 60
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}  # as in most shells


@pytest.fixture(autouse=True)
def default_sighup() -> Iterator[None]:
    """Programs inherit an ignored SIGHUP, such as that of tests under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(params=["agentlab", "packed"])
def command(request: pytest.FixtureRequest, service: FakeAssisted, tmp_path: Path) -> list[str]:
    """A swarm that installs nothing until it is stopped; the verb, and the program of `swarm pack`."""
    program = CLI
    if request.param == "packed":
        bundle.write(tmp_path / "swarm")
        program = [str(tmp_path / "swarm")]
    return [sys.executable, *program, "--url", service.url, "--clusters=2", "--topology=sno", "--no-install", "--watch=60",
            f"--report={tmp_path}/report"]  # fmt: skip


@pytest.fixture
def no_reader() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def stopped(service: FakeAssisted, tmp_path: Path) -> bool:
    """Whether a stopped run has left nothing, and a report with samples until its end."""
    found = report.load(tmp_path / "report")
    assert found["stopped"] and found["left"] == [] and len(list((tmp_path / "report").iterdir())) == 4
    return service.clusters == service.infra_envs == service.hosts == {}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_with_cleanup(service: FakeAssisted, command: list[str], number: int, tmp_path: Path) -> None:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait(lambda: len(service.hosts) == 2)
            process.send_signal(number)
            out, errors = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == 130 and "stopped; 0 of 2 clusters installed" in out
    assert "agentlab swarm: stopping, and deleting what was registered" in errors and "Traceback" not in errors
    assert stopped(service, tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_stops_without_readers(
    service: FakeAssisted, command: list[str], number: int, no_reader: int, tmp_path: Path
) -> None:
    with subprocess.Popen(command, stdout=no_reader, stderr=no_reader, env=BUFFERED) as process:
        try:
            wait(lambda: len(service.hosts) == 2)
            process.send_signal(number)
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()
    assert stopped(service, tmp_path)


def test_a_terminal_that_is_closed(service: FakeAssisted, command: list[str], tmp_path: Path) -> None:
    """The kernel and the shell both send SIGHUP; the second one does not end the deletion, which takes a while."""
    service.slow_deletes = 0.5
    ended = (0, 0)
    child, terminal = pty.fork()
    if not child:
        os.execv(command[0], command)
    try:
        wait(lambda: len(service.hosts) == 2)
        os.close(terminal)
        wait(lambda: service.counts["DELETE"])
        os.kill(child, signal.SIGHUP)
        wait(lambda: not service.clusters)
        end = time.monotonic() + SECONDS
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        if not ended[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 130
    assert stopped(service, tmp_path)


def test_a_run_with_nohup_continues_after_sighup(service: FakeAssisted, command: list[str], tmp_path: Path) -> None:
    ignoring = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command]
    with subprocess.Popen(ignoring, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait(lambda: len(service.hosts) == 2)
            process.send_signal(signal.SIGHUP)
            time.sleep(1)
            assert process.poll() is None and len(service.clusters) == 2
            process.terminate()
            assert process.wait(SECONDS) == 130
        finally:
            process.kill()
    assert stopped(service, tmp_path)


def test_progress_without_a_reader_is_lost(no_reader: int) -> None:
    """The first line ended the task that takes samples, so that the report had none of the rest of the run."""
    sample = dict.fromkeys(
        ("active", "requests_per_s", "errors_per_s", "p99_ms", "late_p99_ms", "rss_mib", "cpu_percent"), 0
    )
    with os.fdopen(os.dup(no_reader), "w") as stream:
        progress = main.Progress(stream)
        for at in (0.0, 20.0):
            progress({**sample, "t": at, "hosts": {}, "clusters": {}})
        progress.close()


def test_results_without_a_reader(service: FakeAssisted, command: list[str], no_reader: int, tmp_path: Path) -> None:
    """It was reported as `[Errno 32] Broken pipe`, with exit code 2. The reports are written."""
    program = command[: command.index("--url")]
    for words in (
        [*command, "--duration=2", "--allow-unfinished"],
        [*program, "merge", f"{tmp_path}/report", f"--report={tmp_path}/merged"],
    ):
        done = subprocess.run(
            words, stdout=no_reader, stderr=subprocess.PIPE, text=True, env=BUFFERED, check=False, timeout=SECONDS
        )
        assert done.returncode == 141 and "roken" not in done.stderr
    assert done.stderr == ""
    assert report.load(tmp_path / "report")["left"] == report.load(tmp_path / "merged")["left"] == []


@pytest.mark.parametrize("words", [["--kubernetes=1", "--image=x", "--url=http://x"], ["pack", "file"]])
def test_a_packed_swarm_is_not_packed(words: list[str], tmp_path: Path) -> None:
    bundle.write(tmp_path / "swarm")
    done = subprocess.run(
        [sys.executable, tmp_path / "swarm", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr.endswith("the packed swarm cannot pack itself; use `agentlab swarm`\n")
    assert [path.name for path in tmp_path.iterdir()] == ["swarm"]


def test_output_that_cannot_be_written(capfd: pytest.CaptureFixture[str]) -> None:
    with open("/dev/full", "w") as full:
        words = ["--kubernetes=1", "--image=x", "--url=http://x"]
        done = subprocess.run([sys.executable, *CLI, *words], stdout=full, env=BUFFERED, check=False, timeout=SECONDS)
    assert done.returncode == 2
    assert capfd.readouterr().err == "agentlab swarm: standard output: No space left on device\n"
