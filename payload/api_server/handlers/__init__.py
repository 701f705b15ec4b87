"""Handlers of operations: functions of the engine and a call, named in the table of operations.

A handler returns the response body (a JSON value, or a Download), None for an empty one, or raises ApiError. The modules register
their operations in the table when they are imported.
"""

from . import (
    agents,
    catalog,
    cluster_settings,
    cluster_update,
    clusters,
    host_actions,
    hosts,
    images,
    infra_envs,
    installation,
    logs,
    manifests,
    service,
)

__all__ = [
    "agents",
    "catalog",
    "cluster_settings",
    "cluster_update",
    "clusters",
    "host_actions",
    "hosts",
    "images",
    "infra_envs",
    "installation",
    "logs",
    "manifests",
    "service",
]
