"""Names that the service refuses: of clusters, hosts, manifests, labels and tags."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from .. import inventory as inv
from ..errors import ApiError

_NAME = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?)?")
_NAME_NONE = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?")
_LABEL = re.compile(r"[a-z\d](-*[a-z\d])+")
_DOMAIN = re.compile(r"([a-z\d](-*[a-z\d])*\.)+[a-z\d](-*[a-z\d])+")
#: As in upstream's message.
_DOMAIN_SHOWN = r"^([a-z\d]([\-]*[a-z\d]+)*\.)+[a-z\d]+([\-]*[a-z\d]+)+$"
_LABEL_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_NAME_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
    "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_TAG = re.compile(r"\w+( \w+)*", re.ASCII)
_DNS_NAME = re.compile(r"([a-zA-Z0-9_][a-zA-Z0-9_-]{0,62})(\.[a-zA-Z0-9_][a-zA-Z0-9_-]{0,62})*[._]?")


def cluster_name(name: str, platform: str | None) -> None:
    if not (_NAME_NONE if platform == "none" else _NAME).fullmatch(name):
        raise ApiError(
            400,
            f"Cluster name format is not valid: '{name}'. Name must start and end with either a letter or number and consist of lower-case "
            "letters, numbers, and hyphens. Subdomains in cluster names are only valid with none platform.",
        )


def dns_name(cluster: str, domain: str) -> None:
    """Validate the base domain, alone and with the cluster's name."""
    if not domain:
        return
    if not (_LABEL.fullmatch(domain) and len(domain) < 63) and (
        len(domain) > 255 or not _DOMAIN.fullmatch(domain) or re.search(r"(\d+\.){3}\d+", domain)
    ):
        raise ApiError(
            400,
            f"DNS format mismatch: {domain} domain name is not valid. Must match regex [{_DOMAIN_SHOWN}], be no more than 255 characters, "
            "and not be in dotted decimal format (##.##.##.##)",
        )
    apps = f"apps.{cluster}.{domain}"
    if len(apps) > 255 - 63 - 1:
        raise ApiError(400, "Combination of cluster name and base DNS domain too long")
    for label in apps.split("."):
        if len(label) > 63:
            raise ApiError(400, f"DNS label '{label}' is longer than 63 bytes")


def tags(text: str | None) -> None:
    if text and not all(_TAG.fullmatch(tag) for tag in text.split(",")):
        raise ApiError(
            400,
            f"Invalid format for Tags: {text}. Tags should be a comma-separated list (e.g. tag1,tag2,tag3). Each tag can consist of the "
            "following characters: Alphanumeric (aA-zZ, 0-9), underscore (_) and white-spaces.",
        )


def labels(found: Mapping[str, str]) -> None:
    """Validate node labels, by the rules of Kubernetes.

    Keys have an optional prefix that is a DNS subdomain (RFC 1123) and a name of 63 characters at most; values may be
    empty. All problems are in one ApiError 400, in the words of Kubernetes.
    """
    problems = []
    for key, value in found.items():
        prefix, slash, name = key.rpartition("/")
        if slash and not _DNS_SUBDOMAIN.fullmatch(prefix):
            problems.append(f"node_labels: Invalid value: {json.dumps(key)}: prefix part {_SUBDOMAIN_RULE}")
        if not _LABEL_NAME.fullmatch(name) or len(name) > 63:
            problems.append(f"node_labels: Invalid value: {json.dumps(key)}: name part {_LABEL_NAME_RULE}")
        if value and (not _LABEL_NAME.fullmatch(value) or len(value) > 63):
            problems.append(f"node_labels: Invalid value: {json.dumps(value)}: {_LABEL_VALUE_RULE}")
    if problems:
        raise ApiError(400, f"[{', '.join(problems)}]" if len(problems) > 1 else problems[0])


def hostname(name: str) -> None:
    if len(name.encode()) > inv.HOSTNAME_LENGTH:
        raise ApiError(
            400,
            f"hostname is too long, must be 63 characters or less. Hostname: {name} has {len(name.encode())} characters",
        )
    if name in inv.FORBIDDEN_HOSTNAMES:
        raise ApiError(400, f"The host name {name} is forbidden")
    if not inv.hostname_allowed(name):
        raise ApiError(400, f"Hostname does not pass required regex validation: {inv.HOSTNAME}. Hostname: {name}")


def manifest_name(name: str, cluster_id: str) -> None:
    """Refuse file names of manifests that are empty, hidden, too long, or have spaces, slashes or control characters.

    ApiError 422, as upstream. The folder is a separate field of the request; the extension is validated elsewhere.
    """
    stem = name.rpartition(".")[0] if "." in name else name
    if name[:1] in ("", ".") or not stem.strip() or re.search(r"[\x00-\x1f\x7f]", name) or len(name.encode()) > 255:
        raise ApiError(422, f"Cluster manifest {name} for cluster {cluster_id} has an invalid filename.")
    if " " in name:
        raise ApiError(422, f"Cluster manifest {name} for cluster {cluster_id} should not include a space in its name.")
    if "/" in name:
        raise ApiError(
            422, f"Cluster manifest {name} for cluster {cluster_id} should not include a directory in it's name."
        )
