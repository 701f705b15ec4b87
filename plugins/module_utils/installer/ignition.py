"""The Ignition configs of live hosts: `install`, for a cluster that is known, and `unconfigured_config`, for one that comes later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..ignition.config import Config, check
from ..ignition.live import add_units, env_file
from . import agent_config, mirrors
from .build import Build
from .credentials import NO_TOKENS, SIGNERS
from .errors import InstallerError
from .install_config import machine_network_of
from .live_env import (
    ASSISTED,
    INTERACTIVE_ENV,
    INTERACTIVE_UI,
    MANIFESTS,
    OWN_BUNDLE,
    RENDEZVOUS_ENV,
    add_common,
    add_counts,
    rendezvous_env,
    template_data,
)
from .models import AgentConfig, Host, Manifest, MirroredRegistry
from .yamlio import dump

_ENABLED = (
    "agent-extract-tui.service", "agent-interactive-console.service", "agent-interactive-console-serial@.service",
    "agent-register-cluster.service", "agent-import-cluster.service", "agent-register-infraenv.service",
    "agent-ui.service", "agent-start-ui.service", "agent.service", "assisted-service-db.service",
    "assisted-service-pod.service", "assisted-service.service", "node-zero.service", "multipathd.service",
    "selinux.service", "install-status.service", "oci-eval-user-data.service", "iscsistart.service",
    "set-hostname.service", "iscsiadm.service",
)  # fmt: skip


ADD_NODES = "addnodes"
"""The workflow of nodes that join an installed cluster, as rendezvous-host.env names it."""
_CLUSTER_CONFIG = f"{ASSISTED}/clusterconfig"


def missing_infra_env() -> Any:
    """The InfraEnv manifest can't be made up without a cluster.

    Always raises `InstallerError`, with upstream's text.
    """
    raise InstallerError("configuration file not found: cluster-manifests/infraenv.yaml")


def install(build: Build) -> dict[str, Any]:
    """The live config of a cluster's hosts: {"Config", "RendezvousIP", "CPUArch", "Minimal"}.

    Config: the Ignition document; RendezvousIP: the address of node zero; CPUArch: RPM's name of the architecture;
    Minimal: whether the image is to fetch its root file system. Raises `InstallerError`, for example without a
    rendezvous IP.
    """
    infra = build["InfraEnv Config"]["Config"]
    aci = build["AgentClusterInstall Config"]["Config"]
    deployment = build["ClusterDeployment Config"]["Config"]["spec"]
    agent = build["Agent Config"]
    settings: AgentConfig = (agent or {}).get("Config") or AgentConfig()
    hosts = build["Agent Hosts"]
    ip = agent_config.rendezvous_ip(settings, hosts, build["NMState Config"]["Config"])
    build.log.info(f"The rendezvous host IP (node0 IP) is {ip}")
    platform = aci["spec"].get("platformType", "")
    needs = aci["spec"].get("provisionRequirements", {})
    minimal = agent is not None and (bool(settings.get("minimalISO")) or platform == "External")
    _warn_of_rendezvous(build, ip)

    config = Config()
    config.user("core", [infra["spec"].get("sshAuthorizedKey", "")], build["Kubeadmin Password"]["hash"])
    registries = mirrors.parse(build["Mirror Registries Config"]["File"])
    bundle = build["Mirror Registries Certificate File"]["File"]
    data = template_data(
        build, infra, build["Agent PullSecret"], build["ClusterImageSet Config"]["Config"]["spec"]["releaseImage"],
        mirrored=bool(registries), bundle=bundle, cluster=f"{deployment['clusterName']}.{deployment['baseDomain']}",
        minimal=minimal,
    )  # fmt: skip
    add_common(build, config, data, registries)
    add_counts(build, config, needs)
    config.file(RENDEZVOUS_ENV, rendezvous_env(build, ip, data["tokens"]), build.profile.rendezvous_mode)
    for name, text in build["Agent Manifests"].items():
        config.file(f"{MANIFESTS}/{name}", text, 0o600)
    if agent:
        config.file(f"{MANIFESTS}/{agent_config.FILENAME}", agent["File"], 0o600)
    _add_environment(build, config, data, ["start-cluster-installation.service"])
    fencing = build["Fencing Credentials"] if build.profile.two_node_fencing else None
    for number, text in (fencing or {}).items():
        folder = f"/{_folders(hosts)[int(number)]}" if number else ""
        config.file(f"{ASSISTED}/hostconfig{folder}/fencing-credentials.yaml", text, 0o644)
    config.directory(f"{ASSISTED}/extra-manifests", 0o644)
    for name, text in (build["Extra Manifests"] or {}).items():
        config.file(f"{ASSISTED}/extra-manifests/{name}", text, 0o644)
    if build.profile.live_ntp:
        _add_chrony(config, infra)
    return _finished(config, {"RendezvousIP": ip, "CPUArch": data["arch"], "Minimal": minimal})


def add_nodes(build: Build) -> dict[str, Any]:
    """The live config of hosts that join an installed cluster, each with a service of its own.

    Returns what `install` returns; the rendezvous IP is that of each host itself.
    """
    cluster, hosts = build["Agent Installer ClusterInfo"], build["Agent Hosts"]
    infra, ip = build["InfraEnv Config"]["Config"], "127.0.0.1"
    tokens = build["Agent Installer API Auth Config"]
    registries = mirrors.parse(build["Mirror Registries Config"]["File"])
    bundle = build["Mirror Registries Certificate File"]["File"]
    config = Config()
    config.user("core", [infra["spec"].get("sshAuthorizedKey", "")], build["Kubeadmin Password"]["hash"])
    data = template_data(
        build, infra, build["Agent PullSecret"], build["ClusterImageSet Config"]["Config"]["spec"]["releaseImage"],
        mirrored=bool(registries), bundle=bundle, cluster=cluster["name"], minimal=False,
    )  # fmt: skip
    add_common(build, config, data, registries)
    add_counts(build, config, {"workerAgents": len(hosts)})
    add_nodes_env = {
        "CLUSTER_ID": cluster["cluster_id"],
        "CLUSTER_NAME": cluster["name"],
        "CLUSTER_API_VIP_DNS_NAME": cluster["api"],
        "AUTH_TOKEN_EXPIRY": tokens["AuthTokenExpiry"],
    }
    config.file(f"{ASSISTED}/add-nodes.env", env_file(add_nodes_env), 0o644)
    config.directory(_CLUSTER_CONFIG, 0o644)
    imported = {"networking": {"userManagedNetworking": cluster["platform"] in ("None", "External")}}
    for name, value in (("worker-ignition-endpoint", cluster["endpoint"]), ("import-cluster-config", imported)):
        if value is not None:
            config.file(f"{_CLUSTER_CONFIG}/{name}.json", json.dumps(value, indent=2), 0o644)
    config.file(RENDEZVOUS_ENV, rendezvous_env(build, ip, tokens, ADD_NODES), build.profile.rendezvous_mode)
    for name, text in build["Agent Manifests"].items():
        config.file(f"{MANIFESTS}/{name}", text, 0o600)
    _add_environment(build, config, data, ["agent-add-node.service", "agent-auth-token-status.service"])
    config.directory(f"{ASSISTED}/extra-manifests", 0o644)
    if cluster["chrony"] is not None:
        config.file("/etc/chrony.conf", cluster["chrony"], 0o644)
    return _finished(config, {"RendezvousIP": ip, "CPUArch": data["arch"], "Minimal": False})


def _add_environment(build: Build, config: Config, data: Mapping[str, object], units: list[str]) -> None:
    """Networks, units, keys, mirrors and folders of hosts, with these units enabled in addition to those of all images."""
    networks, bundle = build["NMState Config"]["Network"], build["Mirror Registries Certificate File"]["File"]
    _add_networks(build, config, networks)
    _add_units(build, config, data, [*_ENABLED, *units, *(["pre-network-manager-config.service"] if networks else [])])
    _add_signers(build, config)
    config.file("/etc/containers/registries.conf", build["Mirror Registries Config"]["File"], 0o644)
    if bundle:
        config.file(OWN_BUNDLE, bundle, 0o600)
    _add_hosts(config, build["Agent Hosts"])


def _add_signers(build: Build, config: Config) -> None:
    for name in SIGNERS:
        for kind in ("key", "crt"):
            config.file(f"/opt/agent/tls/{name}.{kind}", build[f"Certificate ({name})"][kind], 0o600)
    config.file("/opt/agent/tls/kubeadmin-password.hash", build["Kubeadmin Password"]["hash"], 0o600)


def _warn_of_rendezvous(build: Build, ip: str) -> None:
    config = build["Install Config"]
    if config and not machine_network_of(config, ip):
        networks = ", ".join(entry["cidr"] for entry in config["networking"]["machineNetwork"])
        build.log.warning(f"the rendezvous IP {ip} is in none of the machine networks: {networks}")


def unconfigured_config(build: Build) -> dict[str, Any]:
    """The live config of hosts that get their cluster later, from a config image or from users.

    Returns {"Config": Ignition document, "CPUArch": RPM's name of the architecture}. Raises `InstallerError` for
    agent-config fields that this image cannot use, and for `--interactive` with a release that lacks it.
    """
    settings: AgentConfig = (build["Agent Config"] or {}).get("Config") or AgentConfig()
    if settings:
        if build.profile.unconfigured_from_install_config:
            settings = {}  # all that it has is in the manifests
        elif not build.profile.agent_config_in_unconfigured:
            build.log.warning(f"{agent_config.FILENAME} is ignored by this release")
            settings = {}
        else:
            agent_config.check_unconfigured(settings)
    if build.options.interactive and not build.profile.interactive_flag:
        raise InstallerError(f"unknown flag: --interactive (release {build.profile.name} has none)")
    config, data = _unconfigured(build, build["InfraEnv Config File"], build["NMState Config"]["Network"])
    if build.options.interactive:
        config.file(f"{ASSISTED}/no-config-image", "", 0o644)
        config.file(INTERACTIVE_UI, "", 0o644)
        config.file(RENDEZVOUS_ENV, INTERACTIVE_ENV, build.profile.rendezvous_mode)
    if settings.get("rendezvousIP"):
        ip = agent_config.rendezvous_ip(settings, [], [])
        build.log.info(f"The rendezvous host IP (node0 IP) is {ip}")
        config.file(RENDEZVOUS_ENV, rendezvous_env(build, ip, data["tokens"]), build.profile.rendezvous_mode)
    return _finished(config, {"CPUArch": data["arch"]})


def appliance(build: Build, *, interactive: bool) -> dict[str, Any]:
    """The live config of hosts without a cluster, with what the builder of their image adds: mirrors and their certificates.

    interactive: their rendezvous host is chosen on their screens, instead of by a config image. Returns {"Config", "CPUArch",
    "RendezvousIP"}; the address is agent-config's, and not part of the config. Raises `InstallerError` for a release whose text
    interface does not ask.
    """
    if interactive and not build.profile.rendezvous_ui:
        raise InstallerError(f"the text interface of release {build.profile.name} does not ask for the rendezvous host")
    registries = build["Mirror Registries Config"]["File"]
    bundle = build["Mirror Registries Certificate File"]["File"]
    config, data = _unconfigured(build, build["InfraEnv Config"], [], mirrors.parse(registries), bundle)
    config.file("/etc/containers/registries.conf", registries, 0o644)
    if bundle:
        config.file(OWN_BUNDLE, bundle, 0o600)
    if interactive:
        config.file(f"{ASSISTED}/no-config-image", "", 0o644)
        config.file(INTERACTIVE_UI, "", 0o644)
    settings: AgentConfig = (build["Agent Config"] or {}).get("Config") or AgentConfig()
    ip = agent_config.rendezvous_ip(settings, build["Agent Hosts"], build["NMState Config"]["Config"])
    return _finished(config, {"CPUArch": data["arch"], "RendezvousIP": ip})


def _unconfigured(
    build: Build,
    infra: Mapping[str, Any],
    networks: list[dict[str, str]],
    registries: list[MirroredRegistry] | None = None,
    bundle: str = "",
) -> tuple[Config, dict[str, Any]]:
    """The live config of hosts without a cluster, to be completed, and what its text assets were rendered with.

    infra: the InfraEnv, as data and text; networks: the files of static networks, for each host; registries: the mirrors, None
    when they come later; bundle: certificates that the hosts trust in addition, PEM.
    """
    spec = infra["Config"]["spec"]
    tokens = build["Agent Installer API Auth Config"] if build.profile.unconfigured_auth else NO_TOKENS
    config = Config()
    if spec.get("sshAuthorizedKey"):
        config.user("core", [spec["sshAuthorizedKey"]])
    data = template_data(
        build, infra["Config"], build["Agent PullSecret"], build["ClusterImageSet Config"]["Config"]["spec"]["releaseImage"],
        mirrored=True, bundle=bundle, cluster="", minimal=False,
    )  # fmt: skip
    data |= {"CaBundleMount": data["CaBundleMount"] if bundle else "", "tokens": tokens}
    add_common(build, config, data, registries, configured=False)
    # The config image brings the numbers.
    add_counts(build, config, {})
    manifests = {
        "pull-secret.yaml": build["Agent PullSecret"]["File"],
        "cluster-image-set.yaml": build["ClusterImageSet Config"]["File"],
        "infraenv.yaml": infra["File"],
    }
    for name, text in manifests.items():
        config.file(f"{MANIFESTS}/{name}", text, 0o600)
    # The script is there in any case: the config image may bring networks, and starts it then.
    _add_networks(build, config, networks, always=True)
    enabled = [*_ENABLED, "agent-check-config-image.service"]
    if networks:
        enabled.append("pre-network-manager-config.service")
    _add_units(build, config, data, enabled)
    config.directory("/opt/agent/tls", 0o644)
    config.directory(f"{ASSISTED}/extra-manifests", 0o644)
    if build.profile.live_ntp:
        _add_chrony(config, infra["Config"])
    return config, data


def _finished(config: Config, extra: Mapping[str, object]) -> dict[str, Any]:
    document = config.to_dict()
    check(document)
    return {"Config": document, **extra}


def _add_units(build: Build, config: Config, data: Mapping[str, object], enabled: list[str]) -> None:
    disabled = build.profile.units_disabled
    add_units(
        config, build.options.assets, data, [name for name in enabled if name not in disabled],
        build.profile.units_absent,
    )  # fmt: skip


def _add_networks(build: Build, config: Config, networks: list[dict[str, str]], *, always: bool = False) -> None:
    for number, files in enumerate(networks):
        for name, text in files.items():
            config.file(f"{ASSISTED}/network/host{number}/{name}", text, 0o600)
    if networks or always:
        script = build.options.assets / "pre-network-manager-config.sh"
        config.file("/usr/local/bin/pre-network-manager-config.sh", script.read_bytes(), 0o755)


def _folders(hosts: list[Host]) -> list[str]:
    """Names of the hosts' folders: the host name, or `host-N`; with the number behind it when an earlier host has that name."""
    found: list[str] = []
    for index, host in enumerate(hosts):
        name = host.get("hostname") or f"host-{index}"
        while name in found:
            name = f"{name}-{index}"
        found.append(name)
    return found


def _add_hosts(config: Config, hosts: list[Host]) -> None:
    for host, own in zip(hosts, _folders(hosts), strict=True):
        macs = [nic["macAddress"].lower() for nic in host["interfaces"]]
        name = host.get("hostname", "")
        if name:
            config.file(f"{ASSISTED}/hostnames/{macs[0]}", name, 0o600)
        folder = f"{ASSISTED}/hostconfig/{own}"
        config.file(f"{folder}/mac_addresses", "".join(f"{mac}\n" for mac in macs), 0o644)
        if host.get("rootDeviceHints"):
            config.file(f"{folder}/root-device-hints.yaml", dump(host["rootDeviceHints"]), 0o644)
        if host.get("role"):
            config.file(f"{folder}/role", host["role"], 0o644)


def _add_chrony(config: Config, infra: Manifest) -> None:
    sources = infra["spec"].get("additionalNTPSources") or []
    if sources:
        lines = [*(f"server {source} iburst" for source in sources), "makestep 1.0 3", "rtcsync"]
        config.file("/etc/chrony.conf", "\n".join([*lines, "logdir /var/log/chrony", ""]), 0o644)
