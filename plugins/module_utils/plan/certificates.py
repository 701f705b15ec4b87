"""The lab's certificate authority, and the server certificate of the gateway."""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

from ..errors import LabError
from ..state import write_atomic
from . import proxied
from .model import Plan

YEARS = 10
RENEW_BEFORE = datetime.timedelta(days=30)


def served_names(plan: Plan) -> list[str]:
    """Return the names and addresses of the lab's server certificate."""
    machine = plan["networks"][0]
    registry = proxied.registry(plan["services"])
    others = [own for one in plan.get("hypervisors") or [] if (own := one.get("further"))]
    return [
        plan["services"]["host"],
        *([registry] if registry else []),
        *(subnet["gateway"] for subnet in machine["subnets"]),
        *(ip for own in others for ip in own["addresses"][machine["name"]]),
    ]


def ensure(directory: Path, cluster: str, names: Sequence[str], *, check: bool = False) -> bool:
    """Make `ca.crt`, `ca.key`, `server.crt` and `server.key` in `directory`, PEM, unless they exist and are valid.

    names: host names and addresses that the server certificate is for. Returns whether anything was (or would be) made.
    """
    if _is_usable(directory, names):
        return False
    if not check:
        _make(directory, cluster, names)
    return True


def _is_usable(directory: Path, names: Sequence[str]) -> bool:
    from cryptography import x509

    try:
        authority = x509.load_pem_x509_certificate((directory / "ca.crt").read_bytes())
        server = x509.load_pem_x509_certificate((directory / "server.crt").read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    if not (directory / "server.key").exists() or not (directory / "ca.key").exists():
        return False
    try:
        server.verify_directly_issued_by(authority)
    except Exception:
        return False
    held = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    have = {str(entry.value) for entry in held}
    return have == set(names) and server.not_valid_after_utc - RENEW_BEFORE > _current_time()


def _make(directory: Path, cluster: str, names: Sequence[str]) -> None:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError as error:
        raise LabError("the Python library cryptography is not installed: pip install cryptography") from error

    def key_pem(key: ec.EllipticCurvePrivateKey) -> str:
        return key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()

    def named(common: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])

    def builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        start = _current_time() - datetime.timedelta(days=1)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(start)
            .not_valid_after(start + datetime.timedelta(days=365 * YEARS))
        )

    directory.mkdir(parents=True, exist_ok=True)
    os.chmod(directory, 0o700)
    root_key, server_key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = named(f"agentlab {cluster} CA")
    authority = (
        builder(root, root, root_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(root_key.public_key()), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    server = (
        builder(named(names[0]), root, server_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root_key.public_key()), critical=False)
        .sign(root_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    write_atomic(directory / "ca.key", key_pem(root_key), 0o600)
    write_atomic(directory / "server.key", key_pem(server_key), 0o600)
    write_atomic(directory / "server.crt", server.public_bytes(pem).decode())
    write_atomic(directory / "ca.crt", authority.public_bytes(pem).decode())


def _general(name: str):  # type: ignore[no-untyped-def]
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _current_time() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
