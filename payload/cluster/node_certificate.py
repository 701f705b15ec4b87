"""Certificates of a node: requested with CertificateSigningRequests, as the real kubelet does, and approved by the cluster."""

from __future__ import annotations

import base64
import logging
import time
from pathlib import Path

from .kube import KubeClient
from .pki import request
from .pods import retry, write

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
log = logging.getLogger("kubelet")


def obtain(
    client: KubeClient, node: str, certificate: Path, key: Path, *, signer: str, names: tuple[str, ...] = ()
) -> None:
    """Request a certificate of a node, wait until it is issued, and write it with its key.

    certificate, key: files to write. signer: name of the signer. names: DNS names and addresses of a serving
    certificate; a client certificate has none. Waits without limit: the approval is the cluster's, or a user's.
    """
    pair = request(f"system:node:{node}", ["system:nodes"], names)
    usages = ["digital signature", "client auth" if not names else "server auth"]
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(pair.certificate.encode()).decode(),
            "signerName": signer,
            "usages": usages,
        },
    }
    issued = None
    while not issued:
        name = retry(f"requesting a certificate of {signer}", lambda: client.create(CSRS, body))["metadata"]["name"]
        log.info("certificate request %s waits for approval", name)
        issued = _issued(client, name)
    certificate.parent.mkdir(parents=True, exist_ok=True)
    write(key, pair.key)
    write(certificate, base64.b64decode(issued).decode())


def _issued(client: KubeClient, name: str) -> str | None:
    """Wait for the certificate of a request; None: the request was lost, because the leader changed before it was replicated."""
    while True:
        csr = retry("waiting for the certificate", lambda: client.find(f"{CSRS}/{name}"))
        if csr is None:
            return None
        issued: str | None = csr["status"].get("certificate")
        if issued:
            return issued
        time.sleep(1)
