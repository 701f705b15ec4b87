"""OLM operators: what they are, need and depend on, the bundles that group them, and the manifests that install them.

What is known about each is in `data/operators.yaml`; requirements that depend on hosts are here. Source of names, numbers and
messages: `internal/operators` of assisted-service. The simulated cluster has no OLM; what it does with the manifests is up to
the cluster.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Protocol

from ...plugins.module_utils.documents import load_yaml_all
from . import data, features, versions
from .facts import is_sno, role_of, schedulable_masters

SUCCESS, FAILURE, PENDING = "success", "failure", "pending"
Result = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Need:
    """An operator that another one needs; `sno`: in clusters of a single node only."""

    operator: str
    sno: bool


@dataclass(frozen=True, slots=True)
class Membership:
    """An operator's membership in a bundle: whether the user may leave it out, and for which clusters it holds."""

    bundle: str
    optional: bool = False
    with_feature: str = ""
    without_feature: str = ""

    def holds(self, ident: str, given: Set[str]) -> bool:
        return (
            self.bundle == ident
            and (not self.with_feature or self.with_feature in given)
            and (not self.without_feature or self.without_feature not in given)
        )


@dataclass(frozen=True, slots=True)
class LeastVersion:
    """The lowest version on which an operator runs, and the names of the operator and of OpenShift in the message."""

    version: str
    name: str
    word: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """The vendor of the GPUs that an operator serves, and its PCI id."""

    vendor_id: str
    vendor: str


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of `data/operators.yaml`, whose schema describes the fields."""

    name: str
    full_name: str
    namespace: str
    subscription: str
    timeout_minutes: int
    feature: str
    #: Id of its validation, of hosts and of clusters.
    validation: str
    package: str
    source: str
    needs: tuple[Need, ...]
    bundles: tuple[Membership, ...]
    least_version: LeastVersion | None
    validate_cpu: bool
    gpu: Gpu | None
    #: Resources that start it, without their metadata's nesting.
    custom_resources: tuple[Mapping[str, Any], ...]


def _need(entry: Any) -> Need:
    return Need(entry, False) if isinstance(entry, str) else Need(entry["operator"], True)


def _operator(name: str, entry: Mapping[str, Any]) -> Operator:
    least, gpu = entry.get("least_version"), entry.get("gpu")
    return Operator(
        name=name,
        full_name=entry["full_name"],
        namespace=entry["namespace"],
        subscription=entry["subscription"],
        timeout_minutes=entry["timeout_minutes"],
        feature=entry["feature"],
        validation=f"{entry.get('validation_name', name)}-requirements-satisfied",
        package=entry.get("package", ""),
        source=entry.get("source", "redhat-operators"),
        needs=tuple(map(_need, entry.get("needs", ()))),
        bundles=tuple(Membership(**one) for one in entry.get("bundles", ())),
        least_version=LeastVersion(**least) if least else None,
        validate_cpu=entry.get("validate_cpu", False),
        gpu=Gpu(**gpu) if gpu else None,
        custom_resources=tuple(entry.get("custom_resources", ())),
    )


@dataclass(frozen=True, slots=True)
class Bundle:
    """A group of operators."""

    title: str
    description: str


_TABLE = data.load("operators")
BUNDLES: dict[str, Bundle] = {ident: Bundle(**entry) for ident, entry in _TABLE["bundles"].items()}
OPERATORS: dict[str, Operator] = {name: _operator(name, entry) for name, entry in _TABLE["operators"].items()}
#: Former names of operators in requests, and names elsewhere.
_ALIASES = {alias: name for name, entry in _TABLE["operators"].items() for alias in entry.get("aliases", ())}
for _one in OPERATORS.values():
    _field = f"operators.{_one.name}"
    data.known("operators", _field, [_one.feature], features.FEATURES)
    data.known("operators", f"{_field}.needs", (need.operator for need in _one.needs), OPERATORS)
    data.known("operators", f"{_field}.bundles", (member.bundle for member in _one.bundles), BUNDLES)


class View(Protocol):
    """The cluster in which an operator is validated."""

    @property
    def cluster(self) -> Mapping[str, Any]: ...
    @property
    def hosts(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def inventories(self) -> Mapping[str, Mapping[str, Any]]: ...


def selected(cluster: Mapping[str, Any]) -> list[str]:
    """Names of the OLM operators of a cluster."""
    return [op["name"] for op in cluster.get("monitored_operators", ()) if op.get("operator_type") == "olm"]


# -- selection --------------------------------------------------------------------------------------------------------


def _needs(name: str, cluster: Mapping[str, Any]) -> list[str]:
    return [need.operator for need in OPERATORS[name].needs if not need.sno or is_sno(cluster)]


def bundle(ident: str, with_features: Iterable[str] = ()) -> dict[str, Any]:
    """Return a bundle as the API shows it; KeyError if the id is unknown."""
    described = BUNDLES[ident]
    given = set(with_features)
    required: list[str] = []
    optional: list[str] = []
    for op in OPERATORS.values():
        for member in op.bundles:
            if member.holds(ident, given):
                (optional if member.optional else required).append(op.name)
    return {
        "id": ident,
        "title": described.title,
        "description": described.description,
        "operators": sorted(required),
        "optional_operators": sorted(optional),
    }


def bundles(filters: features.Filters | None, with_features: Iterable[str] = ()) -> list[dict[str, Any]]:
    """Return bundles whose required operators are all available, without unavailable optional ones."""
    given = set(with_features)

    def good(name: str) -> bool:
        feature = OPERATORS[name].feature
        return filters is None or (
            features.available(feature, filters)
            and not given & set(features.FEATURES[feature].incompatible(filters.version))
        )

    found = []
    for ident in BUNDLES:
        made = bundle(ident, given)
        if made["operators"] and all(good(name) for name in made["operators"]):
            made["optional_operators"] = [name for name in made["optional_operators"] if good(name)]
            found.append(made)
    return found


def _monitored(name: str, cluster: Mapping[str, Any]) -> dict[str, Any]:
    op = OPERATORS[name]
    subscription = op.subscription
    if name == "lvm" and not versions.at_least(str(cluster.get("openshift_version", "")), "4.12.0"):
        subscription = "odf-lvm-operator"
    return {
        "cluster_id": cluster["id"],
        "name": name,
        "namespace": op.namespace,
        "subscription_name": subscription,
        "operator_type": "olm",
        "timeout_seconds": op.timeout_minutes * 60,
    }


def choose(
    cluster: Mapping[str, Any], standalone: Iterable[Mapping[str, Any]], chosen_bundles: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return `monitored_operators` entries for requested operators and their dependencies; ValueError for invalid requests."""
    sources: dict[str, list[str]] = {}
    wanted: dict[str, dict[str, Any]] = {}
    for entry in chosen_bundles:
        ident = entry["id"]
        if ident not in BUNDLES:
            raise ValueError(f"bundle '{ident}' is not supported")
        found = bundle(ident)
        for name in entry.get("optional_operators") or ():
            if name not in found["optional_operators"]:
                raise ValueError(f"operator '{name}' is not a valid optional operator for bundle '{ident}'")
        for name in (*found["operators"], *(entry.get("optional_operators") or ())):
            sources.setdefault(name, []).append(ident)
            wanted[name] = {}
    for entry in standalone:
        name = _ALIASES.get(entry.get("name", ""), entry.get("name", ""))
        if name not in OPERATORS:
            raise ValueError(f"operator {name} isn't supported")
        sources.pop(name, None)
        wanted[name] = {"properties": entry["properties"]} if entry.get("properties") else {}
    made = [
        {**_monitored(name, cluster), **extra, **({"source_bundles": sources[name]} if name in sources else {})}
        for name, extra in wanted.items()
    ]
    return made + [{**_monitored(name, cluster), "dependency_only": True} for name in _dependencies(wanted, cluster)]


