"""What reads inputs from outside: for each, what inputs are made from, how they are damaged, and how they are read."""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import images
import recordings
import yaml
from ansible_collections.agentlab.ocp.payload.api_server.errors import ApiError
from ansible_collections.agentlab.ocp.payload.api_server.handlers import infra_envs
from ansible_collections.agentlab.ocp.payload.api_server.models import MODELS
from ansible_collections.agentlab.ocp.payload.api_server.schema import Invalid
from ansible_collections.agentlab.ocp.plugins.module_utils import documents, nmstate, state
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio, kargs
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition import config as ignition
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import (
    agent_config,
    install_config,
    mirrors,
    network,
    validation,
)  # fmt: skip
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.manifests.agent_cluster_install import (
    agent_cluster_install,
    check_agent_cluster_install,
    load_agent_cluster_install,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.manifests.cluster import (
    cluster_deployment,
    cluster_image_set,
    load_cluster_deployment,
    load_cluster_image_set,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.manifests.infra_env import (
    check_labels,
    complete_infra_env,
    dump_nmstate_configs,
    infra_env,
    load_infra_env,
    load_nmstate_configs,
    nmstate_configs,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.manifests.overrides import overrides_of
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.manifests.pull_secret import (
    load_pull_secret,
    pull_secret,
)
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.yamlio import load_all
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, configs, profile, rundir, stored
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import RELEASES
from damage import bent_json, hostile_json, hostile_yaml, mangle
from images import ROOT, SHARED, scratch

_LOG = Log(None, emit=lambda _line: None)


@dataclass(frozen=True)
class Target:
    """seeds: what inputs are made from; mutate: (random, seed) -> input; run: reads it."""

    seeds: Callable[[], list[Any]]
    mutate: Callable[[random.Random, Any], bytes]
    run: Callable[[bytes], object]


_KEY = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAAwAAAAE= core"
_INSTALL: dict[str, Any] = {
    "apiVersion": "v1", "baseDomain": "test.example", "metadata": {"name": "ostest", "namespace": "cluster0"}, "sshKey": _KEY,
    "controlPlane": {"name": "master", "replicas": 3, "fencing": {"credentials": [{"hostName": "a", "username": "u", "password": "p",
                     "address": "redfish+https://1.2.3.4/x"}]}},
    "arbiter": {"name": "arbiter", "replicas": 1}, "compute": [{"name": "worker", "replicas": 2, "architecture": "amd64"}],
    "networking": {"networkType": "OVNKubernetes", "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
                   "machineNetwork": [{"cidr": "192.168.111.0/24"}, {"cidr": "fd2e::/64"}], "serviceNetwork": ["172.30.0.0/16", "fd02::/112"],
                   "ovnKubernetesConfig": {"ipv4": {"internalJoinSubnet": "101.64.0.0/16"}}},
    "pullSecret": '{"auths": {"quay.io": {"auth": "dTpw"}}}', "proxy": {"httpProxy": "http://1.2.3.4:80", "noProxy": "a.b,1.2.3.0/24"},
    "imageDigestSources": [{"source": "quay.io/a/b", "mirrors": ["r.example:5000/a"], "sourcePolicy": "NeverContactSource"}],
    "capabilities": {"baselineCapabilitySet": "v4.15", "additionalEnabledCapabilities": ["Ingress"]}, "featureGates": ["A=true"],
}  # fmt: skip
_PLATFORMS: tuple[dict[str, Any], ...] = (
    {"none": {}},
    {"external": {"platformName": "oci", "cloudControllerManager": "External"}},
    {"baremetal": {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "provisioningNetwork": "Managed",
                   "provisioningDHCPRange": "172.22.0.10,172.22.0.254",
                   "hosts": [{"name": "a", "role": "master", "bootMACAddress": "52:54:00:00:00:01", "bmc": {"address": "redfish://1.2.3.4/x",
                              "username": "u", "password": "p"}, "networkConfig": {"interfaces": [{"name": "e", "mac-address": "x"}]}}]}},
    {"vsphere": {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"],
                 "vcenters": [{"server": "v", "user": "u", "password": "p", "datacenters": ["d"]}],
                 "failureDomains": [{"name": "f", "server": "v", "region": "r", "zone": "z", "topology": {
                     "datacenter": "d", "computeCluster": "/d/host/c", "datastore": "/d/datastore/s", "networks": ["n"], "folder": "/d/vm/f"}}]}},
    {"vsphere": {"apiVIP": "192.168.111.5", "ingressVIP": "192.168.111.4", "vCenter": "v", "username": "u", "password": "p",
                 "datacenter": "d", "defaultDatastore": "s", "cluster": "c", "network": "n"}},
    {"nutanix": {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "subnetUUIDs": ["s"],
                 "prismCentral": {"endpoint": {"address": "p", "port": 9440}, "username": "u", "password": "p"},
                 "prismElements": [{"uuid": "u", "endpoint": {"address": "p", "port": 9440}}]}},
)  # fmt: skip
_OLD = {
    "networking": {"machineCIDR": "192.168.111.0/24", "type": "OVNKubernetes", "serviceCIDR": "172.30.0.0/16",
                   "clusterNetworks": [{"cidr": "10.128.0.0/14", "hostSubnetLength": 9}]},
    "platform": {"baremetal": {"apiVIP": "192.168.111.5", "ingressVIP": "192.168.111.4", "provisioningHostIP": "172.22.0.3",
                               "provisioningDHCPExternal": True}},
}  # fmt: skip
_GATED = {
    "controlPlane": {"replicas": 3, "diskSetup": [{"type": "etcd"}], "management": "ClusterAPI"},
    "compute": [{"name": "worker", "diskSetup": [{"type": "etcd"}], "management": "ClusterAPI"}], "featureSet": "CustomNoUpgrade",
    "featureGates": ["MultiDiskSetup=true", "ClusterAPIControlPlaneInstall=1"],
    "platform": {"vsphere": {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "dnsRecordsType": "External",
                             "loadBalancer": {"type": "UserManaged"}, "defaultMachinePlatform": {"cpus": 4}, "vCenter": "v", "failureDomains": [
                                 {"topology": {"datacenter": "d", "computeCluster": "c", "datastore": "s", "folder": "f"}}]}},
    "additionalTrustBundle": "-----BEGIN X-----\nA: b\n\nAAAA\n-----END X-----\n",
}  # fmt: skip


def _install_configs() -> list[Any]:
    return [
        *({**_INSTALL, "platform": platform} for platform in _PLATFORMS),
        {**_INSTALL, **_OLD},
        {**_INSTALL, **_GATED},
    ]


def _quick_lookup(_name: str, _seconds: float = 0) -> str:
    return ""


def _read_install_config(data: bytes) -> None:
    install_config._lookup = _quick_lookup  # the resolver is not what is tested here
    for name in ("4.22", "4.20", "4.18"):
        profile = RELEASES[name]
        config = install_config.parse(data.decode("utf-8", "replace"), _LOG)
        install_config.set_defaults(config, profile, "4.22.0")
        build: Any = SimpleNamespace(profile=profile, version="4.22.0", log=_LOG, release_facts={"error": "none"})
        validation.validate(config, build)
        aci = agent_cluster_install(config, None, [], "4.22.0", profile)
        check_agent_cluster_install(aci, profile)
        infra_env(config, None, profile)
        pull_secret(config, profile)
        mirrors.parse(mirrors.render(config.get("imageDigestSources") or [], blocked=True))


_STATE: dict[str, Any] = {
    "interfaces": [
        {"name": "eth0", "type": "ethernet", "state": "up", "mac-address": "52:54:00:00:00:01", "mtu": 1500,
         "ethernet": {"sr-iov": {"total-vfs": 2}}},
        {"name": "bond0", "type": "bond", "state": "up", "link-aggregation": {"mode": "802.3ad", "port": ["eth0"],
         "options": {"miimon": 100, "xmit_hash_policy": "layer3+4"}}},
        {"name": "bond0.5", "type": "vlan", "state": "up", "vlan": {"base-iface": "bond0", "id": 5}, "ipv4": {
            "enabled": True, "dhcp": False, "address": [{"ip": "192.168.111.20", "prefix-length": 24}]},
         "ipv6": {"enabled": True, "autoconf": True, "dhcp": True, "addr-gen-mode": "eui64"}},
        {"name": "br0", "type": "linux-bridge", "state": "up", "bridge": {"options": {"stp": {"enabled": False}},
         "port": [{"name": "eth1", "vlan": {"mode": "trunk", "trunk-tags": [{"id": 1}]}}]}},
        {"name": "ovs0", "type": "ovs-bridge", "state": "up", "bridge": {"port": [{"name": "p0"}]}},
        {"name": "vx", "type": "vxlan", "state": "up", "vxlan": {"id": 9, "remote": "1.2.3.4", "base-iface": "eth0"}},
        {"name": "vrf0", "type": "vrf", "state": "up", "vrf": {"port": ["eth2"], "route-table-id": 100}},
        {"name": "mv", "type": "mac-vlan", "state": "up", "mac-vlan": {"base-iface": "eth0", "mode": "bridge"}},
        {"name": "ib0", "type": "infiniband", "state": "up", "infiniband": {"mode": "datagram", "pkey": "0x8001"}},
        {"name": "d0", "type": "dummy", "state": "absent"},
    ],
    "dns-resolver": {"config": {"server": ["1.1.1.1", "fd00::1%eth0"], "search": ["a.b"]}},
    "routes": {"config": [{"destination": "0.0.0.0/0", "next-hop-address": "192.168.111.1", "next-hop-interface": "bond0.5", "metric": 5}]},
    "route-rules": {"config": [{"ip-from": "192.0.2.0/24", "priority": 5, "route-table": 200}]},
    "hostname": {"config": "a"},
}  # fmt: skip


def _states() -> list[Any]:
    found = [_STATE, *({"interfaces": [nic]} for nic in _STATE["interfaces"])]
    for path in sorted((SHARED / "nmstate").rglob("*.y*ml"))[:80]:
        try:
            document = yaml.safe_load(path.read_text())
        except yaml.YAMLError:
            continue
        if isinstance(document, dict):
            found.append(document)
    return found


def _agent_configs() -> list[Any]:
    hosts = [
        {"hostname": "m0", "role": "master", "rootDeviceHints": {"deviceName": "/dev/sda", "minSizeGigabytes": 5, "rotational": False},
         "interfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01"}], "networkConfig": _STATE, "BMC": {"address": "x"}},
        {"interfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:02"}]},
    ]  # fmt: skip
    new = {"apiVersion": "v1beta1", "kind": "AgentConfig", "metadata": {"name": "x"}, "rendezvousIP": "192.168.111.20",
           "additionalNTPSources": ["a.b"], "bootArtifactsBaseURL": "http://x/", "minimalISO": True, "hosts": hosts}  # fmt: skip
    return [new, {"apiVersion": "v1alpha1", "spec": {"rendezvousIP": "1.2.3.4", "hosts": hosts}}]


