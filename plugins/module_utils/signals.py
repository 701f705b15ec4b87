"""SIGTERM and SIGHUP as exceptions, so that what was begun is cleaned up as after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class Terminated(KeyboardInterrupt):
    """The program was asked to end by signal `number`.

    It is a `KeyboardInterrupt`, so that what cleans up after Ctrl-C does so for these signals as well.
    """

    def __init__(self, number: int) -> None:
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell reports for a program that the signal killed.

        That is 128 and the number of the signal: 143 for SIGTERM, 129 for SIGHUP.
        """
        return 128 + self.number


@contextmanager
def raised() -> Iterator[None]:
    """Raise `Terminated` for SIGTERM and SIGHUP while the block runs; signals that are ignored (nohup) stay so.

    Only the main thread may set handlers; in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    taken = [number for number, handler in before.items() if handler == signal.SIG_DFL]
    for number in taken:
        signal.signal(number, _raise)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])


def _raise(number: int, _frame: FrameType | None) -> None:
    for each in _SIGNALS:  # a second one must not interrupt the cleaning up
        signal.signal(each, signal.SIG_IGN)
    raise Terminated(number)
