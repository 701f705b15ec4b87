"""Certificate requests: the requester, the approval, and what is issued."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from .._deps import optional
from .api import MERGE, Object, equal, expect, wait_until
from .model import BOOTSTRAPPER, Lab, case

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
else:
    x509 = optional("cryptography.x509", "cryptography")
    hashes = optional("cryptography.hazmat.primitives.hashes", "cryptography")
    serialization = optional("cryptography.hazmat.primitives.serialization", "cryptography")
    ec = optional("cryptography.hazmat.primitives.asymmetric.ec", "cryptography")

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
USAGES = ["digital signature", "client auth"]


def pem_request(user: str, group: str = "system:nodes") -> tuple[str, str]:
    """Return a certificate request for a user of a group, and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    names = [
        x509.NameAttribute(x509.oid.NameOID.ORGANIZATION_NAME, group),
        x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, user),
    ]
    made = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(names)).sign(key, hashes.SHA256())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return made.public_bytes(serialization.Encoding.PEM).decode(), text


def body(lab: Lab, request: str, **spec: object) -> Object:
    """Return a CertificateSigningRequest of a new name."""
    encoded = base64.b64encode(request.encode()).decode()
    return {
        "metadata": {"name": lab.name()},
        "spec": {"request": encoded, "signerName": CLIENT, "usages": USAGES, **spec},
    }


def ask(lab: Lab) -> tuple[str, str, str]:
    """Request a certificate for a new node, as one; return the path of the request, the node's user and the key."""
    user = f"system:node:{lab.name()}"
    request, key = pem_request(user)
    wanted = body(lab, request)
    path = lab.remove_later(f"{REQUESTS}/{wanted['metadata']['name']}")
    lab.bootstrap.post(REQUESTS, wanted)
    return path, user, key


def decide(lab: Lab, path: str, *kinds: str, code: int = 200) -> Object:
    """Approve or deny a request by its subresource."""
    csr = lab.admin.get(path)
    decisions = [{"type": kind, "status": "True", "reason": "Conformance", "message": "decided"} for kind in kinds]
    return lab.admin.put(f"{path}/approval", {**csr, "status": {"conditions": decisions}}, code)


@case
def requester(lab: Lab) -> None:
    """A request has the user who made it, whatever its body claims, and no condition."""
    request, __ = pem_request(f"system:node:{lab.name()}")
    wanted = body(lab, request, username="another", groups=["system:masters"])
    made = lab.bootstrap.post(REQUESTS, wanted)
    lab.remove_later(f"{REQUESTS}/{made['metadata']['name']}")
    equal(made["spec"]["username"], BOOTSTRAPPER, "username")
    expect("system:masters" not in made["spec"]["groups"], made["spec"]["groups"])
    equal((made.get("status") or {}).get("conditions") or [], [], "conditions")


@case
def without_signer(lab: Lab) -> None:
    """A request without signerName is 422 Invalid."""
    request, __ = pem_request("system:node:x")
    found = lab.admin.refused("POST", REQUESTS, 422, "Invalid", body(lab, request, signerName=""))
    expect("spec.signerName" in found["message"], found["message"])


@case
def without_usages(lab: Lab) -> None:
    """A request without usages is 422 Invalid."""
    request, __ = pem_request("system:node:x")
    found = lab.admin.refused("POST", REQUESTS, 422, "Invalid", body(lab, request, usages=[]))
    expect("spec.usages" in found["message"], found["message"])


@case
def request_that_cannot_be_read(lab: Lab) -> None:
    """A request that is not a certificate request is 422 Invalid."""
    found = lab.admin.refused("POST", REQUESTS, 422, "Invalid", body(lab, "no PEM"))
    expect("spec.request" in found["message"], found["message"])


@case
def waits_for_approval(lab: Lab) -> None:
    """A request of a new node gets no certificate before it is approved."""
    path, __, ___ = ask(lab)
    expect(not (lab.admin.get(path).get("status") or {}).get("certificate"), "a certificate is issued")


@case
def approval(lab: Lab) -> None:
    """An approved request gets a certificate for its subject, with the times of the decision."""
    path, user, __ = ask(lab)
    approved = decide(lab, path, "Approved")["status"]["conditions"][0]
    expect(approved["lastUpdateTime"] and approved["lastTransitionTime"], approved)
    encoded = wait_until("the certificate", lambda: lab.admin.get(path)["status"].get("certificate"))
    issued = x509.load_pem_x509_certificate(base64.b64decode(encoded))
    subject = {part.oid: part.value for part in issued.subject}
    equal(subject[x509.oid.NameOID.COMMON_NAME], user, "common name")
    equal(subject[x509.oid.NameOID.ORGANIZATION_NAME], "system:nodes", "organization")
    usage = issued.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    expect(x509.oid.ExtendedKeyUsageOID.CLIENT_AUTH in usage, "the certificate is not for clients")


@case
def certificate_authenticates(lab: Lab) -> None:
    """A client with an issued certificate is the node of its subject."""
    path, user, key = ask(lab)
    decide(lab, path, "Approved")
    encoded = wait_until("the certificate", lambda: lab.admin.get(path)["status"].get("certificate"))
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "client.crt"), Path(folder, "client.key")
        for file, text in zip(files, (base64.b64decode(encoded).decode(), key), strict=True):
            file.touch(0o600)
            file.write_text(text, encoding="utf-8")
        client = lab.with_credentials(certificate=(str(files[0]), str(files[1])))
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        found = client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", review)["status"]["userInfo"]
    equal(found["username"], user, "username")
    expect({"system:nodes", "system:authenticated"} <= set(found["groups"]), found["groups"])


@case
def denial(lab: Lab) -> None:
    """A denied request gets no certificate, and cannot be approved."""
    path, __, ___ = ask(lab)
    decide(lab, path, "Denied")
    found = decide(lab, path, "Denied", "Approved", code=422)
    expect("mutually exclusive" in found["message"], found["message"])
    expect(not lab.admin.get(path)["status"].get("certificate"), "a certificate is issued")


@case
def decision_cannot_be_taken_back(lab: Lab) -> None:
    """The condition Denied cannot be removed."""
    path, __, ___ = ask(lab)
    decide(lab, path, "Denied")
    equal(decide(lab, path, code=422)["reason"], "Invalid", "reason")


@case
def status_does_not_approve(lab: Lab) -> None:
    """The status subresource cannot approve a request."""
    path, __, ___ = ask(lab)
    patch = {"status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}]}}
    lab.admin.refused("PATCH", f"{path}/status", 422, "Invalid", patch, content_type=MERGE)


@case
def object_does_not_approve(lab: Lab) -> None:
    """A patch of the object itself changes neither spec nor conditions."""
    path, __, ___ = ask(lab)
    patch = {
        "spec": {"signerName": "example.test/x"},
        "status": {"conditions": [{"type": "Approved", "status": "True"}]},
    }
    lab.admin.send("PATCH", path, patch, content_type=MERGE)
    found = lab.admin.get(path)
    equal(found["spec"]["signerName"], CLIENT, "signerName")
    expect("Approved" not in {c["type"] for c in (found.get("status") or {}).get("conditions") or ()}, "it is approved")


@case
def nodes_do_not_approve(lab: Lab) -> None:
    """Neither a node nor the bootstrap identity can approve a request."""
    path, __, ___ = ask(lab)
    csr = lab.admin.get(path)
    decided = {**csr, "status": {"conditions": [{"type": "Approved", "status": "True", "reason": "x", "message": "x"}]}}
    for identity in (lab.bootstrap, lab.node):
        identity.refused("PUT", f"{path}/approval", 403, "Forbidden", decided)
