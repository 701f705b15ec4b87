"""Takes secrets out of text that leaves the run directory."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "REDACTED"
_PATTERNS = (
    (re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL), rf"-----BEGIN \1-----{HIDDEN}-----END \1-----"),
    (re.compile(r"eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"), HIDDEN),  # JWT
    (re.compile(r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}"), HIDDEN),  # bcrypt
    (re.compile(r'(\\?"(?:auth|password|identitytoken|client-key-data|passwordHash)\\?"\s*:\s*\\?")[^"\\]+'), rf"\g<1>{HIDDEN}"),
    (re.compile(r"^(\s*-?\s*(?:password|auth|client-key-data|token|passwordHash):[ \t]+)\S.*$", re.MULTILINE), rf"\g<1>{HIDDEN}"),
    (re.compile(r"^((?:export )?\w*(?:TOKEN|PASSWORD|SECRET|DB_PASS)=)\S+", re.MULTILINE), rf"\g<1>{HIDDEN}"),
    (re.compile(r"(://[^/\s:@]+:)[^/\s@]+(@)"), rf"\g<1>{HIDDEN}\2"),  # user:password in a URL
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without private keys, tokens, passwords, pull secrets, nor any of the literal `secrets`."""
    for secret in sorted((s for s in secrets if len(s) > 5), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text
