from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.payload import build
from ansible_collections.agentlab.ocp.payload.build import __main__ as verb
from ansible_collections.agentlab.ocp.payload.build import layers, steps
from ansible_collections.agentlab.ocp.payload.images import base, code, components, oci
from ansible_collections.agentlab.ocp.payload.machine_os.distro import BuildError, Distro
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component

DISTRO = Distro(
    "debian",
    "bookworm",
    "Debian",
    "amd64",
    "x86_64-linux-gnu",
    "ld-linux-x86-64.so.2",
    ("deb http://mirror.test/debian bookworm main",),
)
SPEC = "quay.io/x/agent@sha256:" + "1" * 64


def builder(tmp_path: Path, **overrides: str) -> build.Builder:
    return build.Builder(
        tmp_path, {name.replace("_", "-"): source for name, source in overrides.items()}, lambda text: None, DISTRO
    )


def test_forms_of_the_output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"directory": "/d", "release": SPEC, "iso": "/d/i", "images": {"agent": SPEC}}
    monkeypatch.setattr(verb, "describe", lambda __: found)
    for argv, read in ((["-o", "json"], json.loads), (["--json"], json.loads), (["-o", "yaml"], yaml.safe_load)):
        assert verb.main(["show", "/d", *argv]) == 0
        assert read(capsys.readouterr().out) == found
    assert verb.main(["show", "/d"]) == 0
    assert capsys.readouterr().out.startswith(f"/d\n  release {SPEC}\n")


def test_a_layer_is_kept_with_its_digests(tmp_path: Path) -> None:
    layer = oci.Descriptor("application/vnd.oci.image.layer.v1.tar", "sha256:" + "0" * 64, 5, "sha256:" + "1" * 64)
    layers.save(tmp_path / "base.tar", layer)
    assert layers.load(tmp_path / "base.tar") == layer


def test_keys_depend_on_content_alone(tmp_path: Path) -> None:
    first, second = builder(tmp_path / "a").keys, builder(tmp_path / "b").keys
    assert first == second
    changed = builder(tmp_path, agent_installer_node_agent=SPEC).keys
    assert {step for step in first if first[step] != changed[step]} == {"payload"}


def test_a_directory_override_counts_by_its_files(tmp_path: Path) -> None:
    (tmp_path / "files/usr/bin").mkdir(parents=True)
    keys = []
    for text in ("one", "two", "one"):
        (tmp_path / "files/usr/bin/agent").write_text(text)
        keys.append(builder(tmp_path, agent_installer_node_agent=str(tmp_path / "files")).keys["payload"])
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(
    ("name", "source", "message"),
    [
        ("nope", SPEC, "nope: .*: no component of the release has this name"),
        ("cli", "./missing", "there is no such directory"),
        ("cli", "quay.io/x/cli:latest", "neither a directory, nor containers-storage:NAME, nor a pullspec"),
    ],
)
def test_overrides_that_cannot_be(tmp_path: Path, name: str, source: str, message: str) -> None:
    with pytest.raises(BuildError, match=message):
        builder(tmp_path, **{name: source}).ensure()


def test_an_image_is_adopted_from_another_layout(tmp_path: Path) -> None:
    other, layout = oci.Layout.create(tmp_path / "other"), oci.Layout.create(tmp_path / "mine")
    layer = oci.write_layer(tmp_path / "layer", {"x": oci.Node(b"x")})
    (tmp_path / "layer").rename(other.blob(layer.digest))
    image = other.add_image(oci.Image([layer]))
    other.write_index({"latest": image})
    assert layers.adopt(layout, tmp_path / "other", "cli") == image
    layout.verify([image.digest, *layout.blobs_of(image.digest)])


def test_an_interrupted_step_leaves_no_result(tmp_path: Path) -> None:
    made = builder(tmp_path)

    def fail(out: Path) -> None:
        (out / "half").write_text("")
        raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        made._steps.step("iso", "k" * 16, "text", fail)
    assert not (tmp_path / "parts" / ("iso-" + "k" * 16)).exists()
    done = made._steps.step("iso", "k" * 16, "text", lambda out: (out / "whole").touch())
    assert [path.name for path in done.iterdir()] == ["whole"]


def test_code_of_the_images() -> None:
    names = {str(path) for path in code.sources()}
    assert "payload/node_agent/__init__.py" in names
    assert {path for path in names if path.startswith("roles/")} == {
        "roles/agent_image/files/live/pre-network-manager-config.sh",
        "roles/agent_image/files/live/units/pre-network-manager-config.service",
    }
    assert all((code.ROOT / path).is_file() for path in names)
    assert not any(
        name.startswith(("payload/machine_os", "payload/build", "plugins/module_utils/cli")) or "__pycache__" in name
        for name in names
    )


