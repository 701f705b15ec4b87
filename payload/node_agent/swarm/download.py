"""Downloads of a host before it registers, as its machine makes them: the bytes are discarded.

A machine with virtual media reads the ISO in ranges, the live system's initramfs fetches the root file system as a whole, and
Ignition its config. Where they are is the service's answer: `image-url`, the iPXE script, `discovery.ign`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from ....plugins.module_utils._deps import optional
from ....plugins.module_utils.documents import load_json
from ..protocol import API
from .settings import Settings
from .stats import Stats

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = optional("aiohttp")

RANGE = 1 << 20
EDGE = 64 << 10
"""Bytes that the firmware reads at each end of the medium: partition table and its backup."""
SILENCE_SECONDS = 60.0
BLOCK = 256 << 10
_ROOTFS = re.compile(r"\bcoreos\.live\.rootfs_url=(\S+)")
_RANGE = re.compile(r"bytes \d+-\d+/(\d+)")


class DownloadError(Exception):
    """A file cannot be downloaded; its message."""


class Downloads:
    """Downloads for the hosts of a swarm; `stats` gets the time of each request and file, and the bytes."""

    def __init__(self, session: aiohttp.ClientSession, settings: Settings, stats: Stats) -> None:
        self._session, self._settings, self._stats = session, settings, stats
        self._places: dict[tuple[str, str], str] = {}
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=SILENCE_SECONDS, sock_read=SILENCE_SECONDS)

    async def fetch(self, kind: str, infra_env: str) -> None:
        """Download a file of an infra-env (`iso`, `rootfs` or `ignition`). Raises `DownloadError`."""
        loop = asyncio.get_running_loop()
        try:
            url = self._places.get((kind, infra_env)) or await self._place(kind, infra_env)
            self._places[kind, infra_env] = url
            started, size = loop.time(), 0
            async for part in self._ranges(kind, url) if kind == "iso" else self._read_all(kind, url):
                size += part
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise DownloadError(f"cannot download the {kind}: {error or type(error).__name__}") from error
        self._stats.downloaded(kind, size, loop.time() - started)

    async def _place(self, kind: str, infra_env: str) -> str:
        files = f"{self._settings.url}{API}/infra-envs/{infra_env}/downloads"
        if kind == "ignition":
            return f"{files}/files?file_name=discovery.ign"
        if kind == "iso":
            found = load_json(await self._text(f"{files}/image-url"), name="image-url")
            if not isinstance(found, dict) or not isinstance(found.get("url"), str):
                raise ValueError("image-url: the answer has no url")
            return str(found["url"])
        script = _ROOTFS.search(await self._text(f"{files}/files?file_name=ipxe-script"))
        if not script:
            raise ValueError("the iPXE script has no coreos.live.rootfs_url")
        return script[1]

    async def _text(self, url: str) -> str:
        async with self._session.get(url, headers=self._user()) as answer:
            text = await answer.text()
            if answer.status != 200:
                raise ValueError(f"{url}: HTTP {answer.status}: {text[:200]}")
            return text

    def _user(self) -> Mapping[str, str]:
        return {"Authorization": self._settings.user_token} if self._settings.user_token else {}

    async def _ranges(self, kind: str, url: str) -> AsyncIterator[int]:
        """Read a medium: its first bytes, which contain its size, its last ones, and everything between, in order."""
        first, whole = await self._range(kind, url, 0, EDGE)
        yield first
        if whole <= first:
            return
        at = first
        if whole - EDGE > at:
            yield (await self._range(kind, url, whole - EDGE, whole))[0]
        while at < whole:
            end = min(at + RANGE, whole)
            yield (await self._range(kind, url, at, end))[0]
            at = end

    async def _range(self, kind: str, url: str, start: int, end: int) -> tuple[int, int]:
        """Return how many bytes came, and the size of the whole file; a server without ranges sends all."""
        size, answer = await self._get(kind, url, {"Range": f"bytes={start}-{end - 1}"})
        found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        return size, int(found[1]) if found else size

    async def _read_all(self, kind: str, url: str) -> AsyncIterator[int]:
        yield (await self._get(kind, url, {}))[0]

    async def _get(self, kind: str, url: str, headers: Mapping[str, str]) -> tuple[int, aiohttp.ClientResponse]:
        own = self._user() if url.startswith(self._settings.url + "/") else {}
        loop = asyncio.get_running_loop()
        started, size, status = loop.time(), 0, 0
        try:
            async with self._session.get(url, headers={**own, **headers}, timeout=self._timeout) as answer:
                status = answer.status
                if status not in (200, 206):
                    raise ValueError(f"{url}: HTTP {status}")
                async for block in answer.content.iter_chunked(BLOCK):
                    size += len(block)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            self._stats.record(f"download {kind}", loop.time() - started, status, str(error) or type(error).__name__)
            raise
        self._stats.record(f"download {kind}", loop.time() - started, status)
        return size, answer
