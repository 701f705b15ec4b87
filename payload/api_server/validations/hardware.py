"""Validations of a host by itself: whether it is there, its inventory, hardware, name, disks and agent."""

from __future__ import annotations

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import MAKERS
from .. import inventory as inv
from ..facts import hostname_of, is_day2
from ..hardware import Inventory
from ..tables import MEDIA_DISCONNECTED
from .base import ERROR, FAILURE, HIDDEN, NO_INVENTORY, PENDING, SUCCESS, Category, Gate, Result, Unbound, validation
from .view import HostView, before_reboot, smallest_requirement


@validation("connected", Category.NETWORK, gate=Gate.PRESENCE, ignorable=False, unbound=Unbound.SHOWN)
@before_reboot
def host_connected(v: HostView) -> Result:
    return (SUCCESS, "Host is connected") if v.connected else (FAILURE, "Host is disconnected")


@validation("media-connected", Category.NETWORK, gate=Gate.PRESENCE, unbound=Unbound.SHOWN)
@before_reboot
def media_connected(v: HostView) -> Result:
    bad = v.host.get("media_status") == "disconnected"
    return (FAILURE, MEDIA_DISCONNECTED) if bad else (SUCCESS, "Media device is connected")


@validation("has-inventory", Category.HARDWARE, gate=Gate.PRESENCE, ignorable=False, unbound=Unbound.SHOWN)
def has_inventory(v: HostView) -> Result:
    if v.inventory is None:
        return FAILURE, "Inventory has not been received for the host"
    return SUCCESS, "Valid inventory exists for the host"


def _truncation(v: HostView, kind: str, otherwise: str) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    truncation = v.inventory.get("truncation")
    if not truncation:
        return SUCCESS, "Inventory is not truncated"
    if truncation.get("type") not in ("partial", "full"):
        return ERROR, "Unexpected inventory truncation type"
    if truncation["type"] != kind:
        return SUCCESS, otherwise
    reasons = "; ".join(truncation.get("reasons", ()))
    return FAILURE, f"Inventory is truncated ({kind})" + (f": {reasons}" if reasons else "")


@validation("inventory-not-partially-truncated", Category.HARDWARE, gate=Gate.WARNING)
def not_partially_truncated(v: HostView) -> Result:
    return _truncation(v, "partial", "Inventory is not partially truncated (inventory fully truncated)")


@validation("inventory-not-fully-truncated", Category.HARDWARE, ignorable=False, unbound=Unbound.SHOWN)
def not_fully_truncated(v: HostView) -> Result:
    return _truncation(v, "full", "Inventory is partially truncated")


