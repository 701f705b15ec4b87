"""Rules of clusters. Source: assisted-service's transition rules."""

from __future__ import annotations

from ....plugins.module_utils.vocabulary import ClusterStatus as Status
from .machine import SAME, ClusterRule
from .machine import ClusterCondition as C
from .machine import ClusterEffect as E
from .machine import ClusterTrigger as Trigger

CLUSTER_RULES: tuple[ClusterRule, ...] = (
    ClusterRule(Trigger.PREPARE, {Status.READY}, Status.PREPARING, info="Preparing cluster for installation"),
    ClusterRule(
        Trigger.CANCEL, {Status.INSTALLING, Status.PENDING_USER_ACTION, Status.ERROR, Status.FINALIZING}, Status.CANCELLED,
        info="Installation was cancelled by user"),
    ClusterRule(Trigger.CANCEL, {Status.PREPARING}, Status.READY, info="Cluster ready to be installed"),
    ClusterRule(
        Trigger.RESET,
        {Status.PREPARING, Status.INSTALLING, Status.PENDING_USER_ACTION, Status.ERROR, Status.CANCELLED, Status.FINALIZING},
        Status.INSUFFICIENT, info="cluster was reset by user"),
    ClusterRule(
        Trigger.REFRESH, {Status.PENDING_FOR_INPUT, Status.READY, Status.INSUFFICIENT}, Status.PENDING_FOR_INPUT, unless=(C.INPUT,),
        info="User input required"),
    ClusterRule(
        Trigger.REFRESH, {Status.PENDING_FOR_INPUT, Status.READY, Status.INSUFFICIENT}, Status.INSUFFICIENT, unless=(C.SUFFICIENT,),
        info="Cluster is not ready for install"),
    ClusterRule(
        Trigger.REFRESH, {Status.PENDING_FOR_INPUT, Status.READY, Status.INSUFFICIENT}, Status.READY,
        info="Cluster ready to be installed"),
    ClusterRule(
        Trigger.REFRESH, {Status.PREPARING}, Status.READY, when=(C.PREPARE_TIMEOUT,), unless=(C.HOSTS_FAILED_PREPARING,),
        info="Preparing cluster for installation timeout", effects=(E.PREPARE_TIMED_OUT,)),
    ClusterRule(
        Trigger.REFRESH, {Status.PREPARING}, Status.INSTALLING, when=(C.ALL_PREPARED, C.PREPARATION_SUCCESS),
        info="Installation in progress", effects=(E.INSTALLING_STARTED,)),
    ClusterRule(
        Trigger.REFRESH, {Status.PREPARING}, Status.INSUFFICIENT, when=(C.HOST_STOPPED_PREPARING,),
        info="At least one host has stopped preparing for installation"),
    ClusterRule(
        Trigger.REFRESH, {Status.PREPARING}, Status.READY, when=(C.PREPARATION_FAILED,),
        info="Cluster failed to prepare for installation"),
    ClusterRule(Trigger.REFRESH, {Status.PREPARING}, SAME),
    ClusterRule(
        Trigger.REFRESH, {Status.PENDING_USER_ACTION}, Status.ERROR, when=(C.HOPELESS,), unless=(C.ENOUGH_INSTALLED,),
        info="cluster has hosts in error", effects=(E.FAILED,)),
    ClusterRule(
        Trigger.REFRESH, {Status.PENDING_USER_ACTION}, Status.ERROR, when=(C.INSTALLATION_TIMEOUT,),
        info="cluster installation timed out while pending user action (a manual booting from installation disk)", effects=(E.FAILED,)),
    ClusterRule(
        Trigger.REFRESH, {Status.INSTALLING, Status.FINALIZING}, Status.ERROR, when=(C.INSTALLATION_TIMEOUT, C.SOFT_TIMEOUTS),
        info="cluster installation timeout ($INSTALLATION_MINUTES minutes) has expired", effects=(E.FAILED,)),
    ClusterRule(
        Trigger.REFRESH, {Status.FINALIZING}, Status.ERROR, when=(C.FINALIZING_TIMEOUT,), unless=(C.SOFT_TIMEOUTS,),
        info="Cluster installation timeout while finalizing", effects=(E.FAILED,)),
    ClusterRule(
        Trigger.REFRESH, {Status.FINALIZING}, Status.ERROR, when=(C.FINALIZING_STAGE_TIMEOUT, C.FINALIZING_STAGE_FAILS),
        unless=(C.SOFT_TIMEOUTS,), info="Cluster finalizing stage '$STAGE' has been timed out after timeout duration of $MINUTES minutes",
        effects=(E.FAILED,)),
    ClusterRule(
        Trigger.REFRESH, {Status.FINALIZING}, SAME, when=(C.FINALIZING_STAGE_TIMEOUT,), unless=(C.FINALIZING_STAGE_REPORTED,),
        info="Cluster finalizing stage '$STAGE' is taking longer than the expected duration ($MINUTES minutes). To troubleshoot use "
        "kubeconfig or connect to any node using ssh", effects=(E.FINALIZING_STAGE_TIMED_OUT,)),
    ClusterRule(Trigger.REFRESH, {Status.PENDING_USER_ACTION}, SAME, when=(C.USER_ACTION_PENDING,)),
    ClusterRule(
        Trigger.REFRESH, {Status.PENDING_USER_ACTION}, Status.FINALIZING, when=(C.ENOUGH_INSTALLED,),
        info="Finalizing cluster installation"),
    ClusterRule(Trigger.REFRESH, {Status.PENDING_USER_ACTION}, Status.INSTALLING, info="Installation in progress"),
    ClusterRule(
        Trigger.REFRESH, {Status.INSTALLING, Status.FINALIZING}, Status.PENDING_USER_ACTION, when=(C.USER_ACTION_PENDING,),
        unless=(C.HOPELESS,), info="Cluster has hosts pending user action"),
    ClusterRule(
        Trigger.REFRESH, {Status.INSTALLING}, Status.FINALIZING, when=(C.ENOUGH_INSTALLED,),
        info="Finalizing cluster installation"),
    ClusterRule(
        Trigger.REFRESH, {Status.INSTALLING}, Status.ERROR, when=(C.HOPELESS,), info="cluster has hosts in error",
        effects=(E.FAILED,)),
    ClusterRule(
        Trigger.REFRESH, {Status.FINALIZING}, Status.INSTALLED, when=(C.ALL_SETTLED, C.KUBECONFIG, C.OPERATORS_SETTLED),
        info="$INSTALLED", effects=(E.COMPLETED,)),
    ClusterRule(
        Trigger.REFRESH,
        {Status.INSTALLING, Status.FINALIZING, Status.PENDING_USER_ACTION, Status.INSTALLED, Status.ADDING_HOSTS, Status.UNMONITORED},
        SAME),
    ClusterRule(Trigger.REFRESH, {Status.ERROR, Status.CANCELLED}, SAME, when=(C.LOGS_TIMEOUT,), effects=(E.LOGS_TIMED_OUT,)),
    ClusterRule(Trigger.REFRESH, {Status.ERROR, Status.CANCELLED}, SAME),
)  # fmt: skip
