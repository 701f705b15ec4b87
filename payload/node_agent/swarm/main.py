"""`agentlab swarm`: the command line of the swarm."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from ....plugins.module_utils.vocabulary import Exit
from .output import problem, write_line, write_or_drop
from .settings import (
    DOWNLOADS,
    FAILURES,
    PROFILES,
    THRESHOLDS,
    Settings,
    StoppedRun,
    SwarmError,
    kinds,
    part_of,
    shares,
)
from .verdict import exceeded_thresholds, problems

LINE_SECONDS = 10.0
PRINTED = Path("-")  # the value of --report that prints it
PROGRAMS = {
    "agent": "agent program that runs a share of the hosts in its dry-run mode",
    "installer": "installer program that installs hosts of --agent in its dry-run mode",
    "controller": "controller program of the clusters that have hosts of --agent, in its dry-run mode",
}


def parser() -> argparse.ArgumentParser:
    defaults = {entry.name: entry.default for entry in fields(Settings)}
    top = argparse.ArgumentParser(
        prog="agentlab swarm",
        usage="agentlab swarm --url URL [options]\n"
        "       agentlab swarm --kubernetes PODS --image PULLSPEC --url URL [options]\n"
        "       agentlab swarm merge DIR|LOG... --report DIR\n       agentlab swarm pack FILE",
        description="Load-test an assisted service with simulated hosts, until every cluster is installed. Registered clusters are deleted at the end.",
        epilog="\n\n".join(
            (
                table("topologies", {name: shape.text for name, shape in kinds().items()}),
                table("failures", FAILURES),
                table("downloads", DOWNLOADS),
                table("thresholds", THRESHOLDS),
                table("hardware", {name: f"{kind.manufacturer} {kind.product}, {kind.cpus} CPUs, {kind.memory_gib} GiB" for name, kind in PROFILES.items()}),
                "Tokens are read from PULL_SECRET_TOKEN (agents) and USER_AUTH_TOKEN (what users do), the password of the BMCs'\n"
                "user admin from BMC_PASSWORD; without it any is accepted, on 127.0.0.1 only.",
                "merge combines the reports of several machines; pack writes the swarm as one executable file,\n"
                "for machines with Python 3.11, aiohttp and cryptography.",
                "Exit code 0: every cluster was installed (with --allow-unfinished or --no-install: none failed) and no threshold\n"
                "was exceeded; 1: some were not, or could not be removed, or a threshold was exceeded;\n"
                "2: wrong arguments, or the service cannot be used; 130: it was stopped.",
            )
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    group = top.add_argument_group("the service")

    def number(flag: str, text: str, kind: type = float, unit: str = "SECONDS") -> None:
        default = defaults[flag.removeprefix("--").replace("-", "_")]
        group.add_argument(flag, type=kind, default=default, metavar=unit, help=f"{text} (default {default:g})")

    def word(flag: str, text: str, metavar: str = "TEXT") -> None:
        default = defaults[flag.removeprefix("--").replace("-", "_")]
        group.add_argument(
            flag, default=default, metavar=metavar, help=text + (f" (default {default})" if default else "")
        )

    group.add_argument(
        "--url",
        default="",
        help="URL of the assisted service, e.g. http://192.168.111.20:8090; with --kubeconfig it is read from the hub",
    )
    group.add_argument("--insecure", action="store_true", help="do not verify the service's certificate")
    word("--cacert", "authority of the service's certificate, PEM", "FILE")
    group.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of a hub: clusters are its custom resources (kube-api mode)",
    )
    group.add_argument(
        "--template",
        type=Path,
        metavar="FILE",
        help="YAML documents that are merged into the swarm's resources of their kind",
    )
    number("--connections", "maximum number of connections to the service", int, "N")

    group = top.add_argument_group("the clusters")
    number("--clusters", "number of clusters to register", int, "N")
    number("--hosts", "hosts per cluster; 0: the topology's default; a single node is always one", int, "N")
    group.add_argument(
        "--topology",
        default="compact",
        metavar="NAME=SHARE,...",
        help="topologies and their shares of the clusters; NAME:HOSTS for another size, e.g. ha:150 (default compact)",
    )
    group.add_argument(
        "--hardware", default="vm", metavar="NAME=SHARE,...", help="hardware profiles of the hosts (default vm)"
    )
    group.add_argument("--discover", action="store_true", help="use existing clusters and infra-envs; register none")
    group.add_argument(
        "--part",
        default="1/1",
        metavar="NUMBER/COUNT",
        help="run only this part of the swarm; other machines run the others; index/COUNT in a pod of an Indexed Job",
    )
    word("--name", "cluster name prefix")
    word("--base-domain", "base domain of the clusters", "DOMAIN")
    word("--openshift-version", "OpenShift version of the clusters", "VERSION")
    word("--release-image", "release image of the clusters; default: the service's for the version", "PULLSPEC")
    group.add_argument(
        "--operators",
        default="",
        metavar="NAME,...",
        help="OLM operators of each cluster, e.g. lso,metallb (REST mode)",
    )
    word("--agent-version", "agent image reported by the simulated hosts; default: the service's own", "PULLSPEC")
    for name, what in PROGRAMS.items():
        group.add_argument(f"--{name}", type=Path, metavar="FILE", help=what)
    number("--share", "share of the hosts that --agent runs", unit="SHARE")
    group.add_argument("--pull-secret-file", type=Path, metavar="FILE", help="pull secret for registering clusters")
    group.add_argument(
        "--download", default="", metavar="NAME,...", help="what each host downloads before it registers (REST mode)"
    )
    word(
        "--bmc",
        "Redfish BMCs of the hosts at this address, for boots by virtual media; a port alone: of 127.0.0.1",
        "ADDRESS:PORT",
    )
    group.add_argument(
        "--no-install", dest="install", action="store_false", help="do not start the installation of ready clusters"
    )
    group.add_argument("--keep", action="store_true", help="do not delete what was registered")

    group = top.add_argument_group("timing and failures")
    number("--ramp-up", "time over which the hosts are started")
    number("--think-time", "factor on the real duration of steps and stages; 0: answer at once", unit="FACTOR")
    number("--jitter", "random variation of those durations, 0 to 1", unit="SHARE")
    number("--network-delay", "delay before each request")
    number("--network-jitter", "maximum random addition to --network-delay")
    group.add_argument(
        "--failures", default="", metavar="NAME=SHARE,...", help="failures and their shares of the hosts"
    )
    number("--watch", "poll interval of each cluster")
    number("--controller-poll", "poll interval of each cluster's controller")
    number("--installer-poll", "poll interval of each installer")
    number("--register-interval", "interval between attempts to register")
    number("--poll-limit", "maximum poll interval of agents; 0: the service's")
    number("--write-reports", "number of progress reports while the disk is written", int, "N")
    number("--logs-kib", "size of a host's log archive", int, "KIB")
    number("--duration", "maximum duration of the run; 0: until every cluster is installed or has failed")
    group.add_argument(
        "--allow-unfinished",
        action="store_true",
        help="do not fail if clusters are not installed when --duration is over",
    )
    group.add_argument(
        "--threshold",
        dest="thresholds",
        default="",
        metavar="NAME=MOST,...",
        help="figures that make the run fail when they are exceeded",
    )
    number("--stall", "give up a cluster after this time without a change")
    number("--seed", "seed of the random numbers, to repeat a run", int, "N")

    group = top.add_argument_group("the report")
    group.add_argument(
        "--report",
        type=Path,
        metavar="DIR",
        help="write report.html, report.json and CSV files there; -: print the report as one line, for merge",
    )

    group = top.add_argument_group("a Kubernetes cluster")
    group.add_argument(
        "--kubernetes",
        type=int,
        default=0,
        metavar="PODS",
        help="print manifests of a Job that runs the swarm in so many pods, and do nothing else",
    )
    group.add_argument(
        "--image",
        default="",
        metavar="PULLSPEC",
        help="the pods' image: Python 3.11, aiohttp, PyYAML, cryptography, a user by number",
    )
    return top


def table(title: str, rows: dict[str, str]) -> str:
    return "\n".join([f"{title}:", *(f"  {name:<10} {text}" for name, text in rows.items())])


class Progress:
    """One line that is rewritten on a terminal; a line every ten seconds elsewhere. Without a reader, nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._tty, self._last = stream, stream.isatty(), -LINE_SECONDS
        self._shown = False

    def __call__(self, sample: dict[str, Any]) -> None:
        if not self._tty and sample["t"] - self._last < LINE_SECONDS:
            return
        self._last = sample["t"]
        states = " ".join(f"{name} {count}" for name, count in sorted(sample["hosts"].items()))
        clusters = " ".join(f"{name} {count}" for name, count in sorted(sample["clusters"].items()))
        line = (
            f"{sample['t']:7.1f} s  {sample['active']} agents  {sample['requests_per_s']:g}/s  {sample['errors_per_s']:g} errors/s  "
            f"p99 {sample['p99_ms']:g} ms  late {sample['late_p99_ms']:g} ms  {sample['rss_mib']:g} MiB  "
            f"{sample['cpu_percent']:g} %  hosts: {states or '-'}  clusters: {clusters or '-'}"
        )
        if self._tty:  # a line that wraps could not be rewritten
            self._shown = True
            line = f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}"
        write_or_drop(line, self._stream, end="" if self._tty else "\n")

    def close(self) -> None:
        if self._shown:
            write_or_drop("", self._stream)


