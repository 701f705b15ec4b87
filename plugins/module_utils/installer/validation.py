"""The rules that an install-config for the agent-based installer must keep."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..releases import ReleaseProfile
from . import check, features, gojson, pem, platforms
from .errors import FieldErrors, quote
from .install_config import platform_name, replicas
from .manifests import check_pull_secret

if TYPE_CHECKING:
    from ..log import Log
    from .build import Build

_JOIN = "internal subnet"
_OVN_SUBNETS = {
    4: ((_JOIN, "100.64.0.0/16"), ("transit subnet", "100.88.0.0/16")),
    6: ((_JOIN, "fd98::/64"), ("transit subnet", "fd97::/64")),
}  # fmt: skip
_DOCKER_BRIDGE = check.network("172.17.0.0/16")
_PUBLISH = ("External", "Internal", "Mixed")


def validate(config: dict[str, Any], build: Build) -> None:
    """Raise `InstallerError` with everything that is wrong in an install-config with defaults; warn of what is ignored."""
    errors = FieldErrors()
    profile = build.profile
    _general(config, errors)
    _names(config, errors)
    _networking(config, profile, build.log, errors)
    platforms.vips(config, errors)
    _ovn_config(config["networking"], errors)
    platforms.validate(config, errors)
    _pools(config, profile, errors)
    _payload_architecture(config, build, errors)
    _pull_secret(config, errors)
    _proxy(config, errors)
    _image_sources(config, build.log, errors)
    _credentials_mode(config, errors)
    features.capability_names(config, errors)
    _publish(config, errors)
    features.validate(config, profile, errors)
    agent = FieldErrors() if profile.lower_config_paths else FieldErrors(path=go_path)
    _agent_platform(config, profile, agent)
    platforms.validate_agent(config, agent)
    _release_architecture(config, build, agent)
    for level, text in platforms.ignored(config):
        getattr(build.log, level)(text if profile.lower_config_paths else _go_notice(text))
    counts = replicas(config)
    arbiters = f", {counts['arbiter']} arbiter replicas," if profile.arbiter else ""
    build.log.info(
        f"Configuration has {counts['master']} master replicas{arbiters} and {counts['worker']} worker replicas"
    )
    _topology(config, profile, counts, agent)
    errors += agent
    errors.check("invalid install-config configuration")


def go_path(path: str) -> str:
    """A field as releases up to 4.18 name it when the agent-based installer finds it wrong: `ControlPlane.Replicas`."""
    if path.startswith("platform.vsphere."):
        rest = re.sub(r"vcenters\[\d+\]\.", "", path.removeprefix("platform.vsphere."))
        return "Platform.VSphere." + ("vcenter" if rest == "server" else re.sub(r"\[\d+\]", "", rest))
    if path.startswith("platform.baremetal."):
        return "Platform.BareMetal." + path.removeprefix("platform.baremetal.")
    return ".".join(part[:1].upper() + part[1:] for part in path.split("."))


def _go_notice(text: str) -> str:
    """The notice of an ignored field, `path: value is ignored` or `path is ignored`, with the path as those releases have it."""
    path = re.split(r":? ", text, maxsplit=1)[0]
    shown = ".".join(part[:1].upper() + part[1:] for part in path.split("."))
    return shown.replace("Platform.Vsphere.", "Platform.VSphere.") + text.removeprefix(path)


# --- general --------------------------------------------------------------------------


def _general(config: dict[str, Any], errors: FieldErrors) -> None:
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
        for line in filter(None, key.split("\n")):
            if not ssh_key_type(line):
                errors.invalid("sshKey", line, "ssh: no key found")
    bundle = config.get("additionalTrustBundle", "")
    if bundle:
        why = pem.problem(bundle)
        if why:
            errors.invalid("additionalTrustBundle", bundle, why)
    policy = config.get("additionalTrustBundlePolicy", "")
    if policy and policy not in ("Proxyonly", "Always"):
        errors.invalid("additionalTrustBundlePolicy", policy, 'supported values "Proxyonly", "Always"')


def _names(config: dict[str, Any], errors: FieldErrors) -> None:
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


def _pull_secret(config: dict[str, Any], errors: FieldErrors) -> None:
    secret = config.get("pullSecret", "")
    why = check_pull_secret(secret)
    if why:
        errors.invalid("pullSecret", "<hidden>" if secret else "", why)


def _publish(config: dict[str, Any], errors: FieldErrors) -> None:
    """What a known strategy needs."""
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


def _credentials_mode(config: dict[str, Any], errors: FieldErrors) -> None:
    mode, platform = config.get("credentialsMode", ""), platform_name(config)
    if mode and platform == "nutanix" and mode != "Manual":
        errors.unsupported("credentialsMode", mode, ("Manual",))
    elif mode and platform != "nutanix":
        errors.invalid("credentialsMode", mode, f'cannot be set when using the "{platform}" platform')


def ssh_key_type(text: str) -> str:
    """The type of the first public key in authorized_keys text; "" when there is none."""
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


# --- networking -----------------------------------------------------------------------


def _networking(config: dict[str, Any], profile: ReleaseProfile, log: Log, errors: FieldErrors) -> None:
    networking = config["networking"]
    kind = networking["networkType"]
    path = "networking.networkType"
    if not kind:
        errors.required(path, "network provider type required")
    elif kind.lower() == "kuryr":
        errors.invalid(path, kind, "networkType Kuryr is not supported on OpenShift later than 4.14")
    elif kind.lower() == "openshiftsdn" and not profile.openshift_sdn:
        errors.invalid(path, kind, "networkType OpenShiftSDN is not supported, please use OVNKubernetes")
    machine = _entries("machine", [entry.get("cidr", "") for entry in networking["machineNetwork"]], "")
    service = _entries("service", networking["serviceNetwork"], "")
    cluster = _entries("cluster", [entry.get("cidr", "") for entry in networking["clusterNetwork"]], ".cidr")
    for index, entry in enumerate(machine):
        if entry.usable(log, networking, profile, errors):
            entry.overlaps(errors, "machine network {}", machine[:index])
    for index, entry in enumerate(service):
        if entry.usable(log, networking, profile, errors):
            entry.overlaps(errors, "any of the machine networks", machine)
            entry.overlaps(errors, "service network {}", service[:index])
    for index, entry in enumerate(cluster):
        if entry.usable(log, networking, profile, errors):
            entry.overlaps(errors, "any of the machine networks", machine)
            entry.overlaps(errors, "service network {}", service)
            entry.overlaps(errors, "cluster network {}", cluster[:index])
            _host_prefix(networking, index, cluster, errors)
    _families(config, {"clusterNetwork": cluster, "machineNetwork": machine, "serviceNetwork": service}, errors)
    if networking.get("clusterNetworkMTU"):
        errors.invalid(
            "networking.clusterNetworkMTU", networking["clusterNetworkMTU"],
            "cluster network MTU is allowed only in AWS deployments",
        )  # fmt: skip


@dataclass(frozen=True)
class _Entry:
    """One network of install-config: `kind` is machine, service or cluster; `net` is None when `text` is not a CIDR."""

    kind: str
    path: str
    text: str
    net: check.Network | None

    def usable(self, log: Log, networking: dict[str, Any], profile: ReleaseProfile, errors: FieldErrors) -> bool:
        """Return whether the network is one, so that more checks apply to it."""
        net = self.net
        if net is None:
            errors.invalid(self.path, self.text, f"invalid CIDR address: {self.text}")
            return False
        address = check.address(self.text.partition("/")[0])
        if address is not None and address.is_unspecified:
            errors.invalid(self.path, self.text, "address must be specified")
            return False
        if address != net.network_address:
            errors.invalid(self.path, self.text, f"invalid network address. got {self.text}, expecting {net}")
            return False
        if self.kind == "service" and net.version == 4 and net.prefixlen < 12:
            errors.invalid(
                self.path, self.text, "subnet size for IPv4 service network must be /12 or greater (/16 is recommended)"
            )
            return False
        # Kubernetes takes anything from /108 on; nothing but /112 makes sense.
        if self.kind == "service" and net.version == 6 and net.prefixlen < 108:
            errors.invalid(self.path, self.text, "subnet size for IPv6 service network should be /112")
            return False
        if _touch(net, _DOCKER_BRIDGE):
            log.warning(f"{self.path.removesuffix('.cidr')}: {self.text} overlaps with default Docker Bridge subnet")
        if networking["networkType"].lower() == "ovnkubernetes":
            self._reserved(networking, net, profile, errors)
        return True

    def _reserved(
        self, networking: dict[str, Any], net: check.Network, profile: ReleaseProfile, errors: FieldErrors
    ) -> None:
        masquerade = profile.masquerade[net.version == 6]
        for name, reserved in (*_OVN_SUBNETS[net.version], ("masquerade subnet", masquerade)):
            if (name == _JOIN and net.version == 4 and join_subnet(networking)) or not _touch(
                net, check.network(reserved)
            ):
                continue
            text = f"must not overlap with OVNKubernetes default {name} {reserved}"
            if name == _JOIN:
                text += (
                    ": please run 'openshift-install explain installconfig.networking.ovnKubernetesConfig."
                    f"ipv{net.version}' for further documentation"
                )
            errors.invalid(self.path, self.text, text)

    def overlaps(self, errors: FieldErrors, what: str, others: list[_Entry]) -> None:
        """Report each of `others` that this network overlaps with; {} in `what` is replaced by its number."""
        for number, other in enumerate(others):
            if _touch(self.net, other.net):
                errors.invalid(self.path, self.text, f"{self.kind} network must not overlap with {what.format(number)}")


def _entries(kind: str, texts: list[str], field: str) -> list[_Entry]:
    return [
        _Entry(kind, f"networking.{kind}Network[{index}]{field}", text, check.network(text))
        for index, text in enumerate(texts)
    ]


def _touch(one: check.Network | None, other: check.Network | None) -> bool:
    return one is not None and other is not None and one.version == other.version and one.overlaps(other)


def join_subnet(networking: dict[str, Any]) -> str:
    """OVN-Kubernetes' internal join subnet for IPv4, if it is given."""
    found: str = ((networking.get("ovnKubernetesConfig") or {}).get("ipv4") or {}).get("internalJoinSubnet") or ""
    return found


