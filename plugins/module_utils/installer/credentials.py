"""Keys, certificates, tokens and passwords that a cluster starts with."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from .._deps import optional
from ..vocabulary import ClusterNames, Port
from .yamlio import dump, load

if TYPE_CHECKING:
    import bcrypt
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
    from cryptography.x509 import oid
else:
    bcrypt = optional("bcrypt")
    x509 = optional("cryptography.x509", "cryptography")
    oid = optional("cryptography.x509.oid", "cryptography")
    hashes = optional("cryptography.hazmat.primitives.hashes", "cryptography")
    serialization = optional("cryptography.hazmat.primitives.serialization", "cryptography")
    ec = optional("cryptography.hazmat.primitives.asymmetric.ec", "cryptography")
    rsa = optional("cryptography.hazmat.primitives.asymmetric.rsa", "cryptography")
    utils = optional("cryptography.hazmat.primitives.asymmetric.utils", "cryptography")

SIGNERS = (
    "kube-apiserver-lb-signer",
    "kube-apiserver-localhost-signer",
    "kube-apiserver-service-network-signer",
    "admin-kubeconfig-signer",
)
_TEN_YEARS = timedelta(days=3650)
# Easily confused characters are left out.
_ALPHABET = "abcdefghijkmnopqrstuvwxyzABCDEFGHIJKLMNPQRSTUVWXYZ23456789"


def _key_pem(key: rsa.RSAPrivateKey) -> str:
    return str(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        ),
        "ascii",
    )


def _key_id(key: rsa.RSAPrivateKey) -> Any:
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.PKCS1)
    return x509.SubjectKeyIdentifier(hashlib.sha1(public, usedforsecurity=False).digest())


def _usage(**on: bool) -> Any:
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip
    return x509.KeyUsage(**{name: on.get(name, False) for name in names})


def signer(name: str) -> dict[str, str]:
    """A self-signed CA called `name`, good for ten years: {"key", "crt"} in PEM.

    The key is RSA with 2,048 bits; the certificate has the subject OU=openshift, CN=name.
    """
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name(
        [x509.NameAttribute(oid.NameOID.ORGANIZATIONAL_UNIT_NAME, "openshift"),
         x509.NameAttribute(oid.NameOID.COMMON_NAME, name)]
    )  # fmt: skip
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), secrets.randbits(63) | 1, now, now + _TEN_YEARS)
        .add_extension(_usage(digital_signature=True, key_encipherment=True, key_cert_sign=True), critical=True)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_id(key), critical=False)
        .sign(key, hashes.SHA256())
    )
    return {"key": _key_pem(key), "crt": certificate.public_bytes(serialization.Encoding.PEM).decode()}


def admin_client(ca: dict[str, str]) -> dict[str, str]:
    """The client certificate of system:admin, signed by the admin-kubeconfig-signer `ca`: {"key", "crt"}.

    ca: {"key", "crt"} in PEM. The certificate is in group system:masters and good for ten years from the CA's start.
    """
    ca_key: Any = serialization.load_pem_private_key(ca["key"].encode(), None)
    ca_cert = x509.load_pem_x509_certificate(ca["crt"].encode())
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    subject = x509.Name(
        [x509.NameAttribute(oid.NameOID.ORGANIZATION_NAME, "system:masters"),
         x509.NameAttribute(oid.NameOID.COMMON_NAME, "system:admin")]
    )  # fmt: skip
    # The service's image has a cryptography that does not know the name with _utc yet.
    start = getattr(ca_cert, "not_valid_before_utc", None) or ca_cert.not_valid_before.replace(tzinfo=UTC)
    usages = [oid.ExtendedKeyUsageOID.SERVER_AUTH, oid.ExtendedKeyUsageOID.CLIENT_AUTH]
    certificate = (
        x509.CertificateBuilder(
            ca_cert.subject, subject, key.public_key(), secrets.randbits(63) | 1, start, start + _TEN_YEARS
        )
        .add_extension(_usage(digital_signature=True, key_encipherment=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_id(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(_key_id(ca_key)), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    return {"key": _key_pem(key), "crt": certificate.public_bytes(serialization.Encoding.PEM).decode()}


def kubeconfig(cluster: str, base_domain: str, signers: dict[str, dict[str, str]], admin: dict[str, str]) -> str:
    """The administrator's kubeconfig; it trusts the three kube-apiserver signers, not yet the router's CA.

    signers: {"key", "crt"} by name, see SIGNERS; admin: the same of `admin_client`. Returns YAML with one context,
    `admin`, for the API at `api.CLUSTER.BASE_DOMAIN`.
    """
    authorities = "".join(
        signers[name]["crt"]
        for name in (
            "kube-apiserver-localhost-signer", "kube-apiserver-service-network-signer", "kube-apiserver-lb-signer"
        )
    )  # fmt: skip

    def b64(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    names = ClusterNames.of(f"{cluster}.{base_domain.removesuffix('.')}")
    server = f"https://{names.api}:{Port.API}"
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "preferences": {},
            "current-context": "admin",
            "clusters": [
                {"name": cluster, "cluster": {"certificate-authority-data": b64(authorities), "server": server}}
            ],
            "contexts": [{"name": "admin", "context": {"cluster": cluster, "user": "admin"}}],
            "users": [
                {
                    "name": "admin",
                    "user": {"client-certificate-data": b64(admin["crt"]), "client-key-data": b64(admin["key"])},
                }
            ],
        }
    )


def trusts_more(there: bytes, made: bytes) -> bool:
    """Return whether the kubeconfig `there` is the one that was `made`, with CAs added.

    wait-for puts the router's CA before the others. What is not a kubeconfig gives False.
    """

    def parts(text: bytes) -> tuple[bytes, dict[str, Any]]:
        config, __ = load(text.decode(), "kubeconfig")
        cluster = config["clusters"][0]["cluster"]
        return base64.b64decode(cluster.pop("certificate-authority-data")), config

    try:
        (trusted, before), (ours, after) = parts(there), parts(made)
    except (ValueError, LookupError, TypeError, AttributeError):
        return False
    return before == after and trusted.endswith(ours)


def new_password() -> str:
    """A new kubeadmin password, `xxxxx-xxxxx-xxxxx-xxxxx`, without characters that are easily confused."""
    return "-".join("".join(secrets.choice(_ALPHABET) for __ in range(5)) for __ in range(4))


def password() -> dict[str, str]:
    """A `new_password` and its bcrypt hash: {"password", "hash"}. The hash has cost 10 and prefix $2a$."""
    text = new_password()
    return {"password": text, "hash": bcrypt.hashpw(text.encode(), bcrypt.gensalt(10, b"2a")).decode()}


def _b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


NO_TOKENS = {
    "AuthType": "none",
    **dict.fromkeys(("PublicKey", "AgentAuthToken", "UserAuthToken", "WatcherAuthToken", "AuthTokenExpiry"), ""),
}
"""Result of `tokens` for a service without authentication."""


class TokenSigner:
    """A P-256 key that signs JWTs and is then discarded.

    Nothing writes the private half anywhere, so no more tokens can be made for a service that has the public one.
    """

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())

    def public(self) -> str:
        """The public half, base64 of PEM `EC PUBLIC KEY`.

        The service takes it so, as EC_PUBLIC_KEY_PEM; lines within the PEM have 64 characters.
        """
        der = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        body = base64.b64encode(der).decode()
        lines = [body[at : at + 64] for at in range(0, len(body), 64)]
        pem = "\n".join(["-----BEGIN EC PUBLIC KEY-----", *lines, "-----END EC PUBLIC KEY-----", ""])
        return base64.b64encode(pem.encode()).decode()

    def token(self, claims: Mapping[str, object]) -> str:
        """An ES256 JWT.

        claims: the payload, JSON-able. Header and payload are compact JSON; the signature is r and s, 32 bytes each
        (RFC 7518).
        """
        head = json.dumps({"alg": "ES256", "typ": "JWT"}, separators=(",", ":")).encode()
        signed = f"{_b64url(head)}.{_b64url(json.dumps(claims, separators=(',', ':')).encode())}"
        r, s = utils.decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_b64url(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"


def infra_env_token(infra_env_id: str) -> dict[str, str]:
    """As `tokens`, for releases with one JWT, which names the infra-env, for all personas.

    All three tokens are the same text, and it never expires.
    """
    signer = TokenSigner()
    token = signer.token({"infra_env_id": infra_env_id})
    return {
        "AuthType": "agent-installer-local",
        "PublicKey": signer.public(),
        **dict.fromkeys(("AgentAuthToken", "UserAuthToken", "WatcherAuthToken"), token),
        "AuthTokenExpiry": "",
    }


def tokens(expires: datetime | None = None) -> dict[str, str]:
    """A key pair's public half and three ES256 JWTs, one for each persona of the assisted service.

    Keys: PublicKey (base64 of PEM `EC PUBLIC KEY`), AgentAuthToken, UserAuthToken, WatcherAuthToken, AuthType,
    AuthTokenExpiry (RFC 3339 or "").
    The private half is discarded.
    """
    signer = TokenSigner()

    def token(scheme: str) -> str:
        claims: dict[str, object] = {"auth_scheme": scheme}
        if expires is not None:
            claims["exp"] = int(expires.timestamp())
        return signer.token(claims)

    return {
        "AuthType": "agent-installer-local",
        "PublicKey": signer.public(),
        "AgentAuthToken": token("agentAuth"),
        "UserAuthToken": token("userAuth"),
        "WatcherAuthToken": token("watcherAuth"),
        "AuthTokenExpiry": expires.strftime("%Y-%m-%dT%H:%M:%SZ") if expires else "",
    }
