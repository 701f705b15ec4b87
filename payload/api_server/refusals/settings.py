"""Settings of clusters and infra-envs that the service refuses: pull secrets, keys, proxies, NTP, certificates, encryption."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from cryptography import x509

from .. import limits
from ..bodies import KernelArgument
from ..errors import ApiError
from ..models import Invalid, parse_json
from ..network import address, network
from ..objects import DiskEncryption, IgnitionEndpoint
from .names import _DNS_NAME

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")
_SSH_KEYS = {
    "ssh-rsa": "AAAAB3NzaC1yc2",
    "ecdsa-sha2-nistp256": "AAAAE2VjZHNhLXNoYTItbmlzdHAyNT",
    "ecdsa-sha2-nistp384": "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzOD",
    "ecdsa-sha2-nistp521": "AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1Mj",
    "ssh-ed25519": "AAAAC3NzaC1lZDI1NTE5",
    "ssh-dss": "AAAAB3NzaC1kc3",
}
_SSH_KEY = re.compile(
    "(" + "|".join(f"{kind} {start}" for kind, start in _SSH_KEYS.items()) + r")[0-9A-Za-z+/]+={0,3}( .*)?"
)
_NTP_NAME = re.compile(r"[a-z0-9][a-z0-9\-.]{0,61}[a-z0-9]")


def pull_secret(text: str, of: str = "") -> None:
    """Validate a pull secret. `of` precedes the reason: whose pull secret it is.

    It must be JSON with `auths`, whose entries have `auth`: base64 of `user:password`. ApiError 400 names the registry.
    The secret itself is never in the message.
    """

    def refuse(reason: str) -> ApiError:
        return ApiError(400, f"{of}: {reason}" if of else reason)

    if len(text) > limits.MAX_PULL_SECRET:
        raise refuse(f"pull secret is longer than {limits.MAX_PULL_SECRET} characters")
    try:
        found = parse_json(text.strip())
        auths = found.get("auths") if isinstance(found, dict) else None
        if (
            not isinstance(found, dict | None)
            or not isinstance(auths, dict | None)
            or not all(isinstance(e, dict) for e in (auths or {}).values())
        ):
            raise Invalid(text)
    except Invalid:
        raise refuse("pull secret must be a well-formed JSON") from None
    if not auths:
        raise refuse("pull secret must contain 'auths' JSON-object field")
    for registry, entry in auths.items():
        auth = entry.get("auth", "")
        shown = json.dumps(registry, ensure_ascii=False)
        if not isinstance(auth, str):
            raise refuse(f"invalid pull secret: 'auth' field of {shown} is {auth} but should be a string")
        try:
            decoded = base64.b64decode(auth, validate=True)
        except (binascii.Error, ValueError):
            raise refuse(f"invalid pull secret: 'auth' field of {shown} is not base64-encoded") from None
        if auth and b":" not in decoded:
            raise refuse(f"invalid pull secret: 'auth' for {registry} is not in 'user:password' format")


def ssh_keys(text: str) -> None:
    """Validate keys, one a line; ApiError 400 shows the first that is not one. Only an empty text has none."""
    for key in (line.strip() for line in text.strip().split("\n") if text):
        if not _SSH_KEY.fullmatch(key) or not key.replace("\t", " ").isprintable():
            raise ApiError(
                400, f"SSH key: {key} does not match any supported type: ssh-rsa, ssh-ed25519, ecdsa-[VARIANT]"
            )
        try:
            raw = base64.b64decode(key.split()[1], validate=True)
            kind = raw[4 : 4 + int.from_bytes(raw[:4], "big")].decode()
        except (binascii.Error, ValueError):
            kind = ""
        if kind != key.split()[0]:
            raise ApiError(400, f"Malformed SSH key: {key}: ssh: no key found")


def _proxy(url: str, *schemes: str) -> None:
    bare = "://" not in url
    try:
        parts = urlsplit(f"//{url}" if bare else url)
        good = bool(parts.hostname) and (parts.port or 1) > 0 and not re.search(r"[\s<>\"{}|\\^`\x00-\x1f]", url)
        good = good and (not bare or "." in str(parts.hostname) or ":" in url)
    except ValueError:
        good = False
    if not good:
        raise ApiError(400, f"Proxy URL format is not valid: '{url}'")
    if parts.scheme not in schemes:
        raise ApiError(400, f"The URL scheme must be {' or '.join(schemes)} and specified in the URL: '{url}'")


def proxies(http: str | None, https: str | None, none: str | None) -> None:
    for what, url, schemes in (("HTTP", http, ("http",)), ("HTTPS", https, ("http", "https"))):
        if url:
            try:
                _proxy(url, *schemes)
            except ApiError as err:
                raise ApiError(400, f"Failed to validate {what} Proxy: {err.reason}") from None
    if not none:
        return
    _bounded("no_proxy", none)
    seen: set[str] = set()
    for entry in none.split(","):
        if entry in seen:
            raise ApiError(400, f"duplicate no_proxy entry defined: {entry}")
        seen.add(entry)
        bare = entry.removeprefix(".")
        cidr = "/" in bare and network(bare) is not None
        if entry == "*":
            continue
        if not (cidr or ("/" not in bare and address(bare) is not None) or _DNS_NAME.fullmatch(bare)):
            raise ApiError(
                400,
                "NO Proxy is a comma-separated list of destination domain names, domains, IP addresses or other network CIDRs. A domain can be "
                "prefaced with '.' to include all subdomains of that domain. Use '*' to bypass proxy for all destinations with OpenShift 4.8 or "
                f"later.: {entry} is not a valid no_proxy entry",
            )


def _bounded(name: str, text: str) -> None:
    if len(text) > limits.MAX_NAMES:
        raise ApiError(400, f"{name} is longer than {limits.MAX_NAMES} characters")


def ntp_sources(additional: str | None, sources: str | None, name: str = "additional_ntp_source") -> None:
    """`name`: the field of the additional sources."""
    if additional and sources:
        raise ApiError(400, f"ntp_sources and {name} are mutually exclusive")
    for text in filter(None, (additional, sources)):
        _bounded("ntp_sources" if text is sources else name, text)
        for source in text.split(","):
            if not ("/" not in source and address(source)) and not _NTP_NAME.fullmatch(source):
                raise ApiError(400, f"Invalid NTP source: {text}")


def kernel_arguments(entries: Sequence[KernelArgument]) -> None:
    """Refuse control characters: the description's pattern allows quoted line breaks, which would start a command in an iPXE script."""
    for entry in entries:
        if not str(entry.get("value") or "").isprintable():
            raise ApiError(400, f"kernel argument {str(entry['value'])[:80]!r} has control characters")


