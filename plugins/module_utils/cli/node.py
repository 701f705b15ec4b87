"""Verbs on one node: `ssh NODE [-- CMD]`, `console NODE [-f]`, `power NODE on|off|reset|status`."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TypeGuard

from ..bmc.machine import Machine
from ..errors import LabError
from ..plan import outside
from ..plan.machines import Link, Nic, Node, interfaces
from ..report.ssh import ssh as ssh_to
from ..terminal import write_line
from ..vocabulary import Exit, RunFile
from . import screen
from .cluster import Cluster, add_cluster, again_inside, attempt, become
from .output import add_output, print_output

TAIL_BYTES = 64 * 1024


def ssh(argv: list[str]) -> int:
    """Exec ssh to a node, as user core with the run's key.

    argv: NODE and options; after `--` the command. Returns only when ssh cannot be executed. The first address of the
    node is used.
    """
    own, command = _split(argv)
    parser = _parser("ssh", "NODE [--cluster NAME] [-- COMMAND ...]", "Open a shell on a node, or run a command there.")
    args = parser.parse_args(own)

    def connect(cluster: Cluster) -> int:
        node = cluster.machine(args.node)
        key = cluster.directory / RunFile.SSH_KEY
        if not key.is_file():
            raise LabError(f"{key}: the run has no SSH key yet; run: agentlab configure --cluster {cluster.name}")
        cluster.check_remote_owner()
        addresses = [address["ip"] for nic in _interfaces(node) for address in nic["addresses"]]
        if not addresses:
            raise LabError(f"node {node['name']}: it has no address in the plan")
        return become([*cluster.enter(), *ssh_to(cluster.directory, addresses[0], batch=False), *command])

    return attempt(args.cluster, connect)


def console(argv: list[str]) -> int:
    """Print a node's serial console, follow it, or attach to it; or read its screen."""
    parser = _parser("console", None, "Print the end of a node's serial console, or what its screen shows.")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-f", "--follow", action="store_true", help="follow the output until Ctrl-C")
    how.add_argument(
        "-i", "--interactive", action="store_true", help="attach to it with input (virsh console; detach with Ctrl-])"
    )
    how.add_argument("-s", "--screen", action="store_true", help="print what the screen shows as text, after the steps")
    screen.add_steps(parser)
    args = parser.parse_args(argv)
    if args.steps and not args.screen:
        parser.error("--wait, --press, --type, --picture and --steps need --screen")

    def show(cluster: Cluster) -> int:
        node = cluster.machine(args.node)
        if _is_node(node) and node.get("bare_metal"):
            raise LabError(
                f"{node['name']}: an existing machine has no console here: use the one of its BMC, {node['bmc']['address']}"
            )
        cluster = cluster.seen_from(node)
        cluster.check_remote_owner()
        if args.screen:
            steps = screen.parse(args.steps, args.timeout)
            again_inside(cluster, ["console", *argv])
            return screen.show(cluster, cluster.node(args.node), steps)
        if args.interactive:
            return become([*cluster.enter(), "virsh", "-c", cluster.libvirt, "console", node["domain"]])
        path = node["console"]
        with contextlib.suppress(PermissionError):  # then root reads it
            if cluster.plan["hypervisor"]["kind"] != "ssh" and not Path(path).exists():
                raise LabError(
                    f"{path}: there is no console yet; agentlab boot --cluster {cluster.name} starts the machines"
                )
        return become(
            [
                *cluster.on_hypervisor(),
                "tail",
                f"--bytes={TAIL_BYTES}",
                *(["--follow=name"] if args.follow else []),
                path,
            ]
        )

    return attempt(args.cluster, show)


def power(argv: list[str]) -> int:
    """Read or change a node's power state through its BMC.

    argv: NODE and an action; it runs again inside the sandbox. `reset` is off, then on. The state that the BMC reports
    afterwards is printed.
    """
    parser = _parser("power", None, "Read or change a node's power state through its BMC.")
    parser.add_argument(
        "action",
        nargs="?",
        choices=("on", "off", "reset", "status"),
        default="status",
        help="action (default: %(default)s); off and reset do not wait for the operating system",
    )
    add_output(parser)
    args = parser.parse_args(argv)

    def act(cluster: Cluster) -> int:
        from ..boot import bmc, domain
        from ..libvirt.connection import connect
        from ..plan import secrets

        chosen = cluster.machine(args.node)
        cluster.check_remote_owner()
        again_inside(cluster, ["power", *argv])
        if not _is_node(chosen):
            with connect() as connection:
                return _switch(domain.Machine(connection, chosen["domain"]), chosen["name"], args)
        known = secrets.with_passwords(cluster.plan, secrets.passwords_of(cluster.plan, cluster.directory))
        node = cluster._replace(plan=known).node(args.node)
        return _switch(bmc.of_node(node, str(cluster.directory / RunFile.CA)), node["name"], args)

    return attempt(args.cluster, act)


def _switch(machine: Machine, name: str, args: argparse.Namespace) -> int:
    """Do what was asked for, and print the state."""
    if args.action in ("off", "reset"):
        machine.power_off()
    if args.action in ("on", "reset"):
        machine.power_on()
    state = machine.power()
    if args.output:
        print_output({"node": name, "power": state}, args.output)
    else:
        write_line(f"{name}: {state}")
    return Exit.OK


def _is_node(machine: Node | outside.Machine) -> TypeGuard[Node]:
    return "bmc" in machine


def _interfaces(machine: Node | outside.Machine) -> Sequence[Nic | Link]:
    return interfaces(machine) if _is_node(machine) else machine["nics"]


def _parser(verb: str, usage: str | None, text: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"agentlab {verb}", usage=f"agentlab {verb} {usage}" if usage else None, description=text
    )
    parser.add_argument(
        "node", metavar="NODE", help="name of the node, such as master-0, or of a machine outside of the cluster"
    )
    add_cluster(parser)
    return parser


def _split(argv: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in argv:
        return argv, []
    cut = argv.index("--")
    return argv[:cut], argv[cut + 1 :]
