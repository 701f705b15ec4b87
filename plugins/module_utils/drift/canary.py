"""The table of sources and accepted differences: `ci/canary.yml`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ..documents import load_yaml, read_file
from .facts import Disagreement

SOURCES = ("installer", "assisted-service", "agent", "dev-scripts")


class Source(NamedTuple):
    """An upstream project: its URL, and the commit that ours was compared with last, empty if there is none."""

    repository: str
    commit: str


class AcceptedDifference(NamedTuple):
    """A difference that is known: facts of a source, as a pattern of `section/name`, with the reason."""

    source: str
    fact: str
    reason: str


class Canary(NamedTuple):
    """The table."""

    sources: dict[str, Source]
    accepted: list[AcceptedDifference]

    def split(
        self, source: str, found: Iterable[Disagreement]
    ) -> tuple[list[Disagreement], list[tuple[Disagreement, str]]]:
        """Return what is not accepted, and what is with its reason."""
        open_ones, known = list[Disagreement](), list[tuple[Disagreement, str]]()
        for one in found:
            reason = next((a.reason for a in self.accepted if a.source == source and _matches(one.fact, a.fact)), None)
            if reason is None:
                open_ones.append(one)
            else:
                known.append((one, reason))
        return open_ones, known

    def unused(self, source: str, found: Iterable[Disagreement]) -> list[str]:
        """Return the patterns of a source that match no disagreement any more."""
        facts = [one.fact for one in found]
        return [a.fact for a in self.accepted if a.source == source and not any(_matches(f, a.fact) for f in facts)]


def read(path: Path) -> Canary:
    """Return the table of a file. ValueError names the file and the field; OSError when it cannot be read."""
    data = load_yaml(read_file(path), name=str(path))
    if not isinstance(data, dict) or set(data) != {"sources", "accepted"}:
        raise ValueError(f"{path}: must be a mapping with the fields sources and accepted")
    sources: dict[str, Source] = {}
    for name, row in (data["sources"] or {}).items():
        if name not in SOURCES:
            raise ValueError(f"{path}: sources.{name}: is not a source; sources are {', '.join(SOURCES)}")
        if not isinstance(row, dict) or not {"repository"} <= set(row) <= {"repository", "commit"}:
            raise ValueError(f"{path}: sources.{name}: must have the field repository, and may have commit")
        commit = str(row.get("commit") or "")
        if commit and not re.fullmatch("[0-9a-f]{40}", commit):
            raise ValueError(f"{path}: sources.{name}.commit: {commit!r} is not a commit of 40 hexadecimal digits")
        sources[name] = Source(str(row["repository"]), commit)
    accepted = []
    for at, row in enumerate(data["accepted"] or ()):
        if not isinstance(row, dict) or set(row) != {"source", "fact", "reason"} or not row["reason"]:
            raise ValueError(f"{path}: accepted[{at}]: must have the fields source, fact and reason")
        if row["source"] not in SOURCES:
            raise ValueError(f"{path}: accepted[{at}].source: {row['source']!r} is not one of {', '.join(SOURCES)}")
        accepted.append(AcceptedDifference(str(row["source"]), str(row["fact"]), str(row["reason"])))
    return Canary(sources, accepted)


def _matches(fact: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(fact, pattern)
