"""Files appear whole or not at all, whatever ends the program."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import files, log
from ansible_collections.agentlab.ocp.plugins.module_utils.signals import Termination, raise_terminated
from ansible_collections.agentlab.ocp.plugins.module_utils.state import events, write_atomic

WRITER = """
import signal, sys, time
from pathlib import Path
from ansible_collections.agentlab.ocp.plugins.module_utils import files, signals
# The caller of the tests may ignore them (nohup, a shell's background job), and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
kind, target = sys.argv[1:]
if kind == "named":
    files._NO_TMPFILE = {21, 22, 95}
    files.os.O_TMPFILE = 0o20000000 | 0o200000 | 0o7777  # what no file system takes
with signals.raise_terminated():
    if kind == "staging":
        with files.staging_directory(Path(target).parent) as work:
            (work / "part").write_bytes(bytes(1 << 20))
            print("begun", flush=True)
            time.sleep(60)
    with files.new_file(target, overwrite=True) as out:
        out.write(bytes(1 << 20))
        print("begun", flush=True)
        time.sleep(60)
"""


@pytest.fixture(params=["anonymous", "named"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With O_TMPFILE, and as on a file system without it."""
    if request.param == "named":
        real = os.open

        def refuse(path: object, flags: int, *more: int, **options: int) -> int:
            if flags & os.O_TMPFILE == os.O_TMPFILE:
                raise OSError(errno.EOPNOTSUPP, "not here")
            return real(path, flags, *more, **options)

        monkeypatch.setattr(files.os, "open", refuse)
    return str(request.param)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.usefixtures("kind")
def test_what_root_makes_in_a_users_directory_is_the_users(tmp_path: Path) -> None:
    """With sudo, the wait left recording, log and kubeconfig to root, 0600: the user could not read them."""
    os.chown(tmp_path, 4242, 4243)
    with files.new_file(tmp_path / "new") as out:
        out.write(b"x")
    write_atomic(tmp_path / "kubeconfig", "x", 0o600)
    events.append(tmp_path / "recording", b"x\n")
    log.Log(tmp_path, emit=lambda __: None).info("x")
    owners = {path.name: (path.stat().st_uid, path.stat().st_gid) for path in tmp_path.iterdir()}
    assert owners == dict.fromkeys(["new", "kubeconfig", "recording", log.LOG_FILE], (4242, 4243))


@pytest.mark.usefixtures("kind")
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_is_written(tmp_path: Path, overwrite: bool) -> None:
    path = tmp_path / "x"
    if overwrite:
        path.write_bytes(b"old")
    with files.new_file(path, overwrite=overwrite, mode=0o640) as out:
        out.write(b"new")
        assert not overwrite or path.read_bytes() == b"old"
    assert path.read_bytes() == b"new" and path.stat().st_mode & 0o777 == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.usefixtures("kind")
def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), files.new_file(tmp_path / "x") as out:
        out.write(b"part")
        raise KeyboardInterrupt
    with pytest.raises(FileExistsError, match="x"), files.new_file(tmp_path / "x"):
        (tmp_path / "x").write_text("of another")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.usefixtures("kind")
def test_errors_name_the_file_that_is_to_be(tmp_path: Path) -> None:
    for path, text in (
        (tmp_path / "none/x", "none/x: No such file or directory"),
        (tmp_path, f"{tmp_path.name}: Is a directory"),
    ):
        with pytest.raises(OSError) as caught, files.new_file(path, overwrite=True):
            pass
        assert files.explain(caught.value).endswith(text)
    with pytest.raises(OSError, match="No space left on device") as caught, files.new_file(tmp_path / "y"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert files.explain(caught.value).startswith(f"{tmp_path / 'y'}: No space left on device (")
    with pytest.raises(OSError) as caught, files.new_file(tmp_path / "y"):
        raise OSError(errno.EIO, "of another file", "/other")
    assert files.explain(caught.value) == "/other: of another file"


@pytest.mark.usefixtures("kind")
def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """A write without a buffer stops at the limit without an error: state.json was replaced by its first part."""
    path, limits = tmp_path / "x", resource.getrlimit(resource.RLIMIT_FSIZE)
    path.write_bytes(b"old")
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"), files.new_file(path, overwrite=True) as out:
            out.write(bytes(2000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"old" and [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("how", ["anonymous", "named", "staging"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_a_killed_writer_leaves_nothing(tmp_path: Path, how: str, number: signal.Signals) -> None:
    target = tmp_path / "x"
    target.write_text("old")
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, how, str(target)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert writer.stdout is not None
    with writer.stdout as out:
        assert out.readline() == b"begun\n"
    files.sweep(tmp_path)
    held = [entry.name for entry in tmp_path.iterdir() if entry.name != "x"]
    assert len(held) == (how != "anonymous")  # what is being written is not swept
    writer.send_signal(number)
    assert writer.wait(10) != 0
    left = [entry.name for entry in tmp_path.iterdir() if entry.name != "x"]
    assert left == ([] if number != signal.SIGKILL or how == "anonymous" else held)
    with files.new_file(target, overwrite=True) as new:
        new.write(b"new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"] and target.read_bytes() == b"new"


def test_signals_are_exceptions_and_become_exit_codes() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)
    with pytest.raises(Termination, match="interrupted by SIGTERM") as caught, raise_terminated():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    assert caught.value.exit_code == 143
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP)) == before


def test_an_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with raise_terminated():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("name", ["fifo", "link"])
def test_special_files_are_not_replaced(tmp_path: Path, name: str) -> None:
    """As root, `--force -o /dev/null` would make a file of it."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("fifo")
    with pytest.raises(OSError, match="Not a regular file") as caught, files.new_file(tmp_path / name, overwrite=True):
        pytest.fail("opened")
    assert files.explain(caught.value) == f"{tmp_path}/{name}: Not a regular file"
    assert (tmp_path / name).is_fifo() and (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fifo", "link"]


def test_a_child_keeps_the_staging_of_a_killed_parent(tmp_path: Path) -> None:
    code = """
import os, subprocess, sys
from pathlib import Path
from ansible_collections.agentlab.ocp.plugins.module_utils import files
with files.staging_directory(Path(sys.argv[1]), inherited=True) as path:
    child = subprocess.Popen(["sleep", "60"], close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(path, child.pid, flush=True)
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    path, pid = done.stdout.split()
    files.sweep(tmp_path)
    assert Path(path).is_dir()
    os.kill(int(pid), signal.SIGKILL)
    end = time.monotonic() + 10
    while Path(path).exists() and time.monotonic() < end:
        files.sweep(tmp_path)
    assert not Path(path).exists()
