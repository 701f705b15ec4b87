"""Steps and programs that need no network of their own."""

from __future__ import annotations

import base64
import io
import json
import os
import struct
import subprocess
import tarfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from ansible_collections.agentlab.ocp.payload.node_agent import (
    apivip_check,
    container_image_availability,
    dhcp_lease_allocate,
    disk_speed_check,
    disks,
    gpus,
    host,
    install,
    inventory,
    logs_sender,
    machine_uuid,
    network,
    ntp_synchronizer,
    probes,
    protocol,
    tang_connectivity_check,
)
from ansible_collections.agentlab.ocp.payload.node_agent.agent import container
from ansible_collections.agentlab.ocp.payload.node_agent.steps import Context, resolve
from ansible_collections.agentlab.ocp.tests.unit.node_agent.fake_assisted import FakeAssisted

IE, HOST, CLUSTER = (f"{digit}1111111-2222-3333-4444-555555555555" for digit in "abc")
Write = Callable[[str, str | bytes], None]
real_disk = disks.known_disk


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: str | bytes) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    return write_file


@pytest.mark.parametrize(
    ("serial", "product", "macs", "wanted"),
    [
        ("ABC123", "4C4C4544-0000-2010-8020-80C04F202020", ["52:54:00:00:00:01"], "bbf2dead-374654cb-b32a917afd236656"),
        ("Default string", "4C4C4544-0000-2010-8020-80C04F202020", [], "4c4c4544-0000-2010-8020-80c04f202020"),
        ("", "03000200-0400-0500-0006-000700080009", ["b", "a", ""], machine_uuid.md5_uuid("a")),
        ("None", "not a uuid", [""], "deaddead-dead-dead-dead-deaddeaddead"),
    ],
)
def test_machine_uuid(serial: str, product: str, macs: list[str], wanted: str) -> None:
    found = machine_uuid.choose(serial, product, macs)
    assert found.replace("-", "") == wanted.replace("-", "")
    assert [len(part) for part in found.split("-")] == [8, 4, 4, 4, 12]


def device(kind: int, size: int, extended: int = 0) -> bytes:
    body = bytearray(0x20)
    struct.pack_into("<BB", body, 0, kind, len(body))
    struct.pack_into("<H", body, 0x0C, size)
    struct.pack_into("<I", body, 0x1C, extended)
    return bytes(body) + b"DIMM 0\0\0"


def test_smbios_memory() -> None:
    table = device(17, 16384) + device(4, 9) + device(17, 0x7FFF, 65536) + device(17, 0x8000 | 512) + device(17, 0)
    assert inventory.smbios_memory(table + device(127, 0)) == (16384 + 65536) * 2**20 + 512 * 2**10
    assert inventory.smbios_memory(b"") == 0


def test_machine(tmp_path: Path, write: Write) -> None:
    write(
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: QEMU CPU\ncpu MHz\t\t: 2600.5\nflags\t\t: fpu hypervisor\n\nprocessor\t: 1\n",
    )
    write("proc/meminfo", "MemTotal:        4028440 kB\n")
    write("proc/cmdline", "BOOT_IMAGE=/x BOOTIF=52:54:00:00:00:01 coreos.liveiso=lab\n")
    write("sys/devices/system/memory/block_size_bytes", "8000000\n")
    for number, online in enumerate("1101"):
        write(f"sys/devices/system/memory/memory{number}/online", online)
    write("sys/class/dmi/id/sys_vendor", "QEMU\n")
    write("sys/class/dmi/id/product_name", "Standard PC (Q35 + ICH9, 2009)\n")
    write("sys/class/tpm/tpm0/tpm_version_major", "2\n")
    write("sys/" + inventory.SECURE_BOOT.removeprefix("sys/"), b"\6\0\0\0\1")
    write("sys/bus/pci/devices/0000:00:01.0/class", "0x030000\n")
    write("sys/bus/pci/devices/0000:00:01.0/vendor", "0x1234\n")
    write("sys/bus/pci/devices/0000:00:01.0/device", "0x1111\n")
    processor = inventory.cpu(tmp_path)
    assert (processor["count"], processor["frequency"], processor["model_name"]) == (2, 2600.5, "QEMU CPU")
    assert inventory.memory(tmp_path) == {
        "physical_bytes": 3 << 27,
        "physical_bytes_method": "ghw",
        "usable_bytes": 4028440 * 1024,
    }
    assert inventory.boot(tmp_path) == {
        "command_line": "BOOT_IMAGE=/x BOOTIF=52:54:00:00:00:01 coreos.liveiso=lab\n", "current_boot_mode": "uefi",
        "pxe_interface": "52:54:00:00:00:01", "secure_boot_state": "Enabled", "device_type": "ephemeral",
    }  # fmt: skip
    assert inventory.system_vendor(tmp_path, processor["flags"]) == {
        "manufacturer": "QEMU", "product_name": "Standard PC (Q35 + ICH9, 2009)", "serial_number": "unknown", "virtual": True,
    }  # fmt: skip
    assert inventory.tpm(tmp_path) == "2.0"
    assert gpus.find_gpus(tmp_path)[0]["vendor_id"] == "1234"


