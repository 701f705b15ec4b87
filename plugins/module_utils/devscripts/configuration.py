"""A configuration of dev-scripts as it is written: config_$USER.sh, with the fields of the profile that it lacks."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NamedTuple

from ..plan import files

_HEAD = "# Configuration of dev-scripts, written by agentlab from a profile.\n"


class LostField(NamedTuple):
    """A field of a profile without a counterpart in dev-scripts.

    `field` is its path with dots, as in a profile; `str()` gives a line for a report.
    """

    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.field}: {self.reason}"


class Export(NamedTuple):
    """A configuration: variable -> value, variable -> field that it comes from, and the fields that it cannot say.

    files: variables whose value is the content of the file that is named.
    """

    values: dict[str, str]
    fields: dict[str, str]
    lost: list[LostField]
    files: tuple[str, ...]

    def text(self) -> str:
        """Return the text of config_$USER.sh.

        An assignment for each variable, quoted for a shell, below comments with the fields that are lost.
        """
        lines = [f"# No counterpart: {lost}" for lost in self.lost]
        for name, value in self.values.items():
            quoted = f'"$(cat {value})"' if name in self.files else _quoted(value)
            lines.append(f"export {name}={quoted}  # {self.fields[name]}")
        return _HEAD + "".join(f"{line}\n" for line in lines)


class ExportError(ValueError):
    """A value that a shell file cannot have, or a file that must not be replaced.

    One line: the field or the file, and what is wrong with it.
    """


def check_replaceable(path: Path, how: str) -> None:
    """Raise `ExportError` for a file that agentlab has not written; `how` is the option that replaces it.

    Files that agentlab writes begin with a comment about that. A file that does not exist may be written.
    """
    if path.exists() and not files.read(str(path)).startswith(_HEAD):
        raise ExportError(f"{path}: was not written by agentlab, and may have settings of yours; {how} replaces it")


def _quoted(value: str) -> str:
    """Return a value for a shell. A path in the home directory stays one: quotes would keep the tilde from that."""
    return f'"$HOME"{shlex.quote(value[1:])}' if value.startswith("~/") else shlex.quote(value)
