"""Plans that users may have edited: `plan.yaml`, and the fact `agentlab_plan`. Their shape is that of the types in `model`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ..addresses import in_url
from ..documents import Positions
from ..vocabulary import ClusterNames, Port
from . import hypervisors, ipi, screens, tests
from .machines import interfaces
from .model import Plan
from .outside import machines
from .problems import Finding, Path, Problem
from .shapes import MISSING, mismatches


class PlanError(ValueError):
    """Everything that is wrong with a plan, in one report (`problems`).

    The text has a line for each problem, and `remedy` as its last line when there is one.
    """

    def __init__(self, problems: list[Problem], remedy: str = "") -> None:
        self.problems = problems
        super().__init__("\n".join([*(str(problem) for problem in problems), *([remedy] if remedy else [])]))


def check_plan(
    plan: object, source: str = "agentlab_plan", positions: Positions | None = None, remedy: str = ""
) -> Plan:
    """Return `plan`, which is one. Raises `PlanError` with file, field, value and what would be right of all that is wrong.

    source: where the plan is from; remedy: what else can be done, the last line of the report.
    """
    if found := findings(plan):
        raise PlanError([_problem(finding, source, positions) for finding in found], remedy)
    return cast(Plan, plan)


def _problem(finding: Finding, source: str, positions: Positions | None) -> Problem:
    path, value, remedy = finding
    at = None
    # A missing field has no place; the mapping that lacks it has.
    for length in range(len(path), 0, -1):
        at = at or (positions.get(path[:length]) if positions else None)
    return Problem.of(f"{source}:{at[0]}:{at[1]}" if at else source, path, value, remedy)


def findings(plan: object) -> list[Finding]:
    """Return all problems of `plan` as it was read: fields, types, formats, and contradictions.

    Contradictions are looked for only in a plan whose types are right. `plan` is what YAML or a module's option gave.
    """
    return part(plan, Plan) or list(_contradictions(cast(Plan, plan)))


def missing(plan: object) -> list[str]:
    """Return the fields that `plan` lacks, those of list items once; empty when anything else is wrong with its types, too.

    Then the plan is one of an older version of agentlab, and must be made again.
    """
    found = part(plan, Plan)
    if not all(remedy.startswith(MISSING) for __, __, remedy in found):
        return []
    return [*dict.fromkeys(".".join(str(key) for key in path if not isinstance(key, int)) for path, __, __ in found)]


def part(value: object, wanted: object) -> list[Finding]:
    """Return all in which `value` is not of the type `wanted`, one of `model`: `part([...], list[Network])`, say.

    The paths of the findings begin at `value`. An empty list means that it is valid.
    """
    return [(found.path, found.value, found.remedy) for found in mismatches(value, wanted)]


def _contradictions(plan: Plan) -> Iterator[Finding]:
    """Yield what is wrong in how the parts of a plan refer to each other."""
    from . import stored_addresses, stored_names, stored_nmstate  # only a plan that was read needs them

    hypervisor, services = plan["hypervisor"], plan["services"]
    paths: dict[Path, str] = {
        ("hypervisor", "console_dir"): hypervisor["console_dir"],
        ("hypervisor", "pool_dir"): hypervisor["pool_dir"],
        ("services", "directory"): services["directory"],
        ("services", "process_dir"): services["process_dir"],
        ("services", "registry", "storage"): services["registry"]["storage"],
        ("services", "http", "root"): services["http"]["root"],
        **{
            ("nodes", index, "console"): node["console"]
            for index, node in enumerate(plan["nodes"])
            if not node.get("hypervisor")
        },
        **{("machines", index, "console"): one["console"] for index, one in enumerate(machines(plan))},
    }
    if bootstrap := ipi.bootstrap(plan):
        paths[("installer", "bootstrap", "console")] = bootstrap["console"]
        paths[("installer", "bootstrap", "image")] = bootstrap["image"]
    for path, value in paths.items():
        if not value.startswith(hypervisor["state_dir"] + "/"):
            yield path, value, "must be in hypervisor.state_dir, which is removed with the cluster"
    yield from stored_names.wrong_names(plan)
    for name, empty in (("networks", not plan["networks"]), ("nodes", not plan["nodes"])):
        if empty:
            yield (name,), None, "must not be empty"
    for index, network in enumerate(plan["networks"]):
        if not network["subnets"]:
            yield ("networks", index, "subnets"), None, "must not be empty"
    networks = [network["name"] for network in plan["networks"]]
    yield from stored_names.repeated_names(plan)
    for index, node in enumerate(plan["nodes"]):
        if not node["nics"]:
            yield ("nodes", index, "nics"), None, "must not be empty"
        for position, nic in enumerate(node["nics"]):
            if networks and nic["network"] not in networks:
                yield (
                    ("nodes", index, "nics", position, "network"),
                    nic["network"],
                    f"must be one of {', '.join(networks)}",
                )
        known = {one["name"] for one in interfaces(node)}
        for position, link in enumerate(node.get("links") or []):
            bond, vlan, place = link["bond"], link["vlan"], ("nodes", index, "links", position)
            if (bond is None) == (vlan is None):
                yield place, link["name"], "must have either `bond` or `vlan`"
            if networks and link["network"] is not None and link["network"] not in networks:
                yield (*place, "network"), link["network"], f"must be one of {', '.join(networks)}, or null"
            for name in [*(bond["nics"] if bond else []), *([vlan["parent"]] if vlan else [])]:
                if name not in known:
                    yield (*place, "bond" if bond else "vlan"), name, f"must be one of {', '.join(sorted(known))}"
        steps = node.get("screen_steps") or []
        yield from screens.findings(steps, ("nodes", index, "screen_steps"), screen=bool(node.get("screen")))
    hosts = {node["name"]: [a["ip"] for nic in interfaces(node) for a in nic["addresses"]] for node in plan["nodes"]}
    first, ip = plan["rendezvous"]["node"], plan["rendezvous"]["ip"]
    if hosts and first not in hosts:
        yield ("rendezvous", "node"), first, f"must be one of {', '.join(hosts)}"
    elif hosts and ip not in hosts[first]:
        yield ("rendezvous", "ip"), ip, f"must be an address of {first}: {', '.join(hosts[first])}"
    yield from hypervisors.findings(plan)
    for index, one in enumerate(machines(plan)):
        if not one["nics"] or not one["nics"][0]["addresses"]:
            yield ("machines", index, "nics"), None, "must begin with a NIC that has an address"
        for position, nic in enumerate(one["nics"]):
            if networks and nic["network"] not in networks:
                yield (
                    ("machines", index, "nics", position, "network"),
                    nic["network"],
                    f"must be one of {', '.join(networks)}",
                )
    yield from tests.findings(plan["tests"], [*hosts, *(one["name"] for one in machines(plan))])
    yield from stored_addresses.findings(plan)
    yield from stored_nmstate.findings(plan)
    yield from _endpoints(plan)


def _endpoints(plan: Plan) -> Iterator[Finding]:
    """Yield what of the endpoints is not that of the cluster's domain, the VIPs and the rendezvous host."""
    vips, endpoints, ip = plan["vips"], plan["endpoints"], plan["rendezvous"]["ip"]
    names = ClusterNames.of(plan["cluster"]["domain"])
    for name, endpoint, host, port, source, addresses in (
        ("api", endpoints["api"], names.api, Port.API, "vips.api", vips["api"]),
        ("api_int", endpoints["api_int"], names.api_int, Port.API, "vips.api", vips["api"]),
        ("console", endpoints["console"], names.console, Port.HTTPS, "vips.ingress", vips["ingress"]),
        ("service", endpoints["service"], ip, Port.ASSISTED_SERVICE, "rendezvous.ip", [ip]),
    ):
        at = in_url(host) if port == Port.HTTPS else f"{in_url(host)}:{int(port)}"
        url = f"{'http' if name == 'service' else 'https'}://{at}"
        for field, found, wanted in (
            ("host", endpoint["host"], host),
            ("port", endpoint["port"], int(port)),
            ("url", endpoint["url"], url),
        ):
            if found != wanted:
                yield ("endpoints", name, field), found, f"must be {wanted}"
        if endpoint["addresses"] != addresses:
            yield (
                ("endpoints", name, "addresses"),
                endpoint["addresses"],
                f"must be {', '.join(addresses)}, as {source}",
            )