def block(write: Write, name: str, number: str, gib: int, **files: str) -> None:
    write(f"sys/block/{name}/dev", number)
    write(f"sys/block/{name}/size", str(gib << 21))
    for path, content in files.items():
        write(f"sys/block/{name}/{path.replace('__', '/')}", content)


def test_disks(tmp_path: Path, write: Write) -> None:
    block(write, "sda", "8:0", 120, queue__rotational="1\n", device__vpd_pg83="", removable="0\n")
    write("sys/block/sda/device/scsi_device/2:0:0:0/x", "")
    write("run/udev/data/b8:0", "E:ID_PATH=pci-0000:00:05.0-scsi-0:0:0:0\nE:ID_MODEL=QEMU_HARDDISK\nE:ID_VENDOR=QEMU\n"
          "E:ID_SERIAL_SHORT=abc\nE:ID_WWN=0x50014ee\n")  # fmt: skip
    write("dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:0", "")
    (tmp_path / "dev/disk/by-id").mkdir()
    (tmp_path / "dev/disk/by-id/wwn-0x50014ee").symlink_to("../../sda")
    write("dev/sda", bytes(510) + b"\x55\xaa")
    block(write, "sdb", "8:16", 1, sdb1__dev="8:17")
    block(write, "sr0", "11:0", 1)
    block(write, "vda", "254:0", 20, queue__rotational="0\n", device__vendor="0x1af4\n", serial="overlay\n")
    block(write, "dm-0", "253:0", 5, dm__uuid="LVM-xyz")
    block(write, "dm-1", "253:1", 5, dm__uuid="CRYPT-xyz")
    for name in ("loop0", "zram0"):
        block(write, name, "7:0", 1)
    block(write, "pmem0", "259:0", 8)
    write("proc/1/mounts", "/dev/sdb1 /run/media/iso iso9660 ro 0 0\n/dev/vda /mnt/a\\040b ext4 rw 0 0\n")
    found = {entry["name"]: entry for entry in disks.disks(tmp_path)}
    assert list(found) == ["dm-0", "pmem0", "sda", "sdb", "sr0", "vda"]
    assert found["sda"] == {
        "id": "/dev/disk/by-id/wwn-0x50014ee", "name": "sda", "path": "/dev/sda", "by_id": "/dev/disk/by-id/wwn-0x50014ee",
        "by_path": "/dev/disk/by-path/pci-0000:00:05.0-scsi-0:0:0:0", "drive_type": "HDD", "size_bytes": 120 << 30,
        "model": "QEMU_HARDDISK", "vendor": "QEMU", "serial": "abc", "wwn": "0x50014ee", "hctl": "2:0:0:0", "removable": False,
        "bootable": True, "is_installation_media": False, "smart": "", "has_uuid": True, "holders": "",
        "installation_eligibility": {"eligible": True, "not_eligible_reasons": None},
    }  # fmt: skip
    reasons = {name: entry["installation_eligibility"]["not_eligible_reasons"] for name, entry in found.items()}
    assert reasons["sdb"] == ["Disk appears to be an ISO installation media (has partition with mountpoint suffix iso)"]
    assert reasons["vda"] == ["Disk has partition 'vda' mounted on '/mnt/a b'"]
    assert reasons["dm-0"] == ["Disk is an LVM logical volume"] and reasons["pmem0"] == [
        "Disk has unknown storage controller"
    ]
    assert found["sdb"]["is_installation_media"] and found["sr0"]["is_installation_media"]
    assert (found["vda"]["drive_type"], found["vda"]["vendor"], found["vda"]["serial"]) == ("SSD", "0x1af4", "overlay")
    assert [entry["name"] for entry in disks.disks(tmp_path, 100 << 30)] == ["sda"]


