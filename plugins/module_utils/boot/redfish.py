"""Boot machines through their BMC: virtual media in, power on, media out. Lab and bare metal alike, on top of sushy."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .._deps import optional
from ..errors import LabError
from ..log import visible
from .replies import connector

if TYPE_CHECKING:
    import sushy
else:
    sushy = optional("sushy")

T = TypeVar("T")
POWER_SECONDS = 120.0
# Inserting is one request; an emulator downloads the whole image before it answers.
REQUEST_SECONDS = 600
CONNECT_SECONDS = 10
SERVER_RETRIES, SERVER_DELAY = 5, 2  # seconds: an emulator answers again when its libvirtd does
TRANSPORTS = ("http", "https")
SCHEMES = ("redfish", "redfish-virtualmedia", "idrac-virtualmedia", *TRANSPORTS)
EXAMPLE = "redfish-virtualmedia+https://host/redfish/v1/Systems/1"


class Address(NamedTuple):
    """Where a BMC is: `root` URL of the service, `system` path of the machine (None: the only one).

    `root` has no path. `system` is without a slash at its end.
    """

    root: str
    system: str | None


def parse(address: str) -> Address:
    """Take apart a BMC address as install-config has it, `redfish-virtualmedia+https://host:port/redfish/v1/Systems/1`.

    The scheme is one of SCHEMES with a transport, `+http` or `+https` (https when not given), or plain `http`, `https`.
    Raises `LabError`.
    """
    scheme, separator, rest = address.partition("://")
    driver, __, transport = scheme.rpartition("+")
    if not driver and transport in SCHEMES and transport not in TRANSPORTS:
        transport = "https"
    if transport not in TRANSPORTS:
        raise LabError(f"BMC address {address}: transport {transport!r} is neither http nor https: {EXAMPLE}")
    parts = urllib.parse.urlsplit(f"{transport}://{rest}")
    if not separator or not parts.hostname:
        raise LabError(f"BMC address {address}: it has no host: {EXAMPLE}")
    return Address(f"{transport}://{parts.netloc}", parts.path.rstrip("/") or None)


class Bmc:
    """One machine as its BMC shows it. Every refusal and every failure of the network is a `LabError` of one line.

    name: the machine's, for messages; verify: whether its certificate is checked, or the path of the CA to check with.
    """

    def __init__(self, name: str, address: str, username: str, password: str, verify: bool | str = True) -> None:
        self.name, self.address = name, address
        where = parse(address)

        def connect() -> Any:
            root = sushy.Sushy(
                where.root,
                auth=sushy.auth.BasicAuth(username=username, password=password),
                connector=connector(
                    where.root,
                    verify=verify,
                    default_request_timeout=REQUEST_SECONDS,
                    connect_timeout=CONNECT_SECONDS,
                    server_side_retries=SERVER_RETRIES,
                    server_side_retries_delay=SERVER_DELAY,
                ),
            )
            return root.get_system(where.system)

        self._system = self._do("connect", connect)

    def power(self) -> str:
        """Return `on` or `off` (or `powering on`, `powering off`).

        It is read from the BMC each time. A state that the BMC does not report counts as `off`.
        """

        def read() -> str:
            self._system.refresh(force=True)
            return str(self._system.power_state.value if self._system.power_state else "off").lower()

        return self._do("read the power state", read)

    def power_off(self) -> bool:
        """Switch off at once; return whether it was on.

        Without the guest's help, as a cut of its power. Waits until the BMC reports it, at most 120 s.
        """
        if self.power() == "off":
            return False
        self._do("power off", lambda: self._system.reset_system(sushy.ResetType.FORCE_OFF))
        self._wait_power("off")
        return True

    def power_on(self) -> bool:
        """Switch on; return whether it was off.

        Waits until the BMC reports it, at most 120 s.
        """
        if self.power() == "on":
            return False
        self._do("power on", lambda: self._system.reset_system(sushy.ResetType.ON))
        self._wait_power("on")
        return True

    def medium(self) -> str | None:
        """Return the URL of the inserted CD, or None.

        A BMC that reports neither URL nor name gives `inserted`.
        """
        device = self._do("read the virtual media", self._cd)
        return (device.image or device.image_name or "inserted") if device.inserted else None

    def insert(self, url: str) -> bool:
        """Insert the image at `url` as CD, after ejecting another one; return whether it was not there before.

        The BMC must reach the URL itself. The request may take 600 s, because an emulator downloads the whole image
        before it answers.
        """
        device = self._do("read the virtual media", self._cd)
        if device.inserted and device.image == url:
            return False
        if device.inserted:
            self._do("eject the former medium", device.eject_media)
        self._do(f"insert {url}", lambda: device.insert_media(url))
        return True

    def eject(self) -> bool:
        """Eject the CD; return whether there was one.

        The running machine loses the medium at once. Raises `LabError` for a BMC without a virtual CD.
        """
        device = self._do("read the virtual media", self._cd)
        if not device.inserted:
            return False
        self._do("eject", device.eject_media)
        return True

    def boot_from_cd(self) -> None:
        """Boot from the CD next time, once. The lab's emulator accepts this and keeps the order disk, CD.

        A machine that is on continues to run.
        """
        self._do(
            "set the boot device",
            lambda: self._system.set_system_boot_options(
                sushy.BootSource.CD, enabled=sushy.BootSourceOverrideEnabled.ONCE
            ),
        )

    def _cd(self) -> Any:
        """Return the virtual CD: of the system (Redfish since 2020.4), else of a manager."""
        kinds = {sushy.VirtualMediaType.CD, sushy.VirtualMediaType.DVD}
        for owner in (self._system, *self._system.managers):
            try:
                devices = owner.virtual_media.get_members()
            except (sushy.exceptions.MissingAttributeError, sushy.exceptions.ResourceNotFoundError):
                continue
            for device in devices:
                if kinds & set(device.media_types or []):
                    device.refresh(force=True)
                    return device
        raise LabError(
            f"BMC of {self.name} ({self.address}): it has no virtual CD: use another boot mode, such as pxe or manual"
        )

    def _wait_power(self, state: str) -> None:
        deadline = time.monotonic() + POWER_SECONDS
        while (found := self.power()) != state:
            if time.monotonic() > deadline:
                raise LabError(
                    f"BMC of {self.name} ({self.address}): power is {found}, not {state}, after {POWER_SECONDS:.0f} s"
                )
            time.sleep(0.2)

    def _do(self, what: str, function: Callable[[], T]) -> T:
        try:
            return function()
        except sushy.exceptions.AccessError as error:
            raise LabError(
                f"BMC of {self.name} ({self.address}): cannot {what}: it refuses the credentials (HTTP {error.status_code}): "
                f"give others (nodes.{self.name}.bmc)"
            ) from error
        except sushy.exceptions.ConnectionError as error:
            raise LabError(
                f"BMC of {self.name} ({self.address}): cannot {what}: {_system_error(error) or _line(error)}"
            ) from error
        except sushy.exceptions.SushyError as error:
            reason = getattr(error, "detail", None) or error
            raise LabError(f"BMC of {self.name} ({self.address}): cannot {what}: {_line(reason)}") from error
        except LabError:
            raise
        except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
            # sushy takes a reply's fields as they are.
            reason = f"its reply is not as Redfish has it: {type(error).__name__}: {error}"
            raise LabError(f"BMC of {self.name} ({self.address}): cannot {what}: {_line(reason)}") from error


def _line(text: object) -> str:
    return " ".join(visible(str(text)).split())[:1000]


def _system_error(error: BaseException | None) -> str | None:
    """Return the operating system's words (`Connection refused`) behind a failed request, if there are any."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__ or error.__context__
    return None
