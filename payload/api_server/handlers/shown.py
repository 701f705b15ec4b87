"""Clusters and hosts as the API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import operators, validations
from ..engine import Engine

NO_LIST = frozenset({"free_addresses"})


def public(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name[0] != "_"}


def host_model(e: Engine, host: Mapping[str, Any], drop: frozenset[str] = frozenset()) -> dict[str, Any]:
    shown = {name: value for name, value in host.items() if name[0] != "_" and name not in drop}
    shown["progress_stages"] = list(e.stages_of(host))
    name = validations.hostname_of(host, e.inventories.get(host["id"]))
    shown["requested_hostname"] = name or host["id"]
    shown.setdefault("progress", {})
    return shown


def cluster_model(e: Engine, cluster: Mapping[str, Any], hosts: bool = True) -> dict[str, Any]:
    shown = public(cluster)
    members = e.hosts_of(cluster["id"])
    if hosts:
        shown["hosts"] = [host_model(e, host, NO_LIST) for host in members.values()]
        shown["host_networks"] = _host_networks(e, members)
    shown["operator_bundles"] = operators.chosen_bundles(cluster)
    shown["total_host_count"] = shown["enabled_host_count"] = len(members)
    shown["ready_host_count"] = sum(host["status"] == "known" for host in members.values())
    return shown


def _host_networks(e: Engine, members: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: dict[str, list[str]] = {}
    for ident in members:
        for cidr in inv_networks(e, ident):
            found.setdefault(cidr, []).append(ident)
    return [{"cidr": cidr, "host_ids": idents} for cidr, idents in found.items()]


def inv_networks(e: Engine, ident: str) -> list[str]:
    from ..network import host_networks

    return host_networks(e.inventories.get(ident, {}))


#: OPEN_CLUSTER in the order in which upstream's messages have it.
OPEN_SHOWN = ("insufficient", "ready", "pending-for-input", "adding-hosts")
#: What the state machine of upstream says of a transition that has no rule.
NO_TRANSITION = "no condition found to run transition"
