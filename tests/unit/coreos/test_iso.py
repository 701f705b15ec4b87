"""Live ISOs: embedding, replacing, growing, the three ways out, and what is refused."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pycdlib
import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio, image
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CONFIG = b'{"ignition": {"version": "3.2.0"}}'
NOISE = random.Random(4).randbytes


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ignition_of(path: Path) -> bytes | None:
    with LiveIso(path) as iso:
        return iso.ignition


def test_three_ways_out_give_the_same_bytes(iso: Path, tmp_path: Path) -> None:
    pipe = io.BytesIO()
    with LiveIso(iso) as live:
        live.ignition = CONFIG
        live.edit_kargs(append=["console=ttyS0"])
        live.stream(pipe)
        live.save_as(tmp_path / "new.iso")
        assert live.save() is True
    assert digest(iso) == digest(tmp_path / "new.iso") == hashlib.sha256(pipe.getvalue()).hexdigest()
    assert (tmp_path / "new.iso").stat().st_mode & 0o777 == 0o600
    assert ignition_of(iso) == CONFIG


def test_reset_gives_the_pristine_bytes(iso: Path, pristine: Path) -> None:
    with LiveIso(iso) as live:
        live.ignition, live.network = CONFIG, {"eth0.nmconnection": b"[connection]\n"}
        live.edit_kargs(delete=["ignition.firstboot"], append=["a=b"])
        live.save()
    with LiveIso(iso) as live:
        assert live.customized and list(live.network) == ["eth0.nmconnection"]
        assert live.kargs and live.kargs.current.endswith("ignition.platform.id=metal a=b")
        live.reset()
        live.save()
    assert digest(iso) == digest(pristine)


def test_what_is_there_already_is_not_written(iso: Path) -> None:
    with LiveIso(iso) as live:
        live.ignition = CONFIG
        live.save()
    before = os.stat(iso).st_mtime_ns
    with LiveIso(iso) as live:
        live.ignition = CONFIG
        live.reset_kargs()
        assert not live.edits() and live.save() is False
    assert os.stat(iso).st_mtime_ns == before


def test_other_members_of_the_area_stay(iso: Path) -> None:
    with LiveIso(iso) as live:
        live.files["usr/lib/ignition/base.d/10-lab.ign"] = b"{}"
        live.network = {"a": b"1"}
        live.save()
    with LiveIso(iso) as live:
        live.ignition = CONFIG
        live.save()
        live.ignition = None
    with LiveIso(iso) as live:
        assert sorted(live.files) == [
            "config.ign",
            "etc/coreos-firstboot-network/a",
            "usr/lib/ignition/base.d/10-lab.ign",
        ]


def test_existing_output_is_refused_and_nothing_is_left(iso: Path, tmp_path: Path) -> None:
    (tmp_path / "there.iso").write_text("mine")
    with LiveIso(iso) as live:
        live.ignition = CONFIG
        with pytest.raises(CoreosError, match=r"there\.iso: File exists"):
            live.save_as(tmp_path / "there.iso")
        live.ignition = NOISE(1 << 17)
        with pytest.raises(CoreosError, match="too large"):
            live.save_as(tmp_path / "new.iso")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.iso", "there.iso"]
    assert (tmp_path / "there.iso").read_text() == "mine"


def test_a_failing_change_leaves_the_image_as_it_was(
    iso: Path, pristine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.pwrite, []

    def fails_once(fd: int, data: bytes, offset: int) -> int:
        calls.append(offset)
        if len(calls) == 2:
            real(fd, data[: len(data) // 2], offset)
            raise OSError(28, "No space left on device")
        return real(fd, data, offset)

    with LiveIso(iso) as live:
        live.ignition = NOISE(100_000)
        monkeypatch.setattr(image.os, "pwrite", fails_once)
        with pytest.raises(OSError, match="No space"):
            live.save(grow=True)
        calls.clear()
        with pytest.raises(OSError, match="No space"):
            image.write_in_place(iso, live.edits(grow=True))  # as a device is written, which cannot be replaced
    monkeypatch.undo()
    assert digest(iso) == digest(pristine)
    assert [path.name for path in iso.parent.iterdir()] == ["lab.iso"]


EMBED = """
import os, signal, sys
from ansible_collections.agentlab.ocp.plugins.module_utils.cli.coreos import iso
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import image
real, left = os.pwrite, int(sys.argv[1])
def write(fd, data, offset):
    global left
    left -= 1
    if not left:
        real(fd, data[:len(data) // 2], offset)
        os.kill(os.getpid(), signal.SIGKILL)
    return real(fd, data, offset)
image.os.pwrite = write
sys.exit(iso.main(["kargs", "modify", "-a", "a=b", sys.argv[2]]))
"""


@pytest.mark.parametrize("write", range(1, 6))
def test_a_change_that_is_killed_leaves_the_old_image_or_the_new_one(iso: Path, pristine: Path, write: int) -> None:
    link, other = iso.parent / "link.iso", iso.parent / "other.iso"
    link.symlink_to(iso.name)
    os.link(iso, other)
    iso.chmod(0o640)
    code = subprocess.run([sys.executable, "-c", EMBED, str(write), str(link)], check=False).returncode
    with LiveIso(iso) as live:
        assert live.kargs_text is not None and live.kargs is not None
        if code == -signal.SIGKILL:
            assert digest(iso) == digest(pristine)
        else:
            assert code == 0 and live.kargs_text == f"{live.kargs.default} a=b"
    assert digest(other) == digest(pristine) and link.is_symlink() and iso.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in iso.parent.iterdir()) == ["lab.iso", "link.iso", "other.iso"]


class TestGrowing:
    def test_too_large_names_both_sizes(self, iso: Path, pristine: Path) -> None:
        with LiveIso(iso) as live:
            live.ignition = NOISE(70_000)
            with pytest.raises(CoreosError, match=r"^Compressed initramfs is too large: 7\d{4} > 65536$"):
                live.save()
        assert digest(iso) == digest(pristine)

    def test_an_empty_area_grows(self, make_iso) -> None:
        path = make_iso(area=0)
        with LiveIso(path) as live:
            live.ignition = CONFIG
            with pytest.raises(CoreosError, match=r"too large: \d+ > 0$"):
                live.save()
            live.save(grow=True)
        assert ignition_of(path) == CONFIG

    def test_xz_is_tried_before(self, iso: Path) -> None:
        block = NOISE(40_000)
        with LiveIso(iso) as live:
            live.ignition = block + block
            live.save()
            assert live.fs.size == iso.stat().st_size
        assert ignition_of(iso) == block + block

    @pytest.mark.parametrize("way", ["in place", "copy", "pipe"])
    def test_every_tree_names_the_new_place(self, iso: Path, tmp_path: Path, way: str) -> None:
        config = NOISE(150_000)
        with LiveIso(iso) as live:
            live.ignition = b"old secret"
            live.save()
        with LiveIso(iso) as live:
            live.ignition = config
            target = tmp_path / "grown.iso"
            if way == "in place":
                live.save(grow=True)
                target = iso
            elif way == "copy":
                live.save_as(target, grow=True)
            else:
                with target.open("wb") as out:
                    live.stream(out, grow=True)
            old_place = live.area.offset
        assert ignition_of(target) == config
        read = pycdlib.PyCdlib()
        read.open(str(target))
        found = []
        for names in (
            {"iso_path": "/IMAGES/IGNITION.IMG;1"},
            {"rr_path": "/images/ignition.img"},
            {"joliet_path": "/images/ignition.img"},
        ):
            data = io.BytesIO()
            read.get_file_from_iso_fp(data, **names)
            found.append(cpio.read_files(io.BytesIO(data.getvalue())))
        read.close()
        assert found == [{"config.ign": config}] * 3
        raw = target.read_bytes()
        assert raw[old_place : old_place + 65536] == bytes(65536)
        assert struct.unpack_from("<I", raw, 32768 + 80)[0] * 2048 == len(raw)
        assert struct.unpack_from("<I", raw, 458)[0] * 512 == len(raw)

    def test_growing_again_stays_at_the_end(self, iso: Path) -> None:
        sizes = []
        for length in (100_000, 200_000, 400_000):
            with LiveIso(iso) as live:
                live.ignition = NOISE(length)
                live.save(grow=True)
            sizes.append(iso.stat().st_size)
            with LiveIso(iso) as live:
                assert live.area.offset + live.area.length == live.fs.size
        assert sizes[2] < sizes[0] + 400_000

    def test_a_length_in_igninfo_is_corrected(self, make_iso) -> None:
        path = make_iso(igninfo=json.dumps({"file": "images/ignition.img", "offset": 0, "length": 65536}))
        with LiveIso(path) as live:
            live.ignition = NOISE(100_000)
            live.save(grow=True)
        with LiveIso(path) as live:
            assert live.ignition and len(live.ignition) == 100_000
            assert json.loads(live.fs.read("coreos/igninfo.json"))["length"] == live.area.length

    def test_an_area_inside_another_file_cannot_grow(self, make_iso) -> None:
        path = make_iso(igninfo=json.dumps({"file": "images/ignition.img", "offset": 1024, "length": 20000}))
        with LiveIso(path) as live:
            live.ignition = CONFIG
            live.save(grow=True)
            live.ignition = NOISE(30_000)
            with pytest.raises(CoreosError, match=r"too large: 3\d{4} > 20000"):
                live.save(grow=True)
        assert ignition_of(path) == CONFIG


def test_an_archive_behind_the_initrd(iso: Path) -> None:
    archive = cpio.compress(cpio.archive({"agent-files/agent-tui": cpio.File(b"#!/bin/sh\n", 0o755)}))
    with LiveIso(iso) as live:
        old = live.fs.read("images/pxeboot/initrd.img")
        live.append_to_initrd(archive)
        live.ignition = NOISE(90_000)
        live.save(grow=True)
    with LiveIso(iso) as live:
        new = live.fs.read("images/pxeboot/initrd.img")
        assert live.ignition and len(live.ignition) == 90_000
    assert new.startswith(old) and len(new) % 4 == 0
    assert cpio.read_files(io.BytesIO(new[-(-len(old) // 4) * 4 :])) == {"agent-files/agent-tui": b"#!/bin/sh\n"}


def test_the_old_header_names_the_area(make_iso) -> None:
    path = make_iso(drop=("coreos/igninfo.json", "images/ignition.img"))
    with pytest.raises(CoreosError, match="Unrecognized CoreOS ISO image"):
        LiveIso(path)
    with path.open("r+b") as file:
        file.seek(0, 2)
        at = file.tell()
        file.write(bytes(8192))
        file.seek(32744)
        file.write(struct.pack("<8sQQ", b"coreiso+", at, 8192))
    with LiveIso(path) as live:
        assert live.header() == {"offset": at, "length": 8192}
        live.ignition = CONFIG
        live.save()
    assert ignition_of(path) == CONFIG


def test_old_images_support_no_network(make_iso) -> None:
    with (
        LiveIso(make_iso(drop=("coreos/features.json",))) as live,
        pytest.raises(CoreosError, match="network settings"),
    ):
        live.network = {"a": b""}


def test_memory_stays_small(iso: Path, tmp_path: Path) -> None:
    with iso.open("r+b") as file:
        file.truncate(300 << 20)
    tracemalloc.start()
    try:
        with LiveIso(iso) as live:
            live.ignition = CONFIG * 1000
            live.save_as(tmp_path / "copy.iso", grow=True)
            with open(os.devnull, "wb") as out:
                live.stream(out)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert (tmp_path / "copy.iso").stat().st_blocks * 512 < 8 << 20, "the copy is as sparse as the original"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it ends before its volume descriptors"),
        (b"x" * 40000, "volume descriptor 1 is b'xxxxxxx'"),
        (bytes(1 << 20), "not an ISO 9660 image"),
    ],
)
def test_foreign_files(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "foreign.iso"
    path.write_bytes(data)
    with pytest.raises(CoreosError, match=message):
        LiveIso(path)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(CoreosError, match=r"none\.iso: No such file"):
        LiveIso(tmp_path / "none.iso")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(CoreosError, match="not a regular file or block device"):
            LiveIso(path)


def test_truncated(iso: Path) -> None:
    os.truncate(iso, iso.stat().st_size - 4096)
    with pytest.raises(CoreosError, match="ISO image is incomplete"):
        LiveIso(iso)


@pytest.mark.parametrize(
    "info",
    [
        "{",
        "[]",
        '{"file": 5}',
        '{"file": "images"}',
        '{"file": "images/ignition.img", "length": -1}',
        '{"file": "images/ignition.img", "offset": 99999999999}',
        "[" * 5000,
    ],
)
def test_bad_igninfo(make_iso, info: str) -> None:
    with pytest.raises(CoreosError) as error:
        LiveIso(make_iso(igninfo=info))
    assert "\n" not in str(error.value)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 60 * 2048), st.binary(min_size=1, max_size=8)),
        min_size=1,
        max_size=8,
    )
)
def test_damaged_images_are_read_or_refused(
    pristine: Path, tmp_path: Path, damage: list[tuple[int, int, bytes]]
) -> None:
    raw = bytearray(pristine.read_bytes())
    for where, place, value in damage:
        at = (32768 if where else 0) + place
        raw[at : at + len(value)] = value
    path = tmp_path / "damaged.iso"
    path.write_bytes(raw)
    try:
        with LiveIso(path) as live:
            live.ignition = CONFIG
            list(live.fs.walk())
            live.edits()
            assert isinstance(live.features, dict)
    except CoreosError as error:
        assert len(str(error)) < 2000
