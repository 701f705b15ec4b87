"""Checks of the segments of a profile's machine network, and of the nodes in them; see `checks`."""

from __future__ import annotations

from collections.abc import Iterator

from ..releases import LATEST, RELEASES
from ..vocabulary import WITH_VIPS
from .build import machine, node_names, platform_of
from .links import machine_switched
from .networks import outside_balancer
from .options import Profile
from .presets import FAMILIES, ROLES
from .problems import Finding, Path

_BALANCER = "installer.install_config: {platform: {baremetal: {loadBalancer: {type: UserManaged}}}}"


def check_segments(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with segments: their networks, who is in them, and what a cluster on several of them requires."""
    yield from _members(profile)
    if not profile["segments"]:
        return
    for name, segment in profile["segments"].items():
        for family in FAMILIES[profile["stack"]]:
            if not segment.get(family):
                yield (
                    ("segments", name, family),
                    None,
                    f"is missing: `stack: {profile['stack']}` requires a network such as `{family}: "
                    f"{'192.168.112.0/24' if family == 'ipv4' else 'fd2e:6f44:5dd8:c957::/120'}`",
                )
    path: Path = ("segments", min(profile["segments"]))
    if (kind := profile["hypervisor"]["kind"]) != "sandbox":
        yield path, None, f"requires `hypervisor: {{kind: sandbox}}`, which routes between segments, not {kind}"
    if machine_switched(profile):
        yield (
            path,
            None,
            "requires a machine network without bonds and VLANs: the switch has one network for each of them",
        )
    yield from _platform(profile, path)


def _platform(profile: Profile, path: Path) -> Iterator[Finding]:
    """The assisted service refuses a worker outside of the network of the virtual addresses, unless a load balancer has them."""
    platform = platform_of(profile)
    if platform not in WITH_VIPS:
        return
    if not outside_balancer(profile):
        remedy = f"requires `platform: none`, or a load balancer of your own (`{_BALANCER}`): hosts must be in the network of the VIPs"
        yield path, None, f"{remedy}, with platform {platform}"
        return
    release = RELEASES[profile["release"]["profile"] or LATEST.name]
    if not release.load_balancer:
        first, *__ = (name for name, one in RELEASES.items() if one.load_balancer)
        yield path, None, f"requires a release from {first} on, not {release.name}, which ignores `loadBalancer`"
    if len(FAMILIES[profile["stack"]]) > 1:
        yield (
            ("stack",),
            profile["stack"],
            "must be ipv4 or ipv6: a dual-stack cluster has one machine network for each family",
        )


def _members(profile: Profile) -> Iterator[Finding]:
    """Only workers are in segments, which exist and have someone in them; the others, first of all the rendezvous host, are not."""
    known, used = profile["segments"], set()
    roles = {role: profile[role].get("segment") for role in ROLES}
    given: list[tuple[Path, str | None]] = [((role, "segment"), name) for role, name in roles.items()]
    given += [(("nodes", node, "segment"), options.get("segment")) for node, options in profile["nodes"].items()]
    for path, name in given:
        if name is not None and name not in known:
            yield (
                path,
                name,
                f"there is no such segment; there is {', '.join(known) or 'none; define it in `segments`'}",
            )
    nodes = node_names(profile)
    for number, (node, role, __) in enumerate(nodes):
        segment = machine(profile, node, role)["segment"]
        used.add(segment)
        if segment is None or role == "worker":
            continue
        own = profile["nodes"].get(node, {}).get("segment")
        place: Path = ("nodes", node, "segment") if own else (role, "segment")
        if number == 0:
            yield (
                place,
                segment,
                f"must be null: {node} is the rendezvous host, which is in the first segment, with the VIPs",
            )
        elif own:
            yield (
                place,
                segment,
                f"must be null: only workers are in other segments than the machine network, not role {role}",
            )
    for name in known:
        if name not in used:
            yield ("segments", name), None, f"no node is in it; set `worker.segment: {name}`, or that of a node"
