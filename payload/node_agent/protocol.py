"""The agent's protocol with the assisted service, without input or output (sans-IO).

Conversations are generators: they yield what to do next (a `Request`, a `Wait`, steps to `Dispatch`) and
get the result. Two drivers run them: threads and `urllib` in the real agent, asyncio and aiohttp in the swarm.

Paths, status codes, delays and the reply cache follow openshift/assisted-installer-agent (`src/agent`, `src/commands`).
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from ...plugins.module_utils.bounded import load_json
from . import fields

API = "/api/assisted-install/v2"

CACHE_SECONDS = 3600.0
BACKOFF_FIRST, BACKOFF_FACTOR, BACKOFF_LIMIT, BACKOFF_JITTER = 0.5, 1.5, 60.0, 0.5
BACKOFF_GIVE_UP = 15 * 60.0
RETRIES, RETRY_FIRST, RETRY_LIMIT = 3, 2.0, 10.0
RUNNER_RETRY_SECONDS = 3600.0
POLL_SECONDS, LONGEST_PAUSE = 60.0, 7 * 86400.0
MOST_STEPS = 100
"""Maximum number of steps in one response, and of concurrent steps; a service has fifteen types."""
MEDIA_DISCONNECTED = 256

PERMANENT = {
    401: "user is not authenticated to perform host registration",
    403: "host is not allowed to perform the requested operation",
    404: "the infra-env does not exist, or the user is not authorized",
    409: "cluster cannot accept new hosts in its current state",
}


class Result(NamedTuple):
    """Result of a step.

    output: the JSON of its output model, or the text of a step without one; error: a message; exit_code: of the
    process, -1 if it was not run.
    """

    output: str = ""
    error: str = ""
    exit_code: int = 0


class Request(NamedTuple):
    """One call: path below the service's URL, with its query. `body` is sent as JSON. `name` is its name in statistics.

    answers: statuses besides 2xx that are not an error.
    """

    name: str
    method: str
    path: str
    body: Any = None
    answers: tuple[int, ...] = ()


class Response(NamedTuple):
    """Answer to a request.

    status: of HTTP, 0 without an answer; body: decoded JSON, or bytes; error: why there is no answer, or the text of a
    bare HTTP error; kind: media type of the body.
    """

    status: int
    body: Any = None
    error: str = ""
    kind: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def reason(self) -> str:
        """The service's two error models and bare HTTP errors, in one line."""
        if isinstance(self.body, dict):
            text = self.body.get("reason") or self.body.get("message") or ""
            return f"[{self.body.get('code', self.status)}] {text}"
        return self.error or f"HTTP status {self.status}"


class Wait(NamedTuple):
    """Sleep for some seconds.

    poll: it is the pause between two polls, which a driver may shorten. The driver sends True to end the conversation
    now.
    """

    seconds: float
    poll: bool = False


class Dispatch(NamedTuple):
    """Start these steps (dictionaries of the model `step`) and do not wait for them."""

    steps: list[dict[str, Any]]


class Freeze(NamedTuple):
    """Stop permanently: only a restart of the agent helps."""

    reason: str


Action = Request | Wait | Dispatch | Freeze
Conversation = Generator[Action, Any, Any]


@dataclass(slots=True)
class Identity:
    """Identity of an agent.

    interval: seconds between attempts to register; agent_version: pullspec of its image; token: of the infra-env, empty
    where the service takes none.
    """

    infra_env_id: str
    host_id: str
    agent_version: str
    token: str = ""
    interval: float = 60.0

    @property
    def host_path(self) -> str:
        return f"{API}/infra-envs/{self.infra_env_id}/hosts/{self.host_id}"

    def headers(self) -> dict[str, str]:
        headers = {"X-Request-ID": str(uuid.uuid4())}
        if self.agent_version:
            headers["discovery_agent_version"] = self.agent_version
        if self.token:
            headers["X-Secret-Key"] = self.token
        return headers


@dataclass(slots=True)
class ReplyCache:
    """Replies that the service already has: a digest of the last output of each step type, for an hour.

    Times are seconds of the caller's clock. An output that is known is not posted again, as upstream's agent does.
    """

    _known: dict[str, tuple[bytes, float]] = field(default_factory=dict)

    @staticmethod
    def _digest(output: str) -> bytes:
        return blake2b(output.encode(), digest_size=12).digest()

    def has(self, step_type: str, output: str, now: float) -> bool:
        digest, until = self._known.get(step_type, (b"", 0.0))
        return now < until and digest == self._digest(output)

    def store(self, step_type: str, output: str, now: float) -> None:
        self._known[step_type] = (self._digest(output), now + CACHE_SECONDS)

    def clear(self) -> None:
        self._known.clear()


def exchange(request: Request) -> Conversation:
    """Send a request; retry after 503 or 504 up to three times, after at most 2, 4 and 8 s.

    The result is the last `Response`, whatever its status; nothing is raised. Pauses are random, so that agents which
    were refused together do not return together.
    """
    for attempt in range(RETRIES + 1):
        response = yield request
        if response.status not in (503, 504) or attempt == RETRIES:
            return response
        yield Wait(random.uniform(0, min(RETRY_LIMIT, RETRY_FIRST * 2**attempt)))
    raise AssertionError("unreachable")


