"""What an installation needs besides the hosts: Ignition configs, kubeconfig, install-config, metadata.

`Job` is what is needed, as the engine gives it; `files` does the work (in a thread).
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ...plugins.module_utils.addresses import in_url
from ...plugins.module_utils.documents import load_json, load_yaml
from ...plugins.module_utils.ignition.config import Config
from ...plugins.module_utils.ignition.resources import data_file, data_url
from ...plugins.module_utils.vocabulary import Port
from . import install_config, operators
from .bodies import StaticNetwork
from .hardware import Inventory
from .objects import Cluster, Host

#: (cluster, hosts, tls_dir, images, settings, manifests) -> Ignition configs by file name.
Render = Callable[..., dict[str, dict[str, Any]]]
ADMIN_SIGNER = "admin-kubeconfig-signer"

TRUST_ANCHOR = "/etc/pki/ca-trust/source/anchors/additional-trust-bundle.pem"
"""Path of the infra-env's additional trust bundle on an installed node."""


@dataclass
class Job:
    """Input of one cluster's preparation.

    All values are copies: the work is done in a thread, while the documents change. `static_networks` is keyed by
    infra-env, the private fields of cluster and hosts are left out (except `pull_secret`). `dummy` makes empty Ignition
    configs, for swarms.
    """

    cluster: Cluster
    hosts: list[Host]
    tls_dir: Path | None
    images: dict[str, str]
    settings: dict[str, str]
    manifests: dict[str, str]
    #: Static network configs, as JSON, by id of the infra-env.
    static_networks: dict[str, str]
    render: Render | None
    dummy: bool
    invoker: str
    trust: str = ""
    #: `custom_manifests.json`: what the controller applies once the operators' own kinds exist.
    custom: list[dict[str, str]] = field(default_factory=list)


def files(task: Job) -> dict[str, bytes]:
    """Return what an installation needs, as file name -> content.

    `<role>.ign`, `host/<id>` for each host, kubeconfig-noingress, kubeadmin-password (if it is known), metadata.json,
    install-config.yaml and the operators' custom manifests. ValueError if the signers are missing; the engine then
    reports the preparation as failed.
    """
    made: dict[str, bytes] = {}
    configs = _configs(task)
    for name, config in configs.items():
        made[name] = _json(config)
    networks = {ident: load_json(text, name="static_network_config") for ident, text in task.static_networks.items()}
    for host in task.hosts:
        role = host["role"] if f"{host['role']}.ign" in configs else "worker"
        made[f"host/{host['id']}"] = _json(
            host_config(configs[f"{role}.ign"], host, networks.get(host["infra_env_id"], []))
        )
    name = str(task.cluster.get("name", ""))
    made["kubeconfig-noingress"] = kubeconfig(name, str(task.cluster.get("base_dns_domain", "")), task.tls_dir)
    secret = password(task.tls_dir)
    if secret is not None:
        made["kubeadmin-password"] = secret
    made["metadata.json"] = _json(
        {"clusterName": name, "clusterID": task.cluster["id"], "infraID": f"{name}-{secrets.token_hex(3)[:5]}"}
    )
    made["install-config.yaml"] = install_config.text(task.cluster, task.hosts).encode()
    return made | operators.custom_files(task.custom)


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _configs(task: Job) -> dict[str, dict[str, Any]]:
    if task.dummy:
        return {f"{role}.ign": Config().to_dict() for role in ("bootstrap", "master", "arbiter", "worker")}
    from ..cluster import ignition

    render = task.render or ignition.render
    if task.tls_dir is None:
        raise ValueError(
            "EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR is not set: set it to the directory of the signers"
        )
    node_files = ignition.live_node_files() | ({TRUST_ANCHOR: task.trust} if task.trust else {})
    return render(
        task.cluster,
        task.hosts,
        task.tls_dir,
        task.images,
        task.settings,
        task.manifests,
        node_files=node_files,
        invoker=task.invoker,
    )


def add_file(config: dict[str, Any], path: str, mode: int, text: str) -> dict[str, Any]:
    """Return an Ignition config with a file added; a file with the same path is replaced."""
    storage = dict(config.get("storage") or {})
    others = [entry for entry in storage.get("files") or [] if entry.get("path") != path]
    return {**config, "storage": {**storage, "files": [*others, data_file(path, text.encode(), mode)]}}


def host_config(config: dict[str, Any], host: Host, networks: list[StaticNetwork]) -> dict[str, Any]:
    """Return a role's config for one host: with its hostname, and its NetworkManager keyfiles for a static network.

    `host` needs `requested_hostname` and its inventory, `networks` are those of its infra-env. Without a static network
    the installed system gets its network from DHCP. The config given is not changed.
    """
    made = add_file(config, "/etc/hostname", 0o644, f"{host['requested_hostname']}\n")
    for name, text in keyfiles(load_json(host.get("inventory") or "{}", name="inventory"), networks).items():
        made = add_file(made, f"/etc/NetworkManager/system-connections/{quote(name, safe='._-')}", 0o600, text)
    return made


def keyfiles(inventory: Inventory, networks: list[StaticNetwork]) -> dict[str, str]:
    """Return the NetworkManager keyfiles of a host's nmstate config, by file name; empty when none of its MACs has one.

    A config belongs to the host if one of its `mac_interface_map` entries has a MAC of the inventory. Logical interface
    names become those of the inventory.
    """
    macs = {str(nic.get("mac_address", "")).lower(): nic.get("name", "") for nic in inventory.get("interfaces", ())}
    found: dict[str, str] = {}
    for entry in networks:
        mapping = {
            pair.get("mac_address", "").lower(): pair.get("logical_nic_name", "")
            for pair in entry.get("mac_interface_map", ())
        }
        if not macs.keys() & mapping.keys():
            continue
        from ...plugins.module_utils.nmstate import generate, load

        names = {logical: macs[mac] for mac, logical in mapping.items() if mac in macs and logical}
        found |= rename(dict(generate(load(entry.get("network_yaml", "")))), names)
    return found