def settings_of(options: argparse.Namespace) -> Settings:
    """Validate the options; raise SwarmError."""
    values = {name: value for name, value in vars(options).items() if name not in ("kubernetes", "image")}
    pull_secret = values.pop("pull_secret_file")
    if pull_secret:
        try:
            values["pull_secret"] = pull_secret.read_text().strip()
        except OSError as error:
            raise SwarmError(f"--pull-secret-file {pull_secret}: {error.strerror}") from None
    if values["template"]:
        from .hub import load_template

        values["template"] = load_template(values["template"])
    else:
        values["template"] = {}
    if given := [name for name in PROGRAMS if values[name]]:
        from .programs import validate

        for name in given:
            validate(f"--{name}", values[name])
    values["operators"] = tuple(filter(None, values["operators"].split(",")))
    values["thresholds"] = shares(values["thresholds"], "--threshold")
    values["download"] = tuple(filter(None, values["download"].split(",")))
    values["topology"] = shares(values["topology"], "--topology")
    values["part"] = part_of(values["part"])
    values["failures"] = shares(values["failures"], "--failures")
    values["hardware"] = shares(values["hardware"], "--hardware")
    return Settings(
        **values,
        agent_token=os.environ.get("PULL_SECRET_TOKEN", ""),
        user_token=os.environ.get("USER_AUTH_TOKEN", ""),
        bmc_password=os.environ.get("BMC_PASSWORD", ""),
    )


