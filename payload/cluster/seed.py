"""The first objects of a new cluster: those that the installer's manifests would create."""

from __future__ import annotations

import base64
import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import yaml

from ...plugins.module_utils.ignition.config import Config
from ...plugins.module_utils.vocabulary import MACHINE_CONFIGURATION, PLATFORMS, WITH_VIPS, ClusterNames, Port
from . import cloud, fencing
from . import proxy as proxies
from .facts import ClusterFacts, count, single_node
from .objects import config_map, make
from .pki import Pair
from .store import Object

NAMESPACES = (
    "default",
    "kube-system",
    "kube-public",
    "kube-node-lease",
    "openshift",
    "openshift-config",
    "openshift-config-managed",
    "openshift-console",
    "openshift-etcd",
    "openshift-infra",
    "openshift-ingress",
    "openshift-ingress-operator",
    "openshift-kube-apiserver",
    "openshift-machine-api",
    "openshift-machine-config-operator",
    "openshift-monitoring",
    "openshift-cluster-version",
    "openshift-network-operator",
    "assisted-installer",
)


def objects(
    facts: ClusterFacts,
    configs: Mapping[str, Object],
    *,
    install_config: Mapping[str, Any],
    fips: bool,
    pull_secret: str,
    kubeadmin_hash: str,
    router: Pair,
    router_ca: str,
    root_ca: str,
    registries: str,
    pointer: Object,
    trust_bundle: str = "",
    proxy: Mapping[str, str] = MappingProxyType({}),
    ssh: Mapping[str, Any] = MappingProxyType({}),
    fenced: Sequence[fencing.Device] = (),
) -> list[Object]:
    """Return the first objects of the cluster.

    `configs` maps roles to their rendered Ignition, `install_config` has its overrides and all logins, `registries` is
    the text of registries.conf, `trust_bundle` the user's CAs, `proxy` the fields of a Proxy that users gave, `pointer` the
    Ignition that a new worker starts with, `ssh` the config that lets users log in; certificates are PEM;
    `fenced` are the BMCs of two nodes that fence each other.
    """
    found = [make("v1", "Namespace", name, status={"phase": "Active"}) for name in NAMESPACES]
    found += _cluster_config(facts, proxy, trusted=bool(trust_bundle))
    if facts["platform"] == "baremetal":
        found += _bare_metal(facts, _bmcs(install_config))
    found += _machine_config(facts, configs, fips=fips)
    found += _of_installer(ssh, fips=fips)
    if trust_bundle:
        found.append(config_map("openshift-config", "user-ca-bundle", {"ca-bundle.crt": trust_bundle}))
    found += [
        config_map(
            "kube-system",
            "cluster-config-v1",
            {"install-config": yaml.safe_dump(cloud.redact_config(install_config), sort_keys=False)},
        ),
        config_map("kube-system", "root-ca", {"ca.crt": root_ca}),
        config_map("openshift-config", "openshift-install", {"invoker": facts["invoker"], "version": facts["version"]}),
        config_map(
            "openshift-config",
            "openshift-install-manifests",
            {"invoker": facts["invoker"], "version": facts["version"]},
        ),
        _secret(
            "openshift-config", "pull-secret", {".dockerconfigjson": pull_secret}, "kubernetes.io/dockerconfigjson"
        ),
        _secret(
            "openshift-ingress",
            "router-certs-default",
            {"tls.crt": router.certificate, "tls.key": router.key},
            "kubernetes.io/tls",
        ),
        config_map("openshift-ingress-operator", "router-ca", {"tls.crt": router_ca}),
        _secret(
            "openshift-machine-api",
            "worker-user-data-managed",
            {"userData": json.dumps(pointer), "disableTemplating": "true"},
        ),
    ]
    found += [_secret("openshift-etcd", device.secret, fencing.secret_data(device)) for device in fenced]
    if logins := cloud.logins(install_config):
        found.append(_secret(*cloud.CREDENTIALS, logins))
    if kubeadmin_hash:
        found.append(_secret("kube-system", "kubeadmin", {"kubeadmin": kubeadmin_hash}))
    mirrors = digest_mirrors(registries)
    if mirrors:
        found.append(
            make(
                "config.openshift.io/v1",
                "ImageDigestMirrorSet",
                "image-digest-mirror",
                spec={"imageDigestMirrors": mirrors},
            )
        )
    return found


