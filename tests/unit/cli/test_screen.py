"""Options of `console NODE --screen` as steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import node, screen
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError


def test_options_and_files_are_steps_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "steps.yml"
    path.write_text("[{wait: GRUB, timeout: 90}, {press: down}]")
    given = [("press", "esc"), ("steps", str(path)), ("wait", "login:"), ("type", "core")]
    assert screen.parse(given, 5) == [
        {"press": "esc"},
        {"wait": "GRUB", "timeout": 90},
        {"press": "down"},
        {"wait": "login:", "timeout": 5},
        {"type": "core"},
    ]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("press", "any", "--press: 'any' is not a key: name a letter, a digit or one of ctrl, shift"),
        ("type", "\xe4", "--type: '\xe4' cannot be typed"),
        ("wait", "", "--wait: must be a string that is not empty"),
        ("steps", "/nowhere", "/nowhere: No such file or directory"),
    ],
)
def test_refused(option: str, value: str, message: str) -> None:
    with pytest.raises(LabError, match=message):
        screen.parse([(option, value)], 5)


def test_file_is_refused_with_its_name_and_the_step(tmp_path: Path) -> None:
    path = tmp_path / "steps.yml"
    path.write_text("[{press: enter}, {press: any}]")
    with pytest.raises(LabError, match=r"steps\.yml: steps\[1\]\.press: 'any' is not a key"):
        screen.parse([("steps", str(path))], 5)


@pytest.mark.parametrize("seconds", [0, -1, 3601, float("nan")])
def test_timeout_refused(seconds: float) -> None:
    with pytest.raises(LabError, match="--timeout: must be more than 0 and at most 3600 seconds"):
        screen.parse([], seconds)


def test_steps_are_of_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        node.console(["master-0", "--press", "enter"])
    assert "--wait, --press, --type, --picture and --steps need --screen" in capsys.readouterr().err
