"""`agentlab swarm --agent`: some hosts of the swarm are run by an agent program, here the node agent simulator."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import hardware, main, page
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.programs import Programs
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import PROFILES, Settings, SwarmError
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.stats import Stats
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import overrides
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted
from ansible_collections.agentlab.ocp.tests.unit.node_agent.test_swarm import FAST

PACKAGE = "ansible_collections.agentlab.ocp.payload.node_agent.swarm"
KEPT = ("free-network-addresses", "domain-resolution", "ntp-synchronizer")


def run(settings: Settings, seconds: float = 90) -> dict[str, Any]:
    async def whole() -> dict[str, Any]:
        return await asyncio.wait_for(Swarm(settings).run(), seconds)

    return asyncio.run(whole())


def running(word: str) -> list[str]:
    """Command lines of the processes that have a word in them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in text and int(entry.parent.name) != os.getpid():
            found.append(text)
    return found


def test_programs_run_their_share_of_the_hosts(
    service: FakeAssisted, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    settings = Settings(service.url, clusters=1, topology={"compact": 1}, agent=programs / "agent", share=0.5, **FAST)
    result = run(settings)
    assert result["ends"] == {"installed": 1} and not result["errors"] and not service.errors, result["gave_up"]
    assert result["kinds"] == {"program": 2, "simulated": 1}
    assert result["program_operations"]["register"]["count"] == 2 and result["operations"]["register"]["count"] == 1
    # Its own steps, those of both kinds; what would touch the network is answered by the swarm.
    own = {"inventory", "connectivity-check", "installation-disk-speed-check", "poll interval"}
    assert own <= set(result["program_time_to_reply"]) and own <= set(result["time_to_reply"])
    assert not {f"reply {kind}" for kind in KEPT} & set(result["program_operations"])
    assert {kind for kind in KEPT if f"reply {kind}" in result["operations"]} == set(KEPT)
    text = page.page({"settings": settings.public(), "stopped": False, "left": [], **result})
    assert "runs 2 of the hosts" in text and "program: per host" in text
    # Nothing is left: no process, no directory.
    assert not running(str(tmp_path)) and not list(tmp_path.glob("agentlab-swarm-*"))


def test_the_service_sees_the_programs_with_their_identity(service: FakeAssisted, programs: Path) -> None:
    service.keep = True
    result = run(Settings(service.url, topology={"sno": 1}, agent=programs / "agent", share=1.0, **FAST))
    assert result["ends"] == {"installed": 1} and result["kinds"] == {"program": 1}
    inventory = json.loads(next(one["output"] for one in service.replies if one["step_type"] == "inventory"))
    nic = inventory["interfaces"][0]
    assert inventory["hostname"] == "swarm-0-0"
    # Its hardware is that of the profile, not this machine's.
    assert inventory["cpu"]["count"] == PROFILES["vm"].cpus and inventory["disks"]
    assert nic["mac_address"] == "02:00:00:00:00:00" and nic["ipv4_addresses"][0].startswith("10.0.0.10/")


@pytest.mark.parametrize("kind", ["reboot-for-reclaim", "download-boot-artifacts", "install", "logs-gather", "x"])
def test_steps_that_change_this_machine_do_not_reach_a_program(kind: str) -> None:
    """Upstream's agent writes a boot entry for one of them, and reboots for another."""
    answered: list[dict[str, Any]] = []

    async def awaited(_host: hardware.Host) -> None:
        """Not called."""

    programs = Programs(
        Settings("http://127.0.0.1:1"), Stats(), awaited, lambda _host, step: answered.append(step), awaited
    )
    host = SimpleNamespace(me=SimpleNamespace(host_id="x"))
    steps = [{"step_type": one, "step_id": one, "args": []} for one in (kind, "inventory")]
    passed = json.loads(programs._steps(host, json.dumps({"instructions": steps}).encode(), 0.0))
    assert [step["step_type"] for step in passed["instructions"]] == ["inventory"]
    assert [step["step_type"] for step in answered] == [kind]


def test_a_build_of_upstreams_agent_runs_a_single_node(service: FakeAssisted) -> None:
    """AGENTLAB_REAL_AGENT is what `--override` takes, as for the jobs with real programs."""
    given = os.environ.get("AGENTLAB_REAL_AGENT")
    if not given:
        pytest.skip("AGENTLAB_REAL_AGENT not set: a build of upstream's agent")
    agent = overrides.contents(Component.NODE_AGENT, given)["usr/bin/agent"]
    service.keep, service.interval = True, 1  # upstream's model has whole seconds
    result = run(Settings(service.url, topology={"sno": 1}, agent=agent, share=1.0, **FAST | {"stall": 60.0}))
    assert result["ends"] == {"installed": 1} and result["kinds"] == {"program": 1} and not result["errors"], result
    assert {"inventory", "installation-disk-speed-check"} <= set(result["program_time_to_reply"])
    assert not running("agentlab-swarm-")


def test_a_program_that_ends_is_reported(service: FakeAssisted, tmp_path: Path) -> None:
    broken = tmp_path / "agent"
    broken.write_text("#!/bin/sh\necho flag provided but not defined: -dry >&2\nexit 2\n")
    broken.chmod(0o755)
    result = run(Settings(service.url, topology={"sno": 1}, agent=broken, share=1.0, **FAST | {"stall": 2.0}))
    assert result["ends"] != {"installed": 1}
    assert list(result["gave_up"]) == ["the agent program ended with exit code 2: flag provided but not defined: -dry"]


def test_programs_end_with_the_swarm(service: FakeAssisted, programs: Path, tmp_path: Path) -> None:
    """Also when it is killed: none keeps polling a service."""
    words = [sys.executable, "-m", f"{PACKAGE}.main", "--url", service.url, "--topology", "sno", "--agent", str(programs / "agent"),
             "--share", "1", "--no-install", "--keep"]  # fmt: skip
    script = f"import sys; from {PACKAGE}.main import main; sys.exit(main())"
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words[3:]],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: any(one.get("inventory") for one in service.hosts.values()))
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    until(lambda: not running(str(tmp_path / "agentlab-swarm-")))


def until(condition: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@pytest.mark.parametrize(("number", "share", "expected"), [(10, 0.05, 1), (100, 0.05, 5), (3, 1.0, 3), (3, 0.5, 2)])
def test_a_share_of_the_hosts(number: int, share: float, expected: int) -> None:
    chosen = [hardware.begins(at, share) for at in range(number)]
    assert sum(chosen) == expected and chosen[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--agent", "/nowhere/agent"], "--agent /nowhere/agent: no such file"),
        (["--agent", "/etc/passwd"], "--agent /etc/passwd: is not executable"),
        (["--agent", sys.executable, "--share", "0"], "--share 0: must be above 0, and 1 at most"),
        (["--agent", sys.executable, "--kubernetes", "1", "--image", "a"], "--kubernetes: cannot be used with --agent"),
    ],
)
def test_bad_options(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["--url", "http://127.0.0.1:1", *words]) == 2
    assert message in capsys.readouterr().err


def test_shares_need_an_agent() -> None:
    with pytest.raises(SwarmError, match="--share nan"):
        Settings("http://127.0.0.1:1", share=float("nan"))