def merge(argv: list[str]) -> int:
    """Merge the reports of several machines into one."""
    top = argparse.ArgumentParser(prog="agentlab swarm merge", description=merge.__doc__)
    top.add_argument(
        "folders", nargs="+", type=Path, metavar="DIR|LOG", help="report directory of one machine, or log of one pod"
    )
    top.add_argument("--report", type=Path, required=True, metavar="DIR", help="directory of the merged report")
    options = top.parse_args(argv)
    from . import report

    try:
        reports = [report.load(folder) for folder in options.folders]
        report.writable(options.report)
        whole = report.merge_reports(reports)
        for path in report.save(whole, options.report):
            write_line(str(path))
        return conclude(whole)
    except SwarmError as error:
        write_or_drop(f"agentlab swarm merge: {error}", sys.stderr)
        return Exit.USAGE


def pack(argv: list[str]) -> int:
    """Write the swarm as one executable file."""
    top = argparse.ArgumentParser(prog="agentlab swarm pack", description=pack.__doc__)
    top.add_argument("file", type=Path)
    from .bundle import write

    path = top.parse_args(argv).file
    try:
        write(path)
    except (SwarmError, OSError) as error:
        wanted = "must be a file in an existing directory"
        text = f"{path}: {problem(error)}; {wanted}" if isinstance(error, OSError) else str(error)
        write_or_drop(f"agentlab swarm pack: {text}", sys.stderr)
        return Exit.USAGE
    return Exit.OK


