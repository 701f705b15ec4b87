"""Checks of what a cluster is reached by and reaches others by: load balancer, BMCs that fence, proxies. See `checks`."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ..redact import redact
from . import proxied
from .balancers import BALANCED, needs_balancer
from .build import node_names, platform_of
from .network_checks import lan
from .networks import outside_balancer
from .options import Profile
from .presets import FAMILIES
from .problems import Finding
from .topologies import TOPOLOGIES, fencing


def check_fencing(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield which BMCs lack credentials, where two masters fence each other, and what is for fencing where none does.

    Only BMCs that are not the lab's are concerned: the lab's have those of `services.bmc`.
    """
    if not TOPOLOGIES[profile["topology"]].fencing:
        if (by := profile["installer"]["fencing_by"]) != "hostName":
            yield ("installer", "fencing_by"), by, f"requires a topology with fencing: {fencing()}"
        return
    for node in (name for name, role, __ in node_names(profile) if role == "master"):
        given = profile["nodes"].get(node, {})
        bmc = {} if given.get("bare_metal") else given.get("bmc", {})
        for field in ("username", "password"):
            if bmc.get("address") and not bmc.get(field):
                remedy = f"is missing: topology {profile['topology']} fences nodes by their BMCs, and {bmc['address']} is not the lab's"
                yield ("nodes", node, "bmc", field), None, remedy


def check_proxy(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """A proxy that install-config names is that of the lab if there is one; else its address is of a family that the nodes have."""
    given: Any = profile["installer"]["install_config"].get("proxy")
    families = FAMILIES[profile["stack"]]
    for field in ("httpProxy", "httpsProxy"):
        value = given.get(field) if isinstance(given, Mapping) else None
        if value and profile["network"]["connection"] == "proxied":
            if str(value).rstrip("/") != (own := proxied.url(_gateway(profile))):
                remedy = f"contradicts `network.connection: proxied`, whose only proxy is {own}: remove one of them"
                yield ("installer", "install_config", "proxy", field), redact(str(value)), remedy
            continue
        try:
            host = urlsplit(str(value)).hostname or ""
        except ValueError:
            remedy = "must be a URL, such as http://192.0.2.1:3128 or http://[2001:db8::1]:3128"
            yield ("installer", "install_config", "proxy", field), redact(str(value)), remedy
            continue
        if wrong := _of_another_family(profile, host, families):
            yield ("installer", "install_config", "proxy", field), value, f"must have {wrong}"


def check_time_servers(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """A time server has an address of a family that a network of the lab has."""
    families = dict.fromkeys(named.family for named in lan(profile))
    for index, source in enumerate(profile["installer"]["ntp_sources"] or []):
        if wrong := _of_another_family(profile, source, families):
            yield ("installer", "ntp_sources", index), source, f"must be {wrong}"


def _of_another_family(profile: Profile, host: str, families: Collection[str]) -> str:
    """Return what would be right in place of an address of none of these families; "" for others, and for names."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return ""
    if f"ipv{address.version}" in families:
        return ""
    known = " or ".join("IPv6" if family == "ipv6" else "IPv4" for family in families)
    return f"an {known} address, or a name: nodes with `stack: {profile['stack']}` have no other"


def _gateway(profile: Profile) -> str:
    """Return the address of the lab's services, the first gateway of the machine network."""
    network = ipaddress.ip_network(profile["network"][FAMILIES[profile["stack"]][0]])
    offset = profile["network"]["offsets"]["gateway"]
    return str(network[offset]) if offset < network.num_addresses else ""


def check_balancer(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with the load balancer, where the cluster has no virtual addresses.

    It is the sandbox's, or the user's with addresses in `vips`. Texts that openshift-install has, too, are its own.
    """
    platform = platform_of(profile)
    if platform != "baremetal" and outside_balancer(profile):
        # The words of openshift-install; a profile's `platform` is the first one of install-config.yaml.
        remedy = f'must only specify a single type of platform; cannot use both "{platform}" and "baremetal"'
        yield ("installer", "install_config", "platform"), None, remedy
    if not needs_balancer(profile, platform):
        return
    if (kind := profile["hypervisor"]["kind"]) != "sandbox":
        if profile["segments"]:
            return  # which require a sandbox themselves
        remedy = "requires `hypervisor: {kind: sandbox}`, which has a load balancer, one of `machines`, or `vips` of one of your own"
        yield ("platform",), platform, f"{remedy}, with several masters and kind {kind}"
        return
    for name in ("registry", "bmc", "http"):
        port = profile["services"][name]["port"]
        if port in BALANCED:
            yield ("services", name, "port"), port, "is one of the load balancer's: choose another one"
