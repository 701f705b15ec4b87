"""Ignition configs of an installation: for the bootstrap host, for disks, and for new nodes.

Three layers, as in OpenShift:
- `bootstrap.ign` is applied to the live system of the bootstrap host: keys, the first objects, the role configs, `bootkube.service`;
- `<role>.ign` goes to disk and is small: identity, trust anchors, `machine-config-daemon-firstboot.service`;
- the rendered config of a role is served by the machine-config server: credentials, registries, `kubelet.service` and,
  on the control plane, `kube-apiserver.service`. A single node gets it on its disk together with the store.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...plugins.module_utils.documents import DocumentError, load_yaml_all
from ...plugins.module_utils.ignition import config as builder
from ...plugins.module_utils.ignition.resources import data_file, data_url
from ...plugins.module_utils.merging import merge as lay_over
from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION, WITH_VIPS, ClusterNames, Component, Port
from . import fencing, machine_config_daemon, proxy, seed, units
from .api.access import BOOTSTRAPPER
from .certificates import Certificates
from .configs import Config, merge
from .facts import ClusterFacts, build, overrides, single_node
from .units import BOOTSTRAP, DAEMON, LIVE_PULL_SECRET, PULL_SECRET

CA_BUNDLE = "/etc/kubernetes/ca.crt"
#: The token of the controller's service account, on members of the control plane.
ACCOUNT_TOKEN = "/etc/kubernetes/controller-token"
ROLES = ("master", "worker", "arbiter")
ANCHORS = machine_config_daemon.ANCHORS


def render(
    cluster: Mapping[str, Any],
    hosts: Iterable[Mapping[str, Any]],
    tls_dir: Path,
    images: Mapping[str, str],
    settings: Mapping[str, str],
    manifests: Mapping[str, str],
    *,
    node_files: Mapping[str, str] | None = None,
    invoker: str = "agent-installer",
) -> dict[str, Config]:
    """Return the Ignition 3.2 configs `bootstrap.ign`, `master.ign`, `worker.ign`, `arbiter.ign`.

    `cluster` and `hosts` are the service's models (the cluster also with `pull_secret`); `tls_dir` has the installer's signers;
    `images` maps components to pullspecs; `settings` is the flat map of intervals; `manifests` maps file names to YAML.
    `node_files` maps paths to text for every installed node, by default the local registries.conf and trust anchors.
    `invoker` is the program that installs the cluster: it is written into its objects.
    The keys are random: render once per installation. Raises ValueError for a missing image and a manifest that is not
    YAML, OSError for a missing signer.
    """
    if not images.get(Component.HYPERKUBE):
        raise ValueError("images: the component hyperkube, which every node runs, is missing")
    models = list(hosts)
    facts = build(cluster, models, images, invoker)
    if facts["fencing"] and not images.get(Component.CLUSTER_ETCD_OPERATOR):
        raise ValueError(f"images: the component {Component.CLUSTER_ETCD_OPERATOR}, which fences, is missing")
    fenced = fencing.devices(models, [host["name"] for host in facts["hosts"]]) if facts["fencing"] else []
    extra = _documents(manifests)
    trust = dict(node_files) if node_files is not None else live_node_files()
    pki = Certificates(facts, tls_dir)
    tokens = _tokens()
    bootstrapper, controller = tokens
    settings_file = _file("/etc/agentlab/settings.json", json.dumps(dict(settings)), 0o644)
    common = [
        _file("/etc/kubernetes/cluster.json", json.dumps(facts, indent=1), 0o644),
        _file(CA_BUNDLE, pki.bundle, 0o644),
        _file(
            "/etc/kubernetes/kubeconfig",
            kubeconfig(facts, _endpoint(facts, Port.API), pki.bundle, token=bootstrapper),
            0o600,
        ),
    ]
    control_plane = [
        *pki.files(),
        _file("/etc/kubernetes/tokens.json", json.dumps(tokens), 0o600),
        _file(ACCOUNT_TOKEN, controller, 0o600),
        *(_fencing_files(facts, fenced) if fenced else ()),
    ]
    given = proxy.spec(cluster)
    proxied = proxy.status(given, facts)
    node = [
        *common,
        settings_file,
        *([_file(proxy.ENV, proxy.environment(proxied), 0o644)] if proxied else []),
        _file(PULL_SECRET, cluster.get("pull_secret") or "{}", 0o600),
        *(_file(path, text, 0o644) for path, text in trust.items()),
    ]
    ssh = login(cluster.get("ssh_public_key"))
    rendered = {
        role: merge(
            _config(
                [*node, _pointer(facts, role, pki), *(control_plane if role != "worker" else [])],
                proxy.with_environment(units.of_role(facts, role)) if proxied else units.of_role(facts, role),
            ),
            ssh,
            *(mc["spec"].get("config", {}) for mc in _machine_configs(extra, role)),
        )
        for role in ROLES
        if role in ("master", "worker") or any(h["role"] == role for h in facts["hosts"])
    }
    disks = {role: _disk_config(facts, role, ssh, settings_file, pki) for role in ROLES}
    hash_file = tls_dir / "kubeadmin-password.hash"
    first = (
        seed.objects(
            facts,
            rendered,
            install_config=_install_config(cluster, facts),
            fips=overrides(cluster).get("fips") is True,
            pull_secret=cluster.get("pull_secret") or "{}",
            kubeadmin_hash=hash_file.read_text() if hash_file.exists() else "",
            router=pki.router,
            router_ca=pki.router_ca,
            root_ca=pki.root.pair.certificate,
            registries=trust.get("/etc/containers/registries.conf", ""),
            trust_bundle="".join(text for path, text in trust.items() if path.startswith(ANCHORS)),
            proxy=given,
            pointer=_user_data(facts, pki),
            ssh=ssh,
            fenced=fenced,
        )
        + extra
    )
    files = [*common, *control_plane, settings_file, *_bootstrap_files(cluster, facts, pki, first, controller)]
    if single_node(facts):
        base = json.dumps(_single_node(disks["master"], rendered["master"]))
        files.append(_file(f"{BOOTSTRAP}/master-base.ign", base, 0o600))
    bootstrap = _config(files, units.of_bootstrap(facts))
    return {"bootstrap.ign": bootstrap, **{f"{role}.ign": config for role, config in disks.items()}}


def _tokens() -> dict[str, dict[str, Any]]:
    """Return new tokens with their accounts: that of new nodes, and that of the controller."""
    controller = "system:serviceaccount:assisted-installer:assisted-installer-controller"
    return {
        secrets.token_urlsafe(32): {"name": BOOTSTRAPPER, "groups": ["system:bootstrappers"]},
        secrets.token_urlsafe(32): {"name": controller, "groups": ["system:masters"]},
    }


def _fencing_files(facts: ClusterFacts, fenced: list[fencing.Device]) -> list[Config]:
    """The files of Corosync and Pacemaker, of two nodes that fence each other."""
    return [
        _file(f"{fencing.COROSYNC}/corosync.conf", fencing.corosync_conf(facts), 0o644),
        _file(f"{fencing.COROSYNC}/authkey", fencing.authkey(), 0o400),
        _file(fencing.CIB, fencing.cib(facts["name"], fenced), 0o600),
    ]


def _bootstrap_files(
    cluster: Mapping[str, Any], facts: ClusterFacts, pki: Certificates, first: list[Config], controller: str
) -> list[Config]:
    """What the bootstrap host alone has: the first objects, and kubeconfigs with the controller's token."""
    loopback = kubeconfig(facts, f"https://localhost:{Port.API}", pki.bundle, token=controller)
    outside = kubeconfig(facts, _endpoint(facts, Port.API), pki.bundle, token=controller)
    return [
        _file(LIVE_PULL_SECRET, cluster.get("pull_secret") or "{}", 0o600),
        _file(f"{BOOTSTRAP}/manifests.json", json.dumps(first), 0o600, compress=True),
        _file(f"{BOOTSTRAP}/auth/kubeconfig-loopback", loopback, 0o600),
        _file(f"{BOOTSTRAP}/auth/kubeconfig", outside, 0o600),
    ]


