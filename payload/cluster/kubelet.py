"""Simulator of the kubelet: joins the node, renews its lease, runs the controller's pods, and manages virtual addresses.

Joining is the real protocol: a bootstrap token, a request for a client certificate, the Node object, a request for a serving certificate.
"""

from __future__ import annotations

import argparse
import logging
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ...plugins.module_utils.addresses import Version, version
from ...plugins.module_utils.documents import load_json, read_file
from ...plugins.module_utils.vocabulary import UNINITIALIZED, Port
from . import cloud, kubelet_server, node_certificate
from . import facts as cluster_facts
from .conditions import condition, merge_conditions
from .keepalived import Instance, Keepalived, interface_for, interface_of_route
from .kube import STRATEGIC, KubeClient, KubeError, Object
from .machine import Machine
from .mirror_pods import MIRROR, MirrorPods
from .pki import Signer
from .pods import RETRY_SECONDS, ContainerPod, NodeContext, Pod, RouterPod, retry, write
from .settings import seconds
from .store import timestamp

PORT = Port.KUBELET
LEASE_SECONDS = 10.0
STATUS_SECONDS = 60.0
# With the cgroup namespace: podman creates the cgroups of its containers by their names in it.
NSENTER = "nsenter -t 1 -m -u -i -n -p -C --"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
NODES = "/api/v1/nodes"
ANNOTATIONS = "/etc/machine-config-daemon/node-annotations.json"
ROLE = "node-role.kubernetes.io/"
log = logging.getLogger("kubelet")


def one_per_family(addresses: Sequence[str]) -> list[str]:
    """Return the first address of each family, the family of the very first one leading, in the order of kubelet's `--node-ip`."""
    found: dict[Version, str] = {}
    for address in addresses:
        found.setdefault(version(address), address)
    return list(found.values())


