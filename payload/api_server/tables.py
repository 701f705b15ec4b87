"""Names, orders and messages of the service, as data: stages, timeouts, events, validation categories.

Source: assisted-service's API description, `docs/events.yaml` and its state machines.
"""

from __future__ import annotations

from ...plugins.module_utils.vocabulary import Finalizing, Stage

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
    {Finalizing.OLM_MANIFESTS, Finalizing.CSV_INITIALIZATION, Finalizing.CSV}
)


def stage_setting(stage: str) -> str:
    """Name of the setting with a host stage's timeout."""
    return f"HOST_STAGE_{stage.upper().replace(' ', '_')}_TIMEOUT"


def finalizing_setting(stage: str) -> str:
    """Name of the setting with a finalizing stage's timeout."""
    return f"FINALIZING_STAGE_{stage.upper().replace(' ', '_')}_TIMEOUT"


MEDIA_DISCONNECTED = (
    "Unable to read from the discovery media. It was either disconnected or poor network conditions prevented it from "
    "being read. Try using the minimal ISO option and be sure to keep the media connected until the installation is completed"
)

#: name -> (scope, severity, message template).
EVENTS: dict[str, tuple[str, str, str]] = {
    "cluster_registration_succeeded": ("cluster", "info", "Successfully registered cluster"),
    "cluster_deregistered": ("cluster", "info", "Deregistered cluster"),
    "cluster_validation_failed": ("cluster", "warning", "Cluster validation '{validation_id}' {failure_message}"),
    "cluster_validation_fixed": ("cluster", "info", "Cluster validation '{validation_id}' is now fixed"),
    "cluster_installation_completed": ("cluster", "info", "Successfully completed installing cluster"),
    "cluster_installation_failed": ("cluster", "critical", "Failed installing cluster. Reason: {failure_reason}"),
    "cluster_installation_canceled": ("cluster", "info", "Canceled cluster installation"),
    "cluster_status_updated": ("cluster", "info", "Updated status of the cluster to {cluster_status}"),
    "cluster_finalizing_stage_updated": (
        "cluster",
        "info",
        "Updated finalizing stage of the cluster to '{finalizing_stage}'",
    ),
    "cluster_installation_reset": ("cluster", "info", "Reset cluster installation"),
    "api_ingress_vip_updated": (
        "cluster",
        "info",
        "Cluster was updated with api-vip {api_vip}, ingress-vip {ingress_vip}",
    ),
    "prepare_installation_failed": (
        "cluster",
        "warning",
        "Failed to prepare the installation due to an unexpected error: {error}. Please retry later",
    ),
    "cancel_installation_failed": ("cluster", "error", "Failed to cancel installation: {error}"),
    "reset_installation_failed": ("cluster", "error", "Failed to reset installation. Error: {error}"),
    "cluster_prepare_installation_started": ("cluster", "info", "Cluster starting to prepare for installation"),
    "installation_preparing_timed_out": (
        "cluster",
        "warning",
        "Preparing for installation was timed out for the cluster, reason {reason}",
    ),
    "cluster_degraded_OLM_operators_failed": (
        "cluster",
        "warning",
        "Cluster is installed but degraded due to failed OLM operators {failed_operators}",
    ),
    "cluster_operator_report": ("cluster", "info", "The following operators are experiencing issues: {report}"),
    "cluster_operator_status": ("cluster", "info", "Operator {operator_name} status: {status} message: {status_info}"),
    "finalizing_stage_timed_out": (
        "cluster",
        "warning",
        "Cluster {cluster_id}: finalizing stage {stage} has been active more than the expected completion time ({minutes} minutes)",
    ),
    "install_config_applied": ("cluster", "info", "Custom install config was applied to the cluster"),
    "proxy_settings_changed": ("cluster", "info", "Proxy settings changed"),
    "cluster_logs_uploaded": ("cluster", "info", "Uploaded logs for the cluster"),
    "validations_ignored": (
        "cluster",
        "info",
        "Cluster {cluster_id}: ignored some or all validations at the discretion of the user",
    ),
    "host_media_disconnected": ("host", "error", MEDIA_DISCONNECTED),
    "host_deregistered": ("host", "info", "Host {host_name} deregistered"),
    "host_installer_args_applied": ("host", "info", "Host {host_name}: custom installer arguments were applied"),
    "host_bootstrap_set": ("host", "info", "Host {host_name}: set as bootstrap"),
    "host_status_updated": (
        "host",
        "info",
        "Host {host_name}: updated status from {src_status} to {new_status} {info}",
    ),
    "host_stage_timed_out": (
        "host",
        "warning",
        "Host {host_name}: host stage {stage} has been active more than the expected completion time ({minutes} minutes)",
    ),
    "host_role_updated": ("host", "info", "Host {host_name}: calculated role is {suggested_role}"),
    "image_status_updated": (
        "host",
        "info",
        "Host {host_name}: New image status {image_status}. result: {result}. {info}",
    ),
    "host_installation_cancelled": ("host", "info", "Installation cancelled for host {host_name}"),
    "host_installation_started": ("host", "info", "Host {host_name} starting installation as a worker node"),
    "host_installation_reset": ("host", "info", "Installation reset for host {host_name}"),
    "user_required_complete_installation_reset": (
        "host",
        "info",
        "User action is required in order to complete installation reset for host {host_name}",
    ),
    "host_validation_failed": ("host", "warning", "Host {host_name}: validation '{validation_id}' {failure_message}"),
    "host_validation_fixed": ("host", "info", "Host {host_name}: validation '{validation_id}' is now fixed"),
    "quick_disk_format_performed": (
        "host",
        "info",
        "{host_name}: Performing quick format of disk {disk_name}({disk_id})",
    ),
    "quick_disk_format_skipped": (
        "host",
        "info",
        "{host_name}: Skipping quick format of disk {disk_name}({disk_id}) due to user request. "
        "This could lead to boot order issues during installation",
    ),
    "disk_speed_slower_than_supported": (
        "host",
        "warning",
        "Host's disk {host_disk} is slower than the supported speed, and may cause degraded cluster performance "
        "(fdatasync duration: {fdatasync_duration} ms)",
    ),
    "host_discovery_ignition_config_applied": (
        "host",
        "info",
        "Host {host_name}: custom discovery ignition config was applied",
    ),
    "host_logs_uploaded": ("host", "info", "Uploaded logs for host {host_name} cluster {cluster_id}"),
    "host_registration_succeeded": ("host", "info", "Host {host_name}: Successfully registered"),
    "host_registration_failed": ("host", "error", "{message}"),
    "host_bind_succeeded": ("host", "info", "Host {host_name}: Successfully bound to cluster {cluster_id}"),
    "host_bind_failed": ("host", "error", "Failed to bind host {host_id} to cluster {cluster_id}: {message}"),
    "host_unbind_failed": ("host", "error", "Failed to unbind host {host_id} to cluster: {message}"),
    "host_unbind_succeeded": ("host", "info", "Host {host_name}: Successfully unbound from cluster"),
    "host_install_progress_updated": ("host", "info", "Host: {host_name}, {event}"),
    "upgrade_agent_started": (
        "host",
        "info",
        "Host {host_name}: Agent has been instructed to download image '{agent_image}' and restart",
    ),
    "upgrade_agent_finished": (
        "host",
        "info",
        "Host {host_name}: Agent has downloaded image '{agent_image}' and will now restart",
    ),
    "upgrade_agent_failed": (
        "host",
        "error",
        "Host {host_name}: Agent failed to download image '{agent_image}', will try again",
    ),
    "infra_env_registered": ("infra_env", "info", "Registered infra env"),
    "infra_env_deregistered": ("infra_env", "info", "Deregistered infra env"),
    "infra_env_deregister_failed": ("infra_env", "error", "Failed to deregister infra env. Error: {error}"),
    "image_info_updated": ("infra_env", "info", "Updated image information ({details})"),
    "reboots_for_node": (
        "host",
        "info",
        "Node {node_name} has been rebooted {reboots} times before completing installation",
    ),
}

#: Severity of the event for a host's new status; `info` for all others.
STATUS_SEVERITY: dict[str, str] = {
    "disconnected": "warning",
    "installing-pending-user-action": "warning",
    "insufficient": "warning",
    "error": "error",
}

#: Statuses of a cluster in which a host may register.
OPEN_CLUSTER: frozenset[str] = frozenset({"insufficient", "ready", "pending-for-input", "adding-hosts"})
BEFORE_INSTALL: frozenset[str] = frozenset({"insufficient", "ready", "pending-for-input"})

CLUSTER_FILES: tuple[str, ...] = (
    "bootstrap.ign",
    "master.ign",
    "arbiter.ign",
    "worker.ign",
    "metadata.json",
    "install-config.yaml",
    "custom_manifests.json",
    "custom_manifests.yaml",
)
#: Statuses of a cluster in which the files of its installation may be downloaded, in the order of messages.
DOWNLOADABLE: tuple[str, ...] = (
    "installing",
    "finalizing",
    "installed",
    "error",
    "adding-hosts",
    "cancelled",
    "installing-pending-user-action",
)
#: Files that the agent-based installer may download earlier: credentials.
ABI_EARLY: tuple[str, ...] = ("ready", "preparing-for-installation")
