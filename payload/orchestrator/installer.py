"""The installer: runs in a container on every host and installs it, stage by stage (`/usr/bin/installer`).

Stages, their order and texts are those of upstream's assisted-installer, for bootstrap, master, arbiter, worker and a single node.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from ...plugins.module_utils.documents import load_json, load_yaml_all, read_file
from ...plugins.module_utils.ignition.config import Config as Builder
from ...plugins.module_utils.ignition.resources import read_data_url
from ...plugins.module_utils.vocabulary import SETTINGS_MANIFEST, Stage
from ..cluster import machine_config_daemon
from ..cluster.configs import Config, merge
from ..cluster.settings import seconds
from ..node_agent import logs_sender
from ..node_agent.journal import JOURNAL, JournalHandler
from ..node_agent.protocol import Identity
from ..node_agent.rest import Client
from . import logs
from .bootstrap import BOOTSTRAP_DIR, Bootstrap
from .control_plane import ControlPlane
from .disk import Disk
from .host import NSENTER, Host, HostError
from .hosts import stage_of
from .installation import INSTALL_DIR, Installation, InstallError
from .service import Service, ServiceError

LOG_FILE = "/var/log/assisted-installer.log"
REBOOT_TEXT = "'Installation completed, server is going to reboot.'"
log = logging.getLogger("installer")


class Installer:
    """One run on one host."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.disk, self.bootstrap = Disk(installation), Bootstrap(installation)
        self.control_plane = ControlPlane(installation, self.bootstrap)

    def run(self) -> None:
        """Install this host up to its reboot.

        The order of the stages depends on the role: see upstream's `InstallNode`. Raises `InstallError`, `HostError` or
        `ServiceError`.
        """
        self.disk.format_disks()
        log.info("Installing node with role: %s", self.installation.options.role)
        self.installation.report(Stage.STARTING, self.installation.options.role)
        self.disk.find_device()
        self.disk.clean_disk()
        log.info("Creating directory: %s", INSTALL_DIR)
        self.installation.host.path(INSTALL_DIR).mkdir(parents=True, exist_ok=True)
        if self.installation.bootstrap and not self.installation.single:
            self.bootstrap.start()
            threading.Thread(target=self.control_plane.watch_requests, daemon=True).start()
        # A single node becomes a master only when it has bootstrapped itself.
        self.installation.report(
            Stage.INSTALLING, self.installation.options.role if self.installation.single else self.installation.role
        )
        if self.installation.single:
            log.info("Installing single node openshift")
            self.bootstrap.start()
            self.bootstrap.wait_for_bootkube()
        ignition_file = self.host_ignition()
        self.disk.write_image(ignition_file)
        if self.installation.role == "worker":
            self.wait_for_masters()
        if self.installation.role == "master":
            self.disk.copy_registry()
        if self.installation.bootstrap and not self.installation.single:
            self.installation.report(Stage.CONTROL_PLANE, "Waiting for bootstrap node preparation")
            self.control_plane.finish()
        self.upload_logs()
        self.reboot()

    def wait_for_masters(self) -> None:
        """Wait until two masters or arbiters are Done: they serve a worker's config. An installed cluster has them.

        For a host that is added to an installed cluster it returns at once. It polls the service every `WAIT_SECONDS`.
        """
        log.info("Waiting for 2 ready masters")
        self.installation.report(Stage.CONTROL_PLANE)
        path = self.installation.cluster_path
        kind = ""

        def done() -> bool:
            nonlocal kind
            kind = kind or self.installation.service.get(f"{path}?exclude-hosts=true").get("kind", "Cluster")
            if kind == "AddHostsCluster":
                return True
            hosts = self.installation.service.get(f"{path}/hosts?role=master") + self.installation.service.get(
                f"{path}/hosts?role=arbiter"
            )
            return sum(1 for host in hosts if stage_of(host) == Stage.DONE) >= 2

        self.installation.wait_until("Waiting for 2 masters or arbiters that are done", done)

    def host_ignition(self) -> str:
        """Fetch the host's own config; that of a single node holds the cluster that bootkube made. Returns its path on the host.

        That of a single node is merged with bootkube's master.ign, in which entries of the host itself win. Raises
        `ServiceError` and `OSError`.
        """
        path = f"/v2/infra-env/{self.installation.options.infra_env_id}/hosts/{self.installation.options.host_id}/downloads/ignition"
        name = f"{self.installation.role}-{self.installation.options.host_id}.ign"
        log.info("Getting %s file", name)
        data = self.installation.service.download(path)
        if (config := load_json(data, name="ignition")).get("ignition", {}).get("config", {}).get("merge"):
            data = json.dumps(self.with_pointed(config)).encode()
        if self.installation.single:
            pointer = load_json(data, name="ignition")
            rendered = load_json(
                read_file(self.installation.host.path(f"{BOOTSTRAP_DIR}/master.ign")),
                name=str(self.installation.host.path(f"{BOOTSTRAP_DIR}/master.ign")),
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
        return self.installation.save(name, data)

    def with_pointed(self, config: Config) -> Config:
        """Return a config with the ones that it points to, whose entries it overrides: the lab's initrd has no network to get them.

        Data URLs are read, too. It waits until each can be fetched. Raises `ValueError` for one that is not a config.
        """
        ignition = config["ignition"]
        authorities = (ignition.get("security") or {}).get("tls", {}).get("certificateAuthorities") or ()
        trusted = "".join(read_data_url(one["source"], one.get("compression")).decode() for one in authorities)
        found: list[Config] = []
        for entry in ignition["config"]["merge"]:
            source = entry["source"]
            if source.startswith("data:"):
                found.append(load_json(read_data_url(source, entry.get("compression")), name="ignition"))
                continue

            def fetched(url: str = source) -> bool:
                try:
                    found.append(machine_config_daemon.fetch(url, trusted))
                except OSError as error:
                    log.warning("Failed to fetch %s: %s", url, error)
                    return False
                return True

            self.installation.wait_until(f"Fetching {source}", fetched)
        own = {key: value for key, value in config.items() if key != "ignition"}
        return merge(Builder().to_dict(ignition["version"]), *found, own)

    def upload_logs(self) -> None:
        """Send the logs of this host, as its agent does after a failure; missing logs do not fail the installation."""
        options = self.installation.options
        log.info(
            "Uploading logs and reporting status before rebooting the node %s for cluster %s",
            options.host_id,
            options.cluster_id,
        )
        self.installation.report_logs(f"{self.installation.host_path}{options.host_id}", "requested")
        job = logs_sender.Job(
            options.cluster_id,
            options.host_id,
            options.infra_env_id,
            self.installation.bootstrap,
            folder=self.installation.host.path("/var/log"),
        )
        try:
            client = Client(options.url, bool(options.insecure), options.cacert)
            failed, __ = logs_sender.send(
                job,
                client,
                Identity(options.infra_env_id, options.host_id, options.agent_image, self.installation.service.token),
            )
        except OSError as error:
            failed = str(error)
        if failed:
            log.error("upload installation logs %s", failed)

    def reboot(self) -> None:
        """Report Rebooting and reboot: a single node now, others after a delay in which the report can arrive everywhere.

        The delay is `REBOOT_DELAY_SECONDS` of the settings, 60 by default. Raises `HostError`.
        """
        self.installation.report(Stage.REBOOTING)
        log.info("Rebooting node")
        now = ["shutdown", "-r", "now", REBOOT_TEXT]
        delay = [
            "systemd-run",
            f"--on-active={seconds('REBOOT_DELAY_SECONDS', 60):g}s",
            "--timer-property=AccuracySec=1s",
        ]
        self.installation.host.run(now if self.installation.single else [*delay, *now])


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
    installation = Installation(options, service, host)
    try:
        Installer(installation).run()
    except (InstallError, HostError, ServiceError, OSError, ValueError) as error:
        installation.report(Stage.FAILED, str(error))
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
                and (document.get("metadata") or {}).get("name") == SETTINGS_MANIFEST
            ):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(json.dumps(document.get("data") or {}))
    return target


if __name__ == "__main__":
    sys.exit(main())
