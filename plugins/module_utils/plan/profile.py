"""Profiles: read, validate, complete.

`load` is the entry point: it returns a complete profile or raises `ProfileError` with all problems.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from ..documents import PROFILE, DocumentError, Positions, read_file, read_yaml
from ..merging import merge
from ..releases import LATEST, RELEASES
from ..releases.distributions import DISTRIBUTIONS
from ..vocabulary import DEFAULT_CLUSTER, LAB_VERSION
from . import inventory, iscsi, outside, overrides, presets
from .faults import FAILS
from .options import Profile
from .problems import Finding, Mismatch, Path, Problem, ProfileError
from .settings import lab_settings
from .shapes import mismatches, texts
from .topologies import TOPOLOGIES, preset

# Minimum similarity of a misspelled word (1: identical).
_ALIKE = 0.75
_CASELESS = ("topology", "stack", "addressing")
# Fields from which `complete` derives presets.
_DERIVED: Mapping[Path, tuple[str, ...]] = {
    ("topology",): presets.ROLES,
    ("release", "payload"): (*presets.ROLES, "settings", "release"),
}
# Lists whose entries are checked one by one: one entry less never makes another one wrong.
_ENTRIES = ("faults", "routes", "snapshots")
# Case-sensitive: dev-scripts' HA_IPV4 has static addresses, the profile ha_ipv4 does not.
_SCENARIO = re.compile(r"(?P<topology>[0-9A-Z]+)_(?P<stack>IPV4V6|IPV6V4|IPV4|IPV6)(?P<dhcp>_DHCP)?")


class Source(NamedTuple):
    """Content of a file: the fields, the file's name, line and column of each field, and the paths of duplicate fields.

    folder: of the file, from which relative paths in it start; None: there is no file, and they are refused.
    """

    raw: dict[str, Any]
    name: str
    positions: Positions
    twice: list[Path]
    folder: FilePath | None = None

    def problem(self, path: Path, value: object, remedy: str) -> Problem:
        """Return a finding as a problem with its line and column.

        `path` is that of the field in the file; a field without a position gets the name of the file only.
        """
        position = self.positions.get(path)
        return Problem.of(f"{self.name}:{position[0]}:{position[1]}" if position else self.name, path, value, remedy)


def load(
    name: str | FilePath,
    folder: FilePath | None = None,
    cluster: str = DEFAULT_CLUSTER,
    *,
    here: bool = False,
    files: bool = False,
    components: Mapping[str, str] = MappingProxyType({}),
) -> Profile:
    """Return the complete profile `name`: a path, a name in `folder`, or a scenario of dev-scripts (`HA_IPV4V6_DHCP`).

    Raises `ProfileError` with everything that schema and checks find for a cluster of that name. The checks read a misspelled
    field or choice as its closest match; other invalid fields are dropped, and their consequences are not
    reported. files: the files that it names are read and checked, too. here: this host will run the machines, so that a
    report also names missing resources; a valid profile is not refused for that, which is up to the role `hypervisor`.
    components: replacements of components, which win over those of the profile.
    """
    return validated_profile(overridden(read(name, folder), components), cluster, here=here, files=files)


def validated_profile(source: Source, cluster: str, *, here: bool = False, files: bool = False) -> Profile:
    """Return the complete profile that `source` has; as `load`.

    Fields that are misspelled and alike are read as what they mean, so that their contents are checked too. Raises
    `ProfileError` with all problems, in the order of the file.
    """
    from . import files as named
    from . import outside_checks
    from .capacity import check_here
    from .checks import check

    source = rooted_source(source)
    wrong = list(mismatches(source.raw, Profile))
    raw, renamed = _renamed(source.raw, wrong)
    if renamed:
        wrong = [one for one in wrong if one.meant in renamed] + list(mismatches(raw, Profile))
    found: list[Finding] = [(path, None, "is a duplicate; remove one") for path in source.twice]
    if source.folder is None:
        found += [
            (path, text, "must be a path from the root or from home: there is no file of the profile")
            for path, text in _relative(source)
        ]
    found += [(one.path, one.value, one.remedy) for one in wrong]
    raw, withheld, gone = _without_wrong_fields(raw, [one for one in wrong if one.meant not in renamed], source.twice)
    profile = complete(raw)
    checked = check(profile, cluster, withheld, [named.check, outside_checks.check_files] if files else [])
    if (found or checked) and here:
        checked += [finding for finding in check(profile, cluster, withheld, [check_here]) if finding not in checked]
    found += [(_as_listed(path, gone), value, remedy) for path, value, remedy in checked]
    found = [(_as_written(path, renamed), value, remedy) for path, value, remedy in found]
    if found:
        end = (1 << 32, 0)
        raise ProfileError(
            [source.problem(*finding) for finding in sorted(found, key=lambda one: source.positions.get(one[0]) or end)]
        )
    return profile


def inline(raw: Mapping[str, Any], name: str, folder: str | FilePath | None) -> Source:
    """Return a profile that is part of something else, such as of a table of jobs. folder: where its relative paths start."""
    return Source(dict(raw), name, Positions(None), [], FilePath(folder) if folder else None)


def rooted_source(source: Source) -> Source:
    """Return a profile whose relative paths start from the root; they are those from the folder of its file."""
    raw = merge(source.raw, {})
    if source.folder:
        for path, text in _relative(source):
            _put(raw, path, os.path.normpath(source.folder / text))
    return source._replace(raw=raw)


def _relative(source: Source) -> Iterator[tuple[Path, str]]:
    images = ((path, text) for path, text in texts(source.raw, Profile, "own_image") if text != outside.LAB)
    found = (*texts(source.raw, Profile, "own_file"), *images)
    return ((path, text) for path, text in found if text and not text.startswith(("/", "~")))


def own_files(source: Source) -> Iterator[str]:
    """Yield a digest of each file that a profile names by a relative path; of a folder, of each file in it, with its name."""
    for _path, text in _relative(source):
        top = (source.folder or FilePath()) / text
        for file in sorted(path for path in (top, *top.rglob("*")) if path.is_file()):
            with file.open("rb") as stream:
                yield f" {file.relative_to(top)} {hashlib.file_digest(stream, 'sha256').hexdigest()}"


def overridden(source: Source, components: Mapping[str, str]) -> Source:
    """Return the content of a profile with other replacements of components.

    `components` is component -> replacement, as `release.payload_overrides`, over which it is laid. The source is not
    changed.
    """
    release = source.raw.get("release") or {}
    if not (components and isinstance(release, dict)):
        return source
    own = release.get("payload_overrides") or {}
    changed = {**release, "payload_overrides": {**own, **components}} if isinstance(own, dict) else release
    return source._replace(raw={**source.raw, "release": changed})


def read(name: str | FilePath, folder: FilePath | None = None) -> Source:
    """Return the content of the profile `name`.

    Raises `ProfileError` when there is no such file, or it is not a YAML mapping.
    """
    path = find(name, folder)
    if path is None:
        scenario_profile = scenario(str(name))
        if scenario_profile is not None:
            return Source(scenario_profile, f"scenario {name}", Positions(None), [])
        raise ProfileError([_missing(str(name), folder)])
    try:
        data = read_file(path)
    except OSError as error:
        raise ProfileError([Problem(str(path), "-", None, f"cannot be read: {error.strerror}")]) from error
    return parse(data, str(path))._replace(folder=path.absolute().parent)


def find(name: str | FilePath, folder: FilePath | None) -> FilePath | None:
    """Return the file that `name` means: a path, or the name of a profile in `folder`; None when there is none.

    A name in `folder` is tried as it is, then with `.yml` and `.yaml`. A path wins over a name.
    """
    candidates = [FilePath(name)]
    if folder is not None:
        candidates += [folder / f"{name}{suffix}" for suffix in ("", ".yml", ".yaml")]
    return next((path for path in candidates if path.is_file()), None)


def _missing(name: str, folder: FilePath | None) -> Problem:
    if FilePath(name).is_dir():
        return Problem(name, "-", None, "is a directory, not a profile; use the path of a file in it")
    known = sorted(path.stem for path in folder.glob("*.y*ml")) if folder else []
    near = difflib.get_close_matches(FilePath(name).stem.lower(), known, n=3)
    if scenario(name.upper()) is not None:
        # Only the case differs; the profile of that name and the scenario may differ.
        same = [one for one in near if one == name.lower()]
        near = [*same, f"the scenario {name.upper()}"]
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    elif known:
        hint = f"use a path, a scenario such as HA_IPV4V6_DHCP, or one of {', '.join(known)}"
    else:
        hint = "use the path of a file, or a scenario such as HA_IPV4V6_DHCP"
    return Problem(name, "-", None, f"there is no such profile; {hint}")


def parse(text: str | bytes, source: str) -> Source:
    """Parse the text of a profile; as `read`.

    `source` is what messages call the text. Empty text is an empty profile. `topology`, `stack` and `addressing` may
    be written in any case.
    """
    try:
        document = read_yaml(text, name=source, schema=PROFILE, twice=True)
    except DocumentError as error:
        where = f"{error.name}:{error.line}:{error.column}"
        raise ProfileError([Problem(where, "-", None, f"not valid YAML: {error.problem}")]) from error
    raw = document.value
    if raw is None:
        raw = {}
    if not isinstance(raw, dict):
        raise ProfileError([Problem(source, "-", raw, "a profile is a mapping of fields, such as `topology: sno`")])
    for key in _CASELESS:
        if isinstance(raw.get(key), str):
            raw[key] = raw[key].lower()
    return Source(raw, source, document.positions, [key.path for key in document.twice])


def scenario(name: str) -> dict[str, Any] | None:
    """Return the profile of a dev-scripts scenario (`COMPACT_IPV6`) or of a topology's name; None for other names.

    `name` is in capitals, as in AGENT_E2E_TEST_SCENARIO. Without `_DHCP` addresses are static, as in dev-scripts.
    """
    if name.lower() in TOPOLOGIES:
        return {"topology": name.lower()}
    match = _SCENARIO.fullmatch(name)
    topology = next((key for key, row in TOPOLOGIES.items() if match and row.scenario == match["topology"]), None)
    if match is None or topology is None:
        return None
    return {
        "topology": topology,
        "stack": presets.SCENARIO_STACKS[match["stack"].lower()],
        "addressing": "dhcp" if match["dhcp"] else "static",
    }


def complete(raw: Mapping[str, Any]) -> Profile:
    """Lay a profile over the defaults, the presets of its payload, and its topology.

    `raw` is what a file has; it may lack anything, but what it has must be valid. Shares nothing mutable with it, or
    with the defaults. Relative paths of components become absolute.
    """
    profile = merge(presets.DEFAULTS, {})
    payload = raw.get("release", {}).get("payload", profile["release"]["payload"])
    topology = raw.get("topology", profile["topology"])
    profile |= {role: {**presets.MACHINE, **sizes} for role, sizes in preset(topology, payload).items()}
    if payload == "lab":
        profile = merge(profile, {"settings": lab_settings(_replaced(raw)), "release": {"version": LAB_VERSION}})
    if raw.get("addressing") == "slaac":
        profile = merge(profile, {"network": {"ipv6": presets.SLAAC_IPV6}})
    profile = merge(profile, raw)
    outside.add_machines(profile)
    iscsi.add_networks(profile)
    if profile["machines_from"]:
        profile["nodes"] = merge(inventory.nodes(cast(Profile, profile)), profile["nodes"])
    profile["settings"] = {name: str(value) for name, value in profile["settings"].items()}
    release = profile["release"]
    if release["image"] is None and release["version"] and payload in DISTRIBUTIONS:
        release["image"] = DISTRIBUTIONS[payload].image(release["version"], profile["arch"])
    release["payload_overrides"] = {
        name: overrides.absolute(source) for name, source in release["payload_overrides"].items()
    }
    for field in ("binary", "git"):
        # The stages run as root, whose home is another.
        if str(release["installer"][field]).startswith("~"):
            release["installer"][field] = str(FilePath(release["installer"][field]).expanduser())
    if release["profile"] is None:
        line = ".".join((release["version"] or "").split(".")[:2])
        release["profile"] = line if line in RELEASES else LATEST.name
    return cast(Profile, profile)


def _replaced(raw: Mapping[str, Any]) -> list[str]:
    """Return the components of a profile that run other programs than the lab's."""
    return [
        name for name, source in ((raw.get("release") or {}).get("payload_overrides") or {}).items() if source != FAILS
    ]


