"""A cluster for the everyday verbs: its plan, its run directory, and access to its network."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import LabError
from ..plan import hypervisors, rundir
from ..plan.access import Access
from ..plan.machines import interfaces
from ..plan.model import Node, Plan
from ..plan.outside import Machine, machines
from ..sandbox import namespaces
from ..state import owner
from ..terminal import write_line
from ..vocabulary import DEFAULT_CLUSTER, Exit, RunFile
from . import failure
from .output import print_failure
from .places import cluster_name, run_dir

INSIDE = "AGENTLAB_INSIDE"
"""Environment variable with the cluster in whose sandbox a verb runs."""
_OWN = ("AGENTLAB_RUNS", "CLUSTER")
"""Variables that name the cluster of a verb."""
_AS_ROOT = (*_OWN, "XDG_CACHE_HOME", "PYTHONPATH", "PATH", "HOME")
"""Variables that sudo would remove."""
NO_ROOT = "this needs root: run it as root, or install sudo"
_NO_FILE = 44  # what a command on a hypervisor ends with; ssh itself ends with 255


class Cluster(NamedTuple):
    """A cluster with a plan: its name, its run directory (absolute), and the plan.

    `find` makes it, which also verifies that the caller owns it. `plan.secrets.with_passwords` adds its
    passwords.
    """

    name: str
    directory: Path
    plan: Plan

    @property
    def state_dir(self) -> Path:
        """State directory of the cluster on the hypervisor."""
        return Path(self.plan["hypervisor"]["state_dir"])

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the run; LabError names the verb that writes it."""
        path = self.directory / RunFile.KUBECONFIG
        if not path.is_file():
            raise LabError(f"{path}: there is no kubeconfig yet; agentlab image --cluster {self.name} writes it")
        return path

    def node(self, name: str) -> Node:
        """Return a node by its host name, its domain or one of its addresses; LabError lists the names.

        name: case counts. Raises `LabError` for a name that is not in the plan.
        """
        for node in self.plan["nodes"]:
            if name in (
                node["name"],
                node["domain"],
                *(address["ip"] for nic in interfaces(node) for address in nic["addresses"]),
            ):
                return node
        known = ", ".join(node["name"] for node in self.plan["nodes"])
        others = ", ".join(machine["name"] for machine in machines(self.plan))
        outside = f", machines outside of it {others}" if others else ""
        raise LabError(f"cluster {self.name} has no node {name!r}; its nodes are {known}{outside}")

    def machine(self, name: str) -> Node | Machine:
        """Return a node, or a machine outside of the cluster, by its name, its domain or an address; as `node`."""
        for machine in machines(self.plan):
            if name in (
                machine["name"],
                machine["domain"],
                *(address["ip"] for nic in machine["nics"] for address in nic["addresses"]),
            ):
                return machine
        return self.node(name)

    def seen_from(self, node: Node | Machine) -> Cluster:
        """Return the cluster as the hypervisor that carries `node` sees it: `enter`, `libvirt` and `on_hypervisor` lead there."""
        return self._replace(plan=hypervisors.view(self.plan, str(node.get("hypervisor") or hypervisors.FIRST)))

    @property
    def libvirt(self) -> str:
        """The libvirt URI of the hypervisor, as seen after `enter`."""
        return "qemu:///system" if self._target is None else f"qemu+ssh://{self._target}/system"

    @property
    def _target(self) -> str | None:
        """`user@host` of a hypervisor that is reached by ssh."""
        return Access(self.plan, self.directory).hypervisor()

    def on_hypervisor(self) -> list[str]:
        """Return the command prefix to run as root on the hypervisor, outside of a sandbox.

        It is empty for root on a hypervisor that is this host. With ssh the words that follow are for a shell: quote
        them.
        """
        if self._target is not None:
            return ["ssh", self._target, *(["sudo"] if self.plan["hypervisor"]["user"] != "root" else [])]
        return ["sudo"] if os.geteuid() else []

    def check_remote_owner(self) -> None:
        """Query a hypervisor that is reached by ssh for the owner of the cluster; `find` has done so for one on this host.

        Raises LabError when it cannot be asked, `OwnerError` for a cluster of another.
        """
        if self._target is None:
            return
        path = self.state_dir / owner.FILE
        missing = f"test -e {shlex.quote(str(path))} || exit {_NO_FILE}; cat {shlex.quote(str(path))}"
        command = [
            "ssh",
            "-o",
            "BatchMode=yes",
            "-o",
            "StrictHostKeyChecking=yes",
            "-o",
            "ConnectTimeout=20",
            self._target,
            missing,
        ]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == _NO_FILE:
            return
        if done.returncode:
            output = done.stderr.decode(errors="replace").strip()
            lines = output.splitlines() or [f"ssh ended with {done.returncode}"]
            step = failure.unreachable(output, self._target)
            raise LabError(
                f"{self._target} cannot be asked whose cluster {self.name} is: {lines[-1]}\n     Next: {step}"
            )
        owner.check(owner.parse(done.stdout, path), self.state_dir, owner.caller(self.plan, self.directory))

    def enter(self, directory: str = "/", *, root: bool = False) -> list[str]:
        """Return the command prefix to run in the cluster's network, as root or as the caller; signals reach what it runs.

        Empty unless the hypervisor is a sandbox. Raises LabError if the sandbox is not running.
        """
        if self.plan["hypervisor"]["kind"] != "sandbox":
            return []
        running = namespaces.require(self.name, self.state_dir)
        become_root = ["sudo"] if os.geteuid() else []
        return [
            *become_root,
            *namespaces.supervised_prefix(running, directory),
            *([] if root else namespaces.as_caller()),
        ]


