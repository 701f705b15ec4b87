"""The machine-config server: serves the rendered config of a pool to booting nodes (port 22623)."""

from __future__ import annotations

import copy
import json
import logging
from collections import deque
from typing import Any

from aiohttp import web

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.ignition.resources import data_file
from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION, Port
from .resources import MACHINE_CONFIGS, POOLS
from .store import Object, Store

PORT = Port.MACHINE_CONFIG
ANNOTATIONS = "/etc/machine-config-daemon/node-annotations.json"
log = logging.getLogger("machine-config-server")


class MachineConfigServer:
    """Serves `/config/<pool>` from the store; `lines` is its log, in which the installer finds the nodes that fetched it."""

    def __init__(self, store: Store, ready: Any) -> None:
        self._store, self._ready = store, ready
        self.lines: deque[str] = deque(maxlen=1000)

    def app(self) -> web.Application:
        """Return the web application."""
        app = web.Application()
        app.add_routes([web.get("/config/{pool}", self._config), web.get("/healthz", self._health)])
        return app

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=204 if self._ready() else 503)

    async def _config(self, request: web.Request) -> web.Response:
        pool_name, agent = request.match_info["pool"], request.headers.get("User-Agent", "")
        # The format of the real server's log: the installer parses address, pool and Ignition's user agent.
        accept = request.headers.get("Accept", "")
        line = f'Pool {pool_name} requested by address:"{_address(request)}" User-Agent:"{agent}" Accept-Header: "{accept}"'
        self.lines.append(line)
        log.info("%s", line)
        if not self._ready():
            return web.Response(status=503, text="the store of this control plane member is not in sync yet")
        pool = self._store.find(POOLS, "", pool_name)
        config = self._store.find(MACHINE_CONFIGS, "", pool["spec"]["configuration"]["name"]) if pool else None
        if config is None:
            return web.Response(status=404)
        return web.Response(body=json.dumps(served_ignition(config)).encode(), content_type="application/json")


def served_ignition(machine_config: Object) -> Object:
    """Return the Ignition of a rendered MachineConfig as it is served: with the annotations that the node will have."""
    config: Object = copy.deepcopy(machine_config["spec"]["config"])
    name = machine_config["metadata"]["name"]
    annotations = {
        f"{MACHINE_CONFIGURATION}/currentConfig": name,
        f"{MACHINE_CONFIGURATION}/desiredConfig": name,
        f"{MACHINE_CONFIGURATION}/state": "Done",
    }
    files = config.setdefault("storage", {}).setdefault("files", [])
    files.append(data_file(ANNOTATIONS, json.dumps(annotations).encode(), 0o644))
    return config


def _address(request: web.Request) -> str:
    peer = request.transport.get_extra_info("peername") if request.transport else None
    if not peer:
        return ""
    host = peer[0].removeprefix("::ffff:")
    return f"{in_url(host)}:{peer[1]}"
