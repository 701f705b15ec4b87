"""Nothing in plugins writes a file but `files.new_file`: what it writes is complete or absent, private, and not behind a link."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# What may write by other means: file of plugins/module_utils -> why.
_KERNEL = "settings of the kernel"
_ALONE = "a program without the collection, which renames a complete file"
_LOG = "a log, which grows"
_TEMPORARY = "in a temporary directory"
_LOCK = "a lock"
_REPLACED = "in a staging directory, from which the complete file is renamed"
ALLOWED = {
    "ci/records.py": "a list of records, which grows by lines",
    "ci/shared.py": "status lines of CI, which grow",
    "cli/ci/__init__.py": _LOG,
    "cli/ci/runner.py": _TEMPORARY,
    "cli/coreos/pxe.py": "a device or a pipe of the user; files by new_file",
    "boot/domain.py": "a LUN, which its target has open",
    "cli/lab.py": _TEMPORARY,
    "cli/matrix.py": f"{_LOCK}; {_LOG}",
    "cli/serve.py": _TEMPORARY,
    "conformance/certificates.py": _TEMPORARY,
    "coreos/image.py": "an image of the user, changed in place",
    "files.py": "new_file itself",
    "installer/binary.py": f"{_TEMPORARY}; {_LOG}",
    "installer/source.py": _LOCK,
    "packages/__init__.py": "policies that last as long as packages are installed",
    "release/mirror.py": _TEMPORARY,
    "release/payload.py": _REPLACED,
    "reload/on_node.py": f"{_ALONE}; a unit's drop-in in /run",
    "report/gather.py": _REPLACED,
    "sandbox/faultd.py": f"{_ALONE}; {_LOG}",
    "sandbox/host.py": _KERNEL,
    "sandbox/keeper.py": _KERNEL,
    "sandbox/kvm.py": _TEMPORARY,
    "sandbox/mirror.py": _TEMPORARY,
    "sandbox/processes.py": _LOG,
    "sandbox/relay.py": f"{_ALONE}; {_KERNEL}; {_LOG}",
    "sandbox/uplink.py": _KERNEL,
    "snapshot/bundle.py": "files of a new snapshot, which counts when its manifest is there",
    "snapshot/tree.py": "the same",
}


def writers(tree: ast.AST) -> Iterator[int]:
    """Lines that write a file: `write_text`, `write_bytes`, and with a mode that writes `open`, `fdopen`, or the class of new_file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        modes = [
            one.value for one in (*node.args, *(key.value for key in node.keywords)) if isinstance(one, ast.Constant)
        ]
        if name in ("write_text", "write_bytes") or (
            name in ("open", "fdopen", "_CompleteWriter")
            and any(
                isinstance(mode, str) and 0 < len(mode) <= 3 and set(mode) <= set("rwxab+t") and set(mode) & set("wxa+")
                for mode in modes
            )
        ):
            yield node.lineno


def test_files_are_written_in_one_place() -> None:
    found = {}
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        text = path.read_text()
        if ("write_" in text or "open(" in text) and (lines := list(writers(ast.parse(text)))):
            found[str(path.relative_to(ROOT / "plugins/module_utils"))] = lines
    others = {path: lines for path, lines in found.items() if path not in ALLOWED}
    assert not others, "use files.new_file, or say in ALLOWED why not"
    assert set(ALLOWED) == set(found), "ALLOWED has files that write nothing"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("path.write_text('x')", 1),
        ("open(path, 'wb')", 1),
        ("path.open(mode='a')", 1),
        ("os.fdopen(handle, 'w')", 1),
        ("open(path)", 0),
        ("open(path, 'rb')", 0),
        ("new_file(path)", 0),
        ("path.open('r+')", 1),
    ],
)
def test_the_rule(text: str, count: int) -> None:
    assert len(list(writers(ast.parse(text)))) == count
