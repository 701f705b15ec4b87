"""Imports go downwards only, so folders never import in circles; and one adapter alone knows Ansible."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ("ansible_collections", "agentlab", "ocp")
# From the bottom. A folder (or a module that is in none) may import what is in a row above its own here, and nothing else.
LAYERS = (
    (
        "_deps",
        "addresses",
        "bounded",
        "bytecode",
        "deadline",
        "errors",
        "files",
        "imports",
        "merging",
        "redact_pairs",
        "redact_shapes",
        "redact_words",
        "shapes",
        "signals",
        "version",
        "vocabulary",
        "webpage",
    ),
    ("_yaml", "built_modules", "log", "redact", "releases", "terminal", "watch"),
    ("documents",),
    ("bmc", "ignition", "nmstate", "packages", "release", "state"),
    ("assisted", "coreos", "keys", "screen"),
    ("installer", "plan"),
    ("cluster", "devscripts", "libvirt"),
    ("conformance", "drift"),
    ("contradictions", "definition", "reproduce", "waitfor"),
    ("boot",),
    ("sandbox",),
    ("report",),
    ("ci", "reload"),
    ("snapshot",),
    ("installation", "provisioning"),
    ("_ansible",),
    ("plugins/callback", "plugins/connection", "plugins/filter", "plugins/modules"),
    ("payload/cluster", "payload/machine_os", "payload/node_agent"),
    ("payload/api_server", "payload/images", "payload/orchestrator"),
    ("payload/build", "payload/tools"),
    ("payload/ipi",),
    ("cli",),
)
# Where there is no Ansible, and what of it the payload's images do not have.
ADAPTER = {"_ansible"}
PLUGINS = {"plugins/callback", "plugins/connection", "plugins/filter", "plugins/modules"}
FILES = sorted(path for top in ("plugins", "payload") for path in (ROOT / top).rglob("*.py"))


class Import(NamedTuple):
    """`line` of `path` (relative to the checkout) imports `name`, which is `target`: a path of this collection, without suffix."""

    path: str
    line: int
    name: str
    target: str


def statements(text: str) -> list[ast.Import | ast.ImportFrom]:
    """Every import, also those in functions and for the type checker alone; expressions, which have none, are left out."""
    found: list[ast.Import | ast.ImportFrom] = []
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(node)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            left += inner if isinstance(inner, list) else []
    return found


@cache
def statements_of(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """The imports of a file, which is parsed once for all tests."""
    return statements(path.read_text(encoding="utf-8"))


@cache
def there(target: str) -> bool:
    """Return whether a path without suffix is a module or a package."""
    return (ROOT / f"{target}.py").exists() or (ROOT / target).is_dir()


def loaded(text: str) -> Iterator[tuple[int, str]]:
    """Line and name of each module that `import_module` loads by a name that is written there."""
    if "import_module" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield node.lineno, first.value


def whole(name: str, line: int, module: str) -> Iterator[Import]:
    """The import of a module by its whole name, if it is of this collection."""
    parts = tuple(module.split("."))
    if parts[: len(PACKAGE)] == PACKAGE:
        yield Import(name, line, parts[-1], "/".join(parts[len(PACKAGE) :]))


def imports(path: Path, text: str | None = None) -> Iterator[Import]:
    """Every import of this collection."""
    name = path.relative_to(ROOT)
    for line, module in loaded(path.read_text(encoding="utf-8") if text is None else text):
        yield from whole(str(name), line, module)
    for node in statements_of(path) if text is None else statements(text):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from whole(str(name), node.lineno, alias.name)
            continue
        parts = tuple((node.module or "").split(".")) if node.module else ()
        if node.level:
            base = (*name.parts[: len(name.parts) - node.level], *parts)
        elif parts[: len(PACKAGE)] == PACKAGE:
            base = parts[len(PACKAGE) :]
        else:
            continue
        for alias in node.names:
            target = "/".join((*base, alias.name))
            yield Import(str(name), node.lineno, alias.name, target if there(target) else "/".join(base))


def folder(path: str) -> str:
    """The row's entry that a file belongs to."""
    parts = Path(path).with_suffix("").parts
    return parts[2] if parts[:2] == ("plugins", "module_utils") and len(parts) > 2 else "/".join(parts[:2])


