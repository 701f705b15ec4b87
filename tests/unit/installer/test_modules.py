"""The modules: changed is accurate, check mode writes nothing, edited manifests stay."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

MODULES = "ansible_collections.agentlab.ocp.plugins.modules"


def run(name: str, check: bool = False, **arguments: Any) -> dict[str, Any]:
    given = arguments | {"_ansible_check_mode": check, "_ansible_diff": True, "_ansible_remote_tmp": "/tmp"}
    done = subprocess.run(
        [sys.executable, "-c", f"import {MODULES}.{name} as m; m.main()"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_cluster_manifests(directory: Any, make: Any) -> None:
    arguments = {"directory": str(directory.path), "release_image": make.release, "release_version": "4.22.0"}
    directory.write("install-config.yaml", make.install_config())
    before = sorted(directory.path.iterdir())
    checked = run("cluster_manifests", check=True, **arguments)
    assert checked["changed"] and sorted(directory.path.iterdir()) == before
    assert "cluster-manifests/infraenv.yaml" in checked["manifests"]
    assert make.install_config()["pullSecret"] not in json.dumps(checked)
    done = run("cluster_manifests", **arguments)
    assert done["changed"] and done["manifests"] == checked["manifests"]
    assert all((directory.path / name).exists() for name in done["manifests"])
    assert not run("cluster_manifests", **arguments)["changed"]
    manifest = directory.path / "cluster-manifests/agent-cluster-install.yaml"
    manifest.write_text(manifest.read_text().replace("controlPlaneAgents: 1", "controlPlaneAgents: 3"))
    edited = manifest.read_text()
    assert not run("cluster_manifests", **arguments)["changed"] and manifest.read_text() == edited
    directory.write("install-config.yaml", make.install_config(baseDomain="other.example"))
    refused = run("cluster_manifests", **arguments)
    assert (
        refused["failed"]
        and "install-config.yaml and cluster-manifests/agent-cluster-install.yaml have both changed" in refused["msg"]
    )


def test_no_inputs(tmp_path: Path) -> None:
    refused = run(
        "cluster_manifests", directory=str(tmp_path), release_image="quay.io/x/y:4.22", release_version="4.22.0"
    )
    assert refused["failed"] and "missing configuration or manifest file" in refused["msg"]
