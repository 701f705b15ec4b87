"""SIGTERM and SIGHUP as exceptions, so that what was begun is cleaned up as after Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_ALL = (signal.SIGINT, *_SIGNALS)


class Termination(KeyboardInterrupt):
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
def raise_terminated() -> Iterator[None]:
    """Raise `Termination` for SIGTERM and SIGHUP while the block runs; signals that are ignored (nohup) stay so.

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


@contextmanager
def first_only() -> Iterator[None]:
    """Let only the first of SIGINT, SIGTERM and SIGHUP interrupt the block: what cleans up in it is not interrupted again.

    Signals without a handler of this program stay as they are. In another thread than the main one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
    for number in _ALL:
        handler = signal.getsignal(number)
        if callable(handler):
            handlers[number] = handler
    after = {number: signal.getsignal(number) for number in handlers}

    def first(number: int, frame: FrameType | None) -> None:
        for each in handlers:
            signal.signal(each, handlers[each])
        try:
            handlers[number](number, frame)
        finally:
            for each in handlers:
                after[each] = signal.getsignal(each)
                signal.signal(each, signal.SIG_IGN)

    for one in handlers:
        signal.signal(one, first)
    try:
        yield
    finally:
        for one, restored in after.items():
            signal.signal(one, restored)


@contextmanager
def defer_signals() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP wait until the block has ended, which must not stop half-way; then the first one takes effect.

    Signals that are ignored stay so. In another thread than the main one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _ALL}
    taken = [number for number, handler in before.items() if handler not in (signal.SIG_IGN, None)]
    late: list[int] = []
    for number in taken:
        signal.signal(number, lambda received, __: late.append(received))
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
        if late:
            signal.raise_signal(late[0])


def _raise(number: int, _frame: FrameType | None) -> None:
    for each in _SIGNALS:  # a second one must not interrupt the cleaning up
        signal.signal(each, signal.SIG_IGN)
    raise Termination(number)
