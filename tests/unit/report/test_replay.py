"""Recordings of fault jobs end as the jobs do; a replay serves `wait-for`, the pages and other clients; damaged ones show the rest.

`tests/recorded/jobs` has the recordings; its README lists which are from machines, and which from the swarm.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import replay as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import serve
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import load_yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.state import WaitFor, load_wait_for
from ansible_collections.agentlab.ocp.plugins.module_utils.report import facts, replay
from ansible_collections.agentlab.ocp.plugins.module_utils.report import page as run_page
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes
from ansible_collections.agentlab.ocp.plugins.module_utils.report.evidence import Facts, Unit
from ansible_collections.agentlab.ocp.plugins.module_utils.report.replay import server
from ansible_collections.agentlab.ocp.plugins.module_utils.reproduce import EvidenceError, reproduce
from ansible_collections.agentlab.ocp.plugins.module_utils.state.recording import Player, Recorder, at_the_end, load
from ansible_collections.agentlab.ocp.plugins.module_utils.waitfor import Outcome, follow
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Diagnosis, WaitState
from ansible_collections.agentlab.ocp.tests.recorded import playing

ROOT = Path(__file__).resolve().parents[3]
RUNS = ROOT / "tests" / "recorded" / "jobs"
JOBS = load_yaml((ROOT / "ci" / "jobs.yml").read_text(), name="jobs.yml")["jobs"]
RECORDED = sorted(path.name.removesuffix(".jsonl.gz") for path in RUNS.glob("*.jsonl.gz"))


def recording_of(job: str) -> bytes:
    return gzip.decompress((RUNS / f"{job}.jsonl.gz").read_bytes())


def wait(job: str, kubeconfig: Path) -> tuple[Outcome, list[str]]:
    """The wait of a job over its recording: the same watchers, causes and limits, in the time of the recording."""
    kubeconfig.write_text('clusters: [{name: x, cluster: {certificate-authority-data: "eA=="}}]\n')
    player = Player(load(recording_of(job), job))
    end = Player(player.recording)
    end.seek(player.recording.length)
    plan = facts.plan_of(end)
    assert plan
    player.seek(0)
    reported: list[str] = []

    def diagnose(seen: WaitState) -> Diagnosis:
        at = playing.replayed(player, plan)
        return Diagnosis(causes(at) if player.get("lab", facts.PLAN) else [])

    minutes = (JOBS[job].get("variables") or {}).get("agentlab_wait_for_stall_minutes", 15)
    known = WaitFor(plan["rendezvous"]["ip"], None, "watcher", 2400, False)
    outcome = follow("install-complete", known, playing.Service(player), playing.Cluster(player, kubeconfig),
                     lambda level, text: reported.append(text), stall=60 * minutes, diagnose=diagnose, controller=True,
                     clock=playing.Clock(player))  # fmt: skip
    return outcome, reported


@pytest.mark.parametrize("job", RECORDED)
def test_a_fault_job_ends_with_its_first_cause(job: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    expected = JOBS[job]["expect"]
    outcome, reported = wait(job, tmp_path / "kubeconfig")
    assert outcome.exit_code == expected["exit_code"]
    for words in expected["log"]:
        assert any(words in line for line in reported), words
    player = Player(load(recording_of(job), job))
    player.seek(player.recording.length)
    plan = facts.plan_of(player)
    assert plan
    found = causes(playing.replayed(player, plan))
    assert re.match(expected["cause"], found[0].text), found[0].text
    # What the run itself found first is what is found from its recording.
    assert player.causes()[0][0] == found[0].text
    assert time.monotonic() - begun < 20  # 2 s on an idle machine


def test_recordings_are_small_and_have_no_secrets() -> None:
    assert len(RECORDED) >= 8
    for job in RECORDED:
        assert (RUNS / f"{job}.jsonl.gz").stat().st_size < 200_000
        assert not re.search(rb"PRIVATE KEY|eyJ[A-Za-z0-9_-]{20}\.|dXNlcjpwYXNz", recording_of(job))


def test_what_the_lab_had_is_found_again(tmp_path: Path) -> None:
    """Machines, consoles, services and units, which no API has: the causes are those of the run."""
    plan = facts.plan_of(at_the_end(load(recording_of("fault-unregistered"), "r")))
    assert plan
    first, second, third = (node["domain"] for node in plan["nodes"])
    console = (
        "booting\n" * 5000
        + "password: geheim-geheim\n[ 1.0] Kernel panic - not syncing: geheim-geheim\r\n"
        + "x\n" * 5000
    )
    made = Facts(
        plan=plan,
        domains={first: "running", second: "shut off", third: "paused"},
        consoles={first: console, third: "fine"},
        services={"registry": "port 5000: Connection refused", "ntp": ""},
        node_zero={"assisted-service": Unit("failed", 3, "it said")},
        reachable={"master-0": True},
        refused={"master-2": "HTTP 401"},
        rendezvous_ip="192.168.111.20",
    )
    tape = Recorder(tmp_path / "r", ["geheim-geheim"])
    facts.record(tape, made, causes(made), plan)
    text = (tmp_path / "r").read_text()
    assert "geheim" not in text
    assert "booting" not in text
    found = playing.replayed(at_the_end(load(text.encode(), "r")), plan)
    wanted = [cause.text.replace("geheim-geheim", "REDACTED") for cause in causes(made)]
    assert len(wanted) == 5
    assert [cause.text for cause in causes(found)] == wanted


# ------------------------------------------------------------------------------------------------------------ the server


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Artifacts of a job."""
    found = tmp_path / "artifacts" / "run" / "logs"
    found.mkdir(parents=True)
    (found / "recording.jsonl").write_bytes(recording_of("fault-memory"))
    return tmp_path / "artifacts"


