"""Assignments of a shell file, read without a shell: nothing in the file is run.

Understood are `export NAME=value`, `NAME=value`, comments, `set` with options, quotes, and expansions of variables:
`$NAME`, `${NAME}`, `${NAME:-default}`. Everything else is an error with file and line: what it would do is not known.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Mapping
from typing import NamedTuple

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_ASSIGNMENT = re.compile(rf"({NAME})=")
_WORD = re.compile(r"[^\s;&|<>()'\"\\$`#]+")
_PLAIN = re.compile(r"[^\s;&|<>()'\"\\$`]+")
_VARIABLE = re.compile(rf"\$(?:({NAME})|\{{({NAME})(?:(:?-)([^{{}}$`\"'\\]*))?\}})")
_CAT = re.compile(r"(\"?)\$\(\s*cat\s+(\"?)(?P<path>(?:\$HOME|~)?/?[\w./@+-]+)\2\s*\)\1(?=[\s;]|$)")
_SUBSTITUTED = {"`": "a command in backticks", "$((": "arithmetic", "$(": "a command substitution, `$(...)`,"}
_DOUBLE_ESCAPES = '$`"\\'
_SHOWN = 40
LIMIT = 64 << 10
"""Maximum length of a value: one that contains itself several times would grow exponentially."""


class Assignment(NamedTuple):
    """A variable with its value; `where` is `file:line`. file: the value is the content of the file `value`, `$(cat FILE)`.

    The value is what a shell would assign: without quotes, with variables expanded.
    """

    name: str
    value: str
    where: str
    file: bool = False


class ShellError(ValueError):
    """Text that is not an assignment, with its file and line.

    A line for each problem. Nothing of the text has been run.
    """


def parse(text: str, source: str, known: Mapping[str, str]) -> list[Assignment]:
    """Return the assignments in `text` in their order; a name may come several times.

    source: the name of the text in messages; known: variables that it may use in addition to its own. Raises `ShellError` that names
    every line which is not an assignment.
    """
    reader = _Reader(text.replace("\r\n", "\n"), source, dict(known))
    return reader.assignments()


class _Stop(Exception):
    """What stops a statement: the reader continues at the next line."""


class _Reader:
    def __init__(self, text: str, source: str, known: dict[str, str]) -> None:
        self.text, self.source, self.known, self.at = text, source, known, 0
        self.lines = [match.start() for match in re.finditer("\n", self.text)]
        self.found: list[Assignment] = []
        self.problems: list[str] = []

    def assignments(self) -> list[Assignment]:
        while self.at < len(self.text):
            start = self.at
            try:
                self.statement()
            except _Stop as stop:
                self.problems.append(f"{self.place_of(start)}: {stop}")
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end + 1
        if self.problems:
            raise ShellError("\n".join(self.problems))
        return self.found

    def place_of(self, position: int) -> str:
        return f"{self.source}:{bisect.bisect_left(self.lines, position) + 1}"

    def statement(self) -> None:
        self.blanks()
        if self.peek() in ("\n", ";"):
            self.at += 1
            return
        if self.peek() == "#":
            self.comment()
            return
        if self.at >= len(self.text):
            return
        start = self.at
        if _ASSIGNMENT.match(self.text, self.at):
            self.assigned()
            return
        word = _WORD.match(self.text, self.at)
        command = word[0] if word else self.text[self.at]
        if command == "set":
            self.options()
        elif command == "export":
            self.at += len(command)
            self.assigned()
        else:
            line = self.text[start : start + _SHOWN].partition("\n")[0]
            raise _Stop(
                f"{line!r} is not an assignment; use `export NAME=value`, because no command of a configuration is run"
            )

    def options(self) -> None:
        """Skip `set -x`, `set +x` and the like."""
        end = self.text.find("\n", self.at)
        line = self.text[self.at : len(self.text) if end < 0 else end]
        if not re.fullmatch(r"set(\s+[-+]\w+(\s+[a-z]+)?)+\s*(#.*)?", line):
            raise _Stop(f"{line[:_SHOWN]!r} is not `set` with options")
        self.at += len(line)

    def assigned(self) -> None:
        """Read assignments up to the end of the statement."""
        while True:
            self.blanks()
            char = self.peek()
            if char in ("", "\n", ";"):
                return
            if char == "#":
                self.comment()
                return
            match = _ASSIGNMENT.match(self.text, self.at)
            if match is None:
                word = _WORD.match(self.text, self.at)
                if word and re.fullmatch(NAME, word[0]) and word[0] in self.known:
                    self.at = word.end()  # `export NAME` of a variable that has a value
                    continue
                raise _Stop("what follows is not NAME=value; quote a value that has blanks")
            start, name = self.at, match[1]
            self.at = match.end()
            file = _CAT.match(self.text, self.at)
            if file:
                self.at = file.end()
                path = self.home(file["path"].replace("$HOME", "~", 1))
                self.found.append(Assignment(name, path, self.place_of(start), file=True))
                self.known.pop(name, None)
                continue
            value = self.word(name)
            if len(value) > LIMIT:
                raise _Stop(f"{name}: the value is longer than {LIMIT >> 10} KiB")
            self.known[name] = value
            self.found.append(Assignment(name, value, self.place_of(start)))

    def word(self, name: str) -> str:
        parts: list[str] = []
        first = True
        while True:
            char = self.peek()
            if char in ("", "\n", ";", " ", "\t"):
                return "".join(parts)
            if char == "'":
                end = self.text.find("'", self.at + 1)
                parts.append(self.quoted(name, end))
                self.at = end + 1
            elif char == '"':
                parts.append(self.double(name))
            elif char in "$`":
                parts.append(self.expansion())
            elif char == "\\":
                following = self.text[self.at + 1 : self.at + 2]
                if following in ("", "\n"):
                    self.at += 2
                    continue
                parts.append(following)
                self.at += 2
            elif char in "&|<>()":
                raise _Stop(f"{name}: {char!r} is not part of a value; quote it, because no command is run")
            else:
                match = _PLAIN.match(self.text, self.at)
                plain = match[0] if match else char
                self.at += len(plain)
                parts.append(self.home(plain) if first else plain)
            first = False

    def quoted(self, name: str, end: int) -> str:
        if end < 0:
            raise _Stop(f"{name}: a quote is not closed")
        value = self.text[self.at + 1 : end]
        if "\n" in value:
            self.at = end
            raise _Stop(f"{name}: the value has more than one line")
        return value

    def double(self, name: str) -> str:
        parts: list[str] = []
        self.at += 1
        while True:
            char = self.peek()
            if char == "":
                raise _Stop(f"{name}: a quote is not closed")
            if char == '"':
                self.at += 1
                return "".join(parts)
            if char == "\n":
                end = self.text.find('"', self.at)
                self.at = len(self.text) if end < 0 else end
                raise _Stop(f"{name}: {'a quote is not closed' if end < 0 else 'the value has more than one line'}")
            if char in "$`":
                parts.append(self.expansion(quoted=True))
            elif char == "\\" and self.text[self.at + 1 : self.at + 2] in _DOUBLE_ESCAPES + "\n":
                following = self.text[self.at + 1 : self.at + 2]
                parts.append(following.strip("\n"))
                self.at += 2
            else:
                parts.append(char)
                self.at += 1

    def expansion(self, *, quoted: bool = False) -> str:
        """Return what a variable expands to; refuse everything else that starts with `$` or a backtick."""
        for mark, meaning in _SUBSTITUTED.items():
            if self.text.startswith(mark, self.at):
                raise _Stop(f"{meaning} is not run; write its result")
        match = _VARIABLE.match(self.text, self.at)
        if match is None:
            if self.text.startswith("${", self.at):
                raise _Stop("an expansion other than ${NAME} and ${NAME:-default} is not understood; write its result")
            if not quoted and self.text[self.at + 1 : self.at + 2] in ("'", '"'):
                raise _Stop("the quotes $'...' and $\"...\" are not understood; write the text itself")
            self.at += 1
            return "$"
        self.at = match.end()
        name, default = match[1] or match[2], match[4]
        value = self.known.get(name)
        if value is None or (value == "" and match[3] == ":-"):
            if default is None:
                if value == "":
                    return ""
                raise _Stop(f"${name} is not set before; write its value")
            return self.home(default) if not quoted else default
        return value

    def home(self, text: str) -> str:
        """Return an unquoted word with its tilde expanded, as far as the home directory is known."""
        if text == "~" or text.startswith("~/"):
            return self.known.get("HOME", "~") + text[1:]
        return text

    def blanks(self) -> None:
        while self.peek() in (" ", "\t") or self.text.startswith("\\\n", self.at):
            self.at += 2 if self.peek() == "\\" else 1
            if self.at >= len(self.text):
                return

    def comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]