def chosen_bundles(cluster: Mapping[str, Any]) -> list[dict[str, Any]]:
    """`operator_bundles` of a cluster: the bundles its operators come from, with the optional ones among them."""
    found: dict[str, list[str]] = {}
    for op in cluster.get("monitored_operators", ()):
        for ident in op.get("source_bundles") or ():
            found.setdefault(ident, []).append(op["name"])
    return [
        {"id": ident, "optional_operators": [name for name in bundle(ident)["optional_operators"] if name in names]}
        for ident, names in found.items()
    ]


def _dependencies(names: Iterable[str], cluster: Mapping[str, Any]) -> list[str]:
    """Return the dependencies of the named operators, nearest first."""
    known = list(names)
    found: list[str] = []
    for name in known:
        for need in _needs(name, cluster):
            if need not in known:
                known.append(need)
                found.append(need)
    return found


def check(cluster: Mapping[str, Any], chosen: Iterable[Mapping[str, Any]], cpu: str) -> None:
    """Raise ValueError unless the operators are compatible with the release, the architecture and each other."""
    names = [op["name"] for op in chosen]
    version = str(cluster.get("openshift_version", ""))
    if {"lvm", "cnv"} <= set(names) and not versions.at_least(version, "4.15.0"):
        if not versions.at_least(version, "4.12.0"):
            raise ValueError(
                "Currently, you can not install Logical Volume Manager operator at the same time as Virtualization operator."
            )
        if not is_sno(cluster):
            raise ValueError(
                "Logical Volume Manager is only supported for highly available openshift with version 4.15.0 or above"
            )
    filters = features.Filters(version, features.architecture(cpu))
    bad = [
        OPERATORS[name].full_name
        for name in names
        if features.FEATURES[OPERATORS[name].feature].incompatible_cpu(filters)
    ]
    if bad:
        raise ValueError(
            f"{', '.join(bad)} is not available when {cluster.get('cpu_architecture', cpu)} CPU architecture is selected"
        )
    for name in names:
        feature = features.FEATURES[OPERATORS[name].feature]
        against = set(feature.incompatible(version)) & active(cluster, names)
        if against:
            other = features.FEATURES[sorted(against)[0]].name
            raise ValueError(f"cannot use {feature.name} because it's not compatible with {other}")
        if not features.available(feature.ident, filters):
            raise ValueError(
                f"cannot use {feature.name} because it's not compatible with the {cpu} architecture on version {version} of OpenShift"
            )


