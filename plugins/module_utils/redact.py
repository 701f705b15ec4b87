"""Takes secrets out of text that leaves the run directory: reports, logs, diffs, artifacts.

Text is read line by line, in time linear in its length: nothing is searched twice, and every pattern is bounded or consumes
what it matched. A secret is known in three ways: as a literal that the caller names, by the key that it belongs to (YAML,
JSON, units, environments, keyfiles, command lines, prose), and by its own shape (PEM, JWT, hashes, URLs).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from typing import IO
from urllib.parse import quote

from .redact_pairs import Pair, announced_pair, quoted_span
from .redact_shapes import HIDDEN, has_trigger, hide_shapes, is_encoded
from .redact_words import is_innocent, is_key_file, is_secret_key

MAX_LINE = 1 << 20
_BLOCK = 1 << 16
_LONGEST_KEY = 128
_LONGEST_LITERAL = 8192
_NEAR = 1024

_PREFIX = re.compile(
    r"(?:\[ {0,8}\d{1,9}\.\d{1,9}\] ?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})? |\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{0,20} )"
    r"(?:[\w.-]{1,255} )?[\w@.:/()\\-]{1,128}(?:\[\d{1,9}\])?: "
)
_QUOTE = r"""(?:\\{0,15}["']|&quot;|&\#3[49];|\\{1,8}u002[27]|`)"""
_WORD = re.compile(r"[A-Za-z0-9_.\-]+")
_SEPARATOR = re.compile(
    rf"(?P<closed>{_QUOTE})?[ \t]{{0,64}}(?P<sign>[:=]|:=|=>)[ \t]{{0,256}}(?:(?:Invalid|Duplicate|Unsupported) value: )?"
    rf"(?P<open>[bBrRuUfF]{{0,2}}{_QUOTE})?"
)
_ARGUMENT = re.compile(rf"(?P<closed>{_QUOTE})?(?:,[ \t]{{0,8}}|[ \t]{{1,8}})(?P<open>{_QUOTE})?(?!-)")
_PROSE = re.compile(rf"(?:[ \t](?:is|was|set to))?[ \t]{{1,4}}(?P<open>{_QUOTE})?")
_BLOCK_SCALAR = re.compile(r"[|>][-+0-9]{0,2}[ \t]*(?:#.*)?\Z")
_PLAIN = {
    "space": re.compile(r"(?:[^\s\"'\\]|\\[^nrt\"'\\])+"),
    "flow": re.compile(r"[^,}\]\"]+"),
    "query": re.compile(r"[^\s&\"'<>]+"),
    "element": re.compile(r"[^<]+"),
    "prose": re.compile(r"(?:[^\s,;)}\]\"'<>]|[,;)}\]](?=[^\s,;)}\]\"'<>]))+"),
}
_OPAQUE = re.compile(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])\S{6,256}\Z")

_PEM_BEGIN = re.compile(r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(
    r"[ \t]*+(?:[\"']?[A-Za-z0-9+/=\\]++[\"',]{0,3}|(?:Proc-Type|DEK-Info|Comment|Version): .{0,200})?[ \t\r]*+\Z"
)


class Redactor:
    """Redacts one text, given to it in pieces that end at the end of a line.

    secrets: literals that are to be hidden wherever they stand, also in base64 or quoted for JSON and URLs. A short word is
    hidden by its key only: `password` as a password would take the word out of every sentence.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms = {form for secret in secrets for form in _forms(secret)}
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self._literals = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        self._pem = False
        self._secret_document = False
        self._below: int | None = None  # the indent of a key whose value is the lines below it
        self._maybe: int | None = None  # the same, if no mapping follows
        self._data: tuple[int, bool] | None = None  # the indent of `data:`, and whether all below it is secret
        self._pair: Pair | None = None  # what the line below the name of a secret has

    def feed(self, text: str) -> str:
        """Return `text` (whole lines) without secrets.

        A secret may reach over several calls (a private key, a block scalar): the state is kept from one to the next.
        """
        if self._literals:
            text = self._literals.sub(HIDDEN, text)
        if not self._pending and not has_trigger(text):
            return text
        return "\n".join(self._line(line) for line in text.split("\n"))

    def document(self, text: str) -> str:
        """Return a whole text without secrets; a Secret is known by its kind, wherever in its document that stands.

        Each document of a YAML stream is one by itself. Use `feed` for text of unknown length.
        """
        parts, document, secret = [], list[str](), False
        for line in [*text.split("\n"), "---"]:
            if line.startswith("---") and not line.startswith("-----"):
                self._secret_document, self._below, self._maybe, self._data, self._pair = secret, None, None, None, None
                parts += [self.feed("\n".join(document))] if document else []
                document, secret = [], False
            secret = secret or _IS_SECRET.search(line) is not None
            document.append(line)
        return "\n".join(parts)

    @property
    def _pending(self) -> bool:
        return (
            self._pem
            or self._secret_document
            or self._below is not None
            or self._maybe is not None
            or self._data is not None
            or self._pair is not None
        )

    def _line(self, line: str) -> str:
        if not self._pending and not has_trigger(line):
            return line
        prefix = _PREFIX.match(line)
        head = prefix.group() if prefix else ""
        body = line[len(head) :]
        indent = len(body) - len(body.lstrip(" "))
        if self._pem:
            end = _PEM_END.search(body)
            if not end and _PEM_BODY.match(body):
                return head + (body[:indent] + HIDDEN if body.strip() else body)
            self._pem = False
            if end:
                return head + body[:indent] + HIDDEN + self._scan(body[end.end() :], indent)
        if self._maybe is not None and body.strip():
            if indent > self._maybe and not _MAPPING.match(body):
                self._below = self._maybe
            self._maybe = None
        if self._below is not None:
            if not body.strip():
                return line
            if indent > self._below:
                return head + body[:indent] + HIDDEN + ("\r" if body.endswith("\r") else "")
            self._below = None
        return head + self._scan(self._below_data(self._below_name(body, indent), indent), indent)

    def _below_name(self, body: str, indent: int) -> str:
        """A line whose value is a secret by the name in the line above it."""
        named = announced_pair(body)
        pair, self._pair = self._pair, named[1] if named and is_secret_key(named[0]) else None
        start = pair.value(body) if pair else None
        if start is None:
            return body
        self._pair = None
        begin, end, closed = quoted_span(body, start)
        if not closed or begin == end or _BLOCK_SCALAR.match(body, start):
            self._below = indent  # it continues in the lines below
        return body if is_innocent(body[begin:end]) else f"{body[:begin]}{HIDDEN}{body[end:]}"

    def _below_data(self, body: str, indent: int) -> str:
        """The values below `data:` of a Secret: all of them when it is known to be one, else those that are base64 of text."""
        if self._data is not None and body.strip(" \t\r}],"):
            if indent <= self._data[0]:
                self._data = None
            elif (pair := _PAIR.match(body)) and (self._data[1] or is_encoded(pair["value"])):
                if _BLOCK_SCALAR.match(pair["value"]) or not pair["value"]:
                    self._below = indent
                elif not is_innocent(pair["value"]):
                    body = f"{pair['key']}{HIDDEN}{pair['end']}"
        elif opened := _DATA.match(body):
            self._data = (
                len(opened["indent"].replace("-", " ")),
                self._secret_document or opened["name"] == "stringData",
            )
        return body

    def _scan(self, line: str, indent: int) -> str:
        """Hide the values of secret keys, the parts of a private key, and what has the shape of a secret."""
        pieces, done = list[str](), 0
        while begin := _PEM_BEGIN.search(line, done):
            end = _PEM_END.search(line, begin.end())
            pieces += [
                self._scan_keys(line[done : begin.start()], indent),
                f"{begin.group()}{HIDDEN}{end.group() if end else ''}",
            ]
            if not end:
                self._pem = True
                return "".join(pieces)
            done = end.end()
        return "".join([*pieces, self._scan_keys(line[done:], indent if not done else 0)])

    def _scan_keys(self, line: str, indent: int, *, inside: bool = False) -> str:
        pieces, done, position = list[str](), 0, 0
        while word := _WORD.search(line, position):
            position = word.end()
            if len(word.group()) > _LONGEST_KEY:
                continue
            name = word.group()
            if name in ("data", "stringData") and not inside and (region := self._flow_data(line, word)):
                pieces += [hide_shapes(line[done : word.start()]), region[0]]
                done = position = region[1]
            elif (span := self._named(line, word, indent)) or (
                is_secret_key(name) and (span := self._value(line, word, indent))
            ):
                pieces += [hide_shapes(line[done : span[0]]), HIDDEN]
                done = position = span[1]
        return "".join([*pieces, hide_shapes(line[done:])])

    def _flow_data(self, line: str, word: re.Match[str]) -> tuple[str, int] | None:
        """`"data": {...}` on one line, as `_below_data`: what it becomes, and where it ends."""
        opened = _FLOW_DATA.match(line, word.end())
        if not opened:
            return None
        end = line.find("}", opened.end())
        end = end if end >= 0 else len(line)
        every = word.group() == "stringData" or self._secret_document or _IS_SECRET.search(line) is not None

        def hide(pair: re.Match[str]) -> str:
            return f"{pair[1]}{HIDDEN}{pair[3]}" if every or is_encoded(pair[2]) else pair[0]

        inside = _FLOW_PAIR.sub(hide, line[opened.end() : end])
        return line[word.start() : opened.end()] + self._scan_keys(inside, 0, inside=True), end

    def _value(self, line: str, word: re.Match[str], indent: int) -> tuple[int, int] | None:
        """Where the value of a secret key begins and ends, if it has one."""
        name, before = word.group(), line[max(0, word.start() - 9) : word.start()]
        if before.endswith("/"):
            return None  # a part of a path
        if before.endswith("<") and line.startswith(">", word.end()):
            return _span(_PLAIN["element"].match(line, word.end() + 1))
        at_start = word.start() == indent or (
            word.start() < indent + 16 and not line[indent : word.start()].strip(" \t-\"'")
        )
        found = _SEPARATOR.match(line, word.end())
        if not found and name.startswith("-"):
            found = _ARGUMENT.match(line, word.end())
        elif not found:
            return _prose(line, word)
        if not found:
            return None
        start, sign = found.end(), found.groupdict().get("sign", " ")
        if (name == "passwd" and sign == ":" and not found["open"]) or (
            name.endswith("tokens") and line[start : start + 1].isdigit()
        ):
            return None  # nsswitch.conf's passwd; a number of tokens
        if found["open"]:
            return self._quoted(line, start, found["open"].lstrip("bBrRuUfF"), indent, at_start)
        if line.startswith(("{", "["), start) and sign != " ":
            return _list(line, start)
        rest = line[start : start + 16]
        if sign == ":" and at_start and (not rest.strip() or _BLOCK_SCALAR.match(line, start)):
            deeper = indent + (2 if line.startswith("- ", indent) else 0)
            self._below, self._maybe = (deeper, None) if rest.strip() else (None, deeper)
            return None
        if sign == "=":
            quoted = before[-1:] in ('"', "'") and not found["closed"]
            how = "query" if before[-1:] in ("?", "&", "#") else "space"
            if quoted and (end := line.find(before[-1], start)) > 0:
                return start, end
        elif sign == ":" and at_start and not found["closed"]:
            return _to_the_end(line, start, is_key_file(name))
        elif before.rstrip()[-1:] in ("{", ",") and line.rfind("{", max(0, word.start() - _NEAR), word.start()) >= 0:
            how = "flow"
        else:
            how = "prose" if sign == ":" else "space"
        span = _span(_PLAIN[how].match(line, start))
        value = line[span[0] : span[1]] if span else ""
        return None if not span or is_innocent(value, prose=how == "prose") else span

    def _named(self, line: str, word: re.Match[str], indent: int) -> tuple[int, int] | None:
        """Where the value of `{"name": "PASSWORD", "value": "X"}` begins and ends."""
        found = _FLOW_NAMED.match(line, word.end()) if word.group().lower() in ("name", "key") else None
        if not found or not is_secret_key(found["word"]):
            return None
        if found["open"]:
            return self._quoted(line, found.end(), found["open"], indent, at_start=False)
        span = _span(_PLAIN["flow"].match(line, found.end()))
        return None if span and is_innocent(line[slice(*span)]) else span

    def _quoted(self, line: str, start: int, mark: str, indent: int, at_start: bool) -> tuple[int, int] | None:
        """A quoted value; one that is not closed on its line continues on following lines that are indented deeper."""
        position = start
        while (end := line.find(mark, position)) >= 0:
            # An escaped quote inside: more backslashes in front of it than the opening quote has.
            if mark == "'" and end > start and line.startswith("''", end):  # YAML's quote within quotes
                position = end + 2
                continue
            if line[end - 1 : end] != "\\" or end == start or _even(line, end):
                break
            position = end + len(mark)
        if end < 0:
            end = len(line.rstrip("\r"))
            self._below = indent if at_start else None
        return None if is_innocent(line[start:end]) else (start, end)


_IS_SECRET = re.compile(r"""(?:^|[\s{,])["']?kind["']?:[ \t]{0,8}["']?Secret\b""")
_DATA = re.compile(r"""(?P<indent> {0,64}(?:- {1,4})?)["']?(?P<name>data|stringData)["']?:[ \t]{0,8}\{?[ \t\r]*\Z""")
_MAPPING = re.compile(r"""[ \t]{0,256}(?:- {1,4})?(?:["']?[\w./-]{1,253}["']?:(?:[ \t\r]|\Z)|[{\[}\]])""")
_PAIR = re.compile(
    r"""(?P<key>[ \t]{0,64}["']?[\w.-]{1,253}["']?:(?:[ \t]{1,16}|\Z)["']?)(?P<value>[^"'\r]*)(?P<end>["']?,?\r?)\Z"""
)
_FLOW_NAMED = re.compile(
    rf"(?:{_QUOTE})?[ \t]{{0,8}}[:=][ \t]{{0,8}}(?:{_QUOTE})?(?P<word>[\w.-]{{1,128}})(?:{_QUOTE})?[ \t]{{0,8}},?[ \t]{{0,8}}"
    rf"(?:{_QUOTE})?[vV]alue(?:{_QUOTE})?[ \t]{{0,8}}[:=][ \t]{{0,8}}(?P<open>{_QUOTE})?"
)
_FLOW_DATA = re.compile(rf"(?:{_QUOTE})?:[ \t]{{0,8}}\{{")
_FLOW_PAIR = re.compile(
    rf"(?<![\w.-])([\w.-]{{1,253}}(?:{_QUOTE})?:[ \t]{{0,8}}(?:{_QUOTE})?)([A-Za-z0-9+/=_-]+)((?:{_QUOTE})?)"
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without private keys, tokens, passwords, pull secrets, nor any of the literal `secrets`.

    The whole text is in memory. What is hidden becomes `HIDDEN`; what has been redacted stays as it is.
    """
    return Redactor(secrets).document(text)


def redact_stream(source: IO[bytes], target: IO[bytes], secrets: Iterable[str] = ()) -> None:
    """Copy text of any length without secrets, in bounded memory: lines over `MAX_LINE` bytes are cut.

    Bytes that are not UTF-8 become replacement characters. A Secret whose kind stands below its data is not known as
    one here, unlike in `redact`.
    """
    redactor = Redactor(secrets)
    for block in _blocks(source):
        target.write(redactor.feed(block.decode(errors="replace")).encode())


def _blocks(source: IO[bytes]) -> Iterator[bytes]:
    """The source in blocks of whole lines (the last of which may lack its end)."""
    waiting, size = list[bytes](), 0
    while line := source.readline(MAX_LINE):
        cut = 0
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            while (more := source.readline(MAX_LINE)) and not more.endswith(b"\n"):
                cut += len(more)
            cut += len(more)
            line += f" [{cut} bytes cut]\n".encode() if cut else b""
        waiting.append(line)
        size += len(line)
        if size >= _BLOCK:
            yield b"".join(waiting)
            waiting, size = [], 0
    if waiting:
        yield b"".join(waiting)


def _forms(secret: str) -> Iterator[str]:
    for line in secret.split("\n") if "\n" in secret else [secret]:
        text = line.strip()[:_LONGEST_LITERAL]
        if (
            len(text) < (16 if "\n" in secret else 6)
            or text.startswith("-----")
            or re.fullmatch(r"[a-z]{1,15}|\d{1,9}", text)
        ):
            continue
        yield from (text, json.dumps(text)[1:-1], quote(text, safe=""), base64.b64encode(text.encode()).decode())
        for before in range(3):  # in the midst of what was encoded, as the password is in base64 of user:password
            data = bytes(before) + text.encode()
            inside = base64.b64encode(data[: len(data) // 3 * 3]).decode()[4 if before else 0 :]
            if len(inside) >= 8:
                yield inside


def _span(match: re.Match[str] | None) -> tuple[int, int] | None:
    return match.span() if match and match.end() > match.start() else None


def _to_the_end(line: str, start: int, prose: bool) -> tuple[int, int] | None:
    """A plain scalar of YAML, up to a comment."""
    comment = line.find(" #", start)
    end = len(line[start : comment if comment >= 0 else len(line)].rstrip()) + start
    return None if is_innocent(line[start:end], prose=prose) or end == start else (start, end)


def _list(line: str, start: int) -> tuple[int, int] | None:
    """A flow list of scalars; a mapping has keys of its own."""
    end = line.find("]", start, start + _NEAR)
    return (start + 1, end) if line[start] == "[" and end > start + 1 and "{" not in line[start:end] else None


def _prose(line: str, word: re.Match[str]) -> tuple[int, int] | None:
    """`the password is "X"`, `token abc123`: something that no sentence would have there."""
    found = _PROSE.match(line, word.end())
    if not found:
        return None
    stated = " is" in found.group() or " was" in found.group() or " set to" in found.group()
    if found["open"]:
        end = line.find(found["open"], found.end(), found.end() + _NEAR)
        return (
            (found.end(), end)
            if stated and end > found.end() and not is_innocent(line[found.end() : end], prose=True)
            else None
        )
    span = _span(_PLAIN["prose"].match(line, found.end()))
    return span if span and stated and _OPAQUE.match(line[slice(*span)]) else None


def _even(line: str, end: int) -> bool:
    """Return whether the backslashes in front of a quote escape each other."""
    first = end
    while first and line[first - 1] == "\\":
        first -= 1
    return (end - first) % 2 == 0