def _ovn_config(networking: dict[str, Any], errors: FieldErrors) -> None:
    if networking.get("ovnKubernetesConfig") is None:
        return
    kind = networking["networkType"]
    if kind.lower() != "ovnkubernetes":
        errors.invalid(
            "networking.networkType",
            kind,
            "ovnKubernetesConfig may only be specified with the OVNKubernetes networkType",
        )
    text = join_subnet(networking)
    if not text:
        return
    path = "networking.ovnKubernetesConfig.ipv4.internalJoinSubnet"
    net = check.network(text)
    if net is None:
        errors.invalid(path, text, f"invalid CIDR address: {text}")
        return
    if check.address(text.partition("/")[0]) != net.network_address:
        errors.invalid(path, text, f"invalid network address. got {text}, expecting {net}")
        return
    nets = {
        "clusterNetwork": [entry.get("cidr", "") for entry in networking["clusterNetwork"]],
        "machineNetwork": [entry.get("cidr", "") for entry in networking["machineNetwork"]],
        "serviceNetwork": networking["serviceNetwork"],
    }
    for name, texts in nets.items():
        for other in texts:
            if _touch(net, check.network(other)):
                errors.invalid(path, text, f"must not overlap with {name} {other}")
    hosts = 0
    for entry in networking["clusterNetwork"]:
        cluster = check.network(entry.get("cidr"))
        if cluster is not None and cluster.version == 4 and entry.get("hostPrefix", 0) >= cluster.prefixlen:
            # No prefix is longer than an address; its own rule reports other problems.
            hosts += 2 ** (min(entry["hostPrefix"], cluster.max_prefixlen) - cluster.prefixlen)
    # One address is the gateway's, and two are the network's own.
    if hosts >= net.num_addresses - 3:
        errors.invalid(
            path, text,
            "ipv4InternalJoinSubnet is not large enough for the maximum number of nodes which can be supported by "
            "ClusterNetwork",
        )  # fmt: skip


