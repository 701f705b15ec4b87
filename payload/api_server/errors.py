"""Error responses of operations."""

from __future__ import annotations


class ApiError(Exception):
    """A refused request: HTTP status and reason. Without a reason the response body is null."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
