"""What is made for an installation: configs of hosts, kubeconfig, install-config; and the release's images."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.api_server import install_config, prepare, release
from ansible_collections.agentlab.ocp.payload.api_server.engine import preparation
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials
from cryptography import x509

from .lab import Lab
from .test_install import VIPS, drive

CLUSTER: dict[str, Any] = {
    "id": "c",
    "name": "ostest",
    "base_dns_domain": "test.example",
    "control_plane_count": 3,
    "platform": {"type": "baremetal"},
    "cluster_networks": [{"cidr": "10.128.0.0/14", "host_prefix": 23}],
    "service_networks": [{"cidr": "172.30.0.0/16"}],
    "machine_networks": [{"cidr": "192.168.111.0/24"}],
    "api_vips": [{"ip": "192.168.111.5"}],
    "ingress_vips": [{"ip": "192.168.111.4"}],
    "install_config_overrides": '{"fips": true, "networking": {"networkType": "Calico"}}',
    "pull_secret": "{}",
    "ssh_public_key": "ssh",
}
NICS = [{"name": "enp1s0", "mac_address": "52:54:00:aa:bb:01"}]
HOST = {
    "id": "h",
    "role": "master",
    "infra_env_id": "i",
    "requested_hostname": "master-0",
    "inventory": json.dumps({"interfaces": NICS}),
}


def signers(folder: Path) -> Path:
    folder.mkdir()
    for name in credentials.SIGNERS:
        for kind, text in credentials.signer(name).items():
            (folder / f"{name}.{kind}").write_text(text)
    (folder / "kubeadmin-password.hash").write_text("$2a$10$x")
    return folder


def task(tls: Path | None = None, networks: list[dict[str, Any]] | None = None, render: Any = None) -> prepare.Job:
    return prepare.Job(
        CLUSTER, [HOST], tls, {}, {}, {}, {"i": json.dumps(networks or [])}, render, render is None, "agent-installer"
    )


def test_kubeconfig_is_signed_by_the_installer_s_signers(tmp_path: Path) -> None:
    tls = signers(tmp_path / "tls")
    files = prepare.files(task(tls))
    config = yaml.safe_load(files["kubeconfig-noingress"])
    cluster = config["clusters"][0]
    assert (cluster["name"], cluster["cluster"]["server"]) == ("ostest", "https://api.ostest.test.example:6443")
    authorities = x509.load_pem_x509_certificates(base64.b64decode(cluster["cluster"]["certificate-authority-data"]))
    assert [entry.subject.rfc4514_string().split(",")[0] for entry in authorities] == [
        f"CN=kube-apiserver-{name}-signer" for name in ("localhost", "service-network", "lb")
    ]
    user = x509.load_pem_x509_certificate(base64.b64decode(config["users"][0]["user"]["client-certificate-data"]))
    user.verify_directly_issued_by(x509.load_pem_x509_certificate((tls / f"{prepare.ADMIN_SIGNER}.crt").read_bytes()))
    assert "O=system:masters" in user.subject.rfc4514_string()
    assert "kubeadmin-password" not in files


def test_install_config_has_the_overrides() -> None:
    config = yaml.safe_load(install_config.text(task().cluster, task().hosts))
    assert config["fips"] is True
    assert config["networking"]["networkType"] == "Calico"
    assert config["networking"]["machineNetwork"] == [{"cidr": "192.168.111.0/24"}]
    assert config["platform"]["baremetal"]["apiVIPs"] == ["192.168.111.5"]


@pytest.mark.parametrize(("kind", "shown"), [("cluster-managed", None), ("user-managed", {"type": "UserManaged"})])
def test_install_config_names_an_outside_load_balancer(kind: str, shown: dict[str, str] | None) -> None:
    """The operators of a real payload read it there: without it they would serve the addresses themselves."""
    one = task()
    config = yaml.safe_load(install_config.text({**one.cluster, "load_balancer": {"type": kind}}, one.hosts))
    assert config["platform"]["baremetal"].get("loadBalancer") == shown


def test_install_config_of_a_single_node_names_its_disk() -> None:
    one = task()
    host = {**one.hosts[0], "bootstrap": True, "installation_disk_id": "/dev/disk/by-id/wwn-0x1"}
    single = replace(one, hosts=[host], cluster={**one.cluster, "control_plane_count": 1})
    config = yaml.safe_load(install_config.text(single.cluster, single.hosts))
    assert config["bootstrapInPlace"] == {"installationDisk": "/dev/disk/by-id/wwn-0x1"}
    assert "bootstrapInPlace" not in yaml.safe_load(install_config.text(one.cluster, one.hosts))


def test_host_config_has_name_and_keyfiles_with_real_names() -> None:
    state = """
