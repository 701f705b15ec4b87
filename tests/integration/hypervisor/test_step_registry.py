"""The workflow agentlab-e2e-generic from lease to release: the simulator of ci-operator, and an sshd in a sandbox as the leased host."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

from tests.ci_operator import Job
from tests.ci_registry import Registry
from tests.unit.ci.test_registry import EXTERNAL, FOLDER
from tests.unit.ci.test_steps import ELSEWHERE

ROOT = Path(__file__).parents[3]
# As the step ofcir-acquire leaves it.
ACQUIRE = r"""
echo 127.0.0.1 > "${SHARED_DIR}/server-ip"
echo 2222 > "${SHARED_DIR}/server-sshport"
cat > "${SHARED_DIR}/packet-conf.sh" <<'EOF'
IP=$(cat "${SHARED_DIR}/server-ip")
PORT=$(<"${SHARED_DIR}/server-sshport")
SSHOPTS=(-F /dev/null -o Port=$PORT -o ConnectTimeout=5 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null)
SSHOPTS+=(-o ServerAliveInterval=90 -o LogLevel=ERROR -i "${CLUSTER_PROFILE_DIR}/packet-ssh-key")
for x in $(seq 10); do
    test "${x}" -eq 10 && exit 1
    ssh "${SSHOPTS[@]}" "root@${IP}" hostname && break
    sleep 1
done
EOF
"""
Make = Callable[..., Job]


@pytest.fixture
def make(base: Path, host: namespaces.RunningSandbox, server: Path) -> Make:
    """A job on a leased host, whose pods run on the same network."""
    profile = base / "profile"
    profile.mkdir()
    (profile / "packet-ssh-key").write_bytes((server.parent / "user").read_bytes())
    (profile / "packet-ssh-key").chmod(0o600)

    def job(expired: Callable[[], bool] = lambda: False) -> Job:
        env = {
            "AGENTLAB_PROFILE": "sno_ipv4",
            "AGENTLAB_PAYLOAD": "lab",
            "AGENTLAB_STAGES": "prepare,configure,image",
            "AGENTLAB_CLUSTER": "agtest",
            "AGENTLAB_CONFIG": f"hypervisor.state_dir={base}/state",
            "AGENTLAB_HOST_DIR": str(base / "lease"),
            "AGENTLAB_DESTROY": "true",
        }
        elsewhere = {**ELSEWHERE, "ofcir-acquire": ACQUIRE}
        registry = Registry.load(FOLDER, EXTERNAL)
        conditions = {"agentlab-setup": expired}
        return Job(registry, base / "job", profile, ROOT, namespaces.enter(host, str(ROOT)), env, elsewhere, conditions)

    return job


@pytest.mark.long
def test_from_the_lease_to_the_release(make: Make, base: Path) -> None:
    job = make()
    assert job.run("agentlab-e2e-generic"), job.of("agentlab-setup").output[-4000:]
    assert job.shared("install-status.txt") == "0\n"
    assert "    proxy-url: http://127.0.0.1:8213/" in job.shared("kubeconfig")
    assert "export DS_IP_STACK=v4\n" in job.shared("ds-vars.conf") and "PROXYPORT=8213" in job.shared("proxy-conf.sh")
    setup, gathered = job.artifacts("agentlab-setup"), job.artifacts("agentlab-gather")
    assert {"junit.xml", "events.jsonl", "image.log"} <= {path.name for path in (setup / "sno_ipv4").iterdir()}
    with tarfile.open(gathered / "libvirt-logs.tar.gz") as tar:
        assert any(name.endswith(".xml") for name in tar.getnames())
    assert (gathered / "report/summary.txt").exists()
    assert (job.artifacts("ofcir-release") / "rv").read_text() == "0\n"
    assert not (base / "state/agtest").exists()


@pytest.mark.long
def test_a_timeout_in_the_middle_gathers_and_releases(make: Make, base: Path) -> None:
    artifacts = base / "lease/artifacts/sno_ipv4"
    job = make((artifacts / "prepare.log").exists)  # while configure runs
    assert not job.run("agentlab-e2e-generic")
    setup = job.of("agentlab-setup")
    assert setup.timed_out and "agentlab-setup: interrupted" in setup.output, setup.output[-4000:]
    assert job.shared("install-status.txt") == "4\n"
    assert "interrupted by SIGTERM" in (job.artifacts("agentlab-setup") / "sno_ipv4/junit.xml").read_text()
    assert [one.step for one in job.ended][4:] == ["agentlab-gather", "gather", "ofcir-release"]
    assert (job.artifacts("agentlab-gather") / "libvirt-logs.tar.gz").exists()
    assert (job.artifacts("ofcir-release") / "rv").read_text() == "4\n"
    assert not (base / "state/agtest").exists()


@pytest.mark.long
def test_a_lab_in_the_pod_of_a_step(tmp_path: Path) -> None:
    """The workflow without a lease runs a job of the table: one whose installer refuses its input, which starts no machine."""
    name = "fault-install-config"
    env = {"AGENTLAB_JOB": name, "AGENTLAB_CHECKOUT": str(ROOT)}
    elsewhere = ("env", f"AGENTLAB_RUNS={tmp_path}/runs")
    job = Job(Registry.load(FOLDER, EXTERNAL), tmp_path, tmp_path, ROOT, elsewhere, env)
    assert job.run("agentlab-lab"), job.of("agentlab-lab-run").output[-4000:]
    assert job.shared("install-status.txt") == "3\n"
    left = job.artifacts("agentlab-lab-run") / name
    assert {"junit.xml", "events.jsonl", "image.log", "report"} <= {path.name for path in left.iterdir()}
    assert "invalid install-config configuration" in (left / "install_infrastructure_failure.log").read_text()