def _read_agent_config(data: bytes) -> None:
    config = agent_config.load_agent_config(data.decode("utf-8", "replace"), _LOG)
    profile = RELEASES["4.22"]
    with contextlib.suppress(InstallerError):
        agent_config.hosts_of(copy.deepcopy(config), None, RELEASES["4.14"], _LOG)
    hosts = agent_config.hosts_of(config, None, profile, _LOG)
    agent_config.check_host_counts(hosts, {"master": 3, "arbiter": 0, "worker": 2}, _LOG)
    found = nmstate_configs(None, hosts, profile)
    dump_nmstate_configs(found)
    network.static_files([doc["spec"] for doc in found])
    agent_config.rendezvous_ip(config, hosts, found)


def _documents() -> list[Any]:
    profile, config = RELEASES["4.22"], copy.deepcopy(_install_configs()[2])
    install_config._lookup = _quick_lookup
    install_config.set_defaults(config, profile, "4.22.0")
    nic = {"name": "eth0", "macAddress": "52:54:00:00:00:01"}
    states = nmstate_configs(config, [{"networkConfig": _STATE, "interfaces": [nic]}], profile)
    return [
        agent_cluster_install(config, None, [], "4.22.0", profile), infra_env(config, None, profile),
        pull_secret(config, profile), cluster_image_set(config, "quay.io/a:b", "4.22.0", profile),
        cluster_deployment(config, profile), *states,
    ]  # fmt: skip


