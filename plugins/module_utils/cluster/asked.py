"""Checks of what install-config asks for, against the installed cluster: its networks, FIPS mode, and the BMCs of its hosts."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..merging import merge
from ..plan import ipi, phases
from ..plan.model import Plan
from .client import ClusterClient
from .links import Finding


def network(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield pod and service networks with their host prefixes, and the network plugin, as the Network has them.

    What `installer.install_config` lays over the plan's counts. Raises `ClusterError`.
    """
    installer = plan["installer"]
    own = {
        "networkType": installer["network_type"],
        "clusterNetwork": [
            {"cidr": one["cidr"], "hostPrefix": one["host_prefix"]} for one in installer["cluster_network"]
        ],
        "serviceNetwork": installer["service_network"],
    }
    there = kube.network()
    # The status is what the operator has applied; it is empty until then.
    applied = {name: value for name, value in (there.get("status") or {}).items() if value}
    wanted, found = merge(own, _laid(plan, "networking")), {**(there.get("spec") or {}), **applied}
    yield Finding("pod and service networks", _networks(wanted), _networks(found))


def fips(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield for each pool of nodes whether its MachineConfig has FIPS mode; nothing unless it is asked for. Raises `ClusterError`."""
    if not plan["installer"]["install_config"].get("fips", plan["installer"]["fips"]):
        return
    for pool in dict.fromkeys(node["role"] for node in phases.installed(plan)):
        is_on = (kube.rendered_config(pool).get("spec") or {}).get("fips") is True
        yield Finding(f"FIPS mode of pool {pool}", "on", "on" if is_on else "off")


def bmcs(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield which BMC each BareMetalHost has; nothing where install-config does not describe the hosts. Raises `ClusterError`."""
    described = plan["installer"].get("hosts_in") == "install-config" or ipi.bootstrap(plan)
    if not described or (_laid(plan, "platform").get("baremetal") or {}).get("hosts"):
        return
    found = {host["metadata"]["name"]: (host.get("spec") or {}).get("bmc") or {} for host in kube.bare_metal_hosts()}
    names = [node["name"] for node in phases.installed(plan)]
    yield Finding(
        "BMCs of BareMetalHosts",
        _listed((node["name"], str(node["bmc"]["address"])) for node in phases.installed(plan)),
        _listed(
            (name, str(found[name].get("address") or "none") if name in found else "is missing")
            for name in [*names, *sorted(found.keys() - {*names})]
        ),
    )


def _laid(plan: Plan, section: str) -> Mapping[str, Any]:
    """Return what the profile lays over a section of install-config."""
    found = plan["installer"]["install_config"].get(section)
    return found if isinstance(found, Mapping) else {}


def _networks(section: Mapping[str, Any]) -> str:
    pods = [
        f"{_cidr(one.get('cidr'))} with /{one.get('hostPrefix')} for each node"
        for one in section.get("clusterNetwork") or []
    ]
    services = [_cidr(one) for one in section.get("serviceNetwork") or []]
    return (
        f"{section.get('networkType') or 'no plugin'}; pods {', '.join(pods) or 'none'}; "
        f"services {', '.join(services) or 'none'}"
    )


def _cidr(text: object) -> str:
    """Return a network as all its spellings are compared; other text as it is."""
    try:
        return str(ipaddress.ip_network(str(text), strict=False))
    except ValueError:
        return str(text)


def _listed(pairs: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {address}" for name, address in pairs)
