"""The simulated kubelet: addresses of its node, and pods whose status reports what their container does."""

from __future__ import annotations

import copy
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.cluster import kubelet, mirror_pods, pods
from ansible_collections.agentlab.ocp.payload.cluster.kube import STRATEGIC, KubeClient, KubeError
from ansible_collections.agentlab.ocp.payload.cluster.patch import merge_patch, strategic_merge_patch
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.pods import trouble

FACTS = {
    "machine_networks": ["192.168.111.0/24", "fd2e:6f44:5dd8:c956::/120"],
    "api_vips": ["192.168.111.5", "fd2e:6f44:5dd8:c956::5"],
    "ingress_vips": ["192.168.111.4", "fd2e:6f44:5dd8:c956::4"],
    "outside_balancer": False,
    "platform": "baremetal",
    "external": {},
    "schedulable_masters": True,
    "version": "4.22.0-lab",
    "images": {"hyperkube": "registry/hyperkube"},
}
POD = {
    "metadata": {
        "name": "assisted-installer-controller-7",
        "namespace": "assisted-installer",
        "uid": "u",
        "labels": {},
    },
    "spec": {
        "containers": [
            {"name": "assisted-installer-controller", "image": "registry/controller", "command": ["controller"]}
        ]
    },
    "status": {"phase": "Pending"},
}


class Kube:
    """Objects by path, patched as the API patches them; `seen` has every status that was posted."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.seen: list[dict[str, Any]] = []

    def another_client(self) -> Kube:
        return self

    def create(self, path: str, obj: Any) -> Any:
        self.objects[f"{path}/{obj['metadata']['name']}"] = obj
        return obj

    def patch(self, path: str, patch: Any, content_type: str = "") -> Any:
        path = path.removesuffix("/status")
        if path not in self.objects:
            raise KubeError(404, "not found")
        apply = strategic_merge_patch if content_type == STRATEGIC else merge_patch
        self.objects[path] = apply(self.objects[path], patch)
        self.seen.append(self.objects[path]["status"])
        return self.objects[path]


@pytest.fixture
def kube(monkeypatch: pytest.MonkeyPatch) -> Kube:
    fake = Kube()
    monkeypatch.setattr(KubeClient, "from_kubeconfig", lambda path: fake)
    return fake


@pytest.fixture
def node(tmp_path: Path, kube: Kube) -> Callable[..., kubelet.Kubelet]:
    def make(**more: Any) -> kubelet.Kubelet:
        etc = tmp_path / "etc"
        etc.mkdir(exist_ok=True)
        (etc / "cluster.json").write_text(json.dumps({**FACTS, **more}))
        (etc / "machine-config.json").write_text(json.dumps({"url": "https://api-int:22623/config/master"}))
        for name, text in (("proc/meminfo", "MemTotal: 4000 kB\n"), ("etc/os-release", "NAME=x\n")):
            (tmp_path / "host" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "host" / name).write_text(text)
        words = [
            "--config-dir",
            etc,
            "--host-root",
            tmp_path / "host",
            "--run-dir",
            tmp_path,
            "--data-dir",
            tmp_path,
            "--enter",
            "",
            "--name",
            "n",
        ]
        return kubelet.Kubelet(kubelet.parser().parse_args([str(word) for word in words]))

    return make


LINKS = [
    ("192.168.111.5", 32),
    ("fd2e:6f44:5dd8:c956::14", 128),
    ("fe80::1", 64),
    ("192.168.111.20", 24),
    ("192.168.111.99", 24),
]


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        (FACTS["machine_networks"], ["192.168.111.20", "fd2e:6f44:5dd8:c956::14"]),
        (FACTS["machine_networks"][::-1], ["fd2e:6f44:5dd8:c956::14", "192.168.111.20"]),
        (FACTS["machine_networks"][:1], ["192.168.111.20"]),
    ],
)
def test_every_status_has_one_address_per_family_primary_first(
    networks: list[str],
    expected: list[str],
    node: Callable[..., kubelet.Kubelet],
    kube: Kube,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    infos = [
        {"local": ip, "prefixlen": length, "scope": "link" if ip.startswith("fe80") else "global"}
        for ip, length in LINKS
    ]
    real = kubelet.interface_for
    monkeypatch.setattr(kubelet, "interface_for", lambda wanted: real(wanted, [{"ifname": "eth0", "addr_info": infos}]))
    member = node(machine_networks=networks)
    kube.create(kubelet.NODES, {**member.node(), "status": member.status(False)})
    for is_ready in (False, True, True):
        member._post_status(is_ready)
        [found] = kube.objects.values()
        assert [a["address"] for a in found["status"]["addresses"] if a["type"] == "InternalIP"] == expected
        assert found["status"]["addresses"][-1] == {"type": "Hostname", "address": "n"}


@pytest.mark.parametrize(("services", "first"), [("172.30.0.0/16", "192.168.112.83"), ("fd02::/112", "fd00:112::53")])
def test_a_worker_in_another_segment_has_the_addresses_of_its_default_route(
    services: str, first: str, node: Callable[..., kubelet.Kubelet], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only without virtual addresses: a worker that cannot reach the network of these waits for an address there."""

    def outside(networks: list[str]) -> tuple[str, list[str]]:
        raise LookupError(f"no interface has an address in {networks}")

    monkeypatch.setattr(kubelet, "interface_for", outside)
    monkeypatch.setattr(kubelet, "interface_of_route", lambda: ("eth0", ["192.168.112.83", "fd00:112::53"]))
    member = node(api_vips=[], service_networks=[services])
    assert member._addresses()[0] == first and len(member._addresses()) == 2
    member.facts["api_vips"] = ["192.168.111.5"]
    with pytest.raises(LookupError, match="no interface"):
        member._interface()


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Installs a podman whose containers run a piece of shell; $1 is how often it was called."""

    def install(text: str) -> None:
        program = tmp_path / "bin" / "podman"
        program.parent.mkdir(exist_ok=True)
        made = 'while [ $# -gt 0 ]; do [ "$1" = --pidfile ] && pid=$2; shift; done; made() { echo $$ > "$pid"; }'
        count = f"echo >> {tmp_path}/count; set -- $(wc -l < {tmp_path}/count)"
        program.write_text(f'#!/bin/sh\n[ "$1" = run ] || exit 0\n{made}\n{count}\n{text}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")

    return install


def run_pod(kube: Kube, tmp_path: Path, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Run the pod until its status is so; return it."""
    context = pods.NodeContext(kube, FACTS, "192.168.111.20", "", tmp_path, tmp_path, (443, 80))
    kube.create("/api/v1/namespaces/assisted-installer/pods", POD)
    pod = pods.ContainerPod(context, POD)
    thread = threading.Thread(target=pod.run)
    thread.start()
    end = time.monotonic() + 20
    try:
        while not (found := [status for status in kube.seen if until(status)]):
            assert time.monotonic() < end, kube.seen
            time.sleep(0.05)
    finally:
        pod.stop()
        thread.join(20)
    assert not thread.is_alive()
    return found[0]