def _read_manifest(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    profile = RELEASES["4.22"]
    readers: list[Callable[[], Any]] = [
        lambda: check_agent_cluster_install(load_agent_cluster_install(text, profile, _LOG)[0], profile),
        lambda: overrides_of(load_agent_cluster_install(text, profile, _LOG)[0]),
        lambda: complete_infra_env(load_infra_env(text), profile),
        lambda: load_pull_secret(text, RELEASES["4.20"]),
        lambda: load_cluster_image_set(text, "quay.io/a:b"),
        lambda: load_cluster_deployment(text),
        lambda: check_labels({"spec": {}}, load_nmstate_configs(text)),
        lambda: network.static_files([doc.get("spec", {}) for doc in load_nmstate_configs(text)]),
        lambda: load_all(text, "openshift/x.yaml"),
    ]
    for read in readers:
        try:
            read()
        except InstallerError:
            continue


def _ignitions() -> list[Any]:
    return [{
        "ignition": {"version": "3.2.0", "config": {"merge": [{"source": "data:,%7B%7D"}]}},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [_KEY], "passwordHash": "x"}]},
        "storage": {"files": [{"path": "/a", "mode": 384, "overwrite": True, "contents": {"source": "data:;base64,eA==", "compression": "gzip"},
                    "append": [{"source": "data:,x"}]}], "directories": [{"path": "/b"}], "links": [{"path": "/c", "target": "/a"}]},
        "systemd": {"units": [{"name": "a.service", "enabled": True, "contents": "[Unit]\n", "dropins": [{"name": "a.conf", "contents": ""}]}]},
    }]  # fmt: skip


