"""What schemathesis does not look at by itself; it loads this file by SCHEMATHESIS_HOOKS."""

from __future__ import annotations

from typing import Any

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection


@schemathesis.check
def wrong_data_refused(ctx: Any, response: Any, case: Any) -> bool | None:
    """negative_data_rejection, but for uploads: form fields beyond the file are as good as none, as with upstream's."""
    if case.operation.definition.raw["operationId"] in ("upload_logs", "V2UploadLogs"):
        return None
    return negative_data_rejection(ctx, response, case)


@schemathesis.check
def answer_type(ctx: Any, response: Any, case: Any) -> None:
    """An answer with content has its type, one that the description names; errors are JSON; what has no content has no type."""
    found = (response.headers.get("content-type") or [""])[0].partition(";")[0]
    operation = case.operation.definition.raw
    described = operation["responses"].get(str(response.status_code))
    if response.status_code >= 400:
        wanted = ["application/json"]
    elif described is None or "schema" not in described:
        assert response.content in (None, b""), f"content where none is described: {response.content[:80]!r}"
        wanted = [""]
    else:
        wanted = operation.get("x-produces") or ["application/json"]
    assert found in wanted, f"{response.status_code} has the type {found!r}, not {' or '.join(map(repr, wanted))}"
