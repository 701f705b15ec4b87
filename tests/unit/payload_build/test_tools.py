"""`oc` and `openshift-install` of the lab, called as the real assisted service calls them."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bcrypt
import pytest
import yaml
from ansible_collections.agentlab.ocp.payload.api_server import release
from ansible_collections.agentlab.ocp.payload.tools import nmstatectl, oc, openshift_install
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import credentials

from tests.unit.release.fake_registry import Fake, basic_auth

SOURCE = "registry.agentlab.test/lab"


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Fake]:
    found = Fake("127.0.0.1", tmp_path)
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def pullspec(fake: Fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A release behind the mirror of this host's registries.conf."""
    installer = fake.image({"usr/bin/openshift-install": b"#!/bin/sh\n"})
    names = {"installer": f"{SOURCE}/payload@{installer}", "hyperkube": f"{SOURCE}/payload@{installer}"}
    tags = [{"name": name, "from": {"name": image}} for name, image in names.items()]
    files = {
        "release-manifests/image-references": json.dumps(
            {"metadata": {"name": "4.22.0-lab"}, "spec": {"tags": tags}}
        ).encode(),
        "release-manifests/release-metadata": b'{"version": "4.22.0-lab"}',
    }
    registries = tmp_path / "registries.conf"
    registries.write_text(
        f'[[registry]]\nprefix = ""\nlocation = "{SOURCE}"\n[[registry.mirror]]\nlocation = "{fake.place}/lab"\n'
    )
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(fake.ca)
    monkeypatch.setattr(release, "REGISTRIES", registries)
    monkeypatch.setattr(release, "CA_BUNDLE", bundle)
    return f"{SOURCE}/release@{fake.image(files)}"


@pytest.fixture
def auths(fake: Fake, tmp_path: Path) -> Path:
    path = tmp_path / "registry-config"
    path.write_text(json.dumps({"auths": {fake.place: {"auth": basic_auth("u", "p")}}}))
    return path


def called(command: str, auths: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a command as the service builds it: words between spaces, with quotes as they are."""
    code = oc.main([*command.split()[1:], f"--registry-config={auths}"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out.strip()


def test_the_calls_of_the_service(
    pullspec: str, auths: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = called(f"oc adm release info --image-for=installer --insecure=false {pullspec}", auths, capsys)
    assert image.startswith(f"{SOURCE}/payload@sha256:")
    template = "oc adm release info -o template --template '{{.metadata.version}}' --insecure=false"
    assert called(f"{template} {pullspec}", auths, capsys).strip("'") == "4.22.0-lab"
    called(
        f"oc adm release extract --command=openshift-install --to={tmp_path} --insecure=true {pullspec}", auths, capsys
    )
    program = tmp_path / "openshift-install"
    assert (program.read_text(), program.stat().st_mode & 0o777) == ("#!/bin/sh\n", 0o755)
    assert "architecture" in json.loads(called(f"oc image info --output json {pullspec}", auths, capsys))["config"]


def test_mirrors_of_the_service_come_first(
    pullspec: str,
    fake: Fake,
    auths: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(release, "REGISTRIES", tmp_path / "none")
    path = tmp_path / "idms.yaml"
    entry = {"source": SOURCE, "mirrors": [f"{fake.place}/lab"]}
    path.write_text(yaml.safe_dump({"spec": {"imageDigestMirrors": [entry]}}))
    command = f"oc adm release info --image-for=hyperkube --insecure=false --idms-file={path} {pullspec}"
    assert called(command, auths, capsys).startswith(SOURCE)


def test_the_service_finds_the_flag_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("adm release info", "adm release extract", "image info"):
        with pytest.raises(SystemExit):
            oc.main([*command.split(), "--help"])
        text = capsys.readouterr().out
        found = re.findall(r"(?m)^\s*(?:-\w,\s+)?--(\w+(?:-\w+)*)=.*:\s*$", text)
        assert {"idms-file", "icsp-file", "registry-config", "insecure"} <= set(found), text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["adm", "release", "info", "--image-for=none", "PULLSPEC"], 'no image tag "none" exists in the release image'),
        (["adm", "release", "info", "--template", "{{.x}}", "PULLSPEC"], "this simulator has --image-for"),
        (["adm", "release", "info", "--template", "{{.x}}"], "the following arguments are required: IMAGE"),
        (["adm", "release", "extract", "--command=x", "--to=/tmp", "PULLSPEC"], "invalid choice: 'x'"),
    ],
)
def test_what_oc_refuses(
    pullspec: str, auths: Path, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    command = [pullspec if word == "PULLSPEC" else word for word in words]
    assert oc.main([*command, f"--registry-config={auths}"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert text in err
    assert err.count("\n") == 1


CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "baseDomain": "test.metalkube.org",
    "metadata": {"name": "ostest"},
    "controlPlane": {"name": "master", "replicas": 1},
    "compute": [{"name": "worker", "replicas": 0}],
    "networking": {
        "networkType": "OVNKubernetes",
        "machineNetwork": [{"cidr": "192.168.111.0/24"}],
        "clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}],
        "serviceNetwork": ["172.30.0.0/16"],
    },
    "platform": {"none": {}},
    "sshKey": "ssh-ed25519 AAAA a",
}
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agentlab-settings, namespace: x}\ndata: {A: '1'}\n"


class Folder:
    """The service's work directory, and its environment."""

    def __init__(self, path: Path, pullspec: str, auths: Path, config: dict[str, Any]) -> None:
        self.path = path
        (path / "tls").mkdir(parents=True)
        for name in credentials.SIGNERS:
            for kind, text in credentials.signer(name).items():
                (path / f"tls/{name}.{kind}").write_text(text)
        self.environment = {
            "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE": pullspec,
            "OPENSHIFT_INSTALL_INVOKER": "agent-installer",
            "OPENSHIFT_INSTALL_LOAD_CLUSTER_CERTS": "true",
            "OPENSHIFT_INSTALL_BOOTSTRAP_NODE_IP": "192.168.111.20",
        }
        (path / "install-config.yaml").write_text(json.dumps({**config, "pullSecret": auths.read_text()}))

    def create(self, target: str, monkeypatch: pytest.MonkeyPatch) -> int:
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)
        return openshift_install.main(["create", target, "--dir", str(self.path)])


