"""How the clock of a machine that stood still is set."""

from __future__ import annotations

import time
from typing import Any

import libvirt
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import clocks


class Domain:
    """A machine whose guest agent answers, or does not run."""

    def __init__(self, *, agent: bool) -> None:
        self.agent, self.calls, self.set = agent, [], 0.0

    calls: list[str]

    def agentSetResponseTimeout(self, seconds: int) -> None:  # noqa: N802
        self.calls.append(f"timeout {seconds}")

    def getTime(self) -> dict[str, int]:  # noqa: N802
        self.calls.append("get")
        if not self.agent:
            raise libvirt.libvirtError("Guest agent is not responding: QEMU guest agent is not connected")
        return {"seconds": 0, "nseconds": 0}

    def setTime(self, found: dict[str, int]) -> None:  # noqa: N802
        self.calls.append("set")
        self.set = found["seconds"] + found["nseconds"] / 1e9


def test_the_agent_gets_the_time_when_it_answers_at_once() -> None:
    domain: Any = Domain(agent=True)
    assert clocks._by_agent(domain)
    assert domain.calls == [f"timeout {clocks.AGENT_SECONDS}", "get", "set"]
    assert abs(domain.set - time.time()) < 60


def test_a_machine_without_an_agent_is_left_to_ssh() -> None:
    domain: Any = Domain(agent=False)
    assert not clocks._by_agent(domain)
    assert domain.calls == [f"timeout {clocks.AGENT_SECONDS}", "get"]