def _host_prefix(networking: dict[str, Any], index: int, cluster: list[_Entry], errors: FieldErrors) -> None:
    entries, net = networking["clusterNetwork"], cluster[index].net
    path, prefix = f"networking.clusterNetwork[{index}].hostPrefix", entries[index].get("hostPrefix", 0)
    if net is None or (networking["networkType"] != "OVNKubernetes" and prefix == 0):
        return
    if prefix < 0:
        errors.invalid(path, prefix, "hostPrefix must be positive")
    elif prefix < net.prefixlen:
        errors.invalid(path, prefix, f"cluster network host subnetwork prefix must not be larger size than CIDR {net}")
    elif net.version == 6 and prefix != 64:
        errors.invalid(path, prefix, "cluster network host subnetwork prefix must be 64 for IPv6 networks")
    elif net.version == 4:
        before = [
            entries[number].get("hostPrefix", 0)
            for number, other in enumerate(cluster[:index])
            if other.net is not None and other.net.version == 4
        ]
        if any(other != prefix for other in before):
            errors.invalid(
                path, prefix, "cluster network host subnetwork prefix must be the same value for IPv4 networks"
            )


def families_of(texts: Iterable[str]) -> list[int]:
    """The IP versions of networks, each once, the first one's first."""
    return list(dict.fromkeys(net.version for net in map(check.network, texts) if net is not None))


