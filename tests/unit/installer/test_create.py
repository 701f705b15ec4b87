"""What `create` makes, keeps and refuses to overwrite."""

from __future__ import annotations

import base64
import json
import random
import re
import shutil
import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.cluster.watcher import add_router_ca
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.build import rebuild
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import check, dumps, files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.resources import read_data_url
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import agent_config, run, state
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.image import published_rootfs
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.plugins.module_utils.releases import RELEASES
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

ED25519 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINS7en3jGSyO+WKV4SMs5aLrrhBVWqFUbW0rMrtFbhGz"
MANIFESTS = ("agent-cluster-install", "cluster-deployment", "cluster-image-set", "infraenv", "pull-secret")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def env(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_files_and_modes(sno: Any) -> None:
    sno.create("cluster-manifests", "image")
    path = sno.path
    for name in MANIFESTS:
        assert (path / "cluster-manifests" / f"{name}.yaml").exists()
    for name in ("auth/kubeconfig", "auth/kubeadmin-password", ".openshift_install_state.json", "agent.x86_64.iso",
                 "cluster-manifests/pull-secret.yaml"):  # fmt: skip
        assert mode(path / name) == 0o600, name
    modes = {file.stem: mode(file) for file in (path / "cluster-manifests").iterdir()}
    assert modes == dict.fromkeys(MANIFESTS, 0o600) | {"cluster-deployment": 0o640, "cluster-image-set": 0o640}
    assert (path / "rendezvousIP").read_text() == "192.168.111.20"
    assert "The rendezvous host IP (node0 IP) is 192.168.111.20" in sno.reported("info")
    assert f"Generated ISO at {path / 'agent.x86_64.iso'}." in sno.reported("info")
    assert f"Cluster-Manifests created in: {path / 'cluster-manifests'} and {path / 'mirror'}" in sno.reported("info")


def test_second_run_changes_nothing(sno: Any) -> None:
    sno.create("cluster-manifests", "image")
    before = {
        p: (p.read_bytes(), p.stat().st_mtime_ns) for p in sno.path.rglob("*") if p.is_file() and "state" not in p.name
    }
    result = sno.create("cluster-manifests", "image")
    assert result.changed == []
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in before} == before


def test_check_mode_writes_nothing_and_reports_what_would_change(sno: Any) -> None:
    result = sno.create("cluster-manifests", "image", dry=True)
    assert "agent.x86_64.iso" in result.changed
    assert result.rendezvous_ip == "192.168.111.20"
    assert sorted(p.name for p in sno.path.iterdir()) == ["agent-config.yaml", "install-config.yaml"]
    assert not any("auths" in diff["after"] for diff in result.diffs)
    sno.create("cluster-manifests", "image")
    assert sno.create("cluster-manifests", "image", dry=True).changed == []


def test_edited_manifest_stays_in_force(sno: Any, make: Any) -> None:
    sno.create("cluster-manifests")
    aci = sno.path / "cluster-manifests" / "agent-cluster-install.yaml"
    made = aci.read_text()
    edited = made.replace("controlPlaneAgents: 1", "controlPlaneAgents: 3")
    aci.write_text(edited)
    sno.create("image")
    sno.create("image")
    assert env(sno.files()["/usr/local/share/start-cluster/start-cluster.env"])["REQUIRED_MASTER_NODES"] == "3"
    assert aci.read_text() == edited

    sno.write("install-config.yaml", make.install_config(fips=True))
    with pytest.raises(
        InstallerError, match=r"install-config.yaml and cluster-manifests/agent-cluster-install.yaml have both"
    ):
        sno.create("image")

    aci.write_text(made)  # no longer edited: the change of the input goes through, also to the file
    sno.create("image")
    assert '{"fips":true}' in aci.read_text()
    with LiveIso(sno.path / "agent.x86_64.iso") as iso:
        assert iso.kargs is not None
        assert iso.kargs.current.endswith("fips=1")


def test_removed_edit_is_made_again(sno: Any) -> None:
    sno.create("cluster-manifests")
    aci = sno.path / "cluster-manifests" / "agent-cluster-install.yaml"
    made = aci.read_text()
    aci.write_text(made.replace("controlPlaneAgents: 1", "controlPlaneAgents: 3"))
    sno.create("image")
    aci.unlink()
    sno.create("cluster-manifests")
    assert aci.read_text() == made


def test_manifests_next_to_a_new_install_config_are_discarded(sno: Any) -> None:
    sno.write("cluster-manifests/infraenv.yaml", {"kind": "InfraEnv", "spec": {"cpuArchitecture": "s390x"}})
    sno.create("cluster-manifests")
    assert any(text.startswith("Discarding the InfraEnv Config that was provided") for text in sno.reported("warning"))
    assert "x86_64" in (sno.path / "cluster-manifests" / "infraenv.yaml").read_text()


def test_consume(sno: Any) -> None:
    sno.create("cluster-manifests", consume=True)
    assert "Consuming Install Config from target directory" in sno.reported("info")
    assert not (sno.path / "install-config.yaml").exists()
    sno.create("image", consume=True)
    assert not (sno.path / "cluster-manifests").exists()
    assert sno.create("image").changed == []


def test_manifests_alone(sno: Any, directory: Any, base_iso: Path, tmp_path: Path) -> None:
    sno.create("cluster-manifests")
    other = type(directory)(tmp_path / "other", base_iso)
    shutil.copytree(sno.path / "cluster-manifests", other.path / "cluster-manifests")
    with pytest.raises(InstallerError, match="missing rendezvousIP"):
        other.create("image")
    other.write("agent-config.yaml", {"apiVersion": "v1alpha1", "rendezvousIP": "fd2e::0:20"})
    other.create("image")
    rendezvous = env(other.files()["/etc/assisted/rendezvous-host.env"])
    assert rendezvous["NODE_ZERO_IP"] == "fd2e::20"
    assert rendezvous["SERVICE_BASE_URL"] == "http://[fd2e::20]:8090/"


def test_a_pull_secret_of_a_manifest_comes_in_normal_form(sno: Any) -> None:
    """Also one that the user wrote: every file has the same text, so it can be found and hidden."""
    sno.create("cluster-manifests")
    sno.path.joinpath("install-config.yaml").unlink()
    shutil.rmtree(sno.path / ".cache", ignore_errors=True)
    (sno.path / state.FILENAME).unlink()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "stringData": {".dockerconfigjson": '{"auths":{"q.io":{"auth":"YTpiPA=="}}}'},
    }
    sno.write("cluster-manifests/pull-secret.yaml", secret)
    sno.create("image")
    files = sno.files()
    text = '{\n  "auths": {\n    "q.io": {\n      "auth": "YTpiPA=="\n    }\n  }\n}'
    assert files["/root/.docker/config.json"] == text
    manifest = yaml.safe_load(files["/etc/assisted/manifests/pull-secret.yaml"])
    assert manifest["stringData"] == {".dockerconfigjson": text}


def test_other_release_makes_manifests_again(sno: Any) -> None:
    sno.create("cluster-manifests")
    sno.create("cluster-manifests", release_version="4.20.1")
    text = (sno.path / "cluster-manifests" / "cluster-image-set.yaml").read_text()
    assert "openshift-4.20.1" in text
    assert "creationTimestamp: null" in text


