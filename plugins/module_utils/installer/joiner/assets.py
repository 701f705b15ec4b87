"""The assets of a node ISO: those of the agent ISO, made from the installed cluster and nodes-config.yaml."""

from __future__ import annotations

from typing import Any

from ...addresses import static_ips
from .. import ignition, image, inputs, network
from ..assets import ASSETS as INSTALL
from ..assets import MIRROR, asset_value, signer_names, with_text
from ..base_iso import base_iso
from ..build import Build
from ..errors import InstallerError
from ..inputs import Texts, one_text
from ..manifests.cluster import cluster_image_set
from ..manifests.infra_env import dump_nmstate_configs, infra_env, nmstate_configs
from ..manifests.pull_secret import pull_secret
from ..models import Host
from ..nodes_config import FILENAME, NodesConfig, load_nodes_config
from ..run import Target, Workflow
from ..store import Asset
from .cluster import ClusterInfo, agent_cluster_install, check_conflicts, install_config

_CI, _IC, _AN, _AH = "Agent Installer ClusterInfo", "Install Config", "AddNodes Config", "Agent Hosts"
_MANIFESTS = ("Agent PullSecret", "InfraEnv Config", "NMState Config", "ClusterImageSet Config")
# As in the other workflow: they are kept once they were made.
_KEPT = {asset.name: asset for asset in INSTALL if asset.name in (*signer_names(), "Kubeadmin Password",
                                                                  "Agent Installer InfraEnv ID")}  # fmt: skip


def _info(build: Build) -> ClusterInfo:
    if build.options.cluster is None:
        raise InstallerError("the cluster that the nodes are to join is not known")
    return build.options.cluster


def _nodes(build: Build) -> NodesConfig:
    found: NodesConfig | None = build[_AN]
    if found is None:
        raise InstallerError(f"failed to load {FILENAME} file: {build.options.directory / FILENAME}: no such file")
    return found


def _load_nodes(build: Build, texts: Texts) -> NodesConfig:
    return load_nodes_config(one_text(texts), build.profile, build.log)


def _config(build: Build) -> Any:
    nodes = _nodes(build)
    if nodes.get("cpuArchitecture"):
        build.log.info(f"CPU architecture set to: {nodes['cpuArchitecture']}")
    return install_config(_info(build), nodes)


def _agent_config(build: Build) -> dict[str, Any]:
    """Of an agent-config, images ask for the place of the boot artifacts alone."""
    url = _nodes(build).get("bootArtifactsBaseURL")
    return {"Config": {"bootArtifactsBaseURL": url} if url else {}}


def _nmstate(build: Build) -> dict[str, Any]:
    hosts: list[Host] = build[_AH]
    check_conflicts(hosts, [static_ips(host.get("networkConfig")) for host in hosts], build.options.members)
    found = nmstate_configs(build[_IC], hosts, build.profile)
    return {
        "Config": found,
        "File": dump_nmstate_configs(found),
        "Network": network.static_files([doc["spec"] for doc in found]),
    }


def _manifests(build: Build) -> dict[str, str]:
    names = ("pull-secret.yaml", "infraenv.yaml", "nmstateconfig.yaml", "cluster-image-set.yaml")
    texts = {name: build[asset]["File"] for name, asset in zip(names, _MANIFESTS, strict=True)}
    return {name: text for name, text in texts.items() if text}


ASSETS: tuple[Asset, ...] = (
    Asset("Agent Workflow", "*workflow.AgentWorkflow", generate=lambda _b: ignition.ADD_NODES),
    Asset(_CI, "*joiner.ClusterInfo", follow=True, generate=_info),
    Asset(_AN, "*joiner.AddNodesConfig", load=_load_nodes, sources=(FILENAME,)),
    Asset(_IC, "*agentlab.ClusterConfig", (_CI, _AN), generate=_config, volatile=True),
    Asset("Agent Config", "*agentconfig.AgentConfig", (_AN,), generate=_agent_config, volatile=True),
    Asset(_AH, "*agentconfig.AgentHosts", (_AN,), generate=lambda b: _nodes(b)["hosts"], volatile=True),
    Asset("AgentClusterInstall Config", "*manifests.AgentClusterInstall", (_CI,),
          generate=lambda b: {"Config": agent_cluster_install(_info(b))}, volatile=True),
    Asset("Agent PullSecret", "*manifests.AgentPullSecret", (_IC,),
          generate=lambda b: with_text(pull_secret(b[_IC], b.profile)), volatile=True),
    Asset("InfraEnv Config", "*manifests.InfraEnv", (_IC,),
          generate=lambda b: asset_value(infra_env(b[_IC], None, b.profile)), volatile=True),
    Asset("NMState Config", "*manifests.NMStateConfig", (_AH, _IC), generate=_nmstate, volatile=True),
    Asset("ClusterImageSet Config", "*manifests.ClusterImageSet", (_IC,),
          generate=lambda b: asset_value(cluster_image_set(b[_IC], b.release_image, b.version, b.profile)), volatile=True),
    Asset("Agent Manifests", "*manifests.AgentManifests", _MANIFESTS, generate=_manifests, volatile=True),
    Asset("Mirror Registries Config", "*mirror.RegistriesConf", (_IC,), generate=inputs.make_registries, volatile=True),
    Asset("Mirror Registries Certificate File", "*mirror.CaBundle", (_IC,), generate=inputs.make_bundle, volatile=True),
    *_KEPT.values(),
    Asset("Agent Installer API Auth Config", "*gencrypto.AuthConfig", generate=lambda b: b.options.tokens, follow=True),
    Asset("Agent Installer Ignition", "*image.Ignition",
          ("Agent Workflow", _CI, _AN, "Agent Manifests", *_KEPT, "Agent Config", _AH, *MIRROR,
           "Agent Installer API Auth Config"),
          generate=ignition.add_nodes, volatile=True,
          persist=lambda value: {key: value[key] for key in ("RendezvousIP", "CPUArch")}),
    Asset("Agent ISO/PXE files Kernel Arguments", "*image.Kargs", ("AgentClusterInstall Config",),
          generate=image.kernel_arguments, volatile=True),
    Asset("Base ISO Image", "*image.BaseIso", ("Agent Manifests", *MIRROR, "AgentClusterInstall Config"),
          generate=base_iso, volatile=True),
    Asset("Agent Installer Artifacts", "*image.AgentArtifacts",
          ("Agent Manifests", "Base ISO Image", "Agent Installer Ignition", "Agent ISO/PXE files Kernel Arguments",
           "Agent Config"),
          generate=image.artifacts, volatile=True),
    Asset("Agent Installer ISO", "*image.AgentImage", ("Agent Installer Artifacts",), generate=image.agent_iso, volatile=True),
    Asset("Agent Installer PXE Files", "*image.AgentPXEFiles", ("Agent Installer Artifacts",), generate=image.pxe_files,
          volatile=True),
)  # fmt: skip
ADD_NODES = Workflow(
    ASSETS,
    {
        "node-image": Target("Node-Image", ("Agent Installer ISO",)),
        "node-pxe-files": Target("Node-PXE-Files", ("Agent Installer PXE Files",)),
    },
)
"""What `run.create` makes of a cluster and a nodes-config.yaml."""
