"""Hardware thresholds that the assisted service holds hosts against."""

from __future__ import annotations

import json
from typing import Any

from ..releases import ReleaseProfile


def requirements(profile: ReleaseProfile, internal_release_image: bool = False) -> str:
    """HW_VALIDATOR_REQUIREMENTS as JSON text: upstream's table for a release.

    internal_release_image: an extra manifest of that kind needs bigger disks on masters.
    """
    disk = 220 if internal_release_image and profile.internal_release_image else 100

    def role(cpu: int, ram: int, disk_gb: int, latency: int | None = None, loss: int = 0) -> dict[str, int]:
        found = {"cpu_cores": cpu, "ram_mib": ram, "disk_size_gb": disk_gb, "installation_disk_speed_threshold_ms": 10}
        if latency is not None:
            found |= {"network_latency_threshold_ms": latency, "packet_loss_percentage": loss}
        return found

    entry: dict[str, Any] = {"version": "default", "master": role(4, 16384, disk, 100)}
    if profile.arbiter_nodes:
        entry["arbiter"] = role(2, 8192, 50, 1000)
    entry |= {
        "worker": role(2, 8192, 100, 1000, 10),
        "sno": role(profile.sno_cpu_cores, 16384, disk),
    }
    return json.dumps([entry], separators=(",", ":"))
