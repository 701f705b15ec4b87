"""Rules for the fields of an install-config that concern the whole cluster."""

from __future__ import annotations

import base64
import re
from itertools import pairwise

from .. import check, pem
from ..errors import FieldErrors
from ..install_config import platform_name
from ..models import InstallConfig
from .pull_secret import check_pull_secret


def check_ssh_key(key: str, errors: FieldErrors) -> None:
    """Check each line of `sshKey`: a public key in the form of authorized_keys."""
    for line in filter(None, key.split("\n")):
        if not ssh_key_type(line):
            errors.invalid("sshKey", line, "ssh: no key found")


def check_general(config: InstallConfig, errors: FieldErrors) -> None:
    """Check SSH keys, the additional trust bundle and its policy.

    With `fips: true`, keys must be RSA or ECDSA, and the whole text is one key, as upstream reads it.
    """
    key = config.get("sshKey", "")
    if config.get("fips"):
        kind = ssh_key_type(key)
        if key and not kind:
            errors.invalid("sshKey", key, "Fatal error trying to parse configured public key: ssh: no key found")
        elif key and not re.fullmatch(r"ecdsa-sha2-nistp\d{3}|ssh-rsa", kind):
            errors.invalid(
                "sshKey", key, f"SSH key type {kind} unavailable when FIPS is enabled. Please use rsa or ecdsa."
            )
    else:
        check_ssh_key(key, errors)
    bundle = config.get("additionalTrustBundle", "")
    if bundle:
        why = pem.problem(bundle)
        if why:
            errors.invalid("additionalTrustBundle", bundle, why)
    policy = config.get("additionalTrustBundlePolicy", "")
    if policy and policy not in ("Proxyonly", "Always"):
        errors.invalid("additionalTrustBundlePolicy", policy, 'supported values "Proxyonly", "Always"')


def check_names(config: InstallConfig, errors: FieldErrors) -> None:
    """Check the name of the cluster, its base domain, and both together.

    A dot in the name is refused on platforms with virtual addresses; the limit of the name is 54 characters.
    """
    name, domain = config.get("metadata", {}).get("name", ""), config.get("baseDomain", "")
    if "." in name and platform_name(config) in ("baremetal", "vsphere", "nutanix"):
        why: str | None = "cluster name must not contain '.'"
    elif len(name) > 54:
        why = "must be no more than 54 characters"
    else:
        why = check.subdomain(name)
    if why:
        errors.invalid("metadata.name", name, why)
    bad_domain = check.domain_name(domain)
    if bad_domain:
        errors.invalid("baseDomain", domain, bad_domain)
    elif not why:
        why = check.domain_name(f"{name}.{domain}")
        if why:
            errors.invalid("baseDomain", f"{name}.{domain}", why)


def check_pull_secret_field(config: InstallConfig, errors: FieldErrors) -> None:
    """Check the pull secret; the error hides its value."""
    secret = config.get("pullSecret", "")
    why = check_pull_secret(secret)
    if why:
        errors.invalid("pullSecret", "<hidden>" if secret else "", why)


def check_publish(config: InstallConfig, errors: FieldErrors) -> None:
    """Check what a known strategy needs.

    `sources.check_image_sources` reports strategies that are not known.
    """
    publish, platform = config["publish"], platform_name(config)
    if publish == "Internal":
        errors.invalid("publish", publish, f'Internal publish strategy is not supported on "{platform}" platform')
    elif publish == "Mixed":
        errors.invalid("publish", publish, f'mixed publish strategy is not supported on "{platform}" platform')
    if publish != "Mixed" and config.get("operatorPublishingStrategy") is not None:
        errors.invalid(
            "operatorPublishingStrategy", publish,
            "operator publishing strategy is only allowed with mixed publishing strategy installs",
        )  # fmt: skip


def check_credentials_mode(config: InstallConfig, errors: FieldErrors) -> None:
    """Check the credentials mode, which only Nutanix has."""
    mode, platform = config.get("credentialsMode", ""), platform_name(config)
    if mode and platform == "nutanix" and mode != "Manual":
        errors.unsupported("credentialsMode", mode, ("Manual",))
    elif mode and platform != "nutanix":
        errors.invalid("credentialsMode", mode, f'cannot be set when using the "{platform}" platform')


def ssh_key_type(text: str) -> str:
    """The type of the first public key in authorized_keys text; "" when there is none.

    text: lines of options, type, base64 and comment. A type counts only when the key itself repeats it.
    """
    for line in text.splitlines():
        for kind, blob in pairwise(line.split()):
            if not re.fullmatch(r"(sk-)?(ssh|ecdsa)-[a-z0-9@.-]+", kind):
                continue
            try:
                raw = base64.b64decode(blob, validate=True)
            except ValueError:
                continue
            if raw[4 : 4 + int.from_bytes(raw[:4], "big")] == kind.encode():
                return kind
    return ""
