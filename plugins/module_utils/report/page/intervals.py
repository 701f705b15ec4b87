"""The timeline of a run as OpenShift's interval viewers read it: the JSON of openshift/origin's monitorapi (EventIntervalList).

Sippy and Prow's Spyglass look for a name that starts with `e2e-timelines_spyglass_`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Literal, TypedDict

from ...vocabulary import Status
from .model import Lane, Run

FILE = "e2e-timelines_spyglass_agentlab.json"
_LOCATORS = {
    "run": ("ClusterVersion", "clusterversion", "VersionState"),
    "hosts": ("Node", "node", "NodeState"),
    "services": ("Kind", "name", "LabService"),
    "operators": ("ClusterOperator", "clusteroperator", "OperatorState"),
}
"""Group of lanes -> type of the locator, its key, source of the intervals."""
_ERRORS = (Status.ERROR, Status.CANCELLED, Status.DISCONNECTED, "Degraded", "Unavailable", "failed")


class Locator(TypedDict):
    """What an interval is about.

    type: kind of the object, such as `Node`; keys: its name under the key that viewers expect, such as `node`: see
    `_LOCATORS`.
    """

    type: str
    keys: dict[str, str]


class Message(TypedDict):
    """Its message.

    reason: kind of the interval (`InstallationStage`, `ValidationFailing`, `Event`) or its state; cause: always empty;
    humanMessage: state and text; annotations: `state` and `reason` again, by which viewers filter.
    """

    reason: str
    cause: str
    humanMessage: str
    annotations: dict[str, str]


Item = TypedDict(
    "Item",
    {
        "level": Literal["Info", "Warning", "Error"],
        "display": bool,
        "source": str,
        "locator": Locator,
        "message": Message,
        "from": str,
        "to": str,
    },
)


class Intervals(TypedDict):
    """The file.

    The form is that of monitorapi's EventIntervalList: `items` is its only field here.
    """

    items: list[Item]


def intervals(run: Run) -> Intervals:
    """Return states, installation stages, failing validations and marks of all rows, in the order of time.

    run: the document of the page. Times are ISO 8601 in UTC, to the second; a mark is an interval that ends when it
    starts.
    """
    items = [item for lane in run["lanes"] for item in _items(lane)]
    return {"items": sorted(items, key=lambda item: item["from"])}


def _items(lane: Lane) -> Iterator[Item]:
    for one in lane["states"]:
        level: Literal["Info", "Error"] = "Error" if {one["state"], one["text"]} & {*_ERRORS} else "Info"
        yield _item(lane, level, one["start"], one["end"], one["state"], one["text"])
    for one in lane["stages"]:
        yield _item(lane, "Info", one["start"], one["end"], one["state"], one["text"], "InstallationStage")
    for one in lane["failing"]:
        yield _item(lane, "Warning", one["start"], one["end"], one["state"], one["text"], "ValidationFailing")
    for mark in lane["marks"]:
        level_of: Literal["Info", "Warning", "Error"] = (
            "Error" if mark["level"] == "error" else "Warning" if mark["level"] == "warning" else "Info"
        )
        yield _item(lane, level_of, mark["at"], mark["at"], "", mark["text"], "Event")


def _item(
    lane: Lane,
    level: Literal["Info", "Warning", "Error"],
    start: int,
    end: int,
    state: str,
    text: str,
    reason: str = "",
) -> Item:
    kind, key, source = _LOCATORS[lane["group"]]
    return {
        "level": level,
        "display": True,
        "source": source,
        "locator": {"type": kind, "keys": {key: lane["name"]}},
        "message": {
            "reason": reason or state,
            "cause": "",
            "humanMessage": ": ".join(part for part in (state, text) if part),
            "annotations": {"state": state, "reason": reason or state},
        },
        "from": _time(start),
        "to": _time(end),
    }


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