def live_node_files() -> dict[str, str]:
    """Return registries.conf and trust anchors of this system, path to text."""
    found = {}
    for path in (Path("/etc/containers/registries.conf"), *sorted(Path("/etc/pki/ca-trust/source/anchors").glob("*"))):
        if path.is_file() and (text := path.read_text()).strip():
            found[str(path)] = text
    return found


def kubeconfig(facts: ClusterFacts, server: str, bundle: str, *, token: str) -> str:
    """Return a kubeconfig (JSON, which is YAML) with a bearer token."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "default",
            "clusters": [
                {
                    "name": facts["name"],
                    "cluster": {
                        "server": server,
                        "certificate-authority-data": base64.b64encode(bundle.encode()).decode(),
                    },
                }
            ],
            "contexts": [{"name": "default", "context": {"cluster": facts["name"], "user": "default"}}],
            "users": [{"name": "default", "user": {"token": token}}],
        }
    )


def _endpoint(facts: ClusterFacts, port: int, path: str = "") -> str:
    return f"https://{ClusterNames.of(facts['domain']).api_int}:{port}{path}"


def _served_config(facts: ClusterFacts, role: str) -> str:
    return _endpoint(facts, Port.MACHINE_CONFIG, f"/config/{role}")


def _pointer(facts: ClusterFacts, role: str, pki: Certificates) -> Config:
    """The file that names the node's role, and where its config is served."""
    pointer = {"url": _served_config(facts, role), "ca": pki.root.pair.certificate}
    return _file("/etc/kubernetes/machine-config.json", json.dumps(pointer), 0o644)


