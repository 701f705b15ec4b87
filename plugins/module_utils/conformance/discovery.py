"""Discovery: how clients find out what the API serves."""

from __future__ import annotations

from .api import CaseFailed, Object, equal, expect, wait_until
from .model import Lab, case

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def resources(lab: Lab, path: str) -> dict[str, Object]:
    """Return the entries of a discovery document, by name."""
    return {entry["name"]: entry for entry in lab.admin.get(path)["resources"]}


@case
def version(lab: Lab) -> None:
    """/version has the version of Kubernetes."""
    found = lab.admin.get("/version")
    expect(found["gitVersion"].startswith(f"v{found['major']}."), found)
    expect(found["minor"].rstrip("+").isdigit() and found["platform"], found)


@case
def health(lab: Lab) -> None:
    """/healthz, /livez and /readyz answer ok."""
    for path in ("/healthz", "/livez", "/readyz"):
        answer = lab.admin.send("GET", path, accept="*/*")
        equal((answer.code, answer.text), (200, "ok"), path)


@case
def core_group(lab: Lab) -> None:
    """/api names the version v1."""
    found = lab.admin.get("/api")
    equal((found["kind"], found["versions"]), ("APIVersions", ["v1"]), "/api")


@case
def groups(lab: Lab) -> None:
    """/apis lists the groups that clients of an installation use, without the core group."""
    found = {group["name"] for group in lab.admin.get("/apis")["groups"]}
    wanted = {
        "apps",
        "batch",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "rbac.authorization.k8s.io",
        "config.openshift.io",
        "machineconfiguration.openshift.io",
        "operator.openshift.io",
        "route.openshift.io",
    }
    expect(wanted <= found and "" not in found, f"missing groups: {sorted(wanted - found)}")


@case
def group_document(lab: Lab) -> None:
    """The document of a group names its versions and the preferred one."""
    found = lab.admin.get("/apis/config.openshift.io")
    preferred = found["preferredVersion"]
    equal(preferred, {"groupVersion": "config.openshift.io/v1", "version": "v1"}, "preferredVersion")
    expect(preferred in found["versions"], found["versions"])


@case
def unknown_group(lab: Lab) -> None:
    """A group that does not exist is 404 NotFound."""
    expect(lab.admin.send("GET", "/apis/conformance.example.test/v1").code == 404, "status is not 404")


@case
def unknown_resource(lab: Lab) -> None:
    """A resource that does not exist is 404."""
    expect(lab.admin.send("GET", "/api/v1/conformancethings").code == 404, "status is not 404")


@case
def core_resources(lab: Lab) -> None:
    """/api/v1 lists nodes, pods, ConfigMaps and Secrets with their scope, short names and verbs."""
    found = resources(lab, "/api/v1")
    for name, kind, namespaced, short in (
        ("nodes", "Node", False, "no"),
        ("pods", "Pod", True, "po"),
        ("configmaps", "ConfigMap", True, "cm"),
        ("namespaces", "Namespace", False, "ns"),
    ):
        entry = found[name]
        equal((entry["kind"], entry["namespaced"]), (kind, namespaced), name)
        expect(short in entry["shortNames"], entry)
        expect({"create", "get", "list", "patch", "update", "watch", "delete"} <= set(entry["verbs"]), entry["verbs"])


@case
def subresources(lab: Lab) -> None:
    """Subresources are listed: status of nodes and ClusterVersions, approval of certificate requests, log of pods."""
    expect({"nodes/status", "pods/status", "pods/log"} <= set(resources(lab, "/api/v1")), "core subresources")
    found = resources(lab, "/apis/config.openshift.io/v1")
    expect({"clusterversions/status", "clusteroperators/status"} <= set(found), "status of config.openshift.io")
    found = resources(lab, "/apis/certificates.k8s.io/v1")
    expect({"certificatesigningrequests/approval", "certificatesigningrequests/status"} <= set(found), "approval")


@case
def openshift_resources(lab: Lab) -> None:
    """config.openshift.io/v1 serves what describes a cluster, with the short name co."""
    found = resources(lab, "/apis/config.openshift.io/v1")
    wanted = {"clusterversions", "clusteroperators", "infrastructures", "dnses", "ingresses", "networks", "proxies"}
    expect(wanted <= set(found), sorted(wanted - set(found)))
    expect("co" in found["clusteroperators"]["shortNames"], found["clusteroperators"])


