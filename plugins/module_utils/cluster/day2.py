"""Day-2 nodes of a plan: which of them are to be added, their nodes-config.yaml, and what they must be in the end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from ..errors import LabError
from ..installer.nodes_config import FILENAME
from ..plan import configs, phases
from ..plan.machines import Node, in_network
from ..plan.model import Plan
from ..plan.rundir import Change, dump
from . import joining
from .client import ClusterClient, is_true
from .inspection import architecture


class JoiningNode(TypedDict):
    """A node that is to join: its host name, and the address by which it is followed."""

    name: str
    address: str


class JoinedNode(TypedDict):
    """A node that has joined, as the OpenShift API has it. architecture: as Go names it; roles: by its labels, sorted."""

    name: str
    address: str
    architecture: str
    roles: list[str]


def chosen_nodes(plan: Plan, names: Sequence[str] = ()) -> list[Node]:
    """Return the day-2 nodes that have one of `names`, or all without names, in the order of the plan.

    Raises `LabError` for a plan without such nodes, and for a name that none of them has.
    """
    nodes = phases.joining_nodes(plan)
    if not nodes:
        raise LabError(
            f"cluster {plan['cluster']['name']} has no node to add: give one `day2: true` in nodes of its profile, and prepare it"
        )
    known = [node["name"] for node in nodes]
    if unknown := [name for name in names if name not in known]:
        raise LabError(
            f"{', '.join(unknown)}: not a day-2 node of cluster {plan['cluster']['name']}; there are {', '.join(known)}"
        )
    return [node for node in nodes if not names or node["name"] in names]


def follow(plan: Plan, nodes: Sequence[Node]) -> list[JoiningNode]:
    """Return names and first addresses of nodes in the machine network."""
    network = plan["networks"][0]["name"]
    return [{"name": node["name"], "address": in_network(node, network)["addresses"][0]["ip"]} for node in nodes]


def nodes_config(plan: Plan, directory: Path, architecture: str = "") -> list[Change]:
    """Return the change that makes nodes-config.yaml of the directory that of the plan; none if it is.

    It has all day-2 nodes, also those that have joined: so the image stays the same while they join one after another.
    architecture: theirs, as Go names it; empty for that of the cluster.
    """
    config = configs.nodes_config(plan)
    text = dump({"cpuArchitecture": architecture, **config} if architecture else config)
    path = directory / FILENAME
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    return [] if before == text else [Change(path, before, text, 0o600)]


def missing(kube: ClusterClient, nodes: Sequence[JoiningNode]) -> list[JoiningNode]:
    """Return those that are not nodes of the cluster yet. Raises `ClusterError`."""
    there = {node["metadata"]["name"].partition(".")[0] for node in kube.nodes()}
    return [node for node in nodes if node["name"].partition(".")[0] not in there]


def all_settled(kube: ClusterClient, nodes: Sequence[JoiningNode], *, served: bool) -> bool:
    """Return whether all nodes are Ready and none of their certificate requests waits: then there is nothing to follow.

    served: a request for a serving certificate must have been approved, too. Raises `ClusterError`.
    """
    there = {node["metadata"]["name"].partition(".")[0]: node for node in kube.nodes()}
    requests = kube.certificate_requests()
    for node in nodes:
        known, names = there.get(node["name"].partition(".")[0]), [node["name"]]
        if known is None or not is_true(known, "Ready"):
            return False
        if any(joining.pending(requests, signer, names) for signer in (joining.CLIENT_SIGNER, joining.SERVING_SIGNER)):
            return False
        own = [one for one in requests if joining.approvable(one, joining.SERVING_SIGNER, names)]
        if served and not any(joining.is_approved(one) for one in own):
            return False
    return True


def joined_nodes(kube: ClusterClient, nodes: Sequence[JoiningNode]) -> list[JoinedNode]:
    """Return nodes of the cluster with what they are there.

    Raises `ClusterError`, and `LabError` with all nodes that are not Ready, not workers, or not of the cluster's architecture.
    """
    found, wrong, wanted = [], [], architecture(kube)
    there = {node["metadata"]["name"].partition(".")[0]: node for node in kube.nodes()}
    for node in nodes:
        known = there.get(node["name"].partition(".")[0])
        if known is None or not is_true(known, "Ready"):
            wrong.append(f"{node['name']} is {'not part of the cluster' if known is None else 'not Ready'}")
            continue
        prefix = "node-role.kubernetes.io/"
        roles = sorted(
            label.removeprefix(prefix) for label in known["metadata"].get("labels") or {} if label.startswith(prefix)
        )
        machine = str(known["status"].get("nodeInfo", {}).get("architecture", ""))
        if "worker" not in roles:
            wrong.append(f"{node['name']} has the role {', '.join(roles) or 'none'}: must be worker")
        if machine != wanted:
            wrong.append(f"{node['name']} has the architecture {machine}: must be {wanted}")
        found.append(JoinedNode(name=node["name"], address=node["address"], architecture=machine, roles=roles))
    if wrong:
        raise LabError("; ".join(wrong))
    return found


def table(nodes: Sequence[JoinedNode]) -> str:
    """Return nodes that have joined as text, a line each: name, address, state, roles, architecture."""
    width = max((len(node["name"]) for node in nodes), default=0)
    return "\n".join(
        f"{node['name']:<{width}}  {node['address']}  Ready  {','.join(node['roles'])}  {node['architecture']}"
        for node in nodes
    )
