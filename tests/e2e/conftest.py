"""What jobs of ci/jobs.yml have in common when they are tests.

AGENTLAB_E2E names the jobs to run, separated by blanks; the default is `every_change` of ci/jobs.yml. AGENTLAB_E2E_ARTIFACTS keeps
what they leave.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import run_dir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.names import STATE_DIR
from junitparser import JUnitXml

from tests.canaries import Canaries

ROOT = Path(__file__).resolve().parents[2]
TABLE = yaml.safe_load((ROOT / "ci/jobs.yml").read_text())
JOBS = os.environ["AGENTLAB_E2E"].split() if "AGENTLAB_E2E" in os.environ else TABLE["every_change"]
CLUSTER = "e2e"
# Packets that the host's rules counted and leases that run out do not matter.
HOST = {
    "namespaces": "ip netns list | sort",
    "links": "ip -o link | cut -d: -f2 | cut -d@ -f1 | sort",
    "addresses": "ip -o address | awk '{print $2, $4}' | sort",
    "routes": "ip route; ip -6 route | sed 's/ expires.*//'",
    "rules": "nft list ruleset 2>/dev/null | sed 's/packets [0-9]* bytes [0-9]*//'",
    "mounts": "cut -d' ' -f5 /proc/self/mountinfo | sort",
    "processes": "ps -eo args= | grep -E '[e]2e' | grep -E '^[^ ]*(qemu|libvirtd|virtlogd|dnsmasq|docker-registry|chronyd|swtpm)|agentlab/e2e[^/]*/' | sort",
    "forwarding": "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding",
    "state": "ls -A /var/lib/agentlab 2>/dev/null | grep '^e2e'; ls -A /var/lib/libvirt /etc/libvirt /var/log/libvirt /var/cache/libvirt 2>/dev/null",
}


def output(command: str) -> list[str]:
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout.splitlines()


def host() -> dict[str, list[str]]:
    """What a run must leave as it was."""
    return {name: output(command) for name, command in HOST.items()}


def ports() -> set[str]:
    """Protocol and address of each listener of this host, without those of tests that run in other processes meanwhile."""
    found = set()
    for line in output("ss -Hltunp"):
        owners = re.findall(r"pid=(\d+)", line)
        if not owners or not all(map(of_another_process, owners)):
            kind, __, __, __, address, *__ = line.split()
            found.add(f"{kind} {address}")
    return found


def of_another_process(pid: str) -> bool:
    """Whether another process of this test run is, forked or started this one, or it has ended."""
    own = os.environ.get("PYTEST_XDIST_WORKER")
    if own is None:
        return False
    try:
        started_by = re.search(rb"(?:^|\0)PYTEST_XDIST_WORKER=(\w+)", Path(f"/proc/{pid}/environ").read_bytes())
        if started_by:
            return started_by[1].decode() != own
        while pid not in ("0", str(os.getpid())):
            child, pid = pid, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            if pid == str(os.getppid()):
                return child != str(os.getpid())
    except (FileNotFoundError, ProcessLookupError):
        return True
    return False


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the argument `job` runs for each job that ends in an installed cluster, one with `fault` for each that does not."""
    for name, failing in (("job", False), ("fault", True)):
        if name in metafunc.fixturenames:
            chosen = [job for job in JOBS if bool(TABLE["jobs"][job].get("expect")) == failing]
            metafunc.parametrize(name, chosen)


def take_down_unfinished() -> None:
    """Destroys what a test run that was killed, of any checkout, left of its cluster: it would not let this one begin.

    While another run is alive its cluster stays, and the job of this one is refused with the names of both owners.
    """
    alive = output(f"ps -eo args= | grep -E '[c]i run .*--cluster {CLUSTER}( |$)'")
    if Path(STATE_DIR, CLUSTER).exists() and not alive:
        command = [ROOT / "bin/agentlab", "destroy", "sno_ipv4", "--cluster", CLUSTER, "--adopt"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def run_job(tmp_path: Path, guests: None) -> Callable[[str], None]:
    """Runs a job, which must pass and leave the host as it was."""

    def run(job: str) -> None:
        settings = jobs.load(job, ROOT / "ci/jobs.yml")
        if missing := jobs.unset(settings, os.environ):
            pytest.skip(f"{job}: {', '.join(missing)} not set: the real programs of this job")
        take_down_unfinished()
        before, listening = host(), ports()
        artifacts = Path(os.environ.get("AGENTLAB_E2E_ARTIFACTS") or tmp_path)
        done = subprocess.run(
            [ROOT / "ci/run-job", job, "--artifacts", artifacts, "--cluster", CLUSTER],
            text=True,
            timeout=60 * settings["timeout_minutes"] + 900,
            umask=0o077,  # of a user who keeps their files to themselves
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == 0, failure(done.stdout, artifacts / job)
        suites = list(JUnitXml.fromfile(str(artifacts / job / "junit.xml")))
        cases = list(suites[0])
        assert [case.name for case in cases] == jobs.cases(settings)
        # What hosts reach is skipped where no installation was asked for.
        waited = "wait" in settings["stages"]
        assert all(case.is_passed or (case.is_skipped and not waited) for suite in suites for case in suite)
        assert all(case.is_passed for case in cases)
        assert (artifacts / job / "report/index.html").exists()
        assert host() == before
        # Listeners of a test run that has ended may disappear meanwhile. None may appear.
        assert ports() <= listening
        if waited:
            secrets_stay(artifacts / job, bool(settings["expect"] or settings["gather"]))

    return run


def failure(printed: str, left: Path) -> str:
    """What explains a failed job, most important first: the record of a CI run may have only the beginning."""
    results = [line for line in printed.splitlines() if line.startswith(("FAIL", "fatal:", "ok  "))]
    logs = [left / name for name in ("report/summary.txt", "verbs.log") if (left / name).exists()]
    return "\n\n".join(["\n".join(results), *(path.read_text()[:3000] for path in logs), printed[-3000:]])


def secrets_stay(artifacts: Path, gathered: bool) -> None:
    """Search what a job left for the secrets of its run, which are still in the run directory."""
    canaries = Canaries()
    canaries.read(run_dir(CLUSTER))
    assert {
        "auth/kubeadmin-password",
        "kubeconfig",
        "ssh/id_ecdsa",
        "secrets.json bmc",
        "secrets.json registry",
    } <= set(canaries.known)
    left = {path: canaries.found_in(path) for path in artifacts.rglob("*") if path.is_file()}
    kinds = {"junit.xml", "events.jsonl", "wait.log", *(["summary.txt", f"{CLUSTER}_master_0.log"] if gathered else [])}
    assert kinds <= {path.name for path in left}
    assert {path: names for path, names in left.items() if names} == {}
