"""What differs between releases of the installer, as data. `main` is 4.22; each older one says what it lacks."""

from __future__ import annotations

import re
from typing import Any

from .errors import InstallerError

_MAIN: dict[str, Any] = {
    # YAML
    "creation_timestamp": False,
    "discovery_ignition_url": True,
    "nutanix_dns_records_type": True,
    "provisioning_network_gateway": True,
    "load_balancer": True,
    # messages
    "base_iso_asset": "Base ISO Image",
    # inputs
    "replicas": ["3", "1", "4", "5", "2 (with arbiter)", "2 (with fencing)"],
    "arbiter": True,
    "fencing_gate_default": True,
    "two_node_fencing": True,
    "feature_sets": True,
    "os_image_stream": True,
    "nutanix": True,
    "ovn_checks": True,
    "disk_encryption_check": True,
    "blocked_mirrors": True,
    "agent_config_in_unconfigured": True,
    "interactive_flag": False,
    "certificates": True,
    # Ignition
    "arbiter_nodes": True,
    "env": {
        "TNA_CLUSTERS_SUPPORT": "true",
        "TNF_CLUSTERS_SUPPORT": "true",
        "LOG_LEVEL": "debug",
        "HOST_STAGE_WAITING_FOR_CONTROL_PLANE_TIMEOUT": "90m",
    },
    "hw_placeholder": True,
    "sno_cpu_cores": 4,
    "internal_release_image": True,
    "rendezvous_header": True,
    "rendezvous_ui": True,
    "rendezvous_mode": 0o600,
    "unconfigured_auth": True,
    "log_driver": "passthrough",
    "kill_mode": "mixed",
    "units_absent": ["agent-start-ui.service"],
    "units_disabled": [],
    "files_absent": [],
    # wait-for: seconds for the cluster to initialize, by platformType
    "initialize_limits": {"": 2400.0},
}

_DELTAS: dict[str, dict[str, Any]] = {
    "4.22": {},
    "4.21": {
        "provisioning_network_gateway": False,
        "replicas": ["3", "1", "4", "5"],
        "fencing_gate_default": False,
        "os_image_stream": False,
        "agent_config_in_unconfigured": False,
        "env": {k: v for k, v in _MAIN["env"].items() if k != "TNF_CLUSTERS_SUPPORT"},
        "sno_cpu_cores": 8,
        "internal_release_image": False,
        "rendezvous_mode": 0o644,
        "unconfigured_auth": False,
        "initialize_limits": {"": 2400.0, "BareMetal": 3600.0},
    },
    "4.20": {
        "creation_timestamp": True,
        "load_balancer": False,
        "nutanix_dns_records_type": False,
        "base_iso_asset": "BaseIso Image",
        "blocked_mirrors": False,
        "interactive_flag": True,
        "env": {"TNA_CLUSTERS_SUPPORT": "true", "LOG_LEVEL": "debug"},
        "hw_placeholder": False,
        "rendezvous_header": False,
        "rendezvous_ui": False,
        "log_driver": "journald",
        "units_absent": ["agent-ui.service"],
        "units_disabled": ["agent-extract-tui.service"],
        "files_absent": [
            "/etc/assisted/rendezvous-host.env.template",
            "/usr/local/bin/configure-assisted-hw-requirements.sh",
        ],
    },
    "4.19": {
        "discovery_ignition_url": False,
        "replicas": ["3", "1", "4", "5"],
        "initialize_limits": {"": 5400.0},
        "two_node_fencing": False,
        "feature_sets": False,
        "ovn_checks": False,
        "disk_encryption_check": False,
        "arbiter_nodes": False,
        "env": {"LOG_LEVEL": "debug"},
        "kill_mode": "none",
        "units_absent": ["agent-ui.service", "agent-extract-tui.service"],
        "units_disabled": [],
        "files_absent": [
            "/etc/assisted/rendezvous-host.env.template",
            "/usr/local/bin/configure-assisted-hw-requirements.sh",
            "/usr/local/bin/agent-extract-tui.sh",
        ],
    },
    "4.18": {
        "arbiter": False,
        "nutanix": False,
        "interactive_flag": False,
        "certificates": False,
        "units_absent": ["agent-ui.service", "agent-start-ui.service", "agent-extract-tui.service"],
    },
}


def _build() -> dict[str, dict[str, Any]]:
    profiles, current = {}, _MAIN
    for name, delta in _DELTAS.items():
        current = {**current, **delta, "name": name}
        profiles[name] = current
    return profiles


PROFILES = _build()


def profile_for(name: str | None, version: str) -> dict[str, Any]:
    """The release profile called `name` (`4.18` ... `4.22`, `main`), or else the one of release `version`.

    A version that is older than all profiles gets the oldest, anything else unknown gets `main`. Raises
    `InstallerError` for an unknown `name`.
    """
    newest, *__, oldest = PROFILES
    if name:
        if name == "main":
            return PROFILES[newest]
        if name not in PROFILES:
            raise InstallerError(
                f"AGENTLAB_RELEASE_PROFILE: {name!r} is no known release: use one of main, {', '.join(PROFILES)}"
            )
        return PROFILES[name]
    match = re.match(r"v?(\d+)\.(\d+)", version)
    if match is None:
        return PROFILES[newest]
    minor = f"{match[1]}.{match[2]}"
    if minor in PROFILES:
        return PROFILES[minor]
    return PROFILES[oldest if (int(match[1]), int(match[2])) < (4, 18) else newest]
