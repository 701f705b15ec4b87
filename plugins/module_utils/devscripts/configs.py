"""What goes into install-config.yaml and agent-config.yaml beyond the machines, from variables of dev-scripts."""

from __future__ import annotations

from ..plan import files
from ..plan.topologies import TOPOLOGIES
from . import variables
from .builder import Builder
from .nodes import network_configs, nmstate_dhcp


def installer(b: Builder) -> None:
    """Map what goes into the installer's input.

    The platform, time servers, FIPS, the network plugin, SSH keys, what is laid over install-config.yaml, and nmstate
    of nodes. It needs the counts of `nodes.nodes`.
    """
    _platform(b)
    if b.boolean("AGENT_BM_HOSTS_IN_INSTALL_CONFIG"):
        b.put("installer.hosts_in", "install-config", "AGENT_BM_HOSTS_IN_INSTALL_CONFIG")
    _fencing(b)
    b.text("NTP_SERVERS", "installer.ntp_sources", lambda text: [one for one in text.split(";") if one])
    fips = b.boolean("FIPS_MODE")
    if fips is not None:
        b.put("installer.fips", fips, "FIPS_MODE")
    if b.scenario and b.counts["master"] == 1 and b.value("NETWORK_TYPE"):
        b.ignored["NETWORK_TYPE"] = f"the scenario {b.scenario} sets it to OVNKubernetes"
    else:
        b.text("NETWORK_TYPE", "installer.network_type")
    _ssh_key(b)
    _manifests(b)
    _overlay(b)
    if b.boolean("AGENT_NMSTATE_DHCP") and b.raw.get("addressing") == "dhcp":
        nmstate_dhcp(b)
    if b.value("NETWORK_CONFIG_FOLDER"):
        network_configs(b)


def _platform(b: Builder) -> None:
    kind, name = b.value("AGENT_PLATFORM_TYPE").lower(), b.value("AGENT_PLATFORM_NAME")
    if kind:
        b.put("platform", kind, "AGENT_PLATFORM_TYPE")
    if kind != "external":
        return
    name = name or variables.MAPPED["AGENT_PLATFORM_NAME"].default
    sources = ["AGENT_PLATFORM_NAME"] if b.value("AGENT_PLATFORM_NAME") else []
    if name != "agentlab":
        b.put("external.platform_name", name, *sources)
    elif sources:
        b.mapped["AGENT_PLATFORM_NAME"] = "the default of agentlab"


def _fencing(b: Builder) -> None:
    name = "FENCING_CREDENTIAL_IDENTIFIER"
    if b.value(name) and not (b.topology and TOPOLOGIES[b.topology].fencing):
        b.ignored[name] = "no node of this topology is fenced"
        return
    b.text(name, "installer.fencing_by", lambda text: "hostName" if text == "hostname" else text)


def _ssh_key(b: Builder) -> None:
    given = b.set.get("SSH_PUB_KEY")
    if given and given.value and not given.file:
        b.refuse(
            "SSH_PUB_KEY",
            "a profile names a file with keys: set SSH_KEY_FILE, or SSH_PUB_KEY=$(cat FILE)",
            show=False,
        )
    elif b.value("SSH_PUB_KEY"):
        b.put("installer.ssh_key_file", b.path("SSH_PUB_KEY"), "SSH_PUB_KEY")
        if b.value("SSH_KEY_FILE"):
            b.ignored["SSH_KEY_FILE"] = "SSH_PUB_KEY names the key"
    elif b.value("SSH_KEY_FILE"):
        b.put("installer.ssh_key_file", b.path("SSH_KEY_FILE"), "SSH_KEY_FILE")


def _manifests(b: Builder) -> None:
    if b.value("ASSETS_EXTRA_FOLDER"):
        b.put("installer.manifests_dir", b.path("ASSETS_EXTRA_FOLDER"), "ASSETS_EXTRA_FOLDER")


def _overlay(b: Builder) -> None:
    place = "installer.install_config"
    b.text("FEATURE_SET", f"{place}.featureSet")
    b.text("FEATURE_GATES", f"{place}.featureGates", lambda text: text.split(","))
    b.text("OS_IMAGE_STREAM", f"{place}.osImageStream")
    b.text("BASELINE_CAPABILITY_SET", f"{place}.capabilities.baselineCapabilitySet")
    if b.value("ADDITIONAL_CAPABILITIES") and not b.value("BASELINE_CAPABILITY_SET"):
        b.refuse("ADDITIONAL_CAPABILITIES", "needs BASELINE_CAPABILITY_SET")
    b.text(
        "ADDITIONAL_CAPABILITIES",
        f"{place}.capabilities.additionalEnabledCapabilities",
        lambda text: text.split(","),
    )
    if b.value("ENABLE_WORKLOAD_PARTITIONING"):
        b.put(f"{place}.cpuPartitioningMode", "AllNodes", "ENABLE_WORKLOAD_PARTITIONING")
    if b.value("EXTERNAL_LOADBALANCER"):
        b.put(f"{place}.platform.baremetal.loadBalancer.type", "UserManaged", "EXTERNAL_LOADBALANCER")
    if b.value("ADDITIONAL_TRUST_BUNDLE"):
        name = "ADDITIONAL_TRUST_BUNDLE"
        if not b.real:
            b.refuse(name, "the lab payload's registry has a certificate authority of its own, which it would replace")
            return
        try:
            b.put(f"{place}.additionalTrustBundle", files.read(b.path(name)))
            b.mapped[name] = f"{place}.additionalTrustBundle"
        except files.FileError as error:
            b.refuse(name, str(error))