def _read_ignition(data: bytes) -> None:
    document = documents.load_json(data, name="x")
    ignition.check(document)
    ignition.files_of(document)
    ignition.check(ignition.merge(document, document))


def _state_bytes(rng: random.Random, document: Any) -> bytes:
    return bent_json(rng, document) if rng.random() < 0.3 else hostile_yaml(rng, document)


def _read_yaml(data: bytes) -> None:
    """The reader itself: the same document whichever way it is asked for, and never more than its limits."""
    limits = documents.Limits(size=1 << 20, nodes=50_000)
    for schema in (documents.GO, documents.NMSTATE):
        try:
            found = documents.read_yaml_all(data, name="x", schema=schema, limits=limits)
        except documents.DocumentError as error:
            assert (
                error.line > 0 and error.column > 0 and str(error) == f"x:{error.line}:{error.column}: {error.problem}"
            )
            assert "\n" not in error.problem and len(error.problem) < 400, error.problem
            continue
        for document in found:
            copy.deepcopy(document.value)
            json.dumps(document.value)
            for path in _paths(document.value, 2000):
                assert document.positions.get(path), path


def _paths(value: Any, most: int) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    waiting: list[tuple[tuple[Any, ...], Any]] = [((), value)]
    while waiting and len(found) < most:
        path, here = waiting.pop()
        found.append(path)
        entries = here.items() if isinstance(here, dict) else enumerate(here) if isinstance(here, list) else ()
        waiting += [((*path, key), item) for key, item in entries]
    return found


def _read_json(data: bytes) -> None:
    try:
        value = documents.load_json(data, name="x")
    except documents.DocumentError as error:
        assert error.line > 0 and error.column > 0 and "\n" not in str(error) and len(str(error)) < 300
        return
    text = json.dumps(value, ensure_ascii=False).encode()
    assert documents.load_json(text, name="x") == value or b"NaN" in text


def _profiles() -> list[Any]:
    found = [
        documents.load_yaml(path.read_bytes(), name=str(path))
        for path in sorted((ROOT / "config_examples").glob("*.yml"))
    ]
    full: dict[str, Any] = {
        "topology": "ha", "stack": "dualstack", "addressing": "static", "master": {"vcpus": 2, "memory_mib": 4096, "extra_disks": [{"size_gib": 5}]},
        "worker": {"count": 2, "disk_bus": "virtio"},
        "nodes": {
            "worker-1": {
                "memory_mib": 4096, "nics": {"eth0": {"mac": "00:00:00:00:00:01", "addresses": ["192.168.130.90", "fd2e::90"]}},
                "bmc": {"username": "a", "password": "b"},
            }
        },
        "network": {"ipv4": "192.168.130.0/24", "ipv6": "fd2e::/64", "mtu": 1500, "offsets": {"api": 5}},
        "extra_networks": [{"name": "s0", "ipv4": "192.168.221.0/24"}],
        "vips": {"api": ["192.168.130.5", "fd2e::5"], "ingress": None}, "services": {"registry": {"port": 5001, "password": "x"}},
        "installer": {"fips": False, "install_config": {"proxy": {"httpProxy": "http://1.2.3.4:80"}}, "ntp_sources": ["192.168.130.1"]},
        "settings": {"REBOOT_DELAY_SECONDS": 5}, "release": {"payload": "lab", "payload_overrides": {}},
        "faults": [{"kind": "power_off", "node": "worker-1", "when": "Writing image to disk", "seconds": 20}],
    }  # fmt: skip
    return [*found, full, full]


def _read_profile(data: bytes) -> None:
    path = scratch() / "profile.yml"
    path.write_bytes(data)
    made = build.build(profile.load(path), "ostest")
    assert stored.findings(made) == []
    again = documents.load_yaml(rundir.dump(made), name="plan.yaml")
    assert json.dumps(again) == json.dumps(made)
    _use(made)