def test_inventory_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = {"hostname": "h", "disks": [{"name": f"sd{n}", "serial": "x" * 100} for n in range(10)]}
    text = inventory.limited_json(whole, 700)
    cut = json.loads(text)
    assert len(text) <= 700 and len(cut["disks"]) == 4 and cut["truncation"]["type"] == "partial"
    assert json.loads(inventory.limited_json(whole, 0)) == whole
    with pytest.raises(ValueError, match="unknown argument --colour=red"):
        inventory.step(["id", "--colour=red"], Context())


def test_hostname(monkeypatch: pytest.MonkeyPatch) -> None:
    def nic(name: str, kind: str, *addresses: str) -> dict[str, object]:
        return {"name": name, "type": kind, "mac_address": f"AA:BB:CC:00:00:{len(name):02X}", "ipv4_addresses": list(addresses),
                "ipv6_addresses": []}  # fmt: skip

    monkeypatch.setattr("socket.gethostname", lambda: "localhost")
    nics = [
        nic("lo", "device", "127.0.0.1/8"),
        nic("br0", "bridge", "10.0.0.1/8"),
        nic("eth10", "physical", "10.0.0.2/8"),
    ]
    assert inventory.hostname(nics) == "aa-bb-cc-00-00-05"
    assert inventory.hostname(nics[:2]) == "localhost"
    monkeypatch.setattr("socket.gethostname", lambda: "master-0")
    assert inventory.hostname(nics) == "master-0"


def test_permanent_mac_and_kind(tmp_path: Path) -> None:
    link = {
        "ifname": "eth0",
        "address": "AA:00:00:00:00:01",
        "linkinfo": {"info_slave_data": {"perm_hwaddr": "52:54:00:00:00:01"}},
    }
    assert network.permanent_mac(link) == "52:54:00:00:00:01"
    (tmp_path / "devices/pci/net/eth0").mkdir(parents=True)
    (tmp_path / "eth0").symlink_to("devices/pci/net/eth0")
    assert network.kind_of(link, tmp_path) == "physical"
    assert network.kind_of({"ifname": "bond0", "linkinfo": {"info_kind": "bond"}}, tmp_path) == "bond"


def test_checksum_and_solicited_node() -> None:
    assert probes.checksum(bytes.fromhex("45000073000040004011" + "0000" + "c0a80001c0a800c7")) == 0xB861
    assert probes.solicited_node("2001:db8::1:2:3456") == "ff02::1:ff02:3456"


