"""What a node reports of its machine: capacity and nodeInfo."""

from __future__ import annotations

import os
from pathlib import Path

from .facts import kubernetes_version


class Machine:
    """The machine of a node; `root` is the mount point of the host's root file system."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def capacity(self) -> dict[str, str]:
        """Return `status.capacity`: quantities of Kubernetes by resource."""
        memory = next(
            line.split()[1] for line in self.read("/proc/meminfo").splitlines() if line.startswith("MemTotal:")
        )
        disk = os.statvfs(self.root)
        return {
            "cpu": str(os.cpu_count() or 1),
            "memory": f"{memory}Ki",
            "pods": "250",
            "hugepages-1Gi": "0",
            "hugepages-2Mi": "0",
            "ephemeral-storage": f"{disk.f_blocks * disk.f_frsize // 1024}Ki",
        }

    def info(self, release: str) -> dict[str, str]:
        """Return `status.nodeInfo`; `release` is the version of the cluster."""
        system = os.uname()
        os_release = dict(line.split("=", 1) for line in self.read("/etc/os-release").splitlines() if "=" in line)
        return {
            "machineID": self._optional("/etc/machine-id"),
            "systemUUID": self._optional("/sys/class/dmi/id/product_uuid").lower(),
            "bootID": self._optional("/proc/sys/kernel/random/boot_id"),
            "kernelVersion": system.release,
            "osImage": os_release.get("PRETTY_NAME", "").strip('"'),
            "operatingSystem": "linux",
            "architecture": "amd64",
            "containerRuntimeVersion": "podman://4",
            "kubeletVersion": kubernetes_version(release),
            "kubeProxyVersion": "",
        }

    def read(self, path: str) -> str:
        """Return the text of a file of the host; OSError if there is none."""
        return (self.root / path.lstrip("/")).read_text()

    def _optional(self, path: str) -> str:
        try:
            return self.read(path).strip()
        except OSError:
            return ""
