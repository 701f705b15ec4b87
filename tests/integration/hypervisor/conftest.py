"""Real sandboxes: these tests need root, libvirt and QEMU. `AGENTLAB_VM_LOCK` names a lock file to hold while guests run."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

ROOT = Path(__file__).parents[3]
TIMEOUT = 600
SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
PORT = 2222


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lacking = namespaces.missing_programs() if os.geteuid() == 0 else {"root": ""}
    for item in items:
        if lacking and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(lacking)}"))


class Lab:
    """A cluster of its own, with its state and run directories below `base`; Ansible runs on `host`."""

    def __init__(self, base: Path, cluster: str, profile: dict[str, Any], host: namespaces.Running) -> None:
        self.cluster, self.host = cluster, host
        self.run_dir, self.parent = base / "runs" / cluster, base / "state"
        self.run_dir.mkdir(parents=True)
        profile = {**profile, "hypervisor": {"state_dir": str(self.parent), **profile.get("hypervisor", {})}}
        source = base / f"{cluster}.yml"
        source.write_text(yaml.safe_dump(profile))
        self.plan, changes = rundir.prepare(self.run_dir, str(source), ROOT / "config_examples", cluster)
        rundir.write(changes)

    @property
    def state_dir(self) -> Path:
        return Path(self.plan["hypervisor"]["state_dir"])

    def command(self, verb: str, *options: str) -> list[str]:
        playbook = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(self.run_dir / "inventory.yml")]
        settings = ["-e", f"agentlab_cluster={self.cluster}", "-e", f"agentlab_run_dir={self.run_dir}"]
        return [*namespaces.enter(self.host), *playbook, *settings, *options, str(ROOT / "playbooks" / f"{verb}.yml")]

    def play(self, verb: str, *options: str) -> tuple[int, str]:
        """Run a playbook; return (number of changed tasks, output)."""
        result = subprocess.run(
            self.command(verb, *options),
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env=self.environment(),
            cwd=ROOT,
            umask=0o077,  # of a user who keeps their files to themselves
            check=False,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        line = next(line for line in result.stdout.splitlines() if "changed=" in line)
        return int(line.partition("changed=")[2].split()[0]), result.stdout

    def environment(self) -> dict[str, str]:
        # The run's own summary has no numbers; the recap does.
        return {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        }

    def inside(self) -> list[str]:
        """Return the start of a command line that runs the rest in the cluster's sandbox."""
        running = namespaces.Running(**json.loads((self.state_dir / "sandbox.json").read_text()))
        return [*namespaces.enter(self.host), *namespaces.enter(running)]

    def enter(self, *command: str) -> str:
        """Run a command in the cluster's sandbox and return its output."""
        return subprocess.run([*self.inside(), *command], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def base() -> Iterator[Path]:
    """A directory that QEMU's user can reach, unlike pytest's."""
    path = Path("/var/tmp") / f"agentlab-test-{os.getpid()}"
    path.mkdir()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def host(base: Path) -> Iterator[namespaces.Running]:
    """A sandbox that plays a host with a libvirt of its own, so that nothing else on this one matters."""
    name = f"agtest-host-{os.getpid()}"  # another run of these tests on this machine has one, too
    state_dir = base / "host" / name
    who = owner.Caller(owner.Owner(name, str(base), os.getuid(), "root", "lab", ""))
    namespaces.ensure(who, f"agentlab-{name}", state_dir, ["127.0.0.1"], "test")
    running = namespaces.require(name, state_dir)
    # The first client makes libvirt look for QEMU, and keep what it found.
    subprocess.run([*namespaces.enter(running), "virsh", "capabilities"], capture_output=True, check=True)
    yield running
    found = owner.read(state_dir)
    assert found
    namespaces.remove(f"agentlab-{name}", state_dir, found)


@pytest.fixture
def server(base: Path, host: namespaces.Running) -> Iterator[Path]:
    """A client's configuration with which `ssh 127.0.0.1`, run on `host`, leads to an sshd there; its key is `user` next to it."""
    if not SSHD:
        pytest.skip("needs openssh-server")
    folder = base / "ssh"
    folder.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    kind, key, *__ = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{PORT} {kind} {key}\n")
    (folder / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {PORT}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/user.pub\nStrictModes no\n"
        f"PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n"
        f"SetEnv AGENTLAB_VENV={Path(sys.executable).parents[1]} PATH={os.environ['PATH']}\n")  # fmt: skip
    (folder / "config").write_text(
        f"Host *\n  Port {PORT}\n  User root\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n"
        f"  GlobalKnownHostsFile /dev/null\n")  # fmt: skip
    command = [
        *namespaces.enter(host),
        "sh",
        "-c",
        f"mkdir -p -m 0755 /run/sshd; exec {SSHD} -D -e -f {shlex.quote(str(folder / 'sshd_config'))}",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stderr=log)
    try:
        for __ in range(200):
            if "Server listening" in (folder / "log").read_text():
                break
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.1)
        yield folder / "config"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def lab(base: Path, host: namespaces.Running) -> Iterator[Any]:
    """A factory of labs on `host`; what is left of them is removed."""
    made: list[Lab] = []

    def factory(cluster: str, profile: dict[str, Any]) -> Lab:
        made.append(Lab(base, cluster, profile, host))
        return made[-1]

    yield factory
    for one in made:
        subprocess.run(
            one.command("destroy"), capture_output=True, timeout=TIMEOUT, env=one.environment(), cwd=ROOT, check=False
        )


TRACES = r"""
ip netns list | sort
echo --links; ip -o link | cut -d: -f2 | sort
echo --addresses; ip -o address | awk '{print $2, $4}' | sort
echo --routes; ip route; ip -6 route | sed 's/ expires.*//' | grep -v ra
echo --nft; nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'
echo --mounts; cut -d' ' -f5 /proc/self/mountinfo | grep -E 'agtest|/run/netns$' | grep -v agtest-host | sort
echo --ports; ss -Hlntu | awk '{print $1, $5}' | sort
echo --forwarding; grep -r . /proc/sys/net/ipv[46]/conf/*/forwarding /proc/sys/net/ipv4/ip_forward
echo --processes; ps -eo comm= | grep -E 'libvirt|virtlog|dnsmasq|registry|chronyd|agentlab|swtpm|ovs' | sort
echo --files; ls -A /run /var/lib /var/lib/libvirt /var/log/libvirt /etc/libvirt /var/cache/libvirt 2>/dev/null
"""


@pytest.fixture
def traces(host: namespaces.Running) -> Any:
    """Return what can be seen of a lab on `host`."""

    def look() -> str:
        return subprocess.run(
            [*namespaces.enter(host), "sh", "-c", TRACES], capture_output=True, text=True, check=False
        ).stdout

    return look
