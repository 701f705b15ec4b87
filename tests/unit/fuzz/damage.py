"""How inputs are damaged: bytes, documents, and texts of YAML that cost more than they look."""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import yaml

_ODD: tuple[Any, ...] = (
    None, True, False, 3.0, -0.0, 0, -1, 1, 65536, 2**31, 2**63, 2**70, 1.5, float("nan"), "", " ", "x" * 3000, "\0", "é\u2028", "0x1F", "1.2.3.4",
    "1.2.3.4/33", "::/0", "fd00::1", "fe80::1%eth0", "../../etc/passwd", "/", "a\nb", "{}", [], {}, [[]], [None], {"a": None}, {"": {}},
    ["x"] * 300, "52:54:00:00:00:01", "12:30", "yes",
)  # fmt: skip
_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF)


def dump(document: Any, **options: Any) -> str:
    return str(yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False, **options))


def mangle(rng: random.Random, data: bytes) -> bytes:
    """Flip, insert, repeat, cut and overwrite."""
    found = bytearray(data)
    for __ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(found) + 1)
        kind = rng.randrange(7)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            found[at:at] = rng.randbytes(rng.choice((1, 2, 8, 64)))
        elif kind == 2:
            del found[at : at + rng.choice((1, 4, 100, 5000))]
        elif kind == 3:
            found[at:at] = found[at : at + rng.choice((1, 16, 512))]
        elif kind == 4:
            width = rng.choice((1, 2, 4, 8))
            number = rng.choice(_NUMBERS) & ((1 << (8 * width)) - 1)
            found[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
        elif kind == 5:
            del found[at:]
        else:
            found[at : at + 8] = rng.choice(
                (b"FFFFFFFF", b"00000000", b"7FFFFFFF", b": [&a *a", b"!!python", b"- - - - ")
            )
    return bytes(found)


def bend(rng: random.Random, document: Any) -> Any:
    """Replace, remove, rename and move parts of a document."""
    document = pickle.loads(pickle.dumps(document))
    for __ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        places: list[tuple[Any, Any]] = []
        _places(document, places)
        if not places:
            return rng.choice(_ODD)
        holder, key = rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice((str(key).upper(), "x", "", "name", "type"))] = holder.pop(key)
        elif kind == 2:
            other, name = rng.choice(places)
            if name in other if isinstance(other, dict) else name < len(other):
                holder[key] = copy.deepcopy(other[name])
        else:
            holder[key] = copy.deepcopy(rng.choice(_ODD))
    return document


def _places(value: Any, found: list[tuple[Any, Any]]) -> None:
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        found.append((value, key))
        _places(value[key], found)


def bent_yaml(rng: random.Random, document: Any) -> bytes:
    text = dump(bend(rng, document), allow_unicode=rng.random() < 0.5).encode("utf-8", "replace")
    return mangle(rng, text) if rng.random() < 0.3 else text


def bent_json(rng: random.Random, document: Any) -> bytes:
    text = json.dumps(bend(rng, document)).encode()
    return mangle(rng, text) if rng.random() < 0.3 else text


_REPLACED: tuple[Any, ...] = (None, 3.0, 2.5, float("nan"), float("inf"), -1, True, "", [], {}, [None], {"": None})


def replaced(document: Any) -> Iterator[Any]:
    """The document with every field in turn null, a float, of another type, and empty."""
    places: list[tuple[Any, Any]] = []
    document = copy.deepcopy(document)
    _places(document, places)
    for holder, key in places:
        before = holder[key]
        for value in _REPLACED:
            holder[key] = value
            yield document
        holder[key] = before


def _bomb(rng: random.Random, use: str) -> str:
    levels, width = rng.choice((2, 3, 8, 30)), rng.choice((2, 9, 40))
    lines = ["z0: &z0 {k: v}"]
    for level in range(1, levels):
        lines.append(f"z{level}: &z{level} " + use.format(", ".join([f"*z{level - 1}"] * width)))
    return "\n".join(lines)


