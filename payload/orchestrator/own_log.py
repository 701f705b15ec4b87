"""The controller's own log: the service gets it during the installation and at its end."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping

from ..cluster.kube import KubeError
from .logs import tarball
from .must_gather import must_gather
from .service import ServiceError
from .session import LOOK_SECONDS, Session

LOGS_SECONDS = 4200.0
LOGS_UPLOAD_SECONDS = 300.0
log = logging.getLogger("controller")


class OwnLog(logging.Handler):
    """Keeps the last lines of the log, and sends them.

    It has at most the last 20,000 lines. Add it to the handlers of the root logger.
    """

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.lines: deque[str] = deque(maxlen=20000)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def keep_sending(self) -> None:
        """Send this program's own log every few minutes, while there is a service.

        The pause is `LOGS_UPLOAD_SECONDS`; an error of the service is logged, and the next upload has all lines again.
        """
        # At once, too: upstream's bootstrap host fetches them when this program is ready.
        log.info("Start sending logs")
        while True:
            try:
                self._send({})
            except ServiceError as error:
                log.warning("Failed to upload controller logs", extra={"error": error})
            if self.session.done.wait(LOGS_UPLOAD_SECONDS):
                return
            log.info("Start uploading controller logs (intermediate snapshot)")

    def _send(self, files: Mapping[str, bytes]) -> None:
        archive = tarball({"assisted-installer-controller.logs": "\n".join(self.lines) + "\n", **files})
        self.session.service.upload(
            f"{self.session.cluster_path}/logs?logs_type=controller", "controller_logs.tar.gz", archive
        )

    def send_final(self) -> None:
        """Send the final logs, after a failure with the cluster's resources; retry for over an hour, as upstream does.

        After `LOGS_SECONDS` it gives up without an error. The state of the logs is reported before and after.
        """
        log.info("Upload final controller and cluster logs before exit")
        self._report("requested")
        end = time.monotonic() + LOGS_SECONDS
        while not self._uploaded() and time.monotonic() < end:
            log.info("retry uploading logs in 30 seconds...")
            time.sleep(self.session.pause(LOOK_SECONDS))
        self._report("completed")

    def _uploaded(self) -> bool:
        files: dict[str, bytes] = {}
        gathered = True
        if self.session.failed:
            log.info("Uploading oc must-gather logs")
            try:
                files["must-gather.tar.gz"] = must_gather(self.session.kube)
            except KubeError as error:
                log.error("Failed to collect must-gather logs %s", error)
                gathered = False
        try:
            self._send(files)
        except ServiceError as error:
            log.error("Failed to upload logs", extra={"error": error})
            return False
        return gathered

    def _report(self, state: str) -> None:
        try:
            self.session.service.send("PUT", f"{self.session.cluster_path}/logs-progress", {"logs_state": state})
        except ServiceError as error:
            log.error("failed to report log progress %s on cluster", state, extra={"error": error})
