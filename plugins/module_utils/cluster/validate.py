"""Checks of an installed cluster, against its plan if there is one: each reports what was found, and whether that is right."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..addresses import socket_family
from ..log import visible
from ..plan import faults, ipi
from ..plan.machines import Node, home, in_network
from ..plan.model import Plan
from ..plan.topologies import TOPOLOGIES
from ..vocabulary import PLATFORMS, UNINITIALIZED, WITH_VIPS, go_arch
from . import asked, balancing, booted, fencing, links, machine, outside, proxied, way_out
from .client import ClusterClient, ClusterError, conditions, is_true
from .pods import CONTROLLER, NAMESPACE, incomplete, name, trouble

ROLE_LABELS = {
    "master": "node-role.kubernetes.io/master",
    "arbiter": "node-role.kubernetes.io/arbiter",
    "worker": "node-role.kubernetes.io/worker",
}


class Check(NamedTuple):
    """name: what was checked; ok: its result; found: what was observed, as a message; seconds: how long a profile's test took.

    name: such as `master nodes` or `DNS api.ostest.test.metalkube.org`. Its text is for users; no program may depend on
    it.
    """

    name: str
    ok: bool
    found: str
    seconds: float = 0.0


def validate(
    plan: Plan | None,
    kubeconfig: Path,
    connect: Callable[[Path], ClusterClient] = ClusterClient,
    ask: links.Ask | None = None,
    run_dir: Path | None = None,
) -> list[Check]:
    """Return all checks, in the order in which a failure explains those after it.

    plan: of the cluster; None for a cluster that was planned by other means, of which only the OpenShift API is asked.
    ask: runs a command on a node; None: the nodes themselves are not asked. run_dir: with the records of the installation; None: how
    the machines were booted, and those outside of the cluster, are not checked.
    """
    try:
        kube = connect(kubeconfig)
        version = kube.get("/version")
    except (ClusterError, OSError) as error:
        return [Check("kubeconfig", False, str(error)), *(_access(plan) if plan else ())]
    checks = [Check("kubeconfig", True, f"{kube.server} answers, {version.get('gitVersion', 'no version')}")]
    groups: list[tuple[str, Callable[[], Iterable[Check]]]] = [
        ("nodes", lambda: _nodes(plan, kube) if plan else _ready(kube)),
        ("ClusterVersion", lambda: _cluster_version(kube, plan["release"]["version"] if plan else None)),
        ("ClusterOperators", lambda: _operators(kube)),
        ("pods", lambda: _pods(kube)),
    ]
    if plan:
        if not ipi.bootstrap(plan):
            groups.insert(3, (CONTROLLER, lambda: _controller(kube)))
        groups.insert(0, ("platform", lambda: _platform(plan, kube)))
        groups[1:1] = [(title, partial(_compare, plan, kube, check)) for title, check in asked.CHECKS.items()]
    for title, checked in groups:
        try:
            checks += checked()
        except ClusterError as error:
            checks.append(Check(title, False, str(error)))
    if plan and ask:
        checks += _machines(plan, ask)
    if plan and run_dir:
        checks += map(_planned, [*booted.findings(plan, run_dir), *outside.findings(plan)])
    if plan and ask and links.needs_check(plan):
        checks += _links(plan, ask)
    if plan and ask and TOPOLOGIES[plan["cluster"]["topology"]].fencing:
        checks += map(_planned, fencing.findings(plan, ask))
    return [*checks, *(_access(plan) if plan else ())]


def _compare(
    plan: Plan, kube: ClusterClient, check: Callable[[Plan, ClusterClient], Iterable[links.Finding]]
) -> list[Check]:
    """Return what a check of `asked` finds."""
    return [_planned(finding) for finding in check(plan, kube)]


def _machines(plan: Plan, ask: links.Ask) -> Iterable[Check]:
    """Names, firmware, TPMs, disks, leases and way out of the nodes, which are asked at once; as planned is one line for each node."""
    nodes = [node for node in plan["nodes"] if node["role"] != faults.EXTRA]
    with ThreadPoolExecutor() as pool:
        seen = list(pool.map(lambda node: machine.look(plan, node, ask), nodes))
    for node, there in zip(nodes, seen, strict=True):
        if there.problem:
            yield Check(f"machine of {node['name']}", False, there.problem)
            continue
        found = [*machine.findings(node, there), *machine.leases(plan, node, there)]
        if all(one.ok for one in found):
            yield Check(f"machine of {node['name']}", True, "; ".join(f"{one.subject} {one.found}" for one in found))
        for one in found:
            if not one.ok:
                yield _planned(one._replace(subject=f"{one.subject} of {node['name']}"))
    answers = {node["name"]: there.out for node, there in zip(nodes, seen, strict=True) if not there.problem}
    yield from map(_planned, way_out.findings(plan, answers))


def _links(plan: Plan, ask: links.Ask) -> Iterable[Check]:
    """Bonds, VLANs, routes, gateways and extra networks of the nodes, which are asked at once."""
    nodes = [node for node in plan["nodes"] if node["role"] != faults.EXTRA]
    with ThreadPoolExecutor() as pool:
        seen = list(pool.map(lambda node: links.look(plan, node, ask), nodes))
    for node, there in zip(nodes, seen, strict=True):
        if there.problem:
            yield Check(f"network of {node['name']}", False, there.problem)
            continue
        for finding in links.findings(plan, node, there):
            yield _planned(finding._replace(subject=f"{finding.subject} of {node['name']}"))


def _planned(finding: links.Finding) -> Check:
    planned = "" if finding.ok else f"; planned: {finding.expected}"
    return Check(finding.subject, finding.ok, f"{finding.found}{planned}")


def _access(plan: Plan) -> list[Check]:
    balancer = plan["services"].get("balancer")
    served = map(_planned, balancing.findings(balancer) if balancer else ())
    return [*_names(plan), *_vips(plan), *served, *map(_planned, proxied.findings(plan))]


def _role_of(node: dict[str, Any]) -> str:
    labels = node["metadata"].get("labels") or {}
    return next((role for role, label in ROLE_LABELS.items() if label in labels), "none")


def _ready(kube: ClusterClient) -> Iterable[Check]:
    """The nodes of a cluster without a plan: those that are there."""
    nodes = kube.nodes()
    bad = sorted(n["metadata"]["name"] for n in nodes if not is_true(n, "Ready"))
    yield Check(
        "nodes",
        bool(nodes) and not bad,
        f"{len(nodes) - len(bad)} of {len(nodes)} Ready" + (f"; not: {', '.join(bad)}" if bad else ""),
    )


def _nodes(plan: Plan, kube: ClusterClient) -> Iterable[Check]:
    nodes = kube.nodes()
    yield from _roles(plan, nodes)
    names = {node["name"] for node in plan["nodes"]}
    known = {n["metadata"]["name"].split(".")[0]: n for n in nodes}
    for node in plan["nodes"]:
        if node["name"] in known:
            yield _addresses(node, home(node, plan["networks"])["name"], known[node["name"]])
    wanted = go_arch(plan["cluster"]["arch"])
    infos = {name: (known[name].get("status") or {}).get("nodeInfo") or {} for name in sorted(known.keys() & names)}
    seen = {name: info.get("architecture") for name, info in infos.items()}
    others = ", ".join(f"{name} {found or 'unknown'}" for name, found in seen.items() if found != wanted)
    yield _planned(links.Finding("architecture of the nodes", wanted, others or wanted))
    unplanned = sorted(n["metadata"]["name"] for n in nodes if n["metadata"]["name"].split(".")[0] not in names)
    if unplanned:
        yield Check("node names", False, f"not part of this plan: {', '.join(unplanned)}")


def _roles(plan: Plan, nodes: list[dict[str, Any]]) -> Iterable[Check]:
    """Which nodes are Ready in each role, by name: their numbers may be right when two have each other's roles."""
    for role in dict.fromkeys(node["role"] for node in plan["nodes"]):
        wanted = sorted(node["name"] for node in plan["nodes"] if node["role"] == role)
        ready = sorted(n["metadata"]["name"] for n in nodes if _role_of(n) == role and is_true(n, "Ready"))
        ok = sorted(name.split(".")[0] for name in ready) == wanted
        found = f"{len(ready)} of {len(wanted)} Ready: {', '.join(ready) or 'none'}"
        yield Check(f"{role} nodes", ok, found if ok else f"{found}; planned: {', '.join(wanted)}")


