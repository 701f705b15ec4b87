"""Keys and certificates of the cluster. Signers of the installer (RSA, `/opt/agent/tls`) are read; ours are P-256, which is fast to generate.

Functions take and return PEM text.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

TEN_YEARS = datetime.timedelta(days=3650)
# Clocks of newly booted hosts may be behind.
SLACK = datetime.timedelta(hours=24)


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str


@dataclass(frozen=True)
class Signer:
    """A certificate authority."""

    pair: Pair

    @classmethod
    def read(cls, directory: Path, name: str) -> Signer:
        """Read `<name>.crt` and `<name>.key` of a directory."""
        return cls(Pair((directory / f"{name}.crt").read_text(), (directory / f"{name}.key").read_text()))

    @classmethod
    def create(cls, common_name: str) -> Signer:
        """Create a self-signed authority (OU openshift) that is valid for ten years."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name, unit="openshift")
        builder = _builder(name, name, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        builder = builder.add_extension(_usage(sign=True), critical=True)
        return cls(Pair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key)))

    def issue(
        self, common_name: str, *, organizations: Iterable[str] = (), names: Iterable[str] = (), client: bool = False
    ) -> Pair:
        """Issue a certificate with a new key; `names` are DNS names and IP addresses, `client` adds client authentication."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH] if client else [ExtendedKeyUsageOID.SERVER_AUTH]
        certificate = self._sign(_name(common_name, organizations), key.public_key(), _alternatives(names), usages)
        return Pair(certificate, _key_pem(key))

    def sign_request(self, request_pem: str, *, client: bool) -> str:
        """Sign a certificate request as it is, subject and alternative names; raise ValueError if its signature is invalid."""
        request = x509.load_pem_x509_csr(request_pem.encode())
        if not request.is_signature_valid:
            raise ValueError("the signature of the certificate request is not valid")
        try:
            names: x509.SubjectAlternativeName | None = request.extensions.get_extension_for_class(
                x509.SubjectAlternativeName
            ).value
        except x509.ExtensionNotFound:
            names = None
        usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
        return self._sign(request.subject, request.public_key(), names, [usage])

    def _sign(
        self, subject: x509.Name, public_key: Any, names: x509.SubjectAlternativeName | None, usages: list[Any]
    ) -> str:
        issuer = x509.load_pem_x509_certificate(self.pair.certificate.encode())
        builder = _builder(subject, issuer.subject, public_key)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(sign=False), critical=True).add_extension(
            x509.ExtendedKeyUsage(usages), critical=False
        )
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            ),
            critical=False,
        )
        if names:
            builder = builder.add_extension(names, critical=False)
        return _pem(builder.sign(self._key(), hashes.SHA256()))

    def _key(self) -> CertificateIssuerPrivateKeyTypes:
        return serialization.load_pem_private_key(self.pair.key.encode(), None)  # type: ignore[return-value]


def check_request(request_pem: str) -> None:
    """Raise ValueError for what is not a certificate request."""
    if "-----BEGIN CERTIFICATE REQUEST-----" not in request_pem:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    x509.load_pem_x509_csr(request_pem.encode())


def request(common_name: str, organizations: Iterable[str], names: Iterable[str] = ()) -> Pair:
    """Return a certificate request (in `certificate`) and its new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(common_name, organizations))
    alternatives = _alternatives(names)
    if alternatives:
        builder = builder.add_extension(alternatives, critical=False)
    return Pair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key))


def _builder(subject: x509.Name, issuer: x509.Name, public_key: Any) -> x509.CertificateBuilder:
    start = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - SLACK)
        .not_valid_after(start + TEN_YEARS)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _usage(sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=sign,
        crl_sign=False,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, organizations: Iterable[str] = (), unit: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    if unit:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, unit))
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternatives(names: Iterable[str]) -> x509.SubjectAlternativeName | None:
    entries: list[x509.GeneralName] = []
    for name in names:
        try:
            entries.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            entries.append(x509.DNSName(name))
    return x509.SubjectAlternativeName(entries) if entries else None


def _pem(signed: x509.Certificate | x509.CertificateSigningRequest) -> str:
    return signed.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