def test_disk_speed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "disk"
    disk.write_bytes(bytes(1 << 20))
    refused = disk_speed_check.step([json.dumps({"path": str(disk)}), "21"], Context())
    assert refused.exit_code == -1
    assert (
        refused.error
        == f"Could not get I/O performance for path {disk}: disk {disk} should start with /dev/ and not leave it"
    )
    with monkeypatch.context() as patch:
        patch.setattr(disks, "known_disk", str)
        refused = disk_speed_check.step([json.dumps({"path": str(disk)}), "21"], Context())
    assert refused.error.endswith(f"{disk} is not a block device") and disk.read_bytes() == bytes(1 << 20)
    monkeypatch.setattr(disks, "known_disk", lambda path: path if path == str(disk) else real_disk(path))
    monkeypatch.setattr(disk_speed_check, "open_disk", lambda path: os.open(path, os.O_WRONLY))
    args = [json.dumps({"path": str(disk)}), "21.5"]
    result = disk_speed_check.step(args, Context())
    answer = json.loads(result.output)
    assert answer["path"] == str(disk) and answer.get("io_sync_duration", 0) < 1000  # zero is left out, as Go does
    assert disk.read_bytes()[:2300] != bytes(2300)
    gone = disk_speed_check.step([json.dumps({"path": "/dev/no-such-disk"}), "21"], Context())
    assert gone.exit_code == -1 and "Could not get I/O performance for path /dev/no-such-disk" in gone.error
    assert not Path("/dev/no-such-disk").exists()
    with disk.open("wb") as stream:  # a slow disk: enough times, or as many as there is time for
        monkeypatch.setattr(disk_speed_check, "BRIEF", 0.0)
        assert len(disk_speed_check.write(stream.fileno(), float("inf"))) == disk_speed_check.ENOUGH
        assert len(disk_speed_check.write(stream.fileno(), 0.0)) == 1
    assert disk_speed_check.p99_ms([0.001] * 98 + [0.0042, 0.009]) == 9
    assert disk_speed_check.p99_ms([0.001] * 99 + [0.0042]) == 4


def test_chrony_sources() -> None:
    output = "MS Name/IP address\n===\n^* 192.168.111.1  8 6 377 23 -13us[ -23us] +/- 1ms\n^? 10.0.0.1 0 7 0 - +0ns\n=+ 10.0.0.2 1\n"
    assert ntp_synchronizer.parse(output) == [
        {"source_name": "192.168.111.1", "source_state": "synced"},
        {"source_name": "10.0.0.1", "source_state": "unreachable"},
    ]


def fake_podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> Path:
    tool = tmp_path / "tools" / "podman"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/podman.log\n{body}\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return tmp_path / "podman.log"


def test_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_podman(
        tmp_path,
        monkeypatch,
        'case "$*" in "pull --quiet bad") echo no such image >&2; exit 125;; "image "*) echo 5000000;; esac',
    )
    request = json.dumps({"images": ["good", "bad"], "timeout": 10})
    result = container_image_availability.step([request], Context())
    good, bad = json.loads(result.output)["images"]
    assert result.exit_code == 2 and "no such image" in result.error
    assert good["result"] == "success" and good["size_bytes"] == 5000000 and good["download_rate"] > 0
    assert bad == {"name": "bad", "result": "failure"}


REQUEST = {
    "cluster_id": CLUSTER, "infra_env_id": IE, "host_id": HOST, "role": "bootstrap", "boot_device": "/dev/null",
    "controller_image": "reg/controller", "installer_image": "reg/installer", "mco_image": "reg/mco", "control_plane_count": 3,
    "openshift_version": "4.22.0", "installer_args": '["--append-karg","ip=dhcp"]', "disks_to_format": ["/dev/zero"],
    "proxy": {"http_proxy": "http://p", "no_proxy": " a,b "}, "notify_num_reboots": True,
}  # fmt: skip