def register(me: Identity) -> Conversation:
    """Register, retrying until it succeeds; return the model `next_step_runner_command` of the reply.

    A response that is not a registration, such as a proxy's login page, is retried like any failure.
    """
    request = Request(
        "register",
        "POST",
        f"{API}/infra-envs/{me.infra_env_id}/hosts",
        {"host_id": me.host_id, "discovery_agent_version": me.agent_version},
    )
    while True:
        response = yield from exchange(request)
        if response.status == 201 and isinstance(response.body, dict):
            command = response.body.get("next_step_runner_command")
            return command if isinstance(command, dict) else {}
        if response.status in PERMANENT:
            yield Freeze(f"Host will stop trying to register; {PERMANENT[response.status]}: {response.reason()}")
        yield Wait(me.interval)


def runner_request(command: Mapping[str, object]) -> dict[str, Any]:
    """Return the `next_step_cmd_request` in a register reply.

    command: `next_step_runner_command` of the reply. ValueError names the field that is missing or invalid: its values
    become arguments of a program.
    """
    args = command.get("args") or []
    if not isinstance(args, list) or len(args) != 1:
        raise ValueError(f"next step runner cmd accepts 1 params in args, given args {args}")
    request = load_json(args[0], name="arguments") if isinstance(args[0], str) else None
    if not isinstance(request, dict):
        raise ValueError(f"next step runner arguments should be an object: {args[0]}")
    missing = [name for name in ("infra_env_id", "host_id") if not request.get(name)]
    missing += ["agent_version"] if request.get("agent_version") is None else []
    if missing:
        raise ValueError(f"next step runner arguments lack {', '.join(missing)}: {args[0]}")
    for name in ("infra_env_id", "host_id"):
        fields.identifier(f"next step runner: {name}", request[name])
    if request["agent_version"]:
        fields.image("next step runner: agent_version", request["agent_version"])
    return request


def retry_delay(command: Mapping[str, object]) -> float:
    """Return after how many seconds the next step runner is started again when it has crashed.

    command: `next_step_runner_command` of the reply; an invalid `retry_seconds` counts as none, for which there is a
    default.
    """
    try:
        return fields.seconds("retry_seconds", command.get("retry_seconds") or 0, LONGEST_PAUSE) or RUNNER_RETRY_SECONDS
    except ValueError:
        return RUNNER_RETRY_SECONDS


def is_step(value: object) -> bool:
    """Return whether a value of the service is a model `step`; other values are not run."""
    if (
        not isinstance(value, dict)
        or not isinstance(value.get("step_type"), str)
        or not isinstance(value.get("step_id", ""), str)
    ):
        return False
    args = value.get("args") or []
    return isinstance(args, list) and all(isinstance(arg, str) for arg in args)


def poll(
    me: Identity,
    cache: ReplyCache,
    clock: Callable[[], float] = time.monotonic,
    wall: Callable[[], float] = time.time,
) -> Conversation:
    """Get instructions and dispatch them, until the service requests an exit or 15 minutes of failures.

    The loop never waits for a step: a slow one may still run when its successor arrives.
    """
    while True:
        failing_since, pause = clock(), BACKOFF_FIRST
        while True:
            response = yield from exchange(
                Request("instructions", "GET", f"{me.host_path}/instructions?timestamp={int(wall())}")
            )
            if response.ok and isinstance(response.body, dict):
                break
            cache.clear()
            if response.status == 404:
                yield Freeze(
                    f"infra-env {me.infra_env_id} was not found in inventory, will freeze: {response.reason()}"
                )
            delay = pause * random.uniform(1 - BACKOFF_JITTER, 1 + BACKOFF_JITTER)
            pause = min(pause * BACKOFF_FACTOR, BACKOFF_LIMIT)
            if clock() + delay - failing_since > BACKOFF_GIVE_UP:
                return
            if (yield Wait(delay)):
                return
        steps = response.body
        ordered = steps.get("instructions")
        good = [step for step in ordered if is_step(step)] if isinstance(ordered, list) else []
        if good:
            yield Dispatch(good[:MOST_STEPS])
        last = steps.get("post_step_action") == "exit"
        try:
            pause = fields.seconds(
                "next_instruction_seconds", steps.get("next_instruction_seconds") or 0, LONGEST_PAUSE
            )
        except ValueError:
            pause = POLL_SECONDS
        if (pause or not last) and (yield Wait(pause, poll=True)):
            return
        if last:
            return


def reply(
    me: Identity,
    cache: ReplyCache,
    step: dict[str, Any],
    result: Result,
    clock: Callable[[], float] = time.monotonic,
) -> Conversation:
    """Post the result of a step, unless the service has it already.

    step: as the service sent it. The result of the conversation is the response, or None if nothing was posted. Only
    results of exit code 0 count as known.
    """
    kind = step["step_type"]
    good = result.exit_code == 0
    if good and cache.has(kind, result.output, clock()):
        return None
    response = yield from exchange(
        Request(
            f"reply {kind}",
            "POST",
            f"{me.host_path}/instructions",
            {
                "step_type": kind,
                "step_id": step.get("step_id", ""),
                "exit_code": result.exit_code,
                "output": result.output,
                "error": result.error,
            },
        )
    )
    if good and response.ok:
        cache.store(kind, result.output, clock())
    return response


def wants_restart(step_type: str, result: Result) -> bool:
    """Return whether a step ends the runner, so that the agent registers again with a new image.

    It is a successful `upgrade-agent`. Raises ValueError for an output that is not JSON.
    """
    if step_type != "upgrade-agent" or result.exit_code != 0:
        return False
    return bool(load_json(result.output, name="output").get("result") == "success")
