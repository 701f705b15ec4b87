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
    is_settled,
    operator_report,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import ClusterError
from ansible_collections.agentlab.ocp.plugins.module_utils.report.causes import causes
from ansible_collections.agentlab.ocp.plugins.module_utils.report.evidence import Facts
from ansible_collections.agentlab.ocp.plugins.module_utils.watch import Diagnosis


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


ROUTER_CA = "-----BEGIN CERTIFICATE-----\nrouter\n-----END CERTIFICATE-----\n"
HOST = "console-openshift-console.apps.ostest.test"


def route(admitted, host=HOST, tls=True):
    ingress = {"host": host, "conditions": [condition("Admitted", str(admitted))]}
    return {"spec": {"host": "wanted.test", **({"tls": {}} if tls else {})}, "status": {"ingress": [ingress]}}


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
        return ROUTER_CA

    def console_route(self):
        return route(admitted=True)


@pytest.fixture
def kubeconfig(tmp_path):
    path = tmp_path / "kubeconfig"
    data = base64.b64encode(b"-----CA-----\n").decode()
    path.write_text(yaml.safe_dump({"clusters": [{"name": "ostest", "cluster": {"certificate-authority-data": data}}]}))
    return path


def watch(kubeconfig, ready_after, **more):
    clock, reported = Clock(), []
    kube = Kube(kubeconfig, clock, ready_after, more.pop("stable", True))
    watcher = InstallWatcher(kube, lambda level, text: reported.append(text), clock=clock, **more)
    return watcher, reported, clock


def test_to_the_end(kubeconfig):
    watcher, reported, clock = watch(kubeconfig, 100)
    assert watcher.run() == "https://console-openshift-console.apps.ostest.test"
    assert [s.split(" (until")[0] for s in reported] == [
        "Waiting up to 40m0s",
        "Still waiting for the cluster to initialize: Working towards 4.22.0: 1 of 2 done (50% complete)",
        "Waiting up to 30m0s",
        "All cluster operators have completed progressing",
        "Checking to see if there is a route at openshift-console/console...",
        "OpenShift console route is admitted",
    ]
    assert 130 < clock.now - 1_000_000 < 135  # operators must not have moved for 30 s
    data = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(data) == ROUTER_CA.encode() + b"-----CA-----\n"
    assert not add_router_ca(kubeconfig, ROUTER_CA)


def test_a_simulated_control_plane_settles_at_once(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 100, stable_for=5)
    assert watcher.run() and 105 < clock.now - 1_000_000 < 110


def test_never_initialized(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 1e9)
    with pytest.raises(InstallFailed, match="failed to initialize the cluster: Working towards") as failed:
        watcher.run()
    assert failed.value.exit_code == 6 and clock.now - 1_000_000 > 2400


def test_stalled(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 1e9, stall=300)
    with pytest.raises(InstallFailed, match="no progress for 5 minutes"):
        watcher.run()
    assert clock.now - 1_000_000 < 310


def test_unstable(kubeconfig):
    watcher, __, __ = watch(kubeconfig, 0, stable=False)
    with pytest.raises(Unstable, match=r"These cluster operators were not stable: \[etcd\]") as failed:
        watcher.run()
    assert failed.value.exit_code == 7


