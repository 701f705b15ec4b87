"""`create cluster` of a lab: what openshift-install is given of the plan, and what is left. The program is a fake; no cluster is created."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import provisioning
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import cluster_record
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.binary import InstallerBuild
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.cluster import Result
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit, RunFile

ROOT = Path(__file__).resolve().parents[2]
FAKE = """#!/bin/sh
echo "$@" >> {calls}
{body}
"""
REPORTS = """echo 'level=info msg="  master-1: deploying"' >&2"""


def planned(**values: Any) -> Any:
    return build.build(profile.complete({"topology": "compact", "flow": "ipi", **values}), "ostest")


@pytest.fixture
def given(tmp_path: Path) -> InstallerBuild:
    """A program that reports something, and the run directory of a plan."""
    directory = tmp_path / "run"
    directory.mkdir()
    return write(
        InstallerBuild(tmp_path / "openshift-install", directory, ROOT, tmp_path / "cache", "registry.test/release:1"),
        REPORTS,
    )


def write(given: InstallerBuild, body: str) -> InstallerBuild:
    given.program.write_text(FAKE.format(calls=given.program.with_name("calls"), body=body))
    given.program.chmod(0o755)
    return given


def create(plan: Any, given: InstallerBuild) -> Result:
    logs = given.directory / "logs"
    return provisioning.create(plan, given, copy=logs / "create-cluster.log", folder=logs, seconds=60)


def events(given: InstallerBuild) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (given.directory / RunFile.EVENTS).read_text().splitlines()]


def test_messages_are_in_the_log_and_the_events(given: InstallerBuild) -> None:
    plan = planned()
    assert provisioning.missing(plan, given.directory) and not (given.directory / "logs").exists()
    assert create(plan, given) == Result(changed=True)
    assert "master-1: deploying" in (given.directory / RunFile.CREATE_LOG).read_text()
    message, host = events(given)
    assert message["kind"] == "message" and (host["kind"], host["subject"], host["state"]) == (
        "host",
        "master-1",
        "deploying",
    )
    assert not provisioning.missing(plan, given.directory)
    assert create(plan, given) == Result(changed=False)


def test_a_failed_bootstrap_names_its_logs(given: InstallerBuild) -> None:
    """They are gathered from the machines of the plan, with the key of the run."""
    plan, directory = planned(), given.directory
    bundle = directory / "log-bundle-1.tar.gz"
    gathers = f"case $1 in gather) touch {bundle}; exit;; esac"
    fails = f"""echo 'level=fatal msg=late' >&2; echo '{{}}' > {directory / RunFile.INSTALLER_STATE}; exit {int(Exit.BOOTSTRAP)}"""
    made = create(plan, write(given, f"{gathers}\n{fails}"))
    assert (made.exit_code, made.bundle) == (Exit.BOOTSTRAP, str(bundle))
    assert made.error.endswith(f"late; the logs of the bootstrap are in {bundle}")
    words = given.program.with_name("calls").read_text().splitlines()[-1].split()
    address = plan["installer"]["bootstrap"]["addresses"][0]
    masters = [node["nics"][0]["addresses"][0]["ip"] for node in plan["nodes"]]
    assert words[words.index("--bootstrap") + 1] == address and len(masters) == 3
    assert [words[number + 1] for number, word in enumerate(words) if word == "--master"] == masters
    assert words[words.index("--key") + 1] == str(directory / RunFile.SSH_KEY)
    assert not cluster_record.complete(directory)


def test_what_is_refused_before_anything_is_run(given: InstallerBuild) -> None:
    path = given.directory / RunFile.INSTALL_CONFIG
    path.write_text("apiVersion: v1\nplatform: 7\n")
    for refused in (lambda: create(planned(), given), lambda: provisioning.missing(planned(), given.directory)):
        with pytest.raises(InstallerError, match="platform"):
            refused()
    assert not given.program.with_name("calls").exists()


def test_a_plan_of_another_flow(given: InstallerBuild) -> None:
    with pytest.raises(ValueError, match="this plan is not one of `flow: ipi`"):
        create(planned(flow="agent"), given)
    assert not (given.directory / "logs").exists()
