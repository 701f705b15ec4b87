"""The documentation of fields: the strings below them in the source of `model`, `options` and `faults`."""

from __future__ import annotations

import ast
import functools
import importlib.util
import itertools


def fields(record: type) -> dict[str, str]:
    """Return the documentation of each field of a TypedDict that has one.

    The text is the string below a field in the source, in one line. Fields of base classes are included.
    """
    return _of_class(record.__module__, record.__name__)


def record(wanted: type) -> str:
    """Return the documentation of a TypedDict.

    That is its docstring, in one line.
    """
    return " ".join((wanted.__doc__ or "").split())


def _of_class(module: str, name: str) -> dict[str, str]:
    classes, imported = _names(module)
    found: dict[str, str] = {}
    # The base classes of a TypedDict are known to its source only.
    for base in classes[name].bases:
        if isinstance(base, ast.Name) and base.id != "TypedDict":
            found |= _of_class(imported.get(base.id, module), base.id)
    for field, text in itertools.pairwise(classes[name].body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=key)), ast.Expr(value=ast.Constant(value=str() as words)):
                found[key] = " ".join(words.split())
    return found


@functools.cache
def _names(module: str) -> tuple[dict[str, ast.ClassDef], dict[str, str]]:
    """Return the classes of a module, and the modules of the names that it imports from its own package."""
    spec = importlib.util.find_spec(module)
    source = spec.loader.get_source(module) if spec and spec.loader else ""  # type: ignore[attr-defined]
    body = ast.parse(source or "").body
    package = module.rpartition(".")[0]
    imported = {
        name.name: f"{package}.{node.module}"
        for node in body
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for name in node.names
    }
    return {node.name: node for node in body if isinstance(node, ast.ClassDef)}, imported
