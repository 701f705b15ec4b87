"""The files that a profile names are read before anything is created, and all that is wrong with them is in one report."""

from __future__ import annotations

import base64
import math
import os
import re
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import lab as cli
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import main, places
from ansible_collections.agentlab.ocp.plugins.module_utils.keys import ensure_ssh_key
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import build, files, presets, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

ROOT = Path(__file__).resolve().parents[3]
DIGEST = "sha256:" + "0" * 64


def report(path: Path, text: str, **more: bool) -> list[str]:
    path.write_text(text)
    with pytest.raises(ProfileError) as caught:
        profile.load(path, None, "nobodys", files=True, **more)
    return [str(problem).removeprefix(f"{path}:") for problem in caught.value.problems]


def test_one_report_has_schema_semantics_files_and_host(tmp_path: Path) -> None:
    """Missing files passed `plan`, and a deploy stopped at the first of them when the machines were there."""
    text = f"""stak: ipv4
installer:
  ssh_key_file: {tmp_path}/none.pub
  pull_secret_file: {tmp_path}/none.json
hypervisor: {{host: x}}
platform: none
master: {{memory_mib: 1000000}}
release:
  payload_overrides:
    agent-instaler-orchestrator: {tmp_path}
    installer: {tmp_path}/none
"""
    found = report(tmp_path / "p.yml", text, here=True)
    assert [re.search(r"[a-z_]\S+?(?=:? )", line)[0] for line in found] == [
        "stak",
        "installer.ssh_key_file",
        "installer.pull_secret_file",
        "hypervisor.host",
        "release.payload_overrides.agent-instaler-orchestrator",
        "release.payload_overrides.installer",
        "nodes.*.memory_mib",
    ]
    assert (
        found[1] == f"3:3: installer.ssh_key_file is '{tmp_path}/none.pub': cannot be read: No such file or directory"
    )
    assert found[4].endswith("did you mean agent-installer-orchestrator?")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (b"", "has no public key"),
        (b"\xff\xfe", "is not text in UTF-8"),
        (b"ssh-rsa AAAA me", "is not a file of SSH public keys, such as `ssh-ed25519 AAAA...`"),
        (b"hello", "is not a file of SSH public keys, such as `ssh-ed25519 AAAA...`"),
        (
            b"-----BEGIN OPENSSH PRIVATE KEY-----\n",
            "is a private key; use the public one, such as ~/.ssh/id_ed25519.pub",
        ),
        (b"x" * (files.LIMIT + 1), "is larger than 1024 KiB"),
    ],
)
def test_ssh_keys(text: bytes, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_bytes(text)
    with pytest.raises(files.FileError) as caught:
        files.ssh_keys(str(path))
    assert str(caught.value) == wrong


def test_ssh_keys_that_are_some(tmp_path: Path) -> None:
    path, key = tmp_path / "key.pub", ensure_ssh_key(tmp_path)
    parts = (b"sk-ssh-ed25519@openssh.com", b"k" * 32, b"ssh:")
    token = base64.b64encode(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).decode()
    path.write_text(f"# mine\n{key}\n\nno-pty {key}\nsk-ssh-ed25519@openssh.com {token} me\n")
    assert len(files.ssh_keys(str(path)).splitlines()) == 3


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"auths": []}', "{"])
def test_pull_secrets(text: str, tmp_path: Path) -> None:
    path = tmp_path / "pull.json"
    path.write_text(text)
    with pytest.raises(files.FileError, match=r"is not JSON|is not a pull secret"):
        files.pull_secret(str(path))


@pytest.mark.parametrize(
    ("texts", "wrong"),
    [
        ({}, "has no file *.yaml or *.yml"),
        ({"a.yaml": "{"}, "has a.yaml, which is not YAML: line 2: did not find expected node content"),
        ({"a.yaml": "- 1"}, "has a.yaml, whose object 1 has no apiVersion"),
        (
            {"a.yaml": "{apiVersion: v1, kind: List}\n---\n{apiVersion: v1, kind: Secret, metadata: {}}"},
            "has a.yaml, whose object 2 has no metadata.name",
        ),
        (
            {"install-config.yaml": "{}"},
            "has install-config.yaml, which is the name of another input file; rename it",
        ),
    ],
)
def test_folders_of_manifests_that_are_refused(texts: dict[str, str], wrong: str, tmp_path: Path) -> None:
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(files.FileError) as caught:
        files.manifests_of(str(tmp_path))
    assert str(caught.value) == wrong


