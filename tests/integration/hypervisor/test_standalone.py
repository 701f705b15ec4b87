"""Networks and machines from a few lines of YAML, without a plan."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

pytestmark = pytest.mark.slow

NETWORKS = [
    {
        "name": "agtest0",
        "subnets": [
            {
                "cidr": "192.168.250.0/24",
                "dhcp": {"start": "192.168.250.10", "end": "192.168.250.99", "lease_minutes": 60},
            }
        ],
    }
]
NODES = [
    {
        "name": "one",
        "memory_mib": 256,
        "disks": [{"size_gib": 1}, {"size_gib": 2, "bus": "scsi"}],
        "nics": [{"network": "agtest0"}],
    }
]


class Play:
    """Plays roles on the host of the tests, which has a libvirt of its own."""

    def __init__(self, base: Path, host: namespaces.RunningSandbox) -> None:
        self.base, self.enter = base, namespaces.enter(host)

    def __call__(self, roles: list[str], *options: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        shared = {"agentlab_cluster": "agtest", "agentlab_boot_image": str(self.base / "none.iso")}
        own = {
            f"agentlab_{role}_state_dir": str(self.base / "state" / "agtest")
            for role in ("networks", "nodes", "boot", "destroy")
        }
        given = {f"agentlab_{name}": value for name, value in variables.items()}
        play = {"hosts": "localhost", "gather_facts": False, "roles": [f"agentlab.ocp.{role}" for role in roles],
                "vars": {**shared, **own, **given, "ansible_python_interpreter": sys.executable}}  # fmt: skip
        return self.play(play, *options)

    def play(self, play: dict[str, Any], *options: str) -> subprocess.CompletedProcess[str]:
        (self.base / "play.yml").write_text(yaml.safe_dump([play]))
        command = [
            *self.enter,
            str(Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            "localhost,",
            "-c",
            "local",
            *options,
        ]
        environment = {**os.environ, "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
        return subprocess.run(
            [*command, str(self.base / "play.yml")],
            cwd=self.base,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def tasks(self, *tasks: dict[str, Any], **variables: Any) -> str:
        """Run modules of ours, each `{name: options}`, with these variables; return what ansible-playbook prints."""
        listed = [{f"agentlab.ocp.{name}": options for name, options in task.items()} for task in tasks]
        play = {"hosts": "localhost", "gather_facts": False, "tasks": listed,
                "vars": {**variables, "ansible_python_interpreter": sys.executable}}  # fmt: skip
        return self.play(play).stdout

    def changed(self, *given: Any, **variables: Any) -> int:
        done = self(*given, **variables)
        found = re.search(r"changed=(\d+) .*failed=0", done.stdout)
        assert done.returncode == 0 and found, done.stdout + done.stderr
        return int(found[1])

    def virsh(self, *arguments: str) -> list[str]:
        return subprocess.run(
            [*self.enter, "virsh", *arguments, "--name"], capture_output=True, text=True, check=True
        ).stdout.split()


@pytest.fixture
def play(base: Path, host: namespaces.RunningSandbox) -> Play:
    return Play(base, host)


def test_networks_and_nodes_without_a_plan(play: Play, base: Path) -> None:
    roles = ["networks", "nodes"]
    lines = {"networks_networks": NETWORKS, "nodes_nodes": NODES}
    assert play.changed(roles, **lines) == 2
    assert "agtest0" in play.virsh("net-list") and "agtest_one" in play.virsh("list", "--all")
    listed = json.loads((base / "state/agtest/state.json").read_text())["created"]
    assert [item["kind"] for item in listed] == ["state_dir", "network", "pool", "domain"]
    again = play(roles, "--diff", **lines)
    assert "changed=0" in again.stdout, again.stdout
    assert play.changed(roles, "--check", "--diff", **lines) == 0
    done = play(["boot"], boot_nodes=NODES)
    assert done.returncode == 2 and "none.iso: no such image" in done.stdout, done.stdout
    assert play.changed(["destroy"], destroy_cluster="agtest") == 1
    assert play.changed(["destroy"], destroy_cluster="agtest") == 0
    # libvirt's own chains in nftables stay, so the host is not compared as a whole.
    assert not (base / "state").exists()
    assert "agtest0" not in play.virsh("net-list", "--all") and "agtest_one" not in play.virsh("list", "--all")


def test_a_sandbox_with_network_and_services_without_a_plan(play: Play, base: Path) -> None:
    state_dir = str(base / "state" / "agtest")
    given: dict[str, Any] = {"cluster": "agtest", "state_dir": state_dir, "networks": NETWORKS}
    inside = {
        "ansible_connection": "agentlab.ocp.sandbox",
        "agentlab_sandbox": "agtest",
        "agentlab_state_dir": state_dir,
    }
    served = {**given, "services": {"http": {}, "registry": {}, "ntp": {}}, "nodes": NODES}
    assert "changed=1 " in play.tasks({"sandbox": given})
    assert "changed=2 " in play.tasks({"lab_networks": given}, {"lab_services": served}, **inside)
    assert "agtest0" not in play.virsh("net-list")
    found = play.tasks({"sandbox": given}) + play.tasks({"lab_networks": given}, {"lab_services": served}, **inside)
    assert found.count("changed=0 ") == 2, found
    assert "changed=1 " in play.tasks({"lab_destroy": {"cluster": "agtest", "state_dir": state_dir}})
    assert not (base / "state").exists()


@pytest.mark.parametrize(
    ("role", "lines", "message"),
    [
        (
            "networks",
            [{"name": "a network", "subnets": []}],
            "networks: 0.name is 'a network': must be the name of a bridge",
        ),
        (
            "networks",
            [{"name": "n", "subnets": [{"cidr": "192.168.250.1/24"}]}],
            "networks: 0.subnets.0.cidr is '192.168.250.1/24': must be a network",
        ),
        ("nodes", [{"name": "one", "vcpus": 0}], "nodes: 0.vcpus is 0: must be from 1 to"),
        ("nodes", [{"name": "one", "memory": 1}], "Supported parameters include"),
    ],
)
def test_wrong_lines_are_refused(play: Play, base: Path, role: str, lines: list[Any], message: str) -> None:
    done = play([role], **{f"{role}_{role}": lines})
    assert done.returncode == 2 and message in done.stdout, done.stdout
    assert not (base / "state").exists()
