"""Clusters, hosts and infra-envs as the API shows them: as Go's encoder writes upstream's models.

Empty fields are omitted, except those that are pointers in Go; unset times are Go's zero time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import ClusterStatus, Status
from .. import operators, state, validations
from ..bodies import ClusterParams, InfraEnvParams
from ..engine import Engine
from ..facts import schedulable_masters
from ..network import host_networks
from ..objects import Cluster, Host, InfraEnv, MonitoredOperator

NO_TIME = "0001-01-01T00:00:00.000Z"
_POINTERS = frozenset(
    {
        "name",
        "status",
        "status_info",
        "user_managed_networking",
        "vip_dhcp_allocation",
        "schedulable_masters",
        "schedulable_masters_forced_true",
        "network_type",
        "high_availability_mode",
    }
)
_CLUSTER_LISTS = ("api_vips", "ingress_vips", "cluster_networks", "service_networks", "machine_networks")
_CLUSTER_TIMES = (
    "controller_logs_collected_at",
    "controller_logs_started_at",
    "install_completed_at",
    "install_started_at",
)
_IGNORED = ("ignored_host_validations", "ignored_cluster_validations")
_HOST_TIMES = ("logs_collected_at", "logs_started_at", "stage_started_at", "stage_updated_at")
#: Fields of a host that are shown only in responses to actions on its cluster.
FREE = frozenset({"free_addresses"})
#: OPEN_CLUSTER in the order in which upstream's messages have it.
OPEN_SHOWN = (Status.INSUFFICIENT, Status.READY, Status.PENDING_FOR_INPUT, ClusterStatus.ADDING_HOSTS)
#: Message of upstream's state machine for a transition without a rule.
NO_TRANSITION = "no condition found to run transition"


def _given(document: Mapping[str, object]) -> dict[str, Any]:
    """Return a document without private fields and, as in Go, without empty ones."""
    return {
        name: value
        for name, value in document.items()
        if name[0] != "_" and (value not in ("", 0, None) or name in _POINTERS)
    }


def given_fields(body: ClusterParams | InfraEnvParams, names: tuple[str, ...]) -> Any:
    """Return the named fields of a request that it sets, as the object has them."""
    return {name: value for name, value in body.items() if name in names}


def _times(names: tuple[str, ...]) -> dict[str, Any]:
    return dict.fromkeys(names, NO_TIME)


def host_model(
    e: Engine,
    host: Host,
    *,
    hide: frozenset[str] = FREE,
    stages: bool = True,
    sno: bool | None = None,
) -> dict[str, Any]:
    """A host without the fields in `hide`. `stages`: with its stages and its name in messages.

    `sno`: whether the host is shown as part of a single-node cluster; None: its cluster decides.
    """
    shown = {"deleted_at": None, **_times(_HOST_TIMES), **_given(host)}
    shown["progress"] = {**_times(("stage_started_at", "stage_updated_at")), **_given(shown.get("progress") or {})}
    for name in hide:
        shown.pop(name, None)
    shown["progress_stages"] = None
    if stages:
        cluster: Cluster = e.cluster_of(host) or {}
        single = validations.is_sno(cluster) if sno is None else sno
        day2 = host.get("kind") == "AddToExistingClusterHost"
        shown["progress_stages"] = list(
            state.shown_stages(str(host.get("role", "")), bool(host.get("bootstrap")), single, day2)
        )
        shown["requested_hostname"] = e.hostname(host)
    return shown


def operator_model(operator: MonitoredOperator) -> dict[str, Any]:
    """A monitored operator."""
    return {"bundles": None, "source_bundles": None, "status_updated_at": NO_TIME, **_given(operator)}


def cluster_model(
    e: Engine, cluster: Cluster, *, hosts: bool = True, stages: bool = True, free: bool = False
) -> dict[str, Any]:
    """A cluster. `hosts`: with them; `stages`: their stages and shared networks, as in the response for a single cluster.

    `free`: with the free addresses that hosts reported, as in responses to actions.
    """
    members = e.hosts_of(cluster["id"])
    shown: dict[str, Any] = {
        "deleted_at": None,
        **_times(_CLUSTER_TIMES),
        "image_info": {"created_at": NO_TIME, "expires_at": NO_TIME},
        "load_balancer": {"type": "cluster-managed"},
        "disk_encryption": {},
        "ignition_endpoint": {},
        **{name: [] for name in _CLUSTER_LISTS},
        **_given(cluster),
    }
    if "schedulable_masters_forced_true" in shown:  # an imported cluster has it from its first update on
        shown["schedulable_masters_forced_true"] = schedulable_masters(cluster, members.values())
    for name in _IGNORED:
        if not load_json(shown.get(name, "[]"), name=name):
            shown.pop(name, None)
    shown["platform"] = {"external": {}, **(cluster.get("platform") or {"type": None})}
    shown["progress"] = {"finalizing_stage_started_at": NO_TIME, **_given(cluster.get("progress") or {})}
    shown["last-installation-preparation"] = _given(cluster.get("last-installation-preparation") or {})
    shown["monitored_operators"] = [operator_model(operator) for operator in cluster.get("monitored_operators") or ()]
    shown["operator_bundles"] = operators.chosen_bundles(cluster) if stages else None
    shown["hosts"] = (
        [host_model(e, host, stages=stages, hide=frozenset() if free else FREE) for host in members.values()]
        if hosts
        else []
    )
    shown["host_networks"] = _shared_networks(e, members) if stages else None
    if stages and not hosts:
        shown["host_networks"] = []
    ready = sum(host["status"] == Status.KNOWN for host in members.values())
    if hosts or not stages:
        counts = {"total_host_count": len(members), "enabled_host_count": len(members), "ready_host_count": ready}
        shown |= {name: count for name, count in counts.items() if count}
    return shown


def infra_env_model(infra_env: InfraEnv) -> dict[str, Any]:
    return {"proxy": {}, **_given(infra_env)}


def _shared_networks(e: Engine, members: Mapping[str, Host]) -> list[dict[str, Any]]:
    """The networks that all hosts with an inventory are on."""
    known = [ident for ident in members if ident in e.inventories]
    found: dict[str, list[str]] = {}
    for ident in known:
        for cidr in host_networks(e.inventories[ident]):
            found.setdefault(cidr, []).append(ident)
    return [{"cidr": cidr, "host_ids": idents} for cidr, idents in found.items() if len(idents) == len(known)]


#: JSON in a string, as Go writes it: keys in order, without spaces.
COMPACT: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "sort_keys": True}


def compact(value: object) -> str:
    """JSON in a string, as Go writes it."""
    return json.dumps(value, **COMPACT)