@case
def reviews_are_only_created(lab: Lab) -> None:
    """Access reviews have the verb create, and cannot be listed."""
    equal(resources(lab, "/apis/authorization.k8s.io/v1")["selfsubjectaccessreviews"]["verbs"], ["create"], "verbs")
    lab.admin.refused("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405, "MethodNotAllowed")


@case
def aggregated(lab: Lab) -> None:
    """Aggregated discovery returns all groups with their resources in one document."""
    found = lab.admin.get("/apis", accept=AGGREGATED)
    equal(found["kind"], "APIGroupDiscoveryList", "kind")
    groups = {item["metadata"]["name"]: item for item in found["items"]}
    names = {r["resource"] for v in groups["coordination.k8s.io"]["versions"] for r in v["resources"]}
    expect("leases" in names, names)


@case
def openapi(lab: Lab) -> None:
    """/openapi/v3 has a document for each group, with the kinds that a path patches."""
    paths = lab.admin.get("/openapi/v3")["paths"]
    expect({"api/v1", "apis/apps/v1"} <= set(paths), sorted(paths)[:5])
    found = lab.admin.get(paths["api/v1"]["serverRelativeURL"].partition("?")[0])["paths"]
    patch = found["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    equal(patch["x-kubernetes-group-version-kind"]["kind"], "ConfigMap", "kind")


def definition(lab: Lab) -> tuple[str, str]:
    """Create a CustomResourceDefinition, and return its group and the path of its objects once it is served."""
    group = f"{lab.name()}.example.test"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": names,
        "versions": [{**version, "subresources": {"status": {}}}],
    }
    lab.admin.post(DEFINITIONS, {"metadata": {"name": f"things.{group}"}, "spec": spec})
    path = f"/apis/{group}/v1/namespaces/{lab.namespace}/things"
    lab.remove_later(f"{DEFINITIONS}/things.{group}")
    wait_until("the new kind is served", lambda: lab.admin.send("GET", path).code == 200)
    return group, path


@case
def custom_resources(lab: Lab) -> None:
    """A CustomResourceDefinition is established, its kind discovered and served, and gone with it."""
    group, path = definition(lab)
    crd = lab.admin.get(f"{DEFINITIONS}/things.{group}")
    held = {c["type"] for c in crd["status"]["conditions"] if c["status"] == "True"}
    expect({"Established", "NamesAccepted"} <= held, held)
    expect("things" in resources(lab, f"/apis/{group}/v1"), "it is not discovered")
    body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {"a": 1}}
    lab.admin.post(path, body)
    equal([item["spec"] for item in lab.admin.items(path)], [{"a": 1}], "spec")
    lab.admin.delete(f"{DEFINITIONS}/things.{group}")
    wait_until("the kind is no longer served", lambda: lab.admin.send("GET", path).code == 404)


@case
def custom_status(lab: Lab) -> None:
    """The status of a custom resource is dropped at creation, and written by its subresource alone."""
    group, path = definition(lab)
    body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {}, "status": {"a": 1}}
    expect("status" not in lab.admin.post(path, body), "the status is kept at creation")
    lab.admin.patch(f"{path}/one", {"status": {"a": 2}})
    expect("status" not in lab.admin.get(f"{path}/one"), "a patch of the object writes the status")
    lab.admin.patch(f"{path}/one/status", {"status": {"a": 3}, "spec": {"b": 4}})
    found = lab.admin.get(f"{path}/one")
    equal((found["status"], found["spec"]), ({"a": 3}, {}), "status and spec")


@case
def generation(lab: Lab) -> None:
    """metadata.generation counts changes of the spec, not those of metadata or status."""
    group, path = definition(lab)
    made = lab.admin.post(path, {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {}})
    equal(made["metadata"]["generation"], 1, "generation")
    lab.admin.patch(f"{path}/one/status", {"status": {"a": 1}})
    found = lab.admin.patch(f"{path}/one", {"metadata": {"labels": {"a": "b"}}})
    equal(found["metadata"]["generation"], 1, "generation after a label")
    equal(lab.admin.patch(f"{path}/one", {"spec": {"a": 1}})["metadata"]["generation"], 2, "generation after the spec")


@case
def update_of_a_custom_resource_needs_its_revision(lab: Lab) -> None:
    """A PUT of a custom resource without resourceVersion is 422 Invalid."""
    group, path = definition(lab)
    body = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "one"}, "spec": {}}
    lab.admin.post(path, body)
    found = lab.admin.refused("PUT", f"{path}/one", 422, "Invalid", body)
    if "must be specified for an update" not in found["message"]:
        raise CaseFailed(found["message"])
