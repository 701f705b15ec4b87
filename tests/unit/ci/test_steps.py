"""The commands of the steps, as the simulator of ci-operator runs them, with a fake ssh that stays on this host and a fake agentlab."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.devscripts import importer

from tests.ci_operator import Job
from tests.ci_registry import Registry
from tests.unit.ci.test_registry import EXTERNAL, FOLDER

ACQUIRE = r"""
echo 192.0.2.2 > "${SHARED_DIR}/server-ip"
cat > "${SHARED_DIR}/packet-conf.sh" <<'EOF'
IP=$(cat "${SHARED_DIR}/server-ip")
PORT=22
SSHOPTS=(-o Port=$PORT -i "${CLUSTER_PROFILE_DIR}/packet-ssh-key")
for x in $(seq 3); do
    test "${x}" -eq 3 && exit 1
    ssh "${SSHOPTS[@]}" "root@${IP}" hostname && break
done
EOF
"""
ELSEWHERE = {
    "ofcir-acquire": ACQUIRE,
    "ofcir-release": 'head -n1 "${SHARED_DIR}/install-status.txt" > "${ARTIFACT_DIR}/rv"',
    "ipi-install-rbac": "true",
    "rhcos-conf-osstream": "true",
    "gather": 'tail -n1 "${SHARED_DIR}/install-status.txt" > "${ARTIFACT_DIR}/last"',
}
# As sshd: a shell gets all arguments after the host as one line.
SSH = """#!/bin/bash
while [[ $1 == -* ]]; do shift 2; done
[[ $1 == root@192.0.2.2 ]] || exit 254
shift
test ! -e {base}/refuses || { echo 'Connection refused' >&2; exit 255; }
cd {base}; exec bash -c "$*"
"""
# Records its arguments; {base}/behaviour replaces what it does then.
AGENTLAB = """#!/bin/bash
python3 -c 'import json, os, sys; print(json.dumps([os.environ["AGENTLAB_RUNS"], *sys.argv[1:]]))' "$@" >> {base}/calls
test ! -e {base}/behaviour || source {base}/behaviour
[[ $1 != import ]] || cat > "${@: -1}"
[[ "$1 $2" != "ci run" ]] || { echo 0 >> shared/install-status.txt; echo k > shared/kubeconfig; echo a > artifacts/junit.xml; }
[[ "$1 $2" != "ci gather" ]] || { mkdir -p gathered; echo s > gathered/summary.txt; }
[[ "$1 $2" != "ci validate" ]] || { mkdir -p validated; echo s > validated/junit_agentlab.xml; }
"""


class Lease:
    """A leased host in `base`, whose agentlab records how it was called."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base, self.dir, self.source = base, base / "lease/agent lab", base / "source"
        for folder in ("bin", "profile", "source/bin", "lease"):
            (base / folder).mkdir(parents=True)
        for path, text in ((base / "bin/ssh", SSH), (self.source / "bin/agentlab", AGENTLAB)):
            path.write_text(text.replace("{base}", str(base)))
            path.chmod(0o755)
        (base / "profile/pull-secret").write_text("{}")
        monkeypatch.setenv("PATH", f"{base / 'bin'}:/usr/sbin:/usr/bin:/sbin:/bin")

    def job(self, expired: Callable[[], bool] | None = None, **env: str) -> Job:
        given = {"AGENTLAB_HOST_DIR": str(self.dir), **env}
        conditions = {"agentlab-setup": expired} if expired else {}
        registry = Registry.load(FOLDER, EXTERNAL)
        return Job(
            registry,
            self.base / "job",
            self.base / "profile",
            self.source,
            env=given,
            elsewhere=ELSEWHERE,
            expired=conditions,
        )

    def behaves(self, text: str) -> None:
        (self.base / "behaviour").write_text(text)

    def calls(self, *verb: str) -> list[list[str]]:
        """The arguments of calls that begin with these."""
        found = [json.loads(line) for line in (self.base / "calls").read_text().splitlines()]
        assert all(call[0] == f"{self.dir}/runs" for call in found)
        return [call[1:] for call in found if tuple(call[1 : len(verb) + 1]) == verb]


@pytest.fixture
def lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lease:
    return Lease(tmp_path, monkeypatch)


def options(call: list[str], name: str) -> list[str]:
    return [value for word, value in itertools.pairwise(call) if word == name]


