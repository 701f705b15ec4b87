"""Real sandboxes: these tests need root, libvirt and QEMU. `AGENTLAB_VM_LOCK` names a lock file to hold while guests run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

from tests import hosts

sys.path.insert(0, str(Path(__file__).parent))
import small_lab

ROOT = Path(__file__).parents[3]
TIMEOUT = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lacking = namespaces.missing_programs() if os.geteuid() == 0 else {"root": ""}
    for item in items:
        if lacking and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=f"needs {', '.join(lacking)}"))


class Lab:
    """A cluster of its own, with its state and run directories below `base`; Ansible runs on `host`."""

    def __init__(self, base: Path, cluster: str, profile: dict[str, Any], host: namespaces.RunningSandbox) -> None:
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
        running = namespaces.RunningSandbox(**json.loads((self.state_dir / "sandbox.json").read_text()))
        return [*namespaces.enter(self.host), *namespaces.enter(running)]

    def enter(self, *command: str) -> str:
        """Run a command in the cluster's sandbox and return its output."""
        return subprocess.run([*self.inside(), *command], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def base() -> Iterator[Path]:
    with hosts.directory() as path:
        yield path


@pytest.fixture
def host(base: Path) -> Iterator[namespaces.RunningSandbox]:
    """A sandbox that plays a host with a libvirt of its own, so that nothing else on this one matters."""
    with hosts.played(base, "host") as running:
        yield running


@pytest.fixture
def server(base: Path, host: namespaces.RunningSandbox) -> Iterator[Path]:
    """A client's configuration with which `ssh 127.0.0.1`, run on `host`, leads to an sshd there; its key is `user` next to it."""
    with hosts.sshd(host, base / "ssh", "127.0.0.1", 2222) as config:
        yield config


@pytest.fixture
def far(
    base: Path, host: namespaces.RunningSandbox, monkeypatch: pytest.MonkeyPatch
) -> Iterator[namespaces.RunningSandbox]:
    """Another sandbox that plays a host, which Ansible on `host` reaches by ssh at 192.0.2.2."""
    with hosts.joined(base, host) as there, hosts.sshd(there, base / "ssh", hosts.FAR, 22) as config:
        for name, value in hosts.ansible(config).items():
            monkeypatch.setenv(name, value)
        yield there


@pytest.fixture
def lab(base: Path, host: namespaces.RunningSandbox) -> Iterator[Any]:
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


@pytest.fixture
def booted(lab: Any, guests: None) -> Any:
    """A lab whose machine runs the program of `guest`, and waits for a key."""
    return small_lab.boot(lab)


@pytest.fixture
def traces(host: namespaces.RunningSandbox) -> Callable[[], str]:
    """Return what can be seen of a lab on `host`."""
    return lambda: hosts.traces(host)
