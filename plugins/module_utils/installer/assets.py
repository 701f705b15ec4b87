"""The assets of the agent-based installer: what each is made from and how."""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from ..documents import DocumentError, decoded
from ..ignition.config import dumps
from . import (
    advice,
    agent_config,
    credentials,
    ignition,
    image,
    install_config,
    mirrors,
    network,
    pem,
    validation,
)
from .build import Build
from .errors import InstallerError
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
from .schema import ordered
from .shapes import INSTALL_CONFIG
from .store import Asset
from .yamlio import dump, load_all

SECRET = 0o600
PUBLIC = 0o640
Texts = dict[str, bytes]


def _one(texts: Texts) -> str:
    name, data = next(iter(texts.items()))
    return _decoded(data, name)


def _decoded(data: bytes, name: str) -> str:
    try:
        return decoded(data, name=name)
    except DocumentError as error:
        raise InstallerError(
            f"failed to unmarshal {name}: error converting YAML to JSON: yaml: line {error.line}: {error.problem} "
            f"(column {error.column})"
        ) from None


# --- inputs -------------------------------------------------------------------------


def _load_install_config(build: Build, texts: Texts) -> dict[str, Any]:
    config = install_config.parse(_one(texts), build.log, lenient=build.options.lenient)
    build.hint = config
    install_config.set_defaults(config, build.profile, build.version)
    result: dict[str, Any] = ordered(config, INSTALL_CONFIG)
    validation.validate(result, build)
    _advise(build, advice.of_pull_secret(result.get("pullSecret") or ""))
    return result


def _advise(build: Build, texts: list[str]) -> None:
    for text in texts:
        build.log.warning(text)


def _load_agent_config(build: Build, texts: Texts) -> dict[str, Any]:
    text = _one(texts)
    config = agent_config.load_agent_config(text, build.log)
    if "minimalISO" in config and not build.profile.minimal_iso:
        raise InstallerError(
            f"failed to unmarshal {agent_config.FILENAME}: error unmarshaling JSON: while decoding JSON: json: unknown field "
            f'"minimalISO" (release {build.profile.name})'
        )
    _advise(build, advice.of_agent_config(config))
    return {"Config": config, "File": text}


def _agent_config(build: Build) -> dict[str, Any] | None:
    found = build["Agent Config"]
    return found["Config"] if found else None


def _hosts(build: Build) -> list[dict[str, Any]]:
    config, cluster = _agent_config(build), build["Install Config"]
    hosts = agent_config.hosts_of(config, cluster, build.profile, build.log)
    expected = sum(install_config.replicas(cluster).values()) if cluster else 0
    _advise(build, advice.of_hosts(hosts, (config or {}).get("rendezvousIP", ""), expected))
    return hosts


def _load_extra_manifests(_build: Build, texts: Texts) -> dict[str, str]:
    """Each YAML document as a file of its own: <name>-<number>.<extension>; the last one ends without a newline."""
    found: dict[str, str] = {}
    for name, data in texts.items():
        path = PurePosixPath(name)
        if path.suffix not in (".yaml", ".yml"):
            continue
        try:
            documents = load_all(_decoded(data, name), name)
        except InstallerError as error:
            raise InstallerError(f"could not decode YAML for {name}: {error}") from error
        for number, (document, __) in enumerate(documents):
            found[f"{path.stem}-{number}{path.suffix}"] = dump(document)
        if documents:
            found[f"{path.stem}-{len(documents) - 1}{path.suffix}"] = dump(documents[-1][0]).removesuffix("\n")
    return found


# --- manifests ----------------------------------------------------------------------


def _has_install_config(peek: Any) -> bool:
    return peek("Install Config") is not None


def _has_networks(peek: Any) -> bool:
    config = (peek("Agent Config") or {}).get("Config", {})
    return peek("Install Config") is not None or any(
        host.get("networkConfig") is not None for host in config.get("hosts", [])
    )


def _infra_env_file(build: Build) -> dict[str, Any]:
    if not build.profile.unconfigured_from_install_config:
        ignition.missing_infra_env()
    return _made(infra_env(_needs_install_config(build), _agent_config(build), build.profile))


