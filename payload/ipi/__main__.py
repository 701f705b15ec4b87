"""Simulator of `openshift-install` for installer-provisioned infrastructure of the lab payload.

`create manifests`, `create cluster`, `wait-for bootstrap-complete`, `wait-for install-complete`, `destroy bootstrap` and `gather
bootstrap`, with upstream's messages and exit codes. Ironic is a real one; the cluster that it provisions is the simulated one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tarfile
import threading
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

from ...plugins.module_utils import signals
from ...plugins.module_utils.cluster.client import ClusterClient
from ...plugins.module_utils.cluster.watcher import InstallFailed, InstallWatcher, go_duration
from ...plugins.module_utils.errors import AgentlabError, ClusterError
from ...plugins.module_utils.files import usual_umask
from ...plugins.module_utils.log import LEVELS, Log
from ...plugins.module_utils.state import write_atomic
from ...plugins.module_utils.vocabulary import Exit
from ...plugins.module_utils.waitfor import report_complete
from ..tools import openshift_install as tool
from . import bootstrap, configs, lab, masters

API_SECONDS, BOOTSTRAP_SECONDS = 1200.0, 3600.0
"""Limits of openshift-install (cmd/openshift-install/create.go), on bare metal."""
POLL = 2.0
CONFIGS = "configs.json"
APPROVER = "the simulator of openshift-install, as cluster-machine-approver does"


class StepFailed(Exception):
    """A step failed; `code` is what the program ends with."""

    def __init__(self, code: Exit, text: str) -> None:
        super().__init__(text)
        self.code = code


class Installer:
    """One run of the program for the run directory `folder`; its messages go to `log`."""

    def __init__(self, folder: Path, log: Log) -> None:
        self.folder, self.log = folder, log
        self.lab = lab.load(folder)

    def create_manifests(self) -> None:
        """Turn install-config.yaml into manifests."""
        self.log.info("Consuming Install Config from target directory")
        tool.create_manifests(self.folder, {})

    def create_cluster(self) -> None:
        """Create the cluster, and wait until it is complete."""
        try:
            made = configs.make(self.lab)
        except (ValueError, OSError) as error:
            raise StepFailed(Exit.INSTALL_CONFIG, f"failed to create install config: {error}") from error
        self.lab.keep(CONFIGS, made)
        ident = str(uuid.uuid4())
        name = self.lab.plan["cluster"]["name"]
        facts = {"clusterName": name, "clusterID": ident, "infraID": f"{name}-{ident[:5]}"}
        write_atomic(self.folder / "metadata.json", json.dumps(facts), 0o640)
        self.bootstrap_complete()
        self.destroy_bootstrap()
        self.install_complete()

    def bootstrap_complete(self) -> None:
        """Provision what is left of the masters, and wait until one of them leads."""
        made = self.lab.kept_value(CONFIGS, {})
        if not made:
            raise StepFailed(Exit.FAILED, f"{self.folder} has no cluster: create it first")
        nodes = masters.Masters(self.lab, made[configs.MASTER], self.log)
        kube = ClusterClient(self.folder / RunFile.KUBECONFIG)
        if not nodes.unwritten and _complete(kube):
            return
        self.log.info("Creating infrastructure resources...")
        with contextlib.ExitStack() as stack:
            try:
                bootstrap.create(self.lab, made[configs.BOOTSTRAP])
                if nodes.unwritten:
                    self.log.info("Starting Ironic, on behalf of the bootstrap machine")
                    nodes.start(stack.enter_context(masters.service(self.lab)))
            except (AgentlabError, ValueError, OSError) as error:
                raise StepFailed(
                    Exit.UNREACHABLE, f"failed to create cluster: failed to create bootstrap: {error}"
                ) from error
            self._wait("for the Kubernetes API at " + kube.server, API_SECONDS, kube.live, nodes)
            self.log.info(f"API {kube.get('/version').get('gitVersion', '')} up")
            self._wait("for bootstrapping to complete", BOOTSTRAP_SECONDS, lambda: not nodes.unwritten, nodes)
            self.log.info("  Baremetal control plane finished provisioning.")
            self._wait("for bootstrapping to complete", BOOTSTRAP_SECONDS, lambda: _complete(kube), nodes)

    def _wait(self, what: str, limit: float, true: Callable[[], bool], nodes: masters.Masters) -> None:
        until = datetime.fromtimestamp(time.time() + limit, UTC).strftime("%-I:%M%p UTC")
        self.log.info(f"Waiting up to {go_duration(limit)} (until {until}) {what}...")
        end = time.monotonic() + limit
        while not true():
            if nodes.failure:
                raise StepFailed(Exit.BOOTSTRAP, f"Bootstrap failed to complete: {nodes.failure}")
            if time.monotonic() > end:
                raise StepFailed(Exit.BOOTSTRAP, f"Bootstrap failed to complete: waited {go_duration(limit)} {what}")
            time.sleep(POLL)

    def destroy_bootstrap(self) -> None:
        """Remove the bootstrap machine."""
        self.log.info("Destroying the bootstrap resources...")
        bootstrap.destroy(self.lab)

    def install_complete(self) -> None:
        """Wait until the cluster is complete; meanwhile certificate requests of the last masters are approved."""
        kube = ClusterClient(self.folder / RunFile.KUBECONFIG)
        done = threading.Event()
        approver = threading.Thread(target=self._approve, args=(done,), daemon=True)
        approver.start()
        try:
            console = InstallWatcher(kube, self.log).run()
        except InstallFailed as error:
            raise StepFailed(error.exit_code, str(error)) from error
        finally:
            done.set()
        report_complete(self.folder, console, self.log, skip_password=False)

    def _approve(self, done: threading.Event) -> None:
        kube = ClusterClient(self.folder / RunFile.KUBECONFIG)
        while not done.wait(POLL):
            with contextlib.suppress(ClusterError):
                for request in kube.certificate_requests():
                    if not (request.get("status") or {}).get("conditions"):
                        kube.approve(request["metadata"]["name"], APPROVER)

    def gather_bootstrap(self) -> None:
        """Pack the consoles of bootstrap machine and masters, and Ironic's log."""
        self.log.info("Pulling debug logs from the bootstrap machine")
        path = self.folder / f"log-bundle-{datetime.now(UTC):%Y%m%d%H%M%S}.tar.gz"
        logs = [Path(self.lab.bootstrap["console"]), *(Path(node["console"]) for node in self.lab.masters)]
        with tarfile.open(path, "w:gz") as bundle:
            for log in [*logs, self.folder / RunFile.IRONIC_LOG]:
                if log.exists():
                    bundle.add(log, f"{path.name.removesuffix('.tar.gz')}/{log.name}")
        self.log.info(f'Bootstrap gather logs captured here "{path}"')


