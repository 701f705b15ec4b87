"""What is wrong with a JSON text, in the words of Go's encoding/json; what those are was read off its scanner."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import gojson
from hypothesis import example, given, settings
from hypothesis import strategies as st

WRONG = {
    "": "unexpected end of JSON input",
    " ": "unexpected end of JSON input",
    "{": "unexpected end of JSON input",
    '{"a"': "unexpected end of JSON input",
    '{"a":': "unexpected end of JSON input",
    '{"a": [1': "unexpected end of JSON input",
    '"abc': "unexpected end of JSON input",
    "foo": "invalid character 'o' in literal false (expecting 'a')",
    "tru": "invalid character ' ' in literal true (expecting 'e')",
    "nil": "invalid character 'i' in literal null (expecting 'u')",
    "hello": "invalid character 'h' looking for beginning of value",
    "'a'": r"invalid character '\'' looking for beginning of value",
    "{'auths': 1}": r"invalid character '\'' looking for beginning of object key string",
    '{"a": 1,}': "invalid character '}' looking for beginning of object key string",
    "[1,]": "invalid character ']' looking for beginning of value",
    "[1 2]": "invalid character '2' after array element",
    '{"a" 1}': "invalid character '1' after object key",
    '{"a": 1 "b": 2}': "invalid character '\"' after object key:value pair",
    "{} x": "invalid character 'x' after top-level value",
    "01": "invalid character '1' after top-level value",
    "-": "invalid character ' ' in numeric literal",
    "-a": "invalid character 'a' in numeric literal",
    "1.": "invalid character ' ' after decimal point in numeric literal",
    "1e+x": "invalid character 'x' in exponent of numeric literal",
    '"a\nb"': r"invalid character '\n' in string literal",
    '"\x0e"': r"invalid character '\x0e' in string literal",
    r'"\x"': "invalid character 'x' in string escape code",
    r'"\u12g4"': r"invalid character 'g' in \u hexadecimal character escape",
    "é": "invalid character 'Ã' looking for beginning of value",
    "NaN": "invalid character 'N' looking for beginning of value",
    "\ufeff{}": "invalid character 'ï' looking for beginning of value",
    "[" * 20000: "exceeded max depth",
}


@pytest.mark.parametrize(("text", "error"), WRONG.items(), ids=lambda text: text[:20])
def test_words(text: str, error: str) -> None:
    with pytest.raises(gojson.JsonError, match=re.escape(error) + "$"):
        gojson.loads(text)


@settings(deadline=None)
@given(st.text(alphabet='{}[]",:\\u0123456789eE+-.truefalsn \n', max_size=30))
@example("[[]]")
@example('{"a": {}, "b": [[], {"c": [1, -0.5e+7]}]}')
@example("1E310")
def test_what_is_refused_is_what_json_refuses(text: str) -> None:
    try:
        expected: Any = json.loads(text)
    except ValueError:
        with pytest.raises(gojson.JsonError):
            gojson.loads(text)
        return
    gojson._Scanner(text).check()
    if "inf" in repr(expected):  # Python's json takes numbers that a float64 cannot hold, Go does not
        with pytest.raises(gojson.JsonError, match="cannot unmarshal number"):
            gojson.loads(text)
        return
    assert gojson.loads(text) == expected


def test_more_digits_than_python_reads() -> None:
    with pytest.raises(gojson.JsonError, match="cannot unmarshal number"):
        gojson.loads("1" * 5000)


def test_escapes() -> None:
    assert gojson.dumps({"b": "<&>\u2028", "a": "é\ud800"}) == '{"b":"\\u003c\\u0026\\u003e\\u2028","a":"é\ufffd"}'
    assert gojson.dumps({"b": {}, "a": [1]}, indent=True) == '{\n  "a": [\n    1\n  ],\n  "b": {}\n}'