def _families(config: dict[str, Any], lists: dict[str, list[_Entry]], errors: FieldErrors) -> None:
    """What the service networks say, one family or two, all lists must keep to."""
    texts = {name: [entry.text for entry in entries] for name, entries in lists.items()}
    families = {name: families_of(found) for name, found in texts.items()}
    service = "serviceNetwork"
    if len(families[service]) < 2:
        if families[service] == [4] and len(texts[service]) > 1:
            errors.invalid(
                f"networking.{service}", ", ".join(texts[service]), "only one service network can be specified"
            )
        return
    if len(texts[service]) != 2:
        errors.invalid(
            f"networking.{service}", ", ".join(texts[service]),
            "when installing dual-stack IPv4/IPv6 you must provide two service networks, one for each IP address type",
        )  # fmt: skip
    for name, found in families.items():
        path, shown = f"networking.{name}", ", ".join(texts[name])
        if len(found) == 1:
            lacks = "IPv6" if found == [4] else "IPv4"
            errors.invalid(path, shown, f"dual-stack IPv4/IPv6 requires an {lacks} network in this list")
        elif found[:1] == [6] and platform_name(config) == "nutanix":
            errors.invalid(path, shown, "IPv4 addresses must be listed before IPv6 addresses")


# --- pools ----------------------------------------------------------------------------


def _pools(config: dict[str, Any], profile: ReleaseProfile, errors: FieldErrors) -> None:
    control = config["controlPlane"]
    platform = platform_name(config)
    counts = replicas(config)
    if counts["master"] == 0:
        errors.invalid("controlPlane.replicas", 0, "number of control plane replicas must be positive")
    _pool("controlPlane", control, profile, platform, errors)
    _fencing(config, profile, counts, platform, errors)
    if config.get("arbiter") is not None:
        _arbiter(config, profile, counts, platform, errors)
    seen = set()
    for index, pool in enumerate(config["compute"]):
        path, name = f"compute[{index}]", pool.get("name", "")
        if name == "edge":
            errors.unsupported(f"{path}.name", name, ("worker",))
        elif name != "worker":
            errors.unsupported(f"{path}.name", name, ("worker", "edge"))
        if name in seen:
            errors.duplicate(f"{path}.name", name)
        seen.add(name)
        _mixed_architecture(path, platform, control["architecture"], pool["architecture"], errors)
        _pool(path, pool, profile, platform, errors)
        if pool.get("fencing") is not None:
            errors.invalid(f"{path}.fencing", "configured", "fencing is only valid for control plane")


def _arbiter(
    config: dict[str, Any], profile: ReleaseProfile, counts: dict[str, int], platform: str, errors: FieldErrors
) -> None:
    arbiter = config["arbiter"]
    if not profile.arbiter:
        errors.forbidden("arbiter", f"arbiter nodes are not known to release {profile.name}")
    if not features.enabled(config, profile, "HighlyAvailableArbiter"):
        errors.forbidden("arbiter", features.protected("HighlyAvailableArbiter"))
    if platform not in ("baremetal", "external", "none"):
        errors.unsupported("arbiter.platform", platform, ("baremetal", "external", "none"))
    if arbiter.get("name") != "arbiter":
        errors.unsupported("arbiter.name", arbiter.get("name", ""), ("arbiter",))
    if counts["arbiter"] == 0:
        errors.invalid("arbiter.replicas", 0, "number of arbiter replicas must be positive")
    if counts["master"] < 2:
        errors.invalid(
            "arbiter.replicas", counts["master"],
            "number of controlPlane replicas must be at least 2 for arbiter deployments",
        )  # fmt: skip
    _pool("arbiter", arbiter, profile, platform, errors)


