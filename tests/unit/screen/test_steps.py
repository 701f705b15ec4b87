"""Keys, and steps as data."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import keys, steps
from ansible_collections.agentlab.ocp.plugins.module_utils.screen.fonts import known_fonts
from ansible_collections.agentlab.ocp.plugins.module_utils.screen.picture import Picture

from .draw import Shows, draw

VGA = known_fonts()[0]
FIRST = draw(["Press ESC for boot menu."], VGA)
MENU = draw(["Select boot device:", "", "1. Legacy option rom"], VGA)


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("enter", [28]),
        ("Ctrl-X", [29, 45]),
        ("ctrl-alt-delete", [29, 56, 111]),
        ("alt-f2", [56, 60]),
        ("-", [12]),
        ("f12", [88]),
    ],
)
def test_chord(name: str, codes: list[int]) -> None:
    assert keys.chord(name) == codes


@pytest.mark.parametrize("name", ["return", "ctrl-", "meta-x", "", "x-ctrl"])
def test_unknown_key(name: str) -> None:
    if name == "ctrl-":
        assert keys.chord(name) == [29, 12]
        return
    with pytest.raises(LabError, match="is not a key: name a letter, a digit or one of ctrl, shift, alt, esc"):
        keys.chord(name)


def test_typed() -> None:
    assert list(keys.key_codes("aB:\n1!")) == [[30], [42, 48], [42, 39], [28], [2], [42, 2]]
    with pytest.raises(LabError, match="'ä' cannot be typed"):
        next(keys.key_codes("aä"))


def test_follow(tmp_path: Path) -> None:
    machine = Shows(FIRST, MENU)
    wanted = [
        {"wait": "boot menu", "timeout": 5},
        {"press": "esc"},
        {"wait": "Select boot"},
        {"type": "1\n"},
        {"picture": str(tmp_path / "menu.png")},
    ]
    steps.follow(machine, steps.parse(wanted), sleep=lambda seconds: None)
    assert machine.pressed == [[1], [2], [28]]
    assert (tmp_path / "menu.png").read_bytes().startswith(b"\x89PNG")
    assert steps.read(machine).lines[0] == "Select boot device:"
    assert (tmp_path / "menu.png").stat().st_mode & 0o777 == 0o600, "a screen may show a password"


def test_a_picture_is_complete_or_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old.png"
    old.write_bytes(b"old")
    link = tmp_path / "menu.png"
    link.symlink_to(old)
    with pytest.raises(LabError, match=r"x/y\.png: the picture cannot be written: No such file or directory"):
        steps.follow(Shows(FIRST), [{"picture": str(tmp_path / "x/y.png")}])
    steps.follow(Shows(FIRST), [{"picture": str(link)}])
    assert old.read_bytes() == b"old" and link.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        (FIRST, r"'GRUB' did not appear on the screen within 3 s. The screen was:\nPress ESC for boot menu."),
        (Picture(720, 400, bytes(720 * 400 * 3)), "The screen was blank"),
        (Picture(64, 64, bytes(x * x % 251 for x in range(64 * 64 * 3))), "64 x 64 dots that are not text in a font"),
    ],
)
def test_text_does_not_appear(shown: Picture, message: str) -> None:
    ticks = itertools.count()
    with pytest.raises(LabError, match=message):
        steps.follow(
            Shows(shown), [{"wait": "GRUB", "timeout": 3}], clock=lambda: next(ticks), sleep=lambda seconds: None
        )


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({}, "steps: must be a list, not a mapping"),
        (["x"], r"steps\[0\]: must be a mapping, not a string"),
        ([{"wait": "a", "press": "b"}], r"steps\[0\]: must have one of wait, press, type, picture, not wait and press"),
        ([{}], "not none"),
        ([{"click": "a"}], r"steps\[0\].click: is not known; a step has one of wait, press"),
        ([{"press": "enter"}, {"press": "any"}], r"steps\[1\].press: 'any' is not a key"),
        ([{"type": "é"}], r"steps\[0\].type: 'é' cannot be typed"),
        ([{"type": 1}], "must be a string that is not empty, not 1"),
        ([{"wait": "a", "timeout": 0}], "timeout: must be seconds, more than 0 and at most 3600, not 0"),
        ([{"press": "a", "timeout": 1}], "timeout: is for wait, not for press"),
    ],
)
def test_refused(document: object, message: str) -> None:
    with pytest.raises(LabError, match=message):
        steps.parse(document)
