"""Release 4.21: the user interface of the rendezvous host, hardware requirements read on the host."""

from __future__ import annotations

from dataclasses import replace

from .v4_20 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.21",
    creation_timestamp=False,
    nutanix_dns_records_type=True,
    load_balancer=True,
    blocked_mirrors=True,
    interactive_flag=False,
    env={**BEFORE.env, "HOST_STAGE_WAITING_FOR_CONTROL_PLANE_TIMEOUT": "90m"},
    hw_placeholder=True,
    rendezvous_header=True,
    rendezvous_ui=True,
    log_driver="passthrough",
    units_absent=("agent-start-ui.service",),
    units_disabled=(),
    files_absent=(),
)
