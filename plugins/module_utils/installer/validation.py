"""The rules that an install-config for the agent-based installer must keep."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from .._deps import optional
from . import check, features, platforms
from .errors import FieldErrors
from .install_config import ON_PREM, platform_name, replicas
from .manifests import check_pull_secret

if TYPE_CHECKING:
    from cryptography import x509

    from .build import Build
else:
    x509 = optional("cryptography.x509", "cryptography")

_ARCHITECTURES = ("amd64", "arm64", "ppc64le", "s390x")
_OVN_SUBNETS = {
    4: (("internal subnet", "100.64.0.0/16"), ("transit subnet", "100.88.0.0/16"), ("masquerade subnet", "169.254.0.0/17")),
    6: (("internal subnet", "fd98::/64"), ("transit subnet", "fd97::/64"), ("masquerade subnet", "fd69::/112")),
}  # fmt: skip


def validate(config: dict[str, Any], build: Build) -> None:
    """Raise `InstallerError` with everything that is wrong in an install-config with defaults; warn of what is ignored."""
    errors = FieldErrors()
    profile = build.profile
    _general(config, errors)
    _networking(config, errors)
    _pools(config, profile, errors)
    platforms.validate(config, errors)
    _proxy(config, errors)
    _image_sources(config, errors)
    features.validate(config, profile, errors)
    _agent_platform(config, profile, errors)
    _release_architecture(config, build, errors)
    for level, text in platforms.ignored(config):
        getattr(build.log, level)(text)
    counts = replicas(config)
    build.log.info(
        f"Configuration has {counts['master']} master replicas, {counts['arbiter']} arbiter replicas, and "
        f"{counts['worker']} worker replicas"
    )
    _topology(config, profile, counts, errors)
    errors.check("invalid install-config configuration")


# --- general --------------------------------------------------------------------------


def _general(config: dict[str, Any], errors: FieldErrors) -> None:
    key = config.get("sshKey", "")
    if key:
        kind = ssh_key_type(key)
        if not kind:
            errors.invalid("sshKey", key, "ssh: no key found")
        elif config.get("fips") and kind == "ssh-ed25519":
            errors.invalid(
                "sshKey", key, f"SSH key type {kind} unavailable when FIPS is enabled. Please use rsa or ecdsa."
            )
    bundle = config.get("additionalTrustBundle", "")
    if bundle:
        why = bad_certificates(bundle)
        if why:
            errors.invalid("additionalTrustBundle", bundle, why)
    policy = config.get("additionalTrustBundlePolicy", "")
    if policy and policy not in ("Proxyonly", "Always"):
        errors.unsupported("additionalTrustBundlePolicy", policy, ("Always", "Proxyonly"))
    _names(config, errors)
    secret = config.get("pullSecret", "")
    why = check_pull_secret(secret) if secret else "auths required"
    if why:
        errors.invalid("pullSecret", "<hidden>" if secret else "", why)
    publish = config.get("publish", "External")
    if publish not in ("External", "Internal", "Mixed"):
        errors.unsupported("publish", publish, ("External", "Internal", "Mixed"))
    elif publish == "Internal" and platform_name(config) in ON_PREM:
        errors.invalid(
            "publish", publish, f'Internal publish strategy is not supported on "{platform_name(config)}" platform'
        )


def _names(config: dict[str, Any], errors: FieldErrors) -> None:
    name = config.get("metadata", {}).get("name", "")
    domain = config.get("baseDomain", "")
    if not name:
        errors.required("metadata.name", "cluster name required")
    elif "." in name:
        errors.invalid("metadata.name", name, "cluster name must not contain '.'")
    elif len(name) > 54:
        errors.invalid("metadata.name", name, "must be no more than 54 characters")
    else:
        why = check.subdomain(name)
        if why:
            errors.invalid("metadata.name", name, why)
    why = check.domain_name(domain)
    if why:
        errors.invalid("baseDomain", domain, why)
    elif name and not check.subdomain(name):
        why = check.domain_name(f"{name}.{domain}")
        if why:
            errors.invalid("baseDomain", f"{name}.{domain}", why)


def ssh_key_type(text: str) -> str:
    """The type of the first public key in authorized_keys text; "" when there is none."""
    for line in text.splitlines():
        for kind, blob in pairwise(line.split()):
            if not re.fullmatch(r"(sk-)?(ssh|ecdsa)-[a-z0-9@.-]+", kind):
                continue
            try:
                raw = base64.b64decode(blob, validate=True)
            except binascii.Error:
                continue
            if raw[4 : 4 + int.from_bytes(raw[:4], "big")] == kind.encode():
                return kind
    return ""


_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.S)


def certificates(text: str) -> str:
    """The certificates of a PEM bundle, one after the other, without what stands between."""
    return "".join(f"{block}\n" for block in _PEM.findall(text))


def bad_certificates(text: str) -> str | None:
    """Why `text` is no bundle of certificates, or None."""
    blocks = _PEM.findall(text)
    if not blocks:
        return "invalid block"
    for block in blocks:
        try:
            x509.load_pem_x509_certificate(block.encode())
        except ValueError as error:
            return f"x509: {error}"
    return None


# --- networking -----------------------------------------------------------------------


def _networking(config: dict[str, Any], errors: FieldErrors) -> None:
    networking = config["networking"]
    kind = networking["networkType"]
    if not kind:
        errors.required("networking.networkType", "network provider type required")
    elif kind == "Kuryr":
        errors.invalid("networking.networkType", kind, "networkType Kuryr is not supported on OpenShift later than 4.14")
    elif kind == "OpenShiftSDN":
        errors.invalid(
            "networking.networkType", kind,
            "networkType OpenShiftSDN is not supported, please use OVNKubernetes",
        )  # fmt: skip
    machine = [
        (f"networking.machineNetwork[{index}].cidr", entry.get("cidr", ""))
        for index, entry in enumerate(networking["machineNetwork"])
    ]
    service = [(f"networking.serviceNetwork[{index}]", text) for index, text in enumerate(networking["serviceNetwork"])]
    cluster = [
        (f"networking.clusterNetwork[{index}].cidr", entry.get("cidr", ""))
        for index, entry in enumerate(networking["clusterNetwork"])
    ]
    machine_nets, service_nets, cluster_nets = (_cidrs(entries, errors) for entries in (machine, service, cluster))
    _overlaps(machine, machine_nets, service, service_nets, cluster, cluster_nets, errors)
    for (path, text), net in zip(service, service_nets, strict=True):
        if net is not None and net.version == 4 and net.prefixlen < 12:
            errors.invalid(path, text, "subnet size for IPv4 service network must be /12 or greater (/16 is recommended)")
        # Kubernetes takes anything from /108 on; nothing but /112 makes sense.
        if net is not None and net.version == 6 and net.prefixlen < 108:
            errors.invalid(path, text, "subnet size for IPv6 service network should be /112")
    if len(service) > 2 or (len(service) == 2 and len({net.version for net in service_nets if net}) == 1):
        errors.invalid(
            "networking.serviceNetwork", ", ".join(text for __, text in service), "only one service network can be specified"
        )
    _host_prefixes(networking, cluster_nets, errors)
    if kind == "OVNKubernetes":
        for entries, nets in ((machine, machine_nets), (service, service_nets), (cluster, cluster_nets)):
            _ovn_overlaps(entries, nets, networking, errors)
    elif networking.get("ovnKubernetesConfig"):
        errors.invalid(
            "networking.ovnKubernetesConfig", networking["ovnKubernetesConfig"],
            "ovnKubernetesConfig may only be specified with the OVNKubernetes networkType",
        )  # fmt: skip
    _join_subnet(networking, [*machine_nets, *service_nets, *cluster_nets], errors)
    if networking.get("clusterNetworkMTU"):
        errors.invalid(
            "networking.clusterNetworkMTU", networking["clusterNetworkMTU"],
            "cluster network MTU is allowed only in AWS deployments",
        )  # fmt: skip
    _families(config, machine_nets, service_nets, cluster_nets, errors)


Entries = list[tuple[str, str]]
Nets = list["check.Network | None"]


def _cidrs(entries: Entries, errors: FieldErrors) -> Nets:
    found: Nets = []
    for path, text in entries:
        net = check.network(text)
        if net is None:
            errors.invalid(path, text, f"invalid CIDR address: {text}" if text else "address must be specified")
        elif check.address(text.partition("/")[0]) != net.network_address:
            errors.invalid(path, text, f"invalid network address. got {text}, expecting {net}")
        found.append(net)
    return found


def _touch(one: check.Network | None, other: check.Network | None) -> bool:
    return one is not None and other is not None and one.version == other.version and one.overlaps(other)  # type: ignore[arg-type]


def _overlaps(
    machine: Entries, machine_nets: Nets, service: Entries, service_nets: Nets, cluster: Entries, cluster_nets: Nets,
    errors: FieldErrors,
) -> None:
    kinds = (
        ("machine", machine, machine_nets, ()),
        ("service", service, service_nets, ()),
        ("cluster", cluster, cluster_nets, (("service", service_nets),)),
    )
    for name, entries, nets, others in kinds:
        for index, ((path, text), net) in enumerate(zip(entries, nets, strict=True)):
            if name != "machine" and any(_touch(net, other) for other in machine_nets):
                errors.invalid(path, text, f"{name} network must not overlap with any of the machine networks")
            for other_name, other_nets in others:
                for number, other in enumerate(other_nets):
                    if _touch(net, other):
                        errors.invalid(path, text, f"{name} network must not overlap with {other_name} network {number}")
            for number, other in enumerate(nets[:index]):
                if _touch(net, other):
                    errors.invalid(path, text, f"{name} network must not overlap with {name} network {number}")


def _ovn_overlaps(entries: Entries, nets: Nets, networking: dict[str, Any], errors: FieldErrors) -> None:
    join = ((networking.get("ovnKubernetesConfig") or {}).get("ipv4") or {}).get("internalJoinSubnet")
    for (path, text), net in zip(entries, nets, strict=True):
        for name, reserved in _OVN_SUBNETS.get(net.version, ()) if net is not None else ():
            if join and name == "internal subnet" and net is not None and net.version == 4:
                continue
            if _touch(net, check.network(reserved)):
                errors.invalid(
                    path,
                    text,
                    f"must not overlap with OVNKubernetes default {name} {reserved}: please run 'openshift-install "
                    "explain installconfig.networking.ovnKubernetesConfig.ipv4' for further documentation",
                )


def _join_subnet(networking: dict[str, Any], others: Nets, errors: FieldErrors) -> None:
    text = ((networking.get("ovnKubernetesConfig") or {}).get("ipv4") or {}).get("internalJoinSubnet")
    if not text:
        return
    path = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet"
    net = check.network(text)
    if net is None:
        errors.invalid(path, text, f"invalid CIDR address: {text}")
        return
    if any(_touch(net, other) for other in others):
        errors.invalid(path, text, "must not overlap with any of the machine, service and cluster networks")
    hosts = 0
    for entry in networking["clusterNetwork"]:
        cluster = check.network(entry.get("cidr"))
        if cluster is not None and cluster.version == 4 and entry["hostPrefix"] >= cluster.prefixlen:
            hosts += 2 ** (entry["hostPrefix"] - cluster.prefixlen)
    if net.num_addresses < hosts:
        errors.invalid(path, text, "ipv4InternalJoinSubnet is not large enough for the maximum number of nodes")


def _host_prefixes(networking: dict[str, Any], nets: Nets, errors: FieldErrors) -> None:
    first: dict[int, int] = {}
    for index, (entry, net) in enumerate(zip(networking["clusterNetwork"], nets, strict=True)):
        if net is None:
            continue
        path, prefix = f"networking.clusterNetwork[{index}].hostPrefix", entry.get("hostPrefix", 0)
        if prefix < 0:
            errors.invalid(path, prefix, "hostPrefix must be positive")
        elif prefix < net.prefixlen:
            errors.invalid(
                path, prefix, f"cluster network host subnetwork prefix must not be larger size than CIDR {net}"
            )
        elif net.version == 6 and prefix != 64:
            errors.invalid(path, prefix, "cluster network host subnetwork prefix must be 64 for IPv6 networks")
        elif net.version == 4 and first.setdefault(4, prefix) != prefix:
            errors.invalid(
                path, prefix, "cluster network host subnetwork prefix must be the same value for IPv4 networks"
            )


def _families(
    config: dict[str, Any], machine: Nets, service: Nets, cluster: Nets, errors: FieldErrors
) -> None:
    families = {
        name: list(dict.fromkeys(net.version for net in nets if net is not None))
        for name, nets in (("machineNetwork", machine), ("serviceNetwork", service), ("clusterNetwork", cluster))
    }
    dual = any(len(found) > 1 for found in families.values())
    if not dual:
        return
    if len(families["serviceNetwork"]) == 1:
        errors.invalid(
            "networking.serviceNetwork",
            ", ".join(str(net) for net in service),
            "when installing dual-stack IPv4/IPv6 you must provide two service networks, one for each IP address type",
        )
    for name, nets in (("machineNetwork", machine), ("clusterNetwork", cluster)):
        if len(families[name]) == 1:
            lacks = "IPv6" if families[name] == [4] else "IPv4"
            errors.invalid(
                f"networking.{name}",
                ", ".join(str(net) for net in nets),
                f"dual-stack IPv4/IPv6 requires an {lacks} network in this list",
            )
    if platform_name(config) == "nutanix":
        for name, found in families.items():
            if found[:1] == [6]:
                errors.invalid(f"networking.{name}", found, "IPv4 addresses must be listed before IPv6 addresses")


# --- pools ----------------------------------------------------------------------------


def _pools(config: dict[str, Any], profile: dict[str, Any], errors: FieldErrors) -> None:
    control = config["controlPlane"]
    platform = platform_name(config)
    counts = replicas(config)
    if control.get("name") != "master":
        errors.unsupported("controlPlane.name", control.get("name", ""), ("master",))
    if counts["master"] <= 0:
        errors.invalid("controlPlane.replicas", counts["master"], "number of control plane replicas must be positive")
    _pool("controlPlane", control, errors)
    arbiter = config.get("arbiter")
    if arbiter is not None:
        if not profile["arbiter"]:
            errors.forbidden("arbiter", f"arbiter nodes are not known to release {profile['name']}")
        if not features.enabled(config, profile, "HighlyAvailableArbiter"):
            errors.forbidden("arbiter", features.protected("HighlyAvailableArbiter"))
        if arbiter.get("name") != "arbiter":
            errors.unsupported("arbiter.name", arbiter.get("name", ""), ("arbiter",))
        if counts["arbiter"] <= 0:
            errors.invalid("arbiter.replicas", counts["arbiter"], "number of arbiter replicas must be positive")
        if counts["master"] < 2:
            errors.invalid(
                "controlPlane.replicas", counts["master"],
                "number of controlPlane replicas must be at least 2 for arbiter deployments",
            )  # fmt: skip
        if platform not in ("baremetal", "external", "none"):
            errors.unsupported("platform", platform, ("baremetal", "external", "none"))
        _pool("arbiter", arbiter, errors)
    seen = set()
    for index, pool in enumerate(config.get("compute", [])):
        path, name = f"compute[{index}]", pool.get("name", "")
        if name not in ("worker", "edge"):
            errors.unsupported(f"{path}.name", name, ("worker", "edge"))
        elif name in seen:
            errors.duplicate(f"{path}.name", name)
        seen.add(name)
        _pool(path, pool, errors)
        if pool.get("fencing"):
            errors.invalid(f"{path}.fencing", "configured", "fencing is only valid for control plane")
        _mixed_architecture(path, platform, control["architecture"], pool["architecture"], errors)
    if control.get("fencing") is not None or counts["master"] == 2:
        _fencing(config, profile, counts, platform, errors)


def _pool(path: str, pool: dict[str, Any], errors: FieldErrors) -> None:
    if pool.get("replicas", 0) < 0:
        errors.invalid(f"{path}.replicas", pool["replicas"], "number of replicas must not be negative")
    if pool.get("hyperthreading") not in ("Enabled", "Disabled"):
        errors.unsupported(f"{path}.hyperthreading", pool.get("hyperthreading", ""), ("Disabled", "Enabled"))
    if pool.get("architecture") not in _ARCHITECTURES:
        errors.unsupported(f"{path}.architecture", pool.get("architecture", ""), _ARCHITECTURES)


def _mixed_architecture(path: str, platform: str, control: str, compute: str, errors: FieldErrors) -> None:
    if control == compute or compute not in _ARCHITECTURES:
        return
    at = f"{path}.architecture"
    if platform != "baremetal":
        errors.invalid(
            at, compute, "heteregeneous multi-arch is not supported; compute pool architecture must match control plane"
        )
    elif control != "amd64":
        errors.invalid(at, compute, "on multi-arch baremetal, the control plane must be amd64")
    elif compute not in ("amd64", "arm64"):
        errors.invalid(at, compute, "on baremetal with amd64 control plane, compute must be amd64 or arm64")


def _fencing(
    config: dict[str, Any], profile: dict[str, Any], counts: dict[str, int], platform: str, errors: FieldErrors
) -> None:
    path = "controlPlane.fencing"
    fencing = config["controlPlane"].get("fencing")
    credentials = (fencing or {}).get("credentials") or []
    two_nodes = counts["master"] == 2 and counts["arbiter"] == 0
    if fencing is not None and platform not in ("baremetal", "external", "none"):
        errors.forbidden(
            path,
            f"fencing is only supported on baremetal, external or none platforms, instead {platform} platform was found",
        )
    if two_nodes and len(credentials) != 2 and features.enabled(config, profile, "DualReplica"):
        errors.forbidden(
            f"{path}.credentials",
            "there should be exactly two fencing credentials to support the two node cluster, instead "
            f"{len(credentials)} credentials were found",
        )
    if not two_nodes and credentials:
        errors.forbidden(
            f"{path}.credentials",
            "there should not be any fencing credentials configured for a non dual replica control plane (Two Nodes "
            f"Fencing) cluster, instead {len(credentials)} credentials were found",
        )
    seen: dict[str, set[str]] = {"hostName": set(), "macAddress": set(), "address": set()}
    for index, entry in enumerate(credentials):
        _credential(f"{path}.credentials[{index}]", entry, seen, errors)


def _credential(at: str, entry: dict[str, Any], seen: dict[str, set[str]], errors: FieldErrors) -> None:
    if not entry.get("hostName") and not entry.get("macAddress"):
        errors.required(at, "at least one of hostname or macaddress must be provided")
    mac = entry.get("macAddress", "")
    why = check.mac(mac) if mac else None
    if why:
        errors.invalid(f"{at}.macAddress", mac, why)
    for field in ("username", "password", "address"):
        if not entry.get(field):
            errors.required(f"{at}.{field}", f"missing {field.capitalize()}")
    for field, values in seen.items():
        value = entry.get(field, "")
        if value and value.lower() in values:
            errors.duplicate(f"{at}.{field}", value)
        values.add(value.lower())
    verification = entry.get("certificateVerification", "")
    if verification not in ("", "Enabled", "Disabled"):
        errors.invalid(
            f"{at}.certificateVerification", verification,
            f"invalid certificate verification; \"{verification}\" should set to one of the following: ['Enabled' "
            "(default), 'Disabled']",
        )  # fmt: skip
    address = entry.get("address", "")
    if address:
        why = _redfish(address)
        if why:
            errors.invalid(f"{at}.address", address, why)


def _redfish(address: str) -> str | None:
    match = re.fullmatch(r"([a-z+-]+)://(\[[^\]]+\]|[^/:]*)(:\d+)?(/.*)?", address)
    if not match:
        return f"invalid URL format: {address}"
    scheme, __, port, __ = match.groups()
    if "redfish" not in scheme and "redfish" not in address:
        return "fencing only supports redfish-compatible BMC addresses, IPMI is not supported"
    return None if port else "failed to parse redfish address, no port number found"


# --- proxy and mirrors ------------------------------------------------------------------


def _proxy(config: dict[str, Any], errors: FieldErrors) -> None:
    proxy = config.get("proxy")
    if proxy is None:
        return
    if not proxy.get("httpProxy") and not proxy.get("httpsProxy"):
        errors.required("proxy", "must include httpProxy or httpsProxy")
    for field, schemes in (("httpProxy", ("http",)), ("httpsProxy", ("http", "https"))):
        text = proxy.get(field, "")
        if not text:
            continue
        path = f"proxy.{field}"
        why = check.request_uri(text)
        if why:
            errors.invalid(path, text, why)
            continue
        scheme = text.partition(":")[0].lower()
        if scheme not in schemes:
            errors.unsupported(path, scheme, schemes)
        host = re.sub(r".*@", "", text.partition("://")[2]).partition("/")[0]
        ip = check.address(host.strip("[]") if host.startswith("[") else host.partition(":")[0])
        if ip is not None:
            _proxy_address(config, path, text, ip, errors)
    text = proxy.get("noProxy", "")
    if " " in text:
        errors.invalid("proxy.noProxy", text, "noProxy must not have spaces")
    elif text and text != "*":
        for index, item in enumerate(text.split(",")):
            if not item:
                continue
            if check.address(item) is None and check.network(item) is None and check.domain_name(item.lstrip(".")):
                errors.invalid(
                    "proxy.noProxy", text,
                    "each element of noProxy must be a IP, CIDR or domain without wildcard characters, which is "
                    f'violated by element {index} "{item}"',
                )  # fmt: skip


def _proxy_address(config: dict[str, Any], path: str, text: str, ip: check.Address, errors: FieldErrors) -> None:
    networking = config["networking"]

    def within(nets: Iterable[str]) -> bool:
        return any(net is not None and net.version == ip.version and ip in net for net in map(check.network, nets))

    if within(entry.get("cidr", "") for entry in networking["clusterNetwork"]):
        errors.invalid(path, text, "proxy value is part of the cluster networks")
    if within(networking["serviceNetwork"]):
        errors.invalid(path, text, "proxy value is part of the service networks")
    join = ((networking.get("ovnKubernetesConfig") or {}).get("ipv4") or {}).get("internalJoinSubnet", "100.64.0.0/16")
    if networking["networkType"] == "OVNKubernetes" and within([join]):
        errors.invalid(path, text, "proxy value is part of the ovn-kubernetes IPv4 InternalJoinSubnet")


_REPOSITORY = re.compile(
    r"(?P<domain>[A-Za-z0-9.-]+(:\d+)?|\[[0-9A-Fa-f:]+\](:\d+)?)(?P<path>(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*)"
)


def _repository(text: str) -> str | None:
    match = _REPOSITORY.fullmatch(text)
    if not text or not match:
        return "failed to parse: invalid reference format"
    domain = match["domain"]
    if "." not in domain and ":" not in domain and domain != "localhost":
        return f"the repository provided is invalid: {text} must have a registry's host name"
    return None


def _image_sources(config: dict[str, Any], errors: FieldErrors) -> None:
    contents, digests = config.get("imageContentSources"), config.get("imageDigestSources")
    if contents and digests:
        errors.invalid(
            "imageContentSources", contents,
            "cannot set imageContentSources and imageDigestSources at the same time",
        )  # fmt: skip
    for kind, sources in (("imageContentSources", contents), ("imageDigestSources", digests)):
        for index, entry in enumerate(sources or []):
            path = f"{kind}[{index}]"
            why = _repository(entry.get("source", ""))
            if why:
                errors.invalid(f"{path}.source", entry.get("source", ""), why)
            for number, mirror in enumerate(entry.get("mirrors") or []):
                why = _repository(mirror)
                if why:
                    errors.invalid(f"{path}.mirrors[{number}]", mirror, why)
            policy = entry.get("sourcePolicy", "")
            if policy and policy not in ("AllowContactingSource", "NeverContactSource"):
                errors.invalid(
                    f"{path}.sourcePolicy", policy,
                    "supported values are AllowContactingSource and NeverContactSource",
                )  # fmt: skip
            elif policy and not entry.get("mirrors"):
                errors.invalid(f"{path}.sourcePolicy", policy, "sourcePolicy cannot be configured without a mirror")


# --- what the agent-based installer adds --------------------------------------------------


def _agent_platform(config: dict[str, Any], profile: dict[str, Any], errors: FieldErrors) -> None:
    platform = platform_name(config)
    allowed = ("baremetal", "vsphere", *(("nutanix",) if profile["nutanix"] else ()), "none", "external")
    if platform and platform not in allowed:
        errors.unsupported("platform", platform, allowed)
    arch = config["controlPlane"]["architecture"]
    if platform and platform != "none" and arch in ("ppc64le", "s390x"):
        errors.invalid("platform", platform, f'CPU architecture "{arch}" only supports platform "none".')
    external = config["platform"].get("external") or {}
    manager = external.get("cloudControllerManager", "")
    if external.get("platformName") == "oci" and manager != "External":
        errors.invalid(
            "platform.external.cloudControllerManager", manager,
            "When using external oci platform, platform.external.cloudControllerManager must be set to External",
        )  # fmt: skip


def _release_architecture(config: dict[str, Any], build: Build, errors: FieldErrors) -> None:
    facts = build.release_facts
    if "error" in facts:
        build.log.warning("Unable to validate the release image architecture, skipping validation")
        return
    release, control = facts["architecture"], config["controlPlane"]["architecture"]
    if release not in ("multi", control):
        errors.forbidden(
            "controlPlane.architecture",
            f"unsupported release image architecture. ControlPlane Arch: {control} doesn't match Release Image Arch: "
            f"{release}",
        )


def _topology(
    config: dict[str, Any], profile: dict[str, Any], counts: dict[str, int], errors: FieldErrors
) -> None:
    masters, arbiters, workers = counts["master"], counts["arbiter"], counts["worker"]
    platform = platform_name(config)
    dual = profile["two_node_fencing"] and features.enabled(config, profile, "DualReplica")
    supported = [text for text in profile["replicas"] if text != "2 (with fencing)" or dual]
    two_allowed = arbiters > 0 or "2 (with arbiter)" in profile["replicas"]
    if not 1 <= masters <= 5 or (masters == 2 and not two_allowed and not dual):
        errors.unsupported("controlPlane.replicas", masters, supported)
    if masters == 1:
        _single_node(config, platform, arbiters, workers, errors)
    if masters == 2:
        credentials = (config["controlPlane"].get("fencing") or {}).get("credentials") or []
        if credentials and not arbiters:
            if not dual:
                errors.invalid(
                    "controlPlane.fencing", "configured",
                    "fencing configuration requires FeatureGateDualReplica to be enabled",
                )  # fmt: skip
            if len(credentials) != 2:
                errors.invalid(
                    "controlPlane.fencing.credentials", len(credentials),
                    "must provide exactly 2 fencing credentials for 2 control plane replicas",
                )  # fmt: skip
        elif arbiters > 1 or (arbiters == 0 and two_allowed and not dual):
            errors.invalid(
                "arbiter.replicas", arbiters,
                "TNA (Two Node with Arbiter) configuration requires exactly 1 arbiter replica",
            )  # fmt: skip


def _single_node(config: dict[str, Any], platform: str, arbiters: int, workers: int, errors: FieldErrors) -> None:
    kind = config["networking"]["networkType"]
    if platform in ("none", "external"):
        if kind != "OVNKubernetes":
            errors.invalid(
                "networking.networkType", kind,
                "Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster",
            )  # fmt: skip
        if workers:
            errors.forbidden(
                "compute.replicas",
                "Total number of compute replicas must be 0 when controlPlane.replicas is 1 for platform none or "
                f"external. Found {workers}",
            )
        if arbiters:
            errors.forbidden(
                "arbiter.replicas",
                "Total number of arbiter replicas must be 0 when controlPlane.replicas is 1 for Single Node Openshift "
                f"(SNO) cluster. Found {arbiters}",
            )
    elif platform and not workers:
        errors.invalid(
            "platform", platform, "Only platform none and external supports 1 ControlPlane and 0 Compute nodes"
        )
