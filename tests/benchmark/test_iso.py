"""How long an ISO takes, against what the machine can do.

Not part of the unit suite: `pytest -s tests/benchmark/test_iso.py`.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso

from .processes import AGENTLAB, compare, run, where

CONFIG = b'{"ignition": {"version": "3.2.0"}, "storage": {"files": []}}' * 1000
EMBED = ("iso", "ignition", "embed", "-f", "-i")


@pytest.fixture
def configs(tmp_path: Path) -> Iterator[Path]:
    """Files with configs, each another one."""

    def made() -> Iterator[Path]:
        for number in range(1000):
            path = tmp_path / f"{number}.ign"
            path.write_bytes(CONFIG + str(number).encode())
            yield path

    return made()


def test_a_copy_takes_as_long_as_cp(big: Path, tmp_path: Path, configs: Iterator[Path]) -> None:
    """`agentlab iso ignition embed -o` as a whole process: the copy, 10 % of it, and 0.15 s."""
    mine, theirs = tmp_path / "mine.iso", tmp_path / "theirs.iso"

    def clean() -> None:
        mine.unlink(missing_ok=True)
        theirs.unlink(missing_ok=True)

    words = (*EMBED, next(configs), "-o", mine, big)
    pair = compare(lambda: run(AGENTLAB, *words), lambda: run("cp", big, theirs), 1.10, 0.15, clean)
    print(f"\ncopy with config: {pair.ours:.2f} s, cp: {pair.other:.2f} s; {pair.over:+.2f} s against 1.10 cp + 0.15 s")
    print(where(*words))
    assert pair.over <= 0
    assert run(AGENTLAB, *EMBED, next(configs), "-o", theirs, big).memory < 100


def test_replacing_takes_as_long_as_a_copy_that_replaces(big: Path, tmp_path: Path, configs: Iterator[Path]) -> None:
    """An image appears whole in the place of the old one: a copy, which takes no time only where the file system shares blocks."""
    ours, theirs, new = tmp_path / "ours.iso", tmp_path / "theirs.iso", tmp_path / "new.iso"
    shutil.copy(big, ours)
    shutil.copy(big, theirs)

    def replace() -> None:
        run("sh", "-c", 'cp "$1" "$2" && mv -f "$2" "$1"', "sh", theirs, new)

    pair = compare(lambda: run(AGENTLAB, *EMBED, next(configs), ours), replace, 1.10, 0.15, lambda: None)
    print(
        f"\nreplace: {pair.ours:.2f} s, cp and mv: {pair.other:.2f} s; {pair.over:+.2f} s against 1.10 of them + 0.15 s"
    )
    print(where(*EMBED, next(configs), ours))
    assert pair.over <= 0


def test_the_config_that_is_there_needs_no_copy(big: Path, tmp_path: Path, configs: Iterator[Path]) -> None:
    image, config = tmp_path / "image.iso", next(configs)
    run(AGENTLAB, *EMBED, config, "-o", image, big)
    ran = min(run(AGENTLAB, *EMBED, config, image) for __ in range(9))
    print(f"\nthe config that is there: {ran.seconds * 1000:.0f} ms at best, peak memory {ran.memory:.0f} MiB")
    assert ran.seconds < 0.2 and ran.memory < 100


def test_a_copy_is_five_times_faster_than_unpacking_and_rebuilding(big: Path, tmp_path: Path) -> None:
    if not shutil.which("xorriso"):
        pytest.skip("xorriso is not installed")
    folder = tmp_path / "work"

    def clean() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()

    def copy() -> None:
        with LiveIso(big) as iso:
            iso.ignition = CONFIG
            iso.save_as(folder / "mine.iso")

    pair = compare(copy, lambda: _rebuild(big, folder), 1 / 5, 0, clean, pairs=3)
    print(f"\nunpack and rebuild: {pair.other:.2f} s, copy with config: {pair.ours:.2f} s")
    assert pair.over <= 0


def _rebuild(base: Path, folder: Path) -> None:
    tree = folder / "tree"
    subprocess.run(
        ["xorriso", "-osirrox", "on", "-indev", base, "-extract", "/", tree], check=True, capture_output=True
    )
    subprocess.run(["chmod", "-R", "u+w", tree], check=True)
    (tree / "images/ignition.img").write_bytes(CONFIG)
    command: list[str | Path] = [
        "xorriso",
        "-as",
        "mkisofs",
        "-o",
        folder / "theirs.iso",
        "-V",
        "lab",
        "-J",
        "-R",
        tree,
    ]
    subprocess.run(command, check=True, capture_output=True)
