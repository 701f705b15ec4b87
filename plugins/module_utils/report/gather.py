"""Collects what explains a run: from every host, the service, the OpenShift API, libvirt, BMC and consoles.

Everything that is written is redacted. Every source is asked at once and each has a time limit; one that does not
answer is noted in the summary and holds nobody up.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..assisted.client import AssistedClient, AssistedError
from ..cluster.client import ClusterClient, ClusterError
from .causes import Cause, Facts, causes
from .redact import redact

SSH_LIMIT = 240.0
CONSOLE_TAIL = 65536
NODE_ZERO_UNITS = ("assisted-service-pod", "assisted-service-db", "assisted-service", "agent-register-cluster",
                   "agent-register-infraenv", "apply-host-config", "start-cluster-installation")
SSH = ("ssh", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=10",
       "-o", "LogLevel=ERROR", "-o", "BatchMode=yes")


@dataclass
class Gathered:
    """files: relative path -> what it holds; missing: source -> why it gave nothing; causes: the first cause first."""

    directory: Path
    files: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    causes: list[Cause] = field(default_factory=list)


class Gatherer:
    """One collection into `directory`; `auth` is how the service wants to be asked: (token, scheme)."""

    def __init__(self, plan: dict[str, Any], run_dir: Path, directory: Path, auth: tuple[str | None, str],
                 services: dict[str, str] | None = None) -> None:
        self.plan, self.run_dir, self.out, self.auth = plan, run_dir, Gathered(directory), auth
        self.state_dir = Path(plan["hypervisor"]["state_dir"])
        self.facts = Facts(plan=plan, services=services or {})
        self.secrets = [p.read_text().strip() for p in (run_dir / "auth").glob("kubeadmin-password")]

    def run(self) -> Gathered:
        """Collects all, works out the causes, and writes `summary.txt`."""
        self.out.directory.mkdir(parents=True, exist_ok=True)
        jobs: list[tuple[str, Callable[[], None]]] = [
            ("run directory", self._run_dir), ("libvirt", self._libvirt), ("daemons", self._daemons),
            ("consoles", self._consoles), ("assisted-service", self._service), ("OpenShift API", self._kube)]
        jobs += [(f"host {n['name']}", partial(self._host, n)) for n in self.plan["nodes"]]
        with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
            for (name, __), result in zip(jobs, pool.map(lambda job: _reason(job[1]), jobs), strict=True):
                if result:
                    self.out.missing[name] = result
        self.out.causes = causes(self.facts)
        self._write("summary.txt", self.summary())
        return self.out

    def summary(self) -> str:
        """The first cause on top, then the others, then what there is to read."""
        lines = []
        for number, cause in enumerate(self.out.causes):
            lines += [("First cause: " if number == 0 else "     Also: ") + cause.text, f"     Next: {cause.step}"]
        if not lines:
            lines = ["No cause found: everything that could be asked is as it should be."]
        lines += ["", *(f"not gathered: {name}: {why}" for name, why in sorted(self.out.missing.items())), *sorted(self.out.files)]
        return "\n".join(lines) + "\n"

    def _write(self, name: str, text: str) -> None:
        path = self.out.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_text(redact(text, self.secrets))
        part.replace(path)
        self.out.files.append(name)

    def _json(self, name: str, what: Any) -> None:
        self._write(name, json.dumps(what, indent=1, sort_keys=True))

    def _run_dir(self) -> None:
        for pattern in ("*.yaml", "*.yml", "state.json", "rendezvousIP", ".openshift_install.log", "cluster-manifests/*",
                        "mirror/*", "openshift/*", "logs/*.log"):
            for path in sorted(self.run_dir.glob(pattern)):
                self._write(f"run/{path.relative_to(self.run_dir)}", path.read_text(errors="replace"))

    def _libvirt(self) -> None:
        states = {}
        for node in self.plan["nodes"]:
            name = node["domain"]
            try:
                states[name] = _run("virsh", "-c", "qemu:///system", "domstate", name).strip()
                self._write(f"libvirt/{name}.xml", _run("virsh", "-c", "qemu:///system", "dumpxml", name))
            except subprocess.CalledProcessError as error:
                if "failed to get domain" not in error.stderr:
                    raise
        self.facts.domains = states
        for network in self.plan["networks"]:
            for command, suffix in (("net-dumpxml", "xml"), ("net-dhcp-leases", "leases")):
                self._write(f"libvirt/{network['name']}.{suffix}", _run("virsh", "-c", "qemu:///system", command, network["name"]))

    def _daemons(self) -> None:
        for path in sorted({*self.state_dir.glob("*.log"), *self.state_dir.glob("*/*.log")} - {*self.state_dir.glob("console/*")}):
            self._write(f"daemons/{path.name}", path.read_text(errors="replace"))

    def _consoles(self) -> None:
        tails = {}
        for node in self.plan["nodes"]:
            path = self.state_dir / "console" / f"{node['domain']}.log"
            if path.exists():
                text = path.read_text(errors="replace")
                self._write(f"console/{path.name}", text)
                tails[node["domain"]] = text[-CONSOLE_TAIL:]
        self.facts.consoles = tails

    def _service(self) -> None:
        """From the service itself, or, when it is gone, from what the wait recorded last."""
        token, scheme = self.auth
        client = AssistedClient(self.plan["rendezvous_ip"], token, scheme)
        try:
            clusters, envs = client.clusters(), client.infra_envs()
            cluster = client.cluster(clusters[0]["id"]) if clusters else None
            events = client.events(envs[0]["id"]) if envs else []
        except AssistedError as error:
            record = self.run_dir / "logs"
            if not (record / "cluster.json").exists():
                raise RuntimeError(str(error)) from error
            cluster, events = (json.loads((record / f"{name}.json").read_text()) for name in ("cluster", "events"))
        self.facts.cluster, self.facts.events = cluster, events
        self._json("assisted/cluster.json", cluster)
        self._json("assisted/events.json", events)

    def _kube(self) -> None:
        kube = ClusterClient(self.run_dir / "auth" / "kubeconfig")
        nodes = kube.nodes()
        self._json("cluster/nodes.json", nodes)
        self._json("cluster/clusterversion.json", kube.cluster_version())
        operators = kube.cluster_operators()
        self._json("cluster/clusteroperators.json", operators)
        self.facts.nodes, self.facts.operators = nodes, operators

    def _host(self, node: dict[str, Any]) -> None:
        address = next(a["ip"] for nic in node["nics"] for a in nic["addresses"])
        ssh = (*SSH, "-i", str(self.run_dir / "ssh" / "id_ecdsa"), f"core@{address}")
        try:
            _run(*ssh, "true", limit=30)
        except (subprocess.SubprocessError, OSError):
            self.facts.reachable[node["name"]] = False
            raise
        self.facts.reachable[node["name"]] = True
        if address == self.plan["rendezvous_ip"]:
            states = _run(*ssh, f"systemctl is-active {' '.join(NODE_ZERO_UNITS)}; true", limit=60).split()
            self.facts.node_zero.update(zip((f"{u}.service" for u in NODE_ZERO_UNITS), states, strict=False))
        archive = subprocess.run([*ssh, "sudo /usr/local/bin/agent-gather -O 2>/dev/null || sudo journalctl -b --no-pager"],
                                 capture_output=True, timeout=SSH_LIMIT, check=True).stdout
        if not archive.startswith(b"\xfd7zXZ"):
            self._write(f"hosts/{node['name']}/journal.log", archive.decode(errors="replace"))
            return
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:xz") as tar:
            for member in tar:
                handle = tar.extractfile(member) if member.isfile() else None
                if handle:
                    name = "/".join(part for part in Path(member.name).parts if part not in ("/", ".."))
                    self._write(f"hosts/{node['name']}/{name}", handle.read().decode(errors="replace"))


def _run(*command: str, limit: float = 30) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True).stdout


def _reason(job: Callable[[], None]) -> str:
    """Runs a job; the text of what kept it from finishing, or nothing."""
    try:
        job()
    except subprocess.CalledProcessError as error:
        return (error.stderr if isinstance(error.stderr, str) else error.stderr.decode(errors="replace")).strip() or str(error)
    except (subprocess.SubprocessError, OSError, RuntimeError, ClusterError, tarfile.TarError) as error:
        return str(error)
    return ""
