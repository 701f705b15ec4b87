"""State machines of hosts and clusters: rules as data, stages and percentages."""

from __future__ import annotations

from ....plugins.module_utils.vocabulary import Stage, Status
from ..tables import STAGES
from .clusters import CLUSTER_RULES
from .hosts import HOST_RULES
from .machine import (
    SAME,
    ClusterCondition,
    ClusterEffect,
    ClusterRule,
    ClusterTrigger,
    HostCondition,
    HostEffect,
    HostRule,
    HostTrigger,
    Rule,
    decide,
    machine,
)
from .texts import (
    DISCONNECTED,
    DISK_SPEED_UNKNOWN,
    IMAGES_UNKNOWN,
    LOST_PREPARING,
    POST_INSTALL_REGISTER,
    RESTARTED,
    SOFT_FOUND,
    SOFT_LOST,
    WAITING,
)

__all__ = [
    "CLUSTER",
    "CLUSTER_RULES",
    "DISCONNECTED",
    "DISK_SPEED_UNKNOWN",
    "HOST",
    "HOST_RULES",
    "IMAGES_UNKNOWN",
    "LOST_PREPARING",
    "POST_INSTALL_REGISTER",
    "RESTARTED",
    "SAME",
    "SOFT_FOUND",
    "SOFT_LOST",
    "WAITING",
    "ClusterCondition",
    "ClusterEffect",
    "ClusterRule",
    "ClusterTrigger",
    "HostCondition",
    "HostEffect",
    "HostRule",
    "HostTrigger",
    "Rule",
    "decide",
    "enough_installed",
    "fill",
    "shown_stages",
    "stages",
    "total_percentage",
]

HOST = machine(HOST_RULES)
CLUSTER = machine(CLUSTER_RULES)


def stages(role: str, bootstrap: bool, sno: bool, day2: bool = False) -> tuple[str, ...]:
    """Return the stages of a host, in order; without a role, those of a worker.

    The bootstrap host of several nodes has stages of its own, and so has a single node. The order bounds what
    `Reports.progress` accepts, and gives the percentage.
    """
    return shown_stages("master" if sno else role, bootstrap or sno, sno, day2) or STAGES["worker"]


def shown_stages(role: str, bootstrap: bool, sno: bool, day2: bool) -> tuple[str, ...]:
    """Return the stages of a host as the API shows them (`progress_stages`), in order.

    None without a role. A host that joins an installed cluster (`day2`) ends with the reboot: the service does not see
    what follows.
    """
    if bootstrap or role == "bootstrap":
        found = STAGES["sno" if sno else "bootstrap"]
    else:
        found = STAGES.get(role, ())
    return found[: found.index(Stage.REBOOTING) + 1] if day2 and found else found


def fill(text: str, **values: str) -> str:
    """A status text with its $PLACEHOLDERS filled in.

    Names are given without `$`. A placeholder without a value stays as it is. Values are inserted as plain text, in the
    order of the arguments.
    """
    for name, value in values.items():
        text = text.replace("$" + name, value)
    return text


def enough_installed(roles: list[tuple[str, str]], control_planes: int) -> bool:
    """Return whether a cluster may change to finalizing: (role, status) of its hosts.

    It needs all masters of the topology (with two, also an arbiter if there is one), and two workers if two or more are expected.
    """
    done = [role for role, status in roles if status == Status.INSTALLED]
    expected = [role for role, __ in roles]
    workers = expected.count("worker")
    return (
        done.count("master") >= control_planes
        and done.count("arbiter") >= min(1, expected.count("arbiter"))
        and (workers < 2 or done.count("worker") >= 2)
    )


def total_percentage(preparing: int, installing: int, finalizing: int) -> int:
    """Return the percentage of the whole installation: 10 % preparing, 70 % installing, 15 % finalizing.

    The sum is 95 at most, rounded down: the rest is reached with the status `installed`.
    """
    return int(0.1 * preparing + 0.7 * installing + 0.15 * finalizing)
