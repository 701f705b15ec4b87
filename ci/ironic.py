"""Lets a real Ironic provision a machine of a prepared lab through its BMC: `ci/ironic.py CLUSTER`.

Ironic (standalone, one process, SQLite) runs in the sandbox, as its redfish driver with virtual media does on bare
metal: it enrols the first node, switches it, inspects it with ironic-python-agent, cleans its disk, writes an image,
and after that cleans the disk again, which boots by then. Its log is `logs/ironic.log` of the run directory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.ci import ironic_images
from ansible_collections.agentlab.ocp.ci.calls import Failed, expect
from ansible_collections.agentlab.ocp.payload import build
from ansible_collections.agentlab.ocp.payload.build import steps
from ansible_collections.agentlab.ocp.plugins.module_utils.boot import redfish
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.cluster import Cluster, find
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import secrets

PORT = 6385
API_VERSION = "1.95"
START_SECONDS = 120.0
STAGE_SECONDS = 1200.0
"""Longest time of one stage: a boot of the ramdisk without KVM takes minutes."""
SETTINGS = """[DEFAULT]
auth_strategy = noauth
rpc_transport = none
host = {address}
my_ip = {address}
state_path = {work}
tempdir = {work}/tmp
log_file = {log}
enabled_hardware_types = redfish
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = redfish-virtual-media
enabled_console_interfaces = no-console
enabled_deploy_interfaces = direct
enabled_firmware_interfaces = no-firmware
enabled_inspect_interfaces = agent,redfish
enabled_management_interfaces = redfish
enabled_network_interfaces = noop
enabled_power_interfaces = redfish
enabled_raid_interfaces = no-raid
enabled_rescue_interfaces = no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor
esp_image = {images}/esp.img
grub_config_path = {grub}
[agent]
certificates_path = {work}/certificates
[api]
host_ip = {address}
port = {port}
public_endpoint = http://{address}:{port}
[conductor]
automated_clean = true
disable_zstandard_decompression = true
file_url_allowed_paths = {images}
[database]
connection = sqlite:///{work}/ironic.sqlite
[deploy]
erase_devices_priority = 0
erase_devices_metadata_priority = 10
http_root = {http_root}
http_url = {http_url}
iso_master_path = {work}/master_isos
[oslo_concurrency]
lock_path = {work}/lock
[redfish]
kernel_append_params = {kargs}
[service_catalog]
auth_type = none
endpoint_override = http://{address}:{port}
"""


class Ironic:
    """An Ironic that runs, and its API. `node` is the name of the one node that it has."""

    def __init__(self, cluster: Cluster, environment: Path, images: Path) -> None:
        self.cluster, self.images = cluster, images
        self.node = cluster.plan["nodes"][0]["name"]
        self.log = cluster.directory / "logs/ironic.log"
        self._address = cluster.plan["services"]["address"]
        self._work = cluster.directory / "ironic"
        http = cluster.plan["services"]["http"]
        self.published = Path(http["root"]) / "ironic"
        self.published_url = f"{http['url']}/ironic"
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(environment),
            "PATH": f"{self._work}/bin:{os.environ['PATH']}",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Ironic:
        shutil.rmtree(self._work, ignore_errors=True)
        for folder in (self._work / "tmp", self._work / "lock", self._work / "bin", self.published, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        # Ironic calls mkisofs, which is what xorriso is by that name.
        (self._work / "bin/mkisofs").symlink_to(shutil.which("xorriso") or "/usr/bin/xorriso")
        config = self._work / "ironic.conf"
        config.write_text(
            SETTINGS.format(
                address=self._address, port=PORT, work=self._work, log=self.log, images=self.images, grub=ironic_images.grub_config(),
                http_root=self.published, http_url=self.published_url, kargs=ironic_images.KARGS,
            )
        )  # fmt: skip
        create = "import sys; from ironic.command.dbsync import main; sys.argv[0] = 'ironic-dbsync'; sys.exit(main())"
        self._run([sys.executable, "-s", "-c", create, "--config-file", str(config), "create_schema"])
        serve = "import sys; from ironic.command.singleprocess import main; sys.argv[0] = 'ironic'; sys.exit(main())"
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-c", serve, "--config-file", str(config)], env=self._environment, cwd=self._work,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.until("Ironic answers", self._answers, START_SECONDS)
        return self

    def __exit__(self, *__: object) -> None:
        if self._process:
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
        shutil.rmtree(self.published, ignore_errors=True)

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command, env=self._environment, cwd=self._work, capture_output=True, text=True, check=False, timeout=300
        )
        if done.returncode:
            raise Failed(f"{command[-1]}: {done.stderr[-2000:]}")

    def _answers(self) -> bool:
        if self._process and self._process.poll() is not None:
            raise Failed(f"Ironic has ended with {self._process.returncode}: {self.log}")
        try:
            return bool(self.call("GET", "/drivers")["drivers"])
        except OSError:
            return False

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of the API to a request, None for an empty one. Raises `Failed` with Ironic's words."""
        request = urllib.request.Request(
            f"http://{self._address}:{PORT}/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": API_VERSION},
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Failed(f"{method} {path}: {error.code}: {error.read().decode(errors='replace')[:1000]}") from error
        return json.loads(text) if text else None

    def show(self) -> dict[str, Any]:
        """Return the node."""
        found: dict[str, Any] = self.call("GET", f"/nodes/{self.node}")
        return found

    def set(self, **values: object) -> None:
        """Set fields of the node: `driver_info`, `instance_info`."""
        self.call("PATCH", f"/nodes/{self.node}", [{"op": "add", "path": f"/{key}", "value": value} for key, value in values.items()])  # fmt: skip

    def provision(self, verb: str, wanted: str) -> None:
        """Request a provision state, and wait until the node is in `wanted`. Raises `Failed` with the node's error."""
        self.call("PUT", f"/nodes/{self.node}/states/provision", {"target": verb})

        def reached() -> bool:
            node = self.show()
            if node["provision_state"] in ("error", "enroll") or node["provision_state"].endswith("failed"):
                raise Failed(f"{verb}: {node['provision_state']}: {node['last_error']}")
            return bool(node["provision_state"] == wanted)

        self.until(f"{self.node} is {wanted}", reached, STAGE_SECONDS)

    def power(self, target: str) -> None:
        """Switch the node, and wait until Ironic has seen it: `power on`, `power off`."""
        self.call("PUT", f"/nodes/{self.node}/states/power", {"target": target})

        def reached() -> bool:
            node = self.show()
            if node["target_power_state"] is None and node["last_error"]:
                raise Failed(f"{target}: {node['last_error']}")
            return bool(node["power_state"] == target)

        self.until(f"{self.node} is {target}", reached, 120)

    @staticmethod
    def until(what: str, true: Callable[[], bool], limit: float) -> None:
        """Return when `true` is; raises `Failed` after `limit` seconds."""
        end = time.monotonic() + limit
        while not true():
            if time.monotonic() > end:
                raise Failed(f"after {limit:.0f} s: {what} is not true")
            time.sleep(2)


