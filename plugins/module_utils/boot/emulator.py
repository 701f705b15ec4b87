"""sushy-emulator with what a lab needs: `python3 emulator.py CONFIG`, a program of its own.

Differs from the command `sushy-emulator` in eight things. `SUSHY_EMULATOR_ALLOWED_INSTANCES` holds for virtual media too,
which upstream omits. A request to set the boot device holds for the next start, or for each, and the domain's own order
stays (upstream redefines the domain, and does not know "once"). Media go from the download into the pool by a
rename, not by a second copy, and an ejected image leaves nothing behind. It answers to addresses and to its own name only.
It answers again when libvirtd has been restarted. It has sessions. A medium gets the place in the boot order that the machine's disks leave
free, where the order is on the devices. Requests for machines of other hypervisors are passed on (`peers`).
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import ssl
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    import libvirt

_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'self'; frame-ancestors 'none'"),
)
# Where the domain has the devices that a client may prefer, by their names in Redfish.
_ELEMENTS = {"Cd": "devices/disk[@device='cdrom']", "Pxe": "devices/interface"}


class BootOrderStays:
    """What is laid over sushy-tools' LibvirtDriver, which is not imported before the program runs.

    The methods take the machine's UUID as `identity`; they have the names and the results that sushy-tools expects.
    """

    DEVICE_TYPE_MAP: dict[str, str]
    STORAGE_POOL: str
    _logger: Any
    _uri: str
    _overrides: ClassVar[dict[str, tuple[str, bool]]] = {}
    """Machine -> device to boot from, and whether only once; lost when the program ends."""

    def _get_domain(self, identity: str, readonly: bool = False) -> Any:
        """Look the machine up, each time: upstream keeps it with its connection, which ends with libvirtd."""
        look_up = super()._get_domain.__wrapped__  # type: ignore[misc]
        return look_up(self, identity, readonly=readonly)

    def set_boot_device(self, identity: str, boot_source: str) -> None:
        """Prefer a device at the next start, or at each start: `Cd` or `Pxe`.

        Everything else is the order of the domain, disk, CD: an empty disk boots from the CD and an installed
        one by itself. Without `BootSourceOverrideEnabled` it is what the BMC reports, `Continuous`.
        """
        import flask

        boot = flask.request.json.get("Boot")
        if boot is None:
            return  # a medium changes, upon which sushy-tools sets the device again
        enabled = boot.get("BootSourceOverrideEnabled", "Continuous")
        self._overrides.pop(identity, None)
        if boot_source in _ELEMENTS and enabled != "Disabled":
            self._overrides[identity] = boot_source, enabled == "Once"

    def get_boot_device(self, identity: str) -> str:
        """Return the device that the next start prefers: what was set, else `Hdd`."""
        return self._overrides.get(identity, ("Hdd", False))[0]

    def set_power_state(self, identity: str, state: str) -> None:
        """Switch the machine on or off, or restart it; a start follows what was set as boot device."""
        import libvirt
        from sushy_tools import error

        override = self._overrides.get(identity)
        if override is None or state not in ("On", "ForceOn", "ForceRestart"):
            super().set_power_state(identity, state)  # type: ignore[misc]
            return
        domain = self._get_domain(identity)
        try:
            if state == "ForceRestart" and domain.isActive():
                domain.destroy()
            elif state == "ForceRestart" or domain.isActive():
                return
            self._start(domain, *override)
        except libvirt.libvirtError as problem:
            raise error.FishyError(f"cannot start {identity}: {problem}") from problem
        if override[1]:
            self._overrides.pop(identity, None)

    def _start(self, domain: libvirt.virDomain, device: str, once: bool) -> None:
        """Start a machine from a device, if it has it. With `once`, a reset in the guest follows the order of the domain.

        QEMU writes the order for the firmware at each reset. libvirt can only change it in the definition, and the
        definition would then also be that of a saved state.
        """
        import libvirt

        domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
        try:
            tree = ET.fromstring(domain.XMLDesc())
            found = [
                one for one in tree.findall(_ELEMENTS[device]) if device == "Pxe" or one.find("source") is not None
            ]
            alias = found[0].find("alias") if found else None
            if alias is None:
                self._logger.info("%s has no %s to boot from", domain.name(), device)
                return
            place = {"path": f"/machine/peripheral/{alias.get('name')}", "property": "bootindex"}
            before = _monitor(domain, "qom-get", place)
            _monitor(domain, "qom-set", {**place, "value": 0})
            domain.reset()
            if once:
                _monitor(domain, "qom-set", {**place, "value": before})
        finally:
            domain.resume()

    def get_boot_image(self, identity: str, device: str) -> tuple[str, bool, bool]:
        """Return (path, read-only, inserted) of the medium in the definition.

        `device` is a name of Redfish (`Cd`). Without a medium: an empty path, and twice False.
        """
        tree = ET.fromstring(self._get_domain(identity, readonly=True).XMLDesc(2))
        for disk in tree.findall("devices/disk"):
            source = disk.find("source")
            if disk.get("device") == self.DEVICE_TYPE_MAP.get(device) and source is not None:
                return source.get("file", ""), disk.find("readonly") is not None, True
        return "", False, False

    def set_boot_image(
        self, identity: str, device: str, boot_image: str | None = None, write_protected: bool = True
    ) -> None:
        """Put the image into the definition, or take it out and delete it.

        Without `boot_image` the medium is taken out; its file is deleted unless a running machine uses it.
        """
        before = self.get_boot_image(identity, device)[0]
        super().set_boot_image(  # type: ignore[misc]
            identity, device, boot_image=boot_image, write_protected=write_protected
        )
        if not boot_image and before:
            from sushy_tools.emulator.resources.systems.libvirtdriver import libvirt_open

            with libvirt_open(self._uri) as connection:
                pool = connection.storagePoolLookupByName(self.STORAGE_POOL)
                for volume in pool.listAllVolumes():
                    if volume.path() == before and not self._in_use(connection, before):
                        volume.delete()

    def _add_boot_image(
        self, domain: libvirt.virDomain, domain_tree: ET.Element, device: str, boot_image: str, write_protected: bool
    ) -> None:
        super()._add_boot_image(domain, domain_tree, device, boot_image, write_protected)  # type: ignore[misc]
        orders = {int(boot.get("order", "0")) for boot in domain_tree.findall("devices/*/boot")}
        media = [
            disk
            for disk in domain_tree.findall("devices/disk")
            if disk.get("device") == self.DEVICE_TYPE_MAP.get(device)
        ]
        if orders and media:
            ET.SubElement(media[-1], "boot", {"order": str(min({*range(1, len(orders) + 2)} - orders))})

    def _in_use(self, connection: libvirt.virConnect, path: str) -> bool:
        return any(f"'{path}'" in domain.XMLDesc() for domain in connection.listAllDomains(1))

    def _upload_image(self, domain: libvirt.virDomain, conn: libvirt.virConnect, boot_image: str) -> str:
        pool = conn.storagePoolLookupByName(self.STORAGE_POOL)
        directory = ET.fromstring(pool.XMLDesc()).findtext("target/path") or ""
        name = f"{os.path.basename(boot_image).replace('.', '-')}-{domain.UUIDString()}.img"
        path = os.path.join(directory, name)
        # A new file under the old name: a machine that still runs from the former medium keeps it.
        os.replace(boot_image, path)
        os.rmdir(os.path.dirname(boot_image))
        pool.refresh()
        return path


def _monitor(domain: libvirt.virDomain, command: str, arguments: dict[str, Any]) -> Any:
    """Return the result of a command of QEMU's monitor (QMP)."""
    import libvirt_qemu

    return json.loads(
        libvirt_qemu.qemuMonitorCommand(domain, json.dumps({"execute": command, "arguments": arguments}), 0)
    )["return"]


