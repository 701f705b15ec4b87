"""`agentlab capture NODE|NETWORK [-w FILE] [-c COUNT] [FILTER ...]`: packets on a network of the lab, by tcpdump on its bridge."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from .. import signals
from ..errors import LabError
from ..sandbox import namespaces
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import Cluster, add_cluster, become, find
from .output import print_failure


def main(argv: list[str]) -> int:
    """Run tcpdump where the lab's bridges are; return its exit code, or `Exit.FAILED` or `NOT_FOUND` after a message.

    A file to write must not exist; this process creates it with mode 0600, and removes it if tcpdump fails before it writes. Without
    one this process becomes tcpdump.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab capture", description="Print or write the packets of a node or a network, until Ctrl-C."
    )
    parser.add_argument(
        "place",
        metavar="NODE|NETWORK",
        help="a node, such as master-0: its packets on its first network; or a network of the plan, for those of all its nodes",
    )
    parser.add_argument("filter", nargs="*", metavar="FILTER", help="an expression of pcap-filter(7), such as icmp6")
    parser.add_argument("-w", "--write", type=Path, metavar="FILE", help="write a new pcap file, mode 0600")
    parser.add_argument("-c", "--count", type=_count, metavar="COUNT", help="end after this number of packets")
    add_cluster(parser)
    args = parser.parse_intermixed_args(argv)  # FILTER may follow an option
    try:
        cluster = find(args.cluster)
        for node in cluster.plan["nodes"]:
            if node["name"] == args.place:
                cluster = cluster.seen_from(node)
        cluster.check_remote_owner()
        tcpdump = _words(cluster, _tcpdump(cluster, args))  # wrong arguments are named whether the lab runs or not
        command = [*_prefix(cluster), *tcpdump]
        return _write(args.write, command) if args.write else become(command)
    except FileExistsError as error:
        write_line(f"agentlab: {error.filename}: the file exists; name a new one", sys.stderr)
        return Exit.FAILED
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def _count(text: str) -> int:
    value = int(text)
    if value < 1:  # tcpdump takes 0 for no limit
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def _write(path: Path, command: list[str]) -> int:
    """Return the exit code of the command, whose output is the new file `path`; a file that stays empty is removed if it fails.

    This process creates the file, so that it is the caller's also where tcpdump runs as root or elsewhere.
    """
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        status = _run(command, handle)
        made = os.fstat(handle)
        with contextlib.suppress(OSError):
            if status and not made.st_size and os.path.samestat(made, path.lstat()):
                path.unlink()
        return status
    finally:
        os.close(handle)


def _run(command: list[str], output: int) -> int:
    """Return the exit code of the command, as a shell has it. Ctrl-C is for the command; SIGTERM and SIGHUP are passed on to it."""
    with signals.raise_terminated(), contextlib.ExitStack() as starting:
        starting.enter_context(signals.defer_signals())
        try:
            process = subprocess.Popen(command, stdout=output)
        except OSError:
            return become(command)  # which has the message
        while True:
            try:
                starting.close()  # a signal during the start takes effect here, the first time
                status = process.wait()
                break
            except signals.Termination as error:
                _pass_on(process.pid, error.number)
            except KeyboardInterrupt:  # the terminal sends it to the command as well
                continue
    return 128 - status if status < 0 else status


def _pass_on(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:  # sudo, which is root's; it passes the signal on
        subprocess.run(["sudo", "-n", "kill", f"-{number}", str(pid)], check=False)


def _tcpdump(cluster: Cluster, args: argparse.Namespace) -> list[str]:
    link, limit = _bridge_and_filter(cluster, args.place)
    expression: list[str] = args.filter
    output = ["-U", "-w", "-"] if args.write else ["-n", "-l"]
    output += ["-c", str(args.count)] if args.count is not None else []
    if any(word.startswith("-") for word in expression):
        raise LabError(f"FILTER must be an expression of pcap-filter(7), not an option: {' '.join(expression)}")
    parts = [f"({text})" for text in (limit, " ".join(expression)) if text]
    return ["tcpdump", "-i", link, *output, *([" and ".join(parts)] if parts else [])]


def _bridge_and_filter(cluster: Cluster, target: str) -> tuple[str, str]:
    """Return the bridge of a network or of a node's first network, and the filter for the node."""
    networks = {name: net["bridge"] for net in cluster.plan["networks"] for name in (net["name"], net["bridge"])}
    if target in networks:
        return networks[target], ""
    try:
        node = cluster.node(target)
    except LabError as error:
        raise LabError(
            f"{error}; its networks are {', '.join(net['name'] for net in cluster.plan['networks'])}"
        ) from error
    first = node["nics"][0]["network"]
    macs = [nic["mac"] for nic in node["nics"] if nic["network"] == first]
    return networks[first], " or ".join(f"ether host {mac}" for mac in macs)


def _prefix(cluster: Cluster) -> list[str]:
    kind = cluster.plan["hypervisor"]["kind"]
    if kind != "ssh" and not shutil.which("tcpdump", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"):
        raise LabError("tcpdump is not installed; agentlab setup installs it")
    if kind != "sandbox":
        return cluster.on_hypervisor()
    running = namespaces.require(cluster.name, cluster.state_dir)
    return [*(["sudo"] if os.geteuid() else []), *namespaces.supervised_prefix(running)]


def _words(cluster: Cluster, command: list[str]) -> list[str]:
    """Return the command for its prefix: ssh gives it to a shell."""
    return [shlex.quote(word) for word in command] if cluster.plan["hypervisor"]["kind"] == "ssh" else command