def _use(made: Any) -> None:
    """What later stages derive of a plan."""
    rundir.dump(rundir.inventory(made, scratch()))
    configs.install_config(made, pull_secret={"auths": {}}, ssh_key="", trust_bundle="")
    configs.agent_config(made)
    configs.settings_manifest(made)


@functools.cache
def _plans() -> list[Any]:
    return [
        build.build(profile.load(path), "ostest")
        for path in sorted((ROOT / "config_examples").glob("*.yml"))
        if "ocp" not in path.name
    ]


def _read_plan(data: bytes) -> None:
    folder = scratch()
    (folder / rundir.PLAN).write_bytes(data)
    _use(rundir.load_plan(folder))


def _read_state(data: bytes) -> None:
    folder = scratch()
    (folder / state.FILE).write_bytes(data)
    state.load(folder)


def _networks() -> list[Any]:
    pairs = [{"mac_address": "52:54:00:00:00:01", "logical_nic_name": "eth0"}]
    return [
        [
            {"network_yaml": json.dumps(_STATE), "mac_interface_map": pairs},
            {"network_yaml": "interfaces: []", "mac_interface_map": pairs},
        ]
    ]


def _network_text(rng: random.Random, document: Any) -> bytes:
    """What an infra-env is given: the text of a network state is damaged, and now and then what is around it."""
    document = copy.deepcopy(document)
    document[0]["network_yaml"] = hostile_yaml(rng, _STATE).decode("utf-8", "replace")
    return bent_json(rng, document) if rng.random() < 0.3 else json.dumps(document).encode()


_NETWORKS = MODELS.compile({"type": "array", "items": {"$ref": "#/definitions/static-network"}})


def _read_networks(data: bytes) -> None:
    found = documents.load_json(data, name="x")
    with contextlib.suppress(ApiError, Invalid):
        infra_envs._static_networks(MODELS.body(_NETWORKS, found, "static_network_config"))


def _kernel_arguments(rng: random.Random, text: Any) -> bytes:
    return mangle(rng, text)


def _read_kernel_arguments(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    words = text.split()[:5]
    kargs.edit(text, append=words[:2], delete=words[2:3], replace=words[3:])
    kargs.json_object(data, "kargs.json")


TARGETS: dict[str, Target] = {
    "yaml": Target(lambda: [*_install_configs(), *_states(), {"a": [1, 2.5, None, "x"]}], hostile_yaml, _read_yaml),
    "json": Target(lambda: [*_ignitions(), *_install_configs(), {"a": [1, 2.5, None, "x"]}], hostile_json, _read_json),
    "profile": Target(_profiles, hostile_yaml, _read_profile),
    "plan": Target(_plans, hostile_yaml, _read_plan),
    "state": Target(lambda: [{"created": [{"kind": "sandbox", "name": "a", "host": "b"}], "stages": {"prepare": {}}}], hostile_json, _read_state),
    "install-config": Target(_install_configs, hostile_yaml, _read_install_config),
    "agent-config": Target(_agent_configs, hostile_yaml, _read_agent_config),
    "manifests": Target(_documents, hostile_yaml, _read_manifest),
    "nmstate": Target(_states, _state_bytes, lambda data: nmstate.generate(nmstate.load(data))),
    "static-networks": Target(_networks, _network_text, _read_networks),
    "registries": Target(
        lambda: [mirrors.render(_INSTALL["imageDigestSources"], blocked=True).encode()], mangle,
        lambda data: mirrors.mirrors_of("quay.io/a/b:c", mirrors.parse(data.decode("utf-8", "replace"))),
    ),
    "cpio": Target(images.archives, mangle, lambda data: cpio.read_files(io.BytesIO(data), limit=1 << 24)),
    "iso": Target(images.isos, images.mangle_iso, images.read_iso),
    "minimal": Target(images.isos, images.mangle_iso, images.read_for_minimal),
    "miniso": Target(images.recipes, mangle, images.read_recipe),
    "recording": Target(recordings.recordings, recordings.damaged, recordings.read),
    "ignition": Target(_ignitions, hostile_json, _read_ignition),
    "kargs": Target(
        lambda: [b'{"default": "a b=c", "files": [{"path": "x", "offset": 5, "end": "#"}], "size": 900}', b"a b=c console=ttyS0 root=x"],
        _kernel_arguments, _read_kernel_arguments,
    ),
}  # fmt: skip
