"""The events of a run: written by several processes, read whatever was done to the file."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.report.changes import WaitEvents
from ansible_collections.agentlab.ocp.plugins.module_utils.state import events
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import EventLog, event, read

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs/events.schema.json").read_text())


def cluster(state: str, failing: str = "", **host: Any) -> dict[str, Any]:
    checks = [
        {"id": "ntp-synced", "status": "failure" if failing else "success", "message": failing or "synchronized"},
        {"id": "connected", "status": "success", "message": "Host is connected"},
    ]
    known = {"id": "h", "requested_hostname": "master-0", "status": "known", **host}
    known["validations_info"] = json.dumps({"network": checks})
    return {"name": "ut", "status": state, "status_info": "info", "hosts": [known]}


def write(path: Path, name: str) -> None:
    log = EventLog(path)
    for number in range(50):
        log.write([event("message", name, text="x" * 3000 + str(number)), event("message", name, text="second")])


def test_lines_of_several_processes_stay_whole(tmp_path: Path) -> None:
    path = tmp_path / "logs/events.jsonl"
    writers = [multiprocessing.Process(target=write, args=(path, str(number))) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    found = read(path)
    assert (len(found.events), found.damaged) == (400, 0)
    assert path.stat().st_mode & 0o777 == 0o600
    for line in path.read_text().splitlines():
        jsonschema.validate(json.loads(line), SCHEMA)


def test_what_a_killed_writer_left_costs_one_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    EventLog(path).write([event("stage", "boot", "started")])
    with path.open("ab") as stream:
        stream.write(b'{"time": "2026-01-01T00:0')
    EventLog(path).write([event("stage", "boot", "ok")])
    found = read(path)
    assert [one["state"] for one in found.events] == ["started", "ok"] and found.damaged == 1


@pytest.mark.parametrize(
    "line",
    ["[]", "{}", "\0", "[" * 100_000, '{"time": 1}', json.dumps({**event("stage", "x"), "kind": "other"}),
     json.dumps({**event("stage", "x"), "time": "yesterday"}), json.dumps({**event("host", "x"), "percentage": True}),
     json.dumps({**event("cluster", "x"), "late": "soon"})],
)  # fmt: skip
def test_lines_that_are_not_events_are_counted(tmp_path: Path, line: str) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{json.dumps(event('stage', 'x'))}\n{line}\n")
    found = read(path)
    assert (len(found.events), found.damaged) == (1, 1)


def test_a_large_file_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "events.jsonl"
    for number in range(9):
        EventLog(path).write([event("message", "wait", text=str(number))])
    monkeypatch.setattr(events, "MAX_BYTES", 300)
    found = read(path)
    assert [one["text"] for one in found.events] == ["7", "8"] and found.cut == path.stat().st_size - 300
    assert read(tmp_path / "none") == ([], 0, 0)


def test_texts_are_printable_bounded_and_without_secrets(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    text = "a\x1b[2J\u2028b\r password=hunter2 " + "x" * 5000
    EventLog(path, ["open-sesame"]).write([event("cause", "open-sesame", text=text, next="token: open-sesame")])
    (found,) = read(path).events
    assert "hunter2" not in str(found) and "sesame" not in path.read_text()
    assert found["text"].isprintable() and len(found["text"]) < 4100


def test_a_full_disk_leaves_no_half_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    EventLog(path).write([event("message", "wait", text="kept")])
    child = os.fork()
    if not child:  # a limit of the size of files, as a full disk would be
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, resource.RLIM_INFINITY))
        try:
            EventLog(path).write([event("message", "wait", text="lost")])
        except OSError:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert [one["text"] for one in read(path).events] == ["kept"] and read(path).damaged == 0


def test_a_wait_writes_what_changes(tmp_path: Path) -> None:
    path, faults = tmp_path / "events.jsonl", tmp_path / "log"
    stamp = "2026-01-01T00:00:00Z"
    faults.write_text(f"{stamp} power_off master-0 not yet: x\n{stamp} power_off master-0 begins (boot)\n\xff\n")
    seen: list[events.Event] = []
    wait = WaitEvents(EventLog(path), emit=seen.append, faults=faults)
    wait.show(cluster("ready", failing="no NTP server"), [])
    wait.show(cluster("ready", failing="no NTP server, 5 s later"), [])
    wait.show(
        cluster(
            "installing",
            status="installing",
            progress={"current_stage": "Writing image to disk", "installation_percentage": 55},
        ),
        [],
    )
    operator = {
        "metadata": {"name": "etcd"},
        "status": {"conditions": [{"type": "Degraded", "status": "True", "message": "no quorum"}]},
    }
    wait.show_operators([operator])
    wait.show_operators([operator])
    wait.report("warning", "careful")
    WaitEvents(EventLog(path), faults=faults).report("info", "resumed")
    lines = [(one["kind"], one["subject"], one["state"], one["level"]) for one in read(path).events]
    assert lines == [
        ("fault", "power_off", "", "warning"),
        ("cluster", "ut", "ready", "info"),
        ("host", "master-0", "known", "info"),
        ("validation", "ntp-synced", "failure", "warning"),
        ("validation", "connected", "success", "info"),
        ("cluster", "ut", "installing", "info"),
        ("host", "master-0", "installing", "info"),
        ("validation", "ntp-synced", "success", "info"),
        ("operator", "etcd", "Degraded", "warning"),
        ("message", "wait", "", "warning"),
        ("message", "wait", "", "info"),
    ]
    assert read(path).events[:-1] == seen
    assert read(path).events[6]["stage"] == "Writing image to disk"


def test_a_wait_writes_how_late_it_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most since it asked before: a state may be old when the wait begins, and a clock elsewhere may be wrong."""
    wait, start = WaitEvents(EventLog(tmp_path / "events.jsonl")), 1767225600

    def ask(at: int, status: str, changed: object) -> None:
        monkeypatch.setattr("time.time", lambda: start + at)
        wait.show({"name": "ut", "status": status, "status_updated_at": changed, "hosts": []}, [])

    ask(0, "ready", "2025-12-31T23:00:00Z")
    ask(5, "preparing-for-installation", "2026-01-01T00:00:03.500Z")
    ask(10, "installing", "2025-12-31T23:00:00Z")
    ask(15, "finalizing", "2026-01-01T01:00:00Z")
    ask(20, "installed", None)
    operator = {"metadata": {"name": "etcd"}, "status": {"conditions": [{"type": "Available", "status": "True"}]}}
    for at, stamp in ((20, "2026-01-01T00:00:10Z"), (30, "2026-01-01T00:00:28Z")):
        monkeypatch.setattr("time.time", lambda at=at: start + at)
        operator["status"]["conditions"][0] |= {"lastTransitionTime": stamp, "message": stamp}
        wait.show_operators([operator])
    found = [(one["state"], one["late"]) for one in read(tmp_path / "events.jsonl").events]
    assert found == [
        ("ready", 0), ("preparing-for-installation", 1500), ("installing", 5000), ("finalizing", 0), ("installed", 0),
        ("Available", 0), ("Available", 2000),
    ]  # fmt: skip


def test_states_of_hosts_in_ironic(tmp_path: Path) -> None:
    wait = WaitEvents(EventLog(tmp_path / "events.jsonl"))
    for text in ("  master-0: provisioning", "  other: provisioning", "master-0: Provisioning", "  master-0: a b"):
        wait.provisioning(text, ["master-0"])
    assert [(one["subject"], one["state"]) for one in read(tmp_path / "events.jsonl").events] == [
        ("master-0", "provisioning")
    ]
