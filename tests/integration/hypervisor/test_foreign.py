"""Foreign hardware, once for each quirk: a machine of a second sandbox, behind `ci/foreign_bmc.py` by https, is driven from a first one."""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.ci import foreign, foreign_bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.bmc.quirks import QUIRKS
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

pytestmark = pytest.mark.slow

IMAGE = b"an ISO that no firmware boots" * 4096
PORT, SECONDS = 9443, 30


@contextlib.contextmanager
def hardware(metal: Any, address: str, upstream: str, quirk: str, authority: Path, log: Path) -> Iterator[None]:
    """The BMC with the quirk, in the sandbox of the machine."""
    command = [*metal.inside(), sys.executable, foreign_bmc.__file__, f"{address}:{PORT}", upstream, quirk]
    process = subprocess.Popen([*command, "--log", str(log), "--ca", str(authority)], start_new_session=True)
    try:
        end = time.monotonic() + SECONDS
        while not (log.exists() and log.read_text()):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # nsenter(1) alone would leave the BMC behind
        process.wait()


def machine(metal: Any, domain: str) -> dict[str, str | None]:
    """Return the state of a domain, and the digest of what is in its CD drive."""
    definition = ET.fromstring(metal.enter("virsh", "-c", "qemu:///system", "dumpxml", domain))
    sources = definition.findall("devices/disk[@device='cdrom']/source")
    files = [Path(path) for source in sources if (path := source.get("file"))]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    state = metal.enter("virsh", "-c", "qemu:///system", "domstate", domain).strip()
    return {"state": state, "medium": digests[0] if digests else None}


def test_each_quirk_alone(lab: Callable[[str, dict[str, Any]], Any], base: Path) -> None:
    ours = lab("ours", {"topology": "sno"})
    metal = lab("metal", {"addressing": "static", "network": {"ipv4": foreign.NETWORK}})
    ours.play("prepare")
    metal.play("prepare")
    address = str([*ipaddress.ip_network(ours.plan["networks"][0]["subnets"][0]["cidr"]).hosts()][-1])
    for arguments in foreign.cable(ours.plan, metal.plan, address):
        subprocess.run([*namespaces.enter(ours.host), "ip", *arguments], check=True)
    plan = secrets.with_passwords(metal.plan, secrets.passwords_of(metal.plan, metal.run_dir))
    [node], http = plan["nodes"], ours.plan["services"]["http"]
    Path(http["root"], "some.iso").write_bytes(IMAGE)
    upstream, authority = plan["services"]["bmc"]["url"].partition("/redfish")[0], base / "bmc/ca.crt"
    partner = [
        *ours.inside(),
        sys.executable,
        str(Path(__file__).with_name("foreign_partner.py")),
        str(base / "given.json"),
    ]
    for quirk in foreign_bmc.QUIRKS:
        given = {
            "url": f"redfish+https://{address}:{PORT}/redfish/v1/Systems/{node['uuid']}",
            "authority": str(authority),
            "username": node["bmc"]["username"],
            "password": node["bmc"]["password"],
            "quirks": [*{quirk} & {*QUIRKS}],
            "image": f"{http['url']}/some.iso",
        }
        (base / "given.json").write_text(json.dumps(given))
        log, found = base / f"{quirk}.log", []
        with hardware(metal, address, upstream, quirk, authority, log):
            for act in ("boot", "release"):
                done = subprocess.run(
                    [*partner, act],
                    capture_output=True,
                    text=True,
                    env={**os.environ, "no_proxy": "*"},
                    timeout=120,
                    check=False,
                )
                assert done.returncode == 0, (quirk, act, done.stderr)
                found.append(machine(metal, node["domain"]))
        assert found == [
            {"state": "running", "medium": hashlib.sha256(IMAGE).hexdigest()},
            {"state": "shut off", "medium": None},
        ], quirk
        boots = [line["boot"] for line in map(json.loads, log.read_text().splitlines()) if "boot" in line]
        assert boots == (["Hdd", "Cd"] if quirk == "boot_override_lost" else ["Cd"]), quirk
