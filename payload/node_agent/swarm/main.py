"""`agentlab swarm`: the command line of the swarm."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, TextIO

from .hardware import PROFILES
from .settings import FAILURES, TOPOLOGIES, Settings, SwarmError, part_of, shares

LINE_SECONDS = 10.0


def parser() -> argparse.ArgumentParser:
    defaults = {entry.name: entry.default for entry in fields(Settings)}
    top = argparse.ArgumentParser(
        prog="agentlab swarm",
        description="Load an assisted service with no-op hosts, from discovery until every cluster is installed.",
        epilog="topologies: " + "; ".join(f"{name}: {shape.text}" for name, shape in TOPOLOGIES.items())
        + ". failures: " + "; ".join(f"{name}: {text}" for name, text in FAILURES.items())
        + f". hardware: {', '.join(PROFILES)}. Tokens are read from PULL_SECRET_TOKEN and USER_AUTH_TOKEN. "
        "Also: agentlab swarm merge DIR... --report DIR makes one report of several machines' reports; "
        "agentlab swarm pack FILE writes the swarm as one executable file, for machines with Python, aiohttp and cryptography.",
    )  # fmt: skip

    def number(flag: str, text: str, kind: type = float) -> None:
        name = flag.removeprefix("--").replace("-", "_")
        top.add_argument(flag, type=kind, default=defaults[name], metavar="N", help=f"{text} (default {defaults[name]})")

    def word(flag: str, text: str) -> None:
        name = flag.removeprefix("--").replace("-", "_")
        shown = f" (default {defaults[name]})" if defaults[name] else ""
        top.add_argument(flag, default=defaults[name], help=f"{text}{shown}")

    top.add_argument("--url", default="", help="of the assisted service, as http://192.168.111.20:8090; on a hub it is known")
    top.add_argument("--kubeconfig", type=Path, metavar="FILE", help="of a hub: the clusters are its custom resources (kube-api mode)")
    top.add_argument("--template", type=Path, metavar="FILE", help="YAML documents that are laid over the swarm's resources of their kind")
    number("--clusters", "how many clusters to register", int)
    number("--hosts", "hosts per cluster; 0: what the topology needs; a single node is always one", int)
    top.add_argument("--topology", default="compact", metavar="NAME=SHARE,...", help="which share of the clusters is what (default compact)")
    top.add_argument("--part", default="1/1", metavar="NUMBER/COUNT", help="carry only this part of the swarm; other machines carry the others")
    top.add_argument("--discover", action="store_true", help="take the clusters and infra-envs that are there; register none")
    word("--name", "name of the clusters, before their number")
    word("--base-domain", "of the clusters")
    word("--openshift-version", "of the clusters")
    word("--release-image", "of the clusters; without it the service's for the version")
    top.add_argument("--operators", default="", metavar="NAME,...", help="OLM operators of each cluster, as lso,metallb (REST mode)")
    word("--agent-version", "image that the agents say they are; without it the service's own")
    top.add_argument("--pull-secret-file", type=Path, help="pull secret for registering clusters")
    top.add_argument("--insecure", action="store_true", help="do not verify the service's certificate")
    word("--cacert", "authority of the service's certificate, PEM")
    number("--ramp-up", "seconds over which the hosts are started")
    number("--think-time", "factor on the time that steps and stages take on a real host; 0: none")
    number("--jitter", "share by which those times vary")
    number("--network-delay", "seconds before each request")
    number("--network-jitter", "seconds, at random, on top")
    top.add_argument("--failures", default="", metavar="KIND=SHARE,...", help="which share of the hosts fails, and how")
    top.add_argument("--hardware", default="vm", metavar="PROFILE=WEIGHT,...", help="what the hosts are made of (default vm)")
    number("--watch", "seconds between looks at each cluster")
    number("--controller-poll", "seconds between rounds of each cluster's controller")
    number("--installer-poll", "seconds between an installer's looks at others")
    number("--register-interval", "seconds between tries to register")
    number("--poll-limit", "poll at least every so many seconds, whatever the service asks for; 0: as it asks")
    number("--write-reports", "progress reports while the disk is written", int)
    number("--logs-kib", "size of a host's log archive", int)
    top.add_argument("--no-install", dest="install", action="store_false", help="do not start the installation of ready clusters")
    top.add_argument("--keep", action="store_true", help="do not delete what was registered")
    number("--duration", "end after so many seconds; 0: when every cluster is installed or has failed")
    number("--stall", "give up a cluster of which nothing changes for so many seconds")
    number("--connections", "to the service, at most", int)
    number("--seed", "of everything random that must be the same again", int)
    top.add_argument("--report", type=Path, metavar="DIR", help="write report.json, .html and CSV files there")
    return top


class Progress:
    """One line that is rewritten on a terminal; a line every ten seconds elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._tty, self._last = stream, stream.isatty(), -LINE_SECONDS

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
        self._stream.write(f"\r\x1b[K{line}" if self._tty else f"{line}\n")
        self._stream.flush()

    def close(self) -> None:
        if self._tty:
            self._stream.write("\n")


