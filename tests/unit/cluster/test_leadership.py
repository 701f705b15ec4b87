"""Elections among members that only know what they send each other."""

from __future__ import annotations

from typing import Any

from ansible_collections.agentlab.ocp.payload.cluster.leadership import Election


def state(
    member: str, revision: int = 1, epoch: int = 1, leader: bool = False, uid: str = "u", electable: bool = True
) -> dict[str, Any]:
    return {
        "member": member,
        "uid": uid,
        "epoch": epoch,
        "revision": revision,
        "leader": leader,
        "electable": electable,
        "url": f"https://{member}",
    }


def elect(own: dict[str, Any], *peers: dict[str, Any], expected: int = 3) -> Election:
    election = Election(expected, leads=False)
    for __ in range(Election.GRACE):
        assert not election.holds()
        election.look(own, peers)
    return election


def test_a_leader_is_followed() -> None:
    election = elect(state("a", 9), state("b", 3, leader=True), state("c", 10))
    assert (election.holds(), election.leader_url()) == (False, "https://b")


def test_the_newest_state_wins_among_a_majority() -> None:
    assert elect(state("a", 5), state("b", 4)).holds()
    assert not elect(state("a", 4), state("b", 5)).holds()
    assert elect(state("a", 4), state("b", 5, electable=False)).holds(), "who handed over does not lead again"
    assert not elect(state("a", 5)).holds(), "one of three is alone"
    assert elect(state("a", 5), expected=2).holds(), "of two, one is enough"
    assert not elect(state("a", 5, uid=""), state("b", 0, uid="")).holds(), "no member has a state"


def test_of_two_leaders_the_later_epoch_stays() -> None:
    for epoch, stays in ((2, True), (1, False)):
        election = Election(3, leads=True)
        election.look(state("a", epoch=epoch, leader=True), [state("b", epoch=1, leader=True)])
        assert election.holds() is stays


def test_resigning() -> None:
    election = Election(3, leads=True)
    election.resign()
    for __ in range(5):
        election.look(state("a", 9, electable=False), [state("b"), state("c")])
    assert not election.holds()
