"""Replacements of components: every kind, and every refusal, before anything is created."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.payload.images import oci
from ansible_collections.agentlab.ocp.payload.images.components import COMPONENTS
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import lab as cli
from ansible_collections.agentlab.ocp.plugins.module_utils.cli import places
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import overrides, profile, rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.overrides import Kind, OverrideError
from ansible_collections.agentlab.ocp.plugins.module_utils.plan.problems import ProfileError

AGENT, INSTALLER = "agent-installer-node-agent", "agent-installer-orchestrator"
DIGEST = "sha256:" + "1" * 64


def elf(path: Path, machine: int = 62, mode: int = 0o755) -> Path:
    """Write the header of an ELF file: 62 is x86_64, 183 aarch64."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + (2).to_bytes(2, "little") + machine.to_bytes(2, "little"))
    path.chmod(mode)
    return path


def layout(path: Path, tag: str = "agent", architecture: str = "amd64") -> Path:
    made = oci.Layout.create(path)
    layer = oci.write_layer(path / "layer", {"usr/bin/agent": oci.Node(b"x")})
    os.replace(path / "layer", made.blob(layer.digest))
    made.write_index({tag: made.add_image(oci.Image([layer], architecture=architecture))})
    return path


def refusal(name: str, source: str | Path) -> str:
    with pytest.raises(OverrideError) as caught:
        overrides.check(name, str(source))
    return str(caught.value)


def test_entry_points_are_those_of_the_lab_s_components() -> None:
    for name, component in COMPONENTS.items():
        if component.programs:
            assert set(overrides.ENTRY_POINTS[name]) == set(component.programs), name
    assert set(overrides.ENTRY_POINTS) == {n for n, c in COMPONENTS.items() if c.programs or c.extra == "node-agent"}


def test_kinds(tmp_path: Path) -> None:
    elf(tmp_path / "tree/usr/bin/agent")
    for source, kind in {
        "fails": Kind.FAILS,
        str(tmp_path / "tree"): Kind.FILES,
        str(layout(tmp_path / "layout")): Kind.LAYOUT,
        f"quay.io/me/agent@{DIGEST}": Kind.PULLSPEC,
    }.items():
        assert overrides.check(AGENT, source) is kind
    assert overrides.kind("containers-storage:localhost/agent:latest") is Kind.STORE


def test_a_tree_is_laid_over_the_image_as_a_whole(tmp_path: Path) -> None:
    elf(tmp_path / "usr/bin/agent")
    elf(tmp_path / "usr/bin/nmap")
    (tmp_path / "usr/bin/arping").symlink_to("nmap")
    assert {path for path, file in overrides.contents(AGENT, str(tmp_path)).items() if not file.is_dir()} == {
        "usr/bin/agent", "usr/bin/nmap", "usr/bin/arping"
    }  # fmt: skip


@pytest.mark.parametrize("folder", ["", "build", "bin"])
def test_a_checkout_gives_its_programs_and_their_data_alone(tmp_path: Path, folder: str) -> None:
    elf(tmp_path / folder / "installer")
    (tmp_path / "go.mod").write_text("module x")
    (tmp_path / "deploy/assisted-installer-controller").mkdir(parents=True)
    (tmp_path / "deploy/assisted-installer-controller/pod.yaml.template").write_text("x")
    assert overrides.contents(INSTALLER, str(tmp_path)) == {
        "usr/bin/installer": tmp_path / folder / "installer",
        "assisted-installer-controller/deploy/pod.yaml.template": tmp_path
        / "deploy/assisted-installer-controller/pod.yaml.template",
    }


def test_what_no_directory_is(tmp_path: Path) -> None:
    program = elf(tmp_path / "agent")
    assert refusal(AGENT, tmp_path / "none") == "there is no such directory"
    assert refusal(AGENT, "./none") == "there is no such directory"
    assert refusal(AGENT, program) == "is not a directory; give that of the program"
    for source in ("quay.io/me/agent:latest", "agent", "quay.io/x@sha256:1", f"docker://quay.io/x@{DIGEST}x"):
        assert refusal(AGENT, source).startswith("is neither a directory, nor containers-storage:NAME, nor a pullspec")
    assert refusal(AGENT, "containers-storage:") == (
        "must be containers-storage:NAME, such as containers-storage:localhost/agent:latest"
    )


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("agent", AGENT),
        ("controller", "agent-installer-csr-approver"),
        ("assisted-service", "agent-installer-api-server"),
        ("agent-instaler-orchestrator", INSTALLER),
    ],
)
def test_an_unknown_component(name: str, meant: str) -> None:
    assert refusal(name, "fails") == f"no component of the release has this name; did you mean {meant}?"


def test_a_component_without_programs_cannot_fail() -> None:
    assert refusal("must-gather", "fails") == "has no programs, so it cannot fail"


