"""Each function, class and constant of a module is used by the programs: what tests alone call is part of the tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What Ansible and Python look up by name.
FRAMEWORKS = re.compile(
    r"main|__\w*|DOCUMENTATION|EXAMPLES|RETURN|ModuleDocFragment|CallbackModule|Connection|FilterModule|pytest_\w+"
)
# Other decorators enter what they decorate into a table.
PLAIN = {"cache", "lru_cache", "contextmanager", "asynccontextmanager", "dataclass", "total_ordering"}
NAMES = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)*")
# Who else calls something.
ELSEWHERE = {
    "payload/api_server/data/__init__.py: compile_tables": "a command of payload/images/code.py",
}


def defined(tree: ast.Module) -> Iterator[str]:
    """Each function, class and constant at the top of a module."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if {ast.unparse(one).partition("(")[0].rpartition(".")[2] for one in node.decorator_list} <= PLAIN:
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """What a module reads: a name, an attribute, a string in a table. And what it imports, or names in such a string."""
    read, imported, left = set[str](), set[str](), list[ast.AST]([tree])
    while left:
        node = left.pop()
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            read.add(node.id)
        elif isinstance(node, ast.Attribute):
            read.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            imported.update((node.module or "").split("."), (one.name for one in node.names))
            read.update(one.name for one in node.names if one.asname)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and NAMES.fullmatch(node.value):
            read.update(re.split("[.:]", node.value))
            imported.update(re.split("[.:]", node.value))
        left += ast.iter_child_nodes(node)
    return read, imported


def unused(texts: dict[str, str]) -> Iterator[str]:
    """What no module reads: neither its own nor one that imports it, its module, or the package that has it, too."""
    trees = {path: ast.parse(text) for path, text in texts.items()}
    found = {path: names(tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        package, module = Path(path).parent, Path(path).stem
        __, shown = found.get(f"{package}/__init__.py", ((), set[str]()))
        for name in defined(tree):
            ways = {name, module, *([package.name] if module == "__init__" or name in shown else [])}
            if not FRAMEWORKS.fullmatch(name) and not any(
                name in read and (other == path or imported & ways) for other, (read, imported) in found.items()
            ):
                yield f"{path}: {name}"


def test_everything_is_used() -> None:
    paths = [path for top in ("ci", "payload", "plugins") for path in (ROOT / top).rglob("*.py")]
    texts = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths if path.name != "conf.py"}
    assert sorted(unused(texts)) == sorted(ELSEWHERE), "nothing uses them but tests: delete them, or move them there"


def test_the_rule() -> None:
    texts = {
        "p/a.py": "def f(): ...\ndef g(): ...\ndef h(): ...\nX: int = 1\n_Y, Z = 1, 2\n@handler\ndef i(): ...\n__all__ = ['f']",
        "p/b.py": "from . import a\nfrom .a import X\nT = {'verb': ('a', 'h')}\nprint(a.g(), T)\n",
        "p/c.py": "def f(): ...\nf()\n",
    }
    assert sorted(unused(texts)) == ["p/a.py: X", "p/a.py: Z", "p/a.py: _Y", "p/a.py: f"]
