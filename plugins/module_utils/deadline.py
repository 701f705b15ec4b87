"""A time limit for a whole request: limits of sockets start again with each byte, so that a peer could drip indefinitely."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
REQUEST_SECONDS = 120.0
"""Limit of a request with its answer; an answer of 10 MB from an emulated machine takes some seconds."""


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Return what a function returns, or raise its error; `TimeoutError` when it takes longer.

    It runs in a thread of its own, which is left behind when the time is over: it must not hold anything that others need.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"the answer is not complete within {seconds:g} s")
    return results[0]
