"""Extra manifests: that `validate` notices an object that is missing or different, and what the lab's API has of a Secret."""

from __future__ import annotations

import base64
import copy
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.cluster.control_plane import ControlPlane
from ansible_collections.agentlab.ocp.payload.cluster.resources import Registry
from ansible_collections.agentlab.ocp.payload.cluster.store import Store
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster import manifests, shapes
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, profile
from ansible_collections.agentlab.ocp.plugins.module_utils.shapes import check
from ansible_collections.agentlab.ocp.tests.unit.cluster.test_validate import Kube

MC = "/apis/machineconfiguration.openshift.io/v1"
CHRONY = {
    "apiVersion": "machineconfiguration.openshift.io/v1",
    "kind": "MachineConfig",
    "metadata": {"name": "50-chrony", "labels": {"role": "master"}, "creationTimestamp": None},
    "spec": {"config": {"storage": {"files": [{"path": "/etc/a", "mode": 420}, {"path": "/etc/b", "mode": 420}]}}, "kernelArguments": []},
    "status": {},
}  # fmt: skip
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "data": {"a": "eA=="},
    "stringData": {"b": "hunter"},
}


def cluster(**installer: Any) -> tuple[Any, Kube]:
    """A plan with extra manifests, and a cluster that has them, as its API returns them."""
    given: Any = profile.complete({"topology": "sno", "installer": installer})
    plan: Any = build.build(given, "one")
    kube = Kube(plan)
    kube.objects["/api/v1"]["resources"].append({"name": "secrets", "kind": "Secret", "namespaced": True})
    kube.objects[MC] = {
        "resources": [
            {"name": "machineconfigs/status", "kind": "MachineConfig", "namespaced": False},
            {"name": "machineconfigs", "kind": "MachineConfig", "namespaced": False},
        ]
    }
    chrony = copy.deepcopy(CHRONY) | {"metadata": {**CHRONY["metadata"], "uid": "1", "creationTimestamp": "2026"}}
    kube.objects[f"{MC}/machineconfigs/50-chrony"] = chrony
    data = {"a": "eA==", "b": base64.b64encode(b"hunter").decode(), "c": "eA=="}
    kube.objects["/api/v1/namespaces/default/secrets/s"] = {**SECRET, "data": data, "stringData": None}
    return plan, kube


def wrong(plan: Any, kube: Kube) -> dict[str, str]:
    return {one.subject: one.found for one in manifests.findings(plan, cast(Any, kube)) if not one.ok}


def test_objects_that_are_as_given() -> None:
    plan, kube = cluster(manifests={"chrony": CHRONY, "secret": SECRET})
    subjects = [one.subject for one in manifests.findings(plan, cast(Any, kube))]
    assert subjects == ["manifest ConfigMap agentlab-settings", "manifest MachineConfig 50-chrony", "manifest Secret s"]
    assert not wrong(plan, kube)
    for path in ("/api/v1", MC):
        check(kube.objects[path], shapes.RESOURCES, path)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda one: one["spec"]["config"]["storage"]["files"][1].update(mode=384), "differs in spec.config.storage.files.1.mode"),
        (lambda one: one["spec"]["config"]["storage"]["files"].pop(), "differs in spec.config.storage.files"),
        (lambda one: one.pop("spec"), "differs in spec.config.storage.files"),
        (lambda one: one.update(spec=1), "differs in spec.config.storage.files"),
        (lambda one: one["metadata"]["labels"].clear(), "differs in metadata.labels.role"),
    ],
)  # fmt: skip
def test_an_object_that_differs(change: Any, found: str) -> None:
    plan, kube = cluster(manifests={"chrony": CHRONY})
    change(kube.objects[f"{MC}/machineconfigs/50-chrony"])
    assert wrong(plan, kube) == {"manifest MachineConfig 50-chrony": found}


def test_an_object_that_is_missing_or_of_an_unknown_kind() -> None:
    plan, kube = cluster(manifests={"chrony": CHRONY})
    del kube.objects[f"{MC}/machineconfigs/50-chrony"]
    assert wrong(plan, kube) == {"manifest MachineConfig 50-chrony": "missing"}
    del kube.objects[MC]["resources"][1]
    refused = "the API does not serve MachineConfig of machineconfiguration.openshift.io/v1"
    assert wrong(plan, kube) == {"manifest MachineConfig 50-chrony": refused}
    del kube.objects[MC]
    assert wrong(plan, kube) == {"manifest MachineConfig 50-chrony": refused}


def test_the_values_of_a_secret_are_not_shown() -> None:
    plan, kube = cluster(manifests={"secret": SECRET})
    kube.objects["/api/v1/namespaces/default/secrets/s"]["data"]["b"] = "eA=="
    assert wrong(plan, kube) == {"manifest Secret s": "differs in data.b"}


def test_the_manifests_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "both.yaml").write_text(yaml.safe_dump_all([CHRONY, SECRET]))
    (tmp_path / "list.yml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [SECRET]}))
    plan, kube = cluster(manifests_dir=str(tmp_path))
    assert not wrong(plan, kube)
    del kube.objects["/api/v1/namespaces/default/secrets/s"]
    found = [one.found for one in manifests.findings(plan, cast(Any, kube)) if one.subject == "manifest Secret s"]
    assert found == ["missing"] * 2
    for path in tmp_path.iterdir():
        path.unlink()  # as on another host
    assert not wrong(plan, kube)


def test_the_lab_s_settings_are_a_manifest() -> None:
    plan, kube = cluster()
    [path] = (path for path in kube.objects if path.endswith("agentlab-settings"))
    kube.objects[path]["data"].popitem()
    [(subject, found)] = wrong(plan, kube).items()
    assert subject == "manifest ConfigMap agentlab-settings" and found.startswith("differs in data.")


def test_a_secret_with_texts_is_stored_as_data(tmp_path: Path) -> None:
    """The first objects of a cluster kept `stringData`, which no API server returns."""
    (tmp_path / "manifests.json").write_text(json.dumps([SECRET]))
    store = Store()
    fake = SimpleNamespace(
        store=store, registry=Registry(), options=SimpleNamespace(bootstrap_dir=tmp_path), _manifests=list,
        _ensure_namespace=lambda name: None,
    )  # fmt: skip
    ControlPlane.seed(cast(Any, fake))
    found = store.find("secrets", "default", "s")
    assert found and found["data"] == {"a": "eA==", "b": base64.b64encode(b"hunter").decode()}
    assert "stringData" not in found
