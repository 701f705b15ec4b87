"""The documentation of fields: the strings below them in the source of `model`, `options` and `faults`."""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools


def fields(record: type) -> dict[str, str]:
    """Return the documentation of each field of a TypedDict that has one.

    The text is the string below a field in the source, in one line. Fields of base classes in the same module are
    included.
    """
    return _of_class(record.__module__, record.__name__)


def record(wanted: type) -> str:
    """Return the documentation of a TypedDict.

    That is its docstring, in one line.
    """
    return " ".join((wanted.__doc__ or "").split())


def _of_class(module: str, name: str) -> dict[str, str]:
    classes = _classes(module)
    found: dict[str, str] = {}
    # The base classes of a TypedDict are known to its source only.
    for base in classes[name].bases:
        if isinstance(base, ast.Name) and base.id in classes:
            found |= _of_class(module, base.id)
    for field, text in itertools.pairwise(classes[name].body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(value=ast.Constant(value=str() as words)):
                found[key] = " ".join(words.split())
    return found


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    spec = importlib.util.find_spec(module)
    source = spec.loader.get_source(module) if spec and spec.loader else ""  # type: ignore[attr-defined]
    return {node.name: node for node in ast.parse(source or "").body if isinstance(node, ast.ClassDef)}
