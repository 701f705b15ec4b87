"""The lab's file server: GET and HEAD with ranges, a separate program that needs aiohttp: `python3 httpd.py ROOT PORT NAME [ADDRESS...]`.

NAME is its own name; it answers only to that and to addresses, so that pages with other names cannot read images through a browser.
Without an address it listens on all. Links below ROOT are followed, so a published file need not be copied.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable


def is_served(host: str, own: str) -> bool:
    """Return whether `Host` is an address, a name of one label, or the server's own name."""
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return (
        name.startswith("[")
        or name.replace(".", "").isdigit()
        or "." not in name
        or name.lower().rstrip(".") == own.lower()
    )


def main(root: str, port: int, own: str, addresses: list[str]) -> None:
    from aiohttp import web

    @web.middleware
    async def guard(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not is_served(request.headers.get("Host", ""), own):
            raise web.HTTPMisdirectedRequest(text=f"{request.host} is not a name of this server\n")
        return await handler(request)

    async def headers(request: web.Request, response: web.StreamResponse) -> None:
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Content-Security-Policy"] = "default-src 'none'; frame-ancestors 'none'"

    application = web.Application(middlewares=[guard])
    application.on_response_prepare.append(headers)
    application.router.add_static("/", root, follow_symlinks=True, show_index=True)
    web.run_app(application, host=addresses or None, port=port, access_log=None, print=None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
