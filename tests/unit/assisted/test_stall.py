"""How long a wait continues without progress, with and without a known cause."""

from __future__ import annotations

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.watcher import facts
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import FatalError
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import Cause
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Diagnosis, Stall

OFF = Cause("VM x is shut off", "start it", 60.0)
SLOW = Cause("still activating", "read its journal")


class Clock:
    now = 0.0

    def time(self):
        return self.now


def ends(stall, script):
    """When a wait of `script`, second -> (facts, a letter each; causes), ends, and why; its last line repeats indefinitely."""
    clock = stall.clock
    facts, causes = script[0]
    for second in range(0, 4000, 5):
        clock.now = float(second)
        facts, causes = script.get(second, (facts, causes))
        try:
            stall.check(set(facts), Diagnosis(causes))
        except FatalError as error:
            return second, str(error)
    return None


def test_a_known_cause_shortens_the_wait():
    assert ends(Stall(900, Clock()), {0: ("a", [OFF])}) == (65, "VM x is shut off")
    assert ends(Stall(900, Clock()), {0: ("a", [SLOW])}) == (905, "still activating")
    assert ends(Stall(900, Clock()), {0: ("a", [])}) == (905, "no progress for 15 minutes")
    assert ends(Stall(30, Clock()), {0: ("a", [OFF])}) == (35, "VM x is shut off")


def test_grace_period_counts_from_the_last_progress_and_from_when_the_cause_was_seen():
    assert ends(Stall(900, Clock()), {0: ("a", [OFF]), 50: ("b", [OFF])}) == (115, "VM x is shut off")
    assert ends(Stall(900, Clock()), {0: ("a", []), 300: ("a", [OFF])}) == (365, "VM x is shut off")


def test_repeated_states_are_not_progress():
    script = {second: ("ab" if second % 100 else "ac", [SLOW]) for second in range(0, 4000, 50)}
    assert ends(Stall(900, Clock()), script) == (955, "still activating")
    assert ends(Stall(900, Clock()), {**script, 800: ("d", [SLOW])}) == (1705, "still activating")


def test_a_round_of_a_service_is_reported_in_the_same_words():
    host = {"id": "h", "status": "known", "progress": {"current_stage": "", "stage_updated_at": "1"}}
    event = {"message": "Host a: New image status x. result: failure. time: 3.20 seconds"}
    cluster = {"id": "c", "status": "ready", "status_info": "", "hosts": [host]}
    later = {**cluster, "hosts": [{**host, "progress": {"current_stage": "", "stage_updated_at": "2"}}]}
    again = {"message": event["message"].replace("3.20", "11.02")}
    assert set(facts(cluster, [event])) == set(facts(later, [event, again]))
    more = {**host, "progress": {"current_stage": "Writing image to disk", "progress_info": "41%"}}
    assert not set(facts({**cluster, "hosts": [more]}, [event])) <= set(facts(cluster, [event]))


def test_a_cause_that_went_away_does_not_count():
    assert ends(Stall(900, Clock()), {0: ("a", [OFF]), 55: ("a", []), 100: ("a", [OFF])}) == (165, "VM x is shut off")


def test_upstream_limits_alone():
    assert ends(Stall(0, Clock()), {0: ("a", [OFF])}) is None


@pytest.mark.parametrize("first", [[OFF, SLOW], [SLOW, OFF]])
def test_the_cause_that_is_sure_ends_it(first):
    assert ends(Stall(900, Clock()), {0: ("a", first)}) == (65, "VM x is shut off")


def test_a_container_that_is_started_again_is_the_same_cause():
    """CrashLoopBackOff is gone while the container runs, briefly after each restart."""
    script = {0: ("a", [OFF]), 20: ("a", []), 30: ("a", [OFF])}
    assert ends(Stall(900, Clock()), script) == (65, "VM x is shut off")


def test_checks_may_be_far_apart():
    """The wait for the bootstrap sleeps for 30 seconds and asks for a while."""
    clock = Clock()
    stall = Stall(900, clock)
    for second in (0, 40):
        clock.now = float(second)
        stall.check(set("a"), Diagnosis([OFF]))
    clock.now = 80.0
    with pytest.raises(FatalError, match="VM x is shut off"):
        stall.check(set("a"), Diagnosis([OFF]))


def test_a_machine_that_boots_makes_progress():
    """The service does not answer yet; what the lab sees of the machine counts."""
    clock = Clock()
    stall = Stall(240, clock)
    for second, steps in ((0, ""), (200, "a"), (400, "ab"), (600, "ab")):
        clock.now = float(second)
        stall.check(set(), Diagnosis(progress=frozenset(steps)))
    clock.now = 641.0
    with pytest.raises(FatalError, match="no progress for 4 minutes"):
        stall.check(set(), Diagnosis(progress=frozenset("ab")))
