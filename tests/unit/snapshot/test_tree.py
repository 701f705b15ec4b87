"""Copies of trees: complete, private, shared where files never change."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.tree import replicate


def _fill(top: Path) -> None:
    (top / "pool").mkdir(parents=True)
    (top / "pool/layer").write_text("large")
    (top / "file").write_text("text")
    (top / "file").chmod(0o644)
    (top / "link").symlink_to("file")
    os.mkfifo(top / "pipe")


def test_copy_and_back(tmp_path: Path) -> None:
    live, saved = tmp_path / "live", tmp_path / "saved"
    _fill(live)
    rules = {"linked": lambda path: path.startswith("pool/"), "skip": lambda path: path == "owner"}
    replicate(live, saved, private=True, **rules)
    assert (saved / "file").stat().st_mode & 0o777 == 0o600
    assert os.path.samefile(live / "pool/layer", saved / "pool/layer")
    assert not (saved / "pipe").exists() and os.readlink(saved / "link") == "file"

    (live / "file").write_text("changed text")
    (live / "new").mkdir()
    (live / "new/file").write_text("")
    (live / "link").unlink()
    (live / "link").mkdir()
    (live / "pool/layer").unlink()
    (live / "pool/layer").write_text("another")
    (live / "owner").write_text("mine")
    replicate(saved, live, **rules)
    assert (live / "file").read_text() == "text" and os.readlink(live / "link") == "file"
    assert not (live / "new").exists() and (live / "owner").read_text() == "mine"
    assert (live / "pool/layer").read_text() == "large"
    # A copy, which the lab may change.
    (live / "file").write_text("again")
    assert (saved / "file").read_text() == "text"


def test_what_is_skipped_keeps_its_directory(tmp_path: Path) -> None:
    live, saved = tmp_path / "live", tmp_path / "saved"
    saved.mkdir()
    (live / "sandbox/run").mkdir(parents=True)
    replicate(saved, live, skip=lambda path: path == "sandbox/run")
    assert (live / "sandbox/run").is_dir()


def test_unchanged_files_are_left_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    _fill(one)
    replicate(one, two)
    before = (two / "file").stat().st_ino
    replicate(one, two)
    assert (two / "file").stat().st_ino == before


def test_modes_come_back(tmp_path: Path) -> None:
    """The snapshot is private; what is restored from it must not be more private than it was."""
    live, saved = tmp_path / "live", tmp_path / "saved"
    _fill(live)
    modes = replicate(live, saved, private=True)
    (live / "file").unlink()
    replicate(saved, live, modes=modes)
    assert (live / "file").stat().st_mode & 0o777 == 0o644


def test_sockets_of_a_directory_that_is_gone(tmp_path: Path) -> None:
    """As QEMU's, which was killed."""
    for name in ("source", "target/domain"):
        (tmp_path / name).mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "target/domain/monitor.sock"))
        replicate(tmp_path / "source", tmp_path / "target")
    assert list((tmp_path / "target").iterdir()) == []