def _existing(name: str) -> Path:
    """Return the run directory of the cluster `name`. Raises LabError when it has none with a plan."""
    directory = run_dir(name)
    if not (directory / rundir.PLAN).exists():
        raise LabError(f"there is no cluster {name!r} in {directory.parent}; `agentlab list` prints those that exist")
    return directory


def find(name: str) -> Cluster:
    """Return the cluster `name` of this run directory and user.

    Raises LabError when there is no run directory, ValueError if its plan is invalid or another user owns its lab.
    """
    directory = _existing(name)
    cluster = Cluster(name, directory, rundir.load_plan(directory))
    if cluster.plan["hypervisor"]["kind"] != "ssh":
        owner.verify(cluster.state_dir, owner.caller(cluster.plan, directory))
    return cluster


def add_cluster(parser: argparse.ArgumentParser, *, inner: bool = False) -> None:
    """Add --cluster, with the environment's `CLUSTER` as default.

    inner: `parser` is one of an action, and the one above has the option, too: without it here, that one counts.
    """
    parser.add_argument(
        "--cluster",
        type=cluster_name,
        default=argparse.SUPPRESS if inner else os.environ.get("CLUSTER") or DEFAULT_CLUSTER,
        metavar="NAME",
        help="name of the cluster (default: $CLUSTER, or ostest)",
    )


def lacks_root() -> bool:
    """Return whether this process is not root's, and cannot start one that is."""
    return os.geteuid() != 0 and shutil.which("sudo") is None


def become(command: Sequence[str]) -> int:
    """Replace this process by the command; return a shell's exit status if there is no such program.

    command: its first word is searched in PATH. Output that is buffered is flushed before.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the program would inherit that
    try:
        os.execvp(command[0], list(command))
    except OSError as error:
        write_line(f"agentlab: {NO_ROOT if command[0] == 'sudo' else f'{command[0]}: {error.strerror}'}", sys.stderr)
        return Exit.NOT_FOUND
    finally:
        signal.signal(signal.SIGPIPE, before)


def absent(name: str) -> int:
    """Return `Exit.FAILED`, after the message of `find`, if there is no cluster `name`; else `Exit.OK`. Its plan is not read."""
    try:
        _existing(name)
    except LabError as error:
        return print_failure(error)
    return Exit.OK


def attempt(name: str, function: Callable[[Cluster], int]) -> int:
    """Return what `function` returns for the cluster `name`; print the message of an error.

    name: of a cluster. `LabError`, `ValueError` and `OSError` of `find` or `function` end with `Exit.FAILED`.
    """
    try:
        return function(find(name))
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def again_inside(cluster: Cluster, argv: Sequence[str], *, root: bool = False) -> None:
    """Run this verb again inside the cluster's sandbox and exit with its status, unless this process is already in it.

    argv: the verb with its arguments; root: run it as root there, not as the caller.
    """
    if os.environ.get(INSIDE) == cluster.name:
        return
    if not (prefix := cluster.enter(os.getcwd(), root=root)):
        return
    # The environment of the caller does not come along where sudo is needed.
    kept = [f"{name}={os.environ[name]}" for name in _OWN if name in os.environ]
    command = [*prefix, "env", f"{INSIDE}={cluster.name}", *kept, sys.executable, "-m", __package__ or "", *argv]
    raise SystemExit(become(command))


def again_as_root(argv: Sequence[str]) -> None:
    """Run this verb again as root and exit with its status, unless this process is root's. sudo names the user who requests it.

    argv: the verb with its arguments.
    """
    if os.geteuid():
        kept = [f"{name}={os.environ[name]}" for name in _AS_ROOT if name in os.environ]
        raise SystemExit(become(["sudo", "env", *kept, sys.executable, "-m", __package__ or "", *argv]))
