"""What is asked while one waits, and how often."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.report import probe
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import WaitState

ROOT = Path(__file__).parents[3]
GET = (
    'time="2026-11-23T19:37:50.4Z" level=info msg="response completed" http.request.method=GET '
    'http.request.remoteaddr="{}" http.request.uri="/v2/lab/release/blobs/sha256:{}" http.response.status={} '
    "http.response.written=91\n"
)
SYSTEMCTL = r"""#!/bin/sh
shift 3
first=1
for unit; do
  [ "$first" ] || echo; first=
  case $unit in
    assisted-service.service) printf 'Id=%s\nActiveState=activating\nNRestarts=4\n' "$unit" ;;
    assisted-service-db.service) printf 'NRestarts=0\nId=%s\nActiveState=active\n' "$unit" ;;
    agent-register-cluster.service) printf 'Id=%s\nActiveState=failed\nNRestarts=0\n' "$unit" ;;
    *) printf 'Id=%s\nActiveState=inactive\nNRestarts=0\n' "$unit" ;;
  esac
done
"""
JOURNALCTL = r"""#!/bin/sh
echo "$2" >>"$ASKED"
case $2 in
  assisted-service.service) echo "$2: Main process exited, an error"; echo "2026-11-21 m=+0.1 container died, error"; echo "Error: address in use" ;;
  *) echo "nothing to complain of" ;;
esac
"""


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host whose systemctl and journalctl are scripts; a command for it runs here. Its journal notes of which unit it was asked."""
    programs = {"systemctl": SYSTEMCTL, "journalctl": JOURNALCTL, "sudo": '#!/bin/sh\nexec "$@"\n'}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.setattr(probe, "ssh", lambda run_dir, address: ("sh", "-c"))
    return tmp_path


def test_units(node: Path) -> None:
    """Every unit in order, with the error of those that do not run; only their journals are read."""
    found = probe.units(node, "192.0.2.1")
    assert list(found) == [f"{name}.service" for name in probe.NODE_ZERO_UNITS]
    assert found["assisted-service.service"] == probe.Unit("activating", 4, "Error: address in use")
    assert found["assisted-service-db.service"] == probe.Unit("active")
    assert found["agent-register-cluster.service"] == probe.Unit("failed")
    assert found["apply-host-config.service"] == probe.Unit("inactive")
    assert (node / "asked").read_text().split() == ["assisted-service.service", "agent-register-cluster.service"]