def settings_of(options: argparse.Namespace) -> Settings:
    """SwarmError: an option makes no sense."""
    values = vars(options)
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
    values["operators"] = tuple(filter(None, values["operators"].split(",")))
    values["topology"] = shares(values["topology"], "--topology")
    values["part"] = part_of(values["part"])
    values["failures"] = shares(values["failures"], "--failures")
    values["hardware"] = shares(values["hardware"], "--hardware")
    return Settings(
        **values,
        agent_token=os.environ.get("PULL_SECRET_TOKEN", ""),
        user_token=os.environ.get("USER_AUTH_TOKEN", ""),
    )


def merge(argv: list[str]) -> int:
    """`merge`: one report of several machines' reports."""
    top = argparse.ArgumentParser(prog="agentlab swarm merge", description=merge.__doc__)
    top.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a --report of one machine")
    top.add_argument("--report", type=Path, required=True, metavar="DIR", help="where to write the report of all")
    options = top.parse_args(argv)
    from . import report

    try:
        whole = report.merged([report.load(folder) for folder in options.folders])
    except SwarmError as error:
        print(f"agentlab swarm merge: {error}", file=sys.stderr)
        return 2
    for path in report.save(whole, options.report):
        print(path)
    return conclude(whole)


def pack(argv: list[str]) -> int:
    """`pack`: the swarm as one executable file."""
    top = argparse.ArgumentParser(prog="agentlab swarm pack", description=pack.__doc__)
    top.add_argument("file", type=Path)
    from .bundle import write

    write(top.parse_args(argv).file)
    return 0


def conclude(report: dict[str, Any]) -> int:
    """Say in one line what came of it. 0: every cluster was installed; 1: some were not."""
    used, ends = report["resources"], report["ends"]
    others = {name: count for name, count in ends.items() if name != "installed"}
    print(
        f"{ends.get('installed', 0)} clusters installed, others: {others or 'none'}; {report['seconds']} s; "
        f"polls late by p99 {report['poll_lateness']['p99_ms']} ms; {used['kib_per_agent']} KiB an agent, "
        f"{used['agents_per_core']} agents per core, {used['agents_per_gib']} per GiB; {sum(report['errors'].values())} errors"
    )
    return 1 if others else 0


def main(argv: list[str] | None = None) -> int:
    """0: every cluster was installed (or the time that was asked for is over); 1: some were not; 2: it could not begin."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["merge"]:
        return merge(words[1:])
    if words[:1] == ["pack"]:
        return pack(words[1:])
    options = parser().parse_args(words)
    progress = Progress(sys.stderr)
    try:
        settings = settings_of(options)
        from .driver import start  # aiohttp, which --help does not need

        report = start(settings, progress)
    except (SwarmError, ImportError) as error:  # a library that this machine has not is named by its error
        print(f"agentlab swarm: {error}", file=sys.stderr)
        return 2
    finally:
        progress.close()
    if settings.report:
        from .report import save

        for path in save(report, settings.report):
            print(path)
    return conclude(report)


if __name__ == "__main__":
    raise SystemExit(main())
