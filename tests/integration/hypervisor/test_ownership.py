"""The owner of a cluster: every verb of another checkout or user is refused, and nothing is removed that does not carry the cluster's mark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
STATES = 100
Agentlab = Callable[..., subprocess.CompletedProcess[str]]


def test_generated_states(base: Path, host: namespaces.RunningSandbox) -> None:
    seed = os.environ.get("AGENTLAB_SEED", "1")
    (base / "states").mkdir()
    command = [
        *namespaces.enter(host),
        sys.executable,
        str(Path(__file__).with_name("states.py")),
        str(base / "states"),
        seed,
        str(STATES),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [one for one in found if one["wrong"]]
    outcomes = Counter(one["outcome"].partition(":")[0] for one in found)
    kinds = Counter(one["state"].partition(" ")[0] for one in found)
    assert min(kinds["sandbox"], kinds["local"], kinds["ssh"]) >= STATES / 10, kinds
    assert sum(outcomes.values()) == STATES and min(outcomes["removed"], outcomes["refused"]) >= STATES / 5, outcomes


@pytest.fixture
def checkout(base: Path, host: namespaces.RunningSandbox) -> Callable[[str], Agentlab]:
    """Gives `agentlab` as it is called in a checkout, which has run directories of its own."""

    def of(name: str) -> Agentlab:
        env = {
            **os.environ,
            "AGENTLAB_RUNS": str(base / name / "runs"),
            "AGENTLAB_VENV": str(Path(sys.executable).parents[1]),
        }

        def agentlab(
            verb: str,
            *options: str,
            user: str = "",
            profile: dict[str, Any] | None = None,
            cluster: str | None = "agtest",
        ) -> subprocess.CompletedProcess[str]:
            given = []
            if profile is not None:
                path = base / f"{name}.yml"
                path.write_text(
                    yaml.safe_dump(
                        {**profile, "hypervisor": {"state_dir": str(base / "state"), **profile.get("hypervisor", {})}}
                    )
                )
                given = [str(path)]
            command = [
                *namespaces.enter(host),
                str(ROOT / "bin/agentlab"),
                verb,
                *given,
                *(["--cluster", cluster] if cluster else []),
                *options,
            ]
            return subprocess.run(
                command, capture_output=True, text=True, env={**env, "SUDO_UID": user}, timeout=300, check=False
            )

        return agentlab

    return of


def test_two_checkouts_and_one_name(checkout: Callable[[str], Agentlab], base: Path, traces: Any) -> None:
    before = traces()
    one, other = checkout("a"), checkout("b")
    sno = {"topology": "sno", "stack": "ipv4"}
    assert other("plan", "--write", profile=sno).returncode == 0  # it makes nothing
    assert one("prepare", profile=sno).returncode == 0
    state_dir = base / "state" / "agtest"
    marker = json.loads((state_dir / "owner.json").read_text())
    listed = json.loads((base / "a/runs/agtest/state.json").read_text())
    assert listed["owner"]["mark"] == marker["mark"] and listed["stages"]["prepare"]["result"] == "ok"
    assert (marker["run_dir"], marker["uid"], marker["cluster"]) == (str(base / "a/runs/agtest"), os.getuid(), "agtest")

    mine, theirs = f"run directory {base}/a/runs/agtest", f"run directory {base}/b/runs/agtest"
    verbs = ("prepare", "configure", "image", "boot", "wait", "validate", "gather", "deploy", "destroy")
    refused = [other(verb, profile=profile) for verb in verbs for profile in (sno, {"topology": "compact"})]
    refused += [other("exec", "--", "true"), other("shell")]
    for done in refused:
        assert done.returncode in (1, 2) and "Traceback" not in done.stderr, done
        assert (
            mine in done.stderr and theirs in done.stderr and "agentlab prepare --adopt --cluster agtest" in done.stderr
        ), done.stderr
    for done in (one("prepare", user="1001"), one("destroy", user="1001"), one("exec", "--", "true", user="1001")):
        assert done.returncode in (1, 2) and "(uid 1001)" in done.stderr, done
    assert "agtest_master_0" in one("exec", "--", "virsh", "list", "--all", "--name").stdout

    done = other("prepare", "--adopt", profile={"topology": "compact"})
    assert done.returncode == 2 and "exists with a different plan" in done.stderr, done.stderr
    done = other("prepare", "--adopt", profile=sno)
    assert done.returncode == 0, done.stderr
    assert "agtest_master_0" in other("exec", "--", "virsh", "list", "--all", "--name").stdout
    assert one("destroy").returncode == 2
    assert json.loads((state_dir / "owner.json").read_text())["mark"] == marker["mark"]
    assert other("destroy").returncode == 0
    assert one("destroy").returncode == 0  # nothing is left that could have another owner
    assert traces() == before and not (base / "state").exists()


def test_all_clusters_of_the_caller(checkout: Callable[[str], Agentlab], base: Path, traces: Any) -> None:
    """`destroy --all` removes them without a trace; one of another checkout and one of another user are untouched."""
    sno = {"topology": "sno", "stack": "ipv4"}
    empty = traces()
    mine, theirs = checkout("a"), checkout("b")
    others = [(theirs, "agthree", ""), (mine, "agfour", "1001")]
    for agentlab, cluster, user in others:
        assert agentlab("prepare", profile=sno, cluster=cluster, user=user).returncode == 0

    def seen() -> list[str]:
        machines = [agentlab("exec", "--", "virsh", "list", "--all", "--uuid", cluster=name, user=user).stdout
                    for agentlab, name, user in others]  # fmt: skip
        return [traces(), *machines, *((base / "state" / name / "owner.json").read_text() for __, name, __ in others)]

    def labs() -> list[str]:
        return sorted(path.name for path in (base / "state").iterdir() if path.is_dir())

    before = seen()
    assert all(before)
    for cluster in ("agone", "agtwo"):
        assert mine("prepare", profile=sno, cluster=cluster).returncode == 0
    done = mine("destroy", "--all", "--check", cluster=None)
    assert done.returncode == 1 and labs() == ["agfour", "agone", "agthree", "agtwo"], done
    done = mine("destroy", "--all", cluster=None)
    assert done.returncode == 1 and "Traceback" not in done.stderr, done
    assert "agentlab: agfour stays: cluster agfour" in done.stderr and "(uid 1001)" in done.stderr, done.stderr
    assert "agthree" not in done.stdout + done.stderr and not re.search("agone|agtwo", done.stderr), done
    assert seen() == before and labs() == ["agfour", "agthree"]
    for agentlab, __, user in others:
        done = agentlab("destroy", "--all", user=user, cluster=None)
        assert done.returncode == 0, done
    assert traces() == empty and not (base / "state").exists()


@pytest.mark.parametrize("kind", ["sandbox", "local"])
def test_a_directory_of_others(checkout: Callable[[str], Agentlab], base: Path, kind: str, traces: Any) -> None:
    """A state directory with files that are not ours: nothing is made, and nothing is removed."""
    photo = base / "state" / "agtest" / "photos" / "t.txt"
    photo.parent.mkdir(parents=True)
    photo.write_text("mine")
    before = traces()
    one, profile = checkout("a"), {"hypervisor": {"kind": kind}}
    for __ in range(2):
        done = one("prepare", profile=profile)
        assert (
            done.returncode == 2 and f"{base}/state/agtest is not empty, and agentlab did not create it" in done.stderr
        ), done.stderr
    done = one("destroy", profile=profile)
    assert (
        done.returncode == 2 and f"{base}/state/agtest is not removed: it has files but no owner.json" in done.stderr
    ), done.stderr
    assert photo.read_text() == "mine" and traces() == before


def test_two_clusters_in_one_playbook(base: Path) -> None:
    """Each play gets the plan of its own cluster, in the directory where the user is."""
    play = """
