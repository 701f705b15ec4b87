"""Validations of hosts and clusters: pure functions of a view.

A new one is a function with the decorator `validation` in the module of its subject, and a line in `HOST` or `CLUSTER`, which have
upstream's order: the order in which changes become events.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeVar

from ..facts import control_planes, domain, hostname_of, is_day2, is_sno, machine_cidrs, names_of, role_of, user_managed
from ..tables import AFTER_REBOOT
from . import cluster, cluster_networks, hardware, network, olm, services, vips
from .base import FAILURE, HIDDEN, SUCCESS, Gate, Unbound, Validation
from .cluster import c_ntp
from .cluster_networks import calculated_cidr, network_of
from .network import majority_least
from .services import WILDCARD
from .view import (
    HostView,
    View,
    address_list,
    release_image_host,
    requirement,
    total_requirement,
    vips_needed,
)
from .vips import free_addresses, own_addresses

__all__ = [
    "AFTER_REBOOT",
    "CLUSTER",
    "CLUSTER_INPUT",
    "CLUSTER_SUFFICIENT",
    "HOST",
    "INPUT",
    "MIN_HARDWARE",
    "NEVER_IGNORED",
    "SUFFICIENT",
    "UNBOUND",
    "UNBOUND_REQUIRED",
    "WILDCARD",
    "HostView",
    "Results",
    "Validation",
    "View",
    "address_list",
    "all_passed",
    "c_ntp",
    "calculated_cidr",
    "control_planes",
    "domain",
    "evaluate",
    "failing_messages",
    "free_addresses",
    "hostname_of",
    "is_day2",
    "is_sno",
    "machine_cidrs",
    "majority_least",
    "names_of",
    "network_of",
    "own_addresses",
    "release_image_host",
    "requirement",
    "role_of",
    "total_requirement",
    "user_managed",
    "validations_info",
    "vips_needed",
]

V = TypeVar("V")
#: id -> (category, status, message)
Results = dict[str, tuple[str, str, str]]

HOST: tuple[Validation[HostView], ...] = (
    hardware.host_connected,
    hardware.media_connected,
    hardware.has_inventory,
    hardware.not_partially_truncated,
    hardware.not_fully_truncated,
    hardware.min_cpu,
    hardware.min_memory,
    hardware.min_disks,
    hardware.role_cpu,
    hardware.role_memory,
    hardware.hostname_unique,
    hardware.hostname_valid,
    services.ignition_downloadable,
    network.belongs_to_majority,
    network.platform_network,
    services.ntp_synced,
    services.time_synced,
    services.images_available,
    hardware.disk_speed,
    network.latency,
    network.packet_loss,
    network.default_route,
    services.api_resolved,
    services.api_int_resolved,
    services.apps_resolved,
    hardware.compatible_platform,
    services.no_wildcard,
    hardware.disk_encryption,
    network.non_overlapping,
    hardware.vsphere_uuid,
    hardware.compatible_agent,
    hardware.no_skip_installation_disk,
    hardware.no_skip_missing_disk,
    network.no_collisions,
    network.no_iscsi_nic,
    network.machine_cidr_defined,
    network.belongs_to_machine_cidr,
    network.mtu_valid,
    *olm.HOST_OPERATORS,
)
CLUSTER: tuple[Validation[View], ...] = (
    cluster_networks.c_machine_cidr,
    cluster_networks.cluster_cidr_defined,
    cluster_networks.service_cidr_defined,
    cluster_networks.c_overlap,
    cluster_networks.c_families,
    cluster_networks.c_prefix,
    cluster_networks.c_calculated,
    vips.api_vips_defined,
    vips.api_vips_valid,
    vips.ingress_vips_defined,
    vips.ingress_vips_valid,
    cluster.c_hosts_ready,
    cluster.c_masters,
    cluster.c_domain,
    cluster.c_pull_secret,
    cluster.c_ntp,
    cluster_networks.c_network_type,
    olm.ai_gpu,
    cluster.c_custom_manifests,
    cluster.c_platform,
    *olm.CLUSTER_OPERATORS,
)


def _names_at(table: Iterable[Validation[V]], *gates: Gate) -> tuple[str, ...]:
    return tuple(entry.ident for entry in table if entry.gate in gates)


MIN_HARDWARE, INPUT, SUFFICIENT = (
    _names_at(HOST, Gate.HARDWARE),
    _names_at(HOST, Gate.INPUT),
    _names_at(HOST, Gate.READINESS),
)
CLUSTER_INPUT, CLUSTER_SUFFICIENT = _names_at(CLUSTER, Gate.INPUT), _names_at(CLUSTER, Gate.READINESS)
#: What is checked in a host of no cluster, and what of it must hold before the host is bound to one.
UNBOUND = tuple(entry for entry in HOST if entry.unbound is not Unbound.NO)
UNBOUND_REQUIRED = tuple(entry.ident for entry in UNBOUND if entry.unbound is Unbound.REQUIRED)
#: Validations that cannot be ignored.
NEVER_IGNORED = {
    "host": frozenset(entry.ident for entry in HOST if not entry.ignorable),
    "cluster": frozenset(entry.ident for entry in CLUSTER if not entry.ignorable),
}


def evaluate(table: Iterable[Validation[V]], view: V) -> Results:
    """id -> (category, status, message) for every validation of a table.

    `table` is HOST, CLUSTER or UNBOUND, in whose order the results are. Status is one of `success`, `failure`,
    `pending`, `error`, `disabled` and `hidden` (see `base`); the message is upstream's text for the API.
    """
    return {entry.ident: (entry.category, *entry.check(view)) for entry in table}


def all_passed(
    results: Mapping[str, tuple[str, str, str]], idents: tuple[str, ...], ignored: frozenset[str] = frozenset()
) -> bool:
    """Return whether all of the given validations succeed or are ignored.

    `results` is what `evaluate` gave, and must have every id of `idents` (KeyError otherwise). `ignored` has ids only:
    the caller expands `all`. A status `pending` or `error` has not passed.
    """
    return all(results[ident][1] in (SUCCESS, HIDDEN) or ident in ignored for ident in idents)


def validations_info(results: Mapping[str, tuple[str, str, str]]) -> str:
    """Return `validations_info` of the API: validations by category, as JSON in a string.

    Categories and, in each, ids are sorted. Entries have the keys `id`, `status` and `message`; a validation with the
    status `hidden` is left out, so that a category may be missing.
    """
    categories: dict[str, list[dict[str, str]]] = {}
    for ident, (category, status, message) in sorted(results.items(), key=lambda item: (item[1][0], item[0])):
        if status != HIDDEN:
            categories.setdefault(category, []).append({"id": ident, "status": status, "message": message})
    return json.dumps(categories, ensure_ascii=False, separators=(",", ":"))


def failing_messages(results: Mapping[str, tuple[str, str, str]]) -> str:
    """$FAILING_VALIDATIONS: every message that failed, whether it blocks or not.

    Sorted and joined by ` ; `; empty if nothing failed. It fills the placeholder in status texts of the state machine.
    A status `pending` or `error` is not included.
    """
    return " ; ".join(sorted(message for __, status, message in results.values() if status == FAILURE))
