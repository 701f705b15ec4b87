"""Whether the nodes of a lab pulled every image through its proxy: from the logs of the proxy and of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..plan import faults, names, proxied
from ..plan.machines import interfaces
from ..plan.model import Plan
from ..vocabulary import Port
from .links import Finding
from .pulled import CONNECT, CONTENT, responses


def findings(plan: Plan) -> Iterator[Finding]:
    """Yield which nodes connected to the lab's registry through the proxy, and which ones pulled past it.

    Nothing where the registry is not behind the proxy. A node has its addresses in the live system and after the installation.
    """
    registry = proxied.registry(plan["services"])
    if not registry:
        return
    nodes = {
        node["name"]: {address["ip"] for nic in interfaces(node) for address in nic["addresses"]}
        for node in plan["nodes"]
        if node["role"] != faults.EXTRA
    }
    expected = ", ".join(nodes)
    proxy, mirror = (Path(names.service_log(plan["services"]["directory"], name)) for name in ("proxy", "registry"))
    try:
        connections = [one for one in responses(proxy) if one.method == CONNECT and one.status == 200]
        requests = [one for one in responses(mirror) if CONTENT.match(one.uri)]
    except OSError as error:
        yield Finding("pulls through the proxy", expected, f"{error.filename}: {error.strerror}")
        return
    through = {one.address for one in connections if one.uri == f"{registry}:{Port.HTTPS}"}
    past = {one.address for one in requests}  # of the proxy's connections it is the sandbox's own
    messages = {name: name if addresses & through else f"{name} had no connection" for name, addresses in nodes.items()}
    messages |= {name: f"{name} pulled past the proxy" for name, addresses in nodes.items() if addresses & past}
    yield Finding("pulls through the proxy", expected, ", ".join(messages.values()))
