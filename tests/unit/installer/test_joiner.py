"""The node ISO, from a cluster's facts and nodes-config.yaml: what openshift/installer's own tests of node-joiner look for."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.documents import load_json, load_yaml
from ansible_collections.agentlab.ocp.plugins.module_utils.ignition.config import files_of
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials, run
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.errors import InstallerError
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.joiner.assets import ADD_NODES
from ansible_collections.agentlab.ocp.plugins.module_utils.installer.joiner.cluster import ClusterInfo, Member
from ansible_collections.agentlab.ocp.plugins.module_utils.log import Log
from ansible_collections.agentlab.ocp.tests.unit.release.fake_registry import basic_auth

from .conftest import ASSETS, KEY, RELEASE, host
from .test_release import Payload, files, registry

__all__ = ["files", "registry"]

TOKENS = credentials.NO_TOKENS | {
    "AuthType": "agent-installer-local", "PublicKey": "cHVi", "AgentAuthToken": "agent", "UserAuthToken": "user",
    "WatcherAuthToken": "watcher", "AuthTokenExpiry": "2030-01-02T03:04:05Z",
}  # fmt: skip
INFO: ClusterInfo = {
    "cluster_id": "c37c9544-4320-4380-9d8b-0753a4d9ea57",
    "name": "ostest",
    "api": "api.ostest.test.metalkube.org",
    "version": "4.22.0",
    "release_image": RELEASE,
    "pull_secret": json.dumps({"auths": {"quay.io": {"auth": "dTpw"}}}),
    "trust_bundle": "",
    "proxy": {"httpProxy": "", "httpsProxy": "", "noProxy": ""},
    "architecture": "amd64",
    "image_sources": [{"source": "127.0.0.1:9/lab/release", "mirrors": ["registry.example.com:5000/ocp4/openshift4"]}],
    "platform": "BareMetal",
    "ssh_key": KEY,
    "endpoint": {"ca_certificate": "Q0E=", "url": "https://api-int.ostest.test.metalkube.org:22623/config/worker"},
    "fips": False,
    "chrony": None,
}


class Joiner:
    """A directory in which node ISOs are made."""

    def __init__(self, path: Path, base_iso: Path) -> None:
        self.path, self.base_iso, self.log = path, base_iso, Log(None, emit=lambda __: None)

    def write(self, *hosts: Any, **fields: Any) -> None:
        (self.path / "nodes-config.yaml").write_text(yaml.safe_dump({**fields, "hosts": list(hosts)}))

    def create(
        self, target: str = "node-image", *, members: list[Member] | None = None, tokens: Any = None, **changes: Any
    ) -> run.Result:
        self.log.lines.clear()
        info: Any = {**INFO, **changes}
        options = run.Options(
            directory=self.path, assets=ASSETS, cache=self.path / "cache", release_image=info["release_image"],
            release_version=info["version"], os_image={"": str(self.base_iso)} if self.base_iso else {}, cluster=info,
            tokens=tokens or TOKENS, members=members or [],
        )  # fmt: skip
        return run.create([target], options, self.log, workflow=ADD_NODES)

    def ignition(self, name: str = "node.x86_64.iso") -> dict[str, Any]:
        with LiveIso(self.path / name) as iso:
            found: dict[str, Any] = load_json(iso.ignition, name="ignition")
        return found

    def files(self) -> dict[str, str]:
        return {path: data.decode() for path, data in files_of(self.ignition()).items()}


@pytest.fixture
def joiner(tmp_path: Path, base_iso: Path) -> Joiner:
    return Joiner(tmp_path, base_iso)


def test_default_values(joiner: Joiner) -> None:
    joiner.write(host("extra-worker-0", 0))
    joiner.create()
    files, document = joiner.files(), joiner.ignition()
    assert files["/etc/assisted/add-nodes.env"].splitlines() == [
        "CLUSTER_ID=c37c9544-4320-4380-9d8b-0753a4d9ea57",
        "CLUSTER_NAME=ostest",
        "CLUSTER_API_VIP_DNS_NAME=api.ostest.test.metalkube.org",
        "AUTH_TOKEN_EXPIRY=2030-01-02T03:04:05Z",
    ]
    assert (
        load_json(files["/etc/assisted/clusterconfig/worker-ignition-endpoint.json"], name="endpoint")
        == INFO["endpoint"]
    )
    assert '"userManagedNetworking": false' in files["/etc/assisted/clusterconfig/import-cluster-config.json"]
    assert 'location = "registry.example.com:5000/ocp4/openshift4"' in files["/etc/containers/registries.conf"]
    manifests = {path.rpartition("/")[2] for path in files if path.startswith("/etc/assisted/manifests/")}
    assert manifests == {"cluster-image-set.yaml", "infraenv.yaml", "pull-secret.yaml"}
    infra = load_yaml(files["/etc/assisted/manifests/infraenv.yaml"], name="infraenv")
    assert infra["metadata"]["namespace"] == "cluster0"
    assert infra["spec"]["cpuArchitecture"] == "x86_64"
    env = files["/etc/assisted/rendezvous-host.env"]
    assert "NODE_ZERO_IP=127.0.0.1\n" in env
    assert "WORKFLOW_TYPE=addnodes\n" in env
    assert "PULL_SECRET_TOKEN=agent\n" in env
    assert files["/etc/assisted/hostnames/52:54:00:aa:bb:00"] == "extra-worker-0"
    assert "/usr/local/bin/add-node.sh" in files
    [user] = document["passwd"]["users"]
    assert user["sshAuthorizedKeys"] == [KEY]
    units = {unit["name"]: unit.get("enabled") for unit in document["systemd"]["units"]}
    assert units["agent-add-node.service"]
    assert units["agent-auth-token-status.service"]
    assert units["agent-import-cluster.service"]
    assert not units["start-cluster-installation.service"]
    assert f"Generated ISO at {joiner.path}/node.x86_64.iso. The ISO is valid up to 2030-01-02T03:04:05Z" in [
        text for __, text in joiner.log.lines
    ]


def test_overrides(joiner: Joiner) -> None:
    """What nodes-config.yaml has wins over the cluster."""
    other = KEY.replace("@example", "another-user")
    joiner.write(host("a", 1), sshKey=other)
    joiner.create(fips=True, platform="None", endpoint=None, chrony="server ntp.example.com iburst\n")
    files, document = joiner.files(), joiner.ignition()
    assert document["passwd"]["users"][0]["sshAuthorizedKeys"] == [other]
    assert files["/etc/chrony.conf"] == "server ntp.example.com iburst\n"
    assert "/etc/assisted/clusterconfig/worker-ignition-endpoint.json" not in files
    assert '"userManagedNetworking": true' in files["/etc/assisted/clusterconfig/import-cluster-config.json"]
    with LiveIso(joiner.path / "node.x86_64.iso") as iso:
        assert iso.kargs is not None
        assert iso.kargs.current.endswith("fips=1")


def test_static_network(joiner: Joiner) -> None:
    joiner.write(host("a", 1, static=True))
    joiner.create()
    files = joiner.files()
    assert "192.168.111.21/24" in files["/etc/assisted/network/host0/eth0.nmconnection"]
    assert "/etc/assisted/manifests/nmstateconfig.yaml" in files


def test_a_second_run_changes_nothing(joiner: Joiner) -> None:
    joiner.write(host("a", 1), host("b", 2))
    assert joiner.create().changed == ["node.x86_64.iso", "rendezvousIP"]
    assert joiner.create().changed == []
    assert joiner.create(ssh_key=KEY.replace("@example", "another")).changed == ["node.x86_64.iso"]
    other = TOKENS | {"AgentAuthToken": "another"}
    assert joiner.create(ssh_key=KEY.replace("@example", "another"), tokens=other).changed == ["node.x86_64.iso"]
    joiner.write(host("a", 1))
    assert joiner.create(ssh_key=KEY.replace("@example", "another"), tokens=other).changed == ["node.x86_64.iso"]


def test_files_for_the_network(joiner: Joiner) -> None:
    joiner.write(host("a", 1), bootArtifactsBaseURL="http://192.0.2.1")
    joiner.create("node-pxe-files")
    names = {path.name for path in (joiner.path / "boot-artifacts").iterdir()}
    assert names == {
        "node.x86_64-initrd.img", "node.x86_64-rootfs.img", "node.x86_64-vmlinuz", "node.x86_64.ipxe"
    }  # fmt: skip


WRONG: dict[str, tuple[tuple[Any, ...], dict[str, Any], dict[str, Any], str]] = {
    "no host": ((), {}, {}, "hosts: Required value: at least one host must be defined"),
    "the name of a node": (
        (host("master-0", 1),),
        {},
        {"members": [{"name": "master-0", "addresses": ["192.168.111.20"]}]},
        "hostname conflict found. The configured hostname master-0 is already used in the cluster",
    ),
    "the address of a node": (
        (host("a", 1, static=True),),
        {},
        {"members": [{"name": "master-0", "addresses": ["192.168.111.21"]}]},
        "address conflict found. The configured address 192.168.111.21 is already used by the cluster node master-0",
    ),
    "an architecture of another platform": (
        (host("a", 1),),
        {"cpuArchitecture": "s390x"},
        {},
        'platform: Invalid value: "baremetal": CPU architecture "s390x" only supports platform "none".',
    ),
    "no architecture": (
        (host("a", 1),), {"cpuArchitecture": "sparc"}, {}, "Config.Spec.CpuArchitecture sparc is not supported "
    ),
    "another platform": (
        (host("a", 1),), {}, {"platform": "Mainframe"}, "unable to convert platform type Mainframe"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_refused(joiner: Joiner, name: str) -> None:
    hosts, fields, changes, text = WRONG[name]
    joiner.write(*hosts, **fields)
    with pytest.raises(InstallerError) as error:
        joiner.create(**changes)
    assert str(error.value).endswith(text)
    assert not (joiner.path / "node.x86_64.iso").exists()


def test_without_a_file(joiner: Joiner) -> None:
    with pytest.raises(InstallerError, match=r"failed to load nodes-config.yaml file: .*: no such file"):
        joiner.create()


def test_without_a_cluster(joiner: Joiner) -> None:
    joiner.write(host("a", 1))
    options = run.Options(directory=joiner.path, assets=ASSETS, cache=joiner.path / "cache", release_version="4.22.0")
    with pytest.raises(InstallerError, match="the cluster that the nodes are to join is not known"):
        run.create(["node-image"], dataclasses.replace(options, tokens=TOKENS), joiner.log, workflow=ADD_NODES)


def test_another_architecture_than_the_release(joiner: Joiner, registry: Any, files: dict[str, bytes]) -> None:
    """The release has images of its own architecture alone; upstream refuses with the same text."""
    payload = Payload(registry, files)
    sources = [
        {"source": f"registry.agentlab.test/lab/{name}", "mirrors": [f"{registry.place}/lab/{name}"]}
        for name in ("release", "payload")
    ]
    release: Any = {
        "release_image": payload.pullspec, "image_sources": sources, "trust_bundle": registry.ca,
        "pull_secret": json.dumps({"auths": {registry.place: {"auth": basic_auth("u", "p")}}}),
    }  # fmt: skip
    joiner.base_iso = None
    joiner.write(host("a", 1))
    joiner.create(**release)
    assert (joiner.path / "node.x86_64.iso").exists()
    joiner.write(host("a", 1), cpuArchitecture="arm64")
    with pytest.raises(InstallerError) as error:
        joiner.create(**release)
    assert str(error.value).endswith(
        "failed to get base ISO image: base ISO for aarch64 not found in release image, check release image architecture"
    )
    assert ("info", "CPU architecture set to: arm64") in joiner.log.lines
    assert not (joiner.path / "node.aarch64.iso").exists()
