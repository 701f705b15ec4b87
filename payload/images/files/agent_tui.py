"""Simulator of agent-tui: before the agent starts, it checks that the release image can be pulled, and lets a user edit the network.

It runs in the lab's OS, from the initramfs of the agent ISO, with the standard library alone. Titles, buttons, keys, checks and
times are upstream's (https://github.com/openshift/agent-installer-utils, tools/agent_tui); the sentences are our own.
"""

from __future__ import annotations

import curses
import ipaddress
import locale
import os
import queue
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

PAUSE_SECONDS = 5.0
"""Pause of a check before it is repeated."""
PROMPT_SECONDS = 20.0
"""How long the question waits for an answer, before the installation continues."""
COMMAND_SECONDS = 300.0
WIDTH = 80
PULL, DNS, PING, HTTP = "release image pull", "nslookup", "ping", "http"
LOG = "/tmp/agent_tui.log"
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


def output(words: list[str]) -> list[str]:
    """Return the lines that a command prints; none if it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def network() -> list[str]:
    """Return addresses, default routes and name servers, a line each."""
    shown = ["Interfaces"]
    for line in output(["ip", "-brief", "address"]):
        name, state, *addresses = line.split()
        shown.append(f"  {name} {state}: {', '.join(addresses)}")
    shown.append("Routes")
    for family in ("-4", "-6"):
        shown += [f"  {line}" for line in output(["ip", family, "route", "show", "default"])]
    shown.append("DNS")
    try:
        words = [line.split() for line in Path("/etc/resolv.conf").read_text(encoding="utf-8").splitlines()]
    except OSError:
        words = []
    return [*shown, *(f"  {line[1]}" for line in words if line[:1] == ["nameserver"] and is_address(line[1:]))]


def is_address(words: list[str]) -> bool:
    """Return whether the first word is an address."""
    try:
        return bool(words) and bool(ipaddress.ip_address(words[0].partition("%")[0]))
    except ValueError:
        return False


KEYS = {"\t": "tab", "\n": "enter", "\r": "enter", "\x1b": "esc"}
SPECIAL = {curses.KEY_LEFT: "left", curses.KEY_RIGHT: "right", curses.KEY_BTAB: "tab", curses.KEY_ENTER: "enter"}


def name_of(pressed: int | str) -> str:
    """Return the name of a key as curses has it; empty for one without."""
    return SPECIAL.get(pressed, "") if isinstance(pressed, int) else KEYS.get(pressed, pressed)


def draw(screen: curses.window, dialog: Dialog, now: float) -> None:
    """Draw the page in the middle of the screen."""
    screen.erase()
    height, width = screen.getmaxyx()
    lines = dialog.lines(now)
    rows = [f"{'  Agent installer network boot setup  ':═^{WIDTH - 2}}", "", *lines, ""]
    top, left = max(0, (height - len(rows) - 2) // 2), max(0, (width - WIDTH) // 2)
    for number, line in enumerate(rows):
        if top + number < height - 1:
            screen.addnstr(top + number, left + 1, line, width - left - 2)
    column = left + WIDTH // 2 - 16
    for number, label in enumerate(dialog.buttons()):
        chosen = curses.A_REVERSE if number == dialog.button else curses.A_NORMAL
        screen.addnstr(min(top + len(rows), height - 1), column, label, width - column - 1, chosen)
        column += len(label) + 6
    screen.refresh()


def follow(screen: curses.window, image: str, log: Callable[[str], None]) -> None:
    """Show the dialog until it ends."""
    found: queue.Queue[Result] = queue.Queue()

    def repeat(check: Callable[[], Result]) -> None:
        while True:
            found.put(check())
            time.sleep(PAUSE_SECONDS)

    for check in checks(image).values():
        threading.Thread(target=repeat, args=(check,), daemon=True).start()
    dialog = Dialog(image)
    curses.curs_set(0)
    screen.timeout(200)
    while True:
        draw(screen, dialog, time.monotonic())
        try:
            action = dialog.key(name_of(screen.get_wch()))
        except curses.error:  # no key in time
            action = dialog.tick(time.monotonic())
        if action == "network":
            curses.endwin()
            subprocess.run(["nmtui"], check=False)
            while not found.empty():
                found.get()
            dialog.edited(network())
            log("the network was edited")
            screen.clear()
        elif action == "quit":
            return
        while not found.empty():
            result = found.get()
            log(f"{result.check}: {'as it must be' if result.ok else 'failed'}: {result.text}")
            dialog.result(result, time.monotonic())


def main() -> int:
    """Show the dialog for the release image that the environment names."""
    image = os.environ.get("RELEASE_IMAGE", "")
    if not image:
        print("agent-tui: RELEASE_IMAGE is not set, so nothing can be checked")
        return 1
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    os.environ.setdefault("ESCDELAY", "100")
    with open(os.environ.get("AGENT_TUI_LOG_PATH") or LOG, "a", encoding="utf-8") as file:

        def log(text: str) -> None:
            file.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {text}\n")
            file.flush()

        log(f"release image: {image}")
        curses.wrapper(lambda screen: follow(screen, image, log))
    return 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Checks may still run. An ordinary exit takes the interpreter away from their threads, which crashed a host at times.
    os._exit(status)
