"""The document of a run page, and the page, without a browser."""

from __future__ import annotations

import base64
import datetime
import gzip
import json
import os
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import run_page
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.report import page
from ansible_collections.agentlab.ocp.plugins.module_utils.report.changes import WaitEvents
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page import document, history, leases, logs
from ansible_collections.agentlab.ocp.plugins.module_utils.report.page.server import Server
from ansible_collections.agentlab.ocp.plugins.module_utils.state.events import FILE, EventLog, event
from ansible_collections.agentlab.ocp.tests.recorded import runs

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "docs/run.schema.json").read_text())
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\x1b[2J\u202e'\"&amp; password=hunter2 {{ 7*7 }} ${x}"


def written(run_dir: Path) -> tuple[dict[str, Any], str]:
    """The document, which fits its schema and is what the page embeds, and the page."""
    page.write(run_dir)
    path = run_dir / "report/index.html"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    text = path.read_text()
    run = json.loads((path.parent / "run.json").read_text())
    jsonschema.validate(run, SCHEMA)
    embedded = re.search(r'<script type="text/plain" id="data">([A-Za-z0-9+/=]*)</script>', text)
    assert embedded and json.loads(gzip.decompress(base64.b64decode(embedded[1]))) == run
    return run, text


def lane(run: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in run["lanes"] if one["name"] == name)


def test_a_good_run(tmp_path: Path) -> None:
    run, text = written(runs.good(tmp_path))
    verdict = run["verdict"]
    assert (verdict["result"], verdict["causes"], verdict["evidence"], run["missing"]) == ("installed", [], None, [])
    assert verdict["about"] == "compact, ipv4, dhcp, platform baremetal" and verdict["profile"] == "compact_ipv4"
    assert (verdict["start"], verdict["end"] - verdict["start"]) == (int(runs.START * 1000), 510_000)
    assert [one["state"] for one in lane(run, "Stages")["states"]] == [
        "prepare",
        "configure",
        "image",
        "boot",
        "wait",
        "validate",
    ]
    host = lane(run, "master-1")
    assert [one["state"] for one in host["states"]] == list(runs.STATUSES)
    assert [one["state"] for one in host["stages"]] == list(runs.STAGES)
    assert [one["state"] for one in host["failing"]] == ["ntp-synced"] and host["failing"][0]["end"] - host["failing"][
        0
    ]["start"] == 20_000
    checked = next(one for one in run["validations"] if (one["host"], one["id"]) == ("master-1", "ntp-synced"))
    assert (checked["now"], checked["first_passed"] - checked["first_failed"]) == ("success", 20_000)
    assert {(one["stage"], one["name"]) for one in run["steps"]} >= {
        ("boot", ""),
        ("boot", "Task of boot"),
        ("wait", "cluster installing"),
    }
    assert "master-0" in run["topology"] and "installed" in run["topology"]
    assert not re.search(r"https?://|@import|url\(", re.sub(r'"data">[^<]*<', "", text))
    assert text.count("<script") == 2


def test_a_failed_run(tmp_path: Path) -> None:
    run, text = written(runs.failed(tmp_path))
    verdict = run["verdict"]
    assert verdict["result"] == "failed"
    assert [one["text"] for one in verdict["causes"]] == ["VM ut_master_1 (master-1) is shut off", "also something"]
    assert (verdict["moment"], verdict["evidence"]) == (int((runs.START + 150) * 1000), "console/ut_master_1.log")
    assert [one["text"] for one in verdict["faults"]] == ["power_off master-1 begins (installing)"]
    names = {source["name"]: source for source in run["sources"]}
    assert {"wait-for", "master-0 journal", "master-1 console"} <= names.keys()
    line = names["master-1 journal"]["lines"][150]
    assert line == {"at": 1767225750150, "level": "info", "unit": "agent.service", "text": "line 150"}
    assert names["wait-for"]["lines"][0]["level"] == "warning"
    assert "First cause: VM ut_master_1 (master-1) is shut off" in text.partition("</noscript>")[0]
    # A resumed run that succeeds has no cause any more.
    EventLog(tmp_path / FILE).write([event("stage", "wait", "started"), event("stage", "wait", "ok")])
    assert (written(tmp_path)[0]["verdict"]["result"], written(tmp_path)[0]["verdict"]["causes"]) == ("installed", [])


def test_a_check_that_failed(tmp_path: Path) -> None:
    """The next step is to check again; the time is that of the check."""
    runs.good(tmp_path)
    at, text = runs.START + 600, "1 of 15 checks failed:\nFAIL  test login  exit status 1, expected 0"
    EventLog(tmp_path / FILE).write(
        [
            event("stage", "validate", "started", at=at),
            event("check", "test login", "failed", "exit status 1, expected 0", level="error", at=at + 10),
            event("stage", "validate", "failed", text, level="error", at=at + 20),
        ]
    )
    verdict = written(tmp_path)[0]["verdict"]
    assert [(cause["text"], cause["next"]) for cause in verdict["causes"]] == [
        (text, "bin/agentlab validate --cluster ut  # checks again")
    ]
    assert verdict["moment"] == int((at + 10) * 1000)


def test_pulls_have_rows(tmp_path: Path) -> None:
    run, __ = written(runs.failed(tmp_path))
    row = lane(run, "pulls of master-0")
    start = int((runs.START + 88) * 1000)
    assert row["group"] == "services" and row["states"] == [
        {"start": start, "end": start + 2500, "state": "6.0 MiB", "text": "2 blobs, 0 manifests, 2.4 MiB/s"}
    ]
    error = f"GET /v2/lab/release/manifests/sha256:{'0' * 64}: 404, manifest unknown"
    assert row["marks"] == [{"at": int((runs.START + 120) * 1000), "level": "warning", "text": error}]
    log = next(source for source in run["sources"] if source["name"] == "services registry")
    assert log["lines"][2]["text"] == error
    (tmp_path / "report/services/registry.log").write_bytes(b'msg="response completed" time="x"\n\xff' * 3)
    assert not any(one["name"].startswith("pulls") for one in written(tmp_path)[0]["lanes"])


def test_leases_have_a_row(tmp_path: Path) -> None:
    run, __ = written(runs.failed(tmp_path))
    row = lane(run, "DHCP leases")
    start = int((runs.START + 12) * 1000)
    assert row["group"] == "services"
    assert row["marks"] == [
        {"at": start, "level": "info", "text": "master-0: 192.168.111.20 (utbm)"},
        {"at": start + 1000, "level": "info", "text": "00:03:00:01:52:54:00:00:00:02: fd2e:6f44:5dd8::99 (utbm)"},
        {"at": start + 2000, "level": "warning", "text": "DHCPDISCOVER(utbm) 52:54:00:00:00:03 no address available"},
    ]
    log = next(source for source in run["sources"] if source["name"] == "services dhcp")
    assert log["lines"][0] == {
        "at": start - 2000,
        "level": "info",
        "unit": "dnsmasq",
        "text": "started, version 2.89 cachesize 150",
    }
    (tmp_path / "report/services/dhcp.log").write_bytes(b"Feb 30 25:00:00 dnsmasq-dhcp[1]: DHCPACK(a) 1 2\n\xff" * 3)
    assert "DHCP leases" not in [one["name"] for one in written(tmp_path)[0]["lanes"]]


def test_a_lease_at_the_turn_of_the_year() -> None:
    """dnsmasq writes no year: a line of December that is read in January is of the year before."""
    line = leases.parse(
        "Dec 31 23:59:59 dnsmasq-dhcp[1]: DHCPACK(a) 192.168.111.20 52:54", datetime.datetime(2027, 1, 1, 0, 5)
    )
    assert line and datetime.datetime.fromtimestamp(line.at / 1000).year == 2026
    assert leases.parse("Feb 29 10:00:00 dnsmasq-dhcp[1]: x", datetime.datetime(2028, 3, 1))
    assert leases.parse("Feb 29 10:00:00 dnsmasq-dhcp[1]: x", datetime.datetime(2027, 3, 1)) is None


def test_former_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Medians are of installed runs of the profile; the last one's inputs are compared; a run is not compared with itself."""
    monkeypatch.setattr(history, "cache_directory", lambda: tmp_path / "cache")
    first, __ = written(runs.good(tmp_path / "one"))
    assert written(tmp_path / "one")[0]["former"] == first["former"] == 0
    assert all(step["median"] is None for step in first["steps"]) and first["changes"] == []
    manifest = runs.good(tmp_path / "two") / "openshift/99-extra.yaml"
    manifest.parent.mkdir(exist_ok=True)
    manifest.write_text("kind: ConfigMap\ndata: {password: hunter2}\n")
    second, __ = written(tmp_path / "two")
    assert second["former"] == 1 and "hunter2" not in json.dumps(second)
    assert [one["median"] for one in second["steps"]] == [one["end"] - one["start"] for one in first["steps"]]
    changed = [one["file"] for one in second["changes"]]
    assert changed == ["openshift/99-extra.yaml"] and "+kind: ConfigMap" in second["changes"][0]["diff"]
    kept = tmp_path / "cache/history/compact_ipv4.json"
    assert kept.stat().st_mode & 0o777 == 0o600 and "hunter2" not in kept.read_text()
    assert written(runs.failed(tmp_path / "three"))[0]["former"] == 2
    kept.write_text("{")
    assert written(runs.good(tmp_path / "four"))[0]["former"] == 0


def test_intervals_for_the_viewers_of_openshift_ci(tmp_path: Path) -> None:
    run, __ = written(runs.failed(tmp_path))
    items = json.loads((tmp_path / "report/e2e-timelines_spyglass_agentlab.json").read_text())["items"]
    assert [item["from"] for item in items] == sorted(item["from"] for item in items)
    assert len(items) == sum(
        len(row[part]) for row in run["lanes"] for part in ("states", "stages", "failing", "marks")
    )
    error = next(item for item in items if item["message"]["annotations"]["state"] == "error")
    assert error == {
        "level": "Error",
        "display": True,
        "source": "NodeState",
        "locator": {"type": "Node", "keys": {"node": "master-1"}},
        "message": {
            "reason": "error",
            "cause": "",
            "humanMessage": "error: Host lost",
            "annotations": {"state": "error", "reason": "error"},
        },
        "from": "2026-01-01T00:03:20Z",
        "to": error["to"],
    }


def test_which_host_reaches_which(tmp_path: Path) -> None:
    run, __ = written(runs.failed(tmp_path))
    assert [(one["host"], one["to"], one["ok"]) for one in run["connections"]] == [
        ("master-0", "master-1", False),
        ("master-0", "master-2", True),
        ("master-1", "master-0", True),
        ("master-1", "master-2", True),
        ("master-2", "master-0", True),
        ("master-2", "master-1", False),
    ]
    assert run["connections"][0]["text"] == "192.168.111.21 layer 2: fails, 192.168.111.21 layer 3: ok 1.2 ms"
    for damaged in ("[]", '{"hosts": [1, {"connectivity": "{}"}, {"connectivity": 5}]}', "{"):
        (tmp_path / "logs/cluster.json").write_text(damaged)
        run, __ = written(tmp_path)
        assert run["connections"] == [] and (damaged == "{") == any("connectivity" in one for one in run["missing"])


def test_foreign_text_stays_text(tmp_path: Path) -> None:
    """Hosts, logs and the service may say anything."""
    run, text = written(runs.failed(tmp_path, HOSTILE))
    assert "hunter2" not in json.dumps(run) and "hunter2" not in text
    outside = re.sub(r'"data">[^<]*<', "", text)
    assert "onerror=alert" not in re.sub(r"&lt;/script&gt;&lt;img src=x onerror=alert\(1\)&gt;", "", outside)
    assert text.count("</script>") == 2
    wait_for = next(source for source in run["sources"] if source["name"] == "wait-for")
    for shown in (run["verdict"]["causes"][0]["text"], wait_for["lines"][0]["text"]):
        assert "<img" in shown and "\x1b" not in shown and "\u2028" not in shown and "\u202e" not in shown
    copies = [path for path in (tmp_path / "report/run").rglob("*") if path.is_file()]
    assert copies and not any(b"hunter2" in path.read_bytes() for path in copies)


@pytest.mark.parametrize("damage", ["no plan", "no events", "binary events", "bad state", "log is a folder", "empty"])
def test_a_damaged_run_directory(tmp_path: Path, damage: str) -> None:
    """The page names what is missing, and shows the rest."""
    if damage != "empty":
        runs.failed(tmp_path)
    if damage == "no plan":
        (tmp_path / rundir.PLAN).write_text("- x\n")
    elif damage == "no events":
        (tmp_path / FILE).unlink()
        stage = {"start": "2026-01-01T00:00:00+00:00", "end": None, "result": None}
        (tmp_path / "state.json").write_text(json.dumps({"created": [], "stages": {"boot": stage}}))
    elif damage == "binary events":
        (tmp_path / FILE).write_bytes(os.urandom(5000) + b"\n" + (tmp_path / FILE).read_bytes()[:-20])
    elif damage == "bad state":
        (tmp_path / FILE).unlink()
        (tmp_path / "state.json").write_text("{")
    elif damage == "log is a folder":
        (tmp_path / "logs/other.log").mkdir()
        (tmp_path / "report/assisted").mkdir()
        (tmp_path / "report/assisted/events.json").write_text("{")
    run, __ = written(tmp_path)
    assert bool(run["missing"]) == (damage != "no events")
    if damage == "no events":
        assert run["verdict"]["result"] == "interrupted" and lane(run, "Stages")["states"][0]["state"] == "boot"


def test_a_host_that_gets_its_name(tmp_path: Path) -> None:
    """Before its inventory is known, its name is its id."""
    runs.good(tmp_path)
    wait, host = WaitEvents(EventLog(tmp_path / FILE)), {"id": "0000-1111", "status": "discovering"}
    failing = json.dumps({"all": [{"id": "has-inventory", "status": "failure", "message": "none"}]})
    for one in (
        {**host, "validations_info": failing},
        {**host, "status": "known", "requested_hostname": "stranger"},
    ):
        wait.show({"name": "c", "status": "insufficient", "hosts": [one]}, [])
    run, __ = written(tmp_path)
    assert [one["state"] for one in lane(run, "stranger")["states"]] == ["discovering", "known"]
    assert {one["host"] for one in run["validations"] if one["id"] == "has-inventory"} >= {"stranger"}
    assert "0000-1111" not in [one["name"] for one in run["lanes"]]


def test_clocks_that_jump_and_hosts_that_vanish(tmp_path: Path) -> None:
    runs.good(tmp_path)
    EventLog(tmp_path / FILE).write([
        event("stage", "boot", "started", at=runs.START + 900), event("host", "stranger", "known", at=runs.START - 5000),
        event("stage", "boot", "ok", at=runs.START - 100), event("stage", "wait", "started", at=runs.START + 5e9),
    ])  # fmt: skip
    run, __ = written(tmp_path)
    assert run["verdict"]["result"] == "interrupted" and lane(run, "stranger")["states"]
    assert all(
        one["start"] <= one["end"]
        for each in run["lanes"]
        for one in (*each["states"], *each["stages"], *each["failing"])
    )


def test_an_interrupted_and_a_running_stage(tmp_path: Path) -> None:
    runs.good(tmp_path)
    EventLog(tmp_path / FILE).write(
        [
            event("stage", "wait", "started", at=runs.START + 600),
            event("message", "wait", text="x", at=runs.START + 650),
        ]
    )
    run, __ = written(tmp_path)
    assert (run["verdict"]["result"], lane(run, "Stages")["states"][-1]["text"]) == ("interrupted", "interrupted")
    live, __ = page.collect(tmp_path, live=True)
    assert live["verdict"]["result"] == "running" and live["lanes"][0]["states"][-1]["end"] > run["verdict"]["end"]


def test_a_task_follows_its_stage(tmp_path: Path) -> None:
    """Seconds of a task are rounded up: it began before its stage, and was listed before it."""
    runs.failed(tmp_path)
    at = runs.START + 400
    EventLog(tmp_path / FILE).write(
        [
            event("stage", "validate", "started", at=at),
            event("task", "Look", "ok", stage="validate", seconds=2, at=at + 1.2),
            event("stage", "validate", "ok", at=at + 1.3),
        ]
    )
    run, __ = written(tmp_path)
    shown = [(one["stage"], one["name"], one["start"]) for one in run["steps"] if one["stage"] == "validate"]
    assert shown == [("validate", "", int(at * 1000)), ("validate", "Look", int(at * 1000))]


def test_a_verb_leaves_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_page.write_after_run(tmp_path / "none")
    assert capsys.readouterr() == ("", "")
    runs.good(tmp_path)
    run_page.write_after_run(tmp_path)
    assert capsys.readouterr().out == f"run page: {tmp_path}/report/index.html\n"
    (tmp_path / "report/index.html").unlink()
    (tmp_path / "report/index.html").mkdir()
    run_page.write_after_run(tmp_path)
    assert "the run page cannot be written: " in capsys.readouterr().err


def test_pages_are_bounded(tmp_path: Path) -> None:
    """Logs that cannot be compressed take fewer lines."""
    runs.failed(tmp_path)
    for number in range(4):
        data = base64.b64encode(os.urandom(3 << 20)).decode()
        lines = (data[i : i + 500] for i in range(0, len(data), 500))
        path = tmp_path / f"report/services/noise{number}.log"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
    run, text = written(tmp_path)
    assert len(text) < page.SMALL
    noise = [source for source in run["sources"] if "noise" in source["name"]]
    assert len(noise) == 4 and all(0 < len(one["lines"]) < page.LINES and one["left_out"] for one in noise)


def test_many_hosts(tmp_path: Path) -> None:
    run, text = written(runs.good(tmp_path, hosts=200))
    assert sum(one["group"] == "hosts" for one in run["lanes"]) == 203 and len(text) < page.LARGE
    assert [one["name"] for one in run["lanes"] if one["group"] == "hosts"][2:5] == ["master-2", "host-0", "host-1"]
    assert len(run["validations"]) == 200 * len(runs.VALIDATIONS)


def test_lines_around_the_first_cause_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("".join(f"2026-01-01T00:{i // 60:02}:{i % 60:02}Z line {i}\n" for i in range(3000)) + "more\r")
    found = logs.source(path, name="x", host="", shown="x.log", year=2026, at=int((runs.START + 600) * 1000), limit=100)
    kept = [line["text"] for line in found["lines"]]
    assert kept[0].endswith("line 561") and "line 660" in kept and kept[-1] == "more" and len(kept) == 200
    assert found["lines"][-1]["at"] == found["lines"][-2]["at"]


@pytest.mark.parametrize(
    ("text", "at", "level", "unit", "shown"),
    [
        ('time="2026-01-01T00:00:01Z" level=fatal msg="a \\"b\\""', 1767225601000, "error", "", 'a "b"'),
        ("Jan 01 00:00:01.250000 master-0 kubelet[7]: E0101 failed", 1767225601250, "error", "kubelet", "E0101 failed"),
        ("Feb 30 00:00:01 master-0 kubelet[7]: x", None, "info", "kubelet", "x"),
        ("2026-01-01 00:00:01,5 WARNING slow", 1767225601500, "warning", "", "WARNING slow"),
        ("\x1b[0;32m  OK  \x1b[0m started", None, "info", "", "  OK   started"),
    ],
)
def test_lines(tmp_path: Path, text: str, at: int | None, level: str, unit: str, shown: str) -> None:
    path = tmp_path / "x.log"
    path.write_text(text)
    found = logs.source(path, name="x", host="", shown="x.log", year=2026, at=None, limit=5)
    assert found["lines"] == [{"at": at, "level": level, "unit": unit, "text": shown}]


def test_messages_of_a_real_service(tmp_path: Path) -> None:
    """The polls of a recorded wait become events, rows and validations."""
    runs.good(tmp_path)
    wait, known = WaitEvents(EventLog(tmp_path / FILE)), dict[str, dict[str, Any]]()
    polls = json.loads((ROOT / "tests/recorded/waitfor.json").read_text())["polls"]
    for poll in polls:
        things = [{"id": "", **poll}, *poll["hosts"]]
        for thing in things:
            checks = known.setdefault(thing["id"], {})
            checks.update(thing["validations"])
            thing["validations_info"] = json.dumps(
                {"all": [{"id": name, "status": one[1], "message": one[2]} for name, one in checks.items() if one]}
            )
        wait.show({**things[0], "hosts": things[1:]}, [])
    run, __ = written(tmp_path)
    for host in polls[-1]["hosts"]:
        row = lane(run, host["requested_hostname"])
        assert [one["state"] for one in row["states"]][-1] == host["status"] and row["failing"]
        found = [one for one in run["validations"] if one["host"] == host["requested_hostname"]]
        assert len(found) > 20 and {one["now"] for one in found} <= {
            "success",
            "failure",
            "pending",
            "disabled",
            "error",
        }
    assert run["missing"] == []


# ------------------------------------------------------------------------------------------------------------ served live


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    runs.failed(tmp_path)
    with Server(tmp_path) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield made
        made.shutdown()


def ask(server: Server, path: str, **headers: str) -> tuple[int, str, str]:
    request = urllib.request.Request(server.url + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, "", ""


def test_only_the_page_and_its_files_are_served(server: Server) -> None:
    assert ask(server, "")[2].startswith("<!doctype html>")
    status, kind, text = ask(server, "console/ut_master_1.log")
    assert (status, kind) == (200, "text/plain; charset=utf-8") and "BdsDxe" in text
    for path in ("../state.json", "..%2fsecrets.json", "secrets.json", "/etc/passwd", "run", "run/../../plan.yaml"):
        assert ask(server, path)[0] == 404, path
    assert ask(server, "", Host="evil.test")[0] == 403
    for path in ("", "console/ut_master_1.log"):
        with urllib.request.urlopen(server.url + path, timeout=60) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Content-Security-Policy"] == "frame-ancestors 'none'"


def test_changes_are_sent(server: Server) -> None:
    """The run as it is comes first: it may have changed after the page was loaded."""
    with urllib.request.urlopen(server.url + "changes", timeout=60) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        found = (json.loads(line[6:]) for line in iter(stream.readline, b"") if line.startswith(b"data: "))
        runs_seen = [next(found)]
        EventLog(server.run_dir / FILE).write([event("stage", "wait", "started")])
        runs_seen.append(next(found))
    for run, result in zip(runs_seen, ("failed", "running"), strict=True):
        jsonschema.validate(run, SCHEMA)
        assert run["live"] and run["verdict"]["result"] == result


def test_a_port_that_is_taken(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AGENTLAB_RUNS", str(server.run_dir.parent))
    monkeypatch.delenv("DISPLAY", raising=False)
    cluster = ["--cluster", server.run_dir.name]
    assert run_page.main([*cluster, "--live", "--port", str(server.server_port)]) == 1
    assert (
        capsys.readouterr().err
        == f"agentlab: port {server.server_port} of 127.0.0.1: Address already in use; choose another one with --port\n"
    )
    assert run_page.main([*cluster, "--port", "70000"]) == 1 and "must be from 0 to 65535" in capsys.readouterr().err
    assert run_page.main(cluster) == 0 and capsys.readouterr().out == f"{server.run_dir}/report/index.html\n"


def test_the_list_of_lines_is_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hundreds of logs each has fewer lines: here the last 100, and 100 around the first cause."""
    runs.failed(tmp_path, lines=300)
    monkeypatch.setattr(document, "ALL_LINES", 700)
    run, __ = written(tmp_path)
    assert {len(one["lines"]) for one in run["sources"] if "journal" in one["name"]} == {200}
