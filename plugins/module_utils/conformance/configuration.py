"""What describes an OpenShift cluster: ClusterVersion, ClusterOperators, configuration, pools, nodes, the console's route."""

from __future__ import annotations

from ..vocabulary import Port
from .api import MERGE, TABLE, Object, conditions, equal, expect, wait_until
from .model import Lab, case

CONFIG = "/apis/config.openshift.io/v1"
VERSION = f"{CONFIG}/clusterversions/version"
OPERATORS = f"{CONFIG}/clusteroperators"
POOLS = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools"


def is_true(obj: Object, kind: str) -> bool:
    """Return whether a condition is True."""
    return conditions(obj).get(kind, {}).get("status") == "True"


@case
def version_is_available(lab: Lab) -> None:
    """The ClusterVersion of an installed cluster is Available, and neither Progressing nor Failing."""
    found = conditions(lab.admin.get(VERSION))
    states = {kind: found.get(kind, {}).get("status") for kind in ("Available", "Progressing", "Failing")}
    equal(states, {"Available": "True", "Progressing": "False", "Failing": "False"}, "conditions")


@case
def version_history(lab: Lab) -> None:
    """The first entry of the history is Completed, and has the desired version and image."""
    status = lab.admin.get(VERSION)["status"]
    entry, desired = status["history"][0], status["desired"]
    equal(entry["state"], "Completed", "state")
    expect(entry["startedTime"] <= entry["completionTime"], entry)
    equal((entry["version"], entry["image"]), (desired["version"], desired["image"]), "version and image")


@case
def version_conditions(lab: Lab) -> None:
    """Each condition of the ClusterVersion has a status and the time of its last transition."""
    for kind, found in conditions(lab.admin.get(VERSION)).items():
        expect(found["status"] in ("True", "False", "Unknown") and found["lastTransitionTime"], f"{kind}: {found}")


@case
def version_message(lab: Lab) -> None:
    """The message of Progressing names the installed version."""
    found = lab.admin.get(VERSION)
    expect(found["status"]["desired"]["version"] in conditions(found)["Progressing"]["message"], "message")


@case
def version_has_an_id(lab: Lab) -> None:
    """The ClusterVersion has the ID of the cluster."""
    expect(len(lab.admin.get(VERSION)["spec"]["clusterID"]) > 1, "clusterID")


@case
def version_is_one(lab: Lab) -> None:
    """There is one ClusterVersion, named version."""
    equal([v["metadata"]["name"] for v in lab.admin.items(f"{CONFIG}/clusterversions")], ["version"], "names")


@case
def version_observes_its_spec(lab: Lab) -> None:
    """A change of the channel raises the generation, which the operator observes; conditions keep their times."""
    before = lab.admin.get(VERSION)
    channel = before["spec"].get("channel")
    try:
        changed = lab.admin.patch(VERSION, {"spec": {"channel": "conformance-1.0"}})
        equal(changed["metadata"]["generation"], before["metadata"]["generation"] + 1, "generation")
        wanted = changed["metadata"]["generation"]

        def observed() -> bool:
            return int(lab.admin.get(VERSION)["status"]["observedGeneration"]) >= int(wanted)

        wait_until("observedGeneration", observed, 120)
        stamps = [conditions(obj)["Available"]["lastTransitionTime"] for obj in (before, lab.admin.get(VERSION))]
        equal(stamps[1], stamps[0], "time of the last transition")
    finally:
        lab.admin.patch(VERSION, {"spec": {"channel": channel}})


@case
def version_checks_types(lab: Lab) -> None:
    """A channel that is not a string is 422 Invalid."""
    found = lab.admin.refused("PATCH", VERSION, 422, "Invalid", {"spec": {"channel": 5}}, content_type=MERGE)
    expect("spec.channel" in found["message"], found["message"])


@case
def version_status_is_apart(lab: Lab) -> None:
    """A patch of the ClusterVersion does not write its status."""
    lab.admin.patch(VERSION, {"status": {"versionHash": "conformance"}})
    expect(lab.admin.get(VERSION)["status"].get("versionHash") != "conformance", "the status is written")


@case
def version_table(lab: Lab) -> None:
    """The table of ClusterVersions has the columns of oc."""
    found = lab.admin.get(f"{CONFIG}/clusterversions", accept=TABLE)
    shown = [c["name"] for c in found["columnDefinitions"] if not c["priority"]]
    equal(shown, ["Name", "Version", "Available", "Progressing", "Since", "Status"], "columns")


