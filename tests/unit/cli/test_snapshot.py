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
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import orphans, places, snapshot
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError

from tests.unit.snapshot.test_manifest import MADE

NAMED = ["--cluster", "lab"]


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster, with this test as root."""
    found = SimpleNamespace(plan={}, directory=Path("/runs/lab"), state_dir=Path("/state/lab"))
    monkeypatch.setattr(snapshot, "find", lambda name: SimpleNamespace(name=name, **vars(found)))
    monkeypatch.setattr(snapshot, "again_as_root", lambda __: None)
    monkeypatch.setattr(snapshot, "lab_of", lambda __: None)
    monkeypatch.setattr(snapshot.lab, "sizes", lambda __, found: {one.name: 1 << 20 for one in found})


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


AGAIN = f"{places.program()} snapshot restore ready --cluster lab"


def test_a_restore_that_fails_halfway_names_the_command_to_repeat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = snapshot.lab.RestoreError("the services of the lab did not start within 60 s")
    ends(monkeypatch, snapshot.lab, "restore", error)
    assert snapshot.main(["restore", "ready", *NAMED]) == 1
    assert capsys.readouterr().err == (
        f"agentlab: {error}\nthe restore is not complete, and the lab cannot be used before it is; to repeat it: {AGAIN}\n"
    )


def test_a_restore_that_was_refused_has_nothing_to_repeat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ends(monkeypatch, snapshot.lab, "restore", LabError("there is no snapshot 'ready'"))
    assert snapshot.main(["restore", "ready", *NAMED]) == 1
    assert capsys.readouterr().err == "agentlab: there is no snapshot 'ready'\n"


def test_a_restore_is_refused_while_a_playbook_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would end the sandbox and replace the run directory of that verb."""
    ends(monkeypatch, snapshot.lab, "restore", MADE)
    monkeypatch.setattr(orphans, "run_dirs", lambda: {"/runs/other", "/runs/lab"})
    assert snapshot.main(["restore", "ready", *NAMED]) == 1
    assert capsys.readouterr().err == (
        "agentlab: a verb with a playbook, such as wait, runs for cluster lab: wait until it has ended, or interrupt it\n"
    )
    monkeypatch.setattr(orphans, "run_dirs", lambda: {"/runs/other"})
    assert snapshot.main(["restore", "ready", *NAMED]) == 0


ROW = {
    "name": MADE.name,
    "saved": snapshot._time(MADE.taken),
    "bytes": 1 << 20,
    "machines": {machine.domain: machine.state for machine in MADE.machines},
    "qemu": MADE.host.qemu,
    "accelerator": MADE.host.accelerator,
    "agentlab": MADE.host.agentlab,
}


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize(
    ("module", "function", "words", "more"),
    [
        ("lab", "save", ["save", "ready"], {"seconds": 2.5, "paused": MADE.paused}),
        ("lab", "restore", ["restore", "ready"], {"seconds": 2.5}),
        ("copies", "copy", ["copy", "ready", "two"], {"seconds": 2.5, "cluster": "two", "run_dir": "/runs/two"}),
        ("bundle", "export", ["export", "ready", "FILE"], {"file": "FILE", "file_bytes": 3}),
        ("bundle", "import_", ["import", "FILE"], {"file": "FILE"}),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_output_for_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path,
    module: str, function: str, words: list[str], more: dict[str, object], form: str,
) -> None:  # fmt: skip
    path = tmp_path / "x.tar"
    path.write_text("tar")
    ends(monkeypatch, getattr(snapshot, module), function, MADE)
    times = iter([10.0, 12.5])
    monkeypatch.setattr(snapshot.time, "monotonic", lambda: next(times))
    assert snapshot.main([str(path) if word == "FILE" else word for word in words] + ["-o", form, *NAMED]) == 0
    out, err = capsys.readouterr()
    assert yaml.safe_load(out) == ROW | {key: str(path) if value == "FILE" else value for key, value in more.items()}
    assert all(line.startswith("warning: ") for line in err.splitlines())


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