interfaces:
- name: eth0
  type: ethernet
  state: up
  ipv4: {enabled: true, dhcp: false, address: [{ip: 192.168.111.20, prefix-length: 24}]}
- name: eth0.7
  type: vlan
  state: up
  vlan: {base-iface: eth0, id: 7}
"""
    mine = {
        "network_yaml": state,
        "mac_interface_map": [{"mac_address": "52:54:00:AA:BB:01", "logical_nic_name": "eth0"}],
    }
    other = {
        "network_yaml": "interfaces: []",
        "mac_interface_map": [{"mac_address": "52:54:00:aa:bb:02", "logical_nic_name": "eth0"}],
    }
    configs = {
        f"{role}.ign": {"ignition": {"version": "3.2.0"}, "systemd": {"units": []}}
        for role in ("bootstrap", "master", "worker", "arbiter")
    }
    files = prepare.files(task(Path("/none"), [other, mine], lambda *args, **kwargs: configs))
    config = json.loads(files["host/h"])
    texts = {
        entry["path"]: base64.b64decode(entry["contents"]["source"].partition(",")[2]).decode()
        for entry in config["storage"]["files"]
    }
    folder = "/etc/NetworkManager/system-connections"
    assert set(texts) == {"/etc/hostname", f"{folder}/enp1s0.nmconnection", f"{folder}/enp1s0.7.nmconnection"}
    assert texts["/etc/hostname"] == "master-0\n"
    assert "interface-name=enp1s0\n" in texts[f"{folder}/enp1s0.nmconnection"]
    assert "parent=enp1s0\n" in texts[f"{folder}/enp1s0.7.nmconnection"]
    assert {entry["mode"] for entry in config["storage"]["files"]} == {0o644, 0o600}
    assert json.loads(files["master.ign"]) == configs["master.ign"]


def test_override_joins_lists() -> None:
    content = json.dumps(
        {"ignition": {"version": "3.2.0"}, "storage": {"files": [{"path": "/a"}, {"path": "/b"}]}}
    ).encode()
    made = json.loads(prepare.override(content, '{"storage": {"files": [{"path": "/b", "mode": 1}, {"path": "/c"}]}}'))
    assert made["storage"]["files"] == [{"path": "/a"}, {"path": "/b", "mode": 1}, {"path": "/c"}]


async def test_with_the_cluster_s_own_render(tmp_path: Path) -> None:
    pytest.importorskip("ansible_collections.agentlab.ocp.payload.cluster.ignition")
    tls = signers(tmp_path / "tls")
    env = {
        "DUMMY_IGNITION": "",
        "RELEASE_IMAGES": "",
        "EPHEMERAL_INSTALLER_CLUSTER_TLS_CERTS_OVERRIDE_DIR": str(tls),
        "SERVICE_BASE_URL": "http://192.168.111.20:8090/",
    }
    async with Lab(tmp_path, env) as lab:
        images = {
            "hyperkube": "registry.example.test/a@sha256:1",
            "agent-installer-csr-approver": "b",
            "release": "c",
            "agent-installer-orchestrator": "d",
        }
        lab.engine.images = lambda cluster: images
        cluster, agents = await drive(lab, 3, "Rebooting", **VIPS)
        for agent in agents:
            assert agent.ignition["ignition"]["version"].startswith("3.")
            assert "/etc/hostname" in {entry["path"] for entry in agent.ignition["storage"]["files"]}
        code, raw, __ = await lab.raw("GET", f"/clusters/{cluster['id']}/downloads/files?file_name=bootstrap.ign")
        assert code == 200
        assert json.loads(raw)["ignition"]["version"].startswith("3.")


async def test_release_reports_images_and_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, str]] = []

    def contents(*arguments: str) -> release.Contents:
        asked.append(arguments)
        images = {
            "machine-config-operator": "r.test/mco@sha256:1",
            "agent-installer-orchestrator": "r.test/other@sha256:2",
        }
        return release.Contents("4.22.7-lab", images)

    monkeypatch.setattr(release, "contents", contents)
    async with Lab(
        tmp_path, {"DUMMY_IGNITION": "false", "OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR": "m.test/x@sha256:3"}
    ) as lab:
        cluster = lab.engine.cluster((await lab.cluster())["id"])
        await lab.engine._releases[cluster["id"]]
        assert asked == [(cluster["ocp_release_image"], cluster["_pull_secret"], "m.test/x@sha256:3")]
        installer = lab.config.env["INSTALLER_IMAGE"]
        assert lab.engine.needed_images(cluster) == (cluster["ocp_release_image"], "r.test/mco@sha256:1", installer)
        assert lab.engine.images(cluster)["agent-installer-orchestrator"] == installer
        assert lab.engine.release_host(cluster) == "m.test"
        assert lab.engine.job(cluster).cluster["openshift_version"] == "4.22.7-lab"  # of the installed cluster
        assert cluster["openshift_version"] == "4.22.0-lab"  # of the request


async def test_release_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def contents(*__: str) -> release.Contents:
        raise ValueError("no such image")

    monkeypatch.setattr(release, "contents", contents)
    monkeypatch.setattr(preparation, "RELEASE_WAITS", (0.0, 0.0))
    async with Lab(tmp_path, {"DUMMY_IGNITION": "false"}) as lab:
        cluster = lab.engine.cluster((await lab.cluster())["id"])
        lab.engine.set_cluster_status(cluster, "preparing-for-installation", "")
        await lab.engine._prepare(cluster)
        assert cluster["last-installation-preparation"] == {
            "status": "failed",
            "reason": "the release image cannot be read: no such image",
        }


def test_mirrors() -> None:
    text = """
