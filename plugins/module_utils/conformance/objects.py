"""Create, read, update and delete, and how they fail."""

from __future__ import annotations

import base64

from .api import Object, equal, expect, wait_until
from .model import Lab, case


def secret(lab: Lab, **fields: object) -> Object:
    """Create a Secret of the namespace."""
    return lab.admin.post(f"/api/v1/namespaces/{lab.namespace}/secrets", {"metadata": {"name": lab.name()}, **fields})


@case
def create(lab: Lab) -> None:
    """A new object gets uid, creationTimestamp, resourceVersion and its namespace."""
    found = lab.config_map({"a": "1"})
    metadata = found["metadata"]
    expect(metadata["uid"] and metadata["creationTimestamp"].endswith("Z") and metadata["resourceVersion"], metadata)
    equal((metadata["namespace"], found["data"]), (lab.namespace, {"a": "1"}), "namespace and data")
    equal((found["apiVersion"], found["kind"]), ("v1", "ConfigMap"), "kind")


@case
def read(lab: Lab) -> None:
    """A GET returns what was created."""
    made = lab.config_map({"a": "1"}, labels={"l": "v"}, annotations={"n": "v"})
    equal(lab.admin.get(lab.path_of(made)), made, "the object")


@case
def read_what_does_not_exist(lab: Lab) -> None:
    """A missing object is 404 NotFound with its name and kind in the details."""
    found = lab.admin.refused("GET", f"{lab.config_maps}/none", 404, "NotFound")
    equal(found["message"], 'configmaps "none" not found', "message")
    equal({key: found["details"][key] for key in ("name", "kind")}, {"name": "none", "kind": "configmaps"}, "details")


@case
def create_twice(lab: Lab) -> None:
    """A second object of a name is 409 AlreadyExists."""
    made = lab.config_map()
    name = made["metadata"]["name"]
    found = lab.admin.refused("POST", lab.config_maps, 409, "AlreadyExists", {"metadata": {"name": name}})
    equal(found["message"], f'configmaps "{name}" already exists', "message")


@case
def generated_name(lab: Lab) -> None:
    """generateName makes a new name of the prefix and five characters."""
    body = {"metadata": {"generateName": "some-"}}
    names = {lab.admin.post(lab.config_maps, body)["metadata"]["name"] for __ in range(3)}
    expect(len(names) == 3 and all(name.startswith("some-") and len(name) == 10 for name in names), names)


@case
def invalid_name(lab: Lab) -> None:
    """A name with capital letters is 422 Invalid, with the field in the message."""
    found = lab.admin.refused("POST", lab.config_maps, 422, "Invalid", {"metadata": {"name": "Not_Valid"}})
    expect("metadata.name: Invalid value" in found["message"], found["message"])


@case
def missing_name(lab: Lab) -> None:
    """An object without a name is 422 Invalid."""
    found = lab.admin.refused("POST", lab.config_maps, 422, "Invalid", {"metadata": {}})
    expect("name or generateName is required" in found["message"], found["message"])


@case
def another_namespace(lab: Lab) -> None:
    """An object of another namespace than its path is 400 BadRequest."""
    body = {"metadata": {"name": lab.name(), "namespace": "default"}}
    found = lab.admin.refused("POST", lab.config_maps, 400, "BadRequest", body)
    expect("does not match the namespace" in found["message"], found["message"])


@case
def missing_namespace(lab: Lab) -> None:
    """An object in a namespace that does not exist is 404 NotFound."""
    body = {"metadata": {"name": lab.name()}}
    found = lab.admin.refused("POST", "/api/v1/namespaces/conformance-none/configmaps", 404, "NotFound", body)
    equal(found["message"], 'namespaces "conformance-none" not found', "message")


