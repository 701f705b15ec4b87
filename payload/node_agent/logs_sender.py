"""`logs_sender`: gather the host's logs into a tar.gz and upload it to the service."""

from __future__ import annotations

import os
import shutil
import sys
import tarfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import fields, flags, host, journal
from .journal import log
from .protocol import API, Identity, Request, Result
from .rest import Client
from .steps import Context, argument

VAR_LOG = Path("/var/log")
TAGS = ("agent", "installer")
SERVICES = ("ironic-agent",)
GATHER = "/usr/local/bin/installer-gather.sh"
SECONDS, GATHER_SECONDS = 600.0, 3000.0
FLAGS = (
    flags.Flag("since", "", "Journalctl since flag, same format"),
    flags.Flag("pull-secret-token", "", "Pull secret token"),
    flags.Flag("dont-clean", False, "Don't delete all created files on finish"),
    flags.Flag("bootstrap", False, "Gather and send logs on bootstrap node"),
    flags.Flag("with-installer-gather-logging", False, "Use installer-gather logging"),
    flags.Flag("masters-ips", "", "list of ',' separated IPs of all masters nodes in the cluster for SSH use"),
)
MOUNTS = (
    (
        "List block devices",
        "lsblk",
        "-o",
        "NAME,MAJ:MIN,SIZE,TYPE,FSTYPE,KNAME,MODEL,UUID,WWN,HCTL,VENDOR,STATE,TRAN,PKNAME",
    ),
    ("List mounts", "findmnt", "--df"),
    ("Disk mapping by id", "ls", "-l", "/dev/disk/by-id"),
    ("Disk mapping by path", "ls", "-l", "/dev/disk/by-path"),
    ("Running pvdisplay", "pvdisplay", "-v"),
    ("Running vgdisplay", "vgdisplay", "-v"),
    ("Running lvdisplay", "lvdisplay", "-v"),
)


@dataclass(slots=True)
class Job:
    """Which logs to gather. `folder`: where they are collected before they are packed."""

    cluster_id: str
    host_id: str
    infra_env_id: str
    bootstrap: bool = False
    gather: bool = False
    masters: tuple[str, ...] = ()
    since: str = ""
    clean: bool = True
    folder: Path = VAR_LOG


def to_file(path: Path, *argv: str, timeout: float = SECONDS) -> str:
    """A command's output into a file. Returns why it failed."""
    with path.open("w") as file:
        result = host.run(list(argv), timeout, host=True, stdout=file)
    return f"{' '.join(argv)}: exit code {result.exit_code}: {result.error.strip()}" if result.exit_code else ""


def journal_logs(path: Path, job: Job, *matches: str) -> str:
    since = ["--since", job.since] if job.since else []
    return to_file(path, "journalctl", "--no-pager", "--all", *since, *matches)


def mount_logs(path: Path) -> Iterator[str]:
    with path.open("w") as report:
        for title, *argv in MOUNTS:
            result = host.run(argv, host=True)
            report.write(
                "\n".join([title, " ".join(argv), *([result.error] if result.error else []), result.output, ""])
            )
            # LVM's programs are optional; without them there is no LVM to report.
            if result.exit_code not in (0, host.NOT_FOUND):
                yield f"{' '.join(argv)}: exit code {result.exit_code}: {result.error.strip()}"


def core_dumps(target: Path) -> Iterator[str]:
    """Collect every core dump of the host. Columns of the list: four of a date, process id, owners, signal, state, program, size."""
    for line in host.run(["coredumpctl", "list", "--no-legend"], host=True).output.splitlines():
        columns = line.split()
        if len(columns) < 10 or columns[8] not in ("present", "truncated"):
            continue
        ident, name = columns[4], Path(columns[9]).name
        dumped = host.run(
            ["coredumpctl", "dump", ident, "--output", str(target / f"coredump_exe_{name}_pid_{ident}")],
            SECONDS,
            host=True,
        )
        if dumped.exit_code:
            yield f"coredumpctl dump {ident}: exit code {dumped.exit_code}: {dumped.error.strip()}"


def installer_gather(target: Path, job: Job) -> str:
    """Create the bootstrap host's archive with the script of the bootstrap Ignition."""
    if host.run(["test", "-x", GATHER], host=True).exit_code:
        return f"{GATHER} does not exist on this host"
    ident = time.strftime("%Y%m%d%H%M%S")
    result = host.run([GATHER, "--id", ident, *job.masters], GATHER_SECONDS, host=True)
    if result.exit_code:
        return f"{GATHER}: exit code {result.exit_code}: {result.error.strip()}"
    moved = host.run(["mv", f"/root/log-bundle-{ident}.tar.gz", str(target)], host=True)
    return moved.error


def gather(job: Job, target: Path) -> list[str]:
    """Write the logs of this host into the directory `target`; return what could not be collected, a line each.

    A log that is missing does not end the collection. The host's commands run in its mount namespace.
    """
    errors = [*mount_logs(target / "mount.logs")]
    for tag in TAGS:
        errors.append(journal_logs(target / f"{tag}.logs", job, f"TAG={tag}"))
    for service in (*SERVICES, *(("bootkube",) if job.bootstrap else ())):
        listed = host.run(["systemctl", "list-units", "--all", "--no-legend", f"{service}.service"], host=True)
        if f"{service}.service" in listed.output:
            errors.append(journal_logs(target / f"{service}.logs", job, "-u", service))
    if job.gather:
        errors.append(to_file(target / "dmesg.logs", "dmesg", "-T"))
        errors += core_dumps(target)
        errors.append(journal_logs(target / "journal.logs", job))
        if job.bootstrap:
            errors.append(installer_gather(target, job))
    for path in sorted(job.folder.glob("agent*.log")):
        shutil.copy(path, target)
    return [error for error in errors if error]