class Playback:
    def __init__(self, path: Path, speed: float, directory: Path) -> None:
        self.found = replay.find(path)
        self.playing = server.ReplayClock(self.found, speed)
        self.directory = directory
        directory.mkdir()

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        with urllib.request.urlopen(urllib.request.Request(self.url + path, headers=headers), timeout=10) as answer:
            body = answer.read()
            return answer.status, json.loads(body) if "json" in answer.headers["Content-Type"] else body

    @contextlib.contextmanager
    def on(self, host: str = "127.0.0.1", port: int = 0) -> Iterator[Playback]:
        with server.ReplayServer(self.playing, host, port, b"<title>live</title>") as api:
            self.url = api.url
            server.assets(self.directory, self.found, host, api.url)
            threading.Thread(target=api.serve_forever, args=(0.05,), daemon=True).start()
            yield self
            api.shutdown()


def test_clients_get_what_was_answered_then(run: Path, tmp_path: Path) -> None:
    with Playback(run, 1000, tmp_path / "assets").on() as played:
        length = played.found.recording.length
        while played.playing.position() < length:
            time.sleep(0.05)
        status, clusters = played.get("/api/assisted-install/v2/clusters")
        assert (status, clusters[0]["status"]) == (200, "insufficient")
        cluster = clusters[0]["id"]
        __, whole = played.get(f"/api/assisted-install/v2/clusters/{cluster}")
        __, hosts = played.get(f"/api/assisted-install/v2/clusters/{cluster}/hosts")
        assert (
            [host["requested_hostname"] for host in hosts]
            == ["master-0"]
            == [h["requested_hostname"] for h in whole["hosts"]]
        )
        __, events = played.get("/api/assisted-install/v2/events?order=descending&limit=2&severities=info,warning")
        assert len(events) == 2
        assert events[0]["event_time"] >= events[1]["event_time"]
        assert played.get("/")[1] == b"<title>live</title>"
        __, shown = played.get("/recording")
        assert shown["position"] == shown["length"] > 60
        for path, code in (
            ("/api/assisted-install/v2/nothing", 404),
            ("/api/assisted-install/v2/../../../etc/passwd", 404),
        ):
            with pytest.raises(urllib.error.HTTPError, match=str(code)):
                played.get(path)
        with pytest.raises(OSError, match=r"closed connection|reset"):
            played.get("/version")  # this cluster's API never came
        with pytest.raises(urllib.error.HTTPError, match="403"):
            played.get("/recording", Host="evil.example")
        with urllib.request.urlopen(f"{played.url}/", timeout=10) as answer:
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        with pytest.raises(urllib.error.HTTPError, match="405"):
            urllib.request.urlopen(f"{played.url}/recording", data=b"{}", timeout=10)


