"""Hardware manager of the ramdisk: the deploy step that installs the lab's OS with its Ignition config.

It has the name and the shape of that of OpenShift's ramdisk (openshift/ironic-agent-image,
`hardware_manager/ironic_coreos_install.py`): the config drive's user data is the Ignition config, its metadata have the host name, and coreos-installer
writes the running system to the disk that Ironic has chosen. This file is part of the ramdisk, and alone there.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

from ironic_python_agent import efi_utils, errors, hardware
from oslo_log import log

LOG = log.getLogger(__name__)


class InstallCoreos(hardware.HardwareManager):  # type: ignore[misc]
    """The step `install_coreos`; all else is the generic manager's."""

    HARDWARE_MANAGER_NAME = "InstallCoreos"
    HARDWARE_MANAGER_VERSION = "1"

    def evaluate_hardware_support(self) -> int:
        """Return that this manager comes before the generic one."""
        return int(hardware.HardwareSupport.SERVICE_PROVIDER)

    def get_deploy_steps(self, node: Mapping[str, Any], ports: object) -> list[dict[str, Any]]:
        """Return the step, which runs only where a deployment asks for it."""
        step = {
            "step": "install_coreos",
            "priority": 0,
            "interface": "deploy",
            "reboot_requested": False,
            "argsinfo": {},
        }
        return [step]

    def install_coreos(self, node: Mapping[str, Any], ports: object) -> None:
        """Write the OS to the root device. Raises `DeploymentError` with the installer's last lines."""
        device = hardware.dispatch_to_managers("get_os_install_device", permit_refresh=True)
        drive = node["instance_info"].get("configdrive") or {}
        if isinstance(drive, str):
            raise errors.DeploymentError("Cannot use a pre-rendered configdrive, please pass it as JSON data")
        config = drive.get("user_data") or {}
        if name := (drive.get("meta_data") or {}).get("name"):
            file = {
                "path": "/etc/hostname",
                "mode": 0o644,
                "overwrite": True,
                "contents": {"source": f"data:,{name}%0A"},
            }
            config.setdefault("storage", {}).setdefault("files", []).append(file)
        with tempfile.NamedTemporaryFile("w", suffix=".ign") as stream:
            json.dump(config, stream)
            stream.flush()
            command = ["coreos-installer", "install", "--offline", "--ignition-file", stream.name, device]
            LOG.info("Running %s", command)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        LOG.info("coreos-installer: %s", done.stderr[-2000:])
        if done.returncode:
            raise errors.DeploymentError(f"coreos-installer failed: {done.stderr[-500:]}")
        efi_utils.manage_uefi(device)
