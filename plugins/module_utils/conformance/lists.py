"""Lists: pages, selectors, revisions, tables."""

from __future__ import annotations

import base64
import json

from .api import PARTIAL, TABLE, CaseSkipped, Object, equal, expect
from .model import Lab, case


def create_labelled(lab: Lab, number: int) -> str:
    """Create ConfigMaps with a label of their own, and return the selector for it; each has its number in the label n."""
    label = lab.name()
    for at in range(number):
        lab.config_map({"a": str(at)}, labels={"of": label, "n": str(at)})
    return f"of={label}"


def names(items: list[Object]) -> list[str]:
    """Return the names of objects."""
    return [item["metadata"]["name"] for item in items]


@case
def kind(lab: Lab) -> None:
    """A list has its kind and a resourceVersion."""
    found = lab.admin.get(lab.config_maps)
    equal((found["kind"], found["apiVersion"]), ("ConfigMapList", "v1"), "kind")
    expect(found["metadata"]["resourceVersion"].isdigit(), found["metadata"])


@case
def all_namespaces(lab: Lab) -> None:
    """A list without a namespace has the objects of all."""
    made = lab.config_map()
    found = lab.admin.items("/api/v1/configmaps", fieldSelector=f"metadata.name={made['metadata']['name']}")
    equal([item["metadata"]["namespace"] for item in found], [lab.namespace], "namespaces")
    others = {item["metadata"]["namespace"] for item in lab.admin.items("/api/v1/configmaps")}
    expect(len(others) > 1, others)


@case
def pages(lab: Lab) -> None:
    """With limit a list comes in parts, which together have each object once."""
    chosen = create_labelled(lab, 5)
    whole, parts, token = names(lab.admin.items(lab.config_maps, labelSelector=chosen)), list[str](), ""
    for __ in range(3):
        query = {"continue": token} if token else {}
        page = lab.admin.get(lab.config_maps, 200, labelSelector=chosen, limit="2", **query)
        expect(len(page["items"]) <= 2, "a part is longer than its limit")
        parts += names(page["items"])
        token = page["metadata"].get("continue", "")
    equal((parts, token), (whole, ""), "names")


