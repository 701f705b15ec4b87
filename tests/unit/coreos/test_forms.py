"""Other forms of a live ISO: minimal ones and back, network boot, configuration image."""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
from pathlib import Path
from types import SimpleNamespace

import pycdlib
import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import build, cpio, minimal, miniso, pxe
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.errors import CoreosError
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from hypothesis import given, settings
from hypothesis import strategies as st

from .conftest import KARGS, ROOTFS

URL = "http://192.0.2.1:8089/agent.x86_64-rootfs.img"
CUSTOM = "/images/assisted_installer_custom.img"


class TestAgentMinimal:
    def test_without_root_file_system(self, iso: Path, tmp_path: Path) -> None:
        with LiveIso(iso) as live:
            live.ignition = b"{}"
            live.save()
        minimal.make(iso, tmp_path / "min.iso", URL)
        with LiveIso(tmp_path / "min.iso") as live:
            paths = dict(live.fs.walk())
            grub, isolinux = (
                live.fs.read("EFI/redhat/grub.cfg").decode(),
                live.fs.read("isolinux/isolinux.cfg").decode(),
            )
            assert live.ignition == b"{}"
            assert live.kargs and live.kargs.current == live.kargs.default
            assert live.kargs.current == f'ignition.firstboot ignition.platform.id=metal coreos.live.rootfs_url="{URL}"'
            live.edit_kargs(append=["console=ttyS0"])
            live.save()
        assert "images/pxeboot/rootfs.img" not in paths and paths[CUSTOM[1:]].size == 1 << 20
        assert f"initrd /images/pxeboot/initrd.img /images/ignition.img {CUSTOM}\n" in grub
        assert f"append initrd=/images/pxeboot/initrd.img,/images/ignition.img,{CUSTOM} ignition.firstboot" in isolinux

    def test_a_long_url_gets_larger_areas(self, iso: Path, tmp_path: Path) -> None:
        url = "http://192.0.2.1/" + "x" * 600
        minimal.make(iso, tmp_path / "min.iso", url)
        with LiveIso(tmp_path / "min.iso") as live:
            assert live.kargs and url in live.kargs.current and live.kargs.length > 600

    def test_boot_entries_stay(self, iso: Path, tmp_path: Path) -> None:
        minimal.make(iso, tmp_path / "min.iso", URL)
        disc = pycdlib.PyCdlib()
        disc.open(str(tmp_path / "min.iso"))
        catalog = disc.eltorito_boot_catalog
        assert catalog
        first, second = catalog.initial_entry, catalog.sections[0].section_entries[0]
        for entry, path in ((first, "/ISOLINUX/ISOLINUX.BIN;1"), (second, "/IMAGES/EFIBOOT.IMG;1")):
            assert entry.get_rba() == disc.get_record(iso_path=path).extent_location()
        data = io.BytesIO()
        disc.get_file_from_iso_fp(data, joliet_path=CUSTOM)
        assert data.getvalue() == bytes(1 << 20)
        disc.close()

    def test_and_back(self, iso: Path, tmp_path: Path) -> None:
        minimal.make(iso, tmp_path / "min.iso", URL)
        (tmp_path / "rootfs.img").write_bytes(ROOTFS)
        minimal.restore(tmp_path / "min.iso", tmp_path / "rootfs.img", tmp_path / "full.iso")
        with LiveIso(tmp_path / "full.iso") as live:
            assert live.kargs and live.kargs.default == live.kargs.current == KARGS
            assert live.fs.read("images/pxeboot/rootfs.img") == ROOTFS

    @pytest.mark.parametrize("url", ["http://a/$b", "http://a\\b", 'http://"', "http://a b"])
    def test_bad_urls(self, iso: Path, tmp_path: Path, url: str) -> None:
        with pytest.raises(CoreosError, match="must not contain"):
            minimal.make(iso, tmp_path / "min.iso", url)
        assert not (tmp_path / "min.iso").exists()


