"""Words by which `redact` recognizes keys with secret values, and values that are not secret."""

from __future__ import annotations

import re
from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Parts of a name (`userPassword`, `DB_PASS`, `registry-token`), in lower case.
_ALWAYS = _words(
    """
    accesstoken apikey authkey authorization authtoken clientsecret credential credentials dockercfg dockerconfig dockerconfigjson identitytoken
    passphrase passwd password passwords presharedkey privatekey psk pullsecret refreshtoken secretkey setcredential sharedsecret
    """
)
_NOUNS = frozenset(("token", "tokens", "secret", "secrets", "cookie"))
_PRECEDED = frozenset(("pass", "pwd", "pw"))  # of a name with a part before it: `pass` alone is a test that passed
_KEYS = _words(
    """
    access account api auth client decryption encryption hmac host license master preshared private secret session shared signing wep
    """
)
# The last part defines what the value is: `tokenFile` is a path, `secretName` a name.
_HARMLESS_ENDS = _words(
    """
    age agent algorithm at audience bucket by cert check checks class conf config console controller count crt csr days dir directory disabled enabled
    endpoint error errors expiration expired expires expiry field fields file files flags for format from getter go header headers hours html id ids
    invalid issuer json kind len length lifetime limit log manager map md method methods mgmt minutes mode mount mounts name names namespace needed
    option options path paths pem policy present print prompt provider pub py quota realm ref reference refs requests required review reviews rotation
    scheme seconds server service services set sh signer size socket state status stdin store sync target timer to ttl txt type types uri url usage used
    user username users valid version volume volumes wall with yaml yml
    """
)
_FILES = re.compile(r"(?:^|[._/-])id_(?:rsa|ecdsa|ed25519|dsa)$|[\w-]\.key$")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")

_INNOCENT = _words(
    """
    agent-installer-local auth basic bearer digest false htpasswd local nil no none null openshift optional redacted required rhsso sa true undefined
    unset yes
    """
)
_INNOCENT |= {
    "",
    '""',
    "&&",
    "''",
    "...",
    ";",
    "<",
    "<nil>",
    "<none>",
    "<redacted>",
    "<unset>",
    ">",
    ">>",
    "[]",
    "[redacted]",
    "\\",
    "{}",
    "|",
    "||",
    "~",
}
# What a message has after `password: ` or `token: ` when it does not give it.
_PROSE = _words(
    """
    a an and any are as at authentication bad be been but by can cannot cert certificate check connection context could created crypto decode deleted
    denied dial dict did does done empty eof error exit expected expired expires failed failure field file for forbidden found from get given got has have
    http if illegal in incorrect int invalid is it length loaded lookup malformed mapping missing must need needs never no not of ok on only open or
    permission please post put read refused rejected required revoked secret see should signature stat still str string that the there they this timeout
    to too unable unauthorized unexpected unknown unset unsupported updated use used user using valid value was when which will with without would write
    written wrong x509 you your
    """
)
_REFERENCE = re.compile(
    r"\$\w{1,64}$|\$?\{\{?[^{}]{0,200}\}?\}$|\$\([^()]{0,200}\)$|<[\w /.-]{0,64}>$|%[sdvq]$|%\(\w{1,64}\)s$|"
    r"[*x•.#-]{3,64}$|sha256:[0-9a-f]{64}$",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_secret_key(name: str) -> bool:
    """Return whether the value of a key of this name (or option, or variable) is a secret.

    name: in any style (camelCase, snake_case, with hyphens); a number at its end does not count. Names such as
    `secretName` are not: their values refer to a secret.
    """
    if is_key_file(name):
        return True
    parts = [part.lower() for part in _PART.findall(name)]
    while parts and parts[-1].isdigit():
        parts.pop()
    if not parts or parts[-1] in _HARMLESS_ENDS or {"public", "pub"} & set(parts):
        return False
    if parts == ["auth"] or (parts[-1] == "auth" and len(parts) > 1 and parts[0] not in ("oauth", "no")):
        return True
    return (
        bool(_ALWAYS & set(parts))
        or bool(_NOUNS & {parts[-1]})
        or "secret" in parts
        or "token" in parts
        or (len(parts) > 1 and parts[-1] in _PRECEDED and parts[0] not in ("old", "test", "tests", "second", "first"))
        or (len(parts) > 1 and parts[-1] == "key" and parts[-2] in _KEYS)
        or parts[-2:] == ["key", "data"]
        or parts[-3:-1] == ["wep", "key"]
    )


def is_key_file(name: str) -> bool:
    """Return whether a key is the name of a file with a private key, as those of a Secret are.

    Such as `tls.key` or `id_ecdsa`; a public key is not one.
    """
    return _FILES.search(name) is not None and not name.endswith((".pub", "public.key"))


def is_innocent(value: str, *, prose: bool = False) -> bool:
    """Return whether a value is not a secret: empty, a reference to a variable, a placeholder; with `prose` also how a sentence continues."""
    text = value.strip()
    lowered = text.lower() if len(text) < 64 else text
    if lowered in _INNOCENT or (len(text) < 256 and _REFERENCE.match(text) is not None):
        return True
    return prose and lowered.partition(" ")[0].rstrip(".,:;!?") in _PROSE
