"""The program: the dialog on a terminal, by curses."""

from __future__ import annotations

import curses
import locale
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable

from .checks import WIDTH, Dialog, Result, checks
from .network import network, own_addresses
from .rendezvous import INTERACTIVE, Rendezvous, reaches, save

PAUSE_SECONDS = 5.0
"""Pause of a check before it is repeated."""
LOG = "/tmp/agent_tui.log"


KEYS = {"\t": "tab", "\n": "enter", "\r": "enter", "\x1b": "esc", "\x7f": "backspace"}
SPECIAL = {
    curses.KEY_LEFT: "left", curses.KEY_RIGHT: "right", curses.KEY_UP: "up", curses.KEY_DOWN: "down", curses.KEY_BTAB: "tab",
    curses.KEY_ENTER: "enter", curses.KEY_BACKSPACE: "backspace",
}  # fmt: skip


def name_of(pressed: int | str) -> str:
    """Return the name of a key as curses has it; empty for one without."""
    return SPECIAL.get(pressed, "") if isinstance(pressed, int) else KEYS.get(pressed, pressed)


def draw(screen: curses.window, dialog: Dialog | Rendezvous, now: float) -> None:
    """Draw the page in the middle of the screen."""
    screen.erase()
    height, width = screen.getmaxyx()
    lines = dialog.lines(now)
    rows = [f"{f'  {dialog.title}  ':═^{WIDTH - 2}}", "", *lines, ""]
    top, left = max(0, (height - len(rows) - 2) // 2), max(0, (width - WIDTH) // 2)
    for number, line in enumerate(rows):
        if top + number < height - 1:
            screen.addnstr(top + number, left + 1, line, width - left - 2)
    labels = dialog.buttons()
    column = left + max(1, (WIDTH - sum(map(len, labels)) - 6 * (len(labels) - 1)) // 2)
    for number, label in enumerate(labels):
        chosen = curses.A_REVERSE if number == dialog.button else curses.A_NORMAL
        screen.addnstr(min(top + len(rows), height - 1), column, label, width - column - 1, chosen)
        column += len(label) + 6
    screen.refresh()


def follow(screen: curses.window, image: str, log: Callable[[str], None]) -> None:
    """Show the dialog until it ends."""
    interactive = INTERACTIVE.exists()
    found: queue.Queue[Result] = queue.Queue()

    def repeat(check: Callable[[], Result]) -> None:
        while True:
            found.put(check())
            time.sleep(PAUSE_SECONDS)

    for check in () if interactive else checks(image).values():
        threading.Thread(target=repeat, args=(check,), daemon=True).start()
    dialog = Rendezvous(own_addresses, reaches, save) if interactive else Dialog(image)
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
