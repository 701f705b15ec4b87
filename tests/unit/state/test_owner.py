"""The owner of a directory, and that nothing else is changed or removed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import host
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

ALICE = owner.Caller(owner.Owner("ostest", "/home/alice/runs/ostest", 1000, "alice", "lab1", "digest"))
BOB = owner.Caller(owner.Owner("ostest", "/home/bob/runs/ostest", 1001, "bob", "lab1", "digest"))


def everything(path: Path) -> list[str]:
    return sorted(str(entry.relative_to(path)) for entry in path.rglob("*"))


def test_a_directory_is_made_with_its_marker(tmp_path: Path) -> None:
    made = host.claim(tmp_path / "lab" / "ostest", ALICE)
    assert owner.read(tmp_path / "lab" / "ostest") == made and len(made.mark) == 36 and not made.kept
    assert (tmp_path / "lab" / "ostest").stat().st_mode & 0o777 == 0o755
    assert host.claim(tmp_path / "lab" / "ostest", ALICE) == made
    owner.remove(tmp_path / "lab" / "ostest", made)
    host.leave_host(tmp_path / "lab")
    assert everything(tmp_path) == []


def test_another_is_refused_with_both_names_and_the_way_out(tmp_path: Path) -> None:
    made = host.claim(tmp_path / "ostest", ALICE)
    for action in (host.claim, owner.verify, owner.marked_owner):
        with pytest.raises(owner.OwnerError) as refused:
            action(tmp_path / "ostest", BOB)
        for part in (
            "alice (uid 1000), run directory /home/alice/runs/ostest",
            "you are bob (uid 1001), run directory /home/bob/runs/ostest",
            "--cluster",
            "prepare --adopt --cluster ostest",
        ):
            assert part in str(refused.value)
    other = replace(ALICE, owner=replace(ALICE.owner, uid=0, user="root"))
    with pytest.raises(owner.OwnerError):
        owner.verify(tmp_path / "ostest", other)
    adopted = host.claim(tmp_path / "ostest", replace(BOB, adopt=True))
    assert (adopted.user, adopted.mark) == ("bob", made.mark)
    with pytest.raises(owner.OwnerError):
        owner.verify(tmp_path / "ostest", ALICE)


def test_the_host_counts_where_it_is_reached_by_ssh(tmp_path: Path) -> None:
    host.claim(tmp_path / "ostest", ALICE)
    elsewhere = replace(ALICE, owner=replace(ALICE.owner, host="lab2"))
    assert owner.verify(tmp_path / "ostest", elsewhere)
    with pytest.raises(owner.OwnerError, match=r"on lab1; you are .* on lab2"):
        owner.verify(tmp_path / "ostest", replace(elsewhere, remote=True))


def test_a_directory_with_files_of_others_is_refused_and_kept(tmp_path: Path) -> None:
    photos = tmp_path / "sec1" / "photos"
    photos.mkdir(parents=True)
    (photos / "t.txt").write_text("mine")
    with pytest.raises(
        owner.OwnerError,
        match=r"sec1 is not empty, and agentlab did not create it \(owner.json is missing in it\): choose another",
    ):
        host.claim(tmp_path / "sec1", ALICE)
    with pytest.raises(
        owner.OwnerError,
        match=r"sec1 is not removed: .* remove it yourself; if not, remove it from the list in .*state.json",
    ):
        owner.marked_owner(tmp_path / "sec1", ALICE)
    assert (photos / "t.txt").read_text() == "mine"
    (tmp_path / "link").symlink_to(photos)
    with pytest.raises(owner.OwnerError, match="link is not a directory"):
        host.claim(tmp_path / "link", ALICE)


def test_an_empty_directory_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine" / "sub").mkdir(parents=True)
    made = host.claim(tmp_path / "mine" / "sub", ALICE)
    (tmp_path / "mine" / "sub" / "pool").mkdir()
    owner.remove(tmp_path / "mine" / "sub", made)
    host.leave_host(tmp_path / "mine")
    assert everything(tmp_path) == ["mine", "mine/sub"]


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}", '{"cluster": 1}', "\x00"])
def test_a_damaged_marker_is_named(tmp_path: Path, text: str) -> None:
    host.claim(tmp_path / "ostest", ALICE)
    path = tmp_path / "ostest" / owner.FILE
    path.write_text(text)
    for action in (host.claim, owner.verify, owner.marked_owner):
        with pytest.raises(owner.OwnerError, match=rf"{path}: damaged .*destroy --adopt"):
            action(tmp_path / "ostest", ALICE)
    listed = replace(ALICE, adopt=True, owner=replace(ALICE.owner, mark="from state.json"))
    assert owner.marked_owner(tmp_path / "ostest", listed) == listed.owner


def test_the_host_is_left_as_it_was_next_to_other_directories(tmp_path: Path) -> None:
    parent, setting = tmp_path / "srv", tmp_path / "setting"
    setting.write_text("1")
    (parent / "data").mkdir(parents=True)
    made = host.claim(parent / "a", ALICE)
    with host.update_shared(parent) as noted:
        noted.add(f"sysctl:{setting}=0")
    owner.remove(parent / "a", made)
    host.leave_host(parent)
    assert everything(parent) == ["data"] and setting.read_text() == "0"


def test_directories_above_are_removed_when_they_were_made(tmp_path: Path) -> None:
    made = host.claim(tmp_path / "x" / "y" / "z" / "a", ALICE)
    (tmp_path / "x" / "other").write_text("")
    owner.remove(tmp_path / "x" / "y" / "z" / "a", made)
    host.leave_host(tmp_path / "x" / "y" / "z")
    assert everything(tmp_path) == ["x", "x/other"]


KILL = """
import os, sys
from pathlib import Path
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import host
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
who = owner.Caller(owner.Owner("ostest", "/r", 0, "root", "lab", ""))
left = int(sys.argv[2])
def audit(event, args):
    global left
    if event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "shutil.rmtree") or (event == "open" and args[2] & os.O_WRONLY):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)
