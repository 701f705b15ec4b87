"""Release 4.18: four and five control-plane nodes, minimal ISOs for all platforms, a token for each persona."""

from __future__ import annotations

from dataclasses import replace

from .v4_17 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.18",
    capability_sets={**BEFORE.capability_sets, "v4.18": ("OperatorLifecycleManagerV1",)},
    replicas=("3", "1", "4", "5"),
    replicas_text="to 5, 4, 3, or 1",
    minimal_iso=True,
    lower_host_paths=True,
    auth="personas",
    no_proxy_machine_network=True,
    units_absent=("agent-ui.service", "agent-start-ui.service", "agent-extract-tui.service"),
    files_absent=(
        "/etc/assisted/rendezvous-host.env.template",
        "/usr/local/bin/configure-assisted-hw-requirements.sh",
        "/usr/local/bin/agent-extract-tui.sh",
    ),
    masquerade=("169.254.0.0/17", "fd69::/112"),
)
