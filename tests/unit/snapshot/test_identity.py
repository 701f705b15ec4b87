"""A snapshot in a lab that was prepared again since, or is in another run directory: it becomes the lab that was saved."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.agentlab.ocp.plugins.module_utils import state
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import identity, manifest
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import lab as labs
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.lab import Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import SnapshotError
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

from tests.unit.snapshot.test_manifest import HERE, MADE

EXAMPLES = Path(__file__).parents[3] / "config_examples"
ISO = "agent.x86_64.iso"
DISK = "<domain><disk><source file='{}/agent.x86_64.iso'/></disk><log file='{}/console/x.log'/></domain>"


def prepared(tmp_path: Path, runs: str, mark: str) -> Lab:
    """The cluster as `prepare` leaves it, in a run directory below `runs`."""
    run_dir, profile = tmp_path / runs / "one", tmp_path / "one.yml"
    profile.write_text(json.dumps({"topology": "sno", "hypervisor": {"state_dir": str(tmp_path / "state")}}))
    plan, changes = rundir.prepare(run_dir, str(profile), EXAMPLES, "one", refuse=False)
    rundir.write(changes)
    mine = owner.Owner("one", str(run_dir), os.getuid(), "me", socket.gethostname(), "", mark)
    state.record(run_dir, [{"kind": "sandbox", "name": "x", "host": "h"}], dataclasses.asdict(mine))
    made = Lab(plan, run_dir, owner.Caller(mine), "1.0.0")
    made.state_dir.parent.mkdir(exist_ok=True)
    owner.claim(made.state_dir, made.who)
    return made


def save(lab: Lab, to: Lab) -> None:
    """Put a snapshot of `lab` where the lab `to` has its own, as `import` does."""
    place = manifest.place(to.state_dir, "ready")
    for part in ("memory", "state/sandbox/etc-libvirt/qemu", "state/services/http/root", "run"):
        (place / part).mkdir(parents=True)
    for path in lab.run_dir.iterdir():
        (place / "run" / path.name).write_bytes(path.read_bytes())
    (place / "run" / ISO).write_text("iso")
    (place / "state/services/http/root" / ISO).symlink_to(lab.run_dir / ISO)
    (place / "state/sandbox/etc-libvirt/qemu/x.xml").write_text(DISK.format(lab.run_dir, lab.state_dir))
    manifest.write_modes(place, {"run": {}, "state": {}})
    domains = tuple(manifest.Machine(node["domain"], manifest.OFF, ()) for node in lab.plan["nodes"])
    plan = labs.plan_digest(lab.run_dir)
    manifest.write(
        place, dataclasses.replace(MADE, cluster="one", state_dir=str(lab.state_dir), plan=plan, machines=domains)
    )


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What is done to the host in the place of a sandbox."""
    found: list[tuple[Any, ...]] = []
    monkeypatch.setattr(labs, "_host", lambda __: HERE)
    monkeypatch.setattr(labs, "claim", lambda state_dir, who, *__: owner.claim(state_dir, who))
    monkeypatch.setattr(namespaces, "stop", lambda *given: found.append(("stop", given[2])))
    monkeypatch.setattr(identity.uplink, "remove", lambda *given: found.append(("uplink", *given)))
    monkeypatch.setattr(labs, "start", lambda *given: found.append(("start", given[3].mark, list(given[5]))))
    return found


def marks(lab: Lab) -> set[str]:
    found = owner.read(lab.state_dir)
    assert found
    return {found.mark, state.load(lab.run_dir)["owner"]["mark"]}


def test_a_lab_that_was_prepared_again_takes_the_mark(tmp_path: Path, calls: list[tuple[Any, ...]]) -> None:
    """Machines and networks of the snapshot have it; what the host has of the other mark is removed before."""
    lab = prepared(tmp_path, "runs", "old")
    saved = state.load(lab.run_dir)
    (lab.state_dir / owner.FILE).unlink()
    (lab.run_dir / state.FILE).unlink()
    again = prepared(tmp_path, "runs", "new")
    state.record(lab.run_dir, (), dataclasses.asdict(lab.who.owner))
    save(lab, again)
    state.record(lab.run_dir, (), dataclasses.asdict(again.who.owner))
    for __ in range(2):  # a killed restore can be repeated
        labs.restore(again, "ready")
        assert marks(again) == {"old"}
        assert state.load(again.run_dir) == saved
    assert calls == [
        ("stop", "new"),
        ("uplink", "one", "new"),
        ("start", "old", []),
        ("stop", "old"),
        ("start", "old", []),
    ]


