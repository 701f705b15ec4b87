"""From a configuration of dev-scripts to a profile.

Each variable that the configuration sets is mapped, ignored with a note, or refused with the reason; nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..plan import rundir
from . import configs, mapping, nodes
from .builder import Builder, Refusal
from .shell import Assignment, ShellError, parse

# In this order: the number of nodes is needed by what follows it.
_STEPS = (
    mapping.cluster, mapping.release, nodes.nodes, mapping.network, nodes.boot, configs.installer, mapping.services,
)  # fmt: skip


class Import(NamedTuple):
    """What a configuration came to.

    raw: the profile. options: options of `agentlab deploy` that belong to it. mapped: variable -> fields or options;
    ignored: variable -> note. refused: everything that has no counterpart; the profile is then without it.
    """

    raw: dict[str, Any]
    options: dict[str, str]
    mapped: dict[str, str]
    ignored: dict[str, str]
    refused: list[Refusal]

    def profile_text(self) -> str:
        """Return the profile as YAML, with a comment for what it does not say."""
        options = "".join(f" --{name} {value}" for name, value in self.options.items())
        lines = ["# From a configuration of dev-scripts.", f"# agentlab deploy PROFILE{options}"]
        lines += [f"# Refused: {line}" for refusal in self.refused for line in str(refusal).splitlines()]
        return "\n".join(lines) + "\n" + (rundir.dump(self.raw) if self.raw else "{}\n")

    def report(self) -> str:
        """Return what became of each variable, in three lists."""
        lists = (
            ("mapped", [f"{name} -> {text}" for name, text in self.mapped.items()]),
            ("ignored", [f"{name}: {text}" for name, text in self.ignored.items()]),
            ("refused", [str(refusal) for refusal in self.refused]),
        )
        lines = [", ".join(f"{len(entries)} {title}" for title, entries in lists)]
        for title, entries in lists:
            lines += [f"{title}:", *(f"  {entry}" for entry in entries)] if entries else []
        return "\n".join(lines)


class ConfigError(ValueError):
    """A configuration that cannot be imported: everything that is refused, a line each."""

    def __init__(self, result: Import) -> None:
        self.result = result
        super().__init__("\n".join(str(refusal) for refusal in result.refused))


def read(
    sources: Iterable[tuple[str, str]], known: Mapping[str, str], *, folder: Path | None = None, partial: bool = False
) -> Import:
    """Return the profile for configurations, (name, text) each; later ones win, as later lines do.

    known: variables that they may use, such as HOME. folder: what relative paths are relative to. partial: return a profile
    although something is refused. Raises `ShellError` for a text that is not a list of assignments, `ConfigError`.
    """
    assignments: dict[str, Assignment] = {}
    values, problems = dict(known), []
    for name, text in sources:
        try:
            for found in parse(text, name, values):
                # Its place in the order is that of the last one.
                assignments.pop(found.name, None)
                assignments[found.name] = found
                values[found.name] = found.value
        except ShellError as error:
            problems.append(str(error))
    if problems:
        raise ShellError("\n".join(problems))
    result = _result(Builder(assignments, folder))
    if result.refused and not partial:
        raise ConfigError(result)
    return result


def _result(made: Builder) -> Import:
    made.common()
    for step in _STEPS:
        step(made)
    made.finish()
    order = list(made.set)
    return Import(
        made.raw,
        made.options,
        {name: made.mapped[name] for name in order if name in made.mapped},
        {name: made.ignored[name] for name in order if name in made.ignored},
        sorted(made.refused, key=lambda refusal: order.index(refusal.variable) if refusal.variable else -1),
    )