@validation("has-min-cpu-cores", Category.HARDWARE, gate=Gate.HARDWARE, unbound=Unbound.REQUIRED, lasting=True)
def min_cpu(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    needed, found = (
        smallest_requirement(v.view.table, v.cluster).get("cpu_cores", 0),
        v.inventory.get("cpu", {}).get("count", 0),
    )
    if found >= needed:
        return SUCCESS, "Sufficient CPU cores"
    return FAILURE, (
        "The host is not eligible to participate in Openshift Cluster because the minimum required CPU cores "
        f"for any role is {needed}, found only {found}"
    )


@validation("has-min-memory", Category.HARDWARE, gate=Gate.HARDWARE, unbound=Unbound.REQUIRED, lasting=True)
def min_memory(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    needed = smallest_requirement(v.view.table, v.cluster).get("ram_mib", 0)
    if inv.ram_fits(v.inventory, needed):
        return SUCCESS, "Sufficient minimum RAM"
    return FAILURE, (
        "The host is not eligible to participate in Openshift Cluster because the minimum required RAM "
        f"for any role is {inv.gib(needed)}, found only {inv.gib(inv.ram_mib(v.inventory))}"
    )


@validation("has-min-valid-disks", Category.HARDWARE, gate=Gate.HARDWARE, unbound=Unbound.REQUIRED, lasting=True)
def min_disks(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    if not v.inventory.get("disks"):
        return ERROR, "Failed to detected disks"
    if inv.eligible_disks(v.inventory):
        return SUCCESS, "Sufficient disk capacity"
    return FAILURE, "No eligible disks were found, please check specific disks to see why they are not eligible"


@validation("has-cpu-cores-for-role", Category.HARDWARE, lasting=True)
def role_cpu(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Missing inventory or role"
    needed, found = v.total.get("cpu_cores", 0), v.inventory.get("cpu", {}).get("count", 0)
    if found >= needed:
        return SUCCESS, f"Sufficient CPU cores for role {v.role}"
    return FAILURE, f"Require at least {needed} CPU cores for {v.role} role, found only {found}"


@validation("has-memory-for-role", Category.HARDWARE, lasting=True)
def role_memory(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Missing inventory or role"
    needed = v.total.get("ram_mib", 0)
    if inv.ram_mib(v.inventory) + inv.RAM_TOLERANCE_MIB >= needed:
        return SUCCESS, f"Sufficient RAM for role {v.role}"
    return (
        FAILURE,
        f"Require at least {inv.gib(needed)} RAM for role {v.role}, found only {inv.gib(inv.ram_mib(v.inventory))}",
    )


@validation("hostname-unique", Category.HARDWARE, ignorable=False)
def hostname_unique(v: HostView) -> Result:
    if v.inventory is None:
        return NO_INVENTORY
    name = hostname_of(v.host, v.inventory)
    if v.view.hostnames.get(name, 0) > 1:
        return FAILURE, f"Hostname {name} is not unique in cluster"
    return SUCCESS, f"Hostname {name} is unique in cluster"


@validation("hostname-valid", Category.HARDWARE, ignorable=False, unbound=Unbound.REQUIRED)
def hostname_valid(v: HostView) -> Result:
    if v.inventory is None:
        return FAILURE, "Missing inventory"
    name = hostname_of(v.host, v.inventory)
    if name in inv.FORBIDDEN_HOSTNAMES:
        return FAILURE, f"The host name {name} is forbidden"
    if not inv.hostname_allowed(name):
        return FAILURE, f"Hostname {name} is forbidden, hostname should match pattern {inv.HOSTNAME}"
    return SUCCESS, f"Hostname {name} is allowed"


def _made_for(inventory: Inventory, platform: str) -> bool:
    maker = str(inventory.get("system_vendor", {}).get("manufacturer", ""))
    return MAKERS.get(platform, maker) == maker


@validation("compatible-with-cluster-platform", Category.HARDWARE, gate=Gate.HARDWARE)
def compatible_platform(v: HostView) -> Result:
    platform = (v.cluster.get("platform") or {}).get("type", "")
    if v.inventory is None or not platform:
        return PENDING, "Missing inventory or platform isn't set"
    if not _made_for(v.inventory, platform):
        return FAILURE, (
            f"Host is not compatible with cluster platform {platform}; either disable this host or discover "
            "a new compatible host."
        )
    return SUCCESS, f"Host is compatible with cluster platform {platform}"


@validation("disk-encryption-requirements-satisfied", Category.HARDWARE, gate=Gate.HARDWARE)
def disk_encryption(v: HostView) -> Result:
    encryption = v.cluster.get("disk_encryption") or {}
    enabled = str(encryption.get("enable_on") or "none").split(",")
    if enabled == ["none"] or is_day2(v.cluster):
        return HIDDEN, ""
    if v.inventory is None:
        return PENDING, "Missing host inventory"
    if v.role == "auto-assign":
        return PENDING, "Missing role assignment"
    if "all" not in enabled and f"{v.role}s" not in enabled:
        return HIDDEN, ""
    mode = encryption.get("mode", "tpmv2")
    if mode == "tang":
        answer = v.host.get("tang_connectivity")
        if not answer:
            return PENDING, "Disk encryption check was not performed yet"
        if not load_json(answer, name="answer").get("is_success"):
            return FAILURE, f"Could not validate that all Tang servers are reachable and working: {answer}"
    else:
        tpm = v.inventory.get("tpm_version", "none")
        if tpm == "none":
            return FAILURE, "TPM version could not be found, make sure TPM is enabled in host's BIOS"
        if tpm != "2.0":
            return FAILURE, f"The host's TPM version is not supported, expected-version: 2.0, actual-version: {tpm}"
    return SUCCESS, f"Installation disk can be encrypted using {mode}"


@validation("sufficient-installation-disk-speed", Category.HARDWARE)
def disk_speed(v: HostView) -> Result:
    info = (
        load_json(v.host.get("disks_info") or "{}", name="disks_info")
        .get(v.host.get("installation_disk_id", ""), {})
        .get("disk_speed", {})
    )
    if v.inventory is not None and not inv.eligible_disks(v.inventory):
        return ERROR, "Validation error"
    if not info.get("tested"):
        return SUCCESS, "Speed of installation disk has not yet been measured"
    if info.get("exit_code"):
        return FAILURE, (
            "While preparing the previous installation the installation disk speed measurement failed or was "
            "found to be insufficient"
        )
    return SUCCESS, "Speed of installation disk is sufficient"


@validation("vsphere-disk-uuid-enabled", Category.HARDWARE)
def vsphere_uuid(v: HostView) -> Result:
    if v.inventory is None or not _made_for(v.inventory, "vsphere"):
        return HIDDEN, ""
    if all(disk.get("has_uuid") for disk in inv.eligible_disks(v.inventory)):
        return SUCCESS, "VSphere disk.EnableUUID is enabled for this virtual machine"
    return FAILURE, (
        "VSphere disk.EnableUUID isn't enabled for this virtual machine, it's necessary for disks to be "
        "mounted properly"
    )


def agent_outdated(v: HostView) -> bool:
    found = v.host.get("discovery_agent_version", "")
    return bool(v.view.upgrade_agent and v.view.agent_version and found and found != v.view.agent_version)


@validation("compatible-agent", Category.HARDWARE)
def compatible_agent(v: HostView) -> Result:
    if v.host.get("progress", {}).get("current_stage"):
        return HIDDEN, ""
    if not v.view.upgrade_agent:
        return SUCCESS, "Host agent compatibility checking is disabled"
    if agent_outdated(v):
        return FAILURE, (
            "This host's agent is in the process of being upgraded to a compatible version. "
            "This might take a few minutes"
        )
    return SUCCESS, "Host agent is compatible with the service"


def _skipped(v: HostView) -> list[str]:
    return [text for text in str(v.host.get("skip_formatting_disks", "")).split(",") if text]


@validation("no-skip-installation-disk", Category.HARDWARE)
def no_skip_installation_disk(v: HostView) -> Result:
    if v.host.get("installation_disk_id") in _skipped(v):
        return FAILURE, (
            "Requesting to skip the formatting of the installation disk is not allowed. The installation disk must be "
            "formatted. Please either change this host's installation disk or do not skip the formatting of the "
            "installation disk"
        )
    return SUCCESS, "No request to skip formatting of the installation disk"


@validation("no-skip-missing-disk", Category.HARDWARE)
def no_skip_missing_disk(v: HostView) -> Result:
    if v.inventory is None:
        return PENDING, "Host inventory not available yet"
    if any(inv.find_disk(v.inventory, ident) is None for ident in _skipped(v)):
        return FAILURE, (
            "One or more of the disks that you have requested to skip the formatting of are no longer present on "
            "this host. To ensure they haven't just changed their identity, please remove your request to skip their "
            "formatting and then if needed add them back using the new ID"
        )
    return SUCCESS, "All disks that have skipped formatting are present in the host inventory"
