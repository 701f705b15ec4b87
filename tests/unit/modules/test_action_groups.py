"""Groups of modules that get common options by `module_defaults`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
COMMON = {"lab": {"plan", "owner"}, "installer": {"directory", "release_image", "cache"}}
"""What the modules of a group have in common."""


def test_a_group_is_the_modules_with_its_options() -> None:
    """`lab_tunnels` and `wait_for` were left out, so that `module_defaults` of the group did not set their plan and owner."""
    names = [f"agentlab.ocp.{path.stem}" for path in sorted((ROOT / "plugins/modules").glob("*.py"))]
    program = Path(sys.executable).parent / "ansible-doc"
    done = subprocess.run([program, "--json", *names], cwd=ROOT, capture_output=True, text=True, check=True)
    options = {
        name.rpartition(".")[2]: entry["doc"]["options"].keys() for name, entry in json.loads(done.stdout).items()
    }
    groups = yaml.safe_load((ROOT / "meta/runtime.yml").read_text())["action_groups"]
    for group, common in COMMON.items():
        assert groups[group] == [name for name in options if common <= options[name]]
