"""`openshift-install` of the lab: what a real assisted service has it create from an install-config.

`create manifests`, `create ignition-configs` and `create single-node-ignition-config`, with the files, environment variables and order
of OpenShift's: each consumes its input and keeps what later ones need in `.openshift_install_state.json`. The configs start the
simulated cluster. `agent create certificates` is for a rendezvous host whose image has none. To create agent images, use agentlab.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import RunFile

from ...plugins.module_utils.documents import load_json, load_yaml, load_yaml_all, read_file
from ...plugins.module_utils.ignition.resources import data_file
from ...plugins.module_utils.installer import credentials
from ...plugins.module_utils.installer.credentials import SIGNERS
from ...plugins.module_utils.vocabulary import SETTINGS_MANIFEST
from ..api_server.prepare import TRUST_ANCHOR, kubeconfig, password
from ..api_server.release import contents
from ..cluster import ignition, units
from ..cluster.facts import topology

STATE = RunFile.INSTALLER_STATE
_CONFIG = "*installconfig.InstallConfig"
SCHEDULER, INFRASTRUCTURE = (
    "manifests/cluster-scheduler-02-config.yml",
    "manifests/cluster-infrastructure-02-config.yml",
)
HOSTS = "openshift/99_openshift-cluster-api_hosts-{}.yaml"
CLUSTER_VERSION = f"{units.BOOTSTRAP}/manifests/cvo-overrides.yaml"
SINGLE = "bootstrap-in-place-for-live-iso.ign"
_GENERATED = (
    "cluster-scheduler-02-config.yml",
    "cluster-infrastructure-02-config.yml",
    "99_openshift-cluster-api_hosts-",
)
_ROLES = {"controlPlane": "master", "arbiter": "arbiter"}


def _log(level: str, text: str) -> None:
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    print(f"time={json.dumps(stamp)} level={level} msg={json.dumps(text)}", file=sys.stderr)


def create_manifests(folder: Path, environment: Mapping[str, str]) -> None:
    """Turn install-config.yaml into the manifests that the service changes. Raises ValueError, OSError.

    folder: the assets directory, whose install-config.yaml is removed; environment: as of the process. `STATE` keeps
    the config for later.
    """
    path = folder / RunFile.INSTALL_CONFIG
    config = load_yaml(read_file(path), name=str(path))
    if not isinstance(config, dict) or not (config.get("metadata") or {}).get("name") or not config.get("baseDomain"):
        raise ValueError(f"{path}: metadata.name and baseDomain are required")
    for name in ("manifests", "openshift"):
        (folder / name).mkdir(exist_ok=True)
    hosts = hosts_of(config, environment)
    workers = sum(host["role"] == "worker" for host in hosts)
    scheduler = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": "cluster"},
        "spec": {"mastersSchedulable": not workers, "policy": {"name": ""}},
        "status": {},
    }
    infrastructure = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Infrastructure",
        "metadata": {"name": "cluster"},
        "spec": {"platformSpec": {}},
        "status": {
            "controlPlaneTopology": topology([host["role"] for host in hosts]),
            "infrastructureTopology": "SingleReplica" if workers == 1 else "HighlyAvailable",
        },
    }
    made = {SCHEDULER: scheduler, INFRASTRUCTURE: infrastructure}
    if "baremetal" in config.get("platform", {}):
        made |= {HOSTS.format(number): _bare_metal(host) for number, host in enumerate(hosts)}
    for name, value in made.items():
        (folder / name).write_text(yaml.safe_dump(value))
    (folder / STATE).touch(0o600)
    (folder / STATE).write_text(json.dumps({_CONFIG: {"config": config}}))
    path.unlink()


def _bare_metal(host: Mapping[str, Any]) -> dict[str, Any]:
    role = {"master": "control-plane"}.get(host["role"], host["role"])
    return {
        "apiVersion": "metal3.io/v1alpha1",
        "kind": "BareMetalHost",
        "metadata": {
            "name": host["requested_hostname"],
            "namespace": "openshift-machine-api",
            "labels": {"installer.openshift.io/role": role},
        },
        "spec": {"online": True, "bootMACAddress": host["mac"], "bootMode": host["boot_mode"]},
    }


def hosts_of(config: Mapping[str, Any], environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the hosts in the service's model: those of the platform, else as many as the pools have.

    Addresses are unknown, except the bootstrap host's: OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP.
    """
    given = ((config.get("platform") or {}).get("baremetal") or {}).get("hosts") or []
    entries = [(str(host.get("role") or "worker"), str(host["name"]), host) for host in given]
    if not entries:
        pools = [(role, config.get(name)) for name, role in _ROLES.items()]
        pools += [("worker", pool) for pool in config.get("compute") or ()]
        entries = [
            (role, f"{role}-{number}", {})
            for role, pool in pools
            if isinstance(pool, dict)
            for number in range(int(pool.get("replicas") or 0))
        ]
    hosts: list[dict[str, Any]] = []
    address = environment.get("OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP", "")
    for role, name, entry in entries:
        first = role == "master" and not any(host["role"] == "master" for host in hosts)
        nics = [{"ipv4_addresses": [address]}] if first and address else []
        hosts.append(
            {
                "id": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
                "role": role,
                "requested_hostname": name,
                "bootstrap": first,
                "inventory": {"interfaces": nics},
                "mac": entry.get("bootMACAddress", ""),
                "boot_mode": entry.get("bootMode", "UEFI"),
            }
        )
    return hosts


