"""Boot modes of hosts that get their cluster after they have booted: `config-image` and `interactive`. docs/hosts.md is the guide."""

from __future__ import annotations

from collections.abc import Iterator

from ..releases import LATEST, RELEASES, first_release
from .boot_modes import boot_mode, mode_of
from .build import addressing_of, machine, node_names, platform_of
from .network_checks import of_nmstate
from .options import Profile
from .problems import Finding, Path
from .topologies import TOPOLOGIES

_HINTS = ("root_device", "root_device_hints")
_OF_AGENT_CONFIG = ("duplicate_hostname", "wrong_root_device", "wrong_token")


def check(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what these boot modes cannot do; a finding is path, value, and what would be right."""
    mode, kind = boot_mode(profile), mode_of(profile)
    if kind.configured:
        return
    place: Path = ("boot", "mode")
    build = profile["release"]["installer"]
    for name in ("binary", "git"):
        if build[name]:
            remedy = f"makes no image for `boot: {{mode: {mode}}}`: agentlab's own installer does"
            yield ("release", "installer", name), build[name], remedy
    if platform_of(profile) == "external":
        yield place, mode, "requires another platform than external, whose image is a minimal one"
    if profile["installer"]["fips"]:
        yield ("installer", "fips"), True, f"is a kernel argument; an image of the mode {mode} has no kernel arguments"
    if kind.dialog:
        yield from _interactive(profile, mode, place)


def _interactive(profile: Profile, mode: str, place: Path) -> Iterator[Finding]:
    release = RELEASES[profile["release"]["profile"] or LATEST.name]
    if not release.rendezvous_ui:
        first = first_release(lambda one: one.rendezvous_ui)
        yield place, mode, f"requires a release from {first} on, not {release.name}"
    if TOPOLOGIES[profile["topology"]].fencing:
        yield place, mode, f"requires a topology without fencing, not {profile['topology']}"
    if profile["installer"]["hosts_in"] == "install-config":
        yield (
            ("installer", "hosts_in"),
            "install-config",
            f"requires hosts that the image knows, not the mode {mode}",
        )
    for index, fault in enumerate(profile["faults"]):
        if fault["kind"] in _OF_AGENT_CONFIG:
            yield (
                ("faults", index, "kind"),
                fault["kind"],
                f"requires an image with the cluster, not the mode {mode}",
            )
    unknown = "requires an image with the cluster: without it hosts have DHCP on each NIC, and no nmstate"
    for where, value in of_nmstate(profile):
        yield where, value, unknown
    for name, node in profile["nodes"].items():
        if node.get("network_config"):
            yield ("nodes", name, "network_config"), None, unknown
    seen: set[Path] = set()
    for name, role, _number in node_names(profile):
        path: Path = ("nodes", name) if profile["nodes"].get(name) else (role,)
        if path in seen or role == "extra":
            continue
        seen.add(path)
        size = machine(profile, name, role)
        if size["firmware"] != "uefi":
            yield (*path, "firmware"), size["firmware"], "must be uefi: the dialog is on a framebuffer"
        if (way := addressing_of(profile, name, role)) != "dhcp":
            yield (*path, "addressing"), way, "must be dhcp: without a cluster the image has no networks of hosts"
        for field in _HINTS:
            if size[field]:
                yield (*path, field), size[field], "requires an image with the cluster: the service chooses the disk"
