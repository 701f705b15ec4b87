"""The screen and the keyboard of a machine in libvirt, with the distribution's firmware."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.agentlab.ocp.plugins.module_utils.sandbox import namespaces

URI = "qemu:///system"
SCREEN = "<video><model type='vga'/></video>"
# Does steps on a domain's screen, as `agentlab console NODE --screen` does in the sandbox.
PROGRAM = """
import json, sys
from ansible_collections.agentlab.ocp.plugins.module_utils.errors import LabError
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.connection import connect
from ansible_collections.agentlab.ocp.plugins.module_utils.libvirt.display import Display
from ansible_collections.agentlab.ocp.plugins.module_utils.screen import steps
uri, domain, wanted = sys.argv[1:]
try:
    with connect(uri) as connection:
        display = Display(connection, domain, "master-0")
        steps.follow(display, steps.parse(json.loads(wanted)))
        print(steps.read(display).text)
except LabError as error:
    sys.exit(str(error))
"""


def _virsh(host: namespaces.Running, *arguments: str) -> None:
    subprocess.run(
        [*namespaces.enter(host), "virsh", "-c", URI, *arguments], capture_output=True, text=True, check=True
    )


def _steps(host: namespaces.Running, domain: str, wanted: str) -> subprocess.CompletedProcess[str]:
    command = [*namespaces.enter(host), sys.executable, "-c", PROGRAM, URI, domain, wanted]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


@pytest.fixture(params=[SCREEN, ""], ids=["screen", "no screen"])
def domain(request: pytest.FixtureRequest, host: namespaces.Running, base: Path) -> Iterator[str]:
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


def test_boot_menu_of_firmware(host: namespaces.Running, domain: str, base: Path) -> None:
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
