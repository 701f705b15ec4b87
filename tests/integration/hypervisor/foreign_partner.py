"""Boots a machine behind foreign hardware as the role `boot` does, and takes its medium away again. Runs in a sandbox of a test.

    python foreign_partner.py FILE

FILE is JSON: `system` and `domain` of the machine, `upstream` (the URL of its emulator), `address` of the BMC, `username` and
`password`, the `image` to insert, `folder` for logs and certificates, the `quirks`, one run each, and `inside`: what begins the command
line of a program in the sandbox of the machine.
Prints a line of JSON for each run: the `quirk`, its `boots`, the `url` of the BMC, and the machine `booted` and `released`: its state,
and the digest of the file in its drive.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.ci import foreign_bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import bmc
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import bmcs

PORT, SECONDS = 9443, 30


def virsh(inside: list[str], *arguments: str) -> str:
    return subprocess.run(
        [*inside, "virsh", "-c", "qemu:///system", *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def machine(inside: list[str], domain: str) -> dict[str, str | None]:
    """Return the state of a domain, and the digest of what is in its CD drive."""
    sources = ET.fromstring(virsh(inside, "dumpxml", domain)).findall("devices/disk[@device='cdrom']/source")
    files = [Path(path) for source in sources if (path := source.get("file"))]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return {"state": virsh(inside, "domstate", domain), "medium": digests[0] if digests else None}


def run(given: dict[str, Any], quirk: str, log: Path) -> dict[str, Any]:
    """Boot the machine behind a BMC with the quirk, and release it."""
    authority = Path(given["folder"], "bmc/ca.crt")
    hardware = subprocess.Popen(
        [
            *given["inside"], sys.executable, foreign_bmc.__file__, f"{given['address']}:{PORT}", given["upstream"], quirk, "--log", log, "--ca", authority,
        ],
    )  # fmt: skip
    try:
        end = time.monotonic() + SECONDS
        while not (log.exists() and log.read_text()):
            assert hardware.poll() is None and time.monotonic() < end
            time.sleep(0.05)
        url = f"redfish+https://{given['address']}:{PORT}/redfish/v1/Systems/{given['system']}"
        own = bmc.connect(
            "master-0", url, given["username"], given["password"], str(authority), {quirk} & {*bmcs.QUIRKS}
        )
        own.power_off()
        own.eject()
        own.insert(given["image"])
        own.boot_from_cd()
        own.power_on()
        booted = machine(given["inside"], given["domain"])
        own.power_off()
        own.eject()
        noted = [json.loads(line) for line in log.read_text().splitlines()]
        boots = [line["boot"] for line in noted if "boot" in line]
        return {
            "quirk": quirk,
            "url": url,
            "boots": boots,
            "booted": booted,
            "released": machine(given["inside"], given["domain"]),
        }
    finally:
        hardware.kill()
        hardware.wait()


if __name__ == "__main__":
    settings = json.loads(Path(sys.argv[1]).read_text())
    for one in settings["quirks"]:
        print(json.dumps(run(settings, one, Path(settings["folder"], f"{one}.log"))), flush=True)
