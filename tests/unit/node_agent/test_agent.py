from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted

HOST = "11111111-2222-3333-4444-555555555555"
IE = "aaaaaaaa-2222-3333-4444-555555555555"
QUIET = ["--with-text-logging=false", "--with-journal-logging=false"]


def until(condition: Callable[[], object], seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


@pytest.fixture
def start(programs: Path, service: FakeAssisted) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []
    service.infra_envs[IE] = {"id": IE, "cluster_id": ""}

    def start_agent(*flags: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [programs / "agent", "--url", service.url + "/", "--infra-env-id", IE, "-agent-version", service.image,
                   "--host-id", HOST, "--interval", "1", "--insecure=true", *QUIET, *flags]  # fmt: skip
        process = subprocess.Popen(command, env={**os.environ, "PULL_SECRET_TOKEN": "secret", **environment})
        running.append(process)
        return process

    yield start_agent
    for process in running:
        process.kill()
        process.wait()


def step(kind: str, *args: str) -> dict[str, object]:
    return {"step_type": kind, "step_id": f"{kind}-0", "args": list(args)}


def test_registers_and_answers_steps(service: FakeAssisted, start: Callable[..., object]) -> None:
    inventory = step("inventory", HOST)
    names = step("domain-resolution", '{"domains":[{"domain_name":"localhost"}]}')
    service.instructions = [[inventory, names, step("dance"), step("inventory")], [inventory, names], [names]]
    start()
    until(lambda: len(service.replies) >= 4 and not service.instructions)
    time.sleep(0.5)
    by_type = {(reply["step_type"], reply["exit_code"]): reply for reply in service.replies}
    assert '"hostname":' in by_type["inventory", 0]["output"]
    assert by_type["dance", -1]["error"] == "failed to find action for step type dance"
    assert "accepts 1 params in args, given args []" in by_type["inventory", -1]["error"]
    # The same output is not reported twice.
    assert sum(reply["step_type"] == "domain-resolution" for reply in service.replies) == 1
    first = service.headers[0]
    assert first["x-secret-key"] == "secret" and first["discovery_agent_version"] == service.image
    assert first["x-request-id"] != service.headers[1]["x-request-id"]
    assert service.requests[0] == ("POST", f"/api/assisted-install/v2/infra-envs/{IE}/hosts")
    assert not service.errors


def test_registration_is_retried(service: FakeAssisted, start: Callable[..., object]) -> None:
    service.answers = [500]
    service.instructions = []
    start()
    until(lambda: any(method == "GET" for method, __ in service.requests))
    assert [method for method, __ in service.requests[:3]] == ["POST", "POST", "GET"]


def test_refused_indefinitely(service: FakeAssisted, start: Callable[..., subprocess.Popen[bytes]]) -> None:
    service.answers = [403]
    agent = start()
    until(lambda: service.requests)
    time.sleep(1.3)
    assert len(service.requests) == 1 and agent.poll() is None


def test_failed_poll_drops_replies(service: FakeAssisted, start: Callable[..., object]) -> None:
    names = step("domain-resolution", '{"domains":[{"domain_name":"localhost"}]}')
    service.instructions = [[names]]
    start()
    until(lambda: service.replies)
    service.answers = [200, 500]
    service.instructions = [[], [names], [names], [names]]
    until(lambda: len(service.replies) == 2)


def test_exit_registers_again(
    service: FakeAssisted, start: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    service.instructions = [[step("upgrade-agent", '{"agent_image":"registry.example/agent:2"}')]]
    tools = Path(os.environ.get("TMPDIR", "/tmp")) / f"podman-{os.getpid()}"
    tools.mkdir(exist_ok=True)
    podman = tools / "podman"
    podman.write_text(f'#!/bin/sh\necho "$@" >> {tools}/log\n')
    podman.chmod(0o755)
    start(PATH=f"{tools}:{os.environ['PATH']}")

    def posts() -> list[str]:
        return [path for method, path in service.requests if method == "POST" and path.endswith("/hosts")]

    until(lambda: len(posts()) == 2)
    assert service.replies[0]["output"] == '{"agent_image":"registry.example/agent:2","result":"success"}'
    assert (tools / "log").read_text().splitlines()[0] == "pull --quiet registry.example/agent:2"


def test_flags(programs: Path) -> None:
    def run(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([programs / "agent", *args], capture_output=True, text=True, check=False)

    help_ = run("--help")
    assert help_.returncode == 0 and "-infra-env-id string" in help_.stderr and "(default 60)" in help_.stderr
    assert run("--nonsense").returncode == 2
    assert 'level=fatal msg="Must provide a target URL"' in run(*QUIET).stderr
    assert "infra-env-id must be provided" in run("--url", "http://x", *QUIET).stderr
    assert run("--url", "http://x", *QUIET).returncode == 1
    assert run("--interval", "soon").returncode == 2