def cluster_of(config: Mapping[str, Any], version: str, *, schedulable: bool) -> dict[str, Any]:
    """Return the cluster in the service's model.

    config: the decoded install-config; version: of the release; schedulable: whether workloads may run on masters. The
    pull secret is a field of its own, not in the overrides.
    """
    networking = config.get("networking") or {}
    [(platform, fields)] = (config.get("platform") or {"none": {}}).items()
    proxy = config.get("proxy") or {}
    public = {name: value for name, value in config.items() if name != "pullSecret"}
    vips = {
        f"{kind}_vips": [{"ip": ip} for ip in (fields or {}).get(f"{kind}VIPs") or ()] for kind in ("api", "ingress")
    }
    return {
        "id": str(uuid.uuid4()),
        "name": config["metadata"]["name"],
        "base_dns_domain": config["baseDomain"],
        "openshift_version": version,
        "platform": {"type": platform},
        "schedulable_masters": schedulable,
        "machine_networks": [{"cidr": net["cidr"]} for net in networking.get("machineNetwork") or ()],
        "cluster_networks": [
            {"cidr": net["cidr"], "host_prefix": net.get("hostPrefix", 23)}
            for net in networking.get("clusterNetwork") or ()
        ],
        "service_networks": [{"cidr": net} for net in networking.get("serviceNetwork") or ()],
        "network_type": networking.get("networkType"),
        "ssh_public_key": config.get("sshKey", ""),
        "http_proxy": proxy.get("httpProxy", ""),
        "https_proxy": proxy.get("httpsProxy", ""),
        "no_proxy": proxy.get("noProxy", ""),
        "pull_secret": config.get("pullSecret", "{}"),
        "install_config_overrides": json.dumps(public),
        **vips,
    }


def create_ignition(folder: Path, environment: Mapping[str, str], single: bool) -> None:
    """Turn the manifests into Ignition configs, credentials and metadata. Raises ValueError, OSError.

    single: one node that bootstraps itself. Manifests are consumed. The release image must be in
    OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE.
    """
    if (folder / RunFile.INSTALL_CONFIG).exists():
        create_manifests(folder, environment)
    config = load_json(read_file(folder / STATE), name=str(folder / STATE))[_CONFIG]["config"]
    release = environment.get("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", "")
    if not release:
        raise ValueError(
            "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE is not set: must be the pullspec of the release image"
        )
    scheduler = load_yaml(read_file(folder / SCHEDULER), name=SCHEDULER)
    manifests = manifests_of(folder)
    tls = folder / "tls"
    if environment.get("OPENSHIFT_INSTALL_LOAD_CLUSTER_CERTS") != "true":
        create_signers(tls)
    hosts = hosts_of(config, environment)
    version, images = contents(release, config.get("pullSecret", "{}"))
    cluster = cluster_of(
        config,
        version,
        schedulable=bool((scheduler.get("spec") or {}).get("mastersSchedulable")),
    )
    bundle = config.get("additionalTrustBundle") or ""
    configs = ignition.render(
        cluster,
        hosts,
        tls,
        images,
        settings_of(manifests),
        manifests,
        node_files=ignition.live_node_files() | ({TRUST_ANCHOR: bundle} if bundle else {}),
        invoker=environment.get("OPENSHIFT_INSTALL_INVOKER", "user"),
    )
    bootstrap = configs.pop("bootstrap.ign")
    cluster_version = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version", "namespace": "openshift-cluster-version"},
        "spec": {"clusterID": cluster["id"]},
    }
    # The service takes the cluster's id from it, and refuses to install without.
    bootstrap["storage"]["files"].append(data_file(CLUSTER_VERSION, yaml.safe_dump(cluster_version).encode(), 0o644))
    bootstrap["storage"]["files"] += [
        data_file(f"{units.BOOTSTRAP}/openshift/{path.name}", path.read_bytes(), 0o644)
        for path in sorted((folder / "openshift").glob(Path(HOSTS).name.format("*")))
    ]
    if single:
        configs = {SINGLE: bootstrap, "worker.ign": configs["worker.ign"]}
    else:
        arbiter = any(host["role"] == "arbiter" for host in hosts)
        configs = {"bootstrap.ign": bootstrap} | {k: v for k, v in configs.items() if arbiter or k != "arbiter.ign"}
    name, domain = cluster["name"], cluster["base_dns_domain"]
    files: dict[str, bytes] = {file: json.dumps(content).encode() for file, content in configs.items()}
    files["metadata.json"] = json.dumps(
        {"clusterName": name, "clusterID": cluster["id"], "infraID": f"{name}-{cluster['id'][:5]}"}
    ).encode()
    files[RunFile.KUBECONFIG] = kubeconfig(name, domain, tls)
    files[RunFile.PASSWORD] = password(tls) or b""
    (folder / "auth").mkdir(exist_ok=True)
    for file, data in files.items():
        (folder / file).touch(0o640)
        (folder / file).write_bytes(data)
    for consumed in ("manifests", "openshift"):
        for path in (folder / consumed).iterdir():
            path.unlink()
        (folder / consumed).rmdir()


