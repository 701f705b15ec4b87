"""Work that is too long for the event loop, in threads of its own: commits wait for the disk in others."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

#: JSON text that is decoded and validated by its model at once: some 10 ms at its worst, `[1,1,...`.
QUICK = 16 * 2**10
#: YAML text that is read at once.
QUICK_YAML = 4 * 2**10

_WORKERS = ThreadPoolExecutor(2, thread_name_prefix="aside")


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function(...)` in a thread and return its result, or raise its error.

    It must not touch documents of the store, which belong to the event loop. There are two such threads; more work
    waits.
    """
    return await asyncio.get_running_loop().run_in_executor(_WORKERS, functools.partial(function, *args, **kwargs))


def in_pieces(value: object, **options: Any) -> str:
    """Return `json.dumps(value, ...)`, made so that other threads run meanwhile.

    For work in a thread: json's own encoder would keep the interpreter to itself to the end. It takes longer in total.
    """
    return "".join(json.JSONEncoder(**options).iterencode(value))
