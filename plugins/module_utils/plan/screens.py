"""Steps on the screen of a machine that was booted, as a profile has them. docs/hosts.md is the guide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from ..errors import LabError
from ..screen import steps
from .fields import Directory, Range
from .problems import Finding, Path


class ScreenStep(TypedDict, total=False):
    """One step on a machine's screen. It has one of `wait`, `press`, `type` and `picture`."""

    wait: str | None
    """Text for which it waits: a part of a line of the screen."""
    timeout: Annotated[int, Range(1, int(steps.LONGEST))] | None
    """Limit of `wait` in seconds, 60 unless given."""
    press: str | None
    """A key, or keys pressed together, such as enter, f2 or ctrl-x."""
    type: Annotated[str, "typed"] | None
    """Text that is typed on a US keyboard; a tab is the key Tab."""
    picture: Directory | None
    """Path of a picture of the screen (PNG), which is written on the hypervisor."""


def findings(given: Sequence[Mapping[str, Any]], place: Path, *, screen: bool) -> Iterator[Finding]:
    """Yield what is wrong with steps beyond their types: a step without or with several actions, keys that there are not.

    place: of the steps in the profile or plan; screen: whether the machine has one.
    """
    if given and not screen:
        yield place, None, "requires `screen: true`"
    for index, step in enumerate(given):
        try:
            steps.parse([step])
        except LabError as error:
            field, _colon, remedy = str(error).removeprefix("steps[0]").partition(": ")
            name = field.removeprefix(".")
            value = step.get(name)
            yield (*place, index, *([name] if name else [])), value, remedy.removeprefix(f"{value!r} ")