[[registry]]
  location = "registry.agentlab.test/lab/release"
  [[registry.mirror]]
    location = "virthost.ostest.test:5000/lab/release"
[[registry]]
  location = "registry.agentlab.test/lab/payload"
"""
    places = release.mirrors(release.configured_mirrors(text), "first/x@sha256:1")
    assert places("registry.agentlab.test/lab/release@sha256:1") == [
        "first/x@sha256:1",
        "virthost.ostest.test:5000/lab/release@sha256:1",
    ]
    assert release.mirrors(release.configured_mirrors(text))("registry.agentlab.test/lab/releases@sha256:1") == []
    assert release.mirrors(release.configured_mirrors(text))("registry.agentlab.test/lab/payload@sha256:1") == []


def test_nodes_get_the_trust_bundle_of_the_infra_env(tmp_path: Path) -> None:
    seen: dict[str, Any] = {}

    def render(*_args: Any, node_files: dict[str, str], **_more: Any) -> dict[str, Any]:
        seen.update(node_files)
        return {
            f"{role}.ign": {"ignition": {"version": "3.2.0"}} for role in ("bootstrap", "master", "arbiter", "worker")
        }

    job = task(signers(tmp_path / "tls"), render=render)
    job.trust = "-----BEGIN CERTIFICATE-----\n"
    prepare.files(job)
    assert seen[prepare.TRUST_ANCHOR] == job.trust


def test_a_host_of_day_2_is_pointed_to_its_cluster() -> None:
    cluster: Any = {"api_vip_dns_name": "api.ostest.test.example"}
    host: Any = {**HOST, "role": "worker", "machine_config_pool_name": "worker"}
    config = json.loads(prepare.day2_ignition(cluster, host, "[]"))
    assert config["ignition"] == {
        "version": "3.2.0",
        "config": {"merge": [{"source": "http://api.ostest.test.example:22624/config/worker"}]},
    }
    assert [entry["path"] for entry in config["storage"]["files"]] == ["/etc/hostname"]
    url = "https://api-int.ostest.test.example:22623/config/worker"
    cluster["ignition_endpoint"] = {"url": url, "ca_certificate": "Q0E="}
    assert json.loads(prepare.day2_ignition(cluster, host, "[]"))["ignition"] == {
        "version": "3.2.0",
        "config": {"merge": [{"source": url}]},
        "security": {"tls": {"certificateAuthorities": [{"source": "data:text/plain;base64,Q0E="}]}},
    }
