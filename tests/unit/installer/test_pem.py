"""Bundles of certificates as Go's encoding/pem reads them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import pem
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def certificate(*, authority: bool) -> tuple[str, int]:
    """PEM text and serial number."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name, serial = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")]), x509.random_serial_number()
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(serial)
        .not_valid_before(now).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    return made.public_bytes(serialization.Encoding.PEM).decode(), serial


CA, __ = certificate(authority=True)
LEAF, SERIAL = certificate(authority=False)


@pytest.mark.parametrize(
    "text",
    [CA, CA + LEAF, CA.rstrip(), "# comment\n" + CA, f"{CA}text\n\n{LEAF}", CA.replace("\n", "\r\n"), CA[:-1] + "  \n",
     "-----BEGIN X-----\n*\n-----END X-----\n" + CA],
)  # fmt: skip
def test_a_bundle(text: str) -> None:
    assert pem.problem(text) is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "invalid block"),
        ("x", "invalid block"),
        (CA + "trailing\n", "invalid block"),
        (CA + "\n", "invalid block"),
        (CA.replace("END CERT", "END KEY"), "invalid block"),
        (" " + CA, "invalid block"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "x509: malformed certificate"),
        ("-----BEGIN X-----\n" * 50_000, "invalid block"),
        ("-----BEGIN X-----\n" * 50_000 + "-----END Y-----\n", "invalid block"),
    ],
)
def test_no_bundle(text: str, error: str) -> None:
    assert pem.problem(text) == error


def test_certificates_alone_with_warnings() -> None:
    text, warnings = pem.bundle(f"# first\n{LEAF}between\n{CA}")
    assert text == LEAF + CA
    assert warnings == [f"Certificate {SERIAL:X} from additionalTrustBundle is x509 v3 but not a certificate authority"]


def test_other_line_lengths_are_written_as_go_does() -> None:
    body = base64.b64encode(base64.b64decode("".join(CA.splitlines()[1:-1]))).decode()
    assert pem.bundle(f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")[0] == CA