def _needs_install_config(build: Build) -> dict[str, Any]:
    found: dict[str, Any] | None = build["Install Config"]
    if found is None:
        place = build.options.directory
        raise InstallerError(
            "missing configuration or manifest file: "
            f"{place} has no {install_config.FILENAME}, and {place / DIRECTORY} has no manifest in its place"
        )
    return found


def _make_aci(build: Build) -> dict[str, Any]:
    aci = agent_cluster_install(
        _needs_install_config(build), _agent_config(build), build["Agent Hosts"], build.version, build.profile
    )
    check_agent_cluster_install(aci, build.profile)
    return {"Config": aci, "File": dump(aci)}


def _load_aci(build: Build, texts: Texts) -> dict[str, Any]:
    aci, text = load_agent_cluster_install(_one(texts), build.profile, build.log)
    check_agent_cluster_install(aci, build.profile)
    return {"Config": aci, "File": text}


def _made(value: dict[str, Any]) -> dict[str, Any]:
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
    text = _one(texts)
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


def _secret(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "File": dump(value)}


def _file(name: str, mode: int = PUBLIC) -> Any:
    def files(value: dict[str, Any]) -> dict[str, tuple[bytes, int]]:
        return {name: (value["File"].encode(), mode)} if value["File"] else {}

    return files


# --- mirrors ------------------------------------------------------------------------


def _sources(config: dict[str, Any] | None) -> list[dict[str, Any]]:
    return (config or {}).get("imageDigestSources") or (config or {}).get("imageContentSources") or []


def _make_registries(build: Build) -> dict[str, Any]:
    config = build["Install Config"]
    sources = _sources(config)
    repository = re.sub(r"(@|:(?=[^/]*$)).*", "", build.release_image)
    if sources and not mirrors.mirrors_of(
        build.release_image, [{"source": s["source"], "mirrors": [""]} for s in sources]
    ):
        # Upstream's text for imageContentSources, too.
        build.log.warning(
            "The imageDigestSources configuration in install-config.yaml should have at least one source field matching "
            f"the releaseImage value {build.release_image}"
        )
    build.log.debug(f"The repository of the release image is {repository}")
    return {"File": mirrors.render(sources, blocked=build.profile.blocked_mirrors)}


def _load_registries(build: Build, texts: Texts) -> dict[str, Any]:
    text = _one(texts)
    registries = mirrors.parse(text)
    if registries:
        if not all(entry["located"] for entry in registries):
            build.log.warning(f"Location key not found in {mirrors.FILENAME}")
        if not mirrors.mirrors_of(build.release_image, [{**entry, "mirrors": [""]} for entry in registries]):
            build.log.warning(
                f"{mirrors.FILENAME} should have an entry matching the releaseImage {build.release_image}"
            )
    return {"File": text}


def _make_bundle(build: Build) -> dict[str, Any]:
    text = (build["Install Config"] or {}).get("additionalTrustBundle", "")
    found, warnings = pem.bundle(text)
    for warning in warnings:
        build.log.warning(warning)
    return {"File": found}


def _load_bundle(_build: Build, texts: Texts) -> dict[str, Any]:
    text = _one(texts)
    if text.strip():
        why = pem.problem(text)
        if why:
            raise InstallerError(f"failed to parse {mirrors.CA_FILENAME}: {why}")
    return {"File": text}


def _bundle_files(value: dict[str, Any]) -> dict[str, tuple[bytes, int]]:
    return {mirrors.CA_FILENAME: (value["File"].encode(), PUBLIC)}


# --- credentials --------------------------------------------------------------------


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
    )


def _load_password(_build: Build, texts: Texts) -> dict[str, str] | None:
    if "tls/kubeadmin-password.hash" not in texts:
        return None
    return {
        "hash": texts["tls/kubeadmin-password.hash"].decode().strip(),
        "password": texts.get("tls/kubeadmin-password", b"").decode().strip(),
    }