def _addresses(planned: Node, network: str, node: dict[str, Any]) -> Check:
    """A node's addresses in its segment of the machine network, those of the cluster's primary family first, as its kubelet reports them."""
    wanted = [ipaddress.ip_address(address["ip"]) for address in in_network(planned, network)["addresses"]]
    reported = [a["address"] for a in (node.get("status") or {}).get("addresses") or [] if a["type"] == "InternalIP"]
    found = ", ".join(reported) or "none"
    if [_address(address) for address in reported] == wanted:
        return Check(f"addresses of {planned['name']}", True, found)
    return Check(f"addresses of {planned['name']}", False, f"{found}; planned: {', '.join(map(str, wanted))}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a kubelet reports; None if it is not one."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _platform(plan: Plan, kube: ClusterClient) -> Iterable[Check]:
    """What the Infrastructure has of its platform: its type, virtual addresses, and an external one's name and manager."""
    infrastructure = kube.infrastructure()
    spec = (infrastructure.get("spec") or {}).get("platformSpec") or {}
    status = (infrastructure.get("status") or {}).get("platformStatus") or {}
    name = plan["cluster"]["platform"]
    wanted, found = [PLATFORMS[name]], [str(status.get("type"))]
    if name in WITH_VIPS:
        section = status.get(name) or {}
        wanted += [*plan["vips"]["api"], *plan["vips"]["ingress"]]
        found += [*(section.get("apiServerInternalIPs") or []), *(section.get("ingressIPs") or [])]
        if plan["services"].get("balancer"):
            wanted.append("load balancer UserManaged")
            found.append(f"load balancer {(section.get('loadBalancer') or {}).get('type')}")
    if external := plan["cluster"].get("external"):
        manager = ((status.get("external") or {}).get("cloudControllerManager") or {}).get("state") or "None"
        wanted += [external["platform_name"], f"cloud controller manager {external['cloud_controller_manager']}"]
        found += [str((spec.get("external") or {}).get("platformName")), f"cloud controller manager {manager}"]
    yield _planned(links.Finding("platform", ", ".join(wanted), ", ".join(found)))
    waiting = sorted(
        node["metadata"]["name"]
        for node in kube.nodes()
        if any(taint["key"] == UNINITIALIZED for taint in (node.get("spec") or {}).get("taints") or [])
    )
    if name not in ("none", "baremetal"):
        yield Check(
            "cloud provider",
            not waiting,
            f"nodes wait for it: {', '.join(waiting)}" if waiting else "no node waits for it",
        )


def _cluster_version(kube: ClusterClient, planned: str | None) -> Iterable[Check]:
    """planned: the version of the plan; None where it names none, as with a release image alone."""
    version = kube.cluster_version()
    ok = is_true(version, "Available") and not is_true(version, "Failing")
    desired = ((version.get("status") or {}).get("desired") or {}).get("version")
    states = ", ".join(
        f"{k}={c['status']}" for k, c in conditions(version).items() if k in ("Available", "Failing", "Progressing")
    )
    # With an image, a plan may have `4.21` alone.
    other = planned is not None and desired != planned and not str(desired).startswith(f"{planned}.")
    yield Check("ClusterVersion", ok and not other, f"{desired}: {states}" + (f"; planned: {planned}" if other else ""))


def _operators(kube: ClusterClient) -> Iterable[Check]:
    operators = kube.cluster_operators()
    bad = [
        o["metadata"]["name"]
        for o in operators
        if not is_true(o, "Available") or is_true(o, "Degraded") or is_true(o, "Progressing")
    ]
    yield Check(
        "ClusterOperators",
        bool(operators) and not bad,
        f"{len(operators) - len(bad)} of {len(operators)} stable" + (f"; not: {', '.join(bad)}" if bad else ""),
    )


def _controller(kube: ClusterClient) -> Iterable[Check]:
    reason = incomplete(kube.controller_job(), kube.pods(NAMESPACE))
    yield Check(CONTROLLER, not reason, reason or "completed")


def _pods(kube: ClusterClient) -> Iterable[Check]:
    pods = kube.pods()
    bad = [f"{name(pod)} {problem}" for pod in pods if (problem := trouble(pod))]
    yield Check(
        "pods",
        bool(pods) and not bad,
        f"{len(pods) - len(bad)} of {len(pods)} running or completed" + (f"; not: {', '.join(bad)}" if bad else ""),
    )


def _resolve(name: str, family: int) -> set[str]:
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(name, None, family, socket.SOCK_STREAM)}
    except OSError:
        return set()


