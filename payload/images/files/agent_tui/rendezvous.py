"""The pages of a host without a cluster: which host is the rendezvous host."""

from __future__ import annotations

import re
import textwrap
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from .checks import WIDTH, Action, Result
from .network import is_address

INTERACTIVE = Path("/etc/assisted/interactive-ui")
ENV = Path("/etc/assisted/rendezvous-host.env")
FORM = ["<Save rendezvous IP>", "<This is the rendezvous node>", "<Configure Network>"]
BACK, CONTINUE, SAVE = "<Back>", "<Continue>", "<Save and Continue>"


class Rendezvous:
    """The choice of the rendezvous host, with the methods of `Dialog`. All is by keys, whose focus (`button`) starts in the field, -1.

    addresses: returns the host's own; reaches: whether the service answers there; save: keeps the choice, or raises OSError.
    """

    title = "Rendezvous node setup"

    def __init__(
        self, addresses: Callable[[], list[str]], reaches: Callable[[str], bool], save: Callable[[str], None]
    ) -> None:
        self.addresses, self.reaches, self.save = addresses, reaches, save
        self.text, self.button, self.message = "", -1, ""
        self.choices: list[str] = []
        """Of the list of addresses, or the buttons below a message; none: those of the form."""

    def result(self, found: Result, now: float) -> None:
        """Checks change nothing here."""

    def tick(self, now: float) -> Action | None:
        """Return what happens without a key: nothing."""
        return None

    def edited(self, _network: list[str]) -> None:
        """Show the form after the network was edited."""
        self._show("", [], -1)

    def _show(self, message: str, choices: list[str], button: int = 0) -> None:
        self.message, self.choices, self.button = message, choices, button

    def key(self, name: str) -> Action | None:
        """Return what happens by a key, as `Dialog.key`; other names of one character are typed."""
        first = 0 if self.choices else -1
        count = len(self.buttons()) - first
        if name in ("tab", "right", "down"):
            self.button = (self.button - first + 1) % count + first
        elif name in ("left", "up"):
            self.button = (self.button - first - 1) % count + first
        elif self.button < 0:
            self.text = self.text[:-1] if name == "backspace" else self.text + name * (len(name) == 1)
        elif name == "enter":
            return self._press(self.buttons()[self.button])
        return None

    def _press(self, label: str) -> Action | None:
        if label == FORM[0]:
            self._typed()
        elif label == FORM[1]:
            self._show("Select an IP address from this node to be the rendezvous node IP.", [*self.addresses(), BACK])
        elif label == BACK:
            self._show("", [], -1)
        elif label == FORM[2]:
            return "network"
        elif label == CONTINUE or (label == SAVE and self._save(self.text)):
            return "quit"
        elif label != SAVE and self._save(label):
            self._saved(label)
        return None

    def _typed(self) -> None:
        if not is_address([self.text]):
            self._show(f"{self.text or '<blank>'} is not an IP address.", [BACK])
        elif not self.reaches(self.text):
            text = f"No service answers at {self.text} yet: another host, or one that has not started?"
            self._show(text, [SAVE, BACK, FORM[2]])
        elif self._save(self.text):
            self._saved(self.text)

    def _save(self, address: str) -> bool:
        try:
            self.save(address)
        except OSError as error:
            self._show(f"The address cannot be saved: {error}", [BACK])
            return False
        return True

    def _saved(self, address: str) -> None:
        more = " Enter it on the other hosts of the cluster." if address in self.addresses() else ""
        self._show(f"{address} is saved as the rendezvous node IP.{more}", [CONTINUE, BACK])

    def lines(self, _now: float) -> list[str]:
        """Return the lines of the page, without the buttons."""
        text = self.message or "The rendezvous node manages the installation, and is where the cluster is configured."
        shown = textwrap.wrap(text, WIDTH - 6)
        return shown if self.message else [*shown, "", f"Rendezvous IP  {self.text + '_' * (self.button < 0)}"]

    def buttons(self) -> list[str]:
        """Return the buttons of the page, or the addresses to choose from."""
        return self.choices or FORM


def render(template: str, address: str) -> str:
    """Return rendezvous-host.env; of Go's templates, what the installer's has: two values, and actions without output."""
    values = {".RendezvousIP": address, "$host": f"[{address}]" if ":" in address else address}
    return re.sub(r"{{\s*(.*?)\s*}}", lambda action: values.get(action[1], ""), template)


def environment(address: str) -> str:
    """Return rendezvous-host.env of this host with this rendezvous host."""
    return render(ENV.with_name(f"{ENV.name}.template").read_text(encoding="utf-8"), address)


def save(address: str) -> None:
    """Write rendezvous-host.env of this host, which the other units wait for."""
    text, new = environment(address), ENV.with_name(f"{ENV.name}.new")
    new.touch(0o600)
    new.write_text(text, encoding="utf-8")
    new.rename(ENV)


def reaches(address: str) -> bool:
    """Return whether a service answers at the address."""
    try:
        place = dict(line.split("=", 1) for line in environment(address).splitlines() if "=" in line)[
            "SERVICE_BASE_URL"
        ]
        urllib.request.urlopen(f"{place}api/assisted-install/v2", timeout=1).close()
    except urllib.error.HTTPError:
        pass
    except (OSError, KeyError):
        return False
    return True