def active(cluster: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    """Return features in use that may be incompatible with operators: other operators, topology and platform."""
    platform = cluster.get("platform") or {}
    kind = platform.get("type", "")
    found = {OPERATORS[name].feature for name in names} | ({"SNO"} if is_sno(cluster) else set())
    found |= {features.PLATFORMS[kind]} if kind in features.PLATFORMS else set()
    if kind == "external" and (platform.get("external") or {}).get("platform_name") == "oci":
        found.add("EXTERNAL_PLATFORM_OCI")
    if cluster.get("vip_dhcp_allocation"):
        found.add("VIP_AUTO_ALLOC")
    if cluster.get("user_managed_networking") is False:
        found.add("CLUSTER_MANAGED_NETWORKING")
    return found


# -- requirements -----------------------------------------------------------------------------------------------------

#: Device ids of which each adds a GiB to what cnv needs.
_CNV_DEVICES = frozenset({"10de:1db6", "10de:1eb8", "8086:158b", "15b3:1015", "15b3:1017", "15b3:1013", "15b3:101b"})
Requirement = tuple[int, int]
"""CPU cores, RAM in MiB."""


def _spare_disks(host: Mapping[str, Any], inventory: Mapping[str, Any], least_gb: float) -> tuple[int, int]:
    """Disks besides the installation disk: (large enough, too small)."""
    sizes = [
        disk.get("size_bytes", 0)
        for disk in inventory.get("disks", ())
        if disk.get("drive_type") in ("SSD", "HDD")
        and disk.get("id") != host.get("installation_disk_id")
        and disk.get("size_bytes")
    ]
    large = sum(size >= least_gb * 10**9 for size in sizes)
    return large, len(sizes) - large


def _devices(inventory: Mapping[str, Any]) -> int:
    def ident(text: Any) -> str:
        return str(text or "").lower().removeprefix("0x")

    gpus = [f"{gpu.get('vendor_id', '')}:{gpu.get('device_id', '')}" for gpu in inventory.get("gpus", ())]
    nics = [f"{ident(nic.get('vendor'))}:{ident(nic.get('product'))}" for nic in inventory.get("interfaces", ())]
    return sum(name in _CNV_DEVICES for name in (*gpus, *nics))


def _cnv_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Requirement:
    extra = _devices(inventory) * 1024
    if is_sno(v.cluster):
        return 6, 510 + extra
    return {"master": (4, 150), "arbiter": (0, 0)}.get(role, (2, 360 + extra))


def _lvm_memory(version: str) -> int:
    if not versions.at_least(version, "4.13.0"):
        return 1200
    return 100 if versions.at_least(version, "4.16.0") else 400


def _lvm_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Requirement:
    if role == "arbiter" or (role == "master" and not schedulable_masters(v.cluster, v.hosts.values())):
        return 0, 0
    return 1, _lvm_memory(str(v.cluster.get("openshift_version", "")))


def _mce_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Requirement:
    if is_sno(v.cluster):
        return 8, 32 * 1024
    return (0, 0) if role == "arbiter" else (4, 16 * 1024)


def _one_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Requirement:
    return (0, 0) if role == "arbiter" else (1, 1024)


def _ai_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Requirement:
    return (8, 32 * 1024) if role == "worker" else (0, 0)


_ODF_LEAST_GB = 25


def odf_mode(v: View) -> str:
    """`Compact` (control plane nodes run it), `Standard` (workers do) or empty while the roles fit neither."""
    roles = [host.get("role", "auto-assign") for host in v.hosts.values()]
    masters, arbiters, workers, free = (roles.count(name) for name in ("master", "arbiter", "worker", "auto-assign"))
    if workers == 0 and (masters + free == 3 or (free == 0 and masters + arbiters >= 3)):
        return "Compact"
    if (masters >= 3 or (masters >= 2 and arbiters)) and workers >= 3:
        return "Standard"
    return ""


def _odf_runs(v: View, role: str) -> bool:
    return role in {"Compact": ("master", "arbiter", "auto-assign"), "Standard": ("worker",)}.get(odf_mode(v), ())


def _odf_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Requirement:
    if not _odf_runs(v, role):
        return 0, 0
    disks, __ = _spare_disks(host, inventory, _ODF_LEAST_GB)
    compact = odf_mode(v) == "Compact"
    disks = max(1, disks) if compact else disks
    return (6 if compact else 8) + 2 * disks, (19 + 5 * disks) * 1024


_NEEDS: dict[str, Callable[[View, Mapping[str, Any], str, Mapping[str, Any]], Requirement]] = {
    "cnv": _cnv_need,
    "lvm": _lvm_need,
    "mce": _mce_need,
    "mtv": _one_need,
    "osc": _one_need,
    "openshift-ai": _ai_need,
    "odf": _odf_need,
}


def need(name: str, v: View, host: Mapping[str, Any], role: str) -> Requirement:
    """Return what one operator requires of a host in a role, in addition to OpenShift."""
    found = _NEEDS.get(name)
    return found(v, host, role, v.inventories.get(host["id"], {})) if found else (0, 0)


def needs(v: View, host: Mapping[str, Any], role: str) -> Requirement:
    """Return what all operators of the cluster together require of a host."""
    found = [need(name, v, host, role) for name in selected(v.cluster)]
    return sum(cpu for cpu, __ in found), sum(ram for __, ram in found)


def preflight(name: str, v: View) -> dict[str, Any]:
    """Return `operator-hardware-requirements`: requirements of an operator before the hosts are known."""
    version = str(v.cluster.get("openshift_version", ""))
    odf = ["At least 3 {hosts}", "At least 1 non-boot SSD or HDD disk on 3 {hosts}"]
    lvm = _lvm_memory(version)
    cnv_texts = [
        "Additional 1GiB of RAM per each supported GPU",
        "Additional 1GiB of RAM per each supported SR-IOV NIC",
        "CPU has virtualization flag (vmx or svm)",
    ]
    lvm_texts = [
        "At least 1 non-boot disk per host",
        f"{lvm} MiB of additional RAM",
        "1 additional CPUs for each non-boot disk",
    ]
    table: dict[str, tuple[Requirement, Requirement, list[str], list[str]]] = {
        "cnv": ((6, 510) if is_sno(v.cluster) else (4, 150), (2, 360), cnv_texts, cnv_texts),
        "lvm": ((1, lvm), (1, lvm), lvm_texts, lvm_texts),
        "mce": ((4, 16384), (4, 16384), [], []),
        "openshift-ai": ((0, 0), (8, 32768), [], []),
        "odf": (
            (6, 19 * 1024),
            (8, 19 * 1024),
            ["Requirements apply only for master-only clusters", *(text.format(hosts="hosts") for text in odf)],
            [
                "Requirements apply only for clusters with workers",
                "5 GiB of additional RAM for each non-boot disk",
                "2 additional CPUs for each non-boot disk",
                *(text.format(hosts="workers") for text in odf),
            ],
        ),
    }
    one = ["1024 MiB of additional RAM", "1 additional CPUs"]
    table["mtv"] = table["osc"] = ((1, 1024), (1, 1024), one, one)
    master, worker, master_texts, worker_texts = table.get(name, ((0, 0), (0, 0), [], []))

    def part(found: Requirement, texts: list[str]) -> dict[str, Any]:
        return {"quantitative": {"cpu_cores": found[0], "ram_mib": found[1]}, "qualitative": texts}

    return {
        "operator_name": name,
        "dependencies": _needs(name, v.cluster),
        "requirements": {"master": part(master, master_texts), "worker": part(worker, worker_texts)},
    }


# -- validations ------------------------------------------------------------------------------------------------------

_CPU = "Insufficient CPU to deploy {name}. Required CPU count is {needed} but found {found} "
_RAM = "Insufficient memory to deploy {name}. Required memory is {needed} MiB but found {found} MiB"


def _resources(name: str, v: View, host: Mapping[str, Any], inventory: Mapping[str, Any]) -> Result:
    cpu, ram = need(name, v, host, role_of(host))
    cores, usable = inventory.get("cpu", {}).get("count", 0), inventory.get("memory", {}).get("usable_bytes", 0)
    full_name = OPERATORS[name].full_name
    if cores < cpu:
        return FAILURE, _CPU.format(name=full_name, needed=cpu, found=cores)
    if usable < ram * 2**20:
        return FAILURE, _RAM.format(name=full_name, needed=ram, found=usable // 2**20)
    return SUCCESS, ""


def _cnv_host(v: View, host: Mapping[str, Any], inventory: Mapping[str, Any]) -> Result:
    if not {"vmx", "svm"} & set(inventory.get("cpu", {}).get("flags", ())):
        return FAILURE, "CPU does not have virtualization support"
    version = str(v.cluster.get("openshift_version", ""))
    if is_sno(v.cluster) and versions.at_least(version, "4.10.0") and not versions.at_least(version, "4.12.0"):
        large, __ = _spare_disks(host, inventory, 50 * 2**30 / 10**9)
        if not large:
            return FAILURE, (
                "OpenShift Virtualization on SNO requires an additional disk with 53 GB (50 Gi) in order to provide persistent "
                "storage for VMs, using hostpath-provisioner"
            )
    if role_of(host) == "auto-assign":
        return FAILURE, "All host roles must be assigned to enable OpenShift Virtualization"
    return _resources("cnv", v, host, inventory)


def _extra_disk_gb(cluster: Mapping[str, Any]) -> int:
    """Return the additional disk space of mce's storage when lvm or odf provide it."""
    names = set(selected(cluster))
    if "mce" not in names or not names & {"lvm", "odf"}:
        return 0
    return 70 if is_sno(cluster) else 50


def _lvm_host(v: View, host: Mapping[str, Any], inventory: Mapping[str, Any]) -> Result:
    least, role = _extra_disk_gb(v.cluster), role_of(host)
    disks, __ = _spare_disks(host, inventory, least)
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


def _odf_disks(v: View, host: Mapping[str, Any], inventory: Mapping[str, Any], extra: int) -> tuple[int, str]:
    """Return (disks for odf, why there are none)."""
    large, small = _spare_disks(host, inventory, _ODF_LEAST_GB + extra)
    if large or not small:
        return large, ""
    return 0, (
        f"Insufficient resources to deploy ODF in {odf_mode(v).lower()} mode. ODF requires a minimum of 3 hosts. Each host must have "
        f"at least 1 additional disk of {_ODF_LEAST_GB + extra} GB minimum and an installation disk."
    )


def _odf_host(v: View, host: Mapping[str, Any], inventory: Mapping[str, Any] | None) -> Result:
    role = host.get("role", "auto-assign")
    if role == "auto-assign" and len(v.hosts) != 3:
        return PENDING, (
            "Auto-assigning roles for hosts with ODF is allowed only for clusters with exactly three hosts. For other scenarios, "
            "please manually assign the host role as either a control plane node or a worker."
        )
    if not _odf_runs(v, role):
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


def _ai_host(v: View, host: Mapping[str, Any], inventory: Mapping[str, Any]) -> Result:
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


def _gpu_host(v: View, served: Gpu, inventory: Mapping[str, Any]) -> Result:
    secure = inventory.get("boot", {}).get("secure_boot_state") == "Enabled"
    if secure and any(gpu.get("vendor_id") == served.vendor_id for gpu in inventory.get("gpus", ())):
        return (
            FAILURE,
            f"Secure boot is enabled, but it needs to be disabled in order to load {served.vendor} GPU drivers",
        )
    return SUCCESS, ""


_HOST: dict[str, Callable[[View, Mapping[str, Any], Mapping[str, Any]], Result]] = {
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


def validate_host(name: str, v: View, host: Mapping[str, Any]) -> Result:
    """Return whether a host meets the requirements of a selected operator."""
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
        if not _odf_runs(v, role_of(host)):
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
            f"1 additional disk of {_ODF_LEAST_GB} GB minimum and an installation disk."
        )
    return SUCCESS, f"ODF Requirements for {mode} Deployment are satisfied."


def _ai_cluster(v: View) -> Result:
    workers = sum(role_of(host) == "worker" for host in v.hosts.values())
    if not is_sno(v.cluster) and workers < 2:
        return FAILURE, f"OpenShift AI requires at least 2 worker nodes, but the cluster has {workers}."
    return SUCCESS, ""


def _gpu_cluster(v: View, served: Gpu) -> Result:
    masters = v.cluster.get("schedulable_masters_forced_true") or v.cluster.get("schedulable_masters")
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
    """Return whether a cluster meets the requirements of a selected operator."""
    version, cpu = str(v.cluster.get("openshift_version", "")), str(v.cluster.get("cpu_architecture", "x86_64"))
    filters = features.Filters(version, features.architecture(cpu))
    op = OPERATORS[name]
    if op.validate_cpu and features.FEATURES[op.feature].incompatible_cpu(filters):
        return FAILURE, f"{op.full_name} is not supported for {cpu} CPU architecture."
    least = op.least_version
    if least is not None and not versions.at_least(version, least.version):
        return FAILURE, f"{least.name} is only supported for {least.word} versions {least.version} and above"
    if name == "lvm" and not is_sno(v.cluster) and not versions.at_least(version, "4.15.0"):
        return FAILURE, (
            "Logical Volume Manager is only supported for highly available openshift with version 4.15.0 or above"
        )
    if name == "odf":
        return _odf_cluster(v)
    if name == "openshift-ai":
        return _ai_cluster(v)
    if op.gpu is not None:
        return _gpu_cluster(v, op.gpu)
    return SUCCESS, ""


def validate_ai_gpu(v: View) -> Result:
    """`openshift-ai-gpu-requirements-satisfied`: GPUs are optional."""
    if any(OPERATORS[name].gpu for name in selected(v.cluster)):
        return SUCCESS, ""
    return SUCCESS, "No GPU vendor selected - OpenShift AI will be installed without GPU support"


# -- manifests --------------------------------------------------------------------------------------------------------

_AVAILABILITY = "openshift-workload-availability"


def _document(api: str, kind: str, name: str, namespace: str, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **rest}


def manifests(cluster: Mapping[str, Any]) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, str]]]:
    """Return the manifests that install the cluster's operators, by file name, and `custom_manifests.json`.

    The latter are applied by the controller when the operator's own kinds exist: {"name", "content": base64 of YAML}.
    """
    import yaml

    installed: dict[str, list[dict[str, Any]]] = {}
    custom: list[dict[str, str]] = []
    by_name = {op["name"]: op for op in cluster.get("monitored_operators", ())}
    for name in selected(cluster):
        op, namespace = OPERATORS[name], OPERATORS[name].namespace
        documents = []
        if namespace != "openshift-operators":
            documents.append(_document("v1", "Namespace", namespace, ""))
            targets = {} if namespace == _AVAILABILITY else {"targetNamespaces": [namespace]}
            documents.append(_document("operators.coreos.com/v1", "OperatorGroup", namespace, namespace, spec=targets))
        subscription = by_name[name].get("subscription_name") or op.subscription
        spec = {
            "name": op.package or subscription,
            "source": op.source,
            "sourceNamespace": "openshift-marketplace",
            "installPlanApproval": "Automatic",
        }
        documents.append(_document("operators.coreos.com/v1alpha1", "Subscription", subscription, namespace, spec=spec))
        installed[f"50_openshift-{name}.yaml"] = documents
        texts = [
            _document(one["apiVersion"], one["kind"], one["name"], one.get("namespace", ""), spec=one["spec"])
            for one in op.custom_resources
        ]
        content = yaml.safe_dump_all(texts, sort_keys=False) if texts else ""
        custom.append({"name": name, "content": base64.b64encode(content.encode()).decode()})
    if custom:
        installed["olm_operator_manifests.yaml"] = [_config_map(custom)]
    return installed, custom


