"""Lets a real Ironic provision a machine of a prepared lab through its BMC: `ci/ironic.py CLUSTER`.

Ironic (standalone, one process, SQLite) runs in the sandbox, as its redfish driver with virtual media does on bare
metal: it enrols the first node, switches it, inspects it with ironic-python-agent, cleans its disk, writes an image,
and after that cleans the disk again, which boots by then. Its log is `logs/ironic.log` of the run directory.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.ci.calls import VerbFailed, expect
from ansible_collections.agentlab.ocp.payload import build
from ansible_collections.agentlab.ocp.payload.build import steps
from ansible_collections.agentlab.ocp.payload.ipi import images as ironic_images
from ansible_collections.agentlab.ocp.payload.ipi import ironic as service
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.cluster import Cluster, find
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import secrets
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile


class Ironic(service.Ironic):
    """An Ironic of a cluster's lab. `node` is the name of the one node that it has."""

    def __init__(self, cluster: Cluster, environment: Path, images: Path) -> None:
        self.cluster = cluster
        self.node = cluster.plan["nodes"][0]["name"]
        http = cluster.plan["services"]["http"]
        super().__init__(
            address=cluster.plan["services"]["address"],
            environment=environment,
            images=images,
            work=cluster.directory / "ironic",
            published=Path(http["root"]) / "ironic",
            url=f"{http['url']}/ironic",
            log=cluster.directory / RunFile.IRONIC_LOG,
        )


def enrol(ironic: Ironic) -> str:
    """The node is verified through its BMC, whose certificate is checked."""
    plan = secrets.with_passwords(
        ironic.cluster.plan, secrets.passwords_of(ironic.cluster.plan, ironic.cluster.directory)
    )
    ironic.enrol(plan["nodes"][0], ironic.cluster.directory / RunFile.CA)
    checked = ironic.call("GET", f"/nodes/{ironic.node}/validate")
    wrong = {name: checked[name] for name in ("boot", "inspect", "management", "power") if not checked[name]["result"]}
    expect(not wrong, wrong)
    return f"power state {ironic.show(ironic.node)['power_state']}"


def switch(ironic: Ironic) -> str:
    """Power on and off, and the devices that a client may choose."""
    ironic.power(ironic.node, "power on")
    ironic.power(ironic.node, "power off")
    path = f"/nodes/{ironic.node}/management/boot_device"
    for device in ("cdrom", "pxe", "disk"):
        ironic.call("PUT", path, {"boot_device": device, "persistent": True})
        found = ironic.call("GET", path)
        expect(found == {"boot_device": device, "persistent": True}, found)
    return "boots from cdrom, pxe, disk"


def ask(ironic: Ironic) -> str:
    """The BMC reports what the plan has, without a boot."""
    return _inspected(ironic, "redfish")[1]


def inspect(ironic: Ironic) -> str:
    """The agent finds what the plan has."""
    found, text = _inspected(ironic, "agent")
    node = ironic.cluster.plan["nodes"][0]
    expect(found["cpu"]["count"] == node["vcpus"], found["cpu"])
    expect(found["boot"]["current_boot_mode"] == "uefi", found["boot"])
    macs = {one["mac_address"] for one in found["interfaces"]}
    expect({nic["mac"] for nic in node["nics"]} <= macs, macs)
    return f"{text}, UEFI"


def _inspected(ironic: Ironic, interface: str) -> tuple[dict[str, Any], str]:
    """Inspect by an interface of Ironic; return the inventory, whose disks are the plan's, and a summary."""
    ironic.set(ironic.node, inspect_interface=interface)
    ironic.provision(ironic.node, "inspect", "manageable")
    found = ironic.call("GET", f"/nodes/{ironic.node}/inventory")["inventory"]
    sizes = sorted(disk["size"] >> 30 for disk in found["disks"])
    expect(sizes == sorted(disk["size_gib"] for disk in ironic.cluster.plan["nodes"][0]["disks"]), found["disks"])
    return found, f"{found['cpu']['count']} CPUs, {found['memory']['physical_mb']} MiB, disks of {sizes} GiB"


