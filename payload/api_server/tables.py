"""Names, orders and messages of the service, as data: stages, timeouts, events, statuses.

Events are in `data/events.yaml`. Source: assisted-service's API description and its state machines.
"""

from __future__ import annotations

from typing import NamedTuple

from ...plugins.module_utils.vocabulary import ClusterStatus, FinalizingStage, Stage, Status
from . import data

_MASTER = (
    Stage.STARTING, Stage.INSTALLING, Stage.WRITING, Stage.COPYING, Stage.REBOOTING, Stage.CONFIGURING, Stage.JOINED, Stage.DONE,
)  # fmt: skip
#: The stages of each role, in their order.
STAGES: dict[str, tuple[str, ...]] = {
    "bootstrap": (
        Stage.STARTING, Stage.INSTALLING, Stage.WRITING, Stage.COPYING, Stage.CONTROL_PLANE, Stage.BOOTKUBE, Stage.CONTROLLER,
        Stage.REBOOTING, Stage.CONFIGURING, Stage.JOINED, Stage.DONE,
    ),
    "master": _MASTER,
    "arbiter": _MASTER,
    "worker": (
        Stage.STARTING, Stage.INSTALLING, Stage.WRITING, Stage.CONTROL_PLANE, Stage.REBOOTING, Stage.IGNITION, Stage.CONFIGURING,
        Stage.JOINED, Stage.DONE,
    ),
    "sno": (
        Stage.STARTING, Stage.INSTALLING, Stage.BOOTKUBE, Stage.WRITING, Stage.COPYING, Stage.REBOOTING, Stage.JOINED, Stage.DONE,
    ),
}  # fmt: skip

#: Stages after the live system: the host is not expected to poll.
AFTER_REBOOT: frozenset[str] = frozenset({Stage.REBOOTING, Stage.IGNITION, Stage.CONFIGURING, Stage.JOINED, Stage.DONE})
#: Stages whose timeout starts with the last report inside the stage.
PROGRESSING: frozenset[str] = frozenset({Stage.WRITING, Stage.COPYING})

#: Stages whose timeout pauses while the cluster waits for a user.
WAITING_FOR_OTHERS: frozenset[str] = frozenset({Stage.CONTROL_PLANE, Stage.CONTROLLER, Stage.BOOTKUBE, Stage.REBOOTING})

#: Finalizing stages whose timeout does not fail the cluster: the controller continues.
FINALIZING_NOT_FAILING: frozenset[str] = frozenset(
    {FinalizingStage.OLM_MANIFESTS, FinalizingStage.CSV_INITIALIZATION, FinalizingStage.CSV}
)


def stage_setting(stage: str) -> str:
    """Name of the setting with a host stage's timeout.

    `Writing image to disk` becomes `HOST_STAGE_WRITING_IMAGE_TO_DISK_TIMEOUT`. Not every stage has a default: see
    `HOST_STAGE_OTHER_TIMEOUT`.
    """
    return f"HOST_STAGE_{stage.upper().replace(' ', '_')}_TIMEOUT"


def finalizing_setting(stage: str) -> str:
    """Name of the setting with a finalizing stage's timeout."""
    return f"FINALIZING_STAGE_{stage.upper().replace(' ', '_')}_TIMEOUT"


class Event(NamedTuple):
    """A kind of event. message: a template of `str.format`; of_cluster: whether an event about a host names its cluster."""

    severity: str
    message: str
    of_cluster: bool = True


#: Events by name.
EVENTS: dict[str, Event] = {name: Event(**entry) for name, entry in data.load("events").items()}
MEDIA_DISCONNECTED = EVENTS["host_media_disconnected"].message

#: Severity of the event for a host's new status; `info` for all others.
STATUS_SEVERITY: dict[str, str] = {
    Status.DISCONNECTED: "warning",
    Status.PENDING_USER_ACTION: "warning",
    Status.INSUFFICIENT: "warning",
    Status.ERROR: "error",
}

#: Statuses of a cluster in which a host may register.
OPEN_CLUSTER: frozenset[str] = frozenset(
    {Status.INSUFFICIENT, Status.READY, Status.PENDING_FOR_INPUT, ClusterStatus.ADDING_HOSTS}
)
BEFORE_INSTALL: frozenset[str] = frozenset({Status.INSUFFICIENT, Status.READY, Status.PENDING_FOR_INPUT})

#: Statuses of a cluster in which the files of its installation may be downloaded, in the order of messages.
DOWNLOADABLE: tuple[str, ...] = (
    Status.INSTALLING,
    Status.FINALIZING,
    Status.INSTALLED,
    Status.ERROR,
    ClusterStatus.ADDING_HOSTS,
    Status.CANCELLED,
    Status.PENDING_USER_ACTION,
)
#: Files that the agent-based installer may download earlier: credentials.
ABI_EARLY: tuple[str, ...] = (Status.READY, Status.PREPARING)
