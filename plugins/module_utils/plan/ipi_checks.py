"""Checks of a profile with `flow: ipi`: what the flow needs, and what belongs to the agent-based installer. See `checks`."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from . import ipi
from .boot_modes import boot_mode
from .build import day2_names, machine, node_names, platform_of
from .options import Profile
from .presets import FAMILIES, ROLES
from .problems import Finding
from .topologies import TOPOLOGIES

_FLOW = "`flow: ipi`"


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what `flow: ipi` cannot have; a finding is path, value, and what would be right."""
    if profile["flow"] != "ipi":
        return
    platform, kind = platform_of(profile), profile["hypervisor"]["kind"]
    if profile["master"]["count"] == 1:
        yield ("topology",), profile["topology"], f"has one master: {_FLOW} requires at least two"
    elif platform != "baremetal":
        yield ("platform",), platform, f"must be baremetal: {_FLOW} provisions machines by their BMCs"
    if kind != "sandbox":
        remedy = f"must be sandbox: {_FLOW} lets the installer create a machine, which is removed with its libvirt"
        yield ("hypervisor", "kind"), kind, remedy
    yield from _of_agents(profile)
    yield from _installer(profile)
    yield from _addresses(profile)
    if profile["release"]["payload"] == "lab":
        yield from _lab(profile)


def _of_agents(profile: Profile) -> Iterator[Finding]:
    """What only the agent-based installer has."""
    mode, installer = boot_mode(profile), profile["installer"]
    if mode != "redfish":
        yield ("boot", "mode"), mode, f"must be redfish: with {_FLOW} Ironic boots machines, by virtual media"
    if profile["boot"]["eject"] != "never":
        yield ("boot", "eject"), profile["boot"]["eject"], f"must be never: with {_FLOW} Ironic ejects its media"
    if installer["agent_config"]:
        yield ("installer", "agent_config"), None, f"requires `flow: agent`: {_FLOW} has no agent-config.yaml"
    for name in day2_names(profile):
        yield ("nodes", name, "day2"), True, "requires `flow: agent`, whose installer adds nodes with an ISO"
    for index, fault in enumerate(profile["faults"]):
        yield ("faults", index, "kind"), fault["kind"], "requires `flow: agent`, in whose stages faults happen"


def _installer(profile: Profile) -> Iterator[Finding]:
    build, lab = profile["release"]["installer"], profile["release"]["payload"] == "lab"
    if build["git"]:
        remedy = f"must be null with {_FLOW}: name a program by release.installer.binary"
        yield ("release", "installer", "git"), build["git"], remedy
    if lab and build["binary"]:
        remedy = f"must be null: with {_FLOW} the lab payload is installed by its own simulator of openshift-install"
        yield ("release", "installer", "binary"), build["binary"], remedy
    if not lab and not build["binary"]:
        remedy = f"is missing: with {_FLOW} and a real payload a real openshift-install creates the cluster"
        yield ("release", "installer", "binary"), None, remedy


def _addresses(profile: Profile) -> Iterator[Finding]:
    """The addresses of bootstrap machine and Ironics, which are at fixed offsets, must be free."""
    offsets, names = profile["network"]["offsets"], node_names(profile)
    own = {ipi.PROVISIONING, ipi.CLUSTER_PROVISIONING, ipi.BOOTSTRAP}
    text = ", ".join(str(offset) for offset in sorted(own))
    for name in ("gateway", "ingress", "api"):
        if offsets[name] in own:
            value = offsets[name]
            yield ("network", "offsets", name), value, f"is one of {text}, which {_FLOW} needs: choose another one"
    for kind, first in (("dhcp_nodes", offsets["dhcp_nodes"]), ("static_nodes", offsets["static_nodes"])):
        if own & {*range(first, first + len(names))}:
            remedy = f"gives nodes some of the offsets {text}, which {_FLOW} needs: choose a greater one"
            yield ("network", "offsets", kind), first, remedy
    if own & {*range(offsets["dhcp_start"], offsets["dhcp_end"] + 1)}:
        remedy = f"leads to a range with some of the offsets {text}, which {_FLOW} needs: choose a greater one"
        yield ("network", "offsets", "dhcp_start"), offsets["dhcp_start"], remedy
    taken = {
        str(net[offset])
        for family in FAMILIES[profile["stack"]]
        for net in [ipaddress.ip_network(profile["network"][family])]
        for offset in own
        if offset < net.num_addresses
    }
    for kind, given in (("api", profile["vips"]["api"]), ("ingress", profile["vips"]["ingress"])):
        for index, ip in enumerate(given or []):
            if str(ipaddress.ip_address(ip)) in taken:
                yield ("vips", kind, index), ip, f"is an address that {_FLOW} needs: choose another one"


def _lab(profile: Profile) -> Iterator[Finding]:
    """What the simulator of the lab payload cannot do, and a real installer can."""
    real = "requires a real payload with `flow: ipi`"
    if profile["stack"] != "ipv4":
        yield ("stack",), profile["stack"], f"{real}: the lab payload's flow is for ipv4"
    if profile["addressing"] != "dhcp":
        yield ("addressing",), profile["addressing"], f"{real}: the lab payload's flow is for dhcp"
    for name, role, __ in node_names(profile):
        if machine(profile, name, role)["addressing"] == "static":
            yield ("nodes", name, "addressing"), "static", f"{real}: the lab payload's flow is for dhcp"
    if TOPOLOGIES[profile["topology"]].fencing:
        yield ("topology",), profile["topology"], f"{real}: the lab payload's flow is for three masters or more"
    for role in ROLES[1:]:
        if profile[role]["count"]:
            remedy = f"{real}: the lab payload has no baremetal-operator, which provisions others than masters"
            yield (role, "count"), profile[role]["count"], remedy
