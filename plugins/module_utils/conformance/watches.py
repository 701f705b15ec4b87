"""Watches: what is sent, from where, and how they end."""

from __future__ import annotations

from .api import PARTIAL, TABLE, CaseFailed, equal, expect
from .model import Lab, case


def revision(lab: Lab) -> str:
    """Return the resourceVersion of the list, from which a watch continues."""
    return str(lab.admin.get(lab.config_maps)["metadata"]["resourceVersion"])


@case
def existing_objects_first(lab: Lab) -> None:
    """A watch without resourceVersion begins with the objects that exist."""
    made = lab.config_map(labels={"of": lab.name()})
    with lab.admin.watch(lab.config_maps, labelSelector=f"of={made['metadata']['labels']['of']}") as events:
        equal(events.next("ADDED"), made, "the object")


@case
def continues_a_list(lab: Lab) -> None:
    """A watch from the revision of a list sends each later change once, in order."""
    lab.config_map()
    start = revision(lab)
    made = lab.config_map({"a": "1"})
    name = made["metadata"]["name"]
    lab.admin.patch(lab.path_of(made), {"data": {"a": "2"}})
    lab.admin.delete(lab.path_of(made))
    with lab.admin.watch(lab.config_maps, resourceVersion=start) as events:
        equal(events.next("ADDED", name)["data"], {"a": "1"}, "data")
        equal(events.next("MODIFIED", name)["data"], {"a": "2"}, "data")
        last = events.next("DELETED", name)
    equal(last["data"], {"a": "2"}, "data of the deleted object")
    expect(int(last["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"]), "resourceVersion")


@case
def follows(lab: Lab) -> None:
    """A change that is made during a watch arrives."""
    with lab.admin.watch(lab.config_maps, resourceVersion=revision(lab)) as events:
        made = lab.config_map()
        events.next("ADDED", made["metadata"]["name"])


@case
def labels_that_change(lab: Lab) -> None:
    """An object that enters the selection is ADDED, one that leaves it DELETED."""
    made, label = lab.config_map(), lab.name()
    start = revision(lab)
    for value in (label, None):
        lab.admin.patch(lab.path_of(made), {"metadata": {"labels": {"of": value}}})
    with lab.admin.watch(lab.config_maps, resourceVersion=start, labelSelector=f"of={label}") as events:
        events.next("ADDED", made["metadata"]["name"])
        events.next("DELETED", made["metadata"]["name"])


@case
def one_object(lab: Lab) -> None:
    """A watch with a field selector for a name sends that object alone."""
    first, second = lab.config_map(), lab.config_map()
    name, start = second["metadata"]["name"], revision(lab)
    for made in (first, second):
        lab.admin.patch(lab.path_of(made), {"data": {"a": "1"}})
    with lab.admin.watch(lab.config_maps, resourceVersion=start, fieldSelector=f"metadata.name={name}") as events:
        events.next("MODIFIED", name)


@case
def one_namespace(lab: Lab) -> None:
    """A watch of a namespace sends nothing of another."""
    start = revision(lab)
    name = lab.name()
    path = "/api/v1/namespaces/default/configmaps"
    lab.admin.post(path, {"metadata": {"name": name}})
    lab.admin.delete(f"{path}/{name}")
    made = lab.config_map()
    with lab.admin.watch(lab.config_maps, resourceVersion=start) as events:
        events.next("ADDED", made["metadata"]["name"])


@case
def all_namespaces(lab: Lab) -> None:
    """A watch without a namespace sends the changes of all."""
    start = revision(lab)
    made = lab.config_map(labels={"of": lab.name()})
    chosen = f"of={made['metadata']['labels']['of']}"
    with lab.admin.watch("/api/v1/configmaps", resourceVersion=start, labelSelector=chosen) as events:
        events.next("ADDED", made["metadata"]["name"])


@case
def ends_in_time(lab: Lab) -> None:
    """A watch ends after timeoutSeconds."""
    with lab.admin.watch(lab.config_maps, 1, resourceVersion=revision(lab)) as events:
        equal(events.rest(), [], "events")


@case
def bookmarks(lab: Lab) -> None:
    """A watch with allowWatchBookmarks sends a bookmark with a revision, from which a watch continues."""
    start = revision(lab)
    with lab.admin.watch(lab.config_maps, 4, resourceVersion=start, allowWatchBookmarks="true") as events:
        found = [obj for kind, obj in events.rest() if kind == "BOOKMARK"]
    if not found:
        raise CaseFailed("there is no bookmark before the end")
    equal(found[-1]["kind"], "ConfigMap", "kind")
    seen = found[-1]["metadata"]["resourceVersion"]
    expect(int(seen) >= int(start), seen)
    made = lab.config_map()
    with lab.admin.watch(lab.config_maps, resourceVersion=seen) as events:
        events.next("ADDED", made["metadata"]["name"])


@case
def initial_events(lab: Lab) -> None:
    """A watch with sendInitialEvents marks the end of the objects that exist."""
    made = lab.config_map(labels={"of": lab.name()})
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "labelSelector": f"of={made['metadata']['labels']['of']}",
    }
    with lab.admin.watch(lab.config_maps, 10, **query) as events:
        events.next("ADDED", made["metadata"]["name"])
        mark = events.next("BOOKMARK")
    equal(mark["metadata"]["annotations"], {"k8s.io/initial-events-end": "true"}, "annotations")


@case
def revision_that_expired(lab: Lab) -> None:
    """A watch from a revision that is gone is 410 Expired, as an event or as the answer."""
    path, query = lab.config_maps, {"watch": "true", "timeoutSeconds": "3", "resourceVersion": "1"}
    answer = lab.admin.send("GET", path, **query)
    first = answer._replace(text=(answer.text.splitlines() or [""])[0])
    found = answer.body if answer.code == 410 else first.body.get("object", {})
    equal((found.get("code"), found.get("reason")), (410, "Expired"), "the Status")


@case
def revision_that_is_not_valid(lab: Lab) -> None:
    """A watch from a revision that is not a number is 400 BadRequest."""
    query = {"watch": "true", "timeoutSeconds": "3", "resourceVersion": "none"}
    lab.admin.refused("GET", lab.config_maps, 400, "BadRequest", **query)


@case
def metadata_alone(lab: Lab) -> None:
    """A watch of PartialObjectMetadata sends no data."""
    start = revision(lab)
    lab.config_map({"a": "1"})
    with lab.admin.watch(lab.config_maps, resourceVersion=start, accept=PARTIAL.format("")) as events:
        found = events.next("ADDED")
    equal((found["kind"], "data" in found), ("PartialObjectMetadata", False), "the object")


@case
def tables(lab: Lab) -> None:
    """A watch of Tables sends a row for each event, and the columns with the first one alone."""
    start = revision(lab)
    made = lab.config_map()
    lab.admin.patch(lab.path_of(made), {"data": {"a": "1"}})
    with lab.admin.watch(lab.config_maps, resourceVersion=start, accept=TABLE) as events:
        first, second = events.any()[1], events.any()[1]
    equal((len(first["rows"]), len(second["rows"])), (1, 1), "rows")
    expect(first["columnDefinitions"] and not second.get("columnDefinitions"), "columns")


@case
def two_watches(lab: Lab) -> None:
    """Two watches send the same events."""
    start = revision(lab)
    with (
        lab.admin.watch(lab.config_maps, resourceVersion=start) as one,
        lab.admin.watch(lab.config_maps, resourceVersion=start) as other,
    ):
        made = lab.config_map()
        equal(one.next("ADDED", made["metadata"]["name"]), other.next("ADDED"), "the object")
