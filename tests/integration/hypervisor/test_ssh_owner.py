"""The owner of a cluster on a hypervisor that is reached by ssh: an sshd in a sandbox of ours, which has a libvirt of its own, plays it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PORT = 2222
Agentlab = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(base: Path, host: namespaces.RunningSandbox, server: Path) -> Callable[[str], Agentlab]:
    """Gives `agentlab` as it is called in a checkout on `host`, whose hypervisor is `host` by ssh."""
    programs = base / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {server} "$@"\n')
    (programs / "ssh").chmod(0o755)

    def of(name: str) -> Agentlab:
        env = {
            **os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "AGENTLAB_RUNS": str(base / name / "runs"),
            "AGENTLAB_VENV": str(Path(sys.executable).parents[1]), "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
            "ANSIBLE_SSH_ARGS": f"-F {server} -o ControlMaster=no", "ANSIBLE_NOCOLOR": "1",
        }  # fmt: skip

        def agentlab(
            verb: str, *options: str, user: str = "", profile: dict[str, Any] | None = None
        ) -> subprocess.CompletedProcess[str]:
            given = []
            if profile is not None:
                path = base / f"{name}.yml"
                hypervisor = {"kind": "ssh", "host": "127.0.0.1", "user": "root", "state_dir": str(base / "state")}
                path.write_text(yaml.safe_dump({**profile, "hypervisor": hypervisor}))
                given = [str(path)]
            command = [
                *namespaces.enter(host),
                str(ROOT / "bin/agentlab"),
                verb,
                *given,
                "--cluster",
                "agtest",
                *options,
            ]
            return subprocess.run(
                command, capture_output=True, text=True, env={**env, "SUDO_UID": user}, timeout=300, check=False
            )

        return agentlab

    return of


def test_another_checkout_or_user_is_refused_by_every_verb(checkout: Callable[[str], Agentlab], base: Path) -> None:
    one, other, sno = checkout("a"), checkout("b"), {"topology": "sno", "stack": "ipv4"}
    done = one("prepare", profile=sno)
    assert done.returncode == 0, done.stdout + done.stderr
    made = sorted((base / "state").rglob("*"))
    marker = json.loads((base / "state/agtest/owner.json").read_text())
    assert marker["run_dir"] == str(base / "a/runs/agtest")
    mine, theirs = f"run directory {base}/a/runs/agtest", f"run directory {base}/b/runs/agtest"
    verbs = ("prepare", "configure", "image", "boot", "wait", "validate", "gather", "deploy", "destroy")
    wrong = []
    for verb, options in [
        *((verb, ()) for verb in verbs),
        ("power", ("master-0",)),
        ("power", ("master-0", "off")),
        ("console", ("master-0",)),
    ]:
        done = other(verb, *options, profile=sno if verb in verbs else None)
        if done.returncode not in (1, 2) or not all(
            text in done.stderr for text in (mine, theirs, "agentlab prepare --adopt --cluster agtest")
        ):
            wrong.append((verb, done.returncode, done.stdout[-2000:], done.stderr[-2000:]))
        # Nothing was made in its run directory but what a plan is.
        assert (
            not (base / "b/runs/agtest/state.json").exists()
            and not (base / "b/runs/agtest/install-config.yaml").exists()
        ), verb
    for verb in ("configure", "wait", "destroy"):
        done = one(verb, user="1001")
        if done.returncode not in (1, 2) or "(uid 1001)" not in done.stderr:
            wrong.append((verb, done.returncode, done.stdout[-2000:], done.stderr[-2000:]))
    assert not wrong
    assert (
        sorted((base / "state").rglob("*")) == made
        and json.loads((base / "state/agtest/owner.json").read_text()) == marker
    )

    assert one("configure").returncode == 0
    done = one("console", "master-0")
    assert done.returncode == 1 and "cannot open" in done.stderr and "sudo" not in done.stderr, (
        done.stderr
    )  # it has not booted
    done = one("destroy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (base / "state").exists()


def test_the_run_directory_is_usable_while_a_hypervisor_is_unreachable(
    checkout: Callable[[str], Agentlab], server: Path, base: Path
) -> None:
    one, sno = checkout("a"), {"topology": "sno", "stack": "ipv4"}
    server.write_text(server.read_text().replace(str(PORT), "1"))
    done = one("configure", profile=sno)
    assert done.returncode == 0 and (base / "a/runs/agtest/install-config.yaml").exists(), done.stdout + done.stderr
    assert "ignored" in done.stdout and "Connection refused" in done.stdout
    assert "\nwarning: Check the owner of the cluster on the hypervisor [localhost]: " in done.stderr
    assert done.stderr.rstrip().endswith("it is reached once this works: ssh root@127.0.0.1 true"), done.stderr
    done = one("power", "master-0")
    assert (
        done.returncode == 1
        and "cannot be asked whose cluster agtest is" in done.stderr
        and "Connection refused" in done.stderr
    ), done.stderr
    assert one("prepare", profile=sno).returncode != 0
