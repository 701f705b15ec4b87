"""Steps on a machine's screen, as data: wait for a text, press keys, type, take a picture."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypedDict

from ..errors import LabError
from ..files import new_file
from . import keys, text
from .fonts import Font
from .picture import Picture, to_png

SECONDS = 60.0
"""How long a step waits for its text without a timeout of its own."""
LONGEST = 3600.0
POLL_SECONDS = 0.5


class Step(TypedDict, total=False):
    """One step; it has one of `wait`, `press`, `type` and `picture`."""

    wait: str
    """Text that is part of a line of the screen."""
    timeout: float
    """Seconds that `wait` waits at most."""
    press: str
    """A key, or keys pressed together, such as `ctrl-x`."""
    type: str
    """Text to type on a US keyboard."""
    picture: str
    """Path of the PNG file to write, 0600: a screen may show a password. One that exists is replaced."""


class Machine(Protocol):
    """A machine with a screen and a keyboard; its methods raise `LabError`."""

    def fonts(self) -> Sequence[Font]:
        """Return the fonts of its screen in addition to the firmware's."""

    def picture(self) -> Picture:
        """Return what the screen shows."""

    def press(self, codes: Sequence[int]) -> None:
        """Press keys together, and release them."""


KINDS = ("wait", "press", "type", "picture")


def parse(steps: object, place: str = "steps") -> list[Step]:
    """Return the steps of a document; `LabError` names the step and what would be right.

    Keys and text to type are checked, too. place: of the list, for messages.
    """
    if not isinstance(steps, list):
        raise LabError(f"{place}: must be a list, not {_kind(steps)}")
    return [_parse(step, f"{place}[{number}]") for number, step in enumerate(steps)]


def _parse(step: object, place: str) -> Step:
    if not isinstance(step, dict):
        raise LabError(f"{place}: must be a mapping, not {_kind(step)}")
    given = {str(name): value for name, value in step.items() if value is not None}
    if unknown := sorted(given.keys() - {*KINDS, "timeout"}):
        raise LabError(f"{place}.{unknown[0]}: is not known; a step has one of {', '.join(KINDS)}")
    kinds = [name for name in KINDS if name in given]
    if len(kinds) != 1:
        raise LabError(f"{place}: must have one of {', '.join(KINDS)}, not {' and '.join(kinds) or 'none'}")
    kind, value = kinds[0], given[kinds[0]]
    if not isinstance(value, str) or not value:
        raise LabError(f"{place}.{kind}: must be a string that is not empty, not {value!r}")
    found: Step = {}
    if "timeout" in given:
        seconds = given["timeout"]
        if kind != "wait":
            raise LabError(f"{place}.timeout: is for wait, not for {kind}")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= LONGEST:
            raise LabError(f"{place}.timeout: must be seconds, more than 0 and at most {LONGEST:g}, not {seconds!r}")
        found["timeout"] = float(seconds)
    try:
        if kind == "wait":
            found["wait"] = value
        elif kind == "press":
            keys.chord(value)
            found["press"] = value
        elif kind == "type":
            list(keys.key_codes(value))
            found["type"] = value
        else:
            found["picture"] = value
    except LabError as error:
        raise LabError(f"{place}.{kind}: {error}") from error
    return found


def with_limits(steps: Sequence[Step], seconds: float, place: str) -> list[Step]:
    """Return the steps with a limit for each `wait` without its own; `LabError` for one that cannot be.

    seconds: the limit; place: of it, for messages.
    """
    if not 0 < seconds <= LONGEST:
        raise LabError(f"{place}: must be more than 0 and at most {LONGEST:g} seconds, not {seconds:g}")
    return [{**step, "timeout": step.get("timeout", seconds)} if "wait" in step else step for step in steps]


def follow(
    machine: Machine,
    steps: Sequence[Step],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Perform the steps in order; `LabError` for a text that does not appear, with the last screen."""
    for step in steps:
        if "wait" in step:
            _wait(machine, step["wait"], step.get("timeout", SECONDS), clock, sleep)
        elif "press" in step:
            machine.press(keys.chord(step["press"]))
        elif "type" in step:
            for codes in keys.key_codes(step["type"]):
                machine.press(codes)
        elif "picture" in step:
            data = to_png(machine.picture())
            try:
                with new_file(step["picture"], overwrite=True) as file:
                    file.write(data)
            except OSError as error:
                raise LabError(f"{step['picture']}: the picture cannot be written: {error.strerror}") from error


def read(machine: Machine) -> text.Screen:
    """Return what the screen shows as text; `LabError` for a picture that is in no known font."""
    picture = machine.picture()
    screen = text.read(picture, machine.fonts)
    if screen.font is None:
        raise LabError(_graphics(picture))
    return screen


def _wait(
    machine: Machine, wanted: str, seconds: float, clock: Callable[[], float], sleep: Callable[[float], None]
) -> None:
    end = clock() + seconds
    picture = machine.picture()
    screen = text.read(picture, machine.fonts)
    while True:
        if any(wanted in line for line in screen.lines):
            return
        if clock() >= end:
            last = "The screen was:\n" + screen.text if screen.text else "The screen was blank"
            raise LabError(
                f"{wanted!r} did not appear on the screen within {seconds:g} s. "
                + (_graphics(picture) if screen.font is None else last)
            )
        sleep(POLL_SECONDS)
        before, picture = picture, machine.picture()
        if picture != before:
            screen = text.read(picture, machine.fonts)


def _graphics(picture: Picture) -> str:
    return (
        f"the screen shows {picture.width} x {picture.height} dots that are not text in a font of firmware or kernel; "
        "a picture shows them"
    )


def _kind(value: object) -> str:
    names: dict[type, str] = {dict: "a mapping", list: "a list", str: "a string"}
    return names.get(type(value), repr(value))