class TestRecipe:
    @pytest.fixture
    def packed(self, iso: Path, tmp_path: Path) -> Path:
        build.rebuild(iso, tmp_path / "without.iso", {}, ["images/pxeboot/rootfs.img", "coreos/miniso.dat"])
        counts = miniso.pack(iso, tmp_path / "without.iso")
        assert counts["compressed"] < counts["written"]
        return iso

    def test_there_and_back(self, packed: Path, tmp_path: Path) -> None:
        pipe = io.BytesIO()
        with LiveIso(packed) as live:
            miniso.extract(live, tmp_path / "min.iso", URL, tmp_path / "rootfs.img")
            miniso.extract(live, pipe, URL)
        assert (tmp_path / "rootfs.img").read_bytes() == ROOTFS
        assert (tmp_path / "min.iso").read_bytes() == pipe.getvalue()
        with LiveIso(tmp_path / "min.iso") as live:
            assert live.kargs and live.kargs.default == "ignition.firstboot ignition.platform.id=metal"
            assert live.kargs.current == f"{live.kargs.default} coreos.live.rootfs_url={URL}"
        minimal.restore(tmp_path / "min.iso", tmp_path / "rootfs.img", tmp_path / "full.iso")
        with LiveIso(tmp_path / "full.iso") as live:
            assert live.kargs and live.kargs.current == KARGS

    def test_only_of_a_pristine_image(self, packed: Path, tmp_path: Path) -> None:
        with LiveIso(packed) as live:
            live.edit_kargs(append=["a"])
            live.save()
        with (
            LiveIso(packed) as live,
            pytest.raises(CoreosError, match="Cannot operate on ISO with embedded customizations"),
        ):
            miniso.extract(live, tmp_path / "min.iso")

    def test_a_wrong_sum_leaves_nothing(self, packed: Path, tmp_path: Path) -> None:
        with LiveIso(packed) as live:
            at = live.fs.find("images/pxeboot/vmlinuz").offset
        with packed.open("r+b") as file:
            file.seek(at)
            file.write(b"K")
        with LiveIso(packed) as live, pytest.raises(CoreosError, match="wrong final digest: expected"):
            miniso.extract(live, tmp_path / "min.iso")
        assert not (tmp_path / "min.iso").exists()

    def test_no_recipe(self, make_iso, tmp_path: Path) -> None:
        with (
            LiveIso(make_iso(drop=("coreos/miniso.dat",))) as live,
            pytest.raises(CoreosError, match="does not support"),
        ):
            miniso.extract(live, tmp_path / "min.iso")

    @settings(deadline=None)
    @given(st.binary(max_size=200), st.booleans())
    def test_any_bytes(self, raw: bytes, magic: bool) -> None:
        try:
            recipe = miniso.Recipe.parse((b"MINISO\0\0\x01" if magic else b"") + raw)
        except CoreosError:
            return
        assert recipe.table