def _cluster_config(facts: ClusterFacts, proxy: Mapping[str, str], *, trusted: bool) -> list[Object]:
    effective = proxies.status(proxy, facts)
    # With the policy Proxyonly, which is the default, the user's CAs are the proxy's.
    authority = {"name": "user-ca-bundle" if trusted and effective else ""}
    domain, names = facts["domain"], ClusterNames.of(facts["domain"])
    platform = PLATFORMS.get(facts["platform"], "None")
    platform_spec: Object = {"type": platform}
    platform_status: Object = {"type": platform}
    if facts["platform"] == "external":
        platform_spec["external"] = {"platformName": facts["external"].get("platform_name") or "Unknown"}
        if facts["external"].get("cloud_controller_manager") == "External":
            platform_status["external"] = {"cloudControllerManager": {"state": "External"}}
    if facts["platform"] in WITH_VIPS:
        platform_status[facts["platform"]] = {
            "apiServerInternalIP": (facts["api_vips"] or [""])[0],
            "apiServerInternalIPs": facts["api_vips"],
            "ingressIP": (facts["ingress_vips"] or [""])[0],
            "ingressIPs": facts["ingress_vips"],
        }
        if facts["outside_balancer"]:
            platform_status[facts["platform"]]["loadBalancer"] = {"type": "UserManaged"}
    api = "config.openshift.io/v1"
    networks = {
        "clusterNetwork": [
            {"cidr": n["cidr"], "hostPrefix": n.get("host_prefix", 23)} for n in facts["cluster_networks"]
        ],
        "serviceNetwork": facts["service_networks"],
        "networkType": facts["network_type"],
    }
    return [
        make(
            api,
            "Infrastructure",
            "cluster",
            spec={"cloudConfig": {"name": ""}, "platformSpec": platform_spec},
            status={
                "apiServerInternalURI": f"https://{names.api_int}:{Port.API}",
                "apiServerURL": f"https://{names.api}:{Port.API}",
                "controlPlaneTopology": facts["topology"],
                "cpuPartitioning": "None",
                "etcdDiscoveryDomain": "",
                "infrastructureName": _infrastructure_name(facts),
                "platform": platform,
                "platformStatus": platform_status,
                "infrastructureTopology": "SingleReplica"
                if single_node(facts) or count(facts, "worker") == 1
                else "HighlyAvailable",
            },
        ),
        make(api, "DNS", "cluster", spec={"baseDomain": domain, "platform": {"type": ""}}),
        make(api, "Ingress", "cluster", spec={"domain": names.apps}),
        make(api, "Network", "cluster", spec=networks, status={**networks, "clusterNetworkMTU": 1400}),
        make(api, "Proxy", "cluster", spec={**proxy, "trustedCA": authority}, status=effective),
        make(
            api,
            "Scheduler",
            "cluster",
            spec={"mastersSchedulable": facts["schedulable_masters"], "policy": {"name": ""}},
            status={},
        ),
        make(
            api,
            "ClusterVersion",
            "version",
            spec={"clusterID": facts["id"], "channel": "stable-" + ".".join(facts["version"].split(".")[:2])},
        ),
        make(
            "operator.openshift.io/v1",
            "IngressController",
            "default",
            "openshift-ingress-operator",
            spec={"replicas": 1 if single_node(facts) else 2},
            status={},
        ),
    ]


def _infrastructure_name(facts: ClusterFacts) -> str:
    return f"{facts['name']}-{hashlib.sha256(facts['id'].encode()).hexdigest()[:5]}"


def _bmcs(install_config: Mapping[str, Any]) -> dict[str, Object]:
    """Return the hosts of the install-config, by name, that have a BMC there."""
    section = (install_config.get("platform") or {}).get("baremetal") or {}
    return {host["name"]: host for host in section.get("hosts") or () if (host.get("bmc") or {}).get("address")}


