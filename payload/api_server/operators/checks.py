"""Whether a host and a cluster meet the requirements of a selected operator, with upstream's messages."""

from __future__ import annotations

from collections.abc import Callable

from .. import features, releases
from ..facts import is_sno, role_of, schedulable_masters
from ..hardware import Inventory
from ..objects import Cluster, Host
from .requirements import ODF_LEAST_GB, need, odf_mode, odf_runs, spare_disks
from .table import FAILURE, OPERATORS, PENDING, SUCCESS, Gpu, Result, View, selected_operators

_CPU = "Insufficient CPU to deploy {name}. Required CPU count is {needed} but found {found} "
_RAM = "Insufficient memory to deploy {name}. Required memory is {needed} MiB but found {found} MiB"


def _resources(name: str, v: View, host: Host, inventory: Inventory) -> Result:
    cpu, ram = need(name, v, host, role_of(host))
    cores, usable = inventory.get("cpu", {}).get("count", 0), inventory.get("memory", {}).get("usable_bytes", 0)
    full_name = OPERATORS[name].full_name
    if cores < cpu:
        return FAILURE, _CPU.format(name=full_name, needed=cpu, found=cores)
    if usable < ram * 2**20:
        return FAILURE, _RAM.format(name=full_name, needed=ram, found=usable // 2**20)
    return SUCCESS, ""


def _cnv_host(v: View, host: Host, inventory: Inventory) -> Result:
    if not {"vmx", "svm"} & set(inventory.get("cpu", {}).get("flags", ())):
        return FAILURE, "CPU does not have virtualization support"
    version = str(v.cluster.get("openshift_version", ""))
    disk = OPERATORS["cnv"].sno_disk
    if disk is not None and is_sno(v.cluster) and disk.required(version):
        size = disk.gib * 2**30 / 10**9
        large, __ = spare_disks(host, inventory, size)
        if not large:
            return FAILURE, (
                f"OpenShift Virtualization on SNO requires an additional disk with {int(size)} GB ({disk.gib} Gi) in order to provide "
                "persistent storage for VMs, using hostpath-provisioner"
            )
    if role_of(host) == "auto-assign":
        return FAILURE, "All host roles must be assigned to enable OpenShift Virtualization"
    return _resources("cnv", v, host, inventory)


def _extra_disk_gb(cluster: Cluster) -> int:
    """Return the additional disk space of mce's storage when lvm or odf provide it."""
    names = set(selected_operators(cluster))
    if "mce" not in names or not names & {"lvm", "odf"}:
        return 0
    return 70 if is_sno(cluster) else 50


def _lvm_host(v: View, host: Host, inventory: Inventory) -> Result:
    least, role = _extra_disk_gb(v.cluster), role_of(host)
    disks, __ = spare_disks(host, inventory, least)
    if role == "worker" or (role != "arbiter" and schedulable_masters(v.cluster, v.hosts.values())):
        if not disks:
            size = f" of {least}GB minimum" if least else ""
            return (
                FAILURE,
                f"Logical Volume Manager requires at least one non-installation HDD/SSD disk{size} on the host",
            )
    elif role == "auto-assign":
        return FAILURE, "For Logical Volume Manager Standard Mode, host role must be assigned to master or worker."
    return SUCCESS, ""


def _odf_disks(v: View, host: Host, inventory: Inventory, extra: int) -> tuple[int, str]:
    """Return (disks for odf, why there are none)."""
    large, small = spare_disks(host, inventory, ODF_LEAST_GB + extra)
    if large or not small:
        return large, ""
    return 0, (
        f"Insufficient resources to deploy ODF in {odf_mode(v).lower()} mode. ODF requires a minimum of 3 hosts. Each host must have "
        f"at least 1 additional disk of {ODF_LEAST_GB + extra} GB minimum and an installation disk."
    )


def _odf_host(v: View, host: Host, inventory: Inventory | None) -> Result:
    role = host.get("role", "auto-assign")
    if role == "auto-assign" and len(v.hosts) != 3:
        return PENDING, (
            "Auto-assigning roles for hosts with ODF is allowed only for clusters with exactly three hosts. For other scenarios, "
            "please manually assign the host role as either a control plane node or a worker."
        )
    if not odf_runs(v, role):
        return SUCCESS, ""
    if inventory is None:
        return PENDING, "Missing Inventory in the host."
    disks, why = _odf_disks(v, host, inventory, _extra_disk_gb(v.cluster))
    if why:
        return FAILURE, why
    if not disks:
        return FAILURE, (
            "Insufficient disks, ODF requires at least one non-installation SSD or HDD disk on each host in "
            f"{odf_mode(v).lower()} mode."
        )
    return SUCCESS, ""


def _ai_host(v: View, host: Host, inventory: Inventory) -> Result:
    cpu, ram = need("openshift-ai", v, host, role_of(host))
    cores, usable = inventory.get("cpu", {}).get("count", 0), inventory.get("memory", {}).get("usable_bytes", 0)
    reasons = []
    if cores < cpu:
        reasons.append(f"Insufficient CPU to deploy OpenShift AI, requires {cpu} CPU cores but found {cores}")
    if usable < ram * 2**20:
        reasons.append(
            f"Insufficient memory to deploy OpenShift AI, requires {ram // 1024} GiB but found {usable // 2**30} GiB"
        )
    return (FAILURE, "\n".join(reasons)) if reasons else (SUCCESS, "")


def _gpu_host(v: View, served: Gpu, inventory: Inventory) -> Result:
    secure = inventory.get("boot", {}).get("secure_boot_state") == "Enabled"
    if secure and any(gpu.get("vendor_id") == served.vendor_id for gpu in inventory.get("gpus", ())):
        return (
            FAILURE,
            f"Secure boot is enabled, but it needs to be disabled in order to load {served.vendor} GPU drivers",
        )
    return SUCCESS, ""


_HOST: dict[str, Callable[[View, Host, Inventory], Result]] = {
    "cnv": _cnv_host,
    "lvm": _lvm_host,
    "mce": lambda v, host, inventory: _resources("mce", v, host, inventory),
    "mtv": lambda v, host, inventory: _resources("mtv", v, host, inventory),
    "osc": lambda v, host, inventory: _resources("osc", v, host, inventory),
    "openshift-ai": _ai_host,
}
_NO_INVENTORY = {
    **dict.fromkeys(("cnv", "mtv", "osc"), "Missing Inventory in some of the hosts"),
    **dict.fromkeys(("lvm", "mce"), "Missing Inventory in the host"),
}


def validate_host(name: str, v: View, host: Host) -> Result:
    """Return whether a host meets the requirements of a selected operator.

    (status, upstream's message), as validations return it. Pending without an inventory; operators without requirements
    always succeed. `name` is a key of OPERATORS.
    """
    inventory = v.inventories.get(host["id"])
    if name == "odf":
        return _odf_host(v, host, inventory)
    found, served = _HOST.get(name), OPERATORS[name].gpu
    if found is None and served is None:
        return SUCCESS, ""
    if inventory is None:
        return PENDING, _NO_INVENTORY.get(name, "Missing inventory in the host")
    return (
        _gpu_host(v, served, inventory) if served is not None else found(v, host, inventory) if found else (SUCCESS, "")
    )


def _odf_cluster(v: View) -> Result:
    mode = odf_mode(v)
    if not mode:
        return FAILURE, (
            "The cluster must either have no dedicated worker nodes or at least three. Add or remove hosts, or change their roles "
            "configurations to meet the requirement."
        )
    disks = hosts = 0
    for ident, host in v.hosts.items():
        if not odf_runs(v, role_of(host)):
            continue
        if ident not in v.inventories:
            return PENDING, "Missing Inventory in some of the hosts"
        found, why = _odf_disks(v, host, v.inventories[ident], 0)
        if why:
            return FAILURE, why
        disks, hosts = disks + found, hosts + bool(found)
    if disks < 3 or hosts < 3:
        return FAILURE, (
            f"Insufficient resources to deploy ODF in {mode.lower()} mode. ODF requires a minimum of 3 hosts. Each host must have at least "
            f"1 additional disk of {ODF_LEAST_GB} GB minimum and an installation disk."
        )
    return SUCCESS, f"ODF Requirements for {mode} Deployment are satisfied."


def _ai_cluster(v: View) -> Result:
    workers = sum(role_of(host) == "worker" for host in v.hosts.values())
    if not is_sno(v.cluster) and workers < 2:
        return FAILURE, f"OpenShift AI requires at least 2 worker nodes, but the cluster has {workers}."
    return SUCCESS, ""


def _gpu_cluster(v: View, served: Gpu) -> Result:
    masters = v.cluster.get("schedulable_masters") or schedulable_masters(v.cluster, v.hosts.values())
    for ident, host in v.hosts.items():
        role = host.get("role", "auto-assign")
        if role == "arbiter" or (role == "master" and not masters):
            continue
        if any(
            str(gpu.get("vendor_id", "")).lower() == served.vendor_id
            for gpu in v.inventories.get(ident, {}).get("gpus", ())
        ):
            return SUCCESS, ""
    return FAILURE, (
        f"The {served.vendor} GPU operator requires at least one supported {served.vendor} GPU, but there is none in the discovered hosts."
    )


def validate_cluster(name: str, v: View) -> Result:
    """Return whether a cluster meets the requirements of a selected operator.

    (status, upstream's message), as validations return it: architecture and version first, then what the operator needs
    of all hosts together. `name` is a key of OPERATORS.
    """
    version, cpu = str(v.cluster.get("openshift_version", "")), str(v.cluster.get("cpu_architecture", "x86_64"))
    filters = features.Filters(version, releases.architecture(cpu))
    op = OPERATORS[name]
    if op.validate_cpu and features.FEATURES[op.feature].incompatible_cpu(filters):
        return FAILURE, f"{op.full_name} is not supported for {cpu} CPU architecture."
    if refused := op.too_old(version, is_sno(v.cluster)):
        return FAILURE, refused
    if name == "odf":
        return _odf_cluster(v)
    if name == "openshift-ai":
        return _ai_cluster(v)
    if op.gpu is not None:
        return _gpu_cluster(v, op.gpu)
    return SUCCESS, ""


def validate_ai_gpu(v: View) -> Result:
    """`openshift-ai-gpu-requirements-satisfied`: GPUs are optional."""
    if any(OPERATORS[name].gpu for name in selected_operators(v.cluster)):
        return SUCCESS, ""
    return SUCCESS, "No GPU vendor selected - OpenShift AI will be installed without GPU support"