def _config_map(custom: list[dict[str, str]]) -> dict[str, Any]:
    """The same for a controller that cannot ask the service: ConfigMap `assisted-installer/olm-operator-manifests`."""
    import yaml

    data: dict[str, str] = {}
    for entry in custom:
        name = entry["name"]
        files: list[str] = []
        for document in filter(None, load_yaml_all(base64.b64decode(entry["content"]), name=entry["name"])):
            files.append(f"{name}-{len(files) + 1:02d}.yaml")
            data[files[-1]] = base64.b64encode(yaml.safe_dump(document, sort_keys=True).strip().encode()).decode()
        if files:
            op = OPERATORS[name]
            data[f"{name}.metadata.yaml"] = yaml.safe_dump(
                {"manifests": files, "namespace": op.namespace, "subscriptionName": op.subscription}
            )
    return _document("v1", "ConfigMap", "olm-operator-manifests", "assisted-installer", data=data)


def custom_files(custom: list[dict[str, str]]) -> dict[str, bytes]:
    """`custom_manifests.json` and `.yaml` of a cluster."""
    text = b"".join(b"---\n" + base64.b64decode(entry["content"]) for entry in custom if entry["content"])
    return {"custom_manifests.json": json.dumps(custom).encode(), "custom_manifests.yaml": text}