def _bare_metal(facts: ClusterFacts, described: Mapping[str, Object]) -> list[Object]:
    """Return hosts and their machines; they are linked for the control plane only, the controller links the others.

    described: hosts of the install-config whose BMCs the cluster is given, by name; such a host has a secret, too.
    """
    namespace, label, prefix = "openshift-machine-api", "machine.openshift.io/cluster-api", _infrastructure_name(facts)
    found = [
        make(
            "metal3.io/v1alpha1", "Provisioning", "provisioning-configuration", spec={"provisioningNetwork": "Disabled"}
        )
    ]
    numbers: Counter[str] = Counter()
    for host in facts["hosts"]:
        role = host["role"]
        machine = f"{prefix}-{role}-{numbers[role]}"
        numbers[role] += 1
        labels = {f"{label}-cluster": prefix, f"{label}-machine-role": role, f"{label}-machine-type": role}
        found.append(make("machine.openshift.io/v1beta1", "Machine", machine, namespace, labels, spec={}, status={}))
        spec: Object = {"online": True}
        if role != "worker":
            spec["consumerRef"] = {
                "apiVersion": "machine.openshift.io/v1beta1",
                "kind": "Machine",
                "namespace": namespace,
                "name": machine,
            }
        if given := described.get(host["name"]):
            bmc, secret = given["bmc"], f"{host['name']}-bmc-secret"
            spec["bootMACAddress"] = given.get("bootMACAddress", "")
            spec["bmc"] = {
                "address": bmc["address"],
                "credentialsName": secret,
                "disableCertificateVerification": bmc.get("disableCertificateVerification", False),
            }
            login = {name: bmc.get(name, "") for name in ("username", "password")}
            found.append(_secret(namespace, secret, login))
        found.append(
            make(
                "metal3.io/v1alpha1",
                "BareMetalHost",
                host["name"],
                namespace,
                {"installer.openshift.io/role": role if role != "master" else "control-plane"},
                None if role == "worker" else {"baremetalhost.metal3.io/paused": ""},
                spec=spec,
                status={"provisioning": {"state": "unmanaged"}},
            )
        )
    return found


def rendered_name(role: str, config: Object) -> str:
    """Return the name of a rendered MachineConfig: like the real one, it changes with the content."""
    return (
        f"rendered-{role}-{hashlib.md5(json.dumps(config, sort_keys=True).encode(), usedforsecurity=False).hexdigest()}"
    )


def _machine_config(facts: ClusterFacts, configs: Mapping[str, Object], *, fips: bool) -> list[Object]:
    found: list[Object] = []
    for role, config in configs.items():
        name = rendered_name(role, config)
        found.append(
            make(
                f"{MACHINE_CONFIGURATION}/v1",
                "MachineConfig",
                name,
                annotations={f"{MACHINE_CONFIGURATION}/generated-by-controller-version": facts["version"]},
                spec={
                    "config": config,
                    "kernelArguments": [],
                    "extensions": [],
                    "fips": fips,
                    "kernelType": "default",
                    "osImageURL": "",
                },
            )
        )
        found.append(
            make(
                f"{MACHINE_CONFIGURATION}/v1",
                "MachineConfigPool",
                role,
                labels={f"pools.operator.{MACHINE_CONFIGURATION}/{role}": ""},
                spec={
                    "configuration": {"name": name},
                    "paused": False,
                    "machineConfigSelector": {"matchLabels": {f"{MACHINE_CONFIGURATION}/role": role}},
                    "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{role}": ""}},
                },
                status={
                    "configuration": {"name": name},
                    "machineCount": 0,
                    "readyMachineCount": 0,
                    "updatedMachineCount": 0,
                    "unavailableMachineCount": 0,
                    "degradedMachineCount": 0,
                    "conditions": [],
                },
            )
        )
    return found


def _of_installer(ssh: Mapping[str, Any], *, fips: bool) -> list[Object]:
    """The MachineConfigs that the installer writes for each pool: who may log in, and whether FIPS mode is on."""
    found: list[Object] = []
    for role in ("master", "worker"):
        parts: dict[str, Object] = {}
        if "passwd" in ssh:
            parts["ssh"] = {"config": dict(ssh)}
        if fips:
            parts["fips"] = {"config": Config().to_dict(), "fips": True}
        for part, spec in parts.items():
            found.append(
                make(
                    f"{MACHINE_CONFIGURATION}/v1",
                    "MachineConfig",
                    f"99-{role}-{part}",
                    labels={f"{MACHINE_CONFIGURATION}/role": role},
                    spec=spec,
                )
            )
    return found


def digest_mirrors(registries: str) -> list[Object]:
    """Return the `imageDigestMirrors` that a registries.conf (TOML, version 2) describes."""
    return [
        {"source": entry["location"], "mirrors": [mirror["location"] for mirror in entry["mirror"]]}
        for entry in tomllib.loads(registries).get("registry", ())
        if entry.get("mirror")
    ]


def _secret(namespace: str, name: str, data: dict[str, str], kind: str = "Opaque") -> Object:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return make("v1", "Secret", name, namespace, data=encoded, type=kind)
