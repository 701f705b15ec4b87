"""Authentication and authorization: local authentication with ES256 tokens of three schemes.

The claim `auth_scheme` of a token names its scheme; the token is accepted only in that scheme's header. Release 4.17 has one token
for agents and users, with the claim `infra_env_id`. Source: `agent-installer-local` of assisted-service.
"""

from __future__ import annotations

import base64
import binascii
import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

from ...plugins.module_utils.documents import load_json

HEADERS = {"agentAuth": "X-Secret-Key", "userAuth": "Authorization", "watcherAuth": "Watcher-Authorization"}
EXPIRED = "The provided authentication token has expired. Please generate a new token and try again."


class RefusedCall(Exception):
    """The call is refused: HTTP status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


class Local:
    """Checks tokens against the public key, given as in `EC_PUBLIC_KEY_PEM` (base64 of a PEM block `EC PUBLIC KEY`).

    one_token: agents and users have the same one, as in release 4.17.
    """

    def __init__(self, key: str, *, one_token: bool = False) -> None:
        self._one_token = one_token
        try:
            pem = base64.b64decode(key, validate=True).decode()
            body = "".join(line for line in pem.strip().splitlines() if not line.startswith("-----"))
            self._der = base64.b64decode(body, validate=True)
        except (ValueError, binascii.Error):
            raise ValueError("EC_PUBLIC_KEY_PEM should be the base64 text of a PEM block EC PUBLIC KEY") from None
        self._key: Any = None
        self._known: dict[str, dict[str, Any]] = {}

    def claims(self, token: str) -> dict[str, Any]:
        """Return the claims of a token with a valid signature; raise Refused (401) otherwise."""
        known = self._known.get(token)
        if known is None:
            known = self._verify(token)
            if len(self._known) > 100:
                self._known.clear()
            self._known[token] = known
        now = time.time()
        times = {name: known[name] for name in ("exp", "nbf", "iat") if name in known}
        if not all(isinstance(moment, (int, float)) for moment in times.values()):
            raise RefusedCall(401, "authentication failed: the token is not valid")
        if times.pop("exp", math.inf) <= now:
            raise RefusedCall(401, EXPIRED)
        if any(moment > now for moment in times.values()):
            raise RefusedCall(401, "authentication failed: the token is not valid yet")
        return known

    def _verify(self, token: str) -> dict[str, Any]:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
        from cryptography.hazmat.primitives.serialization import load_der_public_key

        if self._key is None:
            self._key = load_der_public_key(self._der)
        try:
            head, body, sign = token.split(".")
            raw = _decode(sign)
            if load_json(_decode(head), name="token").get("alg") != "ES256" or len(raw) != 64:
                raise ValueError
            signature = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._key.verify(signature, f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
            claims = load_json(_decode(body), name="token")
            if not isinstance(claims, dict):
                raise ValueError
        except (ValueError, AttributeError, InvalidSignature):
            raise RefusedCall(401, "authentication failed: the token is not valid") from None
        return claims

    def authorize(self, schemes: Iterable[str], headers: Mapping[str, str]) -> str:
        """Return the scheme that authorizes a call with these headers for a route that allows `schemes`; raise Refused otherwise."""
        refused = RefusedCall(401, "unauthenticated for invalid credentials")
        for scheme in schemes:
            token = headers.get(HEADERS.get(scheme, ""))
            if not token:
                continue
            try:
                claims = self.claims(token)
            except RefusedCall as err:
                refused = err
                continue
            if self._one_token:
                if not isinstance(claims.get("infra_env_id"), str):
                    raise RefusedCall(401, "claims are incorrectly formatted")
                return scheme
            claim = claims.get("auth_scheme")
            if not isinstance(claim, str):
                raise RefusedCall(500, "malformed auth_scheme claim")
            if not claim:
                raise RefusedCall(400, "auth_scheme claim is empty")
            if claim != scheme:
                raise RefusedCall(403, f"authClaim {claim} is unauthorized to access")
            return scheme
        raise refused


def make_tokens(claims: Mapping[str, object] | None = None) -> tuple[str, dict[str, str]]:
    """Generate a key pair: the public key as in EC_PUBLIC_KEY_PEM, and a token per scheme with additional claims."""
    from ...plugins.module_utils.installer.credentials import TokenSigner

    signer = TokenSigner()
    return signer.public(), {scheme: signer.token({"auth_scheme": scheme, **(claims or {})}) for scheme in HEADERS}
