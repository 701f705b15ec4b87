"""Execution of a profile's tests: each within its limit, with bounded output, and its result as a check of `validate`."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from .._deps import optional
from ..documents import DocumentError, load_yaml, read_file
from ..errors import AgentlabError, ClusterError
from ..plan.machines import address_of
from ..plan.model import Plan
from ..plan.outside import address_of as outside_address
from ..plan.outside import machines
from ..plan.tests import API, HOST, Test, action
from ..redact import redact
from .client import ClusterClient
from .validate import Check

requests = optional("requests")

OUTPUT = 1 << 20
"""Bytes of an output, a body or the end of a console that are compared."""
SHOWN = 500
"""Characters of it that a failure shows."""
_REGEX_SECONDS = 10.0
_CONSOLE_SECONDS = 1.0
# An expression may take practically without end: in a process of its own it can be ended.
_SEARCH = "import json, re, sys; p, t = json.load(sys.stdin); sys.exit(not re.search(p, t, re.M))"


class FailedTest(AgentlabError):
    """Why a test could not be run; the text follows its name."""


class Reach(NamedTuple):
    """How a test gets to its place.

    ssh: the command prefix for a node's address; kubeconfig: of the cluster; authority: file with the certificate of the
    lab's services, which need not exist; environment: of commands on the host and in the lab.
    """

    ssh: Callable[[str], Sequence[str]]
    kubeconfig: Path
    authority: Path
    environment: dict[str, str]


class RunOutput(NamedTuple):
    """status: exit status, or status of the response; text: output, or body, of at most `OUTPUT` bytes."""

    status: int
    text: str


def selected_tests(plan: Plan, only: Collection[str], *, on_host: bool) -> list[Test]:
    """Return the tests of a plan that run on the host, or those that do not; only: their names, empty for all.

    Raises `FailedTest` for a name that no test has.
    """
    names = [test["name"] for test in plan["tests"]]
    for name in only:
        if name not in names:
            raise FailedTest(f"there is no test {name}: tests of the profile are {', '.join(names) or 'none'}")
    return [test for test in plan["tests"] if (test["on"] == HOST) is on_host and (not only or test["name"] in only)]


def execute(plan: Plan, test: Test, reach: Reach) -> Check:
    """Run one test and return its result; it takes no longer than its limit and some seconds."""
    began = time.monotonic()
    try:
        found = _console(plan, test) if action(test) == "console" else _expected(test, _do(plan, test, reach))
        ok = True
    except FailedTest as error:
        found, ok = str(error), False
    seconds = round(time.monotonic() - began, 1)
    return Check(f"test {test['name']}", ok, f"{found} ({seconds} s)", seconds)


def _do(plan: Plan, test: Test, reach: Reach) -> RunOutput:
    if test["http"] is not None:
        return _get(test["http"], test["timeout"], reach, api=test["on"] == API)
    command, limit = test["run"] or [], test["timeout"]
    words = ["sh", "-c", command] if isinstance(command, str) else [str(word) for word in command]
    addresses = {node["name"]: address_of(node, plan["networks"]) for node in plan["nodes"]}
    addresses |= {machine["name"]: outside_address(machine) for machine in machines(plan)}
    address = addresses.get(test["on"])
    if address is None:
        return run(words, limit, {**os.environ, **reach.environment})
    # The node ends the command, too: it would outlive the connection.
    remote = shlex.join(["timeout", "--kill-after=5", str(limit), *words])
    return run([*reach.ssh(address), remote], limit + 15, dict(os.environ))


def run(words: Sequence[str], limit: float, environment: dict[str, str]) -> RunOutput:
    """Run a command to its end, at most `limit` seconds, and return its exit status and its output.

    Of the output the first `OUTPUT` bytes are kept. Raises `FailedTest` when it cannot be started or does not end in time;
    then it is ended with all that it started.
    """
    try:
        process = subprocess.Popen(
            words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise FailedTest(f"{words[0]} cannot be started: {error}") from error
    kept = bytearray()

    def read() -> None:
        while chunk := os.read(process.stdout.fileno(), 65536) if process.stdout else b"":
            kept.extend(chunk[: max(0, OUTPUT - len(kept))])

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        raise FailedTest(f"it timed out after {limit:.0f} s{_tail(bytes(kept))}") from None
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
    reader.join(2)
    return RunOutput(status, bytes(kept).decode(errors="replace"))


def _get(target: str, limit: float, reach: Reach, *, api: bool) -> RunOutput:
    """GET a URL, or with `api` a path of the API."""
    try:
        if api:
            client = ClusterClient(reach.kubeconfig, limit)
            session, url = client.session, client.server + target
        else:
            session, url = requests.Session(), target
            session.trust_env = False  # never use the caller's proxy for a lab's addresses
    except ClusterError as error:
        raise FailedTest(str(error)) from error
    end, kept = time.monotonic() + limit, bytearray()
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as trusted:
        if not api:
            trusted.write(_authorities(reach))
            trusted.flush()
            session.verify = trusted.name
        try:
            with session.get(url, timeout=limit, stream=True) as answer:
                # Byte by byte: a longer chunk waits until it is full, which a slow server never lets happen.
                for chunk in answer.iter_content(1):
                    kept.extend(chunk[: max(0, OUTPUT - len(kept))])
                    if len(kept) >= OUTPUT:
                        break
                    if time.monotonic() > end:
                        raise FailedTest(f"GET {url} timed out after {limit:.0f} s")
                return RunOutput(answer.status_code, bytes(kept).decode(errors="replace"))
        except (requests.RequestException, OSError) as error:
            raise FailedTest(f"GET {url}: {error}") from error


def _authorities(reach: Reach) -> str:
    """Return the certificates that this host, the cluster and the lab's services are trusted by, as PEM."""
    host = ssl.get_default_verify_paths().cafile
    found = [Path(host).read_text(encoding="utf-8") if host else ""]
    with contextlib.suppress(OSError):
        found.append(reach.authority.read_text(encoding="utf-8"))
    try:
        config = load_yaml(read_file(reach.kubeconfig), name=str(reach.kubeconfig))
        for cluster in config["clusters"]:
            found.append(base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode())
    except (OSError, DocumentError, LookupError, TypeError, ValueError):
        pass  # what it would be trusted by is missing, which the request reports
    return "\n".join(found)