class Kubelet:
    """One node. `host` is the mount point of the host's root file system, `enter` the command prefix to run on the host."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.etc: Path = options.config_dir
        self.host: Path = options.host_root
        self.machine = Machine(self.host)
        self.facts = cluster_facts.load(self.etc / "cluster.json")
        self.name = options.name or self._host_name()
        self.role = self._role()
        self.addresses = options.node_ip or self._addresses()
        self.settle = seconds("OPERATOR_SETTLE_SECONDS", 2)
        self.client = KubeClient.from_kubeconfig(self.etc / "kubeconfig")
        self.pods: dict[str, Pod] = {}
        self.conditions: list[Object] = []
        self.keepalived: Keepalived | None = None
        self.initialized = True

    def run(self) -> None:
        """Join the cluster and run until stopped."""
        self._start_keepalived()
        self.client = self._join()
        retry("registering the node", self._register)
        threading.Thread(target=self._serve, daemon=True).start()
        threading.Thread(target=self._keep_pods, daemon=True).start()
        mirrors = None if self.role == "worker" else MirrorPods(self._context(), self.name)
        became_ready, posted = time.monotonic() + self.settle, 0.0
        while True:
            is_ready = self.initialized and time.monotonic() >= became_ready
            due = (
                not (posted and self.initialized)
                or time.monotonic() - posted > STATUS_SECONDS
                or is_ready != self._reported_ready()
            )
            try:
                self._renew_lease()
                if due:
                    self._post_status(is_ready)
                    posted = time.monotonic()
                if mirrors:
                    mirrors.keep(look=due)
            except KubeError as error:
                log.info("the API does not answer: %s", error)
                if error.code == 404:
                    retry("registering the node", self._register)
            if self.keepalived:
                self.keepalived.keep()
            least = 0.1 if self.initialized else 1.0
            time.sleep(LEASE_SECONDS if is_ready else min(LEASE_SECONDS, max(least, became_ready - time.monotonic())))

    def stop(self) -> None:
        """Release addresses and stop pods."""
        if self.keepalived:
            self.keepalived.stop()
        for pod in list(self.pods.values()):
            pod.stop()

    # Identity

    def _host_name(self) -> str:
        # As on RHCOS, a node waits for its hostname: DHCP or the host's configuration may set it late.
        while True:
            name = socket.gethostname()
            if not name.startswith("localhost"):
                return name
            time.sleep(RETRY_SECONDS)

    def _role(self) -> str:
        pointer = load_json(read_file(self.etc / "machine-config.json"), name=str(self.etc / "machine-config.json"))
        role: str = pointer["url"].rsplit("/", 1)[1]
        return role

    def _addresses(self) -> list[str]:
        virtual = {*self.facts["api_vips"], *self.facts["ingress_vips"]}
        while True:
            try:
                __, found = self._interface()
            except LookupError as error:
                log.info("waiting for an address: %s", error)
            else:
                own = [address for address in found if address not in virtual]
                if own:
                    return one_per_family(own)
            time.sleep(RETRY_SECONDS)

    def _interface(self) -> tuple[str, list[str]]:
        """Return the interface with the node's addresses, and these, of the cluster's first family first.

        A worker of a cluster without virtual addresses may be outside of the machine networks. Raises LookupError until there
        is one.
        """
        try:
            return interface_for(self.facts["machine_networks"])
        except LookupError:
            if self.facts["api_vips"]:
                raise
        name, found = interface_of_route()
        first = version(self.facts["service_networks"][0])
        return name, sorted(found, key=lambda address: version(address) != first)

    # Joining

    def _join(self) -> KubeClient:
        """Return a client with the node's own certificate, requesting one if there is none yet."""
        folder: Path = self.options.data_dir / "pki"
        certificate, key = folder / "kubelet-client-current.crt", folder / "kubelet-client-current.key"
        if not certificate.exists():
            node_certificate.obtain(
                self.client, self.name, certificate, key, signer="kubernetes.io/kube-apiserver-client-kubelet"
            )
        return self.client.with_certificate(certificate, key)

    def _register(self) -> None:
        node = self.node()
        if self.client.find(f"{NODES}/{self.name}") is None:
            self.client.create(NODES, {**node, "status": self.status(False)})
            log.info("node %s is registered", self.name)
        else:
            self.client.patch(f"{NODES}/{self.name}", {"metadata": node["metadata"]})

    def node(self) -> Object:
        """Return the Node object without its status."""
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
            "node.openshift.io/os_id": "rhcos",
            f"{ROLE}{self.role}": "",
        }
        taints = []
        if self.role == "master":
            labels[f"{ROLE}control-plane"] = ""
            if self.facts["schedulable_masters"]:
                labels[f"{ROLE}worker"] = ""
            else:
                taints = [{"key": f"{ROLE}master", "effect": "NoSchedule"}]
        elif self.role == "arbiter":
            taints = [{"key": f"{ROLE}arbiter", "effect": "NoSchedule"}]
        if cloud.waited_for(self.facts):
            taints.append({"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"})
        try:
            annotations = load_json(self.machine.read(ANNOTATIONS), name=ANNOTATIONS)
        except FileNotFoundError:
            annotations = {}
        metadata = {"name": self.name, "labels": labels, "annotations": annotations}
        return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints} if taints else {}}

    # Staying

    def _renew_lease(self) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
        spec = {"holderIdentity": self.name, "leaseDurationSeconds": 40, "renewTime": stamp}
        try:
            self.client.patch(f"{LEASES}/{self.name}", {"spec": spec})
        except KubeError as error:
            if error.code != 404:
                raise
            self.client.create(
                LEASES,
                {
                    "apiVersion": "coordination.k8s.io/v1",
                    "kind": "Lease",
                    "metadata": {"name": self.name},
                    "spec": spec,
                },
            )

    def _reported_ready(self) -> bool:
        return any(c["type"] == "Ready" and c["status"] == "True" for c in self.conditions)

    def _post_status(self, is_ready: bool) -> None:
        status = self.status(is_ready)
        # Without it addresses are merged by type, and two of the same type become one. The real kubelet does the same.
        status["addresses"].append({"$patch": "replace"})
        node = self.client.patch(f"{NODES}/{self.name}/status", {"status": status}, STRATEGIC)
        self.initialized = not cloud.is_tainted(node)
        if is_ready and self._reported_ready():
            log.debug("status posted")

    def status(self, is_ready: bool) -> Object:
        """Return the status of the Node."""
        network = (
            "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady "
            "message:Network plugin returns error: no CNI configuration file"
        )
        heartbeat = {"lastHeartbeatTime": timestamp()}
        fine = [
            condition(kind, False, f"KubeletHas{what}", f"kubelet has {text}")
            for kind, what, text in (
                ("MemoryPressure", "SufficientMemory", "sufficient memory available"),
                ("DiskPressure", "NoDiskPressure", "no disk pressure"),
                ("PIDPressure", "SufficientPID", "sufficient PID available"),
            )
        ]
        ready = (
            condition("Ready", True, "KubeletReady", "kubelet is posting ready status")
            if is_ready
            else condition("Ready", False, "KubeletNotReady", network)
        )
        self.conditions = merge_conditions(self.conditions, [{**entry, **heartbeat} for entry in (*fine, ready)])
        capacity = self.machine.capacity()
        return {
            "addresses": [
                *({"type": "InternalIP", "address": a} for a in self.addresses),
                {"type": "Hostname", "address": self.name},
            ],
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": self.conditions,
            "nodeInfo": self.machine.info(self.facts["version"]),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.options.port}},
        }

    # Virtual addresses

    def _start_keepalived(self) -> None:
        run: Path = self.options.run_dir
        instances = []
        api, ingress = cluster_facts.virtual_addresses(self.facts)
        if self.role == "master" and api:
            instances.append(Instance("api", api, run / "api"))
        if self.role != "arbiter" and ingress:
            (run / "ingress").unlink(missing_ok=True)
            instances.append(Instance("ingress", ingress, run / "ingress"))
        if instances:
            self.keepalived = Keepalived(
                self.facts["name"], self.facts["machine_networks"], run / "keepalived", instances
            )
            self.keepalived.start()

    # Kubelet's own API

    def _serve(self) -> None:
        folder: Path = self.options.data_dir / "pki"
        certificate, key = folder / "kubelet-server-current.crt", folder / "kubelet-server-current.key"
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if not certificate.exists():
            own = Signer.create(self.name).pair
            write(folder / "own.key", own.key)
            write(folder / "own.crt", own.certificate)
            tls.load_cert_chain(folder / "own.crt", folder / "own.key")
        kubelet_server.start(self.options.port, tls)
        if not certificate.exists():
            node_certificate.obtain(
                self.client.another_client(),
                self.name,
                certificate,
                key,
                signer="kubernetes.io/kubelet-serving",
                names=(self.name, *self.addresses),
            )
        tls.load_cert_chain(certificate, key)

    # Pods

    def _context(self) -> NodeContext:
        options = self.options
        return NodeContext(
            client=self.client.another_client(),
            facts=self.facts,
            address=self.addresses[0],
            enter=options.enter,
            data_dir=options.data_dir,
            run_dir=options.run_dir,
            router_ports=options.router_ports,
            etc=self.etc,
            host=self.host,
        )

    def _keep_pods(self) -> None:
        client = self.client.another_client()
        while True:
            try:
                for kind, pod in client.watch(f"/api/v1/pods?fieldSelector=spec.nodeName={self.name}", 300):
                    self._pod_event(kind, pod)
            except KubeError as error:
                log.debug("watch of pods: %s", error)
                time.sleep(RETRY_SECONDS)

    def _pod_event(self, kind: str, pod: Object) -> None:
        uid, annotations = pod["metadata"]["uid"], pod["metadata"].get("annotations") or {}
        if MIRROR in annotations or pod["status"].get("phase") in ("Succeeded", "Failed"):
            return
        if kind == "DELETED":
            gone = self.pods.pop(uid, None)
            if gone:
                gone.stop()
        elif uid not in self.pods:
            runner = RouterPod if pod["metadata"]["name"].startswith("router-default") else ContainerPod
            self.pods[uid] = runner(self._context(), pod)
            threading.Thread(target=self.pods[uid].run, daemon=True).start()
        else:
            self.pods[uid].update(pod)


def parser() -> argparse.ArgumentParser:
    """Return the options of `hyperkube kubelet`."""
    options = argparse.ArgumentParser(prog="hyperkube kubelet", description="joins this node to the cluster")
    options.add_argument("--config-dir", type=Path, default=Path("/etc/kubernetes"))
    options.add_argument("--data-dir", type=Path, default=Path("/var/lib/kubelet"))
    options.add_argument("--run-dir", type=Path, default=Path("/run/agentlab"))
    options.add_argument("--host-root", type=Path, default=Path("/proc/1/root"))
    options.add_argument("--enter", default=NSENTER, help="command prefix that runs on the host")
    options.add_argument("--name", default="", help="node name; default the host's")
    options.add_argument("--node-ip", action="append", help="the node's address; default those in the machine networks")
    options.add_argument("--port", type=int, default=PORT)
    options.add_argument(
        "--router-ports", type=lambda text: tuple(int(part) for part in text.split(",")), default=(443, 80)
    )
    return options


def main(argv: list[str] | None = None) -> int:
    """Run the kubelet until SIGTERM."""
    options = parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    kubelet = Kubelet(options)
    try:
        kubelet.run()
    finally:
        kubelet.stop()
    return 0
