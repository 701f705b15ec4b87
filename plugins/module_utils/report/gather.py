"""Collects diagnostics of a run: from every host, the service, the OpenShift API, libvirt, BMC and consoles.

Everything that is written but pictures is redacted, and only its owner may read it: files are 0600 in folders of 0700. Every source is
queried at once with a time limit; one that does not answer is noted in the summary and does not delay the others.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

from ..assisted import watcher
from ..assisted.client import AssistedClient
from ..cluster.client import ClusterClient
from ..documents import load_json, read_file
from ..errors import AssistedError, ClusterError, LabError
from ..installer.cluster_record import failure
from ..plan import hypervisors, outside, phases, short
from ..plan.hypervisor_model import Hypervisor
from ..plan.machines import Node, interfaces
from ..plan.model import Plan
from ..redact import redact_stream
from ..sandbox import faults, services
from ..screen import picture
from ..state import recording
from ..vocabulary import RunFile
from . import facts, hypervisor_logs
from .causes import Cause, causes
from .evidence import Facts
from .host_logs import collect
from .probe import consoles, refusal, rendezvous_ip, units
from .secrets import of_run
from .ssh import LOGIN_SECONDS, run, ssh

SSH_LIMIT = 240.0


@dataclass
class GatherResult:
    """files: relative path -> description; missing: source -> why it is missing; causes: the first cause first.

    directory: of the report, to which the paths in `files` are relative. An installation that is not a lab's has no
    causes.
    """

    directory: Path
    files: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    causes: list[Cause] = field(default_factory=list)


class ExternalCluster(NamedTuple):
    """An installation that is not a lab's: addresses of its hosts by name, and the private key for user core on them.

    hosts: host name -> IP address; rendezvous_ip: where the assisted service answers; key: None for the key of the run
    directory.
    """

    hosts: Mapping[str, str]
    rendezvous_ip: str
    key: Path | None = None


class Gatherer:
    """One collection into `directory`; `auth` is the service's authentication: (token, scheme).

    of: the plan; for an installation that is not a lab's, what there is instead. Only a lab's has causes, libvirt, consoles and
    services.
    """

    def __init__(
        self, of: Plan | ExternalCluster, run_dir: Path, directory: Path, auth: tuple[str | None, str]
    ) -> None:
        self.run_dir, self.out, self.auth = run_dir, GatherResult(directory), auth
        self.elsewhere = of if isinstance(of, ExternalCluster) else None
        self.plan = plan = short.plan({"cluster": "none"}) if isinstance(of, ExternalCluster) else of
        address = of.rendezvous_ip if isinstance(of, ExternalCluster) else rendezvous_ip(plan, run_dir)
        self.services = Path(plan["services"]["directory"])
        self.facts = Facts(plan=phases.present(plan, run_dir), rendezvous_ip=address, run_dir=run_dir.absolute())
        self.injected: list[str] = []
        self.other_domains: dict[str, str] = {}
        self.secrets = of_run(run_dir)
        self.tape = (
            recording.Recorder(run_dir / recording.FILE, self.secrets) if not self.elsewhere else recording.no_tape
        )

    def run(self) -> GatherResult:
        """Collect everything, determine the causes, and write `summary.txt`.

        Sources are queried in parallel; one that fails is in `missing` with its error. Raises `OSError` when the report
        directory cannot be written.
        """
        private(self.out.directory)
        jobs: list[tuple[str, Callable[[], None]]] = [
            ("run directory", self._run_dir),
            ("openshift-install", self._installer) if self.facts.ipi else ("assisted-service", self._service),
            ("OpenShift API", self._kube),
        ]
        if self.elsewhere:
            jobs += [(f"host {name}", partial(self._logs, name, at)) for name, at in self.elsewhere.hosts.items()]
        else:
            jobs += [("services", self._services), *self._hypervisors()]
            jobs += [(f"host {n['name']}", partial(self._host, n)) for n in self.plan["nodes"]]
            jobs += [
                (f"machine {one['name']}", partial(self._logs, one["name"], outside.address_of(one)))
                for one in outside.machines(self.plan)
                if one["image"] == outside.LAB
            ]
            for node in self.plan["nodes"]:
                if node.get("bare_metal"):
                    self.out.missing[f"console {node['name']}"] = (
                        f"an existing machine: {node['bmc']['address']} has its console"
                    )
        with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
            for (name, __), result in zip(jobs, pool.map(lambda job: _reason(job[1]), jobs), strict=True):
                if result:
                    self.out.missing[name] = result
        if not self.elsewhere:
            self._add_fetched()
            self.out.causes = causes(self.facts)
            facts.record(self.tape, self.facts, self.out.causes, self.plan)
            self._recording()
        self._write("summary.txt", self.summary())
        give_to_owner(self.out.directory)
        return self.out

    def summary(self) -> str:
        """Return the summary: the first cause, the others, then the list of files.

        It has the next step of each cause, the faults of the profile with those that were injected, and the sources
        that are missing with their errors. Without any cause, or without a plan, a sentence replaces them.
        """
        lines = []
        for number, cause in enumerate(self.out.causes):
            lines += [("First cause: " if number == 0 else "     Also: ") + cause.text, f"     Next: {cause.step}"]
        if self.elsewhere:
            lines = ["Causes are determined with a plan only."]
        elif not lines:
            lines = ["No cause found: every source that answered is healthy."]
        if self.plan["faults"]:
            requested = (
                ", ".join(f"{key}: {value}" for key, value in fault.items() if value is not None)
                for fault in self.plan["faults"]
            )
            lines += ["", "Faults of the profile:", *(f"     {line}" for line in (*requested, *self.injected))]
        lines += [
            "",
            *(f"not gathered: {name}: {why}" for name, why in sorted(self.out.missing.items())),
            *sorted(self.out.files),
        ]
        return "\n".join(lines) + "\n"

    def _write(self, name: str, text: str) -> None:
        self._copy(name, io.BytesIO(text.encode(errors="replace")))

    def _copy(self, name: str, source: IO[bytes]) -> None:
        if name.startswith(f"{hypervisor_logs.SCREEN}/"):
            # Another hypervisor may send anything under the name of a picture.
            png = picture.to_png(picture.read(source.read(picture.MOST_BYTES)))
            with new_part(self.out.directory, name) as target:
                target.write(png)
        else:
            copy_redacted(source, self.out.directory, name, self.secrets)
        self.out.files.append(name)

    def _copy_file(self, name: str, path: Path) -> None:
        with path.open("rb") as source:
            self._copy(name, source)

    def _json(self, name: str, what: object) -> None:
        self._write(name, json.dumps(what, indent=1, sort_keys=True))

    def _run_dir(self) -> None:
        for pattern in (
            "*.yaml",
            "*.yml",
            RunFile.STATE,
            RunFile.RENDEZVOUS_IP,
            RunFile.INSTALLER_LOG,
            "cluster-manifests/*",
            "mirror/*",
            "openshift/*",
            "logs/*.log",
            "logs/*.jsonl",
        ):
            for path in sorted(self.run_dir.glob(pattern)):
                if path.name != Path(recording.FILE).name:
                    self._copy_file(f"run/{path.relative_to(self.run_dir)}", path)

    def _recording(self) -> None:
        """Copy the recording, which has got its last lines."""
        path = self.run_dir / recording.FILE
        if reason := _reason(lambda: self._copy_file(f"run/{recording.FILE}", path)):
            self.out.missing["recording"] = reason

    def _hypervisors(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """Yield a job for each source on the hypervisor where this process is, and one for each other hypervisor."""
        first = self.plan["hypervisor"]
        if first["kind"] == "ssh":
            yield f"hypervisor {hypervisors.FIRST}", partial(self._fetched, first)
        else:
            yield "libvirt", self._libvirt
            yield "logs of QEMU", lambda: hypervisor_logs.qemu(self.plan, self._copy)
            yield "consoles", self._consoles
            yield "screens", lambda: hypervisor_logs.screens(self.plan, self._copy)
        for one in self.plan.get("hypervisors") or []:
            yield f"hypervisor {hypervisors.name_of(one)}", partial(self._fetched, one)

    def _libvirt(self) -> None:
        self.facts.domains = hypervisor_logs.libvirt(self.plan, self._copy)

    def _consoles(self) -> None:
        hypervisor_logs.consoles(self.plan, self._copy)
        self.facts.consoles = consoles(self.plan)

    def _fetched(self, hypervisor: Hypervisor) -> None:
        """Keep what the role has fetched from another hypervisor, and remove the archive."""
        name = hypervisors.name_of(hypervisor)
        archive = hypervisor_logs.archive_path(self.run_dir, name)
        if not archive.exists():
            raise OSError(
                f"nothing was fetched from {hypervisor['host'] or name}: {hypervisor['state_dir']} there has consoles and logs"
            )
        try:
            note = hypervisor_logs.unpack(archive, self._copy)
        finally:
            archive.unlink()
        self.out.missing.update({f"hypervisor {name}, {source}": why for source, why in note.missing.items()})
        if name == hypervisors.FIRST:
            self.facts.domains = note.domains
        else:
            self.other_domains.update(note.domains or {})

    def _add_fetched(self) -> None:
        """Add the machines of other hypervisors to the facts."""
        if self.facts.domains is not None:
            self.facts.domains.update(self.other_domains)
        there = consoles(self.plan, self.out.directory / "console")
        for domain, text in there.items():
            if f"console/{domain}.log" in self.out.files:  # and not of a collection before this one
                self.facts.consoles.setdefault(domain, text)

    def _services(self) -> None:
        self.facts.services = services.errors(self.plan)
        if self.plan["hypervisor"]["kind"] != "ssh":
            hypervisor_logs.services(self.plan, self._copy)
        log = faults.log(self.plan)
        self.injected = (
            [line for line in log.read_text().splitlines() if " not yet: " not in line] if log.exists() else []
        )

    def _service(self) -> None:
        """Read from the service, or if it is gone, from the wait's last record."""
        token, scheme = self.auth
        client = AssistedClient(self.facts.rendezvous_ip, token, scheme, tape=self.tape)
        try:
            clusters, envs = client.clusters(), client.infra_envs()
            cluster = client.cluster(clusters[0]["id"]) if clusters else None
            events = client.events(envs[0]["id"]) if envs else []
        except AssistedError as error:
            self.facts.refusal = watcher.refusal(error)
            paths = [self.run_dir / name for name in (RunFile.LAST_CLUSTER, RunFile.LAST_EVENTS)]
            if not paths[0].exists():
                raise RuntimeError(str(error)) from error
            cluster, events = (load_json(read_file(path), name=path.name) for path in paths)
        self.facts.cluster, self.facts.events = cluster, events
        self._json("assisted/cluster.json", cluster)
        self._json("assisted/events.json", events)

    def _installer(self) -> None:
        self.facts.installer = failure(self.run_dir)

    def _kube(self) -> None:
        kube = ClusterClient(self.run_dir / RunFile.KUBECONFIG, tape=self.tape)
        nodes = kube.nodes()
        self._json("cluster/nodes.json", nodes)
        self._json("cluster/clusterversion.json", kube.cluster_version())
        operators = kube.cluster_operators()
        self._json("cluster/clusteroperators.json", operators)
        pods = kube.pods()
        self._json("cluster/pods.json", pods)
        self.facts.nodes, self.facts.operators, self.facts.pods = nodes, operators, pods

    def _host(self, node: Node) -> None:
        address = next(a["ip"] for nic in interfaces(node) for a in nic["addresses"])
        enter = ssh(self.run_dir, address)
        try:
            run(*enter, "true", limit=LOGIN_SECONDS)
        except (subprocess.SubprocessError, OSError):
            self.facts.reachable[node["name"]] = False
            raise
        self.facts.reachable[node["name"]] = True
        asks = {"agent": partial(self._refusal, node["name"], address)}
        if address == self.facts.rendezvous_ip:
            asks["units"] = partial(self._units, address)
        for what, ask in asks.items():
            if why := _reason(ask):
                self.out.missing[f"{what} of {node['name']}"] = why
        self._logs(node["name"], address)

    def _units(self, address: str) -> None:
        """Units of the rendezvous host; where it is too busy to answer, those that the wait found last."""
        try:
            self.facts.node_zero.update(units(self.run_dir, address, LOGIN_SECONDS))
        except subprocess.SubprocessError:
            self.facts.node_zero.update(facts.recorded_units(self.run_dir))
            raise

    def _refusal(self, name: str, address: str) -> None:
        if message := refusal(self.run_dir, address):
            self.facts.refused[name] = message

    def _logs(self, host: str, address: str) -> None:
        enter = ssh(self.run_dir, address, key=self.elsewhere.key if self.elsewhere else None)
        command = "sudo /usr/local/bin/agent-gather -O 2>/dev/null || sudo journalctl -b --no-pager"
        collect(
            [*enter, command], self.out.directory, SSH_LIMIT, lambda name, log: self._copy(f"hosts/{host}/{name}", log)
        )


