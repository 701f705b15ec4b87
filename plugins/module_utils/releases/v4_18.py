"""Release 4.18."""

from __future__ import annotations

from .model import ReleaseProfile

RELEASE = ReleaseProfile(
    name="4.18",
    units_absent=("agent-ui.service", "agent-start-ui.service", "agent-extract-tui.service"),
    files_absent=(
        "/etc/assisted/rendezvous-host.env.template",
        "/usr/local/bin/configure-assisted-hw-requirements.sh",
        "/usr/local/bin/agent-extract-tui.sh",
    ),
)
