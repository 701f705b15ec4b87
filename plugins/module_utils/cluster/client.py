"""Client of the OpenShift API for observers of an installation, and for nodes that join; the official client reads the kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from .. import deadline
from .._deps import optional
from ..documents import DocumentError, load_json, load_yaml, read_file, read_reply
from ..errors import ClusterError
from ..shapes import Shape, ShapeError, check
from ..state.recording import Tape, no_tape
from ..vocabulary import MACHINE_CONFIGURATION
from . import shapes
from .pods import CONTROLLER, NAMESPACE

kubernetes = optional("kubernetes")
requests = optional("requests")

CONFIG = "/apis/config.openshift.io/v1"
MACHINE_CONFIG = f"/apis/{MACHINE_CONFIGURATION}/v1"


class ClusterClient:
    """Client of the API of a kubeconfig. Each call is one request, bounded by `timeout` seconds.

    tape: gets each answer of a GET. Raises `ClusterError` for a kubeconfig that cannot be used. Proxies of the environment are ignored, redirections are
    refused. All methods but `find` and `live` raise `ClusterError` when the API does not answer or refuses, or when a
    field that is used has another type than in the OpenShift API.
    """

    def __init__(self, kubeconfig: Path, timeout: float = 15, tape: Tape = no_tape) -> None:
        self.kubeconfig, self.tape = kubeconfig, tape
        self.timeout = timeout
        settings = kubernetes.client.Configuration()
        try:
            load_yaml(read_file(kubeconfig), name=str(kubeconfig))  # before the client reads it without bounds
            kubernetes.config.load_kube_config(str(kubeconfig), client_configuration=settings)
        except (kubernetes.config.ConfigException, OSError, ValueError, KeyError) as error:
            raise ClusterError(f"{kubeconfig}: not a usable kubeconfig: {error}") from error
        self.server = settings.host
        self.session = requests.Session()
        self.session.trust_env = False  # never use the caller's proxy for a lab's addresses
        # None would be taken for False: without an authority, those of this host count.
        self.session.verify = (settings.ssl_ca_cert or True) if settings.verify_ssl else False
        if settings.cert_file:
            self.session.cert = (settings.cert_file, settings.key_file)
        # Newer clients use a different name for the token.
        token = settings.api_key.get("BearerToken") or settings.api_key.get("authorization")
        if token:
            self.session.headers["Authorization"] = token

    def get(self, path: str, shape: Shape = dict) -> dict[str, Any]:
        """The decoded object at `path`, ClusterError otherwise.

        path: of the API, such as `/api/v1/nodes`; shape: the fields that are used. Also raises `ClusterError` for an
        object that does not exist (404).
        """
        found = self.find(path, shape)
        if found is None:
            raise ClusterError(f"GET {self.server}{path}: not found")
        return found

    def find(self, path: str, shape: Shape = dict) -> dict[str, Any] | None:
        """As `get`, but None when there is no such object.

        Raises `ClusterError` for every other error, also of the network, with the URL.
        """
        url, status = self.server + path, 0

        def ask() -> bytes | None:
            nonlocal status
            with self.session.get(url, timeout=self.timeout, stream=True, allow_redirects=False) as answer:
                status = answer.status_code
                if answer.status_code == 404:
                    return None
                answer.raise_for_status()
                if answer.status_code >= 300:
                    raise ClusterError(f"GET {url}: HTTP {answer.status_code} {answer.reason}, which is not followed")
                return read_reply(answer)

        try:
            body = deadline.call_within(deadline.REQUEST_SECONDS, ask)
            if body is None:
                self.tape("openshift", path, status, "not found")
                return None
            found: dict[str, Any] = load_json(body, name="the answer")
            check(found, shape, "the answer")
            self.tape("openshift", path, status, found)
        except (requests.RequestException, OSError, DocumentError, ShapeError) as error:
            self.tape("openshift", path, status if status >= 300 else 0, "no answer")
            raise ClusterError(f"GET {url}: {error}") from error
        return found

    def send(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create or change an object, and return it as it is then.

        method: POST, or PATCH with a JSON merge patch. Raises `ClusterError`.
        """
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            with self.session.request(
                method, self.server + path, json=body, headers={"Content-Type": kind}, timeout=self.timeout, stream=True
            ) as answer:
                answer.raise_for_status()
                found: dict[str, Any] = load_json(read_reply(answer), name="the answer")
                return found
        except (requests.RequestException, OSError, DocumentError) as error:
            raise ClusterError(f"{method} {self.server}{path}: {error}") from error

    def live(self) -> bool:
        """Return whether the API answers at all.

        That is a successful GET of `/version`; refusals, time limits and errors of the server are all False.
        """
        try:
            self.get("/version")
        except ClusterError:
            return False
        return True

    def bootstrap_status(self) -> str | None:
        """`status` of ConfigMap kube-system/bootstrap; "complete" when the bootstrap is.

        cluster-bootstrap writes it. None when there is no ConfigMap, or no status in it.
        """
        found = self.find("/api/v1/namespaces/kube-system/configmaps/bootstrap", shapes.CONFIG_MAP)
        return ((found or {}).get("data") or {}).get("status")

    def nodes(self) -> list[dict[str, Any]]:
        return self.get("/api/v1/nodes", shapes.NODES)["items"]

    def certificate_requests(self) -> list[dict[str, Any]]:
        path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        return self.get(path, shapes.CERTIFICATE_REQUESTS)["items"]

    def approve(self, name: str, by: str = "agentlab add-nodes") -> None:
        """Approve a certificate request; by: who does, for the reader of the request. Raises `ClusterError`."""
        approved = {
            "type": "Approved",
            "status": "True",
            "reason": "AgentlabApprove",
            "message": f"This CSR was approved by {by}.",
        }
        path = f"/apis/certificates.k8s.io/v1/certificatesigningrequests/{name}/approval"
        self.send("PATCH", path, {"status": {"conditions": [approved]}})

    def cluster_version(self) -> dict[str, Any]:
        return self.get(f"{CONFIG}/clusterversions/version", shapes.CLUSTER_VERSION)

    def infrastructure(self) -> dict[str, Any]:
        return self.get(f"{CONFIG}/infrastructures/cluster", shapes.INFRASTRUCTURE)

    def network(self) -> dict[str, Any]:
        return self.get(f"{CONFIG}/networks/cluster", shapes.NETWORK)

    def bare_metal_hosts(self) -> list[dict[str, Any]]:
        path = "/apis/metal3.io/v1alpha1/namespaces/openshift-machine-api/baremetalhosts"
        return self.get(path, shapes.BARE_METAL_HOSTS)["items"]

    def cluster_operators(self) -> list[dict[str, Any]]:
        return self.get(f"{CONFIG}/clusteroperators", shapes.CLUSTER_OPERATORS)["items"]

    def pods(self, namespace: str | None = None) -> list[dict[str, Any]]:
        """Pods of a namespace, or all.

        namespace: its name, None for all namespaces. The items of the API, each with metadata and status.
        """
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        return self.get(path, shapes.PODS)["items"]

    def controller_job(self) -> dict[str, Any] | None:
        """The Job of the assisted-installer-controller, None when there is none."""
        return self.find(f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{CONTROLLER}", shapes.JOB)

    def ingress_ca(self) -> str | None:
        """CA bundle of the default router, PEM; None when its ConfigMap does not exist.

        It is `ca-bundle.crt` of ConfigMap openshift-config-managed/default-ingress-cert; empty when the ConfigMap lacks
        it.
        """
        path = "/api/v1/namespaces/openshift-config-managed/configmaps/default-ingress-cert"
        found = self.find(path, shapes.CONFIG_MAP)
        return None if found is None else str((found.get("data") or {}).get("ca-bundle.crt") or "")

    def console_route(self) -> dict[str, Any] | None:
        """The console's route; None when there is none."""
        path = "/apis/route.openshift.io/v1/namespaces/openshift-console/routes/console"
        return self.find(path, shapes.ROUTE)

    def rendered_config(self, pool: str) -> dict[str, Any]:
        """The MachineConfig that the nodes of a MachineConfigPool get.

        pool: its name, such as `master`. The configuration that nodes have is preferred to the one that they are to
        get. Raises `ClusterError`, also for a pool without any.
        """
        found = self.get(f"{MACHINE_CONFIG}/machineconfigpools/{pool}", shapes.POOL)
        names = [((found.get(part) or {}).get("configuration") or {}).get("name") for part in ("status", "spec")]
        name = names[0] or names[1]
        if not name:
            raise ClusterError(f"MachineConfigPool {pool} has no configuration")
        return self.get(f"{MACHINE_CONFIG}/machineconfigs/{quote(name, safe='')}", shapes.MACHINE_CONFIG)


def conditions(thing: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Conditions of an object's status, by type.

    thing: an object of the API. Each condition has `type`, `status` ("True", "False" or "Unknown"), `reason` and
    `message`.
    """
    return {c["type"]: c for c in (thing.get("status") or {}).get("conditions") or []}


def admitted_url(route: dict[str, Any]) -> str | None:
    """Return the URL of a route on the first router that admitted it; None while none has.

    route: an object of route.openshift.io. The scheme is https if the route has TLS; path and port are left out.
    """
    scheme = "http" if (route.get("spec") or {}).get("tls") is None else "https"
    for ingress in (route.get("status") or {}).get("ingress") or []:
        if any(c.get("type") == "Admitted" and c.get("status") == "True" for c in ingress.get("conditions") or []):
            return f"{scheme}://{ingress.get('host', '')}"
    return None


def is_false(thing: dict[str, Any], kind: str) -> bool:
    """Return whether condition `kind` of an object is False; a missing one is not.

    kind: the condition's type, such as `Available`. A condition that is Unknown is not False either.
    """
    return conditions(thing).get(kind, {}).get("status") == "False"


def is_true(thing: dict[str, Any], kind: str) -> bool:
    """Return whether condition `kind` of an object is True.

    kind: the condition's type, such as `Ready`. A missing condition, or one that is Unknown, is not True.
    """
    return conditions(thing).get(kind, {}).get("status") == "True"