def _pool(path: str, pool: dict[str, Any], profile: ReleaseProfile, platform: str, errors: FieldErrors) -> None:
    if pool["replicas"] < 0:
        errors.invalid(f"{path}.replicas", pool["replicas"], "number of replicas must not be negative")
    if pool["hyperthreading"] not in ("Enabled", "Disabled"):
        errors.unsupported(f"{path}.hyperthreading", pool["hyperthreading"], ("Disabled", "Enabled"))
    if pool["architecture"] not in profile.architectures:
        at = f"{path}.architecture"
        errors.unsupported(
            at if profile.lower_config_paths else go_path(at), pool["architecture"], profile.architectures
        )
    own = pool.get("platform")
    for name, value in own.items() if isinstance(own, dict) else ():
        if value is not None and name != platform:
            errors.invalid(
                f"{path}.platform.{name}", value,
                f'cannot specify "{name}" for machine pool when cluster is using "{platform}"',
            )  # fmt: skip


def _mixed_architecture(path: str, platform: str, control: str, compute: str, errors: FieldErrors) -> None:
    if control == compute:
        return
    at = f"{path}.architecture"
    if platform != "baremetal":
        errors.invalid(
            at, compute, "heteregeneous multi-arch is not supported; compute pool architecture must match control plane"
        )
        return
    if control != "amd64":
        errors.invalid(at, control, "on multi-arch baremetal, the control plane must be amd64")
    if compute != "arm64":
        errors.invalid(at, compute, "on baremetal with amd64 control plane, compute must be amd64 or arm64")


def _fencing(
    config: dict[str, Any], profile: ReleaseProfile, counts: dict[str, int], platform: str, errors: FieldErrors
) -> None:
    path = "controlPlane.fencing"
    fencing = config["controlPlane"].get("fencing")
    credentials = (fencing or {}).get("credentials") or []
    if fencing is not None:
        seen: dict[str, set[str]] = {"hostName": set(), "macAddress": set(), "address": set()}
        for index, entry in enumerate(credentials):
            _credential(f"{path}.credentials[{index}]", entry, seen, errors)
        if platform not in ("baremetal", "external", "none"):
            errors.forbidden(
                path,
                f"fencing is only supported on baremetal, external or none platforms, instead {platform} platform was found",
            )
    if counts["arbiter"] or not profile.arbiter:
        return
    if counts["master"] == 2 and len(credentials) != 2:
        errors.forbidden(
            f"{path}.credentials",
            "there should be exactly two fencing credentials to support the two node cluster, instead "
            f"{len(credentials)} credentials were found",
        )
    if counts["master"] != 2 and credentials:
        errors.forbidden(
            f"{path}.credentials",
            "there should not be any fencing credentials configured for a non dual replica control plane (Two Nodes "
            f"Fencing) cluster, instead {len(credentials)} credentials were found",
        )


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
            f"{at}[CertificateVerification]", verification,
            f"invalid certificate verification; \"{verification}\" should set to one of the following: ['Enabled' "
            "(default), 'Disabled']",
        )  # fmt: skip
    address = entry.get("address", "")
    if address:
        for why in _redfish(address):
            errors.invalid(f"{at}.address", address, why)