def test_operator_report():
    operator = {
        "metadata": {"name": "dns"},
        "status": {
            "conditions": [
                condition("Upgradeable", "False", "never reported"),
                condition("Progressing", "True", "moving"),
                condition("Available", "False", "no pods"),
                condition("Degraded", "Unknown", "who knows"),
                condition("EvaluationConditionsDetected", "False", "nothing"),
            ]
        },
    }
    healthy = [condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", "False")]
    text = "Cluster operator dns {} with AsExpected: {}"
    assert operator_report([operator, {"metadata": {"name": "etcd"}, "status": {"conditions": healthy}}]) == [
        ("info", text.format("Progressing is True", "moving")),
        ("error", text.format("Available is False", "no pods")),
        ("error", text.format("Degraded is Unknown", "who knows")),
        ("info", text.format("EvaluationConditionsDetected is False", "nothing")),
    ]


def test_an_operator_without_a_time_is_not_settled():
    for condition_ in (
        {"type": "Progressing", "status": "False"},
        {"type": "Progressing", "status": "False", "lastTransitionTime": "x"},
    ):
        assert not is_settled({"metadata": {"name": "dns"}, "status": {"conditions": [condition_]}}, 2e9)


def test_failing_must_be_false_not_absent(kubeconfig):
    watcher, __, __ = watch(kubeconfig, 0)
    version = {"status": {"conditions": [condition("Available", "True"), condition("Progressing", "False")]}}
    watcher.kube.cluster_version = lambda: version
    with pytest.raises(InstallFailed, match="failed to initialize the cluster"):
        watcher.run()


@pytest.mark.parametrize(
    ("found", "url", "warning"),
    [
        (route(True, "status.test"), "https://status.test", None),
        (route(True, "status.test", tls=False), "http://status.test", None),
        (route(False), None, "waiting for openshift-console URL: context deadline exceeded"),
        ({"spec": {"host": "wanted.test"}}, None, "waiting for openshift-console URL: context deadline exceeded"),
        (None, None, "could not get openshift-console URL"),
    ],
)
def test_console_is_where_a_router_admitted_it(kubeconfig, found, url, warning):
    watcher, reported, clock = watch(kubeconfig, 0)
    watcher.kube.console_route = lambda: found
    before = clock.now
    assert watcher.run() == url
    assert [s for s in reported if s.startswith("Cluster does not")] == (
        [f"Cluster does not have a console available: {warning}"] if warning else []
    )
    assert (clock.now - before > 120) == bool(warning and "deadline" in warning)


def test_a_route_that_is_admitted_later(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 0)
    watcher.kube.console_route = lambda: route(clock.now > 1_000_060)
    assert watcher.run() == f"https://{HOST}"


def test_missing_router_ca_fails_at_once(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 0)
    watcher.kube.ingress_ca = lambda: None
    text = 'fetching default-ingress-cert configmap from openshift-config-managed namespace: configmaps "default-ingress-cert" not found'
    with pytest.raises(InstallFailed, match=text) as failed:
        watcher.run()
    assert failed.value.exit_code == 6 and clock.now == 1_000_000


def test_router_ca_of_an_api_that_moves(kubeconfig):
    watcher, __, clock = watch(kubeconfig, 0)

    def late():
        if clock.now < 1_000_030:
            raise ClusterError("GET x: connection refused")
        return ROUTER_CA

    watcher.kube.ingress_ca = late
    assert watcher.run()

    def never():
        raise ClusterError("GET x: connection refused")

    watcher.kube.ingress_ca = never
    with pytest.raises(InstallFailed, match=r"openshift-config-managed namespace: GET x: connection refused"):
        watcher.run()


@pytest.mark.parametrize(
    "spoil",
    ["", "clusters: [{cluster: {}}]", "[", "clusters: 1", "clusters: [{cluster: {certificate-authority-data: '%%'}}]"],
)
def test_a_spoiled_kubeconfig_is_an_error_not_a_crash(kubeconfig, spoil):
    watcher, __, __ = watch(kubeconfig, 0)
    kubeconfig.write_text(spoil)
    with pytest.raises(InstallFailed, match="kubeconfig"):
        watcher.run()


def rendered(fips):
    return lambda pool: {"metadata": {"name": f"rendered-{pool}-1"}, "spec": {"fips": fips or pool == "worker"}}


def test_fips_is_verified(kubeconfig):
    watcher, reported, __ = watch(kubeconfig, 0, fips=True)
    watcher.kube.rendered_config = rendered(True)
    assert watcher.run()
    assert "Verified FIPS mode is enabled on cluster" in reported
    watcher.kube.rendered_config = rendered(False)
    text = (
        "FIPS was enabled in install-config but rendered MachineConfig rendered-master-1 for master pool has FIPS=false"
    )
    with pytest.raises(InstallFailed, match=text) as failed:
        watcher.run()
    assert failed.value.exit_code == 6


@pytest.mark.parametrize("seconds, text", [(2400, "40m0s"), (3600, "1h0m0s"), (5405, "1h30m5s"), (7, "7s")])
def test_go_duration(seconds, text):
    assert go_duration(seconds) == text


class KubeWithController(Kube):
    """Its controller's container ends whenever it is started, until it completes after `recovers_after` seconds."""

    def __init__(self, kubeconfig, clock, recovers_after):
        super().__init__(kubeconfig, clock, ready_after=60)
        self.recovers = clock.now + recovers_after

    def controller_job(self):
        return {"status": {"succeeded": 1} if self.clock.now >= self.recovers else {"active": 1}}

    def pods(self, namespace=None):
        if self.clock.now >= self.recovers:
            return []
        status = {"name": "c", "ready": False, "restartCount": 5, "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                  "lastState": {"terminated": {"exitCode": 1, "message": "required key CLUSTER_ID missing value"}}}  # fmt: skip
        metadata = {"name": "assisted-installer-controller-7", "namespace": namespace}
        return [
            {
                "metadata": metadata,
                "spec": {"nodeName": "master-0"},
                "status": {"phase": "Running", "containerStatuses": [status]},
            }
        ]


def test_a_controller_that_never_ran_is_not_a_success(kubeconfig):
    """Upstream's wait-for reports that the cluster is installed; the lab's wait names the controller as the first cause."""
    clock, reported = Clock(), []
    kube = KubeWithController(kubeconfig, clock, recovers_after=10**9)
    assert InstallWatcher(kube, lambda level, text: None, clock).run()
    plan = {"nodes": [], "rendezvous": {"node": "", "ip": ""}, "cluster": {"name": "one"}}
    watch = InstallWatcher(kube, lambda level, text: reported.append(text), clock, stall=900, controller=True,
                           diagnose=lambda seen: Diagnosis(causes(Facts(plan=plan, nodes=[], pods=seen.pods))))  # fmt: skip
    begin = clock.now
    with pytest.raises(InstallFailed) as failure:
        watch.run()
    reason = "pod assisted-installer/assisted-installer-controller-7: CrashLoopBackOff: exit code 1: required key CLUSTER_ID missing value"
    assert str(failure.value) == f"assisted-installer-controller did not complete: {reason}"
    assert clock.now - begin < 900
    assert [text for text in reported if text.startswith("Waiting for assisted-installer-controller")] == [
        f"Waiting for assisted-installer-controller to complete: {reason}"
    ]


def test_a_controller_that_recovers(kubeconfig):
    clock = Clock()
    kube = KubeWithController(kubeconfig, clock, recovers_after=300)
    assert InstallWatcher(kube, lambda level, text: None, clock, stall=900, controller=True).run()
    assert clock.now >= kube.recovers
