"""Foreign hardware, once for each quirk: a machine of a second sandbox, behind `ci/foreign_bmc.py` by https, is driven from a first one."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.ci import foreign, foreign_bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

pytestmark = pytest.mark.slow

IMAGE = b"an ISO that no firmware boots" * 4096


def test_each_quirk_alone(lab: Callable[[str, dict[str, Any]], Any], base: Path) -> None:
    ours, metal = (
        lab("ours", {"topology": "sno"}),
        lab("metal", {"addressing": "static", "network": {"ipv4": foreign.NETWORK}}),
    )
    ours.play("prepare")
    metal.play("prepare")
    address = str([*ipaddress.ip_network(ours.plan["networks"][0]["subnets"][0]["cidr"]).hosts()][-1])
    for arguments in foreign.cable(ours.plan, metal.plan, address):
        subprocess.run([*namespaces.enter(ours.host), "ip", *arguments], check=True)
    plan = secrets.into(metal.plan, secrets.of(metal.plan, metal.run_dir))
    [node], http = plan["nodes"], ours.plan["services"]["http"]
    Path(http["root"], "some.iso").write_bytes(IMAGE)
    given = {
        "system": node["uuid"],
        "domain": node["domain"],
        "upstream": plan["services"]["bmc"]["url"].partition("/redfish")[0],
        "address": address,
        "username": node["bmc"]["username"],
        "password": node["bmc"]["password"],
        "image": f"{http['url']}/some.iso",
        "folder": str(base),
        "quirks": foreign_bmc.QUIRKS,
        "inside": metal.inside(),
    }
    (base / "given.json").write_text(json.dumps(given))
    partner = Path(__file__).with_name("foreign_partner.py")
    done = subprocess.run(
        [*ours.inside(), sys.executable, str(partner), str(base / "given.json")],
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