def _redfish(address: str) -> Iterator[str]:
    """Everything that is wrong with the address of a BMC that fences."""
    if re.search(r"[\x00-\x20\x7f]", address):
        yield f"invalid URL format: parse {quote(address)}: net/url: invalid control character in URL"
        return
    if "redfish" not in address:
        yield "fencing only supports redfish-compatible BMC addresses, IPMI is not supported"
    scheme, separator, rest = address.partition("://")
    port = re.search(r":\d+$", rest.partition("/")[0])
    known = separator and any(part in scheme for part in ("http", "redfish"))
    if not port and not known:
        yield "failed to parse redfish address, no port number found"


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
    if text and text != "*":
        if " " in text:
            errors.invalid("proxy.noProxy", text, "noProxy must not have spaces")
        for index, item in enumerate(part.strip() for part in text.split(",")):
            if (
                check.address(item) is None
                and check.network(item) is None
                and check.domain_name(item.removeprefix("."))
            ):
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
    if join_subnet(networking) and within([join_subnet(networking)]):
        errors.invalid(path, text, "proxy value is part of the ovn-kubernetes IPv4 InternalJoinSubnet")


_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?:(?P<host>{_HOST})/)?{_COMPONENT}(?:/{_COMPONENT})*(?P<tag>:[A-Za-z0-9_][A-Za-z0-9_.-]*)?(?P<digest>@[a-z0-9]+:[0-9a-fA-F]{{32,}})?"
)


def _repository(text: str) -> str | None:
    """Why `text` is not a repository name, or None; a registry's host name alone is one, too."""
    match = _REFERENCE.fullmatch(text)
    if not match:
        lower = _REFERENCE.fullmatch(text.lower())
        named = lower and ("." in text.partition("/")[0] or ":" in text.partition("/")[0])
        return "failed to parse: invalid reference format" + (": repository name must be lowercase" if named else "")
    host = match["host"] or ""
    if "." in host or ":" in host or host == "localhost":
        return "must be repository--not reference" if match["tag"] or match["digest"] else None
    name, separator, port = text.rpartition(":")
    name = name if separator and port.isdigit() else text
    why = None if check.address(name) else check.subdomain(name)
    return f"the repository provided is invalid: {why}" if why else None


def _image_sources(config: dict[str, Any], log: Log, errors: FieldErrors) -> None:
    contents, digests = config.get("imageContentSources"), config.get("imageDigestSources")
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
            if policy and not entry.get("mirrors"):
                errors.invalid(f"{path}.sourcePolicy", policy, "sourcePolicy cannot be configured without a mirror")
            if policy and policy not in ("AllowContactingSource", "NeverContactSource"):
                errors.invalid(
                    f"{path}.sourcePolicy", policy,
                    'supported values are "NeverContactSource" and "AllowContactingSource"',
                )  # fmt: skip
    publish = config["publish"]
    if publish not in _PUBLISH:
        errors.unsupported("publish", publish, _PUBLISH)
    if contents and digests:
        # Upstream shows the value of another field.
        errors.invalid(
            "imageContentSources", publish, "cannot set imageContentSources and imageDigestSources at the same time"
        )
    if contents:
        log.warning("imageContentSources is deprecated, please use ImageDigestSources")
    _mirrors_in_pull_secret(config, [*(contents or []), *(digests or [])], log)


def _mirrors_in_pull_secret(config: dict[str, Any], sources: list[dict[str, Any]], log: Log) -> None:
    secret = config.get("pullSecret", "")
    if not sources or check_pull_secret(secret):
        return
    auths = next(value for key, value in gojson.loads(secret).items() if key.lower() == "auths")
    known = {host.partition("/")[0] for host in auths}
    for host in dict.fromkeys(mirror.partition("/")[0] for entry in sources for mirror in entry.get("mirrors") or []):
        if host not in known:
            log.warning(f'Mirror registry "{host}" is not found in pullSecret')


# --- what the agent-based installer adds --------------------------------------------------


def _agent_platform(config: dict[str, Any], profile: ReleaseProfile, errors: FieldErrors) -> None:
    platform = platform_name(config)
    allowed = ("baremetal", "vsphere", *(("nutanix",) if profile.nutanix else ()), "none", "external")
    if platform and platform not in allowed:
        errors.unsupported("platform", platform, allowed)
    arch = config["controlPlane"]["architecture"]
    if platform and platform != "none" and arch in ("ppc64le", "s390x"):
        errors.invalid("platform", platform, f'CPU architecture "{arch}" only supports platform "none".')
    external = config["platform"].get("external") or {}
    manager = external.get("cloudControllerManager", "")
    if external.get("platformName") == "oci" and manager != "External":
        path = "platform.external.cloudControllerManager"
        errors.invalid(path, manager, f"When using external oci platform, {errors.path(path)} must be set to External")
    name = external.get("platformName", "")
    if profile.external_platforms and platform == "external" and name not in profile.external_platforms:
        errors.unsupported("platform.external.platformName", name, profile.external_platforms)


