"""The parts of state machines: conditions, effects, rules, and the small evaluator.

Rules of one trigger are tried in order; the first whose source and conditions hold decides. The caller passes the conditions that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

SAME = "="


class HostCondition(StrEnum):
    """What rules of a host evaluate.

    The engine has a function for each (`HostMachine.refresh_host`, and a few for other triggers); a test compares the
    two. The values are the words of `state.hosts`.
    """

    BOOTED = "booted"
    CLUSTER_DONE = "cluster-done"
    CLUSTER_ERROR = "cluster-error"
    CLUSTER_INSTALLING = "cluster-installing"
    CLUSTER_PREPARING = "cluster-preparing"
    CLUSTER_WITHOUT_HOST = "cluster-without-host"
    CONNECTED = "connected"
    DAY2 = "day2"
    DAY2_DONE = "day2-done"
    DISK_SPEED_FAILED = "disk-speed-failed"
    DISK_SPEED_OK = "disk-speed-ok"
    IMAGES_FAILED = "images-failed"
    IMAGES_OK = "images-ok"
    INPUT = "input"
    INSTALL_TIMEOUT = "install-timeout"
    INVENTORY = "inventory"
    LOGS_TIMEOUT = "logs-timeout"
    LOST_TOLD = "lost-reported"
    MIN_HARDWARE = "min-hardware"
    ONLINE = "online"
    PENDING_TIMEOUT = "pending-timeout"
    PREPARE_TIMEOUT = "prepare-timeout"
    PROGRESSING_STAGE = "progressing-stage"
    REBOOTING = "rebooting"
    ROLE = "role"
    SOFT_TIMEOUTS = "soft-timeouts"
    STAGE_DONE = "stage-done"
    STAGE_TIMEOUT = "stage-timeout"
    STAGE_TOLD = "stage-reported"
    SUFFICIENT = "sufficient"
    WAITS_FOR_OTHERS = "waits-for-others"


class HostEffect(StrEnum):
    """What a rule of a host does besides moving it.

    Those that begin with `reset-` of inventory, preparation and installation are done in `Statuses.trigger` for every
    trigger, the others in `HostMachine.refresh_host`.
    """

    FOUND = "found"
    LOGS_TIMED_OUT = "logs-timed-out"
    LOST = "lost"
    RESET_FAILED_IMAGES = "reset-failed-images"
    RESET_INSTALLATION = "reset-installation"
    RESET_INVENTORY = "reset-inventory"
    RESET_PREPARATION = "reset-preparation"
    RESTART_STAGE_CLOCK = "restart-stage-clock"
    STAGE_TIMED_OUT = "stage-timed-out"


class ClusterCondition(StrEnum):
    """What rules of a cluster evaluate.

    `ClusterMachine.refresh_cluster` has a function for each; a test compares the two. The values are the words of
    `state.clusters`.
    """

    ALL_PREPARED = "all-prepared"
    ALL_SETTLED = "all-settled"
    ENOUGH_INSTALLED = "enough-installed"
    FINALIZING_STAGE_FAILS = "finalizing-stage-fails"
    FINALIZING_STAGE_TIMEOUT = "finalizing-stage-timeout"
    FINALIZING_STAGE_TOLD = "finalizing-stage-reported"
    FINALIZING_TIMEOUT = "finalizing-timeout"
    HOPELESS = "hopeless"
    HOST_STOPPED_PREPARING = "host-stopped-preparing"
    HOSTS_FAILED_PREPARING = "hosts-failed-preparing"
    INPUT = "input"
    INSTALLATION_TIMEOUT = "installation-timeout"
    KUBECONFIG = "kubeconfig"
    LOGS_TIMEOUT = "logs-timeout"
    OPERATORS_SETTLED = "operators-settled"
    PREPARATION_FAILED = "preparation-failed"
    PREPARATION_SUCCESS = "preparation-success"
    PREPARE_TIMEOUT = "prepare-timeout"
    SOFT_TIMEOUTS = "soft-timeouts"
    SUFFICIENT = "sufficient"
    USER_ACTION_PENDING = "user-action-pending"


class ClusterEffect(StrEnum):
    """What a rule of a cluster does besides moving it.

    They are done in `ClusterMachine.refresh_cluster` after the status was set. The values are the words of
    `state.clusters`.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    FINALIZING_STAGE_TIMED_OUT = "finalizing-stage-timed-out"
    INSTALLING_STARTED = "installing-started"
    LOGS_TIMED_OUT = "logs-timed-out"
    PREPARE_TIMED_OUT = "prepare-timed-out"


C = TypeVar("C", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Rule(Generic[C, E]):
    """A transition of a state machine: from one of `sources` to `dest` if all of `when` hold.

    `dest` SAME stays in the status. `when`: conditions and whether they have to hold. `info`: new status_info with
    $PLACEHOLDERS; None leaves it. `effects` are done by the caller after the move.
    """

    trigger: str
    sources: frozenset[str]
    dest: str
    when: tuple[tuple[C, bool], ...] = ()
    info: str | None = None
    effects: tuple[E, ...] = ()


HostRule = Rule[HostCondition, HostEffect]
ClusterRule = Rule[ClusterCondition, ClusterEffect]


def maker(conditions: type[C], effects: type[E]) -> Callable[..., Rule[C, E]]:
    """Return a function that makes rules of texts: sources, conditions (`!` negates) and effects are words.

    Its arguments are trigger, sources, destination, conditions, text and effects, as in the tables. ValueError at
    import for a condition or an effect that is not in the enumeration.
    """

    def make(
        trigger: str, sources: str, dest: str, when: str = "", info: str | None = None, after: str = ""
    ) -> Rule[C, E]:
        asked = tuple((conditions(word.lstrip("!")), not word.startswith("!")) for word in when.split())
        return Rule(
            trigger, frozenset(sources.split()), dest, asked, info, tuple(effects(word) for word in after.split())
        )

    return make


def decide(rules: tuple[Rule[C, E], ...], status: str, holds: Callable[[C], bool]) -> Rule[C, E] | None:
    """Return the rule for an object in `status`, or None if the trigger is not allowed there.

    `rules` are those of one trigger. The first whose source and conditions match is returned. `holds` is called for a
    condition only when a rule asks for it.
    """
    for rule in rules:
        if status in rule.sources and all(holds(condition) == wanted for condition, wanted in rule.when):
            return rule
    return None


def by_trigger(rules: tuple[Rule[C, E], ...]) -> Mapping[str, tuple[Rule[C, E], ...]]:
    """Return rules by what triggers them, each in the order of the table, which decides between rules."""
    return {
        trigger: tuple(rule for rule in rules if rule.trigger == trigger)
        for trigger in {rule.trigger for rule in rules}
    }