def test_an_image_has_what_its_programs_import_and_no_more(tmp_path: Path) -> None:
    """The modules are imported from a copy with nothing else in it; imports in functions are among the files, too."""
    for name in (Component.ORCHESTRATOR, Component.HYPERKUBE, Component.API_SERVER):
        files = code.needed_files(components.COMPONENTS[name].programs.values())
        code.copy_files(tmp_path / name, files)
        modules = [".".join(path.with_suffix("").parts) for path in files if path.suffix == ".py"]
        imports = "\n".join(f"import {components.PACKAGE}.{module.removesuffix('.__init__')}" for module in modules)
        environment = os.environ | {"PYTHONPATH": str(tmp_path / name / code.PREFIX)}
        subprocess.run([sys.executable, "-c", imports], env=environment, check=True, timeout=300)
        assert {path for path in code.needed_files(modules) if path.suffix == ".py"} >= {
            path for path in files if path.suffix == ".py"
        }
    orchestrator = code.needed_files(["payload.orchestrator.installer"])
    assert Path("payload/node_agent/logs_sender.py") in orchestrator
    assert not any(
        path.is_relative_to("payload/api_server") or path.is_relative_to("plugins/module_utils/plan")
        for path in orchestrator
    )
    assert Path("payload/cluster/kubelet.py") in code.needed_files(
        ["payload.cluster.hyperkube"]
    )  # which imports it when it is called


def test_files_that_modules_read_are_in_the_image() -> None:
    service = code.needed_files(components.COMPONENTS[Component.API_SERVER].programs.values())
    assert {*code.FILES, Path("payload/api_server/page.html"), Path("payload/api_server/data/events.yaml")} <= service


def test_a_replaced_service_has_the_code_of_programs_that_it_extracts(tmp_path: Path) -> None:
    """Which it calls with nothing but its own image around them."""
    called = components.CALLED[Component.API_SERVER]
    code.copy_files(tmp_path, code.needed_files(called.programs.values()))
    for name in components.EXTRACTED:
        for path, node in code.executables(components.COMPONENTS[name]).items():
            program = tmp_path / Path(path).name
            assert isinstance(node.data, bytes)
            program.write_bytes(node.data.replace(b'"/usr/lib/agentlab"', f'"{tmp_path}/{code.PREFIX}"'.encode()))
            done = subprocess.run(
                [sys.executable, program, "--help"], capture_output=True, text=True, check=False, timeout=60
            )
            assert "ModuleNotFoundError" not in done.stderr and done.returncode == 0, done.stderr


def test_a_module_that_does_not_exist() -> None:
    with pytest.raises(FileNotFoundError, match=r"payload\.orchestrator\.instaler is not a module of "):
        code.needed_files(["payload.orchestrator.instaler"])


@pytest.mark.parametrize(
    ("component", "program", "brought", "layer"),
    [
        (Component.NODE_AGENT, "usr/bin/agent", "usr/bin/nmap", "agent-tools"),
        (Component.API_SERVER, "assisted-service", "usr/bin/start_db.sh", "database"),
        (Component.ORCHESTRATOR, "usr/bin/installer", "", ""),
    ],
)
def test_a_build_gets_what_it_does_not_bring(component: str, program: str, brought: str, layer: str) -> None:
    found = components.provision(component, {program})
    assert (found.layer if found else "") == layer
    assert components.provision(component, {program, brought}) is None
    if found:
        assert found.packages and base.PROGRAMS[layer], "what the layer is for is checked when it is built"


@pytest.fixture
def bottom(tmp_path: Path) -> build.Builder:
    """A builder whose base layer is a file; its Python is not needed by what is built."""
    made = builder(tmp_path / "cache")
    folder = made.cache / "parts" / f"base-{made.keys['base'][:16]}"
    folder.mkdir(parents=True)
    layers.save(folder / "base", oci.write_layer(folder / "base.tar", {"bin/sh": oci.Node(b"sh")}))
    return made


