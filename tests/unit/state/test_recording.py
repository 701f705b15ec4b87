"""Recordings: what was written is read again, without secrets; what is cut, damaged, too long or out of order is named."""

from __future__ import annotations

import gzip
import json
import os
import random
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.redact import MAX_LINE
from ansible_collections.agentlab.ocp.plugins.module_utils.state import recording
from ansible_collections.agentlab.ocp.plugins.module_utils.state.recording import (
    Player,
    Recorder,
    apply_patch,
    load,
    patch,
)


def lines(*entries: dict[str, Any]) -> bytes:
    found: list[dict[str, Any]] = []
    for number, entry in enumerate(entries):
        at = {"time": 1000.0 + number, "at": 10.0 + number, "source": "assisted", "path": "/x", "status": 200}
        found.append(at | entry)
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in found)


def thing(numbers: random.Random, depth: int = 0) -> Any:
    kind = numbers.randrange(6 if depth < 4 else 4)
    if kind == 4:
        return [thing(numbers, depth + 1) for __ in range(numbers.randrange(5))]
    if kind == 5:
        return {str(numbers.randrange(8)): thing(numbers, depth + 1) for __ in range(numbers.randrange(6))}
    return [None, numbers.randrange(3), "text", True][kind]


def test_a_patch_makes_one_value_of_another() -> None:
    numbers = random.Random(1)
    for __ in range(3000):
        before, after = thing(numbers), thing(numbers)
        copy = json.loads(json.dumps(before))
        assert json.dumps(apply_patch(patch(before, after), copy), sort_keys=True) == json.dumps(after, sort_keys=True)


def test_what_changes_is_recorded_once_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "recording.jsonl"
    tape = Recorder(path)
    cluster = {"status": "ready", "hosts": [{"id": "a", "status": "known"}, {"id": "b", "status": "known"}]}
    for status in ("known", "known", "installing"):
        tape("assisted", "/clusters/1", 200, {**cluster, "hosts": [{"id": "a", "status": status}, cluster["hosts"][1]]})
    tape("assisted", "/clusters/1", 0, "no answer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = load(path.read_bytes(), "r")
    assert (len(found.entries), found.notes) == (3, [])
    assert '"patch":{"hosts":{"0":{"status":["installing"]}}}' in found.entries[1].line
    player = Player(found)
    player.step(), player.step()
    answer = player.get("assisted", "/clusters/1")
    assert answer and answer.body["hosts"] == [{"id": "a", "status": "installing"}, {"id": "b", "status": "known"}]
    player.step()
    assert player.get("assisted", "/clusters/1") == (0, "no answer")
    player.seek(-1)
    assert player.get("assisted", "/clusters/1") is None


def test_no_secret_next_to_its_name_is_recorded(tmp_path: Path) -> None:
    """Environment and arguments of containers, commands of tests, and Secrets among a profile's manifests; also where only they change."""
    tape = Recorder(tmp_path / "r")

    def pods(secret: str) -> dict[str, Any]:
        env = [{"name": "MODE", "value": "fast"}, {"name": "DB_PASSWORD", "value": secret}]
        return {"items": [{"spec": {"containers": [{"env": env, "args": ["--user", "core", "--token", secret]}]}}]}

    for secret in ("swordfish1", "marlinspike2"):
        tape("openshift", "/api/v1/pods", 200, pods(secret))
        manifests = {
            "a": {"kind": "Secret", "stringData": {"note": secret}},
            "b": {"kind": "ConfigMap", "data": {"c": "kept"}},
        }
        run = ["curl", "-u", f"admin:{secret}", "-s", "http://x/"]
        tape("lab", "/plan", 200, {"installer": {"manifests": manifests}, "tests": [{"name": "t", "run": run}]})
    text = (tmp_path / "r").read_text()
    assert "swordfish1" not in text and "marlinspike2" not in text
    player = Player(load(text.encode(), "r"))
    player.seek(player.recording.length)
    answer, plan = player.get("openshift", "/api/v1/pods"), player.get("lab", "/plan")
    hidden = {"items": [{"spec": {"containers": [{**pods("REDACTED")["items"][0]["spec"]["containers"][0]}]}}]}
    assert answer and answer.body == hidden
    assert plan and plan.body["installer"]["manifests"]["b"]["data"] == {"c": "kept"}
    assert plan.body["tests"][0]["run"] == ["curl", "-u", "REDACTED", "-s", "http://x/"]


def test_no_secret_is_recorded(tmp_path: Path) -> None:
    tape = Recorder(tmp_path / "r", ["geheim-geheim"])
    tape("assisted", "/clusters/1?x=geheim-geheim", 200, {"password": "swordfish", "text": "a geheim-geheim b"})
    tape("assisted", "/clusters/1?x=geheim-geheim", 200, {"password": "marlinspike", "text": "a"})
    nested = json.dumps({"auths": {"quay.io": {"auth": "dXNlcjpwYXNzd29yZA=="}}})
    tape("openshift", "/api/v1/namespaces/a/secrets/b", 200, {"metadata": {"name": "b"}, "data": {"x": "c2VjcmV0"}})
    tape(
        "openshift",
        "/apis/x/machineconfigs/m",
        200,
        {"metadata": {"name": "m"}, "spec": {"config": "abcdef", "fips": True}},
    )
    tape("lab", "/refused", 401, nested)
    text = (tmp_path / "r").read_text()
    for secret in ("geheim", "swordfish", "marlinspike", "dXNlcj", "c2VjcmV0", "abcdef"):
        assert secret not in text
    assert "fips" in text


def test_long_answers_are_cut_into_lines_that_can_be_gathered(tmp_path: Path) -> None:
    tape = Recorder(tmp_path / "r")
    hosts = [{"id": str(number), "inventory": "x" * 50_000} for number in range(60)]
    tape("assisted", "/clusters/1", 200, {"status": "ready", "hosts": hosts, "long": "y" * (3 << 20)})
    assert max(map(len, (tmp_path / "r").read_bytes().split(b"\n"))) < MAX_LINE
    player = Player(load((tmp_path / "r").read_bytes(), "r"))
    player.seek(1000)
    answer = player.get("assisted", "/clusters/1")
    assert answer and answer.body["hosts"] == hosts
    assert answer.body["long"].endswith(" [cut]")


def test_a_recording_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 1000)
    tape = Recorder(tmp_path / "r")
    for number in range(50):
        tape("lab", "/x", 200, {"a": number, "text": "x" * 20 * (number + 1)})
    found = load((tmp_path / "r").read_bytes(), "r")
    assert (tmp_path / "r").stat().st_size < 1200
    assert "r: was full after 0 MiB: the end of the run is missing" in found.notes


