"""Live ISOs and initramfs archives of the public coreos-installer project, all generations."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio, miniso
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso

SHARED = Path(os.environ.get("AGENTLAB_SHARED") or Path(__file__).resolve().parents[3] / "shared")
CASES = SHARED / "conformance/coreos-iso"
ISOS = sorted(CASES.glob("embed-areas-*.iso.xz"))
CONFIG = b'{"ignition": {"version": "3.2.0"}}'

pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason="the shared conformance cases are not here")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(params=ISOS, ids=lambda path: path.name.removesuffix(".iso.xz"))
def iso(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "test.iso"
    path.write_bytes(lzma.decompress(request.param.read_bytes()))
    return path


@pytest.mark.parametrize("compression", ["gzip", "xz"])
def test_embed_show_replace_reset(iso: Path, compression: str) -> None:
    pristine = digest(iso)
    for config in (CONFIG, CONFIG + b"\n", b"x" * 200_000):
        with LiveIso(iso) as live:
            live.ignition = config
            live.save(compression)
        with LiveIso(iso) as live:
            assert live.ignition == config and live.customized
    with LiveIso(iso) as live:
        live.reset()
        live.save()
    assert digest(iso) == pristine


def test_the_area_is_where_the_fixture_has_it(iso: Path) -> None:
    with LiveIso(iso) as live:
        assert live.area.length == 262144
        live.ignition = CONFIG
        live.save("none")
    raw = iso.read_bytes()
    assert raw.find(CONFIG) >= live.area.offset and raw.find(CONFIG) < live.area.offset + live.area.length


def test_network_keyfiles_are_independent(iso: Path) -> None:
    pristine = digest(iso)
    with LiveIso(iso) as live:
        if not live.features.get("live-initrd-network"):
            with pytest.raises(CoreosError, match="does not support customizing network settings"):
                live.network = {"a": b"1"}
            return
        live.network = {"b.nmconnection": b"2", "a.nmconnection": b"1"}
        live.save()
    with LiveIso(iso) as live:
        live.ignition = CONFIG
        live.save()
    with LiveIso(iso) as live:
        assert list(live.network.items()) == [("a.nmconnection", b"1"), ("b.nmconnection", b"2")]
        live.network = {}
        live.save()
        live.ignition = None
        live.save()
    assert digest(iso) == pristine


def test_kernel_arguments_round_trip(iso: Path) -> None:
    pristine = digest(iso)
    with LiveIso(iso) as live:
        if live.kargs is None:
            with pytest.raises(CoreosError, match="No karg embed areas found"):
                live.edit_kargs(append=["a"])
            return
        default = live.kargs.default
        assert live.kargs.current == default
        room = live.kargs.length - len(default) - 2
        live.edit_kargs(append=["z" * room])
        live.save()
    with LiveIso(iso) as live:
        assert live.kargs and live.kargs.current == f"{default} {'z' * room}"
        with pytest.raises(CoreosError, match="kargs too large for area"):
            live.edit_kargs(append=["y"])
        live.reset_kargs()
        live.edit_kargs(append=["a=b", "c"], replace=["a=b=d"])
        live.save()
    with LiveIso(iso) as live:
        assert live.kargs and live.kargs.current == f"{default} a=d c"
        live.reset()
        live.save()
    assert digest(iso) == pristine


def test_the_old_header_of_arguments_is_equivalent(iso: Path) -> None:
    with LiveIso(iso) as live:
        record = next((r for p, r in live.fs.walk() if p.endswith("kargs.json")), None)
        if record is None or iso.read_bytes()[32672:32680] != b"coreKarg":
            pytest.skip("this generation has one of both only")
        by_json = live.kargs
    with iso.open("r+b") as file:
        raw = iso.read_bytes()
        for name in (b"KARGS.JSO", b"kargs.json"):
            if (at := raw.find(name)) >= 0:
                file.seek(at)
                file.write(b"Z")
    with LiveIso(iso) as live:
        assert live.kargs and by_json
        assert (live.kargs.length, live.kargs.default, live.kargs.current) == (
            by_json.length,
            by_json.default,
            by_json.current,
        )
        assert [a.offset for a in live.kargs.areas] == [a.offset for a in by_json.areas]


def test_growing(iso: Path) -> None:
    config = os.urandom(300_000)
    with LiveIso(iso) as live:
        live.ignition = config
        with pytest.raises(CoreosError, match=r"Compressed initramfs is too large: 300\d{3} > 262144"):
            live.save()
        if not live.area.growable:
            with pytest.raises(CoreosError, match="too large"):
                live.save(grow=True)
            return
        live.save(grow=True)
    with LiveIso(iso) as live:
        assert live.ignition == config and live.area.length > 300_000


def test_minimal_iso(iso: Path, tmp_path: Path) -> None:
    with LiveIso(iso) as live:
        recorded = any(path.endswith("miniso.dat") for path, __ in live.fs.walk())
        if not recorded or live.kargs is None:
            with pytest.raises(CoreosError):
                miniso.extract(live, tmp_path / "min.iso")
            return
        miniso.extract(live, tmp_path / "min.iso", "https://example.com/rootfs", tmp_path / "rootfs")
        assert (tmp_path / "rootfs").read_bytes() == live.fs.read("images/pxeboot/rootfs.img")
    with LiveIso(tmp_path / "min.iso") as live:
        assert live.kargs and "coreos.liveiso=" not in live.kargs.default
        assert live.kargs.current == f"{live.kargs.default} coreos.live.rootfs_url=https://example.com/rootfs"
        assert not any(path.endswith("rootfs.img") for path, __ in live.fs.walk())


def test_not_a_coreos_iso(tmp_path: Path) -> None:
    path = tmp_path / "synthetic.iso"
    path.write_bytes(lzma.decompress((CASES / "synthetic.iso.xz").read_bytes()))
    with pytest.raises(CoreosError, match="Unrecognized CoreOS ISO image"):
        LiveIso(path)


def initrd(name: str) -> dict[str, bytes]:
    raw = (CASES / "initrd" / name).read_bytes()
    return cpio.read_files(io.BytesIO(lzma.decompress(raw) if name.endswith(".xz") else raw))


def test_compressed_members() -> None:
    kinds = ("uncompressed-1", "gzip", "xz", "zstd", "uncompressed-2")
    assert initrd("compressed.img.xz") == {
        f"{k}/{w.lower()}": f"{w}\n".encode() for k in kinds for w in ("HELLO", "WORLD")
    }


def test_awkward_archives() -> None:
    assert initrd("redundant.img.xz") == {"data/file": b"third\n"}
    assert {name: set(data) for name, data in initrd("padded-names.img.xz").items()} == {
        "dir/hello": {ord("z")},
        "dir/world": {ord("q")},
    }


@pytest.mark.parametrize("name", ["traversal-absolute.img", "traversal-relative.img"])
def test_no_way_out(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ansible_collections.agentlab.ocp.plugins.module_utils.cli.coreos import dev as verb

    (tmp_path / "out").mkdir()
    assert verb.dev(["extract", "initrd", "-C", str(tmp_path / "out"), str(CASES / "initrd" / name)]) == 1
    assert "contains path traversal" in capsys.readouterr().err
    assert [p.name for p in tmp_path.rglob("*")] == ["out"]