def test_one_component_for_a_registry(bottom: build.Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is served by its digest, no tag changes, and the payload is not made."""
    monkeypatch.setattr(code, "programs", lambda *__: {"usr/lib/agentlab/x.py": oci.Node(b"x")})
    storage = tmp_path / "storage"
    first = bottom.component(Component.ORCHESTRATOR, storage)
    assert first == bottom.component(Component.ORCHESTRATOR, storage)
    monkeypatch.setattr(code, "programs", lambda *__: {"usr/lib/agentlab/x.py": oci.Node(b"y")})
    second = bottom.component(Component.ORCHESTRATOR, storage)
    assert second != first
    manifests = storage / "docker/registry/v2/repositories/lab/payload/_manifests"
    digests = {path.name for path in (manifests / "revisions/sha256").iterdir()}
    assert digests == {spec.rpartition(":")[2] for spec in (first, second)}
    assert not (manifests / "tags").exists() and not (bottom.cache / "payload").exists()
    assert [path.name for path in (bottom.cache / "parts").iterdir()] == [f"base-{bottom.keys['base'][:16]}"]


@pytest.mark.parametrize(
    ("name", "program", "more", "kind"),
    [
        (
            Component.API_SERVER,
            "usr/local/bin/agent-installer-client",
            {"usr/bin/oc", "usr/bin/openshift-install", "usr/bin/nmstatectl"},
            "zstd",
        ),
        (Component.ORCHESTRATOR, "usr/bin/installer", set(), "zstd"),
        (Component.INSTALLER, "usr/bin/openshift-install", set(), "gzip"),
    ],
)
def test_the_layer_of_a_replacement(
    bottom: build.Builder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    program: str,
    more: set[str],
    kind: str,
) -> None:
    """With what it calls, and packed fast, unless `oc` looks for a program in it."""
    monkeypatch.setattr(code, "programs", lambda *given: code.executables(given[-1]))
    written: list[tuple[set[str], str]] = []
    write = oci.write_layer

    def wrapped(out: Path, nodes: dict[str, oci.Node], **given: Any) -> oci.Descriptor:
        written.append(({path for path, node in nodes.items() if node.data or node.link}, given["compression"]))
        return write(out, nodes, **given)

    (tmp_path / "mine" / program).parent.mkdir(parents=True)
    shutil.copy("/bin/true", tmp_path / "mine" / program)
    (tmp_path / "mine/usr/bin").mkdir(exist_ok=True)
    (tmp_path / "mine/usr/bin/start_db.sh").write_text("#!/bin/sh\n")
    bottom.overrides = {name: str(tmp_path / "mine")}
    monkeypatch.setattr(oci, "write_layer", wrapped)
    bottom.component(name, tmp_path / "storage")
    assert written[-1] == ({program}, kind), "after a change of the program nodes pull this layer alone"
    assert written[-2] == ({"usr/bin/start_db.sh", *more}, kind)


def test_one_component_that_cannot_be_built(
    bottom: build.Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*__: object) -> dict[str, oci.Node]:
        raise BuildError("SyntaxError: invalid syntax (app.py, line 3)")

    monkeypatch.setattr(code, "programs", fails)
    with pytest.raises(BuildError, match=r"app\.py, line 3"):
        bottom.component(Component.ORCHESTRATOR, tmp_path / "storage")
    with pytest.raises(BuildError, match="contains the base ISO"):
        bottom.component(Component.MACHINE_OS_IMAGES, tmp_path / "storage")
    assert not (tmp_path / "storage").exists()


def test_two_labs_that_need_a_payload_build_it_once(bottom: build.Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one announces that it waits, and takes what the first one built."""
    waits, built = threading.Event(), []

    def payload(made: build.Builder, out: Path, keys: dict[str, str]) -> None:
        assert waits.wait(10), "the other one did not come"
        built.append(keys["payload"])
        (out / "payload.json").touch()

    monkeypatch.setattr(build, "require", lambda *_: None)
    monkeypatch.setattr(build.Builder, "_payload", payload)
    both = [
        dataclasses.replace(bottom, report=lambda text: waits.set() if "waiting for another build" in text else None)
    ] * 2
    with futures.ThreadPoolExecutor() as pool:
        results = sorted(pool.map(build.Builder.ensure, both), key=lambda result: result[1])
    target = bottom.cache / "payload" / bottom.keys["payload"]
    assert results == [(target, False), (target, True)] and len(built) == 1
    assert (bottom.cache / "payload/current").resolve() == target


def test_describe_a_directory_without_payload(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="has no payload"):
        build.describe(tmp_path)


def test_old_results_are_removed(tmp_path: Path) -> None:
    for number in range(12):
        for path in (
            tmp_path / f"payload/{number:016}",
            tmp_path / f"parts/iso-{number}",
            tmp_path / f"parts/base-{number}",
        ):
            path.mkdir(parents=True)
            os.utime(path, (number, number))
    steps.Steps(tmp_path, lambda text: None).prune()
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["base-10", "base-11", "iso-10", "iso-11"]
    assert min(path.name for path in (tmp_path / "payload").iterdir()) == f"{12 - steps.KEPT:016}"


def test_a_step_is_as_new_as_its_build(tmp_path: Path) -> None:
    """Packages set the time of the directory that they are unpacked into: the step was removed as the oldest."""
    made = steps.Steps(tmp_path, lambda text: None).step("packages", "1" * 16, "", lambda out: os.utime(out, (1, 1)))
    assert made.stat().st_mtime > 1


def test_another_release_is_another_iso(tmp_path: Path) -> None:
    newest = builder(tmp_path)
    older = dataclasses.replace(newest, version="4.18.0-lab")
    assert {step for step, key in newest.keys.items() if older.keys[step] != key} == {"iso", "payload"}
    assert (newest.volume_id, older.volume_id) == ("lab-os-4.22.0", "lab-os-4.18.0")


@pytest.mark.parametrize("version", ["4.18.0", "4.13.0-lab", "4.18-lab", "4.18.1000-lab", "", "../4.18.0-lab"])
def test_a_version_of_no_release_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(build.BuildError, match=re.escape(f"version: {version}: is not a version of the lab payload")):
        build.lookup(version=version, cache=tmp_path)
