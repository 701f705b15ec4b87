"""Large files: copying, patching, and never half of one."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import image
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.image import Edits, Piece
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.fixture
def sparse(tmp_path: Path) -> Path:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.write(b"head")
        file.seek(32 << 20)
        file.write(b"middle" * 1000)
        file.truncate(64 << 20)
    return path


def clone(source: Path, target: Path) -> None:
    with source.open("rb") as a, target.open("w+b") as b:
        image.clone(a.fileno(), b.fileno(), source.stat().st_size)


@pytest.mark.parametrize("broken", [(), ("copy_file_range",), ("copy_file_range", "lseek")])
def test_a_copy_is_equal_and_sparse(
    sparse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: tuple[str, ...]
) -> None:
    def refuse(*args: object) -> int:
        raise OSError(errno.EINVAL, "not here")

    for name in broken:
        monkeypatch.setattr(image.os, name, refuse)
    clone(sparse, tmp_path / "copy")
    monkeypatch.undo()
    assert (tmp_path / "copy").read_bytes() == sparse.read_bytes()
    if "lseek" not in broken:
        assert (tmp_path / "copy").stat().st_blocks * 512 < 1 << 20


def test_an_error_while_copying_is_an_error(sparse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(image.os, "copy_file_range", full)
    with sparse.open("rb") as file, pytest.raises(OSError, match="full"):
        image.write_new(file.fileno(), Edits(64 << 20), tmp_path / "copy")
    assert not (tmp_path / "copy").exists() and len(list(tmp_path.iterdir())) == 1


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "file"
    with pytest.raises(KeyboardInterrupt), image.new_file(target) as out:
        out.write(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with image.new_file(target, mode=0o640) as out:
        out.write(b"whole")
        assert not target.exists()
    assert target.read_bytes() == b"whole" and target.stat().st_mode & 0o777 == 0o640
    with pytest.raises(CoreosError, match="File exists"), image.new_file(target):
        pass
    with image.new_file(target, overwrite=True) as out:
        out.write(b"new")
    assert target.read_bytes() == b"new"


def test_one_that_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(CoreosError, match="File exists"), image.new_file(tmp_path / "file") as out:
        out.write(b"mine")
        (tmp_path / "file").write_text("theirs")
    assert (tmp_path / "file").read_text() == "theirs" and len(list(tmp_path.iterdir())) == 1


def test_a_dangling_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CoreosError, match="File exists"), image.new_file(tmp_path / "link"):
        pass
    assert not (tmp_path / "elsewhere").exists()


@settings(deadline=None)
@given(
    st.binary(min_size=1, max_size=300),
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40), st.binary(max_size=40), st.booleans()), max_size=5),
    st.integers(0, 200),
)
def test_in_place_copy_and_pipe_agree(tmp_path_factory, base: bytes, steps: list, extra: int) -> None:
    folder = tmp_path_factory.mktemp("edits")
    pieces, at = [], 0
    for gap, length, data, moved in steps:
        at += gap
        if moved and length <= len(base) and at >= len(base):
            pieces.append(Piece(at, length, origin=len(base) - length))
        else:
            pieces.append(Piece(at, max(length, len(data)), data))
        at = pieces[-1].end
    edits = Edits(max(at, len(base)) + extra, pieces)
    source = folder / "base"
    source.write_bytes(base)
    pipe = io.BytesIO()
    with source.open("rb") as file:
        image.write_stream(file.fileno(), edits, pipe)
        image.write_new(file.fileno(), edits, folder / "new")
    over = folder / "over"
    over.write_bytes(base)
    image.write_over(over, edits)
    image.write_in_place(source, edits)
    assert over.read_bytes() == source.read_bytes() == (folder / "new").read_bytes() == pipe.getvalue()
    assert len(pipe.getvalue()) == edits.size


def test_overlapping_changes_are_refused_on_a_pipe(sparse: Path) -> None:
    edits = Edits(64 << 20, [Piece.of(0, b"abcdef"), Piece.of(3, b"x")])
    fd = os.open(sparse, os.O_RDONLY)
    try:
        with pytest.raises(CoreosError, match="two changes meet at offset 3"):
            image.write_stream(fd, edits, io.BytesIO())
    finally:
        os.close(fd)
