"""The operations the service serves: method, path, handler, security, parameters, body and status, as data.

Paths and security are those of the API description (basePath /api/assisted-install). `?name:type`: a query parameter,
`*` after the name when required; `body=name:model`: the body's name in the description and its model; `file`: the answer is a file.
Schemes: a agentAuth, u userAuth, w watcherAuth, `-` none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .models import MODELS, Invalid
from .schema import quoted
from .tables import CLUSTER_FILES

BASE = "/api/assisted-install"
_C, _I, _H = (
    "/v2/clusters/{cluster_id}",
    "/v2/infra-envs/{infra_env_id}",
    "/v2/infra-envs/{infra_env_id}/hosts/{host_id}",
)
_FILES = "|".join(CLUSTER_FILES)
_ROLES = "master|arbiter|worker|auto-assign"
_EVENTS = (
    "?cluster_id:uuid ?host_id:uuid ?host_ids:csv(uuid) ?infra_env_id:uuid ?limit:int ?offset:int"
    " ?order:enum(ascending|descending) ?severities:csv(enum(info|warning|error|critical)) ?message:str ?deleted_hosts:bool ?cluster_level:bool ?categories:str"
)
_PLATFORM_TYPES = "?platform_type:enum(baremetal|none|nutanix|vsphere|external) ?external_platform_name:str"
_PLATFORM = f"?cpu_architecture:enum(x86_64|aarch64|arm64|ppc64le|s390x|multi) {_PLATFORM_TYPES}"
_DETAILED = f"?cpu_architecture:enum(x86_64|arm64|ppc64le|s390x|multi) {_PLATFORM_TYPES}"
_PRESIGNED = "bootstrap.ign|master.ign|metadata.json|worker.ign|install-config.yaml|logs|manifests"
_PRESIGNED_LOGS = "?logs_type:enum(host|controller|all) ?host_id:uuid ?additional_name:str"
_SCRIPT_TYPE = "enum(discovery-image-always|boot-order-control)"
_SCRIPT = f"?mac:mac ?ipxe_script_type:{_SCRIPT_TYPE}"
_ISO_TYPE = "?discovery_iso_type:enum(full-iso|minimal-iso|disconnected-iso)"
_CREDENTIALS = "kubeadmin-password|kubeconfig|kubeconfig-noingress"

TEXT = f"""
POST /v2/clusters register_cluster u 201 body=newClusterParams:cluster-create-params
GET /v2/clusters list_clusters uw 200 ?openshift_cluster_id:uuid ?ams_subscription_ids:str ?with_hosts:bool ?owner:str
GET /v2/clusters/default-config default_config u 200
POST /v2/clusters/import import_cluster u 201 body=newImportClusterParams:import-cluster-params
GET {_C} get_cluster uaw 200 ?exclude-hosts:bool
POST /v2/clusters/disconnected register_disconnected_cluster u 201 body=newClusterParams:disconnected-cluster-create-params
PATCH {_C} update_cluster u 201 body=clusterUpdateParams:v2-cluster-update-params
DELETE {_C} delete_cluster u 204
PUT {_C}/progress update_finalizing a 200 body=finalizingProgress:cluster-finalizing-progress
GET {_C}/hosts list_cluster_hosts ua 200 ?role:enum({_ROLES}) ?status:str ?with-inventory:bool ?with-connectivity:bool
GET {_C}/supported-platforms supported_platforms u 200
GET {_C}/credentials credentials u 200
GET {_C}/downloads/files download_file ua 200 file ?file_name*:enum({_FILES})
GET {_C}/downloads/credentials download_credentials ua 200 file ?file_name*:enum({_CREDENTIALS})
GET {_C}/downloads/files-presigned presigned_cluster_file u 200 ?file_name*:enum({_PRESIGNED}) {_PRESIGNED_LOGS}
GET {_C}/downloads/credentials-presigned presigned_cluster_file u 200 ?file_name*:enum({_CREDENTIALS})
GET {_C}/install-config get_install_config u 200
PATCH {_C}/install-config update_install_config u 201 body=installConfigParams:str
POST {_C}/actions/install install_cluster u 202
POST {_C}/actions/cancel cancel_cluster u 202
POST {_C}/actions/reset reset_cluster u 202
POST {_C}/actions/allow-add-workers allow_add_hosts u 202
POST {_C}/actions/allow-add-hosts allow_add_hosts u 202
POST {_C}/actions/complete-installation complete_installation a 202 body=completionParams:completion-params
GET {_C}/preflight-requirements preflight u 200
POST {_C}/uploads/ingress-cert upload_ingress_cert a 201 body=ingressCertParams:str
PUT {_C}/logs-progress cluster_logs_progress a 204 body=logsProgressParams:logs-progress-params
GET {_C}/logs download_logs u 200 file ?logs_type:enum(host|controller|all) ?host_id:uuid
POST {_C}/logs upload_logs a 204 upload ?logs_type*:enum(host|controller|all|) ?infra_env_id:uuid ?host_id:uuid
GET {_C}/manifests list_manifests u 200 ?include_system_generated:bool
POST {_C}/manifests create_manifest u 201 body=createManifestParams:create-manifest-params
PATCH {_C}/manifests update_manifest u 200 body=updateManifestParams:update-manifest-params
DELETE {_C}/manifests delete_manifest u 200 ?folder:enum(manifests|openshift) ?file_name*:str
GET {_C}/manifests/files download_manifest u 200 file ?folder:enum(manifests|openshift) ?file_name*:str
GET {_C}/monitored-operators list_operators a 200 ?operator_name:str
PUT {_C}/monitored-operators report_operator a 200 body=reportParams:operator-monitor-report
GET {_C}/ignored-validations get_ignored u 200
PUT {_C}/ignored-validations set_ignored u 201 body=ignoredValidations:ignored-validations
GET {_C}/ui-settings get_ui_settings u 200
PUT {_C}/ui-settings set_ui_settings u 200 body=uiSettings:str
POST /v2/infra-envs register_infra_env u 201 body=infraenvCreateParams:infra-env-create-params
GET /v2/infra-envs list_infra_envs uw 200 ?cluster_id:uuid ?owner:str
GET {_I} get_infra_env ua 200
PATCH {_I} update_infra_env u 201 body=infraEnvUpdateParams:infra-env-update-params
DELETE {_I} delete_infra_env u 204
GET {_I}/downloads/files download_infra_env_file ua 200 file ?file_name*:enum(discovery.ign|ipxe-script|static-network-config) {_SCRIPT} {_ISO_TYPE}
GET {_I}/downloads/files-presigned presigned_file u 200 ?file_name*:enum(discovery.ign|ipxe-script) ?ipxe_script_type:{_SCRIPT_TYPE}
GET {_I}/downloads/image-url image_url u 200
GET {_I}/downloads/minimal-initrd minimal_initrd u 200 file
POST {_I}/regenerate-signing-key regenerate_key u 204
POST {_I}/hosts register_host a 201 body=newHostParams:host-create-params
GET {_I}/hosts list_hosts ua 200
GET {_H} get_host u 200
PATCH {_H} update_host u 201 body=hostUpdateParams:host-update-params
DELETE {_H} delete_host u 204
GET {_H}/instructions get_instructions a 200 ?timestamp:int
POST {_H}/instructions post_reply a 204 body=reply:step-reply
PUT {_H}/progress update_progress a 200 body=hostProgress:host-progress
PUT {_H}/logs-progress host_logs_progress a 204 body=logsProgressParams:logs-progress-params
POST {_H}/actions/bind bind_host u 200 body=bindHostParams:bind-host-params
POST {_H}/actions/unbind unbind_host u 200
PATCH {_H}/actions/reset-validation/{{validation_id}} reset_validation u 200
POST {_H}/actions/reset reset_host u 200
POST {_H}/actions/install install_host u 202
PATCH {_H}/installer-args update_installer_args u 201 body=installerArgsParams:installer-args-params
GET {_H}/ignition get_host_ignition u 200
PATCH {_H}/ignition update_host_ignition u 201 body=hostIgnitionParams:host-ignition-params
GET /v2/infra-env/{{infra_env_id}}/hosts/{{host_id}}/downloads/ignition download_host_ignition ua 200 file
GET /v2/events list_events uw 200 {_EVENTS}
POST /v2/events trigger_event a 201 body=triggerEventParams:event
GET /v2/component-versions component_versions u 200
GET /v2/openshift-versions openshift_versions u 200 ?version:str ?only_latest:bool
GET /v2/release-sources release_sources u 200
GET /v2/domains domains u 200
GET /v2/supported-operators supported_operators u 200
GET /v2/supported-operators/{{operator_name}} operator_properties u 200
GET /v2/operators/bundles bundles u 200 ?openshift_version:str {_PLATFORM} ?feature_ids:[enum(SNO)]
GET /v2/operators/bundles/{{id}} get_bundle u 200 ?feature_ids:[enum(SNO)]
GET /v2/support-levels/features supported_features u 200 ?openshift_version*:str {_PLATFORM}
GET /v2/support-levels/features/detailed detailed_features u 200 ?openshift_version*:str {_DETAILED}
GET /v2/support-levels/architectures supported_architectures u 200 ?openshift_version*:str
"""

SCHEMES = {"a": "agentAuth", "u": "userAuth", "w": "watcherAuth"}


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    handler: str
    schemes: tuple[str, ...]
    status: int
    #: Name of the body in the description, and its model; empty without a body.
    body_name: str
    body: str
    upload: bool
    file: bool
    #: name -> (type, required)
    query: dict[str, tuple[str, bool]]


def _parse(line: str) -> Operation:
    method, path, handler, schemes, status, *rest = re.split(r" (?![^(]*\))", line)
    query = {}
    for word in rest:
        if word[0] == "?":
            name, __, kind = word[1:].partition(":")
            query[name.rstrip("*")] = (kind, name.endswith("*"))
    body_name, __, body = next((word[5:] for word in rest if word.startswith("body=")), "").partition(":")
    names = tuple(SCHEMES[letter] for letter in schemes if letter in SCHEMES)
    flags = ("upload" in rest, "file" in rest)
    return Operation(method, BASE + path, handler, names, int(status), body_name, body, *flags, query)


OPERATIONS: tuple[Operation, ...] = tuple(_parse(line) for line in TEXT.strip().splitlines())

#: What counts as true in a query; anything else is false (go-openapi's `swag.ConvertBool`).
_TRUE = frozenset({"true", "1", "yes", "ok", "y", "on", "selected", "checked", "t", "enabled"})


def query_value(name: str, kind: str, texts: list[str], place: str = "query") -> Any:
    """Return a query parameter's value, or all values of a list `[kind]`; Invalid if it does not match the description."""
    if kind.startswith("["):
        return [query_value(name, kind[1:-1], [text], place) for text in texts]
    text = texts[-1]
    if kind.startswith("csv("):
        for index, part in enumerate(filter(None, text.split(","))):
            query_value(f"{name}.{index}", kind[4:-1], [part.strip()], place)
        return text
    if kind == "bool":
        return text.lower() in _TRUE
    if kind.startswith("int"):
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", text) or not -(2**63) <= int(text) < 2**63:
            raise Invalid(f"{name} in {place} must be of type int64: {quoted(text)}")
        return MODELS.parameter(kind, int(text), name, place)
    return MODELS.parameter(kind, text, name, place)