def level(name: str) -> int | None:
    return next((number for number, row in enumerate(LAYERS) if name in row), None)


def wrong(found: Import) -> str | None:
    """What is wrong with an import, if anything is."""
    own, other = folder(found.path), folder(found.target)
    if own == other or other in ("payload", "plugins/module_utils"):
        return None
    mine, its = level(own), level(other)
    at = f"{found.path}:{found.line}: imports {found.name} from {other}"
    if mine is None or its is None:
        return f"{at}: put {own if mine is None else other} into LAYERS of tests/lint/test_imports.py"
    if its < mine:
        return None
    return f"{at}, which is not below {own}: move {found.name} down to a folder that both may import, or what needs it up (LAYERS has the order)"


def test_imports_go_downwards() -> None:
    problems = [problem for path in FILES for found in imports(path) if (problem := wrong(found))]
    assert len(FILES) > 300
    assert not problems, "\n".join(problems)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The files that import each other, directly or through others; `graph` has each file's imports."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, left = set[str](), [start]
        while left:
            for name in graph[left.pop()] - seen:
                seen.add(name)
                left.append(name)
        reached[start] = seen
    groups = {
        tuple(sorted({name for name in seen if start in reached[name]}))
        for start, seen in reached.items()
        if start in seen
    }
    return sorted(list(group) for group in groups)


def test_files_do_not_import_each_other() -> None:
    """No circle of files, even in functions or for the type checker alone: describe what is needed by a Protocol."""
    known = {path.relative_to(ROOT).with_suffix("").as_posix(): path for path in FILES}
    graph = {name: set[str]() for name in known}
    for name, path in known.items():
        for found in imports(path):
            target = found.target if found.target in known else f"{found.target}/__init__"
            if target in known and target != name:
                graph[name].add(target)
    assert not circles(graph), "\n".join(map(" <-> ".join, circles(graph)))


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]


def test_every_folder_has_one_layer() -> None:
    """All that is listed is there, once; all that is there is listed."""
    listed = [name for row in LAYERS for name in row]
    present = {folder(str(path.relative_to(ROOT))) for path in FILES}
    ignored = {"payload/__init__", "plugins/doc_fragments"}
    assert sorted(listed) == sorted(present - ignored)


def test_one_adapter_imports_ansible() -> None:
    found = []
    for path in FILES:
        name = str(path.relative_to(ROOT))
        if folder(name) in ADAPTER | PLUGINS:
            continue
        for node in statements_of(path):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found += [
                f"{name}:{node.lineno}: imports {one}: libraries work without Ansible"
                for one in names
                if one.split(".")[0] == "ansible"
            ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        (
            "plugins/module_utils/plan/x.py",
            "from ..sandbox import host",
            "imports host from sandbox, which is not below plan: move host down",
        ),
        (
            "plugins/module_utils/plan/x.py",
            "def f():\n    from ..installer import run",
            "x.py:2: imports run from installer, which is not below",
        ),
        (
            "plugins/module_utils/plan/x.py",
            f"import {'.'.join(PACKAGE)}.plugins.module_utils.sandbox.host",
            "x.py:1: imports host from sandbox, which is not below plan",
        ),
        (
            "plugins/module_utils/plan/x.py",
            f"def f():\n    importlib.import_module('{'.'.join(PACKAGE)}.plugins.module_utils.sandbox.host')",
            "x.py:2: imports host from sandbox, which is not below plan",
        ),
        ("plugins/module_utils/plan/x.py", "from ..nowhere.at_all import a", "put nowhere into LAYERS"),
        ("payload/cluster/x.py", "from ..api_server import engine", "imports engine from payload/api_server"),
        (
            "plugins/module_utils/sandbox/x.py",
            "from ..plan.model import Plan\nfrom . import host\nfrom .. import state",
            None,
        ),
        (
            "payload/build/__init__.py",
            "from . import x\nfrom ..images import oci\nfrom ...plugins.module_utils import documents",
            None,
        ),
        (
            "plugins/modules/x.py",
            "from ansible_collections.agentlab.ocp.plugins.module_utils.plan import secrets",
            None,
        ),
    ],
)
def test_the_rule(path: str, text: str, problem: str | None) -> None:
    problems = [one for found in imports(ROOT / path, text) if (one := wrong(found))]
    assert (not problems) if problem is None else (len(problems) == 1 and problem in problems[0])
