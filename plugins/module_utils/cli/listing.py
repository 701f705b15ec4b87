"""`agentlab list [-o json|yaml]`: the clusters of this checkout, and those of others on this host."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypedDict

from .. import state
from ..plan import rundir
from ..plan.outside import machines
from ..sandbox import namespaces
from ..state import owner
from ..terminal import write_line
from .output import add_output, message, print_output
from .places import run_dir

_COLUMNS = ("NAME", "TOPOLOGY", "STACK", "NODES", "MACHINES", "STATE", "OWNER", "RUN DIRECTORY")


class Row(TypedDict):
    """One cluster.

    topology, stack, nodes and machines (those outside of the cluster) are null if only its owner can read the plan; owner is null
    without a lab.
    state: the last stage and its result (`validate ok`), `running` after a stage that has not ended, `planned`, or what is
    wrong with its files.
    """

    name: str
    topology: str | None
    stack: str | None
    nodes: int | None
    machines: int | None
    state: str
    owner: str | None
    run_dir: str


def main(argv: list[str]) -> int:
    """Print a table, or with -o all fields."""
    parser = argparse.ArgumentParser(
        prog="agentlab list", description="Print the clusters of this checkout, and all others on this host."
    )
    add_output(parser)
    args = parser.parse_args(argv)
    found = sorted(
        rows(run_dir("x").parent, namespaces.default_state_dir("x").parent),
        key=lambda row: (row["name"], row["run_dir"]),
    )
    if args.output:
        print_output(found, args.output)
        return 0
    lines = [_COLUMNS, *(tuple("-" if value is None else str(value) for value in row.values()) for row in found)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        write_line("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
    return 0


def rows(runs: Path, states: Path) -> Iterator[Row]:
    """Yield the clusters that have a run directory below `runs`, then those that only have a state directory below `states`."""
    known = set()
    for path in sorted(runs.iterdir()) if runs.is_dir() else []:
        if (path / rundir.PLAN).is_file():
            known.add(str(path.resolve()))
            yield _of_run(path)
    for path in sorted(states.iterdir()) if states.is_dir() else []:
        try:
            found = owner.read(path)
        except (ValueError, OSError) as error:
            yield _row(path.name, message(error), run_dir="?")
            continue
        if found and found.run_dir not in known:
            yield _row(found.cluster, "lab", owner=f"{found.user} on {found.host}", run_dir=found.run_dir)


def _of_run(path: Path) -> Row:
    try:
        plan = rundir.load_plan(path)
        stages = state.load(path)["stages"]
        lab = None if plan["hypervisor"]["kind"] == "ssh" else owner.read(Path(plan["hypervisor"]["state_dir"]))
    except (ValueError, OSError) as error:
        return _row(path.name, message(error).partition("\n")[0], run_dir=str(path))
    row = _row(path.name, _state(stages), owner=f"{lab.user} on {lab.host}" if lab else None, run_dir=str(path))
    cluster = plan["cluster"]
    return {
        **row,
        "topology": cluster["topology"],
        "stack": cluster["stack"],
        "nodes": len(plan["nodes"]),
        "machines": len(machines(plan)),
    }


def _row(name: str, text: str, *, run_dir: str, owner: str | None = None) -> Row:
    return {
        "name": name,
        "topology": None,
        "stack": None,
        "nodes": None,
        "machines": None,
        "state": text,
        "owner": owner,
        "run_dir": run_dir,
    }


def _state(stages: Mapping[str, state.Stage]) -> str:
    if not stages:
        return "planned"
    # Of stages that started in the same second, the last one in the file.
    name, last = max(reversed(list(stages.items())), key=lambda item: item[1]["start"])
    return f"{name} {last['result'] or 'running'}"
