"""Messages of `agentlab snapshot`: what an interrupted restore leaves, errors of the system, and what an archive can do."""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import places, snapshot

NAMED = ["--cluster", "lab"]


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster, with this test as root."""
    monkeypatch.setattr(snapshot, "find", lambda name: SimpleNamespace(name=name, plan={}))
    monkeypatch.setattr(snapshot, "again_as_root", lambda __: None)
    monkeypatch.setattr(snapshot, "of", lambda __: None)


@pytest.fixture
def noticed() -> Iterator[None]:
    """Signals that end this process, as they do unless it runs under nohup, which ignores one."""
    before = {one: signal.signal(one, signal.SIG_DFL) for one in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


def ends(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, how: Any) -> None:
    def act(*__: object) -> object:
        if isinstance(how, signal.Signals):
            os.kill(os.getpid(), how)
            time.sleep(30)  # the signal ends it
            raise AssertionError(how)
        if isinstance(how, BaseException):
            raise how
        return how

    monkeypatch.setattr(module, name, act)


@pytest.mark.usefixtures("noticed")
@pytest.mark.parametrize(
    ("how", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (KeyboardInterrupt(), 130)], ids=str
)
def test_an_interrupted_restore_names_the_command_to_repeat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: Any, status: int
) -> None:
    ends(monkeypatch, snapshot.lab, "restore", how)
    assert cli.main(["snapshot", "restore", "ready", *NAMED]) == status
    assert (
        capsys.readouterr().err
        == f"\ninterrupted; to resume: {places.program()} snapshot restore ready --cluster lab\n"
    )


def test_an_interrupted_save_leaves_nothing_to_resume(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(monkeypatch, snapshot.lab, "save", KeyboardInterrupt())
    assert cli.main(["snapshot", "save", "ready", *NAMED]) == 130
    assert capsys.readouterr().err == ""


def test_an_error_of_the_system_has_no_number(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(monkeypatch, snapshot.bundle, "export", FileExistsError(errno.EEXIST, "File exists", "/x.tar"))
    assert snapshot.main(["export", "ready", "/x.tar", *NAMED]) == 1
    assert capsys.readouterr().err == "agentlab: /x.tar: File exists\n"


def test_an_export_warns_of_the_secrets_in_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(b"x" * 2**20)
    ends(monkeypatch, snapshot.bundle, "export", None)
    assert snapshot.main(["export", "ready", str(path), *NAMED]) == 0
    out, err = capsys.readouterr()
    assert out == f"{path} written (1.0 MiB)\n"
    assert err.startswith(f"warning: {path} holds secrets of the lab") and err.count("\n") == 1


def test_an_import_warns_of_what_a_restore_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(monkeypatch, snapshot.bundle, "import_", SimpleNamespace(name="ready", taken=0.0))
    assert snapshot.main(["import", "/x.tar", *NAMED]) == 0
    out, err = capsys.readouterr()
    assert out == "snapshot ready of 1970-01-01T00:00:00Z imported\n"
    assert err.startswith("warning: a restore of ready runs what /x.tar defines, as root")
