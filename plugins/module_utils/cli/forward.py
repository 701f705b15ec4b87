"""`agentlab forward [NAME[=PORT] | HOST:PORT[=PORT]]...`: ports of the lab on this host's loopback, or an HTTP proxy into it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TypedDict

from .. import signals
from ..addresses import in_url
from ..documents import load_json, read_file
from ..errors import LabError
from ..installer.state import StateError, load_wait_for
from ..sandbox import forward, namespaces, processes, proxy
from ..sandbox.forward import LOOPBACK, Target
from ..state import write_atomic
from ..terminal import write_line
from ..vocabulary import Exit
from .cluster import Cluster, add_cluster, again_as_root, find
from .output import add_output, print_failure, print_output

PROXY = "proxy"
"""The target that is not a port inside: an HTTP proxy."""
NAMES = ("api", "console", "service")
"""The targets that are ports inside, each an endpoint of the plan."""
FILE = "forward.json"
"""In the run directory while forwards run: for each `{"pid", "start", "ports": {NAME: PORT}}`, in the order in which they began."""
_WHERE = re.compile(r"(?:(?P<name>[a-z]+)|(?P<host>[^=]+):(?P<port>\d{1,5}))(?:=(?P<local>\d{1,5}))?")


class _Entry(TypedDict):
    """A forward that runs: its process, and the local ports by name of their target."""

    pid: int
    start: int
    ports: dict[str, int]


def main(argv: list[str]) -> int:
    """Print the ports, and relay until Ctrl-C.

    argv: after `forward`. For a sandbox it runs again with sudo. While it runs, `forward.json` of the run directory has
    its ports. When the sandbox ends, it ends with `Exit.FAILED`, after a message.
    """
    parser = argparse.ArgumentParser(
        prog="agentlab forward",
        description="Make ports of a cluster's network reachable on 127.0.0.1: its API, its console, the assisted service's page.",
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="NAME[=PORT]",
        help="api, console, service, HOST:PORT inside, or proxy: an HTTP proxy (CONNECT) to the cluster's names and networks; =PORT sets "
        "the local port (default: the first three, on free ports)",
    )
    parser.add_argument(
        "--address",
        default=LOOPBACK,
        help="address of this host to listen on (default: %(default)s); with another one, everyone who reaches it reaches the "
        "cluster",
    )
    add_cluster(parser)
    add_output(parser)
    args = parser.parse_args(argv)
    try:
        cluster = find(args.cluster)
        cluster.check_remote_owner()
        targets = [_target(cluster, text) for text in args.targets or known_targets(cluster)]
        if cluster.plan["hypervisor"]["kind"] == "sandbox":
            again_as_root(["forward", *argv])
        return _serve(cluster, targets, args.address, args.output)
    except (LabError, ValueError, OSError) as error:
        return print_failure(error)


def known_targets(cluster: Cluster) -> dict[str, Target]:
    """Return the named targets.

    Their names are `api`, `console` and `service`; hosts and ports are those of the plan's endpoints.
    """
    endpoints = cluster.plan["endpoints"]
    found = {"api": endpoints["api"], "console": endpoints["console"], "service": endpoints["service"]}
    return {name: Target(name, found[name]["host"], found[name]["port"]) for name in NAMES}


def page(cluster: Cluster, url: str) -> str:
    """Return where a browser shows the assisted service's page: `url`, with the run's token where the service requires one.

    The token is in the fragment, which browsers keep to themselves: the page takes it from there and removes it.
    """
    with contextlib.suppress(StateError):
        needs = load_wait_for(cluster.directory)
        if needs.token and needs.scheme == "watcher":
            return f"{url}/#token={needs.token}"
    return f"{url}/"


def browser(cluster: Cluster, option: str) -> str:
    """Return the command that shows the console: by its name, which this host does not resolve; to others its router answers 503.

    option: how Chromium gets there. A profile of its own makes it a process of its own: one that runs already would ignore it.
    """
    url = cluster.plan["endpoints"]["console"]["url"]
    return f'chromium --user-data-dir="$(mktemp -d)" {shlex.quote(option)} {url}'


def ports(cluster: Cluster) -> dict[str, int]:
    """The ports of the forwards that run for the cluster, by name of their target; empty when none runs.

    They are local ports; of several for one target it is that of the last forward. What a killed forward left does not count: its
    process is known by pid and start time.
    """
    return {name: port for entry in _running(cluster) for name, port in entry["ports"].items()}


def _running(cluster: Cluster) -> list[_Entry]:
    """Return the entries of those that run. Only in the host's namespaces are their processes seen."""
    return [entry for entry in _noted(cluster) if processes.start_time(entry["pid"]) == entry["start"]]


