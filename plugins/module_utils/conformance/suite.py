"""Selection and execution of the cases."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from ..errors import AgentlabError, ClusterError
from . import certificates, configuration, discovery, identities, leases, lists, objects, patches, watches
from .api import CaseFailed, CaseSkipped
from .model import CASES, Case, Lab

AREAS = (discovery, objects, patches, lists, watches, certificates, leases, configuration, identities)
"""The files of the cases."""


class NoCase(AgentlabError):
    """A pattern chooses no case; the text names the areas."""


class Result(NamedTuple):
    """Outcome of a case: neither `failure` nor `skipped` if it passed; seconds that it took."""

    case: Case
    seconds: float
    failure: str = ""
    skipped: str = ""


def selected_cases(patterns: Collection[str] = ()) -> list[Case]:
    """Return the cases whose ids match one of the patterns, all without patterns; an area alone chooses its cases.

    patterns: with the wildcards of a shell, as `watches/*`. Raises `NoCase` for a pattern that chooses none.
    """
    for pattern in patterns:
        if not any(_matches(name, pattern) for name in CASES):
            areas = ", ".join(area.__name__.rpartition(".")[2] for area in AREAS)
            raise NoCase(f"no case matches {pattern!r}; the areas are {areas}, and --list prints the cases")
    return [
        case for name, case in CASES.items() if not patterns or any(_matches(name, pattern) for pattern in patterns)
    ]


def run(lab: Lab, cases: Collection[Case], done: Callable[[], bool] = lambda: False) -> Iterator[Result]:
    """Run cases one after the other, and yield the result of each; `done` is called before each and ends the suite."""
    for case in cases:
        if done():
            return
        begin = time.monotonic()
        failure = skipped = ""
        try:
            case.function(lab)
        except CaseSkipped as reason:
            skipped = str(reason)
        except (CaseFailed, ClusterError) as error:
            failure = str(error) or type(error).__name__
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            # The answer has another form than the case reads.
            failure = f"unexpected response format: {type(error).__name__}: {error}"
        yield Result(case, time.monotonic() - begin, failure, skipped)


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or name.startswith(f"{pattern}/")