def test_keys_survive_changes_of_the_input(sno: Any, make: Any) -> None:
    sno.create("image")
    before = state.load(sno.path)
    sno.write("agent-config.yaml", make.agent_config(rendezvousIP="192.168.111.21"))
    sno.create("image")
    after = state.load(sno.path)
    for key in ("*gencrypto.AuthConfig", "*common.InfraEnvID", "*password.KubeadminPassword"):
        assert after[key] == before[key]
    known = state.load_wait_for(sno.path)
    assert known == (
        "192.168.111.21", before["*gencrypto.AuthConfig"]["WatcherAuthToken"], "watcher", 2400.0, False
    )  # fmt: skip


def test_a_kubeconfig_that_trusts_the_router_is_left_alone(sno: Any) -> None:
    sno.create("image")
    path = sno.path / "auth/kubeconfig"
    made = path.read_text()
    assert add_router_ca(path, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    trusting = path.read_text()
    assert sno.create("image").changed == []
    assert path.read_text() == trusting
    path.write_text(trusting.replace("server: https://api.", "server: https://other."))
    assert sno.create("image").changed == ["auth/kubeconfig"]
    assert path.read_text() == made


def test_tokens_of_another_life_are_new(sno: Any) -> None:
    def made(**options: Any) -> str:
        sno.create("image", **options)
        return str(state.load(sno.path)["*gencrypto.AuthConfig"]["AuthTokenExpiry"])

    assert made() == ""
    expired = made(token_hours=0)
    assert datetime.fromisoformat(expired) <= datetime.now(UTC)
    assert made(token_hours=0) == expired
    assert made() == ""


def test_a_live_host_pulls_by_the_policy_that_is_given(sno: Any) -> None:
    def policy(**options: Any) -> list[str]:
        sno.create("image", **options)
        with LiveIso(sno.path / "agent.x86_64.iso") as iso:
            files = json.loads(iso.ignition or b"")["storage"]["files"]
        return [
            read_data_url(file["contents"]["source"], file["contents"].get("compression")).decode()
            for file in files
            if file["path"] == "/etc/containers/policy.json"
        ]

    assert policy() == []
    assert policy(image_policy='{"default": [{"type": "reject"}]}') == ['{"default": [{"type": "reject"}]}']
    assert policy() == []


def test_wait_for_without_state(tmp_path: Path) -> None:
    with pytest.raises(state.StateError, match="has no rendezvous IP"):
        state.load_wait_for(tmp_path)


@pytest.mark.parametrize("profile", RELEASES)
def test_ignition_of_each_release_is_valid(sno: Any, make: Any, profile: str) -> None:
    hosts = [make.host("master-0", 0, "master", static=True)]
    sno.write("agent-config.yaml", make.agent_config(hosts=hosts, additionalNTPSources=["192.168.111.1"]))
    sno.create("image", release_profile=profile, release_version=f"{profile}.0")
    config = sno.ignition()
    check(config)
    assert config["ignition"]["version"] == "3.2.0"
    if shutil.which("ignition-validate"):
        done = subprocess.run(["ignition-validate", "-"], input=dumps(config), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
    units = {unit["name"]: unit.get("enabled", False) for unit in config["systemd"]["units"]}
    newest = profile in ("4.21", "4.22")
    assert units.get("agent-ui.service", False) is newest
    assert units.get("agent-extract-tui.service", False) is newest
    assert units["start-cluster-installation.service"] is True
    assert units["apply-host-config.service"] is False
    assert units["pre-network-manager-config.service"] is True
    files = sno.files()
    service = env(files["/usr/local/share/assisted-service/assisted-service.env"])
    assert (service["HW_VALIDATOR_REQUIREMENTS"] == "TO_BE_REPLACED_BY_SYSTEMD") is newest
    if not newest:
        sno_cpu = json.loads(service["HW_VALIDATOR_REQUIREMENTS"])[0]["sno"]["cpu_cores"]
        assert sno_cpu == 8
    modes = {entry["path"]: entry["mode"] for entry in config["storage"]["files"]}
    assert modes["/etc/assisted/rendezvous-host.env"] == (0o600 if profile == "4.22" else 0o644)
    assert modes["/usr/local/bin/start-agent.sh"] == 0o555
    assert modes["/usr/local/bin/pre-network-manager-config.sh"] == 0o755
    assert modes["/root/.docker/config.json"] == 0o600
    text = "".join(unit.get("contents", "") for unit in config["systemd"]["units"])
    assert ("--log-driver=passthrough" in text) is newest


def test_host_files(sno: Any, make: Any) -> None:
    host = make.host("master-0", 0, "master", static=True) | {
        "rootDeviceHints": {"deviceName": "/dev/sda", "rotational": False}
    }
    host["interfaces"].append({"name": "eth1", "macAddress": "52:54:00:AA:BB:FF"})
    sno.write("agent-config.yaml", make.agent_config(rendezvousIP="", hosts=[host]))
    sno.create("image")
    files = sno.files()
    assert files["/etc/assisted/hostnames/52:54:00:aa:bb:00"] == "master-0"
    assert files["/etc/assisted/hostconfig/master-0/mac_addresses"] == "52:54:00:aa:bb:00\n52:54:00:aa:bb:ff\n"
    assert files["/etc/assisted/hostconfig/master-0/role"] == "master"
    assert (
        files["/etc/assisted/hostconfig/master-0/root-device-hints.yaml"] == "deviceName: /dev/sda\nrotational: false\n"
    )
    assert files["/etc/assisted/network/host0/mac_interface.ini"] == "52:54:00:AA:BB:FF=eth1\n52:54:00:aa:bb:00=eth0"
    keyfile = files["/etc/assisted/network/host0/eth0.nmconnection"]
    assert "autoconnect-priority=1" in keyfile
    assert "address0=192.168.111.20/24" in keyfile


@pytest.mark.parametrize("profile", ["4.14", "4.22"])
def test_text_files_end_in_one_newline_as_upstreams(sno: Any, make: Any, profile: str) -> None:
    sno.write("agent-config.yaml", make.agent_config(hosts=[make.host("master-0", 0, "master", static=True)]))
    sno.create("cluster-manifests", "image", release_version=f"{profile}.0")
    assert mode(sno.path / "cluster-manifests/nmstateconfig.yaml") == 0o600
    files = sno.files()
    assert files["/etc/issue"] == "\\S\nOpenShift Agent Installer image for ostest.test.example\n"
    keyfiles = {name: text for name, text in files.items() if name.endswith(".nmconnection")}
    assert keyfiles and all(text.endswith("\n") and not text.endswith("\n\n") for text in keyfiles.values())
    names = [
        line.partition("=")[0] for line in files["/usr/local/share/assisted-service/assisted-service.env"].splitlines()
    ]
    last = "HOST_STAGE_WAITING_FOR_CONTROL_PLANE_TIMEOUT"
    assert last not in names or names[-1] == last


def test_where_hosts_come_from_is_for_debugging(sno: Any, make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Upstream shows it with --log-level debug only; the file has it."""
    sno.write("agent-config.yaml", make.agent_config(hosts=[make.host("master-0", 0, "master")]))
    sno.create("image")
    assert "Using hosts from agent-config.yaml" in sno.reported("debug")
    assert not any("Using hosts from" in text for level, text in sno.log.lines if level != "debug")
    log = Log(sno.path)
    agent_config.hosts_of(make.agent_config(hosts=[make.host("master-0", 0, "master")]), None, RELEASES["4.22"], log)
    assert "Using hosts" not in "".join(capsys.readouterr())
    assert 'level=debug msg="Using hosts from agent-config.yaml"' in (sno.path / ".openshift_install.log").read_text()


@pytest.mark.parametrize("target", ["cluster-manifests", "image", "config-image", "pxe-files"])
def test_no_target_leaves_a_file_that_names_the_workflow(sno: Any, target: str) -> None:
    """As the installer today, with which this was compared."""
    sno.create(target)
    assert not list(sno.path.rglob(".agentworkflow*"))


def test_all_root_device_hints(sno: Any, make: Any) -> None:
    hints = {
        "deviceName": "/dev/disk/by-path/pci-0000:00:1f.2-ata-1", "hctl": "1:0:0:0", "model": "m", "vendor": "v", "serialNumber": "0123",
        "minSizeGigabytes": 120, "wwn": "0x5000", "rotational": True,
    }  # fmt: skip
    sno.write("agent-config.yaml", make.agent_config(hosts=[make.host("m0", 0) | {"rootDeviceHints": hints}]))
    sno.create("image")
    text = sno.files()["/etc/assisted/hostconfig/m0/root-device-hints.yaml"]
    assert yaml.safe_load(text) == hints
    assert [line.partition(":")[0] for line in text.splitlines()] == sorted(hints)


def overrides(directory: Any) -> str:
    aci = yaml.safe_load((directory.path / "cluster-manifests" / "agent-cluster-install.yaml").read_text())
    return str(aci["metadata"]["annotations"]["agent-install.openshift.io/install-config-overrides"])


def test_overrides_in_their_order(directory: Any, make: Any) -> None:
    """What the service has no field for, byte by byte; features alone differ between releases."""
    config = make.install_config(
        controlPlane={"name": "master", "replicas": 3}, fips=True, cpuPartitioningMode="AllNodes", additionalTrustBundlePolicy="Always",
        capabilities={"baselineCapabilitySet": "vCurrent", "additionalEnabledCapabilities": ["NodeTuning"]},
        featureSet="CustomNoUpgrade", featureGates=["Some=true"], osImageStream="rhel-10",
    )  # fmt: skip
    config["networking"]["networkType"] = "Calico"
    directory.write("install-config.yaml", config)
    directory.write("agent-config.yaml", make.agent_config())
    directory.create("cluster-manifests")
    assert overrides(directory) == (
        '{"fips":true,"capabilities":{"baselineCapabilitySet":"vCurrent","additionalEnabledCapabilities":["NodeTuning"]},'
        '"networking":{"networkType":"Calico","machineNetwork":[{"cidr":"192.168.111.0/24"}],"clusterNetwork":[{"cidr":"10.128.0.0/14",'
        '"hostPrefix":23}],"serviceNetwork":["172.30.0.0/16"]},"cpuPartitioningMode":"AllNodes","additionalTrustBundlePolicy":"Always",'
        '"featureSet":"CustomNoUpgrade","featureGates":["Some=true"],"osImageStream":"rhel-10"}'
    )


def test_nutanix_has_ipv4_first(directory: Any, make: Any) -> None:
    """Its VIPs of both families are put into that order; other platforms keep the user's."""
    networks = {
        "networkType": "OVNKubernetes", "machineNetwork": [{"cidr": "192.168.111.0/24"}, {"cidr": "fd2e:6f44:5dd8:c956::/120"}],
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}, {"cidr": "fd01::/48", "hostPrefix": 64}],
        "serviceNetwork": ["172.30.0.0/16", "fd02::/112"],
    }  # fmt: skip
    section = {
        "apiVIPs": ["fd2e:6f44:5dd8:c956::5", "192.168.111.5"], "ingressVIPs": ["fd2e:6f44:5dd8:c956::4", "192.168.111.4"],
        "prismCentral": {"endpoint": {"address": "pc.test", "port": 9440}, "username": "u", "password": "p"},
        "prismElements": [{"endpoint": {"address": "pe.test", "port": 9440}, "uuid": "u"}], "subnetUUIDs": ["s"],
    }  # fmt: skip
    config = make.install_config(
        controlPlane={"name": "master", "replicas": 3}, networking=networks, platform={"nutanix": section}
    )
    directory.write("install-config.yaml", config)
    directory.create("cluster-manifests")
    spec = yaml.safe_load((directory.path / "cluster-manifests" / "agent-cluster-install.yaml").read_text())["spec"]
    assert spec["apiVIPs"] == ["192.168.111.5", "fd2e:6f44:5dd8:c956::5"]
    assert spec["ingressVIPs"] == ["192.168.111.4", "fd2e:6f44:5dd8:c956::4"]


def test_vsphere_in_its_first_form(directory: Any, make: Any) -> None:
    """Credentials at the top of the platform become a vCenter and a failure domain; what JSON escapes in Go is escaped."""
    old = {
        "vCenter": "vcenter.test", "username": "u", "password": "p<&>", "datacenter": "dc", "defaultDatastore": "store", "cluster": "c",
        "network": "n", "folder": "/dc/vm/f", "apiVIP": "192.168.111.5", "ingressVIP": "192.168.111.4",
    }  # fmt: skip
    config = make.install_config(controlPlane={"name": "master", "replicas": 3}, platform={"vsphere": old})
    directory.write("install-config.yaml", config)
    directory.write("agent-config.yaml", make.agent_config())
    directory.create("cluster-manifests")
    text = overrides(directory)
    assert '"password":"p\\u003c\\u0026\\u003e"' in text
    section = json.loads(text)["platform"]["vsphere"]
    assert section["vcenters"] == [
        {"server": "vcenter.test", "port": 443, "user": "u", "password": "p<&>", "datacenters": ["dc"]}
    ]
    assert section["failureDomains"] == [
        {
            "name": "generated-failure-domain", "region": "generated-region", "zone": "generated-zone", "server": "vcenter.test",
            "topology": {
                "datacenter": "dc", "computeCluster": "/dc/host/c", "networks": ["n"], "datastore": "/dc/datastore/store",
                "resourcePool": "/dc/host/c/Resources", "folder": "/dc/vm/f",
            },
        }
    ]  # fmt: skip


def test_manifests_with_mirrors_and_hosts_next_to_them(
    sno: Any, directory: Any, make: Any, base_iso: Path, tmp_path: Path
) -> None:
    """Without an install-config: the manifests are the cluster, agent-config has the hosts, and the mirrors are the user's own."""
    sno.create("cluster-manifests")
    other = type(directory)(tmp_path / "other", base_iso)
    shutil.copytree(sno.path / "cluster-manifests", other.path / "cluster-manifests")
    conf = (
        '[[registry]]\nlocation = "127.0.0.1:9/lab/release"\n[[registry.mirror]]\nlocation = "mirror.test:5000/lab"\n'
    )
    other.write("mirror/registries.conf", conf)
    other.write("agent-config.yaml", make.agent_config(hosts=[make.host("m0", 0, "master")], minimalISO=True,
                                                       bootArtifactsBaseURL="http://192.0.2.1"))  # fmt: skip
    other.write("openshift/a.yaml", "kind: ConfigMap\n")
    other.create("image")
    files = other.files()
    assert files["/etc/containers/registries.conf"] == conf
    service = env(files["/usr/local/share/assisted-service/assisted-service.env"])
    assert (
        service["OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR"]
        == f"mirror.test:5000/lab{make.release.removeprefix('127.0.0.1:9/lab/release')}"
    )
    assert service["PUBLIC_CONTAINER_REGISTRIES"] == "127.0.0.1:9"
    assert files["/etc/assisted/hostconfig/m0/role"] == "master"
    assert files["/etc/assisted/extra-manifests/a-0.yaml"] == "kind: ConfigMap"
    assert (other.path / "boot-artifacts/agent.x86_64-rootfs.img").exists()
    # Networks of agent-config are for the cluster of an install-config, as upstream has it.
    other.write("agent-config.yaml", make.agent_config(hosts=[make.host("m0", 0, "master", static=True)]))
    with pytest.raises(InstallerError, match="infraEnv and agent-cluster-0 NMState Config labels do not match"):
        other.create("image")


def test_early_spec_form_of_agent_config(sno: Any) -> None:
    sno.write(
        "agent-config.yaml",
        {"kind": "AgentConfig", "metadata": {"name": "a"}, "spec": {"rendezvousIP": "192.168.111.7"}},
    )
    assert sno.create("image").rendezvous_ip == "192.168.111.7"
    assert any("spec field is deprecated" in text for text in sno.reported("warning"))


def test_mirrors(sno: Any, make: Any) -> None:
    sources = [
        {
            "source": "127.0.0.1:9/lab/release",
            "mirrors": ["virthost:5000/lab/release"],
            "sourcePolicy": "NeverContactSource",
        },
        {"source": "quay.io/x", "mirrors": ["virthost:5000/x", "other.test/x"]},
    ]
    sno.write("install-config.yaml", make.install_config(imageDigestSources=sources))
    sno.create("cluster-manifests", "image")
    assert (sno.path / "mirror" / "registries.conf").read_text() == (
        'credential-helpers = []\nshort-name-mode = ""\nunqualified-search-registries = []\n\n'
        '[[registry]]\n  blocked = true\n  location = "127.0.0.1:9/lab/release"\n  mirror-by-digest-only = true\n'
        '  prefix = ""\n\n  [[registry.mirror]]\n    location = "virthost:5000/lab/release"\n\n'
        '[[registry]]\n  location = "quay.io/x"\n  mirror-by-digest-only = true\n  prefix = ""\n\n'
        '  [[registry.mirror]]\n    location = "virthost:5000/x"\n\n  [[registry.mirror]]\n    location = "other.test/x"\n'
    )
    service = env(sno.files()["/usr/local/share/assisted-service/assisted-service.env"])
    assert service["PUBLIC_CONTAINER_REGISTRIES"] == "127.0.0.1:9,quay.io"
    assert service["OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR"] == make.release.replace("127.0.0.1:9", "virthost:5000")
    assert 'Mirror registry "virthost:5000" is not found in pullSecret' in sno.reported("warning")
    unit = next(unit for unit in sno.ignition()["systemd"]["units"] if unit["name"] == "assisted-service.service")
    assert "-v /etc/containers:/etc/containers " in unit["contents"]


def test_manifests_of_a_run_that_failed_are_made_again(sno: Any, make: Any) -> None:
    """They are not taken for a user's own files."""
    sources = [{"source": "quay.io/x", "mirrors": ["virthost:5000/x"]}]
    sno.write("install-config.yaml", make.install_config(imageDigestSources=sources))
    with pytest.raises(InstallerError):
        sno.create("cluster-manifests", "image", os_image={"": str(sno.path / "none.iso")})
    sources[0]["mirrors"] = ["other.test/x"]
    sno.write("install-config.yaml", make.install_config(imageDigestSources=sources))
    sno.create("cluster-manifests", "image")
    assert 'location = "other.test/x"' in (sno.path / "mirror/registries.conf").read_text()


def test_manifests_written_after_the_image_are_not_user_own(sno: Any, make: Any) -> None:
    sources = [{"source": "quay.io/x", "mirrors": ["virthost:5000/x"]}]
    sno.write("install-config.yaml", make.install_config(imageDigestSources=sources))
    sno.create("image")
    sno.create("cluster-manifests")
    sources[0]["mirrors"] = ["other.test/x"]
    sno.write("install-config.yaml", make.install_config(imageDigestSources=sources))
    sno.create("image")
    assert 'location = "other.test/x"' in (sno.path / "mirror/registries.conf").read_text()
    assert not [text for text in sno.reported("warning") if "provided in the target directory" in text]


class Killed(BaseException):
    pass


@pytest.mark.parametrize("written", [1, 4, 7])
def test_files_of_a_run_that_was_killed_are_not_user_own(
    sno: Any, make: Any, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    """Neither when all of them were written, nor when some were: they are made again of what the inputs say now."""
    sources = [{"source": "quay.io/x", "mirrors": ["virthost:5000/x"]}]
    sno.write("install-config.yaml", make.install_config(imageDigestSources=sources))
    files: list[str] = []
    save = run.Build.save

    def saved(self: run.Build, name: str, content: bytes, mode: int) -> None:
        save(self, name, content, mode)
        files.append(name)
        if len(files) == written:
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(run.Build, "save", saved)
        sno.create("cluster-manifests")
    assert all((sno.path / name).exists() for name in files)
    sources[0]["mirrors"] = ["other.test/x"]
    sno.write("install-config.yaml", make.install_config(imageDigestSources=sources))
    sno.create("cluster-manifests")
    assert 'location = "other.test/x"' in (sno.path / "mirror/registries.conf").read_text()
    assert not [text for text in sno.reported("warning") if "provided in the target directory" in text]
    assert sno.create("cluster-manifests").changed == []


def test_a_file_of_a_run_that_was_killed_may_be_edited(sno: Any, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sno.write(
        "install-config.yaml",
        make.install_config(imageDigestSources=[{"source": "quay.io/x", "mirrors": ["virthost:5000/x"]}]),
    )

    def killed(self: run.Store) -> None:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(run.Store, "remember", killed)
        sno.create("cluster-manifests")
    mirrors = sno.path / "mirror/registries.conf"
    mirrors.write_text(mirrors.read_text().replace("virthost:5000", "mine.test"))
    sno.create("cluster-manifests")
    assert 'location = "mine.test/x"' in mirrors.read_text()


def test_credentials(sno: Any) -> None:
    sno.create("image")
    known = state.load(sno.path)
    password = (sno.path / "auth" / "kubeadmin-password").read_text()
    assert len(password) == 23
    files, config = sno.files(), sno.ignition()
    assert bcrypt.checkpw(password.encode(), files["/opt/agent/tls/kubeadmin-password.hash"].encode())
    assert config["passwd"]["users"][0]["passwordHash"] == files["/opt/agent/tls/kubeadmin-password.hash"]

    service = env(files["/usr/local/share/assisted-service/assisted-service.env"])
    pem = base64.b64decode(service["EC_PUBLIC_KEY_PEM"]).decode()
    assert pem.startswith("-----BEGIN EC PUBLIC KEY-----\n")
    key = serialization.load_pem_public_key(pem.replace("EC PUBLIC", "PUBLIC").encode())
    for name, scheme in (
        ("AgentAuthToken", "agentAuth"),
        ("UserAuthToken", "userAuth"),
        ("WatcherAuthToken", "watcherAuth"),
    ):
        signed, __, signature = known["*gencrypto.AuthConfig"][name].rpartition(".")
        raw = base64.urlsafe_b64decode(signature + "==")
        der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
        assert isinstance(key, ec.EllipticCurvePublicKey)
        key.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
        assert json.loads(base64.urlsafe_b64decode(signed.split(".")[1] + "==")) == {"auth_scheme": scheme}

    kubeconfig = yaml.safe_load((sno.path / "auth" / "kubeconfig").read_text())
    cluster = kubeconfig["clusters"][0]["cluster"]
    assert cluster["server"] == "https://api.ostest.test.example:6443"
    assert len(x509.load_pem_x509_certificates(base64.b64decode(cluster["certificate-authority-data"]))) == 3
    client = x509.load_pem_x509_certificate(base64.b64decode(kubeconfig["users"][0]["user"]["client-certificate-data"]))
    signer = x509.load_pem_x509_certificate(files["/opt/agent/tls/admin-kubeconfig-signer.crt"].encode())
    client.verify_directly_issued_by(signer)
    assert client.subject.rfc4514_string() == "CN=system:admin,O=system:masters"


def test_extra_manifests_one_file_a_document(sno: Any) -> None:
    sno.write("openshift/a.yaml", "---\nb: 1\na: 2\n---\nc: 3\n")
    sno.write("openshift/b.yml", "kind: InternalReleaseImage\n")
    sno.write("openshift/c.json", "{}")
    sno.create("image")
    files = {name: text for name, text in sno.files().items() if "extra-manifests" in name}
    assert files == {
        "/etc/assisted/extra-manifests/a-0.yaml": "a: 2\nb: 1\n",
        "/etc/assisted/extra-manifests/a-1.yaml": "c: 3",
        "/etc/assisted/extra-manifests/b-0.yml": "kind: InternalReleaseImage",
    }
    shutil.rmtree(sno.path / "openshift")
    sno.create("image")
    assert not any("extra-manifests" in name for name in sno.files())
    sno.write("openshift/a.yaml", "a: [")
    with pytest.raises(
        InstallerError, match=r'failed to load asset "Extra Manifests": could not decode YAML for openshift/a.yaml'
    ):
        sno.create("image")


def test_an_area_that_grows_is_reported(sno: Any) -> None:
    sno.write("openshift/large.yaml", {"data": base64.b64encode(random.Random(1).randbytes(400_000)).decode()})
    sno.create("image")
    assert any(
        re.search("ignition content length.*exceeds default embed area size.*increasing final image size", text)
        for text in sno.reported("debug")
    )
    assert "/etc/assisted/extra-manifests/large-0.yaml" in sno.files()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("{", "unexpected end of JSON input"),
        ("[]", "json: cannot unmarshal array into Go value of type map[string]json.RawMessage"),
    ],
)
def test_a_broken_state_file(sno: Any, text: str, error: str) -> None:
    sno.write(state.FILENAME, text)
    path = sno.path / state.FILENAME
    with pytest.raises(
        InstallerError,
        match=re.escape(f'failed to create asset store: failed to unmarshal state file "{path}": {error}'),
    ):
        sno.create("image")


def test_config_image(sno: Any) -> None:
    sno.create("config-image")
    with LiveIsoFiles(sno.path / "agentconfig.noarch.iso") as (volume, files):
        assert volume == "agent_configimage"
        assert list(files) == ["config.gz"]
        with open(sno.path / "config.gz", "wb") as out:
            out.write(files["config.gz"])
    with open(sno.path / "config.gz", "rb") as stream:
        names = [entry.name for entry, __ in cpio.entries(stream)]
    assert names[-1] == "/etc/assisted/rendezvous-host.env"
    assert "/etc/assisted/manifests/agent-cluster-install.yaml" in names
    assert "/opt/agent/tls/kubeadmin-password.hash" in names
    assert not any("/usr/local/bin" in name for name in names)


def test_minimal_iso(sno: Any, make: Any) -> None:
    """As upstream's: no root file system inside, one more initramfs, and a URL or a warning."""
    sno.write("agent-config.yaml", make.agent_config(minimalISO=True))
    sno.create("image")
    assert any("no RootFSURL found for x86_64" in text for text in sno.reported("warning"))
    with LiveIsoFiles(sno.path / "agent.x86_64.iso") as (__, files):
        assert "images/pxeboot/rootfs.img" not in files
        assert files["images/assisted_installer_custom.img"] == bytes(2**20)
        assert b"initrd.img /images/ignition.img /images/assisted_installer_custom.img" in files["EFI/redhat/grub.cfg"]
        assert b"coreos.live" not in files["EFI/redhat/grub.cfg"]
    sno.write("agent-config.yaml", make.agent_config(minimalISO=True, bootArtifactsBaseURL="http://x/y/"))
    sno.create("image")
    assert (sno.path / "boot-artifacts/agent.x86_64-rootfs.img").read_bytes() == b"rootfs"
    with LiveIsoFiles(sno.path / "agent.x86_64.iso") as (__, files):
        assert b'coreos.live.rootfs_url="http://x/y/agent.x86_64-rootfs.img"' in files["EFI/redhat/grub.cfg"]


@pytest.mark.slow
def test_250_hosts(directory: Any, make: Any) -> None:
    """Bonds and VLANs for each: a manifest, a folder with its keyfiles, and the files in which it differs from the others."""
    config, agent = make.fleet(250)
    directory.write("install-config.yaml", config)
    directory.write("agent-config.yaml", agent)
    directory.create("cluster-manifests", "image")
    documents = list(yaml.safe_load_all((directory.path / "cluster-manifests/nmstateconfig.yaml").read_text()))
    assert [doc["metadata"]["name"] for doc in documents if doc] == [f"ostest-{number}" for number in range(250)]
    aci = yaml.safe_load((directory.path / "cluster-manifests/agent-cluster-install.yaml").read_text())
    assert aci["spec"]["provisionRequirements"] == {"controlPlaneAgents": 3, "workerAgents": 247}
    files = directory.files()
    for number in (0, 249):
        folder = f"/etc/assisted/network/host{number}"
        assert {name.rpartition("/")[2] for name in files if name.startswith(f"{folder}/")} == {
            "bond0.nmconnection", "bond0.100.nmconnection", "bond0.200.nmconnection", "eth0.nmconnection", "eth1.nmconnection",
            "mac_interface.ini",
        }  # fmt: skip
        assert (
            f"address0=192.168.{1 + number // 200}.{20 + number % 200}/16" in files[f"{folder}/bond0.100.nmconnection"]
        )
        assert files[f"/etc/assisted/hostconfig/node-{number}/role"] == ("worker" if number else "master")
    assert len([name for name in files if name.endswith("/mac_addresses")]) == 250


def test_fencing_credentials_by_mac(directory: Any, make: Any) -> None:
    """A host's own are in its directory; those that name a host are in one file for all."""
    directory.write("install-config.yaml", make.install_config(
        controlPlane={"name": "master", "replicas": 2, "fencing": {"credentials": [
            {"macAddress": "52:54:00:00:00:01", "username": "a", "password": "b", "address": "redfish+https://1.2.3.4/x"},
            {"hostName": "m1", "username": "a", "password": "b", "address": "redfish+https://1.2.3.5/x"},
        ]}},
    ))  # fmt: skip
    hosts = [
        {"role": "master", "interfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01"}]},
        {"hostname": "m1", "role": "master", "interfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:02"}]},
    ]
    directory.write("agent-config.yaml", make.agent_config(hosts=hosts))
    directory.create("image")
    files = directory.files()
    text = "credentials:\n- {}\n  username: a\n  password: b\n  address: redfish+https://{}/x\n"
    folder = "/etc/assisted/hostconfig"
    assert files[f"{folder}/host-0/fencing-credentials.yaml"] == text.format(
        'macaddress: "52:54:00:00:00:01"', "1.2.3.4"
    )
    assert files[f"{folder}/fencing-credentials.yaml"] == text.format("hostname: m1", "1.2.3.5")


