"""ISOs, archives and recipes: what they are made from, how they are damaged where it matters, and how they are read."""

from __future__ import annotations

import functools
import importlib.util
import lzma
import os
import random
import re
import tempfile
from pathlib import Path
from typing import Any

from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio, customize, minimal, miniso
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from damage import mangle

ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("AGENTLAB_SHARED") or ROOT.parent / "shared") / "conformance"


@functools.cache
def scratch() -> Path:
    """Return a directory of this process, in memory where that is possible."""
    place = tempfile.TemporaryDirectory(prefix="agentlab-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    _KEPT.append(place)
    return Path(place.name)


_KEPT: list[Any] = []


@functools.cache
def _builder() -> Any:
    source = ROOT / "tests/unit/coreos/conftest.py"
    spec = importlib.util.spec_from_file_location("live_iso_builder", source)
    assert spec and spec.loader
    builder = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(builder)
    return builder


@functools.cache
def _small_iso() -> bytes:
    found: bytes = _builder().build(scratch() / "seed.iso", area=2048).read_bytes()
    return found


@functools.cache
def isos() -> list[Any]:
    """Most inputs are made from an ISO of few sectors, which is read ten times as fast as one with areas of the usual size."""
    others = [_builder().build(scratch() / "seed.iso").read_bytes()]
    others += [lzma.decompress(path.read_bytes()) for path in sorted((SHARED / "coreos-iso").glob("*.iso.xz"))]
    return [_small_iso()] * 8 * len(others) + others


_WORDS = (
    b"igninfo",
    b"IGNINFO",
    b'"file',
    b"kargs",
    b"coreKarg",
    b"coreiso+",
    b"NM",
    b"CE",
    b"SP",
    b"CD001",
    b"070701",
    b'"offset',
    b"MINISO",
)


@functools.cache
def _places(data: bytes) -> list[list[int]]:
    """Where each word is in an ISO; a place for each descriptor and area first."""
    found = [[32768], [16 * 2048 + 156], [32744], [32672]]
    return found + [
        places for word in _WORDS if (places := [match.start() for match in re.finditer(re.escape(word), data)])
    ]


def mangle_iso(rng: random.Random, data: bytes) -> bytes:
    """Damage where it matters: descriptors, directories, and the small files that list where the rest is."""
    found = bytearray(data)
    for __ in range(rng.choice((1, 2, 4, 8))):
        at = max(0, rng.choice(rng.choice(_places(data))) + rng.randrange(-16, 200))
        piece = bytes(found[at : at + 64])
        changed = mangle(rng, piece)[: len(piece)].ljust(len(piece), b"\0")
        found[at : at + len(piece)] = changed
    if rng.random() < 0.1:
        del found[rng.randrange(len(found)) :]
    return bytes(found)


def read_iso(data: bytes) -> None:
    path = scratch() / "damaged.iso"
    path.write_bytes(data)
    with LiveIso(path) as iso:
        for name, record in iso.fs.walk():
            if not record.is_dir and record.size < 1 << 16:
                iso.fs.read(name, 1 << 20)
        customize.customize(customize.Customization(), iso.features)
        iso.ignition = b'{"ignition": {"version": "3.2.0"}}'
        if iso.kargs:
            iso.edit_kargs(append=["a=b"])
        iso.edits(grow=True)
        iso.save_as(scratch() / "out.iso", grow=True, overwrite=True)
    with LiveIso(scratch() / "out.iso") as iso:
        iso.reset()
        iso.edits()


def read_for_minimal(data: bytes) -> None:
    path = scratch() / "damaged.iso"
    path.write_bytes(data)
    minimal.make(path, scratch() / "minimal.iso", "http://x/y", overwrite=True)


def recipes() -> list[Any]:
    recipe = miniso.Recipe(((1, 2, 2048), (5, 9, 4096)), bytes(32), lzma.compress(bytes(20000)))
    return [recipe.serialize()]


def read_recipe(data: bytes) -> None:
    zero = os.open("/dev/zero", os.O_RDONLY)
    try:
        for piece in miniso.Recipe.parse(data).unpack(zero):
            assert len(piece) <= 1 << 20
    finally:
        os.close(zero)


def archives() -> list[Any]:
    files = {"config.ign": b"{}" * 100, "etc/coreos-firstboot-network/a.nmconnection": cpio.File(b"x" * 700, 0o600)}
    plain = cpio.archive(files)
    found = [plain, *(cpio.compress(plain, kind) for kind in ("gzip", "xz")), cpio.join([plain, cpio.compress(plain)])]
    for path in sorted((SHARED / "coreos-iso/initrd").glob("*")):
        data = path.read_bytes()
        found.append(lzma.decompress(data) if path.suffix == ".xz" else data)
    return [data for data in found if len(data) < 1 << 20]