def files_of(path: Path) -> dict[str, bytes]:
    entries = json.loads(path.read_text())["storage"]["files"]
    plain = [entry for entry in entries if "compression" not in entry["contents"]]
    return {entry["path"]: base64.b64decode(entry["contents"]["source"].partition(",")[2]) for entry in plain}


def test_single_node(pullspec: str, auths: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Folder(tmp_path / "work", pullspec, auths, CONFIG)
    assert folder.create("manifests", monkeypatch) == 0
    assert not (folder.path / "install-config.yaml").exists(), "as OpenShift's, it consumes its input"
    assert yaml.safe_load((folder.path / openshift_install.SCHEDULER).read_text())["spec"]["mastersSchedulable"] is True
    (folder.path / "openshift/settings.yaml").write_text(SETTINGS)
    assert folder.create("single-node-ignition-config", monkeypatch) == 0
    made = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file()}
    assert made - {f"tls/{name}.{kind}" for name in credentials.SIGNERS for kind in ("crt", "key")} == {
        ".openshift_install_state.json",
        "auth/kubeadmin-password",
        "auth/kubeconfig",
        "bootstrap-in-place-for-live-iso.ign",
        "metadata.json",
        "worker.ign",
    }
    files = files_of(folder.path / "bootstrap-in-place-for-live-iso.ign")
    facts = json.loads(files["/etc/kubernetes/cluster.json"])
    assert (facts["topology"], facts["version"], facts["invoker"]) == ("SingleReplica", "4.22.0-lab", "agent-installer")
    assert facts["hosts"][0]["addresses"] == ["192.168.111.20"]
    assert json.loads(files["/etc/agentlab/settings.json"]) == {"A": "1"}
    assert "/opt/openshift/master-base.ign" in files
    version = yaml.safe_load(files["/opt/openshift/manifests/cvo-overrides.yaml"])
    assert version["spec"]["clusterID"] == facts["id"]
    assert json.loads((folder.path / "metadata.json").read_text())["clusterID"] == facts["id"]
    assert yaml.safe_load((folder.path / "auth/kubeconfig").read_text())["clusters"][0]["name"] == "ostest"