@case
def operators_of_a_cluster(lab: Lab) -> None:
    """The ClusterOperators of a control plane and of ingress exist."""
    found = {o["metadata"]["name"] for o in lab.admin.items(OPERATORS)}
    wanted = {
        "authentication",
        "console",
        "dns",
        "etcd",
        "ingress",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "machine-config",
        "monitoring",
        "network",
        "openshift-apiserver",
    }
    expect(wanted <= found, f"missing: {sorted(wanted - found)}")


@case
def operators_are_available(lab: Lab) -> None:
    """Each ClusterOperator of an installed cluster is Available and not Degraded."""
    bad = [
        o["metadata"]["name"]
        for o in lab.admin.items(OPERATORS)
        if not is_true(o, "Available") or is_true(o, "Degraded")
    ]
    equal(bad, [], "operators that are not available, or degraded")


@case
def operator_conditions(lab: Lab) -> None:
    """Each ClusterOperator has Available, Progressing and Degraded, with the time of the last transition."""
    for operator in lab.admin.items(OPERATORS):
        found = conditions(operator)
        expect({"Available", "Progressing", "Degraded"} <= set(found), operator["metadata"]["name"])
        expect(all(c["lastTransitionTime"] for c in found.values()), operator["metadata"]["name"])


@case
def operator_versions(lab: Lab) -> None:
    """Each ClusterOperator that is available reports the version of the cluster."""
    version = lab.admin.get(VERSION)["status"]["desired"]["version"]
    for operator in lab.admin.items(OPERATORS):
        versions = {v["name"]: v["version"] for v in operator["status"].get("versions") or []}
        equal(versions.get("operator"), version, operator["metadata"]["name"])


@case
def operator_table(lab: Lab) -> None:
    """The table of ClusterOperators has the columns of oc."""
    found = lab.admin.get(OPERATORS, accept=TABLE)
    shown = [c["name"] for c in found["columnDefinitions"] if not c["priority"]]
    equal(shown, ["Name", "Version", "Available", "Progressing", "Degraded", "Since", "Message"], "columns")


@case
def operator_status_is_apart(lab: Lab) -> None:
    """An operator reports its conditions by the status subresource; its creation drops them."""
    name, stamp = lab.name(), "2025-01-01T00:00:00Z"
    state = {"type": "Available", "status": "True", "lastTransitionTime": stamp, "reason": "x", "message": "x"}
    body = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {}}
    path = lab.remove_later(f"{OPERATORS}/{name}")
    lab.admin.post(OPERATORS, {**body, "status": {"conditions": [state]}})
    try:
        equal(conditions(lab.admin.get(path)), {}, "conditions after the creation")
        lab.admin.patch(f"{path}/status", {"status": {"conditions": [state]}})
        equal(conditions(lab.admin.get(path))["Available"]["lastTransitionTime"], stamp, "time")
    finally:
        lab.admin.delete(path)


@case
def operators_are_watched(lab: Lab) -> None:
    """A watch of ClusterOperators sends a change of the status."""
    name = lab.name()
    body = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {}}
    path = lab.remove_later(f"{OPERATORS}/{name}")
    start = lab.admin.post(OPERATORS, body)["metadata"]["resourceVersion"]
    lab.admin.patch(f"{path}/status", {"status": {"versions": [{"name": "operator", "version": "1"}]}})
    lab.admin.delete(path)
    query = {"resourceVersion": start, "fieldSelector": f"metadata.name={name}"}
    with lab.admin.watch(OPERATORS, **query) as events:
        equal(events.next("MODIFIED", name)["status"]["versions"][0]["version"], "1", "version")
        events.next("DELETED", name)


@case
def infrastructure(lab: Lab) -> None:
    """Infrastructure has a name, URLs of the API, platform and topologies."""
    found = lab.admin.get(f"{CONFIG}/infrastructures/cluster")["status"]
    expect(found["infrastructureName"] and found["apiServerURL"].startswith("https://api."), found)
    expect(found["apiServerInternalURI"].startswith("https://api-int."), found["apiServerInternalURI"])
    equal(found["platformStatus"]["type"], found["platform"], "platform")
    topologies = ("SingleReplica", "HighlyAvailable", "HighlyAvailableArbiter", "DualReplica", "External")
    expect(found["controlPlaneTopology"] in topologies, found["controlPlaneTopology"])


@case
def names_agree(lab: Lab) -> None:
    """DNS, Ingress and the URL of the API have one domain."""
    domain = lab.admin.get(f"{CONFIG}/dnses/cluster")["spec"]["baseDomain"]
    equal(lab.admin.get(f"{CONFIG}/ingresses/cluster")["spec"]["domain"], f"apps.{domain}", "domain of Ingress")
    url = lab.admin.get(f"{CONFIG}/infrastructures/cluster")["status"]["apiServerURL"]
    equal(url, f"https://api.{domain}:{Port.API}", "URL")


