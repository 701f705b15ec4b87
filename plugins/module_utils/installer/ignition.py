"""The Ignition configs of live hosts: `install`, for a cluster that is known, and `unconfigured`, for one that comes later."""

from __future__ import annotations

import json
import re
from typing import Any

from ..addresses import in_url
from ..ignition.config import Config, check
from ..ignition.live import add_files, add_units, env_file
from ..vocabulary import Port
from . import agent_config, mirrors
from .build import Build
from .credentials import NO_TOKENS, SIGNERS
from .errors import InstallerError
from .hardware import requirements
from .install_config import machine_network_of
from .yamlio import dump

_ASSISTED = "/etc/assisted"
_SHARE = "/usr/local/share/assisted-service"
MANIFESTS = f"{_ASSISTED}/manifests"
RENDEZVOUS_ENV = f"{_ASSISTED}/rendezvous-host.env"
# What agent-tui fills in on a host that has no rendezvous host yet; its presence starts agent-extract-tui.service.
RENDEZVOUS_TEMPLATE = f"{RENDEZVOUS_ENV}.template"
_ENABLED = (
    "agent-extract-tui.service", "agent-interactive-console.service", "agent-interactive-console-serial@.service",
    "agent-register-cluster.service", "agent-import-cluster.service", "agent-register-infraenv.service",
    "agent-ui.service", "agent-start-ui.service", "agent.service", "assisted-service-db.service",
    "assisted-service-pod.service", "assisted-service.service", "node-zero.service", "multipathd.service",
    "selinux.service", "install-status.service", "oci-eval-user-data.service", "iscsistart.service",
    "set-hostname.service", "iscsiadm.service",
)  # fmt: skip
_LAST = "HOST_STAGE_WAITING_FOR_CONTROL_PLANE_TIMEOUT"
_ALL_ARCHITECTURES = ["aarch64", "x86_64", "ppc64le", "s390x"]
_RPM = {"amd64": "x86_64", "arm64": "aarch64"}
_SYSTEM_BUNDLE = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
_OWN_BUNDLE = "/etc/pki/ca-trust/source/anchors/domain.crt"

# What a config image carries, by what the path contains; the rendezvous file comes last, since it starts everything.
CONFIG_IMAGE_PATHS = (
    MANIFESTS, f"{_ASSISTED}/extra-manifests", f"{_ASSISTED}/hostconfig", f"{_ASSISTED}/hostnames",
    f"{_ASSISTED}/network", "/etc/NetworkManager/conf.d/clientid.conf", "/etc/issue",
    "/etc/systemd/system.conf.d/10-default-env.conf", "/root/.docker/config.json",
    "/usr/local/share/start-cluster/start-cluster.env", f"{_SHARE}/assisted-service.env", "/opt/agent/tls/",
    RENDEZVOUS_ENV,
)  # fmt: skip


def missing_infra_env() -> Any:
    """The InfraEnv manifest can't be made up without a cluster."""
    raise InstallerError("configuration file not found: cluster-manifests/infraenv.yaml")