class TestNetworkBoot:
    def test_artifacts(self, iso: Path, tmp_path: Path) -> None:
        archives = [
            cpio.compress(cpio.archive({"agent-files/a": b"1"})),
            cpio.compress(cpio.archive({"config.ign": b"{}"})),
        ]
        with LiveIso(iso) as live:
            base = live.fs.read("images/pxeboot/initrd.img")
            names = pxe.write_artifacts(live, tmp_path, "agent.x86_64", archives, "http://192.0.2.1/boot/", " fips=1")
        assert names == [f"agent.x86_64{rest}" for rest in ("-vmlinuz", "-initrd.img", "-rootfs.img", ".ipxe")]
        initrd = (tmp_path / names[1]).read_bytes()
        assert initrd.startswith(base)
        assert cpio.read_files(io.BytesIO(initrd[-(-len(base) // 4) * 4 :])) == {
            "agent-files/a": b"1",
            "config.ign": b"{}",
        }
        assert (tmp_path / names[2]).read_bytes() == ROOTFS
        assert (tmp_path / names[3]).stat().st_mode & 0o777 == 0o600
        assert (tmp_path / names[3]).read_text().splitlines() == [
            "#!ipxe",
            "initrd --name initrd http://192.0.2.1/boot/agent.x86_64-initrd.img",
            "kernel http://192.0.2.1/boot/agent.x86_64-vmlinuz initrd=initrd "
            "coreos.live.rootfs_url=http://192.0.2.1/boot/agent.x86_64-rootfs.img "
            "ignition.firstboot ignition.platform.id=metal fips=1",
            "boot",
        ]

    def test_a_compressed_kernel_is_unpacked(self, iso: Path, tmp_path: Path) -> None:
        """As RHCOS has it for arm64."""
        kernel = random.Random(1).randbytes(3_000_000)
        path = tmp_path / "arm64.iso"
        build.rebuild(iso, path, {"images/pxeboot/vmlinuz": gzip.compress(kernel)})
        with LiveIso(path) as live:
            names = pxe.write_artifacts(live, tmp_path, "agent.aarch64", [b"x" * 10])
        assert names[0] == "agent.aarch64-vmlinuz"
        assert (tmp_path / names[0]).read_bytes() == kernel
        build.rebuild(iso, path, {"images/pxeboot/vmlinuz": gzip.compress(kernel)[:-9]}, overwrite=True)
        with LiveIso(path) as live, pytest.raises(CoreosError, match="is truncated"):
            pxe.write_artifacts(live, tmp_path, "agent.aarch64")

    def test_arguments_as_upstream_cuts_them(self, make_iso) -> None:
        for default, expected in (
            ("coreos.liveiso=x a", "a fips=1"),
            ("a coreos.liveiso=x", "a  fips=1"),
            ("", " fips=1"),
        ):
            live = SimpleNamespace(kargs=SimpleNamespace(default=default))
            assert pxe.kernel_arguments(live, " fips=1") == expected

    def test_not_a_live_iso(self, make_iso, tmp_path: Path) -> None:
        with LiveIso(make_iso(drop=("images/pxeboot/vmlinuz",))) as live, pytest.raises(CoreosError, match="no kernel"):
            pxe.write_artifacts(live, tmp_path, "agent")

    def test_s390x(self, iso: Path, tmp_path: Path) -> None:
        ins = b"* minimal lpar ins file\nimages/kernel.img 0x0\nimages/initrd.img 0x2000000\nimages/initrd.addrsize 0x10408\n"
        path = tmp_path / "s390x.iso"
        build.rebuild(iso, path, {"images/initrd.addrsize": b"PSWPSWPS" + bytes(8), "generic.ins": ins})
        with LiveIso(path) as live:
            names = pxe.write_artifacts(live, tmp_path, "agent.s390x", [b"x" * 10])
            size = (tmp_path / "agent.s390x-initrd.img").stat().st_size
        assert (tmp_path / "agent.s390x-initrd.addrsize").read_bytes() == b"PSWPSWPS" + struct.pack(">Q", size)
        assert (tmp_path / "agent.s390x-generic.ins").read_text().splitlines()[1:] == [
            "agent.s390x-vmlinuz 0x0",
            "agent.s390x-initrd.img 0x2000000",
            "agent.s390x-initrd.addrsize 0x10408",
        ]
        assert len(names) == 5


def test_configuration_image(tmp_path: Path) -> None:
    files = {
        "/etc/assisted/z": cpio.File(b"1", 0o644),
        "/root/.docker/config.json": b"{}",
        "/etc/assisted/rendezvous-host.env": b"last",
    }
    build.config_image(files, tmp_path / "agentconfig.noarch.iso", b'{"ignition": {"version": "3.2.0"}}')
    found = build.read_config_image(tmp_path / "agentconfig.noarch.iso")
    assert list(found) == list(files) and found["/etc/assisted/z"] == b"1"
    assert (tmp_path / "agentconfig.noarch.iso").read_bytes()[32808:32840].rstrip() == b"agent_configimage"
    with LiveIso(tmp_path / "agentconfig.noarch.iso") as shown:
        assert shown.ignition == b'{"ignition": {"version": "3.2.0"}}'
        assert [path for path, __ in shown.fs.walk()] == ["config.gz"]


def test_an_image_without_a_block_size_is_refused(iso: Path, tmp_path: Path) -> None:
    """Found by the fuzzer: a Joliet descriptor with blocks of 0 bytes was a division by zero."""
    data = bytearray(iso.read_bytes())
    at = next(at for at in range(16 * 2048, len(data), 2048) if data[at : at + 6] == b"\2CD001")
    data[at + 128 : at + 132] = bytes(4)  # ECMA-119, 8.5.13
    iso.write_bytes(data)
    with pytest.raises(CoreosError, match=r"lab\.iso: cannot be rebuilt"):
        minimal.make(iso, tmp_path / "min.iso", URL)
    assert not (tmp_path / "min.iso").exists()


def test_rebuild(iso: Path, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"b" * 5000)
    build.rebuild(
        iso, tmp_path / "new.iso", {"images/a-very-long-name.img": tmp_path / "big", "coreos/igninfo.json": b"{}"}
    )
    with pytest.raises(CoreosError, match="file must be a str"):
        LiveIso(tmp_path / "new.iso")
    build.rebuild(
        tmp_path / "new.iso",
        tmp_path / "third.iso",
        {"coreos/igninfo.json": json.dumps({"file": "images/ignition.img"}).encode()},
    )
    with LiveIso(tmp_path / "third.iso") as live, LiveIso(iso) as old:
        assert live.fs.read("images/a-very-long-name.img") == b"b" * 5000
        names = {path for path, __ in live.fs.walk()} - {path for path, __ in old.fs.walk()}
    assert names == {"images/a-very-long-name.img"}
    assert not build.same_files(iso, tmp_path / "third.iso") and build.same_files(iso, iso)
    with pytest.raises(CoreosError, match="no nothing in"):
        build.rebuild(iso, tmp_path / "fourth.iso", {}, ["nothing"])
