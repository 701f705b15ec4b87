"""The state machine of hosts: validations in, conditions of its rules, effects out."""

from __future__ import annotations

from collections.abc import Callable

from ....plugins.module_utils.documents import load_json
from ....plugins.module_utils.vocabulary import ClusterStatus, Stage, Status
from .. import inventory as inv
from .. import state, validations
from ..connectivity import Reach
from ..document import tracked_document
from ..objects import Cluster, Host
from ..state import HostCondition, HostEffect, HostTrigger
from ..tables import AFTER_REBOOT, PROGRESSING, WAITING_FOR_OTHERS, stage_setting
from ..validations import Results
from .views import Views


class HostMachine(Views):
    """Moves hosts.

    One of the layers of `Engine`. It decides by the rules in `state.hosts`. Conditions are evaluated lazily: a rule
    that matches early leaves the costly ones of later rules out.
    """

    def validate_host(self, host: Host, view: validations.View) -> Results:
        """Validate a host, store the result and add events for changes.

        The result is also in `results` by the host's id, and as `validations_info` in the host. Events are
        `host_validation_failed` and `host_validation_fixed`; the first evaluation of a host adds none.
        """
        results = validations.evaluate(validations.HOST, validations.HostView(view, host, self.connected(host)))
        self._report_changes(
            self.results.get(host["id"]), results, "host_validation_failed", "host_validation_fixed", host=host
        )
        self.results[host["id"]] = results
        host["validations_info"] = validations.validations_info(results)
        return results

    def refresh_host(self, host: Host, view: validations.View) -> None:
        """Validate a host after a change, and run its state machine.

        `view` is of the host's cluster and may serve for several hosts of a pass. A host that is not marked as changed
        keeps its previous validations; a change of its connection marks it. The caller commits.
        """
        results = self._current_results(host, view)
        stage, now = host.get("progress", {}).get("current_stage", ""), self.clock()
        limit = self._stage_limit(host, view.cluster, stage)
        conditions = self._host_conditions(host, view, results, stage, limit, now)
        unknown = [
            text
            for name, text in (
                (HostCondition.DISK_SPEED_OK, state.DISK_SPEED_UNKNOWN),
                (HostCondition.IMAGES_OK, state.IMAGES_UNKNOWN),
            )
            if host["status"] == Status.PREPARING and not conditions[name]()
        ]
        rule = self.trigger(
            host,
            HostTrigger.REFRESH,
            lambda name: conditions[name](),
            FAILING_VALIDATIONS=validations.failing_messages(results),
            FAILING_CONDITIONS="\n".join(unknown),
            STAGE=stage,
            MAX_TIME=_minutes_text(limit),
            INSTALLATION_DISK=self.disk_text(host, False),
        )
        for effect in rule.effects if rule else ():
            self._host_effect(effect, host, results, stage, limit, now)

    def _current_results(self, host: Host, view: validations.View) -> Results:
        """Return the validations of a host; they are evaluated only if something of it has changed."""
        ident, connected = host["id"], self.connected(host)
        if self._was_connected.get(ident) != connected:
            self._was_connected[ident] = connected
            self.dirty.add(ident)
        fresh = ident in self.dirty
        self.dirty.discard(ident)
        before = self.results.get(ident)
        if fresh or before is None or "connected" not in before or "has-inventory" not in before:
            self.validate_host(host, view)
        return self.results[ident]

    def _host_conditions(
        self, host: Host, view: validations.View, results: Results, stage: str, limit: float, now: float
    ) -> dict[HostCondition, Callable[[], bool]]:
        """Return what the rules ask of a host; `limit` is that of its stage, in seconds."""
        cluster, ident = view.cluster, host["id"]
        connected = self._was_connected[ident]
        ignored = self._ignored(cluster, "host", results)
        images = load_json(host.get("images_status") or "{}", name="images_status")
        since = now - float(host.get("_status_at", now))
        stage_since = now - (host.get("_stage_info_at", now) if stage in PROGRESSING else host.get("_stage_at", now))

        def after(name: str) -> bool:
            return since > self.seconds(name, cluster["id"])

        def done_without() -> bool:
            others = [
                (validations.role_of(other), other["status"]) for other in view.hosts.values() if other["id"] != ident
            ]
            return state.enough_installed(others, validations.control_planes(cluster))

        conditions: dict[HostCondition, Callable[[], bool]] = {
            HostCondition.CONNECTED: lambda: connected and host.get("media_status") != "disconnected",
            HostCondition.ONLINE: lambda: connected or stage in AFTER_REBOOT,
            HostCondition.DAY2: lambda: validations.is_day2(cluster),
            HostCondition.LOST_REPORTED: lambda: bool(host.get("connection_timed_out")),
            HostCondition.WAITS_FOR_OTHERS: lambda: (
                cluster["status"] == Status.PENDING_USER_ACTION and stage in WAITING_FOR_OTHERS
            ),
            HostCondition.STAGE_REPORTED: lambda: bool(host.get("progress", {}).get("stage_timed_out")),
            HostCondition.CLUSTER_DONE: lambda: cluster["status"] in (Status.INSTALLED, ClusterStatus.ADDING_HOSTS),
            HostCondition.ROLE: lambda: validations.role_of(host) in ("master", "arbiter", "worker"),
            HostCondition.INVENTORY: lambda: (
                ident in view.inventories and results["inventory-not-fully-truncated"][1] == "success"
            ),
            HostCondition.MIN_HARDWARE: lambda: validations.all_passed(results, validations.MIN_HARDWARE, ignored),
            HostCondition.INPUT: lambda: validations.all_passed(results, validations.INPUT, ignored),
            HostCondition.SUFFICIENT: lambda: validations.all_passed(results, validations.SUFFICIENT, ignored),
            HostCondition.CLUSTER_PREPARING: lambda: cluster["status"] == Status.PREPARING,
            HostCondition.CLUSTER_INSTALLING: lambda: (
                cluster["status"] in (Status.INSTALLING, Status.FINALIZING, Status.PENDING_USER_ACTION)
            ),
            HostCondition.CLUSTER_ERROR: lambda: cluster["status"] == Status.ERROR,
            HostCondition.DISK_SPEED_OK: lambda: (
                self._disk_done(host) and results["sufficient-installation-disk-speed"][1] != "failure"
            ),
            HostCondition.DISK_SPEED_FAILED: lambda: results["sufficient-installation-disk-speed"][1] == "failure",
            HostCondition.IMAGES_OK: lambda: (
                all(images.get(image, {}).get("result") == "success" for image in view.images)
                and results["container-images-available"][1] != "failure"
            ),
            HostCondition.IMAGES_FAILED: lambda: results["container-images-available"][1] == "failure",
            HostCondition.PREPARE_TIMEOUT: lambda: after("PREPARE_FOR_INSTALLATION_HOST_TIMEOUT"),
            HostCondition.INSTALL_TIMEOUT: lambda: after("HOST_INSTALLING_TIMEOUT"),
            HostCondition.PENDING_TIMEOUT: lambda: after("HOST_INSTALLING_PENDING_USER_ACTION_TIMEOUT"),
            HostCondition.CLUSTER_WITHOUT_HOST: done_without,
            HostCondition.REBOOTING: lambda: stage == Stage.REBOOTING,
            HostCondition.PROGRESSING_STAGE: lambda: stage in PROGRESSING,
            HostCondition.STAGE_TIMEOUT: lambda: bool(stage) and stage_since > limit,
            HostCondition.SOFT_TIMEOUTS: lambda: self.config.flag("ENABLE_SOFT_TIMEOUTS", self.settings(cluster["id"])),
            HostCondition.LOGS_TIMEOUT: lambda: self._logs_timeout(host, host["status"], "HOST_LOG"),
        }
        return conditions

    def _host_effect(
        self, effect: HostEffect, host: Host, results: Results, stage: str, limit: float, now: float
    ) -> None:
        if effect == HostEffect.STAGE_TIMED_OUT:
            host["progress"] = {**host["progress"], "stage_timed_out": True}
            self.event("host_stage_timed_out", host=host, stage=stage, minutes=round(limit / 60))
        elif effect == HostEffect.RESET_FAILED_IMAGES and results["container-images-available"][1] == "failure":
            tracked_document(host).drop("images_status")
        elif effect in (HostEffect.LOST, HostEffect.FOUND):
            host["connection_timed_out"] = effect == HostEffect.LOST
        elif effect == HostEffect.RESTART_STAGE_CLOCK:
            tracked_document(host).touch("_stage_at", now)
            tracked_document(host).touch("_stage_info_at", now)
        elif effect == HostEffect.LOGS_TIMED_OUT:
            host["logs_info"] = "timeout"

    def _disk_done(self, host: Host) -> bool:
        disk = host.get("installation_disk_id", "")
        tested = (
            load_json(host.get("disks_info") or "{}", name="disks_info")
            .get(disk, {})
            .get("disk_speed", {})
            .get("tested")
        )
        persistent = self.inventories.get(host["id"], {}).get("boot", {}).get("device_type") == "persistent"
        return bool(tested or persistent or "--save-part" in str(host.get("installer_args", "")))

    def _stage_limit(self, host: Host, cluster: Cluster, stage: str) -> float:
        name = stage_setting(stage)
        if stage == Stage.REBOOTING and validations.is_sno(cluster):
            name = "HOST_STAGE_REBOOTING_SNO_TIMEOUT"
        from ..config import DEFAULTS

        return self.seconds(name if name in DEFAULTS else "HOST_STAGE_OTHER_TIMEOUT", cluster.get("id"))

    def disk_text(self, host: Host, long: bool = True) -> str:
        """Return the installation disk of a host as messages name it: `(sda, <id>)`.

        `long` puts model and serial number before it. Empty without an inventory or a selected disk.
        """
        ident = host.get("installation_disk_id", "")
        disk = inv.find_disk(self.inventories.get(host["id"], {}), ident)
        if disk is None:
            return ""
        short = f"({disk.get('name', '')}, {ident})"
        return f"{disk.get('model', '')} {disk.get('serial', '')} {short}".strip() if long else short

    def refresh_unbound(self, host: Host) -> None:
        """Validate a host without a cluster, and run its state machine.

        Only validations that need no cluster are evaluated (`validations.UNBOUND`), with the default requirements.
        Validations cannot be ignored here: that is a setting of clusters.
        """
        ident, connected = host["id"], self.connected(host)
        self._was_connected[ident] = connected
        self.dirty.discard(ident)
        view = validations.View(
            cluster={},
            hosts={ident: host},
            inventories=self.inventories,
            table=self.table(None),
            reach=Reach(),
            now=self.clock(),
        )
        results = validations.evaluate(validations.UNBOUND, validations.HostView(view, host, connected))
        self._report_changes(
            self.results.get(ident), results, "host_validation_failed", "host_validation_fixed", host=host
        )
        self.results[ident] = results
        host["validations_info"] = validations.validations_info(results)
        conditions = {
            HostCondition.ONLINE: connected,
            HostCondition.CONNECTED: connected and host.get("media_status") != "disconnected",
            HostCondition.INVENTORY: ident in self.inventories
            and results["inventory-not-fully-truncated"][1] == "success",
            HostCondition.SUFFICIENT: validations.all_passed(results, validations.UNBOUND_REQUIRED),
        }
        self.trigger(
            host,
            HostTrigger.REFRESH,
            lambda name: conditions.get(name, False),
            FAILING_VALIDATIONS=validations.failing_messages(results),
        )


def _minutes_text(seconds: float) -> str:
    """A limit as messages show it: `40m0s`, `1h30m0s`."""
    if seconds == float("inf"):
        return ""
    hours, rest = divmod(int(seconds), 3600)
    return (f"{hours}h" if hours else "") + f"{rest // 60}m{rest % 60}s"
