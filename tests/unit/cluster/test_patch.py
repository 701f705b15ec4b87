"""Patches and selectors, by example of the Kubernetes documentation."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster.patch import (
    PatchError,
    json_patch,
    merge_patch,
    strategic_merge_patch,
)
from ansible_collections.agentlab.ocp.payload.cluster.selectors import SelectorError, selector


def test_merge_patch_removes_by_null_and_replaces_lists() -> None:
    assert merge_patch({"a": {"b": 1, "c": 2}, "l": [1, 2]}, {"a": {"b": None}, "l": [3]}) == {"a": {"c": 2}, "l": [3]}


def test_strategic_merge_patch_merges_lists_by_key() -> None:
    node = {
        "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "False"}]}
    }
    patch = {"status": {"$setElementOrder/conditions": [], "conditions": [{"type": "Ready", "status": "True"}]}}
    assert strategic_merge_patch(node, patch)["status"]["conditions"] == [
        {"type": "Ready", "status": "True"},
        {"type": "DiskPressure", "status": "False"},
    ]
    volumes = {"spec": {"volumes": [{"name": "a"}, {"name": "b"}]}}
    removed = strategic_merge_patch(volumes, {"spec": {"volumes": [{"name": "a", "$patch": "delete"}]}})
    assert removed["spec"]["volumes"] == [{"name": "b"}]
    service = {"spec": {"ports": [{"port": 80, "name": "http"}]}}
    assert strategic_merge_patch(service, {"spec": {"ports": [{"port": 443}]}})["spec"]["ports"] == [
        {"port": 80, "name": "http"},
        {"port": 443},
    ]
    assert strategic_merge_patch(
        {"metadata": {"finalizers": ["x"]}}, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["x"]}}
    ) == {"metadata": {"finalizers": []}}


def test_strategic_merge_patch_replaces_lists_without_a_key() -> None:
    """kubectl taint sends the taints that are to stay."""
    node = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoSchedule"}]}}
    patch = {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}
    assert strategic_merge_patch(node, patch) == patch


def test_addresses_of_one_type_become_one_unless_they_replace() -> None:
    """As in Kubernetes, whose kubelet therefore sends the directive."""
    addresses = [{"type": "InternalIP", "address": "192.168.111.20"}, {"type": "InternalIP", "address": "fd2e::14"}]
    node = {"status": {"addresses": addresses}}
    merged = strategic_merge_patch(node, {"status": {"addresses": addresses}})["status"]["addresses"]
    assert [entry["address"] for entry in merged] == ["fd2e::14", "fd2e::14"]
    replaced = {"status": {"addresses": [*addresses, {"$patch": "replace"}]}}
    assert strategic_merge_patch(node, replaced) == node


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/l/-", "value": 3}], {"a": {"x/y": 1}, "l": [1, 2, 3]}),
        ([{"op": "add", "path": "/l/0", "value": 0}], {"a": {"x/y": 1}, "l": [0, 1, 2]}),
        ([{"op": "replace", "path": "/a/x~1y", "value": 5}], {"a": {"x/y": 5}, "l": [1, 2]}),
        ([{"op": "remove", "path": "/l/1"}], {"a": {"x/y": 1}, "l": [1]}),
        ([{"op": "move", "from": "/l", "path": "/m"}], {"a": {"x/y": 1}, "m": [1, 2]}),
        (
            [{"op": "test", "path": "/l/0", "value": 1}, {"op": "copy", "from": "/l", "path": "/a/z"}],
            {"a": {"x/y": 1, "z": [1, 2]}, "l": [1, 2]},
        ),
    ],
)
def test_json_patch(operations: list[dict[str, Any]], result: Any) -> None:
    document = {"a": {"x/y": 1}, "l": [1, 2]}
    assert json_patch(document, operations) == result
    assert document == {"a": {"x/y": 1}, "l": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "replace", "path": "/b", "value": 2},
        {"op": "remove", "path": "/b"},
        {"op": "x", "path": ""},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "add", "path": 5, "value": 1},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/b"},
        {"path": "/b"},
        "op",
    ],
)
def test_json_patch_that_does_not_fit(operation: Any) -> None:
    with pytest.raises(PatchError):
        json_patch({"a": 1}, [operation])


@pytest.mark.parametrize(
    ("labels", "fields", "chosen"),
    [
        ("app=web", "", True),
        ("app==db", "", False),
        ("app!=db,tier", "", True),
        ("!app", "", False),
        ("app in (web, db)", "", True),
        ("app notin (web)", "", False),
        ("!x,app in (web)", "", True),
        ("", "metadata.name=one", True),
        ("", "spec.nodeName!=n", True),
        ("", "spec.nodeName=n", False),
    ],
)
def test_selectors(labels: str, fields: str, chosen: bool) -> None:
    obj = {"metadata": {"name": "one", "labels": {"app": "web", "tier": "front"}}, "spec": {}}
    assert selector("pods", labels, fields)(obj) is chosen


def test_a_selector_that_cannot_be_read() -> None:
    with pytest.raises(SelectorError):
        selector("pods", "a b", "")
    with pytest.raises(SelectorError):
        selector("pods", "", "metadata.name")
