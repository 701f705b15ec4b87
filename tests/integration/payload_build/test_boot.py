"""The lab OS on an emulated machine: boots the ISO with a config, runs the payload's images, installs to a disk, boots from it.

Takes minutes, needs root and QEMU: runs when AGENTLAB_VM is set, one machine at a time (a lock file in the temporary
directory). AGENTLAB_VM_FIRMWARE=uefi,bios chooses the firmware.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.payload import build
from ansible_collections.agentlab.ocp.payload.images import registry
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso

pytestmark = pytest.mark.skipif("AGENTLAB_VM" not in os.environ, reason="set AGENTLAB_VM=1 to boot emulated machines")

PORT = 5078
OVMF = Path("/usr/share/OVMF")
PROBE = r"""#!/bin/bash
export LC_ALL=C
say() { echo "probe: $*"; }
say "config $(cat /etc/probe-config) host $(hostname) user $(id -un 1000)"
say "key $(cat /var/home/core/.ssh/authorized_keys.d/ignition)"
if [ -e /run/media/iso/images ]; then
    say "live at $(cut -d' ' -f1 /proc/uptime)"
    say "failed units: $(systemctl --failed --no-legend --plain | awk '{print $1}' | tr '\n' ' ')"
    ask() { podman run --quiet --rm --net=none "$RELEASE" image "$1"; }
    TIMEFORMAT="probe: took %R"
    time podman pull -q "$RELEASE"
    time say "image of node-agent $(ask agent-installer-node-agent)"
    time podman pull -q "$(ask agent-installer-node-agent)"
    time say "agent: $(podman run --rm --net=host $(ask agent-installer-node-agent) /usr/bin/agent --help 2>&1 | head -1)"
    time podman pull -q "$(ask agent-installer-api-server)"
    time say "python: $(podman run --rm --net=none $(ask agent-installer-api-server) python3 -c 'import aiohttp, yaml; print("imports")')"
    form='{{.Store.GraphDriverName}} {{index .Store.GraphStatus "Native Overlay Diff"}} {{.Host.OCIRuntime.Name}}'
    say "containers: $(podman info --format "$form")"
    time coreos-installer install --insecure -i /etc/disk.ign --copy-network --append-karg probe.karg=1 /dev/sda 2>&1 |
        grep -o '([0-9]*%)' | tail -1
    say "installed ${PIPESTATUS[0]}"
    systemctl reboot
else
    echo x >>/var/boots
    connections=$(ls /etc/NetworkManager/system-connections)
    say "disk boot $(wc -l </var/boots) firstboot=$(grep -c ignition.firstboot /proc/cmdline) karg=$(grep -c probe.karg=1 /proc/cmdline) $connections"
    [ "$(wc -l </var/boots)" -lt 2 ] || { say "end"; exit 0; }
    systemctl reboot
