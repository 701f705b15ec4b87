"""The conversation without any input or output: which messages are sent, in which order, after how long."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import protocol, rest
from ansible_collections.agentlab.ocp.payload.node_agent.protocol import (
    Dispatch,
    Freeze,
    Identity,
    ReplyCache,
    Request,
    Response,
    Result,
    Wait,
)

ME = Identity("ie", "host", "image", "token", interval=7)


class Clock:
    """Time passes only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def play(
    conversation: protocol.Conversation, answers: list[Any], clock: Clock | None = None, most: int = 200
) -> tuple[list[Any], Any]:
    """Feed answers to requests; waits pass. Returns the actions, and the return value or "unfinished"."""
    actions, answer = [], None
    for __ in range(most):
        try:
            action = conversation.send(answer)
        except StopIteration as end:
            return actions, end.value
        actions.append(action)
        answer = None
        if isinstance(action, Request):
            if not answers:
                return actions, "unfinished"
            answer = answers.pop(0)
        elif isinstance(action, Wait) and clock:
            clock.now += action.seconds
        elif isinstance(action, Freeze):
            return actions, "frozen"
    return actions, "unfinished"


def test_register_retries_and_returns_the_command() -> None:
    command = {
        "command": "",
        "args": ['{"infra_env_id":"ie","host_id":"host","agent_version":"image"}'],
        "retry_seconds": 60,
    }
    answers = [Response(0, None, "refused"), Response(200), Response(201, {"next_step_runner_command": command})]
    actions, result = play(protocol.register(ME), answers)
    assert [type(action).__name__ for action in actions] == ["Request", "Wait", "Request", "Wait", "Request"]
    assert actions[0] == Request(
        "register",
        "POST",
        "/api/assisted-install/v2/infra-envs/ie/hosts",
        {"host_id": "host", "discovery_agent_version": "image"},
    )
    assert actions[1].seconds == 7
    assert protocol.runner_request(result)["agent_version"] == "image" and protocol.retry_delay(result) == 60
    assert protocol.retry_delay({}) == 3600
    with pytest.raises(ValueError, match="lack agent_version"):
        protocol.runner_request({"args": ['{"infra_env_id":"ie","host_id":"h"}']})


@pytest.mark.parametrize("status", [401, 403, 404, 409])
def test_register_refused(status: int) -> None:
    body = {"code": str(status), "reason": "because"}
    actions, result = play(protocol.register(ME), [Response(status, body)])
    assert result == "frozen" and f"[{status}] because" in actions[-1].reason


def test_unavailable_is_asked_three_times_more() -> None:
    actions, result = play(protocol.exchange(Request("x", "GET", "/")), [Response(503)] * 3 + [Response(504)])
    waits = [action.seconds for action in actions if isinstance(action, Wait)]
    assert (
        result.status == 504
        and len(waits) == 3
        and all(seconds <= most for seconds, most in zip(waits, (2, 4, 8), strict=True))
    )


def test_poll_backs_off_and_gives_up_after_a_quarter_of_an_hour() -> None:
    clock, cache = Clock(), ReplyCache()
    cache.store("inventory", "x", 0)
    actions, result = play(protocol.poll(ME, cache, clock, lambda: 1700000000), [Response(500)] * 100, clock)
    waits = [action.seconds for action in actions if isinstance(action, Wait)]
    assert result is None and 800 < clock.now <= 900
    assert 0.25 <= waits[0] <= 0.75 and 30 <= waits[-1] <= 90
    assert actions[0].path.endswith("/hosts/host/instructions?timestamp=1700000000")
    assert not cache.has("inventory", "x", 0)


def test_poll_dispatches_waits_and_exits() -> None:
    step = {"step_type": "inventory", "step_id": "inventory-1", "args": ["host"]}
    answers = [
        Response(200, {"next_instruction_seconds": 60, "post_step_action": "continue", "instructions": [step]}),
        Response(200, {"next_instruction_seconds": 0, "post_step_action": "exit", "instructions": None}),
    ]
    actions, result = play(protocol.poll(ME, ReplyCache(), Clock()), answers)
    assert [type(action) for action in actions] == [Request, Dispatch, Wait, Request] and result is None
    assert actions[1].steps == [step] and actions[2] == Wait(60, poll=True)
    assert play(protocol.poll(ME, ReplyCache(), Clock()), [Response(404)])[1] == "frozen"


def test_replies_are_reported_once_an_hour() -> None:
    clock, cache = Clock(), ReplyCache()
    step = {"step_type": "inventory", "step_id": "inventory-1"}

    def posted(result: Result, status: int = 204) -> int:
        return len(play(protocol.reply(ME, cache, step, result, clock), [Response(status)])[0])

    assert [
        posted(Result("a"), 500),
        posted(Result("a")),
        posted(Result("a")),
        posted(Result("b")),
        posted(Result("a")),
    ] == [
        1,
        1,
        0,
        1,
        1,
    ]
    assert [posted(Result("a", "no", 1)), posted(Result("a"))] == [1, 0]
    clock.now = 3601
    assert posted(Result("a")) == 1


def test_restart_after_upgrade() -> None:
    assert protocol.wants_restart("upgrade-agent", Result('{"agent_image":"x","result":"success"}'))
    assert not protocol.wants_restart("upgrade-agent", Result('{"agent_image":"x","result":"failure"}'))
    assert not protocol.wants_restart("inventory", Result("{}"))


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (Response(409, b'{"reason": "a", "message": "b"}'), "a"),
        (Response(409, b'{"code": 409, "message": "b"}'), "b"),
        (Response(502, b"<html>"), "<html>"),
        (Response(400, b'["a"]'), '["a"]'),
        (Response(500, b"{}", "HTTP Error 500"), "{}"),
        (Response(0, None, "GET http://a/b: refused"), "refused"),
    ],
)
def test_the_reason_of_a_response(response: Response, why: str) -> None:
    assert rest.reason(response, "GET http://a/b: ") == why