def multipart(path: Path, boundary: str) -> tuple[int, Iterator[bytes]]:
    """Return length and pieces of a form with the one file field `upfile`. RFC 7578.

    The file is read while it is sent, and always has upstream's file name. boundary must not be in the file.
    """
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="upfile"; filename="logs.tar.gz"\r\n'
        "Content-Type: application/x-gzip\r\n\r\n"
    ).encode()
    tail = f"\r\n--{boundary}--\r\n".encode()

    def pieces() -> Iterator[bytes]:
        yield head
        with path.open("rb") as file:
            while piece := file.read(1 << 16):
                yield piece
        yield tail

    return len(head) + path.stat().st_size + len(tail), pieces()


def checked_job(job: Job) -> Job:
    """Return the job with validated identifiers, because they become directory names. Raises ValueError."""
    for name in ("cluster_id", "host_id", *(["infra_env_id"] if job.infra_env_id != "" else [])):
        fields.uuid(f"logs-gather: {name}", getattr(job, name))
    for address in job.masters:
        fields.address("logs-gather: master_ips:", address)
    return job


def send(job: Job, client: Client, me: Identity) -> tuple[str, list[str]]:
    """Gather, pack and upload the logs, and report each stage to the service.

    Returns why it failed (empty if it did not), and a line for each log that was missing. The directory of a killed run
    is used again.
    """

    def progress(state: str) -> None:
        answer = client(
            Request("logs progress", "PUT", f"{me.host_path}/logs-progress", {"logs_state": state}), me.headers()
        )
        if not answer.ok:
            log.error("failed to send log progress %s to service: %s", state, answer.reason())

    progress("requested")
    target, archive = job.folder / f"logs_host_{job.host_id}", job.folder / f"logs_{job.host_id}.tar.gz"
    try:
        target.mkdir(parents=True, exist_ok=True)  # reuse the one of a killed run
        errors = gather(job, target)
        if errors:
            (target / "report.logs").write_text("\n".join(errors))
        progress("collecting")
        with tarfile.open(archive, "w:gz", compresslevel=3) as tar:
            tar.add(target, target.name)
        boundary = uuid.uuid4().hex
        length, pieces = multipart(archive, boundary)
        answer = client.upload(
            f"{API}/clusters/{job.cluster_id}/logs?logs_type=host&host_id={job.host_id}&infra_env_id={job.infra_env_id}",
            {
                **me.headers(),
                "Content-Type": f"multipart/form-data; boundary={boundary}",
                "Content-Length": str(length),
            },
            pieces,
        )
        if not answer.ok:
            return f"Failed to upload file {archive} to assisted-service: {answer.reason()}", errors
        progress("completed")
        return "", errors
    except OSError as error:
        return f"logs of host {job.host_id}: {error}", []
    finally:
        if job.clean:
            shutil.rmtree(target, ignore_errors=True)
            archive.unlink(missing_ok=True)


def step(args: list[str], context: Context) -> Result:
    request = argument("logs-gather", args[0], "cluster_id", "infra_env_id", "host_id")
    job = checked_job(
        Job(
            request["cluster_id"], request["host_id"], request["infra_env_id"], bool(request.get("bootstrap")),
            bool(request.get("installer_gather")),
            tuple(fields.entries("logs-gather: master_ips", request.get("master_ips"), str, 1000)), folder=VAR_LOG,
        )
    )  # fmt: skip
    me = Identity(job.infra_env_id, job.host_id, context.agent_version, context.token)
    failed, missing = send(job, Client(context.url, context.insecure, context.cacert), me)
    return Result("" if failed else "Logs were sent\n" + "\n".join(missing), failed, 255 if failed else 0)


def main(argv: list[str] | None = None) -> int:
    options = flags.parse(
        "logs_sender", (*flags.CONNECTION, *flags.logging_flags(text=True), *flags.dry_flags(), *FLAGS), argv
    )
    missing = [name for name in ("host-id", "cluster-id", "url") if name not in options.given]
    if missing:
        print(f"missing required -{missing[0]} argument/flag", file=sys.stderr)
        return 2
    journal.setup("logs-sender", options.with_text_logging, options.with_journal_logging, options.with_stdout_logging)
    masters = tuple(filter(None, options.masters_ips.split(",")))
    job = Job(
        options.cluster_id, options.host_id, options.infra_env_id, options.bootstrap,
        options.with_installer_gather_logging, masters, options.since, not options.dont_clean,
    )  # fmt: skip
    token = options.pull_secret_token or os.environ.get("PULL_SECRET_TOKEN", "")
    me = Identity(job.infra_env_id, job.host_id, options.agent_version, token)
    try:
        checked_job(job)
    except ValueError as error:
        flags.fatal(str(error))
    try:
        client = Client(options.url, options.insecure, options.cacert)
    except OSError as error:
        flags.fatal(f"Failed to initialize connection: --cacert {options.cacert}: {error}")
    failed, errors = send(job, client, me)
    if failed:
        print("Failed to run send logs ", failed)
        return 255
    print("\n".join(["Logs were sent", *errors]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