def test_wait_for_follows_a_replay(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verb, unchanged: it gives up as soon as the limit without progress has passed."""
    from ansible_collections.agentlab.ocp.plugins.module_utils.cli import wait_for

    with Playback(run, 1000, tmp_path / "assets").on("127.0.0.77", 8090) as played:
        assert load_wait_for(played.directory).rendezvous_ip == "127.0.0.77"
        time.sleep(played.found.recording.length / 1000 + 0.1)
        code = wait_for.main(["bootstrap-complete", "--dir", str(played.directory), "--stall-timeout", "0.05"])
    shown = capsys.readouterr().err
    assert code == 5
    assert "Host master-0 validation: Require at least 3.42 GiB RAM for role master" in shown
    assert "no progress for 0.05 minutes" in shown


def test_the_run_page_follows_a_replay(run: Path, tmp_path: Path) -> None:
    played = Playback(run, 1e-2, tmp_path / "assets")
    server.assets(played.directory, played.found, "127.0.0.1", "http://127.0.0.1:1")
    events = server.Events(played.playing, played.directory)
    events.write()
    early, __ = run_page.collect(played.directory, live=True, clock=played.playing.wall)
    played.playing.speed = 1e6
    events.write()
    document, text = run_page.collect(played.directory, live=True, clock=played.playing.wall)
    first, last = played.found.recording.entries[0].time, played.found.recording.entries[-1].time
    assert first * 1000 - 1 <= early["generated"] < first * 1000 + 5000
    assert document["generated"] == pytest.approx(last * 1000, abs=2000)
    lane = next(lane for lane in document["lanes"] if lane["name"] == "master-0")
    assert "insufficient" in [state["state"] for state in lane["states"]]
    assert any("RAM" in one["message"] for one in document["validations"])
    assert "events.jsonl is missing" in text or any(
        "events.jsonl" in m["text"] for one in document["lanes"] for m in one["marks"]
    )


def test_events_of_the_run_are_preferred(run: Path) -> None:
    logs = run / "run" / "logs"
    made = list(replay.derived_events(load((logs / "recording.jsonl").read_bytes(), "r")))
    lines = [json.dumps(one) for one in reversed(made)]  # out of order
    (logs / "events.jsonl").write_text("\n".join([*lines, "damaged"]) + "\n")
    (run / "events.jsonl").write_text('{"event": "playbook_on_start"}\n')  # of ansible-runner
    found = replay.find(run)
    assert [one["time"] for one in found.events] == sorted(one["time"] for one in made)
    assert found.notes == ["run/logs/events.jsonl: 1 lines are not events"]


# ------------------------------------------------------------------------------------------------------------- bad input


def archive(path: Path, **files: bytes) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def test_an_archive_with_paths_out_of_it_is_played_and_nothing_is_written(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar.gz", **{"../../evil/recording.jsonl": recording_of("fault-memory")})
    before = set(tmp_path.parent.rglob("*"))
    assert replay.find(path).plan
    assert set(tmp_path.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has none of the files that a run leaves"),
        ({"profile.yaml": b"topology: sno\n"}, "has no recording.jsonl"),
        ({"logs/recording.jsonl": b"nothing\n"}, "logs/recording.jsonl: has no line of a recording"),
        ({"recording.jsonl.gz": b"\x1f\x8b" + b"x" * 40}, "recording.jsonl.gz: is not a gzip file that can be read"),
    ],
)
def test_what_cannot_be_played_is_one_message(
    tmp_path: Path, files: dict[str, bytes], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = archive(tmp_path / "a.tar.gz", **files)
    with pytest.raises(EvidenceError, match=re.escape(message)):
        replay.find(path)
    assert serve.main(["--replay", str(path)]) != 0
    shown = capsys.readouterr().err
    assert message in shown
    assert len(shown.splitlines()) == 1


@pytest.mark.parametrize("speed", ["0", "-1", "nan", "inf", "fast", "1e9"])
def test_speeds(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        serve.main(["--replay", ".", "--speed", speed])
    assert f"{speed!r} should be a number from 0.01 to 10000" in capsys.readouterr().err


def test_an_address_in_use(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Playback(run, 1, run / "assets").on() as played:
        port = int(played.url.rpartition(":")[2])
        assert verb.play(run, 1, ("127.0.0.1", port)) != 0
    assert f"--listen 127.0.0.1:{port}: Address already in use; choose another" in capsys.readouterr().err


def test_a_cut_recording_shows_what_is_there(run: Path, tmp_path: Path) -> None:
    path = run / "run" / "logs" / "recording.jsonl"
    path.write_bytes(path.read_bytes()[:-100])
    played = Playback(run, 1e6, tmp_path / "assets")
    server.assets(played.directory, played.found, "127.0.0.1", "http://127.0.0.1:1")
    server.Events(played.playing, played.directory).write()
    document, __ = run_page.collect(played.directory, live=True, clock=played.playing.wall)
    marks = [mark["text"] for lane in document["lanes"] for mark in lane["marks"]]
    assert any(re.search(r"recording.jsonl: ends within line \d+, which was left out", mark) for mark in marks)
    assert any(lane["name"] == "master-0" and lane["states"] for lane in document["lanes"])


def test_a_recording_of_a_gib(tmp_path: Path) -> None:
    path = tmp_path / "recording.jsonl"
    path.write_bytes(recording_of("fault-memory"))
    with path.open("r+b") as stream:
        stream.truncate(1 << 30)  # sparse
    begun = time.monotonic()
    found = replay.find(tmp_path)
    assert "recording.jsonl: is longer than 64 MiB: the rest was left out" in found.notes
    assert found.plan
    assert time.monotonic() - begun < 20


def test_hosts_that_vanish_stay_on_the_page(tmp_path: Path) -> None:
    tape = Recorder(tmp_path / "recording.jsonl")
    hosts = [{"id": str(number), "requested_hostname": f"master-{number}", "status": "known"} for number in range(3)]
    tape("assisted", "/infra-envs", 200, [{"id": "e"}])
    for there in (hosts, hosts[:2]):
        tape("assisted", "/clusters", 200, [{"id": "c", "status": "ready"}])
        tape("assisted", "/clusters/c", 200, {"id": "c", "status": "ready", "hosts": there})
    found = replay.find(tmp_path)
    assert found.plan is None
    seen = {one["subject"]: one["state"] for one in found.events if one["kind"] == "host"}
    assert seen == {"master-0": "known", "master-1": "known", "master-2": "known"}


def test_a_plan_of_another_form_is_named(tmp_path: Path) -> None:
    tape = Recorder(tmp_path / "recording.jsonl")
    tape("lab", "/plan", 200, {"nodes": 3})
    tape("assisted", "/clusters/c", 200, {"id": "c", "status": 5})
    found = replay.find(tmp_path)
    assert found.plan is None
    assert any("the plan cannot be used: " in note for note in found.notes)
    player = Player(found.recording)
    player.seek(100)
    assert facts.cluster(player) is None


def test_reproduce_takes_the_cause_from_a_recording(run: Path) -> None:
    (run / "profile.yaml").write_text("topology: sno\n")
    found = reproduce(run)
    assert found.cause.startswith("host master-0 fails a validation: Require at least 3.42 GiB RAM")
    assert (
        found.raw["nodes"] == {"master-0": {"memory_mib": 3297}} or found.raw["nodes"]["master-0"]["memory_mib"] > 3000
    )
