"""Roles that work without the plan of a lab, in a real run of ansible-playbook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import stages

ROOT = Path(__file__).resolve().parents[3]
INSTALL_CONFIG = {
    "apiVersion": "v1",
    "metadata": {"name": "one"},
    "baseDomain": "example.com",
    "controlPlane": {"name": "master", "replicas": 1},
    "compute": [{"name": "worker", "replicas": 0}],
    "networking": {"networkType": "OVNKubernetes", "machineNetwork": [{"cidr": "192.168.111.0/24"}]},
    "platform": {"none": {}},
    "pullSecret": '{"auths": {"example.com": {"auth": "dTpw"}}}',
    "sshKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJf0GlS9dKqrKJXd2TWZ8wHVVyfzqF0s6mqXu+4wEh9X",
}
AGENT_CONFIG = {
    "apiVersion": "v1beta1",
    "kind": "AgentConfig",
    "metadata": {"name": "one"},
    "rendezvousIP": "192.168.111.80",
}
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: admin
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: admin, user: {token: t}}]
contexts: [{name: admin, context: {cluster: one, user: admin}}]
"""


def play(folder: Path, role: str, *options: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    """Run a play of one role, with its variables `agentlab_<role>_<name>`."""
    playbook = folder / "play.yml"
    own = {f"agentlab_{role}_{name}": value for name, value in variables.items()}
    own["ansible_python_interpreter"] = sys.executable
    playbook.write_text(
        yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "vars": own, "roles": [f"agentlab.ocp.{role}"]}])
    )
    return run(folder, str(playbook), "-i", "localhost,", "-c", "local", *options)


def run(
    folder: Path, playbook: str, *options: str, environment: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[str]:
    """Run a playbook in a folder."""
    command = [str(Path(sys.executable).parent / "ansible-playbook"), *options, playbook]
    ours = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        "NO_COLOR": "1",
    }
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **ours, **environment}, capture_output=True, text=True, check=False
    )


def changed(done: subprocess.CompletedProcess[str]) -> int:
    found = re.search(r"changed=(\d+) .*failed=0", done.stdout)
    assert done.returncode == 0 and found, done.stdout + done.stderr
    return int(found[1])


def test_wait_for_takes_the_directory_of_openshift_install(tmp_path: Path) -> None:
    """It gets as far as the state file, which this directory lacks."""
    directory = tmp_path / "assets"
    directory.mkdir()
    done = play(tmp_path, "wait_for", directory=str(directory))
    assert done.returncode == 2 and "missing required arguments" not in done.stdout
    assert "both AgentConfig and NMStateConfig are empty" in done.stdout.replace("\n", " "), done.stdout
    assert (
        'level=fatal msg="both AgentConfig and NMStateConfig are empty' in (directory / "logs/wait-for.log").read_text()
    )


def test_validate_takes_a_kubeconfig(tmp_path: Path) -> None:
    """Nothing listens at this address; names and VIPs of a plan are not queried."""
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    done = play(tmp_path, "validate", kubeconfig=str(tmp_path / "kubeconfig"))
    assert done.returncode == 2 and "1 of 1 checks failed" in done.stdout and "FAIL  kubeconfig" in done.stdout, (
        done.stdout + done.stderr
    )


PLANNED = "agentlab_plan, agentlab_owner, agentlab_run_dir"


@pytest.mark.parametrize(
    ("role", "missing", "instead"),
    [
        ("configure", "agentlab_plan, agentlab_run_dir", "them"),
        ("hypervisor", PLANNED, "them"),
        ("add_nodes", PLANNED, "them"),
        ("networks", "agentlab_plan, agentlab_owner", "agentlab_networks_networks"),
        ("nodes", "agentlab_plan, agentlab_owner", "agentlab_nodes_nodes"),
        ("services", PLANNED, "agentlab_services_services"),
        ("boot", PLANNED, "agentlab_boot_nodes and agentlab_boot_image"),
        ("destroy", PLANNED, "agentlab_destroy_cluster"),
        ("ipi", "agentlab_plan, agentlab_run_dir", "agentlab_ipi_plan and agentlab_ipi_directory"),
        ("agent_image", "agentlab_run_dir", "agentlab_agent_image_directory"),
        ("wait_for", "agentlab_run_dir", "agentlab_wait_for_directory"),
        ("validate", "agentlab_run_dir", "agentlab_validate_kubeconfig"),
        ("gather", "agentlab_run_dir", "agentlab_gather_directory"),
    ],
)
def test_a_role_without_its_input_names_the_ways_to_give_it(
    tmp_path: Path, role: str, missing: str, instead: str
) -> None:
    done = play(tmp_path, role)
    wanted = f"agentlab.ocp.{role} lacks {missing}: run the role agentlab.ocp.plan before it, on the same host, or set {instead}"
    assert done.returncode == 2 and f'"msg": "{wanted}"' in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
