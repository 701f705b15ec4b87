"""Stands between a client and an assisted service, and keeps what they say to each other.

    python -m ansible_collections.agentlab.ocp.tests.recorded.proxy --to http://127.0.0.1:8090 --listen 127.0.0.1:8091 \
        --out run.jsonl --description assisted-service-swagger.yaml

One exchange a line, tokens left out. With a description every exchange is checked against it; at its end (SIGINT or
SIGTERM) the proxy tells how many there were, of which operations, and what was wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
from aiohttp import web

from ..unit.api_server.description import Description

SCHEMES = {"X-Secret-Key": "agentAuth", "Authorization": "userAuth", "Watcher-Authorization": "watcherAuth"}
HOP = {"host", "connection", "transfer-encoding", "content-length", "content-encoding", "accept-encoding", "keep-alive"}


def decoded(raw: bytes, kind: str) -> Any:
    """A body as it is kept."""
    if not raw:
        return None
    if kind == "application/json":
        return json.loads(raw)
    if kind.startswith("text/"):
        return {"text": raw.decode(errors="replace")[:2000]}
    return {"bytes": len(raw)}


class Proxy:
    """`exchanges` counts them by operation and status, `wrong` what is not as described."""

    def __init__(self, target: str, out: Path | None, description: Description | None) -> None:
        self.target, self.description = target.rstrip("/"), description
        self.out = out.open("w") if out else None
        self.exchanges: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()

    async def handle(self, request: web.Request) -> web.Response:
        raw = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        try:
            async with self.session.request(
                request.method, self.target + request.raw_path, data=raw or None, headers=headers, allow_redirects=False
            ) as answer:
                body = await answer.read()
                status, found = answer.status, answer.headers
        except aiohttp.ClientError as error:
            return web.Response(status=502, text=f"{self.target}: {error}")
        self._keep(request, raw, status, decoded(body, found.get("Content-Type", "").partition(";")[0]))
        return web.Response(
            status=status, body=body, headers={name: value for name, value in found.items() if name.lower() not in HOP}
        )

    def _keep(self, request: web.Request, raw: bytes, status: int, answer: Any) -> None:
        scheme = next((name for header, name in SCHEMES.items() if request.headers.get(header)), "")
        body = decoded(raw, request.content_type)
        if self.out:
            entry = {"method": request.method, "path": request.raw_path, "scheme": scheme, "request": body,
                     "status": status, "answer": answer}  # fmt: skip
            self.out.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self.out.flush()
        if self.description is None:
            return
        try:
            operation = self.description.operation(request.method, request.path)["operationId"]
            self.exchanges[f"{operation} {status}"] += 1
            self.description.exchange(request.method, request.path, body, status, answer)
        except jsonschema.ValidationError as error:
            self.wrong[f"{request.method} {request.path} {status}: {error.json_path}: {error.message[:300]}"] += 1
        except AssertionError as error:
            self.wrong[str(error)[:300]] += 1

    async def _connect(self, app: web.Application) -> AsyncIterator[None]:
        timeout = aiohttp.ClientTimeout(total=600)
        async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as self.session:
            yield

    def app(self) -> web.Application:
        """The proxy as an application that a server of the caller's runs."""
        app = web.Application(client_max_size=1 << 30)
        app.router.add_route("*", "/{path:.*}", self.handle)
        app.cleanup_ctx.append(self._connect)
        return app

    async def run(self, host: str, port: int) -> None:
        runner = web.AppRunner(self.app(), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, host, port).start()
        over = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
        await over.wait()
        await runner.cleanup()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", required=True, help="URL of the service")
    parser.add_argument("--listen", required=True, metavar="HOST:PORT")
    parser.add_argument("--out", type=Path, help="where to keep the exchanges")
    parser.add_argument("--description", type=Path, help="the API's description, Swagger 2.0")
    options = parser.parse_args()
    proxy = Proxy(options.to, options.out, Description(options.description) if options.description else None)
    host, __, port = options.listen.rpartition(":")
    asyncio.run(proxy.run(host, int(port)))
    for text, count in sorted(proxy.exchanges.items()):
        print(f"{count:7} {text}")
    for text, count in proxy.wrong.most_common():
        print(f"WRONG {count} x {text}")
    print(f"{sum(proxy.exchanges.values())} exchanges, {sum(proxy.wrong.values())} not as described")
    return 1 if proxy.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
