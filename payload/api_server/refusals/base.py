"""What several refusals share, and files that are not there yet."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import ApiError
from ..tables import DOWNLOADABLE


def raise_all(problems: Iterable[str]) -> None:
    """Raise ApiError with all problems, in the format of Go's multierror; do nothing without problems.

    `problems` may be a generator. A list of one has the singular; upstream's clients show the text as it is.
    """
    found = list(problems)
    if found:
        count = "1 error" if len(found) == 1 else f"{len(found)} errors"
        raise ApiError(400, f"{count} occurred:\n\t" + "\n\t".join(f"* {text}" for text in found) + "\n\n")


def go_list(values: Iterable[str]) -> str:
    return f"[{' '.join(values)}]"


def downloadable(ident: str, status: str, file: str = "files", more: tuple[str, ...] = ()) -> None:
    """Refuse with 409 files of an installation that has not started; `more`: additional statuses that allow this file.

    `status` is that of the cluster `ident`, `file` how the message names what was asked for. DOWNLOADABLE are the usual
    statuses.
    """
    allowed = (*DOWNLOADABLE, *more)
    if status not in allowed:
        raise ApiError(
            409,
            f"cluster {ident} is in {status} state, {file} can be downloaded only when status is one of: {go_list(allowed)}",
        )
