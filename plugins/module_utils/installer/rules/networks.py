"""Rules for `networking`: networks, prefixes, families, and what OVN-Kubernetes reserves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...releases import ReleaseProfile
from .. import check
from ..errors import FieldErrors
from ..install_config import platform_name
from ..models import InstallConfig, Networking

if TYPE_CHECKING:
    from ...log import Log

_JOIN = "internal subnet"
_OVN_SUBNETS = {
    4: ((_JOIN, "100.64.0.0/16"), ("transit subnet", "100.88.0.0/16")),
    6: ((_JOIN, "fd98::/64"), ("transit subnet", "fd97::/64")),
}  # fmt: skip
_DOCKER_BRIDGE = check.network("172.17.0.0/16")


def check_networking(config: InstallConfig, profile: ReleaseProfile, log: Log, errors: FieldErrors) -> None:
    """Check the network type, each network, overlaps, and families.

    An overlap with Docker's bridge is a warning in `log`, as upstream has it; everything else is added to `errors`.
    """
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

    def usable(self, log: Log, networking: Networking, profile: ReleaseProfile, errors: FieldErrors) -> bool:
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
        self, networking: Networking, net: check.Network, profile: ReleaseProfile, errors: FieldErrors
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


def join_subnet(networking: Networking) -> str:
    """OVN-Kubernetes' internal join subnet for IPv4, if it is given.

    networking: of an install-config; "" when it has none. The field is ovnKubernetesConfig.ipv4.internalJoinSubnet.
    """
    found: str = ((networking.get("ovnKubernetesConfig") or {}).get("ipv4") or {}).get("internalJoinSubnet") or ""
    return found


def check_ovn_config(networking: Networking, errors: FieldErrors) -> None:
    """Check the join subnet of OVN-Kubernetes: its form, overlaps, and that it has an address for each node.

    networking: with its defaults. Without `ovnKubernetesConfig` there is nothing to check.
    """
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


def _host_prefix(networking: Networking, index: int, cluster: list[_Entry], errors: FieldErrors) -> None:
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
    """The IP versions of networks, each once, the first one's first.

    texts: CIDRs; others are passed over. [4, 6] is IPv4 before IPv6.
    """
    return list(dict.fromkeys(net.version for net in map(check.network, texts) if net is not None))


def _families(config: InstallConfig, lists: dict[str, list[_Entry]], errors: FieldErrors) -> None:
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
