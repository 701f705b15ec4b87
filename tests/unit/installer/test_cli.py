"""The command line: where its options may stand, and what it says to wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli

TARGET = ["create", "agent-config-template"]


@pytest.mark.parametrize(
    "words",
    [
        ["--dir", "{}", "--log-level=error", *TARGET],
        [TARGET[0], "--dir={}", "--log-level", "error", TARGET[1]],
        [*TARGET, "--dir", "{}", "--log-level", "ERROR"],
        ["--dir", "/nowhere", *TARGET, "--dir", "{}", "--log-level", "panic"],
    ],
)
def test_options_stand_anywhere(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([word.format(tmp_path) for word in words]) == 0
    assert (tmp_path / "agent-config.yaml").exists()
    assert capsys.readouterr().err == ""


def test_a_level_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*TARGET, "--dir", str(tmp_path), "--log-level", "Loud"]) == 1
    assert capsys.readouterr().err == 'level=fatal msg=invalid log-level: not a valid logrus Level: "Loud"\n'
    assert not list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert cli.main([*TARGET, "--dir", str(tmp_path / "file")]) == 1
    assert capsys.readouterr().err.startswith("level=fatal msg=failed to create directory ")


def test_graph_takes_them_too(tmp_path: Path) -> None:
    assert cli.main(["--log-level", "debug", "graph", "--output-file", str(tmp_path / "x.dot")]) == 0
    assert (tmp_path / "x.dot").read_text().startswith("digraph G {")
