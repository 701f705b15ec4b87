from __future__ import annotations

import base64
import io
import itertools
import json
import random
import sys
import time
import tracemalloc

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import redact as module
from ansible_collections.agentlab.ocp.plugins.module_utils.redact import Redactor, redact, redact_stream
from ansible_collections.agentlab.ocp.plugins.module_utils.redact_shapes import HIDDEN

from .corpus import INNOCENT, JWT, KEY, SECRETS


def test_corpus_is_large_enough() -> None:
    assert len(SECRETS) >= 100 and len(INNOCENT) >= 60


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_go(name: str) -> None:
    text, secret = SECRETS[name]
    assert secret in text
    out = redact(text)
    assert secret not in out and HIDDEN in out
    assert redact(out) == out, "what is redacted stays as it is"
    # In the midst of other text, and written as one string of JSON.
    assert secret not in redact(f"first line\n{text}\nlast: line")


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_go_from_streams(name: str) -> None:
    """A stream knows no kind of a document that stands below its data."""
    text, secret = SECRETS[name]
    if name in ("Secret, binary value", "Secret, JSON of one line"):
        return
    assert secret not in stream(text)


@pytest.mark.parametrize("text", INNOCENT)
def test_the_rest_stays(text: str) -> None:
    assert redact(text) == text
    assert stream(text) == text
    assert redact(f"a: b\n{text}\nc: d") == f"a: b\n{text}\nc: d"


def test_what_is_around_stays() -> None:
    assert (
        redact('{"username": "admin", "password": "x1", "address": "y"}')
        == f'{{"username": "admin", "password": "{HIDDEN}", "address": "y"}}'
    )
    assert redact("password: |\n  a\n  b\nuser: c") == f"password: |\n  {HIDDEN}\n  {HIDDEN}\nuser: c"
    assert (
        redact(f"{KEY}\nlevel=info")
        == f"-----BEGIN EC PRIVATE KEY-----{HIDDEN}\n{HIDDEN}\n{HIDDEN}\n{HIDDEN}\nlevel=info"
    )
    assert redact("bmc: {password: a b, user: c}") == f"bmc: {{password: {HIDDEN}, user: c}}"
    assert redact("https://u:p@host/x") == f"https://u:{HIDDEN}@host/x"


def test_literals_go_in_every_form() -> None:
    secret = 'p"q/r s%t12'
    for form in (secret, json.dumps(secret)[1:-1], "cCJxL3IgcyV0MTI=", "p%22q%2Fr%20s%25t12"):
        assert redact(f"x {form} y", [secret]) == f"x {HIDDEN} y"
    for user in ("u", "us", "use"):
        inside = base64.b64encode(f"{user}:{secret} and more".encode()).decode()
        assert "cCJxL3Igcy" not in inside or HIDDEN in redact(inside, [secret])
        assert base64.b64encode(secret.encode()).decode()[4:12] not in redact(inside, [secret]) and HIDDEN in redact(
            inside, [secret]
        )


def test_a_word_is_not_a_literal() -> None:
    assert redact("the password of the lab", ["password", "lab", ""]) == "the password of the lab"


def test_lines_of_a_long_literal_go() -> None:
    lines = ["abcdefghijklmnop0", "qrstuvwxyz0123456"]
    assert redact("x qrstuvwxyz0123456 y", ["\n".join(lines)]) == f"x {HIDDEN} y"


def stream(text: str, **options: list[str]) -> str:
    target = io.BytesIO()
    redact_stream(io.BytesIO(text.encode()), target, **options)
    return target.getvalue().decode()


