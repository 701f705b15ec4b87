"""Archives from elsewhere: a hostile one changes nothing."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import socket
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.plan import rundir
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot import bundle, manifest
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.lab import Lab
from ansible_collections.agentlab.ocp.plugins.module_utils.snapshot.manifest import SnapshotError
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner

from tests.unit.snapshot.test_manifest import MADE

EXAMPLES = Path(__file__).parents[3] / "config_examples"


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    run_dir, profile = tmp_path / "runs/one", tmp_path / "one.yml"
    profile.write_text(json.dumps({"topology": "sno", "hypervisor": {"state_dir": str(tmp_path / "state")}}))
    plan, __ = rundir.prepare(run_dir, str(profile), EXAMPLES, "one", refuse=False)
    uid = os.getuid()
    who = owner.Caller(owner.Owner("one", str(run_dir), uid, "me", socket.gethostname(), "", "mark"))
    made = Lab(plan, run_dir, who, "1.0.0")
    made.state_dir.parent.mkdir()
    owner.claim(made.state_dir, who)
    return made


def _member(name: str, content: bytes = b"", **settings: object) -> tuple[tarfile.TarInfo, bytes]:
    found = tarfile.TarInfo(name)
    found.size, found.mode, found.uid, found.gid = len(content), 0o644, os.getuid(), os.getgid()
    for key, value in settings.items():
        setattr(found, key, value)
    return found, content


def _archive(path: Path, lab: Lab, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    head = dataclasses.asdict(dataclasses.replace(MADE, cluster="one", state_dir=str(lab.state_dir)))
    with tarfile.open(path, "w") as archive:
        for info, content in (_member(manifest.FILE, json.dumps(head).encode()), *members):
            archive.addfile(info, io.BytesIO(content))
    return path


FOLDERS = [_member(top, type=tarfile.DIRTYPE) for top in ("memory", "state", "run")]
HOSTILE: dict[str, list[tuple[tarfile.TarInfo, bytes]]] = {
    "parent": [_member("../outside", b"x")],
    "parent in the middle": [_member("run/../../outside", b"x")],
    "absolute": [_member("/tmp/agentlab-outside", b"x")],
    "hard link": [_member("run/x", type=tarfile.LNKTYPE, linkname="/etc/passwd")],
    "through a link": [_member("run/x", type=tarfile.SYMTYPE, linkname="/tmp"), _member("run/x/outside", b"x")],
    "device": [_member("run/x", type=tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "pipe": [_member("run/x", type=tarfile.FIFOTYPE)],
    "another top": [_member("owner.json", b"{}")],
    "the manifest again": [_member(manifest.FILE, b"{}")],
    "twice": [_member("run/x", b"1"), _member("run/x", b"2")],
    "deep": [_member("run/" + "x/" * 40 + "y", b"x")],
    "dot": [_member("run/./x", b"x")],
    "no directory": [_member("run/a/b", b"x")],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archive_leaves_nothing(tmp_path: Path, lab: Lab, name: str) -> None:
    path = _archive(tmp_path / "x.tar", lab, *FOLDERS, *HOSTILE[name])
    with pytest.raises(SnapshotError, match=r"cannot be in a snapshot|is in no directory"):
        bundle.import_(lab, path)
    assert list((lab.state_dir / manifest.DIRECTORY).iterdir()) == []
    assert not list(tmp_path.rglob("outside")) and not Path("/tmp/agentlab-outside").exists()


def test_bombs(tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.tar"
    _archive(path, lab, *FOLDERS, _member("memory/x", b""))
    data = bytearray(path.read_bytes())
    at = data.index(b"memory/x\0")
    huge, __ = _member("memory/x", size=1 << 60)
    data[at : at + 512] = huge.tobuf(tarfile.GNU_FORMAT)
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match="more than is free"):
        bundle.import_(lab, path)
    monkeypatch.setattr(bundle, "MAX_MEMBERS", 10)
    with pytest.raises(SnapshotError, match="more than 10 files"):
        bundle.import_(lab, _archive(path, lab, *FOLDERS, *(_member(f"run/{number}") for number in range(20))))
    assert list((lab.state_dir / manifest.DIRECTORY).iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"text", b"\x1f\x8b\x08", b"\0" * 10240])
def test_not_an_archive(tmp_path: Path, lab: Lab, content: bytes) -> None:
    path = tmp_path / "x.tar"
    path.write_bytes(content)
    with pytest.raises(SnapshotError, match="not a snapshot"):
        bundle.import_(lab, path)


@pytest.mark.parametrize("cut", [600, 2000, 5000])
def test_cut_archive(tmp_path: Path, lab: Lab, cut: int) -> None:
    path = _archive(tmp_path / "x.tar", lab, *FOLDERS, _member("run/x", b"x" * 4000))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(SnapshotError, match=r"not a whole snapshot|not a snapshot|damaged"):
        bundle.import_(lab, path)
    assert not manifest.names(lab.state_dir)


def test_another_clusters_archive(tmp_path: Path, lab: Lab) -> None:
    path = _archive(tmp_path / "x.tar", lab)
    other = dataclasses.replace(lab, plan={**lab.plan, "cluster": {**lab.plan["cluster"], "name": "two"}})
    with pytest.raises(SnapshotError, match=r"a snapshot of cluster one in .*, not of two"):
        bundle.import_(other, path)


def test_export_and_import(tmp_path: Path, lab: Lab) -> None:
    place = manifest.place(lab.state_dir, "ready")
    (place / "run").mkdir(parents=True)
    for top in ("memory", "state"):
        (place / top).mkdir()
    (place / "run/file").write_text("text")
    (place / "run/link").symlink_to("/elsewhere")
    (place / "memory/vm").write_bytes(b"x" * 5000)
    os.link(place / "memory/vm", place / "state/vm")
    manifest.write_modes(place, {"run": {}, "state": {}})
    manifest.write(place, dataclasses.replace(MADE, cluster="one", state_dir=str(lab.state_dir)))
    before = _content(place)
    path = tmp_path / "out.tar"
    bundle.export(lab, "ready", path)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        bundle.export(lab, "ready", path)
    place.rename(tmp_path / "gone")
    assert bundle.import_(lab, path).name == "ready"
    assert _content(place) == before
    assert all(one.lstat().st_mode & 0o077 == 0 for one in place.rglob("*") if not one.is_symlink())


def _content(top: Path) -> dict[str, bytes | str]:
    read: Callable[[Path], bytes | str] = lambda one: os.readlink(one) if one.is_symlink() else one.read_bytes()  # noqa: E731
    return {str(one.relative_to(top)): read(one) for one in top.rglob("*") if one.is_symlink() or one.is_file()}
