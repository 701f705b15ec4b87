"""Who may do what: the administrator, nodes, a node that joins, and clients without credentials."""

from __future__ import annotations

from .api import MERGE, STRATEGIC, Api, CaseSkipped, Object, equal, expect
from .model import BOOTSTRAPPER, Lab, case

ACCESS = "/apis/authorization.k8s.io/v1"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def may(api: Api, verb: str, resource: str, group: str = "", **attributes: str) -> bool:
    """Return whether an identity may do something, as it finds out itself."""
    spec = {"resourceAttributes": {"verb": verb, "resource": resource, "group": group, **attributes}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    return bool(api.post(f"{ACCESS}/selfsubjectaccessreviews", body)["status"]["allowed"])


@case
def anonymous_version(lab: Lab) -> None:
    """The version is available without credentials."""
    equal(lab.anonymous.send("GET", "/version").code, 200, "status")


@case
def anonymous_objects(lab: Lab) -> None:
    """Without credentials nodes are 403 Forbidden, for the user system:anonymous."""
    found = lab.anonymous.refused("GET", "/api/v1/nodes", 403, "Forbidden")
    expect(
        found["message"].startswith('nodes is forbidden: User "system:anonymous" cannot list resource'),
        found["message"],
    )


@case
def anonymous_discovery(lab: Lab) -> None:
    """Without credentials an object cannot be created."""
    lab.anonymous.refused("POST", lab.config_maps, 403, "Forbidden", {"metadata": {"name": "x"}})


@case
def unknown_token(lab: Lab) -> None:
    """A token that is not valid is 401 Unauthorized."""
    lab.with_credentials("conformance").refused("GET", "/api/v1/nodes", 401, "Unauthorized")


@case
def admin_may_do_everything(lab: Lab) -> None:
    """The administrator may do everything, also by an access review."""
    expect(may(lab.admin, "*", "*", "*"), "not everything")
    expect(may(lab.admin, "delete", "secrets", namespace="kube-system"), "not delete secrets")


@case
def who_am_i(lab: Lab) -> None:
    """A SelfSubjectReview names the user and its groups."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = lab.node.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)["status"]["userInfo"]
    equal(found["username"], f"system:node:{lab.node_name}", "username")
    expect({"system:nodes", "system:authenticated"} <= set(found["groups"]), found["groups"])


@case
def service_account_groups(lab: Lab) -> None:
    """A service account has the groups of all service accounts, of its namespace, and of authenticated users."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = lab.bootstrap.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", body)["status"]["userInfo"]
    equal(found["username"], BOOTSTRAPPER, "username")
    namespace = BOOTSTRAPPER.split(":")[2]
    wanted = {"system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"}
    expect(wanted <= set(found["groups"]), found["groups"])


@case
def review_of_another(lab: Lab) -> None:
    """A SubjectAccessReview answers for another user."""
    attributes = {"verb": "list", "resource": "certificatesigningrequests", "group": "certificates.k8s.io"}
    for resource, wanted in (("certificatesigningrequests", True), ("certificatesigningrequests/approval", False)):
        name, __, sub = resource.partition("/")
        about = {**attributes, "resource": name, **({"subresource": sub, "verb": "update"} if sub else {})}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": BOOTSTRAPPER, "resourceAttributes": about},
        }
        equal(lab.admin.post(f"{ACCESS}/subjectaccessreviews", body)["status"]["allowed"], wanted, resource)


@case
def impersonation_is_refused(lab: Lab) -> None:
    """A user whom the administrator impersonates has no more rights than its own."""
    plain = lab.identity("conformance-user")
    plain.refused("GET", "/api/v1/nodes", 403, "Forbidden")
    expect(not may(plain, "list", "nodes"), "it may list nodes")


@case
def discovery_for_all(lab: Lab) -> None:
    """Each authenticated user can discover the API."""
    plain = lab.identity("conformance-user")
    for path in ("/api", "/apis", "/api/v1", "/apis/config.openshift.io/v1"):
        plain.get(path)


@case
def refusal(lab: Lab) -> None:
    """A refusal names user, verb, resource, group and namespace."""
    found = lab.identity("conformance-user").refused("GET", f"{lab.config_maps}/one", 403, "Forbidden")
    wanted = (
        'configmaps "one" is forbidden: User "conformance-user" cannot get resource "configmaps" in API group "" in the '
        f'namespace "{lab.namespace}"'
    )
    expect(found["message"].startswith(wanted), found["message"])
    equal((found["details"]["name"], found["details"]["kind"]), ("one", "configmaps"), "details")


@case
def node_reads(lab: Lab) -> None:
    """A node reads itself and services, and the pods that are bound to it."""
    lab.node.get(f"/api/v1/nodes/{lab.node_name}")
    lab.node.get("/api/v1/services")
    lab.node.get("/api/v1/pods", fieldSelector=f"spec.nodeName={lab.node_name}")


@case
def node_writes_itself(lab: Lab) -> None:
    """A node patches its own status."""
    path = f"/api/v1/nodes/{lab.node_name}/status"
    equal(lab.node.patch(path, {"status": {}}, content_type=STRATEGIC)["kind"], "Node", "kind")


