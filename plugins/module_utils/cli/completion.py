"""`agentlab completion bash|zsh`: completion of verbs, options, clusters, nodes and profiles by argcomplete."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from .._deps import optional
from ..plan import rundir
from ..plan.outside import machines
from ..terminal import write_line
from ..vocabulary import COMPONENTS, DEFAULT_CLUSTER, Exit
from .parsers import parser_of
from .places import PROFILES, run_dir
from .verbs import AGENT, VERBS

argcomplete = optional("argcomplete")


def main(argv: list[str]) -> int:
    """Print the code for a shell."""
    parser = argparse.ArgumentParser(
        prog="agentlab completion",
        description='Print the code that completes agentlab\'s command line in a shell. For bash: eval "$(bin/agentlab completion bash)"; '
        "for zsh the same, after: autoload -U compinit && compinit.",
    )
    parser.add_argument("shell", choices=("bash", "zsh"), help="the shell")
    args = parser.parse_args(argv)
    write_line(argcomplete.shell_integration.shellcode(["agentlab"], shell=args.shell))
    return Exit.OK


def complete() -> None:
    """Print the completions of the command line in `COMP_LINE`, and end the process.

    The shell sets `COMP_LINE`, `COMP_POINT` and `_ARGCOMPLETE`; argcomplete writes the answer to file descriptor 8. It
    does not return.
    """
    words = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT", "0"))].split()
    argcomplete.autocomplete(_parser(words[1:]), always_complete_options="long")
    raise SystemExit(Exit.FAILED)  # not reached: it has ended the process


def _parser(words: list[str]) -> argparse.ArgumentParser:
    """Return a parser of all verbs, of which only the one that is typed has its own arguments."""
    top = argparse.ArgumentParser(prog="agentlab", add_help=False)
    verbs = top.add_subparsers()
    name = next((word for word in words if word != "agent"), "")
    own = parser_of(name) if name in VERBS else None
    if own:
        _name(own, _option(words, "--cluster") or os.environ.get("CLUSTER") or DEFAULT_CLUSTER)
    for verb, entry in VERBS.items():
        verbs.add_parser(verb, help=entry.help, parents=[own] if own and verb == name else [], add_help=False)
    if words[:1] == ["agent"]:
        of_agent = verbs.add_parser("agent", help="as openshift-install").add_subparsers()
        for verb in AGENT:
            parents = [own] if own and verb == name else []
            of_agent.add_parser(verb, help=VERBS[verb].help, parents=parents, add_help=False)
    return top


def _option(words: list[str], name: str) -> str:
    given = [after for word, after in itertools.pairwise(words) if word == name]
    return given[-1] if given else ""


def _name(parser: argparse.ArgumentParser, cluster: str) -> None:
    """Let arguments that are names be completed by those that exist."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for other in action.choices.values():
                _name(other, cluster)
        elif action.dest == "override":
            action.completer = _override  # type: ignore[attr-defined]
        elif action.dest in _NAMES:
            known = sorted(_NAMES[action.dest](cluster))
            action.completer = lambda known=known, **__: known  # type: ignore[attr-defined]


def _override(prefix: str, **__: object) -> list[str]:
    """Complete COMPONENT=, then what is a path."""
    name, separator, path = prefix.partition("=")
    if not separator:
        return [f"{component}=" for component in COMPONENTS]
    return [f"{name}={found}" for found in argcomplete.completers.FilesCompleter()(path)]


def _clusters(_cluster: str) -> Iterable[str]:
    return (path.parent.name for path in run_dir("x").parent.glob(f"*/{rundir.PLAN}"))


def _nodes(cluster: str) -> Iterable[str]:
    try:
        plan = rundir.load_plan(run_dir(cluster))
        return [node["name"] for node in [*plan["nodes"], *machines(plan)]]
    except (ValueError, OSError):
        return []


def _captured(cluster: str) -> Iterable[str]:
    try:
        networks = rundir.load_plan(run_dir(cluster))["networks"]
    except (ValueError, OSError):
        return []
    return [*_nodes(cluster), *(network["name"] for network in networks)]


def _forwarded(_cluster: str) -> Iterable[str]:
    from .forward import NAMES, PROXY

    return (*NAMES, PROXY)


def _snapshots(cluster: str) -> Iterable[str]:
    from ..snapshot import manifest

    try:
        return manifest.names(Path(rundir.load_plan(run_dir(cluster))["hypervisor"]["state_dir"]))
    except (ValueError, OSError):  # of another user: root's snapshots
        return []


def _kinds(_cluster: str) -> Iterable[str]:
    from .fault import NOW

    return NOW


def _reloaded(_cluster: str) -> Iterable[str]:
    from ..reload import lab

    return lab.PLACES


_NAMES: dict[str, Callable[[str], Iterable[str]]] = {
    "cluster": _clusters,
    "node": _nodes,
    "target": _nodes,
    "targets": _forwarded,
    "place": _captured,
    "peer": _nodes,
    "profile": lambda _cluster: (path.stem for path in PROFILES.glob("*.yml")),
    "kind": _kinds,
    "component": _reloaded,
    "snapshot": _snapshots,
}
"""Destination of an argument -> the names that exist for a cluster."""
