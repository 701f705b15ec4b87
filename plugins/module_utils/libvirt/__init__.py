"""libvirt: networks, storage and domains from a plan; rendered, compared with what is defined, applied."""

from __future__ import annotations

from pathlib import Path

LOGS = Path("/var/log/libvirt/qemu")
"""Where libvirt keeps the log of each machine's QEMU, as `NAME.log` and, rotated, `NAME.log.N`; a sandbox has its own there."""
