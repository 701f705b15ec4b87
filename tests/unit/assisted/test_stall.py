"""How long a wait goes on without progress, with and without a known cause."""

from __future__ import annotations

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.monitor import FatalError
from ansible_collections.agentlab.ocp.plugins.module_utils.assisted.watcher import Stall
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import Cause

OFF = Cause("VM x is shut off", "start it", 60.0)
SLOW = Cause("still activating", "read its journal")


class Clock:
    now = 0.0

    def time(self):
        return self.now


def ends(stall, script):
    """When a wait of `script`, second -> (fingerprint, causes), ends, and why; its last line goes on for ever."""
    clock = stall.clock
    fingerprint, causes = script[0]
    for second in range(0, 4000, 5):
        clock.now = float(second)
        fingerprint, causes = script.get(second, (fingerprint, causes))
        try:
            stall.check(fingerprint, causes)
        except FatalError as error:
            return second, str(error)
    return None


def test_a_known_cause_shortens_the_wait():
    assert ends(Stall(900, Clock()), {0: ("a", [OFF])}) == (65, "VM x is shut off")
    assert ends(Stall(900, Clock()), {0: ("a", [SLOW])}) == (905, "still activating")
    assert ends(Stall(900, Clock()), {0: ("a", [])}) == (905, "nothing happened for 15 minutes")
    assert ends(Stall(30, Clock()), {0: ("a", [OFF])}) == (35, "VM x is shut off")


def test_patience_counts_from_the_last_progress_and_from_when_the_cause_was_seen():
    assert ends(Stall(900, Clock()), {0: ("a", [OFF]), 50: ("b", [OFF])}) == (115, "VM x is shut off")
    assert ends(Stall(900, Clock()), {0: ("a", []), 300: ("a", [OFF])}) == (365, "VM x is shut off")


def test_a_cause_that_went_away_is_forgotten():
    assert ends(Stall(900, Clock()), {0: ("a", [OFF]), 55: ("a", []), 100: ("a", [OFF])}) == (165, "VM x is shut off")


def test_upstream_limits_alone():
    assert ends(Stall(0, Clock()), {0: ("a", [OFF])}) is None


@pytest.mark.parametrize("first", [[OFF, SLOW], [SLOW, OFF]])
def test_the_cause_that_is_sure_ends_it(first):
    assert ends(Stall(900, Clock()), {0: ("a", first)}) == (65, "VM x is shut off")