sys.addaudithook(audit)
place = Path(sys.argv[1]) / "x" / "lab" / "ostest"
if sys.argv[3] == "make":
    host.claim(place, who)
else:
    if found := owner.marked_owner(place, who):
        owner.remove(place, found)
    host.leave_host(place.parent)
"""


@pytest.mark.parametrize("verb", ["make", "remove"])
def test_killed_at_every_step(tmp_path: Path, verb: str) -> None:
    """Making and removing, killed before each change of the file system, ends without a trace when it is removed again."""
    import subprocess
    import sys

    who = owner.Caller(owner.Owner("ostest", "/r", 0, "root", "lab", ""))
    place = tmp_path / "x" / "lab" / "ostest"
    for step in range(60):
        if verb == "remove":
            host.claim(place, who)
            (place / "pool").mkdir()
            (place / "pool" / "disk").write_text("")
        killed = subprocess.run([sys.executable, "-c", KILL, tmp_path, str(step), verb], check=False).returncode
        if found := owner.marked_owner(place, who):
            owner.remove(place, found)
        elif owner.leftover(place):
            owner.remove(place, who.owner)
        host.leave_host(place.parent)
        assert everything(tmp_path) == [], (verb, step)
        if killed == 0:
            assert step > 4
            return
    pytest.fail("it never ended by itself")


@pytest.mark.parametrize("text", ["", "[", "{}", "[1]", "null"])
def test_a_damaged_list_of_the_host_is_named(tmp_path: Path, text: str) -> None:
    host.claim(tmp_path / "lab" / "a", ALICE)
    path = tmp_path / "lab" / host.HOST_FILE
    path.write_text(text)
    for action in (host.refuse_damaged, host.leave_host):
        if action is host.leave_host:
            os.unlink(tmp_path / "lab" / "a" / owner.FILE)
        with pytest.raises(LabError, match=rf"{path}: damaged .*Restore it; or replace it by \[\]"):
            action(tmp_path / "lab")


@pytest.mark.parametrize(
    "data", [{}, {"owner": []}, {"owner": {"cluster": "a"}}, {"owner": {**ALICE.fact()["owner"], "uid": "0"}}]
)
def test_an_invalid_owner_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(owner.OwnerError, match="must be the fact agentlab_owner"):
        owner.from_fact(data)
    assert owner.from_fact(json.loads(json.dumps(ALICE.fact()))) == ALICE
