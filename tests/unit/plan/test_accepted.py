"""The installer takes the input of every profile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import run
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, inputs, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.topologies import TOPOLOGIES

ROOT = Path(__file__).resolve().parents[3]
PROFILES = ROOT / "config_examples"
# Of `flow: ipi` see tests/unit/installer/test_ipi.py.
NAMES = [name for name in sorted(path.stem for path in PROFILES.glob("*.yml")) if not name.endswith(("_ocp", "_ipi"))]
SCENARIOS = [f"{topology.upper()}_{stack}" for topology in TOPOLOGIES for stack in ("IPV4", "IPV6", "IPV4V6")]

# What the installer sets itself, and then warns of; of a vSphere without vCenters it warns as of its old form.
_IGNORED = {"nutanix": ("credentialsMode: Manual",)}


@pytest.mark.parametrize("name", [*NAMES, *SCENARIOS])
def test_cluster_manifests(name: str, tmp_path: Path) -> None:
    plan = build.build(profile.load(name, PROFILES), "ostest")
    rundir.write(inputs.prepare(plan, tmp_path))
    environment = {
        "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE": "registry.agentlab.test/lab/release@sha256:" + "0" * 64,
        "AGENTLAB_RELEASE_VERSION": "4.22.0",
    }
    options = run.Options.from_environment(environment, tmp_path, ROOT / "roles/agent_image/files")
    log = Log(None, "error")
    run.create(["cluster-manifests"], options, log)
    # Nothing answers at the name of a release image here.
    unreachable = "Unable to validate the release image architecture, skipping validation"
    warnings = [text for level, text in log.lines if level == "warning"]
    expected = [unreachable, *(f"{start} is ignored" for start in _IGNORED.get(plan["cluster"]["platform"], ()))]
    assert [text for text in warnings if "now deprecated" not in text] == expected
    assert len(warnings) == len(expected) + 2 * (plan["cluster"]["platform"] == "vsphere")
    found: dict[str, Any] = {
        path.stem: yaml.safe_load(path.read_text()) for path in (tmp_path / "cluster-manifests").glob("a*.yaml")
    }
    spec = found["agent-cluster-install"]["spec"]
    assert spec["provisionRequirements"]["controlPlaneAgents"] == sum(
        node["role"] == "master" for node in plan["nodes"]
    )
