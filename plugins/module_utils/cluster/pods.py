"""Why a pod does not work, from its status in the OpenShift API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NAMESPACE, CONTROLLER = "assisted-installer", "assisted-installer-controller"
"""Namespace and Job of the program that ends an installation on the cluster's side: it must have completed."""
STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})


def name(pod: Mapping[str, Any]) -> str:
    """Return `namespace/name`.

    pod: an object of the API; without a namespace the text begins with the slash.
    """
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def trouble(pod: Mapping[str, Any]) -> str:
    """Return why a pod does not work, in the terms of `kubectl describe`; empty if it does, or has completed.

    The text does not change while the reason stays the same: it has no counts and no times.
    """
    status = pod.get("status") or {}
    phase = status.get("phase", "Unknown")
    if phase == "Succeeded":
        return ""
    if message := failure_of_pod(pod):
        return message
    if phase == "Running" and all(container.get("ready") for container in status.get("containerStatuses") or ()):
        return ""
    return "is not Ready" if phase == "Running" else f"is {phase}"


def failure_of_pod(pod: Mapping[str, Any]) -> str:
    """Return how a container of a pod fails: it exited with an error, or cannot be started; empty if none does.

    pod: an object of the API; init containers are first. A container that waits for its image or its volumes is not
    broken.
    """
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return next((message for container in containers if (message := _container(container))), "")


def _container(status: Mapping[str, Any]) -> str:
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated") or {}
    waits, ended = state.get("waiting") or {}, state.get("terminated") or {}
    reason = waits.get("reason", "")
    if waits and reason not in STARTING:
        # Its last exit explains more than its pending restart.
        message = f"exit code {last['exitCode']}{_message(last)}" if last.get("exitCode") else waits.get("message", "")
        return f"{reason}: {message}" if message else str(reason)
    if ended.get("exitCode"):
        return f"{ended.get('reason') or 'Error'}: exit code {ended['exitCode']}{_message(ended)}"
    return ""


def _message(ended: Mapping[str, Any]) -> str:
    lines = str(ended.get("message") or "").strip().splitlines()
    return f": {lines[-1][:300]}" if lines else ""


def incomplete(job: Mapping[str, Any] | None, pods: Iterable[Mapping[str, Any]]) -> str:
    """Return why the controller's Job has not completed, empty when it has; `pods` are those of its namespace.

    job: None when it does not exist. A pod that has succeeded is enough: the Job may have been removed by then.
    """
    own = [
        pod
        for pod in pods
        if (pod["metadata"].get("labels") or {}).get("job-name") == CONTROLLER
        or pod["metadata"]["name"].startswith(CONTROLLER)
    ]
    status = (job or {}).get("status") or {}
    if status.get("succeeded") or any((pod.get("status") or {}).get("phase") == "Succeeded" for pod in own):
        return ""
    for pod in own:
        if message := trouble(pod):
            return f"pod {name(pod)}: {message}"
    if own:
        return f"pod {name(own[-1])} is still running"
    return f"Job {NAMESPACE}/{CONTROLLER} has no pod" if job else f"there is no Job {NAMESPACE}/{CONTROLLER}"
