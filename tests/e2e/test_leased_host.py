"""The workflow agentlab-e2e-generic on a leased host, with machines: a sandbox with an sshd plays the host.

One run goes from lease to installed cluster to release. In another the timeout comes while the machines install.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from junitparser import JUnitXml

from tests import hosts
from tests.ci_operator import Job
from tests.ci_registry import Registry
from tests.e2e.conftest import ROOT
from tests.integration.hypervisor.test_step_registry import ACQUIRE
from tests.unit.ci.test_registry import EXTERNAL, FOLDER
from tests.unit.ci.test_steps import ELSEWHERE

CLUSTER = "agtest"


@contextmanager
def leased(tmp_path: Path, expired: Callable[[Path], bool]) -> Iterator[Job]:
    """A job of dev-scripts that has moved. expired: whether the timeout of its setup has come; it gets the directory on the host."""
    with (
        hosts.directory() as base,
        hosts.played(base, "host") as host,
        hosts.sshd(host, base / "ssh", "127.0.0.1", 2222),
    ):
        profile = base / "profile"
        profile.mkdir()
        shutil.copy(base / "ssh/user", profile / "packet-ssh-key")
        lease = base / "lease"
        env = {
            "DEVSCRIPTS_CONFIG": "AGENT_E2E_TEST_SCENARIO=SNO_IPV4",
            "AGENTLAB_PAYLOAD": "lab",
            "AGENTLAB_CLUSTER": CLUSTER,
            "AGENTLAB_CONFIG": f"hypervisor.state_dir={base}/state",
            "AGENTLAB_HOST_DIR": str(lease),
            "AGENTLAB_DESTROY": "true",
        }
        elsewhere = {**ELSEWHERE, "ofcir-acquire": ACQUIRE}
        conditions = {"agentlab-setup": lambda: expired(lease)}
        registry = Registry.load(FOLDER, EXTERNAL)
        enter = namespaces.enter(host, str(ROOT))
        job = Job(registry, base / "job", profile, ROOT, enter, env, elsewhere, conditions)
        hosts.used(host)
        before = hosts.traces(host)
        try:
            yield job
            assert hosts.changes([before], [hosts.traces(host)]) == ""
            assert not (base / f"state/{CLUSTER}").exists()
        finally:
            for one in job.ended:
                print(f"{one.step}: {one.status}\n{one.output[-4000:]}")
            kept = Path(os.environ.get("AGENTLAB_E2E_ARTIFACTS") or tmp_path) / "leased"
            shutil.copytree(base / "job/artifacts", kept, dirs_exist_ok=True)


@pytest.mark.long
def test_from_the_lease_to_an_installed_cluster(tmp_path: Path, guests: None) -> None:
    with leased(tmp_path, lambda __: False) as job:
        assert job.run("agentlab-e2e-generic"), job.ended[-1]
        assert job.shared("install-status.txt") == "0\n" and job.shared("console.url").startswith("https://console-")
        assert "    proxy-url: http://127.0.0.1:8213/" in job.shared("kubeconfig")
        assert job.shared("kubeadmin-password").count("-") == 3
        installed = JUnitXml.fromfile(str(job.artifacts("agentlab-setup") / "profile/junit_install.xml"))
        assert all(case.is_passed for suite in installed for case in suite)
        checks = JUnitXml.fromfile(str(job.artifacts("agentlab-validate") / "junit_agentlab.xml"))
        assert sum(case.is_passed for suite in checks for case in suite) > 10
        # The installed system has no agent-gather.
        with tarfile.open(job.artifacts("agentlab-gather") / "agent-gather-master-0.tar.xz") as tar:
            assert tar.getmember("agent-gather-master-0/journal.log").size
        assert (job.artifacts("ofcir-release") / "rv").read_text() == "0\n"


@pytest.mark.long
def test_a_timeout_while_machines_install(tmp_path: Path, guests: None) -> None:
    def discovered(lease: Path) -> bool:
        log = lease / f"runs/{CLUSTER}/logs/wait-for.log"
        return log.exists() and "Host master-0" in log.read_text(errors="replace")

    with leased(tmp_path, discovered) as job:
        assert not job.run("agentlab-e2e-generic")
        setup = job.of("agentlab-setup")
        assert setup.timed_out and "agentlab-setup: interrupted" in setup.output
        assert job.shared("install-status.txt") == "5\n"
        assert [one.step for one in job.ended][4:] == ["agentlab-gather", "gather", "ofcir-release"]
        gathered = job.artifacts("agentlab-gather")
        assert (gathered / "libvirt-logs.tar.gz").exists() and (gathered / "report/summary.txt").exists()
        with tarfile.open(gathered / "agent-gather-master-0.tar.xz") as tar:
            assert len(tar.getnames()) > 10
        assert (job.artifacts("ofcir-release") / "rv").read_text() == "5\n"
