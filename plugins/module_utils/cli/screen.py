"""`console NODE --screen`: steps on a node's screen, then what it shows."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..documents import load_yaml, read_file
from ..errors import LabError
from ..plan.model import Node
from ..screen import steps as screen_steps
from ..screen.steps import Step
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import Cluster


class _Append(argparse.Action):
    """Collects options in the order in which they are given: steps are done in that order."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        namespace.steps = [*namespace.steps, (str(option_string).lstrip("-"), values)]


def add_steps(parser: argparse.ArgumentParser) -> None:
    """Add the options of steps; `steps` are pairs of an option's name and its value."""
    group = parser.add_argument_group("steps on the screen, in the order given")

    def add(name: str, metavar: str, text: str) -> None:
        group.add_argument(name, action=_Append, dest="steps", default=[], metavar=metavar, help=text)

    add("--wait", "TEXT", "wait until a line of the screen contains the text")
    add("--press", "KEY", "press a key, such as enter, f2 or ctrl-x")
    add("--type", "TEXT", "type a text on a US keyboard")
    add("--picture", "FILE", "write a picture of the screen (PNG)")
    add(
        "--steps",
        "FILE",
        "perform the steps of a YAML file, a list such as [{wait: GRUB, timeout: 90}, {press: enter}]",
    )
    group.add_argument(
        "--timeout",
        type=float,
        default=screen_steps.SECONDS,
        metavar="SECONDS",
        help="default timeout for waits that set none (default: %(default)g)",
    )


def parse(options: Sequence[tuple[str, str]], timeout: float) -> list[Step]:
    """Return the steps of options; `LabError` names the option or the file, and what would be right."""
    found: list[Step] = []
    for name, value in options:
        if name == "steps":
            found += screen_steps.parse(_document(value), place=f"{value}: steps")
            continue
        try:
            found += screen_steps.parse([{name: value}])
        except LabError as error:
            raise LabError(f"--{name}: {str(error).removeprefix(f'steps[0].{name}: ')}") from error
    return screen_steps.with_limits(found, timeout, "--timeout")


def _document(path: str) -> object:
    try:
        return load_yaml(read_file(Path(path)), name=path)
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}") from error


def show(cluster: Cluster, node: Node, steps: Sequence[Step]) -> int:
    """Perform the steps and print the screen as text. With a sandbox, call it inside."""
    from ..libvirt.connection import connect
    from ..libvirt.display import Display

    with connect(cluster.libvirt) as connection:
        display = Display(connection, node["domain"], node["name"], Path(cluster.plan["services"]["http"]["root"]))
        screen_steps.follow(display, steps)
        if steps and "picture" in steps[-1]:
            return Exit.OK  # also of a screen that is not text
        write_line(screen_steps.read(display).text)
    return Exit.OK
