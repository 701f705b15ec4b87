"""The description of the API in the tree: the service's routes are those of it, and its facts are upstream's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import pytest
from ansible_collections.agentlab.ocp.payload.api_server import bodies, hardware, objects
from ansible_collections.agentlab.ocp.payload.api_server.api import BASE, OPERATIONS
from ansible_collections.agentlab.ocp.payload.api_server.app import Service
from ansible_collections.agentlab.ocp.payload.api_server.calls import HANDLERS
from ansible_collections.agentlab.ocp.payload.api_server.config import Config
from ansible_collections.agentlab.ocp.payload.api_server.engine import Engine
from ansible_collections.agentlab.ocp.payload.api_server.models import DOCUMENT, MODELS, STEP_OUTPUTS
from ansible_collections.agentlab.ocp.payload.api_server.store import Store
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import FINALIZING_STAGES, STAGES
from openapi_spec_validator import OpenAPIV2SpecValidator

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
    "cluster-platform": "platform",
    "fencing-credentials": "fencing-credentials-params",
    "free-network": "free_network_addresses",
    "host-network": "host_network",
    "host-requirements": "cluster-host-requirements-details",
    "image-availability": "container_image_availability_response",
    "image-info": "image_info",
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
    "operator-requirements": "operator-hardware-requirements",
    "platform-external": "platform_external",
    "preflight-requirements": "preflight-hardware-requirements",
    "refusal": "infra_error",
    "remote-host": "connectivity-remote-host",
    "role-requirements": "host-type-hardware-requirements",
    "roles-requirements": "host-type-hardware-requirements-wrapper",
    "static-network": "host_static_network_config",
    "subnet-entry": "machine_network",
    "system-vendor": "system_vendor",
    "tang-response": "tang_connectivity_response",
    "upgrade-agent-response": "upgrade_agent_response",
    "verified-vip": "verified_vip",
    "vip": "api_vip",
}
#: Definitions without a name there: parts of others, and the install-config, which its description does not have.
NAMELESS = {"eligibility", "mac-entry", "problem", "resolution", "tang-server", "tang-signature", "truncation"}
#: Definitions of keys of an object, and of ids in JSON that is a string, to which Swagger has no reference.
KEYS = {"architecture-support-level-id", "cluster-validation-id", "host-validation-id"}
#: Fields that upstream stores and its description omits.
OURS = {"host": {"ignition_endpoint_http_headers"}}


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


def _nodes(node: Any) -> Iterator[Any]:
    """The values of a document, at any depth, without what a mapping names only: schemes without scopes."""
    yield node
    for key, entry in node.items() if isinstance(node, Mapping) else enumerate(node) if isinstance(node, list) else ():
        if key != "security":
            yield from _nodes(entry)


def test_it_is_a_valid_document() -> None:
    OpenAPIV2SpecValidator.schema_validator.validate(DOCUMENT)
    OpenAPIV2SpecValidator(_without_files(DOCUMENT)).validate()


def _without_files(node: Any) -> Any:
    """The document with strings in the place of files: the validator takes a file's schema for one of JSON schema."""
    if isinstance(node, Mapping):
        return {
            key: "string" if (key, entry) == ("type", "file") else _without_files(entry) for key, entry in node.items()
        }
    return [_without_files(entry) for entry in node] if isinstance(node, list) else node


def test_every_answer_is_described() -> None:
    for path, operations in DOCUMENT["paths"].items():
        for method, node in operations.items():
            codes = set(node["responses"])
            assert {"400", "401", "403", "421", "500", "503"} <= codes, f"{method} {path}"
            assert "default" not in codes, f"{method} {path}"
            assert ("404" in codes) >= ("{" in path), f"{method} {path}"
            assert not any(entry == {} for entry in _nodes(node)), f"{method} {path} has a value of any type"


def references(node: Any) -> Iterator[str]:
    for entry in _nodes(node):
        if isinstance(entry, Mapping) and str(entry.get("$ref", "")).startswith("#/definitions/"):
            yield entry["$ref"].removeprefix("#/definitions/")


def test_every_definition_is_used() -> None:
    used = {*references(DOCUMENT), *STEP_OUTPUTS.values(), "install-config", *KEYS}
    assert used - set(DEFINITIONS) == set()
    assert set(DEFINITIONS) - used == set()
    for name in DEFINITIONS:
        assert MODELS.named(name)


