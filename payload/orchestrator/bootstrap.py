"""The bootstrap host: the live system becomes the first member of the cluster."""

from __future__ import annotations

import json
import logging
import re
import socket
import time
import uuid

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.vocabulary import Stage
from ..cluster import assisted
from ..cluster.machine_config_daemon import apply
from ..cluster.settings import seconds
from .installation import WAIT_SECONDS, Installation, InstallError

BOOTSTRAP_DIR = "/opt/openshift"
_HOSTNAME = re.compile(r"[a-z0-9][a-z0-9\-.]{0,61}[a-z0-9]")
log = logging.getLogger("installer")


class Bootstrap:
    """The live system of a bootstrap host or of a single node.

    installation: of this host, whose service and commands it uses.
    """

    def __init__(self, installation: Installation) -> None:
        self.installation = installation

    def clean(self) -> None:
        """Remove what an earlier, failed installation left in the live system.

        That is the directory `BOOTSTRAP_DIR` and the unit bootkube. Raises `HostError` when it cannot be removed.
        """
        left = self.installation.host.path(BOOTSTRAP_DIR)
        if left.exists():
            self.installation.host.run(["systemctl", "stop", "bootkube.service"], check=False)
            self.installation.host.run(["rm", "-rf", BOOTSTRAP_DIR])

    def start(self) -> None:
        """Turn the live system into the cluster's first member; it starts while the disk is written.

        bootstrap.ign of the service is applied to the running system and its units are started without waiting. Raises
        `ServiceError` and `HostError`.
        """
        log.info("Running bootstrap")
        self.clean()
        log.info("Getting bootstrap.ign file")
        data = self.installation.service.download(
            f"{self.installation.cluster_path}/downloads/files?file_name=bootstrap.ign"
        )
        self.installation.save("bootstrap.ign", data)
        units = apply(load_json(data, name="ignition"), self.installation.host.root, self.installation.host.run)
        log.info("Done extracting ignition to filesystem")
        self.write_controller_manifests()
        self.check_hostname()
        self.installation.host.run(["systemctl", "start", "--no-block", *units])
        log.info("Done setting up bootstrap")

    def write_controller_manifests(self) -> None:
        """Write what bootkube gives to the cluster's controller: only this program knows the service and its token.

        They are files of 0600 in `manifests` of the bootstrap directory, made by `cluster.assisted.manifests`.
        """
        made = assisted.manifests(
            cluster_id=self.installation.options.cluster_id,
            url=self.installation.options.url,
            token=self.installation.service.token,
            control_plane_count=self.installation.options.control_plane_count,
            must_gather_image=self.installation.options.must_gather_image,
            insecure=bool(self.installation.options.insecure),
            check_version=bool(self.installation.options.check_cluster_version),
        )
        folder = self.installation.host.path(f"{BOOTSTRAP_DIR}/manifests")
        folder.mkdir(parents=True, exist_ok=True)
        for name, manifest in made.items():
            (folder / name).touch(0o600)
            (folder / name).write_text(json.dumps(manifest))

    def check_hostname(self) -> None:
        """Generate a hostname if the live system has none that is valid for a node: localhost cannot bootstrap.

        The form is upstream's: `random-hostname-` and a UUID. It applies to the live system only.
        """
        log.info("Start checking hostname")
        name = socket.gethostname()
        if _HOSTNAME.fullmatch(name) and name != "localhost":
            log.info("hostname [%s] is not localhost or invalid, no need to do anything", name)
            return
        made = f"random-hostname-{uuid.uuid4()}"
        log.info("Hostname [%s] is invalid, generated random hostname [%s]", name, made)
        self.installation.host.run(["hostnamectl", "set-hostname", made])

    def wait_for_bootkube(self) -> None:
        """Wait until bootkube has written its marker; raise if its unit failed.

        `InstallError` has the last lines of its journal. There is no limit of its own: the service cancels this
        container.
        """
        log.info("Waiting for bootkube to complete")
        self.installation.report(Stage.BOOTKUBE)
        done = self.installation.host.path(f"{BOOTSTRAP_DIR}/.bootkube.done")
        pause = seconds("INSTALLER_POLL_SECONDS", WAIT_SECONDS)
        while not done.exists():
            if (
                self.installation.host.run(["systemctl", "is-failed", "bootkube.service"], check=False).strip()
                == "failed"
            ):
                raise InstallError(
                    "bootkube.service failed: "
                    + self.installation.host.run(
                        ["journalctl", "-u", "bootkube.service", "-n", "5", "-o", "cat"], check=False
                    )
                )
            time.sleep(pause)
        log.info("bootkube service completed")
        log.info("%s", self.installation.host.run(["systemctl", "status", "bootkube.service"], check=False).strip())