def copy_redacted(source: IO[bytes], directory: Path, name: str, secrets: Iterable[str]) -> None:
    """Write the content of `source` to the file `name` of a report, in pieces: a console or a journal may have a GiB.

    directory: of the report; name: relative path in it, whose folders are made; secrets: literals to hide, in addition
    to what looks like a secret. The file (0600) is complete or not there at all. Raises `OSError`.
    """
    with new_part(directory, name) as target:
        redact_stream(source, target, secrets)


@contextlib.contextmanager
def new_part(directory: Path, name: str) -> Iterator[BinaryIO]:
    """Open the file `name` of a report, as `copy_redacted` writes it. Raises `OSError`."""
    path = directory / name
    for folder in reversed(Path(name).parents):
        private(directory / folder)
    part = path.with_name(f".{path.name}.part")
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as target:
        yield target
    part.replace(path)


def private(folder: Path) -> None:
    """Make a folder of a report.

    Missing parents are made, too; only the folder itself gets mode 0700, also when it exists. Raises `OSError`.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.chmod(0o700)


def give_to_owner(directory: Path) -> None:
    """Give what root has written in a report to the owner of the run directory, who runs agentlab.

    directory: of the report; its parent is the run directory. Without root, or when root owns the run directory,
    nothing changes.
    """
    owner = directory.parent.stat()
    if os.geteuid() or not owner.st_uid:
        return
    for path in (directory, *directory.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _reason(job: Callable[[], None]) -> str:
    """Run a job; return the error that stopped it, or an empty string."""
    try:
        job()
    except subprocess.CalledProcessError as error:
        return (
            error.stderr if isinstance(error.stderr, str) else error.stderr.decode(errors="replace")
        ).strip() or str(error)
    except (subprocess.SubprocessError, OSError, RuntimeError, ClusterError, LabError, ValueError) as error:
        return str(error)
    return ""