def _renamed(raw: Mapping[str, object], wrong: list[Mismatch]) -> tuple[dict[str, Any], dict[Path, Path]]:
    """Return a profile in which misspelled fields have their right names, and each of these with the path as it was written."""
    right, renamed = merge(raw, {}), {}
    for one in wrong:
        if one.meant is None or not _alike(str(one.path[-1]), str(one.meant[-1])):
            continue
        holder = right
        for key in one.path[:-1]:
            holder = holder[key]
        if one.meant[-1] not in holder:
            holder[one.meant[-1]] = holder.pop(one.path[-1])
            renamed[one.meant] = one.path
    return right, renamed


def _as_written(path: Path, renamed: Mapping[Path, Path]) -> Path:
    for right, written in renamed.items():
        if path[: len(right)] == right:
            return (*written, *path[len(right) :])
    return path


def _alike(one: str, other: str) -> bool:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio() >= _ALIKE


def _without_wrong_fields(
    raw: Mapping[str, object], wrong: list[Mismatch], twice: list[Path]
) -> tuple[dict[str, Any], list[Path], list[Path]]:
    """Return a profile without its wrong fields, the paths of all whose value is not known because of them, and its gone entries.

    A gone entry is one of a list of `_ENTRIES` with a wrong field; those behind it have moved up.
    """
    sound: dict[str, Any] = merge(raw, {})
    withheld = [path for path in twice if _entry(path) is None]
    gone = {entry for path in twice if (entry := _entry(path))}
    for one in wrong:
        entry = _entry(one.path)
        if one.choice is not None and _alike(str(one.value), one.choice):
            _put(sound, one.path, one.choice)
        elif entry:
            gone.add(entry)
        else:
            withheld += [_drop(sound, one.path), *([one.meant] if one.meant else [])]
    for source, derived in _DERIVED.items():
        if any(path == source[: len(path)] for path in withheld):
            withheld += [(name,) for name in derived]
    ordered = sorted(gone, key=lambda path: path[-1])
    for entry in reversed(ordered):
        _remove(sound, entry)
    return sound, withheld, ordered