@pytest.fixture
def two_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices of REQUEST count as disks of this machine."""
    monkeypatch.setattr(
        disks, "known_disk", lambda path: path if path in ("/dev/null", "/dev/zero") else real_disk(path)
    )


def test_installer_command() -> None:
    context = Context("http://10.0.0.1:8090", IE, HOST, "reg/agent", "t", "/etc/ca.pem", True)
    command = install.installer_command(REQUEST, context)
    image = command.index("reg/installer")
    assert command[:6] == ["podman", "run", "--privileged", "--pid=host", "--net=host", "--name=assisted-installer"]
    assert command[image - 2 : image] == ["-v", "/etc/ca.pem:/etc/ca.pem:rw"]
    assert command[image + 1 :] == [
        "--role", "bootstrap", "--infra-env-id", IE, "--cluster-id", CLUSTER, "--host-id", HOST, "--boot-device", "/dev/null",
        "--controller-image", "reg/controller", "--mco-image", "reg/mco", "--openshift-version", "4.22.0",
        "--installer-args", '["--append-karg","ip=dhcp"]', "--url", "http://10.0.0.1:8090", "--agent-image", "reg/agent",
        "--control-plane-count", "3", "--format-disk", "/dev/zero", "--check-cluster-version", "--notify-num-reboots", "--insecure",
        "--cacert", "/etc/ca.pem", "--http-proxy", "http://p", "--no-proxy", "a,b",
    ]  # fmt: skip


def test_gpus(tmp_path: Path) -> None:
    ids = {"00:01.0": ("030000", "1af4", "1050"), "00:02.0": ("030200", "10de", "20b0"), "00:03.0": ("120000", "1002", "74a1"),
           "00:04.0": ("020000", "8086", "10d3"), "00:05.0": ("030100", "8086", "0001")}  # fmt: skip
    for address, values in ids.items():
        device = tmp_path / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        for name, value in zip(("class", "vendor", "device"), values, strict=True):
            (device / name).write_text(f"0x{value}\n")
    assert [one["address"] for one in gpus.find_gpus(tmp_path)] == ["00:01.0", "00:02.0", "00:03.0"]
    config = tmp_path / "gpus.yaml"
    config.write_text('# by hand\nclasses:\nvendors:\n  - "0302 10de"  # NVIDIA\nmodels:\n- 0200808610d3\n')
    found = gpus.find_gpus(tmp_path, gpus.config(config))
    assert [(one["vendor_id"], one["device_id"]) for one in found] == [("10de", "20b0"), ("8086", "10d3")]
    config.write_text("toasters:\n")
    with pytest.raises(ValueError, match=r"gpus\.yaml, line 1: 'toasters:': want one of classes"):
        gpus.config(config)


def test_network_made_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, keyfiles = tmp_path / "agent/agent-tui.log", tmp_path / "system-connections"
    keyfiles.mkdir()
    early = keyfiles / "image.nmconnection"
    early.write_text("[connection]\nid=image\n")
    os.utime(early, (1, 1))
    assert not install.network_by_hand(log, keyfiles)  # there was no console
    log.parent.mkdir()
    log.touch()
    if host.run(["stat", "--format=%W", str(log.parent)]).output.strip() in ("0", "-"):
        pytest.skip("this file system keeps no creation time")
    assert not install.network_by_hand(log, keyfiles)  # all is older than the console
    (keyfiles / "notes").write_text("[other]\n")
    assert not install.network_by_hand(log, keyfiles)
    (keyfiles / "mine.nmconnection").write_text("[connection]\nid=mine\n")
    assert install.network_by_hand(log, keyfiles)
    monkeypatch.setattr(install, "network_by_hand", lambda: True)
    assert install.with_network({})["installer_args"] == '["--copy-network"]'
    assert (
        install.with_network({"installer_args": '["--append-karg", "a"]'})["installer_args"]
        == '["--append-karg", "a", "--copy-network"]'
    )
    asked = {"installer_args": '["--copy-network"]'}
    assert install.with_network(asked) == asked


@pytest.mark.usefixtures("two_disks")
def test_install_requests_that_are_refused() -> None:
    install.validate({**REQUEST, "must_gather_image": "quay.io/openshift/must-gather:4.22"})
    install.validate(
        {**REQUEST, "must_gather_image": '{"ocp":"reg/a","odf":"reg/b"}', "openshift_version": "4.22.0-ec.1"}
    )
    with pytest.raises(ValueError, match="must_gather_image: operator toast should be of cnv"):
        install.validate({**REQUEST, "must_gather_image": '{"toast":"reg/a"}'})
    with pytest.raises(ValueError, match="openshift_version newest should be like"):
        install.validate({**REQUEST, "openshift_version": "newest"})


@pytest.mark.usefixtures("two_disks")
def test_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = fake_podman(
        tmp_path, monkeypatch, 'case "$1" in run) sleep 0.5; echo it broke; exit 3;; images) echo sha;; esac'
    )
    monkeypatch.setattr(install, "START_SECONDS", 0.1)
    context = Context("http://x", IE, HOST, "reg/agent")
    results = list(install.install([json.dumps(REQUEST)], context))
    assert [(result.exit_code, result.error) for result in results] == [(0, ""), (3, "it broke\n")]
    assert log.read_text().splitlines()[0] == "images --quiet reg/installer"
    with pytest.raises(ValueError, match="disk /dev/nowhere was not found on the host"):
        list(install.install([json.dumps({**REQUEST, "boot_device": "/dev/nowhere"})], context))
    with pytest.raises(ValueError, match="role is required"):
        list(install.install([json.dumps({**REQUEST, "role": ""})], context))
    assert install.stop([], context).exit_code == 0
    assert log.read_text().splitlines()[-1] == "stop -i -t 5 assisted-installer"


def test_other_image_runs_in_a_container() -> None:
    context = Context("http://x", IE, HOST, "old", cacert="/ca")
    command = container({"agent_version": "reg/agent:2", "infra_env_id": IE, "host_id": HOST}, context)
    assert command[:3] == ["podman", "run", "--rm"]
    assert command[command.index("next-step-runner") + 1 :] == [
        "reg/agent:2", "next_step_runner", "--url", "http://x", "--infra-env-id", IE, "--host-id", HOST,
        "--agent-version", "reg/agent:2", "--insecure=false", "--cacert", "/ca",
    ]  # fmt: skip


def test_argument_counts() -> None:
    for kind, args in (
        ("inventory", 1),
        ("inventory", 3),
        ("installation-disk-speed-check", 2),
        ("stop-installation", 0),
    ):
        assert callable(resolve(kind, ["x"] * args))
    for kind, args in (
        ("inventory", 4),
        ("installation-disk-speed-check", 1),
        ("stop-installation", 1),
        ("execute", 1),
    ):
        with pytest.raises(ValueError):
            resolve(kind, ["x"] * args)


def test_logs(service: FakeAssisted, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = logs_sender.Job(CLUSTER, HOST, IE, bootstrap=True, gather=True, folder=tmp_path)
    (tmp_path / "agent.log").write_text("hello\n")
    monkeypatch.setattr(logs_sender, "journal_logs", lambda path, job, *matches: path.write_text("entry\n") and "")
    me = protocol.Identity(IE, HOST, "reg/agent", "token")
    failed, missing = logs_sender.send(job, logs_sender.Client(service.url), me)
    assert failed == "" and any("installer-gather.sh does not exist on this host" in text for text in missing)
    with tarfile.open(fileobj=io.BytesIO(service.uploads[0])) as tar:
        names = {Path(name).name for name in tar.getnames()}
    assert names >= {
        "agent.logs",
        "installer.logs",
        "mount.logs",
        "journal.logs",
        "dmesg.logs",
        "report.logs",
        "agent.log",
    }
    assert [path.rpartition("/")[2] for __, path in service.requests] == [
        "logs-progress", "logs-progress", f"logs?logs_type=host&host_id={HOST}&infra_env_id={IE}", "logs-progress",
    ]  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["agent.log"]
    done = subprocess.run([programs / "logs_sender", "-url", "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "missing required -host-id" in done.stderr


class Pages(BaseHTTPRequestHandler):
    pages: dict[str, tuple[int, str]] = {}  # noqa: RUF012
    accept = ""

    def do_GET(self) -> None:
        status, text = self.pages.get(self.path, (404, "not here"))
        type(self).accept = self.headers["Accept"]
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def web() -> object:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_api_vip(web: str) -> None:
    files = [{"path": "/etc/kubernetes/kubeconfig"}, {"path": "/secret"}]
    ignition = {"ignition": {"version": "3.2.0"}, "storage": {"files": files, "luks": [{"name": "root"}]}}
    Pages.pages = {"/config/worker": (200, json.dumps(ignition)), "/text": (200, "<html>"), "/other": (200, "{}"),
                   "/old": (200, '{"ignition":{"version":"3.0.0"}}'),
                   "/new": (200, '{"ignition":{"version":"3.4.0"}}')}  # fmt: skip

    def check(path: str, **more: str) -> tuple[dict[str, object], protocol.Result]:
        result = apivip_check.step([json.dumps({"url": web + path, **more})], Context())
        return json.loads(result.output), result

    answer, result = check("/config/worker")
    assert answer["is_success"] and result == protocol.Result(result.output)
    kept = json.loads(str(answer["ignition"]))
    assert [entry["path"] for entry in kept["storage"]["files"]] == ["/etc/kubernetes/kubeconfig"]
    assert kept["storage"]["luks"] and kept["systemd"] == {"units": []}
    assert Pages.accept == "application/vnd.coreos.ignition+json; version=3.2.0"
    for path, reason in (
        ("/no", "ignition file download failed: bad status code: 404"), ("/text", "response is not valid json"),
        ("/other", "not a valid ignition file"), ("/new", "unsupported config version '3.4.0'"),
    ):  # fmt: skip
        answer, result = check(path)
        assert "is_success" not in answer and reason in str(answer["download_error"])
        assert (result.error, result.exit_code) == ("ignition download error", 0)
    assert '"3.2.0"' in str(check("/old")[0]["ignition"])
    unasked = apivip_check.step(["{"], Context())
    assert unasked.exit_code == -1 and json.loads(unasked.output)["url"] == "<unknown URL due to internal error>"
    assert "not valid base64" in str(check("/config/worker", ca_certificate="%")[0]["download_error"])
    assert "unable to parse cert" in str(
        check("/config/worker", ca_certificate=base64.b64encode(b"x").decode())[0]["download_error"]
    )


def test_tang(web: str) -> None:
    Pages.pages = {"/adv/thumb": (200, '{"payload":"p","signatures":[{"protected":"x","signature":"y"}]}')}

    def check(*servers: dict[str, str]) -> protocol.Result:
        return tang_connectivity_check.step([json.dumps({"tang_servers": json.dumps(servers)})], Context())

    good = json.loads(check({"url": web, "thumbprint": "thumb"}).output)
    assert good["is_success"] and good["tang_server_response"][0]["tang_url"] == f"{web}/adv/thumb"
    bad = check({"url": web, "thumbprint": "other"}, {"url": web})
    assert json.loads(bad.output) == {"tang_server_response": None} and bad.exit_code == -1
    assert "404" in bad.error and "thumbprint isn't set" in bad.error


def test_dhcp_packets() -> None:
    mac, transaction = bytes.fromhex("001a4a000001"), b"abcd"
    frame = dhcp_lease_allocate.packet(dhcp_lease_allocate.DISCOVER, mac, transaction, {})
    assert frame[12:14] == b"\x08\0" and probes.checksum(frame[14:34]) == 0
    assert frame[42:46] == b"\1\1\6\0" and frame[46:50] == transaction
    options = b"".join(
        bytes([number, len(value)]) + value
        for number, value in {
            53: b"\5",
            54: b"\xc0\0\2\1",
            51: (600).to_bytes(4, "big"),
            6: bytes([8, 8, 8, 8, 9, 9, 9, 9]),
        }.items()
    )
    reply = bytearray(frame)
    reply[34:38] = struct.pack("!HH", 67, 68)
    reply[42] = 2
    reply[58:62] = bytes([192, 0, 2, 5])
    reply[42 + 240 :] = options + b"\xff"
    answer = dhcp_lease_allocate.parse(bytes(reply), transaction)
    assert answer and (answer.kind, answer.address) == (5, "192.0.2.5")
    assert dhcp_lease_allocate.parse(bytes(reply), b"else") is None
    lease = dhcp_lease_allocate.lease_text("api", answer, 0)
    assert lease == (
        'lease {\n  interface "api";\n  fixed-address 192.0.2.5;\n  option dhcp-lease-time 600;\n'
        "  option dhcp-message-type 5;\n  option domain-name-servers 8.8.8.8,9.9.9.9;\n"
        "  option dhcp-server-identifier 192.0.2.1;\n"
        "  renew 4 1970/01/01 00:05:00;\n  rebind 4 1970/01/01 00:08:45;\n  expire 4 1970/01/01 00:10:00;\n}"
    )
    assert dhcp_lease_allocate.fixed_address(lease) == "192.0.2.5"
    assert '"ingress"' in dhcp_lease_allocate.last_lease("junk\n" + lease + "\n" + lease, "ingress")
