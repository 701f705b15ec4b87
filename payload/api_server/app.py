"""HTTP side of the service: routes, authentication, request checks and the two error formats.

Runs on Debian 12's aiohttp 3.8. One request is one transaction: changes are committed before the answer goes out.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import HttpVersion11, web
from aiohttp.http_exceptions import HttpProcessingError

from . import limits, metrics, names
from .api import OPERATIONS, Operation, query_value
from .aside import QUICK, run_in_thread
from .auth import Local, RefusedCall
from .calls import HANDLERS, Call, Download
from .engine import Engine
from .errors import ApiError
from .handlers.logs import logs_path  # and with its package all handlers, which register their operations
from .models import MODELS, Invalid, read_json
from .schema import Kind, parameter
from .store import Unwritable

LOG = logging.getLogger("assisted-service")
#: Prefix of the names of log archives during the upload.
UNFINISHED = ".upload-"
JSON_TYPES = ("application/json",)
FILE_TYPE = "application/octet-stream"
PAGE = Path(__file__).with_name("page.html")


def error(status: int, reason: str) -> web.Response:
    """Return an error response of an operation.

    The body is the description's `error` (`kind`, `id`, `href`, `code`, `reason`), or `infra_error` for 401 and 403.
    """
    if status in (401, 403):
        return refusal(status, reason)
    return _json({"kind": "Error", "id": status, "href": "", "code": str(status), "reason": reason}, status)


def refusal(status: int, message: str) -> web.Response:
    """Return an error response for a request that reaches no operation: the description's `infra_error`.

    For authentication, path, type and schema. The body has `code` (a number) and `message`; clients read both formats.
    """
    return _json({"code": status, "message": message}, status)


def accepts_type(headers: list[str], wanted: str) -> bool:
    """Return whether a client with these Accept headers accepts a type; without the header it accepts any.

    `headers` are all values of the header, `wanted` a media type in lower case. Weights (`q=0`) are ignored.
    """
    ranges = [part.partition(";")[0].strip().lower() for text in headers for part in text.split(",")]
    return not any(ranges) or not {"*/*", f"{wanted.partition('/')[0]}/*", wanted}.isdisjoint(ranges)


def body_limit(op: Operation) -> int:
    """Return the maximum size of an operation's JSON body, in bytes.

    Requests of agents (scheme `agentAuth` alone) have a smaller limit than those of users; `limits.LARGER` names the
    operations that need more.
    """
    usual = limits.MAX_NOTICE if op.schemes == ("agentAuth",) else limits.MAX_BODY
    return limits.LARGER.get(op.handler, usual)


async def _decoded(op: Operation, kind: Kind, raw: bytes) -> Any:
    """The body of a request as the operation's model describes it; what is large is decoded in a thread."""
    try:
        value = await read_json(raw, "unexpected EOF")
    except Invalid as err:
        raise Invalid(f'parsing {op.body_name} body from "" failed, because {err}') from None
    if len(raw) <= QUICK:
        return MODELS.body(kind, value, op.body_name)
    body = await run_in_thread(MODELS.body, kind, value, op.body_name)
    if isinstance(body, dict):
        for name, entries in body.items():
            if isinstance(entries, list) and len(entries) > limits.MAX_ENTRIES and name != "static_network_config":
                raise Invalid(f"{name} in body should have at most {limits.MAX_ENTRIES} items")
    return body


def _json(value: object, status: int = 200) -> web.Response:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return web.Response(body=text.encode("utf-8", "replace"), status=status, content_type="application/json")


#: What answers a request.
Serve = Callable[[web.Request], Awaitable[web.StreamResponse]]


class NoContent(web.Response):
    """A response without content.

    It is sent without Content-Type, as Go's server does; for successes with nothing to return.
    """


async def _no_type_of_nothing(request: web.Request, response: web.StreamResponse) -> None:
    """As Go's server, which sends Content-Type only with content."""
    if isinstance(response, NoContent):
        response.headers.popall("Content-Type", None)


