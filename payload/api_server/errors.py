"""The refusal of an operation."""

from __future__ import annotations


class ApiError(Exception):
    """A request that cannot be done: HTTP status and reason. Without a reason the answer's body is null."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason
