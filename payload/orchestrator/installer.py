"""The installer: runs in a container on every host and installs it, stage by stage (`/usr/bin/installer`).

Stages, their order and texts are those of upstream's assisted-installer, for bootstrap, master, arbiter, worker and a single node.
"""

from __future__ import annotations

import argparse
import io
import ipaddress
import json
import logging
import os
import re
import signal
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from ..cluster import nodes as node_list
from ..cluster.configs import merge
from ..cluster.kube import KubeClient, KubeError
from ..cluster.machine_config_daemon import apply
from ..cluster.settings import seconds
from .host import NSENTER, Host, HostError
from .service import Service, ServiceError

INSTALL_DIR = "/opt/install-dir"
BOOTSTRAP_DIR = "/opt/openshift"
WRITE_TRIES = 3
# Stages of a worker that need the service, which ends with the bootstrap host (upstream's list, without "Writing image to disk").
WORKER_NEEDS_SERVICE = ("Starting installation", "Installing", "Waiting for control plane")
_MCS_LINE = re.compile(r'Pool (?P<pool>\S+) requested by address:"(?P<address>[^"]+):\d+" User-Agent:"Ignition')
_MCO = "machineconfiguration.openshift.io"
MACHINE_CONFIGS = f"/apis/{_MCO}/v1/machineconfigs"
INVOKER = "/api/v1/namespaces/openshift-config/configmaps/openshift-install-manifests"
log = logging.getLogger("installer")


class InstallError(Exception):
    """The installation of this host cannot go on."""


class Installer:
    """One run on one host."""

    def __init__(self, options: argparse.Namespace, service: Service, host: Host) -> None:
        self.options, self.service, self.host = options, service, host
        self.bootstrap = options.role == "bootstrap"
        self.role = "master" if self.bootstrap else options.role
        # A worker of such a cluster installs as any other does.
        self.single = self.bootstrap and (options.control_plane_count == 1 or options.high_availability_mode == "None")
        self.poll = seconds("INSTALLER_POLL_SECONDS", 30 if self.bootstrap else 5)
        self.stop_watching = threading.Event()
        self._requests = threading.Lock()
        self._requested: set[str] = set()
        self._host_path = f"/v2/infra-envs/{options.infra_env_id}/hosts/"

    # Reports

    def report(self, stage: str, info: str = "", host_id: str = "") -> None:
        """Tell the service a stage; the installation goes on if it does not want to hear it."""
        log.info("host %s: stage %s %s", host_id or "(this)", stage, info)
        try:
            self.service.send(
                "PUT",
                f"{self._host_path}{host_id or self.options.host_id}/progress",
                {"current_stage": stage, "progress_info": info[:2048]},
            )
        except ServiceError as error:
            log.warning("stage %s was not taken: %s", stage, error)

    # The installation

    def run(self) -> None:
        """Install this host up to its reboot."""
        self.format_disks()
        self.report("Starting installation", self.options.role)
        self.clean_disk()
        self.host.path(INSTALL_DIR).mkdir(parents=True, exist_ok=True)
        if self.bootstrap and not self.single:
            self.start_bootstrap()
            threading.Thread(target=self._watch_machine_config_server, daemon=True).start()
        self.report("Installing", self.role)
        if self.single:
            self.start_bootstrap()
            self.report("Waiting for bootkube")
            self.wait_for_bootkube()
        ignition_file = self.host_ignition()
        self.write_image(ignition_file)
        if self.role == "worker":
            self.wait_for_masters()
        else:
            self.copy_registry()
        if self.bootstrap and not self.single:
            self.report("Waiting for control plane", "Waiting for bootstrap node preparation")
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
        """Turn the live system into the cluster's first member; it comes up while the disk is written."""
        self.clean_bootstrap()
        data = self.service.download(f"/v2/clusters/{self.options.cluster_id}/downloads/files?file_name=bootstrap.ign")
        self.save("bootstrap.ign", data)
        units = apply(json.loads(data), self.host.root, self.host.run)
        self.host.run(["systemctl", "start", "--no-block", *units])

    def wait_for_bootkube(self) -> None:
        """Wait until bootkube has left its mark; raise if its unit failed."""
        done = self.host.path(f"{BOOTSTRAP_DIR}/.bootkube.done")
        while not done.exists():
            if self.host.run(["systemctl", "is-failed", "bootkube.service"], check=False).strip() == "failed":
                raise InstallError(
                    "bootkube.service failed: "
                    + self.host.run(["journalctl", "-u", "bootkube.service", "-n", "5", "-o", "cat"], check=False)
                )
            time.sleep(min(self.poll, 5))

    def kube(self) -> list[KubeClient]:
        """Return clients of this host's member and of the API's address, which is right when the cluster was handed over."""
        return [
            KubeClient.from_kubeconfig(self.host.path(f"{BOOTSTRAP_DIR}/auth/{name}"))
            for name in ("kubeconfig-loopback", "kubeconfig")
        ]

    def kube_get(self, path: str) -> dict[str, Any]:
        """Return an object or a list, from whichever member answers; empty if none does, or none has it."""
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
        """Return the objects of a collection; none if nobody answers."""
        items: list[dict[str, Any]] = self.kube_get(path).get("items", [])
        return items

    def finish_control_plane(self) -> None:
        """Wait for masters, bootkube, the controller and, in an agent-based installation, for those who still need the service."""
        self.report("Waiting for control plane", "Waiting for masters to join bootstrap control plane")
        self.wait_for_nodes()
        self.report("Waiting for bootkube")
        self.report("Waiting for bootkube", "waiting for ETCD bootstrap to be complete")
        self.wait_for_bootkube()
        self.report("Waiting for controller", "waiting for controller pod ready event")
        self.until(
            "the controller is ready",
            lambda: any(
                e.get("reason") == "AssistedControllerIsReady"
                for e in self.kube_items("/api/v1/namespaces/assisted-installer/events")
            ),
        )
        self.stop_watching.set()
        if self.kube_get(INVOKER).get("data", {}).get("invoker") == "agent-installer":
            self.until("no worker needs the service", lambda: not self.workers_that_need_service())
        self.until("the machine configs of the masters are consistent", self.masters_consistent)

    def wait_for_nodes(self) -> None:
        """Wait until min(replicas - 1, 2) masters (and an arbiter, if there is one) are ready; each is reported as Joined."""
        hosts = self.hosts()
        masters = [h for h in hosts if h["role"] == "master"]
        wanted = min(len(masters) - 1, 2)
        arbiters = min(1, sum(1 for h in hosts if h["role"] == "arbiter"))
        joined: set[str] = set()

        def enough() -> bool:
            ready = node_list.ready(self.kube_items("/api/v1/nodes"))
            self.report_requests(hosts)
            for node in ready:
                host = find_host(hosts, node)
                if host and host["id"] not in joined and host["role"] != "worker":
                    joined.add(host["id"])
                    self.report("Joined", host_id=host["id"])
            return (
                len(node_list.ready(ready, "master")) >= wanted and len(node_list.ready(ready, "arbiter")) >= arbiters
            )

        self.until(f"{wanted} masters are ready", enough)

    def workers_that_need_service(self) -> list[str]:
        """Return the names of workers that would be left alone if this host rebooted now."""
        return [
            str(h.get("requested_hostname"))
            for h in self.hosts()
            if h["role"] == "worker" and (h.get("progress") or {}).get("current_stage") in WORKER_NEEDS_SERVICE
        ]

    def masters_consistent(self) -> bool:
        """Tell whether all masters that have joined are to run one config, and it and those that they run exist."""
        nodes = [node for node in self.kube_items("/api/v1/nodes") if node_list.has_role(node, "master")]
        notes = [node["metadata"].get("annotations") or {} for node in nodes]
        desired = {note.get(f"{_MCO}/desiredConfig", "") for note in notes}
        configs = desired | {note.get(f"{_MCO}/currentConfig", "") for note in notes}
        return len(desired) == 1 and "" not in configs and all(self.kube_get(f"{MACHINE_CONFIGS}/{name}") for name in configs)

    def _watch_machine_config_server(self) -> None:
        while not self.stop_watching.wait(self.poll):
            try:
                self.report_requests(self.hosts())
            except (ServiceError, OSError) as error:
                log.warning("hosts that fetch their config cannot be told: %s", error)

    def report_requests(self, hosts: list[dict[str, Any]]) -> None:
        """Report hosts that fetched their config: masters are Configuring, workers have waited for their Ignition."""
        path = self.host.path(f"{BOOTSTRAP_DIR}/machine-config-server.log")
        with self._requests:
            for pool, address in machine_config_requests(path.read_text() if path.exists() else ""):
                host = next((h for h in hosts if address in host_addresses(h)), None)
                if host and host["id"] not in self._requested and host["id"] != self.options.host_id:
                    self._requested.add(host["id"])
                    self.report("Waiting for ignition" if pool == "worker" else "Configuring", host_id=host["id"])

    # Workers

    def wait_for_masters(self) -> None:
        """Wait until two masters or arbiters are Done: before, nobody serves a worker's config. A cluster that stands has them."""
        self.report("Waiting for control plane")
        path = f"/v2/clusters/{self.options.cluster_id}"
        kind = ""

        def done() -> bool:
            nonlocal kind
            kind = kind or self.service.get(path).get("kind", "Cluster")
            if kind == "AddHostsCluster":
                return True
            hosts = self.service.get(f"{path}/hosts?role=master") + self.service.get(f"{path}/hosts?role=arbiter")
            return sum(1 for h in hosts if (h.get("progress") or {}).get("current_stage") == "Done") >= 2

        self.until("two masters are done", done)

    # Disk

    def host_ignition(self) -> str:
        """Fetch the host's own config; that of a single node holds the cluster that bootkube made. Returns its path on the host."""
        path = f"/v2/infra-env/{self.options.infra_env_id}/hosts/{self.options.host_id}/downloads/ignition"
        data = self.service.download(path)
        if self.single:
            pointer = json.loads(data)
            rendered = json.loads(self.host.path(f"{BOOTSTRAP_DIR}/master.ign").read_text())
            merged = merge(pointer, rendered)
            for section in ("files", "links", "directories"):
                # What is the host's own (name, network) stays; units and the cluster's files are bootkube's.
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
        return self.save(f"{self.role}-{self.options.host_id}.ign", data)

    def format_disks(self) -> None:
        """Quickly format the disks that are to be formatted; one that cannot be does not stop the installation."""
        for disk in self.options.format_disk or ():
            self.host.run(["dd", "if=/dev/zero", f"of={disk}", "bs=512", "count=1"], check=False)

    def clean_disk(self) -> None:
        """Remove signatures from the installation disk; one that cannot be cleaned is told, and written to all the same."""
        device = self.options.boot_device
        if not self.options.skip_installation_disk_cleanup:
            try:
                self.host.run(["wipefs", "--all", "--force", device])
            except HostError as error:
                log.error("failed to prepare install device %s, err %s", device, error)
                text = f"Could not clean install device {device}. The installation will continue. If the installation fails, clean the disk and try again"
                self.report("Starting installation", text)

    def write_image(self, ignition_file: str) -> None:
        """Write the disk, telling every five percent; three tries."""
        arguments = json.loads(self.options.installer_args or "[]")
        command = [
            "coreos-installer",
            "install",
            "--insecure",
            "-i",
            ignition_file,
            *arguments,
            self.options.boot_device,
        ]
        self.report("Writing image to disk")
        for attempt in range(1, WRITE_TRIES + 1):
            last = 0

            def progress(percent: int) -> None:
                nonlocal last
                if percent >= last + 5 or (percent == 100 > last):
                    last = percent
                    self.report("Writing image to disk", f"{percent}%")

            try:
                self.host.write_disk(command, progress)
            except HostError as error:
                log.warning("writing the image failed, try %d of %d: %s", attempt, WRITE_TRIES, error)
                if attempt == WRITE_TRIES:
                    raise InstallError(f"failed after {WRITE_TRIES} attempts, last error: {error}") from None
            else:
                if last < 100:
                    self.report("Writing image to disk", "100%")
                return

    def copy_registry(self) -> None:
        """Copy the registry of an appliance to the disk, when the medium has one."""
        if self.host.path("/run/media/iso/registry").exists():
            self.report("Copying registry data to disk")
            self.host.run(
                [
                    "/bin/bash",
                    "-c",
                    (
                        f"mount $(lsblk -nlpo NAME,LABEL {self.options.boot_device} | awk '$2==\"root\"{{print $1}}') /mnt && "
                        "mkdir -p /mnt/ostree/deploy/registry && cp -a /run/media/iso/registry/. /mnt/ostree/deploy/registry/; umount /mnt"
                    ),
                ]
            )

    # The end

    def upload_logs(self) -> None:
        """Send the journal of this host; an installation does not fail for want of logs."""
        path = f"{self._host_path}{self.options.host_id}/logs-progress"
        try:
            self.service.send("PUT", path, {"logs_state": "requested"})
            self.service.send("PUT", path, {"logs_state": "collecting"})
            texts = {
                "agent.logs": self.host.run(
                    ["journalctl", "-u", "agent.service", "-n", "2000", "--no-pager"], check=False
                ),
                "installer.logs": self._own_log(),
                "bootkube.logs": self.host.run(
                    ["journalctl", "-u", "bootkube.service", "-n", "2000", "--no-pager"], check=False
                )
                if self.bootstrap
                else "",
                "dmesg.logs": self.host.run(["dmesg"], check=False),
            }
            query = f"logs_type=host&host_id={self.options.host_id}&infra_env_id={self.options.infra_env_id}"
            self.service.upload(f"/v2/clusters/{self.options.cluster_id}/logs?{query}", "logs.tar.gz", tarball(texts))
            self.service.send("PUT", path, {"logs_state": "completed"})
        except (ServiceError, OSError) as error:
            log.warning("logs were not uploaded: %s", error)

    def _own_log(self) -> str:
        path = self.host.path("/var/log/assisted-installer.log")
        return path.read_text(errors="replace") if path.exists() else ""

    def reboot(self) -> None:
        """Report Rebooting and reboot: a single node now, others after a delay in which the report can arrive everywhere."""
        self.report("Rebooting")
        delay = seconds("REBOOT_DELAY_SECONDS", 60)
        if self.single:
            self.host.run(["systemctl", "--no-block", "reboot"])
        else:
            self.host.run(
                ["systemd-run", f"--on-active={delay:g}s", "--timer-property=AccuracySec=1s", "systemctl", "reboot"]
            )

    # Helpers

    def hosts(self) -> list[dict[str, Any]]:
        """Return the hosts of the cluster, as the service knows them."""
        found: list[dict[str, Any]] = self.service.get(
            f"/v2/clusters/{self.options.cluster_id}/hosts?with-inventory=true"
        )
        return found

    def save(self, name: str, data: bytes) -> str:
        """Keep a file in the install directory of the host and return its path there."""
        path = self.host.path(f"{INSTALL_DIR}/{name}")
        path.touch(0o600)
        path.write_bytes(data)
        return f"{INSTALL_DIR}/{name}"

    def until(self, what: str, test: Callable[[], bool]) -> None:
        """Poll until a test holds. The service's stage timeouts bound it: it cancels this container."""
        log.info("waiting until %s", what)
        while True:
            try:
                if test():
                    return
            except ServiceError as error:
                log.warning("%s: %s", what, error)
            time.sleep(self.poll)


