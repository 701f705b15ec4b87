"""What one release of the installer does differently from the one before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

TOKENS: Mapping[str, str] = MappingProxyType({"personas": "USER_AUTH_TOKEN", "infra-env": "AGENT_AUTH_TOKEN"})
"""Variable with the token of the programs on the rendezvous host, for each way in which the service authenticates its clients."""
PROFILE_VARIABLE = "AGENTLAB_RELEASE_PROFILE"
"""Variable with the name of the release to follow, of the installer and of the service that it configures."""


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
    replicas: tuple[str, ...]
    """Numbers of control-plane nodes, as the error about others lists them."""
    capability_sets: Mapping[str, tuple[str, ...]]
    """Baseline sets of capabilities, and what each adds to the one before it; a baseline has the name of its release."""
    architectures: tuple[str, ...]
    external_platforms: tuple[str, ...] = ()
    """Names that platform External takes; empty: any."""
    install_config_hosts: bool = False
    """Hosts may come from platform.baremetal.hosts of the install-config."""
    minimal_iso: bool = False
    """agent-config has `minimalISO`."""
    unconfigured_from_install_config: bool = True
    """`create unconfigured-ignition` takes an install-config; without, an InfraEnv manifest is needed."""
    arbiter: bool = False
    arbiter_nodes: bool = False
    """Arbiters are generally available."""
    two_node_fencing: bool = False
    fencing_gate_default: bool = False
    """The feature gate DualReplica is on by default."""
    feature_sets: bool = False
    distribution_feature_sets: bool = False
    """Feature sets of a single distribution exist: OKD's."""
    field_gates: bool = False
    """Fields that a feature gate protects are refused while it is off."""
    os_image_stream: bool = False
    nutanix: bool = False
    vsphere_credentials: bool = False
    """An agent-based installation on vSphere can have the credentials of a vCenter."""
    ovn_checks: bool = False
    disk_encryption_check: bool = False
    agent_config_in_unconfigured: bool = False
    interactive_flag: bool = False
    certificates: bool = False
    """`create certificates` exists."""

    # Messages
    base_iso_asset: str = "BaseIso Image"
    lower_host_paths: bool = False
    """Errors about hosts name fields as they are written, not as Go does: `hosts[0].interfaces`, not `Hosts[0].Interfaces`."""
    lower_config_paths: bool = False
    """The same for what the agent-based installer checks of an install-config."""
    replicas_text: str = ""
    """How the error about `replicas` describes the possible numbers; empty: it lists them."""

    # Ignition
    auth: Literal["none", "infra-env", "personas"] = "none"
    """How the assisted service authenticates a client: not at all, one token with the infra-env's id, or one for each of agent, user, watcher."""
    live_ntp: bool = False
    """NTP sources are for the live system, too."""
    no_proxy_machine_network: bool = False
    """noProxy gets the machine network of the rendezvous host."""
    env: Mapping[str, str] = field(default_factory=dict)
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
    kill_mode: str = ""
    """KillMode of the units of the installation's steps; empty: systemd's."""
    units_absent: tuple[str, ...] = ()
    units_disabled: tuple[str, ...] = ()
    files_absent: tuple[str, ...] = ()

    # Networks
    openshift_sdn: bool = False
    masquerade: tuple[str, str] = ("169.254.169.0/29", "fd69::/125")
    """OVN-Kubernetes' default masquerade subnets, IPv4 and IPv6."""

    # wait-for
    initialize_limits: Mapping[str, float] = field(default_factory=lambda: {"": 5400.0})
    """Seconds that the cluster may take to initialize, by platformType; the empty one is for all others."""
    fips_check: bool = False
    """The end of an installation verifies that the nodes' configs have FIPS mode, when it was asked for."""

    @property
    def control_planes(self) -> frozenset[int]:
        """Numbers of control-plane nodes that need nothing else.

        What `replicas` lists with an arbiter or with fencing is not among them.
        """
        return frozenset(int(text) for text in self.replicas if text.isdecimal())

    @property
    def user_token(self) -> str:
        """Variable with the token of the programs on the rendezvous host.

        It is in the environment of the programs on the live system; which one depends on the release's `auth`.
        """
        return TOKENS.get(self.auth, TOKENS["personas"])