def hostile(rng: random.Random) -> str:
    """A piece of YAML that is deep, self-referring, expanding, or a number that takes long."""
    count = rng.choices((2, 99, 101, 3000, 40000), (8, 8, 8, 2, 1))[0]
    return rng.choice(
        (
            lambda: "[" * count, lambda: "{a: " * count, lambda: "- " * count + "a", lambda: "? " * count + "a",
            lambda: "[" * count + "]" * count, lambda: "a: 1" + ":10" * count, lambda: "a: 1" + ":10" * count + ".5",
            lambda: "a: " + "9" * count, lambda: "a: 0x" + "f" * count, lambda: "a: 1." + "0" * count, lambda: "a: 1e" + "9" * rng.choice((2, 3, 9)),
            lambda: "a: &x [*x]", lambda: "a: &x {b: *x}", lambda: "&x {<<: *x}", lambda: "a: &x\n  <<: [*x, *x]",
            lambda: _bomb(rng, "[{}]"), lambda: _bomb(rng, "{{<<: [{}]}}"), lambda: _bomb(rng, "{{<<: [{}], x: 1}}"),
            lambda: "<<: {a: b}\n<<: {c: d}", lambda: "<<: 3", lambda: "<<: [1, {a: b}]", lambda: "{? &m << : {a: 1}, b: *m}",
            lambda: "a: *nothing", lambda: "{" + "a," * count + "}", lambda: "{" + ",".join(f"k{n}" for n in range(count)) + "}",
            lambda: "? {a: b}\n: c", lambda: "? [a]\n: c", lambda: "~: c", lambda: "a: \0", lambda: 'a: "\\ud800"', lambda: 'a: "\\0"',
            lambda: "".join(f"%TAG !a{n}! tag:x,2000:\n" for n in range(min(count, 3000))) + "--- x",
            lambda: "a: !!binary " + "x" * count, lambda: "a: !!float 1", lambda: "a: !!timestamp 9999-99-99", lambda: "a: !!python/object:os.system x",
            lambda: "a: !!set {b}", lambda: "a: !foo b", lambda: "2026-13-45: 2026-99-99", lambda: "---\n" * count, lambda: "a: |\n" + "  x\n" * count,
            lambda: "# " + "x" * count, lambda: "a: '" + "\n" * count + "'", lambda: "&a a: *a", lambda: "a: &a a\nb: &a *a", lambda: "{a: 1, a: 2}",
        )
    )()  # fmt: skip


def hostile_yaml(rng: random.Random, document: Any) -> bytes:
    """A document with a hostile piece in, before, behind or in place of it; or one that is bent as elsewhere."""
    kind = rng.random()
    if kind < 0.5:
        return bent_yaml(rng, document)
    if kind < 0.6:
        data = dump(document).encode()
        at = rng.randrange(len(data) + 1)
        return (
            data[:at]
            + rng.choice((b"\xff", b"\xc3", b"\0", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\x1b", b"\xff\xfe"))
            + data[at:]
        )
    piece = hostile(rng)
    if kind < 0.65:
        return piece.encode()
    lines = dump(document).splitlines()
    at = rng.randrange(len(lines) + 1)
    if kind < 0.8 and at < len(lines) and ":" in lines[at]:
        # In the place of a value.
        head, __, __ = lines[at].partition(":")
        lines[at] = f"{head}: {piece.partition('a: ')[2] or piece}"
    else:
        indent = " " * (len(lines[at]) - len(lines[at].lstrip()) if at < len(lines) else 0)
        lines[at:at] = [indent + line for line in piece.splitlines()]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def hostile_json(rng: random.Random, document: Any) -> bytes:
    """The same for JSON."""
    if rng.random() < 0.6:
        return bent_json(rng, document)
    count = rng.choices((2, 99, 101, 3000, 100000), (8, 8, 8, 2, 1))[0]
    piece = rng.choice(
        ("[" * count, "[" * count + "]" * count, '{"a":' * count, "1" * count, "1e" + "9" * 3, "NaN", "-Infinity", '"\\ud800"', '"\\udead\\u0041"',
         '"' + "\\n" * count + '"', "[" + "[]," * count + "1]", "\0", "\ufeff{}", '{"a":1,"a":2}', " " * count)
    )  # fmt: skip
    text = json.dumps(document)
    places = [at for at, character in enumerate(text) if character in "{[,:"]
    if not places or rng.random() < 0.2:
        return piece.encode()
    at = rng.choice(places) + 1
    return (text[:at] + piece + text[at:]).encode("utf-8", "surrogatepass")