HOSTILE = {
    "spaces": " ",
    "key and spaces": "password: ",
    "tabs after a key": "password:\t",
    "eyJ": "eyJ",
    "eyJ.": "eyJ.",
    "BEGIN lines": "-----BEGIN PRIVATE KEY-----\n",
    "BEGIN in a line": "-----BEGIN PRIVATE KEY-----",
    "BEGIN END": "-----BEGIN PRIVATE KEY----------END PRIVATE KEY-----",
    "certificates": "-----BEGIN ",
    "quotes": '"',
    "password quotes": 'password: "',
    "password escaped": '"password": \\"',
    "backslashes": "\\",
    "backslash quotes": 'password: "\\\\\\"',
    "data": "data: {",
    "nested data": '{"data":',
    "data lines": "data:\n  a: b\n",
    "braces": "{password: ",
    "lists": "password: [",
    "commas": ",password:",
    "schemes": "://",
    "users": "://a:",
    "curl": "-u a:",
    "dollars": "$1$",
    "hashes": "$6$$",
    "echo": "echo ",
    "login": "login -p",
    "sshpass": "sshpass -p '",
    "bearer": "bearer ",
    "basic": "basic ",
    "base64": "LS0tLS1CRUdJTi",
    "words": "a",
    "dots": "a.",
    "dashes": "-",
    "long keys": "password",
    "secrets": "secret=",
    "prose": "password is ",
    "indents": " password:\n  ",
    "docs": "---\nkind: Secret\n",
    "newlines": "\n",
    "data urls": "data:",
    "semicolons": "data:;a",
    "tokens": "token ",
    "flags": "--token ",
    "elements": "<password>",
    "invalid": "password: Invalid value: ",
    "groups": "a1b2c-",
    "parens": "password: a,b",
    "references": "password: ${",
    "named": '{"name":"password","value":"',
    "names": "- name: password\n",
    "names and values": "- name: password\n  value: a\n",
    "options of a list": "- --password\n",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_time_is_linear(name: str) -> None:
    """Four times the input takes about four times as long, not sixteen; no time is compared with a limit."""
    unit, tail = HOSTILE[name], "!"

    def took(size: int) -> float:
        text = unit * (size // len(unit)) + tail
        return min(_timed(text) for __ in range(3))

    for size in (20_000, 75_000):
        small = took(size)
        if took(size * 4) < 9 * max(small, 0.002):
            return
    large = 300_000
    assert took(large) < 9 * max(took(large // 4), 0.002)


def _timed(text: str) -> float:
    start = time.process_time()
    redact(text)
    redact(text, ["a-literal-secret1", "another1-secret"])
    return time.process_time() - start


def test_any_text_is_survived() -> None:
    """Pieces of all shapes in any order: no exception, and the second time nothing is left to do."""
    chance = random.Random(7)
    pieces = [
        *HOSTILE.values(),
        *(text for text, __ in SECRETS.values()),
        *INNOCENT,
        "\n",
        "\r\n",
        "\0",
        "\x1b[0m",
        "é",
        "\ufffd",
    ]
    for __ in range(400):
        text = "".join(
            itertools.chain.from_iterable(
                (piece, chance.choice(["", " ", "\n"])) for piece in chance.choices(pieces, k=8)
            )
        )
        once = redact(text)
        assert once.count("\n") == text.count("\n")
        stream(text)


class Endless(io.RawIOBase):
    """A file of `size` bytes that repeats a few lines, without being held anywhere."""

    def __init__(self, size: int, unit: bytes) -> None:
        self.left, self.unit, self.buffer = size, unit, b""

    def readable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        count = min(len(target), self.left)
        while len(self.buffer) < count:
            self.buffer += self.unit
        target[:count], self.buffer = self.buffer[:count], self.buffer[count:]
        self.left -= count
        return count


class Sink(io.RawIOBase):
    size = 0
    found = False

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.size += len(data)
        self.found = self.found or b"hunter22" in data
        return len(data)


@pytest.mark.parametrize(
    "unit",
    [
        b"[   12.345678] systemd[1]: password=hunter22\r\n" * 100,
        b"hunter22=x",
        b"\n",
        (KEY + "\n").encode(),
        b"\xff\xfe" * 50,
    ],
)
def test_streams_take_bounded_memory(unit: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in memory does not grow with the file; a console may have 1 GiB. The blocks are smaller here, so that the files may be."""
    monkeypatch.setattr(module, "MAX_LINE", 4096)
    monkeypatch.setattr(module, "_BLOCK", 1024)

    def peak(size: int) -> int:
        tracemalloc.start()
        redact_stream(io.BufferedReader(Endless(size, unit)), Sink())
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1 << 13)
    small, large = peak(1 << 15), peak(1 << 18)
    assert large < 2 * small + (1 << 15)


def test_long_lines_are_cut_with_a_note() -> None:
    text = "a" * (2 * module.MAX_LINE) + " password=hunter22\nnext\n"
    out = stream(text)
    assert "hunter22" not in out and out.endswith("\nnext\n")
    assert len(out) < module.MAX_LINE + 100 and f"[{len(text) - 5 - module.MAX_LINE} bytes cut]" in out


def test_state_continues_between_pieces() -> None:
    redactor = Redactor()
    out = [redactor.feed(f"{line}\n") for line in KEY.splitlines()]
    assert "MHcC" not in "".join(out) and redactor.feed("level=info\n") == "level=info\n"


def test_jwt_at_the_cut() -> None:
    text = "x" * (module.MAX_LINE - 20) + " " + JWT * 3 + "\n"
    assert "eyJhbGci" not in stream(text)


def test_deep_nesting_does_not_recurse() -> None:
    text = '{"data":' * 3000 + "{" * 3000
    assert sys.getrecursionlimit() < 3000
    assert len(redact(text)) == len(text)
