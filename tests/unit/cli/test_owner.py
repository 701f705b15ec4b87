"""Every verb that enters, reads or changes a lab asks who owns it, also on a hypervisor that is reached by ssh."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import verbs
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile, rundir

PROFILES = Path(__file__).resolve().parents[3] / "config_examples"
# A verb and arguments of each of its actions.
VERBS = {
    "status": ([],), "ssh": (["master-0"],), "power": (["master-0"], ["master-0", "off"]), "logs": ([],), "capture": (["master-0"],),
    "console": (["master-0"], ["master-0", "--screen", "--press", "enter"]), "kubectl": (["get", "nodes"],), "oc": (["get", "nodes"],),
    "forward": ([],), "conformance": ([],), "fault": (["master-0", "power_off"], []), "reload": (["agent-installer-node-agent"],),
    "snapshot": (["save", "x"], ["list"], ["restore", "x"], ["copy", "x", "y"], ["delete", "x"], ["export", "x", "f"], ["import", "f"]),
    "mirror": (["quay.io/a/b@sha256:" + "0" * 64],), "ci": (["exec", "true"],),
}  # fmt: skip
# Those of a playbook, which the role plan asks for: tests/integration/hypervisor/test_ssh_owner.py.
PLAYBOOKS = {
    "prepare", "configure", "image", "boot", "wait", "validate", "gather", "deploy", "destroy", "add-nodes",
}  # fmt: skip
# What makes, enters and changes nothing of a lab on another host.
HARMLESS = {"plan", "setup", "version", "list", "open", "kubeconfig", "matrix", "doctor", "prune", "exec", "shell"}
# These are refused by the kind of the hypervisor.
LOCAL_ONLY = {"fault", "reload", "snapshot", "mirror"}


@pytest.fixture
def another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run directory of cluster `lab` on `hyper`, where another run directory owns a cluster of that name."""
    chosen = profile.load("sno_ipv4", PROFILES)
    chosen["hypervisor"] |= {"kind": "ssh", "host": "hyper", "user": "root", "state_dir": str(tmp_path / "state")}
    run_dir = tmp_path / "runs/lab"
    for folder in ("auth", "ssh"):
        (run_dir / folder).mkdir(parents=True)
    (run_dir / rundir.PLAN).write_text(rundir.dump(build.build(chosen, "lab")))
    (run_dir / "ssh/id_ecdsa").write_text("key")
    (run_dir / "auth/kubeconfig").write_text(yaml.safe_dump({"clusters": [], "users": []}))
    theirs = {
        "cluster": "lab", "run_dir": "/elsewhere/runs/lab", "uid": 0, "user": "root", "host": "other", "plan": "0" * 64,
        "mark": "123e4567-e89b-42d3-a456-426614174000", "kept": False,
    }  # fmt: skip
    (tmp_path / "bin").mkdir()
    for name in ("ssh", "kubectl", "oc", "tcpdump", "sudo"):
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\necho '{json.dumps(theirs)}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("AGENTLAB_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_verb_is_here() -> None:
    assert VERBS.keys() | PLAYBOOKS | HARMLESS == verbs.LAB.keys() | {"mirror"}


@pytest.mark.parametrize(("verb", "action"), [(verb, action) for verb, actions in VERBS.items() for action in actions])
def test_a_cluster_of_another_on_a_hypervisor_by_ssh(
    another: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], verb: str, action: list[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execvp", lambda __, command: started.append(command) or os._exit)
    state = another / "state/lab"
    if verb in LOCAL_ONLY:  # a directory of that name here, which is of another cluster
        (state / "snapshots/.agentlab-temp-x").mkdir(parents=True)
    before = sorted(another.rglob("*"))
    own = ["--cluster", "lab"]
    argv = [verb, *own, *action] if verb in ("kubectl", "oc") else [verb, *action, *own]
    if verb == "ci":
        argv = [verb, action[0], *own, "--artifacts", str(another / "out"), *action[1:]]
    status, err = cli.main(argv), capfd.readouterr().err
    assert status not in (0, None) and not started and "Traceback" not in err, err
    if verb in LOCAL_ONLY:
        assert any(text in err for text in ("on this host", "on another host", "kind: sandbox")), err
    else:
        assert "run directory /elsewhere/runs/lab" in err and f"run directory {another}/runs/lab" in err, err
    assert [path for path in sorted(another.rglob("*")) if "out" not in path.parts] == before
