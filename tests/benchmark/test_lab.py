"""How long the lab and the agent ISO take, against an Ansible that does nothing and a libvirt that is asked directly.

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

from .processes import AGENTLAB, ENVIRONMENT, ROOT

CLUSTER = "bench"
PROFILE = "ha_dualstack"
ROUNDS = 3
# Limits of the whole command in runs of a playbook with a single task, 1.0 s on two quiet cores: 3.5 s for creating the lab, 2.5 s without
# changes, of which the command and Ansible's start take 1 s; 2 s and 1.3 copies of the base for the image, in addition to the plan and the
# check for the payload.
FIRST, AGAIN, IMAGE, COPIES = 3.5, 2.5, 5.0, 1.3
# What libvirt itself needs for the same objects.
VIRSH = """dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && cd "$dir"
for d in $(virsh list --all --name); do
  virsh dumpxml --inactive $d >$d.xml; virsh undefine --keep-nvram $d; virsh define $d.xml
done
for n in $(virsh net-list --name); do virsh net-destroy $n; virsh net-start $n; done
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a sandbox needs root")


def timed(*argv: str | Path) -> tuple[float, str]:
    """How long a command takes that must succeed, and what it prints."""
    start = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in argv],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ENVIRONMENT,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return time.perf_counter() - start, done.stdout


def lab(verb: str, *arguments: str) -> tuple[float, str]:
    """`agentlab VERB` for the cluster of this benchmark: its seconds, and what it prints, with the seconds of each step."""
    return timed(AGENTLAB, verb, *arguments, "--cluster", CLUSTER)


def empty(folder: Path) -> float:
    """How long a playbook takes that has nothing to do."""
    nothing = folder / "nothing.yml"
    nothing.write_text("- hosts: localhost\n  gather_facts: false\n  tasks:\n    - ansible.builtin.ping:\n")
    ansible = Path(sys.executable).with_name("ansible-playbook")
    local = ("-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}")
    return statistics.median(timed(ansible, *local, nothing)[0] for __ in range(ROUNDS))


@pytest.fixture
def cluster() -> Iterator[None]:
    lab("plan", PROFILE, "--write")
    yield
    lab("destroy")


def test_prepare(cluster: None, tmp_path: Path) -> None:
    """Networks, five machines, BMCs, registry; then again without changes."""
    first: list[float] = []
    again: list[float] = []
    base, steps = empty(tmp_path), ""
    for __ in range(ROUNDS):
        for times in (first, again):
            taken, shown = lab("prepare", PROFILE)
            times.append(taken)
            steps += shown
        defined = timed(AGENTLAB, "exec", "--cluster", CLUSTER, "--", "sh", "-ec", VIRSH)[0]
        lab("destroy")
    made, unchanged = statistics.median(first), statistics.median(again)
    print(
        f"{steps}\nprepare {PROFILE}: {made:.1f} s, again {unchanged:.1f} s; one empty playbook {base:.1f} s; "
        f"the same by virsh {defined:.1f} s"
    )
    assert made <= FIRST * base
    assert unchanged <= AGAIN * base


def test_image(cluster: None, tmp_path: Path) -> None:
    """All of the stage `image` with a payload that is there, against a copy of the base ISO."""
    lab("deploy", PROFILE, "--stop-after", "image")
    iso = ROOT / "runs" / CLUSTER / "agent.x86_64.iso"
    base, steps = empty(tmp_path), ""
    images, copies = [], []
    for __ in range(ROUNDS):
        copies.append(timed("cp", iso, tmp_path / "copy.iso")[0])
        iso.unlink()
        taken, steps = lab("image")
        images.append(taken)
    made, copied = statistics.median(images), statistics.median(copies)
    print(f"{steps}\nimage {PROFILE}: {made:.1f} s; cp of the ISO {copied:.2f} s; one empty playbook {base:.1f} s")
    assert made <= IMAGE * base + COPIES * copied
