"""The only reader of YAML and JSON: what it accepts, its messages, and its worst case."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import documents
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import DocumentError, Limits, load_json, load_yaml

CPU = 2.0
"""Seconds that any of the hostile documents may take; most take milliseconds."""


def levels(first: str, item: str, count: int) -> str:
    return first + "".join(item.format(i=i, uses=",".join([f"*a{i - 1}"] * 10)) for i in range(1, count))


HOSTILE = {
    "open lists": ("[" * 40000, "1:101: exceeded max depth of 100"),
    "open mappings": ("{a: " * 40000, "1:401: exceeded max depth of 100"),
    "dashes": ("- " * 30000 + "a", "1:201: exceeded max depth of 100"),
    "depth by alias": (
        "a: &a " + "[" * 60 + "]" * 60 + "\nb: " + "[" * 60 + "*a" + "]" * 60,
        "2:64: exceeded max depth of 100",
    ),
    "list bomb": (
        levels("a0: &a0 [x,x,x,x,x,x,x,x,x]\n", "a{i}: &a{i} [{uses}]\n", 20),
        "4:10: document contains excessive aliasing",
    ),
    "merge bomb": (
        levels("a0: &a0 {k: v}\n", "a{i}: &a{i} {{<<: [{uses}]}}\n", 20),
        "4:27: document contains excessive aliasing",
    ),
    "cycle": ("a: &x\n  b: *x\n", "2:6: anchor 'x' value contains itself"),
    "cycle in a list": ("a: &x [*x]", "1:8: anchor 'x' value contains itself"),
    "merged cycle": ("&x\n<<: *x", "2:5: anchor 'x' value contains itself"),
    "many values": ("[" + "1," * 5000 + "]", None),
    "base 60": ("a: 1" + ":10" * 100000, None),
    "base 60 float": ("a: 1" + ":10" * 100000 + ".5", None),
    "long integer": ("a: " + "1" * 10**6, None),
    "long hexadecimal": ("a: 0x" + "1" * 10**6, None),
    "long float": ("a: 1." + "1" * 10**6, None),
    "directives": (
        "".join(f"%TAG !a{i}! tag:x,2000:\n" for i in range(40000)) + "---\na: b\n",
        "1:1: has more than 64 directives",
    ),
    "one key many times": ("{" + "a," * 50000 + "}", '1:4: key "a" already set in map'),
    "comment": ("# " + "x" * 2**20, None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml(name: str) -> None:
    text, problem = HOSTILE[name]
    before = time.process_time()
    if problem is None:
        load_yaml(text, name="x.yaml")
    else:
        with pytest.raises(DocumentError) as caught:
            load_yaml(text, name="x.yaml")
        assert str(caught.value) == f"x.yaml:{problem}"
    assert time.process_time() - before < CPU


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("a: 1\nb: 2\na: 3", '3:1: key "a" already set in map'),
        ("1: a\n'1': b", '2:1: key "1" already set in map'),
        ("b:\n- {x: 1,\n   x: 2}", '3:4: key "x" already set in map'),
        ("? {a: b}\n: c", "1:3: invalid map key: a mapping; a key is a string"),
        ("? [a]\n: c", "1:3: invalid map key: a list; a key is a string"),
        ("a: &m {x: y}\n*m : c", "2:1: invalid map key: a mapping; a key is a string"),
        ("~: x", "1:1: invalid map key: null; a key is a string"),
        ("a: *y", "1:4: unknown anchor 'y' referenced"),
        ("<<: 3", "1:5: map merge requires map or sequence of maps as the value"),
        ("<<: [{a: 1}, 2]", "1:5: map merge requires map or sequence of maps as the value"),
        ("a: b\n---\nc: d", "3:1: expected one document, found another"),
        ("a: b\nc: \0d", "2:4: control characters are not allowed"),
        ("é: é\nc: \1d", "2:4: control characters are not allowed"),
        ("a: \ud800", "1:4: control characters are not allowed"),
        ('a: "\\ud800"', "1:7: found invalid Unicode character escape code"),
        (b"a: b\nc: \xff", "2:4: invalid leading UTF-8 octet"),
        (b"\xc3\xa9: \xc3(", "1:4: invalid trailing UTF-8 octet"),
        (b"a:\n  \xc3", "2:3: incomplete UTF-8 octet sequence"),
        ("a: b".encode("utf-16"), "1:1: invalid leading UTF-8 octet"),
        ("a: [b\nc: d", "2:2: did not find expected ',' or ']'"),
        ("\t- x", "1:1: found character that cannot start any token"),
        ("!!python/object:os.system x", "1:1: unknown tag tag:yaml.org,2002:python/object:os.system"),
        ("a: !foo {b: c}", "1:4: unknown tag !foo"),
        ("a: !!int x", "1:4: cannot decode `x` as a !!int"),
        ("a: !!binary x", "1:4: !!binary value contains invalid base64 data"),
        ("a: b" * 20, "1:1: is longer than 64 bytes"),
        ("[1, 2, 3, 4, 5]", "1:11: has more than 4 values"),
        ("[&a [x], *a]", "1:10: has more than 4 values"),
    ],
)  # fmt: skip
def test_refused_yaml(data: str | bytes, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load_yaml(data, name="x.yaml", limits=Limits(size=64, nodes=4 if "values" in problem else 1000))
    assert str(caught.value) == f"x.yaml:{problem}"
    line, column, text = problem.split(":", 2)
    error = caught.value
    assert (error.name, error.line, error.column, error.problem) == ("x.yaml", int(line), int(column), text.strip())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("---\n", None),
        ("\ufeffa: b", {"a": "b"}),
        ("a: b\r\nc: d\r\n", {"a": "b", "c": "d"}),
        ("---\n---\na: b\n", {"a": "b"}),
        ("52:54:00:11:22:33", "52:54:00:11:22:33"),
        ("12:30", "12:30"),
        ("2026-11-22", "2026-11-22"),
        ("9999-99-99", "9999-99-99"),
        ("[010, 0x1F, -0b11, 1_000, 0o17, +5, 0]", [8, 31, -3, 1000, 15, 5, 0]),
        ("[1e3, .5, 1., 1.5e-3, -.inf]", [1000.0, 0.5, 1.0, 0.0015, -math.inf]),
        ("[yes, No, ON, off, true, y, n, ~, null, '']", [True, False, True, False, True, "y", "n", None, None, ""]),
        ("[18446744073709551615, 18446744073709551616, -9223372036854775809]", [2**64 - 1, float(2**64), float(-(2**63) - 1)]),
        ("[0b, 0x, 0_, 08, ., -, +, _1, 1" + "0" * 400 + "]", ["0b", "0x", 0, 8.0, ".", "-", "+", "_1", "1" + "0" * 400]),
        ("{1: a, true: b, 1.5: c, 010: d}", {"1": "a", "true": "b", "1.5": "c", "8": "d"}),
        ("[!!str 1, !!int '1', !!float 1, !!binary eA==, ! 1, !!timestamp 2026-11-22]", ["1", 1, 1.0, "x", "1", "2026-11-22"]),
        ("{a: &a {x: 1, y: 2}, b: {<<: *a, y: 3}}", {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}}),
        ("{y: 4, <<: [{y: 5, z: 6}, {z: 7, w: 8}]}", {"z": 6, "w": 8, "y": 4}),
        ("a: &m <<\nb: *m", {"a": "<<", "b": "<<"}),
        ("'<<': x", {"<<": "x"}),
        ("a: &a x\nb: *a\na2: &a y\nc: *a", {"a": "x", "b": "x", "a2": "y", "c": "y"}),
    ],
)  # fmt: skip
def test_values(text: str, value: Any) -> None:
    found = load_yaml(text, name="x.yaml")
    assert found == value
    assert json.dumps(found) == json.dumps(value)  # true is not 1, 1 is not 1.0


def test_values_of_network_states() -> None:
    text = "[no, 010, 0x1F, 52:54:00:11:22:33, 1.5, true, ~, <<]"
    assert load_yaml(text, name="x", schema=documents.NMSTATE) == [
        "no", 10, 31, "52:54:00:11:22:33", 1.5, True, None, "<<",
    ]  # fmt: skip
    assert load_yaml("<<: {a: 1}", name="x", schema=documents.NMSTATE) == {"<<": {"a": 1}}


def test_documents_of_a_stream() -> None:
    assert documents.load_yaml_all("a: &a 1\n---\n---\n- b\n---\n~\n", name="x") == [{"a": 1}, ["b"]]
    with pytest.raises(DocumentError, match="x:3:1: unknown anchor 'a' referenced"):
        documents.load_yaml_all("&a a\n---\n*a", name="x")


def test_positions() -> None:
    text = "a: {x: 1}\nb:\n- c\n- d: &q\n    e: 1\nf: *q\ng:\n  h: 1\n  <<: *q\n"
    document = documents.read_yaml(text, name="x")
    wanted = {
        (): (1, 1), ("a",): (1, 1), ("a", "x"): (1, 5), ("b", 0): (3, 3), ("b", 1): (4, 3), ("b", 1, "d"): (4, 3),
        ("b", 1, "d", "e"): (5, 5), ("f", "e"): (5, 5), ("g", "e"): (5, 5), ("g", "h"): (8, 3),
    }  # fmt: skip
    assert {path: document.positions.get(path) for path in wanted} == wanted
    for path in (("c",), ("a", "x", "y"), ("b", 2), ("b", "c"), ("a", 0)):
        assert document.positions.get(path) is None
    raised = document.positions.raised("a")
    assert raised.get(("x",)) == (1, 5) and raised.get(("a",)) is None and raised.get(("b", 0)) == (3, 3)


def test_keys_that_stand_twice_can_be_asked_for() -> None:
    document = documents.read_yaml("a: 1\nb: [{c: 1, c: 2}]\na: 3\n", name="x", twice=True)
    assert document.value == {"a": 3, "b": [{"c": 2}]}
    assert document.twice == [(("b", 0, "c"), 2, 12), (("a",), 3, 1)]


JSON = {
    "deep": ("[" * 100000, "1:1: exceeded max depth of 100"),
    "deep and whole": ("[" * 101 + "]" * 101, "1:1: exceeded max depth of 100"),
    "many values": ("[" + "1," * 2000000 + "1]", "1:1: has more than 1000000 values"),
    "commas in a string": ('["' + "," * 2000000 + '"]', None),
    "not a number": ('{"a":\n NaN}', "2:2: invalid character 'N' looking for beginning of value"),
    "endless": ("[-Infinity]", "1:2: invalid character 'I' looking for beginning of value"),
    "beyond a float": ('{"a":\n 1e999}', "2:2: cannot unmarshal number 1e999 into Go value of type float64"),
    "digits": ("[" + "1" * 5000 + "]", "1:1: a number has too many digits"),
    "cut": ('{"a": [1,', "1:10: unexpected end of JSON input"),
    "empty": ("", "1:1: unexpected end of JSON input"),
    "wrong": ('{"a": }', "1:7: Expecting value"),
    "not UTF-8": (b'{"a":\n"\xff"}', "2:2: invalid leading UTF-8 octet"),
}


@pytest.mark.parametrize("name", JSON)
def test_refused_json(name: str) -> None:
    data, problem = JSON[name]
    before = time.process_time()
    if problem is None:
        load_json(data, name="x.json")
    else:
        with pytest.raises(DocumentError) as caught:
            load_json(data, name="x.json")
        assert str(caught.value) == f"x.json:{problem}"
    assert time.process_time() - before < CPU


def test_half_a_surrogate_pair_can_be_written_again() -> None:
    text = r'["\ud800", "\\ud800", "\ud83d\ude00", "\udead\u0041", "\\\udead"]'
    found = load_json(text, name="x")
    assert found == ["\ufffd", "\\ud800", "\U0001f600", "\ufffdA", "\\\ufffd"]
    json.dumps(found, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("load", "text"),
    [
        (load_yaml, "[" + "1," * 150000 + "1]"),
        (load_yaml, "# x\n" * 250000),
        (load_yaml, "a: &a {x: y}\n" + "b: {<<: [" + "*a," * 5000 + "]}"),
        (load_json, "[" + "[]," * 190000 + "[]]"),
        (load_json, '["' + "x\\n" * 1000000 + '"]'),
        (load_json, '["' + "," * (7 << 20) + '"]'),
        (load_json, "\n" * (7 << 20) + "x"),
        (load_json, json.dumps(["a: b\n" * 10] * 20000)),
    ],
)
@pytest.mark.flaky(reruns=3)  # a measurement: the load of the machine only adds to it
async def test_the_event_loop_continues(watched: Any, load: Any, text: str) -> None:
    problem: DocumentError | None = None
    async with watched() as longest:
        try:
            found = await documents.off_loop(load, text, name="x")
        except DocumentError as error:
            problem = error
        assert longest() < 0.05
    if problem:
        with pytest.raises(DocumentError, match=str(problem)):
            load(text, name="x")
    else:
        assert found == load(text, name="x")


async def test_too_long_for_an_event_loop() -> None:
    with pytest.raises(DocumentError, match="x:1:1: is longer than 8388608 bytes"):
        await documents.off_loop(load_json, " " * 9000000, name="x")
    with pytest.raises(DocumentError, match="x:1:1: has more than 200000 values"):
        await documents.off_loop(load_json, "[" + "1," * 300000 + "1]", name="x")
