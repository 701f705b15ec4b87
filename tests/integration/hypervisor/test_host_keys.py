"""A hypervisor that is reached by ssh is one whose key is known: an sshd on loopback plays it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
pytestmark = pytest.mark.skipif(not SSHD, reason="needs openssh-server")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[int]:
    """The port of an sshd with a key of its own, which takes the key `tmp_path/user`."""
    for name in ("host", "user", "other"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {tmp_path}/host\nAuthorizedKeysFile {tmp_path}/user.pub\nStrictModes no\n"
        f"PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n")  # fmt: skip
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    process = subprocess.Popen([str(SSHD), "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=subprocess.DEVNULL)
    for __ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    yield port
    process.terminate()
    process.wait()


def prepare(
    tmp_path: Path, port: int, known: str, more: str = "", key: str = "user"
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "known").write_text(known)
    profile = {
        "topology": "sno",
        "stack": "ipv4",
        "hypervisor": {"kind": "ssh", "host": "127.0.0.1", "state_dir": str(tmp_path / "state")},
    }
    (tmp_path / "p.yml").write_text(yaml.safe_dump(profile))
    environment = {
        **os.environ, "AGENTLAB_RUNS": str(tmp_path / "runs"), "ANSIBLE_REMOTE_PORT": str(port), "ANSIBLE_PRIVATE_KEY_FILE": str(tmp_path / key),
        "ANSIBLE_SSH_COMMON_ARGS": f"-o UserKnownHostsFile={tmp_path}/known -o GlobalKnownHostsFile=/dev/null -o ControlMaster=no {more}",
        "AGENTLAB_VENV": str(Path(sys.executable).parents[1]), "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
    }  # fmt: skip
    command = [str(ROOT / "bin/agentlab"), "prepare", str(tmp_path / "p.yml"), "--cluster", "agkeys", "--check"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def line(tmp_path: Path, port: int, name: str) -> str:
    kind, key, *__ = (tmp_path / f"{name}.pub").read_text().split()
    return f"[127.0.0.1]:{port} {kind} {key}\n"


@pytest.mark.parametrize("known", ["none", "another"])
def test_a_host_whose_key_is_not_known_is_refused(tmp_path: Path, server: int, known: str) -> None:
    done = prepare(tmp_path, server, "" if known == "none" else line(tmp_path, server, "other"))
    assert done.returncode != 0
    assert "ost key verification failed" in done.stdout + done.stderr
    assert "Next: compare the fingerprint of  ssh-keyscan 127.0.0.1" in done.stderr and "known_hosts" in done.stderr


def test_a_host_that_refuses_the_users_key(tmp_path: Path, server: int) -> None:
    done = prepare(tmp_path, server, line(tmp_path, server, "host"), "-o IdentitiesOnly=yes", key="other")
    assert done.returncode == 4 and "Traceback" not in done.stdout + done.stderr
    assert "Permission denied (publickey" in done.stderr
    assert "Next: let root@127.0.0.1 accept your key (ssh-copy-id root@127.0.0.1), " in done.stderr, done.stderr
    assert done.stderr.rstrip().endswith("or correct hypervisor.user of the profile")


def test_a_host_whose_key_is_known_is_reached(tmp_path: Path, server: int) -> None:
    done = prepare(tmp_path, server, line(tmp_path, server, "host"))
    assert "ost key verification failed" not in done.stdout + done.stderr
    assert "UNREACHABLE" not in done.stdout and " lost " not in done.stdout, done.stdout


@pytest.mark.slow
def test_the_option_of_a_user_wins(tmp_path: Path, server: int) -> None:
    done = prepare(tmp_path, server, "", "-o StrictHostKeyChecking=accept-new")
    assert "ost key verification failed" not in done.stdout + done.stderr
    assert (tmp_path / "known").read_text()
