"""What hosts report: polls, inventories, connectivity and stages."""

from __future__ import annotations

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import Stage, Status
from .. import inventory as inv
from .. import state, validations
from ..bodies import ConnectivityReport
from ..connectivity import Reach
from ..document import tracked_document
from ..errors import ApiError
from ..hardware import Inventory
from ..objects import Cluster, Host
from ..state import HostCondition, HostTrigger
from ..tables import BEFORE_INSTALL
from .statuses import Statuses, time_text


class Reports(Statuses):
    """Takes in what hosts report.

    One of the layers of `Engine`. Methods change documents and mark what must be validated again; the caller commits.
    """

    def check_in(self, host: Host, timestamp: int | None, version: str | None) -> None:
        """Record a poll of the agent.

        `timestamp` is the host's clock in seconds since the epoch, `version` the agent's image; None if not sent.
        Fields are written with the next change, because an observation needs no durability. A clock difference that
        changes by more than 60 s has the host validated again.
        """
        now, document = self.clock(), tracked_document(host)
        document.touch("_checked_in", now)
        document.touch("checked_in_at", time_text(now))
        if timestamp is not None:
            ahead = now - timestamp
            if abs(ahead - float(host.get("_clock", 0))) > 60:
                self.dirty.add(host["id"])
                self.dirty.add(host.get("cluster_id", ""))
            document.touch("timestamp", timestamp)
            document.touch("_clock", round(ahead))
        if version and version != host.get("discovery_agent_version"):
            host["discovery_agent_version"] = version
            self.dirty.add(host["id"])
        if not self._was_connected.get(host["id"], True):
            self.dirty.add(host["id"])

    def connected(self, host: Host) -> bool:
        """Return whether the host has polled recently enough.

        The limit is `HOST_MAX_DISCONNECTION_TIME`; the bootstrap host gets two minutes more.
        """
        limit = self.seconds("HOST_MAX_DISCONNECTION_TIME", host.get("cluster_id")) + (
            120 if host.get("bootstrap") else 0
        )
        return self.clock() - float(host.get("_checked_in", 0)) < limit

    def inventory_rules(self, host: Host) -> tuple[float, bool]:
        """Return what `inventory.prepare` needs: size of the smallest disk, and whether virtual interfaces are kept.

        The size is in GB of 10^9 bytes, by the role that the host has or would get; the second is
        `ENABLE_VIRTUAL_INTERFACES`.
        """
        cluster = self.cluster_of(host)
        needed = validations.requirement(self.table(cluster), cluster or {}, validations.role_of(host))
        keep = self.config.flag("ENABLE_VIRTUAL_INTERFACES", self.settings(host.get("cluster_id")))
        return needed.get("disk_size_gb", 0), keep

    def take_inventory(self, host: Host, raw: Inventory) -> None:
        """Store a host's inventory and the fields derived from it (installation disk, hostname).

        For an inventory that the service already had, after a change of role; new ones are prepared in a thread and
        given to `keep_inventory`.
        """
        self.keep_inventory(host, *inv.kept_inventory(raw, *self.inventory_rules(host)))

    def keep_inventory(self, host: Host, prepared: Inventory, text: str) -> None:
        """Store a prepared inventory and its JSON, as `inventory.kept_inventory` gave them.

        Sets the installation disk and the host's addresses, too. The same text as before changes nothing, which is the
        usual case at a poll.
        """
        if text == host.get("inventory"):
            return
        old_name = self.hostname(host)
        self.inventories[host["id"]] = prepared
        host["inventory"] = text
        host["_addresses"] = validations.address_list(prepared)
        self.choose_disk(host)
        self.name_changed(host, old_name)
        cluster_id = host.get("cluster_id", "")
        self._peers.get(cluster_id, {}).pop(host["id"], None)
        self._groups.pop(cluster_id, None)
        self.dirty.add(host["id"])
        self.touch_cluster(cluster_id)

    def choose_disk(self, host: Host) -> None:
        """Keep the selected installation disk while it exists, else select the default.

        A disk that the user chose stays even if it is not eligible, so that the validation can say so; a default that
        is no longer eligible is replaced. Without an eligible disk both fields are removed.
        """
        inventory = self.inventories.get(host["id"], {})
        chosen = inv.find_disk(inventory, host.get("installation_disk_id", ""))
        disks = inv.eligible_disks(inventory)
        if chosen is None or (not host.get("_disk_by_user") and chosen not in disks):
            chosen = disks[0] if disks else None
            tracked_document(host).drop("_disk_by_user")
        tracked_document(host).set(
            installation_disk_id=chosen and chosen["id"],
            installation_disk_path=chosen and (chosen.get("path") or chosen["id"]),
        )

    def name_changed(self, host: Host, old: str) -> None:
        """Handle a new hostname of a host: those with the old or the new name are validated again.

        `old` is what `hostname` returned before; a host without a cluster collides with no other.
        """
        new = self.hostname(host)
        if new != old:
            for other in self.hosts_of(host.get("cluster_id", "")).values():
                if self.hostname(other) in (old, new):
                    self.dirty.add(other["id"])
        self.dirty.add(host["id"])

    def take_connectivity(self, host: Host, report: ConnectivityReport, text: str) -> None:
        """Store a host's connectivity report, and what follows from it.

        `text` is the same as JSON, encoded by the caller in a thread if it is large. Majority groups are computed again
        when the next view of the cluster is made.
        """
        cluster = self.cluster_of(host)
        host["connectivity"] = text
        if cluster is not None:
            self._process_report(cluster, host, report)
            self._groups.pop(cluster["id"], None)
            self.dirty.add(cluster["id"])
        self.dirty.add(host["id"])

    def networks_changed(self, cluster: Cluster) -> None:
        """Handle a change of the machine networks: compute reachability per network again.

        Every stored report of the cluster's hosts is read again, in the event loop. Call it after each change of
        `machine_networks`.
        """
        self.reach[cluster["id"]] = Reach()
        for host in self.hosts_of(cluster["id"]).values():
            if host.get("connectivity"):
                self._process_report(cluster, host, load_json(host["connectivity"], name="connectivity"))
        self._groups.pop(cluster["id"], None)
        self.touch_cluster(cluster["id"])
        self.touch_hosts(cluster["id"])

    def stages_of(self, host: Host) -> tuple[str, ...]:
        """Return the stages that a host goes through, in order, by its role, bootstrap, topology and day 2."""
        cluster: Cluster = self.cluster_of(host) or {}
        return state.stages(
            validations.role_of(host),
            bool(host.get("bootstrap")),
            validations.is_sno(cluster),
            validations.is_day2(cluster),
        )

    def progress(self, host: Host, stage: str, info: str) -> None:
        """Set a host's stage, by the rules of upstream's `UpdateInstallProgress`.

        `info` is free text. ApiError 409, with upstream's texts: the host is not being installed, the stage is not one
        of its role, or is earlier than the current one. The same stage again only updates the text; `Failed` ends in
        the status `error`. When the bootstrap host starts to reboot, `on_bootstrap_reboot` is called.
        """
        now, before = self.clock(), host.get("progress", {})
        previous = before.get("current_stage", "")
        if previous == stage and before.get("progress_info", "") == info:
            return
        if previous == stage:
            host["progress"] = {**before, "progress_info": info, "stage_updated_at": time_text(now)}
            tracked_document(host).set(stage_updated_at=time_text(now), _stage_info_at=now)
            self._progress_event(host, stage, info)
            return
        if host["status"] in (Status.INSTALLED, Status.RESETTING_PENDING):
            return
        if host["status"] not in (Status.INSTALLING, Status.IN_PROGRESS, Status.PENDING_USER_ACTION):
            raise ApiError(409, f"Can't set progress <{stage}> to host in status <{host['status']}>")
        if stage == Stage.FAILED:
            host["progress"] = {**before, "progress_info": info}
            self.set_host_status(host, Status.ERROR, f"Failed - {info}")
            self.metrics.host_done(host, self.inventories.get(host["id"], {}), _metric_role(host), stage)
            return
        order = self.stages_of(host)
        if stage not in order and previous:
            raise ApiError(
                409,
                f"Stages {stage} isn't available for host role {host.get('role')} bootstrap {str(bool(host.get('bootstrap'))).lower()}",
            )
        if previous in order and order.index(stage) < order.index(previous):
            raise ApiError(409, f'Can\'t assign lower stage "{stage}" after host has been in stage "{previous}"')
        host["progress"] = {
            "current_stage": stage,
            "progress_info": info,
            "stage_started_at": time_text(now),
            "stage_updated_at": time_text(now),
            # As upstream: a stage of another role is treated as the first one, and does not count.
            "installation_percentage": (order.index(stage) + 1) * 100 // len(order) if stage in order else 0,
        }
        tracked_document(host).set(
            stage_started_at=time_text(now), stage_updated_at=time_text(now), _stage_at=now, _stage_info_at=now
        )
        if previous:
            took = now - float(host.get("_metric_stage_at", now))
            self.metrics.observe("host_installation_phase_seconds", took, previous, Stage.DONE)
        tracked_document(host).touch("_metric_stage_at", now)
        if stage == Stage.DONE:
            self.metrics.host_done(host, self.inventories.get(host["id"], {}), _metric_role(host), stage)
        if not previous:
            host["installer_version"] = self.config.image("INSTALLER_IMAGE")
        cluster: Cluster = self.cluster_of(host) or {}
        day2 = validations.is_day2(cluster)
        facts = {
            HostCondition.DAY2: day2,
            HostCondition.DAY2_DONE: stage in (Stage.DONE, Stage.REBOOTING) and day2,
            HostCondition.STAGE_DONE: stage == Stage.DONE,
        }
        self.trigger(host, HostTrigger.PROGRESS, lambda name: facts[name], STAGE=stage)
        self._progress_event(host, stage, info)
        if host.get("cluster_id"):
            self.cluster_progress(self.clusters[host["cluster_id"]])
            self.dirty.add(host["cluster_id"])
        self.dirty.add(host["id"])
        if stage == Stage.REBOOTING and host.get("bootstrap") and self.on_bootstrap_reboot and host.get("cluster_id"):
            self.on_bootstrap_reboot(self.clusters[host["cluster_id"]])

    def _progress_event(self, host: Host, stage: str, info: str) -> None:
        text = f"reached installation stage {stage}" + (f": {info}" if info else "")
        self.event("host_install_progress_updated", host=host, event=text)

    def cluster_progress(self, cluster: Cluster) -> None:
        """Set a cluster's percentages from its hosts' stages and its operators.

        Hosts count by the stages they have reached out of all; operators by `available` or `failed`. Nothing changes
        before the installation starts. Weights: `state.total_percentage`.
        """
        before = cluster.get("progress", {})
        if cluster["status"] in BEFORE_INSTALL:
            return
        done = count = 0
        for host in self.hosts_of(cluster["id"]).values():
            order, stage = self.stages_of(host), host.get("progress", {}).get("current_stage")
            count += len(order)
            done += order.index(stage) + 1 if stage in order else 0
        started = cluster["status"] not in (
            Status.INSUFFICIENT,
            Status.READY,
            Status.PENDING_FOR_INPUT,
            Status.PREPARING,
        )
        operators = cluster.get("monitored_operators", [])
        ready = sum(operator.get("status") in ("available", "failed") for operator in operators)
        preparing = 100 if started else 0
        installing = done * 100 // count if started and count else 0
        finalizing = (
            ready * 100 // len(operators)
            if cluster["status"] in (Status.FINALIZING, Status.INSTALLED) and operators
            else 0
        )
        total = (
            100 if cluster["status"] == Status.INSTALLED else state.total_percentage(preparing, installing, finalizing)
        )
        cluster["progress"] = {
            **before,
            "preparing_for_installation_stage_percentage": preparing,
            "installing_stage_percentage": installing,
            "finalizing_stage_percentage": finalizing,
            "total_percentage": total,
        }


def _metric_role(host: Host) -> str:
    return "bootstrap" if host.get("bootstrap") else validations.role_of(host)
