"""Rules of hosts. Source: assisted-service's transition rules."""

from __future__ import annotations

from ....plugins.module_utils.vocabulary import FAILED_WITH_CLUSTER
from ....plugins.module_utils.vocabulary import HostStatus as Status
from .machine import SAME, HostRule
from .machine import HostCondition as C
from .machine import HostEffect as E
from .machine import HostTrigger as Trigger
from .texts import (
    DISCONNECTED,
    IN_PROGRESS,
    INSTALL_TIMEOUT,
    INSUFFICIENT_HW,
    LOST,
    LOST_PREPARING,
    NO_PROGRESS,
    NOT_READY,
    PENDING_INPUT,
    PREPARE_FAILED,
    PREPARE_TIMEOUT,
    PREPARED,
    READY,
    REBOOT_TIMEOUT,
    RESTARTED,
    SOFT_FOUND,
    SOFT_LOST,
    SOFT_NO_PROGRESS,
    SOFT_TIMEOUT,
    STAGE_TIMEOUT,
    UNBINDING,
    WAITING,
    WRONG_BOOT,
)

_DISCOVERY = {Status.DISCONNECTED, Status.DISCOVERING, Status.INSUFFICIENT, Status.KNOWN, Status.PENDING_FOR_INPUT}
_INSTALLING = {Status.INSTALLING, Status.IN_PROGRESS}
_UNBOUND = {Status.DISCOVERING_UNBOUND, Status.INSUFFICIENT_UNBOUND, Status.KNOWN_UNBOUND, Status.DISCONNECTED_UNBOUND}

