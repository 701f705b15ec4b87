"""A lab whose run directory is lost is removed by the marker in its state directory alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import cli
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", ["sandbox", "local"])
def test_prune(lab: Any, traces: Callable[[], str], kind: str) -> None:
    """The owner's host is this one, and nothing of the lab's plan is left."""
    before = traces()
    one = lab("agprune", {"hypervisor": {"kind": kind}})
    one.play("prepare")
    command = [*namespaces.enter(one.host), sys.executable, "-m", cli.__name__, "prune"]
    command += ["--state-dir", str(one.parent), "-o", "json"]

    def prune(*options: str) -> list[dict[str, Any]]:
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout))

    assert prune("--check") == [], "a lab with its run directory is not left behind"
    shutil.rmtree(one.run_dir)
    (found,) = prune("--check")
    assert (found["state_dir"], found["removed"]) == (str(one.state_dir), False)
    assert one.state_dir.exists()
    (found,) = prune()
    assert found["removed"] and not one.state_dir.exists()
    after = traces()
    # A libvirt that has had a network keeps its own chains.
    end = "--mounts" if kind == "sandbox" else "--nft"
    assert after.partition(end)[0] == before.partition(end)[0]
    assert "agprune" not in after
    for what in ("list", "net-list", "pool-list"):
        shown = subprocess.run(
            [*namespaces.enter(one.host), "virsh", "-q", what, "--all", "--name"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "agprune" not in shown.stdout
    assert prune() == []
