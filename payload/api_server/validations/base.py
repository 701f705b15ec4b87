"""What a validation is: a function of a view that carries what the state machines, the API and the report have to know of it.

A validation returns (status, message); status is success, failure, pending, error or disabled, or `hidden`: it succeeds
and is not shown. Ids and messages are those of assisted-service.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Generic, TypeVar

V = TypeVar("V")
Result = tuple[str, str]
SUCCESS, FAILURE, PENDING, ERROR, HIDDEN = "success", "failure", "pending", "error", "hidden"
NO_INVENTORY: Result = (PENDING, "Missing inventory")


class Category(StrEnum):
    """Under what a validation is listed in `validations_info`.

    The values are the keys of that JSON and those of upstream's API; `validations.validations_info` groups by them.
    """

    NETWORK = "network"
    HARDWARE = "hardware"
    HOSTS_DATA = "hosts-data"
    CONFIGURATION = "configuration"
    OPERATORS = "operators"


class Gate(Enum):
    """What a validation that fails holds back.

    `validations` derives its tables of ids from it (MIN_HARDWARE, INPUT, SUFFICIENT and those of clusters), and the
    conditions of the state machines read these tables. Each validation has exactly one gate.
    """

    #: Whether the host reports to the service at all: the state machine has conditions of its own for it.
    PRESENCE = "presence"
    #: The host is insufficient, whatever the user still enters.
    HARDWARE = "hardware"
    #: The user has to enter something.
    INPUT = "input"
    #: Host or cluster are insufficient.
    READINESS = "readiness"
    #: Nothing: it is shown.
    WARNING = "warning"


class Unbound(Enum):
    """What a validation is to a host of no cluster.

    Such a host has an infra-env only. The monitor evaluates what is SHOWN or REQUIRED; REQUIRED decides between the
    statuses `insufficient-unbound` and `known-unbound`.
    """

    NO = "not evaluated"
    SHOWN = "shown"
    #: It has to hold before the host is bound to a cluster.
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class Validation(Generic[V]):
    """One validation. `check` looks at a `HostView` or a `View`.

    `ident` is upstream's id, as it is in `validations_info` and in requests that ignore validations. `check` must be
    pure: it is called whenever something of the cluster changed. A call of the object runs `check`, as a test would.
    """

    ident: str
    category: Category
    check: Callable[[V], Result]
    gate: Gate = Gate.READINESS
    #: Whether users may have it ignored.
    ignorable: bool = True
    unbound: Unbound = Unbound.NO
    #: Whether waiting does not change it: a machine does not get more memory by itself.
    lasting: bool = False

    def __call__(self, view: V) -> Result:
        return self.check(view)


def validation(
    ident: str,
    category: Category,
    *,
    gate: Gate = Gate.READINESS,
    ignorable: bool = True,
    unbound: Unbound = Unbound.NO,
    lasting: bool = False,
) -> Callable[[Callable[[V], Result]], Validation[V]]:
    """Makes a validation of a function.

    The function gets a `HostView` or a `View` and returns (status, message). The keywords are fields of `Validation`.
    The result replaces the function; to take effect it also needs a line in the table `HOST` or `CLUSTER`.
    """
    return lambda check: Validation(ident, category, check, gate, ignorable, unbound, lasting)
