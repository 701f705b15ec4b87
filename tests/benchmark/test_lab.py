"""How long the machine room takes, against an Ansible that does nothing and a libvirt that is asked directly.

Not part of the unit suite: `pytest -s tests/benchmark/test_lab.py`, as root on a host that is set up.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
AGENTLAB = ROOT / "bin/agentlab"
CLUSTER = "bench"
PROFILE = "ha_dualstack"
ROUNDS = 3
# Each role costs its argument check and one task: the limit of tasks, in runs of a playbook with a single task.
FIRST, AGAIN = 4.0, 3.0
# What libvirt itself needs for the same objects.
VIRSH = """cd $(mktemp -d)
for d in $(virsh list --all --name); do
  virsh dumpxml --inactive $d >$d.xml; virsh undefine --keep-nvram $d; virsh define $d.xml
done
for n in $(virsh net-list --name); do virsh net-destroy $n; virsh net-start $n; done
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a sandbox needs root")


def seconds(*argv: str | Path, stdin: str | None = None) -> float:
    """How long a command takes that must succeed."""
    start = time.perf_counter()
    done = subprocess.run([str(word) for word in argv], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:]
    return time.perf_counter() - start


def lab(verb: str, *arguments: str) -> float:
    """How long `agentlab VERB` takes for the cluster of this benchmark."""
    return seconds(AGENTLAB, verb, *arguments, "--cluster", CLUSTER)


def inside(command: str) -> float:
    """How long a shell command takes in the cluster's sandbox."""
    return seconds(AGENTLAB, "exec", "--cluster", CLUSTER, "--", "sh", "-ec", command)


@pytest.fixture
def cluster() -> Iterator[None]:
    lab("plan", PROFILE)
    yield
    lab("destroy")


def test_prepare(cluster: None, tmp_path: Path) -> None:
    """Networks, five machines, BMCs, registry; then once more with nothing to do."""
    nothing = tmp_path / "nothing.yml"
    nothing.write_text("- hosts: localhost\n  gather_facts: false\n  tasks:\n    - ansible.builtin.ping:\n")
    ansible = Path(sys.executable).with_name("ansible-playbook")
    first, again, empty = [], [], []
    for __ in range(ROUNDS):
        empty.append(seconds(ansible, "-i", "localhost,", "-c", "local", nothing))
        first.append(lab("prepare", PROFILE))
        again.append(lab("prepare", PROFILE))
        defined = inside(VIRSH)
        lab("destroy")
    base = statistics.median(empty)
    made, unchanged = statistics.median(first), statistics.median(again)
    print(f"\nprepare {PROFILE}: {made:.1f} s, again {unchanged:.1f} s; one empty playbook {base:.1f} s; the same by virsh {defined:.1f} s")
    assert made <= FIRST * base
    assert unchanged <= AGAIN * base
