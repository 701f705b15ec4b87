"""The types of what a plan has for the installer's input files; see `model`."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .fields import Cidr, Directory, File, Host, Ip, Label, Mac, Name, Prefix, Repository, Size, Uuid


class DigestSource(TypedDict):
    """Mirrors of a repository, for images that are named by digest."""

    source: Repository
    """The repository."""
    mirrors: list[Repository]
    """Where its content is too, in the order of preference."""


class ClusterNetwork(TypedDict):
    """A range of pod addresses."""

    cidr: Cidr
    """The range."""
    host_prefix: Prefix
    """Prefix length of the part that each node gets."""


class Bootstrap(TypedDict):
    """The machine on which the installer begins a cluster, and whose Ironic provisions the control plane. The installer creates and removes it."""

    name: Label
    """Its host name."""
    mac: Mac
    """MAC of its interface in the machine network."""
    addresses: list[Ip]
    """Its addresses, one for each subnet of the machine network."""
    provisioning_ip: Ip
    """Where its Ironic answers."""
    cluster_provisioning_ip: Ip
    """Where the cluster's Ironic answers, once there is one."""
    vcpus: Size
    """Its virtual CPUs."""
    memory_mib: Size
    """Its memory in MiB."""
    domain: Name
    """Name of its libvirt domain, of the lab payload's installer; a real one takes the infrastructure ID for it."""
    uuid: Uuid
    """UUID of that domain."""
    console: Directory
    """File on the hypervisor with what that domain writes to its serial console."""
    image: Directory
    """File on the hypervisor that it boots from: the live ISO with bootstrap.ign."""


class _Installer(TypedDict):
    """Of the installer's input files, what each plan has."""

    ssh_key_file: File | None
    """File with public keys that may log in to the nodes, in addition to the key of the run."""
    pull_secret_file: File | None
    """File with the pull secret of a real payload's registries."""
    network_type: Name
    """The network plugin."""
    cluster_network: list[ClusterNetwork]
    """Ranges of pod addresses."""
    service_network: list[Cidr]
    """Ranges of service addresses."""
    machine_network: list[Cidr]
    """Ranges of the machine network."""
    ntp_sources: list[Host]
    """Time servers of the nodes."""
    image_digest_sources: list[DigestSource]
    """Mirrors of the release."""
    fips: bool
    """Whether the cluster is installed in FIPS mode."""
    install_config: dict[str, Any]
    """Laid over install-config.yaml as it stands: mappings are merged, everything else is replaced."""
    agent_config: dict[str, Any]
    """Laid over agent-config.yaml, likewise."""


class Installer(_Installer, total=False):
    """What the installer's input files need beyond the machines."""

    hosts_in: Literal["agent-config", "install-config"] | None
    """The file that describes the machines; null, or not given: agent-config.yaml."""
    fencing_by: Literal["hostName", "macAddress"] | None
    """What names the node in fencing credentials; null, or not given: its host name."""
    mirrors_file: File | None
    """File with more mirrors, of oc-mirror v2 or `agentlab mirror`; null, or not given: there is none."""
    manifests: dict[Name, dict[str, Any]] | None
    """Extra manifests, by name; each is written to `openshift/NAME.yaml`. Null, or not given: there are none."""
    manifests_dir: File | None
    """Folder with more of them; null, or not given: there is none."""
    bootstrap: Bootstrap | None
    """The bootstrap machine of installer-provisioned infrastructure; null, or not given: the agent-based installer installs."""
