"""How much of the code has types and texts that help: the limits of parameters with `Any`, and of docstrings of one line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ANY, TEXTS = 0.06, 0.5
"""At most this share of the parameters is annotated with `Any`, by itself or inside; at least this share of public docstrings is longer
than one line."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def functions() -> tuple[Function, ...]:
    """Return those of collection, payload and CI."""
    paths = [path for top in ("ci", "payload", "plugins") for path in (ROOT / top).rglob("*.py")]
    nodes = (node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(node for node in nodes if isinstance(node, Function))


def parameters(function: Function) -> Iterator[ast.arg]:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    yield from (one for one in (*named, given.vararg, given.kwarg) if one and one.arg not in ("self", "cls"))


def test_few_parameters_are_any() -> None:
    every = [one for function in functions() for one in parameters(function)]
    anything = [one for one in every if one.annotation and "Any" in ast.unparse(one.annotation)]
    share = len(anything) / len(every)
    assert share <= ANY, f"{share:.1%} of {len(every)} parameters: annotate them"


def test_most_docstrings_have_more_than_a_line() -> None:
    """One line repeats the name; meaning, shapes, units and errors need more."""
    texts = [
        text for function in functions() if not function.name.startswith("_") and (text := ast.get_docstring(function))
    ]
    share = sum("\n" in text for text in texts) / len(texts)
    assert share >= TEXTS, f"{share:.1%} of {len(texts)} docstrings of public functions"