def _entry(path: Path) -> Path | None:
    """Return the path of the entry of a list of `_ENTRIES` that `path` is or is in; None when there is none."""
    for depth in range(1, len(path)):
        if path[depth - 1] in _ENTRIES and isinstance(path[depth], int):
            return path[: depth + 1]
    return None


def _remove(raw: Any, entry: Path) -> None:
    """Remove an entry of a list; nothing is done when the list has gone with a wrong field around it."""
    for key in entry[:-1]:
        if isinstance(raw, dict) and key not in raw:
            return
        raw = raw[key]
    del raw[entry[-1]]


def _as_listed(path: Path, gone: list[Path]) -> Path:
    """Return the path in the file of a field that was found when the entries `gone`, in their order, were not there."""
    for entry in gone:
        depth = len(entry)
        if path[: depth - 1] == entry[:-1] and len(path) >= depth and path[depth - 1] >= entry[-1]:
            path = (*entry[:-1], path[depth - 1] + 1, *path[depth:])
    return path


def _drop(raw: dict[str, Any], path: Path) -> Path:
    """Remove the field at `path`, or the list that it is in; return the path of what is removed."""
    node = raw
    for depth, key in enumerate(path[:-1], 1):
        if not isinstance(node.get(key), dict):
            node.pop(key, None)
            return path[:depth]
        node = node[key]
    node.pop(path[-1], None)
    return path


def _put(raw: Any, path: Path, value: object) -> None:
    for key in path[:-1]:
        raw = raw[key]
    raw[path[-1]] = value
