"""Validation of requests beyond the API description, with upstream's messages.

Every function raises ApiError, 400 unless noted otherwise. Source: `internal/bminventory`, `internal/cluster/validations`,
`internal/network`, `internal/manifests` and `pkg/validations` of assisted-service.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from ...plugins.module_utils.addresses import version
from . import inventory as inv
from . import limits, versions
from .errors import ApiError
from .models import Invalid, parse_json
from .network import address, contains, network
from .tables import DOWNLOADABLE

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----")

_NAME = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?)?")
_NAME_NONE = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?")
_LABEL = re.compile(r"[a-z\d](-*[a-z\d])+")
_DOMAIN = re.compile(r"([a-z\d](-*[a-z\d])*\.)+[a-z\d](-*[a-z\d])+")
#: As in upstream's message.
_DOMAIN_SHOWN = r"^([a-z\d]([\-]*[a-z\d]+)*\.)+[a-z\d]+([\-]*[a-z\d]+)+$"
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
#: Minimum host part of an address, in bits, by kind of network.
_SERVICE_BITS, _MACHINE_BITS, _USERS_BALANCER_BITS, _SNO_BITS = 7, 4, 2, 1


def together(problems: Iterable[str]) -> None:
    """Raise ApiError with all problems, in the format of Go's multierror; do nothing without problems."""
    found = list(problems)
    if found:
        count = "1 error" if len(found) == 1 else f"{len(found)} errors"
        raise ApiError(400, f"{count} occurred:\n\t" + "\n\t".join(f"* {text}" for text in found) + "\n\n")


def go_list(values: Iterable[str]) -> str:
    return f"[{' '.join(values)}]"


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
        not _DOMAIN.fullmatch(domain) or re.search(r"(\d+\.){3}\d+", domain) or len(domain) > 255
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