def install(build: Build) -> dict[str, Any]:
    """The live config of a cluster's hosts: {"Config", "RendezvousIP", "CPUArch", "Minimal"}."""
    infra = build["InfraEnv Config"]["Config"]
    aci = build["AgentClusterInstall Config"]["Config"]
    deployment = build["ClusterDeployment Config"]["Config"]["spec"]
    agent = build["Agent Config"]
    settings = (agent or {}).get("Config") or {}
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
    data = _template_data(
        build, infra, build["Agent PullSecret"], build["ClusterImageSet Config"]["Config"]["spec"]["releaseImage"],
        mirrored=bool(registries), bundle=bundle, cluster=f"{deployment['clusterName']}.{deployment['baseDomain']}",
        minimal=minimal,
    )  # fmt: skip
    _common(build, config, data, registries)
    _add_counts(build, config, needs)
    config.file(RENDEZVOUS_ENV, rendezvous_env(build, ip, data["tokens"]), build.profile.rendezvous_mode)
    for name, text in build["Agent Manifests"].items():
        config.file(f"{MANIFESTS}/{name}", text, 0o600)
    if agent:
        config.file(f"{MANIFESTS}/{agent_config.FILENAME}", agent["File"], 0o600)
    networks = build["NMState Config"]["Network"]
    _add_networks(build, config, networks)
    enabled = [*_ENABLED, "start-cluster-installation.service"]
    if networks:
        enabled.append("pre-network-manager-config.service")
    _add_units(build, config, data, enabled)
    for name in SIGNERS:
        for kind in ("key", "crt"):
            config.file(f"/opt/agent/tls/{name}.{kind}", build[f"Certificate ({name})"][kind], 0o600)
    config.file("/opt/agent/tls/kubeadmin-password.hash", build["Kubeadmin Password"]["hash"], 0o600)
    config.file("/etc/containers/registries.conf", build["Mirror Registries Config"]["File"], 0o644)
    if bundle:
        config.file(_OWN_BUNDLE, bundle, 0o600)
    _add_hosts(config, hosts)
    fencing = build["Fencing Credentials"] if build.profile.two_node_fencing else None
    for number, text in (fencing or {}).items():
        folder = f"/{_folders(hosts)[int(number)]}" if number else ""
        config.file(f"{_ASSISTED}/hostconfig{folder}/fencing-credentials.yaml", text, 0o644)
    config.directory(f"{_ASSISTED}/extra-manifests", 0o644)
    for name, text in (build["Extra Manifests"] or {}).items():
        config.file(f"{_ASSISTED}/extra-manifests/{name}", text, 0o644)
    if build.profile.live_ntp:
        _add_chrony(config, infra)
    return _finished(config, {"RendezvousIP": ip, "CPUArch": data["arch"], "Minimal": minimal})


def _warn_of_rendezvous(build: Build, ip: str) -> None:
    config = build["Install Config"]
    if config and not machine_network_of(config, ip):
        networks = ", ".join(entry["cidr"] for entry in config["networking"]["machineNetwork"])
        build.log.warning(f"the rendezvous IP {ip} is in none of the machine networks: {networks}")


def unconfigured(build: Build) -> dict[str, Any]:
    """The live config of hosts that get their cluster later, from a config image or from users."""
    settings = (build["Agent Config"] or {}).get("Config") or {}
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
    infra = build["InfraEnv Config File"]["Config"]
    tokens = build["Agent Installer API Auth Config"] if build.profile.unconfigured_auth else NO_TOKENS
    config = Config()
    if infra["spec"].get("sshAuthorizedKey"):
        config.user("core", [infra["spec"]["sshAuthorizedKey"]])
    data = _template_data(
        build, infra, build["Agent PullSecret"], build["ClusterImageSet Config"]["Config"]["spec"]["releaseImage"],
        mirrored=True, bundle="", cluster="", minimal=False,
    )  # fmt: skip
    data |= {"CaBundleMount": "", "tokens": tokens}
    _common(build, config, data, None)
    # The config image brings the numbers.
    _add_counts(build, config, {})
    if build.options.interactive:
        config.file(f"{_ASSISTED}/no-config-image", "", 0o644)
        config.file(f"{_ASSISTED}/interactive-ui", "", 0o644)
        config.file(RENDEZVOUS_ENV, _INTERACTIVE_ENV, build.profile.rendezvous_mode)
    if settings.get("rendezvousIP"):
        ip = agent_config.rendezvous_ip(settings, [], [])
        build.log.info(f"The rendezvous host IP (node0 IP) is {ip}")
        config.file(RENDEZVOUS_ENV, rendezvous_env(build, ip, data["tokens"]), build.profile.rendezvous_mode)
    manifests = {
        "pull-secret.yaml": build["Agent PullSecret"]["File"],
        "cluster-image-set.yaml": build["ClusterImageSet Config"]["File"],
        "infraenv.yaml": build["InfraEnv Config File"]["File"],
    }
    for name, text in manifests.items():
        config.file(f"{MANIFESTS}/{name}", text, 0o600)
    # The script is there in any case: the config image may bring networks, and starts it then.
    networks = build["NMState Config"]["Network"]
    _add_networks(build, config, networks, always=True)
    enabled = [*_ENABLED, "agent-check-config-image.service"]
    if networks:
        enabled.append("pre-network-manager-config.service")
    _add_units(build, config, data, enabled)
    config.directory("/opt/agent/tls", 0o644)
    config.directory(f"{_ASSISTED}/extra-manifests", 0o644)
    if build.profile.live_ntp:
        _add_chrony(config, infra)
    return _finished(config, {"CPUArch": data["arch"]})


