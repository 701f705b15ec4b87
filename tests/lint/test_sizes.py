"""A file of logic has at most 400 lines: a longer one is split where it has a seam."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 400
# What may be longer, and why.
LONGER = {
    "payload/machine_os/files/rootfs/usr/libexec/coreos-installer.py": "a program of the lab's OS, which is one file there",
    "plugins/doc_fragments/short.py": "documentation, which ci/generate.py writes",
    "plugins/module_utils/_yaml.py": "one reader: frames, anchors, merges and limits share its state",
    "plugins/module_utils/reload/on_node.py": "a program that is sent to nodes, which have no collection",
    "plugins/module_utils/sandbox/faultd.py": "a program that is started from its source, without the collection",
}


def test_files_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for top in ("ci", "payload", "plugins")
        for path in (ROOT / top).rglob("*.py")
    }
    long = {name: length for name, length in lengths.items() if length > MOST}
    assert {name: long[name] for name in long.keys() - LONGER.keys()} == {}, "split them, as CONTRIBUTING.md asks"
    assert LONGER.keys() <= long.keys(), "short enough now: remove it from LONGER"
