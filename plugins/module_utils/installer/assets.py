"""The assets of the agent-based installer: what each is made from and how."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from ..ignition.config import dumps
from ..vocabulary import RunFile
from . import agent_config, credentials, ignition, image, inputs, install_config, mirrors, network
from .base_iso import base_iso
from .build import Build
from .errors import InstallerError
from .inputs import Texts, agent_settings, one_text
from .manifests.agent_cluster_install import (
    agent_cluster_install,
    check_agent_cluster_install,
    load_agent_cluster_install,
)
from .manifests.cluster import (
    FENCING,
    cluster_deployment,
    cluster_image_set,
    fencing_credentials,
    load_cluster_deployment,
    load_cluster_image_set,
    load_fencing_credentials,
)
from .manifests.infra_env import (
    check_labels,
    complete_infra_env,
    dump_nmstate_configs,
    infra_env,
    load_infra_env,
    load_nmstate_configs,
    nmstate_configs,
)
from .manifests.meta import DIRECTORY
from .manifests.pull_secret import load_pull_secret, pull_secret
from .models import InstallConfig
from .store import Asset, Peek
from .yamlio import dump

SECRET = 0o600
PUBLIC = 0o640


def _has_install_config(peek: Peek) -> bool:
    return peek("Install Config") is not None


def _has_networks(peek: Peek) -> bool:
    config = (peek("Agent Config") or {}).get("Config", {})
    return peek("Install Config") is not None or any(
        host.get("networkConfig") is not None for host in config.get("hosts", [])
    )


def _infra_env_file(build: Build) -> dict[str, Any]:
    if not build.profile.unconfigured_from_install_config:
        ignition.missing_infra_env()
    return asset_value(infra_env(_needs_install_config(build), agent_settings(build), build.profile))


def _needs_install_config(build: Build) -> InstallConfig:
    found: InstallConfig | None = build["Install Config"]
    if found is None:
        place = build.options.directory
        raise InstallerError(
            "missing configuration or manifest file: "
            f"{place} has no {install_config.FILENAME}, and {place / DIRECTORY} has no manifest in its place"
        )
    return found


def _make_aci(build: Build) -> dict[str, Any]:
    aci = agent_cluster_install(
        _needs_install_config(build), agent_settings(build), build["Agent Hosts"], build.version, build.profile
    )
    check_agent_cluster_install(aci, build.profile)
    return {"Config": aci, "File": dump(aci)}


def _load_aci(build: Build, texts: Texts) -> dict[str, Any]:
    aci, text = load_agent_cluster_install(one_text(texts), build.profile, build.log)
    check_agent_cluster_install(aci, build.profile)
    return {"Config": aci, "File": text}


def asset_value(value: Mapping[str, object]) -> dict[str, Any]:
    """A manifest as the value of its asset: as data, and as the text of its file."""
    return {"Config": value, "File": dump(value)}


def _make_nmstate(build: Build) -> dict[str, Any]:
    hosts, config = build["Agent Hosts"], build["Install Config"]
    if config is not None:
        agent_config.check_host_counts(hosts, install_config.replicas(config), build.log)
    found = nmstate_configs(config, hosts, build.profile)
    return {
        "Config": found,
        "File": dump_nmstate_configs(found),
        "Network": network.static_files([doc["spec"] for doc in found]),
    }


def _load_nmstate(_build: Build, texts: Texts) -> dict[str, Any]:
    text = one_text(texts)
    found = load_nmstate_configs(text)
    return {"Config": found, "File": text, "Network": network.static_files([doc.get("spec", {}) for doc in found])}


def _agent_manifests(build: Build) -> dict[str, str]:
    """File name -> text of every ZTP manifest."""
    nmstate = build["NMState Config"]
    check_labels(build["InfraEnv Config"]["Config"], nmstate["Config"])
    found = {
        "pull-secret.yaml": build["Agent PullSecret"]["File"],
        "infraenv.yaml": build["InfraEnv Config"]["File"],
        "nmstateconfig.yaml": nmstate["File"],
        "agent-cluster-install.yaml": build["AgentClusterInstall Config"]["File"],
        "cluster-deployment.yaml": build["ClusterDeployment Config"]["File"],
        "cluster-image-set.yaml": build["ClusterImageSet Config"]["File"],
    }
    return {name: text for name, text in found.items() if text}


def with_text(value: Mapping[str, object]) -> dict[str, Any]:
    """A Secret as the value of its asset: its fields, and next to them the text of its file."""
    return {**value, "File": dump(value)}


def _file(name: str, mode: int = PUBLIC) -> Any:
    def files(value: Mapping[str, str]) -> dict[str, tuple[bytes, int]]:
        return {name: (value["File"].encode(), mode)} if value["File"] else {}

    return files


def _bundle_files(value: Mapping[str, str]) -> dict[str, tuple[bytes, int]]:
    return {mirrors.CA_FILENAME: (value["File"].encode(), PUBLIC)}


def _signer(name: str) -> Asset:
    key = "".join(part.capitalize() for part in name.split("-")).replace("Apiserver", "APIServer")
    key = key.replace("Lb", "LB").replace("Kubeconfig", "KubeConfig")
    crt, pem = f"tls/{name}.crt", f"tls/{name}.key"

    def load(build: Build, texts: Texts) -> dict[str, str] | None:
        if not build.options.load_certificates or len(texts) < 2:
            return None
        return {"key": texts[pem].decode(), "crt": texts[crt].decode()}

    return Asset(
        f"Certificate ({name})",
        f"*tls.{key}CertKey",
        generate=lambda _build: credentials.signer(name),
        load=load,
        sources=(pem, crt),
        files=lambda value: {pem: (value["key"].encode(), SECRET), crt: (value["crt"].encode(), PUBLIC)},
        keep=True,
        ahead=True,
    )


def _load_password(_build: Build, texts: Texts) -> dict[str, str] | None:
    if "tls/kubeadmin-password.hash" not in texts:
        return None
    return {
        "hash": texts["tls/kubeadmin-password.hash"].decode().strip(),
        "password": texts.get("tls/kubeadmin-password", b"").decode().strip(),
    }


def signer_names() -> list[str]:
    """The names of the assets of the four signers."""
    return [*_CERTIFICATES]


def signers_of(build: Build) -> dict[str, dict[str, str]]:
    """The four signers by name.

    Each is {"key", "crt"} in PEM, under its name in `credentials.SIGNERS`. They must have been fetched.
    """
    return {name: build[f"Certificate ({name})"] for name in credentials.SIGNERS}


def _kubeconfig(build: Build) -> dict[str, str]:
    spec = build["ClusterDeployment Config"]["Config"]["spec"]
    text = credentials.kubeconfig(
        spec["clusterName"],
        spec.get("baseDomain", ""),
        signers_of(build),
        build["Certificate (admin-kubeconfig-client)"],
    )
    return {"File": text}


def _token_life(build: Build) -> dict[str, Any]:
    """What the tokens depend on. Newer releases' kind goes unsaid, so that directories of earlier versions keep their tokens."""
    kind = {} if build.profile.auth == "personas" else {"Auth": build.profile.auth}
    return {"Hours": build.options.token_hours, **kind}


