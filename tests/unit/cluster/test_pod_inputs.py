"""What a pod's spec gives to its container; the controller's pod has what upstream's needs."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster import assisted
from ansible_collections.agentlab.ocp.payload.cluster.pod_inputs import ACCOUNT, InputError, PodInputs

FACTS: Any = {
    "id": "c1",
    "domain": "ostest.lab.test",
    "version": "4.22.0-lab",
    "images": {"must-gather": "lab/mg@sha256:1"},
    "hosts": [{"role": "master"}, {"role": "worker"}],
}
OBJECTS = list(
    assisted.manifests(
        cluster_id="c1",
        url="http://192.168.111.20:8090",
        token="s3cret",
        control_plane_count=1,
        must_gather_image="lab/mg@sha256:1",
    ).values()
)
CORE = "/api/v1/namespaces/assisted-installer"


def paths(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {f"{CORE}/{one['kind'].lower()}s/{one['metadata']['name']}": one for one in objects}


class Node:
    """A node's directories, and the objects of its API."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.etc, self.host = folder / "run/pods/p", folder / "etc", folder / "host"
        self.objects = paths(OBJECTS)
        self.etc.mkdir()
        (self.etc / "controller-token").write_text("acc0unt")
        (self.etc / "ca.crt").write_text("CA")

    def arguments(self, **spec: Any) -> list[str]:
        pod = {"metadata": {"name": "p", "namespace": "assisted-installer"}, "spec": spec}
        inputs = PodInputs(pod, FACTS, self.objects.get, folder=self.folder, etc=self.etc, host=self.host)
        return inputs.arguments(spec["containers"][0])


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_controller_gets_what_upstream_s_needs(node: Node) -> None:
    words = node.arguments(**assisted.pod("image", "4.22.0-lab"))
    environment = dict(word.split("=", 1) for flag, word in itertools.pairwise(words) if flag == "--env")
    assert environment == {
        "CLUSTER_ID": "c1",
        "INVENTORY_URL": "http://192.168.111.20:8090",
        "SKIP_CERT_VERIFICATION": "false",
        "CONTROL_PLANE_COUNT": "1",
        "CHECK_CLUSTER_VERSION": "true",
        "MUST_GATHER_IMAGE": "lab/mg@sha256:1",
        "OPENSHIFT_VERSION": "4.22.0-lab",
        "KUBERNETES_SERVICE_HOST": "api-int.ostest.lab.test",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    mounts = dict(word.split(":")[1::-1] for flag, word in itertools.pairwise(words) if flag == "--volume")
    assert mounts.keys() == {"/etc/pki", "/etc/assisted-installer-controller", str(ACCOUNT)}
    token = Path(mounts["/etc/assisted-installer-controller"]) / "token"
    assert (token.read_text(), token.stat().st_mode & 0o777) == ("s3cret", 0o600)
    account = Path(mounts[str(ACCOUNT)])
    assert {file.name: file.read_text() for file in account.iterdir()} == {
        "token": "acc0unt", "ca.crt": "CA", "namespace": "assisted-installer"
    }  # fmt: skip
    assert not any(secret in word for word in words for secret in ("s3cret", "acc0unt")), "arguments are public"
    assert node.arguments(**assisted.pod("image", "4.22.0-lab")) == words, "a restart gets the same"


def test_what_cannot_be_resolved(node: Node) -> None:
    def refusal(**spec: Any) -> str:
        with pytest.raises(InputError) as caught:
            node.arguments(**spec)
        return str(caught.value)

    def env(source: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"name": "c", "env": [{"name": "X", "valueFrom": source}]}]

    def volume(**source: Any) -> dict[str, Any]:
        mounts = [{"name": "v", "mountPath": "/v"}]
        return {"containers": [{"name": "c", "volumeMounts": mounts}], "volumes": [{"name": "v", **source}]}

    assert refusal(containers=env({"configMapKeyRef": {"name": "no", "key": "k"}})) == 'configmap "no" not found'
    assert refusal(containers=env({"configMapKeyRef": {"name": assisted.CONFIG, "key": "k"}})) == (
        "couldn't find key k in configmap assisted-installer/assisted-installer-controller-config"
    )
    for optional in ("no", assisted.CONFIG):
        reference = {"name": optional, "key": "k", "optional": True}
        assert node.arguments(containers=env({"configMapKeyRef": reference})) == []
    assert refusal(**volume(hostPath={"path": "/none"})) == 'hostPath of volume "v": /none does not exist'
    assert refusal(**volume(emptyDir={})) == 'volume "v": emptyDir is not simulated'
    assert refusal(**{**volume(), "volumes": []}) == 'cannot find volume "v" to mount into container "c"'
    items = [{"key": "pull-secret-token", "path": "../../x"}]
    assert refusal(**volume(secret={"secretName": assisted.SECRET, "items": items})) == "../../x leaves its volume"
    items = [{"key": "none", "path": "x"}]
    assert refusal(**volume(secret={"secretName": assisted.SECRET, "items": items})) == (
        'references non-existent key in volume "v": none'
    )


def test_its_objects_are_those_of_upstream_s_templates() -> None:
    kinds = {(one["kind"], one["metadata"]["name"]): one for one in OBJECTS}
    assert set(kinds) == {
        ("ConfigMap", "assisted-installer-controller-config"),
        ("Secret", "assisted-installer-controller-secret"),
        ("ServiceAccount", "assisted-installer-controller"),
    }
    assert json.dumps(kinds["ConfigMap", "assisted-installer-controller-config"]["data"]["cluster-id"]) == '"c1"'
