"""What makes sure that the lab payload exists. The builder is a fake that keeps its command lines; nothing is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.release.builder import (
    Builder,
    BuildResult,
    PayloadRequest,
    ensure,
)

PAYLOAD = {"hash": "1f", "iso": "/p/base.iso", "directory": "/p"}


class Fake(Builder):
    """Starts no program. there: whether the payload exists; lacking: files of it that the registry's storage lacks."""

    def __init__(self, there: bool = False, lacking: int = 2) -> None:
        self.there, self.lacking, self.calls = there, lacking, list[str]()

    def __call__(self, *arguments: str, program: str = "build") -> Any:
        self.calls.append(" ".join(arguments))
        if program == "ipi.images":
            return {"ironic": arguments[0]}
        if arguments[0] == "push":
            return {"added": self.lacking}
        self.there = self.there or "--check" not in arguments
        return PAYLOAD if self.there else None


def test_a_payload_is_built_once() -> None:
    builder, wanted = Fake(), PayloadRequest({"cli": "/src/oc", "agent-installer-ui": "/ui"}, version="4.20.0-lab")
    words = "--override agent-installer-ui=/ui --override cli=/src/oc --release 4.20.0-lab"
    assert ensure(builder, wanted, check=True) == BuildResult(True, {}, "none", "to be built")
    assert ensure(builder, wanted) == BuildResult(True, PAYLOAD, "none", "1f")
    assert ensure(builder, wanted) == BuildResult(False, PAYLOAD, "1f", "1f")
    assert builder.calls == [f"build --check {words}"] * 2 + [f"build {words}", f"build --check {words}"]


def test_a_forced_build_always_changes() -> None:
    builder = Fake(there=True)
    assert ensure(builder, PayloadRequest(force=True), check=True).changed
    assert ensure(builder, PayloadRequest(force=True)) == BuildResult(True, PAYLOAD, "1f", "1f")
    assert builder.calls == ["build --check", "build --check", "build --force"]


@pytest.mark.parametrize("lacking", [0, 2])
def test_the_storage_gets_what_it_lacks(lacking: int) -> None:
    builder, wanted = Fake(lacking=lacking), PayloadRequest(storage="/storage")
    assert ensure(builder, wanted, check=True) == BuildResult(True, {}, "none", "to be built")
    builder.there = True
    for check in (True, False):
        assert ensure(builder, wanted, check=check) == BuildResult(lacking > 0, PAYLOAD, "1f", "1f", pushed=lacking)
    push = "push /storage --payload /p"
    assert [call for call in builder.calls if call.startswith("push")] == [f"{push} --check", push]


def test_ironic_is_made_of_the_iso() -> None:
    builder, wanted = Fake(there=True), PayloadRequest(ironic=True)
    assert ensure(builder, wanted, check=True).payload == PAYLOAD
    assert ensure(builder, wanted) == BuildResult(False, {**PAYLOAD, "ironic": "/p/base.iso"}, "1f", "1f")


def test_the_collection_is_a_package_of_the_scratch_directory(tmp_path: Path) -> None:
    Builder(tmp_path, tmp_path, tmp_path / "scratch")
    assert (tmp_path / "scratch/ansible_collections/agentlab/ocp").resolve() == tmp_path
