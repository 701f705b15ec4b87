"""What several benchmarks measure with."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.build import rebuild
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import ROOTFS_PATH

from .processes import ROOT

SIZE = int(os.environ.get("AGENTLAB_BENCH_MIB", "1000"))


@pytest.fixture(scope="session")
def inputs() -> ModuleType:
    """The functions that make inputs of an installer, and small live ISOs."""
    spec = importlib.util.spec_from_file_location("installer_inputs", ROOT / "tests/unit/installer/conftest.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def big(inputs: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A live ISO of 1 GB: its root file system is as large as a real one's. `AGENTLAB_BENCH_MIB` sets its size."""
    folder = tmp_path_factory.mktemp("bench")
    block = os.urandom(1 << 20)
    with (folder / "rootfs").open("wb") as file:
        for __ in range(SIZE):
            file.write(block)
    rebuild(inputs.live_iso(folder / "small.iso", "lab"), folder / "base.iso", {ROOTFS_PATH: folder / "rootfs"})
    (folder / "rootfs").unlink()
    return folder / "base.iso"
