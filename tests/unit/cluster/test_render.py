"""What is rendered for an installation, and what applying it leaves on a host."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.cluster import cloud, keepalived, machine_config_daemon
from ansible_collections.agentlab.ocp.payload.cluster.configs import merge
from ansible_collections.agentlab.ocp.payload.cluster.facts import virtual_addresses
from ansible_collections.agentlab.ocp.payload.cluster.ignition import render
from ansible_collections.agentlab.ocp.payload.cluster.machine_config_daemon import apply, decode
from ansible_collections.agentlab.ocp.payload.cluster.machine_config_server import served_ignition

REGISTRIES = """[[registry]]
  location = "registry.agentlab.test/lab/payload"
  mirror-by-digest-only = true
  [[registry.mirror]]
    location = "virthost:5000/lab/payload"
"""
CHRONY = """apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 50-workers-chrony, labels: {machineconfiguration.openshift.io/role: worker}}
spec: {config: {ignition: {version: 3.2.0}, storage: {files: [{path: /etc/chrony.conf, mode: 420, contents: {source: "data:,server"}}]}}}
"""


def cluster(**fields: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "name": "ostest",
        "base_dns_domain": "lab.test",
        "openshift_version": "4.22.0-lab",
        "platform": {"type": "baremetal"},
        "machine_networks": [{"cidr": "192.168.111.0/24"}, {"cidr": "fd2e:6f44:5dd8::/64"}],
        "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
        "service_networks": [{"cidr": "172.30.0.0/16"}],
        "ssh_public_key": "ssh-rsa A\nssh-rsa B",
        "pull_secret": '{"auths": {"x": {}}}',
        **fields,
    }


def host(name: str, index: int, role: str = "master", bootstrap: bool = False) -> dict[str, Any]:
    nic = {
        "name": "eth0",
        "ipv4_addresses": [f"192.168.111.{index}/24"],
        "ipv6_addresses": [f"fd2e:6f44:5dd8::{index}/64", "fe80::1/64"],
    }
    return {
        "id": name,
        "role": role,
        "bootstrap": bootstrap,
        "requested_hostname": name,
        "inventory": json.dumps({"interfaces": [nic]}),
    }


VIPS: dict[str, Any] = {
    "api_vips": [{"ip": "192.168.111.5"}, {"ip": "fd2e:6f44:5dd8::5"}],
    "ingress_vips": [{"ip": "192.168.111.4"}],
}
HA = [host("m0", 20, bootstrap=True), host("m1", 21), host("m2", 22), host("w0", 23, "worker")]


def rendered(tls_dir: Path, hosts: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    files = {"/etc/containers/registries.conf": REGISTRIES, "/etc/pki/ca-trust/source/anchors/domain.crt": "CA"}
    return render(
        cluster(**fields),
        hosts,
        tls_dir,
        {"hyperkube": "lab/hk@sha256:1"},
        {"OPERATOR_SETTLE_SECONDS": "2"},
        {"openshift/chrony.yaml": CHRONY},
        node_files=files,
    )


def files(config: dict[str, Any]) -> dict[str, bytes]:
    return {entry["path"]: decode(entry["contents"]) for entry in config["storage"]["files"]}


def seeds(configs: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    found = json.loads(files(configs["bootstrap.ign"])["/opt/openshift/manifests.json"])
    return {(o["kind"], o["metadata"]["name"]): o for o in found}


def test_disk_configs_need_no_network(tls_dir: Path) -> None:
    configs = rendered(tls_dir, HA, **VIPS)
    assert set(configs) == {"bootstrap.ign", "master.ign", "worker.ign", "arbiter.ign"}
    for name in ("master.ign", "worker.ign", "arbiter.ign"):
        config = configs[name]
        assert config["ignition"] == {"version": "3.2.0"}
        assert all(entry["contents"]["source"].startswith("data:") for entry in config["storage"]["files"])
        assert [u["name"] for u in config["systemd"]["units"]] == ["machine-config-daemon-firstboot.service"]
        assert not any(path.endswith(".key") for path in files(config)), "keys are fetched, not carried"
        pointer = json.loads(files(config)["/etc/kubernetes/machine-config.json"])
        assert pointer["url"] == f"https://api-int.ostest.lab.test:22623/config/{name.removesuffix('.ign')}"
    assert configs["master.ign"]["passwd"]["users"] == [
        {"name": "core", "sshAuthorizedKeys": ["ssh-rsa A", "ssh-rsa B"]}
    ]


def test_a_node_s_own_python_runs_the_daemon_of_its_disk(tls_dir: Path, tmp_path: Path) -> None:
    """The node has none of this project's modules."""
    program = tmp_path / "machine-config-daemon"
    program.write_bytes(files(rendered(tls_dir, HA, **VIPS)["worker.ign"])["/usr/local/bin/machine-config-daemon"])
    node_config = tmp_path / "machine-config.json"
    node_config.write_text('{"url": [')
    command = ["/usr/bin/python3", "-I", str(program), "firstboot", "--node-config", str(node_config)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.endswith(f"DocumentError: {node_config}:1:10: unexpected end of JSON input\n"), done.stderr


def test_bootstrap_has_what_upstream_s_installer_takes_from_it(tls_dir: Path, tmp_path: Path) -> None:
    config = rendered(tls_dir, HA, **VIPS)["bootstrap.ign"]
    assert files(config)["/root/.docker/config.json"] == b'{"auths": {"x": {}}}'
    units = {unit["name"]: unit.get("enabled") for unit in config["systemd"]["units"]}
    assert units == {"bootkube.service": True, "approve-csr.service": None, "progress.service": None}
    # The installer calls the daemon in a container, with the host's path of the config.
    root, calls = tmp_path / "rootfs", tmp_path / "calls"
    (root / "opt/install-dir").mkdir(parents=True)
    (root / "opt/install-dir/bootstrap.ign").write_text(json.dumps(config))
    (tmp_path / "enter").write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    (tmp_path / "enter").chmod(0o755)
    words = [
        "start",
        "--node-name",
        "localhost",
        "--root-mount",
        str(root),
        "--once-from",
        "/opt/install-dir/bootstrap.ign",
    ]
    assert machine_config_daemon.main([*words, "--skip-reboot", "--enter", str(tmp_path / "enter")]) == 0
    assert (root / "opt/openshift/manifests.json").exists()
    assert "Type=oneshot" in (root / "etc/systemd/system/progress.service").read_text()
    assert calls.read_text().splitlines() == [
        "systemctl --no-reload enable bootkube.service", "systemctl daemon-reload"
    ]  # fmt: skip


def test_first_objects(tls_dir: Path) -> None:
    objects = seeds(rendered(tls_dir, HA, **VIPS))
    infrastructure = objects["Infrastructure", "cluster"]["status"]
    assert (infrastructure["controlPlaneTopology"], infrastructure["apiServerURL"]) == (
        "HighlyAvailable",
        "https://api.ostest.lab.test:6443",
    )
    assert infrastructure["platformStatus"]["baremetal"]["apiServerInternalIPs"] == [
        "192.168.111.5",
        "fd2e:6f44:5dd8::5",
    ]
    assert objects["ConfigMap", "openshift-install-manifests"]["data"]["invoker"] == "agent-installer"
    assert objects["ImageDigestMirrorSet", "image-digest-mirror"]["spec"]["imageDigestMirrors"] == [
        {"source": "registry.agentlab.test/lab/payload", "mirrors": ["virthost:5000/lab/payload"]}
    ]
    pools = {role: objects["MachineConfigPool", role]["spec"]["configuration"]["name"] for role in ("master", "worker")}
    worker = files(served_ignition(objects["MachineConfig", pools["worker"]]))
    assert worker["/etc/chrony.conf"] == b"server", "extra MachineConfigs reach the nodes"
    assert (
        json.loads(worker["/etc/machine-config-daemon/node-annotations.json"])[
            "machineconfiguration.openshift.io/currentConfig"
        ]
        == pools["worker"]
    )
    assert "/etc/kubernetes/pki/server.key" not in worker
    master = served_ignition(objects["MachineConfig", pools["master"]])
    texts = {u["name"]: u["contents"] for u in master["systemd"]["units"]}
    assert texts.keys() == {"kubelet.service", "kube-apiserver.service"}
    # Both run the same image, and each would pull it: the second one waits for the first one's pull.
    assert texts["kubelet.service"].count("podman pull") == 1 and "podman pull" not in texts["kube-apiserver.service"]
    assert "After=network-online.target kubelet.service\n" in texts["kube-apiserver.service"]
    assert (
        "podman pull"
        not in served_ignition(objects["MachineConfig", pools["worker"]])["systemd"]["units"][0]["contents"]
    )
    assert files(master)["/var/lib/kubelet/config.json"] == b'{"auths": {"x": {}}}'


def test_certificates_fit_the_kubeconfig(tls_dir: Path, tmp_path: Path) -> None:
    found = files(rendered(tls_dir, HA, **VIPS)["bootstrap.ign"])
    for name in ("server.crt", "member.crt"):
        (tmp_path / name).write_bytes(found[f"/etc/kubernetes/pki/{name}"])
    (tmp_path / "ca.crt").write_bytes(found["/etc/kubernetes/ca.crt"])
    for name in ("api.ostest.lab.test", "api-int.ostest.lab.test", "localhost"):
        subprocess.run(
            ["openssl", "verify", "-x509_strict", "-CAfile", "ca.crt", "-verify_hostname", name, "server.crt"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    for address in ("192.168.111.5", "fd2e:6f44:5dd8::5", "192.168.111.22", "127.0.0.1"):
        subprocess.run(
            ["openssl", "verify", "-CAfile", "ca.crt", "-verify_ip", address, "server.crt"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    subprocess.run(
        ["openssl", "verify", "-CAfile", tls_dir / "admin-kubeconfig-signer.crt", "member.crt"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )


def test_single_node(tls_dir: Path) -> None:
    configs = rendered(tls_dir, [host("m0", 20, bootstrap=True)], api_vips=[{"ip": "192.168.111.20"}])
    found = files(configs["bootstrap.ign"])
    facts = json.loads(found["/etc/kubernetes/cluster.json"])
    assert (facts["topology"], facts["api_vips"], facts["schedulable_masters"]) == ("SingleReplica", [], True)
    base = json.loads(found["/opt/openshift/master-base.ign"])
    units = {u["name"]: u["enabled"] for u in base["systemd"]["units"]}
    assert units == {
        "kubelet.service": True,
        "kube-apiserver.service": True,
        "machine-config-daemon-firstboot.service": False,
    }
    assert all(u["contents"] for u in base["systemd"]["units"])


def test_bare_metal_hosts(tls_dir: Path) -> None:
    """Machines are linked to hosts for the control plane only, which must not be touched yet."""
    objects = seeds(rendered(tls_dir, HA, **VIPS))
    hosts = {name: obj for (kind, name), obj in objects.items() if kind == "BareMetalHost"}
    consumers = {name: obj["spec"].get("consumerRef", {}).get("name", "") for name, obj in hosts.items()}
    machines = [name for kind, name in objects if kind == "Machine"]
    assert (
        list(consumers) == ["m0", "m1", "m2", "w0"]
        and list(consumers.values())[:3] == machines[:3]
        and not consumers["w0"]
    )
    assert [name.rpartition("ostest-")[2][6:] for name in machines] == ["master-0", "master-1", "master-2", "worker-0"]
    assert [
        name
        for name, obj in hosts.items()
        if "baremetalhost.metal3.io/paused" in obj["metadata"].get("annotations", {})
    ] == ["m0", "m1", "m2"]
    assert ("Provisioning", "provisioning-configuration") in objects
    other = seeds(rendered(tls_dir, HA, platform={"type": "none"}, **VIPS))
    assert not {"BareMetalHost", "Machine", "Provisioning"} & {kind for kind, __ in other}


def test_bmcs_of_the_install_config_are_the_cluster_s(tls_dir: Path) -> None:
    bmc = {
        "address": "redfish://192.168.111.1/1",
        "username": "u",
        "password": "p",
        "disableCertificateVerification": True,
    }
    entries = [
        {"name": "m0", "bootMACAddress": "52:54:00:00:00:01", "bmc": bmc},
        {"name": "m1", "bmc": {"username": "x"}},
    ]
    overrides = json.dumps({"platform": {"baremetal": {"hosts": entries}}})
    objects = seeds(rendered(tls_dir, HA, install_config_overrides=overrides, **VIPS))
    spec = objects["BareMetalHost", "m0"]["spec"]
    assert spec["bootMACAddress"] == "52:54:00:00:00:01" and spec["consumerRef"]
    assert spec["bmc"] == {
        "address": bmc["address"],
        "credentialsName": "m0-bmc-secret",
        "disableCertificateVerification": True,
    }
    data = objects["Secret", "m0-bmc-secret"]["data"]
    assert {name: base64.b64decode(text).decode() for name, text in data.items()} == {"username": "u", "password": "p"}
    assert "bmc" not in objects["BareMetalHost", "m1"]["spec"] and ("Secret", "m1-bmc-secret") not in objects


@pytest.mark.parametrize(
    ("external", "spec", "status"),
    [
        (
            {"platform_name": "oci", "cloud_controller_manager": "External"},
            "oci",
            {"cloudControllerManager": {"state": "External"}},
        ),
        ({"platform_name": "mine", "cloud_controller_manager": ""}, "mine", None),
        ({}, "Unknown", None),
    ],
)
def test_an_external_platform(
    external: dict[str, str], spec: str, status: dict[str, Any] | None, tls_dir: Path
) -> None:
    configs = rendered(tls_dir, HA[:1], platform={"type": "external", "external": external})
    objects = seeds(configs)
    infrastructure = objects["Infrastructure", "cluster"]
    assert infrastructure["spec"]["platformSpec"] == {"type": "External", "external": {"platformName": spec}}
    assert infrastructure["status"]["platformStatus"].get("external") == status
    facts = json.loads(files(configs["bootstrap.ign"])["/etc/kubernetes/cluster.json"])
    assert cloud.waited_for(facts) is (status is not None)
    section = yaml.safe_load(objects["ConfigMap", "cluster-config-v1"]["data"]["install-config"])["platform"][
        "external"
    ]
    assert section.get("platformName") == external.get("platform_name")


@pytest.mark.parametrize("kind", ["cluster-managed", "user-managed"])
def test_no_node_holds_the_addresses_of_an_outside_load_balancer(kind: str, tls_dir: Path) -> None:
    configs = rendered(tls_dir, HA, **VIPS, load_balancer={"type": kind})
    facts = json.loads(files(configs["bootstrap.ign"])["/etc/kubernetes/cluster.json"])
    objects, outside = seeds(configs), kind == "user-managed"
    status = objects["Infrastructure", "cluster"]["status"]["platformStatus"]["baremetal"]
    assert status.get("loadBalancer") == ({"type": "UserManaged"} if outside else None)
    assert status["apiServerInternalIPs"] == [vip["ip"] for vip in VIPS["api_vips"]]
    config = yaml.safe_load(objects["ConfigMap", "cluster-config-v1"]["data"]["install-config"])
    assert config["platform"]["baremetal"].get("loadBalancer") == status.get("loadBalancer")
    assert virtual_addresses(facts) == (([], []) if outside else (facts["api_vips"], facts["ingress_vips"]))


@pytest.mark.parametrize(("platform", "kind"), [("vsphere", "VSphere"), ("nutanix", "Nutanix")])
def test_platforms_with_a_cloud_provider(platform: str, kind: str, tls_dir: Path) -> None:
    configs = rendered(tls_dir, HA, platform={"type": platform}, **VIPS)
    status = seeds(configs)["Infrastructure", "cluster"]["status"]["platformStatus"]
    assert status["type"] == kind and status[platform]["apiServerInternalIPs"] == [
        vip["ip"] for vip in VIPS["api_vips"]
    ]
    assert cloud.waited_for(json.loads(files(configs["bootstrap.ign"])["/etc/kubernetes/cluster.json"]))


@pytest.mark.parametrize(
    ("server", "kept"), [("vc.test", {"vc.test.username": "u", "vc.test.password": "p"}), ("vcenterplaceholder", None)]
)
def test_logins_of_vcenters_are_in_a_secret_alone(server: str, kept: dict[str, str] | None, tls_dir: Path) -> None:
    center = {"server": server, "user": "u", "password": "p", "datacenters": ["dc"]}
    overrides = json.dumps({"platform": {"vsphere": {"vcenters": [center]}}})
    objects = seeds(rendered(tls_dir, HA, platform={"type": "vsphere"}, install_config_overrides=overrides, **VIPS))
    config = yaml.safe_load(objects["ConfigMap", "cluster-config-v1"]["data"]["install-config"])
    assert config["platform"]["vsphere"]["vcenters"] == [{"server": server, "datacenters": ["dc"]}]
    secret = objects.get(("Secret", "vsphere-creds"))
    found = secret and {name: base64.b64decode(text).decode() for name, text in secret["data"].items()}
    assert found == kept


def test_a_network_plugin_that_the_service_knows_by_the_overrides_alone(tls_dir: Path) -> None:
    """As the agent-based installer passes on Calico; the rest of the section stays."""
    overrides = json.dumps({"networking": {"networkType": "Calico"}})
    objects = seeds(rendered(tls_dir, HA, network_type="OVNKubernetes", install_config_overrides=overrides, **VIPS))
    assert objects["Network", "cluster"]["spec"]["networkType"] == "Calico"
    assert objects["Network", "cluster"]["status"]["networkType"] == "Calico"
    config = yaml.safe_load(objects["ConfigMap", "cluster-config-v1"]["data"]["install-config"])
    assert config["networking"]["networkType"] == "Calico"
    assert config["networking"]["serviceNetwork"] == ["172.30.0.0/16"]


def test_topologies(tls_dir: Path) -> None:
    arbiter = [host("m0", 20, bootstrap=True), host("m1", 21), host("a0", 22, "arbiter")]
    objects = seeds(rendered(tls_dir, arbiter, **VIPS))
    assert objects["Infrastructure", "cluster"]["status"]["controlPlaneTopology"] == "HighlyAvailableArbiter"
    assert ("MachineConfigPool", "arbiter") in objects
    assert (
        seeds(rendered(tls_dir, arbiter[:2], **VIPS))["Infrastructure", "cluster"]["status"]["controlPlaneTopology"]
        == "DualReplica"
    )


@pytest.mark.parametrize(
    ("text", "error"), [("a: [", "is not YAML"), ("a: 1", "apiVersion, kind and metadata.name are required")]
)
def test_bad_manifests_are_named(tls_dir: Path, text: str, error: str) -> None:
    with pytest.raises(ValueError, match=f"manifest openshift/x.yaml .*{error}"):
        render(cluster(), HA, tls_dir, {"hyperkube": "x"}, {}, {"openshift/x.yaml": text}, node_files={})


def test_missing_images_are_named(tls_dir: Path) -> None:
    with pytest.raises(ValueError, match="hyperkube"):
        render(cluster(), HA, tls_dir, {}, {}, {}, node_files={})


def test_apply(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/motd").write_text("old\n")
    config = {
        "storage": {
            "directories": [{"path": "/var/x", "mode": 0o700}],
            "files": [
                {"path": "/etc/a", "mode": 0o600, "contents": {"source": "data:,a%20b"}},
                {"path": "/etc/motd", "append": [{"source": "data:;base64,bmV3"}]},
                {"path": "/etc/pki/ca-trust/source/anchors/x.crt", "contents": {"source": "data:,CA"}},
            ],
            "links": [{"path": "/etc/l", "target": "/etc/a"}],
        },
        "systemd": {
            "units": [
                {"name": "a.service", "enabled": True, "contents": "[Unit]"},
                {"name": "b.service", "mask": True},
                {"name": "c.service", "enabled": False, "dropins": [{"name": "x.conf", "contents": "[Service]"}]},
            ]
        },
    }
    ran: list[list[str]] = []
    assert apply(config, tmp_path, ran.append) == ["a.service"]
    assert (tmp_path / "etc/a").read_text() == "a b" and (tmp_path / "etc/a").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "etc/motd").read_text() == "old\nnew"
    assert (tmp_path / "etc/l").readlink() == Path("/etc/a")
    assert (tmp_path / "etc/systemd/system/c.service.d/x.conf").read_text() == "[Service]"
    assert ran == [
        ["systemctl", "--no-reload", "mask", "b.service"],
        ["systemctl", "--no-reload", "enable", "a.service"],
        ["systemctl", "--no-reload", "disable", "c.service"],
        ["systemctl", "daemon-reload"],
        ["update-ca-trust"],
    ]
    with pytest.raises(ValueError, match="is not a data URL"):
        decode({"source": "https://x/y"})


def test_merge_prefers_the_other() -> None:
    base = {"storage": {"files": [{"path": "/a", "mode": 1}, {"path": "/b"}]}, "systemd": {"units": [{"name": "u"}]}}
    merged = merge(base, {"storage": {"files": [{"path": "/a", "mode": 2}]}, "passwd": {"users": [{"name": "core"}]}})
    assert merged["storage"]["files"] == [{"path": "/b"}, {"path": "/a", "mode": 2}]
    assert merged["passwd"] == {"users": [{"name": "core"}]}
    assert base["storage"]["files"][0]["mode"] == 1


def test_keepalived() -> None:
    text = keepalived.config(
        "ostest", "enp1s0", [keepalived.Instance("api", ["192.168.111.5", "fd00::5"], Path("/run/agentlab/api"))]
    )
    assert "interface enp1s0" in text and 'file "/run/agentlab/api"' in text
    assert (
        "virtual_ipaddress {\n        192.168.111.5/32\n" in text
        and "virtual_ipaddress_excluded {\n        fd00::5/128 no_dad\n" in text
    )
    links = [
        {"ifname": "eth0", "addr_info": [{"local": "10.0.0.1", "scope": "global"}]},
        {
            "ifname": "eth1",
            "addr_info": [{"local": "fe80::1", "scope": "link"}, {"local": "192.168.111.20", "scope": "global"}],
        },
    ]
    assert keepalived.interface_for(["192.168.111.0/24"], links) == ("eth1", ["192.168.111.20"])
    with pytest.raises(LookupError):
        keepalived.interface_for(["172.16.0.0/24"], links)
    assert keepalived.interface_of_route([{"dst": "default", "dev": "eth1"}], links) == ("eth1", ["192.168.111.20"])
    for routes in ([], [{"dst": "default", "dev": "eth9"}]):
        with pytest.raises(LookupError, match="there is no default route"):
            keepalived.interface_of_route(routes, links)


def test_a_worker_of_day_2_needs_only_what_is_served(tls_dir: Path) -> None:
    """Ignition writes what the machine-config server has: the node's role, its settings, who may log in."""
    found = seeds(rendered(tls_dir, HA, **VIPS))
    pool = found["MachineConfigPool", "worker"]
    config = found["MachineConfig", pool["spec"]["configuration"]["name"]]["spec"]["config"]
    written = files(config)
    assert json.loads(written["/etc/kubernetes/machine-config.json"])["url"].endswith("/config/worker")
    assert json.loads(written["/etc/agentlab/settings.json"]) == {"OPERATOR_SETTLE_SECONDS": "2"}
    assert config["passwd"]["users"] == [{"name": "core", "sshAuthorizedKeys": ["ssh-rsa A", "ssh-rsa B"]}]
    assert {unit["name"]: unit["enabled"] for unit in config["systemd"]["units"]} == {"kubelet.service": True}


def test_what_node_joiner_asks_a_cluster_for(tls_dir: Path) -> None:
    found = seeds(rendered(tls_dir, HA, **VIPS, http_proxy="http://p:3128", install_config_overrides='{"fips": true}'))
    data = base64.b64decode(found["Secret", "worker-user-data-managed"]["data"]["userData"])
    ignition = json.loads(data)["ignition"]
    assert ignition["config"] == {"merge": [{"source": "https://api-int.ostest.lab.test:22623/config/worker"}]}
    [authority] = ignition["security"]["tls"]["certificateAuthorities"]
    assert b"BEGIN CERTIFICATE" in decode(authority)
    assert found["ConfigMap", "user-ca-bundle"]["data"] == {"ca-bundle.crt": "CA"}
    assert found["Proxy", "cluster"]["spec"] == {"httpProxy": "http://p:3128", "trustedCA": {"name": "user-ca-bundle"}}
    for role in ("master", "worker"):
        users = found["MachineConfig", f"99-{role}-ssh"]["spec"]["config"]["passwd"]["users"]
        assert users[0]["sshAuthorizedKeys"] == ["ssh-rsa A", "ssh-rsa B"]
        assert found["MachineConfig", f"99-{role}-fips"]["spec"]["fips"] is True
    assert not any("fips" in name for __, name in seeds(rendered(tls_dir, HA, **VIPS, ssh_public_key="")))
    assert ("MachineConfig", "99-worker-ssh") not in seeds(rendered(tls_dir, HA, **VIPS, ssh_public_key=""))


def test_nodes_pull_through_the_proxy(tls_dir: Path) -> None:
    """As the machine-config operator: a file with the variables, and drop-ins of the units that pull."""
    given = {
        "http_proxy": "http://[fd00::1]:3128",
        "https_proxy": "http://[fd00::1]:3128",
        "no_proxy": "lab.test,fd00::/64",
    }
    made = rendered(tls_dir, HA, **VIPS, **given)
    roles = {name: found["spec"]["config"] for (kind, name), found in seeds(made).items() if kind == "MachineConfig"}
    configs = [config for name, config in roles.items() if name.startswith("rendered-")]
    assert configs
    for config in configs:
        lines = files(config)["/etc/mco/proxy.env"].decode().splitlines()
        assert lines[:2] == ["HTTP_PROXY=http://[fd00::1]:3128", "HTTPS_PROXY=http://[fd00::1]:3128"]
        direct = lines[2].removeprefix("NO_PROXY=").split(",")
        assert {"localhost", "127.0.0.1", "api-int.ostest.lab.test", "lab.test", "fd00::/64", "192.168.111.0/24"} <= {
            *direct
        }
        for unit in config["systemd"]["units"]:
            (dropin,) = unit["dropins"]
            assert dropin["name"] == "10-mco-default-env.conf"
            assert dropin["contents"] == "[Service]\nEnvironmentFile=/etc/mco/proxy.env\n"
    found = seeds(made)["Proxy", "cluster"]
    assert found["spec"]["noProxy"] == "lab.test,fd00::/64"
    assert found["status"]["noProxy"] == lines[2].removeprefix("NO_PROXY=")


def test_without_a_proxy_nodes_have_no_variables_of_one(tls_dir: Path) -> None:
    for (kind, __), found in seeds(rendered(tls_dir, HA, **VIPS)).items():
        if kind == "MachineConfig":
            assert "proxy.env" not in json.dumps(found)