def _uri(text: str) -> bool:
    """Return whether Go's `url.ParseRequestURI` accepts it: an absolute URI, or a path."""
    return bool(re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*:|/)", text)) and not re.search(r"[\s\x00-\x1f\x7f]", text)


def disk_encryption(wanted: DiskEncryption | None) -> None:
    if not wanted or wanted.get("mode") != "tang":
        return
    text = wanted.get("tang_servers")
    if not text:
        raise ApiError(400, "Setting Tang mode but tang_servers isn't set")
    if len(text) > limits.MAX_TANG:
        raise ApiError(400, f"tang_servers has more than {limits.MAX_TANG} characters")
    try:
        servers = parse_json(text)
    except Invalid as err:
        raise ApiError(400, str(err)) from None
    if not isinstance(servers, list) or not all(isinstance(server, dict) for server in servers):
        raise ApiError(400, "json: cannot unmarshal tang_servers into Go value of type []types.Tang")
    lowered = [{str(key).lower(): value for key, value in server.items()} for server in servers]
    for server in lowered:
        url = str(server.get("url") or "")
        if not _uri(url):
            why = "empty url" if not url else "invalid URI for request"
            raise ApiError(400, f"Tang URL isn't valid: parse {json.dumps(url)}: {why}")
        if not server.get("thumbprint"):
            raise ApiError(400, "Tang thumbprint isn't set")


def ignition_endpoint(wanted: IgnitionEndpoint | None) -> None:
    url = (wanted or {}).get("url")
    if wanted is None or url is None:
        return
    if not url.lower().startswith(("http:", "https:")):
        raise ApiError(400, f"The URL scheme must be http(s) and specified in the URL: '{url}'")
    certificate = wanted.get("ca_certificate")
    if certificate is None:
        return
    try:
        found = base64.b64decode(certificate, validate=True)
    except (binascii.Error, ValueError):
        raise ApiError(400, "failed to decode certificate: illegal base64 data") from None
    if not certificates(found):
        raise ApiError(400, "unable to parse certificate")


def certificates(data: bytes) -> bool:
    """Return whether a text has PEM certificates, all of them valid."""
    # One by one: the image's cryptography (38 in Debian 12) has no load_pem_x509_certificates.
    blocks = _CERTIFICATE.findall(data)
    try:
        for block in blocks:
            x509.load_pem_x509_certificate(block)
    except ValueError:
        return False
    return len(blocks) == data.count(b"-----BEGIN CERTIFICATE-----") > 0


def trust_bundle(text: str) -> None:
    if text and not certificates(text.encode()):
        raise ApiError(
            400,
            "invalid block"
            if "-----BEGIN CERTIFICATE-----" not in text
            else "parse failed: x509: malformed certificate",
        )