def reason(cluster: dict[str, Any]) -> str:
    """Return why a cluster was not installed: a program that ended, the reason of its first failing host, or its own."""
    from .page import reason_of

    return (
        cluster.get("program")
        or next((f"{host['name']}: {reason_of(host)}" for host in cluster["hosts"] if reason_of(host)), "")
        or reason_of(cluster)
    )


def conclude(report: dict[str, Any]) -> int:
    """Print the result, in one line unless something was left behind. Return the exit code, see `main`."""
    used, ends = report["resources"], report["ends"]
    for cluster in report["failed"]:
        injected = sorted({host["simulated"] for host in cluster["hosts"] if host["simulated"]})
        write_or_drop(
            f"agentlab swarm: {cluster['cluster']}: {cluster['end']}, {cluster['status']}"
            + (f"; injected: {', '.join(injected)}" if injected else "")
            + (f": {why}" if (why := reason(cluster)) else ""),
            sys.stderr,
        )
    others = {name: count for name, count in ends.items() if name != "installed"}
    gave_up = sum(report["gave_up"].values())
    for name in report["left"]:
        write_or_drop(f"agentlab swarm: could not be removed: {name}", sys.stderr)
    found = problems(report)
    for line in exceeded_thresholds(report):
        write_or_drop(f"agentlab swarm: {line}", sys.stderr)
    result(
        report,
        f"{'stopped; ' if report['stopped'] else ''}{ends.get('installed', 0)} of {report['clusters']} clusters installed"
        + "".join(f", {count} {name}" for name, count in others.items())
        + (f", {gave_up} hosts gave up" if gave_up else "")
        + f"; {report['seconds']} s; poll delay p99 {report['poll_lateness']['p99_ms']} ms; {used['kib_per_agent']} KiB per agent,  "
        f"{used['agents_per_core']} agents per core, {used['agents_per_gib']} per GiB; {sum(report['errors'].values())} errors",
    )
    if report["stopped"]:
        return Exit.INTERRUPTED
    return Exit.FAILED if found else Exit.OK


def result(report: dict[str, Any], text: str) -> None:
    """Print a line of the result; the exit code of a run that was stopped does not depend on its reader."""
    if report["stopped"]:
        write_or_drop(text, sys.stdout)
    else:
        write_line(text)


def main(argv: list[str] | None = None) -> int:
    """Return an exit code.

    0: every cluster was installed (or may be unfinished when the time is over); 1: some were not, or could not be removed;
    2: wrong arguments, or the service cannot be used; 130: it was stopped.
    """
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["merge"]:
        return merge(words[1:])
    if words[:1] == ["pack"]:
        return pack(words[1:])
    options = parser().parse_args(words)
    progress = Progress(sys.stderr)
    try:
        settings = settings_of(options)
        if options.kubernetes or options.image:
            from . import kubernetes

            objects = kubernetes.manifests(options, parser().parse_args([]), settings)
            write_line(kubernetes.text(objects, settings.name, options.kubernetes), end="")
            return Exit.OK
        from .report import line, save, writable
        from .start import start  # aiohttp, which --help does not need

        folder = None if settings.report == PRINTED else settings.report
        if folder:
            writable(folder)
        written: list[Path] = []
        try:
            report = start(settings, progress, lambda report: written.extend(save(report, folder) if folder else ()))
        finally:
            progress.close()
        for path in written:
            result(report, str(path))
        if settings.report == PRINTED:
            result(report, line(report))
        return conclude(report)
    except (SwarmError, ImportError, OSError) as error:  # the error names a missing library
        write_or_drop(f"agentlab swarm: {error}", sys.stderr)
        return Exit.INTERRUPTED if isinstance(error, StoppedRun) else Exit.USAGE


if __name__ == "__main__":
    raise SystemExit(main())
