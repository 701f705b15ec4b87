"""Checks of what install-config asks for, against the installed cluster: networks, FIPS mode, BMCs, mirrors, pull secret and SSH keys.

`CHECKS` has the extra manifests, too.

Files that the profile names are left out where the checks run on a host that does not have them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from ..documents import DocumentError, load_json
from ..errors import ClusterError
from ..installer.models import ImageSource
from ..merging import merge
from ..plan import files, ipi, phases
from ..plan.model import Plan
from ..vocabulary import WITH_VIPS
from . import inputs, manifests
from .client import ClusterClient
from .links import Finding

_Read = TypeVar("_Read")


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


def machine_networks(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield the machine networks, as the cluster's install-config has them. Raises `ClusterError`.

    Nothing on a platform without virtual addresses, where the assisted service takes them from the rendezvous host.
    """
    if plan["cluster"]["platform"] in WITH_VIPS:
        own = {"machineNetwork": [{"cidr": cidr} for cidr in plan["installer"]["machine_network"]]}
        there = inputs.install_config(kube).get("networking") or {}
        yield Finding("machine networks", _machines(merge(own, _laid(plan, "networking"))), _machines(there))


def fips(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield for each pool of nodes whether its MachineConfig has FIPS mode; nothing unless it is asked for. Raises `ClusterError`."""
    if not plan["installer"]["install_config"].get("fips", plan["installer"]["fips"]):
        return
    for pool in dict.fromkeys(node["role"] for node in phases.installed_nodes(plan)):
        is_on = (kube.rendered_config(pool).get("spec") or {}).get("fips") is True
        yield Finding(f"FIPS mode of pool {pool}", "on", "on" if is_on else "off")


def bmcs(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield which BMC each BareMetalHost has; nothing where install-config does not describe the hosts. Raises `ClusterError`."""
    described = plan["installer"].get("hosts_in") == "install-config" or ipi.bootstrap(plan)
    if not described or (_laid(plan, "platform").get("baremetal") or {}).get("hosts"):
        return
    found = {host["metadata"]["name"]: (host.get("spec") or {}).get("bmc") or {} for host in kube.bare_metal_hosts()}
    names = [node["name"] for node in phases.installed_nodes(plan)]
    yield Finding(
        "BMCs of BareMetalHosts",
        _listed((node["name"], str(node["bmc"]["address"])) for node in phases.installed_nodes(plan)),
        _listed(
            (name, str(found[name].get("address") or "none") if name in found else "is missing")
            for name in [*names, *sorted(found.keys() - {*names})]
        ),
    )


def image_mirrors(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield the mirrors of images: the cluster may have more, after those of the plan. Raises `ClusterError`."""
    installer = plan["installer"]
    given: list[Any] = [
        *installer["image_digest_sources"],
        *(_of_file(installer.get("mirrors_file"), files.mirror_sources) or []),
    ]
    planned = _mirrors(installer["install_config"].get("imageDigestSources", given))
    if not planned:
        return
    there = _mirrors(inputs.image_sources(kube))
    found = {source: there.get(source, [])[: len(wanted)] for source, wanted in planned.items()}
    yield Finding("mirrors of images", _sources(planned), _sources(found))


def pull_secret(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield which registries of `installer.pull_secret_file` the cluster's pull secret has. Raises `ClusterError`."""
    given = _of_file(plan["installer"]["pull_secret_file"], files.pull_secret)
    if given is None or "pullSecret" in plan["installer"]["install_config"]:
        return
    try:
        there = load_json(inputs.pull_secret(kube) or "{}", name="Secret openshift-config/pull-secret")
    except DocumentError as error:
        raise ClusterError(str(error)) from error
    auths = there.get("auths") if isinstance(there, Mapping) else None
    wanted = sorted(given["auths"])
    found = [registry for registry in wanted if isinstance(auths, Mapping) and registry in auths]
    yield Finding("registries of the pull secret", ", ".join(wanted), ", ".join(found) or "none")


def ssh_keys(plan: Plan, kube: ClusterClient) -> Iterator[Finding]:
    """Yield for each pool of nodes how many keys of `installer.ssh_key_file` may log in by its MachineConfig. Raises `ClusterError`."""
    name = plan["installer"]["ssh_key_file"]
    given = _of_file(name, files.read)
    if not name or given is None or "sshKey" in plan["installer"]["install_config"]:
        return
    wanted = _lines(given)
    for pool in dict.fromkeys(node["role"] for node in phases.installed_nodes(plan)):
        there = wanted & _lines(inputs.ssh_key(kube.rendered_config(pool).get("spec") or {}))
        yield Finding(f"SSH keys of pool {pool}", *(f"{len(keys)} of {Path(name).name}" for keys in (wanted, there)))


CHECKS: Mapping[str, Callable[[Plan, ClusterClient], Iterator[Finding]]] = {
    "pod and service networks": network,
    "machine networks": machine_networks,
    "FIPS mode": fips,
    "BMCs of BareMetalHosts": bmcs,
    "mirrors of images": image_mirrors,
    "registries of the pull secret": pull_secret,
    "SSH keys": ssh_keys,
    "extra manifests": manifests.findings,
}
"""All of them; the name is that of the check which fails when the API does not answer."""


def _of_file(name: str | None, read: Callable[[str], _Read]) -> _Read | None:
    """Return what is in a file of the profile; None without one, and where this host does not have it."""
    try:
        return read(name) if name else None
    except files.FileError:
        return None


def _lines(text: str) -> set[str]:
    """Return the lines of authorized_keys, without comments."""
    return {" ".join(line.split()) for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")}


def _mirrors(sources: Iterable[ImageSource]) -> dict[str, list[str]]:
    """Return the mirrors of each source, without those that have none."""
    found: dict[str, list[str]] = {}
    for one in sources:
        places = found.setdefault(one["source"], [])
        places += [place for place in one.get("mirrors") or [] if place not in places]
    return {source: places for source, places in found.items() if places}


def _sources(found: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{source} at {', '.join(places) or 'none'}" for source, places in found.items())


def _machines(section: Mapping[str, Any]) -> str:
    return ", ".join(_cidr(one.get("cidr")) for one in section.get("machineNetwork") or []) or "none"


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
