"""What is refused, by `bin/agentlab` as users run it, on a host of the test's own: one clear message, and an exit code that is not 0."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

sys.path.insert(0, str(Path(__file__).parent))
import guest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
CLUSTER = "agtest"


@pytest.fixture
def refused(base: Path, host: namespaces.RunningSandbox) -> Iterator[Any]:
    """Runs a verb, which must fail, with a profile; returns what it last printed on the standard error stream."""
    env = {**os.environ, "AGENTLAB_RUNS": str(base / "runs"), "AGENTLAB_VENV": str(Path(sys.executable).parents[1])}

    def agentlab(verb: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = [*namespaces.enter(host), str(ROOT / "bin/agentlab"), verb, "--cluster", CLUSTER, *options]
        return subprocess.run(command, capture_output=True, text=True, env=env, timeout=180, check=False)

    def run(verb: str, profile: dict[str, Any] | None = None, status: int = 2, *options: str) -> str:
        given = []
        if profile is not None:
            path = base / "profile.yml"
            path.write_text(
                yaml.safe_dump(
                    {**profile, "hypervisor": {"state_dir": str(base / "state"), **profile.get("hypervisor", {})}}
                )
            )
            given = [str(path)]
        done = agentlab(verb, *given, *options)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stderr.rstrip().splitlines()[-1] if status else done.stdout

    yield run
    agentlab("destroy")


def enter(host: namespaces.RunningSandbox, *command: str) -> None:
    subprocess.run([*namespaces.enter(host), *command], check=True, capture_output=True)


def test_a_subnet_that_the_host_has_a_route_to(refused: Any, host: namespaces.RunningSandbox) -> None:
    enter(host, "ip", "link", "add", "br9", "type", "bridge")
    enter(host, "ip", "address", "add", "192.168.111.7/24", "dev", "br9")
    enter(host, "ip", "link", "set", "br9", "up")
    assert refused("prepare", {"hypervisor": {"route": True}}) == (
        "first failure: Create the sandbox [hypervisor]: 192.168.111.0/24 overlaps with this host's route to 192.168.111.0/24 by br9: "
        "choose other networks, or hypervisor.route: false"
    )


def test_a_subnet_that_another_bridge_has(refused: Any, host: namespaces.RunningSandbox) -> None:
    enter(host, "ip", "link", "add", "br9", "type", "bridge")
    enter(host, "ip", "address", "add", "192.168.111.7/24", "dev", "br9")
    enter(host, "ip", "link", "set", "br9", "up")
    reported = refused("prepare", {"hypervisor": {"kind": "local"}})
    assert reported == (
        "first failure: Create the networks [hypervisor]: network agtestbm: 192.168.111.0/24 is in use on this host by br9: choose another (network.ipv4)"
    )


def test_a_port_that_another_process_has(refused: Any, host: namespaces.RunningSandbox) -> None:
    other = subprocess.Popen(
        [*namespaces.enter(host), sys.executable, "-m", "http.server", "5000", "--bind", "0.0.0.0"],
        stderr=subprocess.DEVNULL,
    )
    try:
        reported = refused("prepare", {"hypervisor": {"kind": "local"}})
    finally:
        other.terminate()
        other.wait()
    assert reported.startswith(
        "first failure: Start BMCs, registry, file server and time server [hypervisor]: registry: port 5000/tcp is used by pid "
    )
    assert reported.endswith("http.server 5000 --bind 0.0.0.0): stop it, or choose another port")


def test_a_bmc_that_refuses_and_an_image_that_is_not_there(refused: Any, base: Path) -> None:
    profile = {"nodes": {"master-0": {"bmc": {"password": "wrong"}}}}
    refused("prepare", profile, 0)
    image = base / "runs" / CLUSTER / "agent.x86_64.iso"
    reported = refused("boot")
    task = "first failure: Boot by redfish [hypervisor]: "
    assert reported == f"{task}{image}: no such image: agentlab image --cluster agtest"
    guest.iso(image, "an image")
    reported = refused("boot")
    assert reported.startswith(f"{task}BMC of master-0 (redfish-virtualmedia+https://192.168.111.1:8000/")
    assert reported.endswith(": it refuses the credentials (HTTP 401): give others (nodes.master-0.bmc)")


def test_a_bmc_that_does_not_answer(refused: Any, base: Path) -> None:
    refused("prepare", {}, 0)
    guest.iso(base / "runs" / CLUSTER / "agent.x86_64.iso", "an image")
    refused(
        "exec",
        None,
        0,
        "--",
        "sh",
        "-c",
        f"kill $(sed 's/.*\"pid\": //; s/,.*//' {base}/state/{CLUSTER}/processes/bmc.json); sleep 1",
    )
    reported = refused("boot")
    assert (
        reported == f"     Next: {ROOT}/bin/agentlab prepare --cluster {CLUSTER}  # starts the lab's stopped services"
    )
    failure = json.loads((base / "runs" / CLUSTER / "logs/failure.json").read_text())["message"]
    assert failure.startswith("BMC of master-0 (redfish-virtualmedia+https://192.168.111.1:8000/")
    assert failure.endswith("): cannot connect: Connection refused")


def test_files_that_are_not_there_or_are_invalid(refused: Any, base: Path) -> None:
    assert refused("plan", {"stak": "ipv4"}) == f"{base}/profile.yml:3:1: stak: unknown field; did you mean `stack`?"
    missing = {"installer": {"pull_secret_file": "/nowhere/pull-secret.json"}}
    assert refused("configure", missing) == (
        f"{base}/profile.yml:4:3: installer.pull_secret_file is '/nowhere/pull-secret.json': cannot be read: No such file or directory"
    )


def test_an_iso_that_cannot_be_read(tmp_path: Path) -> None:
    env = {**os.environ, "AGENTLAB_VENV": str(Path(sys.executable).parents[1])}
    junk = tmp_path / "junk.iso"
    junk.write_bytes(b"no ISO" * 10000)
    for path, reason in ((junk, "not an ISO"), (tmp_path / "none.iso", "No such file or directory")):
        done = subprocess.run(
            [ROOT / "bin/agentlab", "iso", "ignition", "show", path],
            capture_output=True,
            text=True,
            env=env,
            check=False,
        )
        assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
        assert str(path) in done.stderr and reason in done.stderr
