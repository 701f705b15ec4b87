"""What a watch sees: files that are changed, new or gone, and a write that is not finished."""

from __future__ import annotations

import os
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils.reload import watch


def test_changes(tmp_path: Path) -> None:
    same, other, gone = (tmp_path / name for name in ("same", "other", "gone"))
    for path in (same, other, gone):
        path.write_text("x")
    before = watch.look([same, other, gone])
    gone.unlink()
    os.utime(other, ns=(0, 0))
    (tmp_path / "new").write_text("x")
    after = watch.look([same, other, gone, tmp_path / "new"])
    assert watch.changed_files(before, after) == sorted([gone, tmp_path / "new", other])


def test_a_write_has_to_end(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_text("x")
    before, looks = watch.look([path]), 0

    def sleep(__: float) -> None:
        nonlocal looks
        looks += 1
        if looks in (2, 3, 4):
            path.write_text("x" * (looks + 1))

    assert watch.wait(before, lambda: [path], sleep)[path][1] == 5
    assert looks == 5
