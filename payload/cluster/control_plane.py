"""The process of one control-plane member: API, store, machine-config server, and while it leads, the controllers.

On the bootstrap host it also starts the cluster and hands it over to the masters.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import logging
import signal
import socket
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path

from aiohttp import web

from ...plugins.module_utils.documents import load_json, load_yaml_all, read_file
from ...plugins.module_utils.ignition.config import Config
from ...plugins.module_utils.ignition.resources import data_file
from ...plugins.module_utils.vocabulary import Port
from . import assisted, fencing, machine_config_server, replication
from . import facts as cluster_facts
from . import nodes as node_list
from .api.access import Access, User
from .api.server import Api
from .configs import merge
from .controllers import Controllers
from .ignition import CA_BUNDLE
from .keepalived import Instance, Keepalived
from .leadership import Election, Leadership, SingleMember, VirtualAddress
from .objects import store_texts
from .pki import Pair, Signer
from .resources import MACHINE_CONFIGS, POOLS, Registry
from .settings import seconds
from .store import Object, Store
from .units import STORE

API_PORT = Port.API
STEP_SECONDS = 1.0
log = logging.getLogger("control-plane")


class ControlPlane:
    """One control-plane member: API, store, machine-config server, and the controllers while it leads.

    options: of `parser`. Paths are options, so that several members can run on one machine. Raises OSError and
    ValueError for a configuration that cannot be read.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        etc = options.config_dir
        self.facts = cluster_facts.load(etc / "cluster.json")
        self.pki = etc / "pki"
        self.ca = etc / Path(CA_BUNDLE).name
        self.store = Store(options.data_dir)
        self.registry = Registry()
        self.learn()
        tokens = load_json(read_file(etc / "tokens.json"), name=str(etc / "tokens.json"))
        access = Access(
            {token: User(user["name"], (*user["groups"], "system:authenticated")) for token, user in tokens.items()}
        )
        vips, __ = cluster_facts.virtual_addresses(self.facts)
        self.leadership: Leadership
        if vips:
            self.leadership = VirtualAddress(vips, options.port)
        elif cluster_facts.single_node(self.facts):
            self.leadership = SingleMember()
        else:
            members = cluster_facts.count(self.facts, "master") + cluster_facts.count(self.facts, "arbiter")
            self.leadership = Election(members, leads=options.bootstrap)
        self.member = replication.Member(
            self.store, self.leadership, access, self._client_tls(), self.peers, options.port, self.lead, self.is_alone
        )
        self.mcs = machine_config_server.MachineConfigServer(self.store, lambda: self.member.ready)
        self.api = Api(
            self.store,
            self.registry,
            access,
            cluster_facts.kubernetes_version(self.facts["version"]),
            writable=lambda: self.member.writable,
            ready=lambda: self.member.ready,
            forward=self.member.forward,
            replicate=self.member.replicated,
            log_of=self.pod_log,
        )
        self.keepalived: Keepalived | None = None

    def peers(self) -> Iterable[str]:
        """Return possible addresses of members, each once.

        They are those of the control-plane nodes, and of hosts as they were discovered: a member may answer before it
        is a node.
        """
        found = [
            a
            for n in self.store.items("nodes")
            if not node_list.has_role(n, "worker") or node_list.has_role(n, "master")
            for a in node_list.addresses(n)
        ]
        found += [a for h in self.facts["hosts"] if h["role"] != "worker" for a in h["addresses"]]
        return dict.fromkeys(found)

    def is_alone(self) -> bool:
        """Return whether this member may continue without the others.

        Of two that fence each other, once the other one is off; without fencing always.
        """
        return not self.facts["fencing"] or fencing.may_be_alone(self.options.run_dir, self.options.config_dir)

    def pod_log(self, pod: Object) -> str | None:
        """Return the log of a pod that is part of this process: the machine-config server."""
        mine = pod["metadata"]["name"] == f"machine-config-server-{socket.gethostname()}"
        return "\n".join(self.mcs.lines) if mine else None

    def learn(self) -> None:
        """Serve every kind of the objects in the store."""
        for items in list(self.store.objects.values()):
            for obj in items.values():
                self.registry.for_object(obj)
                if obj["kind"] == "CustomResourceDefinition":
                    self.registry.add_definition(obj)

    async def lead(self) -> None:
        """Run the controllers."""
        self.learn()
        signer = Signer(
            Pair((self.pki / "kubelet-signer.crt").read_text(), (self.pki / "kubelet-signer.key").read_text())
        )
        controllers = Controllers(
            self.store, self.facts, signer, seconds("OPERATOR_SETTLE_SECONDS", 2), bootstrap=self.options.bootstrap
        )
        while True:
            try:
                controllers.step()
            except Exception:
                # One object of a user must not stop the cluster; the next step retries.
                log.exception("a controller failed")
            await asyncio.sleep(STEP_SECONDS)

    async def run(self) -> None:
        """Serve until SIGTERM; on the bootstrap host until the cluster is handed over.

        The first task that fails ends the member, and its error is raised. At the end the store is on disk, and
        keepalived prefers other members.
        """
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        self.store.listeners.append(lambda event: self.learn() if event is None else None)
        if self.options.bootstrap:
            self.seed()
        runners = [
            await self._serve(self._api_app(), self.options.port, self._server_tls("server", clients=True)),
            await self._serve(
                self.mcs.app(), self.options.mcs_port, self._server_tls("machine-config-server", clients=False)
            ),
        ]
        tasks = [asyncio.ensure_future(self.member.run()), asyncio.ensure_future(self._write_weight())]
        if self.options.bootstrap:
            if vips := cluster_facts.virtual_addresses(self.facts)[0]:
                self.keepalived = Keepalived(
                    self.facts["name"],
                    self.facts["machine_networks"],
                    self.options.run_dir / "keepalived",
                    [Instance("api", vips, self.options.run_dir / "api", priority=70)],
                )
                self.keepalived.start()
            tasks.append(asyncio.ensure_future(self.bootstrap()))
        waiting = asyncio.ensure_future(stop.wait())
        done, __ = await asyncio.wait({waiting, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        if self.keepalived:
            await asyncio.to_thread(self.keepalived.stop)
        for task in (waiting, *tasks):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self.weight_file.write_text("-254\n")
        for task in done - {waiting}:
            task.result()
        for runner in runners:
            await runner.cleanup()
        self.store.close()

    @property
    def weight_file(self) -> Path:
        """Return the file that keepalived tracks."""
        path: Path = self.options.run_dir / "api"
        return path

    async def _write_weight(self) -> None:
        self.options.run_dir.mkdir(parents=True, exist_ok=True)
        written = None
        while True:
            if self.member.weight != written:
                written = self.member.weight
                self.weight_file.write_text(f"{written}\n")
            await asyncio.sleep(STEP_SECONDS)

    # The bootstrap host

    def seed(self) -> None:
        """Initialize the cluster with its rendered objects, unless it is initialized already."""
        if self.store.uid:
            return
        self.store.begin_epoch(1)
        first = self.options.bootstrap_dir / "manifests.json"
        for obj in [*load_json(read_file(first), name=str(first)), *self._manifests()]:
            resource = self.registry.for_object(obj)
            if resource.namespaced:
                obj["metadata"].setdefault("namespace", "default")
                self._ensure_namespace(obj["metadata"]["namespace"])
            if resource.key == "secrets":
                store_texts(obj)
            self.store.put(resource.key, obj)
            if obj["kind"] == "CustomResourceDefinition":
                self.registry.add_definition(obj)
        log.info("the cluster starts with %d objects", sum(map(len, self.store.objects.values())))

    def _manifests(self) -> Iterator[Object]:
        """Yield what the installer wrote for its controller; its pod and that pod's rights are simulated."""
        for path in sorted((self.options.bootstrap_dir / "manifests").glob(f"{assisted.NAME}-*.y*ml")):
            for obj in load_yaml_all(read_file(path), name=str(path)):
                if isinstance(obj, dict) and obj.get("kind") in ("ConfigMap", "Secret", "ServiceAccount"):
                    yield obj

    def _ensure_namespace(self, name: str) -> None:
        if not self.store.find("namespaces", "", name):
            self.store.create(
                "namespaces",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}, "status": {"phase": "Active"}},
            )

    async def bootstrap(self) -> None:
        """Hand the cluster over: to the disk of a single node, or to the masters that have joined.

        Then the file `.bootkube.done` exists, which the installer waits for.
        """
        while not self.member.leader:
            await asyncio.sleep(STEP_SECONDS)
        if cluster_facts.single_node(self.facts):
            self.write_single_node()
        else:
            await self.hand_over()
        (self.options.bootstrap_dir / ".bootkube.done").touch()
        log.info("bootkube is done")

    def write_single_node(self) -> None:
        """Write the disk config of the single node, which includes the store."""
        base = load_json(
            read_file(self.options.bootstrap_dir / "master-base.ign"),
            name=str(self.options.bootstrap_dir / "master-base.ign"),
        )
        snapshot = json.dumps(self.store.snapshot(), separators=(",", ":")).encode()
        machine_config = self.store.get(MACHINE_CONFIGS, "", self._rendered("master"))
        annotations = machine_config_server.served_ignition(machine_config)["storage"]["files"][-1]
        added = Config()
        added.add(files=[data_file(f"{STORE}/snapshot.json", snapshot, 0o600, compress=True), annotations])
        path = self.options.bootstrap_dir / "master.ign"
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(merge(base, added.to_dict())))
        temporary.chmod(0o600)
        temporary.rename(path)

    def _rendered(self, role: str) -> str:
        pool = self.store.get(POOLS, "", role)
        name: str = pool["spec"]["configuration"]["name"]
        return name

    async def hand_over(self) -> None:
        """Wait for the masters, release the API's address, and report when one of them leads.

        It waits without limit until all masters but this host, two at most, are ready and follow the store.
        """
        wanted = max(1, min(cluster_facts.count(self.facts, "master") - 1, 2))
        reported = None
        while True:
            joined = len(node_list.ready(self.store.items("nodes"), "master"))
            state = (joined, len(self.member.followers))
            if min(state) >= wanted:
                break
            if state != reported:
                log.info("waiting for %d masters: %d are ready, %d members follow the store", wanted, *state)
                reported = state
            await asyncio.sleep(STEP_SECONDS)
        if self.keepalived:
            await asyncio.to_thread(self.keepalived.stop)
            self.keepalived = None
        if isinstance(self.leadership, Election):
            self.leadership.resign()
        while (
            self.member.leader
            or not self.member.in_sync
            or not self.store.find("configmaps", "kube-system", "bootstrap")
        ):
            await asyncio.sleep(STEP_SECONDS)
        log.info("a master leads now: epoch %d, revision %d", self.store.epoch, self.store.revision)

    # Serving

    def _api_app(self) -> web.Application:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes(self.member.routes())
        app.router.add_route("*", "/{path:.*}", self.api.handle)
        return app

    async def _serve(self, app: web.Application, port: int, tls: ssl.SSLContext) -> web.AppRunner:
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, self.options.bind, port, ssl_context=tls, shutdown_timeout=1).start()
        return runner

    def _server_tls(self, name: str, clients: bool) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pki / f"{name}.crt", self.pki / f"{name}.key")
        if clients:
            context.load_verify_locations(self.pki / "client-ca.crt")
            context.verify_mode = ssl.CERT_OPTIONAL
        return context

    def _client_tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.pki / "member.crt", self.pki / "member.key")
        return context