def test_no_entry_point(tmp_path: Path) -> None:
    elf(tmp_path / "usr/bin/other")
    assert refusal(AGENT, tmp_path) == (
        f"has no entry point of {AGENT}: /usr/bin/agent must be there, or agent directly in it, in build/ or in bin/"
    )
    assert refusal(INSTALLER, tmp_path).startswith(f"has no entry point of {INSTALLER}: /usr/bin/installer must")
    elf(tmp_path / "usr/bin/agent", mode=0o644)
    assert refusal(AGENT, tmp_path) == f"{tmp_path}/usr/bin/agent is not executable"


def test_another_architecture(tmp_path: Path) -> None:
    program = elf(tmp_path / "build/agent", machine=183)
    assert refusal(AGENT, tmp_path) == f"{program} is an ELF file for aarch64; the nodes are x86_64"
    assert refusal("must-gather", tmp_path) == f"{program} is an ELF file for aarch64; the nodes are x86_64"
    elf(tmp_path / "build/agent", machine=4242)
    assert "is an ELF file for machine 4242" in refusal(AGENT, tmp_path)
    (tmp_path / "build/agent").write_text("#!/bin/sh\n")
    assert overrides.check(AGENT, str(tmp_path)) is Kind.FILES, "scripts have no architecture"
    assert refusal(AGENT, layout(tmp_path / "arm", architecture="arm64")) == (
        "is an image for aarch64; the nodes are x86_64"
    )


def image(path: Path, *stack: dict[str, oci.Node], compression: Any = "gzip") -> Path:
    """Write a layout with an image of these layers, lowest first."""
    made = oci.Layout.create(path)
    written = []
    for number, nodes in enumerate(stack):
        written.append(oci.write_layer(path / str(number), nodes, compression=compression))
        os.replace(path / str(number), made.blob(written[-1].digest))
    made.write_index({"agent": made.add_image(oci.Image(written))})
    return path


PROGRAM, EMPTY = oci.Node(b"x"), oci.Node(b"")
NO_ENTRY = f"has no entry point of {AGENT}: the image must have /usr/bin/agent"


@pytest.mark.parametrize(
    ("stack", "there"),
    [
        ([{"usr/bin/agent": PROGRAM}], True),
        ([{"usr/bin/agent": oci.Node(link="other")}, {"etc/x": EMPTY}], True),
        ([{"usr/bin": oci.Node(link="../opt")}], True),
        ([{"usr/bin/other": PROGRAM}], False),
        ([{"usr/bin/agent": oci.Node()}], False),
        ([], False),
        ([{"usr/bin/agent": PROGRAM}, {"usr/bin/.wh.agent": EMPTY}], False),
        ([{"usr/bin/agent": PROGRAM}, {"usr/.wh.bin": EMPTY}], False),
        ([{"usr/bin/agent": PROGRAM}, {"usr/bin/.wh..wh..opq": EMPTY}], False),
        ([{"usr/bin/agent": PROGRAM}, {"usr/bin/.wh.agent": EMPTY}, {"usr/bin/agent": PROGRAM}], True),
        ([{"usr/bin/agent": PROGRAM}, {"usr/bin/.wh..wh..opq": EMPTY, "usr/bin/agent": PROGRAM}], True),
    ],
)
@pytest.mark.parametrize("compression", ["gzip", "zstd", ""])
def test_the_entry_point_of_an_image(
    tmp_path: Path, stack: list[dict[str, oci.Node]], there: bool, compression: str
) -> None:
    path = image(tmp_path, *stack, compression=compression)
    assert overrides.check(AGENT, str(path)) is Kind.LAYOUT if there else refusal(AGENT, path) == NO_ENTRY


def test_a_component_without_programs_has_no_entry_point(tmp_path: Path) -> None:
    path = image(tmp_path, {"etc/x": PROGRAM})
    layer = max((path / "blobs/sha256").iterdir(), key=lambda blob: blob.read_bytes().startswith(b"\x1f\x8b"))
    layer.write_bytes(b"not read")
    assert overrides.check("must-gather", str(path)) is Kind.LAYOUT


def test_damaged_layers(tmp_path: Path) -> None:
    path = image(tmp_path, {"etc/x": oci.Node(os.urandom(4096))})
    layer = max((path / "blobs/sha256").iterdir(), key=lambda blob: blob.stat().st_size)
    layer.write_bytes(layer.read_bytes()[:2000])
    assert "is not a valid OCI layout: layer sha256:" in refusal(AGENT, path)
    layer.unlink()
    assert "No such file or directory" in refusal(AGENT, path)


@pytest.mark.parametrize("index", ["{", "[]", '{"manifests": [{"digest": "../../etc/passwd"}]}', '{"manifests": [1]}'])
def test_a_damaged_layout(tmp_path: Path, index: str) -> None:
    (tmp_path / "index.json").write_text(index)
    assert refusal(AGENT, tmp_path).startswith(("is not a valid OCI layout", "has 0 images"))


def test_a_layout_with_other_images(tmp_path: Path) -> None:
    path = layout(tmp_path / "two")
    index = json.loads((path / "index.json").read_text())
    index["manifests"] *= 2
    (path / "index.json").write_text(json.dumps(index))
    assert refusal(AGENT, path) == f"has 2 images and none is tagged {AGENT}"
    (path / "blobs/sha256" / index["manifests"][0]["digest"][7:]).unlink()
    index["manifests"] = index["manifests"][:1]
    (path / "index.json").write_text(json.dumps(index))
    assert refusal(AGENT, path).endswith("No such file or directory")


