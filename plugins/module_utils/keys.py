"""The SSH key pair of a run's nodes. Created once, then kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ._deps import optional
from .state import write_atomic
from .vocabulary import RunFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
else:
    serialization = optional("cryptography.hazmat.primitives.serialization", "cryptography")
    ec = optional("cryptography.hazmat.primitives.asymmetric.ec", "cryptography")


def ensure_ssh_key(run_dir: Path) -> str:
    """Return the public key of `ssh/id_ecdsa`, one line; create the pair if it does not exist.

    ECDSA, because FIPS mode refuses Ed25519.
    """
    path, public = run_dir / RunFile.SSH_KEY, run_dir / RunFile.SSH_PUBLIC_KEY
    if not (path.exists() and public.exists()):
        private = ec.generate_private_key(ec.SECP256R1())
        text = private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
        ).decode()
        line = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        write_atomic(path, text, 0o600)
        write_atomic(public, f"{line.decode()} agentlab-{run_dir.name}\n")
    return public.read_text().strip()
