"""The checks before the agent starts, and the pages that show them."""

from __future__ import annotations

import subprocess
import textwrap
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import Literal, NamedTuple

PROMPT_SECONDS = 20.0
"""How long the question waits for an answer, before the installation continues."""
COMMAND_SECONDS = 300.0
WIDTH = 80
PULL, DNS, PING, HTTP = "release image pull", "nslookup", "ping", "http"
Page = Literal["splash", "prompt", "checks", "network"]
Action = Literal["quit", "network"]


class Result(NamedTuple):
    """What a check found: whether it is as it must be, and its output."""

    check: str
    ok: bool
    text: str


def host_of(image: str) -> str:
    """Return the host in a pullspec."""
    return urllib.parse.urlsplit(f"https://{image}").hostname or image


def command(check: str, words: list[str]) -> Result:
    """Run a command of a check."""
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, timeout=COMMAND_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Result(check, False, str(error))
    return Result(check, done.returncode == 0, done.stdout.strip() or f"{words[0]}: exit status {done.returncode}")


def http(image: str) -> Result:
    """Request the start page of the registry; any answer is a success."""
    try:
        with urllib.request.urlopen(f"https://{image.partition('/')[0]}", timeout=10) as answer:
            return Result(HTTP, True, str(answer.status))
    except urllib.error.HTTPError as error:
        return Result(HTTP, True, str(error))
    except (OSError, ValueError) as error:
        return Result(HTTP, False, str(error))


def checks(image: str) -> dict[str, Callable[[], Result]]:
    """Return the checks by their names; the lab's OS has getent instead of nslookup."""
    host = host_of(image)
    return {
        PULL: lambda: command(PULL, ["podman", "pull", image]),
        DNS: lambda: command(DNS, ["getent", "ahosts", host]),
        PING: lambda: command(PING, ["ping", "-c", "4", host]),
        HTTP: lambda: http(image),
    }


class Dialog:
    """What is shown and what happens, by results, keys and time. Times are those of one clock, in seconds."""

    title = "Agent installer network boot setup"

    def __init__(self, image: str) -> None:
        self.image, self.page = image, "splash"
        self.results: dict[str, Result] = {}
        self.touched = False
        """Whether a user pressed a key: the installation then continues only when they quit."""
        self.button = 0
        self.until = 0.0
        self.network: list[str] = []

    @property
    def pulled(self) -> bool:
        """Whether the release image could be pulled the last time."""
        return PULL in self.results and self.results[PULL].ok

    def result(self, found: Result, now: float) -> None:
        """Take what a check found."""
        self.results[found.check] = found
        if PULL not in self.results or self.page == "network":
            return
        if not self.pulled and self.page in ("splash", "prompt"):
            self._show("checks")
        elif self.pulled and (self.page == "splash" or (self.page == "checks" and not self.touched)):
            self._show("prompt")
            self.until = now + PROMPT_SECONDS

    def tick(self, now: float) -> Action | None:
        """Return what happens without a key: the question has waited long enough."""
        return "quit" if self.page == "prompt" and now >= self.until else None

    def key(self, name: str) -> Action | None:
        """Return what happens by a key: a character, or `left`, `right`, `tab`, `enter`, `esc`."""
        self.touched = True
        if self.page == "network":
            if name in ("q", "esc", "enter", "tab"):
                self._show("checks")
            return None
        if self.page == "splash":
            return None
        if name in ("left", "right", "tab"):
            self.button = 1 - self.button
        elif self.page == "prompt" and name == "esc":
            return "quit"
        elif self.page == "prompt" and name == "enter":
            if self.button:
                return "quit"
            self._show("checks")
        elif self.page == "checks" and (name in ("q", "Q") or (name == "enter" and self.button == 1)):
            return "quit"
        elif self.page == "checks" and (name in ("c", "C") or (name == "enter" and self.button == 0)):
            return "network"
        return None

    def edited(self, network: list[str]) -> None:
        """Show the network after it was edited; what the checks found before is no longer true."""
        self.results.clear()
        self.network = network
        self._show("network")

    def _show(self, page: Page) -> None:
        self.page, self.button = page, 0

    def lines(self, now: float) -> list[str]:
        """Return the lines of the page, without the buttons."""
        if self.page == "splash":
            return ["Please wait: the release image is pulled for the first check."]
        if self.page == "network":
            return box("Network Status", [*self.network, "", "q: back to the checks"])
        if self.page == "prompt":
            left = max(0, round(self.until - now))
            return [
                "The release image can be pulled with the network as it is.",
                "Edit the network of this host nevertheless?",
                "",
                f"Without an answer the installation continues in {left} s.",
            ]
        shown = box("Release image URL", ["", f" {self._mark(PULL)} {self.image}", ""])
        if not self.pulled:
            host = host_of(self.image)
            labels = {DNS: f"nslookup {host}", PING: f"ping {host}", HTTP: f"{host} responds to http GET"}
            shown += box("Additional checks", [f" {self._mark(name)} {label}" for name, label in labels.items()])
            errors = [
                line
                for found in self.results.values()
                if not found.ok
                for line in (f"{found.check} failure:", *textwrap.wrap(found.text, WIDTH - 6)[-4:])
            ]
            shown += box("Check Errors", [*errors, *[""] * 13][:13])
        return shown

    def buttons(self) -> list[str]:
        """Return the buttons of the page."""
        return {"checks": ["<Configure Network>", "<Quit>"], "prompt": ["<Yes>", "<No>"]}.get(self.page, [])

    def _mark(self, check: str) -> str:
        found = self.results.get(check)
        return "?" if found is None else "√" if found.ok else "x"


def box(title: str, lines: list[str]) -> list[str]:
    """Return the lines in a frame with a title; what does not fit ends with `…`-like dots."""
    inner = WIDTH - 4
    cut = [line if len(line) <= inner else line[: inner - 3] + "..." for line in lines]
    middle = [f"│{line:<{inner}}│" for line in cut]
    return [f"┌{f'  {title}  ':─^{inner}}┐", *middle, f"└{'─' * inner}┘"]
