"""What validations look at, and what follows from all hosts of a cluster together: groups, roles, the machine network."""

from __future__ import annotations

import contextlib
import functools
import json
from collections import Counter
from typing import Literal

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import Status
from .. import inventory as inv
from .. import validations
from ..network import host_networks
from ..objects import Cluster, Host
from ..tables import BEFORE_INSTALL
from ..validations import Results
from .instructions import Instructions

_UNFINISHED_LOGS = frozenset({"requested", "collecting"})


#: Kind of object -> the field of its cluster with the validations that its user ignores.
_IGNORED: dict[str, Literal["ignored_host_validations", "ignored_cluster_validations"]] = {
    "host": "ignored_host_validations",
    "cluster": "ignored_cluster_validations",
}


class Views(Instructions):
    """Makes views of clusters.

    One of the layers of `Engine`. It also keeps what depends on all hosts together: majority groups, suggested roles
    and a derived machine network.
    """

    def view(self, cluster: Cluster) -> validations.View:
        """Return the input of the validations of a cluster and its hosts, as of now.

        It refers to the documents and does not copy them: use it within one slice of the event loop.
        """
        members = self.hosts_of(cluster["id"])
        inventories = {ident: self.inventories[ident] for ident in members if ident in self.inventories}
        names = Counter(
            validations.hostname_of(host, inventories.get(ident))
            for ident, host in members.items()
            if ident in inventories
        )
        settings = self.settings(cluster["id"])
        return validations.View(
            cluster=cluster,
            hosts=members,
            inventories=inventories,
            table=self.table(cluster),
            reach=self.reach_of(cluster["id"]),
            now=self.clock(),
            agent_version=self.config.image("AGENT_DOCKER_IMAGE"),
            upgrade_agent=self.config.flag("ENABLE_UPGRADE_AGENT", settings),
            dnsmasq=self.config.flag("ENABLE_SINGLE_NODE_DNSMASQ", settings),
            images=self.needed_images(cluster),
            manifests=self.has_manifests(cluster["id"]),
            groups=self.groups(cluster),
            connected_addresses=self._connected[cluster["id"]],
            hostnames=names,
        )

    def groups(self, cluster: Cluster) -> dict[str, frozenset[str]]:
        """Return the majority groups of a cluster: network -> ids of its hosts.

        Networks are the machine networks, and `IPv4` and `IPv6` for layer 3. Computed once per change of what hosts
        report. A result that differs is stored (`connectivity_majority_groups`, `ip_collisions`) and marks the affected
        hosts.
        """
        known = self._groups.get(cluster["id"])
        if known is not None:
            return known
        members = [ident for ident in self.hosts_of(cluster["id"]) if ident in self.inventories]
        reach = self.reach_of(cluster["id"])
        least = validations.majority_least(cluster, self.hosts_of(cluster["id"]).values())
        names = dict.fromkeys([*validations.machine_cidrs(cluster), "IPv4", "IPv6"])
        lists = {name: reach.group(name, members, least) for name in names}
        found = {name: frozenset(group) for name, group in lists.items()}
        old = cluster.get("connectivity_majority_groups")
        addresses = {ident: self.hosts[ident].get("_addresses", []) for ident in members}
        connected = reach.connected_addresses(addresses)
        shown = {
            "majority_groups": {name: sorted(group) for name, group in lists.items()},
            "l3_connected_addresses": connected,
        }
        text = json.dumps(shown, separators=(",", ":"))
        if cluster["status"] in BEFORE_INSTALL and text != old:
            earlier = load_json(old or "{}", name="validations_info")
            before = {name: frozenset(group) for name, group in earlier.get("majority_groups", {}).items()}
            for name in {*before, *found}:
                self.dirty.update(before.get(name, frozenset()) ^ found.get(name, frozenset()))
            reached = earlier.get("l3_connected_addresses", {})
            self.dirty.update(ident for ident in members if reached.get(ident) != connected.get(ident))
            cluster["connectivity_majority_groups"] = text
        collisions = {ip: macs for ident in members for ip, macs in reach.collisions.get(ident, {}).items()}
        text = json.dumps(collisions)
        if members and text != cluster.get("ip_collisions"):
            cluster["ip_collisions"] = text
            self.touch_hosts(cluster["id"])
        self._groups[cluster["id"]] = found
        self._connected[cluster["id"]] = connected
        return found

    def refresh_roles(self, cluster: Cluster) -> None:
        """Set suggested roles and, where it follows from the hosts, the machine network.

        Before the installation of day-1 clusters only. A new role changes the smallest disk, so inventories are
        evaluated again. The machine network is that of the first API VIP, or the only network of a single node.
        """
        members = self.hosts_of(cluster["id"])
        if cluster["status"] in (
            Status.PENDING_FOR_INPUT,
            Status.INSUFFICIENT,
            Status.READY,
        ) and not validations.is_day2(cluster):
            pairs = [(host, self.inventories[ident]) for ident, host in members.items() if ident in self.inventories]
            mac, view = self.config.get("BOOTSTRAP_HOST_MAC"), self.view(cluster)
            needed = functools.partial(validations.total_requirement, view)
            roles = inv.assign_roles(pairs, needed, validations.control_planes(cluster), mac)
            changed = False
            for ident, role in roles.items():
                host = members[ident]
                if host.get("suggested_role") != role:
                    host["suggested_role"] = role
                    changed = True
                    self.event("host_role_updated", host=host, suggested_role=role)
                    self.take_inventory(host, self.inventories[ident])
            if changed:
                self.touch_hosts(cluster["id"])
            self._derive_networks(cluster)

    def _derive_networks(self, cluster: Cluster) -> None:
        if validations.machine_cidrs(cluster):
            return
        view = self.view(cluster)
        cidr = ""
        if validations.is_sno(cluster):
            networks = {cidr for found in view.inventories.values() for cidr in host_networks(found)}
            cidr = networks.pop() if len(networks) == 1 else ""
        elif validations.vips_needed(cluster):
            cidr = validations.calculated_cidr(view)
        if cidr:
            cluster["machine_networks"] = [{"cidr": cidr, "cluster_id": cluster["id"]}]
            self.networks_changed(cluster)

    def _ignored(self, cluster: Cluster, kind: str, results: Results) -> frozenset[str]:
        """Return the ignorable validations of a kind (host, cluster) that the user ignores."""
        found: set[str] = set()
        with contextlib.suppress(ValueError, TypeError):
            found = set(load_json(cluster.get(_IGNORED[kind]) or "[]", name="ignored validations"))
        return frozenset(results if "all" in found else found) - validations.NEVER_IGNORED[kind]

    def _report_changes(
        self,
        before: Results | None,
        after: Results,
        failed: str,
        fixed: str,
        *,
        host: Host | None = None,
        cluster_id: str | None = None,
    ) -> None:
        for ident, (__, status, __) in after.items():
            old = (before or {}).get(ident, ("", "", ""))[1]
            if status == "failure" and old not in ("", "failure", "hidden"):
                message = "that used to succeed is now failing" if old == "success" else "failed"
                if old == "success":
                    kind = "cluster" if host is None else "host"
                    self.metrics.count(f"{kind}_validation_failed_after_success_before_installation", ident)
                self.event(failed, validation_id=ident, failure_message=message, host=host, cluster_id=cluster_id)
            elif status == "success" and old == "failure":
                self.event(fixed, validation_id=ident, host=host, cluster_id=cluster_id)

    def _logs_timeout(self, document: Host | Cluster, status: str, prefix: str) -> bool:
        if status not in (Status.ERROR, Status.CANCELLED):
            return False
        info, now = document.get("logs_info", ""), self.clock()
        cluster_id = str(document.get("cluster_id") or document["id"])
        if info in _UNFINISHED_LOGS:
            return now - float(document.get("_logs_at", now)) > self.seconds(f"{prefix}_COLLECTION_TIMEOUT", cluster_id)
        return not info and now - float(document.get("_status_at", now)) > self.seconds(
            f"{prefix}_PENDING_TIMEOUT", cluster_id
        )
