"""Secrets that stand next to their name, not after it: `value:` below `name: PASSWORD`, and the word below an option in a list.

Containers have their environment and their arguments in these forms. The patterns are bounded, as those of `redact`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_LEAD = r"(?P<lead>[ \t]{0,64}(?:- {1,4})?)"
_END = r"""["']?,?[ \t\r]*\Z"""
_NAME = re.compile(rf"""{_LEAD}["']?(?:name|key)["']?:[ \t]{{1,16}}["']?(?P<word>[\w.-]{{1,128}}){_END}""")
_VALUE = re.compile(rf"""{_LEAD}["']?value["']?:[ \t]{{0,16}}""")
# A line of a list: it has a dash, as in YAML, or quotes, as in JSON.
_OPTION = re.compile(rf"""(?=[ \t]{{0,64}}(?:- |["'])){_LEAD}["']?(?P<word>--?[A-Za-z][\w-]{{1,128}}){_END}""")
_WORD = re.compile(rf"""(?=[ \t]{{0,64}}(?:- |["'])){_LEAD}(?!["']?-)""")


class Pair(NamedTuple):
    """How the line begins whose value is a secret: its pattern, and the column of what follows the dash of a list."""

    pattern: re.Pattern[str]
    column: int

    def value(self, line: str) -> int | None:
        """Return where the value begins in a line; None if the line is another one."""
        found = self.pattern.match(line)
        return found.end() if found and len(found["lead"]) == self.column else None


def announced_pair(line: str) -> tuple[str, Pair] | None:
    """Return the name or the option that a line ends with, and where the value in the next line is."""
    for pattern, following in ((_NAME, _VALUE), (_OPTION, _WORD)):
        if found := pattern.match(line):
            return found["word"], Pair(following, len(found["lead"]))
    return None


def quoted_span(line: str, start: int) -> tuple[int, int, bool]:
    """Return where a value at the end of a line begins and ends without its quotes, and whether its quotes are closed."""
    end, mark = len(line.rstrip(" \t\r,")), line[start : start + 1]
    if mark not in ('"', "'") or not mark:
        return start, max(start, end), True
    closed = end - start > 1 and line[end - 1] == mark
    return start + 1, end - closed, closed
