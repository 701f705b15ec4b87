from __future__ import annotations

import gzip
import importlib.util
import io
import itertools
import json
import lzma
import os
import signal
import struct
import subprocess
import types
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload.machine_os import (
    bootloader,
    checkout,
    cpio,
    initrd,
    iso,
    kernel,
    kernel_modules,
    rootfs,
)
from ansible_collections.agentlab.ocp.payload.machine_os.distro import BuildError, Distro
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import miniso
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.cpio import entries, read_files
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso

FILES = Path(initrd.FILES).parent
DISTRO = Distro("debian", "bookworm", "Debian", "amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2", ())


@pytest.fixture(scope="module")
def live_iso(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("iso")
    for name in ("vmlinuz", "initrd.img", "efiboot.img", "isolinux.bin"):
        (folder / name).write_bytes(name.encode() * 700)
    (folder / "root.squashfs").write_bytes(b"hsqs" + bytes(5000))
    iso.rootfs_image(folder / "root.squashfs", "stamp", folder / "rootfs.img")
    iso.build(
        folder / "lab.iso",
        "lab-os-1",
        vmlinuz=folder / "vmlinuz",
        initrd=folder / "initrd.img",
        rootfs=folder / "rootfs.img",
        efiboot=folder / "efiboot.img",
        isolinux={"isolinux.bin": folder / "isolinux.bin"},
        efi=bootloader.cd_config(DISTRO, "lab-os-1"),
    )
    return folder / "lab.iso"


def test_signed_boot_loaders(live_iso: Path, tmp_path: Path) -> None:
    """Signed GRUB looks for its configuration in the distribution's folder, on the ISO and on the disk."""
    with LiveIso(live_iso) as image:
        config = image.fs.read("EFI/debian/grub.cfg", 1 << 12).decode()
    assert "--label lab-os-1\n" in config and config.endswith("configfile ($root)/EFI/redhat/grub.cfg\n")
    with pytest.raises(BuildError, match=r"the packages have no usr/lib/shim/shimx64.efi.signed"):
        bootloader.efi(tmp_path, DISTRO)
    for name in ("shim/shimx64.efi.signed", "grub/x86_64-efi-signed/grubx64.efi.signed"):
        (tmp_path / "usr/lib" / name).parent.mkdir(parents=True)
        (tmp_path / "usr/lib" / name).write_bytes(b"MZ" + name.encode())
    bootloader.disk_efi(tmp_path, DISTRO, tmp_path / "esp")
    found = {str(path.relative_to(tmp_path / "esp")) for path in (tmp_path / "esp").rglob("*.*")}
    assert found == {"EFI/BOOT/BOOTX64.EFI", "EFI/BOOT/grubx64.efi", "EFI/debian/grub.cfg"}


def test_iso_is_coreos(live_iso: Path) -> None:
    with LiveIso(live_iso) as image:
        assert image.fs.volume_id == "lab-os-1"
        assert image.ignition is None
        assert image.kargs is not None
        assert image.kargs.length == bootloader.KARG_AREA
        assert image.kargs.default == image.kargs.current == iso.default_kargs("lab-os-1")
        assert len(image.kargs.areas) == 2
        assert image.features == {"live-initrd-network": True}


def test_modes_of_a_clone_do_not_matter(tmp_path: Path) -> None:
    """With the umask 077 git makes directories that only their owner may enter."""
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "etc/conf.d").mkdir(parents=True)
    for name, mode in (("etc/conf.d/one.conf", 0o600), ("etc/run", 0o700)):
        (source / name).write_text(name)
        (source / name).chmod(mode)
    for folder in (source, source / "etc", source / "etc/conf.d"):
        folder.chmod(0o700)
    (target / "etc").mkdir(parents=True)
    (target / "etc/run").symlink_to("/nonexistent/elsewhere")
    checkout.copy_tree(source, target)
    modes = {str(path.relative_to(target)): path.lstat().st_mode & 0o777 for path in target.rglob("*")}
    assert modes == {"etc": 0o755, "etc/conf.d": 0o755, "etc/conf.d/one.conf": 0o644, "etc/run": 0o755}
    assert target.stat().st_mode & 0o777 == 0o755 and (target / "etc/run").read_text() == "etc/run"