def test_a_file_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    Recorder(tmp_path / "file" / "r")("lab", "/x", 200, {})


def test_a_killed_writer_leaves_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "r"
    Recorder(path)("lab", "/x", 200, {"a": 1})
    path.write_bytes(path.read_bytes() + b'{"time":1,"at":')
    found = load(path.read_bytes(), "r")
    assert (len(found.entries), found.notes) == (1, ["r: ends within line 2, which was left out"])
    Recorder(path)("lab", "/x", 200, {"a": 2})  # the run is resumed
    found = load(path.read_bytes(), "r")
    assert len(found.entries) == 2
    assert found.notes == ["r: 1 lines are damaged and were left out, the first is line 2"]


@pytest.mark.parametrize(
    "line",
    [
        b"not json", b"[]", b"{}", b'{"time":1,"at":1,"source":"assisted","path":"/x","status":200}', b"\xff\xfe",
        lines({"source": "elsewhere"})[:-1], lines({"path": "../../etc/passwd"})[:-1], lines({"at": 1e300})[:-1],
        lines({"at": True, "patch": []})[:-1], b"[" * 100_000,
    ],
)  # fmt: skip
def test_damaged_lines(line: bytes) -> None:
    found = load(lines({"patch": [1]}) + line + b"\n" + lines({"patch": [2]}), "r")
    assert len(found.entries) == 2
    assert "r: 1 lines are damaged and were left out, the first is line 2" in found.notes


@pytest.mark.parametrize("data", [b"", b"\n\n", b"hello\n", b"\x1f\x8bnot gzip", gzip.compress(b"no", mtime=0)])
def test_nothing_that_can_be_played(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"^r: (has no line of a recording|is not a gzip file that can be read)"):
        load(data, "r")


def test_clocks_that_jump_and_lines_out_of_order() -> None:
    data = lines(
        {"patch": [1]},
        {"patch": [2], "time": 9e8},  # the wall clock was set; the machine's own was not
        {"patch": [3], "time": 9e8 + 1},
        {"patch": [4], "at": 1.0, "time": 9e8 + 2},  # another boot
        {"patch": [5], "at": 0.5, "time": 8e8},  # backwards
        {"patch": [6], "at": 1e6, "time": 8e8 + 1e6},  # days later
    )
    found = load(data, "r")
    assert [round(entry.at) for entry in found.entries] == [0, 1, 2, 3, 3, 3603]
    assert [note.split(":")[1] for note in found.notes] == ["2", "5"]
    assert all("the clock jumped by" in note for note in found.notes)


def test_changes_of_what_is_not_there() -> None:
    data = lines({"patch": [{"a": 1}]}, {"patch": {"b": {"c": [1]}}}, {"patch": {"9": [1]}, "path": "/y"},
                 {"patch": [[1, 2]]}, {"patch": {"7": [1]}}, {"patch": [1, 2]}, {"patch": {"1": [5]}})  # fmt: skip
    player = Player(load(data, "r"))
    player.seek(100)
    assert player.get("assisted", "/x") == (200, [1, 5])
    assert len(player.notes) == 4
    assert "assisted /x: a change is left out: changes '7', which does not exist" in player.notes


def test_a_bomb() -> None:
    with_bomb = gzip.compress(lines({"patch": [1]}) + b" " * (200 << 20))
    begun = time.monotonic()
    found = load(with_bomb, "r.gz")
    assert len(found.entries) == 1
    assert "r.gz: is longer than 64 MiB: the rest was left out" in found.notes
    assert time.monotonic() - begun < 20


def test_a_compressed_recording_that_is_cut() -> None:
    data = gzip.compress(lines(*({"patch": [os.urandom(40).hex()]} for __ in range(200))))
    found = load(data[: len(data) // 2], "r.gz")
    assert 20 < len(found.entries) < 200
    assert "r.gz: the compressed file is cut" in found.notes
