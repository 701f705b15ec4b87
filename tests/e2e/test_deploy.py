"""The whole road in real virtual machines, a job of ci/jobs.yml each, and nothing left behind.

AGENTLAB_E2E names the jobs to run, separated by blanks; the default is the one that CI runs. AGENTLAB_E2E_ARTIFACTS keeps
what they leave.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from junitparser import JUnitXml

ROOT = Path(__file__).resolve().parents[2]
TABLE = yaml.safe_load((ROOT / "ci/jobs.yml").read_text())
JOBS = os.environ.get("AGENTLAB_E2E", "e2e-agent-sno-ipv4").split()
CLUSTER = "e2e"
# Packets that the host's rules counted and leases that run out do not matter.
HOST = {
    "namespaces": "ip netns list | sort",
    "links": "ip -o link | cut -d: -f2 | cut -d@ -f1 | sort",
    "addresses": "ip -o address | awk '{print $2, $4}' | sort",
    "routes": "ip route; ip -6 route | sed 's/ expires.*//'",
    "rules": "nft list ruleset 2>/dev/null | sed 's/packets [0-9]* bytes [0-9]*//'",
    "mounts": "cut -d' ' -f5 /proc/self/mountinfo | sort",
    "processes": "ps -eo args= | grep -E '[e]2e' | grep -E '^[^ ]*(qemu|libvirtd|virtlogd|dnsmasq|docker-registry|chronyd|swtpm)|agentlab/e2e/' | sort",
    "ports": "ss -Hltun | awk '{print $1, $5}' | sort",
    "forwarding": "cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding",
    "state": "ls -A /var/lib/agentlab 2>/dev/null | grep -x e2e; ls -A /var/lib/libvirt /etc/libvirt /var/log/libvirt /var/cache/libvirt 2>/dev/null",
}


def host() -> dict[str, list[str]]:
    """What a run must leave as it was."""
    return {
        name: subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False).stdout.splitlines()
        for name, command in HOST.items()
    }


@pytest.fixture
def guests() -> Iterator[None]:
    """Hold the lock for guests, if `AGENTLAB_VM_LOCK` names one."""
    path = os.environ.get("AGENTLAB_VM_LOCK")
    with contextlib.ExitStack() as stack:
        if path:
            fcntl.flock(stack.enter_context(open(path, "w")), fcntl.LOCK_EX)
        yield


@pytest.mark.parametrize("job", JOBS)
def test_deploy(job: str, tmp_path: Path, guests: None) -> None:
    before = host()
    artifacts = Path(os.environ.get("AGENTLAB_E2E_ARTIFACTS") or tmp_path)
    limit = 60 * (TABLE["defaults"] | TABLE["jobs"][job])["timeout_minutes"] + 900
    done = subprocess.run([ROOT / "ci/run-job", job, "--artifacts", artifacts, "--cluster", CLUSTER], text=True, timeout=limit,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    summary = artifacts / job / "report/summary.txt"
    assert done.returncode == 0, done.stdout + (summary.read_text() if summary.exists() else "")
    cases = [case for suite in JUnitXml.fromfile(str(artifacts / job / "junit.xml")) for case in suite]
    assert [case.name for case in cases] == [*(TABLE["defaults"] | TABLE["jobs"][job])["stages"], "destroy"]
    assert all(case.is_passed for case in cases)
    assert host() == before
