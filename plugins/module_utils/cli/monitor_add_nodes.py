"""`agentlab monitor-add-nodes IP ...`, the verb of node-joiner that `oc adm node-image monitor` runs."""

from __future__ import annotations

import argparse
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from ..cluster.client import ClusterClient
from ..cluster.joining import names_of
from ..cluster.node_task import follow_nodes
from ..documents import read_file
from ..errors import ClusterError
from ..installer.errors import InstallerError
from ..installer.nodes_config import FILENAME, addresses_of, load_nodes_config
from ..log import LEVELS, Log, level_of
from ..releases import LATEST
from ..vocabulary import Exit, RunFile
from .output import message


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="agentlab monitor-add-nodes",
        description="Report the progress of nodes that join a cluster until they are ready. Certificate requests that "
        "wait are shown; `oc adm certificate approve` approves them.",
    )
    top.add_argument(
        "address",
        nargs="*",
        metavar="IP",
        help="IP address of a new node (default: the static addresses in DIR/nodes-config.yaml)",
    )
    top.add_argument("--dir", type=Path, default=Path(), help="assets directory of the cluster (default .)")
    top.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the cluster (default DIR/auth/kubeconfig)"
    )
    top.add_argument(
        "--log-level",
        default="info",
        metavar="LEVEL",
        help="minimum level of messages (default info): " + ", ".join(LEVELS),
    )
    return top


def main(argv: list[str]) -> int:
    """Exit with OK when all nodes are ready, FAILED for wrong arguments and when a node was not ready in time."""
    args = parser().parse_args(argv)
    try:
        log = Log(args.dir if args.dir.is_dir() else None, level_of(args.log_level))
    except ValueError as error:
        Log(None)("fatal", f"invalid log-level: {error}")
        return Exit.FAILED
    try:
        given = args.address or _configured(args.dir, log)
        return follow(given, args.kubeconfig or args.dir / RunFile.KUBECONFIG, log)
    except (InstallerError, ClusterError, OSError) as error:
        log("fatal", message(error))
        return Exit.FAILED


def follow(given: Sequence[str], kubeconfig: Path, log: Log) -> Exit:
    """Follow nodes by their addresses, each once; OK when all are ready, FAILED when one was not in time.

    Raises `InstallerError` for a text that is not an address, and `ClusterError`.
    """
    addresses: dict[str, None] = {}
    for text in given:
        try:
            addresses[str(ipaddress.ip_address(text))] = None
        except ValueError:
            raise InstallerError(f"{text} is not valid IP address") from None
    kube, nodes = ClusterClient(kubeconfig), []
    for address in addresses:
        names = names_of(address)
        if not names:
            text = f"Cannot resolve IP address {address} to a hostname. Skipping checks for pending CSRs."
            log("info", f"Node {address}: {text}")
        nodes.append((address, names))
    return Exit.OK if follow_nodes(kube, nodes, log) else Exit.FAILED


def _configured(folder: Path, log: Log) -> list[str]:
    """The static addresses in a folder's nodes-config.yaml, which has the same form for all releases."""
    return addresses_of(load_nodes_config(read_file(folder / FILENAME), LATEST, log))
