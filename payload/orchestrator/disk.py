"""The installation disk: it is cleaned and written, and gets an appliance's registry."""

from __future__ import annotations

import logging
import time

from ...plugins.module_utils.documents import load_json
from ...plugins.module_utils.vocabulary import Stage
from .host import HostError
from .installation import Installation, InstallError

WRITE_TRIES, WRITE_PAUSE_SECONDS = 3, 1
log = logging.getLogger("installer")


class Disk:
    """The disks of one host; `device` is the one to install to, by the service's name until `find_device`."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.device: str = installation.options.boot_device

    def format_disks(self) -> None:
        """Quick-format the selected disks; a failure does not stop the installation.

        Only their first sector is overwritten, as upstream does.
        """
        for disk in self.installation.options.format_disk or ():
            log.info("Formatting disk %s", disk)
            try:
                self.installation.host.run(["dd", "if=/dev/zero", f"of={disk}", "bs=512", "count=1"])
            except HostError as error:
                log.warning("Failed to format disk %s, err %s", disk, error)

    def find_device(self) -> None:
        """Resolve the links by which the service names disks: coreos-installer's messages have the target.

        A link that cannot be resolved is used as it is.
        """
        given = self.device
        try:
            self.device = self.installation.host.run(["realpath", "-e", given]).strip() or given
        except HostError as error:
            log.warning("Failed to filepath.EvalSymlinks(%s): %s. Continuing with %s anyway.", given, error, given)
        else:
            log.info("Resolving installation device %s symlink to %s ", given, self.device)

    def clean_disk(self) -> None:
        """Remove signatures from the installation disk; report one that cannot be cleaned, and write to it anyway.

        It is skipped where the options ask for that. A failure is reported with the stage `Stage.STARTING`.
        """
        if self.installation.options.skip_installation_disk_cleanup:
            log.info("skipping installation disk cleanup")
            return
        log.info("Start cleaning up device %s", self.device)
        try:
            self.installation.host.run(["wipefs", "--all", "--force", self.device])
        except HostError as error:
            text = f"Could not clean install device {self.device}. The installation will continue. "
            self.installation.report(Stage.STARTING, text + "If the installation fails, clean the disk and try again")
            log.error("failed to prepare install device %s, err %s", self.device, error)

    def write_image(self, ignition_file: str) -> None:
        """Write the disk, reporting every five percent; three attempts.

        ignition_file: path on the host. Arguments of the service for coreos-installer are added. Raises `InstallError`
        with the last error.
        """
        arguments = load_json(self.installation.options.installer_args or "[]", name="installer_args")
        command = [
            "coreos-installer",
            "install",
            "--insecure",
            "-i",
            ignition_file,
            *arguments,
            self.device,
        ]
        self.installation.report(Stage.WRITING)
        reported = 0

        def progress(percent: int) -> None:
            # A retry only reports progress beyond the previous attempt.
            nonlocal reported
            if (percent >= reported + 5 or percent == 100 > reported) and self.installation.report(
                Stage.WRITING, f"{percent}%"
            ):
                reported = percent

        for attempt in range(1, WRITE_TRIES + 1):
            try:
                self.installation.host.write_disk(command, progress)
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
        if self.installation.host.path("/run/media/iso/registry").exists():
            self.installation.report(Stage.COPYING)
            self.installation.host.run(
                [
                    "/bin/bash",
                    "-c",
                    (
                        f"mount $(lsblk -nlpo NAME,LABEL {self.device} | awk '$2==\"root\"{{print $1}}') /mnt && "
                        "mkdir -p /mnt/ostree/deploy/registry && cp -a /run/media/iso/registry/. /mnt/ostree/deploy/registry/; umount /mnt"
                    ),
                ]
            )
