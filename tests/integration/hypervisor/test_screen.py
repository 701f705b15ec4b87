"""The screen and the keyboard of a machine in libvirt, with the distribution's firmware."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from ansible_collections.agentlab.ocp.payload import build
from ansible_collections.agentlab.ocp.payload.images import code
from ansible_collections.agentlab.ocp.payload.images.components import COMPONENTS
from ansible_collections.agentlab.ocp.plugins.module_utils.ci import jobs
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos import cpio
from ansible_collections.agentlab.ocp.plugins.module_utils.coreos.iso import LiveIso
from ansible_collections.agentlab.ocp.plugins.module_utils.installer import image
from ansible_collections.agentlab.ocp.plugins.module_utils.report import hypervisor_logs
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import picture
from ansible_collections.agentlab.ocp.plugins.module_utils.state import owner
from ansible_collections.agentlab.ocp.plugins.module_utils.vocabulary import Component

sys.path.insert(0, str(Path(__file__).parent))
import guest

ROOT = Path(__file__).parents[3]
URI = "qemu:///system"
SCREEN = "<video><model type='vga'/></video>"
# Does steps on a domain's screen, as `agentlab console NODE --screen` does in the sandbox.
PROGRAM = """
import json, sys
from pathlib import Path
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.display import Display
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import steps
uri, domain, wanted = sys.argv[1:]
try:
    with connect(uri) as connection:
        display = Display(connection, domain, "master-0", Path("/nowhere"))
        steps.follow(display, steps.parse(json.loads(wanted)))
        print(steps.read(display).text)
except LabError as error:
    sys.exit(str(error))
