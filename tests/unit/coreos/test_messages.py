"""Errors name the file that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli


@pytest.mark.parametrize(
    "words",
    [
        ["dev", "show", "iso", "{bad}"],
        ["dev", "show", "initrd", "{bad}"],
        ["iso", "ignition", "show", "{bad}"],
        ["iso", "extract", "pxe", "{bad}", "-o", "{folder}"],
        ["pxe", "customize", "{bad}", "-o", "{folder}/new"],
        ["pxe", "ignition", "unwrap", "{bad}"],
        ["nmstate", "gc", "{bad}"],
        ["nmstate", "gc", "{folder}"],
        ["iso", "kargs", "show", "{folder}"],
        ["plan", "{folder}"],
    ],
    ids=" ".join,
)
def test_errors_name_the_file(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.bin"
    bad.write_bytes(b"\x80\x81" * 40000)
    given = [word.format(bad=bad, folder=tmp_path) for word in words]
    assert cli.main(given) in (1, 2)
    error = capsys.readouterr().err
    assert str(bad if "{bad}" in words else tmp_path) in error and "Errno" not in error and len(error.splitlines()) == 1
    assert not (tmp_path / "new").exists()