def test_fencing_credentials_from_a_file(sno: Any) -> None:
    """In addition to manifests, fencing-credentials.yaml goes into the image as it is, and is consumed with them."""
    text = "# ours\ncredentials:\n- hostname: m0\n  username: a\n  password: b\n  address: redfish+https://1.2.3.4/x\n"
    place = "/etc/assisted/hostconfig/fencing-credentials.yaml"
    path = sno.path / "fencing-credentials.yaml"
    path.write_text(text)
    sno.create("image")
    warnings = [
        line for line in sno.reported("warning") if "Discarding the Fencing Credentials that was provided" in line
    ]
    assert len(warnings) == 1
    assert place not in sno.files()
    sno.create("cluster-manifests", consume=True)
    path.write_text(text + "bmc: {}\n")
    with pytest.raises(InstallerError, match=r'failed to unmarshal fencing-credentials.yaml.*unknown field "bmc"'):
        sno.create("image")
    path.write_text(text)
    sno.create("image", consume=True)
    assert sno.files()[place] == text
    assert not path.exists()
    sno.create("image", release_profile="4.19", release_version="4.19.0")
    assert place not in sno.files()
    sno.create("image")
    assert sno.files()[place] == text


def test_published_rootfs() -> None:
    place = "https://rhcos.mirror.openshift.com/art/storage/prod/streams"
    assert published_rootfs("rhcos-418.94.202501221327-0", "x86_64") == (
        f"{place}/4.18-9.4/builds/418.94.202501221327-0/x86_64/rhcos-418.94.202501221327-0-live-rootfs.x86_64.img"
    )
    assert published_rootfs("rhcos-9.6.20250701-0", "aarch64") == (
        f"{place}/rhel-9.6/builds/9.6.20250701-0/aarch64/rhcos-9.6.20250701-0-live-rootfs.aarch64.img"
    )
    assert published_rootfs("scos-10.0.20250628-0", "x86_64") == (
        f"{place}/c10s/builds/10.0.20250628-0/x86_64/scos-10.0.20250628-0-live-rootfs.x86_64.img"
    )
    assert not published_rootfs("fedora-coreos-38.20230718.dev.0", "x86_64")