_INTERACTIVE_ENV = "\n".join(
    (
        "NODE_ZERO_IP={{.RendezvousIP}}",
        f"SERVICE_BASE_URL=http://{{{{.RendezvousIP}}}}:{Port.ASSISTED_SERVICE}/",
        f"IMAGE_SERVICE_BASE_URL=http://{{{{.RendezvousIP}}}}:{Port.IMAGE_SERVICE}/",
        "PULL_SECRET_TOKEN=",
        "USER_AUTH_TOKEN=",
        "WORKFLOW_TYPE=install-interactive-disconnected",
        f"AIUI_APP_API_URL=http://{{{{.RendezvousIP}}}}:{Port.ASSISTED_SERVICE}/",
        f"AIUI_URL=http://{{{{.RendezvousIP}}}}:{Port.ASSISTED_UI}/",
    )
)


def _finished(config: Config, extra: dict[str, Any]) -> dict[str, Any]:
    document = config.to_dict()
    check(document)
    return {"Config": document, **extra}


def rendezvous_env(build: Build, ip: str, tokens: dict[str, str]) -> str:
    """rendezvous-host.env: where node zero is and the tokens to talk to it."""
    host = in_url(ip)
    values = {
        "NODE_ZERO_IP": ip,
        "SERVICE_BASE_URL": f"http://{host}:{Port.ASSISTED_SERVICE}/",
        "IMAGE_SERVICE_BASE_URL": f"http://{host}:{Port.IMAGE_SERVICE}/",
        **(
            {}
            if build.profile.auth == "none"
            else {"PULL_SECRET_TOKEN": tokens["AgentAuthToken"], build.profile.user_token: tokens["UserAuthToken"]}
        ),
        "WORKFLOW_TYPE": "install",
    }
    if build.profile.rendezvous_ui:
        values |= {
            "AIUI_APP_API_URL": f"http://{host}:{Port.ASSISTED_SERVICE}/",
            "AIUI_URL": f"http://{host}:{Port.ASSISTED_UI}/",
        }
    return ("#\n" if build.profile.rendezvous_header else "") + env_file(values)


def _template_data(
    build: Build,
    infra: dict[str, Any],
    pull_secret: dict[str, Any],
    release: str,
    *,
    mirrored: bool,
    bundle: str,
    cluster: str,
    minimal: bool,
) -> dict[str, Any]:
    arch = infra["spec"].get("cpuArchitecture") or "x86_64"
    release_arch = arch
    facts = build.release_facts
    # For hosts whose cluster comes later, upstream does not ask the release.
    if cluster and "error" in facts:
        build.log.warning(
            "Unable to validate the release image architecture, using infraEnv.Spec.CpuArchitecture for the release "
            "image arch"
        )
        build.log.debug(facts["error"])
    elif cluster:
        release_arch = _RPM.get(facts["architecture"], facts["architecture"]) or arch
        build.log.debug(f"Found Release Image Architecture: {release_arch}")
    internal_release = any(
        re.search(r"^kind: InternalReleaseImage$", text, re.M) for text in (_extra(build) or {}).values()
    )
    hardware = facts.get("hw_requirements", "")
    source = _OWN_BUNDLE if mirrored and bundle else _SYSTEM_BUNDLE
    return {
        "profile": build.profile,
        "arch": arch,
        "cluster": cluster,
        "proxy": infra["spec"].get("proxy") or {},
        "pull_secret": pull_secret["stringData"][".dockerconfigjson"],
        "release_image": release,
        "release_images": _release_images(release, release_arch, build.version),
        "hw_requirements": hardware or requirements(build.profile, internal_release),
        "hw_requirements_internal": hardware or requirements(build.profile, True),
        "tokens": build["Agent Installer API Auth Config"],
        "image_type": "minimal-iso" if minimal else "full-iso",
        "CaBundleMount": f"-v {source}:{_SYSTEM_BUNDLE}:z",
        "HaveMirrorConfig": mirrored,
        "disable_image_policy": build.options.disable_image_policy,
        "config_image_paths": CONFIG_IMAGE_PATHS,
    }


