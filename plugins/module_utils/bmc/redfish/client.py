"""Boot machines through their BMC: virtual media in, power on, media out. Lab and bare metal alike, on top of sushy."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

from ..._deps import optional
from ...errors import LabError
from ...log import visible
from ..quirks import behavior
from .address import parse
from .replies import connector

if TYPE_CHECKING:
    import sushy
else:
    sushy = optional("sushy")

T = TypeVar("T")
MEDIUM_SECONDS = 30.0
# Inserting is one request; an emulator downloads the whole image before it answers.
REQUEST_SECONDS = 600
CONNECT_SECONDS = 10
SERVER_RETRIES, SERVER_DELAY = 5, 2  # seconds: an emulator answers again when its libvirtd does


class Bmc:
    """One machine as its BMC shows it. Every refusal and every failure of the network is a `LabError` of one line.

    name: the machine's, for messages; verify: whether its certificate is checked, or the path of the CA to check with; quirks: names
    of `quirks.QUIRKS`.
    """

    def __init__(
        self,
        name: str,
        address: str,
        username: str,
        password: str,
        verify: bool | str = True,
        quirks: Collection[str] = (),
    ) -> None:
        self.name, self.address = name, address
        self._behavior = behavior(quirks)
        self._boots_cd = False
        where = parse(address)

        def connect() -> Any:
            root = sushy.Sushy(
                where.root,
                auth=sushy.auth.BasicAuth(username=username, password=password),
                connector=connector(
                    where.root,
                    busy_seconds=self._behavior.busy_seconds,
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

        Without the guest's help, as a cut of its power. Waits until the BMC reports it, at most 120 s (`slow_post`: 900 s).
        """
        if self.power() == "off":
            return False
        self._do("power off", lambda: self._system.reset_system(sushy.ResetType.FORCE_OFF))
        self._wait_power("off")
        return True

    def power_on(self) -> bool:
        """Switch on; return whether it was off.

        Waits until the BMC reports it, at most 120 s (`slow_post`: 900 s). With `boot_override_lost`, a boot device that was set while
        it was off is set again, and it is restarted.
        """
        if self.power() == "on":
            return False
        self._do("power on", lambda: self._system.reset_system(sushy.ResetType.ON))
        self._wait_power("on")
        if self._boots_cd and self._behavior.again_while_on:
            self.boot_from_cd()
            self._do("restart", lambda: self._system.reset_system(sushy.ResetType.FORCE_RESTART))
            self._wait_power("on")
        self._boots_cd = False
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
        before it answers; a task may take 900 s. Returns when the BMC reports the medium.
        """
        device = self._do("read the virtual media", self._cd)
        if device.inserted and device.image == url:
            return False
        if device.inserted:
            self.eject()
        options: dict[str, Any] = {}
        if self._behavior.http_only:
            if not url.startswith("http://"):
                raise self._error(f"insert {url}", "quirk http_only: the image must be an http URL")
            options["transfer_protocol"] = sushy.VirtualMediaTransferProtocolType.HTTP
        self._change(f"insert {url}", lambda: device.insert_media(url, **options))
        self._wait_medium(f"insert {url}", inserted=True, hint="can it reach this URL?")
        return True

    def eject(self) -> bool:
        """Eject the CD; return whether there was one.

        The running machine loses the medium at once. Raises `LabError` for a BMC without a virtual CD, and for one that keeps the
        medium.
        """
        device = self._do("read the virtual media", self._cd)
        if not device.inserted:
            return False
        self._change("eject", device.eject_media)
        # sushy takes some refusals (409) for done.
        hint = f"if it refuses this while the machine is on, nodes.{self.name}.bmc.quirks is [eject_refused_while_on]"
        self._wait_medium("eject", inserted=False, hint=hint)
        return True

    def boot_from_cd(self) -> None:
        """Boot from the CD next time, once, whatever is on the disk. A machine that is on continues to run."""
        self._do(
            "set the boot device",
            lambda: self._system.set_system_boot_options(
                sushy.BootSource.CD, enabled=sushy.BootSourceOverrideEnabled.ONCE
            ),
        )
        self._boots_cd = True

    def _change(self, what: str, function: Callable[[], object]) -> None:
        """Change the medium, as the quirks allow."""
        if self._behavior.media_while_off and self.power() != "off":
            raise self._error(
                what,
                "quirk eject_refused_while_on: media are changed only while the machine is off: "
                f"agentlab power {self.name} off",
            )
        self._do(what, function)

    def _wait_medium(self, what: str, *, inserted: bool, hint: str) -> None:
        deadline = time.monotonic() + MEDIUM_SECONDS
        while (self.medium() is not None) is not inserted:
            if time.monotonic() > deadline:
                found = "no" if inserted else "a"
                raise self._error(what, f"it reports {found} medium after {MEDIUM_SECONDS:.0f} s: {hint}")
            time.sleep(1)

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
        limit = self._behavior.power_seconds
        deadline = time.monotonic() + limit
        while (found := self.power()) != state:
            if time.monotonic() > deadline:
                raise LabError(
                    f"BMC of {self.name} ({self.address}): power is {found}, not {state}, after {limit:.0f} s"
                )
            time.sleep(0.2)

    def _error(self, what: str, reason: str) -> LabError:
        return LabError(f"BMC of {self.name} ({self.address}): cannot {what}: {reason}")

    def _do(self, what: str, function: Callable[[], T]) -> T:
        try:
            return function()
        except sushy.exceptions.AccessError as error:
            reason = f"it refuses the credentials (HTTP {error.status_code}): give others (nodes.{self.name}.bmc)"
            raise self._error(what, reason) from error
        except sushy.exceptions.ConnectionError as error:
            raise self._error(what, _system_error(error) or _line(error)) from error
        except sushy.exceptions.SushyError as error:
            reason = getattr(error, "detail", None) or error
            raise self._error(what, _line(reason)) from error
        except LabError:
            raise
        except (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
            # sushy takes a reply's fields as they are.
            reason = f"its reply is not as Redfish has it: {type(error).__name__}: {error}"
            raise self._error(what, _line(reason)) from error


def _line(text: object) -> str:
    return " ".join(visible(str(text)).split())[:1000]


def _system_error(error: BaseException | None) -> str | None:
    """Return the operating system's words (`Connection refused`) behind a failed request, if there are any."""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            return error.strerror
        error = error.__cause__ or error.__context__
    return None
