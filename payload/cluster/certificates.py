"""Certificates of a new cluster: the installer's signers, and what the lab signs and creates itself."""

from __future__ import annotations

from pathlib import Path

from ...plugins.module_utils.ignition.resources import data_file
from ...plugins.module_utils.vocabulary import ClusterNames
from .configs import Config
from .facts import ClusterFacts
from .pki import Signer

PKI = "/etc/kubernetes/pki"
SERVER_SIGNERS = (
    "kube-apiserver-localhost-signer",
    "kube-apiserver-service-network-signer",
    "kube-apiserver-lb-signer",
)


class Certificates:
    """Certificates of one cluster; `tls_dir` has the installer's signers, OSError if one is missing. The keys are random."""

    def __init__(self, facts: ClusterFacts, tls_dir: Path) -> None:
        served = ClusterNames.of(facts["domain"])
        own = [address for host in facts["hosts"] for address in host["addresses"]]
        addresses = [*facts["api_vips"], *own, "127.0.0.1", "::1"]
        names = [
            served.api,
            served.api_int,
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            *dict.fromkeys(addresses),
        ]
        self.bundle = "".join((tls_dir / f"{name}.crt").read_text().strip() + "\n" for name in SERVER_SIGNERS)
        self.admin = Signer.read(tls_dir, "admin-kubeconfig-signer")
        self.server = Signer.read(tls_dir, "kube-apiserver-lb-signer").issue("kube-apiserver", names=names)
        self.member = self.admin.issue("system:kube-apiserver", organizations=["system:masters"], client=True)
        self.kubelets = Signer.create("kubelet-signer")
        self.root = Signer.create("root-ca")
        self.machine_config = self.root.issue(
            "system:machine-config-server", names=[served.api_int, *dict.fromkeys(addresses)]
        )
        ingress = Signer.create("ingress-operator")
        self.router = ingress.issue(f"*.{served.apps}", names=[f"*.{served.apps}"])
        self.router_ca = ingress.pair.certificate

    def files(self) -> list[Config]:
        """Return the certificates and keys of a control-plane member, below `/etc/kubernetes/pki`."""
        pairs = {
            "server": self.server,
            "member": self.member,
            "kubelet-signer": self.kubelets.pair,
            "machine-config-server": self.machine_config,
        }
        found = [_file("client-ca.crt", self.admin.pair.certificate + self.kubelets.pair.certificate, 0o644)]
        for name, pair in pairs.items():
            found += [_file(f"{name}.crt", pair.certificate, 0o644), _file(f"{name}.key", pair.key, 0o600)]
        return found


def _file(name: str, text: str, mode: int) -> Config:
    return data_file(f"{PKI}/{name}", text.encode(), mode)
