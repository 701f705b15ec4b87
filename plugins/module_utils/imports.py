"""Which files of the collection a program needs: those of its modules, and of all that these import."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path

_PYTHON = (".py", ".pyc")


def needed_files(modules: Iterable[str], root: Path) -> set[Path]:
    """Return the files, relative to `root`, of `modules` and of what they import, also in functions.

    modules: dotted names below the collection; root: of the collection. Imports of the collection are relative, those under
    `TYPE_CHECKING` are left out, and names that an f-string gives to `import_module` are not found. What else is in the
    packages of the modules, such as tables and pages, belongs to them. Raises `OSError` for a module that does not exist.
    """
    found: set[Path] = set()
    waiting = [tuple(name.split(".")) for name in modules]
    for name in waiting:
        if _file(name, root) is None:
            raise FileNotFoundError(f"{'.'.join(name)} is not a module of {root}")
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        path = _file(name, root)
        if path is None:  # what a module defines
            continue
        found.add(path)
        new = {*_imports(name, path, root), *(name[:length] for length in range(1, len(name)))} - seen
        seen |= new
        waiting += new
    others = {path.relative_to(root) for module in found for path in (root / module).parent.iterdir() if path.is_file()}
    return found | {path for path in others if path.suffix not in _PYTHON}


def _file(module: tuple[str, ...], root: Path) -> Path | None:
    path = Path(*module)
    candidates = path.with_suffix(".py"), path / "__init__.py"
    return next((one for one in candidates if (root / one).is_file()), None)


def _imports(module: tuple[str, ...], path: Path, root: Path) -> set[tuple[str, ...]]:
    package = module if path.name == "__init__.py" else module[:-1]
    tree = ast.parse((root / path).read_bytes(), str(path))
    nodes = [*ast.walk(tree)]
    branches = [node for node in nodes if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"]
    for_types = {statement for branch in branches for statement in branch.body}
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level and node not in for_types:
            base = (*package[: len(package) - node.level + 1], *(node.module.split(".") if node.module else ()))
            found |= {base, *((*base, alias.name) for alias in node.names)}
    return found