def machine_config_requests(text: str) -> list[tuple[str, str]]:
    """Return pool and address of every Ignition that asked, from the log of a machine-config server."""
    return [(found["pool"], found["address"].strip("[]")) for found in _MCS_LINE.finditer(text)]


def host_addresses(host: dict[str, Any]) -> set[str]:
    """Return the addresses in a host's inventory, without prefix length, in canonical form."""
    inventory = json.loads(host.get("inventory") or "{}")
    return {
        str(ipaddress.ip_interface(address).ip)
        for nic in inventory.get("interfaces") or ()
        for address in [*(nic.get("ipv4_addresses") or ()), *(nic.get("ipv6_addresses") or ())]
    }


def find_host(hosts: list[dict[str, Any]], node: dict[str, Any]) -> dict[str, Any] | None:
    """Return the host that a node is: by name, else by address."""
    name, addresses = node["metadata"]["name"].lower(), set(node_list.addresses(node))
    by_name = next((h for h in hosts if str(h.get("requested_hostname", "")).lower() == name), None)
    return by_name or next((h for h in hosts if host_addresses(h) & addresses), None)


def tarball(files: Mapping[str, str | bytes]) -> bytes:
    """Return a tar.gz of the files that are not empty."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            if data:
                info = tarfile.TarInfo(name)
                info.size, info.mtime = len(data), int(time.time())
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def parser() -> argparse.ArgumentParser:
    """Return the options, named as upstream's."""
    options = argparse.ArgumentParser(prog="installer", description="installs this host")
    options.add_argument("--role", required=True, choices=["bootstrap", "master", "arbiter", "worker"])
    for name in ("infra-env-id", "cluster-id", "host-id", "boot-device", "url"):
        options.add_argument(f"--{name}", required=True)
    options.add_argument("--control-plane-count", type=int, default=0)
    options.add_argument("--high-availability-mode", default="Full", choices=["Full", "None"])
    options.add_argument("--installer-args", default="")
    options.add_argument("--format-disk", action="append")
    options.add_argument("--skip-installation-disk-cleanup", action="store_true")
    options.add_argument("--insecure", nargs="?", const=True, default=False)
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
    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    folder = host.path("/var/log")
    if folder.is_dir():
        handlers.append(logging.FileHandler(folder / "assisted-installer.log"))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", handlers=handlers)
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
        log.error("installation failed: %s", error)
        installer.report("Failed", str(error))
        return 1
    return 0


def live_settings(host: Host) -> Path:
    """Return the file with the lab's settings on a live host; it is made of the extra manifests, where they came with the ISO."""
    target = host.path("/etc/agentlab/settings.json")
    if target.exists():
        return target
    for manifest in sorted(host.path("/etc/assisted/extra-manifests").glob("*.y*ml")):
        for document in yaml.safe_load_all(manifest.read_text()):
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
