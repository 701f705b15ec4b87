"""OLM operators: what they are, need and depend on, the bundles that group them, and the manifests that install them.

Source of names, numbers and messages: `internal/operators` of assisted-service. The simulated cluster has no OLM; what it does
with the manifests is up to the cluster.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...plugins.module_utils.documents import load_yaml_all
from . import features, versions
from .facts import is_sno, role_of, schedulable_masters

SUCCESS, FAILURE, PENDING = "success", "failure", "pending"
Result = tuple[str, str]

#: name | full name | namespace | subscription | timeout in minutes | feature | needs | bundles. A bundle with `?` is one where the user
#: may leave the operator out, with `!F` not for clusters with the feature F, with `@F` only for those.
TEXT = """
lso | Local Storage Operator | openshift-local-storage | local-storage-operator | 70 | LSO | |
odf | OpenShift Data Foundation | openshift-storage | odf-operator | 30 | ODF | lso | openshift-ai!SNO
cnv | OpenShift Virtualization | openshift-cnv | hco-operatorhub | 60 | CNV | | virtualization
lvm | Logical Volume Management | openshift-storage | lvms-operator | 30 | LVM | | openshift-ai@SNO
mce | multicluster engine | multicluster-engine | multicluster-engine | 60 | MCE | |
mtv | OpenShift Migration Toolkit for Virtualization | openshift-mtv | mtv-operator | 60 | MTV | cnv | virtualization
node-feature-discovery | Node Feature Discovery | openshift-nfd | nfd | 30 | NODE_FEATURE_DISCOVERY | |
nvidia-gpu | NVIDIA GPU | nvidia-gpu-operator | gpu-operator-certified | 30 | NVIDIA_GPU | node-feature-discovery | openshift-ai?
pipelines | Pipelines | openshift-operators | openshift-pipelines-operator-rh | 30 | PIPELINES | | openshift-ai!SNO
servicemesh | Service Mesh | openshift-operators | servicemeshoperator | 30 | SERVICEMESH | | openshift-ai!SNO
serverless | Serverless | openshift-serverless | serverless-operator | 30 | SERVERLESS | | openshift-ai!SNO
openshift-ai | OpenShift AI | redhat-ods-operator | rhods-operator | 30 | OPENSHIFT_AI | lvm@SNO | openshift-ai
authorino | Authorino | openshift-operators | authorino-operator | 30 | AUTHORINO | | openshift-ai!SNO
osc | OpenShift sandboxed containers | openshift-sandboxed-containers-operator | sandboxed-containers-operator | 60 | OSC | node-feature-discovery |
nmstate | Kubernetes NMState Operator | openshift-nmstate | kubernetes-nmstate-operator | 60 | NMSTATE | | virtualization
amd-gpu | AMD GPU | openshift-amd-gpu | amd-gpu-operator | 30 | AMD_GPU | node-feature-discovery kmm | openshift-ai?
kmm | KMM | openshift-kmm | kernel-module-management | 30 | KMM | |
node-healthcheck | Node Healthcheck | openshift-workload-availability | node-healthcheck-operator | 30 | NODE_HEALTHCHECK | | virtualization
self-node-remediation | Self Node Remediation | openshift-workload-availability | self-node-remediation | 30 | SELF_NODE_REMEDIATION | node-healthcheck |
fence-agents-remediation | Fence Agents Remediation | openshift-workload-availability | fence-agents-remediation | 30 | FENCE_AGENTS_REMEDIATION | node-healthcheck | virtualization
node-maintenance | Node Maintenance Operator | openshift-workload-maintenance | node-maintenance-operator | 30 | NODE_MAINTENANCE | | virtualization
kube-descheduler | Kube Descheduler | openshift-kube-descheduler-operator | cluster-kube-descheduler-operator | 30 | KUBE_DESCHEDULER | | virtualization
loki | Loki Operator | openshift-operators-redhat | loki-operator | 30 | LOKI | | virtualization
openshift-logging | Red Hat OpenShift Logging Operator | openshift-logging | cluster-logging | 30 | OPENSHIFT_LOGGING | loki | virtualization
cluster-observability | Cluster Observability | openshift-cluster-observability-operator | cluster-observability-operator | 30 | CLUSTER_OBSERVABILITY | openshift-logging | virtualization
numaresources | NUMA Resources | openshift-numaresources | numaresources-operator | 30 | NUMA_RESOURCES | | virtualization
oadp | OADP Operator | openshift-adp | redhat-oadp-operator | 30 | OADP | | virtualization
metallb | MetalLB | metallb-system | metallb-operator | 30 | METALLB | | virtualization
"""  # noqa: E501

BUNDLES: dict[str, tuple[str, str]] = {
    "virtualization": ("Virtualization", "Run virtual machines alongside containers on one platform."),
    "openshift-ai": ("OpenShift AI", "Train, serve, monitor and manage AI/ML models and applications using GPUs."),
}


#: Aliases of operators in requests: former names, and names elsewhere.
#: Operators whose validation has a different name.
_VALIDATION_NAMES = {"numaresources": "numa-resources"}
_ALIASES = {"ocs": "odf", "numa-resources": "numaresources"}
_PACKAGES = {"cnv": "kubevirt-hyperconverged"}


@dataclass(frozen=True, slots=True)
class Operator:
    name: str
    full_name: str
    namespace: str
    subscription: str
    minutes: int
    feature: str
    needs: tuple[str, ...]
    bundles: tuple[str, ...]

    @property
    def validation(self) -> str:
        """Id of its validation, of hosts and of clusters."""
        return f"{_VALIDATION_NAMES.get(self.name, self.name)}-requirements-satisfied"


def _parse(line: str) -> Operator:
    name, full_name, namespace, subscription, minutes, feature, needs, bundles = (
        part.strip() for part in line.split("|")
    )
    return Operator(
        name, full_name, namespace, subscription, int(minutes), feature, tuple(needs.split()), tuple(bundles.split())
    )


OPERATORS: dict[str, Operator] = {op.name: op for op in map(_parse, TEXT.strip().splitlines())}


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
    pairs = (word.partition("@") for word in OPERATORS[name].needs)
    return [need for need, mark, __ in pairs if not mark or is_sno(cluster)]


def bundle(ident: str, with_features: Iterable[str] = ()) -> dict[str, Any]:
    """Return a bundle as the API shows it; KeyError if the id is unknown."""
    title, description = BUNDLES[ident]
    given = set(with_features)
    required: list[str] = []
    optional: list[str] = []
    for op in OPERATORS.values():
        for word in op.bundles:
            name, mark, feature = [*re.split(r"([?!@])", word), "", ""][:3]
            if name == ident and (mark in ("", "?") or (feature in given) == (mark == "@")):
                (optional if mark == "?" else required).append(op.name)
    return {
        "id": ident,
        "title": title,
        "description": description,
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
        "timeout_seconds": op.minutes * 60,
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
Need = tuple[int, int]
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


def _cnv_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Need:
    extra = _devices(inventory) * 1024
    if is_sno(v.cluster):
        return 6, 510 + extra
    return {"master": (4, 150), "arbiter": (0, 0)}.get(role, (2, 360 + extra))


def _lvm_memory(version: str) -> int:
    if not versions.at_least(version, "4.13.0"):
        return 1200
    return 100 if versions.at_least(version, "4.16.0") else 400


def _lvm_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Need:
    if role == "arbiter" or (role == "master" and not schedulable_masters(v.cluster, v.hosts.values())):
        return 0, 0
    return 1, _lvm_memory(str(v.cluster.get("openshift_version", "")))


def _mce_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Need:
    if is_sno(v.cluster):
        return 8, 32 * 1024
    return (0, 0) if role == "arbiter" else (4, 16 * 1024)


def _one_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Need:
    return (0, 0) if role == "arbiter" else (1, 1024)


def _ai_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Need:
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


def _odf_need(v: View, host: Mapping[str, Any], role: str, inventory: Mapping[str, Any]) -> Need:
    if not _odf_runs(v, role):
        return 0, 0
    disks, __ = _spare_disks(host, inventory, _ODF_LEAST_GB)
    compact = odf_mode(v) == "Compact"
    disks = max(1, disks) if compact else disks
    return (6 if compact else 8) + 2 * disks, (19 + 5 * disks) * 1024


_NEEDS: dict[str, Callable[[View, Mapping[str, Any], str, Mapping[str, Any]], Need]] = {
    "cnv": _cnv_need,
    "lvm": _lvm_need,
    "mce": _mce_need,
    "mtv": _one_need,
    "osc": _one_need,
    "openshift-ai": _ai_need,
    "odf": _odf_need,
}


def need(name: str, v: View, host: Mapping[str, Any], role: str) -> Need:
    """Return what one operator requires of a host in a role, in addition to OpenShift."""
    found = _NEEDS.get(name)
    return found(v, host, role, v.inventories.get(host["id"], {})) if found else (0, 0)


def needs(v: View, host: Mapping[str, Any], role: str) -> Need:
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
    table: dict[str, tuple[Need, Need, list[str], list[str]]] = {
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

    def part(found: Need, texts: list[str]) -> dict[str, Any]:
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


_GPU_VENDORS = {"nvidia-gpu": ("10de", "NVIDIA"), "amd-gpu": ("1002", "AMD")}


def _gpu_host(name: str) -> Callable[[View, Mapping[str, Any], Mapping[str, Any]], Result]:
    vendor, label = _GPU_VENDORS[name]

    def check_host(v: View, host: Mapping[str, Any], inventory: Mapping[str, Any]) -> Result:
        secure = inventory.get("boot", {}).get("secure_boot_state") == "Enabled"
        if secure and any(gpu.get("vendor_id") == vendor for gpu in inventory.get("gpus", ())):
            return FAILURE, f"Secure boot is enabled, but it needs to be disabled in order to load {label} GPU drivers"
        return SUCCESS, ""

    return check_host


_HOST: dict[str, Callable[[View, Mapping[str, Any], Mapping[str, Any]], Result]] = {
    "cnv": _cnv_host,
    "lvm": _lvm_host,
    "mce": lambda v, host, inventory: _resources("mce", v, host, inventory),
    "mtv": lambda v, host, inventory: _resources("mtv", v, host, inventory),
    "osc": lambda v, host, inventory: _resources("osc", v, host, inventory),
    "openshift-ai": _ai_host,
    "nvidia-gpu": _gpu_host("nvidia-gpu"),
    "amd-gpu": _gpu_host("amd-gpu"),
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
    found = _HOST.get(name)
    if found is None:
        return SUCCESS, ""
    if inventory is None:
        return PENDING, _NO_INVENTORY.get(name, "Missing inventory in the host")
    return found(v, host, inventory)


#: Operator -> (least version, name in the message, word for OpenShift in it).
_LEAST: dict[str, tuple[str, str, str]] = {
    "mce": ("4.10.0", "multicluster engine", "openshift"),
    "mtv": ("4.14.0", "OpenShift Migration Toolkit for Virtualization", "openshift"),
    "osc": ("4.10.0", "OpenShift sandboxed containers", "openshift"),
    "nmstate": ("4.12.0", "Kubernetes NMState Operator", "openshift"),
    "lvm": ("4.11.0", "Logical Volume Manager", "openshift"),
    "loki": ("4.17.0", "Loki Operator", "OpenShift"),
    "openshift-logging": ("4.17.0", "OpenShift Logging Operator", "OpenShift"),
}
_BY_ARCHITECTURE = frozenset({"cnv", "mtv", "osc", "nmstate"})


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


def _gpu_cluster(v: View, name: str) -> Result:
    vendor, label = _GPU_VENDORS[name]
    masters = v.cluster.get("schedulable_masters_forced_true") or v.cluster.get("schedulable_masters")
    for ident, host in v.hosts.items():
        role = host.get("role", "auto-assign")
        if role == "arbiter" or (role == "master" and not masters):
            continue
        if any(str(gpu.get("vendor_id", "")).lower() == vendor for gpu in v.inventories.get(ident, {}).get("gpus", ())):
            return SUCCESS, ""
    return FAILURE, (
        f"The {label} GPU operator requires at least one supported {label} GPU, but there is none in the discovered hosts."
    )


def validate_cluster(name: str, v: View) -> Result:
    """Return whether a cluster meets the requirements of a selected operator."""
    version, cpu = str(v.cluster.get("openshift_version", "")), str(v.cluster.get("cpu_architecture", "x86_64"))
    filters = features.Filters(version, features.architecture(cpu))
    if name in _BY_ARCHITECTURE and features.FEATURES[OPERATORS[name].feature].incompatible_cpu(filters):
        return FAILURE, f"{OPERATORS[name].full_name} is not supported for {cpu} CPU architecture."
    if name in _LEAST:
        least, label, word = _LEAST[name]
        if not versions.at_least(version, least):
            return FAILURE, f"{label} is only supported for {word} versions {least} and above"
    if name == "lvm" and not is_sno(v.cluster) and not versions.at_least(version, "4.15.0"):
        return FAILURE, (
            "Logical Volume Manager is only supported for highly available openshift with version 4.15.0 or above"
        )
    if name == "odf":
        return _odf_cluster(v)
    if name == "openshift-ai":
        return _ai_cluster(v)
    if name in _GPU_VENDORS:
        return _gpu_cluster(v, name)
    return SUCCESS, ""


def validate_ai_gpu(v: View) -> Result:
    """`openshift-ai-gpu-requirements-satisfied`: GPUs are optional."""
    if set(selected(v.cluster)) & set(_GPU_VENDORS):
        return SUCCESS, ""
    return SUCCESS, "No GPU vendor selected - OpenShift AI will be installed without GPU support"


# -- manifests --------------------------------------------------------------------------------------------------------

_AVAILABILITY = "openshift-workload-availability"
#: Operator -> custom resources that start it: (apiVersion, kind, name, namespace, spec).
_CUSTOM: dict[str, list[tuple[str, str, str, str, dict[str, Any]]]] = {
    "lso": [(
        "local.storage.openshift.io/v1alpha1", "LocalVolumeSet", "local-disks", "openshift-local-storage",
        {"storageClassName": "localblock-sc", "volumeMode": "Block", "deviceInclusionSpec": {"deviceTypes": ["disk"]}},
    )],
    "cnv": [("hco.kubevirt.io/v1beta1", "HyperConverged", "kubevirt-hyperconverged", "openshift-cnv", {})],
    "lvm": [(
        "lvm.topolvm.io/v1alpha1", "LVMCluster", "lvmcluster-sample", "openshift-storage",
        {"storage": {"deviceClasses": [
            {"name": "vg1", "thinPoolConfig": {"name": "thin-pool-1", "sizePercent": 90, "overprovisionRatio": 10}},
        ]}},
    )],
    "mce": [("multicluster.openshift.io/v1", "MultiClusterEngine", "mce", "", {"targetNamespace": "multicluster-engine"})],
    "mtv": [(
        "forklift.konveyor.io/v1beta1", "ForkliftController", "forklift-controller", "openshift-mtv",
        {"feature_ui_plugin": "true", "feature_validation": "true", "feature_volume_populator": "true"},
    )],
    "nmstate": [("nmstate.io/v1", "NMState", "nmstate", "", {})],
    "metallb": [("metallb.io/v1beta1", "MetalLB", "metallb", "metallb-system", {})],
    "node-feature-discovery": [("nfd.openshift.io/v1", "NodeFeatureDiscovery", "nfd-instance", "openshift-nfd", {})],
    "odf": [("ocs.openshift.io/v1", "StorageCluster", "ocs-storagecluster", "openshift-storage", {})],
    "osc": [("kataconfiguration.openshift.io/v1", "KataConfig", "cluster-kataconfig", "", {})],
    "node-healthcheck": [(
        "remediation.medik8s.io/v1alpha1", "NodeHealthCheck", "node-health-check", "",
        {
            "minHealthy": "51%",
            "remediationTemplate": {
                "apiVersion": "self-node-remediation.medik8s.io/v1alpha1", "kind": "SelfNodeRemediationTemplate",
                "name": "self-node-remediation-automatic-strategy-template", "namespace": _AVAILABILITY,
            },
        },
    )],
    "kube-descheduler": [(
        "operator.openshift.io/v1", "KubeDescheduler", "cluster", "openshift-kube-descheduler-operator",
        {"mode": "Predictive", "deschedulingIntervalSeconds": 3600, "profiles": ["AffinityAndTaints"]},
    )],
}  # fmt: skip


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
            "name": _PACKAGES.get(name, subscription),
            "source": "certified-operators" if name in _GPU_VENDORS else "redhat-operators",
            "sourceNamespace": "openshift-marketplace",
            "installPlanApproval": "Automatic",
        }
        documents.append(_document("operators.coreos.com/v1alpha1", "Subscription", subscription, namespace, spec=spec))
        installed[f"50_openshift-{name}.yaml"] = documents
        texts = [
            _document(api, kind, ident, where, spec=given) for api, kind, ident, where, given in _CUSTOM.get(name, ())
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
