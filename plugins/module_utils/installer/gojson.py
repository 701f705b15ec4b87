"""JSON as Go's encoding/json reads and writes it: its words for what is wrong, and its escapes."""

from __future__ import annotations

import json
import re
from typing import Any

from ..documents import DocumentError, load_json

_MAX_DEPTH = 10000
_BLANK = " \t\r\n"
_END = "unexpected end of JSON input"
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_PLAIN = re.compile(r'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(r"[0-9]*")
_HEX = "0123456789abcdefABCDEF"


class JsonError(ValueError):
    """Invalid JSON; the text is the message of encoding/json."""


def loads(text: str) -> Any:
    """Parse one JSON value.

    Raises `JsonError` with encoding/json's message, also for depths and numbers of values beyond the limits of
    `documents`.
    """
    try:
        return load_json(text, name="JSON")
    except DocumentError as error:
        if error.problem.startswith("exceeded max depth"):
            raise JsonError("exceeded max depth") from None
        _Scanner(text).check()
        # What is left is too many values, or a number that Python does not read.
        number = "number" in error.problem
        raise JsonError(
            "json: cannot unmarshal number into Go value of type float64" if number else error.problem
        ) from None


def dumps(value: object, *, indent: bool = False) -> str:
    """Write as json.Marshal does, or with `indent` as json.MarshalIndent with two blanks and sorted keys.

    `<`, `>`, `&`, U+2028 and U+2029 are escaped. Mappings keep their order without `indent`, as structs do.
    """
    if indent:
        text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
    else:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    text = re.sub("[\ud800-\udfff]", "\ufffd", text)
    return re.sub("[<>&\u2028\u2029]", lambda match: f"\\u{ord(match[0]):04x}", text)


def kind(value: object) -> str:
    """What an error calls the value.

    One of encoding/json's words: null, bool, number, string, array, object.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


class _Scanner:
    """Finds the first character that can't be, without recursion."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def _fail(self, where: str) -> JsonError:
        # At the end encoding/json sees one blank more, so that a truncated literal is reported as such.
        return JsonError(f"invalid character {_quote(self._character() or ' ')} {where}")

    def _character(self) -> str:
        return self.text[self.at : self.at + 1]

    def _skip(self) -> str:
        while (character := self._character()) and character in _BLANK:
            self.at += 1
        return character

    def check(self) -> None:
        """Raise `JsonError` when the text is not one value."""
        stack: list[str] = []
        self._value(stack, "")
        while stack:
            character = self._skip()
            if not character:
                raise JsonError(_END)
            opened = stack[-1]
            if character == opened:
                stack.pop()
                self.at += 1
            elif character != ",":
                raise self._fail("after object key:value pair" if opened == "}" else "after array element")
            else:
                self.at += 1
                if opened == "}":
                    self._key()
                self._value(stack, "")
        if self._skip():
            raise self._fail("after top-level value")

    def _value(self, stack: list[str], closing: str) -> None:
        """Read a scalar, or the begin of lists and objects up to their first scalar."""
        while True:
            character = self._skip()
            if not character:
                raise JsonError(_END)
            if closing and character == closing:
                stack.pop()
                self.at += 1
                return
            if character not in "{[":
                self._scalar(character)
                return
            closing = "}" if character == "{" else "]"
            stack.append(closing)
            if len(stack) > _MAX_DEPTH:
                raise JsonError("exceeded max depth")
            self.at += 1
            if closing == "}":
                if self._skip() == "}":
                    stack.pop()
                    self.at += 1
                    return
                self._key()
                closing = ""

    def _key(self) -> None:
        character = self._skip()
        if not character:
            raise JsonError(_END)
        if character != '"':
            raise self._fail("looking for beginning of object key string")
        self._string()
        character = self._skip()
        if not character:
            raise JsonError(_END)
        if character != ":":
            raise self._fail("after object key")
        self.at += 1

    def _scalar(self, character: str) -> None:
        if character == '"':
            self._string()
        elif character in _LITERALS:
            word = _LITERALS[character]
            for expected in word[1:]:
                self.at += 1
                if self._character() != expected:
                    raise self._fail(f"in literal {word} (expecting {_quote(expected)})")
            self.at += 1
        elif character == "-" or "0" <= character <= "9":
            self._number()
        else:
            raise self._fail("looking for beginning of value")

    def _number(self) -> None:
        if self._character() == "-":
            self.at += 1
            if not self._digit():
                raise self._fail("in numeric literal")
        if self._character() == "0":
            self.at += 1
        else:
            self._digits()
        if self._character() == ".":
            self.at += 1
            if not self._digit():
                raise self._fail("after decimal point in numeric literal")
            self._digits()
        if self._character() in ("e", "E"):
            self.at += 1
            if self._character() in ("+", "-"):
                self.at += 1
            if not self._digit():
                raise self._fail("in exponent of numeric literal")
            self._digits()

    def _digit(self) -> bool:
        return "0" <= self._character() <= "9"

    def _digits(self) -> None:
        self.at = self._end(_DIGITS)

    def _end(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        return match.end() if match else self.at

    def _string(self) -> None:
        self.at += 1
        while True:
            self.at = self._end(_PLAIN)
            character = self._character()
            if not character:
                raise JsonError(_END)
            if character == '"':
                self.at += 1
                return
            if character != "\\":
                raise self._fail("in string literal")
            self.at += 1
            escape = self._character()
            if escape == "u":
                for __ in range(4):
                    self.at += 1
                    if not self._character() or self._character() not in _HEX:
                        raise self._fail("in \\u hexadecimal character escape")
            elif not escape or escape not in 'bfnrt\\/"':
                raise self._fail("in string escape code")
            self.at += 1


def _quote(character: str) -> str:
    if character == "'":
        return r"'\''"
    if character == '"':
        return "'\"'"
    # Go looks at bytes, each taken for a character.
    first = chr(character.encode("utf-8", "replace")[0])
    named = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\"}
    if first in named:
        return f"'{named[first]}'"
    number = ord(first)
    if number < 0x20 or number == 0x7F:
        return f"'\\x{number:02x}'"
    return f"'{first}'" if first.isprintable() else f"'\\u{number:04x}'"