def test_manifests_of_the_profile_that_are_refused(tmp_path: Path) -> None:
    text = """installer:
  manifests:
    agentlab-settings: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
    other: {apiVersion: v1, metadata: {name: x}}
  manifests_dir: /nowhere/at/all
"""
    assert report(tmp_path / "p.yml", text) == [
        "3:5: installer.manifests.agentlab-settings: is the name of another input file; choose another one",
        "4:5: installer.manifests.other: has no kind: a manifest is an object, such as "
        "{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: 50-chrony}}",
        "5:3: installer.manifests_dir is '/nowhere/at/all': cannot be read: No such file or directory",
    ]


def test_a_manifest_of_profile_and_folder_is_refused_before_anything_is_created(tmp_path: Path) -> None:
    manifest = "{apiVersion: v1, kind: Namespace, metadata: {name: one}}"
    folder = tmp_path / "given"
    folder.mkdir()
    (folder / "one.yaml").write_text(manifest)
    text = f"installer:\n  manifests: {{one: {manifest}}}\n  manifests_dir: {folder}\n"
    assert report(tmp_path / "p.yml", text) == [
        f"3:3: installer.manifests_dir is '{folder}': has one.yaml, as installer.manifests has; remove one"
    ]


def test_paths_that_are_not_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name in (tmp_path, tmp_path / "fifo", "/dev/zero"):
        with pytest.raises(files.FileError, match="is not a file"):
            files.read(str(name))


def test_overrides(tmp_path: Path) -> None:
    def found(source: str) -> list[str]:
        release = {
            "payload": "lab",
            "payload_overrides": {"must-gather": source},
            "installer": {"binary": None, "git": None},
        }
        return [
            text
            for *__, text in files.check(
                {"installer": {"ssh_key_file": None, "pull_secret_file": None}, "release": release}
            )
        ]

    assert not any(found(source) for source in (str(tmp_path), f"quay.io/me/installer@{DIGEST}"))
    assert all(
        found(source)
        for source in (
            f"{tmp_path}/none",
            "installer",
            "quay.io/me/installer:latest",
            f"./x@{DIGEST}",
            f"quay.io/x@sha256:{'0' * 63}",
        )
    )


def test_verbs_that_need_no_files_do_not_ask_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.setattr(cli, "run_dir", lambda cluster: tmp_path / cluster)
    path = tmp_path / "p.yml"
    path.write_text(f"installer: {{ssh_key_file: {tmp_path}/none.pub}}\n")
    for verb in ("wait", "validate", "gather", "destroy"):
        assert cli.inputs(verb, "one", str(path)).inventory
    for verb in ("prepare", "configure", "image", "deploy"):
        with pytest.raises(ProfileError, match=r"installer\.ssh_key_file"):
            cli.inputs(verb, "one", str(path))
    # The plan in the run directory names files as well.
    rundir.write(rundir.prepare(tmp_path / "one", str(path), None, "one")[1])
    assert cli.inputs("destroy", "one").inventory
    with pytest.raises(ProfileError, match=r"plan\.yaml: installer\.ssh_key_file is .*none\.pub"):
        cli.inputs("prepare", "one")


def test_a_route_to_ipv6_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It was accepted, and led nowhere."""
    path = tmp_path / "p.yml"
    assert report(path, "stack: ipv6\nhypervisor: {route: true}\n") == [
        "2:14: hypervisor.route is True: a route supports IPv4 addresses only, and `stack: ipv6` has none: must be false"
    ]
    path.write_text("topology: ha\nstack: dualstack\nhypervisor: {route: true}\n")
    assert main(["plan", str(path), "--format", "yaml"]) == 0
    assert capsys.readouterr().err.startswith(
        "warning: hypervisor.route reaches only the IPv4 addresses of this cluster"
    )


def test_the_numbers_of_the_readme() -> None:
    """It reported 24 GiB for what takes 14, and 4 GiB for nodes of 2 and 3."""
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (\d+) \| ([\d.]+) GiB \| (\d+) GiB \|$", text, re.MULTILINE)
    assert len(rows) == 3
    lab = presets.CAPACITY["lab"]
    for name, *numbers in rows:
        nodes = build.build(profile.load(name, ROOT / "config_examples"), "ostest")["nodes"]
        memory = (sum(node["memory_mib"] for node in nodes) + len(nodes) * lab["vm_overhead_mib"]) / 1024
        disk = lab["shared_gib"] + len(nodes) * lab["node_gib"]
        assert numbers == [
            str(len(nodes)),
            str(sum(node["vcpus"] for node in nodes)),
            str(math.ceil(memory * 10) / 10),
            str(disk),
        ], name
