"""What differs between releases of the installer, as data: one file per release, each lists what it changes of the one before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from . import v4_14, v4_15, v4_16, v4_17, v4_18, v4_19, v4_20, v4_21, v4_22
from .model import ReleaseProfile

__all__ = ["LATEST", "OLDEST", "RELEASES", "ReleaseProfile", "UnknownRelease", "by_name", "by_version", "first_release"]

RELEASES: Mapping[str, ReleaseProfile] = MappingProxyType(
    {module.RELEASE.name: module.RELEASE for module in (v4_14, v4_15, v4_16, v4_17, v4_18, v4_19, v4_20, v4_21, v4_22)}
)
"""All release profiles, oldest first."""
OLDEST, *__, LATEST = RELEASES.values()


class UnknownRelease(ValueError):
    """There is no release profile of that name.

    The message lists the names that are known, the newest first.
    """


def by_name(name: str) -> ReleaseProfile:
    """The release profile called `name`, as `4.22`; `main` is the newest. Raises `UnknownRelease`.

    Names have major and minor version only; for a full version use `by_version`.
    """
    if name == "main":
        return LATEST
    try:
        return RELEASES[name]
    except KeyError:
        raise UnknownRelease(
            f"{name!r} is not a known release: use one of main, {', '.join(reversed(list(RELEASES)))}"
        ) from None


def by_version(version: str) -> ReleaseProfile:
    """The profile for an OpenShift version: the oldest for what is older than all profiles, the newest for anything else unknown.

    version: such as `4.20.3` or `v4.20`; a text without a number, such as that of a nightly build, is the newest.
    """
    match = re.match(r"v?(\d+)\.(\d+)", version)
    if match is None:
        return LATEST
    minor = f"{match[1]}.{match[2]}"
    if minor in RELEASES:
        return RELEASES[minor]
    return OLDEST if (int(match[1]), int(match[2])) < _numbers(OLDEST.name) else LATEST


def first_release(has: Callable[[ReleaseProfile], bool]) -> str:
    """Return the name of the first release that has something, for messages. Raises `StopIteration` if none has."""
    return next(name for name, release in RELEASES.items() if has(release))


def _numbers(name: str) -> tuple[int, int]:
    major, minor = name.split(".")
    return int(major), int(minor)
