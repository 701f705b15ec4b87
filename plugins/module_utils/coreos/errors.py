"""What the CoreOS libraries raise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import AgentlabError


class CoreosError(AgentlabError):
    """An image, archive or argument cannot be used."""


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Put the name of the file that is read in front of errors that do not have it."""
    try:
        yield
    except CoreosError as error:
        if str(path) in str(error):
            raise
        raise CoreosError(f"{path}: {error}") from error


class NotFound(CoreosError):
    """A path does not exist in an image."""