def test_from_the_lease_to_the_release(lease: Lease) -> None:
    job = lease.job(
        AGENTLAB_PROFILE="ha_ipv4", AGENTLAB_CONFIG="master.memory_mib=20000\n\ninstaller.install_config={a: b c}"
    )
    assert job.run("agentlab-e2e-generic"), job.ended
    assert [one.step for one in job.ended] == [
        "ofcir-acquire", "ipi-install-rbac", "rhcos-conf-osstream", "agentlab-setup", "agentlab-validate", "agentlab-gather", "gather",
        "ofcir-release",
    ]  # fmt: skip
    [call] = lease.calls("ci", "run")
    assert call[2] == "ha_ipv4" and "--keep" in call
    assert options(call, "--set") == [
        "hypervisor.kind=sandbox",
        "release.payload=ocp",
        "release.image=registry.build.example/ci/release:latest",
        f"installer.pull_secret_file={lease.dir}/pull-secret",
        "hypervisor.egress=true",
        "master.memory_mib=20000",
        "installer.install_config={a: b c}",
    ]
    assert options(call, "--proxy-url") == ["http://192.0.2.2:8213/"]
    assert options(call, "--proxy-listen") == ["0.0.0.0:8213"]
    assert (lease.dir / "pull-secret").stat().st_mode & 0o777 == 0o600
    assert job.shared("install-status.txt") == "0\n" and job.shared("kubeconfig") == "k\n"
    assert (job.artifacts("agentlab-setup") / "junit.xml").exists()
    assert (job.artifacts("agentlab-validate") / "junit_agentlab.xml").exists()
    assert (job.artifacts("agentlab-gather") / "summary.txt").exists()
    assert (job.artifacts("ofcir-release") / "rv").read_text() == "0\n"


def test_a_job_of_dev_scripts_moves_with_its_lines(lease: Lease) -> None:
    lines = "AGENT_E2E_TEST_SCENARIO=SNO_IPV6\nIP_STACK=v6\nQUOTED='$(touch evil) \"x\"'\n"
    job = lease.job(DEVSCRIPTS_CONFIG=lines, AGENTLAB_PAYLOAD="lab", AGENTLAB_STAGES="prepare,image")
    assert job.run("agentlab-e2e-generic"), job.ended
    assert lease.calls("import") == [["import", "devscripts", "-", "--partial", "-o", f"{lease.dir}/profile.yml"]]
    assert (lease.dir / "profile.yml").read_text() == f"OPENSHIFT_CI=true\nNUM_WORKERS=3\n{lines}\n"
    [call] = lease.calls("ci", "run")
    assert call[2] == f"{lease.dir}/profile.yml"
    assert options(call, "--set") == ["hypervisor.kind=sandbox"]
    assert options(call, "--stages") == ["prepare,image"]
    assert "nothing to check" in job.of("agentlab-validate").output
    assert not list(lease.base.rglob("evil"))


def test_a_real_payload_is_imported_as_one(lease: Lease) -> None:
    """The importer maps other variables for it, such as those of mirrors."""
    assert lease.job(DEVSCRIPTS_CONFIG="AGENT_E2E_TEST_SCENARIO=TNA_IPV4").run("agentlab-e2e-generic")
    lines = (lease.dir / "profile.yml").read_text()
    assert lines.splitlines() == [
        "OPENSHIFT_CI=true", "NUM_WORKERS=3", "WORKER_MEMORY=16384",
        "OPENSHIFT_RELEASE_IMAGE=registry.build.example/ci/release:latest", "AGENT_E2E_TEST_SCENARIO=TNA_IPV4",
    ]  # fmt: skip
    found = importer.read([("DEVSCRIPTS_CONFIG", lines)], {}, partial=True)
    assert found.raw["worker"]["count"] == 3 and found.raw["release"]["payload"] == "ocp" and not found.refused


def test_lines_that_are_refused_are_a_failure_of_the_configuration(lease: Lease) -> None:
    lease.behaves('[[ $1 != import ]] || { echo "stdin:1: BMC_DRIVER=ipmi: has no counterpart" >&2; exit 2; }')
    job = lease.job(DEVSCRIPTS_CONFIG="BMC_DRIVER=ipmi")
    assert not job.run("agentlab-e2e-generic")
    assert job.of("agentlab-setup").status == 3 and "has no counterpart" in job.of("agentlab-setup").output
    assert job.shared("install-status.txt") == "3\n" and not lease.calls("ci", "run")
    job = Lease.job(lease)
    job.base = lease.base / "other"
    assert not job.run("agentlab-e2e-generic")
    assert "AGENTLAB_PROFILE and DEVSCRIPTS_CONFIG are empty" in job.of("agentlab-setup").output


@pytest.mark.parametrize("status", [3, 4, 5, 6, 7])
def test_the_class_of_a_failure_is_that_of_the_step(lease: Lease, status: int) -> None:
    lease.behaves(f'[[ "$1 $2" != "ci run" ]] || {{ echo {status} >> shared/install-status.txt; exit {status}; }}')
    job = lease.job(AGENTLAB_PROFILE="a\nb; touch evil")
    assert not job.run("agentlab-e2e-generic")
    assert job.of("agentlab-setup").status == status
    assert job.shared("install-status.txt") == f"{status}\n"
    assert [one.step for one in job.ended][4:] == ["agentlab-gather", "gather", "ofcir-release"]
    assert lease.calls("ci", "run")[0][2] == "a\nb; touch evil" and not list(lease.base.rglob("evil"))


