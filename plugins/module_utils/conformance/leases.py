"""Leases: how one of several candidates becomes the leader, and how nodes report that they are alive."""

from __future__ import annotations

import datetime

from .api import MERGE, Object, equal, expect
from .model import Lab, case

NODES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def leases(lab: Lab) -> str:
    """Return the path of the leases of the namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{lab.namespace}/leases"


def lease(lab: Lab, holder: str = "one") -> Object:
    """Create a lease."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "acquireTime": stamp, "renewTime": stamp}
    return lab.admin.post(leases(lab), {"metadata": {"name": lab.name()}, "spec": {**spec, "leaseTransitions": 0}})


@case
def acquire(lab: Lab) -> None:
    """A lease keeps holder, duration and times with microseconds."""
    found = lease(lab)["spec"]
    equal((found["holderIdentity"], found["leaseDurationSeconds"]), ("one", 15), "holder")
    expect(len(found["renewTime"]) == 27 and found["renewTime"].endswith("Z"), found["renewTime"])


@case
def renew(lab: Lab) -> None:
    """The holder renews with the revision that it knows."""
    made = lease(lab)
    path = f"{leases(lab)}/{made['metadata']['name']}"
    renewed = {**made, "spec": {**made["spec"], "renewTime": "2030-01-01T00:00:00.000000Z"}}
    found = lab.admin.put(path, renewed)
    equal(found["spec"]["renewTime"], "2030-01-01T00:00:00.000000Z", "renewTime")
    expect(found["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"], "resourceVersion")


@case
def one_of_two_candidates(lab: Lab) -> None:
    """Of two candidates that saw the same lease, the second one gets 409 Conflict."""
    made = lease(lab)
    path = f"{leases(lab)}/{made['metadata']['name']}"
    two, three = (
        {**made, "spec": {**made["spec"], "holderIdentity": name, "leaseTransitions": 1}} for name in ("two", "three")
    )
    lab.admin.put(path, two)
    lab.admin.refused("PUT", path, 409, "Conflict", three)
    equal(lab.admin.get(path)["spec"]["holderIdentity"], "two", "holder")


@case
def one_of_two_creators(lab: Lab) -> None:
    """Of two candidates that create the lease, the second one gets 409 AlreadyExists."""
    made = lease(lab)
    body = {"metadata": {"name": made["metadata"]["name"]}, "spec": {"holderIdentity": "two"}}
    lab.admin.refused("POST", leases(lab), 409, "AlreadyExists", body)


@case
def update_without_revision(lab: Lab) -> None:
    """A PUT of a lease without resourceVersion is 422 Invalid."""
    made = lease(lab)
    path, body = (
        f"{leases(lab)}/{made['metadata']['name']}",
        {"metadata": {"name": made["metadata"]["name"]}, "spec": made["spec"]},
    )
    found = lab.admin.refused("PUT", path, 422, "Invalid", body)
    expect("metadata.resourceVersion" in found["message"], found["message"])


@case
def duration_of_zero(lab: Lab) -> None:
    """A lease of no duration is 422 Invalid."""
    made = lease(lab)
    path = f"{leases(lab)}/{made['metadata']['name']}"
    found = lab.admin.refused("PATCH", path, 422, "Invalid", {"spec": {"leaseDurationSeconds": 0}}, content_type=MERGE)
    expect("spec.leaseDurationSeconds" in found["message"], found["message"])


@case
def release(lab: Lab) -> None:
    """The holder releases a lease by an empty identity."""
    made = lease(lab)
    path = f"{leases(lab)}/{made['metadata']['name']}"
    found = lab.admin.put(path, {**made, "spec": {**made["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}})
    equal(found["spec"].get("holderIdentity", ""), "", "holder")


@case
def of_nodes(lab: Lab) -> None:
    """Each node has a lease in kube-node-lease that it holds and has renewed within its duration."""
    now = datetime.datetime.now(datetime.UTC)
    for node in lab.admin.items("/api/v1/nodes"):
        name = node["metadata"]["name"]
        found = lab.admin.get(f"{NODES}/{name}")["spec"]
        equal(found["holderIdentity"], name, "holder")
        renewed = datetime.datetime.strptime(found["renewTime"], "%Y-%m-%dT%H:%M:%S.%f%z")
        age = (now - renewed).total_seconds()
        expect(age < found["leaseDurationSeconds"], f"{name}: renewed {age:.0f} s ago")
