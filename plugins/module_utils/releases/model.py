"""What one release of the installer does differently from the one before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ReleaseProfile:
    """Behaviour of `openshift-install agent` of one minor release; `name` is that release, as `4.22`.

    Booleans that are not explained say whether the release has what they are called after.
    """

    name: str

    # Manifests
    creation_timestamp: bool = True
    """`creationTimestamp: null` is in the metadata of every manifest."""
    discovery_ignition_url: bool = False
    nutanix_dns_records_type: bool = False
    provisioning_network_gateway: bool = False
    load_balancer: bool = False
    blocked_mirrors: bool = False

    # Inputs
    replicas: tuple[str, ...] = ("3", "1", "4", "5")
    """Numbers of control-plane nodes, as the error about others lists them."""
    arbiter: bool = False
    arbiter_nodes: bool = False
    """Arbiters are generally available."""
    two_node_fencing: bool = False
    fencing_gate_default: bool = False
    """The feature gate DualReplica is on by default."""
    feature_sets: bool = False
    field_gates: bool = False
    """Fields that a feature gate protects are refused while it is off."""
    os_image_stream: bool = False
    nutanix: bool = False
    ovn_checks: bool = False
    disk_encryption_check: bool = False
    agent_config_in_unconfigured: bool = False
    interactive_flag: bool = False
    certificates: bool = False
    """`create certificates` exists."""

    # Messages
    base_iso_asset: str = "BaseIso Image"

    # Ignition
    env: Mapping[str, str] = field(default_factory=lambda: {"LOG_LEVEL": "debug"})
    """Variables of assisted-service.env that not every release sets."""
    hw_placeholder: bool = False
    """A script fills in HW_VALIDATOR_REQUIREMENTS on the host."""
    sno_cpu_cores: int = 8
    internal_release_image: bool = False
    rendezvous_header: bool = False
    rendezvous_ui: bool = False
    rendezvous_mode: int = 0o644
    unconfigured_auth: bool = False
    log_driver: str = "journald"
    kill_mode: str = "none"
    units_absent: tuple[str, ...] = ()
    units_disabled: tuple[str, ...] = ()
    files_absent: tuple[str, ...] = ()

    # wait-for
    initialize_limits: Mapping[str, float] = field(default_factory=lambda: {"": 5400.0})
    """Seconds that the cluster may take to initialize, by platformType; the empty one is for all others."""
    fips_check: bool = False
    """The end of an installation verifies that the nodes' configs have FIPS mode, when it was asked for."""