def test_another_run_directory(tmp_path: Path, calls: list[tuple[Any, ...]]) -> None:
    lab = prepared(tmp_path, "runs", "old")
    (lab.state_dir / owner.FILE).unlink()
    other = prepared(tmp_path, "elsewhere", "new")
    save(lab, other)
    for __ in range(2):
        labs.restore(other, "ready")
    assert marks(other) == {"old"}
    noted = owner.from_fact({"owner": state.load(other.run_dir)["owner"]}).owner
    assert noted == dataclasses.replace(other.who.owner, mark="old")
    link = other.state_dir / "services/http/root" / ISO
    assert os.readlink(link) == str(other.run_dir / ISO) and link.read_text() == "iso"
    kept = manifest.place(other.state_dir, "ready") / "state/services/http/root" / ISO
    assert os.readlink(kept) == str(lab.run_dir / ISO)
    defined = (other.state_dir / "sandbox/etc-libvirt/qemu/x.xml").read_text()
    assert defined == DISK.format(other.run_dir, other.state_dir)
    inventory = (other.run_dir / rundir.INVENTORY).read_text()
    assert inventory == rundir.dump(rundir.inventory(other.plan, other.run_dir)) and "elsewhere" in inventory
    assert calls[-1] == ("start", "old", [(str(lab.run_dir), str(other.run_dir))])


def test_a_copy_keeps_the_path_that_its_machines_know(tmp_path: Path, calls: list[tuple[Any, ...]]) -> None:
    """Also when it was destroyed and prepared again, which removes the link."""
    lab = prepared(tmp_path, "runs", "old")
    save(lab, lab)
    origin = lab.state_dir / namespaces.ORIGIN
    origin.symlink_to("/x/original")
    labs.restore(lab, "ready")  # of a snapshot of the original, which has none
    assert os.readlink(origin) == "/x/original"
    origin.unlink()
    (manifest.place(lab.state_dir, "ready") / "state" / namespaces.ORIGIN).symlink_to("/x/original")
    labs.restore(lab, "ready")
    assert os.readlink(origin) == "/x/original"


@pytest.mark.parametrize("content", ["", "{}", '{"owner": null, "created": [], "stages": {}}'])
def test_a_snapshot_without_an_owner_changes_nothing(
    tmp_path: Path, calls: list[tuple[Any, ...]], content: str
) -> None:
    lab = prepared(tmp_path, "runs", "old")
    save(lab, lab)
    (manifest.place(lab.state_dir, "ready") / "run" / state.FILE).write_text(content)
    with pytest.raises(SnapshotError, match=r"snapshot ready is damaged: .*state\.json does not name the owner"):
        labs.restore(lab, "ready")
    assert calls == []


def test_only_whole_paths_move() -> None:
    moves = [("/x/one", "/z&z")]
    assert [identity.moved_path(path, moves) for path in ("/x/one", "/x/one/y", "/x/one-more", "/a/x/one/y")] == [
        "/z&z", "/z&z/y", "/x/one-more", "/a/x/one/y",
    ]  # fmt: skip
    text = "<a f='/x/one/y' g=\"/x/one\">/x/one/z</a><b f='/x/one-more' g='/a/x/one/y'/>"
    wanted = "<a f='/z&amp;z/y' g=\"/z&amp;z\">/z&amp;z/z</a><b f='/x/one-more' g='/a/x/one/y'/>"
    assert identity.moved_xml(text, moves) == wanted
    assert identity.moved_xml("<a f='/x&amp;x/y'/>", [("/x&x", "/z")]) == "<a f='/z/y'/>"


def test_the_files_of_a_run_are_its_users(tmp_path: Path) -> None:
    lab = prepared(tmp_path, "runs", "old")
    if os.getuid():
        pytest.skip("only root can give files away")
    os.chown(lab.run_dir, 1234, 1234)
    identity.take_over(lab.plan, lab.run_dir, lab.who.owner)
    for name in (rundir.INVENTORY, rundir.PLAN, state.FILE):
        status = (lab.run_dir / name).stat()
        assert (status.st_uid, status.st_gid) == (1234, 1234), name
    assert yaml.safe_load((lab.run_dir / state.FILE).read_text())["owner"]["mark"] == "old"
