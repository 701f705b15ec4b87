"""Operations on settings of a cluster in addition to its fields: install-config, ignored validations, the page's settings; and its defaults."""

from __future__ import annotations

from typing import Any

from ....plugins.module_utils.vocabulary import ClusterStatus
from .. import install_config, operators, usage, validations
from .. import inventory as inv
from ..calls import Call, handler
from ..document import tracked_document
from ..engine import Engine
from ..errors import ApiError
from ..models import Invalid, parse_json
from ..tables import BEFORE_INSTALL


@handler
def default_config(e: Engine, call: Call) -> Any:
    four = {"cidr": "10.128.0.0/14", "host_prefix": 23}
    six = {"cidr": "fd01::/48", "host_prefix": 64}
    return {
        "cluster_network_cidr": four["cidr"],
        "cluster_network_host_prefix": 23,
        "service_network_cidr": "172.30.0.0/16",
        "inactive_deletion_hours": 480,
        "ntp_source": e.config.get("NTP_DEFAULT_SERVER"),
        "cluster_networks_ipv4": [four],
        "cluster_networks_dualstack": [four, six],
        "service_networks_ipv4": [{"cidr": "172.30.0.0/16"}],
        "service_networks_dualstack": [{"cidr": "172.30.0.0/16"}, {"cidr": "fd02::/112"}],
        "forbidden_hostnames": list(inv.FORBIDDEN_HOSTNAMES),
    }


@handler
def supported_platforms(e: Engine, call: Call) -> Any:
    """Return the platforms that all hosts support; `none` without hosts and on a single node."""
    cluster = e.cluster(call.path["cluster_id"])
    hosts = e.hosts_of(cluster["id"])
    if not hosts or validations.is_sno(cluster):
        return ["none"]
    makers = {
        str(e.inventories.get(ident, {}).get("system_vendor", {}).get("manufacturer", "")).lower() for ident in hosts
    }
    wanted = (("baremetal", ""), ("none", ""), ("nutanix", "nutanix"), ("vsphere", "vmware"), ("external", ""))
    return [name for name, maker in wanted if all(maker in text for text in makers)]


@handler
def preflight(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    table, view = e.table(cluster), e.view(cluster)
    names = {"master": "sno"} if validations.is_sno(cluster) else {}
    return {
        "ocp": {
            role: {"quantitative": table.get(names.get(role, role), {}), "qualitative": []}
            for role in ("master", "worker")
        },
        "operators": []
        if validations.is_day2(cluster)
        else [operators.preflight(name, view) for name in operators.OPERATORS],
    }


@handler
def get_install_config(e: Engine, call: Call) -> Any:
    job = e.job(e.cluster(call.path["cluster_id"]))
    return install_config.text(job.cluster, job.hosts)


@handler
def update_install_config(e: Engine, call: Call) -> Any:
    """Accept overrides in any state of the cluster, as upstream; after the installation has started they have no effect."""
    cluster = e.cluster(call.path["cluster_id"])
    try:
        overrides = parse_json(call.body)
    except Invalid as err:
        raise ApiError(400, str(err)) from None
    reason = install_config.wrong_override(overrides)
    if reason:
        raise ApiError(400, reason)
    cluster["install_config_overrides"] = call.body
    usage.install_config(cluster, overrides)
    e.event("install_config_applied", cluster_id=cluster["id"])


@handler
def get_ignored(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    found = {f"{kind}-validation-ids": cluster.get(f"ignored_{kind}_validations", "") for kind in ("cluster", "host")}
    return {name: text for name, text in found.items() if text}


@handler
def set_ignored(e: Engine, call: Call) -> Any:
    cluster = e.cluster(call.path["cluster_id"])
    if cluster["status"] not in (*BEFORE_INSTALL, ClusterStatus.ADDING_HOSTS):
        raise ApiError(
            400,
            f"Cluster {cluster['id']} is in status {cluster['status']}: validations are ignored before the installation only",
        )
    tables = {
        kind: {entry.ident for entry in table}
        for kind, table in (("host", validations.HOST), ("cluster", validations.CLUSTER))
    }
    found: dict[str, str] = {}
    unknown: list[str] = []
    fixed: list[str] = []
    unread: list[str] = []
    for kind, every in tables.items():
        text = found[kind] = call.body.get(f"{kind}-validation-ids", "")
        try:
            idents = parse_json(text) if text else []
        except Invalid:
            idents = None
        if not isinstance(idents, list) or not all(isinstance(ident, str) for ident in idents):
            unread.append(f"error during unmarshal of json for ignored {kind} validations")
            continue
        known = every | {"all"}
        unknown += [
            f"Validation ID '{ident[:80]}' is not a known {kind} validation" for ident in idents if ident not in known
        ]
        never = [ident for ident in idents if ident in validations.NEVER_IGNORED[kind]]
        if never:
            fixed.insert(0, f"unable to ignore the following {kind} validations ({', '.join(never)})")
    problems = unread + unknown + fixed
    if problems:
        raise ApiError(400, "cannot proceed due to the following errors: " + "\n".join(problems))
    tracked_document(cluster).set(ignored_cluster_validations=found["cluster"], ignored_host_validations=found["host"])
    e.touch_cluster(cluster["id"])
    e.touch_hosts(cluster["id"])
    return get_ignored(e, call)


@handler
def get_ui_settings(e: Engine, call: Call) -> Any:
    return e.cluster(call.path["cluster_id"]).get("_ui_settings", "")


@handler
def set_ui_settings(e: Engine, call: Call) -> Any:
    e.cluster(call.path["cluster_id"])["_ui_settings"] = call.body
    return call.body
