"""Release 4.19: arbiters as a technology preview, Nutanix, `create certificates`."""

from __future__ import annotations

from dataclasses import replace

from .v4_18 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.19",
    replicas_text="",
    lower_config_paths=True,
    unconfigured_from_install_config=False,
    arbiter=True,
    nutanix=True,
    interactive_flag=True,
    certificates=True,
    units_absent=("agent-ui.service", "agent-extract-tui.service"),
)