def signers_of(build: Build) -> dict[str, dict[str, str]]:
    """The four signers by name."""
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


# --- the table ----------------------------------------------------------------------

_IC, _AC, _AH, _RI = "Install Config", "Agent Config", "Agent Hosts", "Release Image"
_CM = DIRECTORY
_CERTIFICATES = tuple(f"Certificate ({name})" for name in credentials.SIGNERS)
_ZTP = ("Agent PullSecret", "InfraEnv Config", "NMState Config", "AgentClusterInstall Config",
        "ClusterDeployment Config", "ClusterImageSet Config")  # fmt: skip
_MIRROR = ("Mirror Registries Config", "Mirror Registries Certificate File")

ASSETS: tuple[Asset, ...] = (
    Asset(_RI, "*releaseimage.Image", follow=True,
          generate=lambda b: {"PullSpec": b.release_image, "Version": b.version, "Profile": b.profile.name}),
    Asset("Agent Workflow", "*workflow.AgentWorkflow", generate=lambda _b: "install"),
    Asset(_IC, "*agent.OptionalInstallConfig", load=_load_install_config, sources=(install_config.FILENAME,)),
    Asset(_AC, "*agentconfig.AgentConfig", load=_load_agent_config, sources=(agent_config.FILENAME,)),
    Asset("Source of the Hosts", "*agentlab.HostsFrom", follow=True,
          generate=lambda b: {"InstallConfig": b.profile.install_config_hosts}),
    Asset(_AH, "*agentconfig.AgentHosts", (_AC, _IC, "Source of the Hosts"), generate=_hosts),
    Asset("Agent PullSecret", "*manifests.AgentPullSecret", (_IC, _RI),
          generate=lambda b: _secret(pull_secret(_needs_install_config(b), b.profile)),
          load=lambda b, texts: _secret(load_pull_secret(_one(texts), b.profile)),
          sources=(f"{_CM}/pull-secret.yaml",), files=_file(f"{_CM}/pull-secret.yaml", SECRET),
          possible=_has_install_config),
    Asset("InfraEnv Config", "*manifests.InfraEnv", (_IC, _AC, _RI),
          generate=lambda b: _made(infra_env(_needs_install_config(b), _agent_config(b), b.profile)),
          load=lambda b, texts: _made(complete_infra_env(load_infra_env(_one(texts)), b.profile)),
          sources=(f"{_CM}/infraenv.yaml",), files=_file(f"{_CM}/infraenv.yaml", SECRET), possible=_has_install_config),
    Asset("InfraEnv Config File", "*manifests.InfraEnvFile",
          generate=_infra_env_file,
          load=lambda b, texts: _made(complete_infra_env(load_infra_env(_one(texts)), b.profile)),
          sources=(f"{_CM}/infraenv.yaml",), volatile=True),
    Asset("NMState Config", "*manifests.NMStateConfig", (_AH, _IC, _RI), generate=_make_nmstate, load=_load_nmstate,
          sources=(f"{_CM}/nmstateconfig.yaml",), files=_file(f"{_CM}/nmstateconfig.yaml", SECRET), possible=_has_networks),
    Asset("AgentClusterInstall Config", "*manifests.AgentClusterInstall", (_IC, _AH, _AC, _RI), generate=_make_aci,
          load=_load_aci, sources=(f"{_CM}/agent-cluster-install.yaml",),
          files=_file(f"{_CM}/agent-cluster-install.yaml", SECRET), possible=_has_install_config),
    Asset("ClusterDeployment Config", "*manifests.ClusterDeployment", (_IC, _RI),
          generate=lambda b: _made(cluster_deployment(_needs_install_config(b), b.profile)),
          load=lambda _b, texts: {"Config": load_cluster_deployment(_one(texts)), "File": _one(texts)},
          sources=(f"{_CM}/cluster-deployment.yaml",), files=_file(f"{_CM}/cluster-deployment.yaml"),
          possible=_has_install_config),
    Asset("ClusterImageSet Config", "*manifests.ClusterImageSet", (_IC, _RI),
          generate=lambda b: _made(cluster_image_set(b[_IC], b.release_image, b.version, b.profile)),
          load=lambda b, texts: {"Config": load_cluster_image_set(_one(texts), b.release_image),
                                 "File": _one(texts)},
          sources=(f"{_CM}/cluster-image-set.yaml",), files=_file(f"{_CM}/cluster-image-set.yaml")),
    Asset("Agent Manifests", "*manifests.AgentManifests", _ZTP, generate=_agent_manifests, volatile=True),
    Asset("Extra Manifests", "*manifests.ExtraManifests", load=_load_extra_manifests, sources=("openshift/*",),
          removable=True),
    Asset("Mirror Registries Config", "*mirror.RegistriesConf", (_IC, _RI), generate=_make_registries,
          load=_load_registries, sources=(mirrors.FILENAME,), files=_file(mirrors.FILENAME), keep=True),
    Asset("Mirror Registries Certificate File", "*mirror.CaBundle", (_IC,), generate=_make_bundle, load=_load_bundle,
          sources=(mirrors.CA_FILENAME,), files=_bundle_files, keep=True),
    *(_signer(name) for name in credentials.SIGNERS),
    Asset("Certificate (admin-kubeconfig-client)", "*tls.AdminKubeConfigClientCertKey",
          ("Certificate (admin-kubeconfig-signer)",),
          generate=lambda b: credentials.admin_client(b["Certificate (admin-kubeconfig-signer)"])),
    Asset("Kubeadmin Password", "*password.KubeadminPassword", generate=lambda _b: credentials.password(),
          load=_load_password, sources=("tls/kubeadmin-password.hash", "tls/kubeadmin-password"),
          files=lambda value: {"auth/kubeadmin-password": (value["password"].encode(), SECRET)}, keep=True),
    Asset("Agent Installer InfraEnv ID", "*common.InfraEnvID", generate=lambda _b: str(uuid.uuid4())),
    Asset("Token Life", "*agentlab.TokenLife", generate=_token_life, follow=True),
    Asset("Agent Installer API Auth Config", "*gencrypto.AuthConfig", ("Token Life", "Agent Installer InfraEnv ID"), generate=_tokens),
    Asset("Fencing Credentials", "*manifests.FencingCredentials", (_IC, _AH),
          generate=lambda b: fencing_credentials(b[_IC], b[_AH]) if b[_IC] else {},
          load=lambda _b, texts: load_fencing_credentials(_one(texts)), sources=(FENCING,),
          possible=_has_install_config),
    Asset("Kubeconfig Admin Client (Agent)", "*kubeconfig.AgentAdminClient",
          ("ClusterDeployment Config", *_CERTIFICATES, "Certificate (admin-kubeconfig-client)"),
          generate=_kubeconfig, files=_file("auth/kubeconfig", SECRET)),
    Asset("Agent Installer Ignition", "*image.Ignition",
          ("Agent Workflow", "Agent Manifests", "Extra Manifests", *_CERTIFICATES, "Kubeadmin Password", _IC, _AC, _AH,
           *_MIRROR, "Agent Installer API Auth Config", "Agent Installer InfraEnv ID", "Fencing Credentials"),
          generate=ignition.install, volatile=True,
          persist=lambda value: {key: value[key] for key in ("RendezvousIP", "CPUArch")}),
    Asset("Agent ISO/PXE files Kernel Arguments", "*image.Kargs", ("AgentClusterInstall Config",),
          generate=image.kernel_arguments, volatile=True),
    Asset("Base ISO Image", "*image.BaseIso", ("Agent Manifests", *_MIRROR), generate=image.base_iso, volatile=True),
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
          generate=ignition.unconfigured, volatile=True,
          files=lambda value: {"unconfigured-agent.ign": (dumps(value["Config"]), 0o644)}),
    Asset("Agent Config Template", "*agentconfig.Template", generate=lambda _b: agent_config.TEMPLATE, volatile=True,
          files=lambda value: {agent_config.FILENAME: (value.encode(), SECRET)}),
)  # fmt: skip