def _payload_architecture(config: dict[str, Any], build: Build, errors: FieldErrors) -> None:
    """A payload of one architecture serves nodes of that one."""
    pools = [("controlPlane", config["controlPlane"])]
    pools += [(f"compute[{index}]", pool) for index, pool in enumerate(config["compute"])]
    release = build.release_facts.get("architecture", "")
    if not release and len({pool["architecture"] for __, pool in pools}) > 1:
        build.log.warning(
            "Could not determine release architecture for multi arch cluster configuration. Make sure the release is a "
            "multi architecture payload."
        )
    if release in ("", "multi"):
        return
    for path, pool in pools:
        arch = pool["architecture"]
        if arch != release:
            kind = path.partition("[")[0]
            errors.invalid(
                f"{path}.architecture", arch,
                f"cannot create {arch} {kind} node from a single architecture {release} release payload",
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


def _topology(config: dict[str, Any], profile: ReleaseProfile, counts: dict[str, int], errors: FieldErrors) -> None:
    masters, arbiters = counts["master"], counts["arbiter"]
    platform = platform_name(config)
    dual = profile.two_node_fencing and features.enabled(config, profile, "DualReplica")
    supported = [text for text in profile.replicas if text != "2 (with fencing)" or dual]
    two_allowed = arbiters > 0 or "2 (with arbiter)" in profile.replicas
    numbers = {int(text) for text in profile.replicas if text.isdecimal()} | ({2} if two_allowed or dual else set())
    if masters not in numbers and profile.replicas_text:
        text = f"ControlPlane.Replicas can only be set {profile.replicas_text}. Found {masters}"
        errors.invalid("controlPlane.replicas", masters, text)
    elif masters not in numbers:
        errors.unsupported("controlPlane.replicas", masters, supported)
    if masters == 1:
        _single_node(config, profile, platform, counts, errors)
    if masters != 2:
        return
    credentials = (config["controlPlane"].get("fencing") or {}).get("credentials") or []
    if config.get("arbiter") is not None and arbiters != 1:
        errors.invalid(
            "arbiter.replicas", arbiters,
            "TNA (Two Node with Arbiter) configuration requires exactly 1 arbiter replica",
        )  # fmt: skip
    if credentials and not dual:
        errors.invalid(
            "controlPlane.fencing", "configured", "fencing configuration requires FeatureGateDualReplica to be enabled"
        )
    if credentials and len(credentials) != 2:
        errors.invalid(
            "controlPlane.fencing.credentials", len(credentials),
            "must provide exactly 2 fencing credentials for 2 control plane replicas",
        )  # fmt: skip


def _single_node(
    config: dict[str, Any], profile: ReleaseProfile, platform: str, counts: dict[str, int], errors: FieldErrors
) -> None:
    kind = config["networking"]["networkType"]
    arbiters, workers = counts["arbiter"], counts["worker"]
    if workers and not profile.lower_config_paths:
        errors.required(
            "compute.replicas",
            "Total number of Compute.Replicas must be 0 when ControlPlane.Replicas is 1 for platform none or "
            f"external. Found {workers}",
        )
    elif workers:
        errors.forbidden(
            "compute.replicas",
            "Total number of compute replicas must be 0 when controlPlane.replicas is 1 for platform none or "
            f"external. Found {workers}",
        )
    elif platform not in ("none", "external"):
        errors.invalid(
            "platform", platform, "Only platform none and external supports 1 ControlPlane and 0 Compute nodes"
        )
    elif kind != "OVNKubernetes":
        errors.invalid(
            "networking.networkType", kind,
            "Only OVNKubernetes network type is allowed for Single Node OpenShift (SNO) cluster",
        )  # fmt: skip
    if arbiters:
        errors.forbidden(
            "arbiter.replicas",
            "Total number of arbiter replicas must be 0 when controlPlane.replicas is 1 for Single Node Openshift "
            f"(SNO) cluster. Found {arbiters}",
        )