class Skopeo:
    """The answers of skopeo."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[list[str]] = []
        self.answer: Exception | bytes = b'{"architecture": "amd64"}'
        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
        monkeypatch.setattr(subprocess, "run", self)

    def __call__(self, command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        self.calls.append(command)
        if isinstance(self.answer, Exception):
            raise self.answer
        return subprocess.CompletedProcess(command, 0, self.answer, b"")


def test_an_image_of_a_local_store(monkeypatch: pytest.MonkeyPatch) -> None:
    skopeo, source = Skopeo(monkeypatch), "containers-storage:localhost/agent:latest"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert overrides.check(AGENT, source) is Kind.STORE
    assert skopeo.calls == [["unshare", "--mount", "skopeo", "inspect", "--config", "--raw", source]]
    skopeo.answer = b'{"architecture": "arm64"}'
    assert refusal(AGENT, source) == "is an image for aarch64; the nodes are x86_64"
    skopeo.answer = b"{}"
    assert refusal(AGENT, source) == "has a configuration without an architecture"
    skopeo.answer = subprocess.CalledProcessError(1, "skopeo", stderr=b"time=1\nfatal: no such image\n")
    assert refusal(AGENT, source) == (
        "cannot be read from the container store of this user: fatal: no such image; "
        "of another one: podman save --format oci-dir -o DIR IMAGE"
    )
    skopeo.answer = subprocess.TimeoutExpired("skopeo", 60)
    assert refusal(AGENT, source) == "the container store did not answer within 60 s"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert refusal(AGENT, source) == "needs the program skopeo; to install it: agentlab setup"


@pytest.mark.parametrize("text", ["agent", "=x", f"{AGENT}=", ""])
def test_what_the_option_is_not(text: str) -> None:
    with pytest.raises(OverrideError, match=rf"^--override {text}: must be COMPONENT=WHAT, such as "):
        overrides.pair(text)


def test_paths_mean_the_same_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The payload is built in another directory."""
    elf(tmp_path / "agent/usr/bin/agent")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for source in ("agent", "./agent", "~/agent"):
        assert overrides.pair(f"{AGENT}={source}") == (AGENT, str(tmp_path / "agent"))
        made = profile.complete({"release": {"payload_overrides": {AGENT: source}}})
        assert made["release"]["payload_overrides"] == {AGENT: str(tmp_path / "agent")}
    assert overrides.pair(f"{AGENT}=quay.io/x@{DIGEST}")[1] == f"quay.io/x@{DIGEST}"


def test_intervals_follow_the_component(tmp_path: Path) -> None:
    def interval(release: dict[str, Any], **fields: Any) -> tuple[str, str]:
        found = profile.complete({"release": release, **fields})["settings"]
        return found["AGENT_NEXT_INSTRUCTION_SECONDS"], found["STEP_REPEAT_SECONDS"]

    assert interval({}) == interval({"payload_overrides": {AGENT: "fails"}}) == ("5", "20")
    assert interval({"payload_overrides": {INSTALLER: "/x"}}) == ("5", "20")
    for name in (AGENT, "agent-installer-api-server"):
        assert interval({"payload_overrides": {name: "/x"}}) == ("60", "0")
    mine = {"AGENT_NEXT_INSTRUCTION_SECONDS": "30"}
    assert interval({"payload_overrides": {AGENT: "/x"}}, settings=mine) == ("30", "0")


def test_a_deploy_with_an_override(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "ROOT", tmp_path)
    monkeypatch.setattr(cli, "run_dir", lambda cluster: tmp_path / "runs" / cluster)
    elf(tmp_path / "agent/build/agent")
    mine, own = {AGENT: str(tmp_path / "agent")}, {"installer": f"quay.io/me/x@{DIGEST}"}
    path = tmp_path / "p.yml"
    path.write_text(f"topology: sno\nrelease: {{payload_overrides: {json.dumps(own)}}}\n")
    assert cli.inputs("deploy", "one", str(path), components=mine).variables["agentlab_plan_overrides"] == mine
    with pytest.raises(ProfileError, match=rf"release\.payload_overrides\.{AGENT} is .*: there is no such directory"):
        cli.inputs("deploy", "one", str(path), components={AGENT: str(tmp_path / "none")})
    assert not (tmp_path / "runs").exists(), "before anything is created"

    def planned(name: str | None, components: dict[str, str]) -> dict[str, str]:
        plan, changes = rundir.prepare(tmp_path / "runs/one", name, None, "one", components=components)
        rundir.write(changes)
        return dict(plan["release"]["payload_overrides"])

    assert planned(str(path), mine) == {**own, **mine}
    assert planned(None, {}) == {**own, **mine}, "a rerun resumes with them"
    again = {AGENT: f"quay.io/me/agent@{DIGEST}"}
    assert planned(str(tmp_path / "runs/one/profile.yaml"), again) == {**own, **again}
