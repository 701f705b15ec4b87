"""Foreign hardware, once for each quirk, in front of a real machine: `ci/foreign_bmc.py` by https, a domain of libvirt behind it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.ci import foreign_bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import secrets

pytestmark = pytest.mark.slow

IMAGE = b"an ISO that no firmware boots" * 4096


def test_each_quirk_alone(lab: Callable[[str, dict[str, Any]], Any], base: Path) -> None:
    metal = lab("metal", {"topology": "sno"})
    metal.play("prepare")
    plan = secrets.into(metal.plan, secrets.of(metal.plan, metal.run_dir))
    [node], http = plan["nodes"], plan["services"]["http"]
    Path(http["root"], "some.iso").write_bytes(IMAGE)
    given = {
        "system": node["uuid"],
        "domain": node["domain"],
        "upstream": plan["services"]["bmc"]["url"].partition("/redfish")[0],
        "address": plan["networks"][0]["subnets"][0]["gateway"],
        "username": node["bmc"]["username"],
        "password": node["bmc"]["password"],
        "image": f"{http['url']}/some.iso",
        "folder": str(base),
        "quirks": foreign_bmc.QUIRKS,
    }
    (base / "given.json").write_text(json.dumps(given))
    partner = Path(__file__).with_name("foreign_partner.py")
    done = subprocess.run(
        [*metal.inside(), sys.executable, str(partner), str(base / "given.json")],
        capture_output=True,
        text=True,
        env={**os.environ, "no_proxy": "*"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["quirk"] for one in found] == [*foreign_bmc.QUIRKS]
    inserted = hashlib.sha256(IMAGE).hexdigest()
    for one in found:
        assert one["url"].startswith("redfish+https://")
        assert one["boots"] == (["Hdd", "Cd"] if one["quirk"] == "boot_override_lost" else ["Cd"]), one
        assert one["booted"] == {"state": "running", "medium": inserted}, one
        assert one["released"] == {"state": "shut off", "medium": None}, one
