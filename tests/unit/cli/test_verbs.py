"""fault, logs, doctor, prune and completion, without a lab."""

from __future__ import annotations

import datetime
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import (
    cluster,
    completion,
    doctor,
    fault,
    logs,
    orphans,
    parsers,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import prune as verb
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.verbs import VERBS, Trait
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import faultd, faults, prune
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
LAB = ("--cluster", "lab")


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run directory of cluster `lab`; verbs act as if they were in its sandbox."""
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path))
    monkeypatch.setenv(cluster.INSIDE, "lab")
    chosen = profile.load("compact_ipv4", PROFILES)
    chosen["hypervisor"]["state_dir"] = str(tmp_path / "state")
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))
    return tmp_path


@pytest.fixture
def acts(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What faults did, instead of doing it."""
    done: list[Any] = []

    def begin(given: dict[str, Any], __: Any) -> None:
        done.append(("begin", given))

    def end(given: dict[str, Any], note: Any) -> None:
        done.append(("end", given["kind"], note))
        if given.get("node") == "master-2":
            raise faultd.FaultError("Domain is already active")

    made = {name: faultd.Kind(begin, end, lambda __: "note") for name in fault.NOW} | {"disk_lost": faultd.Kind(begin)}
    monkeypatch.setattr(faults.faultd, "kinds", lambda __: made)
    return done


def test_a_fault_is_injected_listed_and_undone(runs: Path, acts: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert fault.main(["master-1", "mtu", "--mtu", "1300", *LAB]) == 0
    assert acts == [("begin", {"kind": "mtu", "node": "master-1", "nic": "eth0", "mtu": 1300})]
    assert fault.main(["master-1", "mtu", "--mtu", "1300", *LAB]) == 1
    assert "was injected before; undo it first" in capsys.readouterr().err
    assert fault.main(["-o", "json", *LAB]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[0].pop("since")[:2] == "20"
    assert listed == [{"kind": "mtu", "node": "master-1", "nic": "eth0", "mtu": 1300}]
    assert fault.main(["master-1", "mtu", "--mtu", "1300", "--undo", *LAB]) == 0
    assert acts[-1] == ("end", "mtu", "note")
    capsys.readouterr()
    assert fault.main([*LAB]) == 0
    assert capsys.readouterr().out == "no fault was injected by hand\n"


def test_a_fault_that_lasts(runs: Path, acts: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is undone after its time, and when the terminal goes away. Each signal ended it with 130, against the table of exit codes."""
    monkeypatch.setattr(fault.time, "sleep", lambda __: None)
    assert fault.main(["registry", "service_down", "--seconds", "5", *LAB]) == 0
    for number, code in ((signal.SIGHUP, 129), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
        monkeypatch.setattr(fault.time, "sleep", lambda __, number=number: os.kill(os.getpid(), number))
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        before = signal.signal(number, usual)  # below nohup it is ignored
        try:
            assert fault.main(["master-0", "pause", "--seconds", "5", *LAB]) == code
        finally:
            signal.signal(number, before)
    assert [act[:2] for act in acts if act[0] == "end"] == [("end", "service_down"), *[("end", "pause")] * 3]


def test_what_was_undone_by_other_means_is_not_listed(
    runs: Path, acts: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    fault.main(["master-2", "power_off", *LAB])
    assert fault.main(["master-2", "power_off", "--undo", *LAB]) == 1
    assert capsys.readouterr().err == "agentlab: power_off master-2: Domain is already active\n"
    assert fault.main(["master-2", "power_off", "--undo", *LAB]) == 1
    assert "power_off master-2: was not injected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["master-9", "pause"], "cluster lab has no node 'master-9'; its nodes are master-0, master-1, master-2"),
        (["master-0", "puase"], "KIND 'puase': did you mean pause?"),
        (["master-0", "clock"], "KIND 'clock': is part of a plan: put it under `faults` in the profile, and deploy that"),
        (["dns", "service_down"], "TARGET 'dns': must be one of registry, ntp, bmc, http for service_down"),
        (["master-0", "mtu"], "mtu: --mtu: "),
        (["master-0", "mtu", "--mtu", "1"], "mtu: --mtu 1: "),
        (["master-0", "loss", "--percent", "101"], "loss: --percent 101: must be from 1 to 100"),
        (["master-0", "delay"], "delay: --milliseconds: is missing: must be an integer"),
        (["master-0", "rate", "--kbits", "100", "--nic", "eth7"], "--nic eth7: must be one of eth0"),
        (["master-0", "rate", "--kbits", "100", "--mtu", "1400"], "rate: --mtu: unknown field"),
        (["master-0", "pause", "--nic", "eth0"], "pause: --nic"),
        (["master-0", "link_down", "--nic", "eth7"], "--nic eth7: must be one of eth0"),
        (["master-0", "arp_one_way", "--peer", "master-0"], "--peer master-0: must differ from TARGET"),
        (["master-0", "pause", "--seconds", "0"], "pause: --seconds 0: "),
        (["master-0", "disk_lost", "--undo"], "disk_lost master-0: cannot be undone"),
    ],
)  # fmt: skip
def test_a_wrong_fault(
    runs: Path, acts: list[Any], capsys: pytest.CaptureFixture[str], argv: list[str], message: str
) -> None:
    assert fault.main([*argv, *LAB]) == 1
    shown = capsys.readouterr().err
    assert shown.startswith(f"agentlab: {message}") and shown.count("\n") == 1
    assert not acts


JOURNAL = "1763856002.500000 master-0 kernel: second\n1763856004.000000 master-0 agent[7]: \x1b[31mfourth\x1b[0m hunter2hunter2\n"
CONSOLE = "1763856005\r\nfifth\r\n"
SERVICE = (
    "0\nno time yet\n2025-11-23T00:00:01.123456789Z first\n\tcontinued\n"
    'time="2025-11-23T00:00:03Z" level=warning msg=third\n'
)


def test_logs_are_merged_by_time(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(source: logs.Source) -> tuple[str, str]:
        if source.name == "master-0":
            return JOURNAL, ""
        if source.name == "registry":
            return SERVICE, ""
        return (CONSOLE, "") if source.name == "master-0/console" else ("", "No route to host")

    monkeypatch.setattr(logs, "_read", read)
    monkeypatch.setattr(logs, "of_run", lambda __: ["hunter2hunter2"])
    assert logs.main(["-o", "json", *LAB]) == 0
    shown = capsys.readouterr()
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert [(line["source"], line["text"].split()[-1]) for line in lines] == [
        ("registry", "yet"),
        ("registry", "first"),
        ("registry", "continued"),
        ("master-0", "second"),
        ("registry", "msg=third"),
        ("master-0", lines[5]["text"].split()[-1]),
        ("master-0/console", "fifth"),
    ]
    assert lines[3]["time"] == "2025-11-23T00:00:02.500+00:00"
    assert "\x1b" not in shown.out and "hunter2" not in shown.out and "fourth" in lines[5]["text"]
    assert "agentlab: master-1: No route to host\n" in shown.err
    assert logs.main(["-o", "yaml", *LAB]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == lines


def test_logs_of_which_no_source_answers(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "_read", lambda __: ("", "No route to host"))
    assert logs.main(["--node", "master-1", "--unit", "agent", *LAB]) == 1
    assert capsys.readouterr().err == "agentlab: master-1: No route to host\n"
    for argv, message in (
        (["--node", "worker-0"], "has no node 'worker-0'"),
        (["-n", "0"], "--lines 0: must be 1 or more"),
    ):
        assert logs.main([*argv, *LAB]) == 1
        assert message in capsys.readouterr().err


def test_a_unit_without_entries_is_named_with_its_nodes(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelled unit printed nothing, and was a success."""
    entries = {("master-0", "agent"), ("master-1", "agent"), ("master-0", "assisted-service")}

    def read(source: logs.Source) -> tuple[str, str]:
        (unit,) = [unit for unit in ("agent", "assisted-service", "agnet") if source.command[-1].endswith(f"-u {unit}")]
        if source.name == "master-2":
            return "", "No route to host"
        return (JOURNAL, "") if (source.name, unit) in entries else ("", "")

    monkeypatch.setattr(logs, "_read", read)
    monkeypatch.setattr(logs, "of_run", lambda __: [])
    assert logs.main(["--unit", "agent", "--unit", "assisted-service", *LAB]) == 0
    shown = capsys.readouterr()
    assert shown.out.count(" master-0 ") == 4 and shown.out.count(" master-1 ") == 2
    assert shown.err == (
        "agentlab: master-2: No route to host\nagentlab: unit assisted-service has no entries on master-1\n"
    )
    assert logs.main(["--unit", "agnet", "--node", "master-0", "--node", "master-1", *LAB]) == 1
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "agentlab: unit agnet has no entries on master-0, master-1\n")


def test_units_are_followed_by_one_command_for_each_node(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit that has no entries yet may get some."""
    found: list[logs.Source] = []
    monkeypatch.setattr(logs, "_follow", lambda sources, *__: found.extend(sources) or 0)
    assert logs.main(["-f", "--unit", "agent", "--unit", "kubelet", *LAB]) == 0
    assert [source.name for source in found] == ["master-0", "master-1", "master-2"]
    assert all(source.command[-1].endswith("-f -u agent -u kubelet") for source in found)


@pytest.mark.parametrize(
    ("argv", "count"), [([], 200), (["-f"], 10), (["-f", "-n", "100"], 100), (["-n", "7"], 7), (["-f", "-n", "3"], 3)]
)
def test_how_many_lines(runs: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], count: int) -> None:
    found: list[logs.Source] = []
    monkeypatch.setattr(logs, "_print", lambda sources, *__: found.extend(sources) or 0)
    monkeypatch.setattr(logs, "_follow", lambda sources, *__: found.extend(sources) or 0)
    assert logs.main([*argv, *LAB]) == 0
    words = [word for source in found for part in source.command for word in part.split()]
    counts = {words[at + 1] for at, word in enumerate(words[:-1]) if word == "-n"}
    assert counts == {str(count)}


FOLLOW = f"""
import sys
from {PACKAGE} import logs
from pathlib import Path
sources = [logs.Source("a", ["sh", "-c", "echo 0; tail -n 5 -F " + sys.argv[1]]), logs.Source("gone", ["false"])]
sys.exit(logs._follow(sources, [], None))
"""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_logs_are_followed_until_the_end(tmp_path: Path, number: int, status: int) -> None:
    """Ctrl-C, a signal and a terminal that goes away leave no process behind."""
    path = tmp_path / "log"
    path.write_text("one\n")
    code = FOLLOW.replace(
        "sys.exit(", "from ansible_collections.agentlab.ocp.plugins.module_utils import signals\ntry:\n    sys.exit("
    )
    code += f"except signals.Termination as error:\n    sys.exit({-status})\n"
    # Tests that run in the background of a shell inherit signals that are ignored.
    command = ["env", "--default-signal=INT,HUP", sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().endswith("one\n")
            with path.open("a") as stream:
                stream.write("two\n")
            assert process.stdout.readline().endswith("two\n")
            process.send_signal(number)
            assert process.wait(20) == abs(status)
        finally:
            process.kill()
    deadline = time.monotonic() + 10
    while any(str(path) in arguments(entry) for entry in filter(str.isdigit, os.listdir("/proc"))):
        assert time.monotonic() < deadline, "tail still runs"
        time.sleep(0.1)


def arguments(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@pytest.fixture
def leave(tmp_path: Path) -> Callable[..., Path]:
    """Makes the state directory of a lab."""

    def make(name: str, run_dir: Path, **more: Any) -> Path:
        path = tmp_path / "states" / name
        path.mkdir(parents=True)
        made = owner.Owner(name, str(run_dir), os.getuid(), "me", socket.gethostname(), "digest", "mark")
        (path / owner.FILE).write_text(json.dumps(asdict(made) | more))
        (path / "console").mkdir()
        (path / "console/x.log").write_text("x")
        return path

    return make


def test_what_is_left_behind(
    tmp_path: Path, leave: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, here, killed = tmp_path / "gone", tmp_path / "here", tmp_path / "killed"
    for folder in (here, killed):
        folder.mkdir()
        (folder / rundir.PLAN).write_text("plan")
    state.begin(here, "prepare")
    state.begin(killed, "prepare")
    long_ago = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)).isoformat(timespec="seconds")
    text = (killed / state.FILE).read_text()
    (killed / state.FILE).write_text(text.replace(state.load(killed)["stages"]["prepare"]["start"], long_ago))
    leave("mine", gone)
    leave("busy", tmp_path / "busy")
    leave("running", here)
    leave("killed", killed)
    leave("theirs", gone, uid=os.getuid() + 1)
    leave("far", gone, host="elsewhere")
    (leave("damaged", gone) / owner.FILE).write_text("{")
    (tmp_path / "states/foreign").mkdir()
    (tmp_path / "states/foreign/data").write_text("not ours")
    monkeypatch.setattr(orphans, "run_dirs", lambda: {str(tmp_path / "busy")})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    given = ["--state-dir", str(tmp_path / "states"), "-o", "json"]
    assert verb.main([*given, "--check"]) == 0
    rows = {Path(row["state_dir"]).name: row for row in json.loads(capsys.readouterr().out)}
    assert sorted(rows) == ["damaged", "far", "killed", "mine", "theirs"]
    assert not any(row["removed"] for row in rows.values())
    assert "is gone" in rows["mine"]["reason"] and "never finished" in rows["killed"]["reason"]
    assert "but it belongs to me" in rows["theirs"]["reason"] and "is on elsewhere" in rows["far"]["reason"]
    assert verb.main(given) == 0
    removed = {Path(row["state_dir"]).name for row in json.loads(capsys.readouterr().out) if row["removed"]}
    assert removed == {"mine", "killed"}
    left = {path.name for path in (tmp_path / "states").iterdir()}
    assert left == {"busy", "running", "theirs", "far", "damaged", "foreign"}
    assert (tmp_path / "states/foreign/data").exists()


def test_a_state_directory_that_was_removed_in_part(tmp_path: Path, leave: Callable[..., Path]) -> None:
    path = leave("mine", tmp_path / "gone")
    temporary = path.with_name(".mine.agentlab")
    for entry in (path / "console/x.log",):
        entry.unlink()
    (path / "console").rmdir()
    path.rename(temporary)
    (found,) = prune.leftovers(tmp_path / "states", os.getuid(), ())
    assert found.state_dir == path and not found.stays
    prune.prune(found)
    assert list((tmp_path / "states").iterdir()) == []


def test_run_directories_in_which_a_verb_runs(tmp_path: Path) -> None:
    environment = {**os.environ, **orphans.mark(tmp_path / "a:b")}
    with subprocess.Popen(["sleep", "60"], env=environment) as process:
        deadline = time.monotonic() + 10
        while str(tmp_path / "a:b") not in orphans.run_dirs():
            assert time.monotonic() < deadline
        process.kill()


def test_doctor_has_a_line_for_each_check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.kvm, "usable", lambda: {"usable": False, "reason": "no /dev/kvm"})
    monkeypatch.setattr(doctor.lab, "missing_packages", lambda: ["tcpdump"])
    monkeypatch.setattr(doctor.lifecycle, "port_owner", lambda port, __: "pid 1 (x)" if port == 5000 else None)
    monkeypatch.setattr(doctor, "_FEATURES", (("widgets", ["false"], "modprobe widget"),))
    monkeypatch.setattr(doctor.prune, "leftovers", lambda *__: [prune.Leftover(Path("/x"), None, "gone")])
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert doctor.main(["-o", "json"]) == 1
    found = {one["check"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["packages"] == {
        "check": "packages", "result": "failed", "found": "missing: tcpdump", "remedy": "agentlab setup"
    }  # fmt: skip
    assert found["KVM"]["result"] == found["ports"]["result"] == found["leftovers"]["result"] == "warning"
    assert "5000/tcp by pid 1 (x)" in found["ports"]["found"]
    assert all(bool(one["remedy"]) == (one["result"] != "ok") for one in found.values())
    assert doctor.main([]) == 1
    assert len(capsys.readouterr().out.splitlines()) == len(found)
    assert doctor.main(["no_such_profile"]) == 2
    monkeypatch.setattr(doctor.capacity, "measure", lambda __: {"memory_mib": 100, "cpus": 1, "disk_free_gib": 0})
    doctor.main(["ha_ipv4", "-o", "json"])
    found = {one["check"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["memory"]["result"] == found["disk"]["result"] == found["processors"]["result"] == "failed"


def completed(line: str, **environment: str) -> list[str]:
    code = f"from {PACKAGE} import main; main([])"
    env = {**os.environ, **environment, "_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "_ARGCOMPLETE_SHELL": "bash"}
    env |= {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": "/dev/stdout"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    return [word.strip() for word in done.stdout.split("\n") if word]


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("agentlab stat", {"status"}),
        ("agentlab iso ignition ", {"embed", "show", "remove"}),
        ("agentlab agent create im", {"image"}),
        ("agentlab ssh ", {"master-0", "master-1", "master-2"}),
        ("agentlab status --cluster ", {"lab"}),
        ("agentlab fault master-0 li", {"link_down"}),
        ("agentlab deploy sno_ipv4_s", {"sno_ipv4_static"}),
        ("agentlab deploy --from ", {"ready"}),
        ("agentlab snapshot restore ", {"ready"}),
        ("agentlab snapshot restore --cluster ", {"lab"}),
        ("agentlab reload hy", {"hyperkube"}),
        ("agentlab deploy --override agent-installer-n", {"agent-installer-node-agent="}),
        ("agentlab deploy --override must-gather=/etc/hostnam", {"must-gather=/etc/hostname"}),
        ("agentlab forward ", {"api", "console", "service", "proxy"}),
        ("agentlab forward api co", {"console"}),
        ("agentlab capture ", {"master-0", "master-1", "master-2", "labbm"}),
        ("agentlab capture master-1 --cluster ", {"lab"}),
        ("agentlab kubectl ", set()),
    ],
)
def test_completion(runs: Path, line: str, wanted: set[str]) -> None:
    saved = runs / "state/lab/snapshots/ready/snapshot.json"
    saved.parent.mkdir(parents=True)
    saved.touch()
    found = {word for word in completed(line, CLUSTER="lab") if not word.startswith("-")}
    assert found == wanted


def test_the_code_for_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh"):
        assert completion.main([shell]) == 0
        code = capsys.readouterr().out
        assert "agentlab" in code
        if shell == "bash":
            subprocess.run(["bash", "-n"], input=code, text=True, check=True)


def test_every_verb_has_a_parser_and_gets_no_further() -> None:
    assert {name for name in VERBS if parsers.parser_of(name) is None} == {"kubectl", "oc"}


def test_every_argument_is_explained() -> None:
    page = parsers.page()
    assert not [line for line in page.splitlines() if line.endswith("|  |")]
    assert "%(" not in page and "%%" not in page
    assert "(default: 200; with -f: 10)" in page
    assert "\n| `NODE\\|NETWORK` | " in page, "a | would end the cell"


def test_the_page_has_what_help_prints() -> None:
    """Descriptions, and what follows the options, were left out; those of clients, too."""
    sections = dict(part.split("\n", 1) for part in parsers.page().split("\n### ")[1:])
    assert "Without arguments, list those that were injected." in sections["fault"]
    assert "Exit status: 0, or the class of the failure" in sections["ci"]
    assert "Profiles name the file that it writes" in sections["mirror"]
    assert "\n    topologies:\n      sno        single node\n" in sections["swarm"]
    assert "All but a leading --cluster is for kubectl" in sections["kubectl"]
    assert "| `--cluster` NAME |" in sections["oc"]
    assert "its packets on its first network" in sections["capture"]
    assert "docs/status.schema.json" in sections["status"]
    assert sections["setup"].count("Install the packages that a lab needs") == 1
    assert sections["snapshot"].count("Delete a snapshot") == 0, "the help of an action is its description"


def test_sets_of_verbs_and_the_common_part_of_the_page_come_from_one_table() -> None:
    adopting = {name for name, verb in VERBS.items() if Trait.ADOPTS in verb.traits}
    sections = dict(part.split("\n", 1) for part in parsers.page().split("\n### ")[1:])
    assert adopting == {name for name in VERBS if "| `--adopt` |" in sections[name]}
    shown = parsers.page()
    assert "| [`power`](#power) | - | yes | yes | json, yaml |" in shown
    assert "| [`capture`](#capture) | - | yes | yes | - |" in shown
    assert "`ssh`, `console`, `capture`, `kubectl`, `oc`, `exec` and `shell` end with the exit code" in shown