@case
def pages_are_of_one_revision(lab: Lab) -> None:
    """The parts of a list show the objects as they were at the first part."""
    chosen = create_labelled(lab, 3)
    first = lab.admin.get(lab.config_maps, labelSelector=chosen, limit="1")
    later = names(lab.admin.items(lab.config_maps, labelSelector=chosen))[1:]
    lab.admin.patch(f"{lab.config_maps}/{later[0]}", {"data": {"a": "changed"}})
    lab.admin.delete(f"{lab.config_maps}/{later[1]}")
    token = first["metadata"]["continue"]
    rest = lab.admin.get(lab.config_maps, labelSelector=chosen, limit="5", **{"continue": token})
    equal([item["data"]["a"] for item in rest["items"]], ["1", "2"], "data")
    equal(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"], "resourceVersion")


@case
def remaining_items(lab: Lab) -> None:
    """A part of a list without selector counts the objects that follow."""
    create_labelled(lab, 3)
    found = lab.admin.get(lab.config_maps, limit="1")
    number = len(lab.admin.items(lab.config_maps))
    equal(found["metadata"]["remainingItemCount"], number - 1, "remainingItemCount")


@case
def token_that_is_not_valid(lab: Lab) -> None:
    """A continue token that is not valid is 400 BadRequest."""
    lab.admin.refused("GET", lab.config_maps, 400, "BadRequest", **{"limit": "1", "continue": "none"})


@case
def token_that_expired(lab: Lab) -> None:
    """A continue token of a revision that is gone is 410 Expired."""
    token = json.dumps({"v": "meta.k8s.io/v1", "rv": 1, "start": "a\0"}, separators=(",", ":"))
    encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    lab.admin.refused("GET", lab.config_maps, 410, "Expired", **{"limit": "1", "continue": encoded})


@case
def limit_that_is_not_a_number(lab: Lab) -> None:
    """A limit that is not a number is 400 BadRequest."""
    lab.admin.refused("GET", lab.config_maps, 400, "BadRequest", limit="many")


@case
def labels(lab: Lab) -> None:
    """Label selectors choose by =, !=, in, notin, existence and absence, and all of them together."""
    chosen = create_labelled(lab, 3)
    for selector, wanted in (
        ("n=1", ["1"]),
        ("n==1", ["1"]),
        ("n!=1", ["0", "2"]),
        ("n in (0,2)", ["0", "2"]),
        ("n notin (0,2)", ["1"]),
        ("n", ["0", "1", "2"]),
        ("!n", []),
        ("n!=0,n in (0,1)", ["1"]),
    ):
        found = lab.admin.items(lab.config_maps, labelSelector=f"{chosen},{selector}")
        equal(sorted(item["data"]["a"] for item in found), wanted, selector)


@case
def label_selector_that_is_not_valid(lab: Lab) -> None:
    """A label selector that cannot be read is 400 BadRequest."""
    lab.admin.refused("GET", lab.config_maps, 400, "BadRequest", labelSelector="a b")


@case
def fields(lab: Lab) -> None:
    """metadata.name and metadata.namespace can be selected, also negated."""
    made = lab.config_map()
    name = made["metadata"]["name"]
    equal(names(lab.admin.items(lab.config_maps, fieldSelector=f"metadata.name={name}")), [name], "names")
    expect(name not in names(lab.admin.items(lab.config_maps, fieldSelector=f"metadata.name!={name}")), "negated")
    equal(lab.admin.items(lab.config_maps, fieldSelector="metadata.namespace=default"), [], "another namespace")


@case
def pods_of_a_node(lab: Lab) -> None:
    """Pods can be selected by spec.nodeName and status.phase."""
    placed = [pod["spec"]["nodeName"] for pod in lab.admin.items("/api/v1/pods") if pod["spec"].get("nodeName")]
    if not placed:
        raise CaseSkipped("no pod is bound to a node")
    found = lab.admin.items("/api/v1/pods", fieldSelector=f"spec.nodeName={placed[0]}")
    equal([pod["spec"]["nodeName"] for pod in found], [placed[0]] * placed.count(placed[0]), "the nodes of pods")
    found = lab.admin.items("/api/v1/pods", fieldSelector="status.phase=Running")
    expect(found and {pod["status"]["phase"] for pod in found} == {"Running"}, "the pods that run")


@case
def unschedulable_nodes(lab: Lab) -> None:
    """Nodes can be selected by spec.unschedulable."""
    found = lab.admin.items("/api/v1/nodes", fieldSelector="spec.unschedulable=false")
    expect(lab.node_name in names(found), names(found))
    expect(
        lab.node_name not in names(lab.admin.items("/api/v1/nodes", fieldSelector="spec.unschedulable=true")), "true"
    )


@case
def requests_of_a_signer(lab: Lab) -> None:
    """Certificate requests can be selected by spec.signerName."""
    path, signer = "/apis/certificates.k8s.io/v1/certificatesigningrequests", "kubernetes.io/kubelet-serving"
    found = lab.admin.items(path, fieldSelector=f"spec.signerName={signer}")
    expect({csr["spec"]["signerName"] for csr in found} <= {signer}, "signers")


@case
def field_that_cannot_be_selected(lab: Lab) -> None:
    """A field that is not indexed is 400 BadRequest."""
    found = lab.admin.refused("GET", lab.config_maps, 400, "BadRequest", fieldSelector="data.a=1")
    expect("field label not supported" in found["message"], found["message"])


@case
def any_revision(lab: Lab) -> None:
    """A list of resourceVersion 0 is whatever the server has."""
    made = lab.config_map()
    expect(lab.admin.get(lab.config_maps, resourceVersion="0")["kind"] == "ConfigMapList", "kind")
    lab.admin.get(lab.config_maps, resourceVersion=made["metadata"]["resourceVersion"])


@case
def exact_revision(lab: Lab) -> None:
    """A list of exactly one revision shows the objects as they were."""
    made = lab.config_map({"a": "1"}, labels={"of": lab.name()})
    chosen = f"of={made['metadata']['labels']['of']}"
    revision = lab.admin.get(lab.config_maps, labelSelector=chosen)["metadata"]["resourceVersion"]
    lab.admin.patch(lab.path_of(made), {"data": {"a": "2"}})
    found = lab.admin.items(
        lab.config_maps, labelSelector=chosen, resourceVersion=revision, resourceVersionMatch="Exact"
    )
    equal([item["data"]["a"] for item in found], ["1"], "data")


@case
def revision_of_the_future(lab: Lab) -> None:
    """A list of a revision that is not reached is 504 Timeout, and the cause ResourceVersionTooLarge."""
    found = lab.admin.refused("GET", lab.config_maps, 504, "Timeout", resourceVersion="99999999999999")
    expect("Too large resource version" in found["message"], found["message"])
    equal(found["details"]["causes"][0]["reason"], "ResourceVersionTooLarge", "cause")


@case
def table(lab: Lab) -> None:
    """A Table has the columns that kubectl prints, and a row for each object with its metadata."""
    chosen = create_labelled(lab, 2)
    found = lab.admin.get(lab.config_maps, labelSelector=chosen, accept=TABLE)
    equal((found["kind"], found["apiVersion"]), ("Table", "meta.k8s.io/v1"), "kind")
    equal([c["name"] for c in found["columnDefinitions"]][:3], ["Name", "Data", "Age"], "columns")
    row = found["rows"][0]
    equal((row["object"]["kind"], row["cells"][0]), ("PartialObjectMetadata", row["object"]["metadata"]["name"]), "row")


@case
def table_without_objects(lab: Lab) -> None:
    """A Table with includeObject=None has the cells alone."""
    create_labelled(lab, 1)
    found = lab.admin.get(lab.config_maps, accept=TABLE, includeObject="None")
    expect(found["rows"] and not any(row.get("object") for row in found["rows"]), "objects")


@case
def table_of_one(lab: Lab) -> None:
    """A GET of one object as a Table has one row."""
    made = lab.config_map()
    equal(len(lab.admin.get(lab.path_of(made), accept=TABLE)["rows"]), 1, "rows")


@case
def metadata_alone(lab: Lab) -> None:
    """A list of PartialObjectMetadata has no data."""
    chosen = create_labelled(lab, 1)
    found = lab.admin.get(lab.config_maps, labelSelector=chosen, accept=PARTIAL.format("List"))
    equal(found["kind"], "PartialObjectMetadataList", "kind")
    expect("data" not in found["items"][0] and found["items"][0]["metadata"]["uid"], found["items"][0])
