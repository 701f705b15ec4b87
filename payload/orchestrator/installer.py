"""The installer: runs in a container on every host and installs it, stage by stage (`/usr/bin/installer`).

Stages, their order and texts are those of upstream's assisted-installer, for bootstrap, master, arbiter, worker and a single node.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import re
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...plugins.module_utils.documents import load_json, load_yaml_all, read_file
from ...plugins.module_utils.vocabulary import Stage
from ..cluster import assisted
from ..cluster import nodes as node_list
from ..cluster.conditions import is_true
from ..cluster.configs import merge
from ..cluster.kube import KubeClient, KubeError
from ..cluster.machine_config_daemon import apply
from ..cluster.settings import seconds
from ..node_agent import logs_sender
from ..node_agent.journal import JOURNAL, JournalHandler
from ..node_agent.protocol import Identity
from ..node_agent.rest import Client
from . import logs, taints
from .host import NSENTER, Host, HostError
from .hosts import FETCHED, find_host, host_addresses, machine_config_requests, stage_of
from .service import Service, ServiceError

INSTALL_DIR = "/opt/install-dir"
BOOTSTRAP_DIR = "/opt/openshift"
LOG_FILE = "/var/log/assisted-installer.log"
WRITE_TRIES, WRITE_PAUSE_SECONDS = 3, 1
# Upstream's intervals in seconds: for what the bootstrap host and workers wait, and for what it checks meanwhile.
WAIT_SECONDS, WATCH_SECONDS = 5, 30
REBOOT_TEXT = "'Installation completed, server is going to reboot.'"
# Stages of a worker that need the service, which ends with the bootstrap host (upstream's list, without "Writing image to disk").
WORKER_NEEDS_SERVICE = (Stage.STARTING, Stage.INSTALLING, Stage.CONTROL_PLANE)
READY_EVENT = "AssistedControllerIsReady"
_HOSTNAME = re.compile(r"[a-z0-9][a-z0-9\-.]{0,61}[a-z0-9]")
_MCO = "machineconfiguration.openshift.io"
MACHINE_CONFIGS = f"/apis/{_MCO}/v1/machineconfigs"
INVOKER = "/api/v1/namespaces/openshift-config/configmaps/openshift-install-manifests"
log = logging.getLogger("installer")


class InstallError(Exception):
    """The installation of this host failed."""


class Installer:
    """One run on one host."""

    def __init__(self, options: argparse.Namespace, service: Service, host: Host) -> None:
        self.options, self.service, self.host = options, service, host
        self.bootstrap = options.role == "bootstrap"
        self.role = "master" if self.bootstrap else options.role
        # A worker of such a cluster installs as any other does.
        self.single = self.bootstrap and options.control_plane_count == 1
        self.device: str = options.boot_device
        self.stop_watching = threading.Event()
        self._requests = threading.Lock()
        self._requested: set[str] = set()
        self._host_path = f"/v2/infra-envs/{options.infra_env_id}/hosts/"
        self._cluster_path = f"/v2/clusters/{options.cluster_id}"

    # Reports

    def report(self, stage: str, info: str = "", host_id: str = "") -> bool:
        """Report a stage; return whether the service accepted it. The installation continues in any case."""
        log.info("Updating node installation stage: %s - %s", stage, info)
        try:
            self.service.send(
                "PUT",
                f"{self._host_path}{host_id or self.options.host_id}/progress",
                {"current_stage": stage, "progress_info": info[:2048]},
            )
        except ServiceError as error:
            log.error("Failed to update node installation stage, %s", error)
            return False
        return True

    # The installation

    def run(self) -> None:
        """Install this host up to its reboot."""
        self.format_disks()
        log.info("Installing node with role: %s", self.options.role)
        self.report(Stage.STARTING, self.options.role)
        self.find_device()
        self.clean_disk()
        log.info("Creating directory: %s", INSTALL_DIR)
        self.host.path(INSTALL_DIR).mkdir(parents=True, exist_ok=True)
        if self.bootstrap and not self.single:
            self.start_bootstrap()
            threading.Thread(target=self._watch_machine_config_server, daemon=True).start()
        # A single node becomes a master only when it has bootstrapped itself.
        self.report(Stage.INSTALLING, self.options.role if self.single else self.role)
        if self.single:
            log.info("Installing single node openshift")
            self.start_bootstrap()
            self.wait_for_bootkube()
        ignition_file = self.host_ignition()
        self.write_image(ignition_file)
        if self.role == "worker":
            self.wait_for_masters()
        if self.role == "master":
            self.copy_registry()
        if self.bootstrap and not self.single:
            self.report(Stage.CONTROL_PLANE, "Waiting for bootstrap node preparation")
            self.finish_control_plane()
        self.upload_logs()
        self.reboot()

    # Bootstrap

    def clean_bootstrap(self) -> None:
        """Remove what an earlier, failed installation left in the live system."""
        left = self.host.path(BOOTSTRAP_DIR)
        if left.exists():
            self.host.run(["systemctl", "stop", "bootkube.service"], check=False)
            self.host.run(["rm", "-rf", BOOTSTRAP_DIR])

    def start_bootstrap(self) -> None:
        """Turn the live system into the cluster's first member; it starts while the disk is written."""
        log.info("Running bootstrap")
        self.clean_bootstrap()
        log.info("Getting bootstrap.ign file")
        data = self.service.download(f"{self._cluster_path}/downloads/files?file_name=bootstrap.ign")
        self.save("bootstrap.ign", data)
        units = apply(load_json(data, name="ignition"), self.host.root, self.host.run)
        log.info("Done extracting ignition to filesystem")
        self.write_controller_manifests()
        self.check_hostname()
        self.host.run(["systemctl", "start", "--no-block", *units])
        log.info("Done setting up bootstrap")

    def write_controller_manifests(self) -> None:
        """Write what bootkube gives to the cluster's controller: only this program knows the service and its token."""
        made = assisted.manifests(
            cluster_id=self.options.cluster_id,
            url=self.options.url,
            token=self.service.token,
            control_plane_count=self.options.control_plane_count,
            must_gather_image=self.options.must_gather_image,
            insecure=bool(self.options.insecure),
            check_version=bool(self.options.check_cluster_version),
        )
        folder = self.host.path(f"{BOOTSTRAP_DIR}/manifests")
        folder.mkdir(parents=True, exist_ok=True)
        for name, manifest in made.items():
            (folder / name).touch(0o600)
            (folder / name).write_text(json.dumps(manifest))

    def check_hostname(self) -> None:
        """Generate a hostname if the live system has none that is valid for a node: localhost cannot bootstrap."""
        log.info("Start checking hostname")
        name = socket.gethostname()
        if _HOSTNAME.fullmatch(name) and name != "localhost":
            log.info("hostname [%s] is not localhost or invalid, no need to do anything", name)
            return
        made = f"random-hostname-{uuid.uuid4()}"
        log.info("Hostname [%s] is invalid, generated random hostname [%s]", name, made)
        self.host.run(["hostnamectl", "set-hostname", made])

    def wait_for_bootkube(self) -> None:
        """Wait until bootkube has written its marker; raise if its unit failed."""
        log.info("Waiting for bootkube to complete")
        self.report(Stage.BOOTKUBE)
        done = self.host.path(f"{BOOTSTRAP_DIR}/.bootkube.done")
        pause = seconds("INSTALLER_POLL_SECONDS", WAIT_SECONDS)
        while not done.exists():
            if self.host.run(["systemctl", "is-failed", "bootkube.service"], check=False).strip() == "failed":
                raise InstallError(
                    "bootkube.service failed: "
                    + self.host.run(["journalctl", "-u", "bootkube.service", "-n", "5", "-o", "cat"], check=False)
                )
            time.sleep(pause)
        log.info("bootkube service completed")
        log.info("%s", self.host.run(["systemctl", "status", "bootkube.service"], check=False).strip())

    def kube(self) -> list[KubeClient]:
        """Return clients of this host's member and of the API's address, which is valid after the handover."""
        return [
            KubeClient.from_kubeconfig(self.host.path(f"{BOOTSTRAP_DIR}/auth/{name}"))
            for name in ("kubeconfig-loopback", "kubeconfig")
        ]

    def kube_get(self, path: str) -> dict[str, Any]:
        """Return an object or a list, from the first member that answers; empty if none does, or none has it."""
        for client in self.kube():
            try:
                found: dict[str, Any] = client.get(path)
            except KubeError as error:
                log.debug("%s: %s", path, error)
            else:
                return found
            finally:
                client.close()
        return {}

    def kube_items(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a collection; empty without a response."""
        items: list[dict[str, Any]] = self.kube_get(path).get("items", [])
        return items

    def finish_control_plane(self) -> None:
        """Wait for masters, bootkube, the controller and, in an agent-based installation, for workers that still need the service."""
        self.report(Stage.CONTROL_PLANE, "Waiting for masters to join bootstrap control plane")
        for role, least in (("master", 2), ("arbiter", 1)):
            self.wait_for_nodes(role, least)
        self.wait_for_bootkube()
        self.report(Stage.BOOTKUBE, "waiting for ETCD bootstrap to be complete")
        self.report(Stage.CONTROLLER, "waiting for controller pod ready event")
        self.until("Waiting for controller to be ready", self.controller_ready)
        log.info("Assisted controller is ready")
        self.tell_logs(self._cluster_path, "requested")
        self.stop_watching.set()
        log.info("Setting bootstrap node new role to master")
        if self.invoker() == taints.AGENT_BASED:
            self.until(
                "Waiting for workers to reach reboot stage", lambda: not self.workers_that_need_service(), WATCH_SECONDS
            )
        self.until(
            "Waiting for MachineConfig annotations to be consistent on all master nodes", self.masters_consistent
        )

    def invoker(self) -> str:
        """Return the invoker of this cluster's installation."""
        return str(self.kube_get(INVOKER).get("data", {}).get("invoker", ""))

    def controller_ready(self) -> bool:
        """Return whether the controller has reported that it reaches the service and the cluster."""
        events = self.kube_items("/api/v1/namespaces/assisted-installer/events")
        return any(event["metadata"]["name"] == READY_EVENT for event in events)

    def wait_for_nodes(self, role: str, least: int) -> None:
        """Wait until enough nodes of a role are ready, not counting this host; report each as Joined."""
        log.info("Waiting for %s nodes", role)
        hosts = self.hosts()
        count = sum(1 for host in hosts if host["role"] == role)
        wanted = min(count, least) if role == "arbiter" else min(count - 1, least)
        if not count:
            log.info(
                "Waiting for %s nodes not needed as %d of this node was specified in the install config", role, count
            )
            return
        cluster = self.service.get(f"{self._cluster_path}?exclude-hosts=true")
        joined: set[str] = set()

        def enough() -> bool:
            self.report_requests(hosts)
            nodes = [node for node in self.kube_items("/api/v1/nodes") if node_list.has_role(node, role)]
            if nodes and taints.must_go(
                taints.platform_of(cluster), self.options.openshift_version, self.invoker(), cluster
            ):
                self.untaint([node for node in nodes if not is_true(node, "Ready")])
            for node in node_list.ready(nodes):
                name = node["metadata"]["name"]
                if name in joined:
                    continue
                log.info(
                    "Found a new ready %s node %s with id %s",
                    role,
                    name,
                    node["status"].get("nodeInfo", {}).get("systemUUID", ""),
                )
                host = find_host(hosts, node)
                if host is None:
                    log.warning("node %s is not in inventory hosts", name)
                elif (
                    host["id"] != self.options.host_id
                    and host.get("status") != "installed"
                    and not self.report(Stage.JOINED, host_id=host["id"])
                ):
                    continue
                joined.add(name)
            log.info("Found %d ready %s nodes", len(joined), role)
            return len(joined) >= wanted

        self.until(f"Waiting for {wanted} {role} nodes", enough)
        log.info("Waiting for %s nodes - Done", role)

    def untaint(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Remove taints that no cloud provider will remove."""
        for node in nodes:
            for client in self.kube():
                try:
                    taints.remove(client, node)
                    break
                except KubeError as error:
                    log.warning("Failed to untaint node %s: %s", node["metadata"]["name"], error)
                finally:
                    client.close()

    def workers_that_need_service(self) -> list[str]:
        """Return the names of workers that still need the service on this host."""
        workers = self.service.get(f"{self._cluster_path}/hosts?role=worker")
        stages = {str(host.get("requested_hostname")): stage_of(host) for host in workers}
        waiting = [name for name, stage in stages.items() if stage in WORKER_NEEDS_SERVICE]
        for name in waiting:
            log.info("Still waiting for worker %s to start the joining process (current stage: %s)", name, stages[name])
        return waiting

    def masters_consistent(self) -> bool:
        """Return whether all masters that have joined are to run one config, and it and those that they run exist."""
        nodes = [node for node in self.kube_items("/api/v1/nodes") if node_list.has_role(node, "master")]
        notes = [node["metadata"].get("annotations") or {} for node in nodes]
        desired = {note.get(f"{_MCO}/desiredConfig", "") for note in notes}
        configs = desired | {note.get(f"{_MCO}/currentConfig", "") for note in notes}
        return (
            len(desired) == 1
            and "" not in configs
            and all(self.kube_get(f"{MACHINE_CONFIGS}/{name}") for name in configs)
        )

    def _watch_machine_config_server(self) -> None:
        while not self.stop_watching.wait(seconds("INSTALLER_POLL_SECONDS", WATCH_SECONDS)):
            try:
                self.report_requests(self.hosts())
            except (ServiceError, OSError) as error:
                log.warning("Failed to get hosts info from inventory, err %s", error)

    def report_requests(self, hosts: list[dict[str, Any]]) -> None:
        """Report hosts that fetched their config: masters are Configuring, workers have waited for their Ignition."""
        path = self.host.path(f"{BOOTSTRAP_DIR}/machine-config-server.log")
        with self._requests:
            for __, address in machine_config_requests(path.read_text() if path.exists() else ""):
                host = next((h for h in hosts if address in host_addresses(h)), None)
                if (
                    host
                    and stage_of(host) not in FETCHED
                    and host["id"] not in {*self._requested, self.options.host_id}
                ):
                    stage = Stage.IGNITION if host["role"] == "worker" else Stage.CONFIGURING
                    log.info(
                        "Host %s %r found in mcs logs, moving it to %s state",
                        host.get("requested_hostname"),
                        host["id"],
                        stage,
                    )
                    self._requested.add(host["id"])
                    self.report(stage, host_id=host["id"])

    # Workers

    def wait_for_masters(self) -> None:
        """Wait until two masters or arbiters are Done: they serve a worker's config. An installed cluster has them."""
        log.info("Waiting for 2 ready masters")
        self.report(Stage.CONTROL_PLANE)
        path = self._cluster_path
        kind = ""

        def done() -> bool:
            nonlocal kind
            kind = kind or self.service.get(f"{path}?exclude-hosts=true").get("kind", "Cluster")
            if kind == "AddHostsCluster":
                return True
            hosts = self.service.get(f"{path}/hosts?role=master") + self.service.get(f"{path}/hosts?role=arbiter")
            return sum(1 for host in hosts if stage_of(host) == Stage.DONE) >= 2

        self.until("Waiting for 2 masters or arbiters that are done", done)

    # Disk

    def host_ignition(self) -> str:
        """Fetch the host's own config; that of a single node holds the cluster that bootkube made. Returns its path on the host."""
        path = f"/v2/infra-env/{self.options.infra_env_id}/hosts/{self.options.host_id}/downloads/ignition"
        name = f"{self.role}-{self.options.host_id}.ign"
        log.info("Getting %s file", name)
        data = self.service.download(path)
        if self.single:
            pointer = load_json(data, name="ignition")
            rendered = load_json(
                read_file(self.host.path(f"{BOOTSTRAP_DIR}/master.ign")),
                name=str(self.host.path(f"{BOOTSTRAP_DIR}/master.ign")),
            )
            merged = merge(pointer, rendered)
            for section in ("files", "links", "directories"):
                # Keep the host's own config (name, network); units and the cluster's files are bootkube's.
                own = [
                    e
                    for e in pointer.get("storage", {}).get(section, ())
                    if e["path"] not in {f["path"] for f in rendered["storage"].get(section, ())}
                ]
                if own:
                    kept = {e["path"] for e in own}
                    merged["storage"][section] = [
                        e for e in merged["storage"].get(section, ()) if e["path"] not in kept
                    ] + own
            data = json.dumps(merged).encode()
        return self.save(name, data)

    def format_disks(self) -> None:
        """Quick-format the selected disks; a failure does not stop the installation."""
        for disk in self.options.format_disk or ():
            log.info("Formatting disk %s", disk)
            try:
                self.host.run(["dd", "if=/dev/zero", f"of={disk}", "bs=512", "count=1"])
            except HostError as error:
                log.warning("Failed to format disk %s, err %s", disk, error)

    def find_device(self) -> None:
        """Resolve the links by which the service names disks: coreos-installer's messages have the target."""
        given = self.device
        try:
            self.device = self.host.run(["realpath", "-e", given]).strip() or given
        except HostError as error:
            log.warning("Failed to filepath.EvalSymlinks(%s): %s. Continuing with %s anyway.", given, error, given)
        else:
            log.info("Resolving installation device %s symlink to %s ", given, self.device)

    def clean_disk(self) -> None:
        """Remove signatures from the installation disk; report one that cannot be cleaned, and write to it anyway."""
        if self.options.skip_installation_disk_cleanup:
            log.info("skipping installation disk cleanup")
            return
        log.info("Start cleaning up device %s", self.device)
        try:
            self.host.run(["wipefs", "--all", "--force", self.device])
        except HostError as error:
            text = f"Could not clean install device {self.device}. The installation will continue. "
            self.report(Stage.STARTING, text + "If the installation fails, clean the disk and try again")
            log.error("failed to prepare install device %s, err %s", self.device, error)

    def write_image(self, ignition_file: str) -> None:
        """Write the disk, reporting every five percent; three attempts."""
        arguments = load_json(self.options.installer_args or "[]", name="installer_args")
        command = [
            "coreos-installer",
            "install",
            "--insecure",
            "-i",
            ignition_file,
            *arguments,
            self.device,
        ]
        self.report(Stage.WRITING)
        told = 0

        def progress(percent: int) -> None:
            # A retry only reports progress beyond the previous attempt.
            nonlocal told
            if (percent >= told + 5 or percent == 100 > told) and self.report(Stage.WRITING, f"{percent}%"):
                told = percent

        for attempt in range(1, WRITE_TRIES + 1):
            try:
                self.host.write_disk(command, progress)
            except HostError as error:
                if attempt == WRITE_TRIES:
                    log.error("Failed to write image to disk", extra={"error": error})
                    raise InstallError(f"failed after {WRITE_TRIES} attempts, last error: {error}") from None
                time.sleep(WRITE_PAUSE_SECONDS)
                log.warning("Retrying after error: %s", error)
            else:
                log.info("Done writing image to disk")
                return

    def copy_registry(self) -> None:
        """Copy an appliance's registry to the disk, if the medium has one."""
        if self.host.path("/run/media/iso/registry").exists():
            self.report(Stage.COPYING)
            self.host.run(
                [
                    "/bin/bash",
                    "-c",
                    (
                        f"mount $(lsblk -nlpo NAME,LABEL {self.device} | awk '$2==\"root\"{{print $1}}') /mnt && "
                        "mkdir -p /mnt/ostree/deploy/registry && cp -a /run/media/iso/registry/. /mnt/ostree/deploy/registry/; umount /mnt"
                    ),
                ]
            )

    # The end

    def upload_logs(self) -> None:
        """Send the logs of this host, as its agent does after a failure; missing logs do not fail the installation."""
        options = self.options
        log.info(
            "Uploading logs and reporting status before rebooting the node %s for cluster %s",
            options.host_id,
            options.cluster_id,
        )
        self.tell_logs(f"{self._host_path}{options.host_id}", "requested")
        job = logs_sender.Job(
            options.cluster_id, options.host_id, options.infra_env_id, self.bootstrap, folder=self.host.path("/var/log")
        )
        try:
            client = Client(options.url, bool(options.insecure), options.cacert)
            failed, __ = logs_sender.send(
                job, client, Identity(options.infra_env_id, options.host_id, options.agent_image, self.service.token)
            )
        except OSError as error:
            failed = str(error)
        if failed:
            log.error("upload installation logs %s", failed)

    def tell_logs(self, path: str, state: str) -> None:
        """Report the state of log collection of a host or of the cluster."""
        try:
            self.service.send("PUT", f"{path}/logs-progress", {"logs_state": state})
        except ServiceError as error:
            log.error("failed to report log progress %s", state, extra={"error": error})

    def reboot(self) -> None:
        """Report Rebooting and reboot: a single node now, others after a delay in which the report can arrive everywhere."""
        self.report(Stage.REBOOTING)
        log.info("Rebooting node")
        now = ["shutdown", "-r", "now", REBOOT_TEXT]
        delay = [
            "systemd-run",
            f"--on-active={seconds('REBOOT_DELAY_SECONDS', 60):g}s",
            "--timer-property=AccuracySec=1s",
        ]
        self.host.run(now if self.single else [*delay, *now])

    # Helpers

    def hosts(self) -> list[dict[str, Any]]:
        """Return the hosts of the cluster that are not disabled, as the service knows them."""
        found: list[dict[str, Any]] = self.service.get(f"{self._cluster_path}?exclude-hosts=false")["hosts"]
        return [host for host in found if host.get("status") != "disabled"]

    def save(self, name: str, data: bytes) -> str:
        """Write a file to the install directory of the host and return its path there."""
        path = self.host.path(f"{INSTALL_DIR}/{name}")
        path.touch(0o600)
        path.write_bytes(data)
        return f"{INSTALL_DIR}/{name}"

    def until(self, what: str, test: Callable[[], bool], pause: float = WAIT_SECONDS) -> None:
        """Poll until a test succeeds. It is bounded by the service's stage timeouts: the service cancels this container."""
        log.info("%s", what)
        while True:
            try:
                if test():
                    return
            except ServiceError as error:
                log.warning("%s", what, extra={"error": error})
            time.sleep(seconds("INSTALLER_POLL_SECONDS", pause))


def parser() -> argparse.ArgumentParser:
    """Return the options, named as upstream's."""
    options = argparse.ArgumentParser(prog="installer", description="installs this host")
    options.add_argument("--role", required=True, choices=["bootstrap", "master", "arbiter", "worker"])
    for name in ("infra-env-id", "cluster-id", "host-id", "boot-device", "url"):
        options.add_argument(f"--{name}", required=True)
    options.add_argument("--control-plane-count", type=int, default=0)
    options.add_argument("--installer-args", default="")
    options.add_argument("--format-disk", action="append")
    options.add_argument("--skip-installation-disk-cleanup", action="store_true")
    for name in ("insecure", "check-cluster-version", "enable-skip-mco-reboot", "notify-num-reboots"):
        options.add_argument(f"--{name}", nargs="?", const=True, default=False)
    options.add_argument("--cacert", default="")
    for name in (
        "openshift-version",
        "controller-image",
        "agent-image",
        "mco-image",
        "must-gather-image",
        "coreos-image",
    ):
        options.add_argument(f"--{name}", default="")
    options.add_argument(
        "--host-command", default=os.environ.get("AGENTLAB_HOST_COMMAND", NSENTER), help=argparse.SUPPRESS
    )
    options.add_argument(
        "--host-root",
        type=Path,
        default=Path(os.environ.get("AGENTLAB_HOST_ROOT", "/proc/1/root")),
        help=argparse.SUPPRESS,
    )
    return options


def main(argv: list[str] | None = None) -> int:
    """Install this host; a failure is reported as the stage Failed."""
    options, unknown = parser().parse_known_args(argv)
    host = Host(options.host_command, options.host_root)
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stdout)]
    with contextlib.suppress(OSError):
        handlers.append(logging.FileHandler(host.path(LOG_FILE)))
    with contextlib.suppress(OSError):
        handlers.append(JournalHandler("installer", "installer", str(host.path(JOURNAL))))
    logs.setup(handlers)
    log.info("Assisted installer started. Configuration is:\n %s", vars(options))
    if unknown:
        log.info("options without effect here: %s", " ".join(unknown))
    os.environ.setdefault("AGENTLAB_SETTINGS_FILE", str(live_settings(host)))

    def stop(number: int, frame: object) -> None:
        host.stop()
        sys.exit(1)

    signal.signal(signal.SIGTERM, stop)
    service = Service(
        options.url, os.environ.get("PULL_SECRET_TOKEN", ""), ca_file=options.cacert, insecure=bool(options.insecure)
    )
    installer = Installer(options, service, host)
    try:
        installer.run()
    except (InstallError, HostError, ServiceError, OSError, ValueError) as error:
        installer.report(Stage.FAILED, str(error))
        return 1
    return 0


def live_settings(host: Host) -> Path:
    """Return the file with the lab's settings on a live host; it is created from the extra manifests, if they came with the ISO."""
    target = host.path("/etc/agentlab/settings.json")
    if target.exists():
        return target
    for manifest in sorted(host.path("/etc/assisted/extra-manifests").glob("*.y*ml")):
        for document in load_yaml_all(read_file(manifest), name=str(manifest)):
            if (
                isinstance(document, dict)
                and document.get("kind") == "ConfigMap"
                and document["metadata"].get("name") == "agentlab-settings"
            ):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(json.dumps(document.get("data") or {}))
    return target


if __name__ == "__main__":
    sys.exit(main())
