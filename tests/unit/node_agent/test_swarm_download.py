"""Hosts that download their images before they register, from a server with ranges."""

from __future__ import annotations

import asyncio
import hashlib
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from ansible_collections.agentlab.ocp.payload.node_agent.swarm import main, page, report
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.driver import Swarm
from ansible_collections.agentlab.ocp.payload.node_agent.swarm.settings import Settings, SwarmError
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted
from ansible_collections.agentlab.ocp.tests.unit.node_agent.test_swarm import FAST, run

SIZE = 3 * (1 << 20) + 12345


class Images:
    """A server of an image; `ranges` are those that were asked for, in order."""

    def __init__(self, folder: Path) -> None:
        (folder / "full.iso").write_bytes(hashlib.shake_128(b"iso").digest(SIZE))
        self.folder, self.ranges, self.url = folder, [""][:0], ""
        self.ready = threading.Event()

    def serve(self) -> None:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        self.loop = loop

        async def send(request: web.Request) -> web.StreamResponse:
            self.ranges.append(request.headers.get("Range", ""))
            return web.FileResponse(self.folder / "full.iso")

        async def listen() -> None:
            app = web.Application()
            app.router.add_get("/{name}", send)
            self.runner = web.AppRunner(app, access_log=None)
            await self.runner.setup()
            await web.TCPSite(self.runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{self.runner.addresses[0][1]}"
            self.ready.set()

        loop.run_until_complete(listen())
        loop.run_forever()
        loop.run_until_complete(self.runner.cleanup())


@pytest.fixture
def images(tmp_path: Path) -> Iterator[Images]:
    made = Images(tmp_path)
    thread = threading.Thread(target=made.serve, daemon=True)
    thread.start()
    assert made.ready.wait(10)
    yield made
    made.loop.call_soon_threadsafe(made.loop.stop)
    thread.join(10)


def test_each_host_downloads_what_its_machine_would(service: FakeAssisted, images: Images, tmp_path: Path) -> None:
    script = f"#!ipxe\nkernel x initrd=initrd coreos.live.rootfs_url={images.url}/rootfs ignition.firstboot\nboot\n"
    service.instead = {
        "image-url": lambda: web.json_response({"url": f"{images.url}/full.iso"}),
        "ipxe-script": lambda: web.Response(text=script),
        "discovery.ign": lambda: web.json_response({"ignition": {"version": "3.2.0"}}),
    }
    settings = Settings(service.url, topology={"sno": 1}, clusters=2, download=("iso", "rootfs", "ignition"), **FAST)
    __, result = run(settings)
    assert result["ends"] == {"installed": 2} and not result["errors"]
    assert result["downloaded_bytes"] == {"iso": 2 * (SIZE + 65536), "rootfs": 2 * SIZE, "ignition": 2 * 34}
    assert {kind: row["count"] for kind, row in result["time_to_download"].items()} == {
        "iso": 2,
        "rootfs": 2,
        "ignition": 2,
    }
    edges = ["bytes=0-65535", f"bytes={SIZE - 65536}-{SIZE - 1}"]
    between = ["bytes=65536-1114111", "bytes=1114112-2162687", f"bytes=2162688-{SIZE - 1}"]
    assert sorted(images.ranges) == sorted(2 * [*edges, *between, ""])
    whole = report.merge_reports([result, result])
    assert whole["downloaded_bytes"]["iso"] == 4 * (SIZE + 65536) and whole["time_to_download"]["iso"]["count"] == 4
    assert "Time to download a file" in page.page(whole)


@pytest.mark.parametrize(
    ("instead", "message"),
    [
        ({"image-url": lambda: web.json_response({})}, "cannot download the iso: image-url: the answer has no url"),
        (
            {"image-url": lambda: web.json_response({"reason": "image service is disabled"}, status=400)},
            "HTTP 400: .*image service is disabled",
        ),
        (
            {"image-url": lambda: web.json_response({"url": "http://127.0.0.1:1/x"})},
            "cannot download the iso: Cannot connect",
        ),
    ],
)
def test_a_host_that_cannot_download_does_not_register(
    service: FakeAssisted, instead: dict[str, Any], message: str
) -> None:
    service.instead = instead
    settings: dict[str, Any] = {**FAST, "stall": 0.5}
    swarm, result = run(Settings(service.url, topology={"sno": 1}, download=("iso",), **settings))
    assert isinstance(swarm, Swarm) and not service.hosts and "installed" not in result["ends"]
    (why,) = result["gave_up"]
    assert re.search(message, why)


def test_settings(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SwarmError, match="--download floppy: must be one of iso, rootfs, ignition"):
        Settings("http://127.0.0.1:1", download=("floppy",))
    with pytest.raises(SwarmError, match="--download: cannot be used with --kubeconfig"):
        Settings(kubeconfig=Path("x"), download=("iso",))
    assert main.settings_of(main.parser().parse_args(["--url", "http://h:1", "--download", "iso,rootfs"])).download == (
        "iso",
        "rootfs",
    )