def test_a_host_that_shows_progress_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it pulls, and states that its units have not had, count; a pull that is repeated does not."""
    plan, __ = rundir.prepare(tmp_path, "sno_ipv4", ROOT / "config_examples", "ut")
    plan["services"]["directory"] = str(tmp_path)
    log, now, asked, states = tmp_path / "registry/log", [0.0], list[float](), ["activating", "failed", "activating"]
    log.parent.mkdir()

    def units(run_dir: Path, address: str) -> dict[str, probe.Unit]:
        asked.append(now[0])
        return {"assisted-service": probe.Unit(states.pop(0))}

    monkeypatch.setattr(probe.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(probe.services, "errors", lambda plan: {})
    monkeypatch.setattr(probe, "consoles", lambda plan: {})
    monkeypatch.setattr(probe, "domain_states", lambda plan: None)
    monkeypatch.setattr(probe, "units", units)
    ask, progress = probe.Probe(plan, tmp_path), list[int]()
    for step in range(0, 600, 20):
        now[0] = step
        blob = step if step < 300 else 280  # then a container that fails pulls the same again
        with log.open("a") as stream:
            stream.write(GET.format(f"192.168.111.20:4{step:04}", f"{blob:064}", 200))
            stream.write(GET.format("192.168.111.20:40001", f"{step + 1:064}", 503))
        progress.append(len(ask(WaitState()).progress))
    assert progress[0] == 1 and progress[14] == 15, "each blob"
    assert asked[0] > 280 + probe.UNITS_PACE and len(asked) == 3
    assert progress[-1] == 17, "and two states of the unit"
    assert len(ask(WaitState()).progress) == 17


def test_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that may just be booting is left alone, and later asked seldom, and no more once the service answers."""
    now, asked = [1000.0], []
    plan: dict[str, Any] = {
        "cluster": {"name": "one"},
        "rendezvous": {"node": "master-0", "ip": "192.0.2.1"},
        "hypervisor": {"kind": "ssh"},
        "nodes": [],
        "boot": {"mode": "manual"},
        "services": {"directory": str(tmp_path)},
    }

    def units(run_dir: Path, address: str) -> dict[str, probe.Unit]:
        asked.append(now[0])
        if now[0] > 1200:
            raise subprocess.TimeoutExpired("ssh", 60)
        return {"assisted-service.service": probe.Unit("failed")}

    monkeypatch.setattr(probe.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(probe.services, "errors", lambda plan: {})
    monkeypatch.setattr(probe, "units", units)
    ask = probe.Probe(plan, tmp_path)
    told = {}
    for now[0] in range(1000, 1300, 5):
        told[now[0]] = "has failed" in str(ask(WaitState()))
    assert asked[0] > 1000 + probe.UNITS_AFTER
    assert min(b - a for a, b in itertools.pairwise(asked)) > probe.UNITS_PACE
    assert not told[1100]
    assert told[1195]
    assert not told[1295], "a host that can no longer be asked has no units"
    for now[0] in range(1300, 1500, 5):
        ask(WaitState({"status": "ready", "hosts": []}))
    assert asked[-1] < 1300


def test_steps_of_a_boot_are_progress_once() -> None:
    """Another session of ssh, or the restart of a unit, adds nothing."""
    text = (
        "[    1.5] Run /init as init process\r\n"
        "[\x1b[0;32m  OK  \x1b[0m] Started \x1b[0;1;39msession-3.scope\x1b[0m - Session 3 of User core.\r\n"
        "[FAILED] Failed to start x.service\r\n[\x1b[0;32m  OK  \x1b[0m] Reached target \x1b[0;1;39mnetwork.target\x1b[0m.\r\n"
    )
    steps = probe.reached_steps({"vm": text})
    assert steps == {
        ("vm", "Started session-.scope - Session  of User core."),
        ("vm", "Reached target network.target."),
    }
    assert probe.reached_steps({"vm": text + text.replace("3", "14")}) == steps
    assert probe.reached_steps({"vm": "", "other": text}) == {("other", step) for __, step in steps}


CONSOLE = """\x1b[0m\x1b[30m\x1b[47mWelcome to GRUB!
  Booting `machine-os (Live)'
Welcome to \x1b[1magentlab machine-os 4.22.0-lab (Debian GNU/Linux 12 (bookworm))\x1b[0m!\r
[\x1b[0;32m  OK  \x1b[0m] Reached target \x1b[0;1;39mgetty.target\x1b[0m.\r
"""
ISSUE = """
\x1b[33mWaiting for services:\x1b[0m\r
  assisted-service-db.service (activating)\r
  assisted-service.service (inactive)\r
\r
master-0 login: """


def test_what_a_machine_does_while_it_starts() -> None:
    """The last boot's system, and then the last list of services on the screen."""
    assert probe.start_progress("BdsDxe: loading\r\n") == ""
    assert probe.start_progress(CONSOLE[: CONSOLE.index("Booting")]) == ""
    assert probe.start_progress(CONSOLE) == "starting agentlab machine-os 4.22.0-lab"
    rhcos = "Welcome to \x1b[0;31mRed Hat Enterprise Linux CoreOS 9.6.20250826-1\x1b[0m!\r\n"
    assert probe.start_progress(rhcos) == "starting Red Hat Enterprise Linux CoreOS 9.6.20250826-1"
    waiting = "waiting for assisted-service-db.service, assisted-service.service"
    assert probe.start_progress(CONSOLE + ISSUE) == waiting
    assert probe.start_progress(CONSOLE + ISSUE.replace("db.service", "pod.service") + ISSUE) == waiting
    assert probe.start_progress(CONSOLE + ISSUE + CONSOLE) == "starting agentlab machine-os 4.22.0-lab"


def test_a_start_is_shown_until_the_service_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line once, with the name of the host."""
    plan, __ = rundir.prepare(tmp_path, "compact_ipv4", ROOT / "config_examples", "ut")
    first, second = (node["domain"] for node in plan["nodes"][:2])
    texts = {first: CONSOLE + ISSUE, second: ""}
    now, reported = [0.0], list[str]()
    monkeypatch.setattr(probe.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(probe.services, "errors", lambda plan: {})
    monkeypatch.setattr(probe, "consoles", lambda plan: dict(texts))
    monkeypatch.setattr(probe, "domain_states", lambda plan: None)
    ask = probe.Probe(plan, tmp_path, report=reported.append)
    for now[0] in (0.0, 30.0):
        ask(WaitState())
    assert reported == ["Host master-0: waiting for assisted-service-db.service, assisted-service.service"]
    texts[second], now[0] = CONSOLE, 60.0
    ask(WaitState())
    assert reported[1:] == ["Host master-1: starting agentlab machine-os 4.22.0-lab"]
    texts[first], now[0] = CONSOLE, 90.0
    ask(WaitState({"status": "ready", "hosts": []}))
    assert len(reported) == 2


def test_consoles_are_read_from_the_last_boot_on(tmp_path: Path) -> None:
    (tmp_path / "console").mkdir()
    boots = (
        "BdsDxe: starting Boot0001\r\nKernel panic - not syncing\r\n",
        "BdsDxe: starting Boot0002\r\nall is well\r\n",
    )
    (tmp_path / "console/one.log").write_text("".join(boots), newline="")
    (tmp_path / "console/two.log").write_text(boots[0] + "x" * 2 * probe.CONSOLE_TAIL, newline="")
    refused = (
        'BdsDxe: failed to load Boot0001 "CD" from Scsi(0x0,0x1): Access Denied\r\n'
        'BdsDxe: starting Boot0003 "EFI Internal Shell" from Fv(7)\r\n'
        'BdsDxe: failed to start Boot0003 "EFI Internal Shell" from Fv(7): Security Violation\r\n'
    )
    (tmp_path / "console/three.log").write_text(boots[1] + refused, newline="")
    plan: Any = {
        "nodes": [
            {"domain": name, "console": str(tmp_path / f"console/{name}.log")}
            for name in ("one", "two", "three", "none")
        ]
    }
    found = probe.consoles(plan)
    assert found == {
        "one": " Boot0002\r\nall is well\r\n",
        "two": "x" * probe.CONSOLE_TAIL,
        "three": f" Boot0002\r\nall is well\r\n{refused}",
    }
