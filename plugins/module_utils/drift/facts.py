"""Facts of a source, changes between two commits, and disagreements with ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

Facts = Mapping[str, Mapping[str, str]]
"""Section -> name -> value, such as `routes` -> `GET /v2/clusters` -> `v2ListClusters`."""


class Change(NamedTuple):
    """A fact that differs between two commits; before or after is None when it was added or removed."""

    section: str
    name: str
    before: str | None
    after: str | None


class Disagreement(NamedTuple):
    """A fact of upstream that ours do not agree with. The name identifies it in `ci/canary.yml`, as `section/name`."""

    section: str
    name: str
    text: str

    @property
    def fact(self) -> str:
        """The name in `ci/canary.yml`."""
        return f"{self.section}/{self.name}"


def changes(before: Facts, after: Facts) -> Iterator[Change]:
    """Yield what differs between the facts of two commits, by section and name."""
    for section in [*after, *(name for name in before if name not in after)]:
        old, new = before.get(section, {}), after.get(section, {})
        for name in sorted({*old, *new}):
            if old.get(name) != new.get(name):
                yield Change(section, name, old.get(name), new.get(name))


def disagreements_in(
    section: str, upstream: Mapping[str, str], ours: Mapping[str, str], *, missing: bool = True, gone: bool = True
) -> Iterator[Disagreement]:
    """Yield the names that one side alone has, and those with another value.

    missing: also what ours lack; gone: also what upstream lacks.
    """
    for name in sorted({*upstream, *ours}):
        if name not in ours:
            if missing:
                yield Disagreement(section, name, "upstream has it, agentlab does not")
        elif name not in upstream:
            if gone:
                yield Disagreement(section, name, "agentlab has it, upstream does not")
        elif upstream[name] != ours[name]:
            yield Disagreement(section, name, f"upstream: {upstream[name]}; agentlab: {ours[name]}")


def facts_of_names(names: Mapping[str, str] | set[str] | frozenset[str]) -> dict[str, str]:
    """Return names as facts without a value."""
    return dict.fromkeys(sorted(names), "")