def test_enums_are_those_of_the_vocabulary() -> None:
    stage = DEFINITIONS["host-progress"]["properties"]["current_stage"]
    assert stage["enum"] == [str(one) for one in STAGES]
    finalizing = DEFINITIONS["cluster-finalizing-progress"]["properties"]["finalizing_stage"]
    assert finalizing["enum"] == [str(one) for one in FINALIZING_STAGES]
    files = DOCUMENT["paths"]["/v2/clusters/{cluster_id}/downloads/files"]["get"]["parameters"]
    assert next(one for one in files if one["name"] == "file_name")["enum"] == [
        "bootstrap.ign", "master.ign", "arbiter.ign", "worker.ign", "metadata.json", "install-config.yaml", "custom_manifests.json",
        "custom_manifests.yaml",
    ]  # fmt: skip


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
        assert set(found["properties"]) - OURS.get(name, set()) <= set(theirs["properties"]), name
        for field, node in found["properties"].items():
            if field in OURS.get(name, ()):
                continue
            other = theirs["properties"][field]
            if "$ref" in other:
                other = DESCRIPTION.definitions[other["$ref"].rsplit("/", 1)[1]]
            wanted = other.get("type", "object" if "allOf" in other or "properties" in other else "any")
            assert "any" in (_shape(node), wanted) or _shape(node) == wanted, f"{name}.{field}"


#: Types with another name than their definition: the definitions, whose fields such a type has together.
TYPES = {
    "BundleChoice": ("bundle-create",),
    "ClusterParams": ("cluster-create-params", "v2-cluster-update-params"),
    "ClusterNetwork": ("network-pool",),
    "ClusterProgress": ("cluster-progress-info",),
    "DhcpResponse": ("dhcp-response",),
    "DiskChoice": ("disk-config",),
    "DiskSkip": ("disk-skip-formatting",),
    "DiskSpeed": ("disk-speed-response",),
    "HostParams": ("host-update-params",),
    "HostProgress": ("host-progress-info",),
    "InfraEnvParams": ("infra-env-create-params", "infra-env-update-params"),
    "OperatorChoice": ("operator-create",),
    "Platform": ("cluster-platform",),
    "Preparation": ("last-installation-preparation",),
    "Requirement": ("host-requirements",),
    "Subnet": ("subnet-entry",),
    "UpgradeResponse": ("upgrade-agent-response",),
}
OBJECTS = [
    found
    for module in (objects, hardware, bodies)
    for name, found in vars(module).items()
    if is_typeddict(found) and found.__module__ == module.__name__ and name[0] != "_"
]


def _kind(hint: Any) -> Any:
    """A type's notation in a schema: of objects their definitions, of lists that of their values."""
    if is_typeddict(hint):
        return _definitions(hint)
    if get_origin(hint) is list:
        return [_kind(get_args(hint)[0])]
    return {str: "string", int: "integer", float: "number", bool: "boolean"}[hint]


def _definitions(found: type) -> tuple[str, ...]:
    return TYPES.get(found.__name__, (re.sub(r"(?<=[a-z])(?=[A-Z])", "-", found.__name__).lower(),))


def _described(node: Mapping[str, Any]) -> Any:
    name = node.get("$ref", "").rpartition("/")[2]
    if name and "properties" in DEFINITIONS[name]:
        return {"platform": ("cluster-platform",)}.get(name) or next(
            (_definitions(one) for one in OBJECTS if name in _definitions(one)), name
        )
    if name:
        return _described(DEFINITIONS[name])
    return [_described(node["items"])] if node.get("type") == "array" else node["type"]


@pytest.mark.parametrize("found", OBJECTS, ids=lambda found: found.__name__)
def test_types_are_the_definitions(found: type) -> None:
    fields: dict[str, Any] = {}
    for name in _definitions(found):
        fields |= DEFINITIONS[name]["properties"]
    hints = {name: hint for name, hint in get_type_hints(found).items() if name[0] != "_"}
    assert {name: _kind(hint) for name, hint in hints.items()} == {
        name: _described(node) for name, node in fields.items()
    }
