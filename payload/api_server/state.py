"""State machines of hosts and clusters: rules as data and the small evaluator.

Rules of one trigger are tried in order; the first whose source and conditions hold decides. Conditions are names; the
caller says which hold. Source: assisted-service's transition rules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...plugins.module_utils.vocabulary import Stage
from .tables import STAGES

SAME = "="


@dataclass(frozen=True, slots=True)
class Rule:
    """`when`: condition names, `!` negates. `info`: new status_info with $PLACEHOLDERS, None leaves it."""

    trigger: str
    sources: frozenset[str]
    dest: str
    when: tuple[str, ...] = ()
    info: str | None = None
    effects: tuple[str, ...] = ()


def _r(trigger: str, sources: str, dest: str, when: str = "", info: str | None = None, effects: str = "") -> Rule:
    return Rule(trigger, frozenset(sources.split()), dest, tuple(when.split()), info, tuple(effects.split()))


def decide(rules: tuple[Rule, ...], status: str, holds: Callable[[str], bool]) -> Rule | None:
    """The rule that applies to an object in `status`, or None: the trigger is not allowed there."""
    for rule in rules:
        if status in rule.sources and all(holds(name.lstrip("!")) != name.startswith("!") for name in rule.when):
            return rule
    return None


def _by_trigger(rules: tuple[Rule, ...]) -> Mapping[str, tuple[Rule, ...]]:
    return {
        trigger: tuple(rule for rule in rules if rule.trigger == trigger)
        for trigger in {rule.trigger for rule in rules}
    }


# Status texts.
WAITING = "Waiting for host to send hardware details"
INSUFFICIENT_HW = "Host does not meet the minimum hardware requirements: $FAILING_VALIDATIONS"
PENDING_INPUT = "Waiting for user input: $FAILING_VALIDATIONS"
NOT_READY = "Host cannot be installed due to following failing validation(s): $FAILING_VALIDATIONS"
READY = "Host is ready to be installed"
PREPARED = "Host finished successfully to prepare for installation"
PREPARE_FAILED = "Host failed to prepare for installation due to following failing validation(s): $FAILING_VALIDATIONS"
PREPARE_TIMEOUT = "The host has encountered a preparation timeout, the following conditions failed: $FAILING_CONDITIONS"
#: What $FAILING_CONDITIONS names.
DISK_SPEED_UNKNOWN = "the installation disk speed check did not complete within the timeout."
IMAGES_UNKNOWN = "container availability was not determined within the timeout."
IN_PROGRESS = "Installation is in progress"
DISCONNECTED = "Host has stopped communicating with the installation service"
LOST_PREPARING = "Host failed to install due to timeout while connecting to host during the preparation phase."
SOFT_LOST = "Host is failing to perform periodic health check during the installation phase."
SOFT_FOUND = "Host recovered from failure to perform periodic health check during the installation phase."
LOST = "Host failed to install due to timeout while connecting to host during the installation phase."
CLUSTER_FAILED = "Host is part of a cluster that failed to install"
INSTALL_TIMEOUT = "Host failed to install due to timeout while starting installation"
STAGE_TIMEOUT = "Host failed to install because its installation stage $STAGE took longer than expected $MAX_TIME"
NO_PROGRESS = (
    "Host failed to install because its installation stage $STAGE did not sufficiently progress in the last $MAX_TIME."
)
SOFT_NO_PROGRESS = (
    "Host installation stage $STAGE is not progressing sufficiently in the last $MAX_TIME. To troubleshoot use kubeconfig or "
    "connect to the node using ssh"
)
SOFT_TIMEOUT = "Host installation stage $STAGE is taking longer than expected $MAX_TIME"
REBOOT_TIMEOUT = (
    "Host timed out when pulling the configuration files. Verify in the host console that the host boots from the OpenShift "
    "installation disk $INSTALLATION_DISK and has network access to the cluster API. The installation will resume after the "
    "host successfully boots and can access the cluster API"
)
WRONG_BOOT = (
    "Expected the host to boot from disk, but it booted the installation image - please reboot and fix boot order to boot "
    "from disk $INSTALLATION_DISK"
)
RESTARTED = "The host unexpectedly restarted during the installation"
POST_INSTALL = (
    "Host is trying to register after the cluster has already been installed. Verify in the host console that the host boots "
    "from the OpenShift installation disk $INSTALLATION_DISK"
)

POST_INSTALL_REGISTER = (
    "Host is trying to register after the cluster has already been installed. That most probably means that the host is booting from the "
    "installation ISO, and therefore not effectively joining the cluster. The request will be ignored. Fix the boot order and reboot the host."
)
UNBINDING = "Host is waiting to be unbound from the cluster"

_DISCOVERY = "disconnected discovering insufficient known pending-for-input"
_INSTALLING = "installing installing-in-progress"
_UNBOUND = "discovering-unbound insufficient-unbound known-unbound disconnected-unbound"

HOST_RULES: tuple[Rule, ...] = (
    _r("register", "initial", "discovering", "", WAITING),
    _r("register", "preparing-for-installation preparing-successful", "known", "", READY, "reset-preparation"),
    _r(
        "register",
        "discovering known disconnected insufficient pending-for-input resetting-pending-user-action binding preparing-failed",
        "discovering",
        "",
        WAITING,
        "reset-inventory",
    ),
    _r(
        "register",
        "installing-in-progress installing-pending-user-action added-to-existing-cluster",
        "installing-pending-user-action",
        "rebooting",
        WRONG_BOOT,
    ),
    _r("register", _INSTALLING, "error", "", RESTARTED),
    _r("register", "error", "error"),
    _r("register", "installed", "installed"),
    _r(
        "progress",
        "installing installing-in-progress installing-pending-user-action",
        "added-to-existing-cluster",
        "day2 day2-done",
        "$STAGE",
    ),
    _r("progress", _INSTALLING + " installing-pending-user-action", "installed", "!day2 stage-done", "$STAGE"),
    _r("progress", _INSTALLING + " installing-pending-user-action", "installing-in-progress", "", "$STAGE"),
    _r("progress", "installed resetting-pending-user-action", SAME),
    _r("failed", _INSTALLING, "error", "", "installation command failed"),
    _r(
        "media-disconnect",
        "discovering insufficient known pending-for-input disconnected binding",
        "disconnected",
        "",
        "$REASON",
    ),
    _r(
        "media-disconnect",
        "preparing-for-installation preparing-failed preparing-successful installing installing-in-progress error",
        "error",
        "",
        "$REASON",
    ),
    _r(
        "cancel",
        "installing-pending-user-action installing installing-in-progress installed error",
        "cancelled",
        "",
        "Installation was cancelled by user",
    ),
    _r(
        "cancel",
        "preparing-for-installation preparing-successful known preparing-failed",
        "known",
        "",
        READY,
        "reset-preparation",
    ),
    _r("cancel", "discovering insufficient pending-for-input disconnected cancelled", SAME),
    _r("install-day2", "known", "installing", "", IN_PROGRESS),
    _r(
        "reset",
        "resetting discovering known insufficient disconnected installing-pending-user-action installing "
        "preparing-for-installation preparing-successful preparing-failed pending-for-input resetting-pending-user-action "
        "installing-in-progress installed error cancelled added-to-existing-cluster",
        "resetting-pending-user-action",
        "booted",
        "Host requires booting into the discovery image to complete resetting the installation",
    ),
    _r("reset", "known insufficient disconnected discovering pending-for-input", SAME),
    _r(
        "reset",
        "resetting preparing-for-installation preparing-successful preparing-failed installing installing-in-progress "
        "installing-pending-user-action error cancelled",
        "discovering",
        "",
        WAITING,
        "reset-installation",
    ),
    _r(
        "refresh",
        "known",
        "preparing-for-installation",
        "cluster-preparing connected role",
        PREPARED,  # so early: upstream's own text
        "reset-failed-images",
    ),
    _r(
        "refresh",
        "preparing-for-installation",
        "preparing-successful",
        "cluster-preparing connected disk-speed-ok images-ok",
        PREPARED,
    ),
    _r("refresh", "preparing-successful", SAME, "cluster-preparing connected"),
    _r("refresh", "preparing-successful", "installing", "cluster-installing connected", IN_PROGRESS),
    _r(
        "refresh",
        "preparing-for-installation",
        "known",
        "!cluster-preparing connected !disk-speed-failed !images-failed",
        READY,
    ),
    _r(
        "refresh",
        "preparing-for-installation preparing-failed known",
        "insufficient",
        "connected disk-speed-failed",
        NOT_READY,
    ),
    _r(
        "refresh",
        "preparing-for-installation",
        "preparing-failed",
        "connected prepare-timeout !images-failed",
        PREPARE_TIMEOUT,
    ),
    _r("refresh", "preparing-for-installation", "preparing-failed", "connected images-failed", PREPARE_FAILED),
    _r("refresh", "preparing-for-installation", SAME, "connected"),
    _r("refresh", "preparing-failed", "known", "connected !cluster-preparing", READY),
    _r("refresh", "preparing-successful", "known", "connected !cluster-preparing !cluster-installing", READY),
    _r(
        "refresh",
        "discovering insufficient known pending-for-input disconnected preparing-failed",
        "disconnected",
        "!connected",
        DISCONNECTED,
    ),
    _r("refresh", "preparing-failed", SAME),
    _r("refresh", "preparing-for-installation preparing-successful", "disconnected", "!connected", LOST_PREPARING),
    _r(
        "refresh",
        "installing installing-in-progress installed resetting-pending-user-action installing-pending-user-action",
        "error",
        "cluster-error !day2",
        CLUSTER_FAILED,
    ),
    _r("refresh", "installing", "error", "install-timeout", INSTALL_TIMEOUT),
    _r("refresh", _INSTALLING, "error", "!online !soft-timeouts", LOST),
    _r("refresh", _INSTALLING, SAME, "!online soft-timeouts !lost-told", SOFT_LOST, "lost"),
    _r("refresh", _INSTALLING, SAME, "online soft-timeouts lost-told", SOFT_FOUND, "found"),
    _r("refresh", "installing-in-progress", SAME, "waits-for-others", None, "restart-stage-clock"),
    _r(
        "refresh",
        "installing-in-progress",
        "error",
        "stage-timeout !soft-timeouts !rebooting progressing-stage",
        NO_PROGRESS,
    ),
    _r("refresh", "installing-in-progress", "error", "stage-timeout !soft-timeouts !rebooting", STAGE_TIMEOUT),
    _r(
        "refresh",
        "installing-in-progress",
        SAME,
        "stage-timeout soft-timeouts !rebooting !stage-told progressing-stage",
        SOFT_NO_PROGRESS,
        "stage-timed-out",
    ),
    _r(
        "refresh",
        "installing-in-progress",
        SAME,
        "stage-timeout soft-timeouts !rebooting !stage-told",
        SOFT_TIMEOUT,
        "stage-timed-out",
    ),
    _r(
        "refresh", "installing-in-progress", "installing-pending-user-action", "stage-timeout rebooting", REBOOT_TIMEOUT
    ),
    _r(
        "refresh",
        "installing-pending-user-action",
        "error",
        "pending-timeout cluster-without-host !cluster-done",
        "Host failed to boot from the installation disk within the expected time.",
    ),
    _r(
        "refresh",
        "installing installing-in-progress installed installing-pending-user-action resetting-pending-user-action",
        SAME,
    ),
    _r("refresh", "disconnected discovering", "discovering", "!inventory", WAITING),
    _r("refresh", _DISCOVERY, "insufficient", "inventory !min-hardware", INSUFFICIENT_HW),
    _r("refresh", _DISCOVERY, "pending-for-input", "inventory !input", PENDING_INPUT),
    _r("refresh", _DISCOVERY, "insufficient", "inventory !sufficient", NOT_READY),
    _r("refresh", _DISCOVERY, "known", "inventory", READY),
    *(
        # Hosts of an infra-env that no cluster has yet.
        _r("register", f"{_UNBOUND} unbinding unbinding-pending-user-action", "discovering-unbound", "", WAITING, "reset-inventory"),
        _r("bind", "known-unbound", "binding", "", "Host is waiting to be bound to the cluster", "reset-inventory"),
        _r("unbind", _DISCOVERY, "unbinding", "", UNBINDING, "reset-inventory"),
        _r(
            "unbind",
            "preparing-for-installation preparing-successful preparing-failed installing installing-in-progress "
            "installing-pending-user-action installed added-to-existing-cluster error cancelled",
            "unbinding-pending-user-action",
            "",
            UNBINDING,
            "reset-inventory",
        ),
        _r("media-disconnect", f"{_UNBOUND} unbinding", "disconnected-unbound", "", "$REASON"),
        _r("refresh", f"{_UNBOUND} unbinding", "disconnected-unbound", "!online", DISCONNECTED),
        _r("refresh", "disconnected-unbound discovering-unbound", "discovering-unbound", "connected !inventory", WAITING),
        _r("refresh", _UNBOUND, "insufficient-unbound", "connected inventory !sufficient", INSUFFICIENT_HW),
        _r("refresh", _UNBOUND, "known-unbound", "connected inventory", "Host is ready to be bound to a cluster"),
    ),
    _r("refresh", "error cancelled", SAME, "logs-timeout", None, "logs-timed-out"),
    _r("refresh", "error cancelled resetting added-to-existing-cluster", SAME),
)

CLUSTER_RULES: tuple[Rule, ...] = (
    _r("prepare", "ready", "preparing-for-installation", "", "Preparing cluster for installation"),
    _r(
        "cancel",
        "installing installing-pending-user-action error finalizing",
        "cancelled",
        "",
        "Installation was cancelled by user",
    ),
    _r("cancel", "preparing-for-installation", "ready", "", "Cluster ready to be installed"),
    _r(
        "reset",
        "preparing-for-installation installing installing-pending-user-action error cancelled finalizing",
        "insufficient",
        "",
        "cluster was reset by user",
    ),
    _r("refresh", "pending-for-input ready insufficient", "pending-for-input", "!input", "User input required"),
    _r(
        "refresh",
        "pending-for-input ready insufficient",
        "insufficient",
        "!sufficient",
        "Cluster is not ready for install",
    ),
    _r("refresh", "pending-for-input ready insufficient", "ready", "", "Cluster ready to be installed"),
    _r(
        "refresh",
        "preparing-for-installation",
        "ready",
        "prepare-timeout !hosts-failed-preparing",
        "Preparing cluster for installation timeout",
        "prepare-timed-out",
    ),
    _r(
        "refresh",
        "preparing-for-installation",
        "installing",
        "all-prepared preparation-success",
        "Installation in progress",
        "installing-started",
    ),
    _r(
        "refresh",
        "preparing-for-installation",
        "insufficient",
        "host-stopped-preparing",
        "At least one host has stopped preparing for installation",
    ),
    _r(
        "refresh",
        "preparing-for-installation",
        "ready",
        "preparation-failed",
        "Cluster failed to prepare for installation",
    ),
    _r("refresh", "preparing-for-installation", SAME),
    _r(
        "refresh",
        "installing-pending-user-action",
        "error",
        "hopeless !enough-installed",
        "cluster has hosts in error",
        "failed",
    ),
    _r(
        "refresh",
        "installing-pending-user-action",
        "error",
        "installation-timeout",
        "cluster installation timed out while pending user action (a manual booting from installation disk)",
        "failed",
    ),
    _r(
        "refresh",
        "installing finalizing",
        "error",
        "installation-timeout soft-timeouts",
        "cluster installation timeout ($INSTALLATION_MINUTES minutes) has expired",
        "failed",
    ),
    _r(
        "refresh",
        "finalizing",
        "error",
        "finalizing-timeout !soft-timeouts",
        "Cluster installation timeout while finalizing",
        "failed",
    ),
    _r(
        "refresh",
        "finalizing",
        "error",
        "finalizing-stage-timeout finalizing-stage-fails !soft-timeouts",
        "Cluster finalizing stage '$STAGE' has been timed out after timeout duration of $MINUTES minutes",
        "failed",
    ),
    _r(
        "refresh",
        "finalizing",
        SAME,
        "finalizing-stage-timeout !finalizing-stage-told",
        "Cluster finalizing stage '$STAGE' is taking longer than the expected duration ($MINUTES minutes). To troubleshoot use "
        "kubeconfig or connect to any node using ssh",
        "finalizing-stage-timed-out",
    ),
    _r("refresh", "installing-pending-user-action", SAME, "user-action-pending"),
    _r(
        "refresh",
        "installing-pending-user-action",
        "finalizing",
        "enough-installed",
        "Finalizing cluster installation",
    ),
    _r("refresh", "installing-pending-user-action", "installing", "", "Installation in progress"),
    _r(
        "refresh",
        "installing finalizing",
        "installing-pending-user-action",
        "user-action-pending !hopeless",
        "Cluster has hosts pending user action",
    ),
    _r(
        "refresh",
        "installing",
        "finalizing",
        "enough-installed",
        "Finalizing cluster installation",
    ),
    _r("refresh", "installing", "error", "hopeless", "cluster has hosts in error", "failed"),
    _r("refresh", "finalizing", "installed", "all-settled kubeconfig operators-settled", "$INSTALLED", "completed"),
    _r("refresh", "installing finalizing installing-pending-user-action installed adding-hosts unmonitored", SAME),
    _r("refresh", "error cancelled", SAME, "logs-timeout", None, "logs-timed-out"),
    _r("refresh", "error cancelled", SAME),
)

HOST = _by_trigger(HOST_RULES)
CLUSTER = _by_trigger(CLUSTER_RULES)


def stages(role: str, bootstrap: bool, sno: bool, day2: bool = False) -> tuple[str, ...]:
    """Stages of a host, in order; of an undecided one those of a worker."""
    return shown_stages("master" if sno else role, bootstrap or sno, sno, day2) or STAGES["worker"]


def shown_stages(role: str, bootstrap: bool, sno: bool, day2: bool) -> tuple[str, ...]:
    """The stages that the API shows of a host: of an undecided one none, of one that joins an installed cluster up to its reboot."""
    if bootstrap or role == "bootstrap":
        found = STAGES["sno" if sno else "bootstrap"]
    else:
        found = STAGES.get(role, ())
    return found[: found.index(Stage.REBOOTING) + 1] if day2 and found else found


def fill(text: str, **values: str) -> str:
    """A status text with its $PLACEHOLDERS filled in."""
    for name, value in values.items():
        text = text.replace("$" + name, value)
    return text


def enough_installed(roles: list[tuple[str, str]], control_planes: int) -> bool:
    """Whether a cluster may go to finalizing: (role, status) of its hosts.

    All masters the topology needs (with two, also an arbiter unless there is none), and two workers when two or more are expected.
    """
    done = [role for role, status in roles if status == "installed"]
    expected = [role for role, __ in roles]
    workers = expected.count("worker")
    return (
        done.count("master") >= control_planes
        and done.count("arbiter") >= min(1, expected.count("arbiter"))
        and (workers < 2 or done.count("worker") >= 2)
    )


def total_percentage(preparing: int, installing: int, finalizing: int) -> int:
    return int(0.1 * preparing + 0.7 * installing + 0.15 * finalizing)