HOST_RULES: tuple[HostRule, ...] = (
    HostRule(Trigger.REGISTER, {Status.INITIAL}, Status.DISCOVERING, info=WAITING),
    HostRule(Trigger.REGISTER, {Status.PREPARING, Status.PREPARED}, Status.KNOWN, info=READY, effects=(E.RESET_PREPARATION,)),
    HostRule(
        Trigger.REGISTER,
        {Status.DISCOVERING, Status.KNOWN, Status.DISCONNECTED, Status.INSUFFICIENT, Status.PENDING_FOR_INPUT, Status.RESETTING_PENDING,
         Status.BINDING, Status.PREPARING_FAILED}, Status.DISCOVERING, info=WAITING, effects=(E.RESET_INVENTORY,)),
    HostRule(
        Trigger.REGISTER, {Status.IN_PROGRESS, Status.PENDING_USER_ACTION, Status.ADDED}, Status.PENDING_USER_ACTION,
        when=(C.REBOOTING,), info=WRONG_BOOT),
    HostRule(Trigger.REGISTER, _INSTALLING, Status.ERROR, info=RESTARTED),
    HostRule(Trigger.REGISTER, {Status.ERROR}, Status.ERROR),
    HostRule(Trigger.REGISTER, {Status.INSTALLED}, Status.INSTALLED),
    HostRule(
        Trigger.PROGRESS, {Status.INSTALLING, Status.IN_PROGRESS, Status.PENDING_USER_ACTION}, Status.ADDED,
        when=(C.DAY2, C.DAY2_DONE), info="$STAGE"),
    HostRule(
        Trigger.PROGRESS, {*_INSTALLING, Status.PENDING_USER_ACTION}, Status.INSTALLED, when=(C.STAGE_DONE,), unless=(C.DAY2,),
        info="$STAGE"),
    HostRule(Trigger.PROGRESS, {*_INSTALLING, Status.PENDING_USER_ACTION}, Status.IN_PROGRESS, info="$STAGE"),
    HostRule(Trigger.PROGRESS, {Status.INSTALLED, Status.RESETTING_PENDING}, SAME),
    HostRule(Trigger.FAILED, _INSTALLING, Status.ERROR, info="installation command failed"),
    HostRule(
        Trigger.MEDIA_DISCONNECT,
        {Status.DISCOVERING, Status.INSUFFICIENT, Status.KNOWN, Status.PENDING_FOR_INPUT, Status.DISCONNECTED, Status.BINDING},
        Status.DISCONNECTED, info="$REASON"),
    HostRule(
        Trigger.MEDIA_DISCONNECT,
        {Status.PREPARING, Status.PREPARING_FAILED, Status.PREPARED, Status.INSTALLING, Status.IN_PROGRESS, Status.ERROR}, Status.ERROR,
        info="$REASON"),
    HostRule(
        Trigger.CANCEL, {Status.PENDING_USER_ACTION, Status.INSTALLING, Status.IN_PROGRESS, Status.INSTALLED, Status.ERROR},
        Status.CANCELLED, info="Installation was cancelled by user"),
    HostRule(
        Trigger.CANCEL, {Status.PREPARING, Status.PREPARED, Status.KNOWN, Status.PREPARING_FAILED}, Status.KNOWN, info=READY,
        effects=(E.RESET_PREPARATION,)),
    HostRule(
        Trigger.CANCEL, {Status.DISCOVERING, Status.INSUFFICIENT, Status.PENDING_FOR_INPUT, Status.DISCONNECTED, Status.CANCELLED},
        SAME),
    HostRule(Trigger.INSTALL_DAY2, {Status.KNOWN}, Status.INSTALLING, info=IN_PROGRESS),
    HostRule(
        Trigger.RESET,
        {Status.RESETTING, Status.DISCOVERING, Status.KNOWN, Status.INSUFFICIENT, Status.DISCONNECTED, Status.PENDING_USER_ACTION,
         Status.INSTALLING, Status.PREPARING, Status.PREPARED, Status.PREPARING_FAILED, Status.PENDING_FOR_INPUT, Status.RESETTING_PENDING,
         Status.IN_PROGRESS, Status.INSTALLED, Status.ERROR, Status.CANCELLED, Status.ADDED}, Status.RESETTING_PENDING, when=(C.BOOTED,),
        info="Host requires booting into the discovery image to complete resetting the installation"),
    HostRule(Trigger.RESET, {Status.KNOWN, Status.INSUFFICIENT, Status.DISCONNECTED, Status.DISCOVERING, Status.PENDING_FOR_INPUT}, SAME),
    HostRule(
        Trigger.RESET,
        {Status.RESETTING, Status.PREPARING, Status.PREPARED, Status.PREPARING_FAILED, Status.INSTALLING, Status.IN_PROGRESS,
         Status.PENDING_USER_ACTION, Status.ERROR, Status.CANCELLED}, Status.DISCOVERING, info=WAITING, effects=(E.RESET_INSTALLATION,)),
    # `PREPARED` this early, as upstream.
    HostRule(
        Trigger.REFRESH, {Status.KNOWN}, Status.PREPARING, when=(C.CLUSTER_PREPARING, C.CONNECTED, C.ROLE), info=PREPARED,
        effects=(E.RESET_FAILED_IMAGES,)),
    HostRule(
        Trigger.REFRESH, {Status.PREPARING}, Status.PREPARED, when=(C.CLUSTER_PREPARING, C.CONNECTED, C.DISK_SPEED_OK, C.IMAGES_OK),
        info=PREPARED),
    HostRule(Trigger.REFRESH, {Status.PREPARED}, SAME, when=(C.CLUSTER_PREPARING, C.CONNECTED)),
    HostRule(Trigger.REFRESH, {Status.PREPARED}, Status.INSTALLING, when=(C.CLUSTER_INSTALLING, C.CONNECTED), info=IN_PROGRESS),
    HostRule(
        Trigger.REFRESH, {Status.PREPARING}, Status.KNOWN, when=(C.CONNECTED,),
        unless=(C.CLUSTER_PREPARING, C.DISK_SPEED_FAILED, C.IMAGES_FAILED), info=READY),
    HostRule(
        Trigger.REFRESH, {Status.PREPARING, Status.PREPARING_FAILED, Status.KNOWN}, Status.INSUFFICIENT,
        when=(C.CONNECTED, C.DISK_SPEED_FAILED), info=NOT_READY),
    HostRule(
        Trigger.REFRESH, {Status.PREPARING}, Status.PREPARING_FAILED, when=(C.CONNECTED, C.PREPARE_TIMEOUT), unless=(C.IMAGES_FAILED,),
        info=PREPARE_TIMEOUT),
    HostRule(Trigger.REFRESH, {Status.PREPARING}, Status.PREPARING_FAILED, when=(C.CONNECTED, C.IMAGES_FAILED), info=PREPARE_FAILED),
    HostRule(Trigger.REFRESH, {Status.PREPARING}, SAME, when=(C.CONNECTED,)),
    HostRule(Trigger.REFRESH, {Status.PREPARING_FAILED}, Status.KNOWN, when=(C.CONNECTED,), unless=(C.CLUSTER_PREPARING,), info=READY),
    HostRule(
        Trigger.REFRESH, {Status.PREPARED}, Status.KNOWN, when=(C.CONNECTED,), unless=(C.CLUSTER_PREPARING, C.CLUSTER_INSTALLING),
        info=READY),
    HostRule(
        Trigger.REFRESH,
        {Status.DISCOVERING, Status.INSUFFICIENT, Status.KNOWN, Status.PENDING_FOR_INPUT, Status.DISCONNECTED, Status.PREPARING_FAILED},
        Status.DISCONNECTED, unless=(C.CONNECTED,), info=DISCONNECTED),
    HostRule(Trigger.REFRESH, {Status.PREPARING_FAILED}, SAME),
    HostRule(Trigger.REFRESH, {Status.PREPARING, Status.PREPARED}, Status.DISCONNECTED, unless=(C.CONNECTED,), info=LOST_PREPARING),
    HostRule(
        Trigger.REFRESH,
        {Status.INSTALLING, Status.IN_PROGRESS, Status.INSTALLED, Status.RESETTING_PENDING, Status.PENDING_USER_ACTION}, Status.ERROR,
        when=(C.CLUSTER_ERROR,), unless=(C.DAY2,), info=FAILED_WITH_CLUSTER),
    HostRule(Trigger.REFRESH, {Status.INSTALLING}, Status.ERROR, when=(C.INSTALL_TIMEOUT,), info=INSTALL_TIMEOUT),
    HostRule(Trigger.REFRESH, _INSTALLING, Status.ERROR, unless=(C.ONLINE, C.SOFT_TIMEOUTS), info=LOST),
    HostRule(
        Trigger.REFRESH, _INSTALLING, SAME, when=(C.SOFT_TIMEOUTS,), unless=(C.ONLINE, C.LOST_REPORTED), info=SOFT_LOST,
        effects=(E.LOST,)),
    HostRule(Trigger.REFRESH, _INSTALLING, SAME, when=(C.ONLINE, C.SOFT_TIMEOUTS, C.LOST_REPORTED), info=SOFT_FOUND, effects=(E.FOUND,)),
    HostRule(Trigger.REFRESH, {Status.IN_PROGRESS}, SAME, when=(C.WAITS_FOR_OTHERS,), effects=(E.RESTART_STAGE_CLOCK,)),
    HostRule(
        Trigger.REFRESH, {Status.IN_PROGRESS}, Status.ERROR, when=(C.STAGE_TIMEOUT, C.PROGRESSING_STAGE),
        unless=(C.SOFT_TIMEOUTS, C.REBOOTING), info=NO_PROGRESS),
    HostRule(
        Trigger.REFRESH, {Status.IN_PROGRESS}, Status.ERROR, when=(C.STAGE_TIMEOUT,), unless=(C.SOFT_TIMEOUTS, C.REBOOTING),
        info=STAGE_TIMEOUT),
    HostRule(
        Trigger.REFRESH, {Status.IN_PROGRESS}, SAME, when=(C.STAGE_TIMEOUT, C.SOFT_TIMEOUTS, C.PROGRESSING_STAGE),
        unless=(C.REBOOTING, C.STAGE_REPORTED), info=SOFT_NO_PROGRESS, effects=(E.STAGE_TIMED_OUT,)),
    HostRule(
        Trigger.REFRESH, {Status.IN_PROGRESS}, SAME, when=(C.STAGE_TIMEOUT, C.SOFT_TIMEOUTS), unless=(C.REBOOTING, C.STAGE_REPORTED),
        info=SOFT_TIMEOUT, effects=(E.STAGE_TIMED_OUT,)),
    HostRule(Trigger.REFRESH, {Status.IN_PROGRESS}, Status.PENDING_USER_ACTION, when=(C.STAGE_TIMEOUT, C.REBOOTING), info=REBOOT_TIMEOUT),
    HostRule(
        Trigger.REFRESH, {Status.PENDING_USER_ACTION}, Status.ERROR, when=(C.PENDING_TIMEOUT, C.CLUSTER_WITHOUT_HOST),
        unless=(C.CLUSTER_DONE,), info="Host failed to boot from the installation disk within the expected time."),
    HostRule(
        Trigger.REFRESH,
        {Status.INSTALLING, Status.IN_PROGRESS, Status.INSTALLED, Status.PENDING_USER_ACTION, Status.RESETTING_PENDING}, SAME),
    HostRule(Trigger.REFRESH, {Status.DISCONNECTED, Status.DISCOVERING}, Status.DISCOVERING, unless=(C.INVENTORY,), info=WAITING),
    HostRule(Trigger.REFRESH, _DISCOVERY, Status.INSUFFICIENT, when=(C.INVENTORY,), unless=(C.MIN_HARDWARE,), info=INSUFFICIENT_HW),
    HostRule(Trigger.REFRESH, _DISCOVERY, Status.PENDING_FOR_INPUT, when=(C.INVENTORY,), unless=(C.INPUT,), info=PENDING_INPUT),
    HostRule(Trigger.REFRESH, _DISCOVERY, Status.INSUFFICIENT, when=(C.INVENTORY,), unless=(C.SUFFICIENT,), info=NOT_READY),
    HostRule(Trigger.REFRESH, _DISCOVERY, Status.KNOWN, when=(C.INVENTORY,), info=READY),
    # Hosts of an infra-env that is not bound to a cluster.
    HostRule(
        Trigger.REGISTER, {*_UNBOUND, Status.UNBINDING, Status.UNBINDING_PENDING}, Status.DISCOVERING_UNBOUND, info=WAITING,
        effects=(E.RESET_INVENTORY,)),
    HostRule(
        Trigger.BIND, {Status.KNOWN_UNBOUND}, Status.BINDING, info="Host is waiting to be bound to the cluster",
        effects=(E.RESET_INVENTORY,)),
    HostRule(Trigger.UNBIND, _DISCOVERY, Status.UNBINDING, info=UNBINDING, effects=(E.RESET_INVENTORY,)),
    HostRule(
        Trigger.UNBIND,
        {Status.PREPARING, Status.PREPARED, Status.PREPARING_FAILED, Status.INSTALLING, Status.IN_PROGRESS, Status.PENDING_USER_ACTION,
         Status.INSTALLED, Status.ADDED, Status.ERROR, Status.CANCELLED}, Status.UNBINDING_PENDING, info=UNBINDING,
        effects=(E.RESET_INVENTORY,)),
    HostRule(Trigger.MEDIA_DISCONNECT, {*_UNBOUND, Status.UNBINDING}, Status.DISCONNECTED_UNBOUND, info="$REASON"),
    HostRule(Trigger.REFRESH, {*_UNBOUND, Status.UNBINDING}, Status.DISCONNECTED_UNBOUND, unless=(C.ONLINE,), info=DISCONNECTED),
    HostRule(
        Trigger.REFRESH, {Status.DISCONNECTED_UNBOUND, Status.DISCOVERING_UNBOUND}, Status.DISCOVERING_UNBOUND, when=(C.CONNECTED,),
        unless=(C.INVENTORY,), info=WAITING),
    HostRule(
        Trigger.REFRESH, _UNBOUND, Status.INSUFFICIENT_UNBOUND, when=(C.CONNECTED, C.INVENTORY), unless=(C.SUFFICIENT,),
        info=INSUFFICIENT_HW),
    HostRule(
        Trigger.REFRESH, _UNBOUND, Status.KNOWN_UNBOUND, when=(C.CONNECTED, C.INVENTORY),
        info="Host is ready to be bound to a cluster"),
    HostRule(Trigger.REFRESH, {Status.ERROR, Status.CANCELLED}, SAME, when=(C.LOGS_TIMEOUT,), effects=(E.LOGS_TIMED_OUT,)),
    HostRule(Trigger.REFRESH, {Status.ERROR, Status.CANCELLED, Status.RESETTING, Status.ADDED}, SAME),
)  # fmt: skip
