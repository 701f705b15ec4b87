"""Release 4.20: arbiters, feature sets, wait-for shared with installer-provisioned installations."""

from __future__ import annotations

from dataclasses import replace

from .v4_19 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.20",
    discovery_ignition_url=True,
    arbiter_nodes=True,
    two_node_fencing=True,
    feature_sets=True,
    ovn_checks=True,
    disk_encryption_check=True,
    env={"TNA_CLUSTERS_SUPPORT": "true", **BEFORE.env},
    kill_mode="mixed",
    units_absent=("agent-ui.service",),
    units_disabled=("agent-extract-tui.service",),
    files_absent=(
        "/etc/assisted/rendezvous-host.env.template",
        "/usr/local/bin/configure-assisted-hw-requirements.sh",
    ),
    initialize_limits={"": 2400.0, "BareMetal": 3600.0},
)
