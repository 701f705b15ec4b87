"""What each operation does: functions of the engine and a call, found by the handler's name in the table of operations.

A handler returns the answer's body (a JSON value, or a Download), None for an empty one. ApiError is the refusal. The modules enter
their operations into the table when they are imported.
"""

from . import (
    agents,
    cluster_settings,
    clusters,
    host_actions,
    hosts,
    infra_envs,
    installation,
    logs,
    manifests,
    service,
)

__all__ = ["agents", "cluster_settings", "clusters", "host_actions", "hosts", "infra_envs", "installation", "logs", "manifests", "service"]
