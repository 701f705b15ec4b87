"""Fault jobs are reproduced in virtual machines from what they left alone: the second run ends with the same first cause.

What is read lacks the profile and the recording of the job, which name its faults: the faults are those that the
first cause suggests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.ci.calls import Verbs
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import run_dir

from tests.e2e.conftest import ROOT, host, ports

CLUSTER = "e2ep"
LIMIT = 30 * 60
JOBS = (
    "fault-registry-down", "fault-memory", "fault-disk-size", "fault-power-off", "fault-image-missing",
)  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", JOBS)
def test_a_fault_job_is_reproduced_from_what_it_left(name: str, tmp_path: Path, guests: None) -> None:
    before, listening = host(), ports()
    expected = jobs.load(name, ROOT / "ci/jobs.yml")["expect"]
    assert expected
    left, again = tmp_path / "left", tmp_path / "again.yml"
    verbs = Verbs(CLUSTER, tmp_path)
    subprocess.run(
        [ROOT / "ci/run-job", name, "--artifacts", tmp_path, "--cluster", CLUSTER],
        timeout=LIMIT,
        umask=0o077,
        check=True,
    )
    hidden = shutil.ignore_patterns("profile.yaml", f"{name}.yml", "recording.jsonl*")
    shutil.copytree(tmp_path / name, left, ignore=hidden)

    verbs.call("reproduce", str(left), "-o", str(again))
    profile = yaml.safe_load(again.read_text())
    assert profile.get("faults") or profile["nodes"]["master-0"].keys() & {"memory_mib", "disk_gib"}, profile
    try:
        environment = {**os.environ, "CLUSTER": CLUSTER}
        deployed = subprocess.run(verbs.command("deploy", str(again)), env=environment, timeout=LIMIT, check=False)
        assert deployed.returncode == 2, "a task has failed"
        page = json.loads((run_dir(CLUSTER) / "report/run.json").read_text())
        assert re.match(expected["cause"], page["verdict"]["causes"][0]["text"])
    finally:
        verbs.call("destroy")
    assert host() == before and ports() <= listening
