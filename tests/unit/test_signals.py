"""Signals that end a program: which of them interrupt, and when."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils import signals

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def usual() -> Iterator[None]:
    """The handlers of a new program; a test in the background of a shell inherits signals that are ignored."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in NUMBERS[1:]:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("second", NUMBERS)
@pytest.mark.parametrize("first", NUMBERS)
def test_only_the_first_one_interrupts(first: signal.Signals, second: signal.Signals) -> None:
    """A second Ctrl-C, or SIGTERM after Ctrl-C, does not interrupt what cleans up."""
    done = []
    with pytest.raises(KeyboardInterrupt) as ended, signals.raise_terminated(), signals.first_only():
        try:
            signal.raise_signal(first)
        finally:
            signal.raise_signal(second)
            done.append("cleaned up")
    assert done == ["cleaned up"]
    assert getattr(ended.value, "number", signal.SIGINT) == first
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.parametrize("number", NUMBERS)
def test_a_signal_waits_for_the_end_of_the_block(number: signal.Signals) -> None:
    done = []
    with pytest.raises(KeyboardInterrupt) as ended, signals.raise_terminated(), signals.defer_signals():
        signal.raise_signal(number)
        signal.raise_signal(number)
        done.append("whole")
    assert done == ["whole"]
    assert getattr(ended.value, "number", signal.SIGINT) == number


def test_a_signal_that_is_ignored_stays_so() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals.raise_terminated(), signals.first_only(), signals.defer_signals():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_an_error_is_not_lost_without_a_signal() -> None:
    with pytest.raises(ValueError, match="x"), signals.first_only(), signals.defer_signals():
        raise ValueError("x")
