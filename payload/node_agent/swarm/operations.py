"""What the swarm's requests are called in the assisted service's API: the operationId of its swagger.yaml."""

from __future__ import annotations

OPERATION_IDS = {
    "arbiters": "ListClusterHosts",
    "agents' token": "v2GetCluster",
    "bootstrap.ign": "V2DownloadClusterFiles",
    "cluster": "v2GetCluster",
    "complete": "v2CompleteInstallation",
    "controller logs": "V2UploadLogs",
    "controller logs progress": "v2UpdateClusterLogsProgress",
    "custom_manifests.json": "V2DownloadClusterFiles",
    "finalizing stage": "v2UpdateClusterFinalizingProgress",
    "host ignition": "v2DownloadHostIgnition",
    "hosts": "ListClusterHosts",
    "ingress certificate": "v2UploadClusterIngressCert",
    "install": "v2InstallCluster",
    "instructions": "v2GetNextSteps",
    "kubeconfig-noingress": "V2DownloadClusterCredentials",
    "logs progress": "v2UpdateHostLogsProgress",
    "logs upload": "V2UploadLogs",
    "masters": "ListClusterHosts",
    "operator": "v2ReportMonitoredOperatorStatus",
    "operators": "V2ListOfClusterOperators",
    "progress": "v2UpdateHostInstallProgress",
    "register": "v2RegisterHost",
    "role": "v2UpdateHost",
}
"""Name of a request in the statistics -> its operationId. Others are of several operations (`set up`, `remove`), or not of this API."""
REPLY = "v2PostStepReply"
OF_INSTALLERS = frozenset(
    {"arbiters", "bootstrap.ign", "cluster", "host ignition", "logs progress", "masters", "progress"}
)
"""What installers request; a host's agent requests something else."""
_NAMED = {
    "cluster", "complete", "finalizing stage", "host ignition", "hosts", "ingress certificate", "install", "instructions", "logs progress",
    "logs upload", "operator", "operators", "progress", "register", "role",
}  # fmt: skip


def shown_name(name: str) -> str:
    """Return how a report calls a request: its operationId, followed by what it is about where that does not say it."""
    if name.startswith("reply "):
        return f"{REPLY}, {name.removeprefix('reply ')}"
    ident = OPERATION_IDS.get(name)
    if ident is None:
        return name
    return ident if name in _NAMED else f"{ident}, {name}"
