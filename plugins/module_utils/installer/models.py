"""Types of decoded inputs and manifests, as `shapes` has their fields; what is absent or null is absent here, too.

A `Section` is one whose fields are read by names from tables, such as a platform's.
"""

from __future__ import annotations

from typing import Any, TypedDict

Section = dict[str, Any]


class Meta(TypedDict, total=False):
    """`metadata` of a document."""

    name: str
    namespace: str
    labels: dict[str, str]
    annotations: dict[str, str]
    creationTimestamp: None


class NetworkEntry(TypedDict, total=False):
    """An entry of machineNetwork or clusterNetwork; only the latter has a prefix."""

    cidr: str
    hostPrefix: int
    hostSubnetLength: int


class OvnIpv4(TypedDict, total=False):
    """`ovnKubernetesConfig.ipv4`."""

    internalJoinSubnet: str


class OvnConfig(TypedDict, total=False):
    """`networking.ovnKubernetesConfig`."""

    ipv4: OvnIpv4


class Networking(TypedDict, total=False):
    """`networking`.

    machineCIDR, type, serviceCIDR and clusterNetworks are of older forms, which `conversion` removes.
    """

    networkType: str
    machineNetwork: list[NetworkEntry]
    clusterNetwork: list[NetworkEntry]
    serviceNetwork: list[str]
    clusterNetworkMTU: int
    ovnKubernetesConfig: OvnConfig
    machineCIDR: str
    type: str
    serviceCIDR: str
    clusterNetworks: list[NetworkEntry]


class Fencing(TypedDict, total=False):
    """`controlPlane.fencing`."""

    credentials: list[Section]


class Pool(TypedDict, total=False):
    """A machine pool: `controlPlane`, `arbiter`, or one of `compute`.

    `set_defaults` fills in replicas, hyperthreading and architecture (Go's name of it).
    """

    name: str
    replicas: int
    platform: Section
    hyperthreading: str
    architecture: str
    diskSetup: object
    fencing: Fencing
    management: object


class ImageSource(TypedDict, total=False):
    """An entry of imageDigestSources or imageContentSources."""

    source: str
    mirrors: list[str]
    sourcePolicy: str


class MirroredRegistry(ImageSource, total=False):
    """A registry of registries.conf; located: it has a `location`."""

    blocked: bool
    located: bool


class Capabilities(TypedDict, total=False):
    """`capabilities`."""

    baselineCapabilitySet: str
    additionalEnabledCapabilities: list[str]


class BootstrapInPlace(TypedDict, total=False):
    """`bootstrapInPlace`."""

    installationDisk: str


class InstallConfig(TypedDict, total=False):
    """install-config.yaml.

    `platform` has a section, or null, by the name of a platform. `set_defaults` fills in networking, pools and publish.
    """

    apiVersion: str
    kind: str
    metadata: Meta
    additionalTrustBundle: str
    additionalTrustBundlePolicy: str
    sshKey: str
    baseDomain: str
    networking: Networking
    controlPlane: Pool
    arbiter: Pool
    compute: list[Pool]
    platform: Section
    pullSecret: str
    proxy: dict[str, str]
    imageContentSources: list[ImageSource]
    imageDigestSources: list[ImageSource]
    publish: str
    fips: bool
    cpuPartitioningMode: str
    credentialsMode: str
    bootstrapInPlace: BootstrapInPlace
    capabilities: Capabilities
    featureSet: str
    featureGates: list[str]
    operatorPublishingStrategy: object
    osImageStream: str


class Interface(TypedDict, total=False):
    """An interface of a host."""

    name: str
    macAddress: str


class Host(TypedDict, total=False):
    """A host of agent-config, or of the baremetal platform in that form.

    networkConfig is an nmstate document, which is read with care: users write anything there.
    """

    hostname: str
    interfaces: list[Interface]
    role: str
    rootDeviceHints: Section
    networkConfig: object
    BMC: Section


class AgentConfig(TypedDict, total=False):
    """agent-config.yaml.

    `load_agent_config` returns it; hosts have been decoded, but only `hosts_of` validates them.
    """

    kind: str
    apiVersion: str
    metadata: Meta
    additionalNTPSources: list[str]
    rendezvousIP: str
    bootArtifactsBaseURL: str
    minimalISO: bool
    hosts: list[Host]


class Manifest(TypedDict, total=False):
    """A ZTP manifest.

    What is in `spec` depends on the kind; a Secret has stringData in its place.
    """

    apiVersion: str
    kind: str
    metadata: Meta
    spec: Section
    stringData: dict[str, str]
    status: object
