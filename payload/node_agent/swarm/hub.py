"""kube-api mode: the clusters are custom resources on a hub cluster, as conversations with its API.

The service on the hub does the rest: it creates an Agent for every host that registers, and starts an installation
when the hosts that AgentClusterInstall requires are approved. An agent gets its configuration as a real host does, from
the unit `agent.service` in the discovery Ignition that InfraEnv's status names.
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ....plugins.module_utils._deps import optional
from ....plugins.module_utils.documents import DocumentError, load_json, load_yaml, load_yaml_all, read_file
from ....plugins.module_utils.vocabulary import Status
from ..protocol import Conversation, Request, Response, Wait
from .hardware import Cluster, existing_cluster
from .output import problem
from .settings import Settings, SwarmError

yaml = optional("yaml", "PyYAML")

Object = dict[str, Any]
# Kind -> where it is served. Groups and versions are those of hive and the assisted service.
PLACES = {
    "Namespace": "/api/v1/namespaces",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "ClusterImageSet": "/apis/hive.openshift.io/v1/clusterimagesets",
    "ClusterDeployment": "/apis/hive.openshift.io/v1/namespaces/{}/clusterdeployments",
    "AgentClusterInstall": "/apis/extensions.hive.openshift.io/v1beta1/namespaces/{}/agentclusterinstalls",
    "InfraEnv": "/apis/agent-install.openshift.io/v1beta1/namespaces/{}/infraenvs",
    "NMStateConfig": "/apis/agent-install.openshift.io/v1beta1/namespaces/{}/nmstateconfigs",
    "Agent": "/apis/agent-install.openshift.io/v1beta1/namespaces/{}/agents",
}
INFRA_ENVS = "/apis/agent-install.openshift.io/v1beta1/infraenvs"
OF_INFRA_ENV = "infraenvs.agent-install.openshift.io"
POLL_SECONDS = 2.0


@dataclass(slots=True)
class Hub:
    """The API of a hub, and the credentials for it.

    server: its URL; headers: with the token, if there is one; tls: context with CA and client certificate, False where
    the certificate is not checked.
    """

    server: str
    headers: dict[str, str] = field(repr=False)
    tls: ssl.SSLContext | bool

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Hub:
        """Return the hub of the current context of a kubeconfig.

        SwarmError names the file and what is wrong with it: it cannot be read, a field is missing, a certificate is
        invalid.
        """
        try:
            config = load_yaml(read_file(path), name=str(path))
            context = next(
                entry["context"] for entry in config["contexts"] if entry["name"] == config["current-context"]
            )
            cluster = next(entry["cluster"] for entry in config["clusters"] if entry["name"] == context["cluster"])
            user = next(entry["user"] for entry in config["users"] if entry["name"] == context["user"])
            tls = _tls(cluster, user)
            token = user.get("token", "")
            if "client-certificate-data" in user:
                raise ValueError("client-certificate-data is not supported: use files or a token")
            return cls(cluster["server"].rstrip("/"), {"Authorization": f"Bearer {token}"} if token else {}, tls)
        except StopIteration:
            raise SwarmError(
                f"--kubeconfig {path}: current-context does not name an existing context, cluster and user"
            ) from None
        except DocumentError as error:
            raise SwarmError(f"--kubeconfig {path}: line {error.line}: {error.problem}") from None
        except OSError as error:
            raise SwarmError(f"--kubeconfig {path}: {problem(error)}") from None
        except SwarmError as error:
            raise SwarmError(f"--kubeconfig {path}: {error}") from None
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise SwarmError(f"--kubeconfig {path}: {type(error).__name__}: {error}") from None


def _tls(cluster: Object, user: Object) -> ssl.SSLContext | bool:
    """Return how a kubeconfig's cluster is verified, False: not at all. SwarmError: a certificate's file cannot be read."""
    if cluster.get("insecure-skip-tls-verify"):
        return False
    authority, file = cluster.get("certificate-authority-data"), cluster.get("certificate-authority")
    what = f"certificate-authority {file}" if file else "certificate-authority-data"
    try:
        text = base64.b64decode(authority).decode() if authority else None
        tls = ssl.create_default_context(cafile=file, cadata=text)
        if "client-certificate" in user:
            what = f"client-certificate {user['client-certificate']}, client-key {user['client-key']}"
            tls.load_cert_chain(user["client-certificate"], user["client-key"])
    except OSError as error:
        raise SwarmError(f"{what}: {problem(error)}") from None
    return tls


def belongs(path: str) -> bool:
    """Return whether a request goes to the hub's API."""
    return path.startswith(("/api/v1/", "/apis/"))