def _extra(build: Build) -> Any:
    try:
        return build["Extra Manifests"]
    except KeyError:
        return None


def _release_images(release: str, arch: str, version: str) -> str:
    """RELEASE_IMAGES: the one release that the service may install."""
    if re.search(r"sha256:[0-9a-f]{64}$", release):
        openshift = full = version
    else:
        __, separator, tag = release.rpartition(":")
        if not separator or "/" in tag:
            raise InstallerError(f'invalid release image "{release}"')
        full = tag
        openshift = tag.removesuffix(f"-{arch}")
        parts = openshift.split(".")
        if len(parts) < 2:
            raise InstallerError(f'invalid release image version "{tag}"')
        openshift = ".".join(parts[:2])
    archs = _ALL_ARCHITECTURES if arch == "multi" else [arch]
    entry = {
        "openshift_version": openshift, "cpu_architecture": arch, "cpu_architectures": archs, "url": release,
        "version": full,
    }  # fmt: skip
    return json.dumps([entry], separators=(",", ":"))


def _common(build: Build, config: Config, data: dict[str, Any], registries: list[dict[str, Any]] | None) -> None:
    """The text assets, and the environment of the assisted service; registries: None when the mirrors come later."""
    absent = [*build.profile.files_absent, *(() if registries is None else (RENDEZVOUS_TEMPLATE,))]
    add_files(config, build.options.assets, data, absent)
    tokens = data["tokens"]
    mirror = mirrors.mirrors_of(data["release_image"], registries or [])
    env = {
        "AUTH_TYPE": tokens["AuthType"],
        "DB_HOST": "127.0.0.1", "DB_NAME": "installer", "DB_PASS": "admin", "DB_PORT": "5432", "DB_USER": "admin",
        "DEPLOY_TARGET": "onprem",
        "DISK_ENCRYPTION_SUPPORT": "true",
        "DUMMY_IGNITION": "false",
        "ENABLE_SINGLE_NODE_DNSMASQ": "true",
        "EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR": "/opt/agent/tls",
        "HW_VALIDATOR_REQUIREMENTS": (
            "TO_BE_REPLACED_BY_SYSTEMD" if build.profile.hw_placeholder else data["hw_requirements"]
        ),
        "INSTALL_INVOKER": "agent-installer",
        "IPV6_SUPPORT": "true",
        **build.profile.env,
        "NTP_DEFAULT_SERVER": "",
        "PUBLIC_CONTAINER_REGISTRIES": "" if registries is None else mirrors.public_registries(registries),
        "RELEASE_IMAGES": data["release_images"],
        "OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR": mirror[0] if mirror else "",
        "STORAGE": "filesystem",
        "INFRA_ENV_ID": build["Agent Installer InfraEnv ID"],
    }  # fmt: skip
    if build.profile.auth != "none":
        env |= {"EC_PUBLIC_KEY_PEM": tokens["PublicKey"], build.profile.user_token: tokens["UserAuthToken"]}
    if build.profile.auth == "personas":
        env["WATCHER_AUTH_TOKEN"] = tokens["WatcherAuthToken"]
    # Upstream has it last, apart from the profile's other variables.
    if _LAST in env:
        env[_LAST] = env.pop(_LAST)
    if data["disable_image_policy"]:
        env["OPENSHIFT_INSTALL_EXPERIMENTAL_DISABLE_IMAGE_POLICY"] = data["disable_image_policy"]
    config.file(f"{_SHARE}/assisted-service.env", env_file(env), 0o600)
    stream = build.os_image_metadata(data["arch"])
    images = [
        {
            "openshift_version": build.version, "cpu_architecture": data["arch"], "url": stream["url"],
            "version": stream["version"],
        }
    ]  # fmt: skip
    config.file(
        f"{_SHARE}/images.env",
        env_file(
            {
                "ASSISTED_SERVICE_HOST": f"localhost:{Port.ASSISTED_SERVICE}",
                "ASSISTED_SERVICE_SCHEME": "http",
                "OS_IMAGES": json.dumps(images, separators=(",", ":")),
            }
        ),
        0o600,
    )


