"""Nothing reads YAML or JSON but `documents`, which is bounded in size, depth and number of values."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("plugins", "payload", "roles", "playbooks", "bin", "ci")
# What may read by other means: file -> what it reads, and why that is safe.
ALLOWED = {
    "plugins/module_utils/_yaml.py": {"yaml.CSafeLoader", "yaml.SafeLoader"},  # the reader itself
    "plugins/module_utils/bounded.py": {"json.JSONDecoder"},  # and of JSON
    "plugins/module_utils/sandbox/keeper.py": {"json.load"},  # standard library alone; reads what its parent sends
    "plugins/module_utils/sandbox/relay.py": {"json.loads"},  # a program without the collection; it reads its own file
    "plugins/module_utils/sandbox/faultd.py": {"json.loads"},  # the same; replies are bounded where they are read
    "plugins/module_utils/boot/sessions.py": {"json.loads"},  # the same; the request is bounded before
    "plugins/module_utils/boot/emulator.py": {"json.loads"},  # the same; replies of the lab's QEMU
    "plugins/module_utils/reload/on_node.py": {"json.loads"},  # the same; reads what the node's own API and files have
    "payload/api_server/store.py": {"json.loads"},  # the service's own database, bounded when it was written
    "payload/images/oci.py": {"json()"},  # methods of its own
    "ci": {"yaml.safe_load", "json.loads", "json.load"},  # tracked files, and what tests print
    "roles/destroy/tasks/plan.yml": {"from_json"},  # the role plan has validated state.json before
}
READERS = {
    "json": {"load", "loads", "JSONDecoder"},
    "yaml": {
        "load", "load_all", "safe_load", "safe_load_all", "full_load", "full_load_all", "unsafe_load", "unsafe_load_all", "compose",
        "compose_all", "parse", "scan", "Loader", "SafeLoader", "CSafeLoader", "CLoader", "FullLoader", "UnsafeLoader",
    },
    "tomllib": set(), "pickle": {"load", "loads", "Unpickler"}, "marshal": {"load", "loads"},
}  # fmt: skip


# What a text with a reader has in any of the forms below; other files need not be parsed.
HINT = re.compile(
    rf"\b(?:{'|'.join(READERS)})\s*\.\s*\w*(?:load|Load|compose|parse|scan|JSONDecoder|Unpickler)"
    rf"|\bfrom (?:{'|'.join(READERS)}) import|\bimport (?:{'|'.join(READERS)}) as|,\s*(?:{'|'.join(READERS)}) as"
    r"|\.json\(|\bgetattr\("
)


def readers(tree: ast.AST) -> Iterator[str]:
    """Every reader that a module names, also under another name."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.attr in READERS.get(node.value.id, ())
        ):
            yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in READERS:
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name in READERS[node.module])
        elif isinstance(node, ast.Import):
            yield from (
                f"{alias.name} as {alias.asname}" for alias in node.names if alias.name in READERS and alias.asname
            )
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "json"
            and not node.args
        ):
            yield "json()"
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "getattr"
            and len(node.args) > 1
        ):
            name, attribute = node.args[:2]
            if (
                isinstance(name, ast.Name)
                and isinstance(attribute, ast.Constant)
                and attribute.value in READERS.get(name.id, ())
            ):
                yield f"{name.id}.{attribute.value!s}"


def of(path: Path) -> set[str]:
    if path.suffix == ".py":
        text = path.read_text(encoding="utf-8")
        return set(readers(ast.parse(text))) if HINT.search(text) else set()
    text = path.read_text(encoding="utf-8") if path.suffix in (".yml", ".yaml", ".j2") else ""
    return {name for name in ("from_json", "from_yaml") if name in text}


FILES = [
    path
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".yml", ".yaml", ".j2")
]


def test_only_documents_reads_yaml_and_json() -> None:
    assert len(FILES) > 300
    found = []
    for path in FILES:
        name = str(path.relative_to(ROOT))
        allowed = ALLOWED.get(name, set()) | (ALLOWED["ci"] if name.startswith("ci/") else set())
        found += [f"{name}: {reader}: use module_utils/documents.py" for reader in sorted(of(path) - allowed)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", [name for name in ALLOWED if name != "ci"])
def test_every_exception_is_needed(name: str) -> None:
    assert ALLOWED[name] <= of(ROOT / name)


@pytest.mark.parametrize(
    "text",
    [
        "import json\njson.loads(x)", "from json import loads", "import yaml as y", "yaml.load(x, Loader=yaml.CSafeLoader)", "answer.json()",
        "f = json.load", "getattr(yaml, 'CSafeLoader')", "pickle.loads(x)",
    ],
)  # fmt: skip
def test_the_rule_finds_readers(text: str) -> None:
    assert HINT.search(text)
    assert list(readers(ast.parse(text)))
    assert not list(readers(ast.parse("import json\njson.dumps(x)\nyaml.safe_dump(x)\nload_json(x, name='x')")))
