"""The programs of the node agent image. They use only the standard library and `module_utils/bounded.py`.

They have the names, flags, input and output of the programs in upstream's assisted-installer-agent image. One file
(`bundle.py`) contains all of them and behaves as the program whose name it is called by.
"""

from __future__ import annotations

PROGRAMS: tuple[str, ...] = (
    "agent",
    "next_step_runner",
    "inventory",
    "connectivity_check",
    "free_addresses",
    "logs_sender",
    "dhcp_lease_allocate",
    "apivip_check",
    "ntp_synchronizer",
    "disk_speed_check",
    "domain_resolution",
    "container_image_availability",
    "vips_verifier",
    "tang_connectivity_check",
    "upgrade_agent",
)
"""Each is a module of this package with `main(argv: list[str] | None = None) -> int`, and a program in `/usr/bin`."""
