"""The status of a pod and its container, as a kubelet posts it."""

from __future__ import annotations

from .conditions import condition, merge_conditions
from .kube import Object
from .store import timestamp


def waiting_state(reason: str, message: str = "") -> Object:
    """Return the state of a container that is waiting to start."""
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def running_state(started: str) -> Object:
    """Return the state of a container that has run since `started`."""
    return {"running": {"startedAt": started}}


def terminated_state(code: int, started: str, message: str = "") -> Object:
    """Return the state of a container that has just ended with an exit code."""
    reason = "Completed" if code == 0 else "Error"
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "startedAt": started,
            "finishedAt": timestamp(),
            **({"message": message} if message else {}),
        }
    }


def pod_status(
    phase: str,
    container: Object,
    address: str,
    state: Object,
    *,
    ready: bool = False,
    restarts: int = 0,
    last: Object | None = None,
) -> Object:
    """Return the status of a pod with one container; `last` is the state in which the container ended before it was restarted."""
    unready = [] if ready else [container["name"]]
    reason, message = ("", "") if ready else ("ContainersNotReady", f"containers with unready status: {unready}")
    if phase == "Succeeded":
        reason, message = "PodCompleted", ""
    return {
        "phase": phase,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "hostIP": address,
        "startTime": timestamp(),
        "conditions": merge_conditions(
            [], [condition(kind, ready, reason, message) for kind in ("ContainersReady", "Ready")]
        ),
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container.get("image", ""),
                "ready": ready,
                "started": "running" in state,
                "restartCount": restarts,
                "state": state,
                "lastState": last or {},
            }
        ],
    }