class LiveIsoFiles:
    """Volume id and files of an ISO."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> tuple[str, dict[str, bytes]]:
        from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso9660 import Iso9660, open_image

        self.iso = Iso9660(open_image(self.path))
        files = {name.strip("/"): self.iso.read(name) for name, record in self.iso.walk() if not record.is_dir}
        return self.iso.volume_id, files

    def __exit__(self, *__: object) -> None:
        import os

        os.close(self.iso.fd)


def test_pxe_files(sno: Any, make: Any) -> None:
    sno.write("agent-config.yaml", make.agent_config(bootArtifactsBaseURL="http://192.168.111.1:8089/"))
    sno.create("pxe-files")
    folder = sno.path / "boot-artifacts"
    assert (folder / "agent.x86_64.ipxe").read_text() == (
        "#!ipxe\n"
        "initrd --name initrd http://192.168.111.1:8089/agent.x86_64-initrd.img\n"
        "kernel http://192.168.111.1:8089/agent.x86_64-vmlinuz initrd=initrd coreos.live.rootfs_url="
        "http://192.168.111.1:8089/agent.x86_64-rootfs.img ignition.firstboot ignition.platform.id=metal\n"
        "boot\n"
    )
    assert (folder / "agent.x86_64-vmlinuz").read_bytes() == b"kernel"
    initrd = (folder / "agent.x86_64-initrd.img").read_bytes()
    assert initrd.startswith(cpio.archive({"init": b"initrd"}) + b"\x1f\x8b")
    assert sno.create("pxe-files").changed == []


def test_pxe_files_of_s390x(sno: Any, make: Any) -> None:
    """Its kernel has another name, and a logical partition wants two files more."""
    ins = (
        b"* minimal lpar ins file\nimages/kernel.img 0x0\nimages/initrd.img 0x2000000\nimages/initrd.addrsize 0x10408\n"
    )
    base = sno.path / "s390x.iso"
    rebuild(sno.base_iso, base, {"images/initrd.addrsize": b"PSWPSWPS" + bytes(8), "generic.ins": ins})
    pools = {"controlPlane": {"name": "master", "replicas": 1, "architecture": "s390x"},
             "compute": [{"name": "worker", "replicas": 0, "architecture": "s390x"}]}  # fmt: skip
    sno.write("install-config.yaml", make.install_config(**pools))
    sno.create("pxe-files", os_image={"s390x": str(base)})
    folder = sno.path / "boot-artifacts"
    assert {path.name.removeprefix("agent.s390x-") for path in folder.iterdir()} == {
        "initrd.img", "rootfs.img", "kernel.img", "generic.ins", "initrd.addrsize"
    }  # fmt: skip
    assert (folder / "agent.s390x-kernel.img").read_bytes() == b"kernel"
    assert (folder / "agent.s390x-generic.ins").read_text().splitlines()[1:] == [
        "agent.s390x-kernel.img 0x0", "agent.s390x-initrd.img 0x2000000", "agent.s390x-initrd.addrsize 0x10408",
    ]  # fmt: skip
    assert f"Created boot artefacts for s390x in {folder} directory" in sno.reported("info")
    assert sno.create("pxe-files", os_image={"s390x": str(base)}).changed == []


def test_only_hosts_without_a_cluster_get_the_rendezvous_template(sno: Any) -> None:
    """Its presence would start agent-extract-tui.service."""
    sno.create("cluster-manifests", "image", "config-image")
    sno.create("unconfigured-ignition")
    template = "/etc/assisted/rendezvous-host.env.template"
    assert template not in sno.files()
    with LiveIso(sno.path / "agentconfig.noarch.iso") as iso:
        assert template not in files_of(json.loads(iso.ignition or b""))
    assert template in files_of(json.loads((sno.path / "unconfigured-agent.ign").read_text()))


def test_unconfigured_ignition(directory: Any) -> None:
    secret = {"kind": "Secret", "stringData": {".dockerconfigjson": '{"auths": {"q": {"auth": "eA=="}}}'}}
    directory.write("cluster-manifests/pull-secret.yaml", secret)
    with pytest.raises(InstallerError, match=r"configuration file not found: cluster-manifests/infraenv.yaml"):
        directory.create("unconfigured-ignition")
    directory.write("cluster-manifests/infraenv.yaml", {"kind": "InfraEnv", "spec": {"cpuArchitecture": "arm64"}})
    directory.create("unconfigured-ignition")
    config = json.loads((directory.path / "unconfigured-agent.ign").read_text())
    check(config)
    assert "passwd" not in config
    units = {unit["name"]: unit.get("enabled", False) for unit in config["systemd"]["units"]}
    assert units["pre-network-manager-config.service"] is False
    assert units["agent-check-config-image.service"] is True
    assert units["start-cluster-installation.service"] is False
    files = files_of(config)
    assert b"\nPULL_SECRET_TOKEN=ey" in files["/etc/assisted/rendezvous-host.env.template"]
    counts = files["/usr/local/share/start-cluster/start-cluster.env"]
    assert counts == b"REQUIRED_MASTER_NODES=0\nREQUIRED_ARBITER_NODES=0\nREQUIRED_WORKER_NODES=0\n"
    assert not any("architecture" in text for text in directory.reported("warning"))
    service = files["/usr/local/share/assisted-service/assisted-service.env"].decode().splitlines()
    assert service[-1] == "HOST_STAGE_WAITING_FOR_CONTROL_PLANE_TIMEOUT=90m"
    with pytest.raises(InstallerError, match="unknown flag: --interactive"):
        directory.create("unconfigured-ignition", interactive=True)
    directory.create("unconfigured-ignition", release_profile="4.20", interactive=True)
    older = files_of(json.loads((directory.path / "unconfigured-agent.ign").read_text()))
    assert b"AUTH_TYPE=none\n" in older["/usr/local/share/assisted-service/assisted-service.env"]
    assert "/etc/assisted/interactive-ui" in older
    spec = {"cpuArchitecture": "arm64", "sshAuthorizedKey": "ssh-ed25519 AAAA"}
    directory.write("cluster-manifests/infraenv.yaml", {"kind": "InfraEnv", "spec": spec})
    state = {"interfaces": [{"name": "eth0", "type": "ethernet", "state": "up"}]}
    directory.write("cluster-manifests/nmstateconfig.yaml", {
        "kind": "NMStateConfig", "metadata": {"name": "m0", "labels": {"a": "b"}},
        "spec": {"config": state, "interfaces": [{"name": "eth0", "macAddress": "52:54:00:00:00:01"}]},
    })  # fmt: skip
    directory.create("unconfigured-ignition")
    config = json.loads((directory.path / "unconfigured-agent.ign").read_text())
    assert config["passwd"] == {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA"]}]}
    units = {unit["name"]: unit.get("enabled", False) for unit in config["systemd"]["units"]}
    assert units["pre-network-manager-config.service"] is True
    files = files_of(config)
    assert "/etc/assisted/network/host0/eth0.nmconnection" in files
    assert not [name for name in files if name.endswith("nmstateconfig.yaml")]
    assert not (directory.path / "auth").exists()


def test_lists_of_hosts_from_baremetal(directory: Any, make: Any) -> None:
    hosts = [
        {"name": f"m{n}", "role": "master", "bootMACAddress": f"52:54:00:00:00:0{n}",
         "bmc": {"address": f"redfish://192.168.111.1/{n}", "username": "u", "password": "p"}}
        for n in range(3)
    ]  # fmt: skip
    platform = {"baremetal": {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "hosts": hosts}}
    directory.write(
        "install-config.yaml", make.install_config(platform=platform, controlPlane={"name": "master", "replicas": 3})
    )
    directory.write("agent-config.yaml", make.agent_config())
    result = directory.create("cluster-manifests", "image")
    aci = yaml.safe_load((directory.path / "cluster-manifests" / "agent-cluster-install.yaml").read_text())
    overrides = json.loads(aci["metadata"]["annotations"]["agent-install.openshift.io/install-config-overrides"])
    assert [host["bootMACAddress"] for host in overrides["platform"]["baremetal"]["hosts"]] == [
        f"52:54:00:00:00:0{n}" for n in range(3)
    ]
    assert not any('"password":"p"' in diff["after"] for diff in result.diffs)
    assert directory.files()["/etc/assisted/hostnames/52:54:00:00:00:01"] == "m1"


def test_logins_of_vsphere_and_nutanix_travel_unprinted(directory: Any, make: Any) -> None:
    """They are in the annotation, of which no difference that Ansible prints has the text."""
    vips = {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"]}
    endpoint = {"address": "p.test", "port": 9440}
    topology = {
        "datacenter": "dc",
        "computeCluster": "/dc/host/c",
        "networks": ["n"],
        "datastore": "/dc/datastore/s",
        "folder": "/dc/vm/f",
    }
    sections: dict[str, Any] = {
        "vsphere": {"vcenters": [{"server": "vc.test", "user": "u", "password": "hush-hush", "datacenters": ["dc"]}],
                    "failureDomains": [{"name": "f", "region": "r", "zone": "z", "server": "vc.test", "topology": topology}]},
        "nutanix": {"prismCentral": {"endpoint": endpoint, "username": "u", "password": "hush-hush"}, "subnetUUIDs": ["s"],
                    "prismElements": [{"endpoint": endpoint, "uuid": "u"}]},
    }  # fmt: skip
    directory.write("agent-config.yaml", make.agent_config())
    for name, section in sections.items():
        config = make.install_config(
            platform={name: {**vips, **section}}, controlPlane={"name": "master", "replicas": 3}
        )
        directory.write("install-config.yaml", config)
        result = directory.create("cluster-manifests", "image")
        assert "hush-hush" in overrides(directory)
        assert result.diffs and not any(
            "hush-hush" in diff["after"] or "hush-hush" in diff["before"] for diff in result.diffs
        )
        spec = yaml.safe_load((directory.path / "cluster-manifests" / "agent-cluster-install.yaml").read_text())["spec"]
        assert spec["platformType"] == {"vsphere": "VSphere", "nutanix": "Nutanix"}[name]
        assert spec["apiVIPs"] == vips["apiVIPs"] and "apiVIP" not in spec


def test_certificates_are_taken_on_demand(sno: Any) -> None:
    sno.create("certificates")
    assert (sno.path / "tls" / "kubeadmin-password.hash").exists()
    sno.create("image", load_certificates=True)
    assert (
        sno.files()["/opt/agent/tls/admin-kubeconfig-signer.crt"]
        == (sno.path / "tls" / "admin-kubeconfig-signer.crt").read_text()
    )


def test_template_parses(directory: Any) -> None:
    directory.create("agent-config-template")
    text = (directory.path / "agent-config.yaml").read_text()
    assert text == agent_config.TEMPLATE
    assert mode(directory.path / "agent-config.yaml") == 0o600
    assert yaml.safe_load(text)["kind"] == "AgentConfig"


def test_a_template_does_not_replace_user_file(directory: Any) -> None:
    directory.create("agent-config-template")
    directory.create("agent-config-template")
    directory.write("agent-config.yaml", "rendezvousIP: 192.168.111.20\n")
    with pytest.raises(
        InstallerError, match=r"agent-config\.yaml exists already and is not the template: move it aside"
    ):
        directory.create("agent-config-template")
    assert (directory.path / "agent-config.yaml").read_text() == "rendezvousIP: 192.168.111.20\n"


@pytest.mark.parametrize(
    ("target", "reported"),
    [
        (
            "image",
            "failed to write asset (Agent Installer ISO) to disk: cannot generate ISO image due to configuration errors",
        ),
        (
            "pxe-files",
            "failed to write asset (Agent Installer PXE Files) to disk: cannot generate PXE assets due to configuration errors",
        ),
        (
            "config-image",
            "failed to write asset (Agent Config ISO) to disk: cannot generate Config image due to configuration errors",
        ),
        ("cluster-manifests", None),
    ],
)
def test_what_was_not_written_is_reported_first(sno: Any, make: Any, target: str, reported: str | None) -> None:
    sno.write("install-config.yaml", make.install_config(baseDomain="-"))
    with pytest.raises(InstallerError, match="baseDomain"):
        sno.create(target)
    assert sno.reported("error") == ([reported] if reported else [])


def test_an_external_platform_without_a_name(directory: Any, make: Any) -> None:
    directory.write("install-config.yaml", make.install_config(platform={"external": {}}))
    directory.write("agent-config.yaml", make.agent_config())
    directory.create("cluster-manifests")
    aci = yaml.safe_load((directory.path / "cluster-manifests" / "agent-cluster-install.yaml").read_text())
    assert aci["spec"]["external"] == {}
    assert overrides(directory) == '{"platform":{"external":{}}}'


@pytest.mark.parametrize(("profile", "kind", "written"), [
    ("4.22", "UserManaged", {"type": "UserManaged"}), ("4.22", "OpenShiftManagedDefault", None), ("4.20", "UserManaged", None),
])  # fmt: skip
def test_user_managed_load_balancers_are_passed_on(
    directory: Any, make: Any, profile: str, kind: str, written: dict[str, str] | None
) -> None:
    platform = {
        "baremetal": {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "loadBalancer": {"type": kind}}
    }
    directory.write(
        "install-config.yaml", make.install_config(platform=platform, controlPlane={"name": "master", "replicas": 3})
    )
    directory.create("cluster-manifests", release_profile=profile)
    spec = yaml.safe_load((directory.path / "cluster-manifests" / "agent-cluster-install.yaml").read_text())["spec"]
    assert spec.get("loadBalancer") == written


def test_long_scalars_are_folded(sno: Any, make: Any) -> None:
    """As sigs.k8s.io/yaml writes them: the bytes of manifests are compared with upstream's."""
    sno.write("install-config.yaml", make.install_config(sshKey=f"{ED25519} a@b long comment long comment"))
    sno.create("cluster-manifests")
    text = (sno.path / "cluster-manifests" / "infraenv.yaml").read_text()
    assert f"  sshAuthorizedKey: {ED25519}\n    a@b long comment long comment\n" in text


