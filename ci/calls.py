"""The command line as a user calls it, for programs of CI that drive an installed cluster: `verbs.py`, `fencing.py`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from ansible_collections.agentlab.ocp.plugins.module_utils.cli.places import run_dir
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit

LIMIT = 600
"""Seconds that a verb may take."""
T = TypeVar("T")
PACKAGE = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"


class VerbFailed(AssertionError):
    """A verb did not do what it should; the text has its output.

    It is an `AssertionError`, which `drive` reports for the verb.
    """


class Verbs:
    """Calls verbs for one cluster, as a user would.

    folder: the working directory of all calls, empty at first.
    """

    def __init__(self, cluster: str, folder: Path) -> None:
        self.cluster, self.folder, self.run_dir = cluster, folder, run_dir(cluster)

    def command(self, verb: str, *argv: str) -> list[str]:
        return [sys.executable, "-m", PACKAGE, verb, *argv]

    def call(self, verb: str, *argv: str, status: int = Exit.OK, given: str = "", **environment: str) -> str:
        """Return stdout of a verb, which must end with `status` (and have one line on stderr if that is FAILED).

        given: standard input; environment: variables in addition. With another status than 0, stderr is part of the
        result. Raises `VerbFailed`, and `TimeoutExpired` after `LIMIT` seconds.
        """
        done = subprocess.run(
            self.command(verb, *argv), input=given, capture_output=True, text=True, timeout=LIMIT, check=False,
            env={**os.environ, "CLUSTER": self.cluster, **environment}, cwd=self.folder,
        )  # fmt: skip
        if done.returncode != status:
            raise VerbFailed(
                f"{verb} {' '.join(argv)}: status {done.returncode}: {(done.stdout + done.stderr)[-2000:]}"
            )
        if status == Exit.FAILED and done.stderr.count("\n") != 1:
            raise VerbFailed(f"{verb} {' '.join(argv)}: not one message: {done.stderr}")
        return done.stdout + (done.stderr if status else "")

    def json(self, verb: str, *argv: str) -> Any:
        return json.loads(self.call(verb, *argv, "-o", "json"))

    @contextlib.contextmanager
    def running(self, verb: str, *argv: str) -> Iterator[subprocess.Popen[str]]:
        """Start a verb that runs until Ctrl-C, which it gets at the end; it must not be left behind.

        Yields the process, with text pipes. It has 30 seconds to end after Ctrl-C, else `TimeoutExpired` is raised.
        """
        # Jobs in the background of a shell inherit that Ctrl-C is ignored.
        command = ["env", "--default-signal=INT", *self.command(verb, *argv)]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
            env={**os.environ, "CLUSTER": self.cluster}, cwd=self.folder, start_new_session=True,
        )  # fmt: skip
        try:
            yield process
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=30)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def expect(condition: object, shown: object) -> None:
    """Raise `VerbFailed` with `shown`, of which the end is enough, unless `condition` is true."""
    if not condition:
        raise VerbFailed(str(shown)[-2000:])


def wait_until(what: str, check: Callable[[], T], limit: float, *, pause: float = 2.0) -> T:
    """Return what `check` returns, once that is true; it may raise OSError or ValueError, whose text is the reason.

    what: a sentence that becomes true; limit, pause: in seconds. Raises `VerbFailed`, with the reason of the last try.
    """
    end, reason = time.monotonic() + limit, ""
    while True:
        try:
            if found := check():
                return found
            reason = ""
        except (OSError, ValueError) as error:
            reason = f": {error}"
        if time.monotonic() > end:
            raise VerbFailed(f"after {limit:.0f} s: {what} is not true{reason}")
        time.sleep(pause)


def exit_status_of(act: Callable[[], object]) -> int:
    """Return the exit status of a program of CI that does `act`: 1 when it fails, after a line with the reason."""
    try:
        act()
    except (VerbFailed, LabError, OSError, LookupError, ValueError, subprocess.SubprocessError) as error:
        print(f"FAIL {type(error).__name__}: {error}", flush=True)
        return 1
    return 0