def test_manifests_of_earlier_steps_are_installed(lease: Lease) -> None:
    job = lease.job(AGENTLAB_PROFILE="ha_ipv4")
    job.secret |= {"manifest_a.yaml": b"a\n", "manifest_b.yml": b"b\n", "other.yaml": b"c\n"}
    assert job.run("agentlab-e2e-generic"), job.ended
    found = {path.name: path.read_text() for path in (lease.dir / "manifests").iterdir()}
    assert found == {"manifest_a.yaml": "a\n", "manifest_b.yml": "b\n"}
    assert f"installer.manifests_dir={lease.dir}/manifests" in options(lease.calls("ci", "run")[0], "--set")


def test_a_second_attempt_adds_a_line(lease: Lease) -> None:
    job = lease.job(AGENTLAB_PROFILE="ha_ipv4")
    job.secret["install-status.txt"] = b"4\n"
    assert job.run("agentlab-e2e-generic")
    assert job.shared("install-status.txt") == "4\n0\n"


@pytest.mark.parametrize(
    ("before", "behaviour", "printed"),
    [
        ("touch refuses", "", "the leased host does not answer to ssh"),
        ("mkdir -p 'lease'; touch 'lease/agent lab'", "", "the sources could not be copied to the leased host: mkdir: cannot create directory"),
        ("true", '[[ $1 != setup ]] || exit 1', "the packages of a lab could not be installed on the leased host"),
        ("true", '[[ "$1 $2" != "ci run" ]] || { touch {base}/refuses; exit 255; }', "agentlab on the leased host could not be run, or the host was lost"),
    ],
)  # fmt: skip
def test_a_host_that_fails_is_a_failure_of_the_infrastructure(
    lease: Lease, before: str, behaviour: str, printed: str
) -> None:
    subprocess.run(["sh", "-c", before], cwd=lease.base, check=True)
    lease.behaves(behaviour.replace("{base}", str(lease.base)))
    job = lease.job(AGENTLAB_PROFILE="ha_ipv4")
    assert not job.run("agentlab-e2e-generic")
    done = job.of("agentlab-setup")
    assert done.status == 4, done.output
    printed_by_us = [line for line in done.output.splitlines() if line.startswith("agentlab-setup: ")]
    assert len(printed_by_us) == 1 and printed_by_us[0].startswith(f"agentlab-setup: {printed}"), printed_by_us
    assert job.shared("install-status.txt") == "4\n" and printed in job.shared("install_infrastructure_failure.log")
    assert job.ended[-1].step == "ofcir-release" and not job.ended[-1].failed


def test_a_full_disk_of_the_leased_host_is_a_failure_of_the_infrastructure(lease: Lease) -> None:
    """Its directory is a file system without a free block; ssh itself works."""
    lease.dir.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", lease.dir], check=True)
    try:
        (lease.source / "large").write_bytes(bytes(1 << 20))
        job = lease.job(AGENTLAB_PROFILE="ha_ipv4")
        assert not job.run("agentlab-e2e-generic")
    finally:
        subprocess.run(["umount", lease.dir], check=True)
    done = job.of("agentlab-setup")
    assert done.status == 4 and "No space left on device" in done.output, done.output
    printed = "the sources could not be copied to the leased host"
    assert job.shared("install-status.txt") == "4\n" and printed in job.shared("install_infrastructure_failure.log")
    assert "No space left on device" in job.shared("install_infrastructure_failure.log")
    assert job.ended[-1].step == "ofcir-release" and not job.ended[-1].failed


def test_a_timeout_in_the_middle_ends_agentlab_and_gathers(lease: Lease) -> None:
    left = "echo 5 >> shared/install-status.txt; echo late > artifacts/junit.xml; exit 5"
    lease.behaves(f'[[ "$1 $2" != "ci run" ]] || {{ trap "kill \\$!; {left}" TERM; sleep 60 & touch running; wait; }}')
    job = lease.job((lease.dir / "running").exists, AGENTLAB_PROFILE="ha_ipv4")
    assert not job.run("agentlab-e2e-generic")
    done = job.of("agentlab-setup")
    assert done.timed_out and done.status == 1 and "agentlab-setup: interrupted" in done.output, done.output
    assert job.shared("install-status.txt") == "5\n"
    assert (job.artifacts("agentlab-setup") / "junit.xml").read_text() == "late\n"
    assert [one.step for one in job.ended][4:] == ["agentlab-gather", "gather", "ofcir-release"]
    assert (job.artifacts("agentlab-gather") / "summary.txt").exists()


def test_a_gathering_that_fails_does_not_fail_the_job(lease: Lease) -> None:
    lease.behaves('[[ "$1 $2" != "ci gather" ]] || exit 1')
    job = lease.job(AGENTLAB_PROFILE="ha_ipv4", AGENTLAB_DESTROY="true")
    assert job.run("agentlab-e2e-generic")
    assert job.of("agentlab-gather").failed and not job.of("agentlab-gather").counts
    assert "--destroy" in lease.calls("ci", "gather")[0]