def test_a_container_that_runs_is_running_and_then_succeeds(
    kube: Kube, tmp_path: Path, podman: Callable[[str], None]
) -> None:
    podman("made; sleep 1")
    run_pod(kube, tmp_path, lambda status: status["phase"] == "Succeeded")
    phases = [(s["phase"], s["containerStatuses"][0]["ready"], *s["containerStatuses"][0]["state"]) for s in kube.seen]
    assert phases == [("Pending", False, "waiting"), ("Running", True, "running"), ("Succeeded", False, "terminated")]
    assert not any(trouble({**POD, "status": status}) for status in kube.seen[1:])


def test_a_container_that_ends_badly_is_crash_looping(
    kube: Kube, tmp_path: Path, podman: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was Running with RESTARTS 0, however often it had ended."""
    monkeypatch.setattr(pods, "BACKOFF_SECONDS", 0.2)
    podman("made; echo 'required key CLUSTER_ID missing value'; exit 1")
    status = run_pod(
        kube,
        tmp_path,
        lambda s: s["containerStatuses"][0]["restartCount"] >= 3 and "waiting" in s["containerStatuses"][0]["state"],
    )
    [container] = status["containerStatuses"]
    assert not container["ready"]
    assert container["lastState"]["terminated"]["exitCode"] == 1
    looping = next(
        s
        for s in kube.seen
        if s["containerStatuses"][0]["state"].get("waiting", {}).get("reason") == "CrashLoopBackOff"
    )
    reported = trouble({**POD, "status": looping})
    assert reported == "CrashLoopBackOff: exit code 1: required key CLUSTER_ID missing value"


def test_a_container_that_recovers_is_fine(kube: Kube, tmp_path: Path, podman: Callable[[str], None]) -> None:
    podman('made; [ "$1" -gt 1 ] || exit 1')
    status = run_pod(kube, tmp_path, lambda status: status["phase"] == "Succeeded")
    assert status["containerStatuses"][0]["restartCount"] == 1


def test_another_image_restarts_the_container(
    node: Callable[..., kubelet.Kubelet],
    kube: Kube,
    tmp_path: Path,
    podman: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with the kubelet, the image is the one field of a container that may change. The first container runs until then."""
    podman('made; [ "$1" -gt 1 ] || exec sleep 20')
    program = tmp_path / "bin/podman"
    remove = f"[ $1 = rm ] && kill $(cat {tmp_path}/k8s_{POD['metadata']['name']}.pid)\n"
    program.write_text(program.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\necho $* >> {tmp_path}/calls\n{remove}"))
    monkeypatch.setattr(kubelet, "interface_for", lambda __: ("eth0", ["192.168.111.20"]))
    member = node()
    path = f"/api/v1/namespaces/assisted-installer/pods/{POD['metadata']['name']}"
    kube.create("/api/v1/namespaces/assisted-installer/pods", POD)
    member._pod_event("ADDED", POD)
    end = time.monotonic() + 20

    def until(phase: str) -> None:
        while not any(status["phase"] == phase for status in kube.seen):
            assert time.monotonic() < end, kube.seen
            time.sleep(0.05)

    until("Running")
    changed = copy.deepcopy(kube.objects[path])
    member._pod_event("MODIFIED", copy.deepcopy(changed))
    assert not any(status["phase"] == "Succeeded" for status in kube.seen)
    changed["spec"]["containers"][0]["image"] = "registry/controller@sha256:new"
    member._pod_event("MODIFIED", changed)
    until("Succeeded")
    runs = [line for line in (tmp_path / "calls").read_text().splitlines() if line.startswith("run")]
    assert ["registry/controller@sha256:new" in line for line in runs] == [False, True]
    assert kube.seen[-1]["containerStatuses"][0]["restartCount"] == 1


def test_an_image_that_cannot_be_pulled(kube: Kube, tmp_path: Path, podman: Callable[[str], None]) -> None:
    podman(
        "echo 'Error: initializing source docker://registry/controller: pinging container registry: refused'; exit 125"
    )
    status = run_pod(
        kube, tmp_path, lambda s: s["containerStatuses"][0]["state"].get("waiting", {}).get("reason") == "ErrImagePull"
    )
    assert status["phase"] == "Pending"
    assert "pinging container registry: refused" in trouble({**POD, "status": status})


def test_mirror_pods_are_ready_as_long_as_they_answer(
    kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were created as Ready before the store of the member had begun to follow, and stayed so."""
    answers, unit = {6443: False, 22623: False}, [(True, 0)]
    monkeypatch.setattr(mirror_pods, "_answers", lambda address, port, path: answers[port])
    monkeypatch.setattr(mirror_pods.MirrorPods, "_unit", lambda self: unit[0])
    context = pods.NodeContext(kube, FACTS, "192.168.111.20", "", tmp_path, tmp_path, (443, 80))
    mirrors = mirror_pods.MirrorPods(context, "master-0")

    def states() -> dict[str, tuple[str, bool, int]]:
        mirrors.keep()
        return {
            path.rsplit("/", 1)[1]: (
                s["status"]["phase"],
                s["status"]["containerStatuses"][0]["ready"],
                s["status"]["containerStatuses"][0]["restartCount"],
            )
            for path, s in kube.objects.items()
        }

    names = ("etcd-master-0", "kube-apiserver-master-0", "machine-config-server-master-0")
    assert states() == dict.fromkeys(names, ("Running", False, 0))
    answers[6443] = True
    assert states() == {**dict.fromkeys(names[:2], ("Running", True, 0)), names[2]: ("Running", False, 0)}
    answers[22623] = True
    assert states() == dict.fromkeys(names, ("Running", True, 0))
    answers.update({6443: False, 22623: False})
    unit[0] = (False, 2)
    assert states() == dict.fromkeys(names, ("Running", False, 2))
    [reason] = {trouble(pod) for pod in kube.objects.values()}
    assert reason.startswith("CrashLoopBackOff")