def place(kind: str, namespace: str = "", name: str = "") -> str:
    return PLACES[kind].format(namespace) + (f"/{name}" if name else "")


def ask(name: str, method: str, path: str, body: Any = None) -> Conversation:
    """Send a request that must succeed; return its decoded response.

    name: of the request in statistics; path: below the hub's URL. Raises SwarmError for any status but 2xx.
    """
    response: Response = yield Request(name, method, path, body)
    if not response.ok:
        raise SwarmError(f"{method} {path}: {response.reason()}")
    return response.body


# Custom resources


def manifests(cluster: Cluster, settings: Settings, image_set: str) -> list[Object]:
    """Return the resources of one cluster, in order of creation.

    image_set: name of the ClusterImageSet. Each is merged with what `settings.template` has for its kind; NMStateConfig
    is only in the template.
    """
    single, name = cluster.masters == 1, cluster.name
    workers = cluster.size - cluster.masters - cluster.arbiters
    secret = base64.b64encode(settings.pull_secret.encode()).decode()
    install: Object = {
        "clusterDeploymentRef": {"name": name},
        "imageSetRef": {"name": image_set},
        "networking": {
            "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
            "serviceNetwork": ["172.30.0.0/16"],
            **({"machineNetwork": [{"cidr": str(cluster.network)}]} if single else {}),
        },
        "provisionRequirements": {
            "controlPlaneAgents": cluster.masters,
            **({"arbiterAgents": cluster.arbiters} if cluster.arbiters else {}),
            **({"workerAgents": workers} if workers else {}),
        },
        **({} if single else {"apiVIPs": [cluster.api_vip], "ingressVIPs": [cluster.ingress_vip]}),
    }
    deployment = {
        "baseDomain": settings.base_domain,
        "clusterName": name,
        "clusterInstallRef": {
            "group": "extensions.hive.openshift.io",
            "version": "v1beta1",
            "kind": "AgentClusterInstall",
            "name": name,
        },
        "platform": {"agentBareMetal": {"agentSelector": {"matchLabels": {"swarm": name}}}},
        "pullSecretRef": {"name": "pull-secret"},
    }
    specs: dict[str, Object] = {
        **({"NMStateConfig": {}} if "NMStateConfig" in settings.template else {}),
        "Secret": {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": secret}},
        "ClusterDeployment": {"spec": deployment},
        "AgentClusterInstall": {"spec": install},
        "InfraEnv": {
            "spec": {"clusterRef": {"name": name, "namespace": name}, "pullSecretRef": {"name": "pull-secret"}}
        },
    }
    made = [resource("Namespace", name)]
    made += [resource(kind, "pull-secret" if kind == "Secret" else name, name, **more) for kind, more in specs.items()]
    return [laid_over(entry, settings.template.get(entry["kind"], {})) for entry in made]


def resource(kind: str, name: str, namespace: str = "", **more: Any) -> Object:
    group = re.match(r"/apis?/((?:[\w.-]+/)?v\w+)/", PLACES[kind])
    assert group
    metadata = {
        "name": name,
        "labels": {"agentlab.io/swarm": "true"},
        **({"namespace": namespace} if namespace else {}),
    }
    return {"apiVersion": group[1], "kind": kind, "metadata": metadata, **more}


def laid_over(base: Object, over: Object) -> Object:
    """Return a resource with another one laid over it.

    `over` wins: mappings are merged, everything else is replaced. Neither argument is changed.
    """
    merged = deepcopy(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = laid_over(merged[key], value) if both else value
    return merged


def load_template(path: Path) -> dict[str, Object]:
    """Return kind -> what is merged into the swarm's resources of that kind.

    path: YAML with one document for each kind. SwarmError names file and document.
    """
    try:
        documents = [document for document in load_yaml_all(read_file(path), name=str(path)) if document]
    except OSError as error:
        raise SwarmError(f"--template {path}: {problem(error)}") from None
    except DocumentError as error:
        raise SwarmError(f"--template {path}: line {error.line}: {error.problem}") from None
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") not in PLACES:
            kind = document.get("kind") if isinstance(document, dict) else document
            raise SwarmError(f"--template {path}: kind {kind!r} must be one of {', '.join(PLACES)}")
    return {
        document["kind"]: {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
        for document in documents
    }


# Conversations


def register(cluster: Cluster, settings: Settings, image_set: str) -> Conversation:
    """Create a cluster's resources, and read the configuration of its agents from its InfraEnv.

    `cluster` gets the names of its resources, and is marked as created after the first of them. Raises SwarmError.
    """
    for entry in manifests(cluster, settings, image_set):
        yield from ask("set up", "POST", place(entry["kind"], entry["metadata"].get("namespace", "")), entry)
        cluster.created = True
    cluster.namespace = cluster.resource = cluster.infra_env = cluster.name
    return (yield from introduce(cluster, settings))


def introduce(cluster: Cluster, settings: Settings) -> Conversation:
    """Wait for the discovery Ignition of a cluster's InfraEnv; return the service's URL and the agent's image in it.

    SwarmError after `settings.stall` seconds, with the conditions of the InfraEnv.
    """
    path = place("InfraEnv", cluster.namespace, cluster.infra_env)
    waited = 0.0
    while not (url := ignition_url(found := (yield from ask("set up", "GET", path)))):
        if waited > settings.stall:
            raise SwarmError(
                f"InfraEnv {cluster.namespace}/{cluster.infra_env}: no discovery Ignition: {conditions(found)}"
            )
        yield Wait(POLL_SECONDS)
        waited += POLL_SECONDS
    flags, token = agent_unit((yield from ask("set up", "GET", url)), cluster.infra_env)
    cluster.infra_env_id, cluster.token = flags["infra-env-id"], token
    return flags["url"].rstrip("/"), flags.get("agent-version", "")


def ignition_url(infra_env: Object) -> str:
    return str(((infra_env.get("status") or {}).get("bootArtifacts") or {}).get("discoveryIgnitionURL") or "")


def conditions(found: Object) -> str:
    """The conditions of a resource in one line."""
    listed = (found.get("status") or {}).get("conditions") or ()
    return (
        "; ".join(f"{one['type']}={one['status']}: {one.get('message', '')}" for one in listed)
        or "it has no conditions"
    )


def agent_unit(config: Any, name: str) -> tuple[dict[str, str], str]:
    """Return flags of the agent and its token, as its unit in an Ignition config has them.

    config: decoded, or JSON; name: of the InfraEnv, for the message. The token is empty if there is none. SwarmError
    without the unit or one of the flags that every agent has.
    """
    if isinstance(config, bytes | str):
        config = load_json(config, name="config")
    units = ((config or {}).get("systemd") or {}).get("units") or ()
    text = next((unit.get("contents", "") for unit in units if unit.get("name") == "agent.service"), "")
    command = re.search(r"^ExecStart=\S*agent (.*)$", text, re.MULTILINE)
    flags = dict(re.findall(r"--([\w-]+)[ =](\S+)", command[1])) if command else {}
    if not {"url", "infra-env-id"} <= set(flags):
        raise SwarmError(f"InfraEnv {name}: its discovery Ignition has no agent.service with --url and --infra-env-id")
    token = re.search(r"^Environment=PULL_SECRET_TOKEN=(\S+)$", text, re.MULTILINE)
    return flags, token[1] if token else ""


def discover(settings: Settings) -> Conversation:
    """Return the clusters of all InfraEnvs that are bound to a cluster which is not installed."""
    found: list[Cluster] = []
    for infra_env in (yield from ask("set up", "GET", INFRA_ENVS)).get("items") or ():
        reference = (infra_env.get("spec") or {}).get("clusterRef") or {}
        if not reference.get("name"):
            continue
        namespace = reference.get("namespace") or infra_env["metadata"]["namespace"]
        deployment = yield from ask("set up", "GET", place("ClusterDeployment", namespace, reference["name"]))
        resource_name = deployment["spec"]["clusterInstallRef"]["name"]
        install = yield from ask("set up", "GET", place("AgentClusterInstall", namespace, resource_name))
        if condition(install, "Completed") or condition(install, "Failed"):
            continue
        found.append(from_resources(len(found), infra_env, deployment, install, settings))
    if not found:
        raise SwarmError("the hub has no InfraEnv with a cluster that is not installed")
    return found


def from_resources(number: int, infra_env: Object, deployment: Object, install: Object, settings: Settings) -> Cluster:
    spec, wanted = install["spec"], install["spec"]["provisionRequirements"]
    masters, arbiters = int(wanted.get("controlPlaneAgents") or 3), int(wanted.get("arbiterAgents") or 0)
    view = {
        "id": "",
        "name": deployment["spec"]["clusterName"],
        "base_dns_domain": deployment["spec"]["baseDomain"],
        "control_plane_count": masters,
        "api_vips": [{"ip": ip} for ip in spec.get("apiVIPs") or filter(None, [spec.get("apiVIP")])],
        "ingress_vips": [{"ip": ip} for ip in spec.get("ingressVIPs") or filter(None, [spec.get("ingressVIP")])],
        "machine_networks": (spec.get("networking") or {}).get("machineNetwork") or [],
    }
    cluster = existing_cluster(number, view, "", settings, masters + arbiters + int(wanted.get("workerAgents") or 0))
    cluster.arbiters = arbiters
    cluster.namespace, cluster.resource = install["metadata"]["namespace"], install["metadata"]["name"]
    if infra_env["metadata"]["namespace"] != cluster.namespace:
        raise SwarmError(
            f"InfraEnv {infra_env['metadata']['name']}: must be in the namespace of its cluster, {cluster.namespace}"
        )
    cluster.infra_env = infra_env["metadata"]["name"]
    return cluster


def condition(found: Object, kind: str) -> bool:
    listed = (found.get("status") or {}).get("conditions") or ()
    return any(one["type"] == kind and one["status"] == "True" for one in listed)


def look(cluster: Cluster, numbers: Callable[[str], int | None]) -> Conversation:
    """A cluster as the service's model has it, from its resources; approves the hosts of ours that wait for it.

    `numbers`: host id -> number in the cluster. Returns None when the hub does not answer.
    """
    answer: Response = yield Request(
        "hub cluster", "GET", place("AgentClusterInstall", cluster.namespace, cluster.resource)
    )
    agents: Response = yield Request(
        "hub agents", "GET", f"{place('Agent', cluster.namespace)}?labelSelector={OF_INFRA_ENV}%3D{cluster.infra_env}"
    )
    if not (answer.ok and agents.ok):
        return None
    hosts = []
    for agent in agents.body.get("items") or ():
        ident, status = agent["metadata"]["name"], agent.get("status") or {}
        number = numbers(ident)
        if number is not None and not agent["spec"].get("approved"):
            arbiter = cluster.masters <= number < cluster.masters + cluster.arbiters
            wanted = {"spec": {"approved": True, **({"role": "arbiter"} if arbiter else {})}}
            yield Request("hub approve", "PATCH", place("Agent", cluster.namespace, ident), wanted)
        progress = status.get("progress") or {}
        hosts.append(
            {
                "id": ident,
                "status": (status.get("debugInfo") or {}).get("state", ""),
                "created_at": agent["metadata"].get("creationTimestamp"),
                "progress": {
                    "current_stage": progress.get("currentStage"),
                    "stage_started_at": progress.get("stageStartTime"),
                },
            }
        )
    state = ((answer.body.get("status") or {}).get("debugInfo") or {}).get("state", "")
    return {"status": Status.INSTALLED if condition(answer.body, "Completed") else state, "hosts": hosts}


def remove(cluster: Cluster) -> Conversation:
    """Delete what `register` made, the namespace last.

    Returns whether the namespace is gone, or being deleted. What does not exist is not an error.
    """
    response = Response(0)
    for kind in ("ClusterDeployment", "InfraEnv", "Namespace"):
        path = place(kind, "" if kind == "Namespace" else cluster.name, cluster.name)
        response = yield Request("remove", "DELETE", path, answers=(404,))
    return response.ok or response.status == 404