def refuse_unknown_systems() -> None:
    """Return 404 for unknown systems.

    Flask calls it before each request. Requests for a chassis are let through, because they are not about a system.
    """
    import flask
    from sushy_tools import error
    from sushy_tools.emulator.main import app

    identity = (flask.request.view_args or {}).get("identity")
    allowed = app.config["SUSHY_EMULATOR_ALLOWED_INSTANCES"]
    if identity is not None and "/Chassis/" not in flask.request.path and identity not in allowed:
        raise error.NotFound(f"no such system: {identity}")


def link_sessions(response: Any, path: str) -> Any:
    """Add to the service root where sessions are opened, which each has to have."""
    import flask

    if flask.request.path.rstrip("/") == "/redfish/v1" and response.status_code == 200:
        root = response.get_json(force=True)
        response.set_data(json.dumps({**root, "Links": {"Sessions": {"@odata.id": path}}}))
    return response


class Guard:
    """WSGI, laid over the whole application, its check of passwords included.

    A request that names another host gets 421, so that no page of another name reaches a BMC through a browser. Every answer
    has the headers by which a browser neither guesses a type nor shows it in a frame.
    """

    def __init__(self, application: WSGIApplication, is_ours: Callable[[str], bool]) -> None:
        self._application, self._is_ours = application, is_ours

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            return start_response(status, [*headers, *_HEADERS], *error)

        host = environ.get("HTTP_HOST", "")
        if self._is_ours(host):
            return self._application(environ, start)
        message = f"{host} is not a name of this BMC"
        body = json.dumps({"error": {"code": "Base.1.0.GeneralError", "message": message}}).encode()
        start("421 Misdirected Request", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]


def main(config: str) -> None:
    from sushy_tools.emulator import main as emulator

    driver = emulator.libvirtdriver.LibvirtDriver
    emulator.libvirtdriver.LibvirtDriver = type("Driver", (BootOrderStays, driver), {})
    emulator.app.configure(config_file=config)
    emulator.app.logger.setLevel(logging.INFO)  # which power state was asked for, such as ForceOff
    settings = emulator.app.config
    # They are next to this file, which is started without the paths of others.
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    if machines := settings.get("SUSHY_EMULATOR_PEERS"):
        peers = importlib.import_module("peers").Peers(machines, settings["SUSHY_EMULATOR_PEERS_CA"])
        emulator.app.wsgi_app = peers.keeping(emulator.app.wsgi_app)
        emulator.app.before_request(peers.forward)
        emulator.app.after_request(peers.enumerate)
    emulator.app.before_request(refuse_unknown_systems)
    is_served = importlib.import_module("httpd").is_served
    sessions = importlib.import_module("sessions")
    emulator.app.after_request(lambda response: link_sessions(response, sessions.PATH))
    emulator.app.wsgi_app = Guard(
        sessions.Sessions(emulator.app.wsgi_app), lambda host: is_served(host, settings["SUSHY_EMULATOR_HOST"])
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(settings["SUSHY_EMULATOR_SSL_CERT"], settings["SUSHY_EMULATOR_SSL_KEY"])
    emulator.app.run(
        host=settings["SUSHY_EMULATOR_LISTEN_IP"],
        port=settings["SUSHY_EMULATOR_LISTEN_PORT"],
        ssl_context=context,
        threaded=True,
    )


if __name__ == "__main__":
    main(sys.argv[1])