def test_iso_takes_a_config_and_kargs(live_iso: Path, tmp_path: Path) -> None:
    with LiveIso(live_iso) as image:
        image.ignition = b'{"ignition": {"version": "3.2.0"}}'
        image.edit_kargs(append=["lab=1"])
        image.save_as(tmp_path / "new.iso")
    with LiveIso(tmp_path / "new.iso") as image:
        assert image.ignition == b'{"ignition": {"version": "3.2.0"}}'
        assert image.kargs is not None and image.kargs.current.endswith(" lab=1")
        grub = image.fs.read("EFI/redhat/grub.cfg", 1 << 16).decode()
    line = next(line for line in grub.splitlines() if "vmlinuz" in line)
    assert line.endswith(" lab=1")
    assert "# COREOS_KARG_EMBED_AREA\n\tinitrd " in grub


def test_rootfs_starts_where_the_initrd_mounts_it(live_iso: Path) -> None:
    data = (live_iso.parent / "rootfs.img").read_bytes()
    assert data[iso.SQUASHFS_OFFSET : iso.SQUASHFS_OFFSET + 4] == b"hsqs"
    assert f"offset={iso.SQUASHFS_OFFSET}" in (FILES / "initrd/init").read_text()
    found = read_files(io.BytesIO(data), lambda name: name == "etc/coreos-live-rootfs", 1 << 20)
    assert found["etc/coreos-live-rootfs"] == b"stamp\n"


def test_cpio_tree(tmp_path: Path) -> None:
    (tmp_path / "tree/d").mkdir(parents=True)
    (tmp_path / "tree/d/file").write_bytes(b"12345")
    (tmp_path / "tree/link").symlink_to("d/file")
    out = io.BytesIO()
    cpio.add_tree(out, tmp_path / "tree")
    cpio.end(out)
    assert len(out.getvalue()) % 512 == 0
    out.seek(0)
    assert [
        (entry.name, entry.size)
        for entry, *__ in (item if isinstance(item, tuple) else (item,) for item in entries(out))
    ] == [("d", 0), ("link", 6), ("d/file", 5)]


def test_kargs_area_has_the_size_in_kargs_json() -> None:
    text = bootloader.grub_cfg("a=1 b=2")
    start = text.index("a=1")
    assert text[start + bootloader.KARG_AREA :].startswith(bootloader.KARG_MARK)


def test_modules_come_with_what_they_need(tmp_path: Path) -> None:
    modules = tmp_path / "m"
    modules.mkdir()
    (modules / "modules.dep").write_text("kernel/a/sd-mod.ko: kernel/b/t10.ko\nkernel/b/t10.ko:\nkernel/c/other.ko:\n")
    (modules / "modules.builtin").write_text("kernel/x/builtin.ko\n")
    assert kernel.closure(modules, ("sd_mod", "builtin")) == [Path("kernel/a/sd-mod.ko"), Path("kernel/b/t10.ko")]
    with pytest.raises(BuildError, match="no module missing"):
        kernel.closure(modules, ("missing",))


def test_modules_are_unpacked(tmp_path: Path) -> None:
    folder = tmp_path / "kernel/fs"
    folder.mkdir(parents=True)
    (folder / "plain.ko").write_bytes(b"plain")
    (folder / "one.ko.gz").write_bytes(gzip.compress(b"one"))
    (folder / "two.ko.xz").write_bytes(lzma.compress(b"two"))
    (folder / "three.ko").write_bytes(b"three")
    subprocess.run(["zstd", "-q", "--rm", folder / "three.ko"], check=True)
    kernel.unpack(tmp_path)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "plain.ko": b"plain", "one.ko": b"one", "two.ko": b"two", "three.ko": b"three",
    }  # fmt: skip


@pytest.mark.parametrize(
    "script", ["init", "ignition", "chrooted", "no-op", "initrd-network", "initrd-network.lease", "python3"]
)
def test_initrd_scripts_parse(script: str) -> None:
    subprocess.run(["sh", "-n", FILES / "initrd" / script], check=True)


# Programs of the initrd, by name, that record how they were called. A NIC has addresses that may be used after the second look.
PROGRAMS = {
    "udhcpc": '[ -e "$IPV4" ]',
    "dhclient": 'echo 7 >"$TOP/run/dhclient.eth0.pid"; reason=BOUND6 interface=$LAST new_ip6_address=fd00::5 '
    'new_dhcp6_name_servers="fd00::1 fd00::2" sh "$TOP/initrd-network.lease"',
    "ip": """case $* in
        *'addr show'*) echo "    inet6 fd00::5/128 scope global$([ -e "$TOP/looked" ] || echo ' tentative')"; touch "$TOP/looked" ;;
        *route) echo 'default via fe80::1 dev eth0' ;;
        esac""",
    "usleep": "",
}  # fmt: skip