"""


def _virsh(host: namespaces.RunningSandbox, *arguments: str) -> None:
    subprocess.run(
        [*namespaces.enter(host), "virsh", "-c", URI, *arguments], capture_output=True, text=True, check=True
    )


def _steps(host: namespaces.RunningSandbox, domain: str, wanted: str) -> subprocess.CompletedProcess[str]:
    command = [*namespaces.enter(host), sys.executable, "-c", PROGRAM, URI, domain, wanted]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(params=[SCREEN, ""], ids=["screen", "no screen"])
def domain(request: pytest.FixtureRequest, host: namespaces.RunningSandbox, base: Path) -> Iterator[str]:
    """A machine with SeaBIOS and no disk, with a screen or without; destroyed at the end."""
    name = "screen" if request.param else "blind"
    (base / "domain.xml").write_text(
        f"<domain type='qemu'><name>{name}</name><memory unit='MiB'>64</memory><os><type machine='q35'>hvm</type>"
        f"<bios useserial='no'/><bootmenu enable='yes' timeout='30000'/></os><devices>"
        f"<controller type='usb' model='none'/><memballoon model='none'/>{request.param}</devices></domain>"
    )
    _virsh(host, "create", str(base / "domain.xml"))
    yield name
    _virsh(host, "destroy", name)


def test_gather_takes_a_picture_of_each_screen(host: namespaces.RunningSandbox, domain: str) -> None:
    plan: Any = {"boot": {"mode": "redfish"}, "nodes": [{"domain": domain}]}
    kept = dict[str, bytes]()
    hypervisor_logs.screens(plan, lambda name, data: kept.update({name: data.read()}), namespaces.enter(host))
    assert list(kept) == ([] if domain == "blind" else ["screen/screen.png"])
    for data in kept.values():
        assert picture.read(data).width >= 640


def test_boot_menu_of_firmware(host: namespaces.RunningSandbox, domain: str, base: Path) -> None:
    shown = base / "menu.png"
    steps = '[{"wait": "Press ESC for boot menu", "timeout": 120}, {"press": "esc"}, {"wait": "Select boot device:"}]'
    if domain == "blind":
        assert "node master-0: it has no screen" in _steps(host, domain, steps).stderr
        return
    found = _steps(host, domain, steps.replace("}]", f'}}, {{"picture": "{shown}"}}]'))
    assert (found.returncode, found.stderr) == (0, "")
    assert "Select boot device:" in found.stdout
    assert shown.read_bytes().startswith(b"\x89PNG")
    late = _steps(host, domain, '[{"wait": "GRUB", "timeout": 1}]')
    assert late.returncode == 1
    assert "'GRUB' did not appear on the screen within 1 s. The screen was:" in late.stderr
    assert "Select boot device:" in late.stderr
    assert "libvirt has no domain other" in _steps(host, "other", "[]").stderr


# A wrong DNS server, in the network of QEMU itself, which has one at 10.0.2.3.
KEYFILE = """[connection]
id=eth0
type=ethernet
[ethernet]
mac-address=52:54:00:00:00:01
[ipv4]
method=manual
address1=10.0.2.15/24,10.0.2.2
dns=192.0.2.99;
[ipv6]
method=disabled
"""
# Replaces podman: a pull fails as the real one while the wrong DNS server is there.
PODMAN = """#!/bin/sh
grep -q 10.0.2.3 /etc/resolv.conf || { echo "lookup registry.test: no such host"; exit 125; }
"""
AFTER = """[Unit]
After=agent-interactive-console.service
[Service]
Type=oneshot
StandardOutput=tty
TTYPath=/dev/ttyS0
ExecStart=/bin/sh -c 'echo the installation continues; ls /var/log/agent'
[Install]
WantedBy=multi-user.target
"""


def _live_iso(path: Path) -> bool:
    """Write the lab's live ISO with agent-tui's unit, as the agent ISO has it, and a wrong DNS server; False without a payload."""
    payload = build.lookup()
    if payload is None:
        return False

    def file(name: str, text: str, mode: int = 0o644) -> dict[str, Any]:
        return {"path": name, "mode": mode, "overwrite": True, "contents": {"source": "data:," + quote(text)}}

    unit = (ROOT / "roles/agent_image/files/live/units/agent-interactive-console.service").read_text()
    config = {
        "ignition": {"version": "3.2.0"},
        "storage": {
            "files": [
                file(
                    "/etc/assisted/agent-installer.env",
                    f"RELEASE_IMAGE=registry.test:5000/lab/release@sha256:{'0' * 64}\n",
                ),
                file("/etc/NetworkManager/system-connections/eth0.nmconnection", KEYFILE, 0o600),
                file("/usr/local/bin/podman", PODMAN, 0o755),
            ]
        },
        "systemd": {
            "units": [
                {"name": "agent-interactive-console.service", "enabled": True, "contents": unit},
                {"name": "after.service", "enabled": True, "contents": AFTER},
            ]
        },
    }
    program = code.executables(COMPONENTS[Component.UTILS])["usr/bin/agent-tui"].data
    members = {
        "agent-files/agent-tui": cpio.File(program, 0o555),
        "usr/lib/dracut/hooks/pre-pivot/99-agent-copy-files.sh": cpio.File(image.TUI_HOOK, 0o755),
    }
    with LiveIso(payload["iso"]) as iso:
        iso.ignition = json.dumps(config).encode()
        iso.append_to_initrd(cpio.compress(cpio.archive(members)))
        iso.save_as(path)
    path.chmod(0o644)
    return True


@pytest.mark.slow
def test_wrong_dns_server_is_corrected_in_the_dialog(host: namespaces.RunningSandbox, base: Path, guests: None) -> None:
    """The console of a kernel on UEFI's framebuffer is read with the kernel's own font; steps drive agent-tui and nmtui on it."""
    if not _live_iso(base / "live.iso"):
        pytest.skip("needs the lab payload: agentlab payload build")
    console = base / "console"
    (base / "domain.xml").write_text(
        "<domain type='qemu'><name>live</name><memory unit='MiB'>2560</memory><vcpu>2</vcpu><os firmware='efi'>"
        "<type machine='q35'>hvm</type><firmware><feature enabled='no' name='secure-boot'/></firmware><boot dev='cdrom'/></os>"
        "<features><acpi/></features><cpu mode='custom'><model>Nehalem</model></cpu><devices><disk type='file' device='cdrom'>"
        f"<source file='{base / 'live.iso'}'/><target dev='sda' bus='sata'/></disk><interface type='user'>"
        "<mac address='52:54:00:00:00:01'/><model type='virtio'/></interface><serial type='file'>"
        f"<source path='{console}'/></serial><memballoon model='none'/><rng model='virtio'>"
        f"<backend model='random'>/dev/urandom</backend></rng>{SCREEN}</devices></domain>"
    )
    job: Any = jobs.load("e2e-agent-sno-wrong-dns", ROOT / "ci/jobs.yml")
    steps = json.dumps(job["profile"]["nodes"]["master-0"]["screen_steps"])
    _virsh(host, "create", str(base / "domain.xml"))
    try:
        found = _steps(host, "live", steps.replace("192.168.111.1", "10.0.2.3"))
        assert (found.returncode, found.stderr) == (0, "")
        end = time.monotonic() + 60
        while "the installation continues\nagent-tui.log\n" not in console.read_text(errors="replace"):
            assert time.monotonic() < end, console.read_text(errors="replace")[-1000:]
            time.sleep(0.5)
    finally:
        _virsh(host, "destroy", "live")


@pytest.mark.slow
def test_steps_of_a_profile_and_module(lab: Any, base: Path, guests: None) -> None:
    """`boot` performs the steps once; the module reads the same screen, and its steps fail as those of the command line."""
    steps = [
        {"wait": "No bootable device.", "timeout": 120},
        {"press": "ctrl-alt-delete"},
        {"wait": "Booting from DVD/CD"},
    ]
    master = {"screen": True, "firmware": "bios", "vcpus": 1, "memory_mib": 512, "screen_steps": steps}
    one = lab("agtest", {"topology": "sno", "stack": "ipv4", "boot": {"mode": "cdrom"}, "master": master})
    one.play("prepare")
    guest.iso(one.run_dir / "agent.x86_64.iso", "not for BIOS")
    assert one.play("boot", "--check")[0] == 2
    assert one.play("boot")[0] == 2
    assert one.play("boot")[0] == 0

    shown = _module(
        one, steps=[{"press": "enter"}, {"wait": "No bootable device."}, {"picture": str(base / "menu.png")}]
    )
    assert (shown["changed"], shown["font"]) == (True, "VGA text, 9x16"), shown
    assert "No bootable device." in shown["lines"]
    assert (base / "menu.png").read_bytes().startswith(b"\x89PNG")
    assert _module(one, steps=[])["changed"] is False
    assert _module(one, _ansible_check_mode=True) == {"changed": True}
    late = _module(one, steps=[{"wait": "GRUB"}], timeout=1)
    assert late["failed"] is True
    assert "'GRUB' did not appear on the screen within 1 s. The screen was:" in late["msg"]
    assert "No bootable device." in late["msg"]


def _module(one: Any, **options: Any) -> dict[str, Any]:
    """Run the module in the sandbox of a lab, as a task on its hypervisor does; return its result."""
    who = owner.caller(one.plan, one.run_dir).fact()
    given = {"plan": one.plan, "owner": who, "node": "master-0", "_ansible_remote_tmp": str(one.run_dir), **options}
    done = subprocess.run(
        [*one.inside(), sys.executable, "-c", "import ansible_collections.agentlab.ocp.plugins.modules.node_screen as m; m.main()"],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return {name: value for name, value in json.loads(done.stdout).items() if name != "invocation"}
