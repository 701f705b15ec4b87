"""The description of the API in the tree: the service's routes are those of it, and its facts are upstream's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.api_server.api import BASE, OPERATIONS
from ansible_collections.agentlab.ocp.payload.api_server.app import Service
from ansible_collections.agentlab.ocp.payload.api_server.calls import HANDLERS
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.api_server.models import DOCUMENT, MODELS, STEP_OUTPUTS
from ansible_collections.agentlab.ocp.payload.api_server.store import Store
from ansible_collections.agentlab.ocp.payload.api_server.tables import CLUSTER_FILES
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import FINALIZING_STAGES, STAGES

from .lab import DESCRIPTION, ENV

DEFINITIONS = DOCUMENT["definitions"]
#: Definition -> its name in upstream's description, where that is another one.
UPSTREAM = {
    "api-vip-response": "api_vip_connectivity_response",
    "bundle-create": "bundle-create-params",
    "dhcp-response": "dhcp_allocation_response",
    "disk-config": "disk-config-params",
    "disk-skip-formatting": "disk-skip-formatting-params",
    "disk-speed-response": "disk_speed_check_response",
    "domain-resolution": "domain_resolution_response",
    "event-shown": "event",
    "fencing-credentials": "fencing-credentials-params",
    "free-network": "free_network_addresses",
    "image-availability": "container_image_availability_response",
    "image-status": "container_image_availability",
    "io-perf": "io_perf",
    "kernel-argument": "kernel_argument",
    "key-value": "node-label-params",
    "l2": "l2-connectivity",
    "l3": "l3-connectivity",
    "load-balancer": "load_balancer",
    "mtu-entry": "mtu-report",
    "network-pool": "cluster_network",
    "ntp-response": "ntp_synchronization_response",
    "ntp-source": "ntp_source",
    "operator-create": "operator-create-params",
    "platform-external": "platform_external",
    "refusal": "infra_error",
    "remote-host": "connectivity-remote-host",
    "static-network": "host_static_network_config",
    "subnet-entry": "machine_network",
    "system-vendor": "system_vendor",
    "tang-response": "tang_connectivity_response",
    "upgrade-agent-response": "upgrade_agent_response",
    "verified-vip": "verified_vip",
    "vip": "api_vip",
}
#: Definitions without a name there: parts of others, and the install-config, which its description does not have.
NAMELESS = {"eligibility", "mac-entry", "resolution", "tang-server", "tang-signature", "truncation"}


def test_routes_are_those_of_the_document(tmp_path: Path) -> None:
    config = Config(ENV, tmp_path, tmp_path / "state.sqlite").check()
    engine = Engine(config, Store(config.state_file))
    routes = {
        (route.method, route.resource.canonical)
        for route in Service(engine).app().router.routes()
        if route.resource is not None and route.resource.canonical.startswith(BASE)
    }
    engine.store.close()
    described = {
        (method.upper(), BASE + path) for path, operations in DOCUMENT["paths"].items() for method in operations
    }
    assert routes == described


def test_every_operation_has_a_handler_and_every_handler_an_operation() -> None:
    assert {op.handler for op in OPERATIONS} == set(HANDLERS)
    names = [node["operationId"] for operations in DOCUMENT["paths"].values() for node in operations.values()]
    assert len(names) == len(set(names))


def references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix("#/definitions/")
        for entry in node.values():
            yield from references(entry)
    elif isinstance(node, list):
        for entry in node:
            yield from references(entry)


def test_every_definition_is_used() -> None:
    used = {*references(DOCUMENT), *STEP_OUTPUTS.values(), "install-config"}
    assert used - set(DEFINITIONS) == set()
    assert set(DEFINITIONS) - used == {"refusal"}  # of the framework: no operation names it
    for name in DEFINITIONS:
        assert MODELS.named(name)


def test_enums_are_those_of_the_vocabulary() -> None:
    stage = DEFINITIONS["host-progress"]["properties"]["current_stage"]
    assert stage["enum"] == [str(one) for one in STAGES]
    finalizing = DEFINITIONS["cluster-finalizing-progress"]["properties"]["finalizing_stage"]
    assert finalizing["enum"] == [str(one) for one in FINALIZING_STAGES]
    files = DOCUMENT["paths"]["/v2/clusters/{cluster_id}/downloads/files"]["get"]["parameters"]
    assert next(one for one in files if one["name"] == "file_name")["enum"] == list(CLUSTER_FILES)


def _shape(node: Mapping[str, Any]) -> str:
    """The JSON type of a field, through references."""
    assert DESCRIPTION is not None
    while "$ref" in node:
        name = node["$ref"].rsplit("/", 1)[1]
        node = DEFINITIONS.get(name) or DESCRIPTION.definitions[name]
    return str(node.get("type", "object" if "allOf" in node else "any"))


@pytest.mark.skipif(DESCRIPTION is None, reason="upstream's description is not at hand")
def test_fields_are_upstreams() -> None:
    assert DESCRIPTION is not None
    for name, found in DEFINITIONS.items():
        if "properties" not in found or name in NAMELESS or name.startswith("install-config"):
            continue
        theirs = DESCRIPTION.definitions[UPSTREAM.get(name, name)]
        assert set(found["properties"]) <= set(theirs["properties"]), name
        for field, node in found["properties"].items():
            other = theirs["properties"][field]
            if "$ref" in other:
                other = DESCRIPTION.definitions[other["$ref"].rsplit("/", 1)[1]]
            wanted = other.get("type", "object" if "allOf" in other or "properties" in other else "any")
            assert "any" in (_shape(node), wanted) or _shape(node) == wanted, f"{name}.{field}"
