"""Error responses of operations."""

from __future__ import annotations


class ApiError(Exception):
    """A refused request: HTTP status and reason. Without a reason the response body is null.

    Raised by handlers and the engine; the HTTP layer makes the response (`app.error`). Texts are upstream's where it
    has one.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