def pull_secret(text: str, of: str = "") -> None:
    """Validate a pull secret. `of` precedes the reason: whose pull secret it is."""

    def refuse(reason: str) -> ApiError:
        return ApiError(400, f"{of}: {reason}" if of else reason)

    if len(text) > limits.MAX_PULL_SECRET:
        raise refuse(f"pull secret is longer than {limits.MAX_PULL_SECRET} characters")
    try:
        found = parse_json(text.strip())
        auths = found.get("auths") if isinstance(found, dict) else None
        if (
            not isinstance(found, dict)
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
    for key in (line.strip() for line in text.strip().split("\n") if text.strip()):
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


def kernel_arguments(entries: Sequence[Mapping[str, Any]]) -> None:
    """Refuse control characters: the description's pattern allows quoted line breaks, which would start a command in an iPXE script."""
    if len(entries) > limits.MAX_KERNEL_ARGUMENTS:
        raise ApiError(400, f"more than {limits.MAX_KERNEL_ARGUMENTS} kernel arguments")
    for entry in entries:
        if not str(entry.get("value") or "").isprintable():
            raise ApiError(400, f"kernel argument {str(entry['value'])[:80]!r} has control characters")


def tags(text: str | None) -> None:
    if text and not all(_TAG.fullmatch(tag) for tag in text.split(",")):
        raise ApiError(
            400,
            f"Invalid format for Tags: {text}. Tags should be a comma-separated list (e.g. tag1,tag2,tag3). Each tag can consist of the "
            "following characters: Alphanumeric (aA-zZ, 0-9), underscore (_) and white-spaces.",
        )


def control_plane(mode: str, count: int, version: str) -> None:
    """The number of control-plane nodes of a mode and a release."""
    if mode == "None" and count != 1:
        raise ApiError(400, "single-node clusters must have a single control plane node")
    if versions.numbers(version) is None:
        raise ApiError(400, f"Malformed version: {version}")
    if mode != "Full":
        return
    if count != 3 and not versions.at_least(version, "4.18"):
        raise ApiError(
            400,
            "there should be exactly 3 dedicated control plane nodes for high availability mode Full in openshift version older than 4.18",
        )
    low, since = (2, "4.19") if versions.at_least(version, "4.19") else (3, "4.18")
    if not low <= count <= 5:
        raise ApiError(
            400,
            f"there should be {low}-5 dedicated control plane nodes for high availability mode Full in openshift version {since} or newer",
        )


def single_node(dhcp: bool, network_type: str | None, platform: str) -> None:
    if dhcp:
        raise ApiError(400, "VIP DHCP Allocation cannot be enabled on single node OpenShift")
    if network_type == "OpenShiftSDN":
        raise ApiError(400, "OpenShiftSDN network type is not allowed in single node mode")
    if platform not in ("none", "external"):
        raise ApiError(400, f"Single node cluster is not supported alongside {platform} platform")


def release_version(version: str, sno: bool, platform: str) -> None:
    """Refuse versions that do not support the request, regardless of the available releases."""
    if sno and not versions.at_least(version, "4.8"):
        reason = "Single node OpenShift is supported for version 4.8 and above"
        raise ApiError(400, f"Invalid OCP version ({version}) for Single node, {reason}")
    if platform == "nutanix" and not versions.at_least(version, "4.11"):
        raise ApiError(
            400,
            f"Invalid OCP version ({version}) for Nutanix, Nutanix integration is supported for version 4.11 and above",
        )


def _uri(text: str) -> bool:
    """Return whether Go's `url.ParseRequestURI` accepts it: an absolute URI, or a path."""
    return bool(re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*:|/)", text)) and not re.search(r"[\s\x00-\x1f\x7f]", text)


def disk_encryption(wanted: Mapping[str, Any] | None) -> None:
    if not wanted or wanted.get("mode") != "tang":
        return
    text = wanted.get("tang_servers")
    if not text:
        raise ApiError(400, "Setting Tang mode but tang_servers isn't set")
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


def ignition_endpoint(wanted: Mapping[str, Any] | None) -> None:
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
    from cryptography import x509

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


def labels(found: Mapping[str, str]) -> None:
    """Validate node labels, by the rules of Kubernetes."""
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


_KINDS = {"machine_networks": "Machine", "service_networks": "Service", "cluster_networks": "Cluster"}


def networks(body: Mapping[str, Any]) -> None:
    """Validate the CIDRs of a request, and that dual-stack ones have both families."""
    problems = []
    for key, kind in _KINDS.items():
        for index, entry in enumerate(body.get(key) or ()):
            cidr = entry.get("cidr") or ""
            if not cidr:
                problems.append(f"{kind} Network CIDR cannot be empty (index {index})")
            elif network(cidr) is None:
                problems.append(
                    f"Could not parse {kind} Network CIDR {cidr} (index {index}): invalid CIDR address: {cidr}"
                )
    together(problems)
    lists = {key: [str(entry["cidr"]) for entry in body.get(key) or ()] for key in _KINDS}
    if any(len({*map(version, cidrs)}) == 2 for cidrs in lists.values()):
        for key, cidrs in lists.items():
            if cidrs:
                _dual(cidrs, key.replace("_", " "), "subnet")
    elif len(lists["machine_networks"]) > 1 and (body.get("load_balancer") or {}).get("type") != "user-managed":
        raise ApiError(400, "Single-stack cluster cannot contain multiple Machine Networks")


def networks_strict(cluster: Mapping[str, Any]) -> None:
    """Refuse CIDRs with host bits, which upstream accepts and the OpenShift installer refuses later."""
    for key, kind in _KINDS.items():
        for entry in cluster.get(key) or ():
            net = network(entry["cidr"])
            if net is not None and address(entry["cidr"]) != net.network_address:
                raise ApiError(400, f"{kind} network CIDR {entry['cidr']}: {entry['cidr']} is not a valid network CIDR")


def vips_in_use(api: list[str], ingress: list[str], cidrs: list[str], taken: Mapping[str, frozenset[str]]) -> None:
    """Refuse VIPs that hosts reported as not free; `taken` has the free addresses of each network that all hosts scanned."""
    for first, second, cidr in zip(api, ingress, cidrs, strict=False):
        for ip, name in ((first, "api-vip"), (second, "ingress-vip")):
            if cidr in taken and ip not in taken[cidr]:
                raise ApiError(400, f"{name} <{ip}> is already in use in cidr {cidr}")


def _dual(items: list[str], what: str, unit: str) -> None:
    if len(items) != 2:
        raise ApiError(400, f"Expected 2 {what}, found {len(items)}")
    for name, six in (("IPv4", False), ("IPv6", True)):
        if not any((version(item) == 6) == six for item in items):
            raise ApiError(400, f"dual-stack {what} must include exactly one {name} {unit}")


def vips(api: list[str], ingress: list[str], cluster: Mapping[str, Any]) -> None:
    """Validate the VIPs of a cluster with these fields; `user_managed_networking` counts if the request sets it."""
    users = (cluster.get("load_balancer") or {}).get("type") == "user-managed"
    problems = []
    for listed, plural, name in ((api, "apiVIPs", "API"), (ingress, "ingressVips", "Ingress")):
        if len(listed) > 2:
            problems.append(f"{plural} supports 2 vips. got: {len(listed)}")
        else:
            problems += [f"{name} VIP IP at index {index} cannot be empty" for index, ip in enumerate(listed) if not ip]
            problems += [f"Could not parse VIP ip {ip}" for ip in listed if ip and address(ip) is None]
    if len(api) != len(ingress):
        problems.append(
            f"configuration must include the same number of apiVIPs (got {len(api)}) and ingressVIPs (got {len(ingress)})"
        )
    together(problems)
    problems = [
        f'The IP address "{ip}" appears multiple times in apiVIPs' for index, ip in enumerate(api) if ip in api[:index]
    ]
    for index, ip in enumerate(ingress):
        if ip in ingress[:index]:
            problems.append(f'The IP address "{ip}" appears multiple times in ingressVIPs')
        if ip in api and not users:
            problems.append(f'The IP address "{ip}" appears both in apiVIPs and ingressVIPs')
    together(problems)
    for listed, plural in ((api, "apiVIPs"), (ingress, "ingressVips")):
        if len(listed) == 2:
            _dual(listed, plural, "address")
    machine = [str(entry["cidr"]) for entry in cluster.get("machine_networks") or ()]
    if cluster.get("vip_dhcp_allocation"):
        for listed, name in ((api, "API"), (ingress, "Ingress")):
            if listed:
                raise ApiError(400, f"Setting {name} VIPs is forbidden when cluster is in vip-dhcp-allocation mode")
    elif not machine or not api:
        if len(api) == 2 and not machine:
            raise ApiError(400, "Dual-stack cluster cannot be created with empty Machine Networks")
    elif users:
        _vip_of_any(api[0], ingress[0], machine)
    else:
        pairs = zip(api, ingress, machine, strict=False)
        found = (
            _vip_outside(one, "api-vip", cidr) or _vip_outside(two, "ingress-vip", cidr) for one, two, cidr in pairs
        )
        together(filter(None, found))


def _vip_outside(ip: str, name: str, cidr: str) -> str:
    if not contains(cidr, ip):
        return f"{name} <{ip}> does not belong to machine-network-cidr <{cidr}>"
    net = network(cidr)
    if net is not None and net.version == 4 and ip == str(net.broadcast_address):
        return f"{name} <{ip}> is the broadcast address of machine-network-cidr <{cidr}>"
    return ""


def _vip_of_any(api: str, ingress: str, machine: list[str]) -> None:
    for ip, name in ((api, "api-vip"), (ingress, "ingress-vip")):
        problems = [_vip_outside(ip, name, cidr) for cidr in machine]
        if all(problems):
            together(problems)


def subnets(cluster: Mapping[str, Any], changed: Iterable[str], hosts: int, sno: bool) -> None:
    """Validate the sizes of the networks in an update, and that none of the cluster's networks overlap."""
    names = set(changed)
    users = (cluster.get("load_balancer") or {}).get("type") == "user-managed"
    machine_bits = _SNO_BITS if sno else _USERS_BALANCER_BITS if users else _MACHINE_BITS
    texts = {
        "cluster_networks": "Cluster network CIDR {}",
        "service_networks": "Service network CIDR {}",
        "machine_networks": "Machine network CIDR '{}'",
    }
    for key, text in texts.items():
        if key not in names:
            continue
        for entry in cluster.get(key) or ():
            cidr = str(entry["cidr"])
            net = network(cidr)
            bits = machine_bits if key == "machine_networks" else _SERVICE_BITS
            if net is None:
                continue
            most = net.max_prefixlen - bits
            if not 1 <= net.prefixlen <= most:
                reason = (
                    f"Address mask size must be between 1 to {most} and must include at least {1 << bits} addresses"
                )
                raise ApiError(400, f"{text.format(cidr)}: {reason}")
            if int(net.network_address) == 0:
                reason = f"The specified CIDR {cidr} is invalid because its resulting routing prefix matches the unspecified address"
                raise ApiError(400, f"{text.format(cidr)}: {reason}")
            if "/" in cidr and address(cidr) != net.network_address:
                raise ApiError(400, f"{text.format(cidr)}: {cidr} is not a valid network CIDR")
            if key == "cluster_networks":
                if int(entry.get("host_prefix") or 0) < 1:
                    prefix = entry.get("host_prefix") or 0
                    raise ApiError(
                        400,
                        f"Cluster network host prefix {prefix}: Host prefix, now {prefix}, must be a positive integer",
                    )
                _cluster_size(net.prefixlen, net.max_prefixlen, int(entry.get("host_prefix") or 0), hosts)
    if not names:
        return
    lists = [
        [str(entry["cidr"]) for entry in cluster.get(key) or ()]
        for key in ("machine_networks", "cluster_networks", "service_networks")
    ]
    for index, pods in enumerate(lists[1]):
        machine = lists[0][index] if index < len(lists[0]) else ""
        service = lists[2][index] if index < len(lists[2]) else ""
        pairs = [(service, pods, "ServiceNetworkCidr and ClusterNetworkCidr")]
        if cluster.get("user_managed_networking"):
            pairs = [
                (machine, service, "MachineNetworkCIDR and ServiceNetworkCIDR"),
                (machine, pods, "MachineNetworkCIDR and ClusterNetworkCidr"),
                *pairs,
            ]
        for one, two, what in pairs:
            a, b = network(one), network(two)
            if a is not None and b is not None and a.version == b.version and a.overlaps(b):
                raise ApiError(400, f"{what}: CIDRS {one} and {two} overlap")


def _cluster_size(prefix: int, bits: int, host_prefix: int, hosts: int) -> None:
    if host_prefix > bits - _SERVICE_BITS:
        reason = f"Host prefix, now {host_prefix}, must be less than or equal to {bits - _SERVICE_BITS} to allow at least 128 addresses"
        raise ApiError(400, f"Cluster CIDR size: {reason}")
    if (1 if hosts == 1 else max(4, hosts)) > 1 << min(63, max(host_prefix - prefix, 0)):
        raise ApiError(
            400,
            f"Cluster CIDR size: Cluster network CIDR prefix {prefix} does not contain enough addresses for {hosts} hosts each one with "
            f"{host_prefix} prefix ({1 << min(63, bits - host_prefix)} addresses)",
        )


def downloadable(ident: str, status: str, file: str = "files", more: tuple[str, ...] = ()) -> None:
    """Refuse with 409 files of an installation that has not started; `more`: additional statuses that allow this file."""
    allowed = (*DOWNLOADABLE, *more)
    if status not in allowed:
        raise ApiError(
            409,
            f"cluster {ident} is in {status} state, {file} can be downloaded only when status is one of: {go_list(allowed)}",
        )


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
    """Refuse with 422, as upstream does."""
    stem = name.rpartition(".")[0] if "." in name else name
    if name[:1] in ("", ".") or not stem.strip() or re.search(r"[\x00-\x1f\x7f]", name) or len(name.encode()) > 255:
        raise ApiError(422, f"Cluster manifest {name} for cluster {cluster_id} has an invalid filename.")
    if " " in name:
        raise ApiError(422, f"Cluster manifest {name} for cluster {cluster_id} should not include a space in its name.")
    if "/" in name:
        raise ApiError(
            422, f"Cluster manifest {name} for cluster {cluster_id} should not include a directory in it's name."
        )