def test_what_is_ignored_is_shown(directory: Any, make: Any) -> None:
    section = {
        "apiVIPs": ["192.168.111.5"],
        "ingressVIPs": ["192.168.111.4"],
        "defaultMachinePlatform": {},
        "externalBridge": "br",
    }
    config = make.install_config(platform={"baremetal": section}, controlPlane={"name": "master", "replicas": 3})
    directory.write("install-config.yaml", config)
    directory.create("cluster-manifests")
    assert "platform.baremetal.defaultMachinePlatform: &{} is ignored" in directory.reported("warning")
    assert "platform.baremetal.externalBridge: br is ignored" in directory.reported("warning")
    vsphere = {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "loadBalancer": {"type": "UserManaged"},
               "defaultMachinePlatform": {"cpus": 4}}  # fmt: skip
    directory.write("install-config.yaml", config | {"platform": {"vsphere": vsphere}})
    directory.create("cluster-manifests")
    assert "platform.vsphere.loadBalancer: &{UserManaged} is ignored" in directory.reported("warning")
    assert 'platform.vsphere.defaultMachinePlatform: {"cpus":4} is ignored' in directory.reported("warning")
    endpoint = {"address": "p.test", "port": 9440}
    nutanix = {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "prismAPICallTimeout": 5, "subnetUUIDs": ["s"],
               "prismCentral": {"endpoint": endpoint, "username": "u", "password": "p"},
               "prismElements": [{"endpoint": endpoint, "uuid": "u"}]}  # fmt: skip
    directory.write("install-config.yaml", config | {"platform": {"nutanix": nutanix}})
    directory.create("cluster-manifests")
    assert "Platform.Nutanix.PrismAPICallTimeout: 5 is ignored" in directory.reported("warning")