@case
def another_kind(lab: Lab) -> None:
    """An object of another kind than its path is 400 BadRequest."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": lab.name()}}
    lab.admin.refused("POST", lab.config_maps, 400, "BadRequest", body)


@case
def body_that_is_not_json(lab: Lab) -> None:
    """A body that cannot be read is 400 BadRequest."""
    lab.admin.refused("POST", lab.config_maps, 400, "BadRequest", b'{"metadata": ')


@case
def body_of_an_unknown_type(lab: Lab) -> None:
    """A body of an unknown media type is 415 UnsupportedMediaType."""
    made = lab.config_map()
    lab.admin.refused("PATCH", lab.path_of(made), 415, "UnsupportedMediaType", {}, content_type="text/plain")


@case
def answer_of_an_unknown_type(lab: Lab) -> None:
    """A client that accepts no JSON gets 406."""
    equal(lab.admin.send("GET", lab.config_maps, accept="text/csv").code, 406, "status")


@case
def method_that_does_not_fit(lab: Lab) -> None:
    """A POST to an object and a PUT to a collection are 405 MethodNotAllowed."""
    made = lab.config_map()
    lab.admin.refused("POST", lab.path_of(made), 405, "MethodNotAllowed", {"metadata": {"name": "x"}})
    lab.admin.refused("PUT", lab.config_maps, 405, "MethodNotAllowed", {"metadata": {"name": "x"}})


@case
def update(lab: Lab) -> None:
    """A PUT replaces the object, and keeps uid and creationTimestamp."""
    made = lab.config_map({"a": "1"}, labels={"l": "v"})
    body = {"metadata": {"name": made["metadata"]["name"]}, "data": {"b": "2"}}
    found = lab.admin.put(lab.path_of(made), body)
    equal(found["data"], {"b": "2"}, "data")
    equal(found["metadata"].get("labels"), None, "labels")
    for field in ("uid", "creationTimestamp"):
        equal(found["metadata"][field], made["metadata"][field], field)
    expect(int(found["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"]), "resourceVersion")


@case
def stale_update(lab: Lab) -> None:
    """A PUT with an old resourceVersion is 409 Conflict, and nothing is changed."""
    made = lab.config_map({"a": "1"})
    lab.admin.patch(lab.path_of(made), {"data": {"a": "2"}})
    found = lab.admin.refused("PUT", lab.path_of(made), 409, "Conflict", {**made, "data": {"a": "3"}})
    expect("the object has been modified" in found["message"], found["message"])
    equal(lab.admin.get(lab.path_of(made))["data"], {"a": "2"}, "data")


@case
def update_of_another_object(lab: Lab) -> None:
    """A PUT with the uid of another object is 409 Conflict."""
    made = lab.config_map()
    metadata = {"name": made["metadata"]["name"], "uid": "11111111-2222-3333-4444-555555555555"}
    lab.admin.refused("PUT", lab.path_of(made), 409, "Conflict", {"metadata": metadata})


@case
def update_of_another_name(lab: Lab) -> None:
    """A PUT whose name is not that of the path is 400 BadRequest."""
    made = lab.config_map()
    lab.admin.refused("PUT", lab.path_of(made), 400, "BadRequest", {"metadata": {"name": "other"}})


@case
def update_of_what_does_not_exist(lab: Lab) -> None:
    """A PUT to a missing ConfigMap is 404 NotFound."""
    lab.admin.refused("PUT", f"{lab.config_maps}/none", 404, "NotFound", {"metadata": {"name": "none"}})


@case
def unchanged_update(lab: Lab) -> None:
    """A PUT that changes nothing keeps the resourceVersion."""
    made = lab.config_map({"a": "1"})
    equal(
        lab.admin.put(lab.path_of(made), made)["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"], "it"
    )


@case
def delete(lab: Lab) -> None:
    """A DELETE returns a Status with the uid, and the object is gone."""
    made = lab.config_map()
    found = lab.admin.delete(lab.path_of(made))
    equal((found["kind"], found["status"]), ("Status", "Success"), "answer")
    equal(found["details"]["uid"], made["metadata"]["uid"], "uid")
    lab.admin.refused("GET", lab.path_of(made), 404, "NotFound")
    lab.admin.refused("DELETE", lab.path_of(made), 404, "NotFound")


@case
def delete_of_another_object(lab: Lab) -> None:
    """A DELETE whose precondition has another uid or resourceVersion is 409 Conflict."""
    made = lab.config_map()
    for field in ("uid", "resourceVersion"):
        lab.admin.refused("DELETE", lab.path_of(made), 409, "Conflict", {"preconditions": {field: "1"}})
    lab.admin.delete(lab.path_of(made), {"preconditions": {"uid": made["metadata"]["uid"]}})


@case
def finalizers(lab: Lab) -> None:
    """An object with a finalizer gets a deletionTimestamp, and is gone with its last finalizer."""
    made = lab.config_map(finalizers=["example.test/held"])
    expect(lab.admin.delete(lab.path_of(made))["metadata"]["deletionTimestamp"], "no deletionTimestamp")
    expect(lab.admin.get(lab.path_of(made))["metadata"]["deletionTimestamp"], "no deletionTimestamp")
    lab.admin.patch(lab.path_of(made), {"metadata": {"finalizers": None}})
    wait_until("it is gone", lambda: lab.admin.send("GET", lab.path_of(made)).code == 404)


@case
def delete_a_collection(lab: Lab) -> None:
    """A DELETE of a collection removes what its selector chooses, and nothing else."""
    label = lab.name()
    gone, kept = lab.config_map(labels={"of": label}), lab.config_map(labels={"of": "other"})
    lab.admin.delete(lab.config_maps, labelSelector=f"of={label}")
    lab.admin.refused("GET", lab.path_of(gone), 404, "NotFound")
    lab.admin.get(lab.path_of(kept))


@case
def dry_run(lab: Lab) -> None:
    """With dryRun=All nothing is created, changed or removed."""
    name = lab.name()
    lab.admin.post(lab.config_maps, {"metadata": {"name": name}}, dryRun="All")
    lab.admin.refused("GET", f"{lab.config_maps}/{name}", 404, "NotFound")
    made = lab.config_map({"a": "1"})
    equal(lab.admin.patch(lab.path_of(made), {"data": {"a": "2"}}, dryRun="All")["data"], {"a": "2"}, "the answer")
    lab.admin.delete(lab.path_of(made), dryRun="All")
    equal(lab.admin.get(lab.path_of(made)), made, "the object")


@case
def dry_run_in_delete_options(lab: Lab) -> None:
    """A DELETE whose options have dryRun removes nothing."""
    made = lab.config_map()
    lab.admin.delete(lab.path_of(made), {"dryRun": ["All"]})
    lab.admin.get(lab.path_of(made))


@case
def secret_texts(lab: Lab) -> None:
    """stringData of a Secret becomes base64 in data, and the type is Opaque by default."""
    found = secret(lab, stringData={"a": "text"})
    equal(found["data"], {"a": base64.b64encode(b"text").decode()}, "data")
    equal((found["type"], "stringData" in found), ("Opaque", False), "type")


@case
def secret_type(lab: Lab) -> None:
    """The type of a Secret cannot change."""
    made = secret(lab)
    path = f"/api/v1/namespaces/{lab.namespace}/secrets/{made['metadata']['name']}"
    found = lab.admin.refused(
        "PATCH", path, 422, "Invalid", {"type": "example.test/x"}, content_type="application/merge-patch+json"
    )
    expect("field is immutable" in found["message"], found["message"])


@case
def immutable(lab: Lab) -> None:
    """The data of an immutable ConfigMap cannot change."""
    made = lab.admin.post(lab.config_maps, {"metadata": {"name": lab.name()}, "data": {"a": "1"}, "immutable": True})
    path = lab.path_of(made)
    lab.admin.refused("PATCH", path, 422, "Invalid", {"data": {"a": "2"}}, content_type="application/merge-patch+json")
    lab.admin.patch(path, {"metadata": {"labels": {"l": "v"}}})


@case
def namespace(lab: Lab) -> None:
    """A namespace is Active, has its name as a label, and takes its objects along when it is deleted."""
    name = lab.name()
    path = lab.remove_later(f"/api/v1/namespaces/{name}")
    made = lab.admin.post("/api/v1/namespaces", {"metadata": {"name": name}})
    equal(made["metadata"]["labels"]["kubernetes.io/metadata.name"], name, "label")
    equal(lab.admin.get(path)["status"]["phase"], "Active", "phase")
    lab.admin.post(f"{path}/configmaps", {"metadata": {"name": "a"}})
    lab.admin.delete(path)
    wait_until("it is gone", lambda: lab.admin.send("GET", path).code == 404, 120)
    lab.admin.refused("GET", f"{path}/configmaps/a", 404, "NotFound")