def clean(ironic: Ironic) -> str:
    """The agent erases the metadata of the disk."""
    ironic.provision(ironic.node, "provide", "available")
    return "the metadata of the disk was erased"


def deploy(ironic: Ironic) -> str:
    """The agent writes the image, and the machine boots it."""
    image = ironic.published / "disk.raw"
    shutil.copyfile(ironic.images / image.name, image)
    with image.open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()
    ironic.set(
        ironic.node,
        instance_info={
            "image_source": f"{ironic.published_url}/{image.name}",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": checksum,
            "image_disk_format": "raw",
        },
    )
    ironic.provision(ironic.node, "active", "active")
    console = Path(ironic.cluster.plan["nodes"][0]["console"])

    def booted() -> bool:
        text = console.read_text("utf-8", "replace")
        return "login:" in text[text.rfind(f"{ironic_images.MARK}=1") :] and f"{ironic_images.MARK}=1" in text

    ironic.wait_until(f"{console} shows that the written disk boots", booted, service.STAGE_SECONDS)
    return f"{image.stat().st_size >> 20} MiB were written; the OS on the disk has booted"


def undeploy(ironic: Ironic) -> str:
    """The disk boots by now, and the medium is preferred once: the agent cleans it."""
    ironic.provision(ironic.node, "deleted", "available")
    expect(ironic.show(ironic.node)["power_state"] == "power off", ironic.show(ironic.node)["power_state"])
    return "the disk that boots was cleaned"


STAGES = (enrol, switch, ask, inspect, clean, deploy, undeploy)


def findings(log: Path) -> list[str]:
    """Return Ironic's warnings and errors, each once, without its times and names of requests."""
    found: dict[str, None] = {}
    for line in log.read_text("utf-8", "replace").splitlines():
        if match := re.match(r"\S+ \S+ \d+ (WARNING|ERROR) (\S+) \[[^\]]*\] (.*)", line):
            found.setdefault(f"{match[1]} {match[2]}: {match[3]}"[:300])
    return list(found)


def run(cluster: Cluster, environment: Path, images: Path, until: str) -> int:
    """Run the stages in the sandbox; print a line for each, and what Ironic warned of."""
    status = 0
    with Ironic(cluster, environment, images) as ironic:
        for stage in STAGES:
            begin = time.monotonic()
            try:
                result = f"ok   {stage.__name__}: {stage(ironic)}"
            except (VerbFailed, OSError, LookupError, ValueError) as error:
                result, status = f"FAIL {stage.__name__}: {type(error).__name__}: {error}", 1
            print(f"{result} ({time.monotonic() - begin:.0f} s)", flush=True)
            if status or stage.__name__ == until:
                break
    for line in findings(ironic.log):
        print(f"ok   log: {line}", flush=True)
    return status


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ci/ironic.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cluster")
    parser.add_argument("--until", choices=[stage.__name__ for stage in STAGES], default=STAGES[-1].__name__)
    parser.add_argument("--inside", nargs=2, type=Path, metavar=("IRONIC", "IMAGES"), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    try:
        cluster = find(args.cluster)
        if args.inside:
            environment, images = args.inside
            return run(cluster, environment, images, args.wait_until)
        made = steps.Steps(steps.cache_root(), lambda text: print(f"ok   {text}", flush=True))
        payload = build.ensure(report=made.report)
        with steps.lock(made.cache / "lock", made.report):
            folders = ironic_images.environment(made), ironic_images.images(made, Path(payload["iso"]))
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            args.cluster,
            "--until",
            args.wait_until,
            "--inside",
            *map(str, folders),
        ]
        return subprocess.run([*cluster.enter(os.getcwd(), root=True), *command], check=False).returncode
    except (VerbFailed, build.BuildError, OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
        print(f"FAIL {type(error).__name__}: {error}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