async def _no_guesses(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["X-Content-Type-Options"] = "nosniff"


async def _expect(request: web.Request) -> None:
    """Replace aiohttp's handler, which repeats the header in its response and fails for bytes that are not text."""
    if request.version == HttpVersion11:
        if request.headers.get("Expect", "").lower() != "100-continue":
            raise web.HTTPExpectationFailed(text="the Expect header is not 100-continue")
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


async def _unknown_path(request: web.Request) -> web.StreamResponse:
    """Handle unknown paths; a route of its own, because aiohttp's default has no Expect handler of ours."""
    allowed: set[str] = set()
    for resource in request.app.router.resources():
        if resource.canonical != "/{tail}":
            allowed |= (await resource.resolve(request))[1]
    raise web.HTTPMethodNotAllowed(request.method, allowed) if allowed else web.HTTPNotFound


class Service:
    """The engine behind HTTP. `app()` returns the aiohttp application; monitors run while it runs.

    Errors become responses here, in one place (`_guarded`), with the status that upstream has for the case. Without
    authentication, requests for a foreign host name are refused with 421.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        key = engine.config.get("EC_PUBLIC_KEY_PEM")
        local = engine.config.auth_type == "agent-installer-local"
        self.auth = Local(key, one_token=engine.config.one_token) if local else None
        self.connections = limits.Connections()
        self.bodies = limits.RequestBodies()
        #: Requests in progress.
        self.inflight = 0
        #: Log archives that are being uploaded: path -> the stream they come from.
        self._uploads: dict[Path, Any] = {}

    def app(self) -> web.Application:
        """Return the aiohttp application: the operations of the description, `/`, `/health`, `/ready` and `/metrics`.

        The monitors start and end with it, and the store is closed after the last request. Call it once.
        """
        app = web.Application(client_max_size=limits.MAX_REPLY, middlewares=[self._guard])
        routes = [
            web.route(
                op.method,
                op.path,
                self._route(op),
                expect_handler=_expect,
                **({"allow_head": False} if op.method == "GET" else {}),
            )
            for op in OPERATIONS
        ]
        pages = {"/": self._page, "/health": self._health, "/ready": self._health, "/metrics": self._metrics}
        app.add_routes([*routes, *(web.get(path, page, expect_handler=_expect) for path, page in pages.items())])
        app.add_routes([web.route("*", "/{tail:.*}", _unknown_path, expect_handler=_expect)])
        app.cleanup_ctx.append(self._monitors)
        app.on_response_prepare.extend((_no_type_of_nothing, _no_guesses))
        return app

    async def _monitors(self, app: web.Application) -> Any:
        for leftover in self.engine.config.data_dir.glob(f"logs/*/{UNFINISHED}*"):
            leftover.unlink()
        loop = asyncio.get_running_loop()
        task, watch = loop.create_task(self.engine.run()), loop.create_task(self.connections.watch())
        yield
        watch.cancel()
        await self.engine.stop()
        await task
        try:
            self.engine.store.close()
        except Unwritable as err:
            LOG.error("the service ends: %s", err)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Serve) -> web.StreamResponse:
        self.connections.enter(request.protocol)
        self.inflight, began, code = self.inflight + 1, time.perf_counter(), "0"
        try:
            answer = await self._guarded(request, handler)
            code = str(answer.status)
            return answer
        finally:
            self.inflight -= 1
            self.connections.leave(request.protocol)
            self._timed(request, code, time.perf_counter() - began)

    def _timed(self, request: web.Request, code: str, seconds: float) -> None:
        """Count a request by its route, never by the path that the client sent."""
        resource = request.match_info.route.resource
        route = resource.canonical if resource is not None and resource.canonical != "/{tail}" else "unknown"
        method = request.method if request.method in ("GET", "POST", "PUT", "PATCH", "DELETE") else "other"
        self.engine.metrics.observe("http_request_duration_seconds", seconds, "assisted-service", route, method, code)

    async def _guarded(self, request: web.Request, handler: Serve) -> web.StreamResponse:
        if self.auth is None and not self._is_served(request):
            return refusal(421, f"{request.host} is not a name of this service: use its address")
        try:
            answer: web.StreamResponse = await handler(request)
            return answer
        except RefusedCall as err:
            return refusal(err.status, err.message)
        except Unwritable as err:
            LOG.error("%s %s: %s", request.method, request.path, err)
            return error(503, str(err))
        except ApiError as err:
            self.engine.store.try_commit()
            return error(err.status, err.reason) if err.reason else _json(None, err.status)
        except Invalid as err:
            return refusal(400, str(err))
        except web.HTTPMethodNotAllowed as err:
            allowed = ",".join(sorted({*err.allowed_methods} - {"HEAD"}))
            return refusal(405, f"method {request.method} is not allowed, but [{allowed}] are")
        except web.HTTPNotFound:
            return refusal(404, f"path {request.path} was not found")
        except web.HTTPException as err:
            if err.status < 400:
                raise
            return refusal(err.status, err.reason)
        except (ConnectionResetError, asyncio.CancelledError):
            raise
        except Exception:
            LOG.exception("%s %s failed", request.method, request.path)
            return error(500, "internal error, see the service's log")

    def _route(self, op: Operation) -> Serve:
        function = HANDLERS[op.handler]
        wanted = FILE_TYPE if op.file else JSON_TYPES[0]

        async def serve(request: web.Request) -> web.StreamResponse:
            scheme = op.schemes[0] if op.schemes else ""
            if self.auth is not None and op.schemes:
                scheme = self.auth.authorize(op.schemes, request.headers)
            call = Call(dict(request.match_info), headers=request.headers, scheme=scheme)
            if not accepts_type(request.headers.getall("Accept", []), wanted):
                raise Invalid(f"unsupported media type requested, only [{wanted}] are available")
            for one in op.in_path:
                parameter(one.kind, call.path[one.name], one.name, "path")
            for one in op.query:
                if request.query.get(one.name):
                    call.query[one.name] = query_value(one, request.query.getall(one.name))
                elif one.required:
                    raise Invalid(f"{one.name} in query is required")
            if op.upload:
                await self._receive(request, call)
            elif op.body is not None:
                raw = await self.bodies.read(request, body_limit(op))
                if not raw:
                    raise Invalid(f"{op.body_name} in body is required")
                if request.content_type not in JSON_TYPES:
                    shown = request.headers.get("Content-Type", "")[:80]
                    raise Invalid(f'unsupported media type "{shown}", only [application/json] are allowed')
                call.body = await _decoded(op, op.body, raw)
            self.engine.store.begin()
            began = time.perf_counter()
            result = function(self.engine, call)
            if inspect.isawaitable(result):  # awaits happen only before any change
                result = await result
            self.engine.metrics.observe(
                "operation_duration_miliseconds", (time.perf_counter() - began) * 1000, op.handler
            )
            if op.method == "GET":
                self.engine.store.try_commit()
            else:
                await self.engine.store.durable()
            return self._answer(op, result)

        return serve

    @staticmethod
    def _answer(op: Operation, result: object) -> web.StreamResponse:
        if isinstance(result, Download):
            if result.status:
                return NoContent(status=result.status)
            if result.json:
                headers = {**result.headers, "Content-Type": "application/json"}
                return web.Response(
                    body=result.content if result.stream is None else result.stream, status=op.status, headers=headers
                )
            name = quote(result.name, safe="._-")
            headers = {"Content-Disposition": f'attachment; filename="{name}"'}
            # Not a FileResponse: it supports ranges and conditions, which the description does not have.
            body: Any = result.content if result.stream is None else result.stream
            if result.path:
                body = open(result.path, "rb")  # noqa: SIM115 closed when it was sent
            return web.Response(body=body, status=op.status, headers={**headers, "Content-Type": FILE_TYPE})
        if result is None:
            return NoContent(status=op.status)
        return _json(result, op.status)

    async def _receive(self, request: web.Request, call: Call) -> None:
        """Write the form's file field `upfile` to its path; the file name that the sender gives is ignored."""
        path = logs_path(self.engine, call)
        if not request.content_type.startswith("multipart/"):
            raise Invalid("the body should be multipart/form-data with a file field upfile")
        if path in self._uploads:
            # Its sender may be gone; and uploads of one host must not fill the disk.
            self._uploads[path].set_exception(Invalid("another upload of these logs began"))
        self._uploads[path] = request.content
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            reader = await request.multipart()
            while (part := await asyncio.wait_for(reader.next(), limits.PIECE_SECONDS)) is not None:
                if getattr(part, "name", None) == "upfile":
                    await self._save(part, path)
                    return
        except TimeoutError:
            raise Invalid(f"no data of the form arrived for {limits.PIECE_SECONDS:.0f} seconds") from None
        except OSError as err:
            LOG.error("logs of %s: %s", path.name, err)
            raise ApiError(503, f"the logs cannot be stored: {err.strerror}") from None
        except (
            ValueError,
            AssertionError,
            KeyError,
            RuntimeError,
            HttpProcessingError,
            web.RequestPayloadError,
        ) as err:
            raise Invalid(f"the form cannot be read: {' '.join(str(err).split())[:200]}") from None
        finally:
            if self._uploads.get(path) is request.content:
                del self._uploads[path]
        raise Invalid("upfile in form is required")

    @staticmethod
    async def _save(part: Any, path: Path) -> None:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=UNFINISHED)
        size = 0
        try:
            with os.fdopen(handle, "wb") as file:
                while chunk := await asyncio.wait_for(part.read_chunk(65536), limits.PIECE_SECONDS):
                    size += len(chunk)
                    if size > limits.MAX_LOGS:
                        raise Invalid(f"the log archive is larger than {limits.MAX_LOGS} bytes")
                    if shutil.disk_usage(path.parent).free < limits.LEAST_FREE + len(chunk):
                        raise ApiError(503, "no space left for logs")
                    file.write(chunk)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _is_served(self, request: web.Request) -> bool:
        config, clusters = self.engine.config, self.engine.clusters.values()
        urls = (config.get("SERVICE_BASE_URL"), config.get("IMAGE_SERVICE_BASE_URL"))
        domains = (str(cluster.get("base_dns_domain") or "") for cluster in clusters)
        return names.is_served(request.headers.get("Host", ""), urls, domains)

    async def _page(self, request: web.Request) -> web.Response:
        headers = {
            "Content-Security-Policy": "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; "
            "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
            "Referrer-Policy": "no-referrer",
        }
        return web.Response(text=PAGE.read_text(encoding="utf-8"), content_type="text/html", headers=headers)

    async def _metrics(self, request: web.Request) -> web.Response:
        usage = shutil.disk_usage(self.engine.config.data_dir)
        self.engine.metrics.set("filesystem_usage_percentage", 100 * usage.used / usage.total)
        self.engine.metrics.set("http_requests_inflight", self.inflight)
        return web.Response(text=self.engine.metrics.text(), headers={"Content-Type": metrics.CONTENT_TYPE})

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="")
