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
    run_dir.mkdir(parents=True)
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
    "a link in the place of the modes": [_member("modes.json", type=tarfile.SYMTYPE, linkname="run/x")],
    "a directory in the place of the modes": [_member("modes.json", type=tarfile.DIRTYPE)],
    "a time that is not a number": [_member("run/x", b"x", pax_headers={"mtime": "nan"})],
    "a time without end": [_member("run/x", b"x", pax_headers={"mtime": "9" * 400})],
    "a user that cannot be": [_member("state/x", b"x", uid=1 << 62)],
}
_SANDBOX = [_member(f"state/sandbox{name}", type=tarfile.DIRTYPE) for name in ("", "/etc-libvirt", "/etc-libvirt/qemu")]
_LIBVIRT = "state/sandbox/etc-libvirt"
# What libvirt would execute or obey as root, and no lab writes.
OF_LIBVIRT: dict[str, list[tuple[tarfile.TarInfo, bytes]]] = {
    "hooks": [*_SANDBOX, _member(f"{_LIBVIRT}/hooks", type=tarfile.DIRTYPE)],
    "a hook": [*_SANDBOX, _member(f"{_LIBVIRT}/qemu/hooks", b"#!/bin/sh", mode=0o755)],
    "a setting": [*_SANDBOX, _member(f"{_LIBVIRT}/virtlockd.conf", b"x")],
    "a filter": [*_SANDBOX, _member(f"{_LIBVIRT}/nwfilter", type=tarfile.DIRTYPE), _member(f"{_LIBVIRT}/nwfilter/x.xml", b"x")],
    "a link": [*_SANDBOX, _member(f"{_LIBVIRT}/qemu/x.xml", type=tarfile.SYMTYPE, linkname="/x.xml")],
    "the directory as a link": [_SANDBOX[0], _member(_LIBVIRT, type=tarfile.SYMTYPE, linkname="../../run")],
    "the state as a link": [_member("state", type=tarfile.SYMTYPE, linkname="run")],
    "the sandbox as a link": [_member("state/sandbox", type=tarfile.SYMTYPE, linkname="../run")],
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archive_leaves_nothing(tmp_path: Path, lab: Lab, name: str) -> None:
    path = _archive(tmp_path / "x.tar", lab, *FOLDERS, *HOSTILE[name])
    with pytest.raises(SnapshotError, match=r"cannot be in a snapshot|is in no directory"):
        bundle.import_(lab, path)
    assert list((lab.state_dir / manifest.DIRECTORY).iterdir()) == []
    assert not list(tmp_path.rglob("outside")) and not Path("/tmp/agentlab-outside").exists()


@pytest.mark.parametrize("name", OF_LIBVIRT)
def test_what_libvirt_would_execute_is_refused(tmp_path: Path, lab: Lab, name: str) -> None:
    members = OF_LIBVIRT[name]
    tops = [top for top in FOLDERS if top[0].name != members[0][0].name]
    path = _archive(tmp_path / "x.tar", lab, *tops, *members)
    with pytest.raises(SnapshotError, match=rf"{members[-1][0].name}' cannot be in a snapshot.*nothing was imported"):
        bundle.import_(lab, path)
    assert list((lab.state_dir / manifest.DIRECTORY).iterdir()) == []


def test_what_a_lab_writes_for_libvirt_is_imported(tmp_path: Path, lab: Lab) -> None:
    """Names as in a running lab; libvirt itself makes directories."""
    folders = ["qemu/networks", "qemu/autostart", "storage", "secrets", "nwfilter"]
    names = [
        "libvirtd.conf",
        "virtlogd.conf",
        "qemu.conf",
        "qemu/a_master_0.xml",
        "qemu/networks/abm.xml",
        "storage/agentlab-a.xml",
    ]
    path = _archive(
        tmp_path / "x.tar",
        lab,
        *FOLDERS,
        *_SANDBOX,
        *(_member(f"{_LIBVIRT}/{name}", type=tarfile.DIRTYPE) for name in folders),
        *(_member(f"{_LIBVIRT}/{name}", b"x") for name in names),
        _member(manifest.MODES, b"{}"),
    )
    bundle.import_(lab, path)
    there = manifest.place(lab.state_dir, "ready") / _LIBVIRT
    assert sorted(str(one.relative_to(there)) for one in there.rglob("*") if one.is_file()) == sorted(names)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_files_of_the_run_belong_to_the_user_who_imports(tmp_path: Path, lab: Lab) -> None:
    """Those that were root's stay so."""
    os.chown(lab.run_dir, 1234, 1235)
    members = [
        _member("run/theirs", uid=4711, gid=4712),
        _member("run/roots", uid=0, gid=0),
        _member("state/x", uid=4711),
    ]
    bundle.import_(lab, _archive(tmp_path / "x.tar", lab, *FOLDERS, *members, _member(manifest.MODES, b"{}")))
    place = manifest.place(lab.state_dir, "ready")
    found = [(place / name).stat() for name in ("run/theirs", "run/roots", "state/x")]
    assert [(one.st_uid, one.st_gid) for one in found[:2]] == [(1234, 1235), (0, 0)] and found[2].st_uid == 4711


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
    for number, name in enumerate(["run/file", "memory/vm"]):
        os.utime(place / name, ns=(0, 1_764_331_000_123_456_789 + number))
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
    # By its time `boot` sees whether an image is another one.
    times = [(place / name).stat().st_mtime_ns for name in ("run/file", "memory/vm", "state/vm")]
    assert times == [1_764_331_000_123_456_789, *[1_764_331_000_123_456_790] * 2]
    assert all(one.lstat().st_mode & 0o077 == 0 for one in place.rglob("*") if not one.is_symlink())


def _content(top: Path) -> dict[str, bytes | str]:
    read: Callable[[Path], bytes | str] = lambda one: os.readlink(one) if one.is_symlink() else one.read_bytes()  # noqa: E731
    return {str(one.relative_to(top)): read(one) for one in top.rglob("*") if one.is_symlink() or one.is_file()}
