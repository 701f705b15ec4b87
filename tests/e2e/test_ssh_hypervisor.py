"""HA with a master and two workers on another host: sandboxes play both hosts, a pair of links joins them, and ssh leads to the second.

A master and a worker are placed there by name, the other worker by memory.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

from tests import hosts
from tests.e2e.conftest import ROOT

CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"
CLUSTER = "agtest"
LIMIT = 60 * 60
NAMES = ("master-0", "master-1", "master-2", "worker-0", "worker-1")


@pytest.mark.long
def test_ha_with_machines_on_another_host(tmp_path: Path, guests: None) -> None:
    with (
        hosts.directory() as base,
        hosts.played(base, "host") as near,
        hosts.joined(base, near) as far,
        hosts.sshd(far, base / "ssh", hosts.FAR, 22) as config,
    ):
        second = {"name": "second", "kind": "ssh", "host": hosts.FAR, "user": "root", "address": hosts.FAR}
        there = base / "there"
        profile = {
            "topology": "ha",
            "hypervisor": {"address": hosts.NEAR, "state_dir": str(base / "state")},
            "hypervisors": [{**second, "state_dir": str(there)}],
            "nodes": {name: {"hypervisor": "second"} for name in ("master-1", "worker-1")},
        }
        (base / "profile.yml").write_text(yaml.safe_dump(profile))
        run_dir = base / "runs" / CLUSTER
        environment = {**os.environ, **hosts.ansible(config), "AGENTLAB_RUNS": str(base / "runs"), "CLUSTER": CLUSTER}

        def agentlab(*words: str, check: bool = True) -> str:
            command = [*namespaces.enter(near, str(ROOT)), sys.executable, "-m", CLI, *words]
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT,
                env=environment,
                check=False,
            )
            print(done.stdout)
            assert done.returncode == 0 or not check, done.stdout
            return done.stdout

        # The hosts have no way out; the payload that is built here is theirs, too.
        subprocess.run([sys.executable, "-m", CLI, "payload", "build"], check=True, timeout=LIMIT)
        before = [hosts.traces(one) for one in (near, far)]
        try:
            agentlab("deploy", str(base / "profile.yml"))
            ready = agentlab("kubectl", "get", "nodes", "--no-headers")
            assert re.findall(r"^(\S+) +(\S+) ", ready, re.MULTILINE) == [(name, "Ready") for name in NAMES]
            running = subprocess.run(
                [*namespaces.enter(far), "virsh", "list", "--name"], capture_output=True, text=True, check=True
            )
            assert sorted(running.stdout.split()) == [
                f"{CLUSTER}_{name}" for name in ("master_1", "worker_0", "worker_1")
            ]
            assert json.loads(agentlab("status", "-o", "json"))["hosts"][1]["power"] == "on"
            assert "nothing changed" in agentlab("deploy")

            shutil.rmtree(run_dir / "report")
            agentlab("gather")
            domain = f"{CLUSTER}_master_1"
            for name in (
                f"console/{domain}.log",
                f"libvirt/{domain}.xml",
                f"libvirt/qemu/{domain}.log",
                "services/second-bmc.log",
            ):
                assert (run_dir / "report" / name).stat().st_size, name
            summary = (run_dir / "report/summary.txt").read_text()
            assert "not gathered" not in summary and summary.startswith("No cause found"), summary
        finally:
            if (run_dir / "report").exists():
                shutil.copytree(
                    run_dir / "report", Path(os.environ.get("AGENTLAB_E2E_ARTIFACTS") or tmp_path) / "report"
                )
            agentlab("destroy", check=False)
        assert hosts.changes(before, [hosts.traces(one) for one in (near, far)]) == ""
        assert not (base / "state").exists() and not there.exists()