def rename(texts: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Keyfiles with logical NIC names replaced by real ones, in file names and values, as the live system does."""
    made = {}
    for file, text in texts.items():
        for logical, real in names.items():
            stem, dot, rest = file.partition(".")
            if stem == logical:
                file = f"{real}{dot}{rest}"
            lines = []
            for line in text.split("\n"):
                key, equals, value = line.partition("=")
                if equals and (value == logical or value.startswith(f"{logical}.")):
                    line = f"{key}={real}{value[len(logical) :]}"
                lines.append(line)
            text = "\n".join(lines)
        made[file] = text
    return made


def override(content: bytes, text: str) -> bytes:
    """Return a host's Ignition config merged with the user's override.

    Files (by path), units and users (by name) are joined, with the override's in place of the same ones; everything
    else in the override is ignored. Both are JSON texts; ValueError if one is not.
    """
    config, extra = load_json(content, name="ignition"), load_json(text, name="ignition override")
    for section, key in (("storage", "files"), ("systemd", "units"), ("passwd", "users")):
        names = {"files": "path", "units": "name", "users": "name"}
        added = (extra.get(section) or {}).get(key) or []
        if added:
            taken = {entry.get(names[key]) for entry in added}
            kept = [entry for entry in (config.get(section) or {}).get(key) or [] if entry.get(names[key]) not in taken]
            config[section] = {**(config.get(section) or {}), key: [*kept, *added]}
    return _json(config)


def day2_ignition(cluster: Cluster, host: Host, networks: str) -> bytes:
    """Config of a host that joins an existing cluster: a pointer to what its API serves, with the host's name.

    host: with `requested_hostname`, the name that it has. networks: the static network configs of its infra-env, as JSON.
    The cluster's `ignition_endpoint` has the URL and its CA; without one, the pool's config is fetched without TLS.
    """
    endpoint, pool = cluster.get("ignition_endpoint") or {}, host.get("machine_config_pool_name") or "worker"
    name = str(cluster.get("api_vip_dns_name", ""))
    url = endpoint.get("url") or f"http://{in_url(name)}:{Port.MACHINE_CONFIG_INSECURE}/config/{pool}"
    config = Config()
    config.merge({"source": url})
    if authority := endpoint.get("ca_certificate"):
        config.trust({"source": data_url(base64.b64decode(authority), "text/plain")})
    return _json(host_config(config.to_dict(), host, load_json(networks, name="static_network_config")))


# -- credentials ------------------------------------------------------------------------------------------------------


def password(tls_dir: Path | None) -> bytes | None:
    """Return the kubeadmin password: the image's, or a new one without an image's.

    None if the image has only its hash (the installer's ISO): then it is unknown here, and only the user who created
    the ISO has it.
    """
    if tls_dir is not None and (tls_dir / "kubeadmin-password").is_file():
        return (tls_dir / "kubeadmin-password").read_bytes().strip()
    if tls_dir is not None and (tls_dir / "kubeadmin-password.hash").is_file():
        return None
    from ...plugins.module_utils.installer import credentials

    return credentials.new_password().encode()


def kubeconfig(name: str, base_domain: str, folder: Path | None) -> bytes:
    """Return kubeconfig-noingress of a cluster, in the installer's format.

    It is signed by the signers in `folder`, if it has them, else by new ones. It trusts the API's own certificates, not
    yet those of the ingress, which `add_ca` adds after the installation.
    """
    from ...plugins.module_utils.installer import credentials

    if folder is not None and (folder / f"{ADMIN_SIGNER}.key").is_file():
        signers = {
            name: {kind: (folder / f"{name}.{kind}").read_text() for kind in ("crt", "key")}
            for name in credentials.SIGNERS
        }
    else:
        signers = {name: credentials.signer(name) for name in credentials.SIGNERS}
    admin = credentials.admin_client(signers[ADMIN_SIGNER])
    text: str = credentials.kubeconfig(name, base_domain, signers, admin)
    return text.encode()


def add_ca(plain: bytes, pem: str) -> bytes:
    """Return a kubeconfig whose clusters also trust the given certificates; ValueError if the text has none.

    `plain` is a kubeconfig with embedded certificates, `pem` one or more PEM blocks. The ingress CA is added with it
    when the controller uploads it, and the result is the file `kubeconfig`.
    """
    from cryptography import x509

    if "-----BEGIN CERTIFICATE-----" not in pem:
        raise ValueError("the text has no PEM block CERTIFICATE")
    for block in pem.split("-----BEGIN CERTIFICATE-----")[1:]:
        try:
            x509.load_pem_x509_certificate(("-----BEGIN CERTIFICATE-----" + block).encode())
        except ValueError:
            raise ValueError("a PEM block is not a certificate") from None
    import yaml

    config = load_yaml(plain, name="kubeconfig")
    for entry in config["clusters"]:
        known = base64.b64decode(entry["cluster"].get("certificate-authority-data", ""))
        entry["cluster"]["certificate-authority-data"] = base64.b64encode(pem.strip().encode() + b"\n" + known).decode()
    return str(yaml.safe_dump(config, sort_keys=False)).encode()