def test_mirrors_of_unknown_registries_and_mixed_architectures(directory: Any, make: Any) -> None:
    section = {"baremetal": {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"]}}
    sources = [{"source": "quay.io/a", "mirrors": ["m.test:5000/a", "quay.io/b"]}]
    config = make.install_config(
        platform=section, controlPlane={"name": "master", "replicas": 3}, imageContentSources=sources,
        compute=[{"name": "worker", "replicas": 1, "architecture": "arm64"}],
    )  # fmt: skip
    directory.write("install-config.yaml", config)
    directory.create("cluster-manifests")
    assert [text for text in directory.reported("warning") if "skipping" not in text] == [
        "Could not determine release architecture for multi arch cluster configuration. Make sure the release is a multi "
        "architecture payload.",
        "imageContentSources is deprecated, please use ImageDigestSources",
        'Mirror registry "m.test:5000" is not found in pullSecret',
        "The imageDigestSources configuration in install-config.yaml should have at least one source field matching the "
        f"releaseImage value {make.release}",
    ]


def test_without_a_release(sno: Any) -> None:
    with pytest.raises(InstallerError, match="no release image is known: set OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"):
        sno.create("cluster-manifests", release_image="")
    with pytest.raises(
        InstallerError, match=r"the version of the release is not known: .*set AGENTLAB_RELEASE_VERSION"
    ):
        sno.create("cluster-manifests", release_version="")


def test_lab_payload_is_the_default(sno: Any, make: Any) -> None:
    payload = {"release": make.release, "version": "4.22.0-lab"}
    sno.write(".cache/payload/current/payload.json", json.dumps(payload))
    result = sno.create("cluster-manifests", release_image="", release_version="")
    assert (result.release_image, result.version) == (make.release, "4.22.0-lab")


def test_base_iso_needs_the_registry(sno: Any) -> None:
    with pytest.raises(
        InstallerError, match="failed to get base ISO image: the base ISO comes from the release payload: unable to"
    ):
        sno.create("image", os_image={})
    with pytest.raises(InstallerError, match='failed to get base ISO image: parse "x y": invalid URI for request'):
        sno.create("image", os_image={"": "x y"})


def test_agent_tui_goes_into_the_initrd(sno: Any, make: Any) -> None:
    utils = "r.test/utils@sha256:" + "1" * 64
    facts = {
        "pullspec": make.release,
        "architecture": "amd64",
        "hw_requirements": "[7]",
        "os_images": "",
        "utils": utils,
    }
    sno.write(state.FILENAME, json.dumps({state.OWN: {"release_facts": facts}}))
    archive = cpio.compress(cpio.archive({"agent-files/agent-tui": b"tui"}))
    cached = sno.path / ".cache" / "files_cache" / ("sha256-" + "1" * 64) / "agent-files.cpio.gz"
    cached.parent.mkdir(parents=True)
    cached.write_bytes(archive)
    sno.create("image")
    with LiveIsoFiles(sno.path / "agent.x86_64.iso") as (__, files):
        assert files["images/pxeboot/initrd.img"].startswith(cpio.archive({"init": b"initrd"}))
        assert files["images/pxeboot/initrd.img"].rstrip(b"\0").endswith(archive.rstrip(b"\0"))
    assert "requirements='[7]'" in sno.files()["/usr/local/bin/configure-assisted-hw-requirements.sh"]


def test_graph_names_every_asset() -> None:
    text = run.graph()
    assert text.startswith("digraph G {")
    assert '"Install Config" -> "Agent Hosts";' in text


def test_another_release_remakes_unedited_files(sno: Any) -> None:
    sno.create("cluster-manifests", "image")
    other = "127.0.0.1:9/lab/release@sha256:" + "1" * 64
    sno.create("cluster-manifests", "image", release_image=other)
    image_set = yaml.safe_load((sno.path / "cluster-manifests" / "cluster-image-set.yaml").read_text())
    assert image_set["spec"]["releaseImage"] == other
    assert env(sno.files()["/etc/assisted/agent-installer.env"])["RELEASE_IMAGE"] == other
