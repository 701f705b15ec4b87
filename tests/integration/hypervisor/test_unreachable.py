"""A hypervisor that ssh does not reach: each verb ends soon, with one message that names host, field and remedy. No machine is started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
NETWORK = """
set -e
ip link set lo up
ip link add near type veth peer name far
ip address add 192.0.2.1/24 dev near
ip link set near up
ip link set far up
ip neighbour add 192.0.2.7 lladdr 02:00:00:00:00:07 dev near
exec "$0" "$@"
"""
"""A network namespace in which nothing answers at 192.0.2.7, not even that it is not there, and in which no name resolves."""
SECONDS = 240
"""ssh's limit to connect is 3 s here; the rest is the start of Ansible on a busy machine. A wait that continues takes an hour."""
Agentlab = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def agentlab(tmp_path: Path) -> Agentlab:
    """Runs a verb with a hypervisor that is reached by ssh at `host`."""
    environment = {
        **os.environ, "AGENTLAB_RUNS": str(tmp_path / "runs"), "AGENTLAB_VENV": str(Path(sys.executable).parents[1]), "ANSIBLE_REMOTE_PORT": "1",
        "ANSIBLE_NOCOLOR": "1", "ANSIBLE_TIMEOUT": "3", "ANSIBLE_SSH_ARGS": "-F /dev/null -o ControlMaster=no",
    }  # fmt: skip

    def run(verb: str, host: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
        hypervisor = {"kind": "ssh", "host": host, "user": "root", "state_dir": str(tmp_path / "state")}
        (tmp_path / "p.yml").write_text(yaml.safe_dump({"topology": "sno", "stack": "ipv4", "hypervisor": hypervisor}))
        command = [str(ROOT / "bin/agentlab"), verb, str(tmp_path / "p.yml"), "--cluster", "agaway"]
        begin = time.monotonic()
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", NETWORK, *command],
            env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert time.monotonic() - begin < SECONDS and "Traceback" not in done.stdout + done.stderr
        return done

    return run


REFUSED = (
    "Failed to connect to the host via ssh: ssh: connect to host 127.0.0.1 port 1: Connection refused\n"
    "     Next: start root@127.0.0.1 and its sshd, or correct hypervisor.host of the profile; "
    "it is reached once this works: ssh root@127.0.0.1 true"
)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["prepare", "image", "boot", "wait", "validate", "deploy", "destroy"])
def test_a_verb_that_needs_it_fails(agentlab: Agentlab, tmp_path: Path, verb: str) -> None:
    """`wait` waited for an hour, `image` had written manifests when it failed with advice about a resolver."""
    done = agentlab(verb)
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stderr.count("first failure: ") == 1 and REFUSED in done.stderr, done.stderr
    made = {path.name for path in (tmp_path / "runs/agaway").iterdir()}
    assert made <= {"profile.yaml", "plan.yaml", "plan.schema.json", "inventory.yml", "secrets.json", "logs", "report"}
    assert not (tmp_path / "state").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "made"), [("configure", "install-config.yaml"), ("gather", "report/summary.txt")])
def test_a_verb_that_works_without_it_warns(agentlab: Agentlab, tmp_path: Path, verb: str, made: str) -> None:
    done = agentlab(verb)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("\nwarning: ") == 1 and REFUSED in done.stderr, done.stderr
    assert (tmp_path / "runs/agaway" / made).exists()


@pytest.mark.parametrize(
    ("host", "reason", "step"),
    [
        ("192.0.2.7", "timed out", "Next: start root@192.0.2.7 and its sshd, or correct hypervisor.host of the profile"),
        ("nowhere.invalid", "Could not resolve hostname nowhere.invalid", "Next: correct hypervisor.host of the profile: "),
    ],
)  # fmt: skip
def test_each_reason_has_its_remedy(agentlab: Agentlab, host: str, reason: str, step: str) -> None:
    """A key that is refused, unknown or has changed: test_host_keys.py."""
    done = agentlab("boot", host)
    assert done.returncode == 4, done.stdout + done.stderr
    assert reason in done.stderr and step in done.stderr and host in done.stderr, done.stderr
