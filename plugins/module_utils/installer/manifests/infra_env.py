"""The InfraEnv, and the NMStateConfigs that it selects."""

from __future__ import annotations

from typing import Any

from ...releases import ReleaseProfile
from ...vocabulary import ARCHITECTURES, rpm_arch
from ..errors import FieldErrors, InstallerError
from ..models import AgentConfig, Host, InstallConfig, Manifest
from ..schema import decode, decode_file
from ..yamlio import dump, load_all
from . import shapes
from .meta import DIRECTORY, SELECTOR, metadata, names, proxy_of


def infra_env(config: InstallConfig, agent_config: AgentConfig | None, profile: ReleaseProfile) -> Manifest:
    """The InfraEnv of an install-config with defaults filled in.

    NTP sources are those of agent-config, or else of the baremetal platform; a proxy gets the machine network as well.
    """
    cluster, namespace = names(config)
    spec: dict[str, Any] = {
        "clusterRef": {"name": cluster, "namespace": namespace},
        "cpuArchitecture": ARCHITECTURES.get(config["controlPlane"]["architecture"], ""),
        "pullSecretRef": {"name": f"{cluster}-pull-secret"},
        "nmStateConfigLabelSelector": {"matchLabels": {SELECTOR: cluster}},
    }
    if not namespace:
        del spec["clusterRef"]["namespace"]
    ssh = config.get("sshKey", "").strip("|\n\t")
    if ssh:
        spec["sshAuthorizedKey"] = ssh
    if config.get("additionalTrustBundle"):
        spec["additionalTrustBundle"] = config["additionalTrustBundle"]
    proxy = proxy_of(config, agent_config, profile)
    if proxy:
        spec["proxy"] = proxy
    sources = (agent_config or {}).get("additionalNTPSources")
    if sources is None:
        sources = (config["platform"].get("baremetal") or {}).get("additionalNTPServers")
    if sources:
        spec["additionalNTPSources"] = sources
    return complete_infra_env(
        {
            "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "InfraEnv",
            "metadata": metadata(cluster, namespace, profile), "spec": spec,
        },
        profile,
    )  # fmt: skip


def complete_infra_env(found: Manifest, profile: ReleaseProfile) -> Manifest:
    """Add what Go's zero values print.

    found is changed in place and returned. Which empty fields there are depends on the release.
    """
    if profile.creation_timestamp:
        found.setdefault("metadata", {}).setdefault("creationTimestamp", None)
    found.setdefault("spec", {}).setdefault("ipxeScriptType", "")
    found["spec"].setdefault("nmStateConfigLabelSelector", {})
    artifacts = dict.fromkeys(("initrd", "ipxeScript", "kernel", "rootfs"), "")
    if profile.discovery_ignition_url:
        artifacts["discoveryIgnitionURL"] = ""
    found.setdefault("status", {"agentLabelSelector": {}, "bootArtifacts": artifacts, "debugInfo": {"eventsURL": ""}})
    return found


def load_infra_env(text: str) -> Manifest:
    """Read infraenv.yaml; Go's architecture names become RPM's.

    Raises `InstallerError` for an unknown architecture, unknown fields and wrong types.
    """
    found: Manifest = decode_file(text, f"{DIRECTORY}/infraenv.yaml", shapes.INFRA_ENV)
    spec = found.setdefault("spec", {})
    arch = spec.get("cpuArchitecture", "")
    if arch:
        arch = rpm_arch(arch)
        if arch not in ARCHITECTURES.values():
            raise InstallerError(f"Config.Spec.CpuArchitecture {arch} is not supported ")
        spec["cpuArchitecture"] = arch
    return found


def nmstate_configs(config: InstallConfig | None, hosts: list[Host], profile: ReleaseProfile) -> list[Manifest]:
    """One NMStateConfig for each host that has a networkConfig.

    Names are the cluster's with the host's number, from 0; the label is the one that the InfraEnv selects by.
    """
    cluster, namespace = names(config)
    found: list[Manifest] = []
    for index, host in enumerate(hosts):
        if host.get("networkConfig") is None:
            continue
        meta = metadata(f"{cluster}-{index}", namespace, profile, {"labels": {SELECTOR: cluster}})
        found.append(
            {
                "apiVersion": "agent-install.openshift.io/v1beta1", "kind": "NMStateConfig", "metadata": meta,
                "spec": {
                    "config": host["networkConfig"],
                    "interfaces": [
                        {"macAddress": nic.get("macAddress", ""), "name": nic.get("name", "")}
                        for nic in host["interfaces"]
                    ],
                },
            }
        )  # fmt: skip
    return found


def dump_nmstate_configs(configs: list[Manifest]) -> str:
    """nmstateconfig.yaml: every document is followed by a separator."""
    return "".join(dump(doc) + "---\n" for doc in configs)


def load_nmstate_configs(text: str) -> list[Manifest]:
    """Read the documents of nmstateconfig.yaml; unknown fields are let pass.

    Raises `InstallerError` for text that is not YAML, wrong types, and a document without labels.
    """
    name = f"{DIRECTORY}/nmstateconfig.yaml"
    try:
        found = [
            decode(value, name, shapes.NMSTATE_CONFIG, position, strict=False)
            for value, position in load_all(text, name)
        ]
    except InstallerError as error:
        raise InstallerError(f"could not decode YAML for {name}: Error reading multiple YAMLs: {error}") from error
    errors = FieldErrors()
    for doc in found:
        if not doc.get("metadata", {}).get("labels"):
            errors.required("labels", f"{doc.get('metadata', {}).get('name', '')} does not have any label set")
    errors.check("invalid NMStateConfig configuration")
    return found


def check_labels(infra: Manifest, configs: list[Manifest]) -> None:
    """Every NMStateConfig must carry the labels that the InfraEnv selects by.

    Raises `InstallerError` with each that has others; labels are printed as Go prints a map.
    """
    selector = infra["spec"].get("nmStateConfigLabelSelector", {}).get("matchLabels") or {}
    errors = FieldErrors()

    def go_map(labels: dict[str, str]) -> str:
        return "map[" + " ".join(f"{key}:{labels[key]}" for key in sorted(labels)) + "]"

    for doc in configs:
        labels = doc["metadata"]["labels"]
        if labels != selector:
            errors.required(
                "spec.nmStateConfigLabelSelector.matchLabels",
                f"infraEnv and {doc['metadata'].get('name', '')} NMState Config labels do not match. "
                f"Expected: {go_map(selector)} Found: {go_map(labels)}",
            )
    errors.check("invalid agent configuration")