def test_bare_metal(pullspec: str, auths: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = ["master", "master", "master", "worker"]
    hosts = [
        {"name": f"{role}-{n}", "role": role, "bootMACAddress": f"52:54:00:00:00:0{n}"} for n, role in enumerate(roles)
    ]
    platform = {"apiVIPs": ["192.168.111.5"], "ingressVIPs": ["192.168.111.4"], "hosts": hosts}
    folder = Folder(tmp_path / "work", pullspec, auths, {**CONFIG, "platform": {"baremetal": platform}})
    assert folder.create("ignition-configs", monkeypatch) == 0
    names = {path.name for path in folder.path.glob("*.ign")}
    assert names == {"bootstrap.ign", "master.ign", "worker.ign"}
    files = files_of(folder.path / "bootstrap.ign")
    facts = json.loads(files["/etc/kubernetes/cluster.json"])
    assert (facts["topology"], facts["platform"], facts["api_vips"]) == (
        "HighlyAvailable",
        "baremetal",
        ["192.168.111.5"],
    )
    assert [host["name"] for host in facts["hosts"]] == [host["name"] for host in hosts]
    # The service adds to each of them what it knows about the host.
    found = [yaml.safe_load(data) for name, data in files.items() if "cluster-api_hosts" in name]
    assert [host["metadata"]["name"] for host in found] == [host["name"] for host in hosts]
    assert found[0]["spec"]["bootMACAddress"] == "52:54:00:00:00:00"


def test_what_openshift_install_refuses(
    pullspec: str, auths: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Folder(tmp_path / "work", pullspec, auths, {**CONFIG, "metadata": {}})
    assert folder.create("manifests", monkeypatch) == 1
    assert "metadata.name and baseDomain are required" in capsys.readouterr().err
    folder = Folder(tmp_path / "other", pullspec, auths, CONFIG)
    del folder.environment["OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE"]
    monkeypatch.delenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE")
    assert folder.create("ignition-configs", monkeypatch) == 1
    assert "OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE is not set" in capsys.readouterr().err


def test_the_calls_of_openshift_install(
    fake: Fake, pullspec: str, auths: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"coreos/coreos-x86_64.iso": b"ISO", "usr/lib64/libnmstate.so.2": b"so"}
    image = f"{SOURCE}/payload@{fake.image(files)}"
    called(
        f"oc adm release info --image-for=installer --filter-by-os=linux/amd64 --insecure=true {pullspec}",
        auths,
        capsys,
    )
    extract = f"--filter-by-os=linux/amd64 --insecure=true --confirm {image}"
    for source in ("/coreos/coreos-x86_64.iso", "/coreos/none.iso", "/usr/lib64/libnmstate.so.*"):
        called(f"oc image extract --path={source}:{tmp_path} {extract}", auths, capsys)
    assert (tmp_path / "coreos-x86_64.iso").read_bytes() == b"ISO"
    assert (tmp_path / "libnmstate.so.2").read_bytes() == b"so"
    assert not (tmp_path / "none.iso").exists(), "oc does not fail: its callers look for the file"
    assert oc.main(["image", "extract", f"--path=/x:{tmp_path}/none", image]) == 1
    assert "of a directory that exists" in capsys.readouterr().err


def test_certificates_of_a_rendezvous_host_without(tmp_path: Path) -> None:
    """`set-node-zero.sh` takes `tls/*`; the service then has signers, a password and its hash."""
    assert openshift_install.main(["agent", "create", "certificates", "--dir", str(tmp_path)]) == 0
    made = {path.name: path for path in (tmp_path / "tls").iterdir()}
    signers = {f"{name}.{kind}" for name in credentials.SIGNERS for kind in ("key", "crt")}
    assert {*made} == {*signers, "kubeadmin-password", "kubeadmin-password.hash"}
    assert {path.stat().st_mode & 0o777 for path in made.values()} == {0o600}
    assert bcrypt.checkpw(made["kubeadmin-password"].read_bytes(), made["kubeadmin-password.hash"].read_bytes())
    with pytest.raises(SystemExit):
        openshift_install.main(["agent", "create", "manifests"])


def test_keyfiles_of_a_static_network(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As upstream's Go package returns them, from a state in JSON."""
    state = {
        "interfaces": [{"name": "eth0", "type": "ethernet", "state": "up", "ipv4": {"enabled": True, "dhcp": True}}]
    }
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(state).encode())))
    assert nmstatectl.main(["gc", "-"]) == 0
    [[name, text]] = json.loads(capsys.readouterr().out)["NetworkManager"]
    assert name == "eth0.nmconnection" and "method=auto" in text
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"interfaces": 1}')))
    assert nmstatectl.main(["gc", "-"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