@case
def node_does_not_write_others(lab: Lab) -> None:
    """A node cannot patch another node."""
    names = [node["metadata"]["name"] for node in lab.admin.items("/api/v1/nodes")]
    other = next((name for name in names if name != lab.node_name), None)
    if other is None:
        raise CaseSkipped("the cluster has one node")
    body: Object = {"status": {}}
    found = lab.node.refused("PATCH", f"/api/v1/nodes/{other}/status", 403, "Forbidden", body, content_type=MERGE)
    expect("is forbidden" in found["message"], found["message"])


@case
def node_lease(lab: Lab) -> None:
    """A node reads its own lease, and no other one."""
    lab.node.get(f"{NODE_LEASES}/{lab.node_name}")
    path = lab.remove_later(f"{NODE_LEASES}/{lab.namespace}")
    lab.admin.post(NODE_LEASES, {"metadata": {"name": lab.namespace}, "spec": {"holderIdentity": "conformance"}})
    lab.node.refused("GET", path, 403, "Forbidden")
    body = {"spec": {"holderIdentity": lab.node_name}}
    lab.node.refused("PATCH", path, 403, "Forbidden", body, content_type=MERGE)
    lab.node.refused("GET", f"/apis/coordination.k8s.io/v1/namespaces/{lab.namespace}/leases/x", 403, "Forbidden")


@case
def node_secrets(lab: Lab) -> None:
    """A node can neither list Secrets nor read one that no pod of it uses."""
    path = f"/api/v1/namespaces/{lab.namespace}/secrets"
    lab.admin.post(path, {"metadata": {"name": "one"}, "stringData": {"a": "b"}})
    lab.node.refused("GET", path, 403, "Forbidden")
    lab.node.refused("GET", "/api/v1/secrets", 403, "Forbidden")
    lab.node.refused("GET", f"{path}/one", 403, "Forbidden")


@case
def node_config_maps(lab: Lab) -> None:
    """A node cannot write ConfigMaps."""
    lab.node.refused("POST", lab.config_maps, 403, "Forbidden", {"metadata": {"name": "x"}})


@case
def node_pods(lab: Lab) -> None:
    """A node creates no pods but mirror pods of its own."""
    body = {
        "metadata": {"name": "x"},
        "spec": {"nodeName": lab.node_name, "containers": [{"name": "a", "image": "example.test/a"}]},
    }
    found = lab.node.refused("POST", f"/api/v1/namespaces/{lab.namespace}/pods", 403, "Forbidden", body)
    expect("can only create mirror pods" in found["message"], found["message"])


@case
def node_does_not_delete_nodes(lab: Lab) -> None:
    """A node can delete no node, not even itself."""
    found = lab.node.refused("DELETE", f"/api/v1/nodes/{lab.node_name}", 403, "Forbidden", dryRun="All")
    expect("cannot delete resource" in found["message"] or "is forbidden" in found["message"], found["message"])


@case
def node_configuration(lab: Lab) -> None:
    """A node can read no MachineConfigs and write no ClusterOperators."""
    lab.node.refused("GET", "/apis/machineconfiguration.openshift.io/v1/machineconfigs", 403, "Forbidden")
    body = {"metadata": {"labels": {"a": "b"}}}
    path = "/apis/config.openshift.io/v1/clusteroperators/etcd"
    lab.node.refused("PATCH", path, 403, "Forbidden", body, content_type=MERGE)


@case
def node_requests(lab: Lab) -> None:
    """A node creates and reads certificate requests."""
    for verb in ("create", "get", "list", "watch"):
        expect(may(lab.node, verb, "certificatesigningrequests", "certificates.k8s.io"), verb)
    expect(
        not may(lab.node, "update", "certificatesigningrequests", "certificates.k8s.io", subresource="approval"),
        "approval",
    )


@case
def node_events(lab: Lab) -> None:
    """A node creates and patches events."""
    for verb in ("create", "patch"):
        expect(may(lab.node, verb, "events", namespace="default"), verb)


@case
def bootstrap_requests(lab: Lab) -> None:
    """The bootstrap identity creates, reads and watches certificate requests."""
    lab.bootstrap.get(REQUESTS, limit="1")
    for verb in ("create", "get", "list", "watch"):
        expect(may(lab.bootstrap, verb, "certificatesigningrequests", "certificates.k8s.io"), verb)


@case
def bootstrap_nothing_else(lab: Lab) -> None:
    """The bootstrap identity reads neither nodes nor Secrets, and creates no node."""
    lab.bootstrap.refused("GET", "/api/v1/nodes", 403, "Forbidden")
    lab.bootstrap.refused("GET", "/api/v1/namespaces/kube-system/secrets", 403, "Forbidden")
    lab.bootstrap.refused("POST", "/api/v1/nodes", 403, "Forbidden", {"metadata": {"name": lab.name()}})


@case
def bootstrap_does_not_change_requests(lab: Lab) -> None:
    """The bootstrap identity can neither change nor delete certificate requests."""
    for verb in ("update", "patch", "delete"):
        expect(not may(lab.bootstrap, verb, "certificatesigningrequests", "certificates.k8s.io"), verb)