def parser() -> argparse.ArgumentParser:
    """Return the options of `hyperkube kube-apiserver`."""
    options = argparse.ArgumentParser(
        prog="hyperkube kube-apiserver", description="control plane member: API, store, machine-config server"
    )
    options.add_argument("--bootstrap", action="store_true", help="initialize the cluster and hand it over")
    options.add_argument("--config-dir", type=Path, default=Path("/etc/kubernetes"))
    options.add_argument("--data-dir", type=Path)
    options.add_argument("--run-dir", type=Path, default=Path("/run/agentlab"))
    options.add_argument("--bootstrap-dir", type=Path, default=Path("/opt/openshift"))
    options.add_argument("--bind", default=None, help="address to listen on; default all")
    options.add_argument("--port", type=int, default=API_PORT)
    options.add_argument("--mcs-port", type=int, default=machine_config_server.PORT)
    return options


def main(argv: list[str] | None = None) -> int:
    """Run one member."""
    options = parser().parse_args(argv)
    if options.data_dir is None:
        options.data_dir = options.bootstrap_dir / "etcd" if options.bootstrap else Path(STORE)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    if options.bootstrap:
        # The installer reads here which hosts have fetched their config.
        machine_config_server.log.addHandler(logging.FileHandler(options.bootstrap_dir / "machine-config-server.log"))
    asyncio.run(ControlPlane(options).run())
    return 0