def _names(plan: Plan) -> Iterable[Check]:
    for endpoint in (plan["endpoints"]["api"], plan["endpoints"]["api_int"], plan["endpoints"]["console"]):
        host, addresses = endpoint["host"], endpoint["addresses"]
        found = set().union(*(_resolve(host, family) for family in {_family(a) for a in addresses}))
        yield Check(f"DNS {host}", found == set(addresses), ", ".join(sorted(found)) or "no address")


def _family(address: str) -> int:
    return socket_family(address)


def _vips(plan: Plan) -> Iterable[Check]:
    served = (("API", plan["endpoints"]["api"]), ("ingress", plan["endpoints"]["console"]))
    wanted = [(kind, address, endpoint["port"]) for kind, endpoint in served for address in endpoint["addresses"]]
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda w: _connects(w[1], w[2]), wanted))
    for (kind, address, port), error in zip(wanted, answers, strict=True):
        yield Check(f"{kind} address {address}", not error, error or f"port {port} answers")


def _connects(address: str, port: int) -> str:
    try:
        socket.create_connection((address, port), 15).close()
    except OSError as error:
        return f"port {port}: {error}"
    return ""


def table(checks: list[Check]) -> str:
    """Return the checks as a table.

    A line for each: result, name, what was found, aligned; "" without a check. Texts are printable.
    """
    width = max((len(check.name) for check in checks), default=0)
    return "\n".join(
        visible(f"{'ok  ' if check.ok else 'FAIL'}  {check.name:<{width}}  {check.found}") for check in checks
    )
