"""`node-image create` and `monitor` for automation: the options as a task gives them, and the result as data instead of log lines."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import signals
from ..assisted.client import AssistedClient
from ..errors import ClusterError
from ..installer import run
from ..log import Log
from ..plan import rundir
from ..plan.stored import check_plan
from ..vocabulary import Exit, boot_file, rpm_arch
from ..watch import Message
from . import day2, joining, node_image
from .client import ClusterClient


def client(kubeconfig: Path) -> ClusterClient:
    """Return a client of an installed cluster. Raises `ClusterError` with what to do when there is none."""
    if not kubeconfig.is_file():
        raise ClusterError(
            f"{kubeconfig}: no such file. Nodes join an installed cluster: install it first, `agentlab deploy`"
        )
    return ClusterClient(kubeconfig)


def create(given: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """Make a node image; returns the result of the module `node_image`, whose options `given` are.

    check: change nothing. Raises `AgentlabError`, `ValueError` or `OSError`.
    """
    directory, kube = Path(given["directory"]).absolute(), client(Path(given["kubeconfig"]))
    result: dict[str, Any] = {"changed": False, "changed_files": [], "log": [], "diff": []}
    names: list[str] = []
    if given["plan"]:
        plan = check_plan(given["plan"])
        nodes = day2.follow(plan, day2.chosen_nodes(plan, given["only"]))
        result |= {"nodes": nodes, "missing": [node["name"] for node in day2.missing(kube, nodes)]}
        names = [node["name"] for node in day2.follow(plan, day2.chosen_nodes(plan))]
        arch = rpm_arch(given["architecture"] or day2.architecture(kube))
        result["image"] = str(directory / boot_file("node", arch, ".iso"))
        if not result["missing"]:
            return result
        changes = day2.nodes_config(plan, directory, given["architecture"])
        result["diff"] += [change.diff() for change in changes]
        result["changed_files"] += [change.path.name for change in changes]
        if check and changes:
            result["changed_files"].append(Path(result["image"]).name)
            return {**result, "changed": True}
        rundir.write(changes)
    options = run.Options.from_environment(dict(os.environ), directory, Path(given["assets"]), dry=check)
    options = replace(options, release_profile=given["release_profile"] or options.release_profile)
    if given["os_image"]:
        options = replace(options, os_image={"": given["os_image"]})
    if given["cache"]:
        options = replace(options, cache=Path(given["cache"]))
    log = Log(directory if directory.is_dir() and not check else None, emit=lambda _line: None)
    with signals.raise_terminated():
        made = node_image.create("node-pxe-files" if given["pxe"] else "node-image", options, kube, log, joined=names)
    result["changed_files"] += made.changed
    result["diff"] += made.diffs
    image = next(iter(sorted(directory.glob(boot_file("node", "*", ".iso")))), None)
    if not given["pxe"] and not given["plan"]:
        result["image"] = str(image or "")
    return {
        **result,
        "changed": bool(result["changed_files"]),
        "version": made.version,
        "log": [text for level, text in log.lines if level != "debug"],
        "warnings": [text for level, text in log.lines if level == "warning"],
    }


def monitor(given: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """Follow nodes until they are ready; returns the result of the module `node_monitor`, whose options `given` are.

    With an `exit_code` other than 0, `msg` names the nodes. check: wait for nothing. Raises `AgentlabError` or `OSError`.
    """
    result: dict[str, Any] = {"changed": False, "approved": [], "exit_code": int(Exit.OK), "seconds": 0.0}
    if check:
        return result
    kube, start, directory = client(Path(given["kubeconfig"])), time.monotonic(), Path(given["directory"])
    log = Log(directory if directory.is_dir() else None, emit=lambda _line: None)

    def approve(name: str) -> None:
        kube.approve(name)
        result["approved"].append(name)

    nodes: Sequence[day2.JoiningNode] = given["nodes"]
    follow = [(node["address"], [node["name"]]) for node in nodes]
    settled = day2.all_settled(kube, nodes, served=given["approve"])
    for node in nodes if settled else ():
        log.info(f"Node {node['address']}: Node is Ready")
    ready = settled or follow_nodes(
        kube, follow, log, approve if given["approve"] else None, limit=given["minutes"] * 60
    )
    result |= {"changed": bool(result["approved"]), "seconds": round(time.monotonic() - start, 1)}
    if not ready:
        lost = [text for level, text in log.lines if level == "error"]
        hint = "" if given["approve"] else "; certificate requests wait for approval unless --approve is given"
        return {**result, "exit_code": int(Exit.FAILED), "msg": "; ".join(lost) + hint}
    joined = day2.joined_nodes(kube, nodes)
    return {**result, "joined": joined, "table": day2.table(joined)}


def follow_nodes(
    kube: ClusterClient,
    nodes: Sequence[tuple[str, Sequence[str]]],
    log: Log,
    approve: Callable[[str], None] | None = None,
    limit: float = joining.LIMIT,
) -> bool:
    """Follow nodes, each an address and its names, with messages in `log`. Return whether all are ready in `limit` seconds.

    Raises `ClusterError` for a token that cannot be read.
    """
    token, lock = joining.watcher_token(kube), threading.Lock()  # nodes are followed by a thread each

    def report(message: Message) -> None:
        with lock:
            log(message.level, message.text)

    return joining.monitor(
        [
            joining.NodeMonitor(address, names, AssistedClient(address, token), kube, report, approve=approve)
            for address, names in nodes
        ],
        limit=limit,
    )
