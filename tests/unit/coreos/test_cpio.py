"""initramfs archives: round trips, awkward ones, and hostile ones."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import tracemalloc

import pytest
import zstandard
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from hypothesis import given, settings
from hypothesis import strategies as st

FILES = {"config.ign": b"{}", "etc/coreos-firstboot-network/eth0.nmconnection": b"[connection]\n" * 50}
COMPRESS = {
    "none": lambda data: data,
    "gzip": gzip.compress,
    "xz": lambda data: lzma.compress(data, check=lzma.CHECK_CRC32),
    "zstd": lambda data: zstandard.ZstdCompressor().compress(data),
}


def read(data: bytes, **options) -> dict[str, bytes]:
    return cpio.read_files(io.BytesIO(data), **options)


@pytest.mark.parametrize("method", ["none", "gzip", "xz"])
def test_round_trip(method: str) -> None:
    assert read(cpio.compress(cpio.archive(FILES), method)) == FILES


def test_gnu_cpio_reads_it() -> None:
    archive = cpio.archive({"a/b/c": cpio.File(b"text\n", 0o755), "z": b""})
    listed = subprocess.run(["cpio", "-itv", "--quiet"], input=archive, capture_output=True, check=True).stdout.decode()
    lines = [(line.split()[0], line.split()[-1]) for line in listed.splitlines()]
    assert lines == [("drwxr-xr-x", "a"), ("drwxr-xr-x", "a/b"), ("-rwxr-xr-x", "a/b/c"), ("-rw-------", "z")]


def test_the_same_input_gives_the_same_bytes() -> None:
    assert cpio.compress(cpio.archive(FILES)) == cpio.compress(cpio.archive(dict(reversed(FILES.items()))))


def test_concatenated_with_padding_and_the_last_copy_wins() -> None:
    parts = [COMPRESS[method](cpio.archive({"same": method.encode(), method: b"x"})) for method in COMPRESS]
    found = read(b"\0" * 512 + (b"\0" * 7).join(cpio.pad_data(part) for part in parts) + b"\0" * 4096)
    assert found == {"same": b"zstd", **dict.fromkeys(COMPRESS, b"x")}


def test_names_padded_with_zeros() -> None:
    archive = bytearray(cpio.archive({"name": b"data"}, parents=False))
    padded = archive[:94] + b"%08X" % 64 + archive[102:110] + b"name".ljust(66, b"\0") + archive[116:]
    assert read(bytes(padded)) == {"name": b"data"}


def test_only_regular_files_are_kept() -> None:
    link = cpio.archive({"link": cpio.File(b"target", 0)}).replace(b"%08X" % 0o100000, b"%08X" % 0o120777, 1)
    assert read(link) == {}


@pytest.mark.parametrize("method", COMPRESS)
def test_truncated(method: str) -> None:
    archive = COMPRESS[method](cpio.archive({"a": bytes(range(256)) * 8}))
    for size in range(1, len(archive), 97):
        with pytest.raises(CoreosError):
            read(archive[:size])


@pytest.mark.parametrize("method", ["gzip", "xz", "zstd"])
def test_garbage_behind_the_trailer(method: str) -> None:
    with pytest.raises(CoreosError, match="found trailing garbage inside compressed archive"):
        read(COMPRESS[method](cpio.archive({"a": b"b"}) + b"garbage"))
    assert read(COMPRESS[method](cpio.archive({"a": b"b"}) + bytes(512))) == {"a": b"b"}


@pytest.mark.parametrize("method", ["gzip", "xz", "zstd"])
def test_a_bomb_is_refused_in_little_memory(method: str) -> None:
    bomb = COMPRESS[method](cpio.archive({"big": bytes(96 << 20)}))
    tracemalloc.start()
    try:
        with pytest.raises(CoreosError, match="big: archive unpacks to more than 1000000 bytes"):
            read(bomb, limit=1_000_000)
        assert read(bomb, wanted=lambda name: False) == {}
        assert tracemalloc.get_traced_memory()[1] < 48 << 20
    finally:
        tracemalloc.stop()


def test_a_bomb_of_many_members_is_refused() -> None:
    member = cpio.archive({"a": b""})[:112]
    with pytest.raises(CoreosError, match="more than 100000 members"):
        read(gzip.compress(member * 150_000))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"hello", "found b'hello' where a cpio archive"),
        (b"BZh91AY&SY", "where a cpio archive"),
        (b"070707" + b"0" * 200, "where a cpio archive"),
        (b"070701" + b"0" * 200, "a name of 0 bytes"),
        (b"070701" + b"-1234567" * 13, "not a hexadecimal number"),
        (b"070701" + b"F" * 200, "a name of 4294967295 bytes"),
    ],
)
def test_foreign(data: bytes, message: str) -> None:
    with pytest.raises(CoreosError, match=message):
        read(data)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([b"", b"070701", b"\x1f\x8b\x08", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"]))
def test_anything_is_read_or_refused(data: bytes, magic: bytes) -> None:
    try:
        read(magic + data, limit=1 << 20)
    except CoreosError as error:
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(COMPRESS)), st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), max_size=6))
def test_damaged_archives_are_read_or_refused(method: str, damage: list[tuple[int, int]]) -> None:
    archive = bytearray(COMPRESS[method](cpio.archive(FILES)))
    for place, value in damage:
        archive[place % len(archive)] = value
    try:
        read(bytes(archive), limit=1 << 20)
    except CoreosError as error:
        assert "\n" not in str(error)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.text(st.characters(categories=("Ll", "Lu", "Nd")), min_size=1, max_size=20),
        st.binary(max_size=300),
        max_size=6,
    )
)
def test_any_files_come_back(files: dict[str, bytes]) -> None:
    assert read(cpio.compress(cpio.archive(files))) == files
