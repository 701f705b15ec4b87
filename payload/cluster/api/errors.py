"""Errors of the API, as Status objects (`meta/v1`), and how an answer is written."""

from __future__ import annotations

import json
from collections.abc import Mapping

from aiohttp import web

from ..resources import Resource
from ..store import Object

JSON = "application/json"


class ApiError(Exception):
    """An error that is returned as a Status object."""

    def __init__(self, code: int, reason: str, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self) -> Object:
        """Return the Status object."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        if self.details:
            body["details"] = self.details
        return body


def not_found(resource: Resource, name: str) -> ApiError:
    """Return the error for an object that does not exist."""
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    return ApiError(404, "NotFound", f'{resource.key} "{name}" not found', details)


def no_such_path() -> ApiError:
    """Return the error for a URL without a resource."""
    return ApiError(404, "NotFound", "the server could not find the requested resource")


def invalid(resource: Resource, name: str, message: str) -> ApiError:
    """Return the error for an object that validation refuses; `message` begins with the field."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    return ApiError(
        422,
        "Invalid",
        f'{kind} "{name}" is invalid: {message}',
        {"name": name, "group": resource.group, "kind": resource.kind},
    )


def respond(body: object, code: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return an answer with this JSON."""
    return web.Response(
        body=json.dumps(body, separators=(",", ":")).encode(), status=code, content_type=JSON, headers=headers
    )