def _noted(cluster: Cluster) -> list[_Entry]:
    with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return [
            {
                "pid": int(entry["pid"]),
                "start": int(entry["start"]),
                "ports": {str(name): int(port) for name, port in entry["ports"].items()},
            }
            for entry in load_json(read_file(cluster.directory / FILE), name=FILE)
        ]
    return []


def _note(cluster: Cluster, own: _Entry) -> None:
    with _locked(cluster):
        _write(cluster, [*_running(cluster), own])


def _discard(cluster: Cluster, own: _Entry) -> None:
    with contextlib.suppress(OSError), _locked(cluster):
        _write(cluster, [entry for entry in _noted(cluster) if entry != own])


def _write(cluster: Cluster, entries: list[_Entry]) -> None:
    path = cluster.directory / FILE
    if entries:
        write_atomic(path, json.dumps(entries) + "\n")
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(cluster: Cluster) -> Iterator[None]:
    handle = os.open(cluster.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _target(cluster: Cluster, text: str) -> Target:
    found = _WHERE.fullmatch(text)
    names = {**known_targets(cluster), PROXY: Target(PROXY, cluster.plan["cluster"]["domain"], 0)}
    if not found or (found["name"] and found["name"] not in names):
        raise LabError(
            f"{text!r} is not a valid target: use {', '.join(names)} or HOST:PORT, each with an optional =PORT for the local port"
        )
    local = int(found["local"] or 0)
    target = (
        names[found["name"]]
        if found["name"]
        else Target(f"{found['host']}:{found['port']}", found["host"].strip("[]"), int(found["port"]))
    )
    for port in (local, target.port):
        if port > 65535:
            raise LabError(f"{text!r}: port {port} is not below 65536")
    return target._replace(local=local)


def _serve(cluster: Cluster, targets: list[Target], address: str, form: str | None) -> int:
    running = (
        namespaces.require(cluster.name, cluster.state_dir) if cluster.plan["hypervisor"]["kind"] == "sandbox" else None
    )
    sockets = forward.listen(targets, address)
    taken = {target.name: socket.getsockname()[1] for target, socket in zip(targets, sockets, strict=True)}
    own: _Entry = {"pid": os.getpid(), "start": processes.start_time(os.getpid()) or 0, "ports": taken}
    _note(cluster, own)
    try:
        with signals.raise_terminated():
            _show(cluster, targets, taken, address, form)
            keeper = os.pidfd_open(running.pid) if running else None
            if running:
                forward.enter(running.pid)
            handlers = {PROXY: partial(proxy.relay, proxy.of_plan(cluster.plan))}
            asyncio.run(forward.serve(sockets, targets, handlers, keeper))
    except signals.Termination:
        raise
    except KeyboardInterrupt:
        pass
    else:
        if running:
            raise LabError(
                f"the sandbox of cluster {cluster.name} has ended, and these ports with it; when it runs again: "
                f"agentlab forward --cluster {cluster.name}"
            )
    finally:
        _discard(cluster, own)
    return Exit.OK


def _show(cluster: Cluster, targets: list[Target], taken: Mapping[str, int], address: str, form: str | None) -> None:
    """Print the ports, and what they are for; taken: the local ones, by name of their target."""
    if form:
        print_output({name: f"{in_url(address)}:{port}" for name, port in taken.items()}, form)
        return
    here = {name: _printed_port(name, port, address) for name, port in taken.items()}
    for target in targets:
        inside = f"proxy to *.{target.host}" if target.name == PROXY else f"{in_url(target.host)}:{target.port}"
        write_line(f"{here[target.name]:<32} {inside}")
    for line in _uses(cluster, here):
        write_line(line)


def _uses(cluster: Cluster, here: Mapping[str, str]) -> Iterator[str]:
    """Yield what ports are for; here: by name of their target, as `_printed_port` has them."""
    apps = known_targets(cluster)["console"].host.partition(".")[2]
    if "service" in here:
        yield f"for the service's page in a browser: {page(cluster, here['service'])}"
    for name, option in (("console", f"--host-resolver-rules=MAP *.{apps} "), (PROXY, "--proxy-server=")):
        if name in here:
            yield f"for the console in a browser: {browser(cluster, option + here[name])}"
    if "api" in here:
        yield f"for a kubeconfig: agentlab kubeconfig --cluster {cluster.name}; stop forwarding with Ctrl-C"


def _printed_port(name: str, port: int, address: str) -> str:
    """Return a port as it is printed: a URL, unless it is to be used by another name."""
    scheme = {"api": "https://", "service": "http://", PROXY: "http://"}.get(name, "")
    return f"{scheme}{in_url(address)}:{port}"