def manifests_of(folder: Path) -> dict[str, str]:
    """Return the manifests of an assets directory that `create manifests` has not made itself: name of the file -> text."""
    return {
        f"{path.parent.name}/{path.name}": path.read_text()
        for path in sorted([*(folder / "manifests").iterdir(), *(folder / "openshift").iterdir()])
        if path.suffix in (".yaml", ".yml", ".json") and not path.name.startswith(_GENERATED)
    }


def create_signers(tls: Path) -> None:
    """Create the cluster's signers in a directory, which is made if necessary."""
    tls.mkdir(exist_ok=True)
    for name in SIGNERS:
        for kind, text in credentials.signer(name).items():
            (tls / f"{name}.{kind}").touch(0o600)
            (tls / f"{name}.{kind}").write_text(text)


def create_certificates(folder: Path, _environment: Mapping[str, str]) -> None:
    """Create the cluster's signers and the kubeadmin password in `tls`, for a host whose image has none."""
    tls, made = folder / "tls", credentials.password()
    create_signers(tls)
    for name, text in (("kubeadmin-password", made["password"]), ("kubeadmin-password.hash", made["hash"])):
        (tls / name).touch(0o600)
        (tls / name).write_text(text)


def settings_of(manifests: Mapping[str, str]) -> dict[str, str]:
    """Return the lab's settings, which are a ConfigMap among the manifests."""
    documents = (document for name, text in manifests.items() for document in load_yaml_all(text, name=name))
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != "ConfigMap":
            continue
        if (document.get("metadata") or {}).get("name") == SETTINGS_MANIFEST:
            return {str(key): str(value) for key, value in (document.get("data") or {}).items()}
    return {}


TARGETS: dict[str, Callable[[Path, Mapping[str, str]], None]] = {
    "manifests": create_manifests,
    "ignition-configs": lambda folder, environment: create_ignition(folder, environment, single=False),
    "single-node-ignition-config": lambda folder, environment: create_ignition(folder, environment, single=True),
}
AGENT_TARGETS = {"certificates": create_certificates}
"""Of `openshift-install agent create`."""


def parser(targets: Mapping[str, object]) -> argparse.ArgumentParser:
    """Return the options. targets: what can be created."""
    options = argparse.ArgumentParser(
        prog="openshift-install", description="creates Ignition configs of the simulated cluster"
    )
    options.add_argument("command", choices=["create"])
    options.add_argument("target", choices=targets)
    options.add_argument("--dir", type=Path, default=Path())
    options.add_argument("--log-level", default="info")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Create what is asked for; an error is one line of the log.

    argv: without the program's name. Files that it makes are private to their owner. Returns 0 or 1.
    """
    words = [*(sys.argv[1:] if argv is None else argv)]
    agent = words[:1] == ["agent"]
    targets = AGENT_TARGETS if agent else TARGETS
    options = parser(targets).parse_args(words[agent:])
    os.umask(0o077)
    try:
        targets[options.target](options.dir, os.environ)
    except (ValueError, OSError) as error:
        _log("fatal", f"failed to create {options.target}: {error}")
        return 1
    _log("info", f"{options.target} created in: {options.dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