- hosts: localhost
  gather_facts: false
  vars: {agentlab_cluster: %s, agentlab_profile: %s}
  roles: [agentlab.ocp.plan, agentlab.ocp.configure]
  tasks:
    - ansible.builtin.copy:
        content: "{{ agentlab_plan.cluster.name }} {{ agentlab_plan.cluster.topology }} {{ agentlab_run_dir }} {{ agentlab_owner.owner.cluster }}"
        dest: "{{ agentlab_run_dir }}/seen"
        mode: "0644"
"""
    project, user = base / "project", base / "user"
    project.mkdir()
    user.mkdir()
    (project / "site.yml").write_text(
        play % ("one", "sno_ipv4") + play % ("two", "compact_ipv4") + play % ("one", "sno_ipv4")
    )
    playbook = [str(Path(sys.executable).parent / "ansible-playbook"), str(project / "site.yml")]
    done = subprocess.run(
        playbook, cwd=user, env={**os.environ, "PWD": str(user)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name, topology in (("one", "sno"), ("two", "compact")):
        run_dir = user / "runs" / name
        assert (run_dir / "seen").read_text() == f"{name} {topology} {run_dir} {name}"
        assert yaml.safe_load((run_dir / "install-config.yaml").read_text())["metadata"]["name"] == name
    assert sorted(path.name for path in base.iterdir()) == ["project", "user"]


def playbook(folder: Path, name: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a playbook of the collection as a user does who has it installed: without an inventory, in his own directory."""
    settings = [option for key, value in variables.items() for option in ("-e", f"agentlab_{key}={value}")]
    command = [str(Path(sys.executable).parent / "ansible-playbook"), name, *settings, *options]
    environment = {**os.environ, "PWD": str(folder), "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_playbooks_need_no_inventory(base: Path) -> None:
    """The hypervisor comes from the plan. In check mode, so nothing is made."""
    done = playbook(base, "agentlab.ocp.prepare", "--check", profile="sno_ipv4", cluster="agtest")
    assert done.returncode == 0 and re.search(r"^hypervisor .*failed=0", done.stdout, re.MULTILINE), (
        done.stdout + done.stderr
    )
    assert list(base.iterdir()) == []


def test_playbooks_of_two_clusters(base: Path) -> None:
    """Each gets the connection, the directory and the plan of its own; a fact cache changes nothing."""
    imports = [
        {
            "ansible.builtin.import_playbook": "agentlab.ocp.gather",
            "vars": {"agentlab_cluster": name, "agentlab_profile": profile},
        }
        for name, profile in (("agone", "sno_ipv4"), ("agtwo", "compact_ipv4"), ("agone", "sno_ipv4"))
    ]
    seen = {
        "hosts": "observers",
        "gather_facts": False,
        "tasks": [
            {
                "ansible.builtin.debug": {
                    "msg": "SEEN {{ agentlab_sandbox }} {{ agentlab_run_dir }} {{ agentlab_plan.cluster.name }}"
                },
            }
        ],
    }
    (base / "site.yml").write_text(yaml.safe_dump([play for one in imports for play in (one, seen)]))
    (base / "ansible.cfg").write_text("[defaults]\nfact_caching = jsonfile\nfact_caching_connection = facts\n")
    for __ in range(2):
        done = playbook(base, "site.yml", "--check")
        assert done.returncode == 0, done.stdout + done.stderr
        found = re.findall(r"SEEN (\S+) (\S+) (\w+)", done.stdout)
        assert found == [(name, f"{base}/runs/{name}", name) for name in ("agone", "agtwo", "agone")]
    assert not (base / "runs").exists()


def test_a_play_without_its_hosts_fails(base: Path) -> None:
    done = playbook(base, "agentlab.ocp.prepare", "--check", "--limit", "localhost", profile="sno_ipv4")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "no host to work on: hypervisors matches hypervisor, of which --limit leaves none" in done.stdout


def test_a_relative_run_directory_is_refused(base: Path) -> None:
    """Ansible looks for relative paths in several places."""
    done = playbook(base, "agentlab.ocp.plan", profile="sno_ipv4", run_dir="runs/x")
    assert (
        done.returncode == 2
        and f"agentlab_run_dir is 'runs/x': must be an absolute path, such as {base}/runs/x" in done.stdout
    )
    assert list(base.iterdir()) == []
