"""The lab's file server: GET and HEAD with ranges, by itself with aiohttp: `python3 httpd.py ROOT PORT [ADDRESS...]`.

Without an address it listens at all. Links below ROOT are followed, so a published file need not be copied.
"""

from __future__ import annotations

import sys


def main(root: str, port: int, addresses: list[str]) -> None:
    from aiohttp import web

    application = web.Application()
    application.router.add_static("/", root, follow_symlinks=True, show_index=True)
    web.run_app(application, host=addresses or None, port=port, access_log=None, print=None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