def _tokens(build: Build) -> dict[str, str]:
    hours = build.options.token_hours
    if build.profile.auth == "none":
        return dict(credentials.NO_TOKENS)
    if build.profile.auth == "infra-env":
        return credentials.infra_env_token(build["Agent Installer InfraEnv ID"])
    return credentials.tokens() if hours is None else credentials.tokens(datetime.now(UTC) + timedelta(hours=hours))


_IC, _AC, _AH, _RI = "Install Config", "Agent Config", "Agent Hosts", "Release Image"
_CM = DIRECTORY
_CERTIFICATES = tuple(f"Certificate ({name})" for name in credentials.SIGNERS)
ZTP = ("Agent PullSecret", "InfraEnv Config", "NMState Config", "AgentClusterInstall Config",
       "ClusterDeployment Config", "ClusterImageSet Config")  # fmt: skip
"""The manifests of zero touch provisioning, which users may write in place of install-config.yaml."""
MIRROR = ("Mirror Registries Config", "Mirror Registries Certificate File")
ASSETS: tuple[Asset, ...] = (
    Asset(_RI, "*releaseimage.Image", follow=True,
          generate=lambda b: {"PullSpec": b.release_image, "Version": b.version, "Profile": b.profile.name}),
    Asset("Agent Workflow", "*workflow.AgentWorkflow", generate=lambda _b: "install"),
    Asset(_IC, "*agent.OptionalInstallConfig", load=inputs.load_install_config, sources=(install_config.FILENAME,)),
    Asset(_AC, "*agentconfig.AgentConfig", load=inputs.load_agent_config, sources=(agent_config.FILENAME,)),
    Asset("Source of the Hosts", "*agentlab.HostsFrom", follow=True,
          generate=lambda b: {"InstallConfig": b.profile.install_config_hosts}),
    Asset(_AH, "*agentconfig.AgentHosts", (_AC, _IC, "Source of the Hosts"), generate=inputs.hosts),
    Asset("Agent PullSecret", "*manifests.AgentPullSecret", (_IC, _RI),
          generate=lambda b: with_text(pull_secret(_needs_install_config(b), b.profile)),
          load=lambda b, texts: with_text(load_pull_secret(one_text(texts), b.profile)),
          sources=(f"{_CM}/pull-secret.yaml",), files=_file(f"{_CM}/pull-secret.yaml", SECRET),
          possible=_has_install_config),
    Asset("InfraEnv Config", "*manifests.InfraEnv", (_IC, _AC, _RI),
          generate=lambda b: asset_value(infra_env(_needs_install_config(b), agent_settings(b), b.profile)),
          load=lambda b, texts: asset_value(complete_infra_env(load_infra_env(one_text(texts)), b.profile)),
          sources=(f"{_CM}/infraenv.yaml",), files=_file(f"{_CM}/infraenv.yaml", SECRET), possible=_has_install_config),
    Asset("InfraEnv Config File", "*manifests.InfraEnvFile",
          generate=_infra_env_file,
          load=lambda b, texts: asset_value(complete_infra_env(load_infra_env(one_text(texts)), b.profile)),
          sources=(f"{_CM}/infraenv.yaml",), volatile=True),
    Asset("NMState Config", "*manifests.NMStateConfig", (_AH, _IC, _RI), generate=_make_nmstate, load=_load_nmstate,
          sources=(f"{_CM}/nmstateconfig.yaml",), files=_file(f"{_CM}/nmstateconfig.yaml", SECRET), possible=_has_networks),
    Asset("AgentClusterInstall Config", "*manifests.AgentClusterInstall", (_IC, _AH, _AC, _RI), generate=_make_aci,
          load=_load_aci, sources=(f"{_CM}/agent-cluster-install.yaml",),
          files=_file(f"{_CM}/agent-cluster-install.yaml", SECRET), possible=_has_install_config),
    Asset("ClusterDeployment Config", "*manifests.ClusterDeployment", (_IC, _RI),
          generate=lambda b: asset_value(cluster_deployment(_needs_install_config(b), b.profile)),
          load=lambda _b, texts: {"Config": load_cluster_deployment(one_text(texts)), "File": one_text(texts)},
          sources=(f"{_CM}/cluster-deployment.yaml",), files=_file(f"{_CM}/cluster-deployment.yaml"),
          possible=_has_install_config),
    Asset("ClusterImageSet Config", "*manifests.ClusterImageSet", (_IC, _RI),
          generate=lambda b: asset_value(cluster_image_set(b[_IC], b.release_image, b.version, b.profile)),
          load=lambda b, texts: {"Config": load_cluster_image_set(one_text(texts), b.release_image),
                                 "File": one_text(texts)},
          sources=(f"{_CM}/cluster-image-set.yaml",), files=_file(f"{_CM}/cluster-image-set.yaml")),
    Asset("Agent Manifests", "*manifests.AgentManifests", ZTP, generate=_agent_manifests, volatile=True),
    Asset("Extra Manifests", "*manifests.ExtraManifests", load=inputs.load_extra_manifests, sources=("openshift/*",),
          removable=True),
    Asset("Mirror Registries Config", "*mirror.RegistriesConf", (_IC, _RI), generate=inputs.make_registries,
          load=inputs.load_registries, sources=(mirrors.FILENAME,), files=_file(mirrors.FILENAME), keep=True),
    Asset("Mirror Registries Certificate File", "*mirror.CaBundle", (_IC,), generate=inputs.make_bundle, load=inputs.load_bundle,
          sources=(mirrors.CA_FILENAME,), files=_bundle_files, keep=True),
    *(_signer(name) for name in credentials.SIGNERS),
    Asset("Certificate (admin-kubeconfig-client)", "*tls.AdminKubeConfigClientCertKey",
          ("Certificate (admin-kubeconfig-signer)",),
          generate=lambda b: credentials.admin_client(b["Certificate (admin-kubeconfig-signer)"]), ahead=True),
    Asset("Kubeadmin Password", "*password.KubeadminPassword", generate=lambda _b: credentials.password(),
          load=_load_password, sources=("tls/kubeadmin-password.hash", "tls/kubeadmin-password"),
          files=lambda value: {RunFile.PASSWORD: (value["password"].encode(), SECRET)}, keep=True, ahead=True),
    Asset("Agent Installer InfraEnv ID", "*common.InfraEnvID", generate=lambda _b: str(uuid.uuid4())),
    Asset("Token Life", "*agentlab.TokenLife", generate=_token_life, follow=True),
    Asset("Agent Installer API Auth Config", "*gencrypto.AuthConfig", ("Token Life", "Agent Installer InfraEnv ID"), generate=_tokens),
    Asset("Fencing Credentials", "*manifests.FencingCredentials", (_IC, _AH),
          generate=lambda b: fencing_credentials(b[_IC], b[_AH]) if b[_IC] else {},
          load=lambda _b, texts: load_fencing_credentials(one_text(texts)), sources=(FENCING,),
          possible=_has_install_config),
    Asset("Kubeconfig Admin Client (Agent)", "*kubeconfig.AgentAdminClient",
          ("ClusterDeployment Config", *_CERTIFICATES, "Certificate (admin-kubeconfig-client)"),
          generate=_kubeconfig, files=_file(RunFile.KUBECONFIG, SECRET)),
    Asset("Agent Installer Ignition", "*image.Ignition",
          ("Agent Workflow", "Agent Manifests", "Extra Manifests", *_CERTIFICATES, "Kubeadmin Password", _IC, _AC, _AH,
           *MIRROR, "Agent Installer API Auth Config", "Agent Installer InfraEnv ID", "Fencing Credentials"),
          generate=ignition.install, volatile=True,
          persist=lambda value: {key: value[key] for key in ("RendezvousIP", "CPUArch")}),
    Asset("Agent ISO/PXE files Kernel Arguments", "*image.Kargs", ("AgentClusterInstall Config",),
          generate=image.kernel_arguments, volatile=True),
    Asset("Base ISO Image", "*image.BaseIso", ("Agent Manifests", *MIRROR), generate=base_iso, volatile=True),
    Asset("Agent Installer Artifacts", "*image.AgentArtifacts",
          # The base ISO first: the Ignition's text about the OS image depends on it.
          ("Agent Manifests", "Base ISO Image", "Agent Installer Ignition", "Agent ISO/PXE files Kernel Arguments", _AC),
          generate=image.artifacts, volatile=True),
    Asset("Agent Installer ISO", "*image.AgentImage", ("Agent Workflow", "Agent Installer Artifacts", "Agent Manifests"),
          generate=image.agent_iso, volatile=True),
    Asset("Agent Installer PXE Files", "*image.AgentPXEFiles", ("Agent Installer Artifacts", "Agent Manifests"),
          generate=image.pxe_files, volatile=True),
    Asset("Agent Config ISO", "*configimage.ConfigImage", ("Agent Installer Ignition",), generate=image.config_iso,
          volatile=True),
    Asset("Agent Installer Unconfigured Ignition", "*image.UnconfiguredIgnition",
          # The inputs first: of them releases up to 4.18 make the InfraEnv.
          (_IC, _AC, "InfraEnv Config File", "Agent PullSecret", "ClusterImageSet Config", "NMState Config",
           "Mirror Registries Config", "Agent Installer API Auth Config", "Agent Installer InfraEnv ID"),
          generate=ignition.unconfigured_config, volatile=True,
          files=lambda value: {"unconfigured-agent.ign": (dumps(value["Config"]), 0o644)}),
    *(Asset(f"Agent {name} ISO", "*image.Ignition",
            ("InfraEnv Config", "Agent PullSecret", "ClusterImageSet Config", "NMState Config", _AC, _AH, *MIRROR, "Base ISO Image",
             "Agent Installer API Auth Config", "Agent Installer InfraEnv ID"),
            generate=partial(image.unconfigured_iso, interactive=name == "Interactive"), volatile=True, persist=dict)
      for name in ("Unconfigured", "Interactive")),
    Asset("Agent Config Template", "*agentconfig.Template", generate=lambda _b: agent_config.TEMPLATE, volatile=True,
          files=lambda value: {agent_config.FILENAME: (value.encode(), SECRET)}),
)  # fmt: skip
