"""What is wrong with a profile or a plan: where it stands, what stands there, and what would be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Path = tuple[Any, ...]
"""Where a field stands: keys, and indices in lists."""

Finding = tuple[Path, Any, str]
"""Path of a field, its value (None: not shown), and the valid values."""


def duplicates(values: Iterator[tuple[Path, str]]) -> Iterator[Finding]:
    """Yield a finding for each of `values` (place and text) that an earlier place has already."""
    seen: dict[str, Path] = {}
    for path, value in values:
        if value in seen:
            first = ".".join(str(part) for part in seen[value])
            yield path, value, f"is already used by {first}; each must be unique"
        seen.setdefault(value, path)


class Mismatch(NamedTuple):
    """A field that is not of its type.

    meant: the field that its misspelled name is likely to mean; choice: the value that its misspelled one does.
    """

    path: Path
    value: Any
    remedy: str
    meant: Path | None = None
    choice: str | None = None


class Problem(NamedTuple):
    """One thing that is wrong with a file.

    `source` is the file, with `:line:column` where it is known; `field` the path in it (`nodes.master-0.vcpus`, or `-`
    for the whole file); `value` its value; `remedy` the valid values.
    """

    source: str
    field: str
    value: Any
    remedy: str

    @classmethod
    def of(cls, source: str, path: Path, value: object, remedy: str) -> Problem:
        """Return a finding in `source` as a problem.

        `path` becomes text with dots, `-` when it is empty. `source` is the file, with line and column where they are
        known.
        """
        return cls(source, ".".join(str(part) for part in path) or "-", value, remedy)

    def __str__(self) -> str:
        shown = "" if self.value is None else f" is {self.value!r}"
        field = "" if self.field == "-" else f"{self.field}{shown}: "
        return f"{self.source}: {field}{self.remedy}"


class ProfileError(ValueError):
    """Everything that is wrong with a profile, in one report (`problems`).

    The text has a line for each problem: file, field, value, and what would be right.
    """

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems
        super().__init__("\n".join(str(problem) for problem in problems))
