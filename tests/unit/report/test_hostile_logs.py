"""What a host sends as its logs is bounded and stays in its folder of the report; what it spoils does not end the report."""

from __future__ import annotations

import io
import lzma
import tarfile
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.report import gather, host_logs


def archive(*members: tuple[str, bytes], links: tuple[tuple[str, str], ...] = ()) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:xz") as tar:
        for name, content in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for name, target in links:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
    return made.getvalue()


WHOLE = archive(("journal/agent.log", b"text\n" * 5000))
#: What is sent -> the error that is noted, and the files that are kept.
SENT: dict[str, tuple[bytes, str, list[str]]] = {
    "whole": (WHOLE, "", ["journal/agent.log"]),
    "cut": (WHOLE[: len(WHOLE) // 2], "archive", []),
    "no archive": (WHOLE[:6] + b"\xff" * 5000, "archive", []),
    "spoilt": (WHOLE[:60] + bytes(len(WHOLE) - 60), "archive", []),
    "other data": (lzma.compress(b"no archive" * 500), "archive", []),
    "outside": (archive(("../../outside", b"x"), ("/etc/outside", b"x"), ("a/../../b", b"x")), "", ["outside", "etc/outside", "a/b"]),
    "links": (archive(("link/x", b"x"), links=(("link", "/etc"), ("up", "../../.."))), "", ["link/x"]),
    "a file as folder": (archive(("a", b"x"), ("a/b", b"x")), "a/b", ["a"]),
    "long": (archive(("a" * 400, b"x")), "File name too long", []),
    "no name": (archive((".", b"x"), ("..", b"x"), ("ok", b"x")), "", ["ok"]),
    "commands of a terminal": (archive(("a\x1b[2Jb\nc", b"x")), "", ["a_[2Jb_c"]),
    "many files": (archive(*((f"f{n}", b"") for n in range(60))), "more than 50 files", []),
    "large files": (archive(("a", b"line\n" * 100_000)), "larger than 100000 bytes", []),
    "large archive": (lzma.compress(b"") + bytes(300_000), "larger than 200000 bytes", []),
    "large journal": (b"line\n" * 60_000, "larger than 200000 bytes", []),
}  # fmt: skip


@pytest.mark.parametrize("kind", SENT)
def test_logs(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent, error, kept = SENT[kind]
    (tmp_path / "sent").write_bytes(sent)
    monkeypatch.setattr(gather, "ssh", lambda *__, **___: ["sh", "-c", f"cat {tmp_path / 'sent'}"])
    monkeypatch.setattr(host_logs, "MOST_FILES", 50)
    monkeypatch.setattr(host_logs, "MOST_SENT", 200_000)
    monkeypatch.setattr(host_logs, "MOST_KEPT", 100_000)
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    of = gather.ExternalCluster({"host": "192.0.2.1"}, "127.0.0.1")
    found = gather.Gatherer(of, run_dir, run_dir / "report", (None, "watcher")).run()
    missing = found.missing.get("host host", "")
    assert (error in missing) if error else not missing
    folder = run_dir / "report/hosts/host"
    there = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    if kind not in ("many files", "large files"):
        assert there == sorted(kept)
    assert len(there) <= 50
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 100_000
    assert not [path for path in folder.rglob("*") if path.is_symlink()]
    outside = {path for path in tmp_path.rglob("*") if path.is_file() and "report" not in path.parts}
    assert {path.name for path in outside} <= {"sent"}


def test_a_damaged_record_of_the_service_is_noted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for name in ("cluster", "events"):
        (tmp_path / "logs" / f"{name}.json").write_text("{")
    of = gather.ExternalCluster({}, "127.0.0.1")
    found = gather.Gatherer(of, tmp_path, tmp_path / "report", (None, "watcher")).run()
    assert "cluster.json:1:2: " in found.missing["assisted-service"]