def enrol(ironic: Ironic) -> str:
    """The node is verified through its BMC, whose certificate is checked."""
    plan = secrets.into(ironic.cluster.plan, secrets.of(ironic.cluster.plan, ironic.cluster.directory))
    node = plan["nodes"][0]
    where = redfish.parse(node["bmc"]["address"])
    made = ironic.call(
        "POST",
        "/nodes",
        {
            "name": node["name"],
            "driver": "redfish",
            "driver_info": {
                "redfish_address": where.root,
                "redfish_system_id": where.system,
                "redfish_username": node["bmc"]["username"],
                "redfish_password": node["bmc"]["password"],
                "redfish_verify_ca": str(ironic.cluster.directory / "tls/ca.crt"),
                "deploy_kernel": f"file://{ironic.images}/kernel",
                "deploy_ramdisk": f"file://{ironic.images}/ramdisk",
            },
        },
    )
    for nic in node["nics"]:
        ironic.call("POST", "/ports", {"node_uuid": made["uuid"], "address": nic["mac"]})
    ironic.provision("manage", "manageable")
    checked = ironic.call("GET", f"/nodes/{ironic.node}/validate")
    wrong = {name: checked[name] for name in ("boot", "inspect", "management", "power") if not checked[name]["result"]}
    expect(not wrong, wrong)
    return f"power state {ironic.show()['power_state']}"


def switch(ironic: Ironic) -> str:
    """Power on and off, and the devices that a client may choose."""
    ironic.power("power on")
    ironic.power("power off")
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
    ironic.set(inspect_interface=interface)
    ironic.provision("inspect", "manageable")
    found = ironic.call("GET", f"/nodes/{ironic.node}/inventory")["inventory"]
    sizes = sorted(disk["size"] >> 30 for disk in found["disks"])
    expect(sizes == sorted(disk["size_gib"] for disk in ironic.cluster.plan["nodes"][0]["disks"]), found["disks"])
    return found, f"{found['cpu']['count']} CPUs, {found['memory']['physical_mb']} MiB, disks of {sizes} GiB"


def clean(ironic: Ironic) -> str:
    """The agent erases the metadata of the disk."""
    ironic.provision("provide", "available")
    return "the metadata of the disk was erased"


def deploy(ironic: Ironic) -> str:
    """The agent writes the image, and the machine boots it."""
    image = ironic.published / "disk.raw"
    shutil.copyfile(ironic.images / image.name, image)
    with image.open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()
    ironic.set(
        instance_info={
            "image_source": f"{ironic.published_url}/{image.name}",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": checksum,
            "image_disk_format": "raw",
        }
    )
    ironic.provision("active", "active")
    console = Path(ironic.cluster.plan["nodes"][0]["console"])

    def booted() -> bool:
        text = console.read_text("utf-8", "replace")
        return "login:" in text[text.rfind(f"{ironic_images.MARK}=1") :] and f"{ironic_images.MARK}=1" in text

    ironic.until(f"{console} shows that the written disk boots", booted, STAGE_SECONDS)
    return f"{image.stat().st_size >> 20} MiB were written; the OS on the disk has booted"


def undeploy(ironic: Ironic) -> str:
    """The disk boots by now, and the medium is preferred once: the agent cleans it."""
    ironic.provision("deleted", "available")
    expect(ironic.show()["power_state"] == "power off", ironic.show()["power_state"])
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
            except (Failed, OSError, LookupError, ValueError) as error:
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
            return run(cluster, environment, images, args.until)
        made = steps.Steps(steps.cache_root(), lambda text: print(f"ok   {text}", flush=True))
        payload = build.ensure(say=made.say)
        with steps.lock(made.cache / "lock", made.say):
            folders = ironic_images.environment(made), ironic_images.images(made, Path(payload["iso"]))
        command = [
            sys.executable,
            str(Path(__file__).resolve()),
            args.cluster,
            "--until",
            args.until,
            "--inside",
            *map(str, folders),
        ]
        return subprocess.run([*cluster.enter(os.getcwd(), root=True), *command], check=False).returncode
    except (Failed, build.BuildError, OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
        print(f"FAIL {type(error).__name__}: {error}", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