@case
def network(lab: Lab) -> None:
    """Network has the cluster and service networks, in spec and status alike."""
    found = lab.admin.get(f"{CONFIG}/networks/cluster")
    for part in ("clusterNetwork", "serviceNetwork", "networkType"):
        expect(found["spec"][part] and found["spec"][part] == found["status"][part], f"{part} differs")


@case
def install_config(lab: Lab) -> None:
    """ConfigMap cluster-config-v1 has the install-config, without the pull secret."""
    found = lab.admin.get("/api/v1/namespaces/kube-system/configmaps/cluster-config-v1")["data"]["install-config"]
    expect('"auths"' not in found, "the pull secret is in it")


@case
def pull_secret(lab: Lab) -> None:
    """Secret pull-secret in openshift-config is a dockerconfigjson."""
    found = lab.admin.get("/api/v1/namespaces/openshift-config/secrets/pull-secret")
    equal((found["type"], set(found["data"])), ("kubernetes.io/dockerconfigjson", {".dockerconfigjson"}), "it")


@case
def console(lab: Lab) -> None:
    """The route of the console is admitted, under the domain of Ingress, and its CA is published."""
    domain = lab.admin.get(f"{CONFIG}/ingresses/cluster")["spec"]["domain"]
    route = lab.admin.get("/apis/route.openshift.io/v1/namespaces/openshift-console/routes/console")
    expect(route["spec"]["host"].endswith(f".{domain}"), route["spec"]["host"])
    admitted = [c for i in route["status"]["ingress"] for c in i["conditions"] if c["type"] == "Admitted"]
    expect(any(c["status"] == "True" for c in admitted), "it is not admitted")
    ca = lab.admin.get("/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert")
    expect(ca["data"]["ca-bundle.crt"], "the CA is empty")


@case
def pools(lab: Lab) -> None:
    """MachineConfigPools master and worker are updated, with a rendered configuration that exists."""
    found = {pool["metadata"]["name"]: pool for pool in lab.admin.items(POOLS)}
    for name in ("master", "worker"):
        status = found[name]["status"]
        expect(
            is_true(found[name], "Updated") and not is_true(found[name], "Degraded"), f"{name}: {status['conditions']}"
        )
        equal(status["readyMachineCount"], status["machineCount"], f"machines of {name}")
        rendered = status["configuration"]["name"]
        expect(rendered.startswith(f"rendered-{name}-"), rendered)
        lab.admin.get(f"/apis/machineconfiguration.openshift.io/v1/machineconfigs/{rendered}")


@case
def nodes(lab: Lab) -> None:
    """Each node is Ready, and has a role, its host name as a label, an address, and a kubelet version."""
    for node in lab.admin.items("/api/v1/nodes"):
        name, labels, status = node["metadata"]["name"], node["metadata"]["labels"], node["status"]
        expect(is_true(node, "Ready"), f"{name} is not Ready")
        expect(any(label.startswith("node-role.kubernetes.io/") for label in labels), f"{name} has no role")
        expect(labels.get("kubernetes.io/hostname"), f"{name} has no host name")
        kinds = {address["type"] for address in status["addresses"]}
        expect({"InternalIP", "Hostname"} <= kinds, f"{name}: {kinds}")
        expect(status["nodeInfo"]["kubeletVersion"].startswith("v1."), status["nodeInfo"])


@case
def node_table(lab: Lab) -> None:
    """The table of nodes has the columns of kubectl."""
    found = lab.admin.get("/api/v1/nodes", accept=TABLE)
    shown = [c["name"] for c in found["columnDefinitions"] if not c["priority"]]
    equal(shown, ["Name", "Status", "Roles", "Age", "Version"], "columns")


@case
def node_labels(lab: Lab) -> None:
    """A label of a node can be added and removed."""
    path, label = f"/api/v1/nodes/{lab.node_name}", "conformance.example.test/label"
    try:
        found = lab.admin.patch(path, {"metadata": {"labels": {label: "x"}}})
        equal(found["metadata"]["labels"][label], "x", "label")
        chosen = lab.admin.items("/api/v1/nodes", labelSelector=label)
        equal([n["metadata"]["name"] for n in chosen], [lab.node_name], "nodes")
    finally:
        lab.admin.patch(path, {"metadata": {"labels": {label: None}}})
