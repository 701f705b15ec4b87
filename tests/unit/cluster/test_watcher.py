from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.watcher import (
    InstallFailed,
    InstallWatcher,
    Unstable,
    add_router_ca,
    go_duration,
    operator_report,
)


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def time(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def condition(kind, status, message="", since=1_000_000.0):
    return {
        "type": kind,
        "status": status,
        "reason": "AsExpected",
        "message": message,
        "lastTransitionTime": datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


class Kube:
    server = "https://api.ostest.test:6443"

    def __init__(self, kubeconfig, clock, ready_after, stable=True):
        self.kubeconfig, self.clock, self.ready_after, self.stable = kubeconfig, clock, clock.now + ready_after, stable

    def cluster_version(self):
        done = self.clock.now >= self.ready_after
        return {
            "status": {
                "conditions": [
                    condition("Available", str(done)),
                    condition("Failing", "False"),
                    condition("Progressing", str(not done), "Working towards 4.22.0: 1 of 2 done (50% complete)"),
                ]
            }
        }

    def cluster_operators(self):
        return [
            {
                "metadata": {"name": "etcd", "resourceVersion": "1"},
                "status": {
                    "conditions": [condition("Progressing", "False" if self.stable else "True", since=self.ready_after)]
                },
            }
        ]

    def ingress_ca(self):
        return "-----ROUTER-----\n"

    def console_host(self):
        return "console-openshift-console.apps.ostest.test"


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    data = base64.b64encode(b"-----CA-----\n").decode()
    path.write_text(yaml.safe_dump({"clusters": [{"name": "ostest", "cluster": {"certificate-authority-data": data}}]}))
    return path


def watch(kubeconfig, ready_after, **more):
    clock, said = Clock(), []
    kube = Kube(kubeconfig, clock, ready_after, more.pop("stable", True))
    watcher = InstallWatcher(kube, lambda level, text: said.append(text), clock=clock, **more)
    return watcher, said, clock


def test_to_the_end(kubeconfig):
    watcher, said, clock = watch(kubeconfig, 100)
    assert watcher.run() == "https://console-openshift-console.apps.ostest.test"
    assert [s.split(" (until")[0] for s in said] == [
        "Waiting up to 40m0s",
        "Still waiting for the cluster to initialize: Working towards 4.22.0: 1 of 2 done (50% complete)",
        "Waiting up to 30m0s",
        "All cluster operators have completed progressing",
        "Checking to see if there is a route at openshift-console/console...",
    ]
    assert 130 < clock.now - 1_000_000 < 135  # operators must not have moved for 30 s
    data = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(data) == b"-----ROUTER-----\n-----CA-----\n"
    assert not add_router_ca(kubeconfig, "-----ROUTER-----\n")


def test_never_initialized(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 1e9)
    with pytest.raises(InstallFailed, match="failed to initialize the cluster: Working towards") as failed:
        watcher.run()
    assert failed.value.exit_code == 6 and clock.now - 1_000_000 > 2400


def test_stalled(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 1e9, stall=300)
    with pytest.raises(InstallFailed, match="nothing new happened for 5 minutes"):
        watcher.run()
    assert clock.now - 1_000_000 < 310


def test_unstable(kubeconfig):
    watcher, __, __ = watch(kubeconfig, 0, stable=False)
    with pytest.raises(Unstable, match=r"These cluster operators were not stable: \[etcd\]") as failed:
        watcher.run()
    assert failed.value.exit_code == 7


def test_operator_report_tells_what_is_not_as_it_should_be():
    operator = {
        "metadata": {"name": "dns"},
        "status": {
            "conditions": [
                condition("Available", "False", "no pods"),
                condition("Degraded", "False"),
                condition("Progressing", "False"),
            ]
        },
    }
    assert operator_report([operator]) == ["Cluster operator dns Available is False with AsExpected: no pods"]


@pytest.mark.parametrize("seconds, text", [(2400, "40m0s"), (3600, "1h0m0s"), (5405, "1h30m5s"), (7, "7s")])
def test_go_duration(seconds, text):
    assert go_duration(seconds) == text
