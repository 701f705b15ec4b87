"""Checks of the nodes that a profile leaves to day 2."""

from __future__ import annotations

from collections.abc import Iterator

from ..releases import LATEST, RELEASES, first_release
from .build import day2_names, node_roles
from .modes import modes_where
from .options import Profile
from .problems import Finding

_MODES = modes_where(lambda mode: mode.from_iso)


def check_day2(profile: Profile, _cluster: str) -> Iterator[Finding]:
    """Yield what is wrong with day-2 nodes.

    They are their role, the release, how they boot, and faults that would need them earlier. A finding is path, value,
    and what would be right.
    """
    later = day2_names(profile)
    if not later:
        return
    roles = node_roles(profile)
    for name in later:
        role = roles.get(name, "worker")
        if role != "worker":
            yield (
                ("nodes", name, "day2"),
                True,
                f"must be false: only workers join an installed cluster, not role {role}",
            )
    release = RELEASES[profile["release"]["profile"] or LATEST.name]
    if release.auth != "personas":  # as the services of joining nodes have it
        first = first_release(lambda one: one.auth == "personas")
        yield ("nodes", later[0], "day2"), True, f"requires a release from {first} on, not {release.name}"
    mode = profile["boot"]["mode"]
    if mode not in _MODES:
        remedy = f"must be one of {', '.join(_MODES)} for a profile with day-2 nodes, which boot from an ISO"
        yield ("boot", "mode"), mode, remedy
    for index, fault in enumerate(profile["faults"]):
        for key in ("node", "peer", "of"):
            name = str(fault.get(key, ""))
            if name in later:
                yield ("faults", index, key), name, "is not part of the installation (day2), in which faults happen"
