"""BMCs of the swarm's hosts: Redfish systems with virtual media, all behind one address.

A host appears when a client has inserted its discovery image and switched it on. The resources are those that clients of virtual
media read, sushy, Ironic and the Bare Metal Operator: DMTF's Redfish schemas ComputerSystem, EthernetInterface, Manager,
VirtualMedia (DSP8010).
"""

from __future__ import annotations

import base64
import errno
import hmac
import os
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ....plugins.module_utils._deps import optional
from ....plugins.module_utils.documents import DocumentError, load_json
from .hardware import Host
from .settings import PROFILES, Settings, SwarmError

if TYPE_CHECKING:
    from aiohttp import web
else:
    web = optional("aiohttp.web")

ROOT = "/redfish/v1"
USER = "admin"
# ResetType of Redfish -> the power afterwards; None: off and on again.
RESETS: dict[str, str | None] = {
    "On": "On", "ForceOn": "On", "ForceOff": "Off", "GracefulShutdown": "Off", "ForceRestart": None, "GracefulRestart": None,
    "PowerCycle": None,
}  # fmt: skip
TARGETS = ("None", "Cd", "Hdd", "Pxe")
ENABLED = ("Disabled", "Once", "Continuous")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RefusedRequest(Exception):
    """A request that a BMC refuses: HTTP status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Bmc:
    """State of one machine: power, medium and boot override, as its clients see them.

    `image`: URL of the inserted medium. `installed`: its disk has a system, which it boots unless the medium comes first.
    """

    host: Host
    on: bool = False
    image: str = ""
    enabled: str = "Disabled"
    target: str = "None"
    installed: bool = False

    def insert(self, url: str) -> None:
        """Insert the image at an HTTP URL, in the place of another one.

        Refused: no such URL, or one that names another infra-env, whose image would make the host another cluster's.
        The image is not fetched.
        """
        try:
            parts = urlsplit(url)
        except ValueError:  # brackets around something other than an IPv6 address
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RefusedRequest(400, f"Image {url!r}: must be an http or https URL")
        named = _UUID.findall(url)
        if named and self.host.me.infra_env_id not in named:
            raise RefusedRequest(400, f"Image {url}: {self.host.name} belongs to infra-env {self.host.me.infra_env_id}")
        self.image = url

    def override(self, wanted: Any) -> None:
        """Take the field `Boot` of a PATCH; what it does not have stays.

        Raises Refused with status 400 for a value that is not known; then nothing has changed.
        """
        fields = wanted if isinstance(wanted, dict) else {}
        enabled = fields.get("BootSourceOverrideEnabled", self.enabled)
        target = fields.get("BootSourceOverrideTarget", self.target)
        if enabled not in ENABLED or target not in TARGETS:
            raise RefusedRequest(400, f"Boot {enabled!r}, {target!r}: must be one of {', '.join((*ENABLED, *TARGETS))}")
        self.enabled, self.target = enabled, target

    def boots_image(self) -> bool:
        """Return whether the next boot is from the medium.

        It changes the state: a boot override for one time is used up.
        """
        chosen = self.target if self.enabled != "Disabled" else "None"
        if self.enabled == "Once":
            self.enabled, self.target = "Disabled", "None"
        return bool(self.image) and chosen in (("Cd",) if self.installed else ("Cd", "Hdd", "None"))


class Bmcs:
    """The server for all machines.

    start and stop are called with a host when it boots the image, and when its power goes. SwarmError for a --bmc that
    is invalid, or that other machines reach and that has no password.
    """

    def __init__(self, settings: Settings, start: Callable[[Host], None], stop: Callable[[Host], None]) -> None:
        self._address, self._port = address(settings.bmc)
        self._settings, self._password = settings, settings.bmc_password
        if not self._password and self._address not in ("127.0.0.1", "::1"):
            raise SwarmError(f"--bmc {settings.bmc}: needs a password in BMC_PASSWORD, unless the address is 127.0.0.1")
        self._start, self._stop = start, stop
        self._bmcs: dict[str, Bmc] = {}
        self._runner: web.AppRunner | None = None

    async def listen(self) -> None:
        """Answer requests. SwarmError: the address is taken, or not of this machine."""
        app = web.Application(client_max_size=64 * 1024)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._address, self._port).start()
        except OSError as error:
            await self.close()
            raise SwarmError(f"--bmc {self._settings.bmc}: {unusable(error)}") from None

    async def close(self) -> None:
        if self._runner:
            await self._runner.cleanup()

    def add(self, hosts: list[Host]) -> None:
        """Show a system for each host, switched off, without a medium. Its id is the host's, as a machine's UUID is."""
        self._bmcs.update((host.me.host_id, Bmc(host)) for host in hosts)

    def installed(self, host: Host) -> None:
        """Note that a host has rebooted into the system on its disk."""
        self._bmcs[host.me.host_id].installed = True

    # Requests

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            return await self._answered(request)
        except RefusedRequest as refused:
            error = {"error": {"code": "Base.1.0.GeneralError", "message": str(refused)}}
            headers = {"WWW-Authenticate": 'Basic realm="swarm"'} if refused.status == 401 else {}
            return web.json_response(error, status=refused.status, headers=headers)

    async def _answered(self, request: web.Request) -> web.Response:
        path = request.path.rstrip("/")
        if request.method == "GET" and path in ("/redfish", ROOT):
            return web.json_response({"v1": f"{ROOT}/"} if path == "/redfish" else service_root())
        self._authorize(request.headers.get("Authorization", ""))
        kind, __, rest = path.removeprefix(f"{ROOT}/").partition("/")
        if not path.startswith(f"{ROOT}/") or kind not in ("Systems", "Managers"):
            raise RefusedRequest(404, f"{path}: no such resource")
        if not rest and request.method == "GET":
            return web.json_response(collection(path, kind, list(self._bmcs)))
        ident, __, rest = rest.partition("/")
        bmc = self._bmcs.get(ident)
        if bmc is None:
            raise RefusedRequest(404, f"{path}: no such machine")
        if request.method == "GET":
            found = resource(bmc, kind, rest)
            if found is None:
                raise RefusedRequest(404, f"{path}: no such resource")
            return web.json_response(found)
        try:
            body = load_json(await request.read() or b"{}", name="the request")
        except DocumentError as error:
            raise RefusedRequest(400, str(error)) from None
        self._change(bmc, request.method, f"{kind}/{rest}".rstrip("/"), body if isinstance(body, dict) else {})
        return web.Response(status=204)

    def _authorize(self, header: str) -> None:
        expected = base64.b64encode(f"{USER}:{self._password}".encode()).decode()
        if self._password and not hmac.compare_digest(header.encode(errors="replace"), f"Basic {expected}".encode()):
            raise RefusedRequest(401, "user name or password is wrong")

    def _change(self, bmc: Bmc, method: str, what: str, body: dict[str, Any]) -> None:
        medium = re.fullmatch(
            r"(?:Systems|Managers)/VirtualMedia/Cd/Actions/VirtualMedia\.(InsertMedia|EjectMedia)", what
        )
        if method == "POST" and medium:
            if medium[1] == "EjectMedia":
                bmc.image = ""
            else:
                bmc.insert(str(body.get("Image", "")))
        elif method == "POST" and what == "Systems/Actions/ComputerSystem.Reset":
            self._reset(bmc, body.get("ResetType"))
        elif method == "PATCH" and what == "Systems":
            bmc.override(body.get("Boot"))
        else:
            raise RefusedRequest(405, f"{method} of {what}: not possible")

    def _reset(self, bmc: Bmc, kind: Any) -> None:
        if not isinstance(kind, str) or kind not in RESETS:
            raise RefusedRequest(400, f"ResetType {kind!r}: must be one of {', '.join(RESETS)}")
        after = RESETS[kind]
        if after == "On" and bmc.on:
            return
        if bmc.on:
            self._stop(bmc.host)
        bmc.on = after != "Off"
        if bmc.on and bmc.boots_image():
            self._start(bmc.host)


def address(text: str) -> tuple[str, int]:
    """Return address and port of `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`.

    The default address is 127.0.0.1. SwarmError for something else.
    """
    host, __, port = text.rpartition(":")
    if not (port.isdecimal() and port.isascii() and 0 < int(port) < 65536):
        raise SwarmError(f"--bmc {text!r}: must be ADDRESS:PORT, or a port from 1 to 65535 of 127.0.0.1")
    return host.strip("[]") or "127.0.0.1", int(port)


def unusable(error: OSError) -> str:
    """Return why no server can listen, with what would be right; asyncio has the address in the text of its errors."""
    hints = {errno.EADDRINUSE: "choose another port", errno.EACCES: "choose a port from 1024"}
    text = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
    return f"{text}; {hints.get(error.errno or 0, 'must be an address of this machine')}"


def service_root() -> dict[str, Any]:
    """The only resource that needs no password, besides /redfish."""
    return {
        "@odata.type": "#ServiceRoot.v1_5_0.ServiceRoot", "@odata.id": f"{ROOT}/", "Id": "RootService", "Name": "agentlab swarm",
        "RedfishVersion": "1.5.0", "Systems": {"@odata.id": f"{ROOT}/Systems"}, "Managers": {"@odata.id": f"{ROOT}/Managers"},
    }  # fmt: skip


def collection(path: str, kind: str, names: list[str]) -> dict[str, Any]:
    """A collection resource. All members are in one page: clients such as sushy do not ask for others."""
    schema = {"Systems": "ComputerSystem", "Managers": "Manager"}.get(kind, kind)
    return {
        "@odata.type": f"#{schema}Collection.{schema}Collection", "@odata.id": path, "Name": f"{schema} Collection",
        "Members@odata.count": len(names), "Members": [{"@odata.id": f"{path}/{name}"} for name in names],
    }  # fmt: skip


def resource(bmc: Bmc, kind: str, rest: str) -> dict[str, Any] | None:
    """Return the resource at a path below a system or manager (`kind`), None if there is none."""
    host = bmc.host
    here = f"{ROOT}/{kind}/{host.me.host_id}"
    nics = {host.mac(at): at for at in range(len(PROFILES[host.profile].nics))}
    if rest == "":
        return system(bmc) if kind == "Systems" else manager(bmc)
    if rest == "VirtualMedia":
        return collection(f"{here}/{rest}", "VirtualMedia", ["Cd"])
    if rest == "VirtualMedia/Cd":
        return medium(bmc, f"{here}/{rest}")
    if rest == "EthernetInterfaces" and kind == "Systems":
        return collection(f"{here}/{rest}", "EthernetInterface", list(nics))
    mac = rest.removeprefix("EthernetInterfaces/")
    if kind == "Systems" and mac != rest and mac in nics:
        return {
            "@odata.type": "#EthernetInterface.v1_4_0.EthernetInterface", "@odata.id": f"{here}/{rest}", "Id": mac,
            "Name": PROFILES[host.profile].nics[nics[mac]], "MACAddress": mac, "PermanentMACAddress": mac,
            "Status": {"State": "Enabled", "Health": "OK"},
        }  # fmt: skip
    return None


def system(bmc: Bmc) -> dict[str, Any]:
    host, kind = bmc.host, PROFILES[bmc.host.profile]
    here = f"{ROOT}/Systems/{host.me.host_id}"
    return {
        "@odata.type": "#ComputerSystem.v1_4_0.ComputerSystem", "@odata.id": here, "Id": host.me.host_id, "UUID": host.me.host_id,
        "Name": host.name, "HostName": host.name, "SystemType": "Virtual" if kind.virtual else "Physical",
        "Manufacturer": kind.manufacturer, "Model": kind.product, "PowerState": "On" if bmc.on else "Off",
        "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        "ProcessorSummary": {"Count": kind.cpus, "Model": kind.model},
        "MemorySummary": {"TotalSystemMemoryGiB": kind.memory_gib},
        "Boot": {
            "BootSourceOverrideEnabled": bmc.enabled, "BootSourceOverrideTarget": bmc.target,
            "BootSourceOverrideMode": "UEFI" if kind.boot == "uefi" else "Legacy",
            "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
        },
        "EthernetInterfaces": {"@odata.id": f"{here}/EthernetInterfaces"},
        "VirtualMedia": {"@odata.id": f"{here}/VirtualMedia"},
        "Links": {"ManagedBy": [{"@odata.id": f"{ROOT}/Managers/{host.me.host_id}"}], "Chassis": []},
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{here}/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": list(RESETS),
            },
        },
    }  # fmt: skip


def manager(bmc: Bmc) -> dict[str, Any]:
    ident = bmc.host.me.host_id
    here = f"{ROOT}/Managers/{ident}"
    return {
        "@odata.type": "#Manager.v1_3_1.Manager", "@odata.id": here, "Id": ident, "UUID": ident, "Name": f"{bmc.host.name}-bmc",
        "ManagerType": "BMC", "Status": {"State": "Enabled", "Health": "OK"}, "PowerState": "On",
        "VirtualMedia": {"@odata.id": f"{here}/VirtualMedia"},
        "Links": {"ManagerForServers": [{"@odata.id": f"{ROOT}/Systems/{ident}"}], "ManagerForChassis": []},
    }  # fmt: skip


def medium(bmc: Bmc, here: str) -> dict[str, Any]:
    name = urlsplit(bmc.image).path.rpartition("/")[2]
    return {
        "@odata.type": "#VirtualMedia.v1_2_0.VirtualMedia", "@odata.id": here, "Id": "Cd", "Name": "Virtual CD",
        "MediaTypes": ["CD", "DVD"], "Image": bmc.image, "ImageName": name, "Inserted": bool(bmc.image), "WriteProtected": True,
        "ConnectedVia": "URI" if bmc.image else "NotConnected",
        "Actions": {
            "#VirtualMedia.InsertMedia": {"target": f"{here}/Actions/VirtualMedia.InsertMedia"},
            "#VirtualMedia.EjectMedia": {"target": f"{here}/Actions/VirtualMedia.EjectMedia"},
        },
    }  # fmt: skip