def test_agent_image_takes_two_files(tmp_path: Path) -> None:
    (tmp_path / "install.yaml").write_text(yaml.safe_dump(INSTALL_CONFIG))
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(AGENT_CONFIG))
    given: dict[str, Any] = {
        "directory": str(tmp_path / "one"),
        "install_config": str(tmp_path / "install.yaml"),
        "agent_config": str(tmp_path / "agent.yaml"),
        "targets": ["cluster-manifests"],
        "release": "registry.example.com/ocp/release:4.20.1",
        "release_version": "4.20.1",
    }
    assert changed(play(tmp_path, "agent_image", **given)) > 0
    manifest = yaml.safe_load((tmp_path / "one/cluster-manifests/agent-cluster-install.yaml").read_text())
    assert manifest["metadata"]["name"] == "one"
    assert changed(play(tmp_path, "agent_image", **given)) == 0
    assert changed(play(tmp_path, "agent_image", "--check", "--diff", **given)) == 0


def test_each_play_has_the_plan_of_its_own_cluster(tmp_path: Path) -> None:
    """A second cluster got the first one's. Without a run directory, it is in `runs` of the current one."""

    def one(name: str) -> dict[str, Any]:
        return {
            "hosts": "localhost", "gather_facts": False, "roles": ["agentlab.ocp.plan"],
            "vars": {"agentlab_cluster": name, "agentlab_profile": "sno_ipv4", "ansible_python_interpreter": sys.executable},
            "tasks": [{"ansible.builtin.debug": {"msg": "{{ agentlab_plan.cluster.domain }} in {{ agentlab_run_dir }}"}}],
        }  # fmt: skip

    (tmp_path / "play.yml").write_text(yaml.safe_dump([one("first"), one("second"), one("first")]))
    done = run(tmp_path, "play.yml", environment={"PWD": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r'"msg": "(\w+)\.test\.metalkube\.org in ([^"]*)"', done.stdout)
    assert found == [(name, f"{tmp_path}/runs/{name}") for name in ("first", "second", "first")]


def plays(folder: Path, *given: dict[str, Any], options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run plays on this host, without an inventory."""
    here = {"hosts": "localhost", "gather_facts": False}
    (folder / "play.yml").write_text(yaml.safe_dump([{**here, **one} for one in given]))
    interpreter = ["-e", f"ansible_python_interpreter={sys.executable}"]
    return run(folder, "play.yml", *interpreter, *options, environment={"PWD": str(folder)})


def planning(name: str, profile: str = "sno_ipv4", **more: str) -> dict[str, Any]:
    """The role plan with variables of its own, as the example in its README."""
    return {
        "role": "agentlab.ocp.plan",
        "vars": {"agentlab_plan_cluster": name, "agentlab_plan_profile": profile, **more},
    }


CONFIGURE = {"role": "agentlab.ocp.configure"}
TWO = [planning("a1"), CONFIGURE, planning("a2", "compact_ipv4"), CONFIGURE]


def static(entry: Mapping[str, Any], way: str = "import_role") -> dict[str, Any]:
    """A task with the role of an entry of `roles`."""
    return {f"ansible.builtin.{way}": {"name": entry["role"]}, **{key: entry[key] for key in entry if key != "role"}}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([{"roles": TWO}], id="one play"),
        pytest.param([{"tasks": [static(one) for one in TWO]}], id="imported"),
        pytest.param([{"tasks": [static(one, "include_role") for one in TWO]}], id="included"),
        pytest.param([{"roles": [one]} for one in TWO], id="a play each"),
    ],
)
def test_roles_follow_the_plan_that_ran_last(tmp_path: Path, given: list[dict[str, Any]]) -> None:
    """They wrote to the run directory of the default cluster, did not find one, or were not called for the second cluster."""
    done = plays(tmp_path, *given)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["a1", "a2"]
    for name, replicas in (("a1", 1), ("a2", 3)):
        written = yaml.safe_load((tmp_path / f"runs/{name}/install-config.yaml").read_text())
        assert (written["metadata"]["name"], written["controlPlane"]["replicas"]) == (name, replicas)
        assert (tmp_path / f"runs/{name}/ssh/id_ecdsa").exists() and (tmp_path / f"runs/{name}/tls/ca.crt").exists()


def test_the_first_of_two_clusters_again(tmp_path: Path) -> None:
    """Ansible calls a role with the same variables once in a play, unless the role allows more: `destroy` had the second cluster's plan."""
    seen = {"ansible.builtin.debug": {"msg": "SEEN {{ agentlab_plan.cluster.name }} {{ agentlab_run_dir }}"}}
    done = plays(tmp_path, {"roles": [planning("a1"), planning("a2"), planning("a1")], "tasks": [seen]})
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"SEEN (\w+) ([^\"]+)", done.stdout) == [("a1", f"{tmp_path}/runs/a1")]


def test_destroy_removes_the_records_of_its_own_cluster(tmp_path: Path) -> None:
    """It read and removed `runs/ostest/state.json`."""
    state = tmp_path / "runs/ostest/state.json"
    state.parent.mkdir(parents=True)
    state.write_text('{"created": [{"kind": "network", "name": "of-another"}]}')
    hypervisor = {"kind": "local", "state_dir": str(tmp_path / "state")}
    (tmp_path / "p.yml").write_text(yaml.safe_dump({"topology": "sno", "hypervisor": hypervisor}))
    roles = [planning("a2", str(tmp_path / "p.yml")), {"role": "agentlab.ocp.destroy"}]
    done = plays(tmp_path, {"roles": roles}, options=("--check", "--diff"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ostest" not in done.stdout and "of-another" not in done.stdout, done.stdout


def test_own_tasks_read_the_run_directory_of_the_plan(tmp_path: Path) -> None:
    """Before the plan, it is the default one; after roles that are included and in later plays, the fact has it."""
    seen = [
        {"ansible.builtin.debug": {"msg": "SEEN {{ agentlab_run_dir }} {{ agentlab_planned.run_dir | default('-') }}"}}
    ]
    included = [
        static(planning("a3"), "include_role"),
        {"ansible.builtin.debug": {"msg": "SEEN {{ agentlab_planned.run_dir }} -"}},
    ]
    there = {"agentlab_run_dir": f"{tmp_path}/there"}
    done = plays(
        tmp_path,
        {"pre_tasks": seen, "roles": [planning("a1")], "tasks": seen},
        {"roles": [planning("a2", **there)], "tasks": seen},
        {"tasks": included},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    runs = f"{tmp_path}/runs"
    assert re.findall(r"SEEN (\S+) ([^\"\s]+)", done.stdout) == [
        (f"{runs}/ostest", "-"), (f"{runs}/a1", f"{runs}/a1"), (f"{tmp_path}/there", f"{tmp_path}/there"), (f"{runs}/a3", "-"),
    ]  # fmt: skip


def test_a_run_directory_other_than_that_of_the_plan_is_refused(tmp_path: Path) -> None:
    """It is set for the play, and another one for the role plan."""
    roles = ["configure", "hypervisor", "services", "boot", "destroy", "ipi", "agent_image", "wait_for", "validate", "gather"]  # fmt: skip
    tasks = [
        {
            "block": [static({"role": f"agentlab.ocp.{role}"}, "include_role")],
            "rescue": [{"ansible.builtin.debug": {"msg": "{{ ansible_failed_result.msg }}"}}],
        }
        for role in roles
    ]
    planned = planning("a2", agentlab_run_dir=f"{tmp_path}/other")
    done = plays(tmp_path, {"vars": {"agentlab_run_dir": f"{tmp_path}/one"}, "roles": [planned], "tasks": tasks})
    found = re.findall(r'"msg": "agentlab_run_dir of agentlab.ocp.(\w+) is (.*)"', done.stdout)
    reason = f"'{tmp_path}/one', but the role agentlab.ocp.plan has planned the cluster a2 in '{tmp_path}/other': set the same for both"
    assert dict(found) == dict.fromkeys(roles, reason), done.stdout + done.stderr


def test_each_play_has_the_plan_of_its_own_input(tmp_path: Path) -> None:
    """A second play with another profile, or with overrides, got the first one's."""
    other = {"agentlab_profile": "compact_ipv4"}
    overrides = {"agentlab_plan_overrides": {"agent-installer-orchestrator": "quay.io/mine/one:1"}}
    plays = [
        {
            "hosts": "localhost", "gather_facts": False, "roles": ["agentlab.ocp.plan"],
            "vars": {"agentlab_profile": "sno_ipv4", "ansible_python_interpreter": sys.executable, **given},
            "tasks": [
                {"ansible.builtin.debug": {"msg": "SEEN {{ agentlab_plan.nodes | length }} {{ agentlab_plan.release.payload_overrides | list }}"}}
            ],
        }
        for given in ({}, {}, other, {**other, **overrides})
    ]  # fmt: skip
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays))
    done = run(tmp_path, "play.yml", environment={"PWD": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    component = "['agent-installer-orchestrator']"
    assert re.findall(r"SEEN (\d) (.*)\"", done.stdout) == [("1", "[]"), ("1", "[]"), ("3", "[]"), ("3", component)]
    assert re.findall(r": Plan\] \*+\n(\w+)", done.stdout) == ["changed", "skipping", "changed", "changed"]


def test_media_are_taken_out_by_the_plan_of_the_cluster(tmp_path: Path) -> None:
    """With a hypervisor that is reached by ssh, the second wait had the first one's plan there."""
    hypervisor = {"kind": "ssh", "host": "lab.example.com", "state_dir": str(tmp_path / "state")}
    (tmp_path / "p.yml").write_text(yaml.safe_dump({"topology": "sno", "hypervisor": hypervisor}))
    seen = {"ansible.builtin.debug": {"msg": "SEEN {{ agentlab_plan.cluster.name }}"}}
    plays: list[dict[str, Any]] = []
    for name in ("first", "second"):
        plays.append({"import_playbook": "agentlab.ocp.wait", "vars": {"agentlab_cluster": name}})
        plays.append({"hosts": "hypervisors", "gather_facts": False, "tasks": [seen]})
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays))
    given = ["-e", f"agentlab_profile={tmp_path}/p.yml", "-e", "ansible_connection=local", "--check",
             "-e", f"ansible_python_interpreter={sys.executable}"]  # fmt: skip
    done = run(tmp_path, "play.yml", *given, environment={"PWD": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"SEEN (\w+)", done.stdout) == ["first", "second"]


def test_a_second_cluster_has_its_own_hosts_only(tmp_path: Path) -> None:
    """Hypervisors and the observer of the first cluster stayed in the groups of the inventory, in which every play for the second ran."""
    first = {"kind": "ssh", "host": "lab.example.com", "address": "192.0.2.1", "state_dir": str(tmp_path / "one")}
    further = {"name": "h2", "kind": "ssh", "host": "lab2.example.com", "address": "192.0.2.2"}
    profiles = {
        "first": {"topology": "sno", "hypervisor": first, "hypervisors": [further]},
        "second": {"topology": "sno", "hypervisor": {"kind": "local", "state_dir": str(tmp_path / "two")}},
    }
    plays: list[dict[str, Any]] = []
    for name in ("first", "second", "first"):
        (tmp_path / f"{name}.yml").write_text(yaml.safe_dump(profiles[name]))
        given = {"agentlab_cluster": name, "agentlab_profile": f"{tmp_path}/{name}.yml"}
        plays.append({"import_playbook": "agentlab.ocp.destroy", "vars": given})
        plays.append({"import_playbook": "agentlab.ocp.gather", "vars": given, "when": False})  # the hosts alone
    (tmp_path / "play.yml").write_text(yaml.safe_dump(plays))
    local = ["-e", "ansible_connection=local", "-e", f"ansible_python_interpreter={sys.executable}"]
    done = run(tmp_path, "play.yml", *local, "--check", environment={"PWD": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    seen = re.findall(r"^PLAY \[(Remove the cluster|Gather)\](.*?)(?=^PLAY )", done.stdout, re.MULTILINE | re.DOTALL)
    hosts = [(play, sorted(set(re.findall(r"^\w+: \[([\w-]+)\]", text, re.MULTILINE)))) for play, text in seen]
    several = [
        ("Remove the cluster", ["h2", "hypervisor"]),
        ("Gather", ["h2", "hypervisor", "observer"]),
        ("Gather", ["observer"]),
    ]
    one = [("Remove the cluster", ["hypervisor"]), ("Gather", ["hypervisor"]), ("Gather", ["hypervisor"])]
    assert hosts == [*several, *one, *several]


@pytest.mark.parametrize("playbook", ["boot", "add_nodes", "wait"])
def test_a_play_whose_only_host_is_excluded_fails(tmp_path: Path, playbook: str) -> None:
    """It is for the first of the hypervisors, and was left out when another one was in the limit."""
    (tmp_path / "hosts").write_text(
        "[hypervisors]\nh1\nh2\n[observers]\nlocalhost\n[all:vars]\nansible_connection=local\n"
    )
    done = run(tmp_path, f"agentlab.ocp.{playbook}", "-i", "hosts", "--limit", "localhost,h2")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "no host to work on: hypervisors[0] matches h1, of which --limit leaves none" in done.stdout


def test_a_swarm_without_machines_fails(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("[swarm]\ns1\ns2\n[others]\nlocalhost\n[all:vars]\nansible_connection=local\n")
    done = run(
        tmp_path, "agentlab.ocp.swarm", "-i", "hosts", "--limit", "localhost", "-e", "agentlab_swarm_url=http://x"
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "no host to work on: agentlab_swarm_machines matches s1, s2, of which --limit leaves none" in done.stdout


def test_a_playbook_without_an_inventory(tmp_path: Path) -> None:
    """By its name in the collection, from any directory: it plans in `runs` there."""
    given = ["-e", "agentlab_profile=sno_ipv4", "-e", f"ansible_python_interpreter={sys.executable}"]
    done = run(tmp_path, "agentlab.ocp.plan", *given, environment={"PWD": str(tmp_path)})
    assert done.returncode == 0 and (tmp_path / "runs/ostest/plan.yaml").exists(), done.stdout + done.stderr
    (tmp_path / "hosts").write_text("[hypervisors]\n[others]\nlocalhost ansible_connection=local\n")
    done = run(
        tmp_path, "agentlab.ocp.boot", "-i", "hosts", "--limit", "localhost", *given, environment={"PWD": str(tmp_path)}
    )
    assert done.returncode == 2 and "no host to work on" in done.stdout, done.stdout + done.stderr


def test_the_imported_playbook_alone(tmp_path: Path) -> None:
    """Its name is in the collection, so users can call it: `agentlab_inventory_group` was undefined."""
    given = ["-e", "agentlab_profile=sno_ipv4", "-e", f"ansible_python_interpreter={sys.executable}"]
    done = run(tmp_path, "agentlab.ocp.inventory", *given, environment={"PWD": str(tmp_path)})
    assert done.returncode == 0 and "Add host" in done.stdout, done.stdout + done.stderr
    seen = {"ansible.builtin.debug": {"msg": "SEEN {{ agentlab_run_dir }}"}}
    after = {"hosts": "hypervisors", "gather_facts": False, "tasks": [seen]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([{"import_playbook": "agentlab.ocp.inventory"}, after]))
    done = run(tmp_path, "play.yml", *given, "-e", "ansible_connection=local", environment={"PWD": str(tmp_path)})
    assert done.returncode == 0 and f"SEEN {tmp_path}/runs/ostest" in done.stdout, done.stdout + done.stderr


def test_stages_that_are_left_out_need_no_plan(tmp_path: Path) -> None:
    """Ansible validates the arguments of a role with a task of its own, which --tags does not leave out."""
    hypervisor = {"kind": "local", "state_dir": str(tmp_path / "state")}
    (tmp_path / "p.yml").write_text(yaml.safe_dump({"topology": "sno", "hypervisor": hypervisor}))
    given = ["-e", f"agentlab_profile={tmp_path}/p.yml", "-e", f"ansible_python_interpreter={sys.executable}"]
    done = run(tmp_path, "agentlab.ocp.plan", *given, environment={"PWD": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    inventory = ["-i", str(tmp_path / "runs/ostest/inventory.yml")]
    words = [*inventory, *stages.tags(["configure"]), *given]
    done = run(tmp_path, "agentlab.ocp.deploy", *words, environment={"PWD": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "runs/ostest/install-config.yaml").exists() and not (tmp_path / "state").exists()