@pytest.fixture
def network(tmp_path: Path) -> Callable[..., list[str]]:
    """Return a function that runs `initrd-network` on a host with the NIC eth0, and returns the calls of the programs above."""
    (tmp_path / "sys/class/net/eth0/device").mkdir(parents=True)
    (tmp_path / "sys/class/net/lo").mkdir()
    for name in ("bin", "run", "etc"):
        (tmp_path / name).mkdir()
    for name in ("initrd-network", "initrd-network.lease"):
        text = (FILES / "initrd" / name).read_text()
        for place in ("/sys/", "/run/", "/etc/"):
            text = text.replace(place, f"{tmp_path}{place}")
        (tmp_path / name).write_text(text)
    for name, script in PROGRAMS.items():
        call = f'echo "{name} $*" >>"$TOP/calls"; for LAST; do :; done\n{script}\n'
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{call}")
        (tmp_path / "bin" / name).chmod(0o755)

    def run(*arguments: str, ipv4: bool) -> list[str]:
        (tmp_path / "calls").write_text("")
        environment = {
            "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
            "TOP": str(tmp_path),
            "IPV4": str(tmp_path if ipv4 else tmp_path / "none"),
        }
        subprocess.run(["sh", tmp_path / "initrd-network", *arguments], env=environment, check=True)
        return (tmp_path / "calls").read_text().replace(f"{tmp_path}/", "/").splitlines()

    return run


@pytest.mark.parametrize(
    ("url", "ipv4", "clients"),
    [
        ("http://192.0.2.1:8089/rootfs.img", True, ["udhcpc"]),
        ("http://[fd00::1]:8089/rootfs.img", True, ["dhclient"]),
        ("http://host.test/rootfs.img", True, ["udhcpc"]),
        ("http://host.test/rootfs.img", False, ["udhcpc", "dhclient"]),
    ],
)
def test_dhcp_is_of_the_family_of_the_url(
    network: Callable[..., list[str]], url: str, ipv4: bool, clients: list[str]
) -> None:
    calls = network("up", url, ipv4=ipv4)
    assert [call.split()[0] for call in calls if call.split()[0] in ("udhcpc", "dhclient")] == clients


def test_dhcpv6_lease_of_a_mac(network: Callable[..., list[str]], tmp_path: Path) -> None:
    """The client starts when its link-local address may be used; the lease is applied, and the client ends with the network."""
    calls = network("up", "http://[fd00::1]:8089/rootfs.img", ipv4=False)
    asked = next(number for number, call in enumerate(calls) if call.startswith("dhclient"))
    assert calls[asked].startswith("dhclient -6 -1 -q -D LL ") and calls[asked].endswith(" eth0")
    assert calls[:asked].count("ip -6 addr show dev eth0 scope link") == 2
    assert "ip -6 addr add fd00::5/128 dev eth0" in calls
    assert (tmp_path / "etc/resolv.conf").read_text() == "nameserver fd00::1\nnameserver fd00::2\n"
    with subprocess.Popen(["sleep", "60"]) as client:
        (tmp_path / "run/dhclient.eth0.pid").write_text(str(client.pid))
        assert network("down", ipv4=False) == ["ip addr flush dev eth0", "ip link set eth0 down"]
    assert client.returncode == -signal.SIGTERM
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["dhclient.conf"]
    assert not (tmp_path / "etc/resolv.conf").exists()


def test_own_units_pass_systemd() -> None:
    units = sorted(str(path) for path in (FILES / "rootfs" / "usr/lib/systemd/system").iterdir() if path.is_file())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )  # fmt: skip
    # Programs of the lab's system are not here.
    found = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert [line for line in found if any(Path(unit).name in line for unit in units)] == []


def test_time_stamps_of_packets_stay_on() -> None:
    """The kernel changes its code at each ping otherwise, and an emulated machine with two processors hangs some time."""
    preset = (FILES / "rootfs" / "usr/lib/systemd/system-preset/40-machine-os.preset").read_text().splitlines()
    unit = (FILES / "rootfs" / "usr/lib/systemd/system/packet-timestamps.socket").read_text().splitlines()
    assert "enable packet-timestamps.socket" in preset[: preset.index("disable *")]
    assert {"Timestamping=us", "WantedBy=sockets.target"} <= set(unit)