def _add_counts(build: Build, config: Config, needs: dict[str, Any]) -> None:
    counts = {"REQUIRED_MASTER_NODES": str(needs.get("controlPlaneAgents", 0))}
    if build.profile.arbiter_nodes:
        counts["REQUIRED_ARBITER_NODES"] = str(needs.get("arbiterAgents", 0))
    counts["REQUIRED_WORKER_NODES"] = str(needs.get("workerAgents", 0))
    config.file("/usr/local/share/start-cluster/start-cluster.env", env_file(counts), 0o600)


def _add_units(build: Build, config: Config, data: dict[str, Any], enabled: list[str]) -> None:
    disabled = build.profile.units_disabled
    add_units(
        config, build.options.assets, data, [name for name in enabled if name not in disabled],
        build.profile.units_absent,
    )  # fmt: skip


def _add_networks(build: Build, config: Config, networks: list[dict[str, str]], *, always: bool = False) -> None:
    for number, files in enumerate(networks):
        for name, text in files.items():
            config.file(f"{_ASSISTED}/network/host{number}/{name}", text, 0o600)
    if networks or always:
        script = build.options.assets / "pre-network-manager-config.sh"
        config.file("/usr/local/bin/pre-network-manager-config.sh", script.read_bytes(), 0o755)


def _folders(hosts: list[dict[str, Any]]) -> list[str]:
    """Names of the hosts' folders: the host name, or `host-N`; with the number behind it when an earlier host has that name."""
    found: list[str] = []
    for index, host in enumerate(hosts):
        name = host.get("hostname") or f"host-{index}"
        while name in found:
            name = f"{name}-{index}"
        found.append(name)
    return found


def _add_hosts(config: Config, hosts: list[dict[str, Any]]) -> None:
    for host, own in zip(hosts, _folders(hosts), strict=True):
        macs = [nic["macAddress"].lower() for nic in host["interfaces"]]
        name = host.get("hostname", "")
        if name:
            config.file(f"{_ASSISTED}/hostnames/{macs[0]}", name, 0o600)
        folder = f"{_ASSISTED}/hostconfig/{own}"
        config.file(f"{folder}/mac_addresses", "".join(f"{mac}\n" for mac in macs), 0o644)
        if host.get("rootDeviceHints"):
            config.file(f"{folder}/root-device-hints.yaml", dump(host["rootDeviceHints"]), 0o644)
        if host.get("role"):
            config.file(f"{folder}/role", host["role"], 0o644)


def _add_chrony(config: Config, infra: dict[str, Any]) -> None:
    sources = infra["spec"].get("additionalNTPSources") or []
    if sources:
        lines = [*(f"server {source} iburst" for source in sources), "makestep 1.0 3", "rtcsync"]
        config.file("/etc/chrony.conf", "\n".join([*lines, "logdir /var/log/chrony", ""]), 0o644)
