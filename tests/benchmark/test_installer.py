"""How long the manifests of a large cluster take, and how much memory they and the image need."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def inputs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("installer_inputs", ROOT / "tests/unit/installer/conftest.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cluster_manifests_of_250_hosts(inputs: ModuleType, tmp_path: Path) -> None:
    """Wall time under 3 s on a machine that has nothing else to do; so the best of five counts."""
    config, agent = inputs.fleet(250)
    environment = os.environ | {
        "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE": inputs.RELEASE,
        "AGENTLAB_RELEASE_VERSION": "4.22.0",
    }
    taken = []
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "install-config.yaml").write_text(yaml.safe_dump(config))
        (folder / "agent-config.yaml").write_text(yaml.safe_dump(agent))
        start = time.perf_counter()
        command: list[str | Path] = [
            ROOT / "bin/agentlab",
            "create",
            "cluster-manifests",
            "--dir",
            folder,
            "--log-level",
            "error",
        ]
        child = subprocess.Popen(command, env=environment)
        __, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert child.returncode == 0
        taken.append((time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024))
    seconds, processor, memory = min(taken)
    print(
        f"\ncluster-manifests of 250 hosts: {seconds:.2f} s ({processor:.2f} s of processor time), peak memory {memory:.0f} MiB"
    )
    assert seconds < 3 and memory < 100
