"""Fixtures of pytest for a lab: `pytest -p ansible_collections.agentlab.ocp.plugins.module_utils.cli.pytest_plugin`.

docs/tests.md is the guide. Everything goes through the verbs, so that owner, sandbox and hypervisor are those of the command line.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ..cluster.tests import RunOutput, run
from ..errors import LabError
from ..plan.model import Plan
from ..vocabulary import DEFAULT_CLUSTER
from .cluster import Cluster, find

if TYPE_CHECKING:
    import pytest

SECONDS = 60.0
"""Limit of a command that has none."""
RESTORE_SECONDS = 900.0
MARKER = "snapshot"


@dataclass(frozen=True)
class Node:
    """A node of a lab, or a machine outside of its cluster."""

    lab: Lab
    name: str

    def run(self, *command: str, timeout: float = SECONDS, status: int | None = 0) -> RunOutput:
        """Run a command on the node, as user core; see `Lab.run`. command: its words, or one text for the node's shell."""
        text = command[0] if len(command) == 1 else shlex.join(command)
        return self.lab.verb("ssh", [self.name], [text], timeout=timeout, status=status)


@dataclass(frozen=True)
class Lab:
    """A lab with the cluster of a run directory, which the caller owns."""

    cluster: Cluster

    @property
    def plan(self) -> Plan:
        """The plan: nodes, addresses, networks."""
        return self.cluster.plan

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig, whose names are known in the cluster's network. Raises `LabError` before the stage `image`."""
        return self.cluster.kubeconfig

    def node(self, name: str) -> Node:
        """Return a node or a machine by its name, its domain or an address. Raises `LabError` with the names for another."""
        return Node(self, self.cluster.machine(name)["name"])

    def run(self, *command: str, timeout: float = SECONDS, status: int | None = 0) -> RunOutput:
        """Run a command in the cluster's network and return its exit status and its output, of at most 1 MiB.

        timeout: seconds; status: what it must end with, None for anything. Raises `LabError` with the end of the output
        for another status, or when it does not end in time.
        """
        return self.verb("exec", [], list(command), timeout=timeout, status=status)

    def kubectl(self, *words: str, timeout: float = SECONDS, status: int | None = 0) -> RunOutput:
        """Run kubectl, with the credentials of the run; see `run`."""
        return self.verb("kubectl", list(words), [], timeout=timeout, status=status)

    def restore(self, snapshot: str) -> None:
        """Replace the state of the lab by a snapshot. Raises `LabError`."""
        self.verb("snapshot", ["restore", snapshot], [], timeout=RESTORE_SECONDS, status=0)

    def verb(self, verb: str, words: list[str], command: list[str], *, timeout: float, status: int | None) -> RunOutput:
        """Run a verb of the command line. command: what follows `--`; for the rest see `run`."""
        # kubectl has options of its own: what is not for it is in front.
        own = (
            [verb, "--cluster", self.cluster.name, *words]
            if verb == "kubectl"
            else [verb, *words, "--cluster", self.cluster.name]
        )
        line = [sys.executable, "-m", str(__package__), *own, *(["--", *command] if command else [])]
        done = run(line, timeout, {**os.environ, "AGENTLAB_RUNS": str(self.cluster.directory.parent)})
        if status is not None and done.status != status:
            printed = shlex.join(["agentlab", *own, *command])
            raise LabError(f"{printed}: exit status {done.status}, expected {status}:\n{done.text[-2000:]}")
        return done


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the name of the cluster."""
    parser.getgroup("agentlab").addoption(
        "--agentlab-cluster",
        default=os.environ.get("CLUSTER") or DEFAULT_CLUSTER,
        metavar="NAME",
        help="name of the cluster of the fixture `lab` (default: $CLUSTER, or ostest)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Add the fixture `lab`, and the marker `snapshot`. pytest is imported only here: the command line does not need it."""
    import pytest

    config.addinivalue_line("markers", f"{MARKER}(name): restore this snapshot of the lab before the test")
    fixtures = ModuleType("agentlab_fixtures")
    vars(fixtures).update(
        lab=pytest.fixture(scope="session", name="lab")(_lab),
        restored=pytest.fixture(autouse=True, name="_agentlab_restored")(_restored),
    )
    config.pluginmanager.register(fixtures)


def _lab(request: pytest.FixtureRequest) -> Lab:
    """The lab of `--agentlab-cluster`."""
    return Lab(find(request.config.getoption("--agentlab-cluster")))


def _restored(request: pytest.FixtureRequest) -> None:
    if marker := request.node.get_closest_marker(MARKER):
        request.getfixturevalue("lab").restore(*marker.args)
