"""Environments of a live host: the assisted service's, node zero's, and what text assets are rendered with."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..addresses import in_url
from ..ignition.config import Config
from ..ignition.live import add_files, env_file
from ..releases import by_version
from ..releases.model import PROFILE_VARIABLE
from ..vocabulary import Port, rpm_arch
from . import mirrors
from .build import Build
from .errors import InstallerError
from .hardware import requirements
from .models import Manifest, MirroredRegistry, Section

ASSISTED = "/etc/assisted"
_SHARE = "/usr/local/share/assisted-service"
MANIFESTS = f"{ASSISTED}/manifests"
RENDEZVOUS_ENV = f"{ASSISTED}/rendezvous-host.env"
# What agent-tui fills in on a host that has no rendezvous host yet; its presence starts agent-extract-tui.service.
RENDEZVOUS_TEMPLATE = f"{RENDEZVOUS_ENV}.template"
INTERACTIVE_UI = f"{ASSISTED}/interactive-ui"
_LAST = "HOST_STAGE_WAITING_FOR_CONTROL_PLANE_TIMEOUT"
_ALL_ARCHITECTURES = ["aarch64", "x86_64", "ppc64le", "s390x"]
_SYSTEM_BUNDLE = "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem"
OWN_BUNDLE = "/etc/pki/ca-trust/source/anchors/domain.crt"
# What a config image carries, by what the path contains; the rendezvous file comes last, since it starts everything.
CONFIG_IMAGE_PATHS = (
    MANIFESTS, f"{ASSISTED}/extra-manifests", f"{ASSISTED}/hostconfig", f"{ASSISTED}/hostnames",
    f"{ASSISTED}/network", "/etc/NetworkManager/conf.d/clientid.conf", "/etc/issue",
    "/etc/systemd/system.conf.d/10-default-env.conf", "/root/.docker/config.json",
    "/usr/local/share/start-cluster/start-cluster.env", f"{_SHARE}/assisted-service.env", "/opt/agent/tls/",
    RENDEZVOUS_ENV,
)  # fmt: skip
INTERACTIVE_ENV = "\n".join(
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


def rendezvous_env(build: Build, ip: str, tokens: dict[str, str], workflow: str = "install") -> str:
    """rendezvous-host.env: where node zero is and the tokens to talk to it.

    ip: the address of node zero; tokens: as `credentials.tokens` returns them; workflow: `install` or `addnodes`. Which names it has depends on the
    release's way to authenticate; those that begin with AIUI are for releases with the web interface.
    """
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
        "WORKFLOW_TYPE": workflow,
    }
    if build.profile.rendezvous_ui:
        values |= {
            "AIUI_APP_API_URL": f"http://{host}:{Port.ASSISTED_SERVICE}/",
            "AIUI_URL": f"http://{host}:{Port.ASSISTED_UI}/",
        }
    return ("#\n" if build.profile.rendezvous_header else "") + env_file(values)


def template_data(
    build: Build,
    infra: Manifest,
    pull_secret: Manifest,
    release: str,
    *,
    mirrored: bool,
    bundle: str,
    cluster: str,
    minimal: bool,
) -> dict[str, Any]:
    """The variables of text assets.

    mirrored: registries.conf has mirrors; bundle: additional CA certificates, PEM; cluster: its domain name, "" for one
    that comes later, and then the release image is not asked for its architecture; minimal: the image fetches its rootfs.
    """
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
        release_arch = rpm_arch(facts["architecture"]) or arch
        build.log.debug(f"Found Release Image Architecture: {release_arch}")
    internal_release = any(
        re.search(r"^kind: InternalReleaseImage$", text, re.M) for text in (_extra(build) or {}).values()
    )
    hardware = facts.get("hw_requirements", "")
    source = OWN_BUNDLE if mirrored and bundle else _SYSTEM_BUNDLE
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


def add_common(
    build: Build, config: Config, data: Section, registries: list[MirroredRegistry] | None, *, configured: bool = True
) -> None:
    """Add the text assets, and the environment of the assisted service and of its OS images.

    data: as `template_data` returns it; registries: the mirrors, None when they come later with a config image;
    configured: whether the rendezvous host is known.
    """
    absent = [*build.profile.files_absent, *((RENDEZVOUS_TEMPLATE,) if configured else ())]
    add_files(config, build.options.assets, data, absent)
    if build.options.image_policy:
        config.file("/etc/containers/policy.json", build.options.image_policy, 0o644)
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
    if build.profile != by_version(build.version):
        env[PROFILE_VARIABLE] = build.profile.name
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


def add_counts(build: Build, config: Config, needs: Mapping[str, int]) -> None:
    """Add the environment of start-cluster.service; needs: `provisionRequirements` of the AgentClusterInstall."""
    counts = {"REQUIRED_MASTER_NODES": str(needs.get("controlPlaneAgents", 0))}
    if build.profile.arbiter_nodes:
        counts["REQUIRED_ARBITER_NODES"] = str(needs.get("arbiterAgents", 0))
    counts["REQUIRED_WORKER_NODES"] = str(needs.get("workerAgents", 0))
    config.file("/usr/local/share/start-cluster/start-cluster.env", env_file(counts), 0o600)
