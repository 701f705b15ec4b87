"""The parts of state machines: triggers, conditions, effects, rules, and the small evaluator.

Rules of one trigger are tried in order; the first whose source and conditions hold decides. The caller passes the conditions that hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from ....plugins.module_utils.vocabulary import ClusterStatus, HostStatus

SAME: Final = None
"""Destination of a rule that stays in the status."""


class HostTrigger(StrEnum):
    """What moves a host: requests of users and agents, and `REFRESH`, which follows a change and the passing of time."""

    BIND = "bind"
    CANCEL = "cancel"
    FAILED = "failed"
    INSTALL_DAY2 = "install-day2"
    MEDIA_DISCONNECT = "media-disconnect"
    PROGRESS = "progress"
    REFRESH = "refresh"
    REGISTER = "register"
    RESET = "reset"
    UNBIND = "unbind"


class ClusterTrigger(StrEnum):
    """What moves a cluster: requests of users, and `REFRESH`, which follows a change and the passing of time."""

    CANCEL = "cancel"
    PREPARE = "prepare"
    REFRESH = "refresh"
    RESET = "reset"


class HostCondition(StrEnum):
    """What rules of a host evaluate.

    The engine has a function for each (`HostMachine.refresh_host`, and a few for other triggers); a test compares the
    two.
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
    LOST_REPORTED = "lost-reported"
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
    STAGE_REPORTED = "stage-reported"
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

    `ClusterMachine.refresh_cluster` has a function for each; a test compares the two.
    """

    ALL_PREPARED = "all-prepared"
    ALL_SETTLED = "all-settled"
    ENOUGH_INSTALLED = "enough-installed"
    FINALIZING_STAGE_FAILS = "finalizing-stage-fails"
    FINALIZING_STAGE_TIMEOUT = "finalizing-stage-timeout"
    FINALIZING_STAGE_REPORTED = "finalizing-stage-reported"
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

    They are done in `ClusterMachine.refresh_cluster` after the status was set.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    FINALIZING_STAGE_TIMED_OUT = "finalizing-stage-timed-out"
    INSTALLING_STARTED = "installing-started"
    LOGS_TIMED_OUT = "logs-timed-out"
    PREPARE_TIMED_OUT = "prepare-timed-out"


T = TypeVar("T", bound=StrEnum)
S = TypeVar("S", bound=StrEnum)
C = TypeVar("C", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True)
class Rule(Generic[T, S, C, E]):
    """A transition of a state machine: from one of `sources` to `dest` if all of `when` hold and none of `unless`.

    `dest` SAME stays in the status. `info`: new status_info with $PLACEHOLDERS; None leaves it. `effects` are done by
    the caller after the move.
    """

    trigger: T
    sources: AbstractSet[S]
    dest: S | None
    when: tuple[C, ...] = ()
    unless: tuple[C, ...] = ()
    info: str | None = None
    effects: tuple[E, ...] = ()

    def destination(self, status: str) -> str:
        """Return the status that follows on `status`."""
        return str(self.dest or status)


HostRule = Rule[HostTrigger, HostStatus, HostCondition, HostEffect]
ClusterRule = Rule[ClusterTrigger, ClusterStatus, ClusterCondition, ClusterEffect]
Machine = Mapping[tuple[T, str], tuple[Rule[T, S, C, E], ...]]
"""Rules by trigger and source."""


def machine(rules: Iterable[Rule[T, S, C, E]]) -> Machine[T, S, C, E]:
    """Return rules by trigger and source, each in the order of the table, which decides between rules."""
    found: dict[tuple[T, str], tuple[Rule[T, S, C, E], ...]] = {}
    for rule in rules:
        for source in rule.sources:
            found[rule.trigger, source] = (*found.get((rule.trigger, source), ()), rule)
    return found


def decide(rules: Machine[T, S, C, E], trigger: T, status: str, holds: Callable[[C], bool]) -> Rule[T, S, C, E] | None:
    """Return the rule for an object in `status`, or None if the trigger is not allowed there.

    The first whose source and conditions match is returned. `holds` is called for a condition only when a rule asks
    for it.
    """
    for rule in rules.get((trigger, status), ()):
        if all(map(holds, rule.when)) and not any(map(holds, rule.unless)):
            return rule
    return None
