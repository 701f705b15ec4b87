"""The patch formats, status subresources, and server-side apply."""

from __future__ import annotations

from .api import APPLY, JSON_PATCH, MERGE, STRATEGIC, Object, equal, expect
from .model import Lab, case


def deployment(lab: Lab) -> tuple[str, Object]:
    """Create a Deployment of no pods with the containers a and b; return its path and the object."""
    labels = {"app": lab.name()}
    containers = [{"name": name, "image": f"example.test/{name}"} for name in ("a", "b")]
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
    }
    path = f"/apis/apps/v1/namespaces/{lab.namespace}/deployments"
    made = lab.admin.post(path, {"metadata": {"name": labels["app"]}, "spec": spec})
    return f"{path}/{labels['app']}", made


def images(deployed: Object) -> dict[str, str]:
    """Return the images of a Deployment by the container."""
    return {c["name"]: c["image"] for c in deployed["spec"]["template"]["spec"]["containers"]}


def apply_config(lab: Lab, name: str, data: dict[str, str]) -> Object:
    """Return a configuration to apply."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": lab.namespace},
        "data": data,
    }


@case
def merge(lab: Lab) -> None:
    """A merge patch adds and changes fields, and removes those that are null."""
    made = lab.config_map({"a": "1", "b": "2"})
    equal(lab.admin.patch(lab.path_of(made), {"data": {"a": None, "c": "3"}})["data"], {"b": "2", "c": "3"}, "data")


@case
def json(lab: Lab) -> None:
    """A JSON patch applies its operations in order."""
    made = lab.config_map({"a": "1"})
    operations = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "remove", "path": "/data/a"},
    ]
    equal(lab.admin.patch(lab.path_of(made), operations, content_type=JSON_PATCH)["data"], {"b": "2"}, "data")


@case
def json_test_that_fails(lab: Lab) -> None:
    """A JSON patch whose test fails is 422 Invalid, and changes nothing."""
    made = lab.config_map({"a": "1"})
    operations = [
        {"op": "add", "path": "/data/b", "value": "2"},
        {"op": "test", "path": "/data/a", "value": "9"},
    ]
    lab.admin.refused("PATCH", lab.path_of(made), 422, "Invalid", operations, content_type=JSON_PATCH)
    equal(lab.admin.get(lab.path_of(made)), made, "the object")


@case
def json_of_a_missing_field(lab: Lab) -> None:
    """A JSON patch that removes a missing field is 422 Invalid."""
    made = lab.config_map({"a": "1"})
    operations = [{"op": "remove", "path": "/data/none"}]
    lab.admin.refused("PATCH", lab.path_of(made), 422, "Invalid", operations, content_type=JSON_PATCH)


@case
def strategic(lab: Lab) -> None:
    """A strategic merge patch merges containers by their names."""
    path, __ = deployment(lab)
    containers = [{"name": "b", "image": "example.test/new"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    found = lab.admin.patch(path, patch, content_type=STRATEGIC)
    equal(images(found), {"a": "example.test/a", "b": "example.test/new"}, "images")


@case
def strategic_delete(lab: Lab) -> None:
    """A strategic merge patch removes a container with $patch: delete."""
    path, __ = deployment(lab)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "b", "$patch": "delete"}]}}}}
    equal(set(images(lab.admin.patch(path, patch, content_type=STRATEGIC))), {"a"}, "containers")


@case
def merge_replaces_lists(lab: Lab) -> None:
    """A merge patch replaces a list as a whole."""
    path, __ = deployment(lab)
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "example.test/c"}]}}}}
    equal(set(images(lab.admin.patch(path, patch))), {"c"}, "containers")


@case
def strategic_of_a_custom_resource(lab: Lab) -> None:
    """A strategic merge patch of a custom resource is 415 UnsupportedMediaType."""
    path = "/apis/config.openshift.io/v1/clusterversions/version"
    lab.admin.refused("PATCH", path, 415, "UnsupportedMediaType", {}, content_type=STRATEGIC)


@case
def patch_of_what_does_not_exist(lab: Lab) -> None:
    """A patch of a missing object is 404 NotFound."""
    lab.admin.refused("PATCH", f"{lab.config_maps}/none", 404, "NotFound", {"data": {}}, content_type=MERGE)


@case
def stale_patch(lab: Lab) -> None:
    """A patch with an old resourceVersion is 409 Conflict."""
    made = lab.config_map()
    lab.admin.patch(lab.path_of(made), {"data": {"a": "1"}})
    body = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    lab.admin.refused("PATCH", lab.path_of(made), 409, "Conflict", body, content_type=MERGE)


@case
def stale_json_patch(lab: Lab) -> None:
    """A JSON patch that tests an old resourceVersion is refused, and changes nothing."""
    made = lab.config_map({"a": "1"})
    lab.admin.patch(lab.path_of(made), {"data": {"a": "2"}})
    revision = {"op": "test", "path": "/metadata/resourceVersion", "value": made["metadata"]["resourceVersion"]}
    operations = [revision, {"op": "add", "path": "/data/b", "value": "3"}]
    code = lab.admin.send("PATCH", lab.path_of(made), operations, content_type=JSON_PATCH).code
    expect(code in (409, 422), f"status {code}")
    equal(lab.admin.get(lab.path_of(made))["data"], {"a": "2"}, "data")


@case
def unchanged_patch(lab: Lab) -> None:
    """A patch that changes nothing keeps the resourceVersion."""
    made = lab.config_map({"a": "1"})
    found = lab.admin.patch(lab.path_of(made), {"data": {"a": "1"}})
    equal(found["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"], "resourceVersion")


@case
def status_is_apart(lab: Lab) -> None:
    """A patch of an object leaves its status, a patch of the status leaves the rest."""
    path, __ = deployment(lab)
    lab.admin.patch(path, {"status": {"observedGeneration": 99}})
    expect((lab.admin.get(path).get("status") or {}).get("observedGeneration") != 99, "the patch writes the status")
    lab.admin.patch(f"{path}/status", {"status": {}, "spec": {"replicas": 5}})
    equal(lab.admin.get(path)["spec"]["replicas"], 0, "replicas")


@case
def apply_creates(lab: Lab) -> None:
    """Server-side apply creates the object, and records its manager."""
    name = lab.name()
    found = lab.admin.patch(
        f"{lab.config_maps}/{name}", apply_config(lab, name, {"a": "1"}), 201, content_type=APPLY, fieldManager="one"
    )
    entries = [(e["manager"], e["operation"]) for e in lab.managed(found)]
    equal((found["data"], entries), ({"a": "1"}, [("one", "Apply")]), "data and manager")


@case
def apply_again(lab: Lab) -> None:
    """Applying the same configuration again changes nothing."""
    name = lab.name()
    path, body = f"{lab.config_maps}/{name}", apply_config(lab, name, {"a": "1"})
    made = lab.admin.patch(path, body, 201, content_type=APPLY, fieldManager="one")
    found = lab.admin.patch(path, body, content_type=APPLY, fieldManager="one")
    equal(found["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"], "resourceVersion")


@case
def apply_removes_what_is_left_out(lab: Lab) -> None:
    """Applying without a field that the manager applied before removes it."""
    name = lab.name()
    path = f"{lab.config_maps}/{name}"
    lab.admin.patch(path, apply_config(lab, name, {"a": "1", "b": "2"}), 201, content_type=APPLY, fieldManager="one")
    found = lab.admin.patch(path, apply_config(lab, name, {"b": "2"}), content_type=APPLY, fieldManager="one")
    equal(found["data"], {"b": "2"}, "data")


@case
def apply_shares(lab: Lab) -> None:
    """Two managers apply fields of their own to one object."""
    name = lab.name()
    path = f"{lab.config_maps}/{name}"
    lab.admin.patch(path, apply_config(lab, name, {"a": "1"}), 201, content_type=APPLY, fieldManager="one")
    found = lab.admin.patch(path, apply_config(lab, name, {"b": "2"}), content_type=APPLY, fieldManager="two")
    equal(found["data"], {"a": "1", "b": "2"}, "data")


@case
def apply_conflict(lab: Lab) -> None:
    """A second manager that applies another value gets 409 Conflict, unless it forces it."""
    name = lab.name()
    path = f"{lab.config_maps}/{name}"
    lab.admin.patch(path, apply_config(lab, name, {"a": "1"}), 201, content_type=APPLY, fieldManager="one")
    body = apply_config(lab, name, {"a": "2"})
    found = lab.admin.refused("PATCH", path, 409, "Conflict", body, content_type=APPLY, fieldManager="two")
    expect('conflict with "one"' in found["message"], found["message"])
    equal(found["details"]["causes"][0]["reason"], "FieldManagerConflict", "cause")
    forced = lab.admin.patch(path, body, content_type=APPLY, fieldManager="two", force="true")
    equal(forced["data"], {"a": "2"}, "data")


@case
def apply_needs_a_manager(lab: Lab) -> None:
    """Server-side apply without fieldManager is refused."""
    name = lab.name()
    answer = lab.admin.send("PATCH", f"{lab.config_maps}/{name}", apply_config(lab, name, {}), content_type=APPLY)
    expect(answer.code in (400, 422) and "fieldManager" in answer.text, f"status {answer.code}: {answer.text[:200]}")
