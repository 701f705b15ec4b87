"""A real Ironic of a lab: standalone, one process with SQLite and without authentication, as a service in the sandbox."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from ...plugins.module_utils.bmc.redfish.address import parse
from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.plan.machines import Node
from . import images as ironic_images

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
enabled_deploy_interfaces = direct,custom-agent
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
automated_clean = {clean}
disable_zstandard_decompression = true
file_url_allowed_paths = {images}
[database]
connection = sqlite:///{work}/ironic.sqlite
[deploy]
erase_devices_priority = 0
erase_devices_metadata_priority = 10
fast_track = {fast_track}
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


class IronicError(ValueError):
    """Ironic did not start, refused a request, or failed to do it; the text is Ironic's, where it gave one."""


class Ironic:
    """An Ironic that runs while its context is open, and its API.

    address: where it listens, in the machines' network; environment, images: directories made by `images`; work: a
    directory of its own, which is emptied first; published, url: what machines fetch, as a directory and its URL; log: its
    log. bootstrap: as in metal3's bootstrap, nodes are not cleaned, and the agent stays after an inspection.
    """

    def __init__(
        self,
        *,
        address: str,
        environment: Path,
        images: Path,
        work: Path,
        published: Path,
        url: str,
        log: Path,
        bootstrap: bool = False,
    ) -> None:
        self.images, self.published, self.published_url, self.log = images, published, url, log
        self._address, self._work, self._bootstrap = address, work, bootstrap
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(environment),
            "PATH": f"{work}/bin:{os.environ['PATH']}",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
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
                clean=str(not self._bootstrap).lower(), fast_track=str(self._bootstrap).lower(),
            )
        )  # fmt: skip
        create = "import sys; from ironic.command.dbsync import main; sys.argv[0] = 'ironic-dbsync'; sys.exit(main())"
        self._run([sys.executable, "-s", "-c", create, "--config-file", str(config), "create_schema"])
        serve = "import sys; from ironic.command.singleprocess import main; sys.argv[0] = 'ironic'; sys.exit(main())"
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-c", serve, "--config-file", str(config)], env=self._environment, cwd=self._work,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.wait_until("Ironic answers", self._answers, START_SECONDS)
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
            raise IronicError(f"{command[-1]}: {done.stderr[-2000:]}")

    def _answers(self) -> bool:
        if self._process and self._process.poll() is not None:
            raise IronicError(f"Ironic has ended with {self._process.returncode}: {self.log}")
        try:
            return bool(self.call("GET", "/drivers")["drivers"])
        except OSError:
            return False

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of the API to a request, None for an empty one. Raises `IronicError` with Ironic's words."""
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
            raise IronicError(
                f"{method} {path}: {error.code}: {error.read().decode(errors='replace')[:1000]}"
            ) from error
        return load_json(text, name=f"the answer to {method} {path}") if text else None

    def enrol(self, node: Node, ca: Path, **more: object) -> None:
        """Add a node of the plan, whose BMC has its password, and verify it; more: other fields.

        ca: the authority of the BMC's certificate.
        """
        where, name = parse(node["bmc"]["address"]), node["name"]
        made = self.call(
            "POST",
            "/nodes",
            {
                "name": name,
                "driver": "redfish",
                "driver_info": {
                    "redfish_address": where.root,
                    "redfish_system_id": where.system,
                    "redfish_username": node["bmc"]["username"],
                    "redfish_password": node["bmc"]["password"],
                    "redfish_verify_ca": str(ca),
                    "deploy_kernel": f"file://{self.images}/kernel",
                    "deploy_ramdisk": f"file://{self.images}/ramdisk",
                },
                **more,
            },
        )
        for nic in node["nics"]:
            self.call("POST", "/ports", {"node_uuid": made["uuid"], "address": nic["mac"]})
        self.provision(name, "manage", "manageable")

    def show(self, name: str) -> dict[str, Any]:
        """Return a node."""
        found: dict[str, Any] = self.call("GET", f"/nodes/{name}")
        return found

    def set(self, name: str, **values: object) -> None:
        """Set fields of a node: `driver_info`, `instance_info`."""
        self.call("PATCH", f"/nodes/{name}", [{"op": "add", "path": f"/{key}", "value": value} for key, value in values.items()])  # fmt: skip

    def provision(self, name: str, verb: str, wanted: str, more: Mapping[str, object] | None = None) -> None:
        """Request a provision state, and wait until the node is in `wanted`. Raises `IronicError` with the node's error.

        more: other fields of the request: `configdrive`, `deploy_steps`.
        """
        self.call("PUT", f"/nodes/{name}/states/provision", {"target": verb, **(more or {})})

        def reached() -> bool:
            node = self.show(name)
            if node["provision_state"] in ("error", "enroll") or node["provision_state"].endswith("failed"):
                raise IronicError(f"{verb}: {node['provision_state']}: {node['last_error']}")
            return bool(node["provision_state"] == wanted)

        self.wait_until(f"{name} is {wanted}", reached, STAGE_SECONDS)

    def power(self, name: str, target: str) -> None:
        """Switch a node, and wait until Ironic has seen it: `power on`, `power off`."""
        self.call("PUT", f"/nodes/{name}/states/power", {"target": target})

        def reached() -> bool:
            node = self.show(name)
            if node["target_power_state"] is None and node["last_error"]:
                raise IronicError(f"{target}: {node['last_error']}")
            return bool(node["power_state"] == target)

        self.wait_until(f"{name} is {target}", reached, 120)

    @staticmethod
    def wait_until(what: str, true: Callable[[], bool], limit: float) -> None:
        """Return when `true` is; raises `IronicError` after `limit` seconds."""
        end = time.monotonic() + limit
        while not true():
            if time.monotonic() > end:
                raise IronicError(f"after {limit:.0f} s: {what} is not true")
            time.sleep(2)
