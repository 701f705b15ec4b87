"""Secrets that are known by their own shape: tokens, hashes, URLs, command lines; and what a line needs to be searched."""

from __future__ import annotations

import base64
import binascii
import re

HIDDEN = "REDACTED"

# Most lines of a console have none of these, and are passed on as they are.
_TRIGGERS = (
    "pass", "token", "secret", "auth", "key", "cred", "cookie", "psk", "bearer", "basic", "begin ", "data", "eyj", "$", "://", "-u", "user", "ls0t",
    "dockerc", "id_", "login", "ya29", "age-s", "sha256~", "pat_", "gh", "akia", "asia", "aiza", "xox", "glpat", "{s", "npm_", "wep", "pw",
)  # fmt: skip

_BASE64 = re.compile(r"(?:[A-Za-z0-9+/_-]{4})+(?:[A-Za-z0-9+/_-]{2}==|[A-Za-z0-9+/_-]{3}=)?\Z")

# Each consumes what it matches, or fails within a bounded number of characters.
_SHAPES = tuple((re.compile(pattern), replacement, trigger) for trigger, pattern, replacement in (
    # A data URL of Ignition: it holds a whole file.
    ("data:", r"(?<![A-Za-z])(data:(?:[\w.+-]{1,64}/[\w.+-]{1,64})?(?:;[\w=.+-]{1,64}){0,4},)[^\s\"'\\]+", rf"\g<1>{HIDDEN}"),
    # JWT, and base64 of a JSON object ({" is eyJ).
    ("eyj", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9+/_-]{13}[A-Za-z0-9+/_=.-]*", HIDDEN),
    # base64 of a PEM file which is neither a certificate nor a public key.
    ("ls0tls1crud", r"(?<![A-Za-z0-9+/])LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM|BUUlVTVEVE)[A-Za-z0-9+/]*={0,2}", HIDDEN),
    # crypt(5), bcrypt, argon2, htpasswd(1), LDAP.
    ("$", r"\$(?:1|2[abxy]?|5|6|7|y|gy|sha1|md5|apr1|argon2(?:id|i|d)|scrypt|pbkdf2[\w-]{0,12})\$[\w./=,$+-]{12,}", HIDDEN),
    ("{s", r"\{S?SHA(?:256|512)?\}[A-Za-z0-9+/]{16,}={0,2}", HIDDEN),
    # user:password in a URL; a user alone stays, but for one that is a token.
    ("://", r"(://[^\s/:@\"'<>?#]{0,256}:)[^\s/@\"'<>]{1,1024}(?=@)", rf"\g<1>{HIDDEN}"),
    ("://", r"(://)[A-Za-z0-9_-]{20,256}(?=@)", rf"\g<1>{HIDDEN}"),
    # HTTP's schemes.
    ("bearer", r"\b((?i:bearer)[ \t]{1,4})(?=[A-Za-z._~-]{0,80}\d|[\w.~+/-]{20})[\w.~+/-]{8,}={0,2}", rf"\g<1>{HIDDEN}"),
    ("basic", r"\b((?i:basic)[ \t]{1,4})(?=[A-Za-z]{0,200}[0-9+/=]|[A-Za-z][a-z]{0,40}[A-Z])[A-Za-z0-9+/]{8,}={0,2}",
     rf"\g<1>{HIDDEN}"),
    # curl -u user:password; 1000:1000 is a user and a group.
    (":", r"(?<![\w-])((?:-u|--user|--proxy-user|-U)[\"',= \t]{0,5})(?!\d{1,10}:\d{1,10}\b)[^\s:\"'=/-][^\s:\"'=/]{0,255}:[^\s\"']+", rf"\g<1>{HIDDEN}"),
    ("sshpass", r"\b(sshpass[ \t]{1,4}-p[ \t]{0,4})(?:'[^']*'|\"[^\"]*\"|\S+)", rf"\g<1>{HIDDEN}"),
    ("login", r"\b(login\b[^|;&\n]{0,200}[ \t]-p[ \t]{1,4})(?:'[^']*'|\"[^\"]*\"|\S+)", rf"\g<1>{HIDDEN}"),
    ("-pass", r"(-pass(?:in|out)?[ \t]{1,4}pass:)\S+", rf"\g<1>{HIDDEN}"),
    ("echo", r"\b(echo[ \t]{1,4}(?:-n[ \t]{1,4})?)[^|\n]{1,256}(?=\|[^|\n]{0,200}(?:chpasswd|password-stdin|passwd --stdin))", rf"\g<1>{HIDDEN} "),
    # Tokens that carry their maker's mark.
    ("sha256~", r"\bsha256~[\w-]{20,}", HIDDEN),
    ("", r"\b(?:gh[opsur]_|github_pat_|glpat-|dckr_pat_|npm_|xox[abeoprs]-|ya29\.|AIza|AGE-SECRET-KEY-1)[\w.-]{16,}", HIDDEN),
    ("ia", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", HIDDEN),
    # A bootstrap token of Kubernetes, and a kubeadmin password.
    (".", r"(?<![\w.-])(?=[a-z.]{0,22}\d)[a-z0-9]{6}\.[a-z0-9]{16}(?![\w.-])", HIDDEN),
    ("-", r"(?<![\w-])(?=[a-z-]{0,22}[A-Z0-9])[A-Za-z0-9]{5}(?:-[A-Za-z0-9]{5}){3}(?![\w-])", HIDDEN),
))  # fmt: skip


def has_trigger(text: str) -> bool:
    lowered = text.lower()
    return (
        any(trigger in lowered for trigger in _TRIGGERS)
        or _FIVES.search(text) is not None
        or _BOOTSTRAP.search(text) is not None
    )


_FIVES = re.compile(r"-[A-Za-z0-9]{5}-[A-Za-z0-9]{5}-")
_BOOTSTRAP = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")


def hide_shapes(text: str) -> str:
    lowered = text.lower()
    for pattern, replacement, trigger in _SHAPES:
        if trigger in lowered:
            text = pattern.sub(replacement, text)
    return text


def is_encoded(value: str) -> bool:
    """Return whether a value is base64 of a text, or of so much that it is not a word.

    Text means printable UTF-8; from 40 characters on any base64 counts. Used for values below `data:` of a Secret.
    """
    if len(value) < 4 or not _BASE64.match(value):
        return False
    try:
        decoded = base64.b64decode(value, altchars=b"-_" if "-" in value or "_" in value else None)
        return len(value) >= 40 or decoded.decode().isprintable()
    except (binascii.Error, UnicodeDecodeError):
        return False
