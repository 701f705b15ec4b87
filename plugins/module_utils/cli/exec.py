"""`agentlab exec [--cluster C] -- CMD`, `agentlab shell [--cluster C]`: run something inside a cluster's sandbox."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import LabError
from ..sandbox import namespaces
from ..terminal import write_line
from .cluster import add_cluster, become
from .output import print_failure
from .places import run_dir


def main(argv: list[str]) -> int:
    """Exec the command in the sandbox, in the current directory, as the current user.

    argv: the command follows `--`. Returns only when it cannot be executed: `Exit.FAILED` if there is no sandbox or it
    belongs to another. Where the hypervisor is not a sandbox, the command runs on this host.
    """
    own, separator, command = argv, "", []
    if "--" in argv:
        cut = argv.index("--")
        own, separator, command = argv[:cut], "--", argv[cut + 1 :]
    parser = _parser("exec", "[--cluster NAME] -- COMMAND [ARGUMENT ...]", "Run a command inside a cluster's sandbox.")
    if not separator:
        parser.add_argument("command", nargs=argparse.REMAINDER, help="the command with its options")
    args = parser.parse_args(own)
    command = command or getattr(args, "command", [])
    if not command:
        parser.error("no command given: agentlab exec -- COMMAND")
    return _become(args.cluster, command)


def shell(argv: list[str]) -> int:
    """Exec a shell in the sandbox.

    It is $SHELL, else /bin/sh, with AGENTLAB_CLUSTER in its environment. Returns only when it cannot be executed.
    """
    args = _parser("shell", None, "Open a shell inside a cluster's sandbox.").parse_args(argv)
    os.environ["AGENTLAB_CLUSTER"] = args.cluster
    hint = f"entering the sandbox of {args.cluster} (network, libvirt, DNS); leave it with `exit`"
    return _become(args.cluster, [os.environ.get("SHELL") or "/bin/sh"], hint)


def _parser(verb: str, usage: str | None, text: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"agentlab {verb}", usage=f"agentlab {verb} {usage}" if usage else None, description=text
    )
    add_cluster(parser)
    return parser


def _become(cluster: str, command: list[str], hint: str = "") -> int:
    from ..state import owner

    try:
        hypervisor = _hypervisor(cluster)
        if hypervisor["kind"] != "ssh":
            name = {"cluster": {"name": cluster}, "hypervisor": hypervisor}
            owner.verify(Path(hypervisor["state_dir"]), owner.caller(name, run_dir(cluster)))
    except (ValueError, OSError) as error:
        return print_failure(error)
    if hypervisor["kind"] == "sandbox":
        try:
            running = namespaces.require(cluster, Path(hypervisor["state_dir"]))
        except LabError as error:
            return print_failure(error)
        command = [*namespaces.supervised_prefix(running, os.getcwd()), *namespaces.as_caller(), *command]
        if os.geteuid():
            command = ["sudo", *command]
    if hint:
        write_line(hint, sys.stderr)
    return become(command)


def _hypervisor(cluster: str) -> Mapping[str, Any]:
    """Return `hypervisor` of the plan in the cluster's run directory; without a plan, a sandbox with the default directory."""
    from ..plan import rundir

    directory = run_dir(cluster)
    if (directory / rundir.PLAN).exists():
        return rundir.load_plan(directory)["hypervisor"]
    return {"kind": "sandbox", "state_dir": str(namespaces.default_state_dir(cluster))}
