"""The page of a comparison, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .facts import Change, Disagreement

_MOST = 200


class Comparison(NamedTuple):
    """A source that was compared.

    commits: the one that ours was compared with last and the one that is inspected, each with its date; the first is
    empty when the checkout does not have it. problem: why it could not be compared, empty if it was.
    """

    source: str
    commits: tuple[str, str] = ("", "")
    changes: Sequence[Change] = ()
    disagreements: Sequence[Disagreement] = ()
    accepted: Sequence[tuple[Disagreement, str]] = ()
    unused: Sequence[str] = ()
    problem: str = ""


def page(found: Sequence[Comparison]) -> str:
    """Return the page of all sources."""
    lines = ["# Drift", "", "What has changed upstream, and what of agentlab no longer agrees.", ""]
    lines += ["| source | from | to | changes | disagreements | accepted |", "|---|---|---|---|---|---|"]
    for one in found:
        numbers = [len(one.changes), len(one.disagreements), len(one.accepted)] if not one.problem else ["?"] * 3
        lines.append(
            f"| {one.source} | {one.commits[0] or '-'} | {one.commits[1] or '-'} | {' | '.join(map(str, numbers))} |"
        )
    for one in found:
        lines += ["", f"## {one.source}", ""]
        if one.problem:
            lines.append(f"Not compared: {one.problem}")
            continue
        lines += _list("No longer agrees", [f"`{d.fact}`: {d.text}" for d in one.disagreements])
        lines += _list("Changed upstream", [_change(change) for change in one.changes])
        lines += _list("Accepted", [f"`{d.fact}`: {d.text} ({reason})" for d, reason in one.accepted])
        lines += _list("Accepted, but no longer a difference", [f"`{fact}`" for fact in one.unused])
    return "\n".join(lines) + "\n"


def _list(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return [f"{title}: nothing.", ""]
    more = [f"- and {len(rows) - _MOST} more"] if len(rows) > _MOST else []
    return [f"{title}:", "", *(f"- {row}" for row in rows[:_MOST]), *more, ""]


def _change(change: Change) -> str:
    fact = f"`{change.section}/{change.name}`"
    if change.before is None:
        return f"{fact} is new{f': {change.after}' if change.after else ''}"
    if change.after is None:
        return f"{fact} is gone{f': {change.before}' if change.before else ''}"
    return f"{fact}: {change.before or 'nothing'} is now {change.after or 'nothing'}"
