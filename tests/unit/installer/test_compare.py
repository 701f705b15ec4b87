"""`agentlab compare`. The other build is this checkout's own command line, as it is or with one thing changed."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import main
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import compare
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Exit
from hypothesis import given
from hypothesis import strategies as st

from .conftest import RELEASE, Directory, install_config

FILES = st.dictionaries(st.sampled_from(["a.yaml", "b.json", "c"]), st.binary(max_size=60))
CLI = "ansible_collections.agentlab.ocp.plugins.module_utils.cli"


def build(path: Path, afterwards: str = "") -> Path:
    """Write a program that runs the command line in this environment, and then `afterwards` with the assets as `here`."""
    path.write_text(
        f"#!/bin/sh\n[ $1 = version ] && {{ echo openshift-install unreleased-master-1; exit; }}\n"
        f'for word; do here=$word; done\n{shlex.quote(sys.executable)} -m {CLI} "$@" --consume || exit\n{afterwards}\n'
    )
    path.chmod(0o755)
    return path


def compared(
    capsys: pytest.CaptureFixture[str], folder: Path, program: Path, *words: str
) -> tuple[int, dict[str, list[list[str]]]]:
    """The exit code of `compare`, and its differences: file -> [[where, ours, theirs]]."""
    capsys.readouterr()
    code = main(["compare", "--dir", str(folder), "--binary", str(program), "-o", "json", *words])
    found: dict[str, list[list[str]]] = {}
    for row in json.loads(capsys.readouterr().out)["differences"]:
        found.setdefault(row["file"], []).append([row["where"], row["ours"], row["theirs"]])
    return code, found


@pytest.fixture
def inputs(sno: Directory, base_iso: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The directory of a single node, and an environment in which both builds find release and base ISO."""
    monkeypatch.setenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE", RELEASE)
    monkeypatch.setenv("OPENSHIFT_INSTALL_OS_IMAGE_OVERRIDE", str(base_iso))
    monkeypatch.setenv("AGENTLAB_RELEASE_VERSION", "4.22.0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return sno.path


@pytest.mark.parametrize("target", ["cluster-manifests", "image", "pxe-files", "unconfigured-ignition"])
def test_two_runs_of_one_build_agree(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    """Keys, certificates, tokens and UUIDs are random in each run, and do not count."""
    before = {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()}
    code, found = compared(capsys, inputs, build(tmp_path / "other"), "--target", target)
    assert found == {}
    assert code == Exit.OK
    assert {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()} == before


def test_what_differs_is_named(inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A field of a manifest by its path, a file that one lacks, a line of a script in the image."""
    change = tmp_path / "change.py"
    change.write_text("""
import json, sys
from pathlib import Path
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
here = Path(sys.argv[1])
(here / "rendezvousIP").unlink()
(here / "notes.txt").write_text("new")
path = here / "auth" / "kubeconfig"
path.write_text(path.read_text().replace("server: https://api.", "server: https://API."))
with LiveIso(here / "agent.x86_64.iso") as iso:
    config = json.loads(iso.ignition)
    config["systemd"]["units"].append({"name": "new.service", "enabled": True})
    config["storage"]["files"][0]["mode"] = 0o700
    iso.ignition = json.dumps(config).encode()
    iso.edit_kargs(append=["debug"])
    iso.save()
""")
    program = build(tmp_path / "other", f'{shlex.quote(sys.executable)} {change} "$here"')
    code, found = compared(capsys, inputs, program)
    assert code == Exit.FAILED
    assert found.pop("notes.txt") == [["", compare.ABSENT, "3 bytes"]]
    assert [row[1:] for row in found.pop("rendezvousIP")] == [["14 bytes", compare.ABSENT]]
    assert found.pop("auth/kubeconfig") == [
        [
            "clusters[0].cluster.server",
            '"https://api.ostest.test.example:6443"',
            '"https://API.ostest.test.example:6443"',
        ]
    ]
    assert found.pop("agent.x86_64.iso: kernel arguments")[0][1:] == [compare.ABSENT, "debug"]
    assert found.pop("agent.x86_64.iso: unit new.service")[0][1] == compare.ABSENT
    ((where, __, theirs),) = found.pop("agent.x86_64.iso: modes of files")
    assert where.startswith("/")
    assert theirs == '"0o700"'
    assert found == {}


def test_exit_code_and_messages_are_compared(inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A build that accepts what ours refuses."""
    config = install_config(sshKey="no key")
    (inputs / "install-config.yaml").write_text(json.dumps(config))
    program = tmp_path / "other"
    program.write_text(
        "#!/bin/sh\n[ $1 = version ] && echo openshift-install unreleased-1\necho 'level=info msg=\"all is well\"'\n"
    )
    program.chmod(0o755)
    code, found = compared(capsys, inputs, program, "--target", "cluster-manifests")
    assert code == Exit.FAILED
    assert found["exit code"] == [["", "1", "0"]]
    (messages,) = found["messages"]
    assert "sshKey" in messages[1]
    assert messages[2] == "info: all is well"


def test_both_install_the_lab_payload(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other build found no release, because its cache is one of its own."""
    monkeypatch.delenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE")
    payload = tmp_path / "cache/agentlab/payload/current/payload.json"
    payload.parent.mkdir(parents=True)
    payload.write_text(json.dumps({"release": RELEASE, "version": "4.22.0"}))
    found = compared(capsys, inputs, build(tmp_path / "other"), "--target", "cluster-manifests")
    assert found == (Exit.OK, {})


def test_both_install_what_the_directory_installs(
    inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest lab payload may be that of another lab: its registry has another release."""
    assert main(["agent", "create", "cluster-manifests", "--dir", str(inputs)]) == Exit.OK
    monkeypatch.delenv("OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE")
    payload = tmp_path / "cache/agentlab/payload/current/payload.json"
    payload.parent.mkdir(parents=True)
    payload.write_text(json.dumps({"release": RELEASE.replace("@sha256:", "@sha256:0")[:-1], "version": "4.22.0"}))
    asked = tmp_path / "asked"
    program = build(tmp_path / "other", f'echo "$OPENSHIFT_INSTALL_RELEASE_IMAGE_OVERRIDE" > {asked}')
    assert compared(capsys, inputs, program, "--target", "cluster-manifests") == (Exit.OK, {})
    assert asked.read_text().strip() == RELEASE


def test_secrets_are_not_printed(inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also those of the files that differ."""
    change = "sed -i 's/dTpw/b3RoZXI6c2VjcmV0LXdvcmRz/' \"$here/cluster-manifests/pull-secret.yaml\""
    program = build(tmp_path / "other", change)
    assert (
        main(["compare", "--dir", str(inputs), "--binary", str(program), "--target", "cluster-manifests"])
        == Exit.FAILED
    )
    printed = capsys.readouterr().out
    assert "pull-secret.yaml" in printed
    assert "dTpw" not in printed
    assert "b3RoZXI6" not in printed


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "--binary is required: there is no plan.yaml in the directory that names a build"),
        (["--binary", "/nonexistent/openshift-install"], "/nonexistent/openshift-install: there is no such file"),
    ],
)
def test_without_a_build(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str) -> None:
    """One message, and nothing runs."""
    assert main(["compare", "--dir", str(tmp_path), *words]) == Exit.USAGE
    assert capsys.readouterr().err == f"agentlab compare: {reason}\n"


def test_without_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A directory that has nothing to create from."""
    program = build(tmp_path / "other")
    (tmp_path / "empty").mkdir()
    assert main(["compare", "--dir", str(tmp_path / "empty"), "--binary", str(program)]) == Exit.USAGE
    assert "has neither install-config.yaml nor agent-config.yaml nor cluster-manifests" in capsys.readouterr().err


def test_a_damaged_image_is_one_file(tmp_path: Path) -> None:
    """It is compared as it is."""
    (tmp_path / "agent.x86_64.iso").write_bytes(b"no image")
    (tmp_path / "node.ign").write_bytes(b'{"storage": {"files": 7}}')
    assert compare.contents(tmp_path) == {"agent.x86_64.iso": b"no image", "node.ign": b'{"storage": {"files": 7}}'}


@given(FILES, FILES)
def test_any_two_results_can_be_compared(ours: dict[str, bytes], theirs: dict[str, bytes]) -> None:
    """Whatever is in the files; equal ones have no difference, and what both sides lack is not named."""
    found = compare.differences(compare.Side(0, files=ours), compare.Side(0, files=theirs))
    assert {difference.file for difference in found} <= {*ours, *theirs}
    assert compare.differences(compare.Side(0, files=ours), compare.Side(0, files=dict(ours))) == []
    assert {name for name in {*ours, *theirs} if (name in ours) != (name in theirs)} <= {
        difference.file for difference in found
    }
