"""HTTP side of the service: routes, authentication, request checks and the two shapes of errors.

Runs on Debian 12's aiohttp 3.8. One request is one transaction: changes are committed before the answer goes out.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from . import catalog, images
from .api import OPERATIONS, Operation, query_value
from .auth import Local, Refused
from .calls import HANDLERS, Call, Download
from .engine import ApiError, Engine
from .handlers import logs_path
from .models import MODELS, UUID, Invalid, parse_json

LOG = logging.getLogger("assisted-service")
#: Largest JSON body in bytes.
MAX_BODY = 32 * 2**20
#: Largest reply of an agent to a step: a connectivity report of a thousand hosts has about a megabyte.
MAX_REPLY = 8 * 2**20
#: Largest of all else that only agents and controllers say; each change of a progress text is kept as an event.
MAX_NOTICE = 256 * 2**10
#: Largest log archive in bytes.
MAX_LOGS = 512 * 2**20
#: Bytes of the file system that logs leave free: the service's state is kept there, too.
LEAST_FREE = 64 * 2**20
#: Headers of the description that are no text: name -> type.
TYPED_HEADERS = {"get_unregistered_clusters": "bool"}
PAGE = Path(__file__).with_name("page.html")
#: They enter their operations into HANDLERS when they are imported.
ENTERED = (catalog, images)


def error(status: int, reason: str, href: str = "") -> web.Response:
    """A refusal: `infra_error` for 401 and 403, `error` for the rest."""
    if status in (401, 403):
        body: dict[str, Any] = {"code": status, "message": reason}
    else:
        body = {"kind": "Error", "id": status, "href": href, "code": str(status), "reason": reason}
    return _json(body, status)


def most(op: Operation) -> int:
    """How many bytes the JSON body of an operation may have."""
    if op.handler == "post_reply":
        return MAX_REPLY
    return MAX_NOTICE if op.schemes == ("agentAuth",) else MAX_BODY


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return web.Response(
        body=text.encode("utf-8", "replace"), status=status, content_type="application/json", headers=headers
    )


class Service:
    """The engine behind HTTP. `app()` gives the aiohttp application; monitors run as long as it does."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        key = engine.config.get("EC_PUBLIC_KEY_PEM")
        self.auth = Local(key) if engine.config.auth_type == "agent-installer-local" else None

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._guard])
        routes = [
            web.route(op.method, op.path, self._route(op), allow_head=False)
            if op.method == "GET"
            else web.route(op.method, op.path, self._route(op))
            for op in OPERATIONS
        ]
        app.add_routes(
            [*routes, web.get("/", self._page), web.get("/health", self._health), web.get("/ready", self._health)]
        )
        app.cleanup_ctx.append(self._monitors)
        return app

    async def _monitors(self, app: web.Application) -> Any:
        task = asyncio.get_running_loop().create_task(self.engine.run())
        yield
        await self.engine.stop()
        await task
        self.engine.store.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            answer: web.StreamResponse = await handler(request)
            return answer
        except Refused as err:
            return error(err.status, err.message, request.path)
        except ApiError as err:
            self.engine.store.commit()
            return error(err.status, err.reason, request.path)
        except Invalid as err:
            return error(400, str(err), request.path)
        except web.HTTPException as err:
            if err.status < 400:
                raise
            reasons = {
                404: f"path {request.path} was not found",
                405: f"method {request.method} is not allowed on {request.path}",
                413: f"the body is larger than {MAX_BODY} bytes",
            }
            return error(400 if err.status == 413 else err.status, reasons.get(err.status, err.reason), request.path)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception:
            LOG.exception("%s %s failed", request.method, request.path)
            return error(500, "internal error, see the service's log", request.path)

    def _route(self, op: Operation) -> Any:
        function = HANDLERS[op.handler]

        async def serve(request: web.Request) -> web.StreamResponse:
            scheme = op.schemes[0] if op.schemes else ""
            if self.auth is not None and op.schemes:
                scheme = self.auth.authorize(op.schemes, request.headers)
            call = Call(dict(request.match_info), headers=request.headers, scheme=scheme)
            for name, kind in TYPED_HEADERS.items():
                if name in request.headers:
                    query_value(name, kind, [request.headers[name]], "header")
            for name, value in call.path.items():
                if name.endswith("_id") and name != "validation_id" and not UUID.fullmatch(value):
                    raise ApiError(404, f"{name} {value[:80]!r} is not a UUID")
            for name, (kind, required) in op.query.items():
                if name in request.query:
                    call.query[name] = query_value(name, kind, request.query.getall(name))
                elif required:
                    raise Invalid(f"{name} in query is required")
            if op.upload:
                await self._receive(request, call)
            elif op.body:
                if (request.content_length or 0) > most(op) or len(raw := await request.read()) > most(op):
                    raise Invalid(f"the body is larger than {most(op)} bytes")
                if not raw:
                    raise Invalid(f"a body of model {op.body} is required")
                call.body = MODELS.check(op.body, parse_json(raw))
            result = function(self.engine, call)
            self.engine.store.commit()
            return self._answer(op, result)

        return serve

    @staticmethod
    def _answer(op: Operation, result: Any) -> web.StreamResponse:
        if isinstance(result, Download):
            if result.status:
                return web.Response(status=result.status)
            if result.value is not None:
                return _json(result.value, op.status, result.headers)
            name = quote(result.name, safe="._-")
            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            if result.path:
                # With a type of its own aiohttp does not take the archive for an encoding of something else.
                return web.FileResponse(result.path, headers={**headers, "Content-Type": "application/octet-stream"})
            return web.Response(
                body=result.content if result.stream is None else result.stream, status=op.status, content_type="application/octet-stream", headers=headers
            )
        if result is None:
            return web.Response(status=op.status)
        return _json(result, op.status)

    async def _receive(self, request: web.Request, call: Call) -> None:
        """Writes the file field `upfile` of a form to its place; what the sender calls it does not matter."""
        path = logs_path(self.engine, call)
        if not request.content_type.startswith("multipart/"):
            raise Invalid("the body should be multipart/form-data with a file field upfile")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            reader = await request.multipart()
            while (part := await reader.next()) is not None:
                if getattr(part, "name", None) == "upfile":
                    await self._save(part, path)
                    return
        except (ValueError, AssertionError, KeyError) as err:
            raise Invalid(f"the form cannot be read: {str(err)[:200]}") from None
        raise Invalid("upfile in form is required")

    @staticmethod
    async def _save(part: Any, path: Path) -> None:
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        size = 0
        try:
            with os.fdopen(handle, "wb") as file:
                while chunk := await part.read_chunk(65536):
                    size += len(chunk)
                    if size > MAX_LOGS:
                        raise Invalid(f"the log archive is larger than {MAX_LOGS} bytes")
                    if shutil.disk_usage(path.parent).free < LEAST_FREE + len(chunk):
                        raise ApiError(503, "no room is left for logs")
                    file.write(chunk)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    async def _page(self, request: web.Request) -> web.Response:
        headers = {
            "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
        }
        return web.Response(text=PAGE.read_text(encoding="utf-8"), content_type="text/html", headers=headers)

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="")