def login(keys: str | None) -> Config:
    """Return the config with which SSH keys log in; without a key it has no user.

    `keys` is text with a line for each, as a cluster and an install-config have it.
    """
    made = builder.Config()
    if lines := (keys or "").strip().splitlines():
        made.user("core", lines)
    return made.to_dict()


def _user_data(facts: ClusterFacts, pki: Certificates) -> Config:
    """What a new worker's Ignition is, as the machine-config operator has it: where to get the rest, and whose CA to trust."""
    made = builder.Config()
    made.merge({"source": _served_config(facts, "worker")})
    made.trust({"source": data_url(pki.root.pair.certificate)})
    return made.to_dict()


def _disk_config(facts: ClusterFacts, role: str, ssh: Config, settings: Config, pki: Certificates) -> Config:
    files = [_pointer(facts, role, pki), settings, data_file(DAEMON, machine_config_daemon.program(), 0o755)]
    return merge(_config(files, [{**units.FIRSTBOOT, "enabled": True}]), ssh)


def _single_node(disk: Config, rendered: Config) -> Config:
    """Return the disk config of a single node, which has no other node to fetch its machine config from."""
    # Disabled, but it must exist: systemd refuses to disable a missing unit.
    off = _config([], [{**units.FIRSTBOOT, "enabled": False}])
    return merge({**disk, "systemd": {"units": []}}, rendered, off)


def _install_config(cluster: Mapping[str, object], facts: ClusterFacts) -> dict[str, Any]:
    config = {
        "apiVersion": "v1",
        "baseDomain": facts["base_domain"],
        "metadata": {"name": facts["name"]},
        "controlPlane": {"name": "master", "replicas": sum(1 for h in facts["hosts"] if h["role"] == "master")},
        "compute": [{"name": "worker", "replicas": sum(1 for h in facts["hosts"] if h["role"] == "worker")}],
        "networking": {
            "networkType": facts["network_type"],
            "machineNetwork": [{"cidr": n} for n in facts["machine_networks"]],
            "clusterNetwork": [
                {"cidr": n["cidr"], "hostPrefix": n.get("host_prefix", 23)} for n in facts["cluster_networks"]
            ],
            "serviceNetwork": facts["service_networks"],
        },
        "platform": {facts["platform"]: _platform(facts)},
        "sshKey": cluster.get("ssh_public_key") or "",
    }
    return lay_over(config, overrides(cluster))


def _platform(facts: ClusterFacts) -> dict[str, object]:
    if facts["platform"] in WITH_VIPS:
        balancer = {"loadBalancer": {"type": "UserManaged"}} if facts["outside_balancer"] else {}
        return {"apiVIPs": facts["api_vips"], "ingressVIPs": facts["ingress_vips"], **balancer}
    given = {
        "platformName": facts["external"].get("platform_name"),
        "cloudControllerManager": facts["external"].get("cloud_controller_manager"),
    }
    return {name: value for name, value in given.items() if value}


def _documents(manifests: Mapping[str, str]) -> list[Config]:
    found: list[Config] = []
    for name, text in sorted(manifests.items()):
        try:
            documents = list(load_yaml_all(text, name="text"))
        except DocumentError as error:
            raise ValueError(f"manifest {name} is not YAML: {error}") from None
        for document in documents:
            if document is None:
                continue
            if not (
                isinstance(document, dict)
                and document.get("apiVersion")
                and document.get("kind")
                and isinstance(metadata := document.get("metadata"), dict)
                and isinstance(metadata.get("name"), str)
                and isinstance(metadata.get("labels") or {}, dict)
            ):
                raise ValueError(f"manifest {name} is not an object: apiVersion, kind and metadata.name are required")
            found.append(document)
    return found


def _machine_configs(documents: list[Config], role: str) -> list[Config]:
    label = f"{MACHINE_CONFIGURATION}/role"
    chosen = [
        d for d in documents if d["kind"] == "MachineConfig" and (d["metadata"].get("labels") or {}).get(label) == role
    ]
    return sorted(chosen, key=lambda d: d["metadata"]["name"])


def _config(files: list[Config], units: list[Config]) -> Config:
    made = builder.Config()
    made.add(files=files, units=units)
    return made.to_dict()


def _file(path: str, text: str, mode: int, compress: bool = False) -> Config:
    return data_file(path, text.encode(), mode, compress=compress)