def _complete(kube: ClusterClient) -> bool:
    with contextlib.suppress(ClusterError):
        return kube.bootstrap_status() == "complete"
    return False


def _bootstrap_complete(installer: Installer) -> None:
    installer.bootstrap_complete()
    installer.log.info("It is now safe to remove the bootstrap resources")


VERBS: dict[str, Callable[[Installer], None]] = {
    "create manifests": Installer.create_manifests,
    "create cluster": Installer.create_cluster,
    "wait-for bootstrap-complete": _bootstrap_complete,
    "wait-for install-complete": Installer.install_complete,
    "destroy bootstrap": Installer.destroy_bootstrap,
    "gather bootstrap": Installer.gather_bootstrap,
}


def main(argv: list[str] | None = None) -> int:
    """Run what the arguments ask for; return an exit code of openshift-install."""
    parser = argparse.ArgumentParser(prog="openshift-install", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("verb", choices=sorted({verb.split()[0] for verb in VERBS}))
    parser.add_argument("target", choices=sorted({verb.split()[1] for verb in VERBS}))
    parser.add_argument("--dir", type=Path, default=Path())
    parser.add_argument("--log-level", choices=LEVELS, default="info")
    for name in ("bootstrap", "key"):
        parser.add_argument(f"--{name}", help="of `gather bootstrap`; this lab is known from its plan")
    parser.add_argument("--master", action="append", help="likewise")
    args = parser.parse_args(argv)
    verb = VERBS.get(f"{args.verb} {args.target}")
    if verb is None:
        parser.error(f"{args.verb} {args.target} is not one of {', '.join(VERBS)}")
    usual_umask()
    log = Log(args.dir, args.log_level)
    try:
        with signals.raise_terminated():
            verb(Installer(args.dir, log))
    except StepFailed as error:
        log.error(str(error))
        return error.code
    except (AgentlabError, ValueError, OSError) as error:
        log.fatal(str(error))
        return Exit.FAILED
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main())
