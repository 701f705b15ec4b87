"""The API as clients call it; kubectl itself is in tests/integration/cluster."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster import protobuf
from ansible_collections.agentlab.ocp.payload.cluster.pki import request

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
MERGE = "application/merge-patch+json"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


async def test_create_read_update_delete(api: Any) -> None:
    created = await api.call("POST", CONFIG_MAPS, config_map("a", x="1"), 201)
    assert created["metadata"]["namespace"] == "default" and created["metadata"]["uid"]
    patched = await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {"y": "2"}}, Content_Type=MERGE)
    assert patched["data"] == {"x": "1", "y": "2"}
    conflict = await api.call("PUT", f"{CONFIG_MAPS}/a", created, 409)
    assert conflict["reason"] == "Conflict" and conflict["kind"] == "Status"
    assert (await api.call("GET", CONFIG_MAPS))["items"][0]["data"] == {"x": "1", "y": "2"}
    await api.call("DELETE", f"{CONFIG_MAPS}/a")
    assert (await api.call("GET", f"{CONFIG_MAPS}/a", code=404))["details"]["name"] == "a"


async def test_errors_are_status_objects(api: Any) -> None:
    await api.call("POST", CONFIG_MAPS, config_map("a"), 201)
    assert (await api.call("POST", CONFIG_MAPS, config_map("a"), 409))["reason"] == "AlreadyExists"
    assert (await api.call("POST", "/api/v1/namespaces/none/configmaps", config_map("a"), 404))[
        "message"
    ] == 'namespaces "none" not found'
    assert (await api.call("POST", CONFIG_MAPS, config_map("A_b"), 422))["reason"] == "Invalid"
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "IsReady"}, "reason": "IsReady"}
    await api.call("POST", "/api/v1/namespaces/default/events", event, 201)  # has any name
    assert (await api.call("GET", "/api/v1/nothing", code=404))[
        "message"
    ] == "the server could not find the requested resource"
    assert (await api.call("POST", CONFIG_MAPS, b"{", 400))["reason"] == "BadRequest"
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {}, 415, Content_Type="text/plain")


async def test_status_is_a_subresource(api: Any) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}}
    await api.call("POST", "/api/v1/nodes", node, 201)
    await api.call("PATCH", "/api/v1/nodes/n/status", {"status": {"phase": "x"}}, Content_Type=MERGE)
    seen = await api.call(
        "PATCH", "/api/v1/nodes/n", {"status": {"phase": "y"}, "spec": {"unschedulable": True}}, Content_Type=MERGE
    )
    assert (seen["status"], seen["spec"]) == ({"phase": "x"}, {"unschedulable": True})


async def test_who_may_do_what(api: Any) -> None:
    await api.call("GET", "/version", token="wrong")
    assert (await api.call("GET", "/api/v1/nodes", code=401, token="wrong"))["reason"] == "Unauthorized"
    denied = await api.call("GET", "/api/v1/nodes", code=403, token="boot")
    assert 'User "bootstrapper" cannot list resource "nodes"' in denied["message"]
    await api.call("GET", "/api/v1/nodes", token="node")
    await api.call("POST", CONFIG_MAPS, config_map("a"), 403, token="node")
    answer = await api.http.get("/api/v1/nodes")
    assert answer.status == 403
    seen = await api.call("GET", "/apis/user.openshift.io/v1/users/~", Impersonate_User="jo")
    assert seen["metadata"]["name"] == "jo"


async def test_a_certificate_request_reports_who_asked(api: Any) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "csr-"},
        "spec": {
            "request": base64.b64encode(request("n", []).certificate.encode()).decode(),
            "signerName": "kubernetes.io/kubelet-serving",
            "usages": ["server auth"],
            "username": "liar",
        },
        "status": {"conditions": [{"type": "Approved"}]},
    }
    made = await api.call("POST", path, body, 201, token="boot")
    assert made["spec"]["username"] == "bootstrapper" and made["status"] == {} and len(made["metadata"]["name"]) == 9


async def test_watch_continues_from_a_revision_and_follows_selectors(api: Any) -> None:
    await api.call("POST", CONFIG_MAPS, config_map("a"), 201)
    revision = (await api.call("GET", CONFIG_MAPS))["metadata"]["resourceVersion"]
    url = f"{CONFIG_MAPS}?watch=true&resourceVersion={revision}&labelSelector=k=v&timeoutSeconds=2"
    watch = asyncio.create_task(api.call("GET", url))
    await asyncio.sleep(0.1)
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"k": "v"}}}, Content_Type=MERGE)
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {"data": {"x": "1"}}, Content_Type=MERGE)
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"k": None}}}, Content_Type=MERGE)
    answer = await api.http.get(url, headers={"Authorization": "Bearer admin"})
    events = [json.loads(line) for line in (await answer.text()).splitlines()]
    assert [e["type"] for e in events] == ["ADDED", "MODIFIED", "DELETED"]
    watch.cancel()


async def test_watch_list_and_expired_revisions(api: Any) -> None:
    await api.call("POST", CONFIG_MAPS, config_map("a"), 201)
    answer = await api.http.get(
        f"{CONFIG_MAPS}?watch=1&sendInitialEvents=true&timeoutSeconds=1", headers={"Authorization": "Bearer admin"}
    )
    added, bookmark = [json.loads(line) for line in (await answer.text()).splitlines()]
    assert added["type"] == "ADDED" and bookmark["object"]["metadata"]["annotations"] == {
        "k8s.io/initial-events-end": "true"
    }
    api.store.load(api.store.snapshot())
    answer = await api.http.get(f"{CONFIG_MAPS}?watch=1&resourceVersion=1", headers={"Authorization": "Bearer admin"})
    assert json.loads(await answer.text())["object"]["code"] == 410


async def test_tables_and_discovery(api: Any) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n", "labels": {"node-role.kubernetes.io/master": ""}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }
    api.store.create("nodes", node)
    table = await api.call("GET", "/api/v1/nodes", Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [c["name"] for c in table["columnDefinitions"][:5]] == ["Name", "Status", "Roles", "Age", "Version"]
    assert table["rows"][0]["cells"][:3] == ["n", "Ready", "master"]
    groups = await api.call(
        "GET", "/apis", Accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    )
    assert groups["kind"] == "APIGroupDiscoveryList"
    assert "config.openshift.io" in [g["name"] for g in (await api.call("GET", "/apis"))["groups"]]
    names = [r["name"] for r in (await api.call("GET", "/apis/config.openshift.io/v1"))["resources"]]
    assert "clusterversions" in names and "clusterversions/status" in names


async def test_custom_resources_are_served(api: Any) -> None:
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.test"},
        "spec": {
            "group": "example.test",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True}],
        },
    }
    await api.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd, 201)
    thing = {"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {}}
    await api.call("POST", "/apis/example.test/v1/namespaces/default/things", thing, 201)
    assert len((await api.call("GET", "/apis/example.test/v1/things"))["items"]) == 1


async def test_finalizers_and_namespaces(api: Any) -> None:
    await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "n1"}}, 201)
    held = {**config_map("a"), "metadata": {"name": "a", "finalizers": ["example.test/x"]}}
    await api.call("POST", CONFIG_MAPS, held, 201)
    assert (await api.call("DELETE", f"{CONFIG_MAPS}/a"))["metadata"]["deletionTimestamp"]
    await api.call("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}}, Content_Type=MERGE)
    await api.call("GET", f"{CONFIG_MAPS}/a", code=404)
    await api.call("POST", "/api/v1/namespaces/n1/configmaps", config_map("b"), 201)
    await api.call("DELETE", "/api/v1/namespaces/n1")
    assert not api.store.items("configmaps")


async def test_dry_run_and_apply(api: Any) -> None:
    await api.call("POST", f"{CONFIG_MAPS}?dryRun=All", config_map("a"), 201)
    assert not api.store.items("configmaps")
    apply = {"Content_Type": "application/apply-patch+yaml"}
    await api.call("PATCH", f"{CONFIG_MAPS}/a?fieldManager=t", config_map("a", x="1"), 201, **apply)
    applied = await api.call("PATCH", f"{CONFIG_MAPS}/a?fieldManager=t", config_map("a", y="2"), **apply)
    assert applied["data"] == {"y": "2"}, "what it applied before and left out is removed"


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


async def test_protobuf_bodies(api: Any) -> None:
    metadata = _field(1, b"pb") + _field(11, _field(1, b"k") + _field(2, b"v"))
    raw = _field(1, metadata) + _field(2, _field(1, b"x") + _field(2, b"1"))
    body = protobuf.MAGIC + _field(1, _field(1, b"v1") + _field(2, b"ConfigMap")) + _field(2, raw)
    made = await api.call("POST", CONFIG_MAPS, body, 201, Content_Type=protobuf.CONTENT_TYPE)
    assert (made["metadata"]["name"], made["metadata"]["labels"], made["data"]) == ("pb", {"k": "v"}, {"x": "1"})
    await api.call("POST", CONFIG_MAPS, body[:-1], 400, Content_Type=protobuf.CONTENT_TYPE)


@pytest.mark.parametrize(
    "metadata",
    [
        b"\x08\x01",  # the name is a number
        _field(7, b"x"),  # the generation is a text
        b"\x5a\x02\x10\x01",  # a label's value is a number
        b"\x58\x01",  # the labels are a number
        _field(8, b"\x08" + b"\xff" * 9 + b"\x01"),  # created long after the year 9999
        b"\x38" + b"\xff" * 64 + b"\x01",  # a number of more than 64 bits
        _field(1, b"\xff"),  # a name that is not UTF-8
    ],
    ids=["name", "generation", "label", "labels", "time", "number", "utf-8"],
)
async def test_protobuf_that_no_client_sends(api: Any, metadata: bytes) -> None:
    body = protobuf.MAGIC + _field(1, _field(1, b"v1") + _field(2, b"ConfigMap")) + _field(2, _field(1, metadata))
    refused = await api.call("POST", CONFIG_MAPS, body, 400, Content_Type=protobuf.CONTENT_TYPE)
    assert refused["message"].startswith("the body cannot be read: ")


def test_no_protobuf_crashes_the_decoder() -> None:
    """Every byte of a good message, replaced by others, and every beginning of it."""
    metadata = _field(1, b"pb") + _field(8, b"\x08\x01") + _field(11, _field(1, b"k") + _field(2, b"v")) + b"\x38\x01"
    raw = _field(1, metadata) + _field(2, _field(1, b"x") + _field(2, b"1"))
    good = protobuf.MAGIC + _field(1, _field(1, b"v1") + _field(2, b"ConfigMap")) + _field(2, raw)
    hostile = [good[:at] + bytes([byte]) + good[at + 1 :] for at in range(len(good)) for byte in range(256)]
    for body in hostile + [good[:at] for at in range(len(good))]:
        with contextlib.suppress(ValueError):
            json.dumps(protobuf.decode(body))
