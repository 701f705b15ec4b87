"""Errors of the CoreOS libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import AgentlabError


class CoreosError(AgentlabError, RuntimeError):
    """An image, archive or argument cannot be used.

    An image, a config or an argument that cannot be used; the message is one for users, as coreos-installer words it
    where that has one.
    """


@contextmanager
def prefix_errors(path: object) -> Iterator[None]:
    """Prefix errors with the name of the file that is read, unless they have it."""
    try:
        yield
    except CoreosError as error:
        if str(path) in str(error):
            raise
        raise CoreosError(f"{path}: {error}") from error


class NotFound(CoreosError):
    """A path does not exist in an image."""