fi
"""
UNIT = """[Unit]
After=network-online.target
Wants=network-online.target
[Service]
Type=oneshot
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
ExecStart=/usr/local/bin/probe.sh
[Install]
WantedBy=multi-user.target
"""


def file(path: str, text: str, mode: int = 0o644) -> dict[str, object]:
    return {"path": path, "mode": mode, "overwrite": True, "contents": {"source": "data:," + urllib.parse.quote(text)}}


def config(release: str, name: str, *files: dict[str, object]) -> dict[str, object]:
    mirrors = "".join(
        f'[[registry]]\nlocation = "registry.agentlab.test/lab/{part}"\n'
        f'[[registry.mirror]]\nlocation = "10.0.2.2:{PORT}/lab/{part}"\ninsecure = true\n'
        for part in ("release", "payload")
    )
    probe = PROBE.replace("$RELEASE", release)
    return {
        "ignition": {"version": "3.2.0"},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["ssh-ed25519 AAAA probe"]}]},
        "storage": {
            "files": [
                file("/etc/probe-config", name),
                file("/etc/hostname", f"{name}-host"),
                file("/etc/containers/registries.conf", mirrors),
                file("/usr/local/bin/probe.sh", probe, 0o755),
                *files,
            ]
        },
        "systemd": {
            "units": [
                {"name": "probe.service", "enabled": True, "contents": UNIT},
                {"name": "instance@one.service", "enabled": True},
                {
                    "name": "instance@.service",
                    "contents": "[Service]\nType=oneshot\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
                },
            ]
        },
    }


class Machine:
    """A machine on TCG. `until` reads its serial line; it gives up after `silence` seconds without a new line."""

    def __init__(self, folder: Path, firmware: str, *arguments: str, memory: int = 2560) -> None:
        command = [
            "qemu-system-x86_64",
            "-machine",
            "q35",
            "-accel",
            "tcg",
            "-m",
            str(memory),
            "-nographic",
            "-monitor",
            "none",
        ]
        if firmware == "uefi":
            shutil.copy(OVMF / "OVMF_VARS_4M.fd", folder / "vars.fd")
            command += ["-drive", f"if=pflash,format=raw,readonly=on,file={OVMF}/OVMF_CODE_4M.fd"]
            command += ["-drive", f"if=pflash,format=raw,file={folder}/vars.fd"]
        command += [
            "-netdev",
            "user,id=n0",
            "-device",
            "virtio-net-pci,netdev=n0",
            "-device",
            "virtio-scsi-pci",
            *arguments,
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self.start, self.rest, self.log = time.monotonic(), b"", folder / "console.log"

    def until(self, pattern: str, silence: float = 180) -> list[str]:
        """The lines up to the first that matches `pattern`."""
        lines: list[str] = []
        assert self.process.stdout is not None
        with self.log.open("a") as log:
            while True:
                ready, __, __ = select.select([self.process.stdout], [], [], silence)
                piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
                if not piece:
                    raise AssertionError(
                        f"nothing on the console for {silence} s; last lines:\n" + "\n".join(lines[-30:])
                    )
                *whole, self.rest = (self.rest + piece).split(b"\n")
                for line in whole:
                    text = re.sub(rb"\x1b\[[0-9;?=]*[a-zA-Z]", b"", line).decode(errors="replace").strip()
                    print(f"{time.monotonic() - self.start:6.1f} {text}", file=log, flush=True)
                    lines.append(text)
                    if re.search(pattern, text):
                        return lines
                    assert "a shell follows" not in text, "\n".join(lines[-30:])

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def payload() -> dict[str, object]:
    return build.ensure(report=print)


@pytest.fixture
def served(payload: dict[str, object], tmp_path: Path) -> Iterator[None]:
    registry.push(Path(str(payload["directory"])), tmp_path / "storage")
    settings = {
        "version": 0.1,
        "storage": {"filesystem": {"rootdirectory": str(tmp_path / "storage")}},
        "http": {"addr": f"127.0.0.1:{PORT}"},
    }
    (tmp_path / "registry.yml").write_text(json.dumps(settings))
    with (tmp_path / "registry.log").open("w") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(tmp_path / "registry.yml")], stdout=log, stderr=log)
    yield
    process.terminate()
    process.wait()


@contextlib.contextmanager
def machine(folder: Path, firmware: str, *arguments: str) -> Iterator[Machine]:
    with (Path(tempfile.gettempdir()) / "agentlab-vm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        started = Machine(folder, firmware, *arguments)
        try:
            yield started
        finally:
            started.close()


def cdrom(path: Path) -> list[str]:
    return [
        "-drive",
        f"if=none,id=cd,file={path},media=cdrom,readonly=on",
        "-device",
        "ide-cd,drive=cd,bus=ide.0,bootindex=2",
    ]


@pytest.mark.parametrize("firmware", os.environ.get("AGENTLAB_VM_FIRMWARE", "uefi,bios").split(","))
def test_live_install_reboot(payload: dict[str, object], served: None, tmp_path: Path, firmware: str) -> None:
    release = str(payload["release"])
    disk = config(release, "disk")
    keyfile = "[connection]\nid=lab\ntype=ethernet\n[ipv4]\nmethod=auto\n[ipv6]\nmethod=disabled\n"
    live = config(
        release,
        "live",
        file("/etc/disk.ign", json.dumps(disk)),
        file("/etc/NetworkManager/system-connections/lab.nmconnection", keyfile, 0o600),
    )
    with LiveIso(Path(str(payload["iso"]))) as image:
        image.ignition = json.dumps(live).encode()
        image.save_as(tmp_path / "agent.iso")
    with (tmp_path / "disk.raw").open("wb") as stream:
        stream.truncate(20 << 30)
    drive = [
        "-drive",
        f"if=none,id=d0,file={tmp_path}/disk.raw,format=raw,cache=unsafe",
        "-device",
        "scsi-hd,drive=d0,bootindex=1",
    ]
    with machine(tmp_path, firmware, *cdrom(tmp_path / "agent.iso"), *drive) as vm:
        lines = [line for line in vm.until("probe: installed") if "probe:" in line or "%" in line]
        text = "\n".join(lines)
        assert "probe: config live host live-host user core" in text
        assert "probe: key ssh-ed25519 AAAA probe" in text
        images = payload["images"]
        assert isinstance(images, dict)
        assert f"probe: image of node-agent {images['agent-installer-node-agent']['pullspec']}" in text
        assert "probe: python: imports" in text
        assert "probe: containers: overlay true crun" in text
        assert re.search(r"probe: failed units:\s*$", text, re.M)
        assert "probe: installed 0" in text
        text = "\n".join(vm.until("probe: disk boot 1"))
        assert "probe: config disk host disk-host" in text
        assert "disk boot 1 firstboot=1 karg=1 lab.nmconnection" in text
        text = "\n".join(vm.until("probe: disk boot 2"))
        assert "disk boot 2 firstboot=0 karg=1 lab.nmconnection" in text
