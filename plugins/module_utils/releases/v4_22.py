"""Release 4.22: two nodes with fencing, OS image streams; the newest one, `main`."""

from __future__ import annotations

from dataclasses import replace

from .v4_21 import RELEASE as BEFORE

RELEASE = replace(
    BEFORE,
    name="4.22",
    provisioning_network_gateway=True,
    replicas=(*BEFORE.replicas, "2 (with arbiter)", "2 (with fencing)"),
    fencing_gate_default=True,
    distribution_feature_sets=True,
    field_gates=True,
    os_image_stream=True,
    agent_config_in_unconfigured=True,
    base_iso_asset="Base ISO Image",
    env={"TNA_CLUSTERS_SUPPORT": "true", "TNF_CLUSTERS_SUPPORT": "true", **BEFORE.env},
    sno_cpu_cores=4,
    internal_release_image=True,
    rendezvous_mode=0o600,
    unconfigured_auth=True,
    initialize_limits={"": 2400.0},
    fips_check=True,
)
