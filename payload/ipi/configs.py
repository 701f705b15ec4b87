"""The Ignition configs of the simulated cluster: of its bootstrap machine, and the pointer that masters get with their disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

from ...plugins.module_utils.documents import load_json, load_yaml, read_file
from ...plugins.module_utils.ignition.config import Config
from ...plugins.module_utils.ignition.resources import data_file
from ...plugins.module_utils.installer import mirrors
from ...plugins.module_utils.plan.machines import interfaces
from ...plugins.module_utils.state import write_atomic
from ...plugins.module_utils.vocabulary import Component
from ..api_server.prepare import TRUST_ANCHOR, kubeconfig, password
from ..cluster import ignition
from ..cluster.configs import merge
from ..tools import openshift_install as tool
from .lab import Lab

REGISTRIES = "/etc/containers/registries.conf"
BOOTSTRAP, MASTER = "bootstrap.ign", "master.ign"
INVOKER = "agentlab-ipi"


def make(lab: Lab) -> dict[str, dict[str, Any]]:
    """Return `bootstrap.ign` and `master.ign`, and write credentials and metadata.json to the run directory.

    install-config.yaml and manifests are consumed, as by openshift-install. Raises `ValueError` and `OSError`.
    """
    folder = lab.directory
    if (folder / RunFile.INSTALL_CONFIG).exists():
        tool.create_manifests(folder, {})
    config = load_json(read_file(folder / tool.STATE), name=str(folder / tool.STATE))["*installconfig.InstallConfig"][
        "config"
    ]
    scheduler = load_yaml(read_file(folder / tool.SCHEDULER), name=tool.SCHEDULER)
    manifests, tls = tool.manifests_of(folder), lab.folder / "tls"
    lab.folder.mkdir(mode=0o700, exist_ok=True)
    tool.create_certificates(lab.folder, {})
    cluster = tool.cluster_of(
        config, lab.payload["version"], schedulable=bool((scheduler.get("spec") or {}).get("mastersSchedulable"))
    )
    bundle = config.get("additionalTrustBundle") or ""
    files = {REGISTRIES: mirrors.render(config.get("imageDigestSources") or [], blocked=False)}
    files |= {TRUST_ANCHOR: bundle} if bundle else {}
    # Without the image of the assisted-installer-controller there is none.
    images = {name: one["pullspec"] for name, one in lab.payload["images"].items() if name != Component.CSR_APPROVER}
    made = ignition.render(
        cluster, _hosts(lab, config), tls, images,
        tool.settings_of(manifests), manifests, node_files=files, invoker=INVOKER,
    )  # fmt: skip
    texts = {**files, "/etc/hostname": "bootstrap\n"}
    own = Config()
    own.add(files=[data_file(path, text.encode(), 0o644) for path, text in texts.items()])
    bootstrap = merge(made[BOOTSTRAP], own.to_dict(), ignition.login(config.get("sshKey")))
    _write(lab, cluster, kubeconfig(cluster["name"], cluster["base_dns_domain"], tls), password(tls) or b"")
    return {BOOTSTRAP: bootstrap, MASTER: made[MASTER]}


def _hosts(lab: Lab, config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The machines in the assisted service's model, which the simulated cluster is made from: none of them bootstraps."""
    addresses = {
        node["name"]: [address["ip"] for one in interfaces(node) for address in one["addresses"]]
        for node in lab.masters
    }
    return [
        {
            **host,
            "bootstrap": False,
            "inventory": {"interfaces": [{"ipv4_addresses": addresses.get(host["requested_hostname"], [])}]},
        }
        for host in tool.hosts_of(config, {})
    ]


def _write(lab: Lab, cluster: Mapping[str, Any], kubeconfig_text: bytes, secret: bytes) -> None:
    path = lab.directory / RunFile.KUBECONFIG
    path.parent.mkdir(mode=0o750, exist_ok=True)
    write_atomic(path, kubeconfig_text, 0o600)
    write_atomic(lab.directory / RunFile.PASSWORD, secret, 0o600)
