"""What the ZTP manifests of `cluster-manifests/` have in common: names, metadata, proxy."""

from __future__ import annotations

from ...releases import ReleaseProfile
from ..install_config import machine_network_of
from ..models import AgentConfig, InstallConfig, Meta

DIRECTORY = "cluster-manifests"
SELECTOR = "infraenvs.agent-install.openshift.io"
DEFAULT_NAME = "agent-cluster"


def metadata(name: str, namespace: str, profile: ReleaseProfile, extra: Meta | None = None) -> Meta:
    """`metadata` of a manifest, with the fields of `extra`; namespace: "" for none."""
    meta: Meta = {"name": name, **(extra or {})}
    if namespace:
        meta["namespace"] = namespace
    if profile.creation_timestamp:
        meta["creationTimestamp"] = None
    return meta


def names(install_config: InstallConfig | None) -> tuple[str, str]:
    """Cluster name and namespace.

    Without an install-config, or a name in it: `agent-cluster` and "".
    """
    meta = (install_config or {}).get("metadata", {})
    return meta.get("name") or DEFAULT_NAME, meta.get("namespace", "")


def proxy_of(
    install_config: InstallConfig, agent_config: AgentConfig | None, profile: ReleaseProfile
) -> dict[str, str]:
    """The proxy settings; noProxy gets the machine network of the rendezvous IP.

    Keys: httpProxy, httpsProxy, noProxy; only those with a value. Which releases add the network is in their profile.
    """
    proxy = {key: value for key, value in (install_config.get("proxy") or {}).items() if value}
    ip = (agent_config or {}).get("rendezvousIP", "")
    if profile.no_proxy_machine_network and ip and (proxy.get("httpProxy") or proxy.get("httpsProxy")):
        net = machine_network_of(install_config, ip)
        if net and net not in proxy.get("noProxy", ""):
            proxy["noProxy"] = ",".join(part for part in (proxy.get("noProxy", ""), net) if part)
    return proxy
