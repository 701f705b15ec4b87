"""What the CoreOS libraries raise."""

from __future__ import annotations


class CoreosError(Exception):
    """An image, archive or argument cannot be used. The text is one message for people."""


class NotFound(CoreosError):
    """A path does not exist in an image."""