def _console(plan: Plan, test: Test) -> str:
    """Wait until the console matches; return what was looked for."""
    console = next(one["console"] for one in [*plan["nodes"], *machines(plan)] if one["name"] == test["on"])
    pattern, path, end = str(test["console"]), Path(console), time.monotonic() + test["timeout"]
    before: tuple[int, int] | None = None
    while True:
        try:
            with path.open("rb") as stream:
                facts = os.fstat(stream.fileno())
                stream.seek(max(0, facts.st_size - OUTPUT))
                text = stream.read(OUTPUT)
        except OSError as error:
            raise FailedTest(f"{path}: {error.strerror}") from error
        if before != (facts.st_size, facts.st_mtime_ns):
            before = (facts.st_size, facts.st_mtime_ns)
            if matches(pattern, text.decode(errors="replace").replace("\r\n", "\n")):
                return f"the console shows {pattern}"
        if time.monotonic() > end:
            raise FailedTest(f"the console does not show {pattern} within {test['timeout']} s{_tail(text)}")
        time.sleep(_CONSOLE_SECONDS)


def _expected(test: Test, done: RunOutput) -> str:
    """Return what was found, when it is as expected."""
    word, expect = ("exit status" if test["http"] is None else "status"), test["expect"]
    if done.status != expect["status"]:
        raise FailedTest(f"{word} {done.status}, expected {expect['status']}{_tail(done.text.encode())}")
    if expect["output"] is not None and not matches(expect["output"], done.text):
        raise FailedTest(
            f"{word} {done.status}; the output does not match {expect['output']}{_tail(done.text.encode())}"
        )
    return f"{word} {done.status}" + (f", matches {expect['output']}" if expect["output"] is not None else "")


def matches(pattern: str, text: str) -> bool:
    """Return whether a regular expression matches somewhere, `^` and `$` at each line.

    Raises `FailedTest` for one that takes longer than some seconds.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _SEARCH], input=json.dumps([pattern, text]), text=True, timeout=_REGEX_SECONDS,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise FailedTest(f"{pattern} takes longer than {_REGEX_SECONDS:.0f} s to match") from None
    return done.returncode == 0


def _tail(output: bytes) -> str:
    """Return the end of an output, as the end of a message."""
    text = redact(output.decode(errors="replace").strip())[-SHOWN:]
    return f"; it ends with: {text}" if text else ""