def test_base_config_is_ignition() -> None:
    assert json.loads((FILES / "initrd/base.ign").read_text())["passwd"]["users"][0]["name"] == "core"


def test_what_the_initrd_loads_first_is_in_it() -> None:
    assert set(kernel_modules.INITRD_PRELOAD) <= set(kernel_modules.INITRD_MODULES)


@pytest.fixture(scope="module")
def installer() -> types.ModuleType:
    loader = SourceFileLoader("coreos_installer", str(FILES / "rootfs/usr/libexec/coreos-installer.py"))
    spec = importlib.util.spec_from_loader("coreos_installer", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_partition_table(installer: types.ModuleType, tmp_path: Path) -> None:
    size = 4 << 30
    with (tmp_path / "disk").open("w+b") as disk:
        disk.truncate(size)
        spans = installer.write_table(disk, size)
        disk.seek(512)
        header = disk.read(92)
        disk.seek(size - 512)
        backup = disk.read(92)
        disk.seek(1024)
        entries = disk.read(4 * 128)
    assert header[:8] == backup[:8] == b"EFI PART"
    assert struct.unpack_from("<QQ", header, 24) == struct.unpack_from("<QQ", backup, 24)[::-1]
    assert [entries[i * 128 + 56 : (i + 1) * 128].decode("utf-16-le").rstrip("\0") for i in range(4)] == [
        "BIOS-BOOT",
        "EFI-SYSTEM",
        "boot",
        "root",
    ]
    assert all(start % 2048 == 0 for start, __ in spans)
    assert all(one[0] + one[1] == two[0] for one, two in itertools.pairwise(spans))
    assert spans[-1][0] + spans[-1][1] <= size // 512 - 34


def test_progress_is_coreos_installers(installer: types.ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    progress = installer.Progress(2 << 30)
    progress.add(1 << 30)
    progress.add(1)
    progress.add((1 << 30) - 1)
    assert capsys.readouterr().err.replace("\r", "\n").splitlines() == [
        "> Read disk 1.0 GiB/2.0 GiB (50%)   ",
        "> Read disk 2.0 GiB/2.0 GiB (100%)   ",
    ]


def test_installing_to_a_file_is_refused(installer: types.ModuleType, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(installer.InstallError, match="not a block device"):
        installer.claim(str(tmp_path / "file"))


def test_iso_makes_the_minimal_one(live_iso: Path, tmp_path: Path) -> None:
    with LiveIso(live_iso) as image:
        miniso.extract(image, tmp_path / "minimal.iso", "http://x/rootfs.img", tmp_path / "rootfs.img")
    assert (tmp_path / "rootfs.img").read_bytes() == (live_iso.parent / "rootfs.img").read_bytes()
    with LiveIso(tmp_path / "minimal.iso") as image:
        assert image.kargs is not None and image.kargs.current.endswith(" coreos.live.rootfs_url=http://x/rootfs.img")
        assert "coreos.liveiso=" not in image.kargs.current
        names = {path for path, __ in image.fs.walk()}
    assert "images/pxeboot/initrd.img" in names and iso.ROOTFS not in names


def test_what_works_in_tmp_starts_after_it_is_emptied() -> None:
    """A unit without default dependencies starts at the time of `systemd-tmpfiles-setup.service`, which empties /tmp of this system."""
    live = FILES.parents[2] / "roles/agent_image/files/live"
    early = [unit for unit in sorted((live / "units").iterdir()) if "DefaultDependencies=no" in unit.read_text()]
    assert early
    for unit in early:
        drop_ins = FILES / "rootfs/usr/lib/systemd/system" / f"{unit.name}.d"
        lines = "".join(path.read_text() for path in (unit, *drop_ins.glob("*.conf"))).splitlines()
        after = [name for line in lines if line.startswith("After=") for name in line.removeprefix("After=").split()]
        assert "systemd-tmpfiles-setup.service" in after, unit.name


def test_a_login_over_ssh_starts_no_session(tmp_path: Path) -> None:
    config = tmp_path / "etc/pam.d/common-session"
    config.parent.mkdir(parents=True)
    config.write_text("session required pam_unix.so\nsession\toptional\tpam_systemd.so \n# end\n")
    rootfs.logins(tmp_path)
    assert config.read_text() == "session required pam_unix.so\n# end\n"
